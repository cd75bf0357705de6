//! `regress` on outcomes that are yes or no, counts or ordered, with texts as covariates, absorbed
//! effects, and a treatment that is a dose: the numbers of tests/reference/generalised_models.json
//! come out of the program.

use serde_json::Value;

use crate::harness::{Project, says, text};
use crate::regress_goldens::theirs;
use crate::regress_referee::measure;
use crate::regress_tables::{
    OPTIMUM, alike, analysed, csv, estimate, find, holds, lacks, number, ran_with, reasons,
    workflow,
};

fn reference() -> Value {
    serde_json::from_str(include_str!("../reference/generalised_models.json")).unwrap()
}

const STEP: &str = "treatment: arm, control: '0', confounders: [size, depth], cluster: repo,
      standard_errors: CR1";

#[test]
fn measures_are_those_of_the_peers() {
    let peer = reference();
    let logistic = "estimators: [logistic, logistic_difference, logistic_ratio]";
    let steps = [
        ("passed", format!("outcomes: [passed], {logistic}")),
        ("count", "outcomes: [count], estimators: [poisson, negative_binomial]".into()),
        ("level", "outcomes: [level], estimators: [proportional_odds]".into()),
    ];
    let project = ran_with(text(&peer, "csv"), STEP, &steps);
    let counts = &peer["counts"];
    for (step, estimator, measure, peer) in [
        ("passed", "logistic", "odds_ratio", &peer["logistic"]),
        ("count", "poisson", "rate_ratio", &counts["poisson"]),
        ("count", "negative_binomial", "rate_ratio", &counts["negative_binomial"]),
        ("level", "proportional_odds", "odds_ratio", &peer["ordinal"]),
    ] {
        let row = estimate(&project, step, estimator);
        assert_eq!((text(&row, "measure"), number(&row, "null_value")), (measure, 1.0));
        let log = theirs(peer, &format!("log_{}", measure.replace("rate_", "")));
        let error = theirs(peer, "errors/CR1");
        holds(&row, "estimate", log.exp(), OPTIMUM);
        holds(&row, "standard_error", error, OPTIMUM);
        holds(&row, "statistic", log / error, OPTIMUM);
        // A ratio's interval is not symmetric, and has 1 in it if and only if p is that large.
        let (low, high) = (number(&row, "ci_low"), number(&row, "ci_high"));
        assert!((low * high / (2.0 * log).exp() - 1.0).abs() < 1e-9, "{row}");
        assert_eq!(low <= 1.0 && 1.0 <= high, number(&row, "p_value") >= 0.05, "{row}");
        assert!(text(&row, "note").contains("SE of the logarithm"), "{row}");
    }
    let row = estimate(&project, "passed", "logistic_difference");
    assert_eq!((text(&row, "measure"), number(&row, "null_value")), ("risk_difference", 0.0));
    alike(&row, &peer["logistic"]["margins"]["CR1"], "estimate standard_error", OPTIMUM);
    // The E-value of a ratio (VanderWeele and Ding 2017): odds that are not rare by their root.
    for (step, estimator, power) in [
        ("passed", "logistic", 0.5),
        ("count", "poisson", 1.0),
        ("level", "proportional_odds", 0.5),
    ] {
        let row = estimate(&project, step, estimator);
        let evalue = |ratio: f64| {
            let ratio = ratio.powf(power).max(ratio.powf(-power));
            ratio + (ratio * (ratio - 1.0)).sqrt()
        };
        let wanted = evalue(number(&row, "estimate"));
        holds(&measure(&project, step, "evalue", "evalue"), "value", wanted, 1e-9);
        let (low, high) = (number(&row, "ci_low"), number(&row, "ci_high"));
        let wanted = match (low > 1.0, high < 1.0) {
            (true, _) => evalue(low),
            (_, true) => evalue(high),
            _ => 1.0,
        };
        holds(&measure(&project, step, "evalue", "evalue_ci"), "value", wanted, 1e-8);
    }
    let row = &project.rows("passed.summary")[0];
    assert_eq!(text(row, "measure"), "odds_ratio", "{row}");
}

