//! `regress`: what is wrong with the arguments is found before anything runs, with its place.
//!
//! Does not live here: what the data forbid (`regress_refusals`).

use crate::harness::{Project, marked};
use crate::regress_tables::told;

/// A workflow whose columns are known before anything runs.
fn workflow(with: &str) -> String {
    let with: String = with.lines().map(|line| format!("      {line}\n")).collect();
    format!(
        "galeras: 1
steps:
  table:
    op: exec
    with:
      command: touch ran
      output: {{ id: utf8!, arm: utf8, y: float64, x: float64, n: int64, unit: utf8,
                place: utf8, yes: bool, tags: 'list<utf8>' }}
  effects:
    op: regress
    from: table
    with:
{with}"
    )
}

/// Just one diagnostic, at the mark `«`, whose text has these words; nothing ran.
#[track_caller]
fn refused(with: &str, code: &str, words: &[&str]) {
    let (workflow, place) = marked(&workflow(with));
    let project = Project::new(&workflow);
    let outcome = project.run_json(&[]).exits(2);
    assert_eq!(outcome.diagnostics(), [format!("{code} w.yaml:{place}")], "{outcome}");
    let shown = project.run(&["run", "w.yaml"]).exits(2);
    assert!(shown.stderr.contains(&format!("w.yaml:{place}")), "{shown}");
    let told = told(&outcome.events("diagnostic")[0]);
    for word in words {
        assert!(told.contains(word), "{word}: {told}");
    }
    for word in ["serde", "panicked", "defect"] {
        assert!(!shown.stderr.contains(word), "{shown}");
    }
    assert!(!project.path("ran").exists() && project.stored_nothing());
}

/// The same with the least arguments, changed and more.
#[track_caller]
fn more(with: &str, code: &str, words: &[&str]) {
    refused(&format!("treatment: arm\ncontrol: c\noutcomes: [y]\nseed: 1\n{with}"), code, words);
}

/// The workflow is sound.
#[track_caller]
fn sound(with: &str) {
    let project = Project::new(&workflow(&format!(
        "treatment: arm\ncontrol: c\noutcomes: [y]\nseed: 1\n{with}"
    )));
    project.run(&["check", "w.yaml"]).exits(0);
}

#[test]
fn columns_that_do_not_exist() {
    let rest = "control: c\noutcomes: [y]\nseed: 1";
    let words = ["`armm`", "did you mean `arm`?"];
    refused(&format!("treatment: «armm\n{rest}"), "unknown-column", &words);
    let rest = "treatment: arm\ncontrol: c\nseed: 1";
    refused(&format!("outcomes: [y, «yy]\n{rest}"), "unknown-column", &["did you mean `y"]);
    more("unit: «units", "unknown-column", &["did you mean `unit`?"]);
    more("cluster: «palce", "unknown-column", &["did you mean `place`?"]);
    more("confounders: [x, «xx]", "unknown-column", &["`xx`"]);
    more("modifiers: [«nn]", "unknown-column", &["`nn`"]);
    more("confounders: [x]\nestimators: [iv]\ninstruments: [«z]", "unknown-column", &["`z`"]);
}

#[test]
fn columns_of_another_type() {
    let rest = "treatment: arm\ncontrol: c\nseed: 1";
    let words = ["column `unit` has type utf8, but a number is needed"];
    refused(&format!("outcomes: [«unit]\n{rest}"), "wrong-type", &words);
    more("confounders: [«tags]", "wrong-type", &["`tags`", "a number or a text is needed"]);
    more("modifiers: [«tags]", "wrong-type", &["`tags`", "a number or a text is needed"]);
    more("estimators: [iv]\ninstruments: [«place]", "wrong-type", &["a number is needed"]);
    let rest = "control: c\noutcomes: [y]\nseed: 1";
    refused(&format!("treatment: «tags\n{rest}"), "wrong-type", &["a plain value is needed"]);
    more("unit: «tags", "wrong-type", &["a plain value is needed"]);
    // True and false are numbers, and whole numbers name arms and units.
    sound("confounders: [yes, n]");
    sound("unit: n\nmodifiers: [x]");
}

