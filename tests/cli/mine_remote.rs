//! `query` and `mine`: repositories behind HTTP, on a server that does not always work.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use crate::harness::{Outcome, Project, Running, files_below, patience, values, wait_for};
use crate::repository::{NEW_YEAR, Repository, at, day, def, defs, git, mined, workflow};
use galeras_test_servers::http_git::{GitFault, HttpGit};

/// The POSTs of the repository `r`.
const FETCH: &str = "/r/git-upload-pack";

/// A project with a server of the folder `served` with the repository `r`.
struct Remote {
    project: Project,
    server: HttpGit,
    repo: Repository,
}

/// The columns that do not depend on where the repository is.
const SAME: &str =
    "  same: { op: sql, from: mined, with: { query: 'SELECT * EXCLUDE (url) FROM input' } }
";

impl Remote {
    fn new() -> Self {
        let project = Project::empty();
        let repo = Repository::bare(project.path("served/r"));
        history(&repo);
        repo.git(&["config", "uploadpack.allowFilter", "true"]);
        let server = HttpGit::start(&project.path("served"));
        let remote = Self { project, server, repo };
        remote.point_to(&remote.server.url("r"));
        remote
    }

    fn point_to(&self, url: &str) {
        let list = format!("{{ repo: r, url: '{url}' }}");
        self.project.write("w.yaml", format!("{}{SAME}", workflow(&list, "")));
    }

    /// The digests of methods and rejects, without the address.
    fn run(&self, args: &[&str]) -> (Outcome, [String; 2]) {
        let outcome = self.project.run_ok(args);
        let of = |step: &str, port: &str| {
            let digests = outcome.digests();
            digests.into_iter().find(|d| d.0 == step && d.1 == port).unwrap().2
        };
        let digests = [of("same", "out"), of("mined", "rejects")];
        (outcome, digests)
    }

    /// Those of the repository as a folder, in another store.
    fn of_folder(&self) -> [String; 2] {
        let before = self.project.read("w.yaml");
        self.point_to("./served/r");
        let (outcome, digests) = self.run(&["--cache", "of-folder"]);
        assert!(outcome.step("mined")["rows"].as_u64().unwrap() > 30, "{outcome}");
        self.project.write("w.yaml", before);
        digests
    }

    /// Asks for the head alone.
    fn ask(&self) {
        self.project.run_ok(&["--select", "repos"]);
        self.server.take_seen();
    }

    fn downloaded(&self, cache: &str) -> PathBuf {
        let folder = self.project.path(cache).join("downloads/git");
        let entries = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        let mut folders: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
        assert_eq!(folders.len(), 1, "{folders:?}");
        folders.pop().unwrap()
    }
}

/// Commits before, in and after the window, with renames, a merge and what is rejected.
fn history(repo: &Repository) {
    let numbers = |n: i64| (0..40).map(|at| at * n % 97).collect::<Vec<i64>>();
    let mut first = at(NEW_YEAR - 500_000).write("pkg/a.py", defs(&numbers(1)));
    first = first.write("notes.txt", "never needed\n".repeat(500)).write("old.py", def("old", 1));
    repo.commit(first);
    for n in 2..7 {
        let commit = at(day(n)).write("pkg/a.py", defs(&numbers(n)));
        repo.commit(commit.write(format!("pkg/deep/b{n}.py"), def("b", n)));
    }
    let base = repo.commit(at(day(8)).rename("pkg/deep", "pkg/flat").write("bad.py", b"\xff\n"));
    let side = at(day(9)).on("side").after(&[&base]).write("side.py", def("side", 1));
    let side = repo.commit(side);
    repo.commit(at(day(10)).after(&[&base, &side]).write("side.py", def("side", 1)));
    let last = at(NEW_YEAR + 400 * 86_400).write("late.py", def("late", 1));
    repo.commit(last.write("late.txt", "too late\n".repeat(500)));
}

/// The server is overloaded and asks for no wait.
fn busy() -> GitFault {
    GitFault::StatusWith(503, vec![("Retry-After".into(), "0".into())])
}

