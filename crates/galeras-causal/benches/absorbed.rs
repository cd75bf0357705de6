//! Times absorbed effects of many rows: `cargo bench -p galeras-causal --bench absorbed`.
//!
//! A million rows whose outcome has a constant for each of 1,000 repositories, then for each of
//! 1,000 repositories and 1,000 crossed authors, with three covariates; the treatment is more
//! frequent if the constants are high. Exits with 1 if one of them takes more than 10 s or the
//! known effect is missed. Random numbers are SplitMix64's.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::time::Instant;

use galeras_causal::{Covariance, absorbed};

#[path = "coverage/random.rs"]
#[allow(dead_code, reason = "the other benchmark draws more kinds of numbers")]
mod random;

use random::SplitMix;

const ROWS: usize = 1_000_000;
const LEVELS: u32 = 1_000;
const EFFECT: f64 = 0.3;
const MOST_SECONDS: f64 = 10.0;

/// Absorbs the factors of the outcome; true if fast enough and correct.
fn race(name: &str, factors: &[&[u32]], covariance: Covariance) -> bool {
    let mut draw = SplitMix(7);
    let constants: Vec<Vec<f64>> =
        factors.iter().map(|_| (0..LEVELS).map(|_| draw.uniform() - 0.5).collect()).collect();
    let mut covariates = [const { Vec::new() }; 3];
    let (mut treated, mut outcome) = (Vec::new(), Vec::new());
    for row in 0..ROWS {
        let place: f64 =
            factors.iter().zip(&constants).map(|(codes, all)| all[codes[row] as usize]).sum();
        let arm = draw.uniform() < 0.5 + 0.3 * place;
        let mut mean = place + if arm { EFFECT } else { 0.0 };
        for (at, column) in covariates.iter_mut().enumerate() {
            let value = draw.uniform() + place;
            mean += 0.1 * (at as f64 + 1.0) * value;
            column.push(value);
        }
        treated.push(arm);
        outcome.push(mean + draw.uniform() - 0.5);
    }
    let columns: Vec<&[f64]> = covariates.iter().map(Vec::as_slice).collect();
    let clusters = covariance.is_clustered().then(|| factors[0]);
    let start = Instant::now();
    let fit = absorbed(&treated, &outcome, &columns, factors, covariance, clusters).unwrap();
    let seconds = start.elapsed().as_secs_f64();
    let off = (fit.estimate.value - EFFECT) / fit.estimate.standard_error;
    let right = off.abs() < 4.0 && fit.estimate.standard_error < 0.002;
    let ok = right && seconds <= MOST_SECONDS;
    println!(
        "{name:<44} {seconds:6.2} s  {:5} constants  effect {:.5} ± {:.5}  {}",
        fit.absorbed,
        fit.estimate.value,
        fit.estimate.standard_error,
        if ok { "ok" } else { "NOT OK" }
    );
    ok
}

fn main() {
    let mut draw = SplitMix(1);
    let mut codes = || -> Vec<u32> {
        // Every level occurs.
        (0..ROWS)
            .map(|row| {
                if row < LEVELS as usize {
                    row as u32
                } else {
                    (draw.uniform() * LEVELS as f64) as u32
                }
            })
            .collect()
    };
    let (repository, author) = (codes(), codes());
    let results = [
        race("1,000 repositories, HC1", &[&repository], Covariance::Hc1),
        race("1,000 repositories, CR1", &[&repository], Covariance::Cr1),
        race("1,000 repositories x 1,000 authors, HC1", &[&repository, &author], Covariance::Hc1),
    ];
    if results.contains(&false) {
        std::process::exit(1);
    }
}
