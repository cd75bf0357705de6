//! Files that are not a workflow: broken YAML, bombs, empty, huge; and unknown names and wrong values.
//! Each is found before anything runs, with its place and a suggestion.

use crate::harness::{Outcome, Project, every, marked, patience, refused, says, told};

/// Refused: exit 2, nothing stored, the answer ends with a `finished` event.
#[track_caller]
fn invalid(project: &Project) -> Outcome {
    let outcome = project.run_json(&[]).exits(2);
    assert_eq!(outcome.finished()["status"], "invalid");
    assert!(project.stored_nothing(), "{outcome}");
    assert!(!outcome.events("diagnostic").is_empty(), "{outcome}");
    outcome
}

#[test]
fn what_is_no_workflow_is_one_mistake_and_what_cannot_be_read_is_named() {
    let syntax = "galeras: 1\nsteps:\n  a: { op: exec, with: [ }\n";
    for (text, start) in [
        (syntax, "yaml-syntax w.yaml:3:"),
        ("galeras: 1\nsteps:\n\ta:\n\t\top: exec\n", "yaml-syntax w.yaml:3:"),
        ("", "empty-file w.yaml:"),
        ("\n\n", "empty-file w.yaml:"),
        ("# only a comment\n", "empty-file w.yaml:"),
        ("---\n", "empty-file w.yaml:"),
        ("- a\n- b\n", "wrong-type w.yaml:1:1"),
    ] {
        let found = invalid(&Project::new(text)).diagnostics();
        assert!(found.len() == 1 && found[0].starts_with(start), "{text:?}: {found:?}");
    }
    let shown = Project::new(syntax).run(&["run", "w.yaml"]).exits(2).reports(&["w.yaml:3:"]);
    assert!(shown.stdout.is_empty(), "{shown}");
    let project = Project::empty().with("bytes.yaml", b"galeras: 1\nname: \xff\xfe\n");
    let outcome = project.run_json(&[]).exits(2);
    assert_eq!(outcome.diagnostics().len(), 1, "{outcome}");
    assert!(outcome.diagnostics()[0].starts_with("missing-file w.yaml:"), "{outcome}");
    for (file, said) in
        [("w.yaml", "cannot read w.yaml"), (".", "is a folder"), ("bytes.yaml", "not UTF-8")]
    {
        project.run(&["run", file]).exits(2).reports(&[said]);
    }
}

#[test]
fn bombs_deep_files_and_ten_megabytes_are_refused_in_bounded_time() {
    let mut text = String::from("galeras: 1\nx0: &x0 [lol, lol, lol, lol, lol, lol, lol, lol]\n");
    for i in 1..30 {
        let one = format!("*x{}", i - 1);
        text.push_str(&format!("x{i}: &x{i} [{}]\n", vec![one; 8].join(", ")));
    }
    text.push_str("steps: { a: { op: exec, with: *x29 } }\n");
    let outcome = invalid(&Project::new(&text));
    assert!(outcome.took < patience(5), "{:?}", outcome.took);
    assert!(outcome.diagnostics().iter().any(|d| d.starts_with("yaml-limit ")), "{outcome}");
    for text in [
        format!("galeras: 1\nsteps: {}{}\n", "[".repeat(200_000), "]".repeat(200_000)),
        format!("galeras: 1\nsteps: {}", "{a: ".repeat(200_000)),
        format!("galeras: 1\nsteps: {}x\n", "- ".repeat(200_000)),
    ] {
        let outcome = invalid(&Project::new(&text));
        assert!(outcome.took < patience(5), "{:?}", outcome.took);
        assert!(outcome.stdout.len() < 20_000, "{}", outcome.stdout.len());
    }
    let mut text = String::from("galeras: 1\nsteps:\n");
    let mut i = 0;
    while text.len() < 10 << 20 {
        text.push_str(&format!("  s{i}: {{ op: exec, with: {{ command: \"true\" }} }}\n"));
        i += 1;
    }
    let project = Project::new(&text);
    let outcome = invalid(&project);
    assert!(outcome.took < patience(10), "{:?}", outcome.took);
    assert!(outcome.diagnostics()[0].starts_with("yaml-limit w.yaml:"), "{outcome}");
    let shown = project.run(&["run", "w.yaml"]).exits(2);
    assert!(shown.stderr.len() < 10_000, "{}", shown.stderr.len());
    // Nor does a comment of that length on one line flood the terminal.
    let comment = format!("galeras: 1 # {}\nsteps: {{}}\n", "x".repeat(10 << 20));
    let shown = Project::new(&comment).run(&["run", "w.yaml"]).exits(2);
    assert!(shown.stderr.len() < 10_000, "{}", shown.stderr.len());
}