#[test]
fn a_part_of_a_repository_is_fetched_and_gives_the_same_as_do_servers_that_know_less() {
    let remote = Remote::new();
    let (_, digests) = remote.run(&[]);
    assert_eq!(digests, remote.of_folder());
    assert_eq!(remote.project.rows("repos")[0]["default_branch"], "main");
    assert_eq!(mined(&remote.project).rejected(), ["decodes bad.py"]);
    let has = |path: &str| {
        let blob = remote.repo.git(&["rev-parse", path]);
        let mut command = git(&remote.downloaded("cache"));
        let command = command.env("GIT_NO_LAZY_FETCH", "1").args(["cat-file", "-e", &blob]);
        command.status().unwrap().success()
    };
    assert!(has("main:side.py") && has("main:pkg/a.py"));
    assert!(!has("main:notes.txt") && !has("main:late.txt") && !has("main:old.py"));
    assert!(!has("main:late.py"));
    remote.server.take_seen();
    remote.project.run_ok(&[]).all_hit();
    assert_eq!(remote.server.count(""), 0);
    let remote = Remote::new();
    remote.repo.git(&["config", "uploadpack.allowFilter", "false"]);
    assert_eq!(remote.run(&[]).1, remote.of_folder());
    let remote = Remote::new();
    remote.server.use_old_protocol();
    assert_eq!(remote.run(&[]).1, remote.of_folder());
}

#[test]
fn a_server_may_work_at_the_second_attempt_and_a_transfer_that_fails_is_tried_by_the_next_run() {
    let remote = Remote::new();
    let expected = remote.of_folder();
    let faults =
        [busy(), GitFault::Status(500), GitFault::Cut(0), GitFault::Cut(300), GitFault::Short(300)];
    for (n, fault) in faults.into_iter().enumerate() {
        let cache = format!("cache{n}");
        remote.project.run_ok(&["--cache", &cache, "--select", "repos"]);
        remote.server.take_seen();
        remote.server.fail(FETCH, 1, fault.clone());
        let (outcome, digests) = remote.run(&["--cache", &cache]);
        assert_eq!(digests, expected, "{fault:?}");
        assert!(remote.server.count(FETCH) >= 3, "{outcome}");
        assert_eq!(outcome.events("warning").len(), 0, "{fault:?}: {outcome}");
    }
    // A head that is answered at the second attempt.
    remote.server.fail("info/refs", 2, busy());
    let (outcome, digests) = remote.run(&["--cache", "heads"]);
    assert_eq!((&outcome.step("repos")["rows"], digests), (&json!(1), expected));
    let remote = Remote::new();
    remote.ask();
    remote.server.fail("r/", 100, busy());
    let (outcome, _) = remote.run(&[]);
    assert_eq!(outcome.finished()["status"], "ok");
    let found = mined(&remote.project);
    assert_eq!((found.rejected(), found.rows.len()), (vec!["fetch".to_string()], 0));
    assert_eq!(outcome.events("warning").len(), 1, "{outcome}");
    remote.project.run(&["plan", "w.yaml"]).exits(0).prints(&["PREV_FAILED"]);
    remote.server.heal();
    let (outcome, digests) = remote.run(&[]);
    assert_eq!(outcome.step("mined")["reason"], "PREV_FAILED");
    assert_eq!(outcome.status("repos"), "hit");
    assert_eq!(digests, remote.of_folder());
    remote.project.run_ok(&[]).all_hit();
    // A repository that fails costs no other one.
    let remote = Remote::new();
    let other = Repository::bare(remote.project.path("served/other"));
    other.commit(at(day(1)).write("m.py", def("f", 1)));
    let url = |name: &str| format!("{{ repo: {name}, url: '{}' }}", remote.server.url(name));
    remote.project.write("w.yaml", workflow(&format!("{}, {}", url("r"), url("other")), ""));
    remote.ask();
    remote.server.fail("/r/", 100, busy());
    remote.project.run_ok(&[]);
    let found = mined(&remote.project);
    assert_eq!(found.only()["repo"], "other");
    assert_eq!(found.rejects[0]["repo"], "r");
    remote.server.heal();
    let step = remote.project.run_ok(&[]).step("mined");
    assert_eq!(values(&step, "computed_rows reused_rows"), json!([1, 1]));
}

#[test]
fn a_server_that_is_down_or_lacks_a_repository_is_a_reject() {
    let Remote { project, server, .. } = Remote::new();
    let port = server.url("").rsplit(':').next().unwrap().trim_end_matches('/').parse().unwrap();
    drop(server);
    let outcome = project.run_ok(&[]);
    let rejects = project.rows("repos.rejects");
    assert_eq!((rejects.len(), &rejects[0]["rule"]), (1, &"reachable".into()), "{outcome}");
    assert_eq!(outcome.step("mined")["rows"], 0);
    let _server = HttpGit::start_at(&project.path("served"), port);
    let outcome = project.run_ok(&[]);
    assert_eq!(outcome.step("repos")["reason"], "PREV_FAILED");
    assert!(outcome.step("mined")["rows"].as_u64().unwrap() > 30);
    assert!(project.rows("repos.rejects").is_empty());
    project.run_ok(&[]).all_hit();
    // A repository that the server lacks is a reject.
    let remote = Remote::new();
    remote.point_to(&remote.server.url("nothing"));
    remote.project.run_ok(&[]);
    let rejects = remote.project.rows("repos.rejects");
    assert_eq!(rejects[0]["rule"], "reachable");
    let reason = rejects[0]["reason"].as_str().unwrap();
    assert!(reason.contains("nothing"), "{reason}");
    // It is no trouble of the network: the next run does not ask.
    remote.server.take_seen();
    remote.project.run_ok(&[]).all_hit();
    assert_eq!(remote.server.count(""), 0);
}

