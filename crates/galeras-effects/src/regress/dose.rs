//! A treatment that is a number: the outcome along it, and whether it changes in one direction. The
//! rows of the ports `dose` and `trend`.

use super::adjustment::AdjustmentPlan;
use super::args::{Args, DoseArgs};
use super::comparison::{FEWEST_UNITS, UsableRows, why_covariates_refused};
use super::data_faults::lost_in_rounding;
use super::frame::{AnalysisFrame, CovariateColumns, LabelCodes, covariate_columns, gather};
use crate::shared_columns::{
    self as columns, Answer, IntervalEstimate, NoNumber, found, reason_of, status_of,
};
use crate::words::{ends_in_words, infinite, left_out};
use galeras_base::prose::{
    by_interval, confidence_level, count, degrees_of_freedom, four_digits, name_list, p_equals,
    thousands,
};
use galeras_causal::{
    ColumnRef, Covariance, DoseCurve, Estimate, JointTest, Refusal, TrendTest, cochran_armitage,
    dense, dose_curve, jonckheere_terpstra, natural_knots,
};
use galeras_operator::far_numbers::{LEAST_RANGE, near_zero};
use galeras_operator::missing_values::MissingValues;
use galeras_operator::small_table::{
    TableColumn, TableRow, count_of, number, optional_count, rounded, text,
};

/// With more different doses than these, the effect is given at as many places between them.
const MOST_PLACES: usize = 20;

/// The effect of a dose against the reference, for an outcome.
pub(super) struct DoseRow {
    outcome: String,
    dose: f64,
    reference: f64,
    effect: Answer<IntervalEstimate>,
    n: usize,
    note: String,
}

impl TableRow for DoseRow {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        columns::outcome(|row| &row.outcome),
        number("dose", "the value of the treatment", |row| Some(row.dose)),
        number("reference", "the dose that it is compared with: `control`", |row| {
            Some(row.reference)
        }),
        number(
            "estimate",
            "the mean outcome at the dose minus that at the reference, on the spline",
            |row| Some(found(&row.effect)?.estimate.value),
        ),
        number("ci_low", "lower end of the pointwise interval", |row| {
            Some(found(&row.effect)?.interval.0)
        }),
        number("ci_high", "upper end of the pointwise interval", |row| {
            Some(found(&row.effect)?.interval.1)
        }),
        number("p_value", "two-sided p-value of no difference", |row| {
            Some(found(&row.effect)?.estimate.p_value())
        }),
        number("standard_error", "the standard error of the estimate", |row| {
            Some(found(&row.effect)?.estimate.standard_error)
        }),
        number("df", "degrees of freedom of Student's t", |row| {
            Some(found(&row.effect)?.estimate.degrees)
        }),
        count_of("n", "complete rows", "rows", |row| row.n),
        columns::status(|row| status_of(&row.effect)),
        columns::reason(|row| reason_of(&row.effect)),
        columns::note(|row| &row.note),
    ];
}

/// A test of a trend along the dose, for an outcome.
pub(super) struct TrendRow {
    outcome: String,
    test: &'static str,
    result: Answer<TrendResult>,
    n: usize,
    note: String,
}

/// The numbers of a test, and the test in words.
struct TrendResult {
    statistic: f64,
    /// Of an F: numerator and denominator.
    degrees: Option<(usize, f64)>,
    p_value: f64,
    note: String,
}

impl TableRow for TrendRow {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        columns::outcome(|row| &row.outcome),
        text(
            "test",
            "any_effect, nonlinear (F of the spline), cochran_armitage or jonckheere_terpstra (z)",
            |row| row.test,
        ),
        number(
            "statistic",
            "F, or z, which is positive if the outcome rises with the dose",
            |row| Some(found(&row.result)?.statistic),
        ),
        optional_count("df_numerator", "degrees of freedom of the numerator of F", None, |row| {
            Some(found(&row.result)?.degrees?.0)
        }),
        number("df", "degrees of freedom of the denominator of F", |row| {
            Some(found(&row.result)?.degrees?.1)
        }),
        number("p_value", "p-value of no effect; two-sided for z", |row| {
            Some(found(&row.result)?.p_value)
        }),
        count_of("n", "complete rows", "rows", |row| row.n),
        columns::status(|row| status_of(&row.result)),
        columns::reason(|row| reason_of(&row.result)),
        columns::note(|row| &row.note),
    ];
}

