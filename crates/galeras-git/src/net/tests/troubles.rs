//! Servers and networks that fail.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::{Daemon, Net, Source, local};
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
fn waits_until_a_date() {
    use crate::net::answer::wait_of;
    assert_eq!(wait_of("17"), Some(Duration::from_secs(17)));
    assert_eq!(wait_of("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
    let future = wait_of("Fri, 21 Oct 2180 07:28:00 GMT").unwrap();
    assert!(future > Duration::from_secs(1_000_000_000));
    assert_eq!(wait_of("soon"), None);
}

#[test]
fn a_web_page_is_not_a_git_server() {
    let (source, net) = (Source::new(), Net::new());
    let server = HttpGit::start(source.root.path());
    let page = vec![("Content-Type".to_string(), "text/html".to_string())];
    server.fail("", 99, GitFault::StatusWith(200, page));
    let error = remote_head(&server.url("repo/.git"), None, &net.net).unwrap_err();
    assert_eq!(error.kind, GitErrorKind::Other, "{error}");
    assert!(error.message.contains("no git server"), "{error}");
    assert_eq!(net.waits(), 0);
}

#[test]
fn ssh_that_does_not_work() {
    let mut net = Net::new();
    for (command, kind) in [
        ("/nonexistent/ssh", GitErrorKind::Other),
        ("true", GitErrorKind::NotFound),
        ("echo 'ssh: connect to host x port 22: No route' >&2; false", GitErrorKind::Transient),
    ] {
        net.net.ssh = Some(command.into());
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
        // A password is neither sent without encryption nor shown.
        let error = remote_head(&url, None, &net.net).unwrap_err();
        assert!(!error.message.contains("topsecret"), "{error}");
        assert_eq!(server.count(""), 1);
    }
}

#[test]
fn nobody_listens() {
    let net = Net::new();
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    for scheme in ["http", "git"] {
        let url = format!("{scheme}://127.0.0.1:{port}/x");
        let error = remote_head(&url, None, &net.net).unwrap_err();
        assert_eq!(error.kind, GitErrorKind::Transient, "{error}");
        assert!(error.message.contains("refused"), "{error}");
    }
}

#[cfg(unix)]
#[test]
fn damaged_on_the_server() {
    use std::os::unix::fs::PermissionsExt as _;
    let (source, net) = (Source::new(), Net::new());
    let head = source.bulk(300_000);
    source.git(&["repack", "-adq"]);
    let packs = source.repo().join(".git/objects/pack");
    for entry in fs::read_dir(packs).unwrap() {
        let file = entry.unwrap().path();
        if file.extension().is_some_and(|extension| extension == "pack") {
            fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
            let mut bytes = fs::read(&file).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0xff;
            fs::File::create(&file).unwrap().write_all(&bytes).unwrap();
        }
    }
    let server = HttpGit::start(source.root.path());
    let daemon = Daemon::start(source.root.path());
    for url in [server.url("repo/.git"), daemon.url("repo")] {
        let folder = tempfile::tempdir().unwrap();
        let mut fetcher = Fetcher::open(&url, folder.path(), &net.net).unwrap();
        let error = fetcher.everything(head).unwrap_err();
        assert_eq!(error.kind, GitErrorKind::Damaged, "{error}");
        assert!(!fetcher.contains(&head));
        assert_eq!(local(folder.path()).len(), 0);
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
    let server = HttpGit::start(source.root.path());
    server.fail("/git-upload-pack", 99, GitFault::Slow(200_000));
    let folder = tempfile::tempdir().unwrap();
    let mut fetcher = Fetcher::open(&server.url("repo/.git"), folder.path(), &net.net).unwrap();
    interrupted(&net, || fetcher.everything(head).map(|_| ()));
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
        assert!(start.elapsed() < Duration::from_secs(5));
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
