//! Effect sizes with intervals, for independent arms, pairs and clusters.
//!
//! `dominance`: how often a row of one arm lies above one of the other (Cliff's delta, Vargha and
//! Delaney's A). `standardised`: differences in standard deviations (Cohen's d and d_z, Hedges' g).

mod dominance;
mod standardised;
#[cfg(test)]
mod tests;

pub use dominance::{Dominance, dominance, dominance_within};
pub use standardised::{Standardised, standardised_difference, standardised_pairs};

use super::refusal::Refusal;

/// The sums of `parts` by cluster, or by row where there are no clusters; how many there are.
fn cluster_sums(parts: &[f64], clusters: Option<&[u32]>) -> Vec<f64> {
    match clusters {
        None => parts.to_vec(),
        Some(clusters) => {
            let count = clusters.iter().max().map_or(0, |last| *last as usize + 1);
            let mut sums = vec![0.0; count];
            for (part, cluster) in parts.iter().zip(clusters) {
                sums[*cluster as usize] += part;
            }
            sums
        }
    }
}

/// The clusters (rows where there are none) that have rows in each arm: treated, control.
fn clusters_per_arm(treated: &[bool], clusters: Option<&[u32]>) -> [usize; 2] {
    let Some(clusters) = clusters else {
        let ones = treated.iter().filter(|treated| **treated).count();
        return [ones, treated.len() - ones];
    };
    let count = clusters.iter().max().map_or(0, |last| *last as usize + 1);
    let mut seen = vec![[false; 2]; count];
    for (treated, cluster) in treated.iter().zip(clusters) {
        seen[*cluster as usize][usize::from(!*treated)] = true;
    }
    [0, 1].map(|arm| seen.iter().filter(|seen| seen[arm]).count())
}

fn at_least(what: &'static str, found: usize, needed: usize) -> Result<(), Refusal> {
    if found < needed { Err(Refusal::TooFew { what, found, needed }) } else { Ok(()) }
}
