//! The rules of a collection.

use std::fs;
use std::time::{Duration, SystemTime};

use super::*;
use crate::run_record::rfc3339;

const DAY: Duration = Duration::from_secs(86_400);

fn days_ago(days: u32) -> String {
    rfc3339(SystemTime::now() - days * DAY)
}

async fn steps(store: &Store) -> Vec<String> {
    let mut steps: Vec<String> =
        store.list().await.unwrap().into_iter().map(|manifest| manifest.labels.step).collect();
    steps.sort();
    steps
}

#[tokio::test]
async fn without_a_rule_only_objects_without_a_result_are_removed() {
    let (folder, store) = new_store().await;
    let kept = put_result(&store, 1, &days_ago(900)).await;
    let orphan = put_table(&store, &batch(9, 50)).await;
    put_part(&store, &kept.preimage.recipe(), 2, &days_ago(900)).await;
    let waiting = Digest::of(b"interrupted, recently");
    put_part(&store, &waiting, 3, &days_ago(1)).await;
    let dead = Digest::of(b"interrupted, long ago");
    put_part(&store, &dead, 4, &days_ago(30)).await;
    let writing = store.blob_writer().unwrap();
    fs::write(folder.path().join("tmp/.galeras-0.part"), b"half").unwrap();

    let before = files(folder.path());
    let would = cleaned(&store, GcPolicy { dry_run: true, ..GcPolicy::default() }).await;
    assert_eq!(files(folder.path()), before);
    let report = cleaned(&store, GcPolicy::default()).await;
    assert_eq!(report, would);
    assert_eq!((report.manifests, report.blobs, report.temp_files), (0, 2, 1));
    assert!(report.bytes > orphan.bytes);
    assert!(!store.local_blob(&orphan.blob).unwrap().exists());
    assert_eq!(store.memo_parts(&kept.preimage.recipe()).await.unwrap().sound.len(), 1);
    assert_eq!(store.memo_parts(&waiting).await.unwrap().sound.len(), 1);
    assert_eq!(store.memo_parts(&dead).await.unwrap().sound.len(), 0);
    assert_eq!(store.verify(&|_| {}).await.unwrap(), []);
    writing.commit(&store).await.unwrap();
    assert_eq!(cleaned(&store, GcPolicy::default()).await.blobs, 1);
    assert_eq!(cleaned(&store, GcPolicy::default()).await, GcReport::default());
}

#[tokio::test]
async fn the_last_runs_keep_their_results() {
    let (_folder, store) = new_store().await;
    let mut all = vec![];
    for seed in 0..4 {
        all.push(put_result(&store, seed, &days_ago(40)).await);
        put_part(&store, &all.last().unwrap().preimage.recipe(), 20 + seed, &days_ago(1)).await;
    }
    put_run(&store, "2026-01-01T00:00:00.000Z", Some(RunStatus::Ok), &[&all[0], &all[1]]).await;
    put_run(&store, "2026-01-02T00:00:00.000Z", Some(RunStatus::Ok), &[&all[1]]).await;
    put_run(&store, "2026-01-03T00:00:00.000Z", None, &[&all[2]]).await;
    put_run(&store, "2026-01-04T00:00:00.000Z", Some(RunStatus::Failed), &[]).await;

    let policy = GcPolicy { keep_runs: Some(1), ..GcPolicy::default() };
    let report = cleaned(&store, policy).await;
    assert_eq!(steps(&store).await, ["step1", "step2"]);
    // Each result and the part of its recipe.
    assert_eq!((report.manifests, report.blobs), (2, 4));
    assert_eq!(store.memo_parts(&all[0].preimage.recipe()).await.unwrap().sound, []);
    assert_eq!(store.memo_parts(&all[1].preimage.recipe()).await.unwrap().sound.len(), 1);
    assert_eq!(store.recent_runs(9).await.unwrap().len(), 4, "the history stays");
    assert_eq!(store.verify(&|_| {}).await.unwrap(), []);
}