#[test]
fn absorbed_effects_are_those_of_the_peers() {
    let peer = reference();
    let rows = peer["absorbed"]["factors"].as_array().unwrap();
    let step =
        |(at, row): (usize, &Value)| (format!("s{at}"), format!("absorb: {}", row["factors"]));
    let steps: Vec<(String, String)> = rows.iter().enumerate().map(step).collect();
    let with = "treatment: arm, control: '0', outcomes: [y], confounders: [size, depth]";
    let project = ran_with(text(&peer, "csv"), with, &steps);
    for (row, (step, _)) in rows.iter().zip(&steps) {
        let found = estimate(&project, step, "ols");
        alike(&found, row, "estimate standard_error=HC1", OPTIMUM);
        alike(&found, row, "df=df_resid", 0.0);
        assert!(text(&found, "note").contains("absorbed for the levels"), "{found}");
        // Cinelli and Hazlett's partial R² from the t of least squares with an indicator per level.
        let t = theirs(row, "estimate") / theirs(row, "classic");
        let partial = t * t / (t * t + theirs(row, "df_resid"));
        let found = measure(&project, step, "robustness", "partial_r2");
        holds(&found, "value", partial, 1e-9);
    }
    // Other estimators do not absorb.
    let with = "treatment: arm, control: '0', outcomes: [y], absorb: [repo],
      estimators: [ols, lin]";
    let project = analysed(peer["csv"].as_str().unwrap(), with);
    reasons(&estimate(&project, "effects", "lin"), "not_applicable", &["only `ols` does"]);
}

#[test]
fn a_dose_has_a_curve_and_trends() {
    let peer = reference();
    let with = "treatment: dose, control: '5', outcomes: [y, passed], standard_errors: HC1,
      dose: { at: [0, 5, 12, 25, 33] }";
    let project = analysed(peer["csv"].as_str().unwrap(), with);
    assert!(project.rows("effects").is_empty());
    let curve = project.rows("effects.dose");
    assert_eq!(curve.len(), 10);
    let at = |dose: f64| {
        let is = |row: &&Value| row["outcome"] == "y" && number(row, "dose") == dose;
        curve.iter().find(is).unwrap().clone()
    };
    assert_eq!(text(&at(5.0), "status"), "not_applicable");
    let row = at(25.0);
    assert!(number(&row, "ci_low") < number(&row, "estimate"), "{row}");
    let trend = project.rows("effects.trend");
    let row = find(&trend, &[("outcome", "passed"), ("test", "cochran_armitage")]);
    alike(row, &peer["dose"]["cochran_armitage"], "statistic=z", OPTIMUM);
    let row = find(&trend, &[("outcome", "y"), ("test", "jonckheere_terpstra")]);
    holds(row, "p_value", peer["dose"]["jonckheere"]["y"].as_f64().unwrap(), OPTIMUM);
    let row = find(&trend, &[("outcome", "y"), ("test", "cochran_armitage")]);
    assert_eq!(text(row, "status"), "not_applicable", "{row}");
}

/// 240 rows whose covariate is a text of three levels; by number it is 0, 1 or 2.
fn levels() -> String {
    let rows = (0..240u64).map(|row| {
        let level = [0, 1, 2, 2][(row * row % 7 % 4) as usize];
        let arm = u64::from((row * 5 + level * 3) % 11 > 5);
        let y = row * row % 23 + 4 * arm + 9 * level + 5 * arm * u64::from(level == 2);
        let name = ["java", "c", "python"][level as usize];
        format!("{arm},{y},{name},{},{}", u64::from(level == 1), u64::from(level == 2))
    });
    csv("id,arm,y,language,is_c,is_python", rows.enumerate().map(|(id, row)| format!("{id},{row}")))
}

#[test]
fn texts_are_indicators_of_their_levels() {
    let project = ran_with(
        &levels(),
        "treatment: arm, control: '0', outcomes: [y], estimators: [ols, weighting, lin]",
        &[
            ("text", "confounders: [language]"),
            ("numbers", "confounders: [is_c, is_python]"),
            ("base", "confounders: [language], base: { language: python }"),
        ],
    );
    for estimator in ["ols", "weighting", "lin"] {
        let (one, two) =
            (estimate(&project, "text", estimator), estimate(&project, "numbers", estimator));
        let other = estimate(&project, "base", estimator);
        alike(&one, &two, "estimate standard_error p_value", 1e-9);
        alike(&other, &two, "estimate standard_error p_value", 1e-6);
        assert_eq!(text(&one, "adjusted_for"), "language (base java)");
        assert_eq!(text(&other, "adjusted_for"), "language (base python)");
    }
    assert_eq!(project.texts("text.balance", "covariate"), ["language=c", "language=python"]);
    // A text may modify the effect.
    let with = "treatment: arm, control: '0', outcomes: [y], modifiers: [language]";
    let project = analysed(&levels(), with);
    let rows = project.rows("effects.modifiers");
    let of = |modifier: &str, bin: u64| {
        let is = |row: &&Value| row["modifier"] == modifier && row["bin"] == bin;
        rows.iter().find(is).unwrap_or_else(|| panic!("{rows:#?}")).clone()
    };
    let [step, base, level] = [0, 1, 2].map(|bin| of("language=python", bin));
    let difference = number(&level, "estimate") - number(&base, "estimate");
    holds(&step, "estimate", difference, 1e-9);
    assert!(text(&step, "note").contains("where it is java"), "{step}");
    assert!(text(&level, "note").starts_with("Where `language` is python"), "{level}");
    assert!(rows.iter().all(|row| row["modifier"] != "language"), "{rows:#?}");
}

