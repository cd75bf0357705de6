//! Manifests with signatures.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::*;

const WHEN: &str = "2026-11-01T12:00:00Z";

/// A new key of this kind in a folder, and its public half.
fn key(folder: &Path, kind: &str) -> (SigningKey, String) {
    let file = folder.join(format!("key-{kind}"));
    _ = fs::remove_file(&file);
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", kind, "-N", "", "-C", "", "-f"])
        .arg(&file)
        .status();
    assert!(made.unwrap().success());
    let public = fs::read_to_string(file.with_extension("pub")).unwrap();
    (SigningKey::open(&file).unwrap(), public.trim().to_string())
}

async fn stored(store: &Store, key: &Digest) -> StoredManifest {
    match store.offer(key).await.unwrap() {
        Offer::Manifest(stored) => *stored,
        other => panic!("{other:?}"),
    }
}

fn signatures(keys: &[&SigningKey], bytes: &[u8]) -> SignatureFile {
    let signed = keys.iter().map(|key| key.sign(bytes).unwrap());
    signed.fold(SignatureFile::default(), SignatureFile::and)
}

async fn state(store: &Store, key: &Digest) -> SignatureState {
    store.signature_state(key, None).await.unwrap()
}

#[tokio::test]
async fn only_signatures_of_the_manifest_are_stored_and_nothing_twice() {
    let (folder, store) = new_store().await;
    let manifest = put_result(&store, 1, WHEN).await;
    let other = put_result(&store, 2, WHEN).await;
    let (own, other) = (stored(&store, &manifest.key).await, stored(&store, &other.key).await);
    assert_eq!(state(&store, &manifest.key).await, SignatureState::Unsigned);
    let keys = tempfile::tempdir().unwrap();
    let ((ada, _), (bob, _)) = (key(keys.path(), "ed25519"), key(keys.path(), "ecdsa"));
    let given = signatures(&[&bob, &ada, &bob], &own.bytes).and(signatures(&[&ada], &other.bytes));
    store.put_signed(&own, given).await.unwrap();
    let SignatureState::Signed(keys) = state(&store, &manifest.key).await else {
        panic!("it is signed");
    };
    assert_eq!(keys.len(), 2);
    assert_eq!(store.verify(&|_| {}).await.unwrap(), []);
    let file = folder.path().join(signature_name(&manifest.key));
    let before = fs::metadata(&file).unwrap().modified().unwrap();
    let same = store.signatures(&manifest.key).await.unwrap();
    store.put_signed(&own, same).await.unwrap();
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), before);
    // A manifest that is written again is not the signed one.
    store.put_manifest(&manifest).await.unwrap();
    assert!(!file.exists());
}

#[tokio::test]
async fn a_signature_of_something_else_is_found_and_removed() {
    let (folder, store) = new_store().await;
    let manifest = put_result(&store, 1, WHEN).await;
    let own = stored(&store, &manifest.key).await;
    let keys = tempfile::tempdir().unwrap();
    let (ada, _) = key(keys.path(), "ed25519");
    store.put_signed(&own, signatures(&[&ada], &own.bytes)).await.unwrap();
    let name = signature_name(&manifest.key);
    for text in [signatures(&[&ada], b"else").render(), "<html>".into()] {
        fs::write(folder.path().join(&name), text).unwrap();
        assert_eq!(state(&store, &manifest.key).await, SignatureState::Wrong);
        let findings = store.verify(&|_| {}).await.unwrap();
        assert_eq!(findings.len(), 1);
        assert_eq!((findings[0].kind, &findings[0].object), (FindingKind::WrongSignature, &name));
        store.repair(&findings).await.unwrap();
        assert_eq!(store.verify(&|_| {}).await.unwrap(), []);
        assert!(store.manifest(&manifest.key).await.unwrap().is_some());
    }
}

