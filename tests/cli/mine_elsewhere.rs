//! `query` and `mine`: folders that lead to repositories elsewhere, which need consent as if they
//! were named, and those that do not end.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::harness::{Outcome, Project, flat, says};
use crate::repository::{Repository, at, day, def, mined, workflow};

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
fn a_folder_that_is_named_needs_consent_for_where_it_leads() {
    for (how, lead) in LEADS {
        let (project, _) = project(&workflow("./r", ""), lead);
        let private = project.path("../private").canonicalize().unwrap();
        not_allowed(&project.run_json(&[]).exits(2), &private);
        assert!(project.stored_nothing(), "{how}");
        project.run(&["plan", "w.yaml"]).exits(0).prints(&[private.to_str().unwrap()]);
        project.run_ok(&["--allow", "read:../private"]);
        assert_eq!(mined(&project).rows.len(), 1, "{how}");
    }
}

#[test]
fn a_folder_of_a_row_that_leads_elsewhere_is_put_aside_with_the_flag() {
    let text = workflow("", "").replace("op: query", "op: read");
    let text = text.replace("repos: []", "path: heads.csv, key: [repo]");
    for (how, lead) in LEADS {
        let (project, head) = project(&text, lead);
        project.write("heads.csv", format!("repo,clone_url,head_sha\nr,./r,{head}\n"));
        project.run_ok(&[]);
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
    let outcome = project.run_ok(&[]);
    assert_eq!(mined(&project).column("repo"), ["good"], "{outcome}");
    let rejects = project.cells("repos.rejects", "repo reason");
    assert_eq!(rejects.len(), 2, "{rejects:?}");
    says(&rejects[0], &["r | ", "r/config` has"]);
    says(&rejects[1], &["s | ", "s/shallow` is a named pipe"]);
}

/// Messages of an ssh server reach the terminal only as part of an error, or as a warning.
#[test]
fn messages_of_ssh_do_not_steer_the_terminal() {
    use std::os::unix::fs::PermissionsExt as _;
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
        let outcome = project.run_in_env(&command, &args).exits(0);
        let said = format!("{}{}", outcome.stdout, outcome.stderr);
        assert!(!said.contains(['\x1b', '\x07']), "{said:?}");
        says(&flat(&said), &["git reports: \\u{1b}]0;owned\\u{7}welcome"]);
    };
    ssh("exit 1");
    assert!(mined(&project).rows.is_empty());
    ssh("exec git-upload-pack ../served");
    assert_eq!(mined(&project).rows.len(), 1);
}
