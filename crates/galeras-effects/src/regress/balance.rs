//! Balance of covariates: the rows of the port `balance`.

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::analysis::SetContext;
use super::args::Args;
use super::comparison::Contrast;
use super::data_faults::lost_in_rounding;
use super::frame::{covariate_columns, gather};
use crate::shared_columns::{self as columns, Answer, NoNumber, found, reason_of, status_of};
use galeras_base::prose::four_digits;
use galeras_causal::{Balance, Estimand, balance};
use galeras_operator::missing_values::MissingValues;
use galeras_operator::small_table::{TableColumn, TableRow, count_of, number, text};

/// Above this, arms are called different in a covariate (Stuart 2010).
const BALANCED: f64 = 0.1;

/// A covariate in both arms of a contrast. (There are several rows of a contrast and covariate
/// where outcomes are compared in other rows, or adjusted for other covariates.)
pub(super) struct BalanceRow {
    outcomes: String,
    contrast: Contrast,
    covariate: String,
    balance: Answer<Balance>,
    n_treated: usize,
    n_control: usize,
    note: String,
}

impl TableRow for BalanceRow {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        columns::outcomes(|row| &row.outcomes),
        columns::treatment(|row| &row.contrast.treatment),
        columns::control(|row| &row.contrast.control),
        text("covariate", "the confounder or modifier", |row| &row.covariate),
        columns::status(|row| status_of(&row.balance)),
        columns::reason(|row| reason_of(&row.balance)),
        number("mean_treatment", "mean under the treatment", |row| {
            Some(found(&row.balance)?.mean_treated)
        }),
        number("mean_control", "mean under control", |row| Some(found(&row.balance)?.mean_control)),
        number("smd", "standardised mean difference", |row| found(&row.balance)?.smd_before),
        number("smd_weighted", "the same after the weights of the estimand", |row| {
            found(&row.balance)?.smd_after
        }),
        number("variance_ratio", "variance under the treatment by that under control", |row| {
            found(&row.balance)?.variance_ratio
        }),
        number("variance_ratio_weighted", "the same after weights", |row| {
            found(&row.balance)?.variance_ratio_after
        }),
        number("ks", "Kolmogorov-Smirnov distance of the two distributions", |row| {
            Some(found(&row.balance)?.ks)
        }),
        number("ks_weighted", "the same after weights", |row| found(&row.balance)?.ks_after),
        count_of("n_treatment", "rows under the treatment", "rows", |row| row.n_treated),
        count_of("n_control", "rows under control", "rows", |row| row.n_control),
        columns::note(|row| &row.note),
    ];
}

/// The weights of the estimand.
pub(super) fn weights(args: &Args, score: &[f64], treated: &[bool]) -> Vec<f64> {
    let (estimand, (low, high)) = (Estimand::from(args.estimand), args.clip_range());
    let weight =
        |(score, treated): (&f64, &bool)| estimand.weight(score.clamp(low, high), *treated);
    score.iter().zip(treated).map(weight).collect()
}

/// The rows of the port `balance`: every confounder and modifier.
pub(super) fn balance_rows(cx: &SetContext<'_>) -> Vec<BalanceRow> {
    let SetContext { args, frame, set, score, .. } = *cx;
    let weights = match score {
        Some(Ok(score)) => Some(weights(args, &score.scores, &set.treated)),
        _ => None,
    };
    let mut names: Vec<String> = set.plan.adjusted.clone();
    names.extend(args.modifiers.iter().filter(|name| !set.plan.adjusted.contains(name)).cloned());
    // A column of text that cannot be expanded has no balance to speak of.
    let columns = names.iter().filter_map(|name| {
        covariate_columns(args, frame, std::slice::from_ref(name), &set.rows).ok()
    });
    let columns: Vec<(String, Vec<f64>)> =
        columns.flat_map(|columns| columns.names.into_iter().zip(columns.values)).collect();
    columns
        .into_par_iter()
        .map(|(name, mut column)| {
            let name = &name;
            let mut treated = set.treated.clone();
            let mut weights = weights.clone();
            if args.missing == MissingValues::Drop && column.iter().any(|value| value.is_nan()) {
                let kept: Vec<u32> = (0..column.len() as u32)
                    .filter(|row| !column[*row as usize].is_nan())
                    .collect();
                (column, treated) = (gather(&column, &kept), gather(&treated, &kept));
                weights = weights.map(|weights| gather(&weights, &kept));
            }
            let n_treated = treated.iter().filter(|treated| **treated).count();
            let lost = match frame.integers.contains(name) {
                true => lost_in_rounding(frame, name, set.rows.iter().copied(), 0.0),
                false => None,
            };
            let balance: Answer<Balance> = match lost {
                Some(reason) => Err(reason.into()),
                None => balance(&column, &treated, weights.as_deref()).map_err(NoNumber::from),
            };
            let note = match &balance {
                Ok(balance) => balance_note(name, balance.smd_before, balance.smd_after),
                Err(none) => format!("The balance of `{name}` is not known: {}.", none.reason()),
            };
            BalanceRow {
                outcomes: set.outcomes(),
                contrast: set.contrast.clone(),
                covariate: name.clone(),
                balance,
                n_treated,
                n_control: treated.len() - n_treated,
                note,
            }
        })
        .collect()
}

fn balance_note(name: &str, before: Option<f64>, after: Option<f64>) -> String {
    let word = |smd: f64| if smd.abs() > BALANCED { "not balanced" } else { "balanced" };
    match (before, after) {
        (None, _) => format!("`{name}` has one value in each arm, and not the same one."),
        (Some(0.0), _) => format!("`{name}` is balanced: its mean is the same in both arms."),
        (Some(smd), None) => {
            format!("`{name}` is {} (SMD {}).", word(smd), four_digits(smd))
        }
        (Some(smd), Some(weighted)) => format!(
            "`{name}` is {} (SMD {}); weighted, it is {} (SMD {}).",
            word(smd),
            four_digits(smd),
            word(weighted),
            four_digits(weighted)
        ),
    }
}
