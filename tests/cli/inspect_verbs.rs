//! `plan`, `check`, `explain`, `graph`, `ops`, `schema`: nothing is computed. The cells of a matrix step
//! are one node of a graph, with what a run would do with them.

use serde_json::{Value, json};

use crate::harness::{Project, every, files_below, flat, has, says, text};

const WORKFLOW: &str = "galeras: 1
name: shapes
params:
  n: { type: int, default: 2 }
steps:
  table:
    op: exec
    with:
      sandbox: none
      command: touch ran; printf '{\"id\":\"a\",\"x\":1}\\n{\"id\":\"b\",\"x\":2}\\n{\"id\":\"c\",\"x\":3}\\n'
      output: { id: utf8!, x: int64! }
  valid: { op: validate, from: table, with: { rules: [ { name: big, check: x > 1 } ] } }
  rest: { op: sample, from: valid.rejects, with: { n: '${{ params.n }}', seed: 1 } }
";

#[test]
fn a_plan_says_what_would_run_and_why_and_an_explanation_what_it_is() {
    let project = Project::new(WORKFLOW);
    let planned = project.run(&["plan", "w.yaml"]).exits(0);
    says(&planned.stdout, &["NEW", "0 of 3"]);
    assert!(planned.stderr.is_empty() && !project.path("ran").exists());
    assert!(project.stored_nothing());
    project.run_ok(&[]);
    let plan = |more: &[&str]| {
        let plan = project.answer(&[&["plan", "w.yaml"], more].concat());
        plan["steps"].as_array().unwrap().clone()
    };
    let steps = plan(&[]);
    assert!(steps.iter().all(|s| s["state"] == "hit"), "{steps:?}");
    assert_eq!((&steps[0]["rows"], &steps[1]["rows"]), (&3.into(), &2.into()));
    let last = &plan(&["--set", "n=1"])[2];
    assert_eq!((&last["state"], &last["reason"]), (&"run".into(), &"ARG_CHANGED".into()));
    assert!(last["detail"].as_str().unwrap().contains("n: 2 → 1"), "{last}");
    // The run did what the plan said.
    assert_eq!(project.run_ok(&["--set", "n=1"]).statuses(), "table=hit valid=hit rest=ran");
    let project = Project::new(WORKFLOW);
    project.run(&["explain", "w.yaml", "rest"]).exits(0).prints(&["not computed yet"]);
    project.run_ok(&[]);
    let words = ["op sample", "hit", "n: 2", "seed: 1", "w.yaml:13", "valid.rejects", "rows"];
    project.run(&["explain", "w.yaml", "rest"]).exits(0).prints(&words);
    let told = project.answer(&["explain", "w.yaml", "rest"]);
    assert_eq!(told["preimage"]["operator"], "sample");
    assert_eq!(told["key"], told["manifest"]["key"]);
    project.run(&["explain", "w.yaml", "rset"]).exits(2).reports(&["did you mean `rest`?"]);
}

#[test]
fn an_argument_is_explained_as_it_is_written() {
    let project = Project::steps(
        "  data: { op: read, with: { path: data.csv } }
  judged:
    op: execute
    from: data
    with: { program: '{{ code }}', tests: 'assert f()', memory: 2GiB }
",
    );
    let project = project.with("data.csv", "id,code\na,x = 1\n");
    let shown = project.run(&["explain", "w.yaml", "judged"]).exits(0).prints(&[
        "  program: \"{{ code }}\"  (w.yaml:7:",
        "  tests: \"assert f()\"  (w.yaml:7:",
        "  memory: \"2GiB\"  (w.yaml:7:",
        "  timeout: \"10s\"  (default)\n",
        "  templates: [",
    ]);
    assert!(!shown.stdout.contains("program: \"{{ code }}\"  (default)"), "{shown}");
}

