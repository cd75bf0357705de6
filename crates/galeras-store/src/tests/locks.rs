//! Locks between tasks and between processes.

use std::cell::Cell;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_excludes_other_tasks() {
    let folder = tempfile::tempdir().unwrap();
    let inside = Arc::new(AtomicUsize::new(0));
    let waits = Arc::new(AtomicUsize::new(0));
    let mut tasks = vec![];
    for _ in 0..4 {
        let store = open(folder.path()).await;
        let (inside, waits) = (Arc::clone(&inside), Arc::clone(&waits));
        tasks.push(tokio::spawn(async move {
            let on_wait = || {
                waits.fetch_add(1, Ordering::SeqCst);
            };
            let _guard = store.lock("recipe", on_wait).await.unwrap();
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
            tokio::time::sleep(Duration::from_millis(20)).await;
            inside.fetch_sub(1, Ordering::SeqCst);
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert!(waits.load(Ordering::SeqCst) <= 3);
}

#[tokio::test]
async fn waiting_for_a_lock_can_be_given_up() {
    let (_folder, store) = new_store().await;
    let guard = store.lock("recipe", || {}).await.unwrap();
    let waiting = store.lock("recipe", || {});
    assert!(tokio::time::timeout(Duration::from_millis(120), waiting).await.is_err());
    drop(guard);
    assert!(store.lock("recipe", || {}).await.unwrap().held.is_some());
}

#[tokio::test]
async fn lock_names_are_apart_and_stay_in_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("cache")).await;
    let _shared = store.shared_lock().await.unwrap();
    let mut guards = vec![];
    for name in ["store", "a", "../evil", "a/b", "", &"x".repeat(500)] {
        guards.push(store.lock(name, || panic!("{name} is free")).await.unwrap());
    }
    assert!(guards.iter().all(|guard| guard.held.is_some()));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Another process that holds the lock file until it is killed.
fn hold(file: &Path, mode: &str) -> Option<Child> {
    use std::io::Read;
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    // The shell itself has the file open, so the lock ends with it.
    let script = r#"exec 9<>"$1" && flock "$2" 9 && echo x && read _"#;
    let mut child = Command::new("sh")
        .args(["-c", script, "sh", file.to_str().unwrap(), mode])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    // Without the `flock` command there is nothing to test.
    child.stdout.as_mut().unwrap().read_exact(&mut [0]).ok()?;
    Some(child)
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[tokio::test]
async fn a_lock_excludes_other_processes_and_ends_with_them() {
    let (folder, store) = new_store().await;
    let Some(child) = hold(&folder.path().join("locks/recipe"), "-x") else { return };
    let waited = Cell::new(0);
    let lock = store.lock("recipe", || waited.set(waited.get() + 1));
    assert!(tokio::time::timeout(Duration::from_millis(150), lock).await.is_err());
    assert_eq!(waited.get(), 1);
    kill(child);
    assert!(store.lock("recipe", || {}).await.unwrap().held.is_some());
}

#[tokio::test]
async fn the_store_is_not_cleaned_while_another_process_runs() {
    let (folder, store) = new_store().await;
    let Some(child) = hold(&folder.path().join("locks/store"), "-s") else { return };
    let _also_runs = store.shared_lock().await.unwrap();
    let error = store.gc(GcPolicy::default()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Busy);
    assert!(error.to_string().contains("is using it"), "{error}");
    kill(child);
}

#[tokio::test]
async fn a_run_waits_while_the_store_is_cleaned() {
    let (folder, store) = new_store().await;
    let alone = store.exclusive_lock().await.unwrap();
    store.gc(GcPolicy::default()).await.expect("the holder itself may clean");
    let other = open(folder.path()).await;
    let run = other.shared_lock();
    assert!(tokio::time::timeout(Duration::from_millis(120), run).await.is_err());
    drop(alone);
    assert!(other.shared_lock().await.unwrap().held.is_some());
}

#[tokio::test]
async fn a_lease_excludes_others_until_it_is_dropped() {
    let store = Store::open("memory://b/p").await.unwrap();
    let free = || panic!("it is free");
    let guard = store.lock("recipe", free).await.unwrap();
    assert!(guard.held.is_some());
    assert!(store.lock("other", free).await.unwrap().held.is_some());
    let waits = Cell::new(0);
    let waiting = store.lock("recipe", || waits.set(waits.get() + 1));
    assert!(tokio::time::timeout(Duration::from_secs(2), waiting).await.is_err());
    assert_eq!(waits.get(), 1);
    drop(guard);
    store.settle().await;
    assert!(store.lock("recipe", free).await.unwrap().held.is_some());
    let alone = store.exclusive_lock().await.unwrap();
    assert!(alone.held.is_some() && store.exclusive_lock().await.unwrap().held.is_some());
}

#[tokio::test]
async fn a_folder_at_the_path_of_a_lock_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["store", "recipe"] {
        std::fs::create_dir_all(folder.path().join("locks").join(name).join("inside")).unwrap();
    }
    let store = open(folder.path()).await;
    assert!(store.lock("recipe", || {}).await.unwrap().held.is_some());
    assert!(store.shared_lock().await.unwrap().held.is_some());
}
