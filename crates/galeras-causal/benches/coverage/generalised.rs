//! Estimators of special outcomes.
//!
//! Risks, rates of counts and shifts are under a treatment by a fair coin of rows or clusters, or
//! within units that have both arms. Their truth is known regardless of the regressions'
//! assumptions: under a coin the averages over covariates are those of the arms (Rosenblum and van
//! der Laan 2010). Odds are ratios at equal covariates or within a pair, and the front door has a
//! mediator that carries the whole effect: these outcomes are drawn from the model.

use galeras_causal::{
    FourfoldTable, LogisticEffects, Refusal, RiskMeasure, front_door, logistic, mcnemar,
    negative_binomial, poisson, proportional_odds, rank_sum, signed_rank_shift, tail,
};

use crate::estimators::{Answer, Checked, at_least, enough_whole};
use crate::random::SplitMix;
use crate::samples::{DataSet, Outcome, Sample, expit, number};

/// The mean without treatment, and with it.
const RISKS: (f64, f64) = (0.375, 0.625);
const RATES: (f64, f64) = (3.0, 4.0);

const LOG_ODDS: f64 = 1.0;
const THRESHOLDS: [f64; 3] = [-0.8, 0.5, 1.8];
/// The shares of the variance, on the normal scale, of a cluster and of one arm of it.
const SHARES: [f64; 2] = [0.15, 0.1];

/// The effect of the treatment on the mediator.
const STEP: f64 = 0.5;

pub(crate) fn estimators(sample: Sample, outcome: Outcome) -> Vec<(&'static str, Answer)> {
    let mut all = match sample {
        // The coin of their rows is loaded.
        Sample::Clusters(_) => Vec::new(),
        _ => under_a_coin(sample, outcome),
    };
    match outcome {
        Outcome::Ordered => all.push(of_odds("proportional_odds", |data, random| {
            enough_whole(data)?;
            let (levels, columns) = (levels(data, random), data.columns());
            let (kind, clusters) = (data.kind_without_leverage(), data.clusters());
            let fit = proportional_odds(&data.treated, &levels, &columns, kind, clusters)?;
            Ok(fit.log_odds_ratio.interval(0.05))
        })),
        Outcome::Binary => {
            all.push(of_odds("logistic", |data, random| {
                let high: Vec<f64> =
                    levels(data, random).iter().map(|level| number(*level >= 2.0)).collect();
                let (columns, clusters) = (data.columns(), data.clusters());
                let fit = logistic(&data.treated, &high, &columns, data.kind(), clusters)?;
                Ok(fit.log_odds_ratio.interval(0.05))
            }));
            if matches!(sample, Sample::Pairs(_)) {
                all.push(of_odds("mcnemar", |data, random| by_pairs(data, random, false)));
                all.push(of_odds("mcnemar_mid_p", |data, random| by_pairs(data, random, true)));
            }
        }
        Outcome::Normal | Outcome::Count | Outcome::Heavy => {}
    }
    if outcome != Outcome::Ordered && !matches!(sample, Sample::Pairs(_)) {
        for (name, binary) in [("frontdoor", true), ("frontdoor, a number", false)] {
            let answer = move |data: &DataSet, outcome, random: &mut SplitMix| {
                through_mediator(data, outcome, random, binary)
            };
            all.push((name, Box::new(answer)));
        }
    }
    all
}

fn of(
    name: &'static str,
    truth: f64,
    interval: impl Fn(&DataSet) -> Result<(f64, f64), Refusal> + Sync + 'static,
) -> (&'static str, Answer) {
    let answer = move |data: &DataSet, _: Outcome, _: &mut SplitMix| Ok((interval(data)?, truth));
    (name, Box::new(answer))
}

fn of_odds(
    name: &'static str,
    interval: impl Fn(&DataSet, &mut SplitMix) -> Result<(f64, f64), Refusal> + Sync + 'static,
) -> (&'static str, Answer) {
    let answer = move |data: &DataSet, _: Outcome, random: &mut SplitMix| {
        Ok((interval(data, random)?, LOG_ODDS))
    };
    (name, Box::new(answer))
}

impl DataSet {
    /// The treatment by a coin, of rows or of clusters and units, and its outcome.
    fn by_coin(&self) -> (&[bool], &[f64]) {
        match self.clusters() {
            None => (&self.coin, &self.of_coin),
            Some(_) => (&self.treated, &self.outcome),
        }
    }
}