#[test]
fn pairs_have_mcnemar_and_signed_ranks() {
    // 60 units: 14 gain the outcome, 5 lose it, 20 have it in both.
    let rows = (0..60).map(|unit| {
        let (control, treated) = match unit {
            0..14 => (0, 1),
            14..19 => (1, 0),
            19..39 => (1, 1),
            _ => (0, 0),
        };
        let y = |arm: i32| unit * 7 % 13 + arm * (unit % 5);
        format!("u{unit},c,{control},{}\nu{unit},t,{treated},{}\n", y(0), y(1))
    });
    let table = format!("unit,arm,passed,y\n{}", rows.collect::<String>());
    let with = "treatment: arm, control: c, outcomes: [passed, y], unit: unit,
      estimators: [paired, mcnemar, mcnemar_mid_p, wilcoxon]";
    let project = analysed(&table, with);
    let rows = project.rows("effects");
    let of = |outcome, estimator| find(&rows, &[("outcome", outcome), ("estimator", estimator)]);
    let exact = of("passed", "mcnemar");
    holds(exact, "estimate", 14.0 / 5.0, 1e-9);
    // 2 P(X <= 5) of 19 at one half, and the same less P(X = 5).
    holds(exact, "p_value", 0.063_568_115_234_375, 1e-9);
    holds(of("passed", "mcnemar_mid_p"), "p_value", 0.041_389_465_332_031_25, 1e-9);
    assert_eq!(exact["statistic"], Value::Null, "{exact}");
    reasons(of("y", "mcnemar"), "refused", &["`y` is"]);
    // Differences of 0 to 4, a fifth of them 0: 0.8 + 0.2 / 2. SciPy's quantile of t(59) in Feng and
    // Cliff's interval; all 48 that are not zero are above it.
    let superior = of("y", "wilcoxon");
    assert_eq!(text(superior, "measure"), "probability_of_superiority");
    for (column, value) in [
        ("estimate", 0.9),
        ("null_value", 0.5),
        ("ci_low", 0.8356364016501852),
        ("ci_high", 0.9409406168477503),
        ("p_value", 2f64.powi(-47)),
    ] {
        holds(superior, column, value, 1e-9);
    }
    assert_eq!(text(superior, "se_kind"), "signed ranks, exact");
}

#[test]
fn wilcoxons_test_of_many_ties_has_no_shift() {
    // 0, 1 or 2 errors: the median of all differences is 0, and so are both ends of its interval.
    let rows = [("c", [150, 40, 10]), ("t", [178, 18, 4])].into_iter().flat_map(|(arm, counts)| {
        let values = counts.into_iter().enumerate();
        values.flat_map(move |(y, n)| (0..n).map(move |_| format!("{arm},{y}")))
    });
    let table = csv("arm,y", rows);
    let with = "treatment: arm, control: c, outcomes: [y], estimators: [wilcoxon],
      refuters: [placebo, subset], simulations: 20";
    let project = analysed(&table, with);
    let row = estimate(&project, "effects", "wilcoxon");
    // scipy 1.17.1, mannwhitneyu(use_continuity=False); with a correction p is 0.00027201.
    // statsmodels 0.15.0, rank_compare_2indep: prob1, and its var_prob and df in Feng and Cliff's
    // interval.
    for (column, value) in [
        ("estimate", 0.42975),
        ("p_value", 0.0002713235893377259),
        ("ci_low", 0.3929245074064718),
        ("ci_high", 0.4673697469016586),
    ] {
        holds(&row, column, value, 1e-9);
    }
    assert_eq!(text(&row, "se_kind"), "rank sum, normal without continuity correction");
    says(text(&row, "note"), &["U = 17190", "69 % of the values are tied"]);
    let sentence = &project.rows("effects.findings")[0]["sentence"];
    let words =
        "t lowered y: probability of superiority 0.430 (95 % CI 0.393 to 0.467; p = 0.00027)";
    assert!(sentence.as_str().unwrap().starts_with(words), "{sentence}");
    for row in project.rows("effects.refutations") {
        assert_eq!((text(&row, "status"), number(&row, "failed")), ("ok", 0.0), "{row}");
        let distance = (number(&row, "estimate") + 0.07025).abs();
        assert!(distance < 1e-9 && number(&row, "new_effect").abs() < 0.1, "{row}");
    }
    // Without ties it is a shift.
    let table = csv("arm,y", (0..40).map(|i| format!("{},{}", ["c", "t"][i % 2], 3 * i * i % 83)));
    let row = estimate(&analysed(&table, with), "effects", "wilcoxon");
    assert_eq!((text(&row, "measure"), text(&row, "se_kind")), ("difference", "rank sum, exact"));
}

