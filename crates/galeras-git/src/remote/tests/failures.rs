//! Servers and networks that fail.

use std::net::TcpListener;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::{Net, TestServer, fails};
use crate::{GitError, GitErrorKind, remote_head};
use galeras_test_servers::http_git::{GitFault, HttpGit};

#[test]
fn passing_errors_are_tried_again() {
    let mut served = TestServer::new();
    let (info, pack) = ("info/refs", "/git-upload-pack");
    for (fault, part, times) in [
        (GitFault::Status(500), info, 3),
        (GitFault::Status(500), pack, 3),
        (GitFault::Status(503), info, 3),
        (GitFault::Status(503), pack, 3),
        (GitFault::Cut(0), info, 3),
        (GitFault::Cut(0), pack, 3),
        (GitFault::Cut(60), info, 3),
        (GitFault::Cut(60), pack, 3),
        // A body that ends properly, but too early.
        (GitFault::Short(150), pack, 1),
    ] {
        served.net = Net::new();
        served.server.fail(part, times, fault.clone());
        served.commits().unwrap();
        assert_eq!(served.net.waits(), times, "{fault:?} {part}");
    }
}

#[test]
fn waits_as_long_as_the_server_asks() {
    let served = TestServer::new();
    let after = vec![("Retry-After".to_string(), "1".to_string())];
    served.server.fail("/git-upload-pack", 1, GitFault::StatusWith(429, after));
    let start = Instant::now();
    served.commits().unwrap();
    assert!(start.elapsed() >= Duration::from_secs(1));
    assert_eq!(served.net.waits(), 1);
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
        fails(remote_head("ssh://example.test/x", None, &net.net), kind, "");
    }
}

#[test]
fn refusals_are_not_tried_again_and_failures_four_times() {
    let mut served = TestServer::new();
    for (status, kind, attempts) in [
        (401, GitErrorKind::Denied, 1),
        (403, GitErrorKind::Denied, 1),
        (404, GitErrorKind::NotFound, 1),
        (410, GitErrorKind::NotFound, 1),
        (418, GitErrorKind::Other, 1),
        (502, GitErrorKind::Transient, 4),
    ] {
        served.net = Net::new();
        served.server.fail("", 99, GitFault::Status(status));
        served.server.take_seen();
        fails(served.head(), kind, &status.to_string());
        let tried = (served.server.count(""), served.net.waits());
        assert_eq!(tried, (attempts, attempts - 1), "{status}");
        served.server.heal();
    }
    // A password is not shown.
    served.server.require_login("name", "another");
    let url = served.url().replace("://", "://name:topsecret@");
    let error = fails(remote_head(&url, None, &Net::new().net), GitErrorKind::Denied, "");
    assert!(!error.message.contains("topsecret"), "{error}");
}

#[test]
fn a_server_that_is_not_there() {
    let net = Net::new();
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    for scheme in ["http", "git"] {
        let url = format!("{scheme}://127.0.0.1:{port}/x");
        fails(remote_head(&url, None, &net.net), GitErrorKind::Transient, "connect");
    }
}

#[test]
fn redirects() {
    let served = TestServer::new();
    let (server, other) = (&served.server, HttpGit::start(served.source.root.path()));
    // All that follows goes to where the first request was sent.
    server.fail("info/refs", 2, GitFault::Redirect(other.base()));
    other.fail("info/refs", 1, GitFault::Redirect(server.base()));
    served.commits().unwrap();
    assert_eq!((server.count("/git-upload-pack"), other.count("/git-upload-pack")), (0, 1));
    // Only the first request may be redirected.
    server.fail("/git-upload-pack", 1, GitFault::Redirect(other.base()));
    fails(served.commits(), GitErrorKind::Other, "");
    // Not in a circle, and not to something else.
    server.fail("info/refs", 99, GitFault::Redirect(server.base()));
    let error = served.commits().unwrap_err();
    assert!(error.message.contains("redirects too often"), "{error}");
    server.heal();
    let login = vec![("Location".to_string(), other.url("login?from=x"))];
    server.fail("info/refs", 1, GitFault::StatusWith(302, login));
    assert!(served.commits().is_err());
    assert_eq!(served.net.waits(), 0);
}

