//! `query` and `mine`: folders that lead to repositories elsewhere, which need consent as if they
//! were named, and those that do not end; private repositories, which the user's own git can read.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use crate::harness::{Outcome, Project, files_below, flat, says};
use crate::repository::{Repository, at, day, def, mined, workflow};
use galeras_test_servers::http_git::{CERTIFICATE, HttpGit};

/// How a folder leads to the repository `../private`, whose head this is.
type Lead = fn(&Project, &str);

const LEADS: [(&str, Lead); 5] = [
    ("commondir", |project, _| {
        skeleton(project);
        project.write("r/commondir", "../../private/.git");
    }),
    ("a .git file", |project, _| project.write("r/.git", "gitdir: ../../private/.git")),
    ("a link", |project, _| {
        fs::create_dir(project.path("r")).unwrap();
        symlink("../../private/.git", project.path("r/.git")).unwrap();
    }),
    ("alternates", |project, head| {
        skeleton(project);
        project.write("r/refs/heads/main", head);
        project.write("r/objects/info/alternates", "../../../private/.git/objects\n");
    }),
    ("links to objects", |project, head| {
        skeleton(project);
        project.write("r/refs/heads/main", head);
        let objects = project.path("../private/.git/objects");
        for entry in fs::read_dir(&objects).unwrap() {
            let name = entry.unwrap().file_name();
            if !project.path("r/objects").join(&name).exists() {
                symlink(objects.join(&name), project.path("r/objects").join(&name)).unwrap();
            }
        }
    }),
];

/// A bare repository `r` without objects.
fn skeleton(project: &Project) {
    for file in ["r/objects/.keep", "r/refs/.keep"] {
        project.write(file, "");
    }
    project.write("r/HEAD", "ref: refs/heads/main\n");
}

/// A project next to the repository `private`, to which its folder `r` leads.
fn project(workflow: &str, lead: Lead) -> (Project, String) {
    let project = Project::new(workflow);
    let private = Repository::with_work_tree(project.path("../private"));
    let head = private.commit(at(day(1)).write("m.py", def("secret", 1)));
    lead(&project, &head);
    (project, head)
}

#[track_caller]
fn not_allowed(outcome: &Outcome, private: &Path) {
    let said = outcome.diagnostics();
    assert!(!said.is_empty(), "{outcome}");
    assert!(said.iter().all(|one| one.starts_with("not-allowed w.yaml:")), "{outcome}");
    assert!(outcome.stdout.contains(private.to_str().unwrap()), "{outcome}");
}

#[test]
fn a_named_folder_that_leads_elsewhere_needs_consent_and_one_of_a_row_is_put_aside() {
    for (how, lead) in LEADS {
        let (project, _) = project(&workflow("./r", ""), lead);
        let private = project.path("../private").canonicalize().unwrap();
        not_allowed(&project.run_program().exits(2), &private);
        assert!(project.stored_nothing(), "{how}");
        project.run(&["plan", "w.yaml"]).exits(0).prints(&[private.to_str().unwrap()]);
        project.run_ok(&["--allow", "read:../private"]);
        assert_eq!(mined(&project).rows.len(), 1, "{how}");
    }
    let text = workflow("", "").replace("op: query", "op: read");
    let text = text.replace("repos: []", "path: heads.csv, key: [repo]");
    for (how, lead) in LEADS {
        let (project, head) = project(&text, lead);
        project.write("heads.csv", format!("repo,clone_url,head_sha\nr,./r,{head}\n"));
        project.run_program().exits(0);
        let found = mined(&project);
        assert!(found.rows.is_empty(), "{how}");
        let reason = found.rejects[0]["reason"].as_str().unwrap();
        let private = project.path("../private").canonicalize().unwrap();
        let flag = format!("--allow read:{}", private.display());
        assert!(reason.contains(&flag), "{how}: {reason}");
        project.run_ok(&["--allow", "read:../private"]);
        assert_eq!(mined(&project).rows.len(), 1, "{how}");
    }
}

/// A list that a file gives is an argument, too; a folder that is named by `--set` is named, and not
/// where it leads.
#[test]
fn every_way_to_name_a_folder_asks() {
    let text = workflow("", "").replace("[]", "list.csv");
    let (listed, _) = project(&text, LEADS[0].1);
    listed.write("list.csv", "./r\n");
    not_allowed(&listed.run_json(&[]).exits(2), &listed.path("../private").canonicalize().unwrap());
    let text = workflow("", "").replace("repos: []", "repos: '${{ params.list }}'");
    let text = text.replace("steps:", "params:\n  list: { type: string, default: '' }\nsteps:");
    let (set, _) = project(&text, LEADS[1].1);
    let private = set.path("../private").canonicalize().unwrap();
    not_allowed(&set.run_json(&["--set", "list=./r"]).exits(2), &private);
    set.run_ok(&["--set", "list=../private"]);
    assert_eq!(mined(&set).rows.len(), 1);
}

#[test]
fn a_folder_with_a_file_without_an_end_is_a_reject_that_names_it() {
    let project = Project::new(&workflow("./good, ./r, ./s", ""));
    for name in ["good", "r", "s"] {
        let repo = Repository::bare(project.path(name));
        repo.commit(at(day(1)).write("m.py", def(name, 1)));
    }
    let config = fs::File::options().write(true).open(project.path("r/config")).unwrap();
    config.set_len(1 << 40).unwrap();
    let pipe = project.path("s/shallow");
    assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
    let outcome = project.run_program().exits(0);
    assert_eq!(mined(&project).column("repo"), ["good"], "{outcome}");
    let rejects = project.cells("repos.rejects", "repo reason");
    assert_eq!(rejects.len(), 2, "{rejects:?}");
    says(&rejects[0], &["r | ", "r/config` has"]);
    says(&rejects[1], &["s | ", "s/shallow` is a named pipe"]);
}

