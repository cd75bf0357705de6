//! `regress` gives the numbers of the peers (`tests/reference/causal/`): on four public data sets
//! those of statsmodels, scikit-learn's optimum, DoWhy, sensemakr and numpy; and those of the
//! literature for Rosenbaum's bounds, E-values, adjusted p-values and two-stage least squares.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::harness::{has, text};
use crate::regress_paired::reference;
use crate::regress_tables::{
    CLOSED, OPTIMUM, alike, analysed, csv, effects, ended, equal, find, has_value, holds, lacks,
    number, ran_with,
};

/// A data set: its rows, the numbers of the peers, and the names of its arms.
struct Golden {
    file: &'static str,
    csv: &'static str,
    json: Value,
    treated: &'static str,
    control: &'static str,
}

macro_rules! golden {
    ($name:literal, $treated:literal, $control:literal) => {
        Golden {
            file: $name,
            csv: include_str!(concat!("../reference/causal/", $name, ".csv")),
            json: include_str!(concat!("../reference/causal/", $name, ".json")).parse().unwrap(),
            treated: $treated,
            control: $control,
        }
    };
}

fn goldens() -> [Golden; 4] {
    [
        golden!("nhefs", "1", "0"),
        golden!("nsw_dw", "1.0", "0.0"),
        golden!("ihdp_A_seed0", "1", "0"),
        golden!("formula_splitmix42", "1", "0"),
    ]
}

impl Golden {
    fn name(&self, what: &str) -> &str {
        self.json["meta"][what].as_str().unwrap()
    }

    /// Treatment, control, outcome.
    fn roles(&self) -> String {
        let (treatment, outcome) = (self.name("treatment"), self.name("outcome"));
        format!("treatment: {treatment}, control: '{}', outcomes: [{outcome}]", self.control)
    }

    /// The same with all covariates.
    fn adjusted(&self) -> String {
        let covariates: Vec<&str> = self.covariates().collect();
        format!("{}, confounders: [{}]", self.roles(), covariates.join(", "))
    }

    fn covariates(&self) -> impl Iterator<Item = &str> {
        let names = self.json["meta"]["covariates"].as_array().unwrap().iter();
        names.map(|name| name.as_str().unwrap())
    }
}

/// A number of the peers.
#[track_caller]
pub fn theirs(of: &Value, path: &str) -> f64 {
    let found = path.split('/').fold(of, |value, part| match part.parse::<usize>() {
        Ok(at) if value.is_array() => &value[at],
        _ => &value[part],
    });
    found.as_f64().unwrap_or_else(|| panic!("{path} in {of}"))
}

#[test]
fn differences_of_means_are_welchs() {
    for golden in goldens() {
        let naive = &golden.json["naive"];
        let rows = effects(golden.csv, &golden.roles());
        assert_eq!(rows.len(), 1, "{rows:?}");
        let wanted = [("estimator", "difference"), ("status", "ok"), ("estimand", "ate")];
        let row = find(&rows, &wanted);
        alike(row, naive, "estimate=ate standard_error=se_welch df", CLOSED);
        alike(row, naive, "p_value=p", OPTIMUM);
        holds(row, "statistic", theirs(naive, "ate") / theirs(naive, "se_welch"), CLOSED);
        let meta = &golden.json["meta"];
        has(row, "primary se_kind n_missing adjusted_for", json!([true, "Welch", 0, ""]));
        has(row, "n n_treatment", json!([meta["n"], meta["n_treated"]]));
        assert_eq!(number(row, "n_treatment") + number(row, "n_control"), number(row, "n"));
        has(row, "n_pairs n_clusters", json!([null, null]));
        has(row, "treatment control", json!([golden.treated, golden.control]));
    }
}