/// Mistakes on the command line, and words of the message.
#[rustfmt::skip]
const COMMANDS: &[(&str, &[&str])] = &[
    ("run w", &["cannot read w:", "did you mean `w.yaml`?"]),
    ("check w.yml", &["did you mean `w.yaml`?"]),
    ("check other", &["give the path of a workflow file, such as `study.yaml`, `w.yaml`"]),
    ("check .", &["is a folder, not a workflow file", "such as `./study.yaml`, `./w.yaml`"]),
    ("check empty", &["empty is a folder", "`galeras init` writes one"]),
    ("check data.jsonl", &["data.jsonl is a .jsonl file, not a workflow file", "`w.yaml`"]),
    ("run b.zip", &["b.zip is a .zip file, not a workflow file", "unpack a bundle"]),
    ("show w.yaml", &["name a step; the steps are table, valid, rest"]),
    ("explain w.yaml", &["name a step; the steps are table, valid, rest"]),
    ("path w.yaml", &["name a step; the steps are table, valid, rest"]),
    ("show w.yaml table --rows many", &["give a number of rows, or `all`"]),
    ("runs w.yaml --rows many", &["give a number of rows, or `all`"]),
    ("report w.yaml -o x.pdf", &["x.pdf would not be a .pdf file; this verb writes .html"]),
    ("bundle w.yaml -o x.tar", &["x.tar would not be a .tar file; this verb writes .zip"]),
    ("show w.yaml table -o x.xlsx", &["this verb writes .csv, .jsonl, .json, .parquet, .arrow, .txt"]),
    ("show w.yaml table -o x.csv --format json", &["this verb writes .jsonl, .json, .txt"]),
    ("sql w.yaml query -o x.csv.gz", &["x.csv.gz would not be a .gz file"]),
    ("run https://example.org/w.yaml", &["is a URL, not a file of this machine", "download it first"]),
    ("run w.yaml n=3", &["unexpected argument", "A param has its value by --set n=3"]),
    ("plan w.yaml --n=3", &["unexpected argument", "A param has its value by --set n=3"]),
    ("check latin.txt", &["latin.txt is not UTF-8 (byte 14)", "save it as UTF-8"]),
    ("push w.yaml --remote new.zip", &["`galeras bundle` makes a new one"]),
    ("show w.yaml table -o https://example.org/x.csv", &["is a URL; give a path of this machine"]),
    ("export w.yaml table -o hf://me/set", &["is a URL; give a path of this machine"]),
    ("export w.yaml table -o set --exclude a/b/c", &["`a/b/c` is neither OWNER nor OWNER/REPO"]),
    ("plan w.yaml --out s3://bucket/x", &["is a URL; give a path of this machine"]),
    ("ops filter", &["there is no `filter`; `validate` keeps the rows"]),
    ("schema plot", &["there is no `plot`; `figure` draws"]),
    ("export w.yaml table -o set --author ", &["--author: the name is empty"]),
    ("init new.yaml", &["new.yaml is the folder to write to", "galeras init study"]),
    ("cache gc --older-than 2w", &["give a number of days, such as 30"]),
    ("run w.yaml table", &["unexpected argument", "--select table"]),
    ("init ~/study", &["only a shell knows it", "write $HOME"]),
];

#[test]
fn a_mistake_on_the_command_line_leads_to_the_next_step() {
    let project = Project::new(WORKFLOW).with("study.yaml", WORKFLOW).with("data.jsonl", "{}\n");
    project.write("b.zip", "PK");
    std::fs::create_dir(project.path("empty")).unwrap();
    std::fs::write(project.path("latin.txt"), b"galeras: 1\n# f\xfcr\n").unwrap();
    every(COMMANDS.iter().map(|case| (case.0, case)), |(command, words)| {
        let told = project.cli(command).exits(2);
        says(&flat(&told.stderr), words);
    });
    for name in ["x.pdf", "x.tar", "x.xlsx", "x.csv", "x.csv.gz"] {
        assert!(!project.path(name).exists(), "{name}");
    }
}

