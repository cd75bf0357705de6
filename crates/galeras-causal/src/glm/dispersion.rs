//! The dispersion of negative binomial counts (NB2) by maximum likelihood, given their means.
//!
//! With whole counts the gamma functions of the likelihood are products: the sum of ln(1 + a j) over
//! j < y is ln Γ(y + 1/a) - ln Γ(1/a) + y ln a. So each j needs one logarithm, times the number of
//! counts above it, and nothing cancels however small the dispersion is.

use crate::Refusal;
use crate::tail::log1p_minus;

/// Larger counts are refused: the sum has a term for each whole number below them.
const LARGEST_COUNT: f64 = 1e7;
/// Steps after which a search is given up.
const MOST_STEPS: usize = 200;

/// How many counts are above each whole number.
pub(super) struct CountTails {
    above: Vec<f64>,
}

impl CountTails {
    /// # Errors
    /// A count is not a whole number from 0 to 10 million.
    pub(super) fn new(counts: &[f64]) -> Result<Self, Refusal> {
        let usable = |y: &f64| *y >= 0.0 && *y <= LARGEST_COUNT && y.fract() == 0.0;
        if let Some(y) = counts.iter().find(|y| !usable(y)) {
            return Err(Refusal::Other(format!(
                "an outcome is {y}: a negative binomial count is a whole number from 0 to 10 \
                 million"
            )));
        }
        let largest = counts.iter().copied().fold(0.0, f64::max) as usize;
        let mut above = vec![0.0; largest + 1];
        for y in counts {
            above[*y as usize] += 1.0;
        }
        // From counts equal to j to counts above j.
        let mut more = 0.0;
        for cell in above.iter_mut().rev() {
            let equal = *cell;
            *cell = more;
            more += equal;
        }
        Ok(Self { above })
    }

    /// The first and second derivative of the log-likelihood by the dispersion `a`.
    fn derivatives(&self, a: f64, counts: &[f64], means: &[f64]) -> (f64, f64) {
        let (mut first, mut second) = (0.0, 0.0);
        for (j, above) in self.above.iter().enumerate() {
            let j = j as f64;
            let share = j / (1.0 + a * j);
            first += above * share;
            second -= above * share * share;
        }
        for (block_y, block_mu) in counts.chunks(256).zip(means.chunks(256)) {
            let (mut part, mut bend) = (0.0, 0.0);
            for (y, mu) in block_y.iter().zip(block_mu) {
                let x = a * mu;
                let share = mu / (1.0 + x);
                // ln(1 + x) - x / (1 + x), without cancelling the first order.
                let rest = log1p_minus(x) + x * x / (1.0 + x);
                part += rest / (a * a) - y * share;
                bend += -2.0 * rest / (a * a * a) + share * share * (y + 1.0 / a);
            }
            first += part;
            second += bend;
        }
        (first, second)
    }

    /// The dispersion of the greatest likelihood, above zero.
    ///
    /// # Errors
    /// Counts that vary no more than Poisson's: the maximum is at zero.
    pub(super) fn maximum(&self, counts: &[f64], means: &[f64]) -> Result<f64, Refusal> {
        // At zero the derivative is half the sum of squared residuals less the sum of counts.
        let excess: f64 =
            counts.iter().zip(means).map(|(y, mu)| (y - mu) * (y - mu) - y).sum::<f64>();
        if excess <= 0.0 {
            return Err(Refusal::Other(
                "the counts vary no more than Poisson's, so that the dispersion of the negative \
                 binomial is zero: use `poisson`"
                    .into(),
            ));
        }
        // A moment estimate to start from, then Newton's method on the logarithm, kept between
        // dispersions at which the likelihood rises and falls.
        let squares: f64 = means.iter().map(|mu| mu * mu).sum();
        let mut log_a = (excess / squares).ln();
        let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
        for _ in 0..MOST_STEPS {
            let a = log_a.exp();
            let (first, second) = self.derivatives(a, counts, means);
            if first > 0.0 {
                low = log_a
            } else {
                high = log_a
            }
            let (slope, bend) = (a * first, a * first + a * a * second);
            let mut step = if bend < 0.0 { -slope / bend } else { slope.signum() };
            step = step.clamp(-3.0, 3.0);
            let mut next = log_a + step;
            if next <= low || next >= high {
                next = 0.5 * (low + high);
            }
            if !next.is_finite() || next.abs() > 100.0 {
                break;
            }
            if (next - log_a).abs() <= 1e-14 * next.abs().max(1.0) {
                return Ok(next.exp());
            }
            log_a = next;
        }
        if high - low <= 1e-9 {
            return Ok(log_a.exp());
        }
        Err(Refusal::Other("the dispersion of the negative binomial did not converge".into()))
    }
}
