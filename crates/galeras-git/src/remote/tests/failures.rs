//! Servers and networks that fail.

use std::net::TcpListener;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::{Net, Source, local};
use crate::{Fetcher, GitError, GitErrorKind, remote_head};
use galeras_test_servers::http_git::{GitFault, HttpGit};

fn commits(url: &str, source: &Source, net: &Net) -> Result<(), GitError> {
    let folder = tempfile::tempdir().unwrap();
    let mut fetcher = Fetcher::open(url, folder.path(), &net.net)?;
    fetcher.commits(source.head())?;
    assert_eq!(local(folder.path()), source.objects("commit"));
    Ok(())
}

#[test]
fn passing_errors_are_tried_again() {
    let source = Source::new();
    let server = HttpGit::start(source.root.path());
    let url = server.url("repo/.git");
    for fault in [GitFault::Status(500), GitFault::Status(503), GitFault::Cut(0), GitFault::Cut(60)]
    {
        for part in ["info/refs", "/git-upload-pack"] {
            let net = Net::new();
            server.fail(part, 3, fault.clone());
            commits(&url, &source, &net).unwrap();
            assert_eq!(net.waits(), 3, "{fault:?} {part}");
        }
    }
    // A body that ends properly, but too early.
    let net = Net::new();
    server.fail("/git-upload-pack", 1, GitFault::Short(150));
    commits(&url, &source, &net).unwrap();
    assert_eq!(net.waits(), 1);
}

#[test]
fn four_attempts_are_enough() {
    let (source, net) = (Source::new(), Net::new());
    let server = HttpGit::start(source.root.path());
    server.fail("", 99, GitFault::Status(502));
    let error = remote_head(&server.url("repo/.git"), None, &net.net).unwrap_err();
    assert_eq!(error.kind, GitErrorKind::Transient);
    assert!(error.message.contains("502"), "{error}");
    assert_eq!((server.count(""), net.waits()), (4, 3));
}

#[test]
fn waits_as_long_as_the_server_says() {
    let (source, net) = (Source::new(), Net::new());
    let server = HttpGit::start(source.root.path());
    let after = vec![("Retry-After".to_string(), "1".to_string())];
    server.fail("/git-upload-pack", 1, GitFault::StatusWith(429, after));
    let start = Instant::now();
    commits(&server.url("repo/.git"), &source, &net).unwrap();
    assert!(start.elapsed() >= Duration::from_secs(1));
    assert_eq!(net.waits(), 1);
}

#[test]
fn ssh_that_does_not_work() {
    for (command, kind) in [
        ("/nonexistent/ssh", GitErrorKind::NotFound),
        ("true", GitErrorKind::NotFound),
        ("echo 'ssh: connect to host x port 22: No route' >&2; false", GitErrorKind::Transient),
    ] {
        let mut net = Net::new();
        net.set("GIT_SSH_COMMAND", command);
        let error = remote_head("ssh://example.test/x", None, &net.net).unwrap_err();
        assert_eq!(error.kind, kind, "{command}: {error}");
    }
}

#[test]
fn refusals_are_not_tried_again() {
    let source = Source::new();
    let server = HttpGit::start(source.root.path());
    let url = server.url("repo/.git").replace("://", "://name:topsecret@");
    for (status, kind) in [
        (401, GitErrorKind::Denied),
        (403, GitErrorKind::Denied),
        (404, GitErrorKind::NotFound),
        (410, GitErrorKind::NotFound),
        (418, GitErrorKind::Other),
    ] {
        let net = Net::new();
        server.fail("", 99, GitFault::Status(status));
        server.take_seen();
        let error = remote_head(&server.url("repo/.git"), None, &net.net).unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.contains(&status.to_string()), "{error}");
        assert_eq!((server.count(""), net.waits()), (1, 0));
        server.heal();
    }
    // A password is not shown.
    server.require_login("name", "another");
    let error = remote_head(&url, None, &Net::new().net).unwrap_err();
    assert_eq!(error.kind, GitErrorKind::Denied, "{error}");
    assert!(!error.message.contains("topsecret"), "{error}");
}

#[test]
fn nobody_listens() {
    let net = Net::new();
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    for scheme in ["http", "git"] {
        let url = format!("{scheme}://127.0.0.1:{port}/x");
        let error = remote_head(&url, None, &net.net).unwrap_err();
        assert_eq!(error.kind, GitErrorKind::Transient, "{error}");
        assert!(error.message.contains("connect"), "{error}");
    }
}

