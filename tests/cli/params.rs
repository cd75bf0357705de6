//! Params: lists and mappings, their choices and `--set`; their names in `from:`; and their values
//! in SQL and in commands, which are never code.

use serde_json::{Value, json};

use crate::harness::{Outcome, Project, every, marked, refused};

const PARAMS: &str = "galeras: 1
params:
  sizes: { type: list, default: [1, 2], choices: [1, 2, 3, 4] }
  models:
    type: list
    default:
      - { name: a, n: 1, url: 'http://x/v1' }
      - { name: b, n: 3, url: 'http://y/v1' }
  limits: { type: mapping, default: { n: 2, deep: { seed: 7 } } }
steps:
  table:
    op: exec
    with:
      command: for i in 1 2 3 4 5 6; do echo '{\"id\":\"'$i'\",\"x\":'$i'}'; done
      output: { id: utf8!, x: int64! }
";

fn project(rest: &str) -> Project {
    Project::new(&format!("{PARAMS}{rest}"))
}

/// `name: rows` of every cell.
fn cells(outcome: &Outcome) -> Vec<String> {
    let finished = outcome.finished();
    let cell = |step: &Value| {
        let name = step["step"].as_str()?.strip_prefix("cells[")?.strip_suffix(']')?;
        Some(format!("{name}: {}", step["rows"]))
    };
    finished["steps"].as_array().unwrap().iter().filter_map(cell).collect()
}

const SIZES: &str = "  cells:
    op: sample
    from: table
    matrix: { size: '${{ params.sizes }}' }
    with: { n: '${{ matrix.size }}', seed: 1 }
";

#[test]
fn a_list_is_an_axis_or_the_matrix() {
    let project = project(SIZES);
    let found = |set: &[&str]| cells(&project.run_ok(set));
    assert_eq!(found(&[]), ["size=1: 1", "size=2: 2"]);
    assert_eq!(found(&["--set", "sizes=[4, 2]"]), ["size=4: 4", "size=2: 2"]);
    assert_eq!(found(&["--set", "sizes=- 3\n- 1"]), ["size=3: 3", "size=1: 1"]);
    let project = self::project(MODELS);
    assert_eq!(cells(&project.run_ok(&[])), ["name=a: 1", "name=b: 3"]);
    let set = ["--set", "models=[{\"name\": \"c\", \"n\": 5, \"url\": null}]"];
    assert_eq!(cells(&project.run_ok(&set)), ["name=c: 5"]);
    let text = "  cells:
    op: sample
    from: table
    matrix: { seed: [1, 2], model: '${{ params.models }}' }
    with: { n: '${{ matrix.model.n }}', seed: '${{ matrix.seed }}' }
";
    let found = cells(&self::project(text).run_ok(&[]));
    let [a, b] = ["model=a: 1", "model=b: 3"];
    let wanted = [1, 2].map(|seed| [a, b].map(|model| format!("seed={seed},{model}")));
    assert_eq!(found, wanted.concat());
}

const MODELS: &str = "  cells:
    op: sample
    from: table
    matrix: '${{ params.models }}'
    with: { n: '${{ matrix.n }}', seed: 1 }
";

#[test]
fn a_mapping_is_a_matrix_an_argument_or_gives_its_values() {
    let text = "  cells:
    op: sample
    from: table
    matrix: '${{ params.grid }}'
    with: { n: '${{ params.limits.n }}', seed: '${{ params.limits.deep.seed }}' }
";
    let grid = "  grid: { type: mapping, default: { a: [1, 2], b: [x] } }\n  limits:";
    let project = project(text);
    project.change("  limits:", grid);
    assert_eq!(cells(&project.run_ok(&[])), ["a=1,b=x: 2", "a=2,b=x: 2"]);
    let set = ["--set", "limits={n: 3, deep: {seed: 1}}", "--set", "grid={a: [7]}"];
    assert_eq!(cells(&project.run_ok(&set)), ["a=7: 3"]);
    // A whole list or mapping is an argument.
    let text = "  counted:
    op: exec
    from: table
    with: { command: cat, output: '${{ params.columns }}' }
  some:
    op: sql
    from: table
    with: { query: 'SELECT id FROM input WHERE x IN ${{ params.sizes }}' }
";
    let columns = "  columns: { type: mapping, default: { id: utf8!, x: int64! } }\n  limits:";
    let project = self::project(text);
    project.change("  limits:", columns);
    let outcome = project.run_ok(&["--set", "sizes=[4,3,1]"]);
    let rows = ["counted", "some"].map(|step| outcome.step(step)["rows"].clone());
    assert_eq!(rows, [6, 3]);
}