#[test]
fn a_column_with_two_roles() {
    let rest = "treatment: arm\ncontrol: c\nseed: 1";
    refused(&format!("outcomes: [y, «y]\n{rest}"), "duplicate-column", &["named twice"]);
    more("confounders: [x, «x]", "duplicate-column", &["`x`", "named twice"]);
    more("confounders: [«y]", "conflicting-arguments", &["`y` is already the outcome"]);
    more("modifiers: [«y]", "conflicting-arguments", &["`y` is already the outcome"]);
    let with = "confounders: [x]\nestimators: [iv]\ninstruments: [«x]";
    more(with, "conflicting-arguments", &["`x` is already the confounder"]);
    more("unit: n\nconfounders: [«n]", "conflicting-arguments", &["`n` is already the unit"]);
    more("unit: «arm", "conflicting-arguments", &["it differs within units"]);
    more("cluster: «arm", "conflicting-arguments", &["each arm would be a single one"]);
    let with = "treatment: n\ncontrol: '1'\noutcomes: [y]\nconfounders: [«n]\nseed: 1";
    refused(with, "conflicting-arguments", &["`n` is already the treatment"]);
    sound("confounders: [x]\nmodifiers: [x]");
}

#[test]
fn numbers_out_of_range() {
    for alpha in ["0.0", "1.0"] {
        more(&format!("alpha: «{alpha}"), "out-of-range", &["between 0 and 1"]);
        more(&format!("subset_fraction: «{alpha}"), "out-of-range", &["between 0 and 1"]);
    }
    for alpha in ["-0.1", "1.5"] {
        more(&format!("alpha: «{alpha}"), "wrong-value", &[]);
        more(&format!("subset_fraction: «{alpha}"), "wrong-value", &[]);
    }
    more("penalty: «0", "out-of-range", &["above 0", "scikit-learn"]);
    more("penalty: «-1.0", "out-of-range", &["above 0"]);
    for clip in ["[0.0, 0.9]", "[0.1, 1.0]", "[0.9, 0.1]", "[0.5, 0.5]"] {
        more(&format!("clip: «{clip}"), "out-of-range", &["`clip`", "between 0 and 1"]);
    }
    more("clip: «[0.1]", "wrong-value", &["`clip`"]);
    more("clip: «[0.1, 0.2, 0.3]", "out-of-range", &["`clip`"]);
    more("max_clipped: «1.5", "wrong-value", &[]);
    for range in ["[1, 0]", "[1, 1]", "[1]", "[0, 1, 2]"] {
        let with = format!("ranges: «{{ y: {range} }}");
        more(&with, "out-of-range", &["the range of `y`", "a low and a high value"]);
    }
    more("ranges: { y: [0, «.inf] }", "wrong-value", &[]);
    more("ranges: «{ x: [0, 1] }", "out-of-range", &["`x` is not one of `outcomes`"]);
    sound("ranges: { y: [-1, 1.5] }");
    more("strata: «1", "wrong-value", &[]);
    more("folds: «1", "wrong-value", &[]);
    more("simulations: «0", "wrong-value", &[]);
    more("simulations: «100001", "wrong-value", &[]);
    let rest = "treatment: arm\ncontrol: c\nseed: 1";
    refused(&format!("outcomes: «[]\n{rest}"), "wrong-value", &[]);
}

