//! Updates, killed runs and two processes at once.

use std::fs;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use gix::ObjectId;

use super::{Net, Source, git, local};
use crate::{Fetcher, GitErrorKind};
use galeras_test_servers::http_git::{GitFault, HttpGit};

#[test]
fn update_brings_only_what_is_new() {
    let (source, net) = (Source::new(), Net::new());
    for round in 10..40 {
        source.commit(round);
    }
    let server = HttpGit::start(source.root.path());
    let url = server.url("repo/.git");
    let folder = tempfile::tempdir().unwrap();
    let mut fetcher = Fetcher::open(&url, folder.path(), &net.net).unwrap();
    let first = fetcher.commits(source.head()).unwrap();
    drop(fetcher);
    let new = source.commit(100);
    server.take_seen();
    let mut fetcher = Fetcher::open(&url, folder.path(), &net.net).unwrap();
    let second = fetcher.commits(new).unwrap();
    assert_eq!(second.objects, 1);
    assert!(second.bytes < first.bytes, "{second:?} {first:?}");
    assert_eq!(local(folder.path()), source.objects("commit"));
    drop(fetcher);
    // Nothing new: the server is not asked at all.
    server.take_seen();
    let mut fetcher = Fetcher::open(&url, folder.path(), &net.net).unwrap();
    assert_eq!(fetcher.commits(new).unwrap().bytes, 0);
    assert_eq!(server.count(""), 0);
}

#[test]
fn force_pushed_branch() {
    let (source, net) = (Source::new(), Net::new());
    let server = HttpGit::start(source.root.path());
    let folder = tempfile::tempdir().unwrap();
    let url = server.url("repo/.git");
    let mut fetcher = Fetcher::open(&url, folder.path(), &net.net).unwrap();
    let old = source.head();
    fetcher.commits(old).unwrap();
    source.git(&["reset", "-q", "--hard", "HEAD~3"]);
    let new = source.commit(77);
    // The server forgets the old commits.
    source.git(&["reflog", "expire", "--expire=now", "--all"]);
    source.git(&["gc", "-q", "--prune=now"]);
    fetcher.commits(new).unwrap();
    assert!(fetcher.contains(&new) && fetcher.contains(&old));
    // Back to a commit that is there.
    source.git(&["reset", "-q", "--hard", "HEAD~1"]);
    assert_eq!(fetcher.commits(source.head()).unwrap().objects, 0);
    assert_eq!(fetcher.commits(source.head()).unwrap().bytes, 0);
    let error = fetcher.commits(ObjectId::from_hex(&[b'1'; 40]).unwrap()).unwrap_err();
    assert_eq!(error.kind, GitErrorKind::NotFound, "{error}");
}

#[test]
fn killed_run_goes_on() {
    let (source, net) = (Source::new(), Net::new());
    let server = HttpGit::start(source.root.path());
    let url = server.url("repo/.git");
    let folder = tempfile::tempdir().unwrap();
    let blobs: Vec<ObjectId> = source.objects("blob").into_iter().collect();
    {
        let mut fetcher = Fetcher::open(&url, folder.path(), &net.net).unwrap();
        fetcher.commits(source.head()).unwrap();
        fetcher.batch = 5;
        fetcher.files(source.head(), &blobs[..5]).unwrap();
        server.fail("git-upload-pack", 99, GitFault::Cut(200));
        let error = fetcher.files(source.head(), &blobs).unwrap_err();
        assert_eq!(error.kind, GitErrorKind::Transient, "{error}");
    }
    // Files that a killed process may leave.
    let packs = folder.path().join("objects/pack");
    let orphan = packs.join(format!("pack-{}.pack", "1".repeat(40)));
    fs::write(&orphan, b"PACK").unwrap();
    fs::write(packs.join("tmp_pack_AbCdEf"), b"half").unwrap();
    fs::write(packs.join(format!("pack-{}.keep", "1".repeat(40))), b"").unwrap();
    fs::write(folder.path().join("galeras-git/.tmpXyZ"), b"half").unwrap();
    fs::remove_file(folder.path().join("config")).unwrap();

    server.heal();
    let mut fetcher = Fetcher::open(&url, folder.path(), &net.net).unwrap();
    assert!(!orphan.exists());
    assert!(blobs[..5].iter().all(|id| fetcher.contains(id)));
    assert!(!blobs[5..].iter().any(|id| fetcher.contains(id)));
    let received = fetcher.files(source.head(), &blobs).unwrap();
    assert_eq!(received.objects, blobs.len() as u64 - 5);
    drop(fetcher);
    git(folder.path(), &["cat-file", "-p", &blobs[7].to_string()]);
    gix::open(folder.path()).unwrap();
    let names = fs::read_dir(&packs).unwrap().map(|entry| entry.unwrap().path());
    assert!(names.into_iter().all(|name| {
        let extension = name.extension().and_then(|extension| extension.to_str());
        matches!(extension, Some("pack" | "idx" | "promisor"))
    }));
}

#[test]
fn a_removed_pack_is_fetched_again() {
    let (source, net) = (Source::new(), Net::new());
    let server = HttpGit::start(source.root.path());
    let folder = tempfile::tempdir().unwrap();
    let url = server.url("repo/.git");
    Fetcher::open(&url, folder.path(), &net.net).unwrap().commits(source.head()).unwrap();
    for entry in fs::read_dir(folder.path().join("objects/pack")).unwrap() {
        let file = entry.unwrap().path();
        if file.extension().is_some_and(|extension| extension == "pack") {
            fs::remove_file(file).unwrap();
        }
    }
    let mut fetcher = Fetcher::open(&url, folder.path(), &net.net).unwrap();
    fetcher.commits(source.head()).unwrap();
    assert_eq!(local(folder.path()), source.objects("commit"));
}

#[test]
fn two_fetchers_take_turns() {
    let (source, net) = (Source::new(), Net::new());
    let server = HttpGit::start(source.root.path());
    let folder = tempfile::tempdir().unwrap();
    let url = server.url("repo/.git");
    let mut first = Fetcher::open(&url, folder.path(), &net.net).unwrap();
    std::thread::scope(|scope| {
        let second = scope.spawn(|| {
            let mut second = Fetcher::open(&url, folder.path(), &net.net).unwrap();
            second.commits(source.head()).unwrap()
        });
        std::thread::sleep(Duration::from_millis(300));
        assert!(!second.is_finished());
        first.commits(source.head()).unwrap();
        drop(first);
        assert_eq!(second.join().unwrap().bytes, 0);
    });
    assert_eq!(net.waits(), 1);
    // The wait for the lock can be interrupted.
    let _first = Fetcher::open(&url, folder.path(), &net.net).unwrap();
    std::thread::scope(|scope| {
        let second = scope.spawn(|| Fetcher::open(&url, folder.path(), &net.net).map(|_| ()));
        std::thread::sleep(Duration::from_millis(100));
        net.net.interrupt.store(true, Ordering::Relaxed);
        let start = Instant::now();
        assert_eq!(second.join().unwrap().unwrap_err().kind, GitErrorKind::Interrupted);
        assert!(start.elapsed() < Duration::from_secs(1));
    });
}
