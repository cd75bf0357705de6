//! A treatment that is a number: the outcome along it, and whether it changes in one direction. The
//! rows of the ports `dose` and `trend`.

use super::adjustment::AdjustmentPlan;
use super::args::{Args, DoseArgs};
use super::comparison::{FEWEST_UNITS, why_covariates_refused};
use super::data_faults::lost_in_rounding;
use super::frame::{AnalysisFrame, LabelCodes, gather};
use super::levels::{CovariateColumns, covariate_columns};
use super::shared_columns::{self as columns, RowStatus};
use super::usable_rows::UsableRows;
use crate::words::{infinite, left_out};
use galeras_base::prose::{
    confidence_level, count, degrees_of_freedom, four_digits, interval, name_list, p_equals,
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
    effect: Option<Estimate>,
    interval: Option<(f64, f64)>,
    n: usize,
    status: RowStatus,
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
            |row| Some(row.effect?.value),
        ),
        number("ci_low", "lower end of the pointwise interval", |row| Some(row.interval?.0)),
        number("ci_high", "upper end of the pointwise interval", |row| Some(row.interval?.1)),
        number("p_value", "two-sided p-value of no difference", |row| Some(row.effect?.p_value())),
        number("standard_error", "the standard error of the estimate", |row| {
            Some(row.effect?.standard_error)
        }),
        number("df", "degrees of freedom of Student's t", |row| Some(row.effect?.degrees)),
        count_of("n", "complete rows", "rows", |row| row.n),
        columns::status(|row| row.status.name()),
        columns::reason(|row| row.status.reason()),
        columns::note(|row| &row.note),
    ];
}