#[test]
fn regressions_have_the_standard_errors_of_statsmodels() {
    let exact = reference()["regressions"].clone();
    let mut without = 0;
    let kinds = ["classic", "HC0", "HC1", "HC2", "HC3"];
    for golden in goldens() {
        let with = "estimators: [ols, lin], standard_errors";
        let mut steps = kinds.map(|kind| (kind.to_lowercase(), format!("{with}: {kind}"))).to_vec();
        steps.push(("effects".into(), String::new()));
        let project = ran_with(golden.csv, &golden.adjusted(), &steps);
        let covariates: Vec<&str> = golden.covariates().collect();
        for kind in kinds {
            let rows = project.rows(&kind.to_lowercase());
            for (estimator, file, width) in [("ols", "ols", 1), ("lin", "lin2013", 2)] {
                let row = find(&rows, &[("estimator", estimator)]);
                let exact = &exact[golden.file][estimator];
                let file = &golden.json[file][format!("se_{kind}")];
                let Some(error) = exact[kind].as_f64() else {
                    assert!(file.is_null(), "the peers have none either");
                    lacks(row, &["leverage"]);
                    without += 1;
                    continue;
                };
                holds(row, "estimate", theirs(exact, "estimate"), CLOSED);
                holds(row, "standard_error", error, CLOSED);
                // The file has it from the normal equations.
                holds(row, "standard_error", file.as_f64().unwrap(), 1e-7);
                let width = 2 + width * covariates.len();
                assert_eq!(number(row, "df"), number(row, "n") - width as f64, "{row}");
                assert_eq!(text(row, "se_kind"), kind);
                assert_eq!(text(row, "adjusted_for"), covariates.join(", "));
            }
        }
        assert_eq!(project.texts("effects", "estimator"), ["aipw", "ols"], "by key");
        let rows = project.rows("effects");
        assert_eq!(find(&rows, &[("estimator", "ols"), ("se_kind", "HC3")])["primary"], true);
        let rows = project.rows("effects.sensitivity");
        for (measure, name) in [
            ("partial_r2", "partial_r2"),
            ("partial_f2", "partial_f2"),
            ("robustness_value", "rv_q"),
            ("robustness_value_alpha", "rv_q_alpha"),
        ] {
            let wanted = [("analysis", "robustness"), ("measure", measure)];
            has_value(&rows, &wanted, theirs(&golden.json["sensemakr"], name), CLOSED);
        }
    }
    assert_eq!(without, 2, "HC2 and HC3 of the interacted regression on IHDP");
}

/// The estimands and their names in the files.
const ESTIMANDS: [(&str, &str); 4] =
    [("ate", "ate_hajek"), ("att", "att"), ("atc", "atc"), ("ato", "ato_overlap")];

const WIDE: &str = "clip: [1e-12, 0.999999999999]";

