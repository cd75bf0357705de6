//! The ledger of spending.

use std::fs;

use galeras_base::digest::Digest;
use galeras_store::SpendingLedger;

/// A ledger of spending. A line that begins with `+` gets its checksum, twice, as the program
/// writes it; others are unchanged.
pub(crate) fn spending(input: &[u8]) {
    let folder = super::folder().join("ledger");
    let ledger = || SpendingLedger::new(&folder, "w.yaml");
    let name = Digest::of(b"w.yaml");
    let path = folder.join("spending").join(format!("{name}.log"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut text = Vec::new();
    for line in input.split_inclusive(|byte| *byte == b'\n') {
        match line.strip_prefix(b"+") {
            Some(json) => {
                let json = json.trim_ascii_end();
                let sum = blake3::hash(json).to_hex();
                for _ in 0..2 {
                    text.extend([&sum.as_bytes()[..32], b" ", json, b"\n\n"].concat());
                }
            }
            None => text.extend_from_slice(line),
        }
    }
    fs::write(&path, &text).unwrap();
    let Ok(spent) = ledger().spent() else {
        // Nothing is spent on what is not known.
        assert!(ledger().close(&["a".to_string()]).is_err());
        assert_eq!(fs::read(&path).unwrap(), text);
        return;
    };
    assert_eq!(ledger().spent().unwrap(), spent);
    let accounts: Vec<String> = spent.keys().cloned().collect();
    ledger().close(&accounts).unwrap();
    assert!(ledger().spent().unwrap().is_empty(), "what was closed is spent");
}
