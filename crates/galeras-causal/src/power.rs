//! Power: the smallest effect that a design would detect, and the size of a planned study.
//!
//! The variance of an effect has up to three sources: differences between units, between clusters
//! of units, and between samples of one unit under one arm, as a pilot estimates them ([`pilot`]).

#[cfg(test)]
mod tests;

use crate::column::{check_column, code_count};
use crate::refusal::{at_least, require};
use crate::refute::dense;
use crate::root::crossing;
use crate::tail::{noncentral_t_lower, noncentral_t_upper, over_deviation_to};
use crate::{ColumnRef, Refusal, tail};

/// The gain in power by pairing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DetectableEffects {
    /// The minimum detectable effect of the paired design, in units of the outcome.
    pub paired: f64,
    /// The minimum detectable effect if the pairing were ignored.
    pub unpaired: f64,
    /// The factor by which an unpaired design needs more units: the ratio of the variances.
    pub variance_ratio: f64,
}

/// The smallest true effect for which a two-sided test at level `alpha` rejects on its side with
/// probability `power`, by the normal approximation: (z(1 - alpha/2) + z(power)) x standard error
/// (Bloom 1995, Evaluation Review 19:547). Refuses a standard error that is not above zero and
/// finite, or levels other than 0 < `alpha` < `power` < 1.
pub fn minimum_detectable(standard_error: f64, alpha: f64, power: f64) -> Result<f64, Refusal> {
    let usable = standard_error > 0.0 && standard_error.is_finite();
    require(usable, "the standard error is not above zero and finite")?;
    check_levels(alpha, power)?;
    // The lower tail keeps its digits if 1 - alpha/2 would be rounded to 1.
    let effect =
        (tail::normal_quantile(power) - tail::normal_quantile(alpha / 2.0)) * standard_error;
    require(effect.is_finite(), "the minimum detectable effect is not finite")?;
    Ok(effect)
}

/// Compares the minimum detectable effects with and without the pairing, from the standard errors
/// of the mean paired difference and of the difference in means (Welch).
pub fn paired_gain(
    paired: f64,
    unpaired: f64,
    alpha: f64,
    power: f64,
) -> Result<DetectableEffects, Refusal> {
    let variance_ratio = (unpaired / paired).powi(2);
    let effects = DetectableEffects {
        paired: minimum_detectable(paired, alpha, power)?,
        unpaired: minimum_detectable(unpaired, alpha, power)?,
        variance_ratio,
    };
    require(variance_ratio.is_finite(), "the ratio of the variances is not finite")?;
    Ok(effects)
}

/// The tolerance of a power: the smallest effect of a design must need the units of this design.
const ROUNDING: f64 = 1e-11;

/// Standard deviations, in units of the outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct VarianceComponents {
    /// Of the effect between units (within a cluster); of outcomes under one arm if unpaired.
    pub unit: f64,
    /// Of the effect between clusters; zero without clusters.
    pub cluster: f64,
    /// Between samples of one unit under one arm.
    pub sample: f64,
}

/// A study that compares two arms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StudyDesign {
    /// The data points, each under both arms, or half of them under each if unpaired.
    pub units: f64,
    /// The answers to each data point under an arm, 1 or more.
    pub samples: f64,
    /// Each unit is observed under both arms.
    pub paired: bool,
    /// The units of a cluster, 1 or more; `None` without clusters.
    pub cluster_size: Option<f64>,
}

impl StudyDesign {
    /// The standard error of the effect, in units of the outcome. Paired: the root of
    /// (cluster² / G + (unit² + 2 sample² / r) / n) for n units in G clusters with r samples;
    /// unpaired, with n / 2 units in each arm: of 4 (unit² + sample² / r) / n.
    pub fn standard_error(&self, parts: &VarianceComponents) -> f64 {
        let square = |x: f64| x * x;
        let noise = square(parts.sample) / self.samples;
        if !self.paired {
            return (4.0 * (square(parts.unit) + noise) / self.units).sqrt();
        }
        let clusters = match self.cluster_size {
            Some(size) => square(parts.cluster) * size,
            None => 0.0,
        };
        ((clusters + square(parts.unit) + 2.0 * noise) / self.units).sqrt()
    }

