//! The estimate by instruments: whether they agree, Anderson and Rubin's interval, and rows of the
//! port `sensitivity`.

use super::{Controls, EffectEstimate, EstimationSample, EstimatorSpec};
use crate::regress::robustness;
use crate::regress::sensitivity::SensitivityMeasures;
use crate::shared_columns as columns;
use galeras_base::prose::{confidence_level, four_digits, interval, p_equals};
use galeras_causal::{
    AndersonRubin, Covariance, Overidentification, Refusal, Refuter, TwoStage, anderson_rubin,
    two_stage,
};

/// With fewer rows, intervals by instruments cover too much (docs/coverage.md).
const FEWEST_ROWS: usize = 50;

/// The level at which instruments that disagree forbid an estimate.
const LEVEL: f64 = 0.05;
/// A first stage below this is called weak (Staiger and Stock 1997).
const WEAK_F: f64 = 10.0;

pub(super) const IV: EstimatorSpec = EstimatorSpec {
    controls: Controls::Instruments,
    fixed_estimand: Some("late"),
    argument: Some("instruments"),
    unfit_refuters: &[(Refuter::Placebo, "the instrument does not act on a permuted treatment")],
    robustness: robustness::of_instrument,
    diagnostics: add_rows,
    ..EstimatorSpec::new(
        "iv",
        "Two-stage least squares",
        "Two-stage least squares with the instruments.",
        by_instruments,
    )
};

fn by_instruments(sample: &EstimationSample<'_>) -> Result<EffectEstimate, Refusal> {
    if sample.correlated().is_none() {
        sample.require("rows for an instrument", sample.treated.len(), FEWEST_ROWS)?;
    }
    let (kind, clusters) = sample.covariance();
    let columns = InstrumentColumns::of(sample, kind, clusters);
    let fit = columns.fit()?;
    let mut result = EffectEstimate::new(fit.estimate, "late", kind.to_string());
    if !sample.only_value {
        columns.refuse_disagreement(&fit)?;
        result.remarks.extend(sample.unpaired_remark(kind));
        let set = columns.not_rejected(&fit, sample.args.alpha).ok();
        result.unbounded = set.as_ref().is_some_and(is_unbounded);
        result.remarks.extend(columns.remarks(sample.args.alpha, &fit, set.as_ref()));
    }
    Ok(result)
}

/// The columns of an estimate by instruments.
struct InstrumentColumns<'a> {
    sample: &'a EstimationSample<'a>,
    /// The treatment, 0 or 1.
    endogenous: Vec<f64>,
    kind: Covariance,
    clusters: Option<&'a [u32]>,
}

impl<'a> InstrumentColumns<'a> {
    fn of(sample: &'a EstimationSample<'a>, kind: Covariance, clusters: Option<&'a [u32]>) -> Self {
        let endogenous = sample.treated.iter().map(|t| f64::from(u8::from(*t))).collect();
        Self { sample, endogenous, kind, clusters }
    }

    fn fit(&self) -> Result<TwoStage, Refusal> {
        let Self { endogenous, kind, clusters, .. } = self;
        let EstimationSample { outcome, instruments, covariates, .. } = self.sample;
        two_stage(outcome, endogenous, instruments, covariates, *kind, *clusters)
    }

    /// The effects that are not rejected, looked for near an estimate.
    fn not_rejected(&self, fit: &TwoStage, alpha: f64) -> Result<AndersonRubin, Refusal> {
        let Self { endogenous, kind, clusters, .. } = self;
        let EstimationSample { outcome, instruments, covariates, .. } = self.sample;
        let near = (fit.estimate.value, fit.estimate.standard_error);
        anderson_rubin(outcome, endogenous, instruments, covariates, *kind, *clusters, near, alpha)
    }

    /// The test of agreement that fits the variances, and its name.
    fn agreement(&self, fit: &TwoStage) -> Option<(&'static str, Overidentification)> {
        match self.kind {
            Covariance::Classic => Some(("Sargan's test", fit.sargan?)),
            kind if kind.is_clustered() => Some(("Hansen's J by clusters", fit.hansen?)),
            _ => Some(("Hansen's J", fit.hansen?)),
        }
    }

    /// Refuses instruments that give different effects.
    fn refuse_disagreement(&self, fit: &TwoStage) -> Result<(), Refusal> {
        match self.agreement(fit) {
            Some((name, test)) if test.p < LEVEL => Err(Refusal::Other(format!(
                "the instruments give different effects, so that at least one of them is not \
                 valid: {name} is {} (chi-squared, {} df, p {}) and rejects at the {} % level",
                four_digits(test.chi_squared),
                test.degrees,
                p_equals(test.p),
                100.0 * LEVEL,
            ))),
            _ => Ok(()),
        }
    }