/// Messages of an ssh server reach the terminal only as part of an error, or as a warning.
#[test]
fn messages_of_ssh_do_not_steer_the_terminal() {
    let project = Project::new(&workflow("'ssh://example.test/r'", ""));
    let repo = Repository::bare(project.path("../served"));
    repo.commit(at(day(1)).write("m.py", def("f", 1)));
    let path = project.path("../ssh");
    let ssh = |end: &str| {
        let script = format!("#!/bin/sh\nprintf '\\033]0;owned\\007welcome\\n' >&2\n{end}\n");
        project.write("../ssh", script);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let args = ["run", "w.yaml", "--force", "repos", "--allow", "host:ssh://example.test"];
        let command = [("GIT_SSH_COMMAND", path.to_str().unwrap())];
        let outcome = project.run_with(&args, &command).exits(0);
        let said = format!("{}{}", outcome.stdout, outcome.stderr);
        assert!(!said.contains(['\x1b', '\x07']), "{said:?}");
        says(&flat(&said), &["git reports: \\u{1b}]0;owned\\u{7}welcome"]);
    };
    ssh("exit 1");
    assert!(mined(&project).rows.is_empty());
    ssh("exec git-upload-pack ../served");
    assert_eq!(mined(&project).rows.len(), 1);
}

fn served() -> (Project, Repository) {
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
    project.run_program().exits(0).all_hit();
}

#[test]
fn private_repositories_are_mined_with_a_credential_helper_or_a_host_alias_of_ssh() {
    let (project, _repo) = served();
    let server = HttpGit::start_tls(&project.path("../served"));
    server.require_login("ann", "s3cr3t");
    project.write("w.yaml", workflow(&format!("{{ repo: r, url: '{}' }}", server.url("r")), ""));
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
    project.write("../home/.gitconfig", format!("{tls}[credential]\n\thelper = {helper}\n"));
    let outcome = project.run_program().exits(0);
    is_mined(&project, &outcome);
    let all = format!("{outcome}{:?}", mined(&project).rows);
    assert!(!all.contains("s3cr3t"), "{all}");
    for file in files_below(&project.path("cache")) {
        let bytes = fs::read(&file).unwrap();
        assert!(!bytes.windows(6).any(|part| part == b"s3cr3t"), "{}", file.display());
    }
    // `ssh` on the path reads `~/.ssh/config` as OpenSSH does: the alias is all that it is given.
    let (project, repo) = served();
    project.write("w.yaml", workflow(&format!("'lab:{}'", repo.path.display()), ""));
    project.write("../home/.ssh/config", "Host lab\n  HostName 127.0.0.1\n  Port 2222\n");
    let script = "while [ \"$1\" = -o ]; do shift 2; done\n\
        grep -qx \"Host $1\" \"$HOME/.ssh/config\" || { echo \"no host $1\" >&2; exit 255; }\n\
        shift; exec sh -c \"$*\"";
    program(&project, "../bin/ssh", script);
    let bin = project.path("../bin").display().to_string();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap());
    let run = |args: &[&str]| project.run_with(args, &[("PATH", path.as_str())]);
    // It uses the user's keys, and so it needs consent.
    run(&["run", "w.yaml"]).exits(2).reports(&["host:ssh://lab"]);
    let args = ["run", "w.yaml", "--format", "json", "--allow", "host:ssh://lab"];
    is_mined(&project, &run(&args).exits(0));
}

/// The address of the workflow is the one that needs consent and is stored; the user's own
/// configuration decides where git looks.
#[test]
fn instead_of_and_proxies_of_the_user_count_and_without_git_servers_are_rejects() {
    let (project, _repo) = served();
    let server = HttpGit::start(&project.path("../served"));
    let url = "https://git.example.org/r";
    project.write("w.yaml", workflow(&format!("{{ repo: r, url: '{url}' }}"), ""));
    let config = format!("[url \"{}/\"]\n\tinsteadOf = https://git.example.org/\n", server.base());
    project.write("../home/.gitconfig", config);
    is_mined(&project, &project.run_program().exits(0));
    assert_eq!(mined(&project).rows[0]["url"], url);
    server.take_seen();
    project.write("w.yaml", workflow("{ repo: r, url: 'http://git.example.org/r' }", ""));
    project.write("../home/.gitconfig", format!("[http]\n\tproxy = {}\n", server.base()));
    let allow = ["--allow", "host:http://git.example.org", "--cache", "by-proxy"];
    let outcome = project.run_ok(&allow);
    assert_eq!(outcome.step("mined")["rows"], 3, "{outcome}");
    let seen = server.take_seen();
    assert!(seen.iter().all(|seen| seen.path.starts_with("http://git.example.org/r/")), "{seen:?}");
    let (project, repo) = served();
    let server = HttpGit::start(&project.path("../served"));
    let near = Repository::bare(project.path("near"));
    near.commit(at(day(1)).write("m.py", def("f", 1)));
    let list = format!("./near, {{ repo: r, url: '{}' }}", server.url("r"));
    project.write("w.yaml", workflow(&list, ""));
    fs::create_dir(project.path("../bin")).unwrap();
    let path = project.path("../bin").display().to_string();
    let args = ["run", "w.yaml", "--format", "json"];
    let outcome = project.run_with(&args, &[("PATH", path.as_str())]).exits(0);
    assert_eq!(mined(&project).column("repo"), ["near"], "{outcome}");
    says(&project.cells("repos.rejects", "reason")[0], &["install git 2.36 or later"]);
    // The next run asks again.
    let outcome = project.run_program().exits(0);
    assert_eq!(outcome.step("mined")["rows"], 4, "{outcome}");
    let _ = repo;
}
