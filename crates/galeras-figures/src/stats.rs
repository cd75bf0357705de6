//! The numbers that a figure computes itself.

/// The quantile `p` of sorted numbers, linear between neighbours (type 7 of Hyndman and Fan 1996,
/// as `numpy.quantile`).
pub(crate) fn quantile(sorted: &[f64], p: f64) -> f64 {
    let at = p * (sorted.len() - 1) as f64;
    let below = sorted[at.floor() as usize];
    between(below, sorted[at.ceil() as usize], at.fract())
}

/// The number at a share of the way from one to another.
fn between(from: f64, to: f64, share: f64) -> f64 {
    match to - from {
        way if way.is_finite() => from + way * share,
        _ => from * (1.0 - share) + to * share,
    }
}

/// A box plot of sorted numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Quartiles {
    pub(crate) q1: f64,
    pub(crate) median: f64,
    pub(crate) q3: f64,
    /// The outermost numbers within 1.5 interquartile ranges of the box (Tukey 1977).
    pub(crate) whiskers: (f64, f64),
    /// The 95 % interval of the median, if there are six numbers or more.
    pub(crate) interval: Option<(f64, f64)>,
}

impl Quartiles {
    pub(crate) fn of(sorted: &[f64]) -> Quartiles {
        let [q1, median, q3] = [0.25, 0.5, 0.75].map(|p| quantile(sorted, p));
        let reach = 1.5 * (q3 - q1);
        let low = sorted.iter().copied().find(|v| *v >= q1 - reach).unwrap_or(q1);
        let high = sorted.iter().rev().copied().find(|v| *v <= q3 + reach).unwrap_or(q3);
        let interval =
            median_ranks(sorted.len()).map(|rank| (sorted[rank - 1], sorted[sorted.len() - rank]));
        Quartiles { q1, median, q3, whiskers: (low.min(q1), high.max(q3)), interval }
    }
}

/// The rank from both ends that gives a 95 % interval of the median of any distribution (Thompson
/// 1936): the largest `k` with P(B < k) ≤ 0.025 for B ~ Binomial(n, 1/2).
fn median_ranks(n: usize) -> Option<usize> {
    if n > 1000 {
        let half = 1.959_963_984_540_054 * (n as f64).sqrt() / 2.0;
        return Some((n as f64 / 2.0 - half).floor() as usize);
    }
    let (mut term, mut below, mut rank) = (0.5_f64.powi(n as i32), 0.0, 0);
    while below + term <= 0.025 {
        below += term;
        term *= (n - rank) as f64 / (rank + 1) as f64;
        rank += 1;
    }
    (rank > 0).then_some(rank)
}

/// The edges of bins over a range: as `numpy.histogram_bin_edges` with `bins="auto"`, or so many.
pub(crate) fn edges(sorted: &[f64], bins: Option<usize>) -> Vec<f64> {
    let (mut low, mut high) = (sorted[0], sorted[sorted.len() - 1]);
    let range = high - low;
    if range == 0.0 {
        (low, high) = (low - 0.5, high + 0.5);
    }
    let count = bins.unwrap_or_else(|| {
        let n = sorted.len() as f64;
        let sturges = range / (n.log2() + 1.0);
        let spread = quantile(sorted, 0.75) - quantile(sorted, 0.25);
        // Freedman and Diaconis, but not many more bins than rows of a square (numpy 2.4).
        let freedman = (2.0 * spread / n.cbrt()).max(range / n.sqrt() / 2.0);
        let width = freedman.min(sturges);
        match width > 0.0 {
            true => ((range / width).ceil() as usize).clamp(1, 60),
            false => 1,
        }
    });
    let edge = |i| match (high - low) / count as f64 {
        step if step.is_finite() => low + i as f64 * step,
        _ => between(low, high, i as f64 / count as f64),
    };
    let mut edges: Vec<f64> = (0..count).map(edge).collect();
    edges.push(high);
    edges
}

/// How many of sorted numbers are in each bin; the last bin has its upper edge too.
pub(crate) fn counts(sorted: &[f64], edges: &[f64]) -> Vec<usize> {
    let below = |edge: f64| sorted.partition_point(|v| *v < edge);
    let last = edges.len() - 1;
    let upto = |i: usize| {
        if i == last { sorted.partition_point(|v| *v <= edges[i]) } else { below(edges[i]) }
    };
    (0..last).map(|i| upto(i + 1) - below(edges[i])).collect()
}

