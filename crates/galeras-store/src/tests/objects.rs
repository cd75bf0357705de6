//! Storing and finding objects.

use std::fs;
use std::io::Write;

use object_store::ObjectStoreExt;

use super::*;

async fn round_trips(store: &Store) {
    let manifest = put_result(store, 1, "2026-01-01T00:00:00.000Z").await;
    let key = manifest.key;
    assert_eq!(store.manifest(&key).await.unwrap().as_ref(), Some(&manifest));
    assert_eq!(store.unsound_blobs(&manifest, VerifyLevel::Usual).await.unwrap(), []);
    assert_eq!(store.manifest(&Digest::of(b"other")).await.unwrap(), None);
    assert_eq!(store.list().await.unwrap(), std::slice::from_ref(&manifest));

    let port = manifest.port("out").unwrap();
    let found = store.object_store().head(&store.blob_path(&port.blob)).await.unwrap();
    assert_eq!(found.size, port.bytes);

    let recipe = manifest.preimage.recipe();
    assert_eq!(store.memo_parts(&recipe).await.unwrap().sound, []);
    let mut parts = vec![];
    for seed in 10..14 {
        parts.push(put_part(store, &recipe, seed, "2026-01-01T00:00:00.000Z").await);
    }
    parts.sort_by_key(|part| part.blob);
    assert_eq!(store.memo_parts(&recipe).await.unwrap().sound, parts);

    let check = Digest::of(b"unique: [id]");
    assert_eq!(store.check_result(&check).await, None);
    store.put_check_result(&check, &json!({"failed": 3}), vec![]).await.unwrap();
    assert_eq!(store.check_result(&check).await, Some(json!({"failed": 3})));

    put_run(store, "2026-01-02T00:00:00.000Z", None, &[&manifest]).await;
    let last = put_run(store, "2026-01-03T00:00:00.000Z", Some(RunStatus::Ok), &[]).await;
    let runs = store.recent_runs(1).await.unwrap();
    assert_eq!((runs.len(), &runs[0].id), (1, &last.id));
    assert_eq!(store.recent_runs(9).await.unwrap()[1].steps[0].key, Some(key));

    let usage = store.usage().await.unwrap();
    assert_eq!((usage.manifests, usage.blobs, usage.parts, usage.runs), (1, 5, 4, 2));
    assert_eq!(store.verify(&|_| {}).await.unwrap(), []);

    drop((store.lock("x", || {}).await, store.shared_lock().await));
    store.repair(&[]).await.unwrap();
    cleaned(store, GcPolicy::default()).await;
    store.forget(&key).await.unwrap();
    store.forget(&key).await.unwrap();
    assert_eq!(store.manifest(&key).await.unwrap(), None);
}

#[tokio::test]
async fn objects_round_trip_in_memory() {
    let store = Store::open("memory://bucket/some/prefix").await.unwrap();
    assert_eq!(store.url().as_str(), "memory://bucket");
    round_trips(&store).await;
    let blob = Digest::of(b"x");
    assert_eq!(store.local_blob(&blob), None);
    assert!(store.blob_path(&blob).as_ref().starts_with("some/prefix/blobs/"));
    round_trips(&Store::open("memory://").await.unwrap()).await;
}

#[tokio::test]
async fn objects_round_trip_in_a_folder_with_any_name_a_link_and_a_url() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["cache", "a b", "per%20cent", "ünï#?cöde", "x/y/../z"] {
        let store = open(&folder.path().join(name)).await;
        assert_eq!(store.url().as_str(), "file:///");
        round_trips(&store).await;
    }
    assert!(folder.path().join("x/z/blobs").is_dir());
    fs::create_dir(folder.path().join("real")).unwrap();
    std::os::unix::fs::symlink("real", folder.path().join("link")).unwrap();
    let linked = open(&folder.path().join("link")).await;
    // All these operations can run in a separate task.
    tokio::spawn(async move { round_trips(&linked).await }).await.unwrap();
    assert!(folder.path().join("real/blobs").is_dir());
    let url = url::Url::from_file_path(folder.path().join("c d")).unwrap();
    round_trips(&Store::open(url.as_str()).await.unwrap()).await;
    assert!(folder.path().join("c d/blobs").is_dir());
}