#[test]
fn propensity_estimators_balance_and_overlap_are_those_of_the_optimum() {
    for golden in goldens() {
        for (model, penalty) in [("mle", ""), ("ridge_C1", ", penalty: 1.0")] {
            let peer = &golden.json["propensity"][model];
            let all = "estimators: [matching, stratification, weighting]";
            let wide = format!("estimators: [weighting], standard_errors: HC0, {WIDE}");
            let mut steps = vec![
                ("aipw".to_owned(), "estimators: [aipw], standard_errors: HC0".to_owned()),
                ("usual".to_owned(), "estimators: [aipw, ols]".to_owned()),
            ];
            for (estimand, _) in ESTIMANDS {
                steps.push((estimand.to_owned(), format!("estimand: {estimand}, {all}")));
                steps.push((format!("wide_{estimand}"), format!("estimand: {estimand}, {wide}")));
            }
            let with = format!("{}{penalty}, max_clipped: 1", golden.adjusted());
            let project = ran_with(golden.csv, &with, &steps);
            for (estimand, hajek) in ESTIMANDS {
                let rows = project.rows(estimand);
                let ok =
                    |estimator| find(&rows, &[("estimator", estimator), ("estimand", estimand)]);
                let row = ok("weighting");
                // Scores are clipped where a weight has no bound; no score is above 0.95.
                let (clip, words) = match estimand {
                    "ate" => ("ipw_clip_05_95", "clipped to 0.05 to 0.95"),
                    "atc" => ("ipw_clip_05_95", "clipped to at least 0.05"),
                    _ => ("ipw_noclip", "clipped"),
                };
                holds(row, "estimate", theirs(peer, &format!("{clip}/{hajek}")), OPTIMUM);
                let clipped = clip != "ipw_noclip" && theirs(peer, "n_outside_0.05_0.95") > 0.0;
                assert_eq!(text(row, "note").contains(words), clipped, "{row}");
                let wide = &project.rows(&format!("wide_{estimand}"))[0];
                holds(wide, "estimate", theirs(peer, &format!("ipw_noclip/{hajek}")), OPTIMUM);
                if estimand == "ate" {
                    holds(wide, "standard_error", theirs(peer, "ipw_stacked_noclip/se"), OPTIMUM);
                    assert_eq!(wide["df"], Value::Null, "normal distribution");
                }
                for (estimator, of) in
                    [("matching", "match_tie_averaged"), ("stratification", "stratify")]
                {
                    if estimand == "ato" {
                        let row = find(&rows, &[("estimator", estimator)]);
                        let reason = format!("`{estimator}` does not estimate the ato");
                        ended(row, "not_applicable", &reason);
                        continue;
                    }
                    let value = theirs(peer, &format!("{of}/{estimand}"));
                    holds(ok(estimator), "estimate", value, OPTIMUM);
                    assert!(number(ok(estimator), "standard_error") > 0.0);
                }
                if estimand != "ato" {
                    let note = text(ok("stratification"), "note").replace(',', "");
                    let (strata, rows) =
                        (theirs(peer, "stratify/strata_kept"), theirs(peer, "stratify/rows_kept"));
                    let words = format!("{strata} strata with {rows} rows.");
                    assert!(note.contains(&words), "{words}: {note}");
                }
            }
            let row = &project.rows("aipw")[0];
            holds(row, "estimate", theirs(peer, "aipw_armwise_clip_01_99/ate"), OPTIMUM);
            // The peer clips nothing.
            if model == "mle" && theirs(peer, "min") > 0.01 && theirs(peer, "max") < 0.99 {
                let peer = &golden.json["teffects_stack_logit"]["aipw"];
                alike(row, peer, "estimate=ate standard_error=se", OPTIMUM);
                assert_eq!(text(row, "se_kind"), "sandwich");
            }
            let (clipped, whole) = (project.rows("ate.balance"), project.rows("wide_ate.balance"));
            assert_eq!(clipped.len(), golden.covariates().count());
            for covariate in golden.covariates() {
                let before = &golden.json["balance"][covariate];
                let row = find(&clipped, &[("covariate", covariate), ("status", "ok")]);
                alike(row, before, "smd variance_ratio ks", CLOSED);
                // Weighted means all but cancel: the scale of the column counts.
                let after = theirs(&peer["smd_after_ate_weights"], covariate);
                let near = |row: &Value| (number(row, "smd_weighted") - after).abs() < 1e-8;
                let whole = find(&whole, &[("covariate", covariate)]);
                assert!(near(row) || near(whole), "{covariate} {after}: {row} {whole}");
            }
            let rows = project.rows("usual.overlap");
            assert_eq!(rows.len(), 1);
            let row = &rows[0];
            let low = number(row, "min_treatment").min(number(row, "min_control"));
            let high = number(row, "max_treatment").max(number(row, "max_control"));
            equal(low, theirs(peer, "min"), OPTIMUM, "min");
            equal(high, theirs(peer, "max"), OPTIMUM, "max");
            for (at, column) in ["q01", "q25", "median", "q75", "q99"].iter().enumerate() {
                let quantile = theirs(peer, &format!("quantiles_1_25_50_75_99/{at}"));
                holds(row, column, quantile, OPTIMUM);
            }
            holds(row, "auc", theirs(peer, "auc"), CLOSED);
            assert_eq!(number(row, "clipped"), theirs(peer, "n_outside_0.05_0.95"));
            assert_eq!(number(row, "distinct_scores"), theirs(peer, "n_distinct_scores"));
            for (step, of) in [("usual", "ipw_clip_05_95"), ("wide_ate", "ipw_noclip")] {
                let row = &project.rows(&format!("{step}.overlap"))[0];
                let ess = format!("{of}/ess_ate_t1_t0");
                holds(row, "effective_treatment", theirs(peer, &format!("{ess}/0")), OPTIMUM);
                holds(row, "effective_control", theirs(peer, &format!("{ess}/1")), OPTIMUM);
            }
        }
    }
}

#[test]
fn standard_errors_by_propensity_are_those_of_all_estimating_equations() {
    for golden in goldens() {
        let peer = reference()["propensities"][golden.file].clone();
        if peer.is_null() {
            continue;
        }
        let mut steps = Vec::new();
        for (estimand, _) in ESTIMANDS {
            let with = format!("estimand: {estimand}, estimators: [matching, weighting]");
            steps.push((estimand.to_owned(), format!("{with}, standard_errors: HC0")));
            if let Some(cluster) = peer["cluster"].as_str() {
                let with = format!("{with}, standard_errors: CR0, cluster: {cluster}");
                steps.push((format!("{estimand}_clustered"), with));
            }
        }
        let with = format!("{}, max_clipped: 1", golden.adjusted());
        let project = ran_with(golden.csv, &with, &steps);
        for (step, _) in &steps {
            let rows = project.rows(step);
            let row = find(&rows, &[("estimator", "weighting"), ("status", "ok")]);
            alike(row, &peer[step], "estimate standard_error", OPTIMUM);
            let kind = if step.contains('_') { "sandwich, clustered" } else { "sandwich" };
            assert_eq!(text(row, "se_kind"), kind);
            if let Some(matched) = peer["matching"].get(step) {
                let row = find(&rows, &[("estimator", "matching"), ("se_kind", "Abadie-Imbens")]);
                alike(row, matched, "estimate standard_error", OPTIMUM);
            }
        }
    }
}