/// A test of a trend along the dose, for an outcome.
pub(super) struct TrendRow {
    outcome: String,
    test: &'static str,
    statistic: Option<f64>,
    /// Of an F: numerator and denominator.
    degrees: Option<(usize, f64)>,
    p_value: Option<f64>,
    n: usize,
    status: RowStatus,
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
            |row| row.statistic,
        ),
        optional_count("df_numerator", "degrees of freedom of the numerator of F", None, |row| {
            Some(row.degrees?.0)
        }),
        number("df", "degrees of freedom of the denominator of F", |row| Some(row.degrees?.1)),
        number("p_value", "p-value of no effect; two-sided for z", |row| row.p_value),
        count_of("n", "complete rows", "rows", |row| row.n),
        columns::status(|row| row.status.name()),
        columns::reason(|row| row.status.reason()),
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
            |codes: &LabelCodes| dense(rows.kept.iter().map(|row| codes.rows()[*row as usize]));
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
        let row = |dose: f64, effect: Option<Estimate>, status: RowStatus, note: String| DoseRow {
            outcome: self.outcome.into(),
            dose,
            reference: self.reference,
            effect,
            interval: effect.map(|effect| effect.interval(self.args.alpha)),
            n: self.doses.len(),
            status,
            note,
        };
        let treatment = &self.args.treatment;
        let reference = four_digits(self.reference);
        let (curve, kind) = match self.curve(dose.knots, &places) {
            Ok(found) => found,
            Err(reason) => {
                let note =
                    format!("{} along {treatment}: refused, because {reason}.", self.outcome);
                return vec![row(self.reference, None, RowStatus::Refused(reason), note)];
            }
        };
        let rows = curve.points.into_iter().map(|point| {
            let here = four_digits(point.dose);
            let Some(effect) = point.effect else {
                let reason = "it is the reference, with which the others are compared";
                let note = format!("{treatment} {here} is the reference.");
                return row(point.dose, None, RowStatus::NotApplicable(reason.into()), note);
            };
            let note = format!(
                "Natural cubic spline of {treatment} with {} knots, {treatment} {here} against \
                 {reference} on {} in {} rows{}: {} ({kind} SE {}, {} % pointwise CI {}; p {}).{}",
                curve.knots.len(),
                self.outcome,
                thousands(self.doses.len()),
                self.phrase(),
                four_digits(effect.value),
                four_digits(effect.standard_error),
                confidence_level(self.args.alpha),
                interval(effect.interval(self.args.alpha)),
                p_equals(effect.p_value()),
                self.left_out(),
            );
            row(point.dose, Some(effect), RowStatus::Ok, note)
        });
        rows.collect()
    }

    fn trend_rows(&self) -> Vec<TrendRow> {
        let knots = self.args.dose.as_ref().map_or(0, |dose| dose.knots);
        let mut rows = Vec::new();
        let curve = self.curve(knots, &[]);
        let joint = |of: fn(&DoseCurve) -> Option<JointTest>| match &curve {
            Ok((curve, kind)) => match of(curve) {
                Some(test) => Ok((test, *kind)),
                None => Err(RowStatus::NotApplicable(
                    "with two doses the spline is a straight line".into(),
                )),
            },
            Err(reason) => Err(RowStatus::Refused(reason.clone())),
        };
        let treatment = &self.args.treatment;
        for (test, found, what) in [
            ("any_effect", joint(|curve| Some(curve.any)), "changes along"),
            ("nonlinear", joint(|curve| curve.nonlinear), "departs from a straight line along"),
        ] {
            rows.push(match found {
                Err(status) => self.trend_row(test, None, None, status, None),
                Ok((joint, kind)) => {
                    let (numerator, denominator) = joint.degrees;
                    let note = format!(
                        "Whether {} {what} {treatment}{}: F({numerator}, {}) = {}, p {} ({kind}).",
                        self.outcome,
                        self.phrase(),
                        degrees_of_freedom(denominator),
                        four_digits(joint.f),
                        p_equals(joint.p_value),
                    );
                    let p = Some(joint.p_value);
                    let row = self.trend_row(test, Some(joint.f), p, RowStatus::Ok, Some(note));
                    TrendRow { degrees: Some(joint.degrees), ..row }
                }
            });
        }
        let binary = self.values.iter().all(|y| *y == 0.0 || *y == 1.0);
        let proportion = binary.then_some(cochran_armitage as Trend);
        rows.push(self.rank_row("cochran_armitage", proportion));
        rows.push(self.rank_row("jonckheere_terpstra", Some(jonckheere_terpstra)));
        rows
    }

    fn rank_row(&self, test: &'static str, of: Option<Trend>) -> TrendRow {
        let refused =
            |reason: String| self.trend_row(test, None, None, RowStatus::Refused(reason), None);
        if let Some(reason) = &self.refused {
            return refused(reason.clone());
        }
        let not_here = |reason: &str| {
            self.trend_row(test, None, None, RowStatus::NotApplicable(reason.into()), None)
        };
        if self.clusters.is_some() {
            return not_here("it takes rows as independent: it knows no units or clusters");
        }
        if !self.adjusted.names.is_empty() || self.adjusting_refused.is_some() {
            return not_here("it adjusts for nothing, and there is something to adjust for");
        }
        let Some(of) = of else { return not_here("it is for outcomes that are yes or no") };
        match of(&self.doses, &self.values) {
            Err(refusal) => refused(self.words(&refusal)),
            Ok(found) => {
                let name = match test {
                    "cochran_armitage" => "Cochran and Armitage's",
                    _ => "Jonckheere and Terpstra's",
                };
                let note = format!(
                    "{name} test of a trend of {} along {}: z = {}, p {}.",
                    self.outcome,
                    self.args.treatment,
                    four_digits(found.z),
                    p_equals(found.p_value)
                );
                let p = Some(found.p_value);
                self.trend_row(test, Some(found.z), p, RowStatus::Ok, Some(note))
            }
        }
    }

    fn trend_row(
        &self,
        test: &'static str,
        statistic: Option<f64>,
        p_value: Option<f64>,
        status: RowStatus,
        note: Option<String>,
    ) -> TrendRow {
        let note = note.unwrap_or_else(|| {
            let reason = status.reason().unwrap_or_default();
            format!("{test} of {} along {}: {reason}.", self.outcome, self.args.treatment)
        });
        TrendRow {
            outcome: self.outcome.into(),
            test,
            statistic,
            degrees: None,
            p_value,
            n: self.doses.len(),
            status,
            note,
        }
    }
}

type Trend = fn(&[f64], &[f64]) -> Result<TrendTest, Refusal>;

fn ends(values: &[f64]) -> (f64, f64) {
    let start = (f64::INFINITY, f64::NEG_INFINITY);
    values.iter().fold(start, |(low, high), value| (low.min(*value), high.max(*value)))
}
