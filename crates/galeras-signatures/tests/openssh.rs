//! What OpenSSH signed is accepted, what we sign OpenSSH accepts, byte by byte the same.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use galeras_signatures::{AllowedSigners, SignatureFile, SigningKey, SigningKeyError};

const NAMESPACE: &str = "galeras-manifest";

fn data(name: &str) -> PathBuf {
    // Asked when it runs: clones at several places may share what was built.
    Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("tests/data").join(name)
}

fn text(name: &str) -> String {
    fs::read_to_string(data(name)).unwrap()
}

fn allowed(names: &[&str]) -> AllowedSigners {
    let line = |name: &&str| format!("{name}@example.org {}", text(&format!("{name}.pub")));
    AllowedSigners::parse(&names.iter().map(line).collect::<String>()).unwrap()
}

#[test]
fn signatures_of_openssh_are_accepted() {
    let message = fs::read(data("message.json")).unwrap();
    let (signers, now) = (allowed(&["bob", "ada"]), SystemTime::now());
    for name in ["ada.sig", "ada-256.sig"] {
        let file = SignatureFile::parse(&text(name));
        assert_eq!(
            signers.accept(&file, NAMESPACE, &message, now),
            Ok("ada@example.org"),
            "{name}"
        );
    }
    // Several in one file: the first by somebody who is allowed counts.
    let both = SignatureFile::parse(&(text("rsa.sig") + "\n" + &text("ada.sig")));
    assert_eq!(signers.accept(&both, NAMESPACE, &message, now), Ok("ada@example.org"));
    let refused = signers.accept(&SignatureFile::parse(&text("rsa.sig")), NAMESPACE, &message, now);
    assert!(refused.unwrap_err().to_string().contains("ssh-rsa"));
}

#[test]
fn what_is_signed_is_what_openssh_would_have_written() {
    let key = SigningKey::parse(&text("ada")).unwrap();
    let message = fs::read(data("message.json")).unwrap();
    let signed = SignatureFile::default().and([key.sign(NAMESPACE, &message).unwrap()]);
    assert_eq!(signed.render(), text("ada.sig"));
    assert_eq!(key.public().to_string(), "SHA256:8QLPAPgg+/FkqSZxdu83b+j/uz8R6TyBDqNZ3wV0u2Y");
    assert!(!format!("{key:?}").contains("PRIVATE"));
}

#[test]
fn keys_that_cannot_sign_are_refused_in_words() {
    let refused = |name: &str| SigningKey::parse(&text(name)).unwrap_err();
    assert!(matches!(refused("locked"), SigningKeyError::Encrypted));
    assert!(matches!(refused("ada.pub"), SigningKeyError::Public));
    assert!(matches!(refused("message.json"), SigningKeyError::NotAKey));
    assert!(refused("ecdsa").to_string().contains("ed25519"), "{}", refused("ecdsa"));
    let ada = text("ada");
    for cut in [0, 40, 100, ada.len() / 2, ada.len() - 30] {
        assert!(SigningKey::parse(&ada[..cut]).is_err(), "{cut}");
    }
}

/// `ssh-keygen` with these arguments, which reads `message`; `None` where there is no such program.
fn ssh_keygen(args: &[&str], message: &Path) -> Option<bool> {
    let command = Command::new("ssh-keygen")
        .args(args)
        .stdin(File::open(message).unwrap())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match command {
        Ok(status) => Some(status.success()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn the_installed_openssh_agrees() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let key = SigningKey::parse(&text("bob")).unwrap();
    let message = b"{\"key\": \"11\"}\n";
    fs::write(path("m"), message).unwrap();
    fs::write(path("other"), b"{\"key\": \"12\"}\n").unwrap();
    let signed = SignatureFile::default().and([key.sign(NAMESPACE, message).unwrap()]);
    fs::write(path("m.sig"), signed.render()).unwrap();
    let rest = "namespaces=\"git,galeras-*\",valid-after=\"20200101Z\"";
    fs::write(path("allowed"), format!("bob@example.org {rest} {}", text("bob.pub"))).unwrap();
    let verify = |namespace: &str, message: &str| {
        let (allowed, signature) = (path("allowed"), path("m.sig"));
        let who = "bob@example.org";
        let args = ["-Y", "verify", "-f", &allowed, "-I", who, "-n", namespace, "-s", &signature];
        ssh_keygen(&args, Path::new(&path(message)))
    };
    // The committed signatures of OpenSSH are tested above, with or without the program.
    let Some(good) = verify(NAMESPACE, "m") else { return };
    assert!(good);
    assert_eq!(verify(NAMESPACE, "other"), Some(false));
    assert_eq!(verify("file", "m"), Some(false));
    let ours = AllowedSigners::parse(&fs::read_to_string(path("allowed")).unwrap()).unwrap();
    let accepted = ours.accept(&signed, NAMESPACE, message, SystemTime::now());
    assert_eq!(accepted, Ok("bob@example.org"));
}
