//! Overlap of the propensity scores of both arms: the rows of the ports `overlap` and `propensity`,
//! and the rows that `overlap: trim` keeps.

use super::analysis::SetContext;
use super::args::{Args, OverlapRule};
use super::balance::weights;
use super::comparison::{Contrast, RowSet, TrimmedRows};
use super::estimators::{EstimandName, FittedPropensity};
use super::frame::AnalysisFrame;
use crate::shared_columns::{self as columns, Answer, found, reason_of, status_of};
use galeras_base::prose::{count, four_digits, interval, significant, thousands};
use galeras_causal::{CRUMP, Overlap, Propensity, Refusal, in_overlap, overlap};
use galeras_operator::small_table::{
    TableColumn, TableRow, count_of, number, optional_count, text,
};

/// An arm whose weights leave a smaller share of its rows than this overlaps too little.
const FEWEST_EFFECTIVE: f64 = 0.1;

/// The propensity scores of a contrast.
pub(super) struct OverlapRow {
    outcomes: String,
    contrast: Contrast,
    overlap: Answer<Overlap>,
    outside_crump: Option<usize>,
    note: String,
}

impl TableRow for OverlapRow {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        columns::outcomes(|row| &row.outcomes),
        columns::treatment(|row| &row.contrast.treatment),
        columns::control(|row| &row.contrast.control),
        columns::status(|row| status_of(&row.overlap)),
        columns::reason(|row| reason_of(&row.overlap)),
        optional_count(
            "distinct_scores",
            "different propensity scores; 1 if they tell nobody apart",
            None,
            |row| Some(found(&row.overlap)?.distinct),
        ),
        number("min_treatment", "smallest score under the treatment", |row| {
            Some(found(&row.overlap)?.min_treated)
        }),
        number("max_treatment", "largest score under the treatment", |row| {
            Some(found(&row.overlap)?.max_treated)
        }),
        number("min_control", "smallest score under control", |row| {
            Some(found(&row.overlap)?.min_control)
        }),
        number("max_control", "largest score under control", |row| {
            Some(found(&row.overlap)?.max_control)
        }),
        number("q01", "1 % quantile of all scores", |row| Some(found(&row.overlap)?.quantiles[0])),
        number("q25", "first quartile of all scores", |row| {
            Some(found(&row.overlap)?.quantiles[1])
        }),
        number("median", "median of all scores", |row| Some(found(&row.overlap)?.quantiles[2])),
        number("q75", "third quartile of all scores", |row| {
            Some(found(&row.overlap)?.quantiles[3])
        }),
        number("q99", "99 % quantile of all scores", |row| Some(found(&row.overlap)?.quantiles[4])),
        optional_count("outside", "rows outside of the scores that both arms have", None, |row| {
            Some(found(&row.overlap)?.outside)
        }),
        optional_count(
            "clipped",
            "rows whose score is outside of `clip`, at the ends where the estimand's weights have no \
             bound",
            None,
            |row| found(&row.overlap).map(|overlap| overlap.below_clip + overlap.above_clip),
        ),
        optional_count(
            "outside_crump",
            "rows whose score is below 0.1 or above 0.9, which `overlap: trim` leaves out",
            None,
            |row| row.outside_crump,
        ),
        number(
            "auc",
            "how well scores tell the arms apart: 0.5 not at all, 1 without error",
            |row| Some(found(&row.overlap)?.auc),
        ),
        number(
            "effective_treatment",
            "effective sample size under the treatment, weighted",
            |row| Some(found(&row.overlap)?.effective_treated),
        ),
        number("effective_control", "effective sample size under control, weighted", |row| {
            Some(found(&row.overlap)?.effective_control)
        }),
        columns::note(|row| &row.note),
    ];
}

/// Why the arms overlap too little for an estimator that clips scores to this range: the scores of
/// some rows are certain, more of them are clipped than `max_clipped` allows, or the weights leave an
/// arm less than a tenth of its rows. (Crump and others 2009, Biometrika 96:187, on the range; Kish's
/// effective size.)
pub(super) fn lack_of_overlap(cx: &SetContext<'_>, clip: (f64, f64)) -> Option<Refusal> {
    match cx.score? {
        Err(refusal @ (Refusal::NoOverlap(_) | Refusal::Separated)) => Some(refusal.clone()),
        Ok(score) if score.constant().is_none() => {
            // Estimators report the faults of scores themselves.
            let overlap = weighted_overlap(cx.args, cx.set, score).ok()?;
            let clipped = score.scores.len() - in_overlap(&score.scores, clip).len();
            shortage(cx.args, cx.set, &overlap, clipped, clip).map(Refusal::NoOverlap)
        }
        _ => None,
    }
}