pub(super) fn dose_rows(
    args: &Args,
    frame: &AnalysisFrame,
    plans: &[AdjustmentPlan],
) -> (Vec<DoseRow>, Vec<TrendRow>) {
    let (mut curve, mut trend) = (Vec::new(), Vec::new());
    let Some(dose) = &args.dose else { return (curve, trend) };
    for (outcome, plan) in args.outcomes.iter().zip(plans) {
        let analysis = DoseAnalysis::new(args, frame, plan, outcome);
        curve.extend(analysis.curve_rows(dose));
        trend.extend(analysis.trend_rows());
    }
    (curve, trend)
}

/// The rows of one outcome along the dose.
struct DoseAnalysis<'a> {
    args: &'a Args,
    outcome: &'a str,
    reference: f64,
    doses: Vec<f64>,
    values: Vec<f64>,
    /// The values near zero, if they are far from it.
    moved: Option<Vec<f64>>,
    adjusted: CovariateColumns,
    clusters: Option<Vec<u32>>,
    refused: Option<String>,
    adjusting_refused: Option<String>,
    missing: usize,
}

impl<'a> DoseAnalysis<'a> {
    fn new(args: &'a Args, frame: &AnalysisFrame, plan: &AdjustmentPlan, outcome: &'a str) -> Self {
        let candidates: Vec<u32> = (0..frame.len() as u32).collect();
        let all = &frame.numbers[&args.treatment];
        let given: Vec<u32> =
            candidates.into_iter().filter(|row| !all[*row as usize].is_nan()).collect();
        let rows = UsableRows::of(args, frame, plan, outcome, &given, None);
        let groups = frame.clusters.as_ref().or(frame.units.as_ref());
        let codes =
            |codes: &LabelCodes| dense(rows.kept.iter().map(|row| codes.rows[*row as usize]));
        let covariates_refused = why_covariates_refused(args, frame, plan, &rows);
        let adjusting_refused = plan.backdoor_refused.clone().or(covariates_refused);
        let adjusted = match adjusting_refused {
            None => covariate_columns(args, frame, &plan.adjusted, &rows.kept).unwrap_or_default(),
            Some(_) => CovariateColumns::default(),
        };
        let values = gather(&frame.numbers[outcome], &rows.kept);
        let mut analysis = Self {
            args,
            outcome,
            reference: args.control.trim().parse().unwrap_or(f64::NAN),
            doses: gather(all, &rows.kept),
            moved: near_zero(&values),
            values,
            adjusted,
            clusters: groups.map(codes),
            refused: None,
            adjusting_refused,
            missing: rows.missing,
        };
        let lost = || {
            [&args.treatment, outcome].into_iter().find_map(|name| {
                lost_in_rounding(frame, name, rows.kept.iter().copied(), LEAST_RANGE)
            })
        };
        let refused = analysis.why_refused(rows.missing_always).or_else(lost);
        analysis.refused = refused.or_else(|| analysis.same_when_shown());
        analysis
    }

    fn why_refused(&self, missing: usize) -> Option<String> {
        let Args { treatment, missing: rule, .. } = self.args;
        let n = self.doses.len();
        if missing > 0 && *rule == MissingValues::Refuse {
            return Some(format!(
                "{} without a value of `{}`, `{treatment}` or a group (missing: drop leaves such \
                 rows out)",
                count(missing, "row is", "rows are"),
                self.outcome,
            ));
        }
        for (name, column) in [(treatment.as_str(), &self.doses), (self.outcome, &self.values)] {
            let infinite = infinite(name, column.iter().copied());
            if infinite.is_some() {
                return infinite;
            }
        }
        if n < FEWEST_UNITS {
            return Some(format!("too few rows: {n}, at least {FEWEST_UNITS} are needed"));
        }
        let (low, high) = ends(&self.doses);
        if !(low..=high).contains(&self.reference) {
            return Some(format!(
                "the reference {} lies outside of the doses there are, {} to {}",
                four_digits(self.reference),
                four_digits(low),
                four_digits(high)
            ));
        }
        None
    }

