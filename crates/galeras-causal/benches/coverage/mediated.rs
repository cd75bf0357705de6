//! The front door: a mediator carries the whole effect, and the covariates that load the coin of
//! the treatment, and move the outcome, are unobserved.

use galeras_causal::{Refusal, front_door};

use crate::estimators::Answer;
use crate::random::SplitMix;
use crate::samples::{DataSet, Outcome, Sample, number};

/// The effect of the treatment on the mediator.
const STEP: f64 = 0.5;

pub(crate) fn estimators(sample: Sample, outcome: Outcome) -> Vec<(&'static str, Answer)> {
    match (sample, outcome) {
        (_, Outcome::Ordered) | (Sample::Pairs(_), _) => Vec::new(),
        _ => vec![
            ("frontdoor", answer(true)),
            // A continuous mediator.
            ("frontdoor, a number", answer(false)),
        ],
    }
}

fn answer(binary: bool) -> Answer {
    Box::new(move |data, outcome, random| covers(data, outcome, random, binary))
}

fn covers(
    data: &DataSet,
    outcome: Outcome,
    random: &mut SplitMix,
    binary: bool,
) -> Result<bool, Refusal> {
    let count = data.clusters.iter().flatten().max().map_or(0, |last| *last as usize + 1);
    // The cluster effects on the mediator are independent of those on the outcome.
    let shared: Vec<[f64; 2]> = (0..count).map(|_| [(); 2].map(|()| random.symmetric())).collect();
    let (mut mediator, mut values) = (Vec::new(), Vec::new());
    for (row, treated) in data.treated.iter().enumerate() {
        let [to_mediator, to_outcome] =
            data.clusters.as_ref().map_or([0.0; 2], |codes| shared[codes[row] as usize]);
        let mean = 0.25 + STEP * number(*treated) + 0.1 * to_mediator;
        let value = match binary {
            true => number(random.chance(mean)),
            false => mean + 0.15 * random.symmetric(),
        };
        let place = 0.5 * (data.covariates[0][row] + data.covariates[1][row]);
        mediator.push(value);
        values.push(outcome.draw(random, value, place, to_outcome));
    }
    let clusters = data.clusters.as_deref();
    let found = front_door(&data.treated, &[&mediator], &values, clusters)?;
    let (low, high) = found.estimate.interval(0.05);
    Ok((low..=high).contains(&(STEP * outcome.effect())))
}
