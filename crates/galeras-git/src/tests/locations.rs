//! Folders and URLs.

use std::fs;
use std::path::Path;

use super::{TestRepository, fails};
use crate::{GitErrorKind, GitServer, RepositoryLocation, shown_url};

#[test]
fn urls() {
    let urls = "https://github.com/a/b HTTPS://github.com/a/B.git http://localhost:8080/x \
                https://user:secret@example.org/x git://example.org/x ssh://git@example.org:22/x \
                git@github.com:a/b.git example.org:x git://[::1]:9418/x [::1]:x";
    for text in urls.split(' ') {
        let location = RepositoryLocation::parse(text, Path::new("/nowhere")).unwrap();
        let expected = text.replace("HTTPS", "https");
        assert_eq!(location, RepositoryLocation::Remote(expected), "{text}");
    }
}

#[test]
fn an_address_leads_to_one_server() {
    for (text, scheme, host, port) in [
        ("https://GitHub.com/a/b", "https", "github.com", None),
        ("HTTPS://a.example:443/x", "https", "a.example", None),
        ("http://u:p@a.example@b.example:80/x", "http", "b.example", None),
        ("http://2130706433:8080/x", "http", "127.0.0.1", Some(8080)),
        ("ssh://git@Example.org:22/x#@c.example", "ssh", "example.org", None),
        ("ssh://a%23@example.org:23/x", "ssh", "example.org", Some(23)),
        ("ssh://[::1]:23/x", "ssh", "[::1]", Some(23)),
        ("git://[2001:DB8::1]/x", "git", "[2001:db8::1]", None),
        ("git://a.example:9418/x?y@b.example", "git", "a.example", None),
        ("git@a.example:b@c.example:d", "ssh", "a.example", None),
        ("a@b@c.example:x", "ssh", "c.example", None),
        ("[::1]:x", "ssh", "[::1]", None),
        ("xn--bcher-kva.example:x", "ssh", "xn--bcher-kva.example", None),
    ] {
        let location = RepositoryLocation::parse(text, Path::new("/nowhere")).unwrap();
        let RepositoryLocation::Remote(url) = location else { panic!("{text} is a folder") };
        let server = GitServer { scheme, host: host.into(), port };
        assert_eq!(GitServer::of(&url), Some(server), "{text}");
    }
    for text in ["", "./a", "/a/b", "file:///x", "ext::sh -c x", "ftp://a/x", "memory://"] {
        assert_eq!(GitServer::of(text), None, "{text}");
    }
}

#[test]
fn hostile_texts() {
    let without_spaces = r"
        fd::17 ftp://example.org/x ext://example.org/x -oProxyCommand=sh:x -oProxyCommand=sh
        user@-oProxyCommand=sh:x ssh://-oProxyCommand=sh/x ssh://-l@example.org/x
        git://example.org:99999/x https:///x host: -x@host:x https:host/x HTTP:host/x ssh:x
        ssh://localhost#@evil.example/x ssh://localhost?@evil.example/x
        ssh://localhost\@evil.example/x git://localhost#@evil.example/x
        GIT://localhost#@evil.example/x https://localhost\@evil.example/x
        https://localhost#@evil.example/x HTTPS://localhost#@evil.example/x
        localhost#@evil.example:x ssh://localhost%23@evil%2eexample/x ssh://evil。example/x
        ssh://localhöst/x git://example.org:/x git://example.org:+1/x git://[::1/x git://[::1]x/x
        git://[::1]:x/x ssh://::1/x host:-x git@host:--upload-pack=sh --upload-pack=sh -x
        file://elsewhere.example/x file:///nowhere/x missing";
    let others = [
        "",
        "ext::sh -c touch% /tmp/x",
        "git://example.org/x\nhost=other",
        "https://exa mple.org/x",
        "ssh://localhost\u{a0}@evil.example/x",
        "a\u{1b}[2J",
        "./a\nb",
        "a b:x",
    ];
    for text in without_spaces.split_ascii_whitespace().chain(others) {
        let here = Path::new("/nowhere");
        let error = RepositoryLocation::parse(text, here).unwrap_err();
        assert!(!error.message.is_empty() && !error.message.contains('\n'), "{text}: {error}");
    }
}

#[test]
fn folders() {
    let made = TestRepository::new();
    let root = made.dir();
    made.git(&["init", "-q", "repo"], b"");
    made.git(&["clone", "-q", "--bare", "repo", "bare:of -it"], b"");
    made.git(&["clone", "-q", "--bare", "repo", "ext::sh"], b"");
    fs::create_dir(root.join("plain")).unwrap();
    for name in ["repo", "bare:of -it", "ext::sh", "./repo", "repo/.git"] {
        let location = RepositoryLocation::parse(name, root).unwrap();
        assert_eq!(location, RepositoryLocation::Folder(root.join(name)));
    }
    let url = url::Url::from_file_path(root.join("repo")).unwrap();
    let location = RepositoryLocation::parse(url.as_str(), Path::new("/")).unwrap();
    assert_eq!(location, RepositoryLocation::Folder(root.join("repo")));
    // It could be an option; `./-x` cannot.
    made.git(&["clone", "-q", "--bare", "repo", "./-x"], b"");
    assert!(RepositoryLocation::parse("-x", root).is_err());
    assert!(RepositoryLocation::parse("./-x", root).is_ok());
    fails(RepositoryLocation::parse("plain", root), GitErrorKind::NotFound, "not a git repository");
}

#[test]
fn no_credentials_are_shown() {
    for (url, shown) in [
        ("https://user:secret@example.org/x?token=secret", "https://example.org/x"),
        ("https://secret@example.org", "https://example.org"),
        ("ssh://git:secret@example.org/x", "ssh://git@example.org/x"),
        ("git@example.org:x", "git@example.org:x"),
        ("https://u:p@ss@example.org/x@y", "https://example.org/x@y"),
    ] {
        assert_eq!(shown_url(url), shown);
    }
    for text in ["ftp://user:secret@example.org/x", "https://user:secret@exa mple.org/x"] {
        let error = RepositoryLocation::parse(text, Path::new("/nowhere")).unwrap_err();
        assert!(!error.message.contains("secret"), "{error}");
    }
}
