//! Partial and full clones over every transport.

use std::collections::BTreeSet;

use gix::ObjectId;

use super::ssh::ssh;
use super::{Daemon, Net, Source, git, local};
use crate::Fetcher;
use galeras_test_servers::http_git::HttpGit;

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
    let all = ["commit", "tree", "blob"].map(|kind| source.objects(kind));
    assert_eq!(local(folder.path()), union(&[&all[0], &all[1], &all[2]]));
    let blobs: Vec<ObjectId> = all[2].iter().copied().collect();
    assert_eq!(fetcher.files(head, &blobs).unwrap().bytes, 0);
    let commit = source.commit(100 + trees.len());
    fetcher.commits(commit).unwrap();
    fetcher.trees(commit, &source.root_trees()).unwrap();
    let all = ["commit", "tree", "blob"].map(|kind| source.objects(kind));
    assert_eq!(local(folder.path()), union(&[&all[0], &all[1], &all[2]]));
    git(folder.path(), &["fsck", "--no-dangling"]);
    assert_eq!(net.warnings(), [""; 0]);
}

#[test]
fn partial_over_http() {
    let (source, net) = (Source::new(), Net::new());
    let server = HttpGit::start(source.root.path());
    partial(&server.url("repo/.git"), &source, &net);
    let seen = server.take_seen();
    let agent = |seen: &galeras_test_servers::http_git::Seen| {
        seen.header("user-agent").unwrap().starts_with("git/")
    };
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
fn full_without_filters() {
    let (source, net) = (Source::new(), Net::new());
    source.git(&["config", "uploadpack.allowFilter", "false"]);
    let server = HttpGit::start(source.root.path());
    full(&server.url("repo/.git"), &source, &net);
    let daemon = Daemon::start(source.root.path());
    full(&daemon.url("repo"), &source, &net);
}

#[test]
fn full_with_a_filter_that_the_server_does_not_allow() {
    let (source, net) = (Source::new(), Net::new());
    source.git(&["config", "uploadpackfilter.tree.allow", "false"]);
    let server = HttpGit::start(source.root.path());
    full(&server.url("repo/.git"), &source, &net);
}

#[test]
fn full_in_the_oldest_protocol() {
    let (source, net) = (Source::new(), Net::new());
    let server = HttpGit::start(source.root.path());
    server.use_old_protocol();
    full(&server.url("repo/.git"), &source, &net);
}

#[test]
#[ignore = "large"]
fn many_objects() {
    use std::fmt::Write as _;
    use std::time::Instant;
    let (source, net) = (Source::empty("main"), Net::new());
    let mut text = String::new();
    for n in 1..=30_000_u32 {
        let body = format!("def f{n}():\n    return {n}\n");
        write!(text, "commit refs/heads/main\ncommitter T <t@e> {n} +0000\ndata 2\nm\n").unwrap();
        let file = format!("d{}/e{}/f{}.py", n % 40, n % 7, n % 200);
        write!(text, "M 100644 inline {file}\ndata {}\n{body}\n", body.len()).unwrap();
    }
    let input = source.root.path().join("stream");
    std::fs::write(&input, text).unwrap();
    let done = std::process::Command::new("git")
        .args(["fast-import", "--quiet"])
        .current_dir(source.repo())
        .stdin(std::fs::File::open(&input).unwrap())
        .status()
        .unwrap();
    assert!(done.success());
    source.git(&["repack", "-adq"]);
    let server = HttpGit::start(source.root.path());
    let folder = tempfile::tempdir().unwrap();
    let mut fetcher = Fetcher::open(&server.url("repo/.git"), folder.path(), &net.net).unwrap();
    let start = Instant::now();
    println!("{:?} {:?}", fetcher.commits(source.head()).unwrap(), start.elapsed());
    let trees = source.root_trees();
    let start = Instant::now();
    println!("{:?} {:?}", fetcher.trees(source.head(), &trees).unwrap(), start.elapsed());
    let blobs: Vec<ObjectId> = source.objects("blob").into_iter().collect();
    let start = Instant::now();
    println!("{:?} {:?}", fetcher.files(source.head(), &blobs).unwrap(), start.elapsed());
    let start = Instant::now();
    assert_eq!(fetcher.files(source.head(), &blobs).unwrap().objects, 0);
    println!("{:?}", start.elapsed());
}