/// A mistake in `--set` is reported at its place in the text.
#[track_caller]
fn set_refused(rest: &str, set: &str, found: &str, says: &str) {
    let project = project(rest);
    project.refuses(&["--set", set], found, &[says]);
    assert!(project.stored_nothing());
}

#[test]
fn settings_are_checked_where_they_are_wrong() {
    set_refused(SIZES, "sizes=[1, 5]", "wrong-value --set sizes:1:5", "is not one of the choices");
    set_refused(SIZES, "sizes=1", "wrong-type --set sizes:1:1", "must be a list");
    set_refused(SIZES, "sizes=1,2", "wrong-type --set sizes:1:1", "a list is written `[a, b]`");
    set_refused(SIZES, "sizes=", "wrong-type --set sizes:1:1", "must be a list");
    set_refused(SIZES, "limits=[n, 1]", "wrong-type --set limits:1:1", "must be a mapping");
    set_refused(SIZES, "limits={n: 1, n: 2}", "duplicate-key --set limits:1:8", "twice");
    set_refused(SIZES, "limits={n: '${{ params.x }}'}", "bad-expression --set limits:1:1", "");
    let unclosed = project(SIZES).run_json(&["--set", "sizes=[1, 2"]).exits(2);
    assert!(unclosed.diagnostics()[0].starts_with("yaml-syntax --set sizes:1:"), "{unclosed}");
    let bomb = format!("sizes={}1{}", "[".repeat(70), "]".repeat(70));
    let refused = project(SIZES).run_json(&["--set", &bomb]).exits(2);
    assert!(refused.diagnostics()[0].starts_with("yaml-limit --set sizes:"), "{refused}");
    // A matrix that a param makes wrong is reported at the expression.
    let places = |rest: &str, set: &str, code: &str, says: &str| {
        let (text, place) =
            marked(&format!("{PARAMS}{rest}").replace("'${{ params.models", "«'${{ params.models"));
        let found = format!("{code} w.yaml:{place}");
        Project::new(&text).refuses(&["--set", set], &found, &[says]);
    };
    places(MODELS, "models=[]", "wrong-type", "a list of mappings");
    places(MODELS, "models=[a, b]", "wrong-type", "a list of mappings");
    places(MODELS, "models=[{name: a, n: 1}, {name: a, n: 2}]", "wrong-value", "two cells");
    places(MODELS, "models=[{name: a, n: 1}, {name: b}]", "missing-key", "no key `n`");
    places(MODELS, "models=[{name: {}, n: 1}]", "wrong-type", "which names the cell");
}

#[track_caller]
fn wrong(params: &str, code: &str, word: &str) {
    let steps = "steps: { s: { op: methods, with: { corpus: python-stdlib } } }";
    refused(&format!("galeras: 1\nparams: {{ {params} }}\n{steps}\n"), code, &[word]);
}

/// The params with the mark at the only mistake, the code, words of the message.
#[rustfmt::skip]
const MISTAKES: &[(&str, &str, &str)] = &[
    ("a: { type: list, default: «3 }", "wrong-type", "must be a list"),
    ("a: { type: list, choices: [x, y], default: [x, «z] }", "wrong-value", "choices"),
    ("a: { type: list, choices: [beta, gamma], default: [«bata] }", "wrong-value", "did you mean `beta`?"),
    ("a: { type: list, choices: [«[x]], default: [] }", "wrong-type", "a scalar"),
    ("a: { type: mapping, default: «[x] }", "wrong-type", "must be a mapping"),
    ("a: { type: mapping, «choices: [x], default: {} }", "conflicting-keys", "mapping"),
    ("a: { type: list, «min: 1, default: [] }", "conflicting-keys", "bounds"),
    ("a: { type: «array, default: [] }", "unknown-type", "did you mean `list`?"),
    ("a: { type: «dict, default: {} }", "unknown-type", "did you mean `mapping`?"),
    ("a: «[x, y]", "wrong-type", "type: list, default: [x, y]"),
    ("a: { type: list, default: «['${{ params.b }}'] }", "bad-expression", ""),
];