#[test]
fn a_snapshot_stays_a_wider_window_fetches_more_and_names_are_those_of_the_list() {
    let remote = Remote::new();
    remote.run(&[]);
    remote.repo.commit(at(day(99)).write("new.py", def("new", 1)));
    remote.project.run_ok(&[]).all_hit();
    let outcome = remote.project.run_ok(&["--force", "repos"]);
    assert_eq!(outcome.statuses(), "repos=ran mined=ran same=ran");
    assert_eq!(remote.run(&["--cache", "fresh"]).1, remote.of_folder());
    assert_eq!(remote.run(&[]).1, remote.of_folder());
    let remote = Remote::new();
    remote.run(&[]);
    let text = remote.project.read("w.yaml").replace("since: 2022", "since: 2021");
    remote.project.write("w.yaml", text.replace("until: 2023", "until: 2024"));
    remote.run(&[]);
    let rows = mined(&remote.project).rows.len();
    remote.project.run_ok(&["--cache", "fresh"]);
    assert_eq!(rows, remote.project.rows_with("mined", &["--cache", "fresh"]).len());
    assert!(rows > 80, "{rows}");
    let remote = Remote::new();
    let named = Repository::bare(remote.project.path("served/owner/na.me.git"));
    named.commit(at(day(1)).write("m.py", def("f", 1)));
    let text = workflow("owner/na.me", "");
    let base = format!("repos: [owner/na.me], base_url: '{}'", remote.server.base());
    remote.project.write("w.yaml", text.replace("repos: [owner/na.me]", &base));
    remote.project.run_ok(&[]);
    let found = mined(&remote.project);
    assert_eq!(found.only()["repo"], "owner/na.me");
    assert_eq!(found.only()["url"], remote.server.url("owner/na.me.git"));
    let remote = Remote::new();
    let url = remote.server.url("r");
    let list = format!("{{ repo: x, url: '{url}' }}, {{ repo: y, url: '{url}' }}");
    remote.project.write("w.yaml", workflow(&list, ""));
    remote.project.run_ok(&[]);
    let found = mined(&remote.project);
    let count = |name: &str| found.rows.iter().filter(|row| row["repo"] == name).count();
    assert!(count("x") > 30 && count("x") == count("y"));
    assert_eq!(found.rejects.len(), 2);
}

#[test]
fn a_damaged_download_is_fetched_again_and_two_runs_fetch_into_one_store() {
    let remote = Remote::new();
    let (_, expected) = remote.run(&[]);
    let folder = remote.downloaded("cache");
    let packs = files_below(&folder).into_iter().filter(|path| path.extension().is_some());
    for pack in packs.filter(|path| path.extension().unwrap() == "pack") {
        crate::repository::overwrite(&pack, |length| length / 2);
    }
    let (_, digests) = remote.run(&["--force", "mined"]);
    assert_eq!(digests, expected);
    std::fs::remove_dir_all(folder).unwrap();
    assert_eq!(remote.run(&["--force", "mined"]).1, expected);
    let remote = Remote::new();
    let runs = [(); 2].map(|()| remote.project.start(&[]));
    let [one, two] = runs.map(|run| run.finish().exits(0));
    assert_eq!(one.digests(), two.digests());
    assert_eq!(remote.run(&[]).1, remote.of_folder());
}

/// Stops a run by a signal while the `stage`th request sends its answer; how many requests the
/// next run makes.
#[track_caller]
fn stopped(signal: &str, stage: usize) -> usize {
    let remote = Remote::new();
    let (_, expected) = remote.run(&["--cache", "undisturbed"]);
    remote.ask();
    remote.server.fail(FETCH, stage - 1, GitFault::Slow(usize::MAX));
    remote.server.fail(FETCH, 1, GitFault::Slow(50));
    let running = remote.project.start(&[]);
    wait_for("the request", || remote.server.count(FETCH) >= stage);
    std::thread::sleep(Duration::from_millis(150));
    running.signal(signal);
    let outcome = running.finish();
    assert_eq!(outcome.code, (signal == "INT").then_some(130), "{outcome}");
    assert!(outcome.took < patience(20), "{:?}", outcome.took);
    remote.server.heal();
    remote.server.take_seen();
    let (_, digests) = remote.run(&[]);
    assert_eq!(digests, expected);
    remote.project.verifies("cache");
    let requests = remote.server.count(FETCH);
    remote.project.run_ok(&[]).all_hit();
    requests
}

