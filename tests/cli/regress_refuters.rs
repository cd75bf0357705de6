//! The refuters of `regress`: the same seed gives the same numbers on any number of threads and
//! for any order of rows; placebos vanish, effects survive, and what says nothing is not run.

use serde_json::{Value, json};

use crate::harness::{Project, has, says, text};
use crate::regress_refusals::TWO;
use crate::regress_tables::{analysed, ended, equal, find, made, noise, number, ran_with, reasons};

/// Pairs, and arms that the covariate moves.
const UNITS: &str = "treatment: arm, control: c, outcomes: [y], unit: unit, seed: 3";
const FREE: &str = "treatment: free, control: c, outcomes: [y], confounders: [x]";

const REFUTERS: [&str; 4] = ["placebo", "random_common_cause", "subset", "bootstrap"];

/// A project with a step `effects` on the rows of [`table`], which have the key `n`.
fn project(with: &str) -> Project {
    Project::new(&workflow(with)).with("data.csv", table(|at| at))
}

/// A workflow with a step `effects` on rows that have the key `n`.
fn workflow(with: &str) -> String {
    format!(
        "galeras: 1
steps:
  data: {{ op: read, with: {{ path: data.csv, key: [n] }} }}
  effects:
    op: regress
    from: data
    with: {{ treatment: arm, control: c, outcomes: [y, z], {with} }}
"
    )
}

/// 120 units under two arms, the effects 30 on `y` and none on `z`; without units, the covariate
/// `x` has an influence on the arm.
fn table(order: impl Fn(u64) -> u64) -> String {
    made("n,unit,place,arm,free,y,z,x", 240, |at| {
        let i = order(at);
        let (unit, treated) = (i / 2, i % 2 == 1);
        let arm = if treated { "t" } else { "c" };
        let free = if noise(unit, 2) + noise(i, 5) > 100 { "t" } else { "c" };
        let y = 2 * noise(unit, 0) + noise(i, 1) + if treated { 30 } else { 0 };
        let z = noise(unit, 3) + noise(i, 4);
        let place = unit % 24;
        format!("{i},u{unit},p{place},{arm},{free},{y},{z},{}", noise(unit, 2))
    })
}

#[track_caller]
fn digests(project: &Project, cache: &str, jobs: &str) -> Vec<(String, String, String)> {
    let found = project.run_ok(&["--cache", cache, "--jobs", jobs]).digests();
    found.into_iter().filter(|(step, _, _)| step == "effects").collect()
}

const DESIGNS: [&str; 3] = [
    "unit: unit, confounders: [x], estimators: [paired, ols, lin, aipw], modifiers: [x]",
    "unit: unit, cluster: place, estimators: [paired]",
    "confounders: [x], estimators: [difference, ols, matching, stratification, weighting, aipw],
      folds: 3",
];

#[test]
fn the_same_seed_gives_the_same_on_any_number_of_threads() {
    for design in DESIGNS {
        let mut design = design.to_owned();
        if !design.contains("unit") {
            design = design.replace("confounders", "cluster: place, confounders");
        }
        let project = project(&format!("{design}, seed: 7, simulations: 24"));
        let one = digests(&project, "one", "1");
        assert_eq!(one.len(), 15, "every port");
        assert_eq!(digests(&project, "two", "2"), one);
        assert_eq!(digests(&project, "four", "4"), one);
    }
    // Nor does the order of rows count.
    for design in DESIGNS {
        let project = project(&format!("{design}, seed: 7, simulations: 24"));
        let straight = digests(&project, "straight", "2");
        project.write("data.csv", table(|at| at * 101 % 240));
        assert_eq!(digests(&project, "turned", "2"), straight);
        project.write("data.csv", table(|at| 239 - at));
        assert_eq!(digests(&project, "backwards", "2"), straight);
    }
}

/// Many rows come in many batches, from several threads.
#[test]
fn a_large_table_gives_the_same_each_time() {
    let design = "unit: unit, confounders: [x], estimators: [paired, ols, aipw], modifiers: [x]";
    let project = Project::new(&workflow(&format!("{design}, seed: 7, simulations: 4")));
    let table = |order: &dyn Fn(u64) -> u64| {
        made("n,unit,arm,y,z,x", 20_000, |at| {
            let i = order(at);
            let (unit, arm) = (i / 2, if i % 2 == 1 { "t" } else { "c" });
            let (y, z) = (noise(i, 1) * 7 + noise(unit, 0), noise(unit, 3) + noise(i, 4));
            format!("{i},u{unit},{arm},{y}.{z},{z},{}.7", noise(unit, 2))
        })
    };
    project.write("data.csv", table(&|at| at));
    let first = digests(&project, "first", "2");
    for (place, jobs) in ["2", "1", "4", "2"].iter().enumerate() {
        assert_eq!(digests(&project, &format!("again{place}"), jobs), first, "{jobs} jobs");
    }
    project.write("data.csv", table(&|at| at * 7_919 % 20_000));
    assert_eq!(digests(&project, "turned", "2"), first, "another order of rows");
}