#[test]
fn several_files_are_checked() {
    let project = Project::new(WORKFLOW).with("good.yaml", WORKFLOW);
    project.write("bad.yaml", WORKFLOW.replace("op: sample", "op: smaple"));
    project.write("worse.yaml", WORKFLOW.replace("x > 1", "y > 1"));
    let checked = project.run(&["check", "w.yaml", "good.yaml"]).exits(0);
    assert!(checked.stdout.contains("w.yaml: ok") && checked.stdout.contains("good.yaml: ok"));
    let checked = project.run(&["check", "w.yaml", "bad.yaml", "worse.yaml", "good.yaml"]).exits(2);
    says(&checked.stderr, &["bad.yaml:13:15", "worse.yaml:12:"]);
    assert!(checked.stdout.contains("good.yaml: ok"), "{checked}");
    let checked = project.run(&["check", "bad.yaml", "worse.yaml", "--format", "json"]).exits(2);
    assert_eq!(checked.diagnostics().len(), 2, "{checked}");
    assert!(!project.path("ran").exists() && project.stored_nothing());
}

#[test]
fn values_of_the_environment_are_stored_nowhere() {
    let project = Project::new(&WORKFLOW.replace("touch ran;", "test \"$TOKEN\" = hush-hush &&"));
    let mut said = String::new();
    for verb in [&["run", "w.yaml"][..], &["explain", "w.yaml", "table"]] {
        let args = [verb, &["--format", "json"]].concat();
        let outcome = project.run_with(&args, &[("TOKEN", "hush-hush")]).exits(0);
        said.push_str(&outcome.stdout.replace("$TOKEN\\\" = hush-hush", ""));
    }
    assert!(!said.contains("hush-hush"), "{said}");
    let secret = b"hush-hush-twice";
    let variables = [("TOKEN", "hush-hush"), ("OTHER", "hush-hush-twice")];
    project.run_with(&["run", "w.yaml", "--force", "table"], &variables).exits(0);
    for file in files_below(&project.path("cache")) {
        let bytes = std::fs::read(&file).unwrap();
        assert!(!bytes.windows(secret.len()).any(|w| w == secret), "{}", file.display());
    }
}

#[test]
fn graphs_name_every_step_and_edge_and_show_odd_text_safely() {
    let project = Project::new(WORKFLOW);
    let mermaid = project.run(&["graph", "w.yaml"]).exits(0);
    assert!(mermaid.stdout.contains("flowchart"), "{mermaid}");
    let dot = project.run(&["graph", "w.yaml", "--format", "dot"]).exits(0);
    assert!(dot.stdout.trim_start().starts_with("digraph"), "{dot}");
    let svg = project.run(&["graph", "w.yaml", "--format", "svg"]).exits(0);
    assert!(svg.stdout.trim_start().starts_with("<svg"), "{svg}");
    assert!(svg.stdout.trim_end().ends_with("</svg>"), "{svg}");
    for graph in [&mermaid, &dot, &svg] {
        assert!(graph.stderr.is_empty());
        says(&graph.stdout, &["table", "valid", "rest", "rejects", "validate", "sample"]);
    }
    assert_eq!(mermaid.stdout.matches("-->").count(), 2);
    assert_eq!(dot.stdout.matches("->").count(), 2);
    assert!(!project.path("cache").exists(), "a graph needs no store");
    let project = Project::new(&WORKFLOW.replace("name: shapes", "name: \"a\\e[31m\\\"<b>&\""));
    for format in ["mermaid", "dot", "svg"] {
        let graph = project.run(&["graph", "w.yaml", "--format", format]).exits(0);
        assert!(!graph.stdout.contains('\u{1b}'), "{format}");
        assert!(format != "svg" || !graph.stdout.contains("<b>"), "{graph}");
    }
    let shown = project.run(&["run", "w.yaml"]).exits(0);
    assert!(!shown.stderr.contains('\u{1b}'), "{shown}");
    let shown = project.run(&["cache", "ls"]).exits(0);
    assert!(!shown.stdout.contains('\u{1b}'), "{shown}");
}

