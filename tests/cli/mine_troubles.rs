//! `query` and `mine`: repositories of every layout, and damaged ones.

use std::fs;

use crate::harness::{Outcome, Project, says};
use crate::repository::{Mined, Repository, at, day, def, defs, git, mined, overwrite, workflow};

/// A project with a sound repository `good`, which has one method, and the repository `bad`
/// with three commits; their ids.
fn good_and_bad() -> (Project, Repository, Vec<String>) {
    let project = Project::new(&workflow("./good, ./bad", ""));
    Repository::bare(project.path("good")).commit(at(day(1)).write("m.py", def("good", 1)));
    let bad = Repository::bare(project.path("bad"));
    let ids = (1..4)
        .map(|n| {
            let commit = at(day(n)).write("pkg/a.py", def("a", n)).write("b.py", def("b", n));
            bad.commit(commit)
        })
        .collect();
    (project, bad, ids)
}

/// The run continues; what came of the repositories.
#[track_caller]
fn run(project: &Project) -> (Outcome, Mined) {
    let outcome = project.run_ok(&[]);
    let found = mined(project);
    let good = found.rows.iter().filter(|row| row["repo"] == "good").count();
    assert_eq!(good, 1, "{outcome}");
    (outcome, found)
}

fn is_whole(mined: &Mined) -> bool {
    mined.rejects.len() == 1
        && mined.rejects[0]["commit_id"].is_null()
        && mined.rejects[0]["repo"] == "bad"
        && ["fetch", "mine"].contains(&mined.rejects[0]["rule"].as_str().unwrap())
}

#[test]
fn repositories_that_are_corrupt_empty_or_of_another_format_end_no_run() {
    // In its head, at several places, and in its tail.
    for tenth in [0, 2, 5, 7, 9, 10] {
        let (project, bad, _) = good_and_bad();
        overwrite(&bad.pack(), |length| (length - 16) * tenth / 10);
        let outcome = project.run_ok(&[]);
        let found = mined(&project);
        assert!(found.rows.iter().any(|row| row["repo"] == "good"), "{tenth}: {outcome}");
        let refused = project.rows("repos.rejects").len() + found.rejects.len();
        // The last bytes are a checksum, which reading single objects does not need.
        let whole = found.rows.len() == 7;
        assert!(refused > 0 || (whole && tenth == 10), "{tenth}: {outcome}");
    }
    let (project, bad, _) = good_and_bad();
    fs::remove_file(bad.pack().with_extension("idx")).unwrap();
    let outcome = project.run_ok(&[]);
    assert_eq!(project.rows("repos.rejects")[0]["repo"], "bad", "{outcome}");
    assert_eq!(mined(&project).rows.len(), 1);
    let project = Project::new(&workflow("./good, ./bad", ""));
    Repository::bare(project.path("good")).commit(at(day(1)).write("m.py", def("good", 1)));
    Repository::with_work_tree(project.path("bad"));
    assert!(run(&project).1.rejects.is_empty());
    assert_eq!(project.cells("repos.rejects", "rule"), ["reachable"]);
    says(&project.cells("repos.rejects", "reason")[0], &["no commits"]);
    // Its first commit is noticed.
    Repository::with_work_tree(project.path("bad")).commit(at(day(1)).write("b.py", def("b", 1)));
    assert_eq!(run(&project).1.rows.len(), 2);
    // A repository of another format is a reject or read.
    for option in ["--object-format=sha256", "--ref-format=reftable"] {
        let project = Project::new(&workflow("./good, ./bad", ""));
        Repository::bare(project.path("good")).commit(at(day(1)).write("m.py", def("good", 1)));
        let args = ["init", "-q", "--bare", option, "bad"];
        if !git(&project.root()).args(args).status().unwrap().success() {
            continue; // An older git.
        }
        run(&project);
        assert_eq!(project.rows("repos.rejects")[0]["repo"], "bad", "{option}");
    }
}