#[test]
fn another_seed_gives_other_refutations_and_the_same_estimates() {
    let with = "unit: unit, confounders: [x], estimators: [paired, ols], simulations: 24";
    let project = project(&format!("{with}, seed: 7"));
    let first = digests(&project, "cache", "2");
    for seed in ["8", "-7", "0", "9223372036854775807"] {
        project.write("w.yaml", workflow(&format!("{with}, seed: {seed}")));
        let mut other = digests(&project, "cache", "2");
        assert_eq!(other.len(), first.len());
        other.retain(|digest| !first.contains(digest));
        let changed: Vec<&str> = other.iter().map(|(_, port, _)| port.as_str()).collect();
        assert_eq!(changed, ["refutations"], "seed {seed}");
    }
    // The names of units and of columns that are not named do not matter.
    let project = self::project("unit: unit, seed: 7, simulations: 10");
    let first = digests(&project, "cache", "2");
    // A column that is not read does not even make the step run again.
    project.write("data.csv", table(|at| at).replace(",x\n", ",spare\n"));
    assert_eq!(project.run_ok(&["--cache", "cache"]).status("effects"), "hit");
    assert_eq!(digests(&project, "cache", "2"), first);
}

#[track_caller]
fn refutations(with: &str) -> (Project, Vec<Value>) {
    let project = analysed(&table(|at| at), with);
    let rows = project.rows("effects.refutations");
    (project, rows)
}

const ALL: &str = "refuters: [placebo, random_common_cause, subset, bootstrap], simulations: 200";

#[test]
fn placebos_vanish_and_effects_survive() {
    let with = format!("{UNITS}, confounders: [x], estimators: [paired, ols, lin], {ALL}");
    let (project, rows) = refutations(&with);
    assert_eq!(rows.len(), 12);
    let estimates = project.rows("effects");
    for estimator in ["paired", "ols", "lin"] {
        let found = find(&estimates, &[("estimator", estimator)]);
        let (effect, error) = (number(found, "estimate"), number(found, "standard_error"));
        assert!(effect > 6.0 * error, "{found}");
        for refuter in REFUTERS {
            let row = find(&rows, &[("estimator", estimator), ("refuter", refuter)]);
            if estimator == "paired" && refuter == "random_common_cause" {
                continue;
            }
            assert_eq!((text(row, "status"), &row["simulations"]), ("ok", &json!(200)), "{row}");
            assert_eq!((&row["failed"], &row["estimate"]), (&json!(0), &found["estimate"]));
            let (new, std) = (number(row, "new_effect"), number(row, "std"));
            let expected = if refuter == "placebo" { 0.0 } else { effect };
            // The mean of 200 estimates.
            assert!((new - expected).abs() <= 4.0 * std / 200_f64.sqrt() + 1e-9, "{row}");
            assert!((0.0..=1.0).contains(&number(row, "p_value")), "{row}");
            match refuter {
                "placebo" => {
                    assert_eq!(row["as_large"], 0, "{row}");
                    assert!(text(row, "note").contains("it should be near 0"), "{row}");
                }
                // The noise is that of rows: it moves the estimate by little.
                "random_common_cause" => assert!(std < error / 2.0, "{row}"),
                // Nine tenths of the units: the error of what was left out.
                "subset" => equal(std, error * (0.1_f64 / 0.9).sqrt(), 0.3, "subset"),
                _ => equal(std, error, 0.2, "bootstrap"),
            }
        }
    }
    // A placebo flips the signs of pairs.
    let (project, rows) = refutations(&format!("{UNITS}, {ALL}"));
    let found = &project.rows("effects")[0];
    let (effect, error) = (number(found, "estimate"), number(found, "standard_error"));
    // Each difference has the same size with either sign: variance sum d^2 / n^2.
    let wanted = (error * error * 119.0 / 120.0 + effect * effect / 120.0).sqrt();
    equal(number(find(&rows, &[("refuter", "placebo")]), "std"), wanted, 0.2, "std");
    // An effect that is none is like its placebos.
    let (project, rows) = refutations(&format!("{}, {ALL}", UNITS.replace("[y]", "[z]")));
    let p = number(&project.rows("effects")[0], "p_value");
    let row = find(&rows, &[("refuter", "placebo")]);
    // The share of placebos that are as large is a permutation test.
    let share = number(row, "as_large") / 200.0;
    assert!(p > 0.1 && (share - p).abs() < 0.1, "{p} {row}");
}

#[test]
fn estimators_with_covariates_are_refuted_too() {
    let estimators = "difference, ols, lin, matching, stratification, weighting, aipw";
    let with = format!("{FREE}, estimators: [{estimators}], seed: 3, {ALL}");
    let (project, rows) = refutations(&with);
    assert_eq!(rows.len(), 28);
    for found in project.rows("effects") {
        let estimator = text(&found, "estimator");
        for refuter in REFUTERS {
            let row = find(&rows, &[("estimator", estimator), ("refuter", refuter)]);
            let inapplicable = match (refuter, estimator) {
                ("random_common_cause", "difference") => {
                    Some("the estimator uses no covariates, so that one more changes nothing")
                }
                ("bootstrap", "matching") => {
                    Some("the bootstrap is not valid for matching (Abadie and Imbens 2008)")
                }
                _ => None,
            };
            if let Some(reason) = inapplicable {
                ended(row, "not_applicable", reason);
                let wanted = json!([0, 0, null, null, found["estimate"]]);
                has(row, "simulations failed new_effect p_value estimate", wanted);
                continue;
            }
            assert_eq!(text(row, "status"), "ok", "{row}");
            assert_eq!(number(row, "simulations") + number(row, "failed"), 200.0);
            let error = number(&found, "standard_error");
            let expected = if refuter == "placebo" { 0.0 } else { number(&found, "estimate") };
            assert!((number(row, "new_effect") - expected).abs() < error, "{row}");
        }
    }
}

