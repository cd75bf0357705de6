//! `galeras.lock`: everyone who runs the workflow gets the same commits.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::generate_lock::{lock, locked};
use crate::harness::{Project, marked, says};
use crate::repository::{Repository, at, day, def, mined, workflow};
use galeras_test_servers::http_git::{GitFault, HttpGit};

const FROZEN: [&str; 3] = ["run", "w.yaml", "--frozen"];

fn project() -> (Project, Repository) {
    let project = Project::new(&workflow("./r", ""));
    let repo = Repository::bare(project.path("r"));
    repo.commit(at(day(1)).write("m.py", def("f", 1)));
    (project, repo)
}

fn remote() -> (Project, Repository, HttpGit) {
    let project = Project::empty();
    let repo = Repository::bare(project.path("served/r"));
    repo.commit(at(day(1)).write("m.py", def("f", 1)));
    let server = HttpGit::start(&project.path("served"));
    project.write("w.yaml", workflow(&format!("{{ repo: r, url: '{}' }}", server.url("r")), ""));
    (project, repo, server)
}

#[test]
fn a_run_uses_the_pinned_commits_although_the_world_has_moved_on() {
    let (project, repo) = project();
    lock(&project).complains(&["galeras.lock"]);
    repo.commit(at(day(2)).write("m.py", def("f", 2)));
    let outcome = project.run_ok(&[]);
    assert_eq!(mined(&project).rows.len(), 1, "{outcome}");
    project.run_ok(&[]).all_hit();
    // Without the file, the new commit counts.
    let pinned = project.read("galeras.lock");
    fs::remove_file(project.path("galeras.lock")).unwrap();
    project.run_ok(&[]);
    assert_eq!(mined(&project).rows.len(), 2);
    // Locking again moves on.
    project.write("galeras.lock", pinned);
    lock(&project);
    let head = repo.git(&["rev-parse", "main"]);
    assert_eq!(locked(&project)["snapshots"][0]["rows"][0]["head_sha"], head);
    project.run_ok(&[]);
    assert_eq!(mined(&project).rows.len(), 2);
}

#[test]
fn the_file_says_what_was_asked_and_answered() {
    let (project, repo) = project();
    lock(&project);
    let lock = locked(&project);
    assert_eq!(lock["galeras_lock"], 1);
    let snapshot = &lock["snapshots"][0];
    assert_eq!(snapshot["operator"], "query");
    assert_eq!(snapshot["workflows"][0], "w.yaml");
    let row = &snapshot["rows"][0];
    assert_eq!((&row["repo"], &row["clone_url"]), (&"r".into(), &"./r".into()));
    assert_eq!(row["head_sha"], repo.git(&["rev-parse", "main"]));
    // One repository is one line, and no place of this machine is in it.
    let text = project.read("galeras.lock");
    let lines = text.lines().filter(|line| line.contains("head_sha")).count();
    assert_eq!(lines, 1);
    assert!(!text.contains(project.root().to_str().unwrap()), "{text}");
    assert!(text.ends_with('\n'));
    // Locking twice says that nothing changed.
    crate::generate_lock::lock(&project).complains(&["up to date"]);
    assert_eq!(project.read("galeras.lock"), text);
}

#[test]
fn a_run_with_another_program_than_the_locks_says_so_and_a_frozen_one_is_refused() {
    let (project, _) = project();
    lock(&project);
    let own = env!("CARGO_PKG_VERSION");
    assert_eq!(locked(&project)["programs"][0]["version"], own);
    project.run_ok(&["--frozen"]);
    let line = format!("\"workflow\":\"w.yaml\",\"version\":\"{own}\"");
    project.edit("galeras.lock", &line, &line.replace(own, "0.0.9"));
    let found = "other-program w.yaml:1:1";
    assert_eq!(project.run_ok(&[]).diagnostics(), [found]);
    project.refuses(&["--frozen"], found, &[]);
    project.run(&FROZEN).exits(2).complains(&["written by galeras 0.0.9"]);
    // Locking again with this program is what it takes.
    lock(&project);
    project.run_ok(&["--frozen"]).all_hit();
}

#[test]
fn a_frozen_run_without_a_lock_or_of_a_branch_of_mine_is_refused() {
    let (text, place) = marked(&workflow("./r", "").replace("  repos: {", "  «repos: {"));
    let project = Project::new(&text);
    Repository::bare(project.path("r")).commit(at(day(1)).write("m.py", def("f", 1)));
    project.refuses(&["--frozen"], &format!("not-locked w.yaml:{place}"), &[]);
    project.run(&FROZEN).exits(2).complains(&["galeras lock w.yaml"]);
    assert!(project.stored_nothing());
    let (text, place) = marked(&workflow("./r", "branch: main").replace("  mined:", "  «mined:"));
    let project = Project::new(&text);
    Repository::bare(project.path("r")).commit(at(day(1)).write("m.py", def("f", 1)));
    lock(&project).complains(&["mined", "not pinned"]);
    let found = format!("not-locked w.yaml:{place}");
    let outcome = project.refuses(&["--frozen"], &found, &[]);
    says(&outcome.events("diagnostic")[0]["message"].to_string(), &["main", "query"]);
    project.run_ok(&[]);
    assert_eq!(mined(&project).rows.len(), 1);
}

