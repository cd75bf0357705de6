//! Estimators of odds: proportional odds of four ordered levels, logistic regression of a high
//! level, and McNemar's pairs. Their truth is a ratio at equal covariates or within a pair, so the
//! outcome is drawn from the model.

use galeras_causal::{Refusal, logistic, mcnemar, proportional_odds, tail};

use crate::estimators::{Answer, enough_whole};
use crate::random::SplitMix;
use crate::samples::{DataSet, Outcome, Sample, expit, number};

const LOG_ODDS: f64 = 1.0;
const THRESHOLDS: [f64; 3] = [-0.8, 0.5, 1.8];
/// The shares of the variance, on the normal scale, of a cluster and of one arm of it.
const SHARES: [f64; 2] = [0.15, 0.1];

pub(crate) fn estimators(sample: Sample, outcome: Outcome) -> Vec<(&'static str, Answer)> {
    match outcome {
        Outcome::Ordered => vec![of("proportional_odds", |data, random| {
            enough_whole(data)?;
            let clusters = data.clusters.as_deref();
            let (levels, columns) = (levels(data, random), data.columns());
            let kind = data.kind_without_leverage();
            let fit = proportional_odds(&data.treated, &levels, &columns, kind, clusters)?;
            Ok(fit.log_odds_ratio.interval(0.05))
        })],
        Outcome::Binary => {
            let mut all = vec![of("logistic", |data, random| {
                let high: Vec<f64> =
                    levels(data, random).iter().map(|level| number(*level >= 2.0)).collect();
                let (columns, clusters) = (data.columns(), data.clusters.as_deref());
                let fit = logistic(&data.treated, &high, &columns, data.kind(), clusters)?;
                Ok(fit.log_odds_ratio.interval(0.05))
            })];
            if matches!(sample, Sample::Pairs(_)) {
                all.push(of("mcnemar", |data, random| by_pairs(data, random, false)));
                all.push(of("mcnemar_mid_p", |data, random| by_pairs(data, random, true)));
            }
            all
        }
        Outcome::Normal | Outcome::Count | Outcome::Heavy => Vec::new(),
    }
}

fn of(
    name: &'static str,
    interval: impl Fn(&DataSet, &mut SplitMix) -> Result<(f64, f64), Refusal> + Sync + 'static,
) -> (&'static str, Answer) {
    let answer = move |data: &DataSet, _: Outcome, random: &mut SplitMix| {
        let (low, high) = interval(data, random)?;
        Ok((low..=high).contains(&LOG_ODDS))
    };
    (name, Box::new(answer))
}

/// Levels from 0 to 3. Errors are logistic with any clusters: a normal variable that rows of a
/// cluster share in part, mapped to the logistic scale.
fn levels(data: &DataSet, random: &mut SplitMix) -> Vec<f64> {
    let count = data.clusters.iter().flatten().max().map_or(0, |last| *last as usize + 1);
    let shared: Vec<[f64; 3]> = (0..count).map(|_| [(); 3].map(|()| random.normal())).collect();
    let rows = data.treated.iter().enumerate();
    rows.map(|(row, treated)| {
        let own = random.normal();
        let normal = match &data.clusters {
            None => own,
            Some(codes) => {
                let [all, arms @ ..] = shared[codes[row] as usize];
                let rest = 1.0 - SHARES[0] - SHARES[1];
                let arm = arms[usize::from(*treated)];
                SHARES[0].sqrt() * all + SHARES[1].sqrt() * arm + rest.sqrt() * own
            }
        };
        let beyond = tail::normal_two_sided(normal.abs()) / 2.0;
        let error = ((1.0 - beyond) / beyond).ln().copysign(normal);
        let place = 0.5 * (data.covariates[0][row] + data.covariates[1][row]);
        let latent = LOG_ODDS * number(*treated) + 1.5 * place + error;
        THRESHOLDS.iter().filter(|threshold| latent > **threshold).count() as f64
    })
    .collect()
}

/// A binary outcome of both members of each pair, whose odds differ between pairs and have the same
/// ratio in each.
fn by_pairs(data: &DataSet, random: &mut SplitMix, mid: bool) -> Result<(f64, f64), Refusal> {
    let (mut treatment, mut control) = (Vec::new(), Vec::new());
    for _ in 0..data.treated.len() / 2 {
        let pair = 2.0 * random.symmetric() - 0.5 * LOG_ODDS;
        treatment.push(number(random.chance(expit(pair + LOG_ODDS))));
        control.push(number(random.chance(expit(pair))));
    }
    let (low, high) = mcnemar(&treatment, &control)?.odds_ratio(mid, 0.05)?.interval;
    Ok((low.ln(), high.ln()))
}
