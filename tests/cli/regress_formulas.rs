//! `regress` and the closed formulas of the literature: Rosenbaum's bounds, E-values, adjusted
//! p-values, two-stage least squares (`tests/reference/causal/`, and numpy for Card's data).

use std::fmt::Write as _;

use serde_json::Value;

use crate::harness::text;
use crate::regress_goldens::theirs;
use crate::regress_tables::{CLOSED, OPTIMUM, analysed, csv, find, holds, number, ran_with};

/// Pairs as units under `t` and `c`.
fn pairs(of: impl IntoIterator<Item = (f64, f64)>) -> String {
    let rows = of
        .into_iter()
        .enumerate()
        .flat_map(|(unit, (t, c))| [format!("u{unit},t,{t}"), format!("u{unit},c,{c}")]);
    csv("unit,arm,y", rows)
}

const PAIRED: &str = "treatment: arm, control: c, outcomes: [y], unit: unit";

#[test]
fn rosenbaums_bounds_are_those_of_the_book() {
    let peer: Value =
        serde_json::from_str(include_str!("../reference/causal/closed_form.json")).unwrap();
    let list = |of: &Value| -> Vec<f64> {
        of.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
    };
    let tiny = list(&peer["rosenbaum_tiny"]["d"]);
    assert_eq!(tiny.len(), 10);
    let project = analysed(&pairs(tiny.into_iter().map(|d| (d, 0.0))), PAIRED);
    let rows = project.rows("effects.sensitivity");
    for gamma in ["1", "1.5", "2", "3"] {
        let measure = format!("p_upper_{gamma}");
        let row = find(&rows, &[("analysis", "rosenbaum"), ("measure", &measure)]);
        holds(row, "value", peer["rosenbaum_tiny"]["p"][gamma].as_f64().unwrap(), CLOSED);
    }
    let lead = &peer["lead_33_pairs"];
    let (treated, control) = (list(&lead["treated"]), list(&lead["control"]));
    let project = analysed(&pairs(treated.into_iter().zip(control)), PAIRED);
    let rows = project.rows("effects.sensitivity");
    for gamma in ["1", "2", "3"] {
        let measure = format!("p_upper_{gamma}");
        let row = find(&rows, &[("measure", &measure)]);
        holds(row, "value", lead["p_upper"][gamma].as_f64().unwrap(), CLOSED);
    }
    holds(find(&rows, &[("measure", "gamma_star")]), "value", theirs(lead, "gamma_star"), CLOSED);
    let shift = find(&rows, &[("analysis", "location"), ("measure", "hodges_lehmann")]);
    holds(shift, "value", theirs(lead, "hodges_lehmann"), CLOSED);
    // The effect that is found with 80 % power is 2.80 standard errors.
    let se = number(&project.rows("effects")[0], "standard_error");
    let row = find(&rows, &[("analysis", "power"), ("measure", "minimum_detectable_effect")]);
    holds(row, "value", se * theirs(&peer, "mde80_z"), CLOSED);
}

#[test]
fn an_evalue_is_that_of_the_paper() {
    // Both arms have the deviation 1 and a standard error of 0.1 lies behind the difference.
    let peer: Value =
        serde_json::from_str(include_str!("../reference/causal/closed_form.json")).unwrap();
    let peer = &peer["evalue_smd"]["est=0.5,se=0.1,sd=1"];
    // 200 rows of each arm at +-d about their mean: variance 200 d^2 / 199 = 1.
    let d = (199.0_f64 / 200.0).sqrt();
    let rows = (0..400).map(|row| {
        let side = if row % 4 < 2 { d } else { -d };
        match row % 2 {
            0 => format!("t,{}", 0.5 + side),
            _ => format!("c,{side}"),
        }
    });
    let with = "treatment: arm, control: c, outcomes: [y]";
    let project = analysed(&csv("arm,y", rows), with);
    let row = &project.rows("effects")[0];
    holds(row, "estimate", 0.5, CLOSED);
    holds(row, "standard_error", 0.1, CLOSED);
    let rows = project.rows("effects.sensitivity");
    for (measure, name) in [
        ("standardised_effect", "d"),
        ("risk_ratio", "rr"),
        ("risk_ratio_low", "rr_lo"),
        ("risk_ratio_high", "rr_hi"),
        ("evalue", "evalue_point"),
        ("evalue_ci", "evalue_ci"),
    ] {
        let row = find(&rows, &[("analysis", "evalue"), ("measure", measure)]);
        holds(row, "value", theirs(peer, name), CLOSED);
    }
}

