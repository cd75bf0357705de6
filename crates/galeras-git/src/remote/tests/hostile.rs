//! Caches and servers that are made to do harm.

use std::fs;
use std::os::unix::fs::symlink;

use super::ssh::program;
use super::{Net, Source, TestServer, fails, git, local};
use crate::{Fetcher, GitErrorKind, remote_head};
use galeras_test_servers::http_git::{GitFault, HttpGit};

/// A folder in the cache may come from a stranger, with a configuration, hooks and more. None
/// of it is read.
#[test]
fn a_folder_in_the_cache_runs_nothing_and_leads_nowhere() {
    let served = TestServer::new();
    let folder = served.folder.path();
    let (dir, secret) = (folder.join("clone"), folder.join("secret"));
    git(folder, &["init", "-q", "--bare", "secret"]);
    let (ran, run) = (folder.join("ran"), folder.join("run"));
    program(&run, &format!("touch '{}'", ran.display()));
    let run = run.display();
    let config = format!(
        "[core]\n\trepositoryformatversion = 0\n\tbare = true\n\tsshCommand = {run}\n\
         \tfsmonitor = {run}\n\thooksPath = hooks\n\tgitProxy = {run}\n\taskPass = {run}\n\
         [credential]\n\thelper = !{run}\n[remote \"galeras\"]\n\tuploadpack = {run}\n\
         [url \"ext::{run}\"]\n\tinsteadOf = http://\n[include]\n\tpath = ../secret/config\n"
    );
    for place in [dir.clone(), dir.join("galeras-git")] {
        for below in ["hooks", "objects/info", "objects/pack", "refs", "info"] {
            fs::create_dir_all(place.join(below)).unwrap();
        }
        fs::write(place.join("config"), &config).unwrap();
        fs::write(place.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(place.join("commondir"), "../secret\n").unwrap();
        let alternates = format!("{}\n", secret.join("objects").display());
        fs::write(place.join("objects/info/alternates"), alternates).unwrap();
        for hook in ["reference-transaction", "post-checkout", "pre-auto-gc", "post-merge"] {
            program(&place.join("hooks").join(hook), &format!("touch '{}'", ran.display()));
        }
    }
    let mut fetcher = Fetcher::open(&served.url(), &dir, &served.net.net).unwrap();
    let head = served.source.head();
    fetcher.commits(head).unwrap();
    fetcher.trees(head, &served.source.root_trees()).unwrap();
    assert!(fetcher.contains(&head));
    assert!(!ran.exists());
    assert!(!dir.join("objects/info/alternates").exists());
    assert_eq!(fs::read_to_string(dir.join("config")).unwrap().find("ssh"), None);
    assert!(fs::read_dir(secret.join("objects/pack")).unwrap().next().is_none());
}

#[test]
fn a_link_in_the_cache_costs_nobody_a_file() {
    let (root, net) = (tempfile::tempdir().unwrap(), Net::new());
    let server = HttpGit::start(root.path());
    let folder = tempfile::tempdir().unwrap();
    let precious = folder.path().join("precious");
    let files = ["tmp_thesis", "pack-thesis.pack", "notes.keep"];
    let (dir, url) = (folder.path().join("clone"), server.url("repo/.git"));
    for (link, target) in
        [("objects/pack", "pack"), ("objects", "."), ("", "."), ("galeras-git", "pack")]
    {
        fs::create_dir_all(precious.join("pack")).unwrap();
        for file in files {
            fs::write(precious.join("pack").join(file), "precious").unwrap();
        }
        let at = if link.is_empty() { dir.clone() } else { dir.join(link) };
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        symlink(precious.join(target), &at).unwrap();
        let opened = Fetcher::open(&url, &dir, &net.net);
        match link {
            "galeras-git" => drop(opened.unwrap()),
            _ => assert_eq!(opened.err().unwrap().kind, GitErrorKind::Damaged, "{link}"),
        }
        assert!(files.iter().all(|file| precious.join("pack").join(file).exists()), "{link}");
        match link {
            "" => fs::remove_file(&dir).unwrap(),
            _ => fs::remove_dir_all(&dir).unwrap(),
        }
    }
    assert_eq!(server.count(""), 0);
}

#[test]
fn addresses_that_could_be_options_or_programs_are_refused() {
    let net = Net::new();
    let ran = net.home.path().join("ran");
    for url in [
        "--upload-pack=touch".to_string(),
        format!("ext::touch {}", ran.display()),
        format!("ssh://-oProxyCommand=touch {}/x", ran.display()),
    ] {
        assert!(remote_head(&url, None, &net.net).is_err(), "{url}");
    }
    assert!(!ran.exists());
}

#[test]
fn a_shallow_server_is_refused() {
    let (source, net) = (Source::new(), Net::new());
    let file = format!("file://{}", source.repo().display());
    git(source.root.path(), &["clone", "-q", "--bare", "--depth", "2", &file, "cut"]);
    let cut = source.root.path().join("cut");
    let server = HttpGit::start(source.root.path());
    for filters in ["true", "false"] {
        git(&cut, &["config", "uploadpack.allowFilter", filters]);
        let folder = tempfile::tempdir().unwrap();
        let mut fetcher = Fetcher::open(&server.url("cut"), folder.path(), &net.net).unwrap();
        let error = fetcher.commits(source.head()).unwrap_err();
        assert!(error.message.contains("shallow clone itself"), "{error}");
    }
}

#[test]
fn a_damaged_pack_of_a_server_is_not_kept() {
    use std::os::unix::fs::PermissionsExt as _;
    let (source, net) = (Source::new(), Net::new());
    let head = source.bulk(300_000);
    source.git(&["repack", "-adq"]);
    source.git(&["config", "uploadpack.allowFilter", "false"]);
    let packs = source.repo().join(".git/objects/pack");
    for entry in fs::read_dir(packs).unwrap() {
        let file = entry.unwrap().path();
        if file.extension().is_some_and(|extension| extension == "pack") {
            fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
            let mut bytes = fs::read(&file).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0xff;
            fs::write(&file, &bytes).unwrap();
        }
    }
    let server = HttpGit::start(source.root.path());
    let daemon = super::Daemon::start(source.root.path());
    for url in [server.url("repo/.git"), daemon.url("repo")] {
        let folder = tempfile::tempdir().unwrap();
        let mut fetcher = Fetcher::open(&url, folder.path(), &net.net).unwrap();
        fails(fetcher.commits(head), GitErrorKind::Damaged, "");
        assert!(!fetcher.contains(&head));
        assert_eq!(local(folder.path()).len(), 0);
    }
}

/// Git asks it for its references and its HEAD, but for no object.
#[test]
fn a_web_page_is_not_a_git_server() {
    let served = TestServer::new();
    let page = vec![("Content-Type".to_string(), "text/html".to_string())];
    served.server.fail("", 99, GitFault::StatusWith(200, page));
    fails(served.head(), GitErrorKind::Other, "no git server");
    assert_eq!((served.net.waits(), served.server.count("objects")), (0, 0));
}