const TEN_MISTAKES: &str = "\
galeras: 1
params:
  seed: { type: int, default: many }
colour: blue
steps:
  a: { op: exec, with: { command: echo, output: { id: utf8!, x: int64, text: utf8 } } }
  b: { op: validat, from: a }
  c: { op: sql, from: a, with: { query: 'SELECT id, z FROM input' } }
  d: { op: sample, from: a.rejcts, with: { n: 1, seed: 1 } }
  e: { op: sample, from: a, with: { n: '${{ params.sed }}', seed: 1 } }
  f: { op: cut, from: a, with: { column: text, seed: 1, max: wide } }
  g: { op: sample, from: nowhere, with: { n: 1, seed: 1 } }
  h: { op: cut, from: h, with: { column: text, seed: 1 } }
outputs:
  out: { from: a, path: out.xlsx }
";

#[test]
fn ten_mistakes_are_ten_diagnostics() {
    let project = Project::new(TEN_MISTAKES);
    let outcome = invalid(&project);
    let wanted = "wrong-type 3:31, unknown-key 4:1, unknown-operator 7:12, unknown-column 8:53, \
                  unknown-port 9:28, unknown-param 10:41, wrong-type 11:62, unknown-step 12:26, \
                  cycle 13:23, bad-path 15:25";
    assert_eq!(outcome.diagnostics().join(", ").replace("w.yaml:", ""), wanted, "{outcome}");
    let shown = project.run(&["run", "w.yaml"]).exits(2);
    for line in [3, 4, 7, 8, 9, 10, 11, 12, 13, 15] {
        assert!(shown.stderr.contains(&format!("w.yaml:{line}:")), "line {line}\n{shown}");
    }
    assert!(shown.stdout.is_empty() && project.stored_nothing());
}

/// A table of three columns, then `rest`, indented as an entry of `steps`.
pub fn workflow(rest: &str) -> String {
    format!(
        "galeras: 1
params:
  seed: {{ type: int, default: 1 }}
steps:
  table:
    op: exec
    with: {{ sandbox: none,
      command: \"touch ran; printf '{{\\\"id\\\":\\\"a\\\",\\\"code\\\":\\\"x y\\\",\\\"size\\\":1}}'\",
      output: {{ id: utf8!, code: utf8!, size: int64! }} }}
{rest}"
    )
}

#[track_caller]
fn wrong(workflow: &str, code: &str, suggestion: &str) {
    let (workflow, place) = marked(workflow);
    let project = Project::new(&workflow);
    let suggestion = match suggestion {
        "" => String::new(),
        name => format!("did you mean `{name}`?"),
    };
    project.refused_at(&place, code, &[&suggestion]);
    let shown = project.run(&["check", "w.yaml"]).exits(2);
    assert!(shown.stderr.contains('─'), "a mark below the text\n{shown}");
    project.run(&["plan", "w.yaml"]).exits(2);
}