#[test]
fn a_frozen_run_gives_the_same_with_an_empty_store_and_asks_for_no_heads() {
    let (project, repo) = project();
    lock(&project);
    let first = project.run_ok(&["--frozen"]);
    repo.commit(at(day(2)).write("m.py", def("f", 2)));
    let second = project.run_ok(&["--frozen", "--cache", "another"]);
    assert_eq!(second.digests(), first.digests());
    assert_eq!(second.step("mined")["rows"], 1);
    // Other white space and order in the file are the same file.
    let pretty = serde_json::to_string_pretty(&locked(&project)).unwrap();
    project.write("galeras.lock", pretty.replace('\n', "\r\n"));
    project.run_ok(&["--frozen"]).all_hit();
    // A frozen run does not ask for heads.
    let (project, repo, server) = remote();
    lock(&project);
    let first = project.run_ok(&["--frozen"]);
    server.take_seen();
    repo.commit(at(day(2)).write("m.py", def("f", 2)));
    // On another machine: an empty store. The commits are fetched, heads are not asked for.
    let second = project.run_ok(&["--frozen", "--cache", "another", "--select", "repos"]);
    assert_eq!(server.count(""), 0);
    assert_eq!(second.step("repos")["digest"], first.step("repos")["digest"]);
    assert_eq!(project.run_ok(&["--frozen", "--cache", "another"]).digests(), first.digests());
    assert!(server.count("") > 0);
    server.take_seen();
    project.run_ok(&["--frozen"]).all_hit();
    assert_eq!(server.count(""), 0);
}

#[test]
fn another_question_is_not_locked() {
    let (project, repo) = project();
    lock(&project);
    repo.commit(at(day(2)).on("side").write("m.py", def("f", 2)));
    project.change("repos: [./r]", "repos: [./r], branch: side");
    let outcome = project.run_json(&["--frozen"]).exits(2);
    assert!(outcome.diagnostics()[0].starts_with("not-locked"), "{outcome}");
    // Not frozen, it is asked.
    project.run_ok(&[]);
    assert_eq!(project.rows("repos")[0]["default_branch"], "side");
    // Locked, the old answer goes.
    lock(&project);
    assert_eq!(locked(&project)["snapshots"].as_array().unwrap().len(), 1);
    project.run_ok(&["--frozen"]);
}

#[test]
fn an_edited_lock_file_is_refused() {
    let (project, repo) = project();
    lock(&project);
    let good = project.read("galeras.lock");
    let head = repo.git(&["rev-parse", "main"]);
    let broken = [
        good.replace(&head, &"1".repeat(40)),
        good.replace(
            "\"repo\":\"r\",\"clone_url\":\"./r\"",
            "\"repo\":\"x\",\"clone_url\":\"./r\"",
        ),
        good[..good.len() / 2].to_owned(),
        String::new(),
        "<<<<<<< HEAD\n".to_owned() + &good,
        good.replace("\"galeras_lock\": 1", "\"galeras_lock\": 2"),
    ];
    for text in broken {
        assert_ne!(text, good);
        project.write("galeras.lock", &text);
        for args in [&[][..], &["--frozen"]] {
            let outcome = project.run_json(args).exits(2);
            assert_eq!(outcome.events("diagnostic")[0]["code"], "bad-lock", "{text}\n{outcome}");
        }
        project.run(&["run", "w.yaml"]).exits(2).complains(&["galeras.lock"]);
    }
    // `lock` writes it again.
    lock(&project);
    assert_eq!(locked(&project)["snapshots"][0]["rows"], {
        let good: Value = serde_json::from_str(&good).unwrap();
        good["snapshots"][0]["rows"].clone()
    });
    project.run_ok(&["--frozen"]);
}

#[test]
fn two_workflows_of_a_folder_share_the_file() {
    let (project, repo) = project();
    let other = Repository::bare(project.path("s"));
    other.commit(at(day(1)).write("s.py", def("s", 1)));
    project.write("v.yaml", workflow("./s", ""));
    project.write("u.yaml", workflow("./r", "nested: true"));
    lock(&project);
    for name in ["v.yaml", "u.yaml"] {
        project.run(&["lock", name]).exits(0);
    }
    let lock = locked(&project);
    let snapshots = lock["snapshots"].as_array().unwrap();
    let mut workflows: Vec<String> =
        snapshots.iter().map(|snapshot| snapshot["workflows"].to_string()).collect();
    workflows.sort();
    assert_eq!(workflows, ["[\"u.yaml\",\"w.yaml\"]", "[\"v.yaml\"]"]);
    for name in ["w.yaml", "v.yaml", "u.yaml"] {
        project.run(&["run", name, "--frozen"]).exits(0);
    }
    // Locking one leaves what only another one asks alone.
    repo.commit(at(day(2)).write("m.py", def("f", 2)));
    other.commit(at(day(2)).write("s.py", def("s", 2)));
    project.run(&["lock", "w.yaml"]).exits(0);
    for (name, commits) in [("w.yaml", 2), ("u.yaml", 2), ("v.yaml", 1)] {
        project.run(&["run", name, "--frozen"]).exits(0);
        let args = ["show", name, "mined", "--format", "json"];
        assert_eq!(project.run(&args).exits(0).json_lines().len(), commits, "{name}");
    }
}

