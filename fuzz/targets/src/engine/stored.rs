//! Files that the program wrote itself, as they are after something else wrote into them.

use std::fs;

use galeras_base::digest::Digest;
use galeras_engine::plan::{LockFile, lock_path};
use galeras_store::{AnswerJournal, OutputOrigin, SpendingLedger, Store, VerifyLevel};

/// `galeras.lock`: what can be read is written as it was read.
pub(crate) fn lock_file(input: &[u8]) {
    let workflow = super::folder().join("w.yaml");
    let path = lock_path(&workflow);
    fs::write(&path, input).unwrap();
    match LockFile::beside(&workflow) {
        Ok(lock) => {
            let pins = lock.pins();
            assert!(pins.files.len() <= lock.files.len());
            fs::write(&path, lock.render()).unwrap();
            let again = LockFile::beside(&workflow).expect("it was written by us");
            assert_eq!(again.render(), lock.render());
            assert_eq!(again.snapshots, lock.snapshots);
            assert_eq!(again.files, lock.files);
            assert_eq!(again.versions, lock.versions);
        }
        Err(problem) => assert!(!problem.is_empty()),
    }
}

/// A manifest of the store, and its other records. They end in the digest of the text before it; an
/// input without it gets it, so that trusted records are also fuzzed.
pub(crate) fn manifest(input: &[u8]) {
    let input = &sealed(input);
    let key = Digest::of(b"key");
    let folder = super::folder().join("store");
    let at = |kind: &str, rest: &str| {
        let path = folder.join(kind).join(key.shard()).join(rest);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, input).unwrap();
    };
    at("actions", &format!("{key}.json"));
    at("checks", &format!("{key}.json"));
    at("memo", &format!("{key}/{key}.json"));
    at("outputs", &format!("{key}/{key}.json"));
    fs::create_dir_all(folder.join("runs")).unwrap();
    fs::write(folder.join("runs/20260101T000000Z-00000001.json"), input).unwrap();
    super::wait(async {
        let store = Store::open(folder.to_str().unwrap()).await.unwrap();
        if let Some(manifest) = store.manifest(&key).await.unwrap() {
            let _ = (manifest.preimage.key(), manifest.preimage.recipe());
            for port in &manifest.ports {
                let names: Vec<String> = port.columns.iter().map(|c| c.name.clone()).collect();
                let _ = port.digest_of(Some(&names));
                assert_eq!(manifest.port(&port.port).map(|p| &p.port), Some(&port.port));
            }
            // There are no blobs.
            let missing = store.unsound_blobs(&manifest, VerifyLevel::Usual).await.unwrap();
            assert!(missing.len() <= manifest.ports.len());
            assert_eq!(missing.is_empty(), manifest.ports.is_empty());
        }
        assert!(store.memo_parts(&key).await.unwrap().sound.is_empty(), "there are no blobs");
        let _ = store.check_result(&key).await;
        let runs = store.recent_runs(3).await.unwrap();
        assert!(runs.len() <= 1);
        for record in store.outputs_of(&key).await.unwrap() {
            assert_eq!(record.content, key);
            let pairs = record.origin.to_pairs();
            assert_eq!(OutputOrigin::from_pairs(&pairs), Some(record.origin));
        }
    });
}

/// A JSON object with the digest of the text before it, as the store writes it.
fn sealed(input: &[u8]) -> Vec<u8> {
    if input.windows(11).any(|part| part == b"\"integrity\"") {
        return input.to_vec();
    }
    let mut bytes = input.trim_ascii_end().to_vec();
    if bytes.ends_with(b"\n}") {
        bytes.truncate(bytes.len() - 2);
    }
    let digest = blake3::hash(&bytes).to_hex();
    bytes.extend_from_slice(format!(",\n  \"integrity\": \"{digest}\"\n}}\n").as_bytes());
    bytes
}

/// A journal of answers: an unreadable part affects nothing else, and the journal continues.
pub(crate) fn journal(input: &[u8]) {
    let (folder, recipe) = (super::folder().join("journal"), Digest::of(b"recipe"));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("{recipe}.log"));
    fs::write(&path, input).unwrap();
    super::wait(async {
        let (journal, entries) = AnswerJournal::open(&folder, &recipe).await.unwrap();
        let lines = input.split(|byte| *byte == b'\n').count();
        assert!(entries.len() <= lines);
        let kept = fs::read(&path).unwrap();
        assert!(input.starts_with(&kept) && kept.last().is_none_or(|byte| *byte == b'\n'));
        let (question, answer) = (Digest::of(input), "an answer\nof two lines");
        journal.keep(&question, answer).await.unwrap();
        let all = fs::read(&path).unwrap();
        assert!(all.starts_with(&kept) && all.ends_with(b"\n") && all.len() > kept.len());
        // The next one has all of the old answers and the new one, and ends the file.
        let copy = folder.join("copy");
        fs::create_dir_all(&copy).unwrap();
        fs::write(copy.join(format!("{recipe}.log")), all).unwrap();
        journal.remove().unwrap();
        let (journal, more) = AnswerJournal::open(&copy, &recipe).await.unwrap();
        assert_eq!(more[..entries.len()], entries[..]);
        assert_eq!(more[entries.len()..], [(question, answer.to_string())]);
        journal.remove().unwrap();
    });
}

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
