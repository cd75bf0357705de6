//! Params that are lists and mappings: their values, their choices, `--set`, and matrices of them.

use serde_json::Value;

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
    let text = format!("{PARAMS}{text}").replace(
        "  limits:",
        "  grid: { type: mapping, default: { a: [1, 2], b: [x] } }\n  limits:",
    );
    let project = Project::new(&text);
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
    let text = format!("{PARAMS}{text}").replace(
        "  limits:",
        "  columns: { type: mapping, default: { id: utf8!, x: int64! } }\n  limits:",
    );
    let outcome = Project::new(&text).run_ok(&["--set", "sizes=[4,3,1]"]);
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
}

#[test]
fn a_matrix_that_a_param_makes_wrong_is_told_at_the_expression() {
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
