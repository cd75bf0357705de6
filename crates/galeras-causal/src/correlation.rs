//! Correlations of two columns: Pearson's, Spearman's, Kendall's and partial.

#[cfg(test)]
mod tests;

use crate::column::{check_column, check_level};
use crate::compensated::Twofold;
use crate::refusal::{at_least, require};
use crate::{ColumnRef, Refusal, compensated, rank, tail};

/// The coefficient of correlation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CorrelationMethod {
    /// Pearson's product-moment correlation: linear association.
    Pearson,
    /// Spearman's rank correlation, ties by average ranks: monotone association.
    Spearman,
    /// Kendall's tau-b: pairs of rows in the same order against those in the opposite order.
    Kendall,
}

/// The correlation of `x` and `y`, columns of n rows, with its p-value and its interval of level
/// `1 - alpha`. Coefficients equal those of `scipy.stats` (`pearsonr`, `spearmanr`, `kendalltau`).
///
/// - Pearson: p from Student's t with n - 2 degrees of freedom; Fisher's interval, atanh r +- z /
///   sqrt(n - 3) (1921).
/// - Spearman: p from the same t (for a coefficient of 1 or -1 the exact probability of the order);
///   the error on Fisher's scale is sqrt((1 + r^2 / 2) / (n - 3)) (Bonett & Wright 2000,
///   Psychometrika 65).
/// - Kendall: exact p without ties if there are at most 33 rows or at most one pair out of order,
///   otherwise normal with the variance corrected for ties; the error on Fisher's scale is
///   sqrt(0.437 / (n - 4)) (Fieller, Hartley & Pearson 1957, Biometrika 44), good for |tau| < 0.8
///   and few ties.
///
/// The order of the rows does not matter: ranks and pairs are counted in integers, and Pearson's
/// sums have twofold precision before they are rounded.
pub fn correlation(
    x: &[f64],
    y: &[f64],
    method: CorrelationMethod,
    alpha: f64,
) -> Result<Correlation, Refusal> {
    check_level(alpha)?;
    check_column(y, ColumnRef::Y, x.len())?;
    check_column(x, ColumnRef::X, x.len())?;
    at_least("rows", x.len(), 3)?;
    // Ranks would turn differences by rounding into a perfect order of rows.
    let centred = [compensated::centred(x, ColumnRef::X)?, compensated::centred(y, ColumnRef::Y)?];
    let n = x.len() as f64;
    let (coefficient, variance, p_value) = match method {
        CorrelationMethod::Pearson => {
            let coefficient = of_centred(&centred[0], &centred[1])?;
            (coefficient, 1.0 / (n - 3.0), coefficient.p_value(n - 2.0))
        }
        CorrelationMethod::Spearman => {
            let ranks = [x, y].map(|column| rank::average_ranks(column).ranks);
            let coefficient = of_centred(
                &compensated::centred(&ranks[0], ColumnRef::X)?,
                &compensated::centred(&ranks[1], ColumnRef::Y)?,
            )?;
            // The t approximation of a perfect order would give 0, even for three rows.
            let p_value = match coefficient.complement > 0.0 {
                true => coefficient.p_value(n - 2.0),
                false => perfect(&ranks[0]),
            };
            let variance = (1.0 + coefficient.value * coefficient.value / 2.0) / (n - 3.0);
            (coefficient, variance, p_value)
        }
        CorrelationMethod::Kendall => {
            let pairs = count(x, y);
            let variance = if n > 4.0 { 0.437 / (n - 4.0) } else { 0.0 };
            (kendall(&pairs), variance, p_value(x.len(), &pairs))
        }
    };
    let interval = coefficient.interval(variance, alpha);
    Ok(Correlation { coefficient: coefficient.value, interval, p_value, n: x.len() })
}

/// Fewer clusters are refused.
const FEWEST_CLUSTERS: usize = 6;
/// More clusters are left out in this number of blocks: the standard error has enough degrees of
/// freedom, and the time is that of so many correlations.
const MOST_BLOCKS: usize = 200;