    /// Why several rows of the table would seem to have one dose.
    fn same_when_shown(&self) -> Option<String> {
        let places = self.places(self.args.dose.as_ref()?);
        let mut shown: Vec<f64> = places.iter().map(|place| rounded(*place)).collect();
        shown.sort_unstable_by(f64::total_cmp);
        shown.dedup();
        (shown.len() < places.len()).then(|| {
            format!(
                "the twelve digits of a table do not tell the doses of `{}` apart: subtract a \
                 constant from the column before",
                self.args.treatment
            )
        })
    }

    fn words(&self, refusal: &Refusal) -> String {
        refusal.describe(|column| match column {
            ColumnRef::Covariate(at) => self.adjusted.names.get(at).map(String::as_str),
            ColumnRef::Treatment => Some(&self.args.treatment),
            ColumnRef::Outcome => Some(self.outcome),
            _ => None,
        })
    }

    fn places(&self, dose: &DoseArgs) -> Vec<f64> {
        if !dose.at.is_empty() {
            return dose.at.clone();
        }
        let mut sorted: Vec<f64> =
            self.doses.iter().copied().filter(|dose| dose.is_finite()).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let mut distinct = sorted.clone();
        distinct.dedup();
        if distinct.len() <= MOST_PLACES {
            return distinct;
        }
        // Evenly from the 2.5 % to the 97.5 % quantile.
        let last = sorted.len() - 1;
        let at = |share: f64| sorted[(share * last as f64).round() as usize];
        let (low, high) = (at(0.025), at(0.975));
        let step = (high - low) / (MOST_PLACES - 1) as f64;
        let mut places: Vec<f64> = (0..MOST_PLACES).map(|at| low + step * at as f64).collect();
        places.dedup();
        places
    }

    fn curve(&self, knots: usize, places: &[f64]) -> Result<(DoseCurve, Covariance), String> {
        if let Some(reason) = self.refused.as_ref().or(self.adjusting_refused.as_ref()) {
            return Err(reason.clone());
        }
        let covariates: Vec<&[f64]> = self.adjusted.values.iter().map(Vec::as_slice).collect();
        let (kind, clusters) = (self.args.covariance(), self.clusters.as_deref());
        let (doses, values) = (&self.doses, self.moved.as_ref().unwrap_or(&self.values));
        let curve = natural_knots(doses, knots).and_then(|knots| {
            let reference = self.reference;
            dose_curve(doses, values, &covariates, &knots, reference, places, kind, clusters)
        });
        Ok((curve.map_err(|refusal| self.words(&refusal))?, kind))
    }

    fn phrase(&self) -> String {
        match self.adjusted.described.as_slice() {
            [] => String::new(),
            names => format!(", adjusted for {}", name_list(names)),
        }
    }

    fn left_out(&self) -> String {
        let (one, many) =
            ("row without a value that is needed is", "rows without a value that is needed are");
        left_out(self.missing, one, many)
    }

    fn curve_rows(&self, dose: &DoseArgs) -> Vec<DoseRow> {
        let places = self.places(dose);
        let row = |dose: f64, effect: Answer<Estimate>, note: String| DoseRow {
            outcome: self.outcome.into(),
            dose,
            reference: self.reference,
            effect: effect.map(|effect| IntervalEstimate::new(effect, self.args.alpha)),
            n: self.doses.len(),
            note,
        };
        let treatment = &self.args.treatment;
        let reference = four_digits(self.reference);
        let (curve, kind) = match self.curve(dose.knots, &places) {
            Ok(found) => found,
            Err(reason) => {
                let note =
                    format!("{} along {treatment}: refused, because {reason}.", self.outcome);
                return vec![row(self.reference, Err(NoNumber::Refused(reason)), note)];
            }
        };
        let rows = curve.points.into_iter().map(|point| {
            let here = four_digits(point.dose);
            let Some(effect) = point.effect else {
                let reason = "it is the reference, with which the others are compared";
                let note = format!("{treatment} {here} is the reference.");
                return row(point.dose, Err(NoNumber::not_applicable(reason)), note);
            };
            let ends = effect.interval(self.args.alpha);
            let note = format!(
                "Natural cubic spline of {treatment} with {} knots, {treatment} {here} against \
                 {reference} on {} in {} rows{}: {} ({kind} SE {}, {} % pointwise CI {}; p {}).{}",
                curve.knots.len(),
                self.outcome,
                thousands(self.doses.len()),
                self.phrase(),
                by_interval(effect.value, ends),
                four_digits(effect.standard_error),
                confidence_level(self.args.alpha),
                ends_in_words(ends),
                p_equals(effect.p_value()),
                self.left_out(),
            );
            row(point.dose, Ok(effect), note)
        });
        rows.collect()
    }