#[tokio::test]
async fn recently_used_results_stay() {
    let (_folder, store) = new_store().await;
    put_result(&store, 1, &days_ago(10)).await;
    put_result(&store, 2, &days_ago(40)).await;
    let reused = put_result(&store, 3, &days_ago(40)).await;
    put_run(&store, &days_ago(2), Some(RunStatus::Ok), &[&reused]).await;
    let policy = GcPolicy { older_than: Some(30 * DAY), ..GcPolicy::default() };
    assert_eq!(cleaned(&store, policy).await.manifests, 1);
    assert_eq!(steps(&store).await, ["step1", "step3"]);
    let policy = GcPolicy { older_than: Some(DAY), keep_runs: Some(1), ..policy };
    assert_eq!(cleaned(&store, policy).await.manifests, 1);
    assert_eq!(steps(&store).await, ["step3"]);
    let policy = GcPolicy { older_than: Some(Duration::ZERO), ..GcPolicy::default() };
    cleaned(&store, policy).await;
    assert_eq!(steps(&store).await, Vec::<String>::new());
    assert_eq!(store.usage().await.unwrap().blobs, 0);
}

#[tokio::test]
async fn a_limit_removes_the_longest_unused_first() {
    let (_folder, store) = new_store().await;
    let mut sizes = vec![];
    for seed in 1..5 {
        let manifest = put_result(&store, seed, &days_ago(10 * seed as u32)).await;
        sizes.push(manifest.ports[0].bytes);
        if seed == 4 {
            put_run(&store, &days_ago(35), Some(RunStatus::Ok), &[&manifest]).await;
        }
    }
    let policy = GcPolicy { max_bytes: Some(u64::MAX), ..GcPolicy::default() };
    assert_eq!(cleaned(&store, policy).await, GcReport::default());
    let policy = GcPolicy { max_bytes: Some(sizes[0] + sizes[1]), ..GcPolicy::default() };
    let report = cleaned(&store, policy).await;
    assert_eq!((report.manifests, report.bytes), (2, sizes[2] + sizes[3]));
    assert_eq!(steps(&store).await, ["step1", "step2"]);
    let newest = store.list().await.unwrap().remove(0);
    put_run(&store, &days_ago(1), Some(RunStatus::Ok), &[&newest]).await;
    let policy = GcPolicy { keep_runs: Some(1), max_bytes: Some(0), ..GcPolicy::default() };
    cleaned(&store, policy).await;
    assert_eq!(steps(&store).await, ["step1"], "the results of the last run are never evicted");
}

#[tokio::test]
async fn damaged_objects_go_and_a_newer_format_stops_the_collection() {
    let (folder, store) = new_store().await;
    put_result(&store, 1, &days_ago(1)).await;
    let damaged = folder.path().join(format!("actions/00/{}.json", Digest::of(b"x")));
    fs::create_dir_all(damaged.parent().unwrap()).unwrap();
    fs::write(&damaged, "{").unwrap();
    assert_eq!(cleaned(&store, GcPolicy::default()).await.manifests, 1);
    let newer = seal(&json!({"format": MANIFEST_VERSION + 1})).unwrap();
    fs::write(&damaged, newer).unwrap();
    let error = store.gc(GcPolicy::default()).await.unwrap_err();
    assert!(error.to_string().contains("newer galeras"), "{error}");
    assert_eq!(steps(&store).await, ["step1"]);
}

#[tokio::test]
async fn recent_blobs_of_a_bucket_stay_for_want_of_locks() {
    let store = Store::open("memory://").await.unwrap();
    put_result(&store, 1, &days_ago(40)).await;
    put_table(&store, &batch(9, 5)).await;
    let policy = GcPolicy { older_than: Some(30 * DAY), ..GcPolicy::default() };
    let report = cleaned(&store, policy).await;
    assert_eq!((report.manifests, report.blobs), (1, 0));
}

#[tokio::test]
async fn a_collection_and_a_repair_are_refused_while_a_run_holds_the_store() {
    let (folder, store) = new_store().await;
    put_table(&store, &batch(9, 5)).await;
    let manifest = put_result(&store, 1, "").await;
    fs::remove_file(store.local_blob(&manifest.ports[0].blob).unwrap()).unwrap();
    let findings = store.verify(&|_| {}).await.unwrap();
    let run = open(folder.path()).await.shared_lock().await.unwrap();
    let refused = [store.gc(GcPolicy::default()).await.err(), store.repair(&findings).await.err()];
    assert_eq!(refused.map(|error| error.unwrap().kind()), [StoreErrorKind::Busy; 2]);
    let dry = cleaned(&store, GcPolicy { dry_run: true, ..GcPolicy::default() }).await;
    assert_eq!(dry.blobs, 1);
    drop(run);
    assert_eq!(cleaned(&store, GcPolicy::default()).await.blobs, 1);
}