#[test]
fn a_placebo_says_nothing_about_an_instrument() {
    let table = made("arm,y,z", 200, |i| {
        let z = i64::from(noise(i, 3) > 50);
        let arm = if 60 * z + noise(i, 1) > 80 { "t" } else { "c" };
        format!("{arm},{},{z}", noise(i, 0) + if arm == "t" { 40 } else { 0 })
    });
    let with = format!("{TWO}, instruments: [z], estimators: [iv], seed: 1, {ALL}");
    let rows = analysed(&table, &with).rows("effects.refutations");
    let row = find(&rows, &[("refuter", "placebo")]);
    assert_eq!(text(row, "reason"), "the instrument does not act on a permuted treatment");
    for refuter in ["random_common_cause", "subset", "bootstrap"] {
        let row = find(&rows, &[("refuter", refuter), ("status", "ok")]);
        equal(number(row, "new_effect"), number(row, "estimate"), 0.2, refuter);
    }
    // Constant propensities have nothing to refute.
    let with = format!("{UNITS}, confounders: [x], estimators: [paired, weighting, aipw], {ALL}");
    let (_, rows) = refutations(&with);
    for estimator in ["weighting", "aipw"] {
        for refuter in REFUTERS {
            let row = find(&rows, &[("estimator", estimator), ("refuter", refuter)]);
            let reason = "every propensity score is the same: it adjusts for nothing to be refuted";
            ended(row, "not_applicable", reason);
        }
    }
}

#[test]
fn refuters_and_their_number_are_chosen() {
    let with = "treatment: arm, control: c, outcomes: [y, z], unit: unit, seed: 1";
    let steps = [
        ("none", "refuters: []"),
        ("some", "refuters: [bootstrap, subset], simulations: 1"),
        ("small", "refuters: [subset], subset_fraction: 0.001"),
        ("large", "refuters: [subset], subset_fraction: 0.9999"),
    ];
    let project = ran_with(&table(|at| at), with, &steps);
    assert!(project.rows("none.refutations").is_empty());
    let rows = project.rows("some.refutations");
    assert_eq!(rows.len(), 4);
    for row in &rows {
        assert_eq!((&row["simulations"], &row["std"]), (&json!(1), &Value::Null), "{row}");
        assert!(number(row, "new_effect").is_finite());
    }
    // No unit is kept: the estimator refuses on every data set.
    for row in project.rows("small.refutations") {
        assert_eq!((text(&row, "status"), &row["failed"]), ("refused", &json!(100)), "{row}");
        assert_eq!(text(&row, "reason"), "the estimator was refused on all 100 data sets");
    }
    // All units are kept: nothing changes.
    for row in project.rows("large.refutations") {
        assert_eq!((&row["new_effect"], &row["std"]), (&row["estimate"], &json!(0.0)), "{row}");
        assert_eq!(row["p_value"], 1.0);
    }
}

#[test]
fn cross_fitting_is_seeded_and_near_the_usual_estimate() {
    let with = "treatment: free, control: c, outcomes: [y], confounders: [x], estimators: [aipw]";
    let (five, same, other) = ("folds: 5", "folds: 5, seed: 1", "folds: 5, seed: 2");
    let steps = [("usual", ""), ("five", five), ("same", same), ("other", other)];
    let project = ran_with(&table(|at| at), with, &steps);
    let row = |step: &str| project.rows(step)[0].clone();
    assert_eq!(row("five"), row("same"));
    assert_ne!(row("five")["estimate"], row("other")["estimate"]);
    for step in ["five", "other"] {
        let found = row(step);
        assert_eq!((text(&found, "status"), text(&found, "se_kind")), ("ok", "influence function"));
        says(text(&found, "note"), &["Models were fitted on other folds of 5."]);
        let apart = number(&found, "estimate") - number(&row("usual"), "estimate");
        assert!(apart.abs() < number(&found, "standard_error") / 2.0, "{found}");
    }
    // 240 rows, 120 units, 24 places.
    let row = |more: &str| analysed(&table(|at| at), &format!("{with}, {more}")).only("effects");
    for more in ["folds: 50", "folds: 20, cluster: place", "folds: 24, cluster: place"] {
        assert_eq!(text(&row(more), "status"), "ok", "{more}");
    }
    for more in ["folds: 241", "folds: 25, cluster: place"] {
        reasons(&row(more), "refused", &["too few"]);
    }
}