    fn trend_rows(&self) -> Vec<TrendRow> {
        let knots = self.args.dose.as_ref().map_or(0, |dose| dose.knots);
        let curve = self.curve(knots, &[]);
        let joint = |of: fn(&DoseCurve) -> Option<JointTest>, what: &str| -> Answer<TrendResult> {
            let (curve, kind) = curve.as_ref()?;
            let straight = "with two doses the spline is a straight line";
            let joint = of(curve).ok_or_else(|| NoNumber::not_applicable(straight))?;
            Ok(self.joint_test(joint, *kind, what))
        };
        let binary = self.values.iter().all(|y| *y == 0.0 || *y == 1.0);
        let proportion = binary.then_some(cochran_armitage as Trend);
        let ranks = self.rank_test("Jonckheere and Terpstra's", Some(jonckheere_terpstra));
        let tests: [(&'static str, Answer<TrendResult>); 4] = [
            ("any_effect", joint(|curve| Some(curve.any), "changes along")),
            ("nonlinear", joint(|curve| curve.nonlinear, "departs from a straight line along")),
            ("cochran_armitage", self.rank_test("Cochran and Armitage's", proportion)),
            ("jonckheere_terpstra", ranks),
        ];
        let row = |(test, result): (&'static str, Answer<TrendResult>)| TrendRow {
            outcome: self.outcome.into(),
            test,
            n: self.doses.len(),
            note: match &result {
                Ok(found) => found.note.clone(),
                Err(none) => {
                    let (treatment, reason) = (&self.args.treatment, none.reason());
                    format!("{test} of {} along {treatment}: {reason}.", self.outcome)
                }
            },
            result,
        };
        tests.into_iter().map(row).collect()
    }

    fn joint_test(&self, joint: JointTest, kind: Covariance, what: &str) -> TrendResult {
        let (numerator, denominator) = joint.degrees;
        let note = format!(
            "Whether {} {what} {}{}: F({numerator}, {}) = {}, p {} ({kind}).",
            self.outcome,
            self.args.treatment,
            self.phrase(),
            degrees_of_freedom(denominator),
            four_digits(joint.f),
            p_equals(joint.p_value),
        );
        let (statistic, p_value) = (joint.f, joint.p_value);
        TrendResult { statistic, degrees: Some(joint.degrees), p_value, note }
    }

    fn rank_test(&self, name: &str, of: Option<Trend>) -> Answer<TrendResult> {
        if let Some(reason) = &self.refused {
            return Err(reason.into());
        }
        let not_here = |reason: &str| Err(NoNumber::not_applicable(reason));
        if self.clusters.is_some() {
            return not_here("it takes rows as independent: it knows no units or clusters");
        }
        if !self.adjusted.names.is_empty() || self.adjusting_refused.is_some() {
            return not_here("it adjusts for nothing, and there is something to adjust for");
        }
        let Some(of) = of else { return not_here("it is for outcomes that are yes or no") };
        let found = of(&self.doses, &self.values).map_err(|refusal| self.words(&refusal))?;
        let note = format!(
            "{name} test of a trend of {} along {}: z = {}, p {}.",
            self.outcome,
            self.args.treatment,
            four_digits(found.z),
            p_equals(found.p_value)
        );
        Ok(TrendResult { statistic: found.z, degrees: None, p_value: found.p_value, note })
    }
}

type Trend = fn(&[f64], &[f64]) -> Result<TrendTest, Refusal>;

fn ends(values: &[f64]) -> (f64, f64) {
    let start = (f64::INFINITY, f64::NEG_INFINITY);
    values.iter().fold(start, |(low, high), value| (low.min(*value), high.max(*value)))
}
