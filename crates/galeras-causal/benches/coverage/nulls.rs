//! The rejection rates of true hypotheses at 5 %: refuters, and tests of independence.

use galeras_causal::{
    CorrelationMethod, Covariance, Estimate, RefutationDesign, Refuter, Resampler, adjusted,
    as_large, correlation, friedman, partial, refutation_p, two_stage,
};

use crate::random::SplitMix;
use crate::sum;

pub(crate) struct Rejections {
    pub(crate) test: &'static str,
    pub(crate) null: &'static str,
    pub(crate) rejected: usize,
    pub(crate) all: usize,
}

impl Rejections {
    pub(crate) fn share(&self) -> f64 {
        100.0 * self.rejected as f64 / self.all.max(1) as f64
    }

    pub(crate) fn holds(&self) -> bool {
        (3.0..=7.0).contains(&self.share())
    }
}

const TESTS: [(&str, &str); 11] = [
    ("refuter `placebo`", "a permuted treatment has no effect"),
    ("refuter `random_common_cause`", "noise changes no estimate"),
    ("refuter `subset`", "a subset has the same effect on average"),
    ("refuter `bootstrap`", "resampled rows have the same effect on average"),
    ("placebo, share as large", "the treatment has no effect"),
    ("Pearson", "independent, normal, 50 rows"),
    ("Spearman", "independent, heavy-tailed, 50 rows"),
    ("Kendall", "independent, heavy-tailed, 50 rows"),
    ("partial correlation", "independent given a third, 50 rows"),
    ("Friedman", "three equal arms, 50 units"),
    ("Sargan", "two valid instruments, 200 rows"),
];

/// The tests whose names, as in `tests, Pearson, independent`, are `wanted`.
pub(crate) fn rejections(data_sets: usize, wanted: impl Fn(&str) -> bool) -> Vec<Rejections> {
    let wanted = |test: &str, null: &str| wanted(&format!("tests, {test}, {null}"));
    if !TESTS.iter().any(|(test, null)| wanted(test, null)) {
        return Vec::new();
    }
    let counts = sum(
        data_sets,
        || [0usize; TESTS.len()],
        |number, counts: &mut [usize; TESTS.len()]| {
            let mut random = SplitMix::new(1_000, number);
            let p = [refuters(&mut random).as_slice(), &independences(&mut random)].concat();
            counts.iter_mut().zip(p).for_each(|(count, p)| *count += usize::from(p <= 0.05));
        },
        |total, part| total.iter_mut().zip(part).for_each(|(total, part)| *total += part),
    );
    TESTS
        .into_iter()
        .zip(counts)
        .filter(|((test, null), _)| wanted(test, null))
        .map(|((test, null), rejected)| Rejections { test, null, rejected, all: data_sets })
        .collect()
}

/// The p-values of the refuters of a regression with a confounder, 100 simulations each, and the
/// share of placebos that are as large as an estimate of zero effect.
fn refuters(random: &mut SplitMix) -> [f64; 5] {
    const SIMULATIONS: usize = 100;
    let n = 100;
    let confounder: Vec<f64> = (0..n).map(|_| random.normal()).collect();
    let treated: Vec<bool> = confounder.iter().map(|x| random.normal() + 0.5 * x > 0.0).collect();
    let outcome: Vec<f64> = confounder
        .iter()
        .zip(&treated)
        .map(|(x, t)| x + f64::from(u8::from(*t)) + random.normal())
        .collect();
    let nothing: Vec<f64> = confounder.iter().map(|x| x + random.normal()).collect();
    let numbers: Vec<u64> = (0..n).map(|_| random.bits()).collect();
    let design = RefutationDesign {
        treated: &treated,
        units: None,
        clusters: None,
        rows: &numbers,
        unit_numbers: None,
    };
    let resampler = Resampler::new(design);
    let fit = |treated: &[bool], outcome: &[f64], columns: &[&[f64]]| {
        adjusted(treated, outcome, columns, Covariance::Classic, None).unwrap().estimate
    };
    let estimate = fit(&treated, &outcome, &[&confounder]).value;
    let of_nothing = fit(&treated, &nothing, &[&confounder]);
    let again = |refuter: Refuter, outcome: &[f64]| -> Vec<Estimate> {
        let simulate = |simulation| {
            let made = resampler.resample(refuter, simulation, 0.9);
            let pick = |column: &[f64]| -> Vec<f64> {
                made.rows.iter().map(|row| column[*row as usize]).collect()
            };
            let (outcome, confounder) = (pick(outcome), pick(&confounder));
            let mut columns = vec![confounder.as_slice()];
            columns.extend(made.cause.as_deref());
            fit(&made.treated, &outcome, &columns)
        };
        (0..SIMULATIONS).map(simulate).collect()
    };
    let p = |refuter, expected| {
        let values = again(refuter, &outcome).iter().map(|again| again.value).collect::<Vec<_>>();
        refutation_p(&values, expected)
    };
    let placebos = again(Refuter::Placebo, &nothing);
    let placebos: Vec<f64> = placebos.iter().map(Estimate::statistic).collect();
    let as_large = as_large(&placebos, of_nothing.statistic());
    [
        p(Refuter::Placebo, 0.0),
        p(Refuter::RandomCommonCause, estimate),
        p(Refuter::Subset, estimate),
        p(Refuter::Bootstrap, estimate),
        (as_large + 1) as f64 / (SIMULATIONS + 1) as f64,
    ]
}

fn independences(random: &mut SplitMix) -> [f64; 6] {
    let n = 50;
    let mut normals = || -> Vec<f64> { (0..n).map(|_| random.normal()).collect() };
    let (x, y, third) = (normals(), normals(), normals());
    let add =
        |column: &[f64]| -> Vec<f64> { column.iter().zip(&third).map(|(a, b)| a + b).collect() };
    let (with_x, with_y) = (add(&x), add(&y));
    let mut heavy = || -> Vec<f64> { (0..n).map(|_| random.heavy()).collect() };
    let arms = [heavy(), heavy(), heavy()];
    let by = |method| correlation(&arms[0], &arms[1], method, 0.05).unwrap().p_value;
    [
        correlation(&x, &y, CorrelationMethod::Pearson, 0.05).unwrap().p_value,
        by(CorrelationMethod::Spearman),
        by(CorrelationMethod::Kendall),
        partial(&with_x, &with_y, &[&third], 0.05).unwrap().p_value,
        friedman(&[&arms[0], &arms[1], &arms[2]]).unwrap().p_value,
        sargan(random),
    ]
}

fn sargan(random: &mut SplitMix) -> f64 {
    let n = 200;
    let mut columns = || -> Vec<f64> { (0..n).map(|_| random.normal()).collect() };
    let (first, second, unseen) = (columns(), columns(), columns());
    let (noise, error) = (columns(), columns());
    let moved: Vec<f64> = (0..n).map(|i| first[i] + second[i] + unseen[i] + noise[i]).collect();
    let outcome: Vec<f64> = (0..n).map(|i| moved[i] + unseen[i] + error[i]).collect();
    let instruments = [first.as_slice(), &second];
    let fit = two_stage(&outcome, &moved, &instruments, &[], Covariance::Classic, None).unwrap();
    fit.sargan.unwrap().p
}
