//! Params in `from:`: what they name, and that every choice of a param names something.

use crate::harness::{Project, marked, refused};

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

fn project(rest: &str) -> Project {
    Project::new(&format!("{STEPS}{rest}"))
}

fn sql(from: &str) -> String {
    format!(
        "  read:\n    op: sql\n    from: {from}\n    with: {{ query: 'SELECT id FROM input' }}\n"
    )
}

#[test]
fn a_param_names_a_step_a_port_a_cell_or_what_is_written() {
    let project = project(&sql("'${{ params.which }}'"));
    assert_eq!(project.run_ok(&[]).step("read")["rows"], 1);
    let other = project.run_ok(&["--set", "which=large"]);
    assert_eq!(other.step("read")["rows"], 4);
    assert_eq!(other.status("small"), "hit");
    let project = self::project(&sql("{ input: 'small.${{ params.port }}' }"));
    assert_eq!(project.run_ok(&["--set", "port=rejects"]).step("read")["rows"], 5);
    let project = self::project(&sql("'cells[model=${{ params.model }}]'"));
    assert_eq!(project.run_ok(&[]).step("read")["rows"], 2);
    assert_eq!(project.run_ok(&["--set", "model=b"]).step("read")["rows"], 3);
    let refused = project.run_json(&["--set", "model=c"]).exits(2);
    assert_eq!(refused.diagnostics().len(), 1, "{refused}");
    assert!(refused.diagnostics()[0].starts_with("unknown-cell w.yaml:"), "{refused}");
    let project =
        self::project("outputs:\n  o: { from: '${{ params.which }}', path: o.csv }\n").ran();
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
    let project = project(&sql("'${{ params.which }}'"));
    let set = ["--set", "which=largee"];
    project.refuses(&set, "wrong-value --set:1:7", &["did you mean `large`?"]);
}

#[test]
fn an_embedded_workflow_has_its_own_params() {
    let project = Project::new(
        "galeras: 1\nsteps:\n  inner:\n    uses: ./inner.yaml\n    matrix: { which: [small, large] }\n    with: { which: '${{ matrix.which }}' }\noutputs:\n  all: { from: 'inner[*].read', path: all.csv }\n",
    );
    let inner = format!(
        "{STEPS}{}outputs:\n  read: {{ from: read, path: r.csv }}\n",
        sql("'${{ params.which }}'")
    );
    project.write("inner.yaml", inner);
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
    let numbers = text("«'${{ params.which }}'").replace(
        "{ type: string, default: small, choices: [small, large] }",
        "{ type: int, default: 3 }",
    );
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
