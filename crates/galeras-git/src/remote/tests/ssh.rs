//! Through ssh: its messages and those of its server are kept from the terminal.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::Ordering;

use super::{Net, Source, fails};
use crate::{GitErrorKind, remote_head};

/// Writes a script that can be run.
pub(super) fn program(path: &Path, text: &str) {
    std::fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A program that replaces ssh: it does `first` and then runs the command here.
pub(super) fn ssh(source: &Source, first: &str) -> std::ffi::OsString {
    let script = source.root.path().join("ssh");
    let skip = "while [ \"$1\" != example.test ]; do shift; done; shift";
    program(&script, &format!("{skip}\n{first}\nexec sh -c \"$*\""));
    script.into()
}

fn url(source: &Source) -> String {
    format!("ssh://example.test{}", source.repo().display())
}

/// A terminal would take this for a new title and for colours.
const STEERING: &str = "printf '\\033]0;owned\\007\\033[31mwelcome\\r\\n\\n' >&2";
const SHOWN: &str = "git reports: \\u{1b}]0;owned\\u{7}\\u{1b}[31mwelcome";

#[test]
fn messages_of_ssh_are_part_of_the_error() {
    let (source, mut net) = (Source::new(), Net::new());
    net.set("GIT_SSH_COMMAND", ssh(&source, &format!("{STEERING}; exit 1")));
    let error = remote_head(&url(&source), None, &net.net).unwrap_err();
    assert!(error.message.contains(SHOWN), "{error}");
    assert!(!error.message.contains(char::is_control), "{error}");
    // They are cut.
    let much = "head -c 9999999 /dev/zero | tr '\\0' x >&2; exit 1";
    net.set("GIT_SSH_COMMAND", ssh(&source, much));
    let error = remote_head(&url(&source), None, &net.net).unwrap_err();
    assert!(error.message.contains("git reports: xxx") && error.message.len() < 5_000, "{error}");
    for (message, kind) in [
        ("ERROR: Repository not found.", GitErrorKind::NotFound),
        ("example.test: Permission denied (publickey).", GitErrorKind::Denied),
        ("Host key verification failed.", GitErrorKind::Other),
    ] {
        let script = format!("echo '{message}' >&2; exit 255");
        net.set("GIT_SSH_COMMAND", ssh(&source, &script));
        fails(remote_head(&url(&source), None, &net.net), kind, message);
    }
    assert_eq!(net.waits(), 0);
}

#[test]
fn messages_of_ssh_are_a_warning_of_a_success() {
    let (source, mut net) = (Source::new(), Net::new());
    net.set("GIT_SSH_COMMAND", ssh(&source, STEERING));
    let head = remote_head(&url(&source), None, &net.net).unwrap();
    assert_eq!(head.commit, source.head());
    assert_eq!(net.warnings(), [SHOWN]);
}

#[test]
fn an_endless_list_of_references_is_given_up() {
    let (source, mut net) = (Source::new(), Net::new());
    let (id, name) = ("1".repeat(40), "x".repeat(59_943));
    let first = format!("{id} HEAD\0agent=git/2\n");
    let first = format!("{:04x}{first}", first.len() + 4);
    let line = format!("ea60{id} refs/heads/{name}");
    std::fs::write(source.root.path().join("first"), first).unwrap();
    std::fs::write(source.root.path().join("line"), line).unwrap();
    let root = source.root.path().display();
    let endless = format!("cat '{root}/first'; exec yes \"$(cat '{root}/line')\"");
    net.set("GIT_SSH_COMMAND", ssh(&source, &endless));
    fails(remote_head(&url(&source), None, &net.net), GitErrorKind::Limit, "memory");
    assert_eq!(net.waits(), 0);
}

/// Git, and the program that it started, end.
#[test]
fn an_interrupted_session_ends_at_once() {
    let (source, mut net) = (Source::new(), Net::new());
    let here = source.root.path().join("here");
    let wait = format!("echo $$ > '{}'; exec sleep 600", here.display());
    net.set("GIT_SSH_COMMAND", ssh(&source, &wait));
    let interrupt = std::sync::Arc::clone(&net.net.interrupt);
    let written = here.clone();
    let waiting = std::thread::spawn(move || {
        while std::fs::read(&written).unwrap_or_default().is_empty() {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        interrupt.store(true, Ordering::Relaxed);
    });
    fails(remote_head(&url(&source), None, &net.net), GitErrorKind::Interrupted, "");
    waiting.join().unwrap();
    let process = std::fs::read_to_string(here).unwrap();
    let status = Path::new("/proc").join(process.trim()).join("stat");
    let ended = || std::fs::read_to_string(&status).map_or(true, |text| text.contains(") Z "));
    for _ in 0..200 {
        if ended() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("the program of ssh still runs");
}

#[test]
fn a_silent_session_is_given_up() {
    let (source, mut net) = (Source::new(), Net::new());
    net.net.silence = std::time::Duration::from_millis(200);
    net.set("GIT_SSH_COMMAND", ssh(&source, "printf 0; exec sleep 600"));
    fails(remote_head(&url(&source), None, &net.net), GitErrorKind::Transient, "silent");
}
