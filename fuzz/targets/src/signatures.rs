//! Signatures, and files of allowed signers: nothing that was not signed is accepted.

use std::time::{Duration, SystemTime};

use galeras_signatures::{AllowedSigners, SignatureFile, SigningKey};

use crate::texts;

/// What a remote and a user may give: a file of allowed signers, a file of signatures, and what was
/// signed. What is accepted is a good signature by a key of the list, whatever else is in the files.
pub(crate) fn accepted(input: &[u8]) {
    let texts = texts(input);
    let [signers, signatures, message] = texts.as_slice() else { return };
    let file = SignatureFile::parse(signatures);
    assert_eq!(SignatureFile::parse(&file.render()).signatures(), file.signatures());
    let Ok(signers) = AllowedSigners::parse(signers) else { return };
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    let message = message.trim_end_matches('\n');
    let accepted = signers.accept(&file, "galeras-manifest", message.as_bytes(), now);
    let good = file.signers("galeras-manifest", message.as_bytes());
    let named = |key| signers.name_of(key, "galeras-manifest", now);
    assert_eq!(accepted.is_ok(), good.iter().any(|key| named(key).is_some()));
    let others = signers.accept(&file, "galeras-manifest", b"something else", now);
    assert!(message == "something else" || others.is_err());
}

/// A file with a private key: what it signs is of its public half, and no error quotes the file.
pub(crate) fn private_key(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    match SigningKey::parse(&text) {
        Ok(key) => {
            let signature = key.sign("galeras-manifest", b"message").unwrap();
            assert!(signature.is_of("galeras-manifest", b"message"));
            assert!(!signature.is_of("galeras-manifest", b"another"));
            assert_eq!(signature.key(), key.public());
        }
        Err(error) => {
            let said = error.to_string();
            assert!(!said.is_empty());
            // Of a key, that is: a text may happen to be what is said of it.
            let of_key = |line: &str| {
                let base64 = |b: u8| b.is_ascii_alphanumeric() || b"+/=".contains(&b);
                line.len() > 40 && line.bytes().all(base64)
            };
            assert!(!text.lines().any(|line| of_key(line) && said.contains(line)), "{said}");
        }
    }
}