/// The entries behind the table with the mark at the only mistake, the code, the suggestion.
#[rustfmt::skip]
const MISTAKES: &[(&str, &str, &str)] = &[
    ("«output: {}", "unknown-key", "outputs"),
    ("  b: { op: sample, «form: table, with: { n: 1, seed: 1 } }", "unknown-key", "from"),
    ("outputs: { o: { from: table, path: o.csv, «fromat: csv } }", "unknown-key", ""),
    ("  b: { op: «sampel, from: table, with: { n: 1, seed: 1 } }", "unknown-operator", "sample"),
    ("  b: { op: sample, from: table, with: { n: 1, «sed: 1 } }", "unknown-argument", "seed"),
    ("  b: { op: validate, from: table, with: { rules: [ { name: r, check: 'size > 0', «onfail: flag } ] } }", "unknown-argument", "on_fail"),
    ("  b: { op: cut, from: table, with: { column: «cod, seed: 1 } }", "unknown-column", "code"),
    ("  b: { op: validate, from: table, with: { rules: [ { name: r, check: '«sise > 0' } ] } }", "unknown-column", "size"),
    ("    assert: [ { unique: [id] }, { not_null: [«idd] } ]", "unknown-column", "id"),
    ("    assert: [ { expr: '«sizee > 1' } ]", "unknown-column", "size"),
    ("  b: { op: sample, from: table, with: { n: 1, seed: '«${{ params.sed }}' } }", "unknown-param", "seed"),
    ("  b: { op: sample, from: table, matrix: { size: [1, 2] }, with: { seed: 1, n: '«${{ matrix.sice }}' } }", "unknown-param", "size"),
    ("  b: { op: sample, from: table, with: { n: 1, seed: 1 } }\n  c: { op: sample, from: b.«reject, with: { n: 1, seed: 1 } }", "unknown-port", "rejects"),
    ("outputs: { o: { from: table.«outt, path: o.csv } }", "unknown-port", "out"),
    ("    assert: [ { rows: { min: 1 }, port: «rejects } ]", "unknown-port", ""),
    ("  b: { op: sample, from: «tabel, with: { n: 1, seed: 1 } }", "unknown-step", "table"),
    ("outputs: { o: { from: «tabel, path: o.csv } }", "unknown-step", "table"),
    ("  b: { op: sample, from: table, matrix: { model: [small, large] }, with: { n: 1, seed: 1 } }\n  c:\n    op: sample\n    from: «b[model=smal]\n    with: { n: 1, seed: 1 }", "unknown-cell", "small"),
    ("  b: { op: sample, from: table, matrix: { model: [small, large] }, with: { n: 1, seed: 1 } }\n  c:\n    op: sample\n    from: «b[modle=small]\n    with: { n: 1, seed: 1 }", "unknown-cell", "model"),
    ("  b: { op: sample, from: «b, with: { n: 1, seed: 1 } }", "cycle", ""),
    // Columns that a step adds would replace those of its input.
    ("  b: { op: cut, from: table, with: { seed: 1 } }\n  c: { op: cut, from: «b, with: { seed: 1 } }", "duplicate-column", ""),
    ("  b: { op: ast, from: table }\n  c: { op: ast, from: «b }", "duplicate-column", ""),
    ("  b: { op: prompt, from: table, with: { treatments: { a: '{{ code }}' } } }\n  c: { op: prompt, from: «b, with: { treatments: { a: '{{ code }}' } } }", "duplicate-column", ""),
    ("  b: { op: generate, from: table, with: { provider: echo, given: code } }\n  c: { op: generate, from: «b, with: { provider: echo, given: code } }", "duplicate-column", ""),
    ("  b: { op: score, from: table, with: { reference: code, prediction: code } }\n  c: { op: score, from: «b, with: { reference: code, prediction: code } }", "duplicate-column", ""),
    ("  b: { op: taxonomy, from: table, with: { column: code } }\n  c: { op: taxonomy, from: «b, with: { column: code } }", "duplicate-column", ""),
    ("  b: { op: methods, with: { dir: «nowhere } }", "missing-file", ""),
    ("  b: { op: exec, with: { command: cat x, files: [«x], output: { id: utf8 } } }", "missing-file", ""),
    ("  b: { uses: «./other.yaml }", "missing-file", ""),
    ("    schema: «contract.json", "missing-file", ""),
    ("  b: { op: read, with: { path: «data.csv } }", "missing-file", ""),
];

#[test]
fn names_that_name_nothing_are_found_at_their_place() {
    every(MISTAKES.iter().map(|case| (case.0, case)), |(rest, code, suggestion)| {
        wrong(&workflow(&format!("{rest}\n")), code, suggestion);
    });
    wrong(&workflow("").replace("default: 1 }", "default: 1, «maxx: 0 }"), "unknown-key", "max");
}

#[test]
fn names_of_other_tools_lead_to_what_is_here() {
    for (rest, code, words) in [
        (
            "  b: { op: «filter, from: table, with: { where: 'size > 1' } }",
            "unknown-operator",
            "WHERE",
        ),
        ("  b: { op: «GroupBy, from: table }", "unknown-operator", "`sql`"),
        (
            "  b: { op: score, from: table, with: { reference: code, prediction: code, metrics: [«'pass@1'] } }",
            "wrong-value",
            "`pass_at_k(n, c, k)`",
        ),
        (
            "  b: { op: prompt, from: table, with: { treatments: { a: {«{ code }} } } }",
            "wrong-type",
            "\"{{ code }}\"",
        ),
    ] {
        refused(&workflow(&format!("{rest}\n")), code, &[words]);
    }
}