#[test]
fn redirects() {
    let (source, net) = (Source::new(), Net::new());
    let server = HttpGit::start(source.root.path());
    let other = HttpGit::start(source.root.path());
    let url = server.url("repo/.git");
    // All that follows goes to where the first request was sent.
    server.fail("info/refs", 2, GitFault::Redirect(other.base()));
    other.fail("info/refs", 1, GitFault::Redirect(server.base()));
    commits(&url, &source, &net).unwrap();
    assert_eq!((server.count("/git-upload-pack"), other.count("/git-upload-pack")), (0, 1));
    // Only the first request may be redirected.
    server.fail("/git-upload-pack", 1, GitFault::Redirect(other.base()));
    let error = commits(&url, &source, &net).unwrap_err();
    assert_eq!(error.kind, GitErrorKind::Other, "{error}");
    // Not in a circle, and not to something else.
    server.fail("info/refs", 99, GitFault::Redirect(server.base()));
    let error = commits(&url, &source, &net).unwrap_err();
    assert!(error.message.contains("redirects too often"), "{error}");
    server.heal();
    let login = vec![("Location".to_string(), other.url("login?from=x"))];
    server.fail("info/refs", 1, GitFault::StatusWith(302, login));
    assert!(commits(&url, &source, &net).is_err());
    assert_eq!(net.waits(), 0);
}

#[test]
fn a_redirect_that_nobody_agreed_to_is_not_followed() {
    let (source, mut net) = (Source::new(), Net::new());
    let server = HttpGit::start(source.root.path());
    let other = HttpGit::start(source.root.path());
    server.fail("info/refs", 9, GitFault::Redirect(other.base()));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    net.net.redirects = Arc::new(move |from, to| {
        seen.lock().unwrap().push((from.to_string(), to.to_string()));
        Err("it redirects to an address that was not agreed to".into())
    });
    let error = commits(&server.url("repo/.git"), &source, &net).unwrap_err();
    assert_eq!(error.kind, GitErrorKind::NotAgreed, "{error}");
    assert!(error.message.contains("was not agreed to"), "{error}");
    assert_eq!((net.waits(), other.count("")), (0, 0), "nobody is asked, and not twice");
    let (asked, tail) = (asked.lock().unwrap(), "repo/.git/info/refs?service=git-upload-pack");
    assert_eq!(*asked, [(server.url(tail), other.url(tail))]);
}

/// Sets the interrupt flag while `act` runs, and wants it to end soon.
fn interrupted(net: &Net, act: impl FnOnce() -> Result<(), GitError> + Send) {
    std::thread::scope(|scope| {
        let running = scope.spawn(act);
        std::thread::sleep(Duration::from_millis(700));
        assert!(!running.is_finished());
        net.net.interrupt.store(true, Ordering::Relaxed);
        let start = Instant::now();
        let error = running.join().unwrap().unwrap_err();
        assert_eq!(error.kind, GitErrorKind::Interrupted, "{error}");
        assert!(start.elapsed() < Duration::from_secs(1));
    });
}

#[test]
fn interrupt_of_a_large_transfer() {
    let (source, net) = (Source::new(), Net::new());
    let head = source.bulk(2_000_000);
    source.git(&["config", "uploadpack.allowFilter", "false"]);
    let server = HttpGit::start(source.root.path());
    server.fail("/git-upload-pack", 99, GitFault::Slow(200_000));
    let folder = tempfile::tempdir().unwrap();
    let mut fetcher = Fetcher::open(&server.url("repo/.git"), folder.path(), &net.net).unwrap();
    interrupted(&net, || fetcher.commits(head).map(|_| ()));
    let reports = net.reports.lock().unwrap();
    assert!(reports.iter().any(|report| report.bytes > 10_000), "{reports:?}");
    assert!(reports.len() < 40, "{reports:?}");
}

#[test]
fn interrupt_of_a_silent_server() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    for scheme in ["http", "git"] {
        let net = Net::new();
        let url = format!("{scheme}://127.0.0.1:{port}/x");
        interrupted(&net, || remote_head(&url, None, &net.net).map(|_| ()));
    }
}

#[test]
fn silent_servers_are_given_up() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    for scheme in ["http", "git"] {
        let mut net = Net::new();
        net.net.silence = Duration::from_millis(150);
        let url = format!("{scheme}://127.0.0.1:{port}/x");
        let start = Instant::now();
        let error = remote_head(&url, None, &net.net).unwrap_err();
        assert_eq!(error.kind, GitErrorKind::Transient, "{error}");
        assert!(error.message.contains("silent"), "{error}");
        assert_eq!(net.waits(), 3);
        assert!(start.elapsed() < Duration::from_secs(10));
    }
    // A silence in the middle.
    let (source, mut net) = (Source::new(), Net::new());
    net.net.silence = Duration::from_millis(300);
    let server = HttpGit::start(source.root.path());
    server.fail("/git-upload-pack", 1, GitFault::Silent(Duration::from_secs(2)));
    commits(&server.url("repo/.git"), &source, &net).unwrap();
    assert_eq!(net.waits(), 1);
}

#[test]
fn interrupt_while_waiting() {
    let (source, mut net) = (Source::new(), Net::new());
    let server = HttpGit::start(source.root.path());
    server.fail("", 99, GitFault::Status(500));
    net.net.backoff = Duration::from_secs(30);
    let url = server.url("repo/.git");
    interrupted(&net, || remote_head(&url, None, &net.net).map(|_| ()));
}