#[test]
fn to_force_a_pinned_step_warns_and_asks_nobody() {
    let (project, repo) = project();
    lock(&project);
    project.run_ok(&[]);
    repo.commit(at(day(2)).write("m.py", def("f", 2)));
    let outcome = project.run_ok(&["--force", "repos"]);
    let warnings = outcome.events("warning");
    assert_eq!((warnings.len(), &warnings[0]["step"]), (1, &"repos".into()), "{outcome}");
    says(&outcome.warnings()[0], &["galeras.lock"]);
    assert_eq!(mined(&project).rows.len(), 1);
    // Steps that are not pinned are forced without a word.
    assert!(project.run_ok(&["--force", "mined"]).events("warning").is_empty());
}

#[test]
fn what_cannot_be_reached_leaves_the_file_untouched() {
    let (project, repo, server) = remote();
    let busy = || GitFault::StatusWith(503, vec![("Retry-After".into(), "0".into())]);
    server.fail("r/", 100, busy());
    project.run(&["lock", "w.yaml"]).exits(1).complains(&["galeras.lock"]);
    assert!(!project.path("galeras.lock").exists());
    server.heal();
    lock(&project);
    let before = project.read("galeras.lock");
    repo.commit(at(day(2)).write("m.py", def("f", 2)));
    server.fail("r/", 100, busy());
    project.run(&["lock", "w.yaml"]).exits(1);
    assert_eq!(project.read("galeras.lock"), before);
    server.heal();
    // The pinned commit is still used.
    project.run_ok(&["--frozen"]);
    assert_eq!(mined(&project).rows.len(), 1);
}

#[test]
fn a_repository_without_a_commit_is_a_reject_of_a_locked_run_too() {
    let (project, _) = project();
    Repository::bare(project.path("empty"));
    let free = project.rerun("[./r]", "[./r, ./empty]");
    assert_eq!(project.rows("repos.rejects").len(), 1);
    lock(&project);
    let locked = project.run_ok(&["--frozen"]);
    assert_eq!(project.rows("repos.rejects").len(), 1, "every dropped row says where and why");
    assert_eq!(locked.digests(), free.digests());
}

#[test]
fn a_pinned_commit_that_was_pushed_away_is_mined_as_long_as_it_is_there() {
    let (project, repo) = project();
    let old = repo.commit(at(day(2)).write("m.py", def("f", 2)));
    lock(&project);
    let first = project.run_ok(&["--frozen"]);
    repo.commit(at(day(3)).after(&[]).write("n.py", def("n", 1)));
    assert_eq!(project.run_ok(&["--frozen", "--cache", "another"]).digests(), first.digests());
    assert_eq!(mined(&project).rows[1]["commit_id"], old);
    // When it is gone, it is a reject that names it.
    repo.git(&["reflog", "expire", "--expire=now", "--all"]);
    repo.git(&["gc", "-q", "--prune=now"]);
    project.run_ok(&["--frozen", "--cache", "third"]);
    let rejects = project.rows_with("mined.rejects", &["--cache", "third"]);
    assert_eq!(rejects.len(), 1);
    says(&rejects[0]["reason"].to_string(), &[&old[..7]]);
}

#[test]
fn a_workflow_without_a_question_has_nothing_to_pin() {
    let project =
        Project::new("galeras: 1\nsteps:\n  data: { op: read, with: { path: data.csv } }\n");
    project.write("data.csv", "id\na\n");
    project.run(&["lock", "w.yaml"]).exits(0);
    project.run_ok(&["--frozen"]);
}

#[test]
fn two_that_lock_at_once_lose_no_pin() {
    let (project, _) = project();
    project.write("v.yaml", project.read("w.yaml"));
    project.run(&["lock", "v.yaml"]).exits(0);
    let of_the_other = project.read("galeras.lock");
    fs::remove_file(project.path("galeras.lock")).unwrap();
    // As the other does between its reading and its writing.
    let other = File::open(project.root()).unwrap();
    other.lock().unwrap();
    let mut command = project.command(&["lock", "w.yaml"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(said.any(|line| line.contains("waiting for the process that writes")));
    project.write("galeras.lock", &of_the_other);
    drop(other);
    let rest: Vec<String> = said.collect();
    assert!(child.wait().unwrap().success(), "{rest:?}");
    let workflows = &locked(&project)["snapshots"][0]["workflows"];
    assert_eq!(workflows, &serde_json::json!(["v.yaml", "w.yaml"]));
}
