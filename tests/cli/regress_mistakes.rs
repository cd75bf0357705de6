//! `regress`: mistakes in the arguments are found before anything runs, with their place. What the
//! data forbid is in `regress_refusals`.

use crate::harness::{Project, every, refused, says, text};

fn workflow(with: &str) -> String {
    let with: String = with.lines().map(|line| format!("      {line}\n")).collect();
    format!(
        "galeras: 1
steps:
  table:
    op: exec
    with:
      sandbox: none
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

const LEAST: &str = "treatment: arm\ncontrol: c\noutcomes: [y]\nseed: 1\n";

/// The least arguments and these have just one mistake, at the mark `«`.
#[track_caller]
fn more(with: &str, code: &str, words: &[&str]) {
    refused(&workflow(&format!("{LEAST}{with}")), code, words);
}

/// Other arguments instead of the least ones of these names.
#[track_caller]
fn instead(with: &str, code: &str, words: &[&str]) {
    let given = |line: &&str| !with.contains(&line[..=line.find(':').unwrap()]);
    let least: String = LEAST.lines().filter(given).map(|line| format!("{line}\n")).collect();
    refused(&workflow(&format!("{with}\n{least}")), code, words);
}

/// Mistakes of one code: the arguments besides the least ones, and the words of the message.
#[track_caller]
fn all(code: &str, cases: &[(&str, &[&str])]) {
    every(cases.iter().map(|case| (case.0, case)), |(with, words)| more(with, code, words));
}

#[track_caller]
fn sound(with: &str) {
    Project::new(&workflow(&format!("{LEAST}{with}"))).run(&["check", "w.yaml"]).exits(0);
}

#[test]
fn columns_that_do_not_exist_or_are_of_another_type() {
    instead("treatment: «armm", "unknown-column", &["`armm`", "did you mean `arm`?"]);
    instead("outcomes: [y, «yy]", "unknown-column", &["did you mean `y"]);
    all(
        "unknown-column",
        &[
            ("unit: «units", &["did you mean `unit`?"]),
            ("cluster: «palce", &["did you mean `place`?"]),
            ("confounders: [x, «xx]", &["`xx`"]),
            ("modifiers: [«nn]", &["`nn`"]),
            ("confounders: [x]\nestimators: [iv]\ninstruments: [«z]", &["`z`"]),
            ("by: [«nothing]", &["`nothing`"]),
        ],
    );
    // Columns of another type.
    let words = ["column `unit` has type utf8, but a number is needed"];
    instead("outcomes: [«unit]", "wrong-type", &words);
    instead("treatment: «tags", "wrong-type", &["a plain value is needed"]);
    all(
        "wrong-type",
        &[
            ("confounders: [«tags]", &["`tags`", "a number or a text is needed"]),
            ("modifiers: [«tags]", &["`tags`", "a number or a text is needed"]),
            ("estimators: [iv]\ninstruments: [«place]", &["a number is needed"]),
            ("unit: «tags", &["a plain value is needed"]),
            ("by: [«tags]", &["a plain value"]),
        ],
    );
    // True and false are numbers, and whole numbers name arms and units.
    sound("confounders: [yes, n]");
    sound("unit: n\nmodifiers: [x]");
}

#[test]
fn a_column_with_two_roles() {
    instead("outcomes: [y, «y]", "duplicate-column", &["named twice"]);
    all(
        "duplicate-column",
        &[
            ("confounders: [x, «x]", &["`x`", "named twice"]),
            ("by: [place, «place]", &["twice"]),
            ("by: [«n]", &["column of the result"]),
        ],
    );
    let confounder = "`x` is already the confounder";
    all(
        "conflicting-arguments",
        &[
            ("confounders: [«y]", &["`y` is already the outcome"]),
            ("modifiers: [«y]", &["`y` is already the outcome"]),
            ("confounders: [x]\nestimators: [iv]\ninstruments: [«x]", &[confounder]),
            ("unit: n\nconfounders: [«n]", &["`n` is already the unit"]),
            ("unit: «arm", &["it differs within units"]),
            ("cluster: «arm", &["each arm would be a single one"]),
            ("by: [«y]", &["already the outcome"]),
        ],
    );
    for (with, words) in [
        ("treatment: n\ncontrol: '1'\nconfounders: [«n]", "`n` is already the treatment"),
        ("treatment: place\nby: [«place]", "already the treatment"),
    ] {
        instead(with, "conflicting-arguments", &[words]);
    }
    sound("confounders: [x]\nmodifiers: [x]");
}

#[test]
fn numbers_out_of_range() {
    for argument in ["alpha", "subset_fraction"] {
        for (value, code, words) in [
            ("0.0", "out-of-range", &["between 0 and 1"][..]),
            ("1.0", "out-of-range", &["between 0 and 1"]),
            ("-0.1", "wrong-value", &[]),
            ("1.5", "wrong-value", &[]),
        ] {
            more(&format!("{argument}: «{value}"), code, words);
        }
    }
    for clip in ["[0.0, 0.9]", "[0.1, 1.0]", "[0.9, 0.1]", "[0.5, 0.5]"] {
        more(&format!("clip: «{clip}"), "out-of-range", &["`clip`", "between 0 and 1"]);
    }
    more("clip: «[0.1]", "wrong-value", &["`clip`"]);
    let cases: [(&str, &[&str]); 6] = [
        ("penalty: «0", &["above 0", "scikit-learn"]),
        ("penalty: «-1.0", &["above 0"]),
        ("clip: «[0.1, 0.2, 0.3]", &["`clip`"]),
        // Margins.
        ("equivalence: { margin: «0 }", &["above 0"]),
        ("equivalence: { margins: { y: «-1 } }", &["above 0"]),
        ("alpha: «0.5\nequivalence: { margin: 1 }", &["below 0.5"]),
    ];
    all("out-of-range", &cases);
    more("max_clipped: «1.5", "wrong-value", &[]);
    for range in ["[1, 0]", "[1, 1]", "[1]", "[0, 1, 2]"] {
        let with = format!("ranges: «{{ y: {range} }}");
        more(&with, "out-of-range", &["the range of `y`", "a low and a high value"]);
    }
    more("ranges: { y: [0, «.inf] }", "wrong-value", &[]);
    more("ranges: «{ x: [0, 1] }", "out-of-range", &["`x` is not one of `outcomes`"]);
    sound("ranges: { y: [-1, 1.5] }");
    for with in ["strata: «1", "folds: «1", "simulations: «0", "simulations: «100001"] {
        more(with, "wrong-value", &[]);
    }
    instead("outcomes: «[]", "wrong-value", &[]);
}

#[test]
fn words_that_do_not_exist_and_values_of_another_type() {
    all(
        "wrong-value",
        &[
            ("estimators: [«olss]", &["olss", "did you mean `ols`?"]),
            ("estimand: «atx", &["atx"]),
            ("standard_errors: «hc3", &["HC3"]),
            ("refuters: [«placebos]", &["did you mean `placebo`?"]),
            ("contrasts: «every", &["control", "all"]),
            ("adjust: «tukey", &["holm"]),
            ("missing: «ignore", &["refuse", "drop"]),
            ("overlap: «ignore", &["refuse", "trim"]),
        ],
    );
    more("«confounder: [x]", "unknown-argument", &["did you mean `confounders`?"]);
    // Values of another type.
    all("wrong-type", &[("confounders: «x", &[]), ("alpha: «high", &[])]);
    // An arm is a text also where it looks like a number: quotes are needed.
    for with in ["seed: «today", "seed: «1.5", "treatment: n\ncontrol: «0"] {
        instead(with, "wrong-type", &[]);
    }
}

#[test]
fn arguments_that_are_missing() {
    for argument in LEAST.lines() {
        let project = Project::new(&workflow(&LEAST.replace(&format!("{argument}\n"), "")));
        let found = project.run_json(&[]).exits(2).events("diagnostic");
        assert_eq!(found.len(), 1, "{found:?}");
        says(text(&found[0], "message"), &[argument.split(':').next().unwrap()]);
    }
}

#[test]
fn arguments_that_conflict() {
    let instrument = "`iv` needs an instrument";
    all(
        "conflicting-arguments",
        &[
            ("estimators: [«paired]", &["`paired` needs a unit", "unit: <column>"]),
            ("confounders: [x]\nestimators: [«iv]", &[instrument, "instruments: [<column>]"]),
            ("estimators: [ols, «ols]", &["`ols` is listed twice"]),
            ("refuters: [subset, «subset]", &["twice"]),
            ("cluster: place\nstandard_errors: «HC2", &["HC2 ignores `cluster`"]),
            ("treatments: [t, «c]", &["control cannot be compared with itself"]),
            ("treatments: [t, «t]", &["twice"]),
            ("equivalence: { margin: 1, margins: { z: «1 } }", &["`z`", "`outcomes`"]),
            ("equivalence: «{ units: sd }", &["needs a margin"]),
            ("equivalence: { margin: 1, units: «sd_difference }", &["need a `unit`", "use `sd`"]),
            ("equivalence: { margin: 1, lower_is_better: «[y] }", &["`test: noninferiority`"]),
            ("adjust_over: [groups, «groups]", &["twice"]),
            ("second_cluster: «place", &["needs a first", "cluster: <column>"]),
            (
                "cluster: place\nsecond_cluster: unit\nstandard_errors: «CR2",
                &["CR2 is not defined for two-way clusters"],
            ),
            ("weights: «y", &["`y` already has another role"]),
            ("unit: n\nweights: «x", &["`paired` does not take `weights`", "`ols`"]),
            ("estimators: [«did]", &["`did` needs a column of time", "after: <column>"]),
            ("estimators: [«wild_cluster]", &["`wild_cluster` needs clusters"]),
        ],
    );
    for estimator in ["matching", "stratification", "weighting", "aipw"] {
        let words = format!("`{estimator}` needs confounders");
        let with = format!("estimators: [difference, «{estimator}]");
        more(&with, "conflicting-arguments", &[&words, "graph"]);
    }
    for (argument, estimator) in [
        ("instruments: «[x]", "iv"),
        ("folds: «3", "aipw"),
        ("strata: «5", "stratification"),
        ("after: «n", "did"),
    ] {
        let words = format!("is for `{estimator}`, which is not one of `estimators`");
        more(argument, "conflicting-arguments", &[&words, &format!("add `{estimator}`")]);
    }
    for kind in ["CR0", "CR1", "CR2", "CR3"] {
        let words = format!("{kind} needs clusters");
        more(&format!("standard_errors: «{kind}"), "conflicting-arguments", &[&words, "cluster:"]);
        sound(&format!("standard_errors: {kind}\ncluster: place\nestimators: [ols]"));
    }
    sound("by: [place]\nadjust_over: []\nequivalence: { margin: 1, margins: { y: 2 } }");
    // Every mistake is reported at once.
    let with =
        "treatment: amr\ncontrol: c\noutcomes: [yy]\nconfounders: [tags]\nalpha: 1.0\nseed: 1";
    let project = Project::new(&workflow(with));
    let places = project.run_json(&[]).exits(2).diagnostics();
    let codes: Vec<&str> = places.iter().map(|place| place.split(' ').next().unwrap()).collect();
    assert_eq!(codes, ["unknown-column", "unknown-column", "wrong-type", "out-of-range"]);
}

#[test]
fn graphs() {
    let no_column = "a node `z`, but the input has no such column";
    let no_number = "the node `place` of the graph is not a column of numbers";
    all(
        "bad-graph",
        &[
            ("graph: «''", &["the graph is empty", "digraph {"]),
            ("graph: «'x -> y'", &["expected `digraph` or `dag`"]),
            ("graph: «'graph { x -- y }'", &["is not a directed acyclic graph"]),
            ("graph: «'dag { arm -> y'", &["is not closed", "add a `}`"]),
            ("graph: «'dag { arm -- y }'", &["has no direction"]),
            ("graph: «'dag { arm -> }'", &["no node on its right"]),
            ("graph: «'dag { arm -> y } dag { }'", &["one text holds one graph"]),
            ("graph: «'dag { arm -> y; y -> x; x -> arm }'", &["cycl", "arm", "x"]),
            ("graph: «'dag { arm -> y; y -> y }'", &["itself"]),
            // The line of the text in which it is.
            ("graph: |\n  «dag {\n    arm -> y\n    x -- y\n  }", &["line 3 of the graph"]),
            ("graph: «'dag { x -> y }'", &["the graph has no node `arm`"]),
            ("graph: «'dag { arm -> x }'", &["the graph has no node `y`"]),
            ("graph: «'dag { arm -> y; z -> y }'", &[no_column, "`name [latent]`"]),
            ("graph: «'dag { arm -> y; place -> y }'", &[no_number]),
        ],
    );
    sound("graph: 'dag { arm -> y; z [latent]; z -> y; place [latent]; place -> arm }'");
    sound("graph: 'digraph { arm -> y; x -> {arm y} }'");
}

#[test]
fn consequences_of_the_treatment_are_no_confounders() {
    for (treatment, column) in [("treatment", "prompt_size"), ("model", "completion_tokens")] {
        let with = format!(
            "treatment: {treatment}\ncontrol: c\noutcomes: [y]\nseed: 1\nconfounders: [x, «{column}]"
        );
        let columns = format!("x: float64, {treatment}: utf8, {column}: int64");
        let workflow = workflow(&with).replacen("x: float64", &columns, 1);
        let words = [format!("`{column}` is a bad control"), format!("follows from `{treatment}`")];
        refused(&workflow, "conflicting-arguments", &words.each_ref().map(String::as_str));
    }
}
