//! `galeras.lock`: everyone who runs the workflow gets the same commits, and answers of another
//! version of a model are not used.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::generate_anthropic::WORKFLOW as ANTHROPIC;
use crate::generate_completions::WORKFLOW as COMPLETIONS;
use crate::generate_openai::{self, answers, data, served, served_of};
use crate::harness::{Outcome, Project, flat, marked, says, values};
use crate::repository::{Repository, at, day, def, mined, workflow};
use galeras_test_servers::chat_api::{ChatApi, ChatFault, ChatRequest, MODEL, VERSION};
use galeras_test_servers::http_git::{GitFault, HttpGit};

#[track_caller]
fn lock(project: &Project) -> Outcome {
    project.run(&["lock", "w.yaml"]).exits(0)
}

fn locked(project: &Project) -> Value {
    serde_json::from_str(&project.read("galeras.lock")).unwrap()
}

fn reported(project: &Project) -> Vec<String> {
    let rows = answers(project);
    rows.values().map(|row| row["reported_model"].as_str().unwrap().to_owned()).collect()
}

/// A run that ends since the model has another version than the pinned one.
#[track_caller]
fn drifts(project: &Project, now: &str) -> Outcome {
    project.fails("answers", &[VERSION, now, MODEL, "galeras lock"])
}

#[test]
fn results_for_pinned_versions_are_found_only_with_the_lock_file() {
    let (api, project) = served(2, "");
    lock(&project);
    project.run_ok(&[]);
    project.run(&["push", "w.yaml", "--remote", "remote"]).exits(0);
    let missing = "warning: galeras.lock is missing: results of `answers` may be in the remote";
    let from = |verb: &'static str| [verb, "w.yaml", "--remote", "remote", "--cache", "other"];
    fs::rename(project.path("galeras.lock"), project.path("kept")).unwrap();
    for verb in ["plan", "pull"] {
        says(&flat(&project.run(&from(verb)).exits(0).stderr), &[missing]);
    }
    fs::rename(project.path("kept"), project.path("galeras.lock")).unwrap();
    let pulled = project.run(&from("pull")).exits(0);
    assert!(!pulled.stderr.contains("is missing"), "{pulled}");
    api.take();
    project.run_ok(&["--cache", "other"]).all_hit();
    assert_eq!(api.count(), 0);
}

#[test]
fn locking_asks_one_small_question_and_pins_the_version() {
    let (api, project) = served(20, "max_tokens: 500, temperature: 0.5, samples: 3");
    lock(&project).reports(&["1 model pinned"]);
    let asked = api.take();
    assert_eq!(asked.len(), 1);
    assert_eq!(values(&asked[0].body, "max_tokens model"), json!([1, MODEL]));
    assert!(asked[0].text.len() < 300, "{}", asked[0].text);
    let wanted = json!([{
        "operator": "generate", "of": {"base_url": api.url(), "model": MODEL},
        "version": VERSION, "workflows": ["w.yaml"],
    }]);
    assert_eq!(locked(&project)["versions"], wanted);
    assert!(project.stored_nothing(), "nothing was computed");
    lock(&project).reports(&["up to date"]);
    let (api, project) = served(1, "extra_body: { max_completion_tokens: 50 }");
    lock(&project);
    let body = api.take().remove(0).body;
    assert_eq!(values(&body, "max_tokens max_completion_tokens"), json!([null, 50]));
}

#[test]
fn every_protocol_is_asked_in_its_words() {
    let body = |said: &str, what: Value| json!({"model": "tiny", said: what, "max_tokens": 1, "stream": false});
    let prompt = body("prompt", json!("Hi"));
    let chat = body("messages", json!([{"role": "user", "content": "Hi"}]));
    let thinking = "extra_body: { thinking: { type: enabled, budget_tokens: 32 } }";
    for (workflow, more, path, asked, provider) in [
        (COMPLETIONS, "max_tokens: 64, logprobs: true", "completions", prompt, None),
        (ANTHROPIC, thinking, "messages", chat, Some("anthropic")),
    ] {
        let (api, project) = served_of(workflow, 2, more);
        lock(&project);
        let found: Vec<_> = api.take().into_iter().map(|asked| (asked.path, asked.body)).collect();
        assert_eq!(found, [(format!("POST /v1/{path}"), asked)]);
        let base = api.url();
        let of = match provider {
            Some(provider) => {
                json!({"provider": provider, "base_url": base.trim_end_matches("/v1"), "model": "tiny"})
            }
            None => json!({"base_url": base, "model": "tiny"}),
        };
        assert_eq!(values(&locked(&project)["versions"][0], "of version"), json!([of, VERSION]));
        let before = project.run_ok(&["--frozen"]);
        assert_eq!(project.run_ok(&["--frozen"]).digests(), before.digests());
        api.set_version(Some("tiny-2"));
        project.write("data.jsonl", data(0..3));
        let outcome = project.run_json(&["--frozen"]).exits(1);
        assert!(outcome.detail("answers").contains("tiny-2"), "{outcome}");
    }
}