#[test]
fn params_are_checked_against_themselves() {
    every(MISTAKES.iter().map(|case| (case.0, case)), |(a, b, c)| wrong(a, b, c));
}

const STEPS: &str = "galeras: 1
params:
  which: { type: string, default: small, choices: [small, large] }
  port: { type: string, default: out }
  model: { type: string, default: a }
steps:
  table:
    op: exec
    with:
      command: for i in 1 2 3 4 5 6; do echo '{\"id\":\"'$i'\",\"x\":'$i'}'; done
      output: { id: utf8!, x: int64! }
  small: { op: sample, from: table, with: { n: 1, seed: 1 } }
  large: { op: sample, from: table, with: { n: 4, seed: 1 } }
  cells:
    op: sample
    from: table
    matrix: [ { model: a, n: 2 }, { model: b, n: 3 } ]
    with: { n: '${{ matrix.n }}', seed: 1 }
";

fn with_steps(rest: &str) -> Project {
    Project::new(&format!("{STEPS}{rest}"))
}

fn sql(from: &str) -> String {
    format!(
        "  read:\n    op: sql\n    from: {from}\n    with: {{ query: 'SELECT id FROM input' }}\n"
    )
}

#[test]
fn a_param_names_a_step_a_port_a_cell_or_what_is_written() {
    let project = with_steps(&sql("'${{ params.which }}'"));
    assert_eq!(project.run_ok(&[]).step("read")["rows"], 1);
    let other = project.run_ok(&["--set", "which=large"]);
    assert_eq!(other.step("read")["rows"], 4);
    assert_eq!(other.status("small"), "hit");
    let project = with_steps(&sql("{ input: 'small.${{ params.port }}' }"));
    assert_eq!(project.run_ok(&["--set", "port=rejects"]).step("read")["rows"], 5);
    let project = with_steps(&sql("'cells[model=${{ params.model }}]'"));
    assert_eq!(project.run_ok(&[]).step("read")["rows"], 2);
    assert_eq!(project.run_ok(&["--set", "model=b"]).step("read")["rows"], 3);
    let refused = project.run_json(&["--set", "model=c"]).exits(2);
    assert_eq!(refused.diagnostics().len(), 1, "{refused}");
    assert!(refused.diagnostics()[0].starts_with("unknown-cell w.yaml:"), "{refused}");
    let project = with_steps("outputs:\n  o: { from: '${{ params.which }}', path: o.csv }\n").ran();
    assert_eq!(project.read("o.csv").lines().count(), 2);
    project.run_ok(&["--set", "which=large"]);
    assert_eq!(project.read("o.csv").lines().count(), 5);
}

#[test]
fn every_choice_is_checked_whatever_the_param_is_now() {
    let step = STEPS.replace("choices: [small, large]", "choices: [small, lagre]");
    let text = format!("{step}{}", sql("«'${{ params.which }}'"));
    let words = ["there is no step `lagre`", "did you mean `large`?", "with which = lagre"];
    refused(&text, "unknown-step", &words);
    let text = format!("{STEPS}{}", sql("«'small.${{ params.port }}'"))
        .replace("default: out", "default: out, choices: [out, rejected]");
    refused(&text, "unknown-port", &["no port `rejected`", "with port = rejected"]);
    let text = format!("{STEPS}{}", sql("«'cells[model=${{ params.model }}]'"))
        .replace("default: a", "default: a, choices: [a, b, c]");
    refused(&text, "unknown-cell", &["model=c", "with model = c"]);
    let text =
        format!("{STEPS}outputs:\n  o: {{ from: «'${{{{ params.which }}}}', path: o.csv }}\n")
            .replace("choices: [small, large]", "choices: [small, none]");
    refused(&text, "unknown-step", &["`none`"]);
    let text = format!("{STEPS}{}", sql("«'${{ params.which }}.${{ params.port }}'"))
        .replace("choices: [small, large]", "choices: [small, table]")
        .replace("default: out", "default: out, choices: [out, rejects]");
    let words = ["`table`", "`rejects`", "with which = table, port = rejects"];
    refused(&text, "unknown-port", &words);
    let text = format!("{STEPS}{}", sql("«'${{ params.which }}'"))
        .replace("choices: [small, large]", "choices: [small, after]");
    let after = sql("read").replace("  read:", "  after:");
    refused(&(text + &after), "cycle", &["`read`, `after`", "with which = after"]);
    let project = with_steps(&sql("'${{ params.which }}'"));
    let set = ["--set", "which=largee"];
    project.refuses(&set, "wrong-value --set:1:7", &["did you mean `large`?"]);
}

