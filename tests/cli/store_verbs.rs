//! `cache ls`, `cache gc`, `cache verify`: looking after the store.

use crate::harness::{Project, Running, files_below, says, wait_for};
use crate::remembered_set::run_in;

const WORKFLOW: &str = "galeras: 1
name: kept
steps:
  table:
    op: exec
    with:
      command: seq 1 50 | sed 's/.*/{\"id\":\"&\",\"x\":&}/'
      output: { id: utf8!, x: int64! }
  valid: { op: validate, from: table, with: { rules: [ { name: big, check: x > 1 } ] } }
";

fn blobs(project: &Project) -> usize {
    files_below(&project.path("cache/blobs")).len()
}

#[test]
fn results_are_listed() {
    let project = Project::new(WORKFLOW);
    project.run(&["cache", "ls"]).exits(0).prints(&["0 results"]);
    project.run_ok(&[]);
    let shown = project.run(&["cache", "ls"]).exits(0);
    let lines: Vec<&str> = shown.stdout.lines().collect();
    let words = |line: &str| line.split_whitespace().map(String::from).collect::<Vec<_>>();
    assert_eq!(words(lines[0])[0], "result");
    for (line, step, rows) in [(lines[1], "kept/valid", "49"), (lines[2], "kept/table", "50")] {
        let words = words(line);
        assert_eq!((words[3].as_str(), words[4].as_str()), (step, rows), "{shown}");
        assert_eq!(line.find(step), lines[0].find("workflow/step"), "{shown}");
    }
    assert!(lines[1..3].iter().all(|line| line.len() == lines[0].len()), "{shown}");
    let end = "; 1 recorded run";
    assert!(lines[4].starts_with("2 results in ") && lines[4].ends_with(end), "{shown}");
    let told = project.json(&["cache", "ls"]);
    assert_eq!(told.len(), 2);
    let valid = told.iter().find(|m| m["step"] == "valid").unwrap();
    assert_eq!((&valid["rows"], &valid["op"]), (&49.into(), &"validate".into()));
    // Looking at a store that does not exist makes none.
    project.run(&["cache", "ls", "--cache", "typo"]);
    project.run(&["cache", "verify", "--cache", "typo"]);
    project.run(&["cache", "gc", "--keep-runs", "1", "--cache", "typo"]);
    project.run(&["show", "w.yaml", "table", "--cache", "typo"]).exits(1);
    project.run(&["plan", "w.yaml", "--cache", "typo"]).exits(0);
    assert!(!project.path("typo").exists());
}

#[test]
fn a_project_has_one_store_wherever_a_verb_starts() {
    let project = Project::empty().with("study/w.yaml", WORKFLOW).with("study/deep/x", "");
    let run = ["run", "w.yaml", "--allow", "exec"];
    run_in(&project, "study", &run).exits(0).reports(&["results are stored in cache\n"]);
    let above = project.path("study/cache").display().to_string();
    for (folder, file, store) in [
        (".", "study/w.yaml", "study/cache"),
        ("study", "w.yaml", "cache"),
        ("study/deep", "../w.yaml", above.as_str()),
    ] {
        let said = format!("2 of 2 steps are stored in {store}\n");
        run_in(&project, folder, &["plan", file]).exits(0).prints(&[said.as_str()]);
        let run = run_in(&project, folder, &["run", file]).exits(0);
        says(&run.stderr, &["ok: 2 steps, 2 hit", &format!("galeras show {file} valid\n")]);
        for verb in ["show", "explain", "path"] {
            run_in(&project, folder, &[verb, file, "valid"]).exits(0);
        }
        run_in(&project, folder, &["verify", file]).exits(0);
        let runs = run_in(&project, folder, &["runs", file, "--format", "json"]).exits(0);
        assert!(!runs.json_lines().is_empty(), "{runs}");
    }
    assert!(!project.path("cache").exists() && !project.path("study/deep/cache").exists());
    run_in(&project, "study/deep", &["cache", "ls"]).exits(0).prints(&["2 results"]);
}

#[test]
fn what_no_recent_run_needs_is_removed() {
    let project = Project::new(WORKFLOW);
    let first = project.run_ok(&[]);
    let second = project.rerun("x > 1", "x > 25");
    let before = blobs(&project);
    let dry = project.run(&["cache", "gc", "--keep-runs", "1", "--dry-run"]).exits(0);
    assert!(dry.stdout.starts_with("would free "), "{dry}");
    says(&dry.stdout, &[": 1 result, ", " files and 0 temporary files; "]);
    assert_eq!(blobs(&project), before);
    let freed = project.run(&["cache", "gc", "--keep-runs", "1"]).exits(0);
    assert_eq!(freed.stdout, dry.stdout.replace("would free", "freed"), "it did what it said");
    assert!(blobs(&project) < before);
    project.verifies("cache");
    project.run_ok(&[]).all_hit();
    let third = project.rerun("x > 25", "x > 1");
    assert_eq!(third.statuses(), "table=hit valid=ran");
    assert_eq!(third.digests(), first.digests());
    assert_ne!(third.digests(), second.digests());
}

