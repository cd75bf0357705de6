//! Estimators of special outcomes (risks, rates of counts, shifts), under a treatment by a fair
//! coin of rows or clusters, or within units that have both arms. Their truth is known regardless
//! of the regressions' assumptions: under a coin the averages over covariates are those of the arms
//! (Rosenblum and van der Laan 2010).

use galeras_causal::{
    Covariance, FourfoldTable, LogisticEffects, Refusal, RiskMeasure, logistic, negative_binomial,
    poisson, rank_sum, signed_rank_shift,
};

use crate::estimators::Answer;
use crate::random::SplitMix;
use crate::samples::{DataSet, Outcome, Sample};

/// The mean without treatment, and with it.
const RISKS: (f64, f64) = (0.375, 0.625);
const RATES: (f64, f64) = (3.0, 4.0);

fn of(
    name: &'static str,
    truth: f64,
    interval: impl Fn(&DataSet) -> Result<(f64, f64), Refusal> + Sync + 'static,
) -> (&'static str, Answer) {
    let answer = move |data: &DataSet, _: Outcome, _: &mut SplitMix| {
        let (low, high) = interval(data)?;
        Ok((low..=high).contains(&truth))
    };
    (name, Box::new(answer))
}

pub(crate) fn estimators(sample: Sample, outcome: Outcome) -> Vec<(&'static str, Answer)> {
    match sample {
        Sample::Rows(_) => of_rows(outcome),
        // The coin of their rows is loaded.
        Sample::Clusters(_) => Vec::new(),
        Sample::TreatedClusters(_) | Sample::Units(_) | Sample::Pairs(_) => {
            of_clusters(sample, outcome)
        }
    }
}

fn of_rows(outcome: Outcome) -> Vec<(&'static str, Answer)> {
    let (zero, one) = RISKS;
    let odds = |risk: f64| risk / (1.0 - risk);
    match outcome {
        Outcome::Binary => vec![
            of("risk_difference", one - zero, |data| risks(data, RiskMeasure::Difference)),
            of("risk_ratio", one / zero, |data| risks(data, RiskMeasure::Ratio)),
            of("odds_ratio", odds(one) / odds(zero), |data| risks(data, RiskMeasure::OddsRatio)),
            of("logistic_difference", one - zero, |data| {
                let fit =
                    logistic(&data.coin, &data.of_coin, &data.columns(), Covariance::Hc3, None);
                Ok(fit?.risk_difference.interval(0.05))
            }),
            of("logistic_ratio", (one / zero).ln(), |data| {
                if data.coin.len() < 50 {
                    let found = data.coin.len();
                    return Err(Refusal::TooFew { what: "rows", found, needed: 50 });
                }
                let fit =
                    logistic(&data.coin, &data.of_coin, &data.columns(), Covariance::Hc3, None);
                Ok(fit?.log_risk_ratio.interval(0.05))
            }),
        ],
        Outcome::Count => vec![
            of("poisson", (RATES.1 / RATES.0).ln(), |data| {
                let fit =
                    poisson(&data.coin, &data.of_coin, &data.columns(), Covariance::Hc3, None);
                Ok(fit?.log_ratio.interval(0.05))
            }),
            of("negative_binomial", (RATES.1 / RATES.0).ln(), |data| {
                let (kind, columns) = (Covariance::Hc3, data.columns());
                let fit = negative_binomial(&data.coin, &data.spread, &columns, kind, None);
                Ok(fit?.log_ratio.interval(0.05))
            }),
        ],
        Outcome::Normal | Outcome::Heavy => vec![of("wilcoxon", 1.0, |data| {
            let arm = |which: bool| -> Vec<f64> {
                let rows = data.coin.iter().zip(&data.of_coin);
                rows.filter(|(coin, _)| **coin == which).map(|(_, y)| *y).collect()
            };
            Ok(rank_sum(&arm(true), &arm(false), 0.05)?.shift.interval)
        })],
        Outcome::Ordered => Vec::new(),
    }
}

/// With the errors of clusters, or of units instead.
fn of_clusters(sample: Sample, outcome: Outcome) -> Vec<(&'static str, Answer)> {
    let (zero, one) = RISKS;
    let odds = |risk: f64| risk / (1.0 - risk);
    let alone = |data: &DataSet| by_logistic(data, &[]);
    let adjusted = |data: &DataSet| by_logistic(data, &data.columns());
    match outcome {
        Outcome::Binary => vec![
            of("risk_difference", one - zero, move |data| {
                Ok(alone(data)?.risk_difference.interval(0.05))
            }),
            of("risk_ratio", (one / zero).ln(), move |data| {
                Ok(alone(data)?.log_risk_ratio.interval(0.05))
            }),
            of("odds_ratio", (odds(one) / odds(zero)).ln(), move |data| {
                Ok(alone(data)?.log_odds_ratio.interval(0.05))
            }),
            of("logistic_difference", one - zero, move |data| {
                Ok(adjusted(data)?.risk_difference.interval(0.05))
            }),
            of("logistic_ratio", (one / zero).ln(), move |data| {
                Ok(adjusted(data)?.log_risk_ratio.interval(0.05))
            }),
        ],
        Outcome::Count => vec![
            of("poisson", (RATES.1 / RATES.0).ln(), |data| {
                let (columns, clusters) = (data.columns(), data.clusters.as_deref());
                let fit = poisson(&data.treated, &data.outcome, &columns, data.kind(), clusters);
                Ok(fit?.log_ratio.interval(0.05))
            }),
            of("negative_binomial", (RATES.1 / RATES.0).ln(), |data| {
                let (columns, clusters) = (data.columns(), data.clusters.as_deref());
                let (treated, outcome) = (&data.treated, &data.outcome);
                let fit = negative_binomial(treated, outcome, &columns, data.kind(), clusters);
                Ok(fit?.log_ratio.interval(0.05))
            }),
        ],
        Outcome::Normal | Outcome::Heavy if !matches!(sample, Sample::TreatedClusters(_)) => {
            vec![of("wilcoxon", 1.0, |data| {
                let [treatment, control] = data.unit_means();
                let differences: Vec<f64> =
                    treatment.iter().zip(control).map(|(one, zero)| one - zero).collect();
                Ok(signed_rank_shift(&differences, 0.05)?.shift.interval)
            })]
        }
        Outcome::Normal | Outcome::Heavy | Outcome::Ordered => Vec::new(),
    }
}

fn by_logistic(data: &DataSet, columns: &[&[f64]]) -> Result<LogisticEffects, Refusal> {
    logistic(&data.treated, &data.outcome, columns, data.kind(), data.clusters.as_deref())
}

fn risks(data: &DataSet, measure: RiskMeasure) -> Result<(f64, f64), Refusal> {
    Ok(FourfoldTable::of(&data.coin, &data.of_coin)?.compare(measure, 0.05)?.interval)
}