#[test]
fn a_frozen_run_needs_a_pin_and_answers_of_its_version_from_before_are_used() {
    let api = ChatApi::start();
    let text = generate_openai::workflow(&api, "").replace("  answers:", "  «answers:");
    let (text, place) = marked(&text);
    let project = Project::new(&text).with("data.jsonl", data(0..3));
    project.refuses(&["--frozen"], &format!("not-locked w.yaml:{place}"), &[]);
    project.run(&FROZEN).exits(2).reports(&["galeras lock w.yaml"]);
    assert!(project.stored_nothing());
    assert_eq!(api.count(), 0);
    lock(&project);
    api.take();
    let outcome = project.run_ok(&["--frozen"]);
    assert_eq!((api.take().len(), reported(&project)), (3, vec![VERSION.to_owned(); 3]));
    project.run_ok(&["--frozen"]).all_hit();
    assert_eq!(project.run_ok(&["--frozen", "--cache", "other"]).digests(), outcome.digests());
    // Another model is not pinned.
    project.change("model: tiny", "model: tiny2");
    project.run_json(&["--frozen"]).exits(2);
    let (api, project) = served(4, "");
    let before = project.run_ok(&[]);
    lock(&project);
    api.take();
    assert_eq!((api.count(), project.run_ok(&["--frozen"]).digests()), (0, before.digests()));
    fs::remove_file(project.path("galeras.lock")).unwrap();
    project.run_ok(&[]);
    assert_eq!(api.count(), 0);
}

#[test]
fn another_version_ends_the_run_until_the_model_is_locked_anew() {
    let (api, project) = served(4, "concurrency: 1");
    lock(&project);
    project.run_ok(&[]);
    api.take();
    api.set_version(Some("tiny-2026-02-02"));
    // Prompts with answers of the pinned version are not asked.
    project.run_ok(&["--frozen"]).all_hit();
    project.write("data.jsonl", data(0..8));
    drifts(&project, "tiny-2026-02-02");
    // The first answer tells; while it is kept, another request may go out.
    let first = api.take().len();
    drifts(&project, "tiny-2026-02-02");
    let second = api.take().len();
    assert!((1..=2).contains(&first) && (1..=2).contains(&second), "{first} {second}");
    // The old server comes back: what was answered by it is used.
    api.set_version(Some(VERSION));
    project.run_ok(&["--frozen"]);
    assert_eq!((api.take().len(), reported(&project)), (4, vec![VERSION.to_owned(); 8]));
    // After locking anew it goes on.
    let (api, project) = served(4, "concurrency: 1");
    lock(&project);
    let before = project.run_ok(&[]);
    api.set_version(Some("tiny-2026-02-02"));
    project.write("data.jsonl", data(0..8));
    api.take();
    drifts(&project, "tiny-2026-02-02");
    let kept: Vec<String> = api.take().iter().map(ChatRequest::last).collect();
    lock(&project);
    api.take();
    let outcome = project.run_ok(&["--frozen"]);
    let asked: Vec<String> = api.take().iter().map(ChatRequest::last).collect();
    assert!((1..=2).contains(&kept.len()), "{kept:?}");
    assert_eq!(asked.len(), 8 - kept.len(), "what told of the new version is used: {outcome}");
    assert!(kept.iter().all(|kept| !asked.contains(kept)));
    assert_eq!(reported(&project), vec!["tiny-2026-02-02".to_owned(); 8]);
    // Back to the first version: its answers are still there.
    api.set_version(Some(VERSION));
    lock(&project);
    project.write("data.jsonl", data(0..4));
    api.take();
    assert_eq!((api.count(), project.run_ok(&["--frozen"]).digests()), (0, before.digests()));
    // Without a lock a new version is seen and not refused.
    let (api, project) = served(2, "");
    project.run_ok(&[]);
    api.set_version(Some("tiny-2026-02-02"));
    project.write("data.jsonl", data(0..3));
    project.run_ok(&[]);
    assert_eq!(reported(&project), [VERSION, VERSION, "tiny-2026-02-02"]);
    assert_eq!(project.rows("answers.summary").len(), 2);
}