#[test]
fn an_embedded_workflow_has_its_own_params() {
    let project = Project::new(
        "galeras: 1\nsteps:\n  inner:\n    uses: ./inner.yaml\n    matrix: { which: [small, large] }\n    with: { which: '${{ matrix.which }}' }\noutputs:\n  all: { from: 'inner[*].read', path: all.csv }\n",
    );
    let outputs = "outputs:\n  read: { from: read, path: r.csv }\n";
    project.write("inner.yaml", STEPS.to_owned() + &sql("'${{ params.which }}'") + outputs);
    project.run_ok(&[]);
    assert_eq!(project.read("all.csv").lines().count(), 1 + 1 + 4);
}

#[test]
fn what_cannot_name_a_step_is_refused() {
    let text = |from: &str| format!("{STEPS}{}", sql(from));
    let misspelt = text("'«${{ params.whihc }}'");
    refused(&misspelt, "unknown-param", &["did you mean `which`?"]);
    let of_matrix = text("'«${{ matrix.which }}'");
    refused(&of_matrix, "bad-expression", &["is not allowed in a reference"]);
    refused(&text("'«${{ params.which'"), "bad-expression", &["never closed"]);
    let strings = "{ type: string, default: small, choices: [small, large] }";
    let numbers = text("«'${{ params.which }}'").replace(strings, "{ type: int, default: 3 }");
    let said = "a reference must be a string, and this is of type integer";
    refused(&numbers, "wrong-type", &[said]);
    let (odd, place) = marked(&text("«'${{ params.model }}'"));
    let project = Project::new(&odd);
    for (set, word) in
        [("model=a b", "`a b` is not the name of a step"), ("model=", "names no step")]
    {
        project.refuses(&["--set", set], &format!("bad-reference w.yaml:{place}"), &[word]);
    }
    assert!(project.stored_nothing());
}

/// The workflow whose values come from a param and a matrix.
const VALUES: &str = "galeras: 1
params:
  name: { type: string, default: b }
  least: { type: int, default: 0 }
