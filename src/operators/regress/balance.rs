//! Balance of covariates and overlap of propensity scores: the rows of these ports.

use super::super::support::cells::Cell;
use super::super::support::missing::Missing;
use super::super::support::words::{count, interval, short};
use super::args::Args;
use super::comparison::{RowSet, gather};
use super::estimate::Score;
use super::frame::Frame;
use galeras_causal::{Estimand, Refusal, balance, overlap};

/// Above this, arms are called different in a covariate (Stuart 2010).
const BALANCED: f64 = 0.1;

/// The weights of the estimand.
fn weights(args: &Args, score: &[f64], treated: &[bool]) -> Vec<f64> {
    let estimand = Estimand::from(args.estimand);
    let weight = |(score, treated): (&f64, &bool)| {
        estimand.weight(score.clamp(args.clip[0], args.clip[1]), *treated)
    };
    score.iter().zip(treated).map(weight).collect()
}

/// `status` and `reason` of a row.
fn status<T>(result: &Result<T, Refusal>) -> [Cell; 2] {
    match result {
        Ok(_) => ["ok".into(), Cell::Null],
        Err(reason) => ["refused".into(), reason.to_string().into()],
    }
}

/// The rows of the port `balance`: every confounder and modifier.
pub(super) fn balance_rows(
    args: &Args,
    frame: &Frame,
    set: &RowSet,
    score: Option<&Score>,
) -> Vec<Vec<Cell>> {
    let weights = match score {
        Some(Ok(score)) => Some(weights(args, &score.scores, &set.treated)),
        _ => None,
    };
    let mut names: Vec<&String> = set.names.iter().collect();
    names.extend(args.modifiers.iter().filter(|name| !set.names.contains(name)));
    names
        .into_iter()
        .map(|name| {
            let mut column = gather(&frame.numbers[name], &set.rows);
            let mut treated = set.treated.clone();
            let mut weights = weights.clone();
            if args.missing == Missing::Drop && column.iter().any(|value| value.is_nan()) {
                let kept: Vec<u32> = (0..column.len() as u32)
                    .filter(|row| !column[*row as usize].is_nan())
                    .collect();
                (column, treated) = (gather(&column, &kept), gather(&treated, &kept));
                weights = weights.map(|weights| gather(&weights, &kept));
            }
            let n_treated = treated.iter().filter(|treated| **treated).count();
            let found = balance(&column, &treated, weights.as_deref());
            let [status, reason] = status(&found);
            let note = match &found {
                Ok(found) => balance_note(name, found.smd_before, found.smd_after),
                Err(reason) => format!("The balance of `{name}` is not known: {reason}."),
            };
            let found = found.ok();
            let found = found.as_ref();
            let mut row = outcomes_and_contrast(set);
            row.extend([name.as_str().into(), status, reason]);
            row.extend([
                found.map(|f| f.mean_treated).into(),
                found.map(|f| f.mean_control).into(),
                found.and_then(|f| f.smd_before).into(),
                found.and_then(|f| f.smd_after).into(),
                found.and_then(|f| f.variance_ratio).into(),
                found.and_then(|f| f.variance_ratio_after).into(),
                found.map(|f| f.ks).into(),
                found.and_then(|f| f.ks_after).into(),
                n_treated.into(),
                (treated.len() - n_treated).into(),
                note.into(),
            ]);
            row
        })
        .collect()
}

fn balance_note(name: &str, before: Option<f64>, after: Option<f64>) -> String {
    let word = |smd: f64| if smd.abs() > BALANCED { "not balanced" } else { "balanced" };
    match (before, after) {
        (None, _) => format!("`{name}` has one value in each arm, and not the same one."),
        (Some(0.0), _) => format!("`{name}` is balanced: its mean is the same in both arms."),
        (Some(smd), None) => {
            format!("`{name}` is {} (SMD {}).", word(smd), short(smd))
        }
        (Some(smd), Some(weighted)) => format!(
            "`{name}` is {} (SMD {}); weighted, it is {} (SMD {}).",
            word(smd),
            short(smd),
            word(weighted),
            short(weighted)
        ),
    }
}

pub(super) fn contrast(set: &RowSet) -> Vec<Cell> {
    vec![set.contrast.treatment.as_str().into(), set.contrast.control.as_str().into()]
}

/// The outcomes that a set of rows is about, and the contrast.
fn outcomes_and_contrast(set: &RowSet) -> Vec<Cell> {
    let outcomes: Vec<&str> =
        set.comparisons.iter().map(|comparison| comparison.outcome.as_str()).collect();
    let mut cells = vec![outcomes.join(", ").into()];
    cells.extend(contrast(set));
    cells
}

/// The row of the port `overlap`; none without covariates.
pub(super) fn overlap_row(args: &Args, set: &RowSet, score: Option<&Score>) -> Option<Vec<Cell>> {
    let clip = (args.clip[0], args.clip[1]);
    let refused = |reason: &str| Refusal::Other(reason.to_string());
    let found = match (score, set.adjusting_refused()) {
        (_, Some(reason)) => Err(refused(reason)),
        (Some(Ok(score)), _) => {
            let weights = weights(args, &score.scores, &set.treated);
            overlap(&score.scores, &set.treated, Some(&weights), clip)
        }
        (Some(Err(reason)), _) => Err(reason.clone()),
        (None, _) => return None,
    };
    let constant = score.and_then(|score| score.as_ref().ok()?.constant());
    let [status, reason] = status(&found);
    let mut row = outcomes_and_contrast(set);
    row.extend([status, reason]);
    let note = match (&found, constant) {
        (Err(reason), _) => format!("There are no propensity scores: {reason}."),
        (Ok(_), Some(score)) => format!(
            "Every propensity score is {score:.4}: the confounders are distributed alike in both \
             arms, there is nothing to adjust for."
        ),
        (Ok(found), None) => {
            let n = set.rows.len();
            let percent = 100.0 * found.outside as f64 / n.max(1) as f64;
            format!(
                "Propensity scores are {} under the treatment and {} under control; {} outside of \
                 what both have ({} %); AUC {}.",
                interval((found.min_treated, found.max_treated)),
                interval((found.min_control, found.max_control)),
                count(found.outside, "row is", "rows are"),
                short(percent),
                short(found.auc),
            )
        }
    };
    let found = found.ok();
    let found = found.as_ref();
    // Scores that differ in their last digit only are one.
    let distinct = found.map(|f| if constant.is_some() { 1 } else { f.distinct });
    let outside = found.map(|f| if constant.is_some() { 0 } else { f.outside });
    row.extend([distinct.into()]);
    row.extend([
        found.map(|f| f.min_treated).into(),
        found.map(|f| f.max_treated).into(),
        found.map(|f| f.min_control).into(),
        found.map(|f| f.max_control).into(),
    ]);
    row.extend((0..5).map(|at| found.map(|f| f.quantiles[at]).into()));
    row.extend([
        outside.into(),
        found.map(|f| f.below_clip + f.above_clip).into(),
        found.map(|f| f.auc).into(),
        found.map(|f| f.effective_treated).into(),
        found.map(|f| f.effective_control).into(),
        note.into(),
    ]);
    Some(row)
}
