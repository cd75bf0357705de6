//! Through ssh: what the program and its server say is kept from the terminal.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::Ordering;

use super::{Net, Source};
use crate::{GitErrorKind, remote_head};

/// A program in the place of ssh, which runs the command here after doing `first`.
pub(super) fn ssh(source: &Source, first: &str) -> std::ffi::OsString {
    let script = source.root.path().join("ssh");
    let text = format!(
        "#!/bin/sh\nwhile [ \"$1\" != example.test ]; do shift; done\nshift\n{first}\n\
         exec sh -c \"$*\"\n"
    );
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    script.into()
}

fn url(source: &Source) -> String {
    format!("ssh://example.test{}", source.repo().display())
}

/// What a terminal would take for a new title and for colours.
const STEERING: &str = "printf '\\033]0;owned\\007\\033[31mwelcome\\r\\n\\n' >&2";
const SHOWN: &str = "ssh says: \\u{1b}]0;owned\\u{7}\\u{1b}[31mwelcome";

#[test]
fn what_ssh_says_is_part_of_the_error() {
    let (source, mut net) = (Source::new(), Net::new());
    for end in ["exit 1", "echo nonsense; exit 1"] {
        net.net.ssh = Some(ssh(&source, &format!("{STEERING}; {end}")));
        let error = remote_head(&url(&source), None, &net.net).unwrap_err();
        assert!(error.message.contains(SHOWN), "{error}");
        assert!(!error.message.contains(char::is_control), "{error}");
    }
    // Without an end, it is cut.
    let much = "head -c 9999999 /dev/zero | tr '\\0' x >&2; exit 1";
    net.net.ssh = Some(ssh(&source, much));
    let error = remote_head(&url(&source), None, &net.net).unwrap_err();
    assert!(error.message.contains("ssh says: xxx") && error.message.len() < 5_000, "{error}");
    for (said, kind) in [
        ("ERROR: Repository not found.", GitErrorKind::NotFound),
        ("example.test: Permission denied (publickey).", GitErrorKind::Denied),
        ("Host key verification failed.", GitErrorKind::Other),
    ] {
        net.net.ssh = Some(ssh(&source, &format!("echo '{said}' >&2; exit 255")));
        let error = remote_head(&url(&source), None, &net.net).unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.contains(said), "{error}");
    }
    assert_eq!(net.waits(), 0);
}

#[test]
fn what_ssh_says_beside_what_it_serves_is_a_warning() {
    let (source, mut net) = (Source::new(), Net::new());
    net.net.ssh = Some(ssh(&source, STEERING));
    let head = remote_head(&url(&source), None, &net.net).unwrap();
    assert_eq!(head.commit, source.head());
    let reports = net.reports.lock().unwrap();
    let warnings: Vec<&str> = reports.iter().filter_map(crate::Activity::warning).collect();
    assert_eq!(warnings, [SHOWN]);
}

#[test]
fn a_server_without_an_end_to_its_references_is_given_up() {
    let (source, mut net) = (Source::new(), Net::new());
    let (id, name) = ("1".repeat(40), "x".repeat(59_943));
    let first = format!("{id} HEAD\0agent=git/2\n");
    let first = format!("{:04x}{first}", first.len() + 4);
    let line = format!("ea60{id} refs/heads/{name}");
    std::fs::write(source.root.path().join("first"), first).unwrap();
    std::fs::write(source.root.path().join("line"), line).unwrap();
    let root = source.root.path().display();
    let endless = format!("cat '{root}/first'; exec yes \"$(cat '{root}/line')\"");
    net.net.ssh = Some(ssh(&source, &endless));
    let error = remote_head(&url(&source), None, &net.net).unwrap_err();
    assert!(error.kind == GitErrorKind::Limit && error.message.contains("128 MB"), "{error}");
    assert_eq!(net.waits(), 0);
}

#[test]
fn a_session_that_says_nothing_ends_when_it_is_interrupted() {
    let (source, mut net) = (Source::new(), Net::new());
    let here = source.root.path().join("here");
    net.net.ssh = Some(ssh(&source, &format!("touch '{}'; exec sleep 600", here.display())));
    let interrupt = std::sync::Arc::clone(&net.net.interrupt);
    let waiting = std::thread::spawn(move || {
        while !here.exists() {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        interrupt.store(true, Ordering::Relaxed);
    });
    let error = remote_head(&url(&source), None, &net.net).unwrap_err();
    assert_eq!(error.kind, GitErrorKind::Interrupted, "{error}");
    waiting.join().unwrap();
}

#[test]
fn a_server_that_falls_silent_is_given_up() {
    let (source, mut net) = (Source::new(), Net::new());
    net.net.silence = std::time::Duration::from_millis(20);
    net.net.ssh = Some(ssh(&source, "printf 0; exec sleep 600"));
    let error = remote_head(&url(&source), None, &net.net).unwrap_err();
    assert!(error.kind == GitErrorKind::Transient && error.message.contains("silent"), "{error}");
}

#[test]
fn the_program_is_given_the_options_that_it_knows() {
    let (source, mut net) = (Source::new(), Net::new());
    let seen = source.root.path().join("seen");
    let url = url(&source).replace("example.test", "me@example.test:2222");
    let given = "-o SendEnv=GIT_PROTOCOL -p2222 me@example.test git-upload-pack '/";
    // How it is called, whether it knows `-G` as OpenSSH does, and what it is given.
    for (name, before, after, status, expected) in [
        ("ssh", "", "", 1, given.to_string()),
        ("ssh", "", " -v", 1, format!("-v {given}")),
        ("wrapper", "", "", 0, given.to_string()),
        ("wrapper", "env X=1 ", "", 0, given.to_string()),
        ("plink", "", "", 1, "-P 2222 me@example.test git-upload-pack '/".to_string()),
        ("wrapper", "", "", 1, String::new()),
    ] {
        let script = source.root.path().join(name);
        let text = format!(
            "#!/bin/sh\n[ \"$1\" = -G ] && exit {status}\necho \"$*\" > '{}'\nexit 1\n",
            seen.display()
        );
        std::fs::write(&script, text).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::write(&seen, "").unwrap();
        net.net.ssh = Some(format!("{before}{}{after}", script.display()).into());
        let error = remote_head(&url, None, &net.net).unwrap_err();
        let seen = std::fs::read_to_string(&seen).unwrap();
        assert!(seen.starts_with(&expected), "{name}{after}: {seen}");
        assert_eq!(expected.is_empty(), error.message.contains("a port"), "{error}");
    }
}