fn weighted_overlap(args: &Args, set: &RowSet, score: &Propensity) -> Result<Overlap, Refusal> {
    let weights = weights(args, &score.scores, &set.treated);
    overlap(&score.scores, &set.treated, Some(&weights), args.clip_range())
}

/// The lack of overlap in words, if there is any.
fn shortage(
    args: &Args,
    set: &RowSet,
    overlap: &Overlap,
    clipped: usize,
    clip: (f64, f64),
) -> Option<String> {
    let help = match args.estimand {
        EstimandName::Ato => {
            "overlap: trim leaves out the rows without their like in the other arm"
        }
        _ => {
            "overlap: trim estimates the effect on the rows in which both arms are found, \
             `weighting` with estimand: ato that on rows by how much both arms are"
        }
    };
    let n = set.rows.len();
    let share = clipped as f64 / n.max(1) as f64;
    // One row of few is more than 1 %, and does no harm (docs/coverage.md).
    if clipped > 1 && share > args.max_clipped {
        let range = match clip {
            (low, 1.0) => format!("below {low}"),
            (0.0, high) => format!("above {high}"),
            (low, high) => format!("outside of {low} to {high}"),
        };
        return Some(format!(
            "{} of {} have a propensity score {range}, {} % and more than the {} % that \
             `max_clipped` allows ({help})",
            thousands(clipped),
            count(n, "row", "rows"),
            significant(100.0 * share, 2),
            significant(100.0 * args.max_clipped, 2),
        ));
    }
    let treated = set.n_treated();
    for (effective, rows, arm) in [
        (overlap.effective_treated, treated, &set.contrast.treatment),
        (overlap.effective_control, n - treated, &set.contrast.control),
    ] {
        // An arm that stands in for the other one, and is larger, need not be used as a whole.
        let needed = match args.estimand {
            EstimandName::Att | EstimandName::Atc => rows.min(n - rows),
            EstimandName::Ate | EstimandName::Ato => rows,
        };
        if effective < FEWEST_EFFECTIVE * needed as f64 {
            return Some(format!(
                "the weights leave {} of `{arm}` an effective sample size of {}, less than a tenth \
                 of {} ({help})",
                count(rows, "row", "rows"),
                four_digits(effective),
                thousands(needed),
            ));
        }
    }
    None
}

/// The row of the port `overlap`; none without covariates.
pub(super) fn overlap_row(cx: &SetContext<'_>) -> Option<OverlapRow> {
    let SetContext { args, set, score, .. } = *cx;
    let named = |refusal: &Refusal| columns::named(refusal, &set.names).into();
    let result: Answer<Overlap> = match (score, set.adjusting_refused()) {
        (_, Some(reason)) => Err(reason.into()),
        (Some(Ok(score)), _) => weighted_overlap(args, set, score).map_err(|e| named(&e)),
        (Some(Err(reason)), _) => Err(named(reason)),
        (None, _) => return None,
    };
    let constant = score.and_then(|score| score.as_ref().ok()?.constant());
    let note = match (&result, constant) {
        (Err(none), _) => format!("There are no propensity scores: {}.", none.reason()),
        (Ok(_), Some(score)) => format!(
            "Every propensity score is {score:.4}: the confounders are distributed alike in both \
             arms, there is nothing to adjust for."
        ),
        (Ok(overlap), None) => {
            let n = set.rows.len();
            let percent = 100.0 * overlap.outside as f64 / n.max(1) as f64;
            let clipped = overlap.below_clip + overlap.above_clip;
            let short = match shortage(args, set, overlap, clipped, args.clip_range()) {
                Some(how) => format!(" That is too little overlap: {how}."),
                None => String::new(),
            };
            let fitted = match &set.trimmed {
                Some(_) => " Scores are fitted again on the trimmed rows.",
                None => "",
            };
            format!(
                "Propensity scores are {} under the treatment and {} under control; {} outside of \
                 what both have ({} %); AUC {}.{fitted}{short}",
                interval((overlap.min_treated, overlap.max_treated)),
                interval((overlap.min_control, overlap.max_control)),
                count(overlap.outside, "row is", "rows are"),
                four_digits(percent),
                four_digits(overlap.auc),
            )
        }
    };
    let outside_crump = match (score, &result) {
        (Some(Ok(score)), Ok(_)) => {
            Some(score.scores.len() - in_overlap(&score.scores, CRUMP).len())
        }
        _ => None,
    };
    // Scores that differ in their last digit only are one.
    let overlap = result.map(|overlap| match constant {
        Some(_) => Overlap { distinct: 1, outside: 0, ..overlap },
        None => overlap,
    });
    let (outcomes, contrast) = (set.outcomes(), set.contrast.clone());
    Some(OverlapRow { outcomes, contrast, overlap, outside_crump, note })
}