#[test]
fn a_value_of_another_type_leads_to_its_right_form() {
    for (step, words) in [
        ("sample, from: table, with: { n: «\"4\", seed: 1 }", "without quotes: `4`"),
        ("sample, from: table, with: { n: «four, seed: 1 }", "a number in digits; n: "),
        (
            "sample, from: table, with: { n: «'{{ params.n }}', seed: 1 }",
            "a param is written `\"${{ params.n }}\"`",
        ),
        ("sample, from: table, with: { n: 1, seed: «1.5 }", "a number without a fraction; seed: "),
        (
            "dedup, from: table, with: { column: code, threshold: «high }",
            "a number in digits; threshold: ",
        ),
        (
            "execute, from: table, with: { program: x, expected: y, timeout: «10 }",
            "with a unit: `timeout: 10s`",
        ),
        ("oracle, from: table, with: { seed: 1, memory: «2 }", "with a unit: `memory: 2GiB`"),
        ("cut, from: table, with: { column: «1, seed: 1 }", "in quotes: `\"1\"`"),
        ("describe, from: table, with: { columns: «size }", "a list: `[size]`"),
        ("dedup, from: table, with: { column: code, «null: 3 }", "in quotes: \"null\""),
        (
            "cut, from: table, with: { column: «'${{ params.seed }}', seed: 1 }",
            "the param needs `type: string`",
        ),
    ] {
        refused(&workflow(&format!("  b: {{ op: {step} }}\n")), "wrong-type", &[words]);
    }
    for (param, words) in [
        ("int, default: «'1' }", "a number has no quotes"),
        ("float, default: «one }", "a number is written in digits"),
        ("string, default: «10 }", "a value in quotes is a string"),
    ] {
        refused(&workflow("").replace("int, default: 1 }", param), "wrong-type", &[words]);
    }
}

#[test]
fn an_unknown_column_or_table_of_a_query_and_one_of_the_ninth_step() {
    let text = workflow(
        "  b:\n    op: sql\n    from: table\n    with:\n      query: |\n        SELECT id,\n          sizes\n        FROM input\n",
    );
    let found = Project::new(&text).refused_once("unknown-column", "did you mean `size`?");
    assert!(found["line"].to_string().starts_with('1') && found["file"] == "w.yaml", "{found}");
    let text = workflow(
        "  b:\n    op: sql\n    from: { left: table, right: table }\n    with: { query: 'SELECT id FROM input' }\n",
    );
    let outcome = Project::new(&text).run_json(&[]).exits(2);
    assert_eq!(outcome.events("diagnostic").len(), 1, "{outcome}");
    let message = &outcome.events("diagnostic")[0];
    says(&told(message), &["input", "left"]);
    assert_eq!((&message["line"], &message["file"]), (&13.into(), &"w.yaml".into()));
    let mut rest = String::new();
    let mut before = String::from("table");
    for i in 2..9 {
        let more = "with: { query: 'SELECT id, code, size + 1 AS size FROM input' }";
        rest.push_str(&format!("  s{i}:\n    op: sql\n    from: {before}\n    {more}\n"));
        before = format!("s{i}");
    }
    rest.push_str("  s9:\n    op: describe\n    from: s8\n    with: { columns: [«siz] }\n");
    wrong(&workflow(&rest), "unknown-column", "size");
}

#[test]
fn an_expression_with_a_typo() {
    for typo in
        ["${{ param.seed }}", "${{ seed }}", "${{ params.seed + 1 }}", "${{ params.seed", "${{ }}"]
    {
        let step =
            format!("  b: {{ op: sample, from: table, with: {{ n: 1, seed: '{typo}' }} }}\n");
        let outcome = Project::new(&workflow(&step)).run_json(&[]).exits(2);
        let found = outcome.diagnostics();
        assert_eq!(found.len(), 1, "{typo}: {outcome}");
        assert!(found[0].starts_with("bad-expression w.yaml:10:"), "{typo}: {outcome}");
        assert!(!outcome.events("diagnostic")[0]["help"].is_null(), "{typo}: {outcome}");
    }
}

