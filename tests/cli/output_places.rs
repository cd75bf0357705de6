//! The places of outputs: never over what the workflow reads, never two to one file, never
//! into the store, never where a folder is.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use crate::harness::{Project, marked, says};

const DATA: &str = "id,x\na,1\nb,2\n";

fn workflow(outputs: &str) -> String {
    format!(
        "galeras: 1
steps:
  data: {{ op: read, with: {{ path: data.csv, key: [id] }} }}
  few: {{ op: sample, from: data, with: {{ n: 1, seed: 1 }} }}
outputs:
{outputs}"
    )
}

fn project(outputs: &str) -> Project {
    Project::new(&workflow(outputs)).with("data.csv", DATA)
}

/// The workflow is refused with this code at the mark, with these words, and the data stays.
#[track_caller]
fn refused(
    outputs: &str,
    code: &str,
    words: &[&str],
    related: Option<&str>,
    prepare: impl Fn(&Project),
) {
    let (text, place) = marked(&workflow(outputs));
    let project = project("").with("w.yaml", &text);
    prepare(&project);
    for verb in [&["run", "w.yaml"][..], &["check", "w.yaml"], &["plan", "w.yaml"]] {
        let outcome = project.run(&[verb, &["--format", "json"]].concat()).exits(2);
        assert_eq!(outcome.diagnostics(), [format!("{code} w.yaml:{place}")], "{outcome}");
        let found = &outcome.events("diagnostic")[0];
        says(found["message"].as_str().unwrap(), words);
        let others = found["related"].as_array().unwrap();
        let at = others.first().map(|other| format!("{}:{}", other["line"], other["column"]));
        assert_eq!(at.as_deref(), related, "{found}");
    }
    assert_eq!(project.read("data.csv"), DATA);
    assert!(project.stored_nothing());
}

const OVER: &str = "overwritten-input";
/// The place where the step names its file.
const READ: Option<&str> = Some("3:35");

#[test]
fn an_output_does_not_overwrite_its_input() {
    let words = ["`o`", "`data.csv`", "step `data` reads"];
    refused("  o: { from: few, path: «data.csv }\n", OVER, &words, READ, |_| {});
    refused("  o: { from: few, path: «./data.csv }\n", OVER, &["step `data`"], READ, |_| {});
    // A folder, or the file itself, may be a link; so may the input.
    refused("  o: { from: few, path: «out/data.csv }\n", OVER, &["step `data`"], READ, |p| {
        symlink(".", p.path("out")).unwrap();
    });
    refused("  o: { from: few, path: «o.csv }\n", OVER, &["step `data`"], READ, |p| {
        symlink("data.csv", p.path("o.csv")).unwrap();
    });
    refused("  o: { from: few, path: «o.csv }\n", OVER, &["step `data`"], READ, |p| {
        fs::rename(p.path("data.csv"), p.path("o.csv")).unwrap();
        symlink("o.csv", p.path("data.csv")).unwrap();
    });
    // All kinds of input count.
    let exec = "galeras: 1
steps:
  a:
    op: exec
    with: { command: 'cat b.jsonl', files: [a.jsonl, b.jsonl], output: { id: utf8! } }
    schema: contract.json
outputs:
  o: { from: a, path: «PATH, MORE }
";
    for (path, at) in
        [("a.jsonl", Some("5:45")), ("b.jsonl", Some("5:54")), ("contract.json, column: id", None)]
    {
        let (text, place) = marked(&exec.replace("PATH, MORE", path));
        let project = Project::new(&text).with("a.jsonl", "{\"id\":\"1\"}\n");
        project.write("b.jsonl", "{\"id\":\"2\"}\n");
        project.write("contract.json", "{\"id\":\"utf8!\"}");
        let outcome = project.refuses(&[], &format!("{OVER} w.yaml:{place}"), &[]);
        let related = &outcome.events("diagnostic")[0]["related"][0];
        let found = format!("{}:{}", related["line"], related["column"]);
        assert!(at.is_none_or(|at| found == at), "{outcome}");
    }
}

#[test]
fn neither_the_workflow_nor_its_lock_file_is_overwritten() {
    refused("  o: { from: few, path: «o.csv }\n", OVER, &["is the workflow itself"], None, |p| {
        fs::rename(p.path("w.yaml"), p.path("o.csv")).unwrap();
        symlink("o.csv", p.path("w.yaml")).unwrap();
    });
    refused("  o: { from: few, path: «o.csv }\n", OVER, &["is the lock file"], None, |p| {
        symlink("o.csv", p.path("galeras.lock")).unwrap();
    });
    let text =
        "galeras: 1\nsteps:\n  e: { uses: part.yaml }\noutputs:\n  o: { from: e.x, path: o.csv }\n";
    let project = Project::new(text).with("data.csv", DATA);
    project.write("o.csv", workflow("  x: { from: few, path: x.csv }\n"));
    symlink("o.csv", project.path("part.yaml")).unwrap();
    let outcome = project.run_json(&[]).exits(2);
    assert!(outcome.diagnostics()[0].starts_with(OVER), "{outcome}");
    assert!(outcome.stdout.contains("a workflow that this one embeds"), "{outcome}");
    // Two outputs do not go to one file.
    let two = "  a: { from: few, path: one/o.csv }\n  b: { from: data, path: «two/o.csv }\n";
    refused(two, "bad-path", &["`a`", "`b`", "one file"], Some("6:25"), |p| {
        fs::create_dir(p.path("one")).unwrap();
        symlink("one", p.path("two")).unwrap();
    });
    let two = "  a: { from: few, path: o.csv }\n  b: { from: data, path: «p.csv }\n";
    refused(two, "bad-path", &["one file"], Some("6:25"), |p| {
        symlink("p.csv", p.path("o.csv")).unwrap();
    });
    let below = "  a: { from: few, path: o.csv }\n  b: { from: data, path: «o.csv/p.csv }\n";
    refused(below, "bad-path", &["needs a folder", "`a`"], Some("6:25"), |_| {});
}