#[test]
fn operators_are_listed_and_documented_and_schemas_are_json() {
    let project = Project::empty();
    let all = project.run(&["ops"]).exits(0);
    let names = ["read", "methods", "ast", "validate", "sample", "cut", "sql", "describe", "exec"];
    for name in names {
        assert!(all.stdout.lines().any(|l| l.starts_with(name)), "{name}\n{all}");
        let one = project.run(&["ops", name]).exits(0);
        says(&one.stdout, &["Example", "Arguments", "Columns out", "Rules", "Cost and limits"]);
        let told = project.run(&["ops", name, "--format", "json"]).exits(0);
        assert_eq!(told.json_lines()[0]["name"], name);
        // The example is a workflow that has no mistakes but for the files it names.
        let example = one.stdout.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
        let indented: String = example.lines().map(|l| format!("  {l}\n")).collect();
        project.write("example.yaml", format!("galeras: 1\nsteps:\n{indented}"));
        let checked = project.run(&["check", "example.yaml", "--format", "json"]);
        let found = checked.diagnostics();
        let real: Vec<_> = found.iter().filter(|d| !d.starts_with("missing-file")).collect();
        assert!(real.is_empty(), "{name}: {checked}");
    }
    project.run(&["ops", "sampel"]).exits(2).reports(&["did you mean `sample`?"]);
    let parse = |args: &[&str]| -> Value {
        serde_json::from_str(&project.run(args).exits(0).stdout).unwrap()
    };
    let workflow = parse(&["schema"]);
    assert!(workflow["$schema"].is_string(), "{workflow}");
    let cut = parse(&["schema", "cut"]);
    assert!(cut.to_string().contains("\"seed\""), "{cut}");
    let table = parse(&["schema", "random_cut"]);
    assert!(table["columns"]["random_cut"].as_str().unwrap().starts_with("utf8"));
    project.run(&["schema", "cuts"]).exits(2).reports(&["did you mean `cut`?"]);
}

#[test]
fn every_verb_documents_itself() {
    let project = Project::empty();
    let verbs = "run plan check explain graph ops schema show sql trace path runs diff init cache \
                 completions";
    for verb in verbs.split(' ') {
        let help = project.run(&[verb, "--help"]).exits(0);
        assert!(help.stdout.contains("Usage") && help.stderr.is_empty(), "{verb}");
    }
}

const MATRIX: &str = "galeras: 1
steps:
  table:
    op: exec
    with:
      command: for i in 1 2 3 4 5 6; do echo '{\"id\":\"'$i'\",\"x\":'$i'}'; done
      output: { id: utf8!, x: int64! }
  cells:
    op: sample
    from: table
    matrix: { size: [2, 3], seed: [1, 2, 3] }
    with: { n: '${{ matrix.size }}', seed: '${{ matrix.seed }}' }
  dropped: { op: sql, from: cells.rejects, with: { query: 'SELECT id FROM input' } }
  all:
    op: sql
    from: cells[*]
    with: { query: 'SELECT id, size, seed FROM input', key: [id, size, seed] }
";

const FORMATS: [&str; 4] = ["mermaid", "dot", "svg", "text"];

fn graph(project: &Project, format: &str, more: &[&str]) -> String {
    let args = [&["graph", "w.yaml", "--format", format], more].concat();
    let drawn = project.run(&args).exits(0);
    assert!(drawn.stderr.is_empty(), "{drawn}");
    drawn.stdout
}

