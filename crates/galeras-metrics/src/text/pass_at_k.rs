//! pass@k, the probability that one of k answers is right, and pass^k, that all of them are.

/// The probability that at least one of `k` answers is right, if `c` of `n` answers were: the
/// unbiased estimate of Chen et al. 2021 ("Evaluating Large Language Models Trained on Code"), 1 -
/// C(n-c, k) / C(n, k), computed as 1 - prod_{i=n-c+1..n} (1 - k/i) to avoid overflow. Between 0
/// and 1; 1 if fewer than `k` answers were wrong.
///
/// `None` unless c <= n and 0 < k <= n. Time is O(min(c, k)).
pub fn pass_at_k(n: u64, c: u64, k: u64) -> Option<f64> {
    Some(1.0 - none_drawn(n, c, k)?)
}

/// The probability that all of `k` answers are right, if `c` of `n` answers were: the unbiased
/// estimate C(c, k) / C(n, k) of Yao et al. 2024 ("τ-bench"), as the probability that none of the
/// n - c wrong ones is drawn. Between 0 and 1; 0 if fewer than `k` answers were right.
///
/// `None` unless c <= n and 0 < k <= n. Time is O(min(n - c, k)).
pub fn pass_hat_k(n: u64, c: u64, k: u64) -> Option<f64> {
    none_drawn(n, n.checked_sub(c)?, k)
}

/// The probability that `k` of `n` answers, drawn without replacement, have none of `marked` ones:
/// C(n - marked, k) / C(n, k).
fn none_drawn(n: u64, marked: u64, k: u64) -> Option<f64> {
    if marked > n || k == 0 || k > n {
        return None;
    }
    if n - marked < k {
        return Some(0.0);
    }
    // It is symmetric in `marked` and k.
    let (factors, less) = if marked <= k { (marked, k) } else { (k, marked) };
    Some((n - factors + 1..=n).map(|i| 1.0 - less as f64 / i as f64).product())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ALL, assert_close};
    use super::*;

    #[test]
    fn estimates_are_those_of_the_product() {
        for row in ALL["pass_at_k"].as_array().unwrap() {
            let [n, c, k] = [0, 1, 2].map(|at| row[at].as_u64().unwrap());
            let estimate = pass_at_k(n, c, k).unwrap();
            assert_close(estimate, row[3].as_f64().unwrap(), row);
            assert!((0.0..=1.0).contains(&estimate));
        }
    }

    #[test]
    fn known_estimates() {
        for (n, c, k, expected) in [
            (1, 0, 1, 0.0),
            (1, 1, 1, 1.0),
            (10, 8, 5, 1.0),
            (10, 3, 1, 0.3),
            (10, 3, 5, 11.0 / 12.0),
            (200, 13, 100, 0.9999194971988055),
        ] {
            assert_close(pass_at_k(n, c, k).unwrap(), expected, &(n, c, k));
        }
        for (n, c, k) in [(3, 4, 1), (3, 1, 0), (3, 1, 4), (0, 0, 1)] {
            assert_eq!(pass_at_k(n, c, k), None, "{n} {c} {k}");
        }
        for (n, c, k, expected) in [
            (1, 0, 1, 0.0),
            (1, 1, 1, 1.0),
            (8, 8, 8, 1.0),
            (8, 7, 8, 0.0),
            (10, 3, 1, 3.0 / 10.0),
            (10, 3, 2, 1.0 / 15.0),
            (10, 8, 5, 2.0 / 9.0),
            (10, 3, 5, 0.0),
            // C(150, 100) / C(200, 100)
            (200, 150, 100, 2.222_969_751_207_861_7e-19),
        ] {
            assert_close(pass_hat_k(n, c, k).unwrap(), expected, &(n, c, k));
        }
        for (n, c, k) in [(3, 4, 1), (3, 1, 0), (3, 1, 4), (0, 0, 1)] {
            assert_eq!(pass_hat_k(n, c, k), None, "{n} {c} {k}");
        }
        assert!(pass_hat_k(1 << 60, (1 << 60) - 3, 1 << 59).unwrap() < 0.2);
        // Huge counts take no time.
        assert!(pass_at_k(u64::MAX, u64::MAX / 2, 10).unwrap() > 0.99);
        assert!(pass_at_k(1 << 60, 3, 1 << 59).unwrap() > 0.8);
    }
}
