//! Refuters: changed data sets for which an estimate should vanish or stay.
//!
//! Every draw is a hash of a number of the row (or unit), which comes from its id and the seed, of
//! the refuter and of the simulation. It does not depend on order, threads or other rows. The
//! caller refits the estimate.

#[cfg(test)]
mod tests;

use crate::column::code_count;
use crate::linear::ClusterRows;
use crate::tail;

/// A check that refits an estimate on changed data. The numbers separate the draws of one refuter
/// from those of others. Results depend on them: they never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refuter {
    /// The treatment is permuted within units, or over clusters in one arm: the effect should
    /// vanish.
    Placebo = 1,
    /// A covariate of standard normal noise is added: the effect should stay.
    RandomCommonCause = 2,
    /// A share of the units (rows without units) is kept: the effect should stay.
    Subset = 3,
    /// Clusters (units, rows) are drawn with replacement: the effect should stay.
    Bootstrap = 4,
}

impl Refuter {
    /// Its name in tables, in snake case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Placebo => "placebo",
            Self::RandomCommonCause => "random_common_cause",
            Self::Subset => "subset",
            Self::Bootstrap => "bootstrap",
        }
    }
}

/// The n rows of an estimate, in the order of their keys. Every slice has one entry for each row.
#[derive(Clone, Copy, Debug)]
pub struct RefutationDesign<'a> {
    /// The arm of each row.
    pub treated: &'a [bool],
    /// The unit of each row, as a code from 0 without gaps.
    pub units: Option<&'a [u32]>,
    /// The cluster of each row, as a code from 0 without gaps.
    pub clusters: Option<&'a [u32]>,
    /// A random number of each row, from the seed and its id.
    pub rows: &'a [u64],
    /// A random number of the unit of each row, from the seed and its id.
    pub unit_numbers: Option<&'a [u64]>,
}

/// A changed data set.
#[derive(Clone, Debug, PartialEq)]
pub struct Resample {
    /// The positions of its rows.
    pub rows: Vec<u32>,
    /// The arm of each of them.
    pub treated: Vec<bool>,
    /// Their units; copies of a row that was drawn twice get different units.
    pub units: Option<Vec<u32>>,
    /// Their clusters, likewise.
    pub clusters: Option<Vec<u32>>,
    /// The added covariate.
    pub cause: Option<Vec<f64>>,
}

/// Draws data sets from a [`RefutationDesign`].
pub struct Resampler<'a> {
    design: RefutationDesign<'a>,
    units: ClusterRows,
    /// Rows by the groups that a bootstrap draws.
    drawn: ClusterRows,
    /// There are clusters but no units, and each cluster lies in one arm.
    treats_clusters: bool,
}

impl<'a> Resampler<'a> {
    /// A resampler of the rows of `design`.
    ///
    /// # Panics
    /// If a slice of `design` has fewer entries than `treated`, here or in [`Resampler::resample`].
    pub fn new(design: RefutationDesign<'a>) -> Self {
        let by_code = |codes: Option<&[u32]>| {
            codes.map_or_else(|| ClusterRows::singletons(design.treated.len()), ClusterRows::new)
        };
        let (units, drawn) = (by_code(design.units), by_code(design.clusters.or(design.units)));
        let in_one_arm =
            |rows: &[usize]| rows.iter().all(|row| design.treated[*row] == design.treated[rows[0]]);
        let treats_clusters =
            design.units.is_none() && design.clusters.is_some() && drawn.members().all(in_one_arm);
        Self { design, units, drawn, treats_clusters }
    }

    /// The data set of one simulation of a refuter, numbered from 0, as in DoWhy (Sharma and
    /// Kiciman 2020, arXiv:2011.04216). `fraction`, from 0 to 1, is the share of the units that
    /// [`Refuter::Subset`] keeps, rounded to whole units.
    pub fn resample(&self, refuter: Refuter, simulation: usize, fraction: f64) -> Resample {
        let key = draw_key(refuter, simulation);
        match refuter {
            Refuter::Placebo => self.placebo(key),
            Refuter::RandomCommonCause => {
                let cause = self.design.rows.iter().map(|number| normal(*number ^ key)).collect();
                Resample { cause: Some(cause), ..self.unchanged() }
            }
            Refuter::Subset => self.subset(key, fraction),
            Refuter::Bootstrap => self.bootstrap(key),
        }
    }

    /// The unchanged data set, for comparison.
    pub fn unchanged(&self) -> Resample {
        Resample {
            rows: (0..self.design.treated.len() as u32).collect(),
            treated: self.design.treated.to_vec(),
            units: self.design.units.map(<[u32]>::to_vec),
            clusters: self.design.clusters.map(<[u32]>::to_vec),
            cause: None,
        }
    }

    /// Treats as many clusters, or rows of each unit, as before: those with the smallest draws.
    fn placebo(&self, key: u64) -> Resample {
        let design = &self.design;
        let mut treated = vec![false; design.treated.len()];
        let mut permute = |parts: Vec<&[usize]>| {
            let count = parts.iter().filter(|rows| design.treated[rows[0]]).count();
            for part in smallest(parts.iter().map(|rows| design.rows[rows[0]]), key, count) {
                parts[part].iter().for_each(|row| treated[*row] = true);
            }
        };
        let all: Vec<usize> = (0..design.treated.len()).collect();
        if self.treats_clusters {
            permute(self.drawn.members().collect());
        } else if design.units.is_some() {
            self.units.members().for_each(|rows| permute(rows.chunks(1).collect()));
        } else {
            permute(all.chunks(1).collect());
        }
        Resample { treated, ..self.unchanged() }
    }

