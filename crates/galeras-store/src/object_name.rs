//! The names of a store's objects. They are made of digests that the caller computed; a name that
//! was read from the store is never followed. A file with another name belongs to the user: it is
//! neither listed nor removed.

use super::manifest::MemoPart;
use galeras_base::digest::Digest;

pub(super) fn manifest_name(key: &Digest) -> String {
    format!("actions/{}/{key}.json", key.shard())
}

pub(super) fn signature_name(key: &Digest) -> String {
    format!("signatures/{}/{key}.sig", key.shard())
}

pub(super) fn check_name(key: &Digest) -> String {
    format!("checks/{}/{key}.json", key.shard())
}

pub(super) fn blob_name(digest: &Digest) -> String {
    format!("blobs/{}/{digest}.parquet", digest.shard())
}

pub(super) fn run_name(id: &str) -> String {
    format!("runs/{id}.json")
}

pub(super) fn memo_folder(recipe: &Digest) -> String {
    format!("memo/{}/{recipe}", recipe.shard())
}

pub(super) fn memo_name(recipe: &Digest, part: &MemoPart) -> String {
    let folder = memo_folder(recipe);
    match part.row.as_ref().filter(|row| row.bytes().all(is_digit)) {
        Some(row) => format!("{folder}/row-{row}.json"),
        None => format!("{folder}/{}.json", part.blob),
    }
}

/// Returns true for a name that a store gives to an object.
pub(super) fn is_own(name: &str) -> bool {
    let parts: Vec<&str> = name.split('/').collect();
    match parts.as_slice() {
        ["actions" | "checks", shard, file] => is_shard(shard) && is_digest(file, ".json"),
        ["signatures", shard, file] => is_shard(shard) && is_digest(file, ".sig"),
        ["blobs", shard, file] => is_shard(shard) && is_digest(file, ".parquet"),
        ["outputs", shard, folder, file] => {
            is_shard(shard) && is_digest(folder, "") && is_digest(file, ".json")
        }
        ["memo", shard, recipe, file] => {
            let row = file.strip_prefix("row-").and_then(|rest| rest.strip_suffix(".json"));
            let is_row = row.is_some_and(|row| !row.is_empty() && row.bytes().all(is_digit));
            is_shard(shard) && is_digest(recipe, "") && (is_row || is_digest(file, ".json"))
        }
        ["runs", file] => file.strip_suffix(".json").is_some_and(is_run),
        ["work", job, rest @ ..] => {
            is_hex(job, 32) && !rest.is_empty() && rest.iter().all(|part| is_plain(part))
        }
        ["locks", lock] => is_plain(lock),
        _ => false,
    }
}

fn is_digest(file: &str, ending: &str) -> bool {
    file.strip_suffix(ending).is_some_and(|digest| is_hex(digest, 64))
}

fn is_shard(folder: &str) -> bool {
    is_hex(folder, 2)
}

/// `20261121T093000.123Z-89abcdef`
fn is_run(id: &str) -> bool {
    let parts = id.rsplit_once('-');
    parts.is_some_and(|(time, random)| {
        let is_time = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'T' | b'Z' | b'.');
        is_hex(random, 8) && time.len() >= 8 && time.bytes().all(is_time)
    })
}

fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !name.is_empty() && name.bytes().all(plain)
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(is_digit)
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_hexdigit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_store_differ_from_others() {
        let digest = "0123456789abcdef".repeat(4);
        for own in [
            format!("actions/01/{digest}.json"),
            format!("checks/01/{digest}.json"),
            format!("signatures/01/{digest}.sig"),
            format!("blobs/01/{digest}.parquet"),
            format!("outputs/01/{digest}/{digest}.json"),
            format!("memo/01/{digest}/{digest}.json"),
            format!("memo/01/{digest}/row-00ff.json"),
            "runs/20261121T093000.123Z-89abcdef.json".to_string(),
            format!("work/{}/done/3", &digest[..32]),
            "locks/store".to_string(),
        ] {
            assert!(is_own(&own), "{own}");
            assert!(!is_own(&format!("{own}.bak")) && !is_own(&format!("x/{own}")), "{own}");
        }
        let others = " blobs/notes.txt blobs/01/notes.parquet runs/thesis.json runs/2026-notes.json \
                      work/notes tmp/0123456789abcdef verified.log .env";
        for other in others.split(' ') {
            assert!(!is_own(other), "{other}");
        }
    }
}