#[test]
fn missing_files_trees_commits_and_heads_are_rejects() {
    for delete in [true, false] {
        let (project, bad, ids) = good_and_bad();
        bad.damage(&bad.git(&["rev-parse", &format!("{}:pkg/a.py", ids[1])]), delete);
        let (_, found) = run(&project);
        assert_eq!(found.of(&ids[1]), ["b.py b 1-2 modified 2"]);
        // The next commit has nothing to compare with.
        assert_eq!(found.of(&ids[2]), ["b.py b 1-2 modified 2"]);
        assert_eq!(found.rejected(), ["object pkg/a.py", "object pkg/a.py"]);
        assert_eq!(found.of(&ids[0]).len(), 2);
    }
    // A missing tree is a reject of the commits that need it.
    for delete in [true, false] {
        let (project, bad, ids) = good_and_bad();
        let more = bad.commit(at(day(5)).write("b.py", def("b", 9)));
        bad.damage(&bad.git(&["rev-parse", &format!("{}:pkg", ids[1])]), delete);
        let (_, found) = run(&project);
        assert_eq!(found.of(&ids[0]), ["b.py b 1-2 added 2", "pkg/a.py a 1-2 added 2"]);
        assert_eq!(found.of(&more), ["b.py b 1-2 modified 2"]);
        assert_eq!(found.rejected(), ["object", "object"]);
        let mut expected = [ids[1].as_str(), ids[2].as_str()];
        expected.sort_unstable();
        assert_eq!(project.cells("mined.rejects", "commit_id"), expected);
    }
    for delete in [true, false] {
        let (project, bad, ids) = good_and_bad();
        bad.damage(&ids[0], delete);
        let (outcome, found) = run(&project);
        assert!(!found.rejects.is_empty(), "{outcome}");
        says(&found.rejects[0]["reason"].to_string(), &[&ids[0][..7]]);
    }
    let (project, bad, ids) = good_and_bad();
    bad.damage(&ids[2], true);
    let (_, found) = run(&project);
    assert!(found.rejects.is_empty());
    assert_eq!(project.cells("repos.rejects", "repo step"), ["bad | repos"]);
}

/// `mine` of a table of heads that a file gives.
fn with_heads(heads: &[(&str, &str, &str)]) -> Project {
    let lines = heads.iter().map(|(repo, url, head)| format!("{repo},{url},{head}\n"));
    let text = workflow("./good", "").replace("op: query", "op: read");
    Project::new(&text.replace("repos: [./good]", "path: heads.csv, key: [repo]"))
        .with("heads.csv", format!("repo,clone_url,head_sha\n{}", lines.collect::<String>()))
}

#[test]
fn heads_that_are_no_commits_are_rejects_and_a_repository_may_be_there_twice_or_away() {
    let source = Project::empty();
    let repo = Repository::bare(source.path("good"));
    repo.commit(at(day(1)).write("m.py", def("f", 1)));
    let other = "1".repeat(40);
    let project = with_heads(&[
        ("zeros", "./good", &"0".repeat(40)),
        ("other", "./good", &other),
        ("word", "./good", "main"),
        ("short", "./good", "1234567"),
        ("nothing", "./good", ""),
        ("tree", "./good", &repo.git(&["rev-parse", "main^{tree}"])),
        ("blob", "./good", &repo.git(&["rev-parse", "main:m.py"])),
        ("nowhere", "./nowhere", &other),
        ("odd", "ftp://example.org/x", &other),
        ("empty", "", &other),
    ]);
    fs::rename(source.path("good"), project.path("good")).unwrap();
    project.run_ok(&[]);
    let found = mined(&project);
    assert!(found.rows.is_empty());
    assert_eq!(found.rejected().len(), 10, "{:?}", found.rejects);
    for row in &found.rejects {
        assert!(["fetch", "mine"].contains(&row["rule"].as_str().unwrap()), "{row}");
        assert!(row["commit_id"].is_null() && !row["reason"].as_str().unwrap().is_empty());
    }
    let source = Project::empty();
    let repo = Repository::bare(source.path("good"));
    let one = repo.commit(at(day(1)).write("m.py", def("f", 1)));
    let two = repo.commit(at(day(2)).on("other").write("n.py", def("g", 1)));
    let project = with_heads(&[("good", "./good", &one), ("good", "./good", &two)]);
    project.change("key: [repo]", "key: [head_sha]");
    fs::rename(source.path("good"), project.path("good")).unwrap();
    project.run_ok(&[]);
    assert_eq!(mined(&project).column("path"), ["m.py", "n.py"]);
    let source = Project::empty();
    let repo = Repository::bare(source.path("good"));
    let head = repo.commit(at(day(1)).write("m.py", def("f", 1)));
    let project = with_heads(&[("good", "./good", &head)]);
    project.run_ok(&[]);
    assert_eq!(mined(&project).rejected().len(), 1);
    fs::rename(source.path("good"), project.path("good")).unwrap();
    assert_eq!(project.run_ok(&[]).step("mined")["reason"], "PREV_FAILED");
    assert_eq!(mined(&project).column("path"), ["m.py"]);
    project.run_ok(&[]).all_hit();
}