/// As [`correlation`], for rows that depend on each other within clusters, which are numbered from 0
/// without gaps. The coefficient is that of all rows. Its standard error on Fisher's scale is the
/// jackknife's, which leaves out one cluster at a time (Efron & Stein 1981, Annals of Statistics 9;
/// beyond 200 clusters a 200th of them, as in surveys: Kott 2001, Journal of Official Statistics 17);
/// interval and p-value are Student's with the number of parts less one as degrees of freedom.
/// Refuses fewer than six clusters and a coefficient of 1 or -1.
pub fn clustered_correlation(
    x: &[f64],
    y: &[f64],
    clusters: &[u32],
    method: CorrelationMethod,
    alpha: f64,
) -> Result<Correlation, Refusal> {
    let whole = correlation(x, y, method, alpha)?;
    let count = clusters.iter().max().map_or(0, |last| *last as usize + 1);
    at_least("clusters", count, FEWEST_CLUSTERS)?;
    let parts = count.min(MOST_BLOCKS);
    let without = |part: usize| -> Result<f64, Refusal> {
        let kept = |column: &[f64]| -> Vec<f64> {
            let rows = column.iter().zip(clusters);
            rows.filter(|(_, cluster)| **cluster as usize % parts != part)
                .map(|(x, _)| *x)
                .collect()
        };
        let found = correlation(&kept(x), &kept(y), method, alpha);
        found.map(|found| found.coefficient.atanh()).map_err(|refusal| match refusal {
            Refusal::Constant(column) => Refusal::UnusableColumn {
                column,
                problem: "has one value only where the rows of one cluster are left out".into(),
            },
            other => other,
        })
    };
    let scores = (0..parts).map(without).collect::<Result<Vec<f64>, Refusal>>()?;
    let mean = scores.iter().sum::<f64>() / parts as f64;
    let squares: f64 = scores.iter().map(|score| (score - mean).powi(2)).sum();
    let degrees = (parts - 1) as f64;
    let error = (degrees / parts as f64 * squares).sqrt();
    let centre = whole.coefficient.atanh();
    let reason = "the coefficient is 1 or -1, or the same without any one of the clusters: it has no \
                  standard error";
    require(centre.is_finite() && error.is_finite() && error > 0.0, reason)?;
    let half = tail::t_quantile(1.0 - alpha / 2.0, degrees) * error;
    Ok(Correlation {
        interval: Some(((centre - half).tanh(), (centre + half).tanh())),
        p_value: tail::t_two_sided(centre / error, degrees),
        ..whole
    })
}

/// A coefficient of correlation, its p-value and its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correlation {
    /// The coefficient, in [-1, 1].
    pub coefficient: f64,
    /// The ends of the interval of level `1 - alpha`. `None` if the coefficient is 1 or -1, or with
    /// too few rows for its standard error (below 4 for Pearson and Spearman, 5 for Kendall, 4 + k
    /// for a partial correlation given k columns).
    pub interval: Option<(f64, f64)>,
    /// The two-sided p-value of no association.
    pub p_value: f64,
    /// The number of rows.
    pub n: usize,
}

/// A coefficient with the digits that rounding it to a double loses near 1 or -1.
#[derive(Clone, Copy, Debug)]
struct Coefficient {
    value: f64,
    /// 1 - r^2; zero if r is 1 or -1.
    complement: f64,
}

impl Coefficient {
    /// The two-sided p-value of Student's t = r sqrt(df / (1 - r^2)).
    fn p_value(self, degrees: f64) -> f64 {
        if self.complement > 0.0 {
            tail::t_two_sided(self.value * (degrees / self.complement).sqrt(), degrees)
        } else {
            0.0
        }
    }

