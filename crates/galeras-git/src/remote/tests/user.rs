//! The user's own configuration of git counts: credential helpers, ssh, proxies, `insteadOf`.

use std::fs;

use super::ssh::program;
use super::{Net, Source, commits, fails};
use crate::{GitErrorKind, remote_head};
use galeras_test_servers::http_git::HttpGit;

/// Fetches the commits of `source` from `url`.
fn fetched(url: &str, source: &Source, net: &Net) {
    assert_eq!(remote_head(url, None, &net.net).unwrap().commit, source.head());
    commits(url, source, net).unwrap();
}

#[test]
fn a_credential_helper_gives_the_login_of_a_private_repository() {
    let (source, net) = (Source::new(), Net::new());
    let server = HttpGit::start(source.root.path());
    server.require_login("ann", "s3cr3t");
    let url = server.url("repo/.git");
    fails(remote_head(&url, None, &net.net), GitErrorKind::Denied, "credential helper");
    let helper = net.home.path().join("helper");
    program(&helper, "[ \"$1\" = get ] && printf 'username=ann\\npassword=s3cr3t\\n'");
    net.configure(&format!("[credential]\n\thelper = {}\n", helper.display()));
    fetched(&url, &source, &net);
    // A wrong password is not shown.
    program(&helper, "[ \"$1\" = get ] && printf 'username=ann\\npassword=wr0ng\\n'");
    let error = fails(remote_head(&url, None, &net.net), GitErrorKind::Denied, "");
    assert!(!error.message.contains("wr0ng"), "{error}");
    assert_eq!(net.waits(), 0);
}

/// `ssh` finds the alias in `~/.ssh/config`; git gives it the alias and nothing else.
#[test]
fn a_host_alias_of_ssh_is_left_to_ssh() {
    let (source, mut net) = (Source::new(), Net::new());
    let seen = net.home.path().join("seen");
    let bin = net.home.path().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::create_dir(net.home.path().join(".ssh")).unwrap();
    let config = "Host lab\n  HostName 127.0.0.1\n  User carol\n";
    fs::write(net.home.path().join(".ssh/config"), config).unwrap();
    // As OpenSSH reads it: the lines below `Host lab`.
    let script = format!(
        "echo \"$*\" > '{}'\nwhile [ \"$1\" = -o ]; do shift 2; done\n\
         grep -qx \"Host $1\" \"$HOME/.ssh/config\" || {{ echo \"unknown $1\" >&2; exit 255; }}\n\
         shift; exec sh -c \"$*\"",
        seen.display()
    );
    program(&bin.join("ssh"), &script);
    let path = std::env::var("PATH").unwrap();
    net.set("PATH", format!("{}:{path}", bin.display()));
    fetched(&format!("lab:{}", source.repo().display()), &source, &net);
    let given = fs::read_to_string(&seen).unwrap();
    assert!(given.contains(" lab git-upload-pack '/"), "{given}");
    assert!(given.contains("BatchMode=yes"), "ssh must not ask: {given}");
    let url = format!("ssh://other{}", source.repo().display());
    assert!(remote_head(&url, None, &net.net).unwrap_err().message.contains("unknown other"));
}

#[test]
fn the_configured_ssh_command_counts() {
    let (source, mut net) = (Source::new(), Net::new());
    let script = net.home.path().join("my-ssh");
    program(&script, "while [ \"$1\" != lab ]; do shift; done\nshift; exec sh -c \"$*\"");
    net.configure(&format!("[core]\n\tsshCommand = {} -v\n", script.display()));
    fetched(&format!("lab:{}", source.repo().display()), &source, &net);
    // The environment comes first, as with git.
    net.set("GIT_SSH_COMMAND", "false");
    assert!(remote_head(&format!("lab:{}", source.repo().display()), None, &net.net).is_err());
}

#[test]
fn instead_of_replaces_an_address() {
    let (source, net) = (Source::new(), Net::new());
    let server = HttpGit::start(source.root.path());
    let base = server.base().replace("://", "://ann:t0ken@");
    net.configure(&format!("[url \"{base}/\"]\n\tinsteadOf = https://example.test/\n"));
    fetched("https://example.test/repo/.git", &source, &net);
    let missing = remote_head("https://example.test/nothing", None, &net.net);
    let error = fails(missing, GitErrorKind::NotFound, "");
    assert!(!error.message.contains("t0ken"), "{error}");
}

#[test]
fn a_proxy_is_used() {
    let (source, mut net) = (Source::new(), Net::new());
    // A proxy is given the whole address.
    let server = HttpGit::start(source.root.path());
    net.configure(&format!("[http]\n\tproxy = {}\n", server.base()));
    fetched("http://example.test/repo/.git", &source, &net);
    let seen = server.take_seen();
    assert!(seen.iter().all(|seen| seen.path.starts_with("http://example.test/")), "{seen:?}");
    net.configure("");
    net.set("http_proxy", server.base());
    fetched("http://example.test/repo/.git", &source, &net);
}

#[test]
fn a_missing_or_old_git_is_reported() {
    let mut net = Net::new();
    let bin = net.home.path().join("bin");
    fs::create_dir(&bin).unwrap();
    net.set("PATH", bin.as_os_str());
    for (script, words) in [
        ("", "cannot be run"),
        ("echo git version 2.35.9", "returns `git version 2.35.9`; install git 2.36 or later"),
        ("echo nonsense", "returns `nonsense`"),
    ] {
        if !script.is_empty() {
            program(&bin.join("git"), script);
        }
        // The next run tries again.
        let head = remote_head("ssh://example.test/x", None, &net.net);
        let error = fails(head, GitErrorKind::Transient, words);
        assert!(error.message.contains("2.36"), "{error}");
    }
    assert_eq!(net.waits(), 0);
}