#[test]
fn a_matrix_is_one_node_with_its_count_and_its_states_and_one_edge() {
    let project = Project::new(MATRIX);
    for format in FORMATS {
        let drawn = graph(&project, format, &[]);
        assert!(drawn.contains("6 cells: 6 waiting"), "{format}: {drawn}");
        assert!(!drawn.contains("cells[size"), "{format}: {drawn}");
    }
    assert!(!project.path("cache").exists(), "a graph writes nothing");
    project.run_ok(&["--select", "dropped"]);
    project.edit("w.yaml", "seed: [1, 2, 3]", "seed: [1, 2, 3, 4]");
    for format in FORMATS {
        let drawn = graph(&project, format, &[]);
        says(&drawn, &["8 cells: 6 hit, 2 new", "8 cells: 6 hit, 2 waiting"]);
    }
    let project = Project::new(MATRIX);
    assert_eq!(graph(&project, "mermaid", &[]).matches("-->").count(), 3);
    assert_eq!(graph(&project, "dot", &[]).matches(" -> ").count(), 3);
    let lines = graph(&project, "text", &[]);
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(lines[0].starts_with("table    exec"), "{lines:?}");
    assert!(lines[2].ends_with("← cells.rejects") && lines[3].ends_with("← cells"), "{lines:?}");
    let drawn = graph(&project, "mermaid", &["--cells"]);
    assert_eq!(drawn.matches("cells[size=").count(), 6, "{drawn}");
    assert_eq!(drawn.matches("-->").count(), 6 + 6 + 6, "{drawn}");
    let lines = graph(&project, "text", &["--cells"]);
    assert_eq!(lines.lines().count(), 1 + 6 + 6 + 1, "{lines}");
    for format in FORMATS {
        assert!(!graph(&project, format, &["--cells"]).contains("6 cells"), "{format}");
    }
}

#[test]
fn a_matrix_around_an_embedded_workflow_is_folded_too() {
    let outer = "galeras: 1
steps:
  part: { uses: ./inner.yaml, matrix: { n: [1, 2] }, with: { n: '${{ matrix.n }}' } }
  all: { op: sql, from: 'part[*]', with: { query: 'SELECT id, n FROM input', key: [id, n] } }
";
    let inner = "galeras: 1
params:
  n: { type: int }
steps:
  table: { op: exec, with: { command: 'echo ''{\"id\":\"a\"}''', output: { id: utf8! } } }
  some: { op: sample, from: table, with: { n: '${{ params.n }}', seed: 1 } }
outputs:
  some: { from: some, path: some.csv }
";
    let project = Project::new(outer).with("inner.yaml", inner);
    let lines = graph(&project, "text", &[]);
    let names: Vec<&str> =
        lines.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["part/table", "part/some", "all"], "{lines}");
    assert!(lines.contains("2 cells: 2 new"), "{lines}");
}

#[test]
fn a_code_is_explained_without_a_workflow_and_an_unknown_one_is_refused() {
    let project = Project::empty();
    let explained = project.run(&["check", "--explain", "unknown-column"]).exits(0);
    let said = &explained.stdout;
    assert!(said.starts_with("unknown-column: A column does not exist.\n\n"), "{explained}");
    assert!(said.contains("\n```yaml\n") && said.ends_with("```\n"), "{explained}");
    assert!(explained.stderr.is_empty(), "{explained}");
    let line = project.answer(&["check", "--explain", "cycle"]);
    let title = "Steps need each other's results.";
    has(&line, "event code title", json!(["explanation", "cycle", title]));
    says(text(&line, "explanation"), &["from"]);
    for (code, words) in [
        ("unknown-colum", &["did you mean `unknown-column`?"][..]),
        ("E0308", &["there is no diagnostic code `E0308`", "yaml-syntax"]),
    ] {
        let refused = project.run(&["check", "--explain", code]).exits(2).reports(words);
        assert!(refused.stdout.is_empty(), "{refused}");
    }
    // Files are either checked or not.
    project.run(&["check"]).exits(2);
    project.run(&["check", "w.yaml", "--explain", "cycle"]).exits(2);
}

#[test]
fn what_check_reports_can_be_explained() {
    let project = Project::new("galeras: 1\nname: w\nsteps:\n  a: { op: methds }\n");
    let checked = project.run(&["check", "w.yaml", "--format", "json"]).exits(2);
    let lines = checked.json_lines();
    let code = lines[0]["code"].as_str().unwrap();
    assert_eq!(code, "unknown-operator", "{checked}");
    project.run(&["check", "--explain", code]).exits(0).prints(&["galeras ops"]);
}