/// With the errors of clusters, or of units instead.
fn under_a_coin(sample: Sample, outcome: Outcome) -> Vec<(&'static str, Answer)> {
    let (zero, one) = RISKS;
    let odds = |risk: f64| risk / (1.0 - risk);
    let log_rate = (RATES.1 / RATES.0).ln();
    let alone = |data: &DataSet| by_logistic(data, &[]);
    let adjusted = |data: &DataSet| by_logistic(data, &data.columns());
    match (outcome, sample) {
        (Outcome::Binary, _) => {
            let mut all = match sample {
                Sample::Rows(_) => vec![
                    of("risk_difference", one - zero, |data| risks(data, RiskMeasure::Difference)),
                    of("risk_ratio", one / zero, |data| risks(data, RiskMeasure::Ratio)),
                    of("odds_ratio", odds(one) / odds(zero), |data| {
                        risks(data, RiskMeasure::OddsRatio)
                    }),
                ],
                _ => vec![
                    of("risk_difference", one - zero, move |data| {
                        Ok(alone(data)?.risk_difference.interval(0.05))
                    }),
                    of("risk_ratio", (one / zero).ln(), move |data| {
                        Ok(alone(data)?.log_risk_ratio.interval(0.05))
                    }),
                    of("odds_ratio", (odds(one) / odds(zero)).ln(), move |data| {
                        Ok(alone(data)?.log_odds_ratio.interval(0.05))
                    }),
                ],
            };
            all.push(of("logistic_difference", one - zero, move |data| {
                Ok(adjusted(data)?.risk_difference.interval(0.05))
            }));
            all.push(of("logistic_ratio", (one / zero).ln(), move |data| {
                if data.clusters.is_none() {
                    at_least("rows", data.coin.len(), 50)?;
                }
                Ok(adjusted(data)?.log_risk_ratio.interval(0.05))
            }));
            all
        }
        (Outcome::Count, _) => vec![
            of("poisson", log_rate, |data| {
                let (columns, (treated, counts)) = (data.columns(), data.by_coin());
                let fit = poisson(treated, counts, &columns, data.kind(), data.clusters());
                Ok(fit?.log_ratio.interval(0.05))
            }),
            of("negative_binomial", log_rate, |data| {
                let (columns, (treated, counts)) = (data.columns(), data.by_coin());
                let counts = if data.clusters.is_none() { &data.spread } else { counts };
                let fit =
                    negative_binomial(treated, counts, &columns, data.kind(), data.clusters());
                Ok(fit?.log_ratio.interval(0.05))
            }),
        ],
        (Outcome::Normal | Outcome::Heavy, Sample::Rows(_)) => vec![of("wilcoxon", 1.0, |data| {
            let arm = |which: bool| -> Vec<f64> {
                let rows = data.coin.iter().zip(&data.of_coin);
                rows.filter(|(coin, _)| **coin == which).map(|(_, y)| *y).collect()
            };
            Ok(rank_sum(&arm(true), &arm(false), 0.05)?.shift.interval)
        })],
        (Outcome::Normal | Outcome::Heavy, Sample::Units(_) | Sample::Pairs(_)) => {
            vec![of("wilcoxon", 1.0, |data| {
                let [treatment, control] = data.unit_means();
                let differences: Vec<f64> =
                    treatment.iter().zip(control).map(|(one, zero)| one - zero).collect();
                Ok(signed_rank_shift(&differences, 0.05)?.shift.interval)
            })]
        }
        _ => Vec::new(),
    }
}

fn by_logistic(data: &DataSet, columns: &[&[f64]]) -> Result<LogisticEffects, Refusal> {
    let (treated, outcome) = data.by_coin();
    logistic(treated, outcome, columns, data.kind(), data.clusters())
}

fn risks(data: &DataSet, measure: RiskMeasure) -> Result<(f64, f64), Refusal> {
    Ok(FourfoldTable::of(&data.coin, &data.of_coin)?.compare(measure, 0.05)?.interval)
}

/// Levels from 0 to 3. Errors are logistic with any clusters: a normal variable that rows of a
/// cluster share in part, mapped to the logistic scale.
fn levels(data: &DataSet, random: &mut SplitMix) -> Vec<f64> {
    let shared: Vec<[f64; 3]> =
        (0..data.groups()).map(|_| [(); 3].map(|()| random.normal())).collect();
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
        let latent = LOG_ODDS * number(*treated) + 1.5 * data.place(row) + error;
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

/// The front door; the covariates, which load the coin of the treatment and move the outcome, are
/// unobserved. The mediator has two values or is a number.
fn through_mediator(
    data: &DataSet,
    outcome: Outcome,
    random: &mut SplitMix,
    binary: bool,
) -> Result<Checked, Refusal> {
    // The cluster effects on the mediator are independent of those on the outcome.
    let shared: Vec<[f64; 2]> =
        (0..data.groups()).map(|_| [(); 2].map(|()| random.symmetric())).collect();
    let (mut mediator, mut values) = (Vec::new(), Vec::new());
    for (row, treated) in data.treated.iter().enumerate() {
        let [to_mediator, to_outcome] =
            data.clusters().map_or([0.0; 2], |codes| shared[codes[row] as usize]);
        let mean = 0.25 + STEP * number(*treated) + 0.1 * to_mediator;
        let value = match binary {
            true => number(random.chance(mean)),
            false => mean + 0.15 * random.symmetric(),
        };
        mediator.push(value);
        values.push(outcome.draw(random, value, data.place(row), to_outcome));
    }
    let found = front_door(&data.treated, &[&mediator], &values, data.clusters())?;
    Ok((found.interval(0.05), STEP * outcome.effect()))
}
