//! Identities: how a row's id is derived from its identity columns, and the hidden per-row
//! digest of row-precise reuse. Which columns identify a row is in the operator's file.

/// The hidden column that carries the digest of the columns an operator reads of a row.
pub const ROW_DIGEST: &str = "__row";

/// The default key column.
pub const ID: &str = "id";

/// A row's id: the first 32 hexadecimal digits of BLAKE3 over the length-prefixed parts.
pub fn row_id<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().to_hex()[..32].to_string()
}

/// A number that depends only on the seed, the purpose and the row's id: 64 uniform bits.
///
/// Every random choice of a step comes from here, so it is the same for any number of
/// threads and any order of rows (`purpose` keeps the choices of two operators apart).
pub fn keyed_hash(seed: i64, purpose: &str, id: &[u8]) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    hasher.update(&(purpose.len() as u64).to_le_bytes());
    hasher.update(purpose.as_bytes());
    hasher.update(id);
    let mut first = [0; 8];
    first.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    u64::from_le_bytes(first)
}

/// A number in [0, 1) from 64 uniform bits: the upper 53 of them.
pub fn unit_interval(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_run_together() {
        assert_ne!(row_id([&b"ab"[..], b"c"]), row_id([&b"a"[..], b"bc"]));
        assert_eq!(row_id([&b"a"[..]]).len(), 32);
    }

    #[test]
    fn unit_interval_excludes_one() {
        assert_eq!(unit_interval(0), 0.0);
        assert!(unit_interval(u64::MAX) < 1.0);
    }
}