#[tokio::test]
async fn opening_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("cache")).await;
    assert_eq!(store.manifest(&Digest::of(b"")).await.unwrap(), None);
    assert_eq!(store.list().await.unwrap(), []);
    assert!(store.recent_runs(5).await.unwrap().is_empty());
    assert_eq!(store.usage().await.unwrap(), StoreUsage::default());
    assert_eq!(store.verify(&|_| {}).await.unwrap(), []);
    assert_eq!(cleaned(&store, GcPolicy::default()).await, GcReport::default());
    assert!(!folder.path().join("cache").exists());
}

#[tokio::test]
async fn a_missing_feature_is_reported_and_no_secret() {
    let error = Store::open("s3://me:hunter2@bucket/x").await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    for (location, feature, built) in [
        ("s3://bucket/x", "s3", cfg!(feature = "s3")),
        ("gs://bucket/x", "gcs", cfg!(feature = "gcs")),
    ] {
        let parsed = StoreLocation::parse(location);
        let error = parsed.err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(error.contains(&format!("--features {feature}")), !built, "{error}");
    }
}

#[tokio::test]
async fn a_large_blob_reaches_a_bucket_in_parts() {
    let store = Store::open("memory://b/p").await.unwrap();
    for new in [false, true] {
        let content: Vec<u8> = (0..20_000_003_u32).map(|at| (at % 251) as u8).collect();
        let mut writer = store.blob_writer().unwrap();
        writer.write_all(&content).unwrap();
        let (digest, bytes) = writer.finish(&store, new).await.unwrap();
        assert_eq!(bytes, 20_000_003);
        let state = store.blob_state(&digest, bytes, VerifyLevel::Hashed).await.unwrap();
        assert_eq!(state, BlobState::Sound);
    }
}

#[tokio::test]
async fn a_dropped_writer_leaves_nothing_and_a_commit_is_whole() {
    let (folder, store) = new_store().await;
    let mut writer = store.blob_writer().unwrap();
    writer.write_all(b"half").unwrap();
    assert_eq!(files(folder.path()).len(), 1);
    drop(writer);
    assert!(files(folder.path()).is_empty());

    let mut writer = store.blob_writer().unwrap();
    writer.write_all(b"who").unwrap();
    writer.write_all(b"le").unwrap();
    assert_eq!(writer.bytes(), 5);
    let (digest, bytes) = writer.commit(&store).await.unwrap();
    assert_eq!((digest, bytes), (Digest::of(b"whole"), 5));
    assert_eq!(fs::read(store.local_blob(&digest).unwrap()).unwrap(), b"whole");
    assert_eq!(files(folder.path()).len(), 1);
}

#[tokio::test]
async fn the_same_content_is_stored_once_and_repairs_damage() {
    let (folder, store) = new_store().await;
    let first = put_table(&store, &batch(1, 5)).await;
    let path = store.local_blob(&first.blob).unwrap();
    flip(&path, 10);
    let second = put_table(&store, &batch(1, 5)).await;
    assert_eq!(first, second);
    assert_eq!(files(folder.path()).len(), 1);
    assert_eq!(Digest::of(&fs::read(&path).unwrap()), first.blob);
}

#[tokio::test]
async fn damaged_objects_and_other_formats_are_a_miss() {
    let (folder, store) = new_store().await;
    let key = put_result(&store, 1, "").await.key;
    let other = put_result(&store, 2, "").await;
    let path = folder.path().join(manifest_name(&key));
    let text = fs::read_to_string(&path).unwrap();
    let as_other = fs::read_to_string(folder.path().join(manifest_name(&other.key))).unwrap();
    for damaged in [
        String::new(),
        text[..text.len() / 2].to_string(),
        text.replacen("\"format\": 4", "\"format\": 99", 1),
        as_other,
    ] {
        fs::write(&path, damaged).unwrap();
        assert_eq!(store.manifest(&key).await.unwrap(), None);
    }
    fs::write(&path, [0xff, 0, 0xfe]).unwrap();
    assert_eq!(store.manifest(&key).await.unwrap(), None);
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(store.manifest(&key).await.unwrap(), None);
    assert_eq!(store.list().await.unwrap(), [other]);

    let run = put_run(&store, "2026-01-02T00:00:00.000Z", None, &[]).await;
    fs::write(folder.path().join("runs/99991231T000000.000Z-00000000.json"), "{").unwrap();
    assert_eq!(store.recent_runs(1).await.unwrap()[0].id, run.id);
}