    /// The sentences that a reader of the estimate must know.
    fn remarks(&self, alpha: f64, fit: &TwoStage, set: Option<&AndersonRubin>) -> Vec<String> {
        // By the same variances as the estimate, so that clusters do not make one stronger.
        let (f, kind) = match fit.robust_first_stage_f {
            Some(f) => (f, self.kind.to_string()),
            None => (fit.first_stage_f, "equal variances".into()),
        };
        let mut remarks = vec![format!("First-stage F = {} ({kind}).", four_digits(f))];
        let weak = f < WEAK_F;
        if weak {
            let remark = "The instrument is weak (F < 10): the interval may not hold.";
            remarks.push(remark.into());
        }
        if let Some(set) = set {
            let level = confidence_level(alpha);
            let holds = if weak { ", which holds all the same" } else { "" };
            remarks.push(format!("Anderson-Rubin {level} % CI: {}{holds}.", in_words(set)));
        }
        if self.sample.instruments.len() > 1 {
            remarks.push(match self.agreement(fit) {
                Some((name, test)) => {
                    format!("The instruments agree ({name}: p {}).", p_equals(test.p))
                }
                None => {
                    "Whether the instruments agree cannot be tested with so few clusters.".into()
                }
            });
        }
        remarks
    }
}

/// True if effects of any size are not rejected.
fn is_unbounded(set: &AndersonRubin) -> bool {
    set.set.iter().any(|part| part.0.is_infinite() || part.1.is_infinite())
}

/// A set of effects in words.
fn in_words(set: &AndersonRubin) -> String {
    let words: Vec<String> = set
        .set
        .iter()
        .map(|part| match (part.0.is_finite(), part.1.is_finite()) {
            (true, true) => interval(*part),
            (true, false) => format!("{} and more", four_digits(part.0)),
            (false, true) => format!("{} and less", four_digits(part.1)),
            (false, false) => "any effect".into(),
        })
        .collect();
    if words.is_empty() { "no effect at all".into() } else { words.join(", or ") }
}

/// Adds the rows of the port `sensitivity`.
fn add_rows(measures: &mut SensitivityMeasures<'_>) {
    const ANALYSIS: &str = "instruments";
    let (args, set) = (measures.cx.args, measures.cx.set);
    if set.instruments.is_empty() {
        return;
    }
    let sample = measures.cx.sample(measures.comparison.near_zero());
    let columns = InstrumentColumns::of(&sample, args.covariance(), sample.correlated());
    let fit = match columns.fit() {
        Ok(fit) => fit,
        Err(reason) => {
            let reason = columns::named(&reason, &set.names);
            return measures.refused(ANALYSIS, "first_stage_f", reason);
        }
    };
    let kind = columns.kind;
    let f = fit.robust_first_stage_f.unwrap_or(fit.first_stage_f);
    let note = format!("F of the instruments in the first stage ({kind}): {}.", four_digits(f));
    measures.add(ANALYSIS, "first_stage_f", Ok(f), note);
    if let Some(test) = fit.sargan {
        let about = "of whether the instruments agree, for equal variances";
        agreement(measures, "sargan", "Sargan's test", about, &test);
        match fit.hansen {
            Some(test) => {
                let about = if kind.is_clustered() {
                    "of the same, robust within clusters"
                } else {
                    "of the same, robust against unequal variances"
                };
                agreement(measures, "hansen_j", "Hansen's J", about, &test);
            }
            None if kind == Covariance::Classic => {}
            None => {
                let reason =
                    "its weights are singular: there are no more clusters than instruments";
                measures.refused(ANALYSIS, "hansen_j", reason);
            }
        }
    }
    let set = match columns.not_rejected(&fit, args.alpha) {
        Ok(set) => set,
        Err(reason) => return measures.refused(ANALYSIS, "anderson_rubin_p", reason),
    };
    let p = p_equals(set.p_zero);
    let note = format!("Anderson and Rubin's test of no effect ({kind}): p {p}.");
    measures.add(ANALYSIS, "anderson_rubin_p", Ok(set.p_zero), note);
    let (level, words) = (confidence_level(args.alpha), in_words(&set));
    for (measure, end, which) in [
        ("anderson_rubin_low", set.set.first().map(|part| part.0), "lower"),
        ("anderson_rubin_high", set.set.last().map(|part| part.1), "upper"),
    ] {
        let value = match end {
            Some(end) if end.is_finite() => Ok(end),
            Some(_) => Err(format!(
                "the effects that are not rejected have no {which} end: they are {words}"
            )),
            None => Err("every effect is rejected: the instruments are not valid".to_string()),
        };
        let note = format!(
            "The {which} end of the effects that Anderson and Rubin's test does not reject at the \
             {level} % level of confidence: {words}."
        );
        measures.add(ANALYSIS, measure, value, note);
    }

    /// The statistic and the p-value of a test of agreement.
    fn agreement(
        measures: &mut SensitivityMeasures<'_>,
        measure: &str,
        name: &str,
        about: &str,
        test: &Overidentification,
    ) {
        let (statistic, p) = (four_digits(test.chi_squared), p_equals(test.p));
        let degrees = test.degrees;
        let note = format!("{name} {about}: chi-squared({degrees}) = {statistic}, p {p}.");
        measures.add(ANALYSIS, measure, Ok(test.chi_squared), note);
        let verdict = if test.p < LEVEL { "they do not" } else { "nothing speaks against it" };
        let note = format!("Its p-value: p {p}; {verdict} (at the {} % level).", 100.0 * LEVEL);
        measures.add(ANALYSIS, &format!("{measure}_p"), Ok(test.p), note);
    }
}
