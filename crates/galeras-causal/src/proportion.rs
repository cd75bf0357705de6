//! Intervals of one proportion, and of a mean of values from 0 to 1, that stay within 0 and 1. The
//! arguments are not checked.

use crate::root::falling_root;
use crate::tail::{f_upper, normal_quantile, t_quantile};

/// Wilson's score interval of level `1 - alpha` for a proportion of `n` independent rows (Wilson
/// 1927, JASA 22:209). Equals statsmodels' `proportion_confint(method="wilson")`.
pub fn wilson_interval(proportion: f64, n: f64, alpha: f64) -> (f64, f64) {
    let z = normal_quantile(1.0 - alpha / 2.0);
    let share = z * z / n;
    let centre = proportion + share / 2.0;
    let half = (share * (proportion * (1.0 - proportion) + share / 4.0)).sqrt();
    let end = |end: f64| (end / (1.0 + share)).clamp(0.0, 1.0);
    let low = if proportion == 0.0 { 0.0 } else { end(centre - half) };
    let high = if proportion == 1.0 { 1.0 } else { end(centre + half) };
    (low, high)
}

/// The interval of level `1 - alpha` for a mean between 0 and 1, by Student's t on the scale of its
/// logit, where the standard error is that of the delta method. Equals that of statsmodels'
/// `GLM(family=Binomial())` on a constant with a robust covariance and `use_t=True`.
pub fn logit_interval(mean: f64, standard_error: f64, degrees: f64, alpha: f64) -> (f64, f64) {
    let half = t_quantile(1.0 - alpha / 2.0, degrees) * standard_error / (mean * (1.0 - mean));
    let odds = mean / (1.0 - mean);
    let end = |odds: f64| if odds.is_finite() { odds / (1.0 + odds) } else { 1.0 };
    (end(odds * (-half).exp()), end(odds * half.exp()))
}

/// The interval of level `1 - alpha` for a proportion of `n` rows in dependent clusters: that of its
/// logit, with the cluster-robust standard error, but no less than that of independent rows. It
/// allows for few clusters, whose shares may agree by chance. Where no row or every row has the
/// outcome, nothing tells how much the rows of a cluster depend on each other: each cluster then
/// counts as one row of Wilson's interval.
pub fn clustered_interval(
    proportion: f64,
    standard_error: f64,
    n: f64,
    clusters: f64,
    alpha: f64,
) -> (f64, f64) {
    let variance = proportion * (1.0 - proportion);
    if variance <= 0.0 {
        return wilson_interval(proportion, clusters, alpha);
    }
    let error = standard_error.max((variance / n).sqrt());
    logit_interval(proportion, error, clusters - 1.0, alpha)
}

/// Clopper and Pearson's exact interval of level `1 - alpha` for a proportion of `n` independent rows
/// (Biometrika 1934, 26:404): it covers at least that often, for every proportion. `n` need not
/// be whole. Equals SciPy's `binomtest(…).proportion_ci(method="exact")`.
pub fn exact_interval(proportion: f64, n: f64, alpha: f64) -> (f64, f64) {
    let (successes, failures) = (proportion * n, (1.0 - proportion) * n);
    // The tails of the beta distribution of a and b, as those of F.
    let upper = |x: f64, a: f64, b: f64| f_upper(b * x / (a * (1.0 - x)), 2.0 * a, 2.0 * b);
    let lower = |x: f64, a: f64, b: f64| f_upper(a * (1.0 - x) / (b * x), 2.0 * b, 2.0 * a);
    let tail = 0.5 * alpha;
    let low = match proportion > 0.0 {
        true => falling_root(0.0, 1.0, |x| tail - lower(x, successes, failures + 1.0)),
        false => 0.0,
    };
    let high = match proportion < 1.0 {
        true => falling_root(0.0, 1.0, |x| upper(x, successes + 1.0, failures) - tail),
        false => 1.0,
    };
    (low, high)
}