    /// The interval tanh(atanh r +- z se), for the variance se^2 on Fisher's scale; `None` unless
    /// the variance is finite and above zero and r is not 1 or -1.
    fn interval(self, variance: f64, alpha: f64) -> Option<(f64, f64)> {
        if !(self.complement > 0.0 && variance > 0.0 && variance.is_finite()) {
            return None;
        }
        // 1 - r^2 has more correct digits than 1 - r, except near zero.
        let centre = if self.value.abs() < 0.5 {
            self.value.atanh()
        } else {
            ((1.0 + self.value.abs()) / self.complement.sqrt()).ln().copysign(self.value)
        };
        let half = tail::normal_quantile(1.0 - alpha / 2.0) * variance.sqrt();
        Some(((centre - half).tanh(), (centre + half).tanh()))
    }
}

/// The product-moment coefficient of two columns with zero means and moderate magnitudes, and 1 -
/// r^2, which keeps its digits if r is close to 1; exactly 1 and 0 if r rounds to 1.
fn of_centred(x: &[f64], y: &[f64]) -> Result<Coefficient, Refusal> {
    let (xx, yy) = (compensated::dot(x, x), compensated::dot(y, y));
    let xy = compensated::dot(x, y);
    let product = xx.times(yy);
    if product.high.is_nan() || product.high <= 0.0 {
        let column = if xx.high > 0.0 { ColumnRef::Y } else { ColumnRef::X };
        return Err(Refusal::Constant(column));
    }
    let value = xy.over(product.root()).high;
    if value.abs() >= 1.0 {
        return Ok(Coefficient { value: value.signum(), complement: 0.0 });
    }
    let rest: Twofold = product.plus(xy.times(xy).negated());
    Ok(Coefficient { value, complement: rest.over(product).high.clamp(f64::MIN_POSITIVE, 1.0) })
}

/// The probability of a correlation of 1 or -1 if all orders of rows are equally likely: the share
/// of the n! orders that exchange rows of equal rank, in both directions if both are possible.
fn perfect(ranks: &[f64]) -> f64 {
    let ranks = rank::ascending(ranks);
    let ties: Vec<usize> = ranks.chunk_by(|a, b| a == b).map(<[f64]>::len).collect();
    let log_factorial = |n: usize| (2..=n).map(|k| (k as f64).ln()).sum::<f64>();
    let exchanges: f64 = ties.iter().map(|n| log_factorial(*n)).sum();
    let directions = if ties.iter().eq(ties.iter().rev()) { 2.0 } else { 1.0 };
    directions * (exchanges - log_factorial(ranks.len())).exp()
}

const EXACT_ROWS: usize = 33;

/// The pairs of rows, by their order in both columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pairs {
    /// All pairs, n (n - 1) / 2.
    total: i128,
    /// Pairs in opposite orders, tied in neither column.
    discordant: i128,
    /// Pairs in the same order minus pairs in opposite orders.
    excess: i128,
    ties: [Ties; 2],
}

/// Sums over the groups of t equal values of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ties {
    /// Sum of t (t - 1) / 2, the tied pairs.
    pairs: i128,
    /// Sum of t (t - 1) (t - 2).
    triples: i128,
    /// Sum of t (t - 1) (2 t + 5).
    variance: i128,
}

impl Ties {
    fn add(&mut self, size: usize) {
        let t = size as i128;
        self.pairs += t * (t - 1) / 2;
        self.triples += t * (t - 1) * (t - 2);
        self.variance += t * (t - 1) * (2 * t + 5);
    }
}

/// Kendall's tau-b.
fn kendall(pairs: &Pairs) -> Coefficient {
    let untied = pairs.ties.map(|ties| pairs.total - ties.pairs);
    let value = if untied[0] == untied[1] {
        // Here tau is a ratio of integers, exactly 1 if every pair agrees.
        pairs.excess as f64 / untied[0] as f64
    } else {
        pairs.excess as f64 / (untied[0] as f64).sqrt() / (untied[1] as f64).sqrt()
    };
    let value = value.clamp(-1.0, 1.0);
    Coefficient { value, complement: (1.0 - value) * (1.0 + value) }
}