/// Pairs as units under `t` and `c`.
fn pairs(of: impl IntoIterator<Item = (f64, f64)>) -> String {
    let pair =
        |(unit, (t, c)): (usize, (f64, f64))| [format!("u{unit},t,{t}"), format!("u{unit},c,{c}")];
    csv("unit,arm,y", of.into_iter().enumerate().flat_map(pair))
}

const PAIRED: &str = "treatment: arm, control: c, outcomes: [y], unit: unit";

fn closed_form() -> Value {
    serde_json::from_str(include_str!("../reference/causal/closed_form.json")).unwrap()
}

#[test]
fn rosenbaums_bounds_are_those_of_the_book() {
    let peer = closed_form();
    let list = |of: &Value| -> Vec<f64> {
        of.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
    };
    let tiny = list(&peer["rosenbaum_tiny"]["d"]);
    assert_eq!(tiny.len(), 10);
    let project = analysed(&pairs(tiny.into_iter().map(|d| (d, 0.0))), PAIRED);
    let rows = project.rows("effects.sensitivity");
    for gamma in ["1", "1.5", "2", "3"] {
        let wanted = [("analysis", "rosenbaum"), ("measure", &*format!("p_upper_{gamma}"))];
        has_value(&rows, &wanted, peer["rosenbaum_tiny"]["p"][gamma].as_f64().unwrap(), CLOSED);
    }
    let lead = &peer["lead_33_pairs"];
    let (treated, control) = (list(&lead["treated"]), list(&lead["control"]));
    let project = analysed(&pairs(treated.into_iter().zip(control)), PAIRED);
    let rows = project.rows("effects.sensitivity");
    for gamma in ["1", "2", "3"] {
        let wanted = [("measure", &*format!("p_upper_{gamma}"))];
        has_value(&rows, &wanted, lead["p_upper"][gamma].as_f64().unwrap(), CLOSED);
    }
    has_value(&rows, &[("measure", "gamma_star")], theirs(lead, "gamma_star"), CLOSED);
    let wanted = [("analysis", "location"), ("measure", "hodges_lehmann")];
    has_value(&rows, &wanted, theirs(lead, "hodges_lehmann"), CLOSED);
    // The effect that is found with 80 % power is 2.80 standard errors.
    let se = number(&project.rows("effects")[0], "standard_error");
    let wanted = [("analysis", "power"), ("measure", "minimum_detectable_effect")];
    has_value(&rows, &wanted, se * theirs(&peer, "mde80_z"), CLOSED);
}

#[test]
fn an_evalue_is_that_of_the_paper() {
    // Both arms have the deviation 1 and a standard error of 0.1 lies behind the difference.
    let peer = &closed_form()["evalue_smd"]["est=0.5,se=0.1,sd=1"];
    // 200 rows of each arm at +-d about their mean: variance 200 d^2 / 199 = 1.
    let d = (199.0_f64 / 200.0).sqrt();
    let rows = (0..400).map(|row| {
        let side = if row % 4 < 2 { d } else { -d };
        match row % 2 {
            0 => format!("t,{}", 0.5 + side),
            _ => format!("c,{side}"),
        }
    });
    let project = analysed(&csv("arm,y", rows), "treatment: arm, control: c, outcomes: [y]");
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
    let steps = methods.map(|(adjust, _)| (adjust, format!("adjust: {adjust}")));
    let project = ran_with(&csv(&header, rows), &with, &steps);
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
    let steps = kinds.map(|kind| (kind.to_lowercase(), format!("standard_errors: {kind}")));
    let project = ran_with(&csv(&header, rows), with, &steps);
    for (kind, ols, iv, f) in CARD {
        let rows = project.rows(&kind.to_lowercase());
        let row = find(&rows, &[("estimator", "ols")]);
        holds(row, "estimate", CARD_OLS, CLOSED);
        holds(row, "standard_error", ols, CLOSED);
        let row = find(&rows, &[("estimator", "iv"), ("estimand", "late"), ("status", "ok")]);
        holds(row, "estimate", CARD_IV, CLOSED);
        holds(row, "standard_error", iv, CLOSED);
        assert!(text(row, "note").contains(&format!("First-stage F = {f} ({kind}).")), "{row}");
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