/// Korn and Graubard's interval of level `1 - alpha` for a mean of `n` values from 0 to 1 in dependent
/// clusters (Survey Methodology 1998, 24:193): the exact one of as many independent rows as would have
/// this standard error, adjusted for the degrees of freedom, and no more than there are. Values
/// between 0 and 1 vary less than zeros and ones, for which the interval allows. Where all values are
/// 0 or all are 1, each cluster counts as one row, as in [`clustered_interval`]. Equals R's
/// `survey::svyciprop(method = "beta")`, except for that maximum.
pub fn exact_clustered_interval(
    mean: f64,
    standard_error: f64,
    n: f64,
    clusters: f64,
    alpha: f64,
) -> (f64, f64) {
    let variance = mean * (1.0 - mean);
    if variance <= 0.0 {
        return exact_interval(mean, clusters, alpha);
    }
    let reach = |degrees: f64| t_quantile(1.0 - 0.5 * alpha, degrees);
    let fewer = reach(n - 1.0) / reach(clusters - 1.0);
    let effective = variance / (standard_error * standard_error) * fewer * fewer;
    exact_interval(mean, effective.min(n), alpha)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::near;

    #[track_caller]
    fn equal(found: (f64, f64), low: f64, high: f64) {
        near(found.0, low, 1e-9, 1e-12);
        near(found.1, high, 1e-9, 1e-12);
    }

    #[test]
    fn wilson_intervals_equal_those_of_statsmodels_and_stay_within_0_and_1() {
        equal(wilson_interval(1.0, 20.0, 0.05), 0.8388748419471804, 1.0);
        equal(wilson_interval(0.95, 20.0, 0.05), 0.7638688065532577, 0.9911185511992044);
        equal(wilson_interval(0.0, 7.0, 0.1), 0.0, 0.27876269545254223);
        equal(wilson_interval(0.3, 10.0, 0.05), 0.10779126740630104, 0.6032218525388546);
        equal(wilson_interval(0.499, 1000.0, 0.01), 0.4584136770279477, 0.5395995053018592);
        for n in 1..200 {
            for x in 0..=n {
                let (n, p) = (f64::from(n), f64::from(x) / f64::from(n));
                let (low, high) = wilson_interval(p, n, 0.05);
                assert!([0.0, low, p, high, 1.0].is_sorted(), "{x} of {n}");
            }
        }
    }

    #[test]
    fn logit_intervals_equal_those_of_a_regression_on_a_constant() {
        // Twelve shares in four clusters.
        equal(
            logit_interval(0.8750000000000002, 0.0701354509608478, 3.0, 0.1),
            0.6075065540735052,
            0.9693792244004482,
        );
        let (low, high) = logit_interval(1.0 - 1e-16, 0.5, 3.0, 0.05);
        assert!(low >= 0.0 && high == 1.0);
    }

    #[test]
    fn exact_intervals_equal_those_of_scipy_and_contain_the_proportion() {
        equal(exact_interval(1.0, 20.0, 0.05), 0.831_566_529_016_914_5, 1.0);
        equal(exact_interval(0.95, 20.0, 0.05), 0.751_267_237_227_972_3, 0.998_734_910_502_044);
        equal(exact_interval(0.0, 7.0, 0.1), 0.0, 0.348_163_655_131_161_1);
        equal(exact_interval(0.3, 10.0, 0.05), 0.066_739_511_177_734_47, 0.652_452_850_060_008);
        equal(
            exact_interval(0.499, 1000.0, 0.01),
            0.457_857_460_376_805_36,
            0.540_152_191_475_120_3,
        );
        equal(exact_interval(1.0, 1.0, 0.05), 0.025, 1.0);
        for n in 1..50 {
            for x in 0..=n {
                let (n, p) = (f64::from(n), f64::from(x) / f64::from(n));
                let (low, high) = exact_interval(p, n, 0.05);
                assert!([0.0, low, p, high, 1.0].is_sorted(), "{x} of {n}");
            }
        }
        // The least coverage over all proportions is at least the level (scores reach 0.84 here).
        let n = 10_u32;
        let ends: Vec<(f64, f64)> =
            (0..=n).map(|x| exact_interval(f64::from(x) / 10.0, 10.0, 0.05)).collect();
        for at in 1..1000 {
            let p = f64::from(at) / 1000.0;
            let mut chance = (1.0 - p).powi(10);
            let mut covered = 0.0;
            for (x, (low, high)) in (0..=n).zip(&ends) {
                if *low <= p && p <= *high {
                    covered += chance;
                }
                chance *= f64::from(n - x) / f64::from(x + 1) * p / (1.0 - p);
            }
            assert!(covered >= 0.95, "{covered} at {p}");
        }
    }

    #[test]
    fn exact_intervals_of_clusters_have_their_effective_number_of_rows() {
        // Forty shares in four clusters: SciPy's beta distribution with 11.4 rows.
        equal(
            exact_clustered_interval(0.875, 0.070_135_450_960_847_8, 40.0, 4.0, 0.1),
            0.600_835_391_543_718_8,
            0.986_399_171_371_756_5,
        );
        let found = exact_clustered_interval(0.5, 0.0, 20.0, 10.0, 0.05);
        assert_eq!(found, exact_interval(0.5, 20.0, 0.05));
        let found = exact_clustered_interval(1.0, 0.0, 20.0, 10.0, 0.05);
        assert_eq!(found, exact_interval(1.0, 10.0, 0.05));
    }

    #[test]
    fn clusters_without_a_difference_are_not_taken_for_certainty() {
        // Ten clusters, each with one success of two.
        let found = clustered_interval(0.5, 0.0, 20.0, 10.0, 0.05);
        let independent = logit_interval(0.5, (0.25_f64 / 20.0).sqrt(), 9.0, 0.05);
        assert_eq!(found, independent);
        assert_eq!(
            clustered_interval(1.0, 0.0, 20.0, 10.0, 0.05),
            wilson_interval(1.0, 10.0, 0.05)
        );
    }
}
