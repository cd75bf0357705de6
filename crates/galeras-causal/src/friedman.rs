//! Friedman's test for a difference among k related columns (the arms of a unit).

#[cfg(test)]
mod tests;

use super::{
    column::{ColumnRef, check_column},
    refusal::Refusal,
    tail,
};

/// Friedman's test of k columns over n blocks (M. Friedman, "The use of ranks to avoid the
/// assumption of normality implicit in the analysis of variance", JASA 32, 1937).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FriedmanTest {
    /// The statistic, corrected for ties within blocks.
    pub statistic: f64,
    /// Its degrees of freedom, k - 1.
    pub degrees: f64,
    /// The upper tail of chi-squared: an approximation, good for n > 10 and k > 6 or large n.
    pub p_value: f64,
    /// The number of blocks.
    pub n: usize,
    /// Kendall's coefficient of concordance W, in [0, 1]: the statistic over its maximum.
    pub concordance: f64,
}

/// Tests if `columns` (k columns of the same n rows, one row for each block) have the same
/// distribution within the rows; equals `scipy.stats.friedmanchisquare`. O(n k log k).
///
/// # Errors
/// [`Refusal::TooFew`] below 3 columns or 2 rows; [`Refusal::UnusableColumn`] if a column has
/// another length than the first or a value that is not finite; [`Refusal::Other`] if all values
/// are equal in every row. [`ColumnRef::Covariate`] is a position in `columns`.
pub fn friedman(columns: &[&[f64]]) -> Result<FriedmanTest, Refusal> {
    let k = columns.len();
    if k < 3 {
        return Err(Refusal::TooFew { what: "arms", found: k, needed: 3 });
    }
    let n = columns[0].len();
    for (position, column) in columns.iter().enumerate() {
        check_column(column, ColumnRef::Covariate(position), n)?;
    }
    if n < 2 {
        return Err(Refusal::TooFew { what: "blocks", found: n, needed: 2 });
    }
    // Twice the rank, minus its expectation k + 1: all sums are integers.
    let mut sums = vec![0i128; k];
    let mut ties = 0i128;
    let mut block: Vec<(f64, usize)> = Vec::with_capacity(k);
    for row in 0..n {
        block.clear();
        block.extend(columns.iter().enumerate().map(|(arm, column)| (column[row], arm)));
        block.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let mut before = 0;
        for group in block.chunk_by(|a, b| a.0 == b.0) {
            let size = group.len();
            let doubled = (2 * before + size + 1) as i128 - (k as i128 + 1);
            group.iter().for_each(|&(_, arm)| sums[arm] += doubled);
            ties += (size as i128).pow(3) - size as i128;
            before += size;
        }
    }
    let (blocks, arms) = (n as i128, k as i128);
    let free = blocks * (arms.pow(3) - arms) - ties;
    if free <= 0 {
        return Err(Refusal::Other("every block has one value only".to_owned()));
    }
    let squares: i128 = sums.iter().map(|sum| sum * sum).sum();
    // 12 sum (R - n (k + 1) / 2)^2 / (n k (k + 1)), divided by 1 - ties / (n (k^3 - k)).
    let statistic = 3.0 * (arms - 1) as f64 * squares as f64 / free as f64;
    let degrees = (k - 1) as f64;
    Ok(FriedmanTest {
        statistic,
        degrees,
        p_value: tail::chi_squared_upper(statistic, degrees).min(1.0),
        n,
        concordance: (statistic / (n as f64 * degrees)).min(1.0),
    })
}