#[test]
fn words_that_do_not_exist() {
    more("estimators: [«olss]", "wrong-value", &["olss", "did you mean `ols`?"]);
    more("estimand: «atx", "wrong-value", &["atx"]);
    more("standard_errors: «hc3", "wrong-value", &["HC3"]);
    more("refuters: [«placebos]", "wrong-value", &["did you mean `placebo`?"]);
    more("contrasts: «every", "wrong-value", &["control", "all"]);
    more("adjust: «tukey", "wrong-value", &["holm"]);
    more("missing: «ignore", "wrong-value", &["refuse", "drop"]);
    more("overlap: «ignore", "wrong-value", &["refuse", "trim"]);
    more("«confounder: [x]", "unknown-argument", &["did you mean `confounders`?"]);
}

#[test]
fn values_of_another_type() {
    more("confounders: «x", "wrong-type", &[]);
    more("alpha: «high", "wrong-type", &[]);
    let rest = "treatment: arm\ncontrol: c\noutcomes: [y]";
    refused(&format!("seed: «today\n{rest}"), "wrong-type", &[]);
    refused(&format!("seed: «1.5\n{rest}"), "wrong-type", &[]);
    // An arm is a text also where it looks like a number: quotes are needed.
    let rest = "treatment: n\noutcomes: [y]\nseed: 1";
    refused(&format!("control: «0\n{rest}"), "wrong-type", &[]);
}

#[test]
fn arguments_that_are_missing() {
    for argument in ["treatment: arm", "control: c", "outcomes: [y]", "seed: 1"] {
        let all = "treatment: arm\ncontrol: c\noutcomes: [y]\nseed: 1\n";
        let with = workflow(&all.replace(&format!("{argument}\n"), ""));
        let project = Project::new(&with);
        let outcome = project.run_json(&[]).exits(2);
        let name = argument.split(':').next().unwrap();
        let found = outcome.events("diagnostic");
        assert_eq!(found.len(), 1, "{outcome}");
        assert!(found[0]["message"].as_str().unwrap().contains(name), "{outcome}");
    }
}

#[test]
fn estimators_that_lack_something() {
    let words = ["`paired` needs a unit", "unit: <column>"];
    more("estimators: [«paired]", "conflicting-arguments", &words);
    for estimator in ["matching", "stratification", "weighting", "aipw"] {
        let words = format!("`{estimator}` needs confounders");
        let with = format!("estimators: [difference, «{estimator}]");
        more(&with, "conflicting-arguments", &[&words, "graph"]);
    }
    let words = ["`iv` needs an instrument", "instruments: [<column>]"];
    more("confounders: [x]\nestimators: [«iv]", "conflicting-arguments", &words);
    more("estimators: [ols, «ols]", "conflicting-arguments", &["`ols` is listed twice"]);
    more("refuters: [subset, «subset]", "conflicting-arguments", &["twice"]);
    for (argument, estimator) in
        [("instruments: «[x]", "iv"), ("folds: «3", "aipw"), ("strata: «5", "stratification")]
    {
        let words = format!("is for `{estimator}`, which is not one of `estimators`");
        more(argument, "conflicting-arguments", &[&words, &format!("add `{estimator}`")]);
    }
    let words = ["HC2 ignores `cluster`"];
    more("cluster: place\nstandard_errors: «HC2", "conflicting-arguments", &words);
    for kind in ["CR0", "CR1", "CR2", "CR3"] {
        let words = format!("{kind} needs clusters");
        more(&format!("standard_errors: «{kind}"), "conflicting-arguments", &[&words, "cluster:"]);
        sound(&format!("standard_errors: {kind}\ncluster: place\nestimators: [ols]"));
    }
}

#[test]
fn arms_that_are_compared_with_themselves() {
    let words = ["control cannot be compared with itself"];
    more("treatments: [t, «c]", "conflicting-arguments", &words);
    more("treatments: [t, «t]", "conflicting-arguments", &["twice"]);
}