#[test]
fn interrupted_and_killed_transfers_are_continued_and_finished_repositories_kept() {
    // What was there at each stage: nothing, commits, trees as well.
    let cases = [("INT", 1, 3), ("INT", 3, 1), ("KILL", 1, 3), ("KILL", 2, 2), ("KILL", 3, 1)];
    for (signal, stage, requests) in cases {
        assert_eq!(stopped(signal, stage), requests, "{signal} {stage}");
    }
    let remote = Remote::new();
    let near = Repository::bare(remote.project.path("near"));
    near.commit(at(day(1)).write("m.py", def("f", 1)));
    let list = format!("./near, {{ repo: r, url: '{}' }}", remote.server.url("r"));
    remote.project.write("w.yaml", workflow(&list, ""));
    remote.ask();
    assert!(files_below(&remote.project.path("cache/memo")).is_empty());
    remote.server.fail(FETCH, 1, GitFault::Slow(50));
    let running = Running::start(remote.project.command(&["run", "w.yaml"]));
    wait_for("the request", || remote.server.count(FETCH) >= 1);
    let stored = remote.project.path("cache/memo");
    wait_for("the other repository", || !files_below(&stored).is_empty());
    running.signal("INT");
    running.finish().exits(130);
    remote.server.heal();
    let outcome = remote.project.run_ok(&[]);
    assert_eq!(values(&outcome.step("mined"), "computed_rows reused_rows"), json!([1, 1]));
    assert_eq!(remote.project.run_ok(&["--cache", "fresh"]).digests(), outcome.digests());
}

#[track_caller]
fn is_secret(project: &Project, outcomes: &[Outcome]) {
    const SECRET: &[u8] = b"s3cr3t";
    let has = |bytes: &[u8]| bytes.windows(SECRET.len()).any(|window| window == SECRET);
    for outcome in outcomes {
        assert!(!has(outcome.stdout.as_bytes()), "{outcome}");
        assert!(!has(outcome.stderr.as_bytes()), "{outcome}");
    }
    for file in files_below(project.root().parent().unwrap()) {
        if file.file_name().unwrap() != "w.yaml" {
            assert!(!has(&std::fs::read(&file).unwrap()), "{}", file.display());
        }
    }
}

#[test]
fn a_password_in_a_url_is_refused_and_stored_nowhere() {
    let remote = Remote::new();
    let project = &remote.project;
    let url = remote.server.url("r").replace("http://", "http://ann:s3cr3t@");
    let sound = remote.server.url("r");
    let list = format!("{{ repo: r, url: '{url}' }}, {{ repo: s, url: '{sound}' }}");
    project.write("w.yaml", workflow(&list, ""));
    for address in [url.as_str(), "http://ann:s3cr3t@x y/r"] {
        project.write("w.yaml", workflow(&list.replace(&url, address), ""));
        let outcomes = [
            &["run", "w.yaml"][..],
            &["run", "w.yaml", "--format", "json"],
            &["check", "w.yaml"],
            &["plan", "w.yaml"],
            &["explain", "w.yaml", "repos"],
            &["lock", "w.yaml"],
        ];
        let outcomes = outcomes.map(|args| project.run(args).exits(2));
        assert!(outcomes[0].stderr.contains("user or password"), "{}", outcomes[0]);
        is_secret(project, &outcomes);
    }
    assert!(remote.server.take_seen().is_empty(), "nothing was asked");
    // A password in a table is not sent.
    let remote = Remote::new();
    let project = &remote.project;
    project.run_ok(&[]);
    let row = project.rows("repos").remove(0);
    remote.server.take_seen();
    let text = |name: &str| row[name].as_str().unwrap().to_owned();
    let url = text("clone_url").replace("http://", "http://ann:s3cr3t@");
    let table = format!("repo,clone_url,head_sha\nr,{url},{}\n", text("head_sha"));
    project.write("table.csv", table);
    let read = "  repos:\n    op: read\n    with: { path: table.csv, key: [repo] }\n";
    let mined = workflow("", "");
    let mined = &mined[mined.find("  mined:").unwrap()..];
    project.write("w.yaml", format!("galeras: 1\nsteps:\n{read}{mined}"));
    let outcome = project.run_ok(&["--cache", "other"]);
    let reasons = ["show", "w.yaml", "mined.rejects", "--columns", "reason", "--cache", "other"];
    let shown = project.run(&reasons).exits(0).prints(&["user or password"]);
    for said in [&outcome.stdout, &outcome.stderr, &shown.stdout] {
        assert!(!said.contains("s3cr3t"), "{said}");
    }
    assert!(remote.server.take_seen().is_empty(), "nothing was asked");
}