    fn subset(&self, key: u64, fraction: f64) -> Resample {
        let numbers = self.design.unit_numbers.unwrap_or(self.design.rows);
        let kept = (fraction * self.units.count() as f64).round() as usize;
        let units = smallest(self.units.members().map(|rows| numbers[rows[0]]), key, kept);
        let mut rows: Vec<u32> =
            units.iter().flat_map(|unit| self.units.rows(*unit)).map(|row| *row as u32).collect();
        rows.sort_unstable();
        self.of_rows(rows)
    }

    fn of_rows(&self, rows: Vec<u32>) -> Resample {
        let codes = |codes: &[u32]| dense(rows.iter().map(|row| codes[*row as usize]));
        Resample {
            treated: rows.iter().map(|row| self.design.treated[*row as usize]).collect(),
            units: self.design.units.map(codes),
            clusters: self.design.clusters.map(codes),
            cause: None,
            rows,
        }
    }

    fn bootstrap(&self, key: u64) -> Resample {
        let groups = self.drawn.count();
        let mut rows: Vec<u32> = Vec::with_capacity(self.design.treated.len());
        let (mut units, mut clusters) = (Vec::new(), Vec::new());
        let mut next_unit = 0u32;
        for slot in 0..groups {
            // Uses the number of the row at this position, which depends on the seed.
            let draw = mix(mix(self.design.rows[self.drawn.rows(slot)[0]]) ^ key);
            let group = ((u128::from(draw) * groups as u128) >> 64) as usize;
            let drawn = self.drawn.rows(group);
            rows.extend(drawn.iter().map(|row| *row as u32));
            if let Some(codes) = self.design.units {
                let fresh = dense(drawn.iter().map(|row| codes[*row]));
                units.extend(fresh.iter().map(|code| code + next_unit));
                next_unit += code_count(&fresh) as u32;
            }
            if self.design.clusters.is_some() {
                clusters.extend(std::iter::repeat_n(slot as u32, drawn.len()));
            }
        }
        Resample {
            treated: rows.iter().map(|row| self.design.treated[*row as usize]).collect(),
            units: self.design.units.map(|_| units),
            clusters: self.design.clusters.map(|_| dense(clusters.into_iter())),
            cause: None,
            rows,
        }
    }
}

/// One code for each value, from 0 in the order of first appearance. Takes memory for the largest
/// value: values should be codes with few gaps.
pub fn dense(values: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut known: Vec<u32> = Vec::new();
    let mut next = 0u32;
    values
        .map(|value| {
            let at = value as usize;
            if known.len() <= at {
                known.resize(at + 1, u32::MAX);
            }
            if known[at] == u32::MAX {
                known[at] = next;
                next += 1;
            }
            known[at]
        })
        .collect()
}

/// The two-sided p-value of Student's t for the hypothesis that the estimates of a refuter, over
/// all data sets that it could make, have the mean `theta`: 0 for a placebo, otherwise the refuted
/// estimate. (DoWhy's share of estimates beyond `theta` is hardly ever small.) 1 below two
/// estimates; if all are equal, 1 if they equal `theta` to rounding, otherwise 0.
pub fn refutation_p(estimates: &[f64], theta: f64) -> f64 {
    let (Some(first), n) = (estimates.first(), estimates.len() as f64) else { return 1.0 };
    if estimates.len() < 2 {
        return 1.0;
    }
    // Centred, so that equal numbers have exactly their mean.
    let mean = first + estimates.iter().map(|x| x - first).sum::<f64>() / n;
    let squares: f64 = estimates.iter().map(|x| (x - mean).powi(2)).sum();
    let (error, apart) = ((squares / (n - 1.0) / n).sqrt(), mean - theta);
    let rounding = 1e-13 * mean.abs().max(theta.abs());
    if apart.abs() <= rounding {
        return 1.0;
    }
    if error <= rounding { 0.0 } else { tail::t_two_sided(apart / error, n - 1.0) }
}

/// The number of `placebos` at least as far from 0 as `estimate`. If every estimate has a standard
/// error, divide both by it: estimates of a permuted treatment vary less, so the test has its
/// nominal level only in units of their errors (Janssen 1997, Statistics and Probability Letters
/// 36:9; DiCiccio and Romano 2017).
pub fn as_large(placebos: &[f64], estimate: f64) -> usize {
    placebos.iter().filter(|placebo| placebo.abs() >= estimate.abs()).count()
}

/// The positions of the numbers with the `count` smallest draws, in any order.
fn smallest(numbers: impl Iterator<Item = u64>, key: u64, count: usize) -> Vec<usize> {
    let mut draws: Vec<(u64, usize)> =
        numbers.enumerate().map(|(at, number)| (mix(number ^ key), at)).collect();
    if 0 < count && count < draws.len() {
        draws.select_nth_unstable(count - 1);
    }
    draws.into_iter().take(count).map(|(_, at)| at).collect()
}

/// The part of the hash that all draws of one simulation share.
fn draw_key(refuter: Refuter, simulation: usize) -> u64 {
    mix(refuter as u64 ^ mix(simulation as u64))
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014).
pub(crate) fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A standard normal number from 64 bits, by the transform of Box and Muller.
pub(crate) fn normal(bits: u64) -> f64 {
    let unit = |bits: u64| (bits >> 11) as f64 / (1u64 << 53) as f64;
    let first = mix(bits);
    let (u, v) = (1.0 - unit(first), unit(mix(first)));
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}