#[test]
fn repaired_commits_and_forced_pushes_are_mined_and_the_end_of_a_shallow_clone_is_a_reject() {
    let (project, bad, ids) = good_and_bad();
    let file = bad.git_dir().join("objects").join(&ids[0][..2]).join(&ids[0][2..]);
    let content = fs::read(&file).unwrap();
    fs::remove_file(&file).unwrap();
    assert!(is_whole(&run(&project).1));
    fs::write(&file, content).unwrap();
    let (outcome, found) = run(&project);
    assert_eq!((found.rows.len(), found.rejects.len()), (7, 0), "{outcome}");
    // A forced push is mined from its new head.
    let (project, bad, ids) = good_and_bad();
    assert_eq!(run(&project).1.rows.len(), 7);
    bad.move_to("main", &ids[0]);
    let new = bad.commit(at(day(9)).write("c.py", def("c", 1)));
    bad.git(&["reflog", "expire", "--expire=now", "--all"]);
    bad.git(&["gc", "-q", "--prune=now"]);
    let (outcome, found) = run(&project);
    assert!(found.of(&ids[1]).is_empty() && found.of(&ids[2]).is_empty());
    assert_eq!(found.of(&new), ["c.py c 1-2 added 2"]);
    assert_eq!((found.rows.len(), found.rejects.len()), (4, 0), "{outcome}");
    assert_eq!(outcome.step("mined")["computed_rows"], 1);
    let (project, bad, ids) = good_and_bad();
    let from = format!("file://{}", bad.path.display());
    let to = project.path("shallow");
    let args = ["clone", "-q", "--depth", "2", "--bare", &from, to.to_str().unwrap()];
    assert!(git(&project.root()).args(args).status().unwrap().success());
    project.change("./bad", "./shallow");
    let (_, found) = run(&project);
    assert_eq!(found.rejected(), ["history"]);
    assert_eq!(found.rejects[0]["commit_id"], ids[1]);
    assert_eq!(found.of(&ids[2]), ["b.py b 1-2 modified 2", "pkg/a.py a 1-2 modified 2"]);
    assert_eq!(found.rows.len(), 3);
    // Deepened, the clone is mined again; nothing of the rest is.
    let args = ["-C", to.to_str().unwrap(), "fetch", "-q", "--unshallow"];
    assert!(git(&project.root()).args(args).status().unwrap().success());
    let outcome = project.run_ok(&["--force", "mined"]);
    assert_eq!(mined(&project).rows.len(), 7, "{outcome}");
}