/// The shift of an outcome over 40 pairs that has each p-value of Benjamini and Hochberg's table.
#[rustfmt::skip]
const SHIFTS: [f64; 15] = [
    8.008830090728965, 7.158231465701312, 6.157466016340836, 5.042809730431986, 4.48011377101407,
    4.22462028641102, 4.168787663316793, 4.052087465634171, 3.811733263792354, 1.8463926447114973,
    1.4863609683912067, 1.053730074646394, 0.8380063054493211, 0.571080089967882, 0.0,
];

#[test]
fn p_values_are_adjusted_as_by_benjamini_and_hochberg() {
    let peer: Value =
        serde_json::from_str(include_str!("../reference/causal/multiplicity.json")).unwrap();
    let mut header = String::from("unit,arm");
    (0..15).for_each(|at| write!(header, ",y{at}").unwrap());
    let rows = (0..40).flat_map(|unit| {
        ["t", "c"].map(|arm| {
            let mut row = format!("u{unit},{arm}");
            for shift in SHIFTS {
                // Differences are the shift and 19.5 steps to either side.
                let value = if arm == "t" { shift + f64::from(unit) - 19.5 } else { 0.0 };
                write!(row, ",{value}").unwrap();
            }
            row
        })
    });
    let outcomes: Vec<String> = (0..15).map(|at| format!("y{at}")).collect();
    let with =
        format!("treatment: arm, control: c, outcomes: [{}], unit: unit", outcomes.join(", "));
    let methods = [
        ("bonferroni", "bonferroni"),
        ("holm", "holm"),
        ("simes_hochberg", "simes-hochberg"),
        ("hommel", "hommel"),
        ("benjamini_hochberg", "fdr_bh"),
        ("benjamini_yekutieli", "fdr_by"),
    ];
    let steps: Vec<(String, String)> = methods
        .iter()
        .map(|(adjust, _)| ((*adjust).to_string(), format!("{with}, adjust: {adjust}")))
        .collect();
    let project = ran_with(&csv(&header, rows), "", &steps);
    for (adjust, name) in methods {
        let rows = project.rows(adjust);
        assert_eq!(rows.len(), 15);
        for (at, outcome) in outcomes.iter().enumerate() {
            let row = find(&rows, &[("outcome", outcome)]);
            holds(row, "p_value", theirs(&peer, &format!("p/{at}")), OPTIMUM);
            holds(row, "p_adjusted", theirs(&peer, &format!("{name}/{at}")), OPTIMUM);
        }
    }
}

/// Card's data with a treatment of two levels: more than twelve years of education.
#[test]
fn instruments_give_two_stage_least_squares() {
    let table = include_str!("../reference/causal/card_iv.csv");
    let mut lines = table.lines();
    let header = format!("{},college", lines.next().unwrap());
    let rows = lines.map(|line| {
        let educ: f64 = line.split(',').nth(1).unwrap().parse().unwrap();
        format!("{line},{}", if educ > 12.0 { "yes" } else { "no" })
    });
    let with = "treatment: college, control: 'no', outcomes: [lwage], instruments: [nearc4],
      confounders: [exper, black, south, married, smsa], estimators: [iv, ols]";
    let kinds = ["classic", "HC0", "HC1", "HC2", "HC3"];
    let steps: Vec<(String, String)> = kinds
        .iter()
        .map(|kind| (kind.to_lowercase(), format!("{with}, standard_errors: {kind}")))
        .collect();
    let project = ran_with(&csv(&header, rows), "", &steps);
    for (kind, ols, iv, f) in CARD {
        let rows = project.rows(&kind.to_lowercase());
        let row = find(&rows, &[("estimator", "ols")]);
        holds(row, "estimate", CARD_OLS, CLOSED);
        holds(row, "standard_error", ols, CLOSED);
        let row = find(&rows, &[("estimator", "iv"), ("estimand", "late"), ("status", "ok")]);
        holds(row, "estimate", CARD_IV, CLOSED);
        holds(row, "standard_error", iv, CLOSED);
        let first = format!("First-stage F = {f} ({kind}).");
        assert!(text(row, "note").contains(&first), "{row}");
        assert_eq!(row["primary"], true);
    }
}

/// Kind, standard error of least squares, of two stages (numpy), F of the first stage (statsmodels).
const CARD: [(&str, f64, f64, &str); 5] = [
    ("classic", 0.016951458768238982, 0.3318617900678602, "10.22"),
    ("HC0", 0.016771198808047803, 0.32569673810887645, "10.53"),
    ("HC1", 0.016790779899139633, 0.3260770029647293, "10.51"),
    ("HC2", 0.016792168297881303, 0.32615422237037606, "10.51"),
    ("HC3", 0.016813170320040025, 0.326612461392087, "10.48"),
];
const CARD_OLS: f64 = 0.21007272676969518;
const CARD_IV: f64 = 0.7205028024882894;
