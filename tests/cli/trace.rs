//! `trace`: every row leads back to its source, every dropped row to the rule that dropped it.

use serde_json::Value;

use crate::harness::{Project, says, text};

const WORKFLOW: &str = "galeras: 1
steps:
  methods: { op: methods, with: { dir: src } }
  features: { op: ast, from: methods }
  valid:
    op: validate
    from: features
    with:
      rules:
        - { name: parses, check: n_ast_errors = 0 }
        - { name: long, check: nloc > 1 }
  sampled: { op: sample, from: valid, with: { n: 6, seed: 1 } }
  testbed: { op: cut, from: sampled, with: { seed: 1 } }
";

fn project() -> Project {
    let project = Project::new(WORKFLOW);
    let sound = (0..10).map(|i| format!("def f{i}(a):\n    b = a + {i}\n    return b\n\n\n"));
    let sound: String = sound.collect();
    let odd = "def short(): pass\n\n\ndef broken():\n    return (1 +\n";
    project.write("src/pkg/mod.py", format!("x = 1\n\n\n{sound}{odd}"));
    project.with("src/bad.py", b"\xff\xfe\xff").ran()
}

fn id(rows: &[Value], at: usize) -> String {
    text(&rows[at], "id").to_owned()
}

#[test]
fn a_kept_row_leads_to_its_file_and_line() {
    let project = project();
    let rows = project.rows("testbed");
    let id = id(&rows, 0);
    let shown = project.run(&["trace", "w.yaml", &id]).exits(0);
    assert!(shown.stderr.is_empty(), "{shown}");
    let line = rows[0]["start_line"].to_string();
    let start = format!("start_line {line}");
    says(&shown.stdout, &[&id, "pkg/mod.py", &start, "methods", "testbed", "src"]);
    let told = &project.json(&["trace", "w.yaml", &id])[0];
    let places = told["places"].as_array().unwrap();
    let steps: Vec<&str> = places.iter().filter_map(|p| p["step"].as_str()).collect();
    assert_eq!(steps, ["methods", "features", "valid", "sampled", "testbed"]);
    assert_eq!(places[0]["values"]["path"], "pkg/mod.py");
    assert_eq!(places[0]["values"]["start_line"].as_str().unwrap(), line);
    // A dropped row leads to the step and the rule.
    for (port, step, rule) in [
        ("valid.rejects", "valid", "long"),
        ("valid.rejects", "valid", "parses"),
        ("sampled.rejects", "sampled", ""),
        ("methods.rejects", "methods", "readable"),
    ] {
        let rows = project.rows(port);
        let row = rows.iter().find(|row| rule.is_empty() || row["rule"] == rule).unwrap();
        let id = text(row, "id");
        let shown = project.run(&["trace", "w.yaml", id]).exits(0);
        let dropped = shown.stdout.lines().find(|line| line.contains("dropped")).unwrap();
        assert!(dropped.trim().starts_with(step), "{shown}");
        says(dropped, &[rule, text(row, "reason").lines().next().unwrap()]);
        let told = &project.json(&["trace", "w.yaml", id])[0];
        let last = told["places"].as_array().unwrap().last().unwrap();
        assert_eq!((text(last, "step"), text(last, "port")), (step, "rejects"));
    }
}

#[test]
fn kept_and_rejected_rows_add_up_at_every_step() {
    let project = project();
    let outcome = project.run_ok(&[]);
    let rows = |step: &str, port: &str| {
        let summary = outcome.step(step);
        let ports = summary["ports"].as_array().unwrap().clone();
        ports.iter().find(|p| p["port"] == port).unwrap()["rows"].as_u64().unwrap()
    };
    for pair in ["methods", "features", "valid", "sampled", "testbed"].windows(2) {
        let kept = rows(pair[1], "out");
        assert_eq!(rows(pair[0], "out"), kept + rows(pair[1], "rejects"), "{}", pair[1]);
    }
    assert_eq!((rows("methods", "out"), rows("methods", "rejects")), (12, 1));
    assert_eq!((rows("valid", "out"), rows("sampled", "out")), (10, 6));
    // The rules of a step add up as well.
    let summary = project.rows("valid.summary");
    let mut checked = 12;
    for name in ["parses", "long"] {
        let rule = summary.iter().find(|r| r["rule"] == name).unwrap();
        assert_eq!(rule["checked"], checked, "{summary:?}");
        checked = rule["passed"].as_u64().unwrap();
        let failed = rule["failed"].as_u64().unwrap();
        assert_eq!(rule["checked"].as_u64().unwrap(), checked + failed);
    }
    assert_eq!(checked, 10);
    let id = id(&project.rows("testbed"), 0);
    for place in &project.json(&["trace", "w.yaml", &id])[0]["places"].as_array().unwrap()[1..] {
        let of = |name: &str| place["counts"][name].as_u64().unwrap();
        assert_eq!(of("input"), of("kept") + of("rejected"), "{place}");
    }
    project.run(&["trace", "w.yaml", &id]).exits(0).prints(&["10 = 6 kept + 4 rejected"]);
}