/// Counts the pairs. After sorting by x, the discordant pairs are the inversions of y, which a
/// merge sort counts (Knight 1966, JASA 61).
fn count(x: &[f64], y: &[f64]) -> Pairs {
    // Adding zero makes -0.0 equal to 0.0 in the total order.
    let mut rows: Vec<(f64, f64)> = x.iter().zip(y).map(|(x, y)| (x + 0.0, y + 0.0)).collect();
    rows.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut ties = [Ties::default(); 2];
    let mut joint = Ties::default();
    for group in rows.chunk_by(|a, b| a.0 == b.0) {
        ties[0].add(group.len());
        group.chunk_by(|a, b| a.1 == b.1).for_each(|same| joint.add(same.len()));
    }
    let mut column: Vec<f64> = rows.into_iter().map(|row| row.1).collect();
    let discordant = inversions(&mut column);
    column.chunk_by(|a, b| a == b).for_each(|group| ties[1].add(group.len()));
    let n = x.len() as i128;
    let total = n * (n - 1) / 2;
    let excess = total - ties[0].pairs - ties[1].pairs + joint.pairs - 2 * discordant;
    Pairs { total, discordant, excess, ties }
}

/// Sorts the column by merging; returns the number of pairs that were out of order.
fn inversions(column: &mut Vec<f64>) -> i128 {
    let n = column.len();
    let mut merged = column.clone();
    let mut inversions = 0;
    let mut width = 1;
    while width < n {
        for (from, to) in column.chunks(2 * width).zip(merged.chunks_mut(2 * width)) {
            let (left, right) = from.split_at(width.min(from.len()));
            let (mut i, mut j) = (0, 0);
            for slot in to {
                if j == right.len() || (i < left.len() && left[i] <= right[j]) {
                    *slot = left[i];
                    i += 1;
                } else {
                    *slot = right[j];
                    j += 1;
                    inversions += (left.len() - i) as i128;
                }
            }
        }
        std::mem::swap(column, &mut merged);
        width *= 2;
    }
    inversions
}

/// The two-sided p-value of no association, by the rules of `scipy.stats.kendalltau`.
fn p_value(n: usize, pairs: &Pairs) -> f64 {
    let fewer = pairs.discordant.min(pairs.total - pairs.discordant);
    if pairs.ties.iter().all(|ties| ties.pairs == 0) && (n <= EXACT_ROWS || fewer <= 1) {
        return exact_p_value(n, fewer);
    }
    tail::normal_two_sided(standardised_excess(n, pairs)).min(1.0)
}

/// Concordant minus discordant pairs of two columns in standard errors under no association; the
/// variance corrects for ties in both. Neither column may be constant.
pub(crate) fn tie_corrected_excess(x: &[f64], y: &[f64]) -> f64 {
    standardised_excess(x.len(), &count(x, y))
}

fn standardised_excess(n: usize, pairs: &Pairs) -> f64 {
    // G. E. Noether, "Elements of nonparametric statistics", 1967; M. G. Kendall, "Rank
    // correlation methods", 4th edition, 1970, chapter 4.
    let [x, y] = pairs.ties;
    let rows = n as f64;
    let m = rows * (rows - 1.0);
    let free = (n as i128 * (n as i128 - 1) * (2 * n as i128 + 5)) - x.variance - y.variance;
    let variance = free as f64 / 18.0
        + 2.0 * x.pairs as f64 * y.pairs as f64 / m
        + x.triples as f64 * y.triples as f64 / (9.0 * m * (rows - 2.0));
    pairs.excess as f64 / variance.sqrt()
}