#[test]
fn no_output_goes_where_a_folder_is_below_a_file_or_into_the_store() {
    refused("  o: { from: few, path: «o.csv }\n", "bad-path", &["is a folder"], None, |p| {
        fs::create_dir(p.path("o.csv")).unwrap();
    });
    let below = "  o: { from: few, path: «there/deep/o.csv }\n";
    refused(below, "bad-path", &["there` is a file", "below it"], None, |p| {
        p.write("there", "");
    });
    let project = project("  o: { from: few, path: o.csv }\n").with("file", "");
    project.refuses(&["--out", "file"], "bad-path w.yaml:6:25", &[]);
    let words = ["`o`", "the store"];
    refused("  o: { from: few, path: «cache/blobs/o.csv }\n", "bad-path", &words, None, |_| {});
    refused("  o: { from: few, path: «x/o.csv }\n", "bad-path", &words, None, |p| {
        fs::create_dir_all(p.path("cache/runs")).unwrap();
        symlink("cache/runs", p.path("x")).unwrap();
    });
    // Beside it is no harm.
    let project = self::project("  o: { from: few, path: cache/o.csv }\n").ran();
    assert!(project.path("cache/o.csv").exists());
    project.verifies("cache");
}

#[test]
fn with_another_folder_the_places_are_others() {
    let project = project("  o: { from: few, path: data.csv }\n");
    project.run_json(&[]).exits(2);
    project.run_ok(&["--out", "results"]);
    project.run_ok(&["--out", "results"]).all_hit();
    assert_eq!(project.read("data.csv"), DATA);
    assert_eq!(project.read("results/data.csv").lines().count(), 2);
    symlink(".", project.path("here")).unwrap();
    project.run_json(&["--out", "here"]).exits(2);
    // Links that are replaced leave their target, and files keep their rights.
    let project =
        self::project("  o: { from: few, path: o.csv }\n").with("elsewhere.csv", "mine\n");
    symlink("elsewhere.csv", project.path("o.csv")).unwrap();
    project.run_json(&[]).exits(2);
    project.run_ok(&["--overwrite"]);
    assert_eq!(project.read("elsewhere.csv"), "mine\n");
    assert!(fs::symlink_metadata(project.path("o.csv")).unwrap().is_file());
    let project = self::project("  o: { from: few, path: o.csv }\n").ran();
    let mode = || fs::metadata(project.path("o.csv")).unwrap().mode() & 0o777;
    assert_eq!(mode() & 0o400, 0o400);
    for rights in [0o600, 0o664] {
        fs::set_permissions(project.path("o.csv"), fs::Permissions::from_mode(rights)).unwrap();
        project.edit("o.csv", "id,x", "id,y");
        project.run_ok(&["--overwrite"]);
        assert!(project.read("o.csv").starts_with("id,x"));
        assert_eq!(mode(), rights);
    }
    let names = fs::read_dir(project.root()).unwrap().map(|e| e.unwrap().file_name());
    assert_eq!(names.filter(|name| name.to_string_lossy().starts_with(".galeras-")).count(), 0);
}

#[test]
fn the_report_has_a_place_as_outputs_have() {
    let refused = |path: &str, code: &str, words: &[&str], prepare: &dyn Fn(&Project)| {
        let outputs = "  o: { from: few, path: o.csv }\nreport: { path: «PATH }\n";
        let (text, place) = marked(&workflow(&outputs.replace("PATH", path)));
        let project = project("").with("w.yaml", &text);
        prepare(&project);
        for verb in ["run", "check"] {
            let outcome = project.run(&[verb, "w.yaml", "--format", "json"]).exits(2);
            assert_eq!(outcome.diagnostics(), [format!("{code} w.yaml:{place}")], "{outcome}");
            says(&outcome.events("diagnostic")[0]["message"].to_string(), words);
        }
        project.run(&["report", "w.yaml"]).exits(2).reports(&[code]);
        assert!(project.stored_nothing());
    };
    let kept = ["the report", "the store keeps"];
    refused("cache/runs/x.html", "bad-path", &kept, &|_| {});
    refused("link/x.html", "bad-path", &kept, &|project| {
        fs::create_dir_all(project.path("cache/runs")).unwrap();
        symlink("cache/runs", project.path("link")).unwrap();
    });
    refused("x.html", OVER, &["the report would overwrite", "the workflow itself"], &|project| {
        symlink("w.yaml", project.path("x.html")).unwrap();
    });
    let input = ["the report would overwrite", "step `data` reads"];
    refused("link/x.html", OVER, &input, &|project| {
        fs::rename(project.path("data.csv"), project.path("x.html")).unwrap();
        symlink("x.html", project.path("data.csv")).unwrap();
        symlink(".", project.path("link")).unwrap();
    });
    refused("o.csv/x.html", "bad-path", &["the report needs a folder where"], &|_| {});
    let both = ["the output `o` and the report", "one file"];
    refused("link/x.html", "bad-path", &both, &|project| {
        symlink(".", project.path("link")).unwrap();
        symlink("x.html", project.path("o.csv")).unwrap();
    });
    refused("x.html", "bad-path", &["is a folder"], &|project| {
        fs::create_dir(project.path("x.html")).unwrap();
    });
}