#[test]
fn steps_that_need_each_other_and_two_of_one_name() {
    let one = "    op: sample\n    with: { n: 1, seed: 1 }\n";
    let text = workflow(&format!(
        "  b:\n    from: «d\n{one}  c:\n    from: b\n{one}  d:\n    from: c\n{one}"
    ));
    refused(&text, "cycle", &["`b`", "`c`", "`d`"]);
    let step = |i: usize| {
        let from = (i + 1) % 3_000;
        format!("  s{i}: {{ op: sample, from: s{from}, with: {{ n: 1, seed: 1 }} }}\n")
    };
    let rest: String = (0..3_000).map(step).collect();
    let outcome = Project::new(&workflow(&rest)).run_json(&[]).exits(2);
    assert_eq!(outcome.diagnostics(), ["cycle w.yaml:10:27"]);
    let shown = outcome.stdout.lines().next().unwrap().len();
    assert!(shown < 20_000, "one diagnostic of {shown} bytes");
    // Two steps of one name.
    let text = workflow("  «table: { op: sample, from: table, with: { n: 1, seed: 1 } }\n");
    let outcome = refused(&text, "duplicate-key", &[]);
    assert_eq!(outcome.events("diagnostic")[0]["related"][0]["line"], 5, "{outcome}");
}

#[test]
fn settings_and_steps_on_the_command_line_that_are_none() {
    let project = Project::new(&workflow(""));
    for (setting, wanted, help) in [
        ("sede=1", "unknown-param --set:1:1", "did you mean `seed`?"),
        ("seed=one", "wrong-type --set:1:6", ""),
        ("seed=1.5", "wrong-type --set:1:6", ""),
        ("seed", "unknown-option --set:1:1", ""),
    ] {
        project.refuses(&["--set", setting], wanted, &[help]);
        project.run(&["run", "w.yaml", "--set", setting]).exits(2).reports(&[setting]);
        assert!(!project.path("ran").exists() && project.stored_nothing());
    }
    // Two mistakes on the command line and one in the file are three.
    project.change("op: exec", "op: exce");
    let outcome = project.run_json(&["--set", "sede=1", "--set", "seed=x"]).exits(2);
    assert_eq!(outcome.diagnostics().len(), 3, "{outcome}");
    // Steps on the command line that are none.
    let project = Project::new(&workflow(""));
    for option in ["--select", "--force"] {
        let args = ["run", "w.yaml", option, "tabel"];
        project.run(&args).exits(2).reports(&["did you mean `table`?"]);
        assert!(!project.path("ran").exists());
        let outcome = project.run_json(&[option, "tabel"]).exits(2);
        assert_eq!(outcome.finished()["status"], "invalid", "{outcome}");
    }
}

const TABLE: &str = "galeras: 1
params:
  n: { type: int, default: 1, min: 1, max: 9 }
  share: { type: float, default: 0.5 }
  kind: { type: string, default: a, choices: [a, b] }
  on: { type: bool, default: true }
steps:
  table:
    op: exec
    with:
      sandbox: none
      command: touch ran; printf '{\"id\":\"a\",\"code\":\"x y\",\"size\":1}'
      output: { id: utf8!, code: utf8!, size: int64! }
";

/// The entries behind the table with the mark at the only mistake, and the code.
#[rustfmt::skip]
const VALUES: &[(&str, &str)] = &[
    ("  b: { op: sample, from: table, with: { n: «many, seed: 1 } }", "wrong-type"),
    ("  b: { op: sample, from: table, with: { n: «1.5, seed: 1 } }", "wrong-type"),
    ("  b: { op: sample, from: table, with: { n: «'1', seed: 1 } }", "wrong-type"),
    ("  b: { op: sample, from: table, with: { n: «[1], seed: 1 } }", "wrong-type"),
    ("  b: { op: sample, from: table, with: { n: 1, seed: 1, stratify: «code } }", "wrong-type"),
    ("  b: { op: sample, from: table, with: «[n, 1] }", "wrong-type"),
    ("  b: { op: sample, from: table, with: { n: «-1, seed: 1 } }", "wrong-value"),
    ("  b: { op: sample, from: table, with: { fraction: «1.5, seed: 1 } }", "wrong-value"),
    ("  b: { op: sample, from: table, with: { n: «99999999999999999999, seed: 1 } }", "wrong-value"),
    ("  b: { op: cut, from: table, with: { seed: 1, column: «size } }", "wrong-type"),
    ("  b: { op: correlate, from: table, with: { outcomes: [size], variables: [«code] } }", "wrong-type"),
    ("  «b: { op: sample, with: { n: 1, seed: 1 } }", "wrong-inputs"),
    ("  b: { op: sample, from: { left: «table, right: table }, with: { n: 1, seed: 1 } }", "wrong-inputs"),
    ("  b: { op: methods, from: «table, with: { corpus: python-stdlib } }", "wrong-inputs"),
    ("    from: «[a, b]", "wrong-type"),
    ("    assert: «{ unique: [id] }", "wrong-type"),
    ("    assert: [ { unique: «id } ]", "wrong-type"),
    ("    assert: [ { rows: { min: «-1 } } ]", "wrong-type"),
    ("    schema: { id: «text }", "unknown-type"),
    ("    matrix: { a: «[] }", "wrong-type"),
    ("outputs: { o: { from: table, path: «../o.csv } }", "bad-path"),
    ("outputs: { o: { from: table, path: «/tmp/o.csv } }", "bad-path"),
    ("outputs: { o: { from: table, path: «.vscode/tasks.json } }", "bad-path"),
    ("outputs: { o: { from: table, path: «x/.o.csv } }", "bad-path"),
    ("outputs: { o: { from: table, path: «x/Package.json } }", "bad-path"),
    ("  «bad name: { op: exec, with: { command: x, output: { id: utf8 } } }", "bad-name"),
    ("  c: { op: sample, from: table, with: { n: 1, seed: 1 }, «uses: ./x.yaml }", "conflicting-keys"),
];

