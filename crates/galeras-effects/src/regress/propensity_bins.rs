//! How many rows of each arm have which propensity score: the rows of the port `propensity`, from which
//! a figure shows where the arms overlap.

use super::args::Args;
use super::balance::weights;
use super::comparison::{Contrast, RowSet};
use super::estimate::FittedPropensity;
use super::shared_columns as columns;
use galeras_operator::small_table::{TableColumn, TableRow};

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

impl PropensityBinRow {
    fn boundary(bin: usize) -> f64 {
        bin as f64 / BINS as f64
    }
}

impl TableRow for PropensityBinRow {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        columns::outcomes(|row| &row.outcomes),
        columns::treatment(|row| &row.contrast.treatment),
        columns::control(|row| &row.contrast.control),
        TableColumn::text("arm", "the arm that the rows belong to", |row| &row.arm),
        TableColumn::count("bin", "the bin of propensity scores, from 1", "bins", |row| {
            row.bin + 1
        }),
        TableColumn::number("low", "the smallest score of the bin", |row| {
            Some(Self::boundary(row.bin))
        }),
        TableColumn::number(
            "high",
            "the score at which the next bin begins; the last one has 1, too",
            |row| Some(Self::boundary(row.bin + 1)),
        ),
        TableColumn::count("rows", "rows of the arm with such a score", "rows", |row| row.rows),
        TableColumn::number("share", "the same as a share of the arm", |row| Some(row.share)),
        TableColumn::number(
            "weighted_share",
            "the share of the arm's weight, with the weights of the estimand",
            |row| Some(row.weighted_share),
        ),
    ];
}

/// The rows of the port: every bin of both arms. None without propensity scores.
pub(super) fn propensity_bin_rows(
    args: &Args,
    set: &RowSet,
    score: Option<&FittedPropensity>,
) -> Vec<PropensityBinRow> {
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
