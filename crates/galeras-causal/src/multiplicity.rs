//! P-values adjusted for the number of tests in a family, and intervals that cover all its effects.

mod simultaneous;
#[cfg(test)]
mod tests;

pub use simultaneous::{Influence, max_t};

/// A method of adjustment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adjustment {
    /// m p: controls the family-wise error rate under any dependence.
    Bonferroni,
    /// Step-down Bonferroni, never weaker (S. Holm 1979).
    Holm,
    /// Step-up, for independent or positively dependent tests (Hochberg 1988, Simes 1986).
    SimesHochberg,
    /// The closure of Simes' test, never weaker than Hochberg's (G. Hommel 1988).
    Hommel,
    /// The false discovery rate of such tests (Benjamini & Hochberg 1995).
    BenjaminiHochberg,
    /// The false discovery rate under any dependence (Y. Benjamini & D. Yekutieli 2001).
    BenjaminiYekutieli,
}

/// The adjusted p-values of a family of m tests, in the order of `p`: a test is rejected at the
/// family's level alpha if its value is at most alpha. Equals statsmodels' `multipletests`. O(m log
/// m). A value above 1 counts as 1, one below 0 as 0, and NaN as 1 (a test without a result rejects
/// nothing, but belongs to the family).
pub fn adjust(p: &[f64], how: Adjustment) -> Vec<f64> {
    let m = p.len();
    let mut order: Vec<(f64, usize)> = p
        .iter()
        .enumerate()
        .map(|(position, &p)| (if p.is_nan() { 1.0 } else { p.clamp(0.0, 1.0) }, position))
        .collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let sorted: Vec<f64> = order.iter().map(|&(p, _)| p).collect();
    // The factor of the p-value at a position of the ascending order.
    let remaining = |i: usize| (m - i) as f64;
    let adjusted = match how {
        Adjustment::Bonferroni => sorted.iter().map(|p| p * m as f64).collect(),
        Adjustment::Holm => {
            let mut most: f64 = 0.0;
            let step = |(i, p): (usize, &f64)| {
                most = most.max(p * remaining(i));
                most
            };
            sorted.iter().enumerate().map(step).collect()
        }
        Adjustment::SimesHochberg => step_up(&sorted, remaining),
        Adjustment::Hommel => hommel(&sorted),
        Adjustment::BenjaminiHochberg => step_up(&sorted, |i| m as f64 / (i + 1) as f64),
        Adjustment::BenjaminiYekutieli => {
            let harmonic: f64 = (1..=m).map(|i| 1.0 / i as f64).sum();
            step_up(&sorted, |i| m as f64 * harmonic / (i + 1) as f64)
        }
    };
    let mut answer = vec![1.0; m];
    for (&(_, position), value) in order.iter().zip(adjusted) {
        answer[position] = value.min(1.0);
    }
    answer
}

/// The smallest multiplied p-value from each position on.
fn step_up(sorted: &[f64], factor: impl Fn(usize) -> f64) -> Vec<f64> {
    let mut least: f64 = 1.0;
    let mut adjusted: Vec<f64> = sorted
        .iter()
        .enumerate()
        .rev()
        .map(|(i, p)| {
            least = least.min(p * factor(i));
            least
        })
        .collect();
    adjusted.reverse();
    adjusted
}

/// Hommel's adjustment of ascending p-values.
///
/// Simes' test rejects a set of s hypotheses at the level S(s) = min over i of s p(m - s + i) / i
/// if it holds the s largest p-values, which is the worst set of its size. The adjusted p(i) is the
/// largest over s of S(s) if the worst set may hold i (s > m - i), of min(S(s), s p(i)) otherwise
/// (Wright 1992, Biometrics 48). S does not ascend with s and s p(i) does, so the largest is next
/// to their crossing, which a binary search finds.
fn hommel(sorted: &[f64]) -> Vec<f64> {
    let m = sorted.len();
    let simes = simes_levels(sorted);
    let adjusted = |(i, &p): (usize, &f64)| {
        // The worst sets up to this size do not contain i.
        let without = m - i - 1;
        let (mut low, mut high) = (0, without);
        while low < high {
            let size = low.midpoint(high) + 1;
            if size as f64 * p < simes[size - 1] {
                low = size;
            } else {
                high = size - 1;
            }
        }
        // `simes[low]` is the level of the size after the crossing, or of the smallest worst set
        // that contains i.
        p.max(low as f64 * p).max(simes[low])
    };
    sorted.iter().enumerate().map(adjusted).collect()
}

/// The levels S(1) to S(m). S(s) / s is the smallest slope from the point (m - s, 0) to a point (q,
/// p(q)) to its right; that point is on the lower convex hull, where a binary search finds it.
fn simes_levels(sorted: &[f64]) -> Vec<f64> {
    // From right to left: the last point is the leftmost.
    let mut hull: Vec<(f64, f64)> = Vec::with_capacity(sorted.len());
    let mut levels = Vec::with_capacity(sorted.len());
    for (base, &p) in sorted.iter().enumerate().rev() {
        let point = (base as f64 + 1.0, p);
        while let [.., (q2, p2), (q1, p1)] = hull[..] {
            if (p1 - point.1) * (q2 - point.0) < (p2 - point.1) * (q1 - point.0) {
                break;
            }
            hull.pop();
        }
        hull.push(point);
        let slope = |at: usize| hull[at].1 / (hull[at].0 - base as f64);
        // Towards the right, slopes descend up to the tangent, then ascend.
        let (mut low, mut high) = (0, hull.len() - 1);
        while low < high {
            let middle = low.midpoint(high);
            if slope(middle) <= slope(middle + 1) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        levels.push((sorted.len() - base) as f64 * slope(low));
    }
    levels
}