#[tokio::test]
async fn missing_and_resized_blobs_are_reported_and_their_parts_left_out() {
    let (_folder, store) = new_store().await;
    let manifest = put_result(&store, 1, "").await;
    let recipe = manifest.preimage.recipe();
    let part = put_part(&store, &recipe, 2, "").await;
    fs::write(store.local_blob(&manifest.ports[0].blob).unwrap(), b"short").unwrap();
    let blob = manifest.ports[0].blob;
    let unsound = async || store.unsound_blobs(&manifest, VerifyLevel::Usual).await.unwrap();
    assert_eq!(unsound().await, [(blob, BlobState::Damaged)]);
    fs::remove_file(store.local_blob(&blob).unwrap()).unwrap();
    assert_eq!(unsound().await, [(blob, BlobState::Missing)]);
    assert_eq!(store.memo_parts(&recipe).await.unwrap().sound, std::slice::from_ref(&part));
    fs::remove_file(store.local_blob(&part.blob).unwrap()).unwrap();
    assert_eq!(store.memo_parts(&recipe).await.unwrap().sound, []);
}

#[tokio::test]
async fn run_ids_cannot_leave_the_store() {
    let (_folder, store) = new_store().await;
    let mut run = RunRecord::new("flow", "flow.yaml");
    store.put_run(&run).await.unwrap();
    assert_eq!(store.recent_runs(1).await.unwrap()[0].id, run.id);
    run.id = "../../evil".into();
    assert!(store.put_run(&run).await.is_err());
}

#[tokio::test]
async fn a_store_that_cannot_be_written_reports_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let store = open(&folder.path().join("file/cache")).await;
    assert_eq!(store.manifest(&Digest::of(b"")).await.unwrap(), None);
    let error = store.blob_writer().unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Io);
    assert!(error.to_string().contains("file/cache: "), "{error}");
}

#[tokio::test]
async fn a_read_only_store_can_be_read_and_reports_that_it_cannot_be_written() {
    // Not even root can create folders in /sys.
    let store = Store::open("/sys/galeras").await.unwrap();
    assert_eq!(store.manifest(&Digest::of(b"")).await.unwrap(), None);
    let error = store.put_check_result(&Digest::of(b""), &json!(1), vec![]).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::ReadOnly, "{error}");
    assert!(error.help().is_some());
    assert!(store.lock("x", || {}).await.unwrap().held.is_none());
    assert!(store.shared_lock().await.unwrap().held.is_none());
}

#[tokio::test]
async fn an_impossible_manifest_is_not_offered() {
    let store = Store::open("memory://").await.unwrap();
    let manifest = put_result(&store, 1, "2026-11-01T12:00:00Z").await;
    assert!(matches!(store.offer(&manifest.key).await.unwrap(), Offer::Manifest(_)));
    type Lie = fn(&mut Manifest);
    let lies: [(Lie, &str); 5] = [
        (|m| m.ports[0].rows = u64::MAX, "a size that no table has"),
        (|m| m.ports[0].bytes = 1 << 60, "a size that no table has"),
        (|m| m.computed_rows = u64::MAX, "a size that no table has"),
        (|m| m.ports[0].rows += 1, "is not that of its columns"),
        (|m| m.ports[0].columns[0].digest = Digest::of(b""), "is not that of its columns"),
    ];
    for (lie, words) in lies {
        let mut other = manifest.clone();
        lie(&mut other);
        store.put_manifest(&other).await.unwrap();
        let Offer::Unusable(cause) = store.offer(&manifest.key).await.unwrap() else {
            panic!("{words}");
        };
        assert!(cause.contains(words), "{cause}");
    }
}