    /// The degrees of freedom: clusters or units minus one, or unpaired units minus two.
    pub fn degrees(&self) -> f64 {
        match (self.paired, self.cluster_size) {
            (true, Some(size)) => self.units / size - 1.0,
            (true, None) => self.units - 1.0,
            (false, _) => self.units - 2.0,
        }
    }

    /// The probability that a two-sided test at the level `alpha` finds `effect`; NaN without a
    /// degree of freedom. Equals statsmodels' `TTestPower` and `TTestIndPower`.
    pub fn power(&self, parts: &VarianceComponents, effect: f64, alpha: f64) -> f64 {
        t_power(effect / self.standard_error(parts), self.degrees(), alpha)
    }

    /// The probability that two one-sided tests at the level `alpha` show that the effect is
    /// between -`margin` and `margin` if its true value is `effect`.
    pub fn equivalence_power(
        &self,
        parts: &VarianceComponents,
        effect: f64,
        margin: f64,
        alpha: f64,
    ) -> f64 {
        let error = self.standard_error(parts);
        equivalence_power(effect / error, margin / error, self.degrees(), alpha)
    }

    /// The smallest effect that is found with probability `power`. Refuses levels other than 0 <
    /// `alpha` < `power` < 1, no degree of freedom, or a standard error of zero.
    pub fn detectable(
        &self,
        parts: &VarianceComponents,
        alpha: f64,
        power: f64,
    ) -> Result<f64, Refusal> {
        check_levels(alpha, power)?;
        let (error, degrees) = (self.standard_error(parts), self.degrees());
        let units = self.units;
        let reason =
            format!("{units} units leave no degree of freedom, or their effects do not vary");
        require(degrees >= 1.0 && error > 0.0 && error.is_finite(), reason)?;
        let start = tail::normal_quantile(power) - tail::normal_quantile(0.5 * alpha);
        let shift = crossing(start, 0.5, |shift| t_power(shift, degrees, alpha) - power);
        Ok(shift * error)
    }

    /// The fewest units (whole clusters; an even number if they are unpaired) with which `effect`
    /// is found with probability `power`. Errors are those of [`StudyDesign::detectable`], an
    /// `effect` of zero, and that more than 1e9 units are needed.
    pub fn units_needed(
        &self,
        parts: &VarianceComponents,
        effect: f64,
        alpha: f64,
        power: f64,
    ) -> Result<f64, Refusal> {
        check_levels(alpha, power)?;
        let usable = effect.abs() > 0.0 && effect.is_finite();
        require(usable, "an effect of zero is never detected")?;
        self.fewest(|design| design.power(parts, effect, alpha) >= power - ROUNDING)
    }

    /// The fewest units with which equivalence within -`margin` and `margin` is shown with
    /// probability `power` if the effect is `effect`. Errors are those of
    /// [`StudyDesign::units_needed`], and an effect that is not within the margin.
    pub fn units_for_equivalence(
        &self,
        parts: &VarianceComponents,
        effect: f64,
        margin: f64,
        alpha: f64,
        power: f64,
    ) -> Result<f64, Refusal> {
        check_levels(alpha, power)?;
        let reason = format!("an effect of {effect} does not lie within the margin of {margin}");
        require(effect.abs() < margin, reason)?;
        self.fewest(|design| {
            design.equivalence_power(parts, effect, margin, alpha) >= power - ROUNDING
        })
    }

