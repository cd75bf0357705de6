//! What files of allowed signers let through, and what they refuse.

#![allow(clippy::unwrap_used)]

use std::time::{Duration, SystemTime};

use super::{AllowedSigners, SignatureRefusal};
use crate::signature::SignatureFile;
use crate::signing_key::SigningKey;

const ADA: &str = include_str!("../../tests/data/ada");
const ADA_PUB: &str = include_str!("../../tests/data/ada.pub");
const BOB: &str = include_str!("../../tests/data/bob");
const BOB_PUB: &str = include_str!("../../tests/data/bob.pub");
const RSA_PUB: &str = include_str!("../../tests/data/rsa.pub");
const RSA_SIG: &str = include_str!("../../tests/data/rsa.sig");
const SPACE: &str = "galeras-manifest";

fn signed(key: &str, namespace: &str, message: &[u8]) -> SignatureFile {
    let signature = SigningKey::parse(key).unwrap().sign(namespace, message).unwrap();
    SignatureFile::default().and([signature])
}

/// Seconds since 1970.
fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

const NOW: u64 = 1_800_000_000;

fn accept(allowed: &str, file: &SignatureFile) -> Result<String, SignatureRefusal> {
    let allowed = AllowedSigners::parse(allowed).unwrap();
    allowed.accept(file, SPACE, b"message", at(NOW)).map(str::to_string)
}

#[test]
fn each_way_not_to_be_signed_has_its_own_words() {
    let (ada, own) = (format!("ada@example.org {ADA_PUB}"), signed(ADA, SPACE, b"message"));
    assert_eq!(accept(&ada, &own).unwrap(), "ada@example.org");
    let refused = |file: &SignatureFile| accept(&ada, file).unwrap_err();
    assert_eq!(refused(&SignatureFile::default()), SignatureRefusal::Unsigned);
    assert_eq!(refused(&SignatureFile::parse("<html>")), SignatureRefusal::Unreadable);
    let other = refused(&signed(BOB, SPACE, b"message"));
    assert!(
        matches!(other, SignatureRefusal::OtherKey(_)) && other.to_string().contains("SHA256:")
    );
    let moved = refused(&signed(ADA, SPACE, b"another"));
    assert_eq!(moved, SignatureRefusal::OtherContent("ada@example.org".into()));
    let git = refused(&signed(ADA, "git", b"message"));
    assert!(git.to_string().contains("made for `git`"), "{git}");
    assert_eq!(
        refused(&SignatureFile::parse(RSA_SIG)),
        SignatureRefusal::OtherKind("ssh-rsa".into())
    );
    // Of several the one that comes closest is told.
    let two = signed(BOB, SPACE, b"message").and(signed(ADA, SPACE, b"another"));
    assert_eq!(refused(&two), moved);
    let good = signed(BOB, SPACE, b"message").and(own);
    assert_eq!(accept(&ada, &good).unwrap(), "ada@example.org");
}

#[test]
fn options_restrict() {
    let own = signed(ADA, SPACE, b"message");
    let with = |options: &str| accept(&format!("a@b,c@d {options} {ADA_PUB}"), &own);
    for (options, expected) in [
        ("namespaces=\"galeras-manifest\"", true),
        ("namespaces=\"git,galeras-*\"", true),
        ("NameSpaces=\"*\"", true),
        ("namespaces=\"git\"", false),
        ("namespaces=\"*,!galeras-manifest\"", false),
        // 1,800,000,000 is 2027-01-15 08:00:00 UTC.
        ("valid-after=\"20270115Z\"", true),
        ("valid-after=\"202701150801Z\"", false),
        ("valid-before=\"20270115080000Z\"", true),
        ("valid-before=\"20270115075959Z\"", false),
        ("valid-after=\"20260101Z\",valid-before=\"20280101Z\",namespaces=\"galeras*\"", true),
    ] {
        assert_eq!(with(options).is_ok(), expected, "{options}");
    }
    let error = with("namespaces=\"git\"").unwrap_err().to_string();
    assert_eq!(error, "is signed by a@b,c@d, who may not sign for `galeras-manifest`");
    // One key on two lines: any of them is enough.
    let late = format!("old valid-before=\"20200101Z\" {ADA_PUB}new {ADA_PUB}");
    assert_eq!(accept(&late, &own).unwrap(), "new");
}