/// Half the width of the 95 % band of a distribution function (Dvoretzky, Kiefer and Wolfowitz
/// 1956 with the constant of Massart 1990).
pub(crate) fn ecdf_band(n: usize) -> f64 {
    ((2.0_f64 / 0.05).ln() / (2.0 * n as f64)).sqrt()
}

/// A Gaussian kernel density at 101 places from the least to the greatest number, with Scott's
/// bandwidth (as `scipy.stats.gaussian_kde`); nothing if all numbers are one.
pub(crate) fn density(sorted: &[f64]) -> Option<Vec<(f64, f64)>> {
    let n = sorted.len() as f64;
    let mean = sorted.iter().sum::<f64>() / n;
    let squares: f64 = sorted.iter().map(|v| (v - mean).powi(2)).sum();
    let width = (squares / (n - 1.0)).sqrt() * n.powf(-0.2);
    if sorted.len() < 2 || !width.is_normal() {
        return None;
    }
    let (low, high) = (sorted[0], sorted[sorted.len() - 1]);
    let points = weighted(sorted, low, high);
    let scale = n * width * (2.0 * std::f64::consts::PI).sqrt();
    let at = |i: usize| {
        let place = low + (high - low) * i as f64 / 100.0;
        let kernel =
            |(v, weight): &(f64, f64)| weight * (-0.5 * ((place - v) / width).powi(2)).exp();
        (place, points.iter().map(kernel).sum::<f64>() / scale)
    };
    Some((0..=100).map(at).collect())
}

/// Numbers with their weights. Many numbers are distributed over 4096 places, each to the two next
/// to it (linear binning: Wand 1994). The difference cannot be seen.
fn weighted(sorted: &[f64], low: f64, high: f64) -> Vec<(f64, f64)> {
    const PLACES: usize = 4096;
    if sorted.len() <= 2 * PLACES {
        return sorted.iter().map(|v| (*v, 1.0)).collect();
    }
    let step = (high - low) / (PLACES - 1) as f64;
    let mut weights = vec![0.0; PLACES];
    for value in sorted {
        let at = ((value - low) / step).min((PLACES - 1) as f64);
        let (left, share) = (at.floor() as usize, at.fract());
        weights[left] += 1.0 - share;
        if share > 0.0 {
            weights[left + 1] += share;
        }
    }
    weights.into_iter().enumerate().map(|(i, w)| (low + i as f64 * step, w)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_median_has_the_ranks_of_the_binomial() {
        // From tables.
        for (n, rank) in [(5, None), (6, Some(1)), (10, Some(2)), (20, Some(6)), (100, Some(40))] {
            assert_eq!(median_ranks(n), rank, "{n}");
        }
        // The approximation continues where the sum ends.
        assert!(median_ranks(1000).unwrap().abs_diff(median_ranks(1001).unwrap()) <= 1);
    }

    #[test]
    fn many_numbers_have_the_density_of_all() {
        let all: Vec<f64> = (0..20_000).map(|i| (f64::from(i) / 7000.0).exp()).collect();
        let binned = density(&all).unwrap();
        let n = all.len() as f64;
        let mean = all.iter().sum::<f64>() / n;
        let sd = (all.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
        let h = sd * n.powf(-0.2);
        for (place, found) in binned.iter().step_by(25) {
            let sum: f64 = all.iter().map(|v| (-0.5 * ((place - v) / h).powi(2)).exp()).sum();
            let exact = sum / (n * h * (2.0 * std::f64::consts::PI).sqrt());
            assert!((found - exact).abs() < 1e-4 * exact.max(0.01), "{found} {exact}");
        }
    }

    #[test]
    fn one_number_has_quartiles_and_a_bin_but_no_density() {
        let one = Quartiles::of(&[3.0]);
        assert_eq!((one.q1, one.q3, one.whiskers, one.interval), (3.0, 3.0, (3.0, 3.0), None));
        assert_eq!(edges(&[3.0], None), [2.5, 3.5]);
        assert_eq!([density(&[3.0]), density(&[3.0, 3.0])], [None, None]);
    }

    #[test]
    fn every_number_is_in_a_bin() {
        let sorted: Vec<f64> = (0..100).map(|i| f64::from(i) * 0.1).collect();
        for bins in [1, 7, 10, 60] {
            let edges = edges(&sorted, Some(bins));
            assert_eq!(edges.len(), bins + 1);
            assert_eq!(counts(&sorted, &edges).iter().sum::<usize>(), 100);
        }
    }
}