#[test]
fn the_layout_of_a_repository_does_not_matter_and_its_branch_does() {
    let project = Project::new(&workflow("{ repo: r, url: ./r }", ""));
    let repo = Repository::with_work_tree(project.path("r"));
    for n in 1..4 {
        repo.commit(at(day(n)).write("m.py", def("f", n)).write("n.py", defs(&[n; 3])));
    }
    repo.git(&["reset", "--hard", "-q"]);
    let rows = |url: &str| {
        project.write("w.yaml", workflow(&format!("{{ repo: r, url: {url} }}"), ""));
        project.run_ok(&["--cache", "other", "--force", "mined"]);
        let rows = project.rows_with("mined", &["--cache", "other"]);
        let url_of = |row: &serde_json::Value| row["url"].as_str().unwrap().to_owned();
        assert!(rows.iter().all(|row| url_of(row) == url.trim_matches('"')));
        let mut rows: Vec<String> =
            rows.iter().map(|row| row.to_string().replace(&url_of(row), "")).collect();
        rows.sort();
        rows
    };
    let expected = rows("./r");
    assert_eq!(expected.len(), 12);
    let root = project.root();
    // Clones that borrow objects and work trees need no consent: it all belongs to the workflow.
    let run = |args: &[&str]| assert!(git(&root).args(args).status().unwrap().success());
    run(&["clone", "-q", "--bare", "r", "bare.git"]);
    run(&["clone", "-q", "--shared", "r", "shared"]);
    run(&["clone", "-q", "--no-checkout", "r", "detached"]);
    run(&["-C", "detached", "checkout", "-q", "--detach", "main"]);
    run(&["-C", "r", "worktree", "add", "-q", "-b", "tree", "../linked"]);
    run(&["clone", "-q", "r", "packed"]);
    run(&["-C", "packed", "repack", "-a", "-d", "-q"]);
    run(&["-C", "packed", "pack-refs", "--all"]);
    let absolute = root.join("bare.git");
    let file = format!("file://{}", absolute.display());
    let folders = ["./bare.git", "./shared", "./detached", "./linked", "./packed", "./r/.git"];
    for url in folders.into_iter().chain([absolute.to_str().unwrap(), &file]) {
        assert_eq!(rows(url), expected, "{url}");
    }
    let project = Project::new(&workflow("./r", ""));
    let repo = Repository::bare(project.path("r"));
    let base = repo.commit(at(day(1)).write("m.py", def("f", 1)));
    repo.commit(at(day(2)).on("deep/side").after(&[&base]).write("m.py", def("f", 2)));
    project.run_ok(&[]);
    assert_eq!(mined(&project).rows.len(), 1);
    assert_eq!(project.rows("repos")[0]["default_branch"], "main");
    repo.git(&["symbolic-ref", "HEAD", "refs/heads/deep/side"]);
    project.run_ok(&[]);
    assert_eq!(mined(&project).rows.len(), 2);
    repo.git(&["symbolic-ref", "HEAD", "refs/heads/main"]);
    project.rerun("repos: [./r]", "repos: [./r], branch: deep/side");
    assert_eq!(mined(&project).rows.len(), 2);
    assert_eq!(project.rows("repos")[0]["default_branch"], "deep/side");
    project.rerun("branch: deep/side", "branch: nothing");
    assert_eq!(project.rows("repos.rejects")[0]["rule"], "reachable");
    // The branch of `mine`.
    project.write("w.yaml", workflow("./r", "branch: deep/side"));
    project.run_ok(&[]);
    assert_eq!(mined(&project).rows.len(), 2);
}

#[test]
fn what_looks_like_a_repository_is_a_reject_and_settings_of_one_run_no_programs() {
    type Spoil = fn(&Project, &Repository);
    let spoils: [Spoil; 5] = [
        |_, bad| fs::write(bad.path.join("config"), "[core\nbare = maybe").unwrap(),
        |_, bad| fs::write(bad.path.join("HEAD"), "nonsense\n").unwrap(),
        |_, bad| fs::write(bad.path.join("refs/heads/main"), "zzzz\n").unwrap(),
        |_, bad| fs::remove_dir_all(bad.path.join("objects")).unwrap(),
        |project, bad| {
            fs::remove_dir_all(&bad.path).unwrap();
            project.write("bad/.git", "gitdir: ../gone/.git/worktrees/bad\n");
        },
    ];
    for (n, spoil) in spoils.into_iter().enumerate() {
        let (project, bad, _) = good_and_bad();
        spoil(&project, &bad);
        let outcome = project.run_json(&[]);
        // Without `objects` it does not look like one, which is an error of the workflow.
        if n == 3 {
            assert!(outcome.exits(2).diagnostics()[0].starts_with("bad-repository"));
            continue;
        }
        let outcome = outcome.exits(0);
        assert_eq!(project.rows("repos.rejects")[0]["repo"], "bad", "{n}: {outcome}");
        assert_eq!(mined(&project).rows.len(), 1, "{n}: {outcome}");
    }
    let (project, bad, _) = good_and_bad();
    let command = format!("touch {}", project.path("pwned").display());
    for name in ["core.fsmonitor", "core.sshCommand", "core.pager", "filter.x.smudge"] {
        bad.git(&["config", name, &command]);
    }
    bad.git(&["config", "diff.x.textconv", &command]);
    bad.git(&["config", "core.hooksPath", "."]);
    bad.git(&["config", "include.path", "/nonexistent"]);
    bad.commit(at(day(9)).write(".gitattributes", "*.py diff=x filter=x\n"));
    let (_, found) = run(&project);
    assert_eq!((found.rows.len(), found.rejects.len()), (7, 0));
    assert!(!project.path("pwned").exists());
}
