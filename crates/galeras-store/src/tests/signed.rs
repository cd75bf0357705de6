//! Manifests with signatures: what is kept of them, and what is found to be wrong.

use std::fs;

use galeras_signatures::{SignatureFile, SigningKey};

use super::super::signed::{SIGNATURE_NAMESPACE, SignatureState, StoredManifest};
use super::*;

const ADA: &str = include_str!("../../../crates/galeras-signatures/tests/data/ada");
const BOB: &str = include_str!("../../../crates/galeras-signatures/tests/data/bob");
const WHEN: &str = "2026-11-01T12:00:00Z";

async fn stored(store: &Store, key: &Digest) -> StoredManifest {
    match store.offer(key).await.unwrap() {
        Offer::Manifest(stored) => *stored,
        other => panic!("{other:?}"),
    }
}

fn signatures(keys: &[&str], bytes: &[u8]) -> SignatureFile {
    let sign = |key: &&str| SigningKey::parse(key).unwrap().sign(SIGNATURE_NAMESPACE, bytes);
    SignatureFile::default().and(keys.iter().map(|key| sign(key).unwrap()))
}

#[tokio::test]
async fn only_signatures_of_the_manifest_are_stored_and_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let manifest = put_result(&store, 1, WHEN).await;
    let other = put_result(&store, 2, WHEN).await;
    let (own, other) = (stored(&store, &manifest.key).await, stored(&store, &other.key).await);
    assert_eq!(store.signature_state(&manifest.key).await.unwrap(), SignatureState::Unsigned);
    let given = signatures(&[BOB, ADA], own.bytes()).and(signatures(&[ADA], other.bytes()));
    store.put_signed(&own, given).await.unwrap();
    let SignatureState::Signed(keys) = store.signature_state(&manifest.key).await.unwrap() else {
        panic!("it is signed");
    };
    assert_eq!(keys.len(), 2);
    assert_eq!(store.verify(&|_| {}).await.unwrap(), []);
    let file = folder.path().join(format!(
        "signatures/{}/{}.sig",
        own.manifest().key.shard(),
        manifest.key
    ));
    let before = fs::metadata(&file).unwrap().modified().unwrap();
    let same = store.signatures(&manifest.key).await.unwrap();
    store.put_signed(&own, same).await.unwrap();
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), before);
    // A result that is written anew is not what was signed.
    store.put_manifest(&manifest).await.unwrap();
    assert!(!file.exists());
}

#[tokio::test]
async fn a_signature_of_something_else_is_found_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let manifest = put_result(&store, 1, WHEN).await;
    let own = stored(&store, &manifest.key).await;
    store.put_signed(&own, signatures(&[ADA], own.bytes())).await.unwrap();
    let name = format!("signatures/{}/{}.sig", manifest.key.shard(), manifest.key);
    for text in [signatures(&[ADA], b"else").render(), "<html>".into()] {
        fs::write(folder.path().join(&name), text).unwrap();
        assert_eq!(store.signature_state(&manifest.key).await.unwrap(), SignatureState::Wrong);
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
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let manifest = put_result(&store, 1, WHEN).await;
    let own = stored(&store, &manifest.key).await;
    let sign = || signatures(&[ADA], own.bytes());
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
    // One that says something that this program does not know is not taken for its own.
    let mut value = serde_json::to_value(&manifest).unwrap();
    value["more"] = json!(1);
    let bytes = super::super::sealed::seal(&value).unwrap();
    let strange = StoredManifest::parse(bytes).unwrap();
    assert_eq!(strange.manifest(), own.manifest());
    assert!(!own.is_same_result(&strange) && !strange.is_same_result(&own));
}