#[test]
fn part_of_an_id_is_enough_and_what_is_missing_is_said() {
    let project = project();
    let id = id(&project.rows("testbed"), 0);
    project.run(&["trace", "w.yaml", &id[..12]]).exits(0).prints(&[&id]);
    // Ids that do not exist or are none.
    let shown = project.run(&["trace", "w.yaml", "0123456789abcdef"]).exits(1);
    assert!(shown.stderr.contains("0123456789abcdef") && shown.stdout.is_empty(), "{shown}");
    for odd in ["", "%", "a' OR 'a'='a", "a_b"] {
        let shown = project.run(&["trace", "w.yaml", odd]);
        assert!(matches!(shown.code, Some(1 | 2)), "{odd:?}: {shown}");
        assert!(!shown.stderr.contains("SQL") && !shown.stderr.contains("panicked"), "{shown}");
    }
    // Before the run, it names the missing result.
    let shown = project.run(&["trace", "w.yaml", &id, "--cache", "empty"]).exits(1);
    says(&shown.stderr, &["not computed yet", "galeras run w.yaml"]);
    // Steps that changed since are named as well.
    project.change("n: 6", "n: 7");
    let shown = project.run(&["trace", "w.yaml", &id]).exits(0);
    says(&format!("{}{}", shown.stdout, shown.stderr), &["not computed yet", "testbed"]);
}

#[test]
fn a_reject_keeps_the_name_of_the_step_that_dropped_it() {
    let steps = "  data: { op: read, with: { path: data.csv } }
  small: { op: validate, from: data, with: { rules: [ { name: r, check: x < 3 } ] } }
  odd: { op: validate, from: small, with: { rules: [ { name: r, check: x % 2 = 1 } ] } }
  dropped:
    op: sql
    from: { a: small.rejects, b: odd.rejects }
    with: { query: 'SELECT id, step FROM a UNION ALL SELECT id, step FROM b' }
  renamed: { op: sql, from: odd.rejects, with: { query: 'SELECT id, upper(step) AS s FROM input' } }
  sampled: { op: sample, from: odd.rejects, with: { n: 5, seed: 1 } }
";
    let project = Project::steps(steps).with("data.csv", "id,x\na,1\nb,2\nc,3\n").ran();
    assert_eq!(project.rows("renamed")[0]["s"], "ODD");
    assert_eq!(project.rows("sampled")[0]["step"], "odd");
    let steps: Vec<Value> = project.rows("dropped").iter().map(|r| r["step"].clone()).collect();
    assert_eq!(steps, ["odd", "small"]);
}

#[test]
fn a_row_is_found_by_its_key_and_a_wrong_key_leads_to_those_that_are_there() {
    let steps = "  file: { op: read, with: { path: data.jsonl, key: [task_id] } }
  problems:
    op: sql
    from: file
    with: { query: 'SELECT id, task_id, prompt AS q, kind FROM input', key: [id] }
  prompts: { op: prompt, from: problems, with: { treatments: { plain: 'Do {{ q }}' } } }
";
    let line = |n| format!("{{\"task_id\":\"Human/{n}\",\"prompt\":\"x{n}\",\"kind\":\"k\"}}\n");
    let lines: String = (0..20).map(line).collect();
    let project = Project::steps(steps).with("data.jsonl", lines).ran();
    let rows = project.rows("file");
    let id = text(rows.iter().find(|row| row["task_id"] == "Human/3").unwrap(), "id");
    for asked in ["Human/3", "task_id=Human/3", "q=x3"] {
        let told = &project.json(&["trace", "w.yaml", asked])[0];
        assert_eq!(told["id"], id, "{asked}");
        assert_eq!(told["leads_to"][0]["step"], "prompts", "{asked}");
    }
    project.run(&["show", "w.yaml", "file", "--row", "Human/3"]).exits(0).prints(&[id]);
    for (asked, exit, words) in [
        ("Human/7x", 1, ["a row with the id Human/7x", "did you mean `Human/7`?"]),
        ("gone", 1, ["the first rows of `file` are `", "`galeras show w.yaml file` lists more"]),
        ("kind=k", 2, ["20 rows match kind=k", "give one of these ids"]),
    ] {
        project.run(&["trace", "w.yaml", asked]).exits(exit).reports(&words);
    }
}
