//! What the refuters say of the estimates: the rows of the port `refutations`, and in sentences.

use super::args::Args;
use super::comparison::Contrast;
use super::estimate_table::{EstimateEntry, EstimatorAnswer};
use super::estimators::Estimator;
use super::refutations::Refutation;
use super::shared_columns::{self as columns, RowStatus};
use galeras_base::prose::{four_digits, p_equals};
use galeras_causal::{Refuter, refutation_p};
use galeras_operator::small_table::{TableColumn, TableRow};

/// What a refuter says of an estimate.
pub(super) struct RefutationRow {
    outcome: String,
    contrast: Contrast,
    estimator: Estimator,
    refuter: Refuter,
    estimate: Option<f64>,
    on_changed_data: Option<ChangedEstimates>,
    simulations: usize,
    failed: usize,
    status: RowStatus,
    note: String,
}

/// The estimates on changed data, summed up.
struct ChangedEstimates {
    mean: f64,
    deviation: Option<f64>,
    p_value: f64,
    /// How many placebos are as far from 0 as the estimate, or farther.
    as_large: Option<usize>,
}

impl TableRow for RefutationRow {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        columns::outcome(|row| &row.outcome),
        columns::treatment(|row| &row.contrast.treatment),
        columns::control(|row| &row.contrast.control),
        TableColumn::text("estimator", "the estimator that was fitted again", |row| {
            row.estimator.name()
        }),
        TableColumn::text("refuter", "how the data were changed", |row| row.refuter.name()),
        TableColumn::number(
            "estimate",
            "the estimate on the data as they are; of a ratio its logarithm, as in `new_effect`",
            |row| row.estimate,
        ),
        TableColumn::number("new_effect", "the mean of the estimates on changed data", |row| {
            row.on_changed_data.as_ref().map(|changed| changed.mean)
        }),
        TableColumn::number("std", "their standard deviation (divisor n - 1)", |row| {
            row.on_changed_data.as_ref().and_then(|changed| changed.deviation)
        }),
        TableColumn::number(
            "p_value",
            "that their mean is the expected value: 0 for a placebo, else the estimate",
            |row| row.on_changed_data.as_ref().map(|changed| changed.p_value),
        ),
        TableColumn::optional_count(
            "as_large",
            "placebos at least as far from 0 as the estimate, both in units of their standard errors \
             (HC0 or classic; by their values, where a test gives the interval): a permutation test",
            None,
            |row| row.on_changed_data.as_ref().and_then(|changed| changed.as_large),
        ),
        TableColumn::count(
            "simulations",
            "changed data sets on which the estimator gave a number",
            "data sets",
            |row| row.simulations,
        ),
        TableColumn::count(
            "failed",
            "changed data sets on which it was refused",
            "data sets",
            |row| row.failed,
        ),
        columns::status(|row| row.status.name()),
        columns::reason(|row| row.status.reason()),
        columns::note(|row| &row.note),
    ];
}

/// The rows of an estimate, one for each refuter.
pub(super) fn refutation_rows(args: &Args, entry: &EstimateEntry) -> Vec<RefutationRow> {
    let refuters = args.refuters.iter().enumerate();
    refuters
        .map(|(at, refuter)| {
            RefutationRow::new(entry, Refuter::from(*refuter), entry.refutations.get(at))
        })
        .collect()
}

impl RefutationRow {
    fn new(entry: &EstimateEntry, refuter: Refuter, refutation: Option<&Refutation>) -> Self {
        let (simulations, failed) = match refutation {
            Some(Refutation::Ran { estimates, failed, .. }) => (estimates.len(), *failed),
            _ => (0, 0),
        };
        let estimate = entry.estimate().map(|estimate| estimate.value);
        let mut row = Self {
            outcome: entry.outcome.clone(),
            contrast: entry.contrast.clone(),
            estimator: entry.estimator,
            refuter,
            estimate,
            on_changed_data: None,
            simulations,
            failed,
            status: RowStatus::Ok,
            note: String::new(),
        };
        row.status = match (&entry.answer, refutation) {
            (EstimatorAnswer::Refused(reason) | EstimatorAnswer::NotApplicable(reason), _) => {
                RowStatus::NotApplicable(format!("there is no estimate to refute: {reason}"))
            }
            (_, None) => RowStatus::NotApplicable("it was not run".into()),
            (_, Some(Refutation::NotApplicable(reason))) => {
                RowStatus::NotApplicable(reason.clone())
            }
            (_, Some(Refutation::Ran { estimates, .. })) if estimates.is_empty() => {
                let reason = format!("the estimator was refused on all {failed} data sets");
                RowStatus::Refused(reason)
            }
            (
                EstimatorAnswer::Estimated(effect),
                Some(Refutation::Ran { estimates, as_large, .. }),
            ) => {
                let estimate = effect.estimate.value;
                let changed = ChangedEstimates::of(estimates, estimate, *as_large, refuter);
                row.note = refutation_note(refuter, simulations, estimate, &changed);
                row.on_changed_data = Some(changed);
                RowStatus::Ok
            }
        };
        if let Some(reason) = row.status.reason() {
            row.note = format!("Refuter {}: {reason}.", refuter.name());
        }
        row
    }
}

impl ChangedEstimates {
    /// Sums up `estimates`, of which there is at least one.
    fn of(estimates: &[f64], estimate: f64, as_large: Option<usize>, refuter: Refuter) -> Self {
        let placebo = refuter == Refuter::Placebo;
        let n = estimates.len() as f64;
        // Centred, so that equal numbers have exactly their mean, and no deviation.
        let first = estimates[0];
        let mean = first + estimates.iter().map(|x| x - first).sum::<f64>() / n;
        let variance =
            estimates.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
        Self {
            mean,
            deviation: (estimates.len() > 1).then(|| variance.sqrt()),
            p_value: refutation_p(estimates, if placebo { 0.0 } else { estimate }),
            as_large,
        }
    }
}

fn refutation_note(
    refuter: Refuter,
    simulations: usize,
    estimate: f64,
    changed: &ChangedEstimates,
) -> String {
    use Refuter::{Bootstrap, Placebo, RandomCommonCause, Subset};
    let (how, expected) = match refuter {
        Placebo => ("With the treatment permuted", "it should be near 0"),
        RandomCommonCause => ("With a random common cause added", "it should not change"),
        Subset => ("On random subsets", "it should not change"),
        Bootstrap => ("On bootstrap samples", "it should not change"),
    };
    let p = p_equals(changed.p_value);
    let mut text = format!(
        "{how} ({simulations} times), the effect of {} becomes {} ({expected}; p {p}).",
        four_digits(estimate),
        four_digits(changed.mean)
    );
    if let Some(as_large) = changed.as_large {
        let verb = if as_large == 1 { "is" } else { "are" };
        let share = format!(
            " {as_large} of them {verb} at least as far from 0 as it, in units of their errors."
        );
        text.push_str(&share);
    }
    text
}
