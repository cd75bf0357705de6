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

    store.forget(&key).await.unwrap();
    store.forget(&key).await.unwrap();
    assert_eq!(store.manifest(&key).await.unwrap(), None);
}

#[tokio::test]
async fn objects_round_trip_in_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    round_trips(&open(&folder.path().join("cache")).await).await;
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
async fn a_folder_may_have_any_name_and_be_a_link() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a b", "per%20cent", "ünï#?cöde", "x/y/../z"] {
        round_trips(&open(&folder.path().join(name)).await).await;
    }
    assert!(folder.path().join("x/z/blobs").is_dir());
    #[cfg(unix)]
    {
        fs::create_dir(folder.path().join("real")).unwrap();
        std::os::unix::fs::symlink("real", folder.path().join("link")).unwrap();
        round_trips(&open(&folder.path().join("link")).await).await;
        assert!(folder.path().join("real/blobs").is_dir());
    }
}

#[tokio::test]
async fn a_store_is_opened_by_a_file_url_too() {
    let folder = tempfile::tempdir().unwrap();
    let url = url::Url::from_file_path(folder.path().join("c d")).unwrap();
    let store = Store::open(url.as_str()).await.unwrap();
    let manifest = put_result(&store, 1, "").await;
    assert_eq!(store.url().as_str(), "file:///");
    let blob = store.local_blob(&manifest.ports[0].blob).unwrap();
    assert!(blob.is_file());
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
async fn other_locations_are_refused_without_showing_secrets() {
    for location in ["", "az://bucket", "file://host/x", "http://x/y"] {
        let error = Store::open(location).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unsupported, "{error}");
    }
    let error = Store::open("s3://me:geheim@bucket/x").await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("geheim"), "{error}");
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
        let (digest, bytes) = match new {
            false => writer.commit(&store).await.unwrap(),
            true => writer.commit_new(&store).await.unwrap(),
        };
        assert_eq!(bytes, 20_000_003);
        let state = store.blob_state(&digest, bytes, VerifyLevel::Hashed).await.unwrap();
        assert_eq!(state, BlobState::Sound);
    }
}

#[tokio::test]
async fn a_dropped_writer_leaves_nothing_and_a_commit_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
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
async fn the_same_content_is_stored_once_and_heals_damage() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let first = put_table(&store, &batch(1, 5)).await;
    let path = store.local_blob(&first.blob).unwrap();
    let mut damaged = fs::read(&path).unwrap();
    damaged[10] ^= 1;
    fs::write(&path, damaged).unwrap();
    let second = put_table(&store, &batch(1, 5)).await;
    assert_eq!(first, second);
    assert_eq!(files(folder.path()).len(), 1);
    assert_eq!(Digest::of(&fs::read(&path).unwrap()), first.blob);
}

#[tokio::test]
async fn the_first_write_clears_what_dead_processes_left() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("tmp")).unwrap();
    fs::write(folder.path().join("tmp/0123456789abcdef"), b"half").unwrap();
    let alive = open(folder.path()).await.blob_writer().unwrap();
    fs::write(folder.path().join("tmp/0123456789abcdee"), b"half").unwrap();
    let store = open(folder.path()).await;
    assert_eq!(files(folder.path()).len(), 2);
    store.put_check_result(&Digest::of(b""), &json!(1), vec![]).await.unwrap();
    assert_eq!(files(folder.path()).len(), 2, "the living one's and the check");
    drop(alive);
}

#[tokio::test]
async fn what_is_damaged_or_of_another_format_is_a_miss() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let manifest = put_result(&store, 1, "").await;
    let other = put_result(&store, 2, "").await;
    let key = manifest.key;
    let path = folder.path().join(format!("actions/{}/{key}.json", key.shard()));
    let text = fs::read_to_string(&path).unwrap();
    let as_other = fs::read_to_string(folder.path().join(format!(
        "actions/{}/{}.json",
        other.key.shard(),
        other.key
    )));
    for damaged in [
        String::new(),
        text[..text.len() / 2].to_string(),
        text.replacen("\"format\": 4", "\"format\": 99", 1),
        as_other.unwrap(),
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
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
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
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let mut run = RunRecord::new("flow", "flow.yaml");
    store.put_run(&run).await.unwrap();
    assert_eq!(store.recent_runs(1).await.unwrap()[0].id, run.id);
    run.id = "../../evil".into();
    assert!(store.put_run(&run).await.is_err());
}

#[tokio::test]
async fn a_store_that_cannot_be_written_says_so() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let store = open(&folder.path().join("file/cache")).await;
    assert_eq!(store.manifest(&Digest::of(b"")).await.unwrap(), None);
    let error = store.blob_writer().unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Io);
    assert!(error.to_string().contains("file/cache: "), "{error}");
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_read_only_store_can_be_read_and_says_that_it_cannot_be_written() {
    // Nobody can make folders in /sys, not even root.
    let store = Store::open("/sys/galeras").await.unwrap();
    assert_eq!(store.manifest(&Digest::of(b"")).await.unwrap(), None);
    let error = store.put_check_result(&Digest::of(b""), &json!(1), vec![]).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::ReadOnly, "{error}");
    assert!(error.help().is_some());
    assert!(!store.lock("x", || {}).await.unwrap().is_held());
    assert!(!store.shared_lock().await.unwrap().is_held());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_can_run_in_a_task_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    let task = async move {
        let manifest = put_result(&store, 1, "").await;
        store.unsound_blobs(&manifest, VerifyLevel::Usual).await.unwrap();
        store.memo_parts(&manifest.preimage.recipe()).await.unwrap();
        store.recent_runs(3).await.unwrap();
        store.usage().await.unwrap();
        let guard = (store.lock("x", || {}).await, store.shared_lock().await);
        drop(guard);
        let findings = store.verify(&|_| {}).await.unwrap();
        store.repair(&findings).await.unwrap();
        cleaned(&store, GcPolicy::default()).await;
        store.forget(&manifest.key).await.unwrap();
    };
    tokio::spawn(task).await.unwrap();
}

#[tokio::test]
async fn a_manifest_that_cannot_be_so_is_not_offered() {
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