#[test]
fn a_server_without_a_name_or_with_an_error_cannot_be_pinned() {
    let (api, project) = served(2, "");
    api.set_version(None);
    project.run(&["lock", "w.yaml"]).exits(1).reports(&["does not say which model"]);
    assert!(!project.path("galeras.lock").exists());
    // One that had a name and has none now.
    api.set_version(Some(VERSION));
    lock(&project);
    api.set_version(None);
    let detail = project.run_json(&[]).exits(1).step("answers")["detail"].to_string();
    assert!(detail.contains(VERSION) && !detail.contains("``"), "{detail}");
    // A lock that fails leaves the file as it was.
    let (api, project) = served(2, "tries: 2");
    lock(&project);
    let before = project.read("galeras.lock");
    api.set_version(Some("tiny-2026-02-02"));
    api.script(|_| Some(ChatFault::Error(500, "internal", "oops".into())));
    project.run(&["lock", "w.yaml"]).exits(1).reports(&["answers", "oops"]);
    assert_eq!(project.read("galeras.lock"), before);
}

#[test]
fn steps_with_the_same_model_are_asked_about_once() {
    let (api, project) = served(2, "");
    let text = project.read("w.yaml");
    let (_, step) = text.split_once("  answers:\n").unwrap();
    let more = step.replace("model: tiny", "model: tiny, temperature: 1");
    let other = step.replace("model: tiny", "model: huge");
    project.write("w.yaml", format!("{text}  more:\n{more}  other:\n{other}"));
    lock(&project).reports(&["2 models pinned"]);
    let mut asked: Vec<String> = api.take().iter().map(|a| a.body["model"].to_string()).collect();
    asked.sort();
    assert_eq!(asked, ["\"huge\"", "\"tiny\""]);
    // Two workflows of a folder share the file.
    let other = generate_openai::workflow(&api, "samples: 2").replace(": 1\n", ": 1\nname: o\n");
    project.write("other.yaml", other);
    project.run(&["lock", "other.yaml"]).exits(0);
    let versions = locked(&project)["versions"].clone();
    let tiny = versions.as_array().unwrap().iter().find(|v| v["of"]["model"] == MODEL).unwrap();
    assert_eq!(tiny["workflows"], json!(["other.yaml", "w.yaml"]));
    project.run(&["run", "other.yaml", "--frozen"]).exits(0);
    project.run_ok(&["--frozen"]);
}

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
fn a_run_uses_the_pinned_commits_and_the_file_says_what_was_asked() {
    let (project, repo) = project();
    lock(&project).reports(&["galeras.lock"]);
    repo.commit(at(day(2)).write("m.py", def("f", 2)));
    let outcome = project.run_ok(&[]);
    assert_eq!(mined(&project).rows.len(), 1, "{outcome}");
    project.run_ok(&[]).all_hit();
    // Without the file, the new commit counts.
    let pinned = project.read("galeras.lock");
    fs::remove_file(project.path("galeras.lock")).unwrap();
    project.run_ok(&[]);
    assert_eq!(mined(&project).rows.len(), 2);
    project.write("galeras.lock", pinned);
    lock(&project);
    let head = repo.git(&["rev-parse", "main"]);
    assert_eq!(locked(&project)["snapshots"][0]["rows"][0]["head_sha"], head);
    project.run_ok(&[]);
    assert_eq!(mined(&project).rows.len(), 2);
    let (project, repo) = self::project();
    lock(&project);
    let lock = locked(&project);
    assert_eq!(lock["galeras_lock"], 1);
    let snapshot = &lock["snapshots"][0];
    assert_eq!(values(snapshot, "operator workflows"), json!(["query", ["w.yaml"]]));
    let row = values(&snapshot["rows"][0], "repo clone_url head_sha");
    assert_eq!(row, json!(["r", "./r", repo.git(&["rev-parse", "main"])]));
    // One repository is one line, and no place of this machine is in it.
    let text = project.read("galeras.lock");
    assert_eq!(text.lines().filter(|line| line.contains("head_sha")).count(), 1);
    assert!(!text.contains(project.root().to_str().unwrap()), "{text}");
    assert!(text.ends_with('\n'));
    self::lock(&project).reports(&["up to date"]);
    assert_eq!(project.read("galeras.lock"), text);
}

