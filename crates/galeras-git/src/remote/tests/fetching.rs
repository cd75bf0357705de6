//! Updates, killed runs and two processes at once.

use std::fs;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use gix::ObjectId;

use super::{TestServer, fails, git, local};
use crate::{Fetcher, GitErrorKind};
use galeras_test_servers::http_git::GitFault;

#[test]
fn update_brings_only_what_is_new() {
    let served = TestServer::new();
    for round in 10..40 {
        served.source.commit(round);
    }
    let first = served.fetcher().commits(served.source.head()).unwrap();
    let new = served.source.commit(100);
    let second = served.fetcher().commits(new).unwrap();
    assert_eq!(second.objects, 1);
    assert!(second.bytes < first.bytes, "{second:?} {first:?}");
    assert_eq!(local(served.folder.path()), served.source.objects("commit"));
    // Nothing new: the server is not asked at all.
    served.server.take_seen();
    assert_eq!(served.fetcher().commits(new).unwrap().bytes, 0);
    assert_eq!(served.server.count(""), 0);
}

#[test]
fn force_pushed_branch() {
    let served = TestServer::new();
    let (source, mut fetcher) = (&served.source, served.fetcher());
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
    let received = fetcher.commits(source.head()).unwrap();
    assert_eq!((received.objects, received.bytes), (0, 0));
    fails(fetcher.commits(ObjectId::from_hex(&[b'1'; 40]).unwrap()), GitErrorKind::NotFound, "");
}

#[test]
fn killed_run_is_continued() {
    let served = TestServer::new();
    let (source, head) = (&served.source, served.source.head());
    let blobs: Vec<ObjectId> = source.objects("blob").into_iter().collect();
    {
        let mut fetcher = served.fetcher();
        fetcher.commits(head).unwrap();
        fetcher.batch = 5;
        fetcher.files(head, &blobs[..5]).unwrap();
        served.server.fail("git-upload-pack", 99, GitFault::Cut(200));
        fails(fetcher.files(head, &blobs), GitErrorKind::Transient, "");
    }
    // Files that a killed process may leave.
    let folder = served.folder.path();
    let packs = folder.join("objects/pack");
    let orphan = packs.join(format!("pack-{}.pack", "1".repeat(40)));
    fs::write(&orphan, b"PACK").unwrap();
    fs::write(packs.join("tmp_pack_AbCdEf"), b"half").unwrap();
    fs::write(packs.join(format!("pack-{}.keep", "1".repeat(40))), b"").unwrap();
    fs::write(folder.join("galeras-git/.tmpXyZ"), b"half").unwrap();
    fs::remove_file(folder.join("config")).unwrap();

    served.server.heal();
    let mut fetcher = served.fetcher();
    assert!(!orphan.exists());
    assert!(blobs[..5].iter().all(|id| fetcher.contains(id)));
    assert!(!blobs[5..].iter().any(|id| fetcher.contains(id)));
    let received = fetcher.files(head, &blobs).unwrap();
    assert_eq!(received.objects, blobs.len() as u64 - 5);
    drop(fetcher);
    git(folder, &["cat-file", "-p", &blobs[7].to_string()]);
    gix::open(folder).unwrap();
    for entry in fs::read_dir(&packs).unwrap() {
        let name = entry.unwrap().path();
        let extension = name.extension().and_then(|extension| extension.to_str());
        assert!(matches!(extension, Some("pack" | "idx" | "promisor")), "{name:?}");
    }
}

/// The packs of a folder that was fetched into.
fn packs(served: &TestServer) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(served.folder.path().join("objects/pack")).unwrap();
    let files = entries.map(|entry| entry.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|extension| extension == "pack")).collect()
}

#[test]
fn a_removed_pack_is_fetched_again() {
    let served = TestServer::new();
    served.fetcher().commits(served.source.head()).unwrap();
    packs(&served).into_iter().for_each(|file| fs::remove_file(file).unwrap());
    served.fetcher().commits(served.source.head()).unwrap();
    assert_eq!(local(served.folder.path()), served.source.objects("commit"));
}

/// Each pack and each index ends in its checksum.
#[test]
fn a_changed_pack_or_index_is_found() {
    let served = TestServer::new();
    served.fetcher().commits(served.source.head()).unwrap();
    let pack = packs(&served).remove(0);
    for file in [pack.clone(), pack.with_extension("idx")] {
        let whole = fs::read(&file).unwrap();
        for at in [0, whole.len() / 2, whole.len() - 30, whole.len() - 1] {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::remove_file(&file).unwrap();
            fs::write(&file, bytes).unwrap();
            let opened = Fetcher::open(&served.url(), served.folder.path(), &served.net.net);
            assert_eq!(opened.err().unwrap().kind, GitErrorKind::Damaged, "{file:?} {at}");
        }
        fs::write(&file, whole).unwrap();
    }
    served.fetcher();
}

#[test]
fn two_fetchers_take_turns() {
    let served = TestServer::new();
    let mut first = served.fetcher();
    let head = served.source.head();
    std::thread::scope(|scope| {
        let second = scope.spawn(|| served.fetcher().commits(head).unwrap());
        std::thread::sleep(Duration::from_millis(300));
        assert!(!second.is_finished());
        first.commits(head).unwrap();
        drop(first);
        assert_eq!(second.join().unwrap().bytes, 0);
    });
    assert_eq!(served.net.waits(), 1);
    // The wait for the lock can be interrupted.
    let _first = served.fetcher();
    let net = &served.net.net;
    std::thread::scope(|scope| {
        let open = || Fetcher::open(&served.url(), served.folder.path(), net).map(|_| ());
        let second = scope.spawn(open);
        std::thread::sleep(Duration::from_millis(100));
        net.interrupt.store(true, Ordering::Relaxed);
        let start = Instant::now();
        assert_eq!(second.join().unwrap().unwrap_err().kind, GitErrorKind::Interrupted);
        assert!(start.elapsed() < Duration::from_secs(1));
    });
}
