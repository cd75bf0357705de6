//! `query` and `mine`: private repositories, which the user's own git can read.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::harness::{Outcome, Project, says};
use crate::repository::{Repository, at, day, def, mined, workflow};
use galeras_test_servers::http_git::{CERTIFICATE, HttpGit};

fn project() -> (Project, Repository) {
    let project = Project::empty();
    let repo = Repository::bare(project.path("../served/r"));
    for n in 1..4 {
        repo.commit(at(day(n)).write("pkg/m.py", def("f", n)));
    }
    repo.git(&["config", "uploadpack.allowFilter", "true"]);
    (project, repo)
}

fn program(project: &Project, name: &str, text: &str) -> String {
    project.write(name, format!("#!/bin/sh\n{text}\n"));
    let path = project.path(name);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[track_caller]
fn is_mined(project: &Project, outcome: &Outcome) {
    assert_eq!(outcome.events("warning").len(), 0, "{outcome}");
    assert_eq!(mined(project).rows.len(), 3, "{outcome}");
    project.run_ok(&[]).all_hit();
}

#[test]
fn a_private_repository_over_https_is_mined_with_the_users_credential_helper() {
    let (project, _repo) = project();
    let server = HttpGit::start_tls(&project.path("../served"));
    server.require_login("ann", "s3cr3t");
    let list = format!("{{ repo: r, url: '{}' }}", server.url("r"));
    project.write("w.yaml", workflow(&list, ""));
    project.write("../home/certificate.pem", CERTIFICATE);
    let helper = "[ \"$1\" = get ] && printf 'username=ann\\npassword=s3cr3t\\n'";
    let helper = program(&project, "../home/helper", helper);
    let tls = "[http]\n\tsslCAInfo = ~/certificate.pem\n";
    // Without a certificate that is trusted, and without a login, the reason is reported.
    for (config, words) in [("", "certificate"), (tls, "asks for a login")] {
        project.write("../home/.gitconfig", config);
        project.run_ok(&["--cache", "refused"]).prints(&[words]);
        fs::remove_dir_all(project.path("refused")).unwrap();
    }
    let config = format!("{tls}[credential]\n\thelper = {helper}\n");
    project.write("../home/.gitconfig", config);
    let outcome = project.run_ok(&[]);
    is_mined(&project, &outcome);
    let all = format!("{outcome}{:?}", mined(&project).rows);
    assert!(!all.contains("s3cr3t"), "{all}");
    for file in crate::harness::files_below(&project.path("cache")) {
        let bytes = fs::read(&file).unwrap();
        assert!(!bytes.windows(6).any(|part| part == b"s3cr3t"), "{}", file.display());
    }
}

/// `ssh` on the path reads `~/.ssh/config` as OpenSSH does: the alias is all that it is given.
#[test]
fn a_private_repository_behind_a_host_alias_of_ssh_is_mined() {
    let (project, repo) = project();
    project.write("w.yaml", workflow(&format!("'lab:{}'", repo.path.display()), ""));
    project.write("../home/.ssh/config", "Host lab\n  HostName 127.0.0.1\n  Port 2222\n");
    let script = "while [ \"$1\" = -o ]; do shift 2; done\n\
        grep -qx \"Host $1\" \"$HOME/.ssh/config\" || { echo \"no host $1\" >&2; exit 255; }\n\
        shift; exec sh -c \"$*\"";
    program(&project, "../bin/ssh", script);
    let bin = project.path("../bin").display().to_string();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap());
    let run = |args: &[&str]| project.run_in_env(&[("PATH", path.as_str())], args);
    // It uses the user's keys, and so it needs consent.
    run(&["run", "w.yaml"]).exits(2).complains(&["host:ssh://lab"]);
    let args = ["run", "w.yaml", "--format", "json", "--allow", "host:ssh://lab"];
    is_mined(&project, &run(&args).exits(0));
}

/// The address of the workflow is the one that needs consent and is stored; the user's own
/// configuration decides where git looks.
#[test]
fn instead_of_and_proxies_of_the_user_count() {
    let (project, _repo) = project();
    let server = HttpGit::start(&project.path("../served"));
    let url = "https://git.example.org/r";
    project.write("w.yaml", workflow(&format!("{{ repo: r, url: '{url}' }}"), ""));
    let config = format!("[url \"{}/\"]\n\tinsteadOf = https://git.example.org/\n", server.base());
    project.write("../home/.gitconfig", config);
    is_mined(&project, &project.run_ok(&[]));
    assert_eq!(mined(&project).rows[0]["url"], url);
    server.take_seen();
    let text = workflow("{ repo: r, url: 'http://git.example.org/r' }", "");
    project.write("w.yaml", text);
    project.write("../home/.gitconfig", format!("[http]\n\tproxy = {}\n", server.base()));
    let allow = ["--allow", "host:http://git.example.org", "--cache", "by-proxy"];
    let outcome = project.run_ok(&allow);
    assert_eq!(outcome.step("mined")["rows"], 3, "{outcome}");
    let seen = server.take_seen();
    assert!(seen.iter().all(|seen| seen.path.starts_with("http://git.example.org/r/")), "{seen:?}");
}

#[test]
fn without_git_folders_are_mined_and_servers_are_rejects_that_say_so() {
    let (project, repo) = project();
    let server = HttpGit::start(&project.path("../served"));
    let near = Repository::bare(project.path("near"));
    near.commit(at(day(1)).write("m.py", def("f", 1)));
    let list = format!("./near, {{ repo: r, url: '{}' }}", server.url("r"));
    project.write("w.yaml", workflow(&list, ""));
    fs::create_dir(project.path("../bin")).unwrap();
    let path = project.path("../bin").display().to_string();
    let args = ["run", "w.yaml", "--format", "json"];
    let outcome = project.run_in_env(&[("PATH", path.as_str())], &args).exits(0);
    assert_eq!(mined(&project).column("repo"), ["near"], "{outcome}");
    says(&project.cells("repos.rejects", "reason")[0], &["install git 2.36 or later"]);
    // The next run asks again.
    let outcome = project.run_ok(&[]);
    assert_eq!(outcome.step("mined")["rows"], 4, "{outcome}");
    let _ = repo;
}