#[test]
fn a_frozen_run_of_another_program_without_a_lock_or_of_a_branch_of_mine_is_refused() {
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
    project.run(&FROZEN).exits(2).reports(&["written by galeras 0.0.9"]);
    // Locking again with this program is what it takes.
    lock(&project);
    project.run_ok(&["--frozen"]).all_hit();
    let (text, place) = marked(&workflow("./r", "").replace("  repos: {", "  «repos: {"));
    let project = Project::new(&text);
    Repository::bare(project.path("r")).commit(at(day(1)).write("m.py", def("f", 1)));
    project.refuses(&["--frozen"], &format!("not-locked w.yaml:{place}"), &[]);
    project.run(&FROZEN).exits(2).reports(&["galeras lock w.yaml"]);
    assert!(project.stored_nothing());
    let (text, place) = marked(&workflow("./r", "branch: main").replace("  mined:", "  «mined:"));
    let project = Project::new(&text);
    Repository::bare(project.path("r")).commit(at(day(1)).write("m.py", def("f", 1)));
    lock(&project).reports(&["mined", "not pinned"]);
    let outcome = project.refuses(&["--frozen"], &format!("not-locked w.yaml:{place}"), &[]);
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
fn another_question_is_not_locked_and_a_forced_step_stays_pinned() {
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
    let (project, repo) = self::project();
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
fn an_edited_lock_file_is_refused() {
    let (project, repo) = project();
    lock(&project);
    let good = project.read("galeras.lock");
    let head = repo.git(&["rev-parse", "main"]);
    let broken = [
        good.replace(&head, &"1".repeat(40)),
        good.replace(r#""repo":"r","clone_url":"./r""#, r#""repo":"x","clone_url":"./r""#),
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
        project.run(&["run", "w.yaml"]).exits(2).reports(&["galeras.lock"]);
    }
    // `lock` writes it again.
    lock(&project);
    let sound: Value = serde_json::from_str(&good).unwrap();
    assert_eq!(locked(&project)["snapshots"][0]["rows"], sound["snapshots"][0]["rows"]);
    project.run_ok(&["--frozen"]);
}

#[test]
fn what_cannot_be_reached_leaves_the_file_untouched() {
    let (project, repo, server) = remote();
    let busy = || GitFault::StatusWith(503, vec![("Retry-After".into(), "0".into())]);
    server.fail("r/", 100, busy());
    project.run(&["lock", "w.yaml"]).exits(1).reports(&["galeras.lock"]);
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
fn a_repository_without_a_commit_is_a_reject_and_a_commit_pushed_away_is_mined_while_it_is_there() {
    let (project, _) = project();
    Repository::bare(project.path("empty"));
    let free = project.rerun("[./r]", "[./r, ./empty]");
    assert_eq!(project.rows("repos.rejects").len(), 1);
    lock(&project);
    let locked = project.run_ok(&["--frozen"]);
    assert_eq!(project.rows("repos.rejects").len(), 1, "every dropped row says where and why");
    assert_eq!(locked.digests(), free.digests());
    let (project, repo) = self::project();
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
fn results_of_a_pinned_folder_are_found_without_it_and_bundles_name_no_folder() {
    let (project, _) = project();
    lock(&project);
    let first = project.run_ok(&[]);
    let bundle = ["bundle", "w.yaml", "-o", "b.zip"];
    project.run(&bundle).exits(2).reports(&["repos.out", "`./r`", "remote get-url origin"]);
    let shared = project.path("shared").to_string_lossy().into_owned();
    project.run(&["push", "w.yaml", "--remote", &shared]).exits(0);
    let other = Project::new(&workflow("./r", ""));
    other.write("galeras.lock", project.read("galeras.lock"));
    other.run(&["plan", "w.yaml"]).exits(0);
    other.run(&["pull", "w.yaml", "--remote", &shared]).exits(0);
    let found = other.run_ok(&["--frozen"]);
    found.all_hit();
    assert_eq!(found.digests(), first.digests());
    fs::remove_file(other.path("galeras.lock")).unwrap();
    other.run(&["run", "w.yaml"]).exits(2).reports(&["does not exist"]);
    // The name of the folder is also in arguments, which stay if the tables are left out.
    let elsewhere = tempfile::tempdir().unwrap();
    let repo = Repository::bare(elsewhere.path().join("r"));
    repo.commit(at(day(1)).write("m.py", def("f", 1)));
    let path = repo.path.display().to_string();
    let allow = format!("read:{path}");
    let project = Project::new(&workflow(&path, ""));
    project.run(&["lock", "w.yaml", "--allow", &allow]).exits(0);
    project.run_ok(&["--allow", &allow]);
    let without = [&bundle[..], &["--without", "repos", "--without", "mined"]].concat();
    let refused = project.run(&without).exits(2).reports(&["a repository in a folder"]);
    assert!(!refused.stderr.contains(&path) && !project.path("b.zip").exists(), "{refused}");
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
fn two_that_lock_at_once_lose_no_pin_and_two_workflows_share_the_file() {
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
    assert_eq!(workflows, &json!(["v.yaml", "w.yaml"]));
    let (project, repo) = self::project();
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
fn a_lock_file_with_a_merge_conflict_stays() {
    let project = Project::steps("  data: { op: read, with: { path: d.csv } }\n");
    let project = project.with("d.csv", "id\na\n").with("galeras.lock", "<<<<<<< HEAD\n{}\n");
    project.run(&["lock", "w.yaml"]).exits(2).reports(&["resolve the merge conflict"]);
    assert!(project.read("galeras.lock").starts_with("<<<<<<<"));
}