steps:
  data: { op: read, with: { path: data.csv, key: [name] } }
  found:
    op: sql
    from: data
    with:
      query: |
        SELECT * FROM input  -- it's here
        WHERE name = ${{ params.name }} AND 'a${{ params.name }}' = concat('a', name)
          AND \"${{ matrix.column }}\" >= ${{ params.least }}
    matrix: { column: [n] }
  kept:
    op: validate
    from: data
    with: { rules: [ { name: same, check: \"name = '${{ params.name }}'\" } ] }
    assert:
      - { expr: \"name = ${{ params.name }}\" }
";

const NAMES: [&str; 5] = ["b", "x' OR 1=1 --", "it''s", "\\' OR 'a'='a", "${x} \"q\" `y` $(z)"];

#[test]
fn a_param_is_a_literal_in_sql() {
    for name in NAMES {
        let project = Project::new(VALUES);
        let rows: Vec<String> =
            NAMES.iter().map(|name| format!("\"{}\",1", name.replace('"', "\"\""))).collect();
        project.write("data.csv", format!("name,n\n{}\n", rows.join("\n")));
        let set = format!("name={name}");
        project.run_ok(&["--set", &set]);
        for step in ["found[column=n]", "kept"] {
            let rows = project.rows_with(step, &["--set", &set]);
            assert_eq!(rows.len(), 1, "{name:?} {step}: {rows:?}");
            assert_eq!(rows[0]["name"], name);
        }
    }
    // A negative number after a minus begins no comment.
    let project = Project::new(VALUES).with("data.csv", "name,n\nb,1\n");
    project.change("AND \"$", "AND 5 -${{ params.least }} = 8 AND \"$");
    project.run_ok(&["--set", "least=-3"]);
    assert_eq!(project.rows_with("found[column=n]", &["--set", "least=-3"]).len(), 1);
}

#[test]
fn a_param_is_a_word_in_a_command() {
    let workflow = "galeras: 1
params: { name: { type: string, default: b } }
steps:
  rows:
    op: exec
    matrix: { other: [\"o'k; touch hit\"] }
    with:
      sandbox: none
      command: |
        # it's a comment
        python3 -c 'import json, sys; print(json.dumps({\"id\": \"|\".join(sys.argv[1:])}))' \\
          ${{ params.name }} '${{ params.name }}' \"${{ params.name }}\" -x=${{ matrix.other }}
      output: { id: utf8! }
";
    for name in
        NAMES.iter().chain(&["a; touch hit", "a\nb", "$(touch hit)", "'; touch hit; '", "", "-n"])
    {
        let project = Project::new(workflow);
        let set = format!("name={name}");
        project.run_ok(&["--set", &set]);
        assert!(!project.path("hit").exists(), "{name:?}");
        let rows = project.rows_with("rows[other=o'k; touch hit]", &["--set", &set]);
        assert_eq!(rows, [json!({"id": format!("{name}|{name}|{name}|-x=o'k; touch hit")})]);
    }
}

#[test]
fn where_no_quotes_help_a_param_is_refused() {
    let exec = "op: exec\n    with: { command: 'TEXT', output: { id: utf8! } }";
    let sql = "op: sql\n    from: data\n    with: { query: 'TEXT' }";
    for (step, text, word) in [
        (exec, "«${{ params.x }}", "command"),
        (exec, "echo `ls «${{ params.x }}`", "backticks"),
        (exec, "echo $((1 + «${{ params.x }}))", "arithmetic"),
        (sql, "«${{ params.x }}", "SQL"),
        (sql, "SELECT * FROM input /* «${{ params.x }} */", "comment"),
    ] {
        let step = step.replace("TEXT", text);
        let text = format!(
            "galeras: 1\nparams: {{ x: {{ type: string, default: 'a; b' }} }}\nsteps:\n  data: {{ op: methods, with: {{ corpus: python-stdlib, include: ['json/*.py'] }} }}\n  s:\n    {step}\n"
        );
        let (text, place) = marked(&text);
        let outcome = Project::new(&text).run(&["check", "w.yaml", "--format", "json"]).exits(2);
        assert_eq!(outcome.diagnostics(), [format!("unsafe-substitution w.yaml:{place}")]);
        assert!(outcome.stdout.contains(word), "{word}: {outcome}");
    }
}

#[test]
fn a_missing_path_is_named_in_full_with_the_param_that_gives_it() {
    let flow = "galeras: 1
params: { dir: { type: path, default: src }, text: { type: string, default: gone } }
steps:
  methods: { op: methods, with: { dir: '${{ params.dir }}' } }
  other: { op: methods, with: { dir: '${{ params.text }}/x' } }
";
    let project = Project::empty().with("flows/w.yaml", flow).with("flows/gone/x/m.py", "");
    let root = project.root().canonicalize().unwrap();
    let (here, above) = (root.display(), root.parent().unwrap().display());
    let other = "; `--set dir=PATH` names another, from the current folder\"";
    let relative = "paths are relative to the workflow file: this is";
    for (set, told) in [
        ("text=gone", format!("{relative} `{here}/flows/src`{other}")),
        ("dir=../nowhere", format!("\"this is `{above}/nowhere`{other}")),
        ("text=none", format!("{relative} `{here}/flows/none/x`\"")),
    ] {
        let check = ["check", "flows/w.yaml", "--set", set, "--format", "json"];
        project.run(&check).exits(2).prints(&[&told]);
    }
}