#[test]
fn what_is_not_understood_is_refused_with_its_line() {
    for (line, words) in [
        (format!("a@b cert-authority {ADA_PUB}"), "`cert-authority` is not supported"),
        (format!("a@b cert-authority,namespaces=\"x\" {ADA_PUB}"), "`cert-authority`"),
        (format!("a@b no-touch-required {ADA_PUB}"), "an option that is not supported"),
        (format!("a@b namespaces=git {ADA_PUB}"), "in quotation marks"),
        (format!("a@b namespaces {ADA_PUB}"), "in quotation marks"),
        (format!("a@b namespaces=\"\" {ADA_PUB}"), "an empty entry"),
        (format!("a@b namespaces=\"x\",namespaces=\"y\" {ADA_PUB}"), "twice"),
        (format!("a@b valid-after=\"20260101\" {ADA_PUB}"), "must end in Z"),
        (format!("a@b valid-after=\"2026-01-01Z\" {ADA_PUB}"), "is not a time"),
        (format!("a@b valid-after=\"20261301Z\" {ADA_PUB}"), "is not a time"),
        (format!("a@b valid-after=\"２０２６Z\" {ADA_PUB}"), "is not a time"),
        (
            format!("a@b valid-after=\"20270101Z\",valid-before=\"20260101Z\" {ADA_PUB}"),
            "is not after",
        ),
        (format!("a@b namespaces=\"x\", {ADA_PUB}"), "end in a comma"),
        ("a@b".into(), "its key cannot be read"),
        ("a@b ssh-ed25519 AAAA".into(), "its key cannot be read"),
        (ADA_PUB.into(), "who signs"),
        (format!(", {ADA_PUB}"), "who signs"),
        (format!("a\u{1b}@b {ADA_PUB}"), "control characters"),
        (format!("r@s {RSA_PUB}"), "no key of the kind ssh-ed25519"),
        (String::new(), "names nobody"),
    ] {
        let text = format!("# who\n\n{line}");
        let error = AllowedSigners::parse(&text).unwrap_err();
        assert!(error.to_string().contains(words), "{line}: {error}");
        assert!(error.line >= 2, "{error}");
        assert!(!error.to_string().contains("AAAA…AAAA"), "{error}");
    }
}

#[test]
fn comments_quotes_and_other_kinds_of_keys_are_read() {
    let text = format!(
        "# team\n\t\n\"a@b\" {ADA_PUB}\nr@s {RSA_PUB}e@c ecdsa-sha2-nistp256 AAAA\n  bob {BOB_PUB}"
    );
    let own = signed(BOB, SPACE, b"message");
    assert_eq!(accept(&text, &own).unwrap(), "bob");
    assert_eq!(accept(&text, &signed(ADA, SPACE, b"message")).unwrap(), "a@b");
    let allowed = AllowedSigners::parse(&text.replace('\n', "\r\n")).unwrap();
    let bob = SigningKey::parse(BOB).unwrap().public();
    assert_eq!(allowed.name_of(&bob, SPACE, at(NOW)), Some("bob"));
}

#[test]
fn no_flipped_bit_of_a_signature_is_accepted() {
    let text = signed(ADA, SPACE, b"message").render();
    let line = format!("ada {ADA_PUB}");
    for at in 0..text.trim_end().len() {
        let mut damaged = text.clone().into_bytes();
        damaged[at] ^= 1 << (at % 7);
        let Ok(damaged) = String::from_utf8(damaged) else { continue };
        let file = SignatureFile::parse(&damaged);
        // White space between the lines is none of the signature.
        let same = file == SignatureFile::parse(&text);
        assert!(same || accept(&line, &file).is_err(), "byte {at}");
    }
    for length in 1..text.trim_end().len() {
        assert!(accept(&line, &SignatureFile::parse(&text[..length])).is_err(), "{length}");
    }
    assert!(SignatureFile::parse(&text.repeat(100)).is_damaged());
}

#[test]
fn signatures_of_other_bytes_are_dropped_and_each_key_counts_once() {
    let file = signed(ADA, SPACE, b"message")
        .and(signed(BOB, SPACE, b"another"))
        .and(signed(BOB, "git", b"message"))
        .and(signed(ADA, SPACE, b"message"));
    let kept = file.only_of(SPACE, b"message");
    assert_eq!(kept.signatures().len(), 1);
    assert_eq!(kept.signers(SPACE, b"message"), [SigningKey::parse(ADA).unwrap().public()]);
    assert_eq!(SignatureFile::parse(&kept.render()), kept);
    let both = kept.and(signed(BOB, SPACE, b"message"));
    assert_eq!(both.signers(SPACE, b"message").len(), 2);
}