#[tokio::test]
async fn signatures_go_with_their_results() {
    let (_folder, store) = new_store().await;
    let manifest = put_result(&store, 1, WHEN).await;
    let own = stored(&store, &manifest.key).await;
    let keys = tempfile::tempdir().unwrap();
    let (ada, _) = key(keys.path(), "ed25519");
    let sign = || signatures(&[&ada], &own.bytes);
    store.put_signed(&own, sign()).await.unwrap();
    cleaned(&store, GcPolicy::default()).await;
    assert!(!store.signatures(&manifest.key).await.unwrap().is_empty());
    store.forget(&manifest.key).await.unwrap();
    assert!(store.signatures(&manifest.key).await.unwrap().is_empty());
    store.put_signed(&own, sign()).await.unwrap();
    let everything =
        GcPolicy { older_than: Some(std::time::Duration::ZERO), ..GcPolicy::default() };
    cleaned(&store, everything).await;
    assert!(store.manifest(&manifest.key).await.unwrap().is_none());
    assert!(store.signatures(&manifest.key).await.unwrap().is_empty());
}

#[tokio::test]
async fn the_same_result_with_other_names_and_times_is_the_same() {
    let store = Store::open("memory://").await.unwrap();
    let manifest = put_result(&store, 1, WHEN).await;
    let own = StoredManifest::of(manifest.clone()).unwrap();
    let changed = |change: fn(&mut Manifest)| {
        let mut other = manifest.clone();
        change(&mut other);
        StoredManifest::of(other).unwrap()
    };
    assert!(own.is_same_result(&changed(|m| m.created = "2020-01-01T00:00:00Z".into())));
    assert!(own.is_same_result(&changed(|m| m.labels.step = "else".into())));
    assert!(own.is_same_result(&changed(|m| (m.seconds, m.computed_rows) = (9.0, 3))));
    assert!(!own.is_same_result(&changed(|m| m.ports[0].rows += 1)));
    assert!(!own.is_same_result(&changed(|m| m.ports[0].digest = Digest::of(b""))));
    assert!(!own.is_same_result(&changed(|m| m.retry_rows = 1)));
    assert!(!own.is_same_result(&changed(|m| m.reads.push(Digest::of(b"")))));
    // A manifest with an unknown field is not one that this program wrote.
    let mut value = serde_json::to_value(&manifest).unwrap();
    value["more"] = json!(1);
    let bytes = seal(&value).unwrap();
    let strange = StoredManifest::parse(bytes).unwrap();
    assert_eq!(strange.manifest, own.manifest);
    assert!(!own.is_same_result(&strange) && !strange.is_same_result(&own));
}

/// A signature by a key that was thrown away, of the bytes `message`.
const RSA: &str = include_str!("rsa.sig");

#[test]
fn each_refusal_has_its_own_words() {
    let folder = tempfile::tempdir().unwrap();
    let ((ada, public), (bob, _)) = (key(folder.path(), "ed25519"), key(folder.path(), "ecdsa"));
    let accept = |options: &str, file: &SignatureFile| {
        let list = AllowedSigners::parse(&format!("# team\n\"a@b\" {options} {public}\r\n"));
        list.unwrap().accept(file, b"message").map_err(|error| error.to_string())
    };
    let own = signatures(&[&ada], b"message");
    for options in [
        "",
        "namespaces=\"galeras-manifest\"",
        "namespaces=\"git,galeras-*\"",
        "valid-after=\"20200101Z\",valid-before=\"20990101000000Z\"",
    ] {
        assert_eq!(accept(options, &own), Ok("a@b".into()), "{options}");
    }
    let late = "valid-before=\"20200101Z\"";
    let two = signatures(&[&bob], b"message").and(signatures(&[&ada], b"another"));
    let git = SignatureFile::parse(include_str!("git.sig"));
    for (options, file, words) in [
        ("", &SignatureFile::default(), "is not signed"),
        ("", &SignatureFile::parse("<html>"), "cannot be read"),
        ("", &SignatureFile::parse(&own.render()[..200]), "cannot be read"),
        ("", &SignatureFile::parse(&own.render().replace("U1NI", "U1NJ")), "cannot be read"),
        ("", &SignatureFile::parse(&own.render().repeat(100)[1..]), "cannot be read"),
        ("", &signatures(&[&bob], b"message"), "which is not the key of an allowed signer"),
        ("", &SignatureFile::parse(RSA), "which is not the key of an allowed signer"),
        ("", &two, "the signature is of something else"),
        ("", &git, "was not made for `galeras-manifest`"),
        ("namespaces=\"git\"", &own, "is signed by a@b, who may not sign for `galeras-manifest`"),
        (late, &own, "whose key is not valid at this time"),
        ("valid-after=\"20990101Z\"", &own, "whose key is not valid at this time"),
    ] {
        let refusal = accept(options, file).unwrap_err();
        assert!(refusal.contains(words), "{words}: {refusal}");
    }
    // A good signature counts next to others, and one key may be on two lines.
    let good = signatures(&[&bob], b"message").and(own.clone());
    assert_eq!(accept("", &good), Ok("a@b".into()));
    let list = AllowedSigners::parse(&format!("old {late} {public}\nnew {public}")).unwrap();
    assert_eq!(list.accept(&own, b"message").unwrap(), "new");
    assert!(SignatureFile::parse(&own.render().repeat(100)).damaged);
}