    /// The fewest units for which `enough` holds; it must hold for all larger numbers.
    fn fewest(&self, enough: impl Fn(&StudyDesign) -> bool) -> Result<f64, Refusal> {
        // Counted in clusters, pairs, or one unit in each arm.
        let piece = match (self.paired, self.cluster_size) {
            (true, Some(size)) => size,
            (true, None) => 1.0,
            (false, _) => 2.0,
        };
        let with = |pieces: f64| enough(&StudyDesign { units: pieces * piece, ..*self });
        let (mut low, mut high) = (1.0, 2.0);
        while !with(high) {
            (low, high) = (high, 2.0 * high);
            require(high * piece <= 1e9, "more than a billion units are needed")?;
        }
        while high - low > 1.0 {
            let middle = (0.5 * (low + high)).floor();
            if with(middle) { high = middle } else { low = middle }
        }
        Ok(high * piece)
    }
}

fn check_levels(alpha: f64, power: f64) -> Result<(), Refusal> {
    let reason = format!(
        "a test at level {alpha} with power {power} does not exist: \
         the level must be above 0 and below the power, and the power below 1"
    );
    require(alpha > 0.0 && alpha < power && power < 1.0, reason)
}

/// The power of a two-sided t test whose true effect is `shift` standard errors.
fn t_power(shift: f64, degrees: f64, alpha: f64) -> f64 {
    if degrees.is_nan() || degrees < 1.0 {
        return f64::NAN;
    }
    let bound = tail::t_quantile(1.0 - 0.5 * alpha, degrees);
    noncentral_t_upper(bound, degrees, shift) + noncentral_t_lower(-bound, degrees, shift)
}

/// The power of two one-sided t tests; all in standard errors. Both share the standard deviation S:
/// given S the estimate must be within margin - t S of zero (D. B. Owen 1965).
fn equivalence_power(shift: f64, margin: f64, degrees: f64, alpha: f64) -> f64 {
    if degrees.is_nan() || degrees < 1.0 {
        return f64::NAN;
    }
    let bound = tail::t_quantile(1.0 - alpha, degrees);
    // Beyond this deviation no mean is within the margin by both tests.
    over_deviation_to(degrees, bound, margin / bound, |s| {
        let room = margin - bound * s;
        tail::normal_upper(-room - shift) - tail::normal_upper(room - shift)
    })
}

/// The result of a pilot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pilot {
    /// Mean of treatment minus control, in units of the outcome.
    pub effect: f64,
    /// The standard deviations.
    pub components: VarianceComponents,
    /// The units with rows under both arms, or the rows if there are no units.
    pub units: usize,
    /// The clusters, if given.
    pub clusters: Option<usize>,
    /// The mean number of rows of a unit under an arm (harmonic); 1 without units.
    pub samples: f64,
}