#[test]
fn every_mistake_is_told_at_once() {
    let project = Project::new(&workflow(
        "treatment: amr\ncontrol: c\noutcomes: [yy]\nconfounders: [tags]\nalpha: 1.0\nseed: 1",
    ));
    let outcome = project.run_json(&[]).exits(2);
    let codes: Vec<String> = outcome
        .diagnostics()
        .iter()
        .map(|place| place.split(' ').next().unwrap().to_owned())
        .collect();
    assert_eq!(codes, ["unknown-column", "unknown-column", "wrong-type", "out-of-range"]);
}

#[test]
fn graphs_that_cannot_be_read() {
    let bad = |graph: &str, words: &[&str]| {
        more(&format!("graph: «'{graph}'"), "bad-graph", words);
    };
    bad("", &["the graph is empty", "digraph {"]);
    bad("x -> y", &["expected `digraph` or `dag`"]);
    bad("graph { x -- y }", &["is not a directed acyclic graph"]);
    bad("dag { arm -> y", &["is not closed", "add a `}`"]);
    bad("dag { arm -- y }", &["has no direction"]);
    bad("dag { arm -> }", &["no node on its right"]);
    bad("dag { arm -> y } dag { }", &["one text holds one graph"]);
}

#[test]
fn graphs_that_go_in_circles() {
    let words = ["cycl", "arm", "x"];
    more("graph: «'dag { arm -> y; y -> x; x -> arm }'", "bad-graph", &words);
    more("graph: «'dag { arm -> y; y -> y }'", "bad-graph", &["itself"]);
    // The line of the text in which it is.
    let graph = "graph: |\n  «dag {\n    arm -> y\n    x -- y\n  }";
    more(graph, "bad-graph", &["line 3 of the graph"]);
}

#[test]
fn graphs_without_what_is_asked() {
    more("graph: «'dag { x -> y }'", "bad-graph", &["the graph has no node `arm`"]);
    more("graph: «'dag { arm -> x }'", "bad-graph", &["the graph has no node `y`"]);
    let words = ["a node `z`, but the input has no such column", "`name [latent]`"];
    more("graph: «'dag { arm -> y; z -> y }'", "bad-graph", &words);
    let words = ["the node `place` of the graph is not a column of numbers"];
    more("graph: «'dag { arm -> y; place -> y }'", "bad-graph", &words);
    sound("graph: 'dag { arm -> y; z [latent]; z -> y; place [latent]; place -> arm }'");
    sound("graph: 'digraph { arm -> y; x -> {arm y} }'");
}

#[test]
fn margins_groups_and_families_that_cannot_be() {
    let conflict = "conflicting-arguments";
    more("equivalence: { margin: «0 }", "out-of-range", &["above 0"]);
    more("equivalence: { margins: { y: «-1 } }", "out-of-range", &["above 0"]);
    more("equivalence: { margin: 1, margins: { z: «1 } }", conflict, &["`z`", "`outcomes`"]);
    more("equivalence: «{ units: sd }", conflict, &["needs a margin"]);
    more(
        "equivalence: { margin: 1, units: «sd_difference }",
        conflict,
        &["need a `unit`", "use `sd`"],
    );
    more(
        "equivalence: { margin: 1, lower_is_better: «[y] }",
        conflict,
        &["`test: noninferiority`"],
    );
    more("alpha: «0.5\nequivalence: { margin: 1 }", "out-of-range", &["below 0.5"]);
    more("by: [«nothing]", "unknown-column", &["`nothing`"]);
    more("by: [«tags]", "wrong-type", &["a plain value"]);
    more("by: [«y]", conflict, &["already the outcome"]);
    let by = "treatment: place\ncontrol: c\noutcomes: [y]\nseed: 1\nby: [«place]";
    refused(by, conflict, &["already the treatment"]);
    more("by: [place, «place]", "duplicate-column", &["twice"]);
    more("by: [«n]", "duplicate-column", &["column of the result"]);
    more("adjust_over: [groups, «groups]", conflict, &["twice"]);
    sound("by: [place]\nadjust_over: []\nequivalence: { margin: 1, margins: { y: 2 } }");
}