/// The rows in the overlap, if the rule is to trim. Without propensity scores nothing can be trimmed,
/// so that no estimator may adjust.
pub(super) fn trimmed(
    args: &Args,
    frame: &AnalysisFrame,
    set: RowSet,
    score: impl Fn(&RowSet) -> Option<FittedPropensity>,
) -> RowSet {
    if args.overlap != OverlapRule::Trim {
        return set;
    }
    let score = match score(&set) {
        Some(Ok(score)) => score,
        // Regressions are also refused then.
        None | Some(Err(Refusal::Separated)) => return set,
        Some(Err(refusal)) => {
            let help = match refusal {
                Refusal::NoOverlap(_) => " (penalty: 1.0 keeps scores off 0 and 1)",
                _ => "",
            };
            let reason = columns::named(&refusal, &set.names);
            let reason = format!("overlap: trim has no propensity scores to go by: {reason}{help}");
            return RowSet { covariates_refused: Some(reason), ..set };
        }
    };
    let kept = in_overlap(&score.scores, CRUMP);
    if kept.len() == set.rows.len() {
        return set;
    }
    let (of, treated) = (set.rows.len(), set.n_treated());
    let mut inner = set.restricted(args, frame, &kept);
    let left = inner.n_treated();
    inner.trimmed = Some(TrimmedRows {
        of,
        treated: treated - left,
        control: (of - treated) - (inner.rows.len() - left),
    });
    inner
}

impl TrimmedRows {
    pub(super) fn remark(&self, set: &RowSet) -> String {
        format!(
            "This is the effect on the {} of {} whose propensity score is between {} and {} (Crump \
             and others 2009), not on all: {} of `{}` and {} of `{}` are left out.",
            thousands(set.rows.len()),
            count(self.of, "row", "rows"),
            CRUMP.0,
            CRUMP.1,
            thousands(self.treated),
            set.contrast.treatment,
            thousands(self.control),
            set.contrast.control,
        )
    }
}

/// Bins of equal width between 0 and 1.
const BINS: usize = 20;

/// The rows of an arm with scores in a bin.
pub(super) struct PropensityBinRow {
    outcomes: String,
    contrast: Contrast,
    arm: String,
    bin: usize,
    rows: usize,
    share: f64,
    weighted_share: f64,
}

impl TableRow for PropensityBinRow {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        columns::outcomes(|row| &row.outcomes),
        columns::treatment(|row| &row.contrast.treatment),
        columns::control(|row| &row.contrast.control),
        text("arm", "the arm that the rows belong to", |row| &row.arm),
        count_of("bin", "the bin of propensity scores, from 1", "bins", |row| row.bin + 1),
        number("low", "the smallest score of the bin", |row| Some(boundary(row.bin))),
        number("high", "the score at which the next bin begins; the last one has 1, too", |row| {
            Some(boundary(row.bin + 1))
        }),
        count_of("rows", "rows of the arm with such a score", "rows", |row| row.rows),
        number("share", "the same as a share of the arm", |row| Some(row.share)),
        number(
            "weighted_share",
            "the share of the arm's weight, with the weights of the estimand",
            |row| Some(row.weighted_share),
        ),
    ];
}

/// The smallest score of a bin.
fn boundary(bin: usize) -> f64 {
    bin as f64 / BINS as f64
}

/// The rows of the port: every bin of both arms. None without propensity scores.
pub(super) fn propensity_bin_rows(cx: &SetContext<'_>) -> Vec<PropensityBinRow> {
    let SetContext { args, set, score, .. } = *cx;
    let Some(Ok(score)) = score else { return Vec::new() };
    let weights = weights(args, &score.scores, &set.treated);
    let mut rows = Vec::with_capacity(2 * BINS);
    for treated in [true, false] {
        let (mut counts, mut weight) = ([0_usize; BINS], [0.0_f64; BINS]);
        for ((score, own), one) in score.scores.iter().zip(&set.treated).zip(&weights) {
            if *own == treated {
                // A score of 1 belongs to the last bin.
                let bin = ((score * BINS as f64) as usize).min(BINS - 1);
                counts[bin] += 1;
                weight[bin] += one;
            }
        }
        let n = counts.iter().sum::<usize>().max(1) as f64;
        let all = weight.iter().sum::<f64>();
        let arm = if treated { &set.contrast.treatment } else { &set.contrast.control };
        rows.extend((0..BINS).map(|bin| PropensityBinRow {
            outcomes: set.outcomes(),
            contrast: set.contrast.clone(),
            arm: arm.clone(),
            bin,
            rows: counts[bin],
            share: counts[bin] as f64 / n,
            weighted_share: if all > 0.0 { weight[bin] / all } else { 0.0 },
        }));
    }
    rows
}