/// Replacements in the table, with the mark.
const CHANGES: [(&str, &str, &str); 6] = [
    ("default: 1,", "default: «0,", "wrong-value"),
    ("default: a,", "default: «c,", "wrong-value"),
    ("type: bool", "type: «boole", "unknown-type"),
    ("galeras: 1", "galeras: «2", "wrong-value"),
    ("galeras: 1\n", "«name: x\n", "missing-key"),
    ("op: exec", "op: «[exec]", "wrong-type"),
];

#[test]
fn values_are_checked_at_their_place() {
    let entries = VALUES.iter().map(|(rest, code)| (format!("{TABLE}{rest}\n"), *code));
    let changes = CHANGES.iter().map(|(old, new, code)| (TABLE.replace(old, new), *code));
    every(entries.chain(changes).map(|case| (case.0.clone(), case)), |(text, code)| {
        let message = told(&refused(&text, code, &[]).events("diagnostic")[0]);
        assert!(!message.contains("a integer") && !message.contains("null"), "{message}");
    });
    let cut = format!("{TABLE}  b: {{ op: cut, from: table, with: {{ seed: 1, at: «lines }} }}\n");
    refused(&cut, "wrong-value", &["did you mean `line`?"]);
}

#[test]
fn arguments_that_are_missing_or_contradict_and_conditions_that_are_none() {
    let step = "  b: { op: sample, from: table, with: { n: 1 } }\n";
    let project = Project::new(&format!("{TABLE}{step}"));
    let outcome = project.run_json(&[]).exits(2);
    let found = outcome.diagnostics();
    assert_eq!(found.len(), 1, "{outcome}");
    assert!(found[0].starts_with("missing-argument w.yaml:1"), "{outcome}");
    assert!(outcome.stdout.contains("seed"), "{outcome}");
    let project = Project::new(&TABLE.replace("type: int, default: 1,", "type: int,"));
    project.refuses(&[], "missing-argument w.yaml:3:3", &["--set n="]);
    project.run_ok(&["--set", "n=2"]);
    let text = format!("{TABLE}  b: {{ op: cut, from: table, with: {{ seed: 1, min: 0.9 }} }}\n");
    let outcome = Project::new(&text).run_json(&[]).exits(2);
    assert_eq!(outcome.diagnostics().len(), 1, "{outcome}");
    let rule = |check: &str| {
        format!(
            "{TABLE}  b:\n    op: validate\n    from: table\n    with:\n      rules:\n        - {{ name: r, check: «'{check}' }}\n"
        )
    };
    for check in ["size + 1", "size >", "size = (SELECT 1)", "count(*) > 1", "size > size > 1", ""]
    {
        let (text, place) = marked(&rule(check));
        let project = Project::new(&text);
        let outcome = project.run_json(&[]).exits(2);
        let found = outcome.diagnostics();
        assert_eq!(found.len(), 1, "{check}: {outcome}");
        // The word that is wrong, if it can be told, else the whole of it.
        let line = place.split(':').next().unwrap();
        assert!(found[0].contains(&format!("w.yaml:{line}:")), "{check}: {outcome}");
        assert!(!project.path("ran").exists());
    }
}

