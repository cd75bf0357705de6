//! Row steps read, compute and store window by window: what comes out is the same on any number of
//! threads, in any memory, for repeated rows and for rows that partly have results.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::harness::{Outcome, Project, files_below, says};

const WORKFLOW: &str = "\
galeras: 1
name: streams
steps:
  data: { op: read, with: { path: data.jsonl } }
  features: { op: ast, from: data }
  valid:
    op: validate
    from: features
    with: { rules: [{ name: short, check: \"n_words < 16\" }] }
  asked:
    op: prompt
    from: valid
    with: { treatments: { plain: \"Complete {{ code }}\", polite: \"Please complete {{ code }}\" } }
  counted: { op: taxonomy, from: asked, with: { column: code } }
";

/// Rows with methods of which every third is that of an earlier row, and some do not parse.
fn methods(rows: usize, changed: impl Fn(usize) -> bool) -> String {
    let mut lines = String::new();
    for row in 0..rows {
        let method = if row % 3 == 2 { row / 2 } else { row };
        let name = if changed(row) { "changed" } else { "f" };
        let body = match method % 50 {
            0 => "return (".to_string(),
            n => format!("a = {n}\\n{}    return a", "    a += 1\\n".repeat(n % 7)),
        };
        let id = (row * 7_919) % 100_003;
        let code = format!("def {name}_{method}(a):\\n    {body}\\n");
        writeln!(lines, "{{\"id\":\"{id:06}\",\"code\":\"{code}\"}}").unwrap();
    }
    lines
}

fn project(rows: usize) -> Project {
    Project::new(WORKFLOW).with("data.jsonl", methods(rows, |_| false))
}

/// The rows of a step that were computed and reused.
#[track_caller]
pub fn counts(outcome: &Outcome, step: &str) -> (u64, u64) {
    let step = outcome.step(step);
    (step["computed_rows"].as_u64().unwrap(), step["reused_rows"].as_u64().unwrap())
}

#[test]
fn threads_and_memory_change_nothing() {
    let project = project(7_000);
    let first = project.run_ok(&["--jobs", "2", "--cache", "first"]);
    assert!(first.step("valid")["rows"].as_u64().unwrap() > 3_000, "{first}");
    assert_eq!(counts(&first, "features"), (7_000, 0));
    for (jobs, memory) in [("1", "1GiB"), ("3", "64MiB"), ("2", "1MiB")] {
        let cache = format!("cache-{jobs}");
        let again = project.run_ok(&["--jobs", jobs, "--memory", memory, "--cache", &cache]);
        assert_eq!(again.digests(), first.digests(), "{jobs} jobs, {memory}");
        project.verifies(&cache);
    }
    assert_eq!(project.left_behind(), [] as [std::path::PathBuf; 0]);
    // A few rows are new, or a few of a large part are found again: only those are computed.
    let few = |row: usize| row % 100 == 1 && row % 3 != 2;
    let most = |row: usize| row % 100 != 1;
    for changed in [few as fn(usize) -> bool, most] {
        let project = self::project(7_000).ran().with("data.jsonl", methods(7_000, changed));
        let again = project.run_ok(&["--memory", "1MiB"]);
        let rows = (0..7_000).filter(|row| changed(*row)).count() as u64;
        assert_eq!(counts(&again, "features"), (rows, 7_000 - rows), "{again}");
        assert_eq!(again.digests(), project.run_ok(&["--cache", "fresh"]).digests());
    }
}

/// Flips a bit of the table of a part of a step, at so many sixteenths of it.
fn damage(project: &Project, cache: &str, part: &Path, sixteenths: usize) {
    let part: Value = serde_json::from_slice(&fs::read(part).unwrap()).unwrap();
    let blob = part["blob"].as_str().unwrap();
    let blob = project.path(&format!("{cache}/blobs/{}/{blob}.parquet", &blob[..2]));
    let mut bytes = fs::read(&blob).unwrap();
    let at = sixteenths * bytes.len() / 16;
    bytes[at] ^= 1;
    fs::write(&blob, bytes).unwrap();
}

/// Files read row by row are checked against their digest first, as whole files are.
#[test]
fn no_row_is_read_from_a_damaged_part_and_sound_ones_are_read_beside_it() {
    let project = project(7_000).ran().with("data.jsonl", methods(7_000, |row| row % 100 != 1));
    let fresh = project.run_ok(&["--cache", "fresh"]);
    for at in [0, 3, 7] {
        let cache = format!("cache-{at}");
        project.sh(&format!("cp -r cache {cache}")).exits(0);
        let parts = files_below(&project.path(&format!("{cache}/memo")));
        assert!(!parts.is_empty());
        // The middle of each eighth.
        parts.iter().for_each(|part| damage(&project, &cache, part, 2 * at + 1));
        let again = project.run_ok(&["--memory", "1MiB", "--cache", &cache]);
        assert_eq!(counts(&again, "features"), (7_000, 0), "{again}");
        assert_eq!(again.digests(), fresh.digests(), "{at}");
    }
    // One part of two is damaged: the sound ones are still read.
    let project = self::project(7_000);
    project.run_ok(&["--cache", "fresh"]);
    // Computed in two goes, so that each step has several parts.
    project.write("data.jsonl", methods(7_000, |row| row % 2 == 0));
    project.run_ok(&[]);
    project.write("data.jsonl", methods(7_000, |row| row % 2 == 1));
    project.run_ok(&[]);
    project.write("data.jsonl", methods(7_000, |row| row % 100 != 1));
    let fresh = project.run_ok(&["--cache", "fresh"]);
    for damaged in 0..2 {
        let cache = format!("cache-{damaged}");
        project.sh(&format!("cp -r cache {cache}")).exits(0);
        let parts = files_below(&project.path(&format!("{cache}/memo")));
        assert!(parts.len() > 1);
        parts.iter().skip(damaged).step_by(2).for_each(|part| damage(&project, &cache, part, 8));
        let again = project.run_ok(&["--memory", "1MiB", "--cache", &cache]);
        let (computed, reused) = counts(&again, "features");
        assert!(computed > 1_000 && reused > 1_000, "{computed} computed, {reused} reused");
        assert_eq!(again.digests(), fresh.digests(), "{damaged}");
    }
}

#[test]
fn tables_without_rows_rows_that_fail_and_the_memory_of_a_plan() {
    let project = project(0).with("data.jsonl", "");
    project.change("path: data.jsonl", "path: data.csv");
    project.write("data.csv", "id,code\n");
    let run = project.run_ok(&[]);
    assert_eq!(run.step("counted")["rows"], 0, "{run}");
    // A row that fails ends the step and names the rule.
    let project = self::project(3_000);
    project.change("check: \"n_words < 16\"", "check: \"n_words < 9\", on_fail: fail");
    let run = project.run_json(&["--jobs", "2"]).exits(1);
    assert_eq!(run.status("valid"), "failed", "{run}");
    says(&run.detail("valid"), &["n_words < 9 is not true"]);
    // The plan shows how much memory a run takes.
    project.run(&["plan", "w.yaml", "--memory", "3GiB"]).exits(0).prints(&["3.0 GiB of memory"]);
    project.run(&["plan", "w.yaml", "--memory", "512KiB"]).exits(2).reports(&["at least 1MiB"]);
}
