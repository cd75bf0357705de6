//! Estimators of rows in groups: mixed models with crossed random effects, as the operator `mixed`
//! fits them, and least squares with absorbed levels.

use galeras_causal::{Covariance, RandomTerm, Refusal, absorbed, mixed};

use crate::estimators::{Answer, Checked, at_least, enough_whole};
use crate::random::SplitMix;
use crate::samples::{DataSet, Outcome, Sample, expit, number};

pub(crate) fn estimators(sample: Sample, outcome: Outcome) -> Vec<(&'static str, Answer)> {
    if outcome == Outcome::Ordered {
        return Vec::new();
    }
    match sample {
        Sample::Rows(n) => {
            let mut all =
                vec![("ols, absorb", by_levels(n / 5)), ("ols, absorb pairs", by_levels(n / 2))];
            if n >= 200 {
                all.push(("ols, absorb 30 levels", by_levels(30)));
            }
            // With 200 rows these are the pairs.
            if n > 200 {
                all.push(("ols, absorb 100 levels", by_levels(100)));
            }
            all
        }
        Sample::Clusters(_) => vec![
            ("ols, absorb", Box::new(within_clusters)),
            ("ols, absorb crossed", Box::new(across_clusters)),
            ("mixed", Box::new(of_clusters)),
        ],
        Sample::TreatedClusters(_) => vec![
            ("ols, absorb crossed", Box::new(across_clusters)),
            ("mixed", Box::new(of_clusters)),
        ],
        Sample::Units(_) => vec![
            ("ols, absorb", Box::new(within_units)),
            ("mixed", of_units(false, 1)),
            ("mixed, slopes", of_units(true, 1)),
            ("mixed, of units", of_units(true, 2)),
        ],
        Sample::Pairs(_) => vec![("ols, absorb", Box::new(within_units))],
    }
}

/// Rows in `levels` levels, which load the coin of the treatment and move the outcome.
fn by_levels(levels: usize) -> Answer {
    Box::new(move |data, outcome, random| {
        let constants: Vec<f64> = (0..levels).map(|_| random.symmetric()).collect();
        let codes: Vec<u32> = (0..data.treated.len()).map(|row| (row % levels) as u32).collect();
        let (mut treated, mut values) = (Vec::new(), Vec::new());
        for (row, code) in codes.iter().enumerate() {
            let level = constants[*code as usize];
            let arm = random.chance(expit(level));
            treated.push(arm);
            values.push(outcome.draw(random, number(arm), data.place(row), level));
        }
        let columns = data.columns();
        let fit = absorbed(&treated, &values, &columns, &[&codes], Covariance::Hc1, None)?;
        at_least("degrees of freedom", fit.residual_degrees, 35)?;
        Ok((fit.estimate.interval(0.05), outcome.effect()))
    })
}

/// Levels of five rows within clusters.
fn within_clusters(data: &DataSet, outcome: Outcome, _: &mut SplitMix) -> Result<Checked, Refusal> {
    let codes: Vec<u32> = (0..data.treated.len()).map(|row| (row / 5) as u32).collect();
    with_errors_of_clusters(data, outcome, &data.outcome, &codes, &data.columns())
}

/// Ten levels that are crossed with the clusters.
fn across_clusters(
    data: &DataSet,
    outcome: Outcome,
    random: &mut SplitMix,
) -> Result<Checked, Refusal> {
    let constants: Vec<f64> = (0..10).map(|_| outcome.effect() * random.symmetric()).collect();
    let codes: Vec<u32> = (0..data.treated.len()).map(|row| (row % 10) as u32).collect();
    let values: Vec<f64> =
        data.outcome.iter().zip(&codes).map(|(y, code)| y + constants[*code as usize]).collect();
    with_errors_of_clusters(data, outcome, &values, &codes, &data.columns())
}

/// A constant for each unit, whose covariates it explains.
fn within_units(data: &DataSet, outcome: Outcome, _: &mut SplitMix) -> Result<Checked, Refusal> {
    let units = data.clusters().unwrap_or_default();
    with_errors_of_clusters(data, outcome, &data.outcome, units, &[])
}

fn with_errors_of_clusters(
    data: &DataSet,
    outcome: Outcome,
    values: &[f64],
    levels: &[u32],
    columns: &[&[f64]],
) -> Result<Checked, Refusal> {
    enough_whole(data)?;
    let (kind, clusters) = (Covariance::Cr1, data.clusters());
    let fit = absorbed(&data.treated, values, columns, &[levels], kind, clusters)?;
    Ok((fit.estimate.interval(0.05), outcome.effect()))
}

fn of_clusters(data: &DataSet, outcome: Outcome, _: &mut SplitMix) -> Result<Checked, Refusal> {
    let groups = data.clusters().unwrap_or_default();
    let terms = [RandomTerm { groups, intercept: true, slopes: Vec::new() }];
    covers(data, &data.outcome, &terms, 1, outcome.effect())
}

/// Effects of units, crossed with five models that each answer under both arms; with `slopes` the
/// effect of the treatment differs between units. The coefficient is the treatment's, or 2: that of
/// the first covariate, which is constant within units.
fn of_units(slopes: bool, coefficient: usize) -> Answer {
    Box::new(move |data, outcome, random| {
        let units = data.clusters().unwrap_or_default();
        let treated: Vec<f64> = data.treated.iter().map(|arm| number(*arm)).collect();
        let models: Vec<u32> = (0..units.len()).map(|row| (row % 10 / 2) as u32).collect();
        let of_models = [(); 5].map(|()| 0.4 * random.symmetric());
        let of_units: Vec<[f64; 2]> =
            (0..data.groups()).map(|_| [(); 2].map(|()| random.symmetric())).collect();
        let mut values = Vec::new();
        for (row, unit) in units.iter().enumerate() {
            let [constant, slope] = of_units[*unit as usize];
            let slope = if slopes { 0.2 * slope * (2.0 * treated[row] - 1.0) } else { 0.0 };
            let group = 0.4 * constant + slope + of_models[models[row] as usize];
            values.push(outcome.draw(random, treated[row], data.place(row), group));
        }
        let own = if slopes { vec![treated.as_slice()] } else { Vec::new() };
        let terms = [
            RandomTerm { groups: units, intercept: true, slopes: own },
            RandomTerm { groups: &models, intercept: true, slopes: Vec::new() },
        ];
        let truth = if coefficient == 1 { outcome.effect() } else { 0.5 * outcome.slope() };
        covers(data, &values, &terms, coefficient, truth)
    })
}

fn covers(
    data: &DataSet,
    values: &[f64],
    terms: &[RandomTerm<'_>],
    coefficient: usize,
    truth: f64,
) -> Result<Checked, Refusal> {
    let treated: Vec<f64> = data.treated.iter().map(|arm| number(*arm)).collect();
    let [x, z] = data.columns();
    let fit = mixed(values, &[&treated, x, z], terms, true)?;
    if !fit.converged {
        // The operator refuses as well.
        return Err(Refusal::Other("the search did not converge".into()));
    }
    Ok((fit.coefficients[coefficient].interval(0.05), truth))
}