#[test]
fn a_redirect_without_consent_is_not_followed() {
    let mut served = TestServer::new();
    let other = HttpGit::start(served.source.root.path());
    served.server.fail("info/refs", 9, GitFault::Redirect(other.base()));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    served.net.net.redirects = Arc::new(move |from, to| {
        seen.lock().unwrap().push((from.to_string(), to.to_string()));
        Err("it redirects to an address that was not agreed to".into())
    });
    fails(served.commits(), GitErrorKind::NotAgreed, "was not agreed to");
    assert_eq!(
        (served.net.waits(), other.count("")),
        (0, 0),
        "the other server is not asked, and the user not twice"
    );
    let (asked, tail) = (asked.lock().unwrap(), "repo/.git/info/refs?service=git-upload-pack");
    assert_eq!(*asked, [(served.server.url(tail), other.url(tail))]);
}

/// Sets the interrupt flag while `act` runs, as soon as `ready` is true, and wants it to end soon.
fn interrupted(
    net: &Net,
    ready: impl Fn() -> bool,
    act: impl FnOnce() -> Result<(), GitError> + Send,
) {
    std::thread::scope(|scope| {
        let running = scope.spawn(act);
        let start = Instant::now();
        while !ready() && start.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(!running.is_finished());
        net.net.interrupt.store(true, Ordering::Relaxed);
        let start = Instant::now();
        fails(running.join().unwrap(), GitErrorKind::Interrupted, "");
        assert!(start.elapsed() < Duration::from_secs(2));
    });
}

#[test]
fn interrupt_of_a_large_transfer() {
    let served = TestServer::new();
    let head = served.source.bulk(2_000_000);
    served.source.git(&["config", "uploadpack.allowFilter", "false"]);
    served.server.fail("/git-upload-pack", 99, GitFault::Slow(200_000));
    let mut fetcher = served.fetcher();
    let reports = || served.net.reports.lock().unwrap();
    let received = || reports().iter().any(|report| report.bytes > 10_000);
    let start = Instant::now();
    interrupted(&served.net, received, || fetcher.commits(head).map(|_| ()));
    assert!(reports().len() as u128 <= start.elapsed().as_millis() / 100 + 5, "{:?}", reports());
}

#[test]
fn silent_servers_are_given_up_or_interrupted() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    for scheme in ["http", "git"] {
        let url = format!("{scheme}://127.0.0.1:{port}/x");
        let (mut net, start) = (Net::new(), Instant::now());
        let waited = || start.elapsed() > Duration::from_millis(700);
        interrupted(&net, waited, || remote_head(&url, None, &net.net).map(|_| ()));

        net = Net::new();
        net.net.silence = Duration::from_millis(150);
        fails(remote_head(&url, None, &net.net), GitErrorKind::Transient, "silent");
        assert_eq!(net.waits(), 0, "each attempt would take as long");
        assert!(start.elapsed() < Duration::from_secs(20));
    }
    // A silence in the middle.
    let mut served = TestServer::new();
    served.net.net.silence = Duration::from_secs(2);
    served.server.fail("/git-upload-pack", 1, GitFault::Silent(Duration::from_secs(6)));
    served.commits().unwrap();
    assert_eq!(served.net.waits(), 1);
}

#[test]
fn interrupt_while_waiting() {
    let mut served = TestServer::new();
    served.server.fail("", 99, GitFault::Status(500));
    served.net.net.backoff = Duration::from_secs(300);
    let waits = || served.net.waits() > 0;
    interrupted(&served.net, waits, || served.head().map(|_| ()));
}
