//! Overlap of the propensity scores of both arms: the row of the port `overlap`.

use super::super::prose::{count, four_digits, interval};
use super::super::small_table::{TableColumn, TableRow};
use super::args::Args;
use super::balance::weights;
use super::comparison::{Contrast, RowSet};
use super::estimate::FittedPropensity;
use super::shared_columns::{self as columns, RowStatus};
use galeras_causal::{Overlap, Refusal, overlap};

/// The propensity scores of a contrast.
pub(super) struct OverlapRow {
    outcomes: String,
    contrast: Contrast,
    overlap: Option<Overlap>,
    status: RowStatus,
    note: String,
}

impl OverlapRow {
    fn number(&self, value: fn(&Overlap) -> f64) -> Option<f64> {
        self.overlap.as_ref().map(value)
    }

    fn count(&self, value: fn(&Overlap) -> usize) -> Option<usize> {
        self.overlap.as_ref().map(value)
    }
}

impl TableRow for OverlapRow {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        columns::outcomes(|row| &row.outcomes),
        columns::treatment(|row| &row.contrast.treatment),
        columns::control(|row| &row.contrast.control),
        columns::status(|row| row.status.name()),
        columns::reason(|row| row.status.reason()),
        TableColumn::optional_count(
            "distinct_scores",
            "different propensity scores; 1 if they tell nobody apart",
            None,
            |row| row.count(|overlap| overlap.distinct),
        ),
        TableColumn::number("min_treatment", "smallest score under the treatment", |row| {
            row.number(|overlap| overlap.min_treated)
        }),
        TableColumn::number("max_treatment", "largest score under the treatment", |row| {
            row.number(|overlap| overlap.max_treated)
        }),
        TableColumn::number("min_control", "smallest score under control", |row| {
            row.number(|overlap| overlap.min_control)
        }),
        TableColumn::number("max_control", "largest score under control", |row| {
            row.number(|overlap| overlap.max_control)
        }),
        TableColumn::number("q01", "1 % quantile of all scores", |row| {
            row.number(|overlap| overlap.quantiles[0])
        }),
        TableColumn::number("q25", "first quartile of all scores", |row| {
            row.number(|overlap| overlap.quantiles[1])
        }),
        TableColumn::number("median", "median of all scores", |row| {
            row.number(|overlap| overlap.quantiles[2])
        }),
        TableColumn::number("q75", "third quartile of all scores", |row| {
            row.number(|overlap| overlap.quantiles[3])
        }),
        TableColumn::number("q99", "99 % quantile of all scores", |row| {
            row.number(|overlap| overlap.quantiles[4])
        }),
        TableColumn::optional_count(
            "outside",
            "rows outside of the scores that both arms have",
            None,
            |row| row.count(|overlap| overlap.outside),
        ),
        TableColumn::optional_count(
            "clipped",
            "rows whose score is outside of `clip`",
            None,
            |row| row.count(|overlap| overlap.below_clip + overlap.above_clip),
        ),
        TableColumn::number(
            "auc",
            "how well scores tell the arms apart: 0.5 not at all, 1 without error",
            |row| row.number(|overlap| overlap.auc),
        ),
        TableColumn::number(
            "effective_treatment",
            "effective sample size under the treatment, weighted",
            |row| row.number(|overlap| overlap.effective_treated),
        ),
        TableColumn::number(
            "effective_control",
            "effective sample size under control, weighted",
            |row| row.number(|overlap| overlap.effective_control),
        ),
        columns::note(|row| &row.note),
    ];
}

/// The row of the port `overlap`; none without covariates.
pub(super) fn overlap_row(
    args: &Args,
    set: &RowSet,
    score: Option<&FittedPropensity>,
) -> Option<OverlapRow> {
    let clip = (args.clip[0], args.clip[1]);
    let refused = |reason: &str| Refusal::Other(reason.to_string());
    let result = match (score, set.adjusting_refused()) {
        (_, Some(reason)) => Err(refused(reason)),
        (Some(Ok(score)), _) => {
            let weights = weights(args, &score.scores, &set.treated);
            overlap(&score.scores, &set.treated, Some(&weights), clip)
        }
        (Some(Err(reason)), _) => Err(reason.clone()),
        (None, _) => return None,
    };
    let constant = score.and_then(|score| score.as_ref().ok()?.constant());
    let note = match (&result, constant) {
        (Err(reason), _) => format!("There are no propensity scores: {reason}."),
        (Ok(_), Some(score)) => format!(
            "Every propensity score is {score:.4}: the confounders are distributed alike in both \
             arms, there is nothing to adjust for."
        ),
        (Ok(overlap), None) => {
            let n = set.rows.len();
            let percent = 100.0 * overlap.outside as f64 / n.max(1) as f64;
            format!(
                "Propensity scores are {} under the treatment and {} under control; {} outside of \
                 what both have ({} %); AUC {}.",
                interval((overlap.min_treated, overlap.max_treated)),
                interval((overlap.min_control, overlap.max_control)),
                count(overlap.outside, "row is", "rows are"),
                four_digits(percent),
                four_digits(overlap.auc),
            )
        }
    };
    let status = RowStatus::of(&result);
    let mut overlap = result.ok();
    if let (Some(overlap), Some(_)) = (&mut overlap, constant) {
        // Scores that differ in their last digit only are one.
        overlap.distinct = 1;
        overlap.outside = 0;
    }
    let (outcomes, contrast) = (set.outcomes(), set.contrast.clone());
    Some(OverlapRow { outcomes, contrast, overlap, status, note })
}
