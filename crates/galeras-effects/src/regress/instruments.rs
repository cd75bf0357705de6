//! What goes with an estimate by instruments: whether they agree, Anderson and Rubin's effects that
//! are not rejected, remarks, and rows of the port `sensitivity`.

use super::args::Args;
use super::comparison::{Comparison, RowSet};
use super::estimators::Estimator;
use super::sensitivity_table::SensitivityMeasures;
use super::shared_columns as columns;
use galeras_base::prose::{confidence_level, four_digits, interval, p_equals};
use galeras_causal::{
    AndersonRubin, Covariance, Overidentification, Refusal, TwoStage, anderson_rubin, two_stage,
};

/// The level at which instruments that disagree forbid an estimate.
const LEVEL: f64 = 0.05;
/// A first stage below this is called weak (Staiger and Stock 1997).
const WEAK_F: f64 = 10.0;

/// The columns of an estimate by instruments.
#[derive(Clone, Copy)]
pub(super) struct InstrumentColumns<'a> {
    pub(super) outcome: &'a [f64],
    /// The treatment, 0 or 1.
    pub(super) endogenous: &'a [f64],
    pub(super) instruments: &'a [&'a [f64]],
    pub(super) exogenous: &'a [&'a [f64]],
    pub(super) kind: Covariance,
    pub(super) clusters: Option<&'a [u32]>,
}

impl InstrumentColumns<'_> {
    /// Two-stage least squares.
    pub(super) fn fit(&self) -> Result<TwoStage, Refusal> {
        let Self { outcome, endogenous, instruments, exogenous, kind, clusters } = *self;
        two_stage(outcome, endogenous, instruments, exogenous, kind, clusters)
    }

    /// The effects that are not rejected, looked for near an estimate.
    fn not_rejected(&self, fit: &TwoStage, alpha: f64) -> Result<AndersonRubin, Refusal> {
        let Self { outcome, endogenous, instruments, exogenous, kind, clusters } = *self;
        let near = (fit.estimate.value, fit.estimate.standard_error);
        anderson_rubin(outcome, endogenous, instruments, exogenous, kind, clusters, near, alpha)
    }

    /// The test of whether the instruments agree that fits the variances, and its name.
    fn agreement(&self, fit: &TwoStage) -> Option<(&'static str, Overidentification)> {
        match self.kind {
            Covariance::Classic => Some(("Sargan's test", fit.sargan?)),
            kind if kind.is_clustered() => Some(("Hansen's J by clusters", fit.hansen?)),
            _ => Some(("Hansen's J", fit.hansen?)),
        }
    }

    /// Refuses instruments that give different effects.
    pub(super) fn refuse_disagreement(&self, fit: &TwoStage) -> Result<(), Refusal> {
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

    /// What a reader must know of an estimate by instruments.
    pub(super) fn remarks(&self, args: &Args, fit: &TwoStage) -> Vec<String> {
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
        if let Ok(set) = self.not_rejected(fit, args.alpha) {
            let level = confidence_level(args.alpha);
            let holds = if weak { ", which holds all the same" } else { "" };
            remarks.push(format!("Anderson-Rubin {level} % CI: {}{holds}.", in_words(&set)));
        }
        if self.instruments.len() > 1 {
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

/// Adds the rows of an estimate by instruments, if there is to be one.
pub(super) fn instrument_rows(
    args: &Args,
    measures: &mut SensitivityMeasures<'_>,
    set: &RowSet,
    comparison: &Comparison,
) {
    const ANALYSIS: &str = "instruments";
    if !args.estimators().contains(&Estimator::Iv) || set.instruments.is_empty() {
        return;
    }
    let exogenous: Vec<&[f64]> = set.covariates.iter().map(Vec::as_slice).collect();
    let instruments: Vec<&[f64]> = set.instruments.iter().map(Vec::as_slice).collect();
    let endogenous: Vec<f64> = set.treated.iter().map(|t| f64::from(u8::from(*t))).collect();
    let columns = InstrumentColumns {
        outcome: comparison.near_zero(),
        endogenous: &endogenous,
        instruments: &instruments,
        exogenous: &exogenous,
        kind: args.covariance(),
        clusters: set.correlated(),
    };
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
    let ends = match (set.set.first(), set.set.last()) {
        (Some(first), Some(last)) => [Ok(first.0), Ok(last.1)],
        _ => [Err(()), Err(())],
    };
    for (measure, end, which) in
        [("anderson_rubin_low", ends[0], "lower"), ("anderson_rubin_high", ends[1], "upper")]
    {
        let value = match end {
            Ok(end) if end.is_finite() => Ok(end),
            Ok(_) => Err(format!(
                "the effects that are not rejected have no {which} end: they are {words}"
            )),
            Err(()) => Err("every effect is rejected: the instruments are not valid".to_string()),
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
