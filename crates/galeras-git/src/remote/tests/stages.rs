//! Partial and full clones over every transport.

use std::collections::BTreeSet;

use gix::ObjectId;

use super::ssh::ssh;
use super::{Daemon, Net, Source, TestServer, git, local};
use crate::Fetcher;
use galeras_test_servers::http_git::Seen;

fn union(sets: &[&BTreeSet<ObjectId>]) -> BTreeSet<ObjectId> {
    sets.iter().flat_map(|set| set.iter().copied()).collect()
}

/// Commits, then trees, then some files: after each stage, exactly those are there.
fn partial(url: &str, source: &Source, net: &Net) {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("clone");
    let head = source.head();
    let mut fetcher = Fetcher::open(url, &dir, &net.net).unwrap();
    let received = fetcher.commits(head).unwrap();
    let commits = source.objects("commit");
    assert_eq!(local(&dir), commits);
    assert_eq!(received.objects, commits.len() as u64);
    assert!(received.bytes > 0);

    fetcher.trees(head, &source.root_trees()).unwrap();
    let trees = source.objects("tree");
    assert_eq!(local(&dir), union(&[&commits, &trees]));

    let blobs: Vec<ObjectId> = source.objects("blob").into_iter().collect();
    let some: BTreeSet<ObjectId> = blobs.iter().copied().take(4).collect();
    let wanted: Vec<ObjectId> = some.iter().chain(&some).copied().collect();
    let received = fetcher.files(head, &wanted).unwrap();
    assert_eq!(received.objects, 4);
    assert_eq!(local(&dir), union(&[&commits, &trees, &some]));
    // Nothing is asked for twice.
    let again = fetcher.files(head, &wanted).unwrap();
    assert_eq!((again.bytes, again.objects), (0, 0));
    assert_eq!(fetcher.commits(head).unwrap().bytes, 0);

    fetcher.batch = 3;
    fetcher.files(head, &blobs).unwrap();
    let all: BTreeSet<ObjectId> = blobs.iter().copied().collect();
    assert_eq!(local(&dir), union(&[&commits, &trees, &all]));
    drop(fetcher);

    let repo = gix::open(&dir).unwrap();
    let head = repo.find_commit(source.head()).unwrap();
    assert_eq!(head.ancestors().all().unwrap().count(), commits.len());
    git(&dir, &["fsck", "--no-dangling"]);
    let reports = net.reports.lock().unwrap();
    for what in ["commits", "trees", "files"] {
        assert!(reports.iter().any(|report| report.what == what && report.bytes > 0), "{what}");
    }
}

/// A server that does not send parts sends all, when commits or when trees are requested.
fn full(url: &str, source: &Source, net: &Net) {
    let folder = tempfile::tempdir().unwrap();
    let mut fetcher = Fetcher::open(url, folder.path(), &net.net).unwrap();
    let (head, trees) = (source.head(), source.root_trees());
    fetcher.commits(head).unwrap();
    fetcher.trees(head, &trees).unwrap();
    let all = || ["commit", "tree", "blob"].map(|kind| source.objects(kind));
    assert_eq!(local(folder.path()), union(&all().each_ref()));
    let blobs: Vec<ObjectId> = source.objects("blob").into_iter().collect();
    assert_eq!(fetcher.files(head, &blobs).unwrap().bytes, 0);
    let commit = source.commit(100 + trees.len());
    fetcher.commits(commit).unwrap();
    fetcher.trees(commit, &source.root_trees()).unwrap();
    assert_eq!(local(folder.path()), union(&all().each_ref()));
    git(folder.path(), &["fsck", "--no-dangling"]);
    assert_eq!(net.warnings(), [""; 0]);
}

#[test]
fn partial_over_http() {
    let served = TestServer::new();
    partial(&served.url(), &served.source, &served.net);
    let seen = served.server.take_seen();
    let agent = |seen: &Seen| seen.header("user-agent").unwrap().starts_with("git/");
    assert!(seen.iter().all(agent));
    // A handshake and a request for each stage or batch that had something to ask for.
    let posts = seen.iter().filter(|seen| seen.method == "POST").count();
    assert_eq!((seen.len(), posts), (2 * posts, 3 + 4));
}

#[test]
fn partial_over_git() {
    let (source, net) = (Source::new(), Net::new());
    let daemon = Daemon::start(source.root.path());
    partial(&daemon.url("repo"), &source, &net);
}

#[test]
fn partial_over_ssh() {
    let (source, mut net) = (Source::new(), Net::new());
    net.set("GIT_SSH_COMMAND", ssh(&source, ""));
    partial(&format!("ssh://example.test{}", source.repo().display()), &source, &net);
    let short = format!("example.test:{}", source.repo().display());
    let head = crate::remote_head(&short, None, &net.net).unwrap();
    assert_eq!(head.commit, source.head());
}

#[test]
fn full_over_ssh_in_the_oldest_protocol() {
    let (source, mut net) = (Source::new(), Net::new());
    net.set("GIT_SSH_COMMAND", ssh(&source, "unset GIT_PROTOCOL"));
    full(&format!("ssh://example.test{}", source.repo().display()), &source, &net);
}

#[test]
fn full_over_http() {
    let setting = |name: &'static str| {
        let served = TestServer::new();
        served.source.git(&["config", name, "false"]);
        served
    };
    let old = TestServer::new();
    old.server.use_old_protocol();
    let without_filters = setting("uploadpack.allowFilter");
    for served in [&old, &without_filters, &setting("uploadpackfilter.tree.allow")] {
        full(&served.url(), &served.source, &served.net);
    }
    let daemon = Daemon::start(without_filters.source.root.path());
    full(&daemon.url("repo"), &without_filters.source, &without_filters.net);
}
