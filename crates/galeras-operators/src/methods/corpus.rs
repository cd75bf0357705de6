//! The corpus that the binary carries: CPython's standard library, packed by `build.rs`.

use galeras_base::digest::Digest;
use galeras_operator::StepError;

const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/python-stdlib.zst"));
const BYTES: &str = env!("GALERAS_STDLIB_BYTES");
const DIGEST: &str = env!("GALERAS_STDLIB_DIGEST");

pub(super) fn digest() -> Result<Digest, StepError> {
    DIGEST.parse().map_err(|_| StepError::new("the packed corpus has no digest"))
}

/// The files in the order of their paths, with their content.
pub(super) fn files() -> Result<Vec<(String, Vec<u8>)>, StepError> {
    let damaged = || StepError::new("the packed corpus is damaged");
    let bytes = BYTES.parse().map_err(|_| damaged())?;
    let packed = zstd::bulk::decompress(PACKED, bytes)?;
    let mut rest = packed.as_slice();
    let mut next = || -> Option<&[u8]> {
        let (length, tail) = rest.split_at_checked(4)?;
        let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
        let (part, tail) = tail.split_at_checked(length)?;
        rest = tail;
        Some(part)
    };
    let mut files = Vec::new();
    while let Some(path) = next() {
        let content = next().ok_or_else(damaged)?;
        files.push((String::from_utf8_lossy(path).into_owned(), content.to_vec()));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corpus_is_complete_and_sorted() {
        let files = files().expect("unpacks");
        assert_eq!(files.len(), 718);
        assert!(files.is_sorted_by(|a, b| a.0 < b.0));
        assert!(files.iter().any(|(path, _)| path == "json/decoder.py"));
    }
}
