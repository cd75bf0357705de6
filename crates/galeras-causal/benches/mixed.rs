//! Times mixed models of many rows: `cargo bench -p galeras-causal --bench mixed`.
//!
//! 100,000 rows with three crossed grouping columns, in three designs: data points crossed with
//! repositories and models; five samples of each data point under each model, the data points
//! within repositories; three columns with many groups each. Exits with 1 if one of them takes more
//! than 60 s or the known variances are not found. Random numbers are SplitMix64's.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::time::Instant;

use galeras_causal::{RandomTerm, dense, mixed};

#[path = "coverage/random.rs"]
#[allow(dead_code, reason = "the other benchmark draws more kinds of numbers")]
mod random;

use random::SplitMix;

const ROWS: usize = 100_000;
const MOST_SECONDS: f64 = 60.0;

/// Fits one design whose groups have the standard deviations `sds`; true if fast enough and
/// correct.
fn race(name: &str, draw: &mut SplitMix, groups: &[Vec<u32>], sds: &[f64]) -> bool {
    let groups: Vec<Vec<u32>> = groups.iter().map(|codes| dense(codes.iter().copied())).collect();
    let levels: Vec<usize> =
        groups.iter().map(|codes| *codes.iter().max().unwrap() as usize + 1).collect();
    let effects: Vec<Vec<f64>> = levels
        .iter()
        .zip(sds)
        .map(|(levels, sd)| (0..*levels).map(|_| sd * draw.normal()).collect())
        .collect();
    let arm: Vec<f64> = (0..ROWS).map(|_| (draw.uniform() * 2.0).floor()).collect();
    let size: Vec<f64> = (0..ROWS).map(|_| draw.normal()).collect();
    let outcome: Vec<f64> = (0..ROWS)
        .map(|row| {
            let of_groups: f64 =
                groups.iter().zip(&effects).map(|(codes, all)| all[codes[row] as usize]).sum();
            0.3 * arm[row] - 0.2 * size[row] + of_groups + draw.normal()
        })
        .collect();
    let terms: Vec<RandomTerm<'_>> = groups
        .iter()
        .map(|groups| RandomTerm { groups, intercept: true, slopes: Vec::new() })
        .collect();
    let start = Instant::now();
    let fit = mixed(&outcome, &[&arm, &size], &terms, true).unwrap();
    let seconds = start.elapsed().as_secs_f64();
    let found: Vec<f64> = fit.random.iter().map(|one| one.covariance[0].sqrt()).collect();
    // A standard deviation of q groups is known to about 1 / sqrt(2 q) of its value.
    let near = found.iter().zip(sds).zip(&levels).all(|((found, sd), levels)| {
        (found / sd - 1.0).abs() < 4.0 / (2.0 * *levels as f64).sqrt()
    });
    let right = near && (fit.coefficients[1].value - 0.3).abs() < 0.05 && fit.converged;
    println!(
        "{name:<44} {seconds:7.2} s  groups {levels:?}  sd {found:.3?} of {sds:?}  {}",
        if right && seconds <= MOST_SECONDS { "ok" } else { "NOT OK" }
    );
    right && seconds <= MOST_SECONDS
}

fn main() {
    let mut draw = SplitMix(1);
    let mut column = |limit: usize| -> Vec<u32> {
        (0..ROWS).map(|_| (draw.uniform() * limit as f64) as u32).collect()
    };
    let crossed = [column(10_000), column(500), column(20)];
    let many = [column(8_000), column(1_000), column(600)];
    // 2,000 data points in 150 repositories, 10 models, 5 samples of each.
    let point: Vec<u32> = (0..ROWS).map(|row| (row / 50) as u32).collect();
    let model: Vec<u32> = (0..ROWS).map(|row| (row / 5 % 10) as u32).collect();
    let pair: Vec<u32> = (0..ROWS).map(|row| (row / 5) as u32).collect();
    let repository: Vec<u32> = point.iter().map(|point| point * point % 151).collect();
    let mut draw = SplitMix(2);
    let results = [
        race("10,000 points, 500 repositories, 20 models", &mut draw, &crossed, &[0.7, 0.5, 0.4]),
        race(
            "5 samples of 2,000 points under 10 models",
            &mut draw,
            &[point, repository, model, pair],
            &[0.7, 0.5, 0.4, 0.6],
        ),
        race("8,000, 1,000 and 600 groups", &mut draw, &many, &[0.7, 0.5, 0.4]),
    ];
    if results.contains(&false) {
        std::process::exit(1);
    }
}