#[test]
fn what_has_no_number_is_refused_in_words() {
    // No treated row has the outcome.
    let rows = (0..80).map(|row| {
        let (arm, size) = (row % 2, row * row % 17);
        format!("{row},{arm},{},{size},only\n", if arm == 0 && row % 3 == 0 { 1 } else { 0 })
    });
    let table = format!("id,arm,passed,size,word\n{}", rows.collect::<String>());
    let effects = "confounders: [size], estimators: [risk_difference, risk_ratio, odds_ratio,
      logistic, logistic_difference, poisson, negative_binomial, proportional_odds]";
    let with = "treatment: arm, control: '0', outcomes: [passed]";
    let steps = [("effects", effects), ("word", "confounders: [word]")];
    let project = ran_with(&table, with, &steps);
    let rows = project.rows("effects");
    for (estimator, words) in [
        ("risk_ratio", "one cell of the table"),
        ("odds_ratio", "one cell of the table"),
        ("logistic", "cell of the table"),
        ("logistic_difference", "cell of the table"),
        ("poisson", "every count in the treated arm is zero"),
        ("negative_binomial", "every count in the treated arm is zero"),
        ("proportional_odds", "separation"),
    ] {
        lacks(find(&rows, &[("estimator", estimator)]), &[words]);
    }
    // The difference has an interval all the same.
    let row = find(&rows, &[("estimator", "risk_difference"), ("status", "ok")]);
    assert!(number(row, "ci_high") < 0.0, "{row}");
    says(text(&project.rows("word")[0], "reason"), &["`word` has one level only"]);
}

#[test]
fn arguments_that_do_not_fit_are_found_first() {
    let table = "id,arm,y,x,word,n_errors\n1,1,2,3,a,4\n";
    let inferior = "outcomes: [n_errors], equivalence: { margin: 1, test: noninferiority";
    for (with, words) in [
        ("estimators: [mcnemar]", "`mcnemar` needs a unit"),
        ("base: { x: a }, confounders: [x]", "`x` is not a column of text"),
        ("base: { word: a }", "`word` is neither a confounder nor a modifier"),
        ("absorb: [word], estimators: [difference]", "`absorb` is for `ols`"),
        ("absorb: [word], confounders: [word]", "already the confounder"),
        ("dose: {}, control: none", "is `none`, which is not a dose"),
        ("dose: { knots: 9 }", "knots"),
        ("outcomes: [word]", "a number is needed"),
        ("instruments: [word], estimators: [iv]", "a number is needed"),
        (&*format!("{inferior} }}"), "needs to know what is worse"),
        (
            &*format!("{inferior}, lower_is_better: [n_errors], higher_is_better: [n_errors] }}"),
            "is in `lower_is_better` as well",
        ),
        ("equivalence: { margin: 1, higher_is_better: [y] }", "is for `test: noninferiority`"),
    ] {
        let mut with = with.to_owned();
        for (key, rest) in [("outcomes:", "outcomes: [y]"), ("control:", "control: '0'")] {
            if !with.contains(key) {
                with = format!("{rest}, {with}");
            }
        }
        let steps = [("effects", &*format!("treatment: arm, {with}"))];
        let project = Project::new(&workflow(&steps)).with("data.csv", table);
        project.run(&["check", "w.yaml"]).exits(2).reports(&[words]);
    }
}
