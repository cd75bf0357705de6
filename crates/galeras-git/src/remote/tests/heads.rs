//! Branches and their commits.

use super::{Daemon, Net, Source, fails};
use crate::GitErrorKind::NotFound;
use crate::{Head, remote_head};
use galeras_test_servers::http_git::HttpGit;

/// The same repository over HTTP in two protocols, and from the daemon.
fn everywhere(source: &Source, check: impl Fn(&str)) {
    let server = HttpGit::start(source.root.path());
    check(&server.url("repo/.git"));
    server.use_old_protocol();
    check(&server.url("repo/.git"));
    let daemon = Daemon::start(source.root.path());
    check(&daemon.url("repo"));
}

#[test]
fn default_and_named_branches() {
    let (source, net) = (Source::empty("trunk"), Net::new());
    let first = source.commit(1);
    source.git(&["branch", "feature/x"]);
    source.git(&["branch", "feature/x-more"]);
    source.git(&["tag", "-a", "-m", "tag", "v1"]);
    let second = source.commit(2);
    everywhere(&source, |url| {
        let head = remote_head(url, None, &net.net).unwrap();
        assert_eq!(head, Head { branch: "trunk".to_string(), commit: second });
        let head = remote_head(url, Some("feature/x"), &net.net).unwrap();
        assert_eq!(head, Head { branch: "feature/x".to_string(), commit: first });
        fails(remote_head(url, Some("feature"), &net.net), NotFound, "has no branch `feature`");
    });
    assert_eq!(net.waits(), 0);
}

#[test]
fn detached_and_missing() {
    let (source, net) = (Source::new(), Net::new());
    source.git(&["checkout", "-q", "--detach", "HEAD~1"]);
    let head = Head { branch: "HEAD".to_string(), commit: source.head() };
    everywhere(&source, |url| {
        assert_eq!(remote_head(url, None, &net.net).unwrap(), head);
        fails(remote_head(&url.replace("repo", "nothing"), None, &net.net), NotFound, "");
    });
    let empty = Source::empty("main");
    everywhere(&empty, |url| {
        fails(remote_head(url, None, &net.net), NotFound, "has no commits");
    });
    assert_eq!(net.waits(), 0);
}