#[test]
fn a_list_that_is_not_understood_is_refused_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let (_, public) = key(folder.path(), "ed25519");
    for (line, words) in [
        (format!("a@b verify-required {public}"), "line 3: bad options"),
        (format!("a@b namespaces=git {public}"), "line 3: bad options"),
        (format!("a@b valid-after=\"2026-01-01Z\" {public}"), "line 3: bad options"),
        ("a@b".into(), "line 3: "),
        ("a@b ssh-ed25519 AAAA".into(), "line 3: invalid key"),
        (public.clone(), "line 3: "),
        (format!("a\u{1b}@b {public}"), "line 3: a control character"),
        ("# nobody".into(), "it names no signer"),
    ] {
        let error = AllowedSigners::parse(&format!("# team\n\n{line}")).unwrap_err().to_string();
        assert!(error.contains(words), "{line}: {error}");
        assert!(!error.contains("AAAA"), "{error}");
    }
}

#[test]
fn no_flipped_bit_of_a_signature_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let (ada, _) = key(folder.path(), "ed25519");
    let text = ada.sign(b"message").unwrap().render();
    let lines = text.find('\n').unwrap() + 1..text.rfind("\n-----END").unwrap();
    for at in lines.step_by(9) {
        let mut damaged = text.clone().into_bytes();
        damaged[at] ^= 1 << (at % 6);
        let damaged = SignatureFile::parse(&String::from_utf8_lossy(&damaged));
        let checked = damaged.signatures.first().map(|signature| signature.check(b"message"));
        assert!(matches!(checked, None | Some(Err(SignatureError::Refused(_)))), "byte {at}");
    }
}

#[test]
fn files_that_cannot_sign_are_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key-ed25519");
    let (ada, _) = key(folder.path(), "ed25519");
    // The private half is found next to the public one.
    assert!(SigningKey::open(&file.with_extension("pub")).is_ok());
    assert!(!format!("{ada:?}").contains("PRIVATE"));
    let refused = |name: &Path| SigningKey::open(name).unwrap_err();
    fs::copy(file.with_extension("pub"), folder.path().join("alone.pub")).unwrap();
    assert!(matches!(refused(&folder.path().join("alone.pub")), SigningKeyError::Public));
    let mode = |mode| std::os::unix::fs::PermissionsExt::from_mode(mode);
    fs::set_permissions(&file, mode(0o644)).unwrap();
    assert!(matches!(refused(&file), SigningKeyError::Permissions));
    fs::set_permissions(&file, mode(0o600)).unwrap();
    fs::write(folder.path().join("text"), "{}").unwrap();
    assert!(matches!(refused(&folder.path().join("text")), SigningKeyError::NotAKey));
    assert!(matches!(refused(&folder.path().join("none")), SigningKeyError::Io(_)));
    let whole = fs::read(&file).unwrap();
    for cut in [0, 40, 100, whole.len() / 2, whole.len() - 30] {
        let file = folder.path().join("cut");
        fs::write(&file, &whole[..cut]).unwrap();
        fs::set_permissions(&file, mode(0o600)).unwrap();
        assert!(SigningKey::open(&file).is_err(), "{cut}");
    }
}