/// Twice the share of the n! orders that have at most `fewer` inversions, at most 1.
fn exact_p_value(n: usize, fewer: i128) -> f64 {
    // 2 / n! or 2 / (n - 1)!, which underflows to zero for many rows.
    let reciprocal = |n: usize| (2..=n).fold(2.0, |p: f64, j| p / j as f64);
    match fewer {
        0 => reciprocal(n).min(1.0),
        1 => reciprocal(n - 1).min(1.0),
        _ => {
            // Orders of j rows by inversions follow from those of j - 1 rows: the new row precedes
            // 0 to j - 1 others. 33! is below 2^128, so the counts are exact.
            let most = fewer as usize;
            let mut orders = vec![0u128; most + 1];
            orders[0] = 1;
            for j in 2..=n {
                for c in 1..=most {
                    orders[c] += orders[c - 1];
                }
                for c in (j..=most).rev() {
                    orders[c] -= orders[c - j];
                }
            }
            let favourable: u128 = orders.iter().sum();
            let all = (2..=n as u128).product::<u128>();
            (2.0 * (favourable as f64 / all as f64)).min(1.0)
        }
    }
}

/// A column depends on the others if its unexplained part is below this share of its norm.
const COLLINEAR: f64 = 1e-10;

/// The correlation of the residuals of `x` and of `y` in the least squares regressions on the
/// columns `given` and an intercept; Pearson's if no column is given. All columns have n rows;
/// `given` holds k columns. The p-value is that of Student's t with n - 2 - k degrees of freedom,
/// the interval Fisher's with the standard error 1 / sqrt(n - k - 3) (Fisher 1924, Metron 3). O(n
/// k^2).
pub fn partial(x: &[f64], y: &[f64], given: &[&[f64]], alpha: f64) -> Result<Correlation, Refusal> {
    check_level(alpha)?;
    check_column(x, ColumnRef::X, x.len())?;
    check_column(y, ColumnRef::Y, x.len())?;
    for (position, column) in given.iter().enumerate() {
        check_column(column, ColumnRef::Covariate(position), x.len())?;
    }
    let rows = x.len();
    at_least("rows", rows, 3 + given.len())?;
    let mut basis: Vec<(Vec<f64>, f64)> = Vec::with_capacity(given.len());
    for (position, column) in given.iter().enumerate() {
        let rest = residual(column, ColumnRef::Covariate(position), &basis)?;
        let square = compensated::dot(&rest, &rest).high;
        basis.push((rest, square));
    }
    let rest = [residual(x, ColumnRef::X, &basis)?, residual(y, ColumnRef::Y, &basis)?];
    let coefficient = of_centred(&rest[0], &rest[1])?;
    let left = (rows - given.len()) as f64;
    Ok(Correlation {
        coefficient: coefficient.value,
        interval: coefficient.interval(1.0 / (left - 3.0), alpha),
        p_value: coefficient.p_value(left - 2.0),
        n: rows,
    })
}

/// The residual of a centred column after projection on an orthogonal basis, which holds vectors
/// with their squared norms: modified Gram-Schmidt with inner products in twofold precision. If a
/// round removes most of the column, a second removes the rounding errors of the basis (Giraud,
/// Langou & Rozloznik 2005, Computers & Mathematics with Applications 50).
fn residual(
    values: &[f64],
    column: ColumnRef,
    basis: &[(Vec<f64>, f64)],
) -> Result<Vec<f64>, Refusal> {
    let mut rest = compensated::centred(values, column)?;
    let whole = compensated::dot(&rest, &rest).high;
    let mut before = whole;
    for _ in 0..2 {
        for (direction, square) in basis {
            let share = compensated::dot(&rest, direction).high / square;
            for (value, along) in rest.iter_mut().zip(direction) {
                *value -= share * along;
            }
        }
        let after = compensated::dot(&rest, &rest).high;
        if after.is_nan() || after <= whole * COLLINEAR * COLLINEAR {
            return Err(Refusal::Collinear { column });
        }
        if after > before / 2.0 {
            break;
        }
        before = after;
    }
    Ok(rest)
}
