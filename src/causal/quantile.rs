//! Quantiles by linear interpolation, and bins between them.

#[cfg(test)]
mod tests;

use super::{column::check_column, refusal::Refusal};

/// Bins of a column between its quantiles.
#[derive(Clone, Debug, PartialEq)]
pub struct QuantileBins {
    /// The lower and the upper edge of each bin, ascending; the upper edge of a bin is the
    /// lower edge of the next one. A bin holds its upper edge and not its lower one, but for the
    /// first bin, which holds both.
    pub edges: Vec<(f64, f64)>,
    /// The bin of every row, from 0. Where many values are equal, a bin beside them may be empty.
    pub codes: Vec<u32>,
}

/// The quantile at `probability` (of [0, 1], else the nearest end) of values in ascending
/// order, by linear interpolation between the neighbours of (n - 1) * probability: definition 7
/// of R. J. Hyndman & Y. Fan, "Sample quantiles in statistical packages", The American
/// Statistician 50, 1996, the default of numpy.
///
/// # Errors
/// An empty column, a probability that is not a number.
pub fn quantile(sorted: &[f64], probability: f64) -> Result<f64, Refusal> {
    if sorted.is_empty() {
        return Err(Refusal::TooFew { what: "rows", found: 0, needed: 1 });
    }
    if probability.is_nan() {
        return Err(Refusal::Other("the probability of a quantile is not a number".to_owned()));
    }
    let position = (sorted.len() - 1) as f64 * probability.clamp(0.0, 1.0);
    let below = position.floor();
    Ok(interpolate(sorted, below as usize, position - below))
}

/// The quantile at `part / parts`; 0 for an empty column. The position is computed in integers,
/// so that a quantile which is one of the values is exactly that value.
pub(super) fn sorted_quantile(sorted: &[f64], part: usize, parts: usize) -> f64 {
    let position = sorted.len().saturating_sub(1) as u128 * part as u128;
    let (below, rest) = (position / parts.max(1) as u128, position % parts.max(1) as u128);
    interpolate(sorted, below as usize, rest as f64 / parts as f64)
}

/// The value at `share` of the way from a position to the next one.
fn interpolate(sorted: &[f64], below: usize, share: f64) -> f64 {
    let Some(&low) = sorted.get(below) else {
        return sorted.last().copied().unwrap_or(0.0);
    };
    let high = sorted.get(below + 1).copied().unwrap_or(low);
    if share == 0.0 || low == high {
        low
    } else if (high - low).is_infinite() {
        low * (1.0 - share) + high * share
    } else if share < 0.5 {
        low + (high - low) * share
    } else {
        high - (high - low) * (1.0 - share)
    }
}

/// Bins of about equal size between the quantiles 0, 1 / bins, ..., 1 of the values, as
/// `pandas.qcut(..., duplicates="drop")`: quantiles that coincide are one edge, so that there
/// may be fewer bins than asked for. The edges are the quantiles themselves; pandas writes the
/// lowest one a little smaller in its labels. O(n log n).
///
/// # Errors
/// No bins asked for, an empty column, a value that is not finite, a column with one value only.
pub fn quantile_bins(values: &[f64], bins: usize) -> Result<QuantileBins, Refusal> {
    check_column(values, "values", values.len())?;
    if bins == 0 {
        return Err(Refusal::TooFew { what: "bins", found: 0, needed: 1 });
    }
    if values.is_empty() {
        return Err(Refusal::TooFew { what: "rows", found: 0, needed: 1 });
    }
    let mut sorted: Vec<f64> = values.iter().map(|value| value + 0.0).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    // More bins than values would only add empty ones.
    let bins = bins.min(sorted.len()).min(u32::MAX as usize);
    let mut cuts: Vec<f64> = (0..=bins).map(|i| sorted_quantile(&sorted, i, bins)).collect();
    cuts.dedup();
    if cuts.len() < 2 {
        return Err(Refusal::Constant("values".to_owned()));
    }
    let code = |value: &f64| cuts[1..].partition_point(|upper| upper < value) as u32;
    Ok(QuantileBins {
        codes: values.iter().map(code).collect(),
        edges: cuts.windows(2).map(|pair| (pair[0], pair[1])).collect(),
    })
}