/// The variance components of a pilot by the analysis of variance (Searle, Casella and McCulloch,
/// "Variance Components", 1992, chapter 3), negative ones as zero. Without `units`, rows are
/// unpaired units, and `unit` is the pooled standard deviation of the arms. Refuses a unit that is
/// in two clusters.
pub fn pilot(
    treated: &[bool],
    outcome: &[f64],
    units: Option<&[u32]>,
    clusters: Option<&[u32]>,
) -> Result<Pilot, Refusal> {
    check_column(outcome, ColumnRef::Outcome, treated.len())?;
    let Some(units) = units else { return unpaired_pilot(treated, outcome) };
    let codes = dense(units.iter().copied());
    let count = code_count(&codes);
    let mut cells = vec![[(0.0, 0.0); 2]; count];
    for (row, unit) in codes.iter().enumerate() {
        let cell = &mut cells[*unit as usize][usize::from(treated[row])];
        cell.0 += outcome[row];
        cell.1 += 1.0;
    }
    let mean = |(sum, n): (f64, f64)| sum / n;
    let is_complete = |cell: &[(f64, f64); 2]| cell[0].1 > 0.0 && cell[1].1 > 0.0;
    let (mut squares, mut freedom) = (0.0, 0.0);
    let mut cluster_of = vec![0u32; count];
    for (row, unit) in codes.iter().enumerate() {
        let cell = &cells[*unit as usize];
        let own = cell[usize::from(treated[row])];
        squares += (outcome[row] - mean(own)).powi(2);
        freedom += 1.0 - 1.0 / own.1;
        if let Some(clusters) = clusters {
            cluster_of[*unit as usize] = clusters[row];
        }
    }
    let mut pairs = codes.iter().zip(clusters.unwrap_or_default());
    let within = pairs.all(|(unit, cluster)| cluster_of[*unit as usize] == *cluster);
    require(within, "a unit has rows in two clusters: units must lie within one")?;
    let kept: Vec<usize> = (0..count).filter(|unit| is_complete(&cells[*unit])).collect();
    let n = kept.len();
    at_least("units under both arms", n, 2)?;
    // Each cell of one row adds a rounding error of zero degrees of freedom.
    let noise = if freedom > 0.5 { squares / freedom } else { 0.0 };
    let of = |unit: &usize| mean(cells[*unit][1]) - mean(cells[*unit][0]);
    let differences: Vec<f64> = kept.iter().map(of).collect();
    let effect = differences.iter().sum::<f64>() / n as f64;
    // The mean of 1 / r over units and arms.
    let inverse = kept.iter().map(|unit| 1.0 / cells[*unit][0].1 + 1.0 / cells[*unit][1].1);
    let inverse = inverse.sum::<f64>() / (2.0 * n as f64);
    let about = |centre: f64, values: &[f64]| -> f64 {
        values.iter().map(|value| (value - centre).powi(2)).sum()
    };
    let total = about(effect, &differences);
    let (within, between, groups) = match clusters {
        None => (total / (n as f64 - 1.0), 0.0, None),
        Some(_) => {
            let codes = dense(kept.iter().map(|unit| cluster_of[*unit]));
            let found = code_count(&codes);
            at_least("clusters", found, 2)?;
            let mut sums = vec![(0.0, 0.0); found];
            for (code, difference) in codes.iter().zip(&differences) {
                sums[*code as usize].0 += difference;
                sums[*code as usize].1 += 1.0;
            }
            let (n, k) = (n as f64, found as f64);
            let between: f64 = sums.iter().map(|(sum, m)| m * (sum / m - effect).powi(2)).sum();
            let size = (n - sums.iter().map(|(_, m)| m * m).sum::<f64>() / n) / (k - 1.0);
            let within = if n > k { (total - between).max(0.0) / (n - k) } else { 0.0 };
            let between = ((between / (k - 1.0) - within) / size).max(0.0);
            (within, between, Some(found))
        }
    };
    let components = VarianceComponents {
        unit: (within - 2.0 * noise * inverse).max(0.0).sqrt(),
        cluster: between.sqrt(),
        sample: noise.sqrt(),
    };
    Ok(Pilot { effect, components, units: n, clusters: groups, samples: 1.0 / inverse })
}

fn unpaired_pilot(treated: &[bool], outcome: &[f64]) -> Result<Pilot, Refusal> {
    let mut arms = [(0.0, 0.0); 2];
    for (treated, outcome) in treated.iter().zip(outcome) {
        let arm = &mut arms[usize::from(*treated)];
        arm.0 += outcome;
        arm.1 += 1.0;
    }
    at_least("control rows", arms[0].1 as usize, 2)?;
    at_least("treated rows", arms[1].1 as usize, 2)?;
    let means = arms.map(|(sum, n)| sum / n);
    let rows = treated.iter().zip(outcome);
    let squares: f64 = rows.map(|(t, y)| (y - means[usize::from(*t)]).powi(2)).sum();
    let unit = (squares / (treated.len() as f64 - 2.0)).sqrt();
    Ok(Pilot {
        effect: means[1] - means[0],
        components: VarianceComponents { unit, cluster: 0.0, sample: 0.0 },
        units: treated.len(),
        clusters: None,
        samples: 1.0,
    })
}