#[test]
fn a_store_is_emptied_to_a_size() {
    let project = Project::new(WORKFLOW).ran();
    assert_eq!(project.json(&["cache", "gc", "--max-bytes", "0"])[0]["event"], "gc");
    assert_eq!(blobs(&project), 0);
    project.verifies("cache");
    assert_eq!(project.run_ok(&[]).statuses(), "table=ran valid=ran");
    project.run(&["cache", "gc", "--older-than", "30"]).exits(0);
    project.run_ok(&[]).all_hit();
    // Sizes have units, and the freed bytes are reported.
    let project = Project::new(WORKFLOW).ran();
    let kept = project.run(&["cache", "gc", "--max-bytes", "10MB"]).exits(0);
    assert!(kept.stdout.starts_with("freed 0 B: 0 results, 0 files"), "{kept}");
    project.run_ok(&[]).all_hit();
    let dry = project.json(&["cache", "gc", "--max-bytes", "1kB", "--dry-run"]).remove(0);
    let (freed, left) = (&dry["report"]["bytes"], &dry["left_bytes"]);
    assert!(freed.as_u64().unwrap() > 0 && left.as_u64().unwrap() <= 1000, "{dry}");
    project.run_ok(&[]).all_hit();
    project.cli("cache gc --max-bytes 0 --keep-runs 1").exits(0).prints(&["kept by --keep-runs"]);
    for size in ["10 XB", "-1", "much", "1.2.3MB", ""] {
        let refused = project.run(&["cache", "gc", &format!("--max-bytes={size}")]).exits(2);
        assert!(refused.stderr.contains("512MB") || size.is_empty(), "{refused}");
    }
    project.run(&["cache", "gc", "--max-bytes", "0 MiB"]).exits(0);
    assert_eq!(blobs(&project), 0);
}

#[test]
fn workflows_are_told_apart_by_what_they_take() {
    let project = Project::new(WORKFLOW).ran();
    let larger = WORKFLOW.replace("name: kept", "name: larger").replace("seq 1 50", "seq 1 5000");
    project.write("larger.yaml", &larger);
    project.run(&["run", "larger.yaml"]).exits(0);
    let by = project.run(&["cache", "ls", "--by", "workflow"]).exits(0);
    let lines: Vec<&str> = by.stdout.lines().collect();
    assert!(lines[0].starts_with("workflow "), "{by}");
    assert!(lines[1].starts_with("larger ") && lines[2].starts_with("kept "), "{by}");
    let total = lines.last().unwrap();
    assert!(total.starts_with("4 results in ") && total.ends_with("2 recorded runs"), "{by}");
    let told = project.json(&["cache", "ls", "--by", "workflow"]);
    let all = project.json(&["cache", "ls"]);
    let sum = |name: &str| -> u64 {
        let of = all.iter().filter(|result| result["workflow"] == name);
        of.map(|result| result["bytes"].as_u64().unwrap()).sum()
    };
    assert_eq!((&told[0]["workflow"], &told[1]["results"]), (&"larger".into(), &2.into()));
    for (told, name) in told.iter().zip(["larger", "kept"]) {
        assert_eq!(told["bytes"], sum(name), "{name}");
    }
    project.run(&["cache", "ls", "--by", "step"]).exits(0).prints(&["larger/table", "kept/valid"]);
    project.run(&["cache", "ls", "--by", "operator"]).exits(0).prints(&["exec", "validate"]);
}

#[test]
fn a_store_that_is_read_is_not_emptied() {
    let project = Project::new(WORKFLOW).ran();
    // It waits until someone reads the pipe.
    let script = "mkfifo pipe; exec \"$GALERAS\" show w.yaml table --format csv -o pipe";
    let showing = Running::start(project.shell(script));
    let lock = std::fs::File::open(project.path("cache/locks/store")).unwrap();
    wait_for("the lock", || match lock.try_lock() {
        Ok(()) => {
            lock.unlock().unwrap();
            false
        }
        Err(_) => true,
    });
    project.cli("cache gc --max-bytes 0").exits(4).reports(&["a command that reads it"]);
    assert_eq!(std::fs::read_to_string(project.path("pipe")).unwrap().lines().count(), 51);
    showing.finish().exits(0);
    project.run(&["cache", "gc", "--max-bytes", "0"]).exits(0);
    assert_eq!(blobs(&project), 0);
}

#[test]
fn a_store_in_use_is_not_emptied() {
    let project = Project::new(
        &WORKFLOW.replace("command:", "sandbox: none\n      command: touch started; sleep 3;"),
    );
    let running = Running::start(project.command(&["run", "w.yaml", "--format", "json"]));
    wait_for("the step", || project.path("started").exists());
    let gc = project.run(&["cache", "gc", "--max-bytes", "0"]);
    assert_eq!(running.finish().exits(0).statuses(), "table=ran valid=ran");
    if gc.code != Some(0) {
        assert!(gc.exits(4).stderr.contains("run"), "says why");
    }
    project.verifies("cache");
    // A sound store passes, and loses nothing without a policy.
    let project = Project::new(WORKFLOW).ran();
    project.run(&["cache", "gc"]);
    project.run_ok(&[]).all_hit();
    let shown = project.run(&["cache", "verify"]).exits(0).prints(&["found 0 problems"]);
    assert!(shown.stderr.is_empty(), "{shown}");
}