#[test]
fn settings_out_of_bounds_and_the_command_line_itself() {
    let project = Project::new(TABLE);
    for (setting, wanted) in [
        ("n=0", "wrong-value --set:1:3"),
        ("n=10", "wrong-value --set:1:3"),
        ("kind=c", "wrong-value --set:1:6"),
        ("on=yes", "wrong-type --set:1:4"),
        ("share=half", "wrong-type --set:1:7"),
        ("share=nan", "wrong-type --set:1:7"),
    ] {
        project.refuses(&["--set", setting], wanted, &[]);
    }
    project.run_ok(&["--set", "n=9", "--set", "kind=b", "--set", "on=false", "--set", "share=1"]);
    for args in [
        &["run"][..],
        &["runn", "w.yaml"],
        &["run", "w.yaml", "--job", "2"],
        &["run", "w.yaml", "--jobs", "0"],
        &["run", "w.yaml", "--format", "xml"],
        &[],
    ] {
        let shown = project.run(args).exits(2);
        assert!(shown.stdout.is_empty() && !shown.stderr.is_empty(), "{args:?}: {shown}");
    }
    project.run(&["run", "w.yaml", "--job", "2"]).exits(2).reports(&["--jobs"]);
    let help = project.run(&["--help"]).exits(0);
    assert!(help.stdout.contains("interrupted") && help.stderr.is_empty(), "{help}");
    project.run(&["--version"]).exits(0);
}

/// YAML merge keys: arguments that several steps share.
const STEPS: &str = "galeras: 1
steps:
  table:
    op: exec
    with:
      command: for i in 1 2 3 4 5 6; do echo '{\"id\":\"'$i'\",\"x\":'$i'}'; done
      output: { id: utf8!, x: int64! }
  one: { op: sample, from: table, with: &common { n: 2, seed: 1 } }
  two: { op: sample, from: table, with: { <<: *common, n: 3 } }
  three: &three { op: sample, from: two, with: { n: 1, <<: *common } }
  four:
    <<: *three
    from: one
    with:
      <<: [ { seed: 5 }, *common ]
";

#[test]
fn keys_are_taken_over_and_those_that_are_written_count() {
    let project = Project::new(STEPS);
    let outcome = project.run_ok(&[]);
    for (step, rows) in [("one", 2), ("two", 3), ("three", 1), ("four", 2)] {
        assert_eq!(outcome.step(step)["rows"], rows, "{step}");
    }
    // Written out, it is the same: nothing runs.
    project.change("{ <<: *common, n: 3 }", "{ seed: 1, n: 3 }");
    project.change("{ n: 1, <<: *common }", "{ n: 1, seed: 1 }");
    project.rerun("      <<: [ { seed: 5 }, *common ]\n", "      n: 2\n      seed: 5\n").all_hit();
    let text = STEPS.replace(
        "    from: one\n    with:\n      <<: [ { seed: 5 }, *common ]\n",
        "    from: table\n    matrix:\n      - { size: 1, <<: &more { of: a, at: 1 } }\n      - { size: 2, <<: *more, at: 2 }\n    with: { <<: *common, n: '${{ matrix.size }}' }\n",
    );
    let outcome = Project::new(&text).run_ok(&[]);
    assert_eq!(outcome.step("four[size=1]")["rows"], 1);
    assert_eq!(outcome.step("four[size=2]")["rows"], 2);
}

#[test]
fn mistakes_in_merged_keys_have_the_place_where_they_are_written() {
    refused(&STEPS.replace("&common { n: 2", "&common { n: «-2"), "wrong-value", &["`n` must be"]);
    let misspelt = STEPS.replace("&common { n: 2, seed: 1 }", "&common { n: 2, seed: 1, «sed: 1 }");
    refused(&misspelt, "unknown-argument", &["no argument `sed`"]);
    let with = |merge: &str| {
        STEPS.replace("{ <<: *common, n: 3 }", &format!("{{ {merge}, n: 3, seed: 1 }}"))
    };
    let said = "`<<` takes over the keys of a mapping, not the integer `3`";
    refused(&with("<<: «3"), "wrong-type", &[said]);
    refused(&with("<<: [*common, «[]]"), "wrong-type", &["not a list"]);
    refused(&with("<<: *common, «<<: *common"), "duplicate-key", &["`<<` is defined twice"]);
    refused(&with("«'<<': *common"), "unknown-argument", &["no argument `<<`"]);
}
