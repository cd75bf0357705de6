//! The standard errors against sandwiches of the whole stack whose derivatives are numerical.

use super::{Sample, close};
use crate::propensity::{Estimand, Propensity, aipw, weighting};
use crate::tests::{Draw, slices, solve};

/// A treatment that depends on the covariates, clusters of three rows.
fn sample(seed: u64, n: usize) -> Sample {
    let (mut draw, mut data) = (Draw(seed), Sample::default());
    for row in 0..n {
        let (a, b) = (draw.normal(), 3.0 + 2.0 * draw.normal());
        let eta = 0.9 * a - 0.6 * (b - 3.0);
        let t = draw.uniform() < 1.0 / (1.0 + (-eta).exp());
        let effect = if t { 1.0 + 0.5 * a } else { 0.0 };
        data.push([a, b], t, 2.0 + a * a + 0.4 * b + effect + draw.normal());
        data.clusters.push(row as u32 / 3);
    }
    data
}

/// The root of L A⁻¹ B A⁻ᵀ Lᵀ for equations g(parameters, row), A by central differences.
fn sandwich(
    equations: impl Fn(&[f64], usize) -> Vec<f64>,
    parameters: &[f64],
    contrast: &[f64],
    rows: usize,
    clusters: Option<&[u32]>,
) -> f64 {
    let size = parameters.len();
    let total = |at: &[f64]| {
        (0..rows).fold(vec![0.0; size], |mut sum, row| {
            sum.iter_mut().zip(equations(at, row)).for_each(|(s, g)| *s += g);
            sum
        })
    };
    for (position, value) in total(parameters).iter().enumerate() {
        assert!(value.abs() < 1e-6, "equation {position} is not solved: {value}");
    }
    // The transpose of A, of which L A⁻¹ needs the solution.
    let mut bread = vec![vec![0.0; size]; size];
    for (position, row) in bread.iter_mut().enumerate() {
        let width = 1e-5 * parameters[position].abs().max(1.0);
        let mut at = parameters.to_vec();
        at[position] += width;
        let above = total(&at);
        at[position] -= 2.0 * width;
        let below = total(&at);
        for (place, value) in row.iter_mut().enumerate() {
            *value = -(above[place] - below[place]) / (2.0 * width);
        }
    }
    let direction = solve(bread, vec![contrast.to_vec()]).0.remove(0);
    let groups = clusters.map_or(rows, |codes| *codes.iter().max().unwrap() as usize + 1);
    let mut sums = vec![0.0; groups];
    for row in 0..rows {
        let group = clusters.map_or(row, |codes| codes[row] as usize);
        sums[group] +=
            equations(parameters, row).iter().zip(&direction).map(|(g, d)| g * d).sum::<f64>();
    }
    sums.iter().map(|sum| sum * sum).sum::<f64>().sqrt()
}

impl Sample {
    fn row(&self, row: usize) -> [f64; 3] {
        [1.0, self.columns[0][row], self.columns[1][row]]
    }

    fn t(&self, row: usize) -> f64 {
        f64::from(u8::from(self.treated[row]))
    }

    fn score(&self, theta: &[f64], row: usize) -> f64 {
        let eta: f64 = self.row(row).iter().zip(theta).map(|(x, b)| x * b).sum();
        1.0 / (1.0 + (-eta).exp())
    }

    /// The logistic equations, each row with its share of the penalty.
    fn logistic(&self, theta: &[f64], row: usize, c: Option<f64>) -> Vec<f64> {
        let residual = self.t(row) - self.score(theta, row);
        let strength = c.map_or(0.0, |c| 1.0 / c) / self.treated.len() as f64;
        let x = self.row(row);
        (0..3).map(|j| x[j] * residual - if j == 0 { 0.0 } else { strength * theta[j] }).collect()
    }

    /// Least squares on the rows of an arm.
    fn least_squares(&self, arm: bool) -> Vec<f64> {
        let mut gram = vec![vec![0.0; 3]; 3];
        let mut right = vec![0.0; 3];
        for row in (0..self.treated.len()).filter(|row| self.treated[*row] == arm) {
            let x = self.row(row);
            for a in 0..3 {
                right[a] += x[a] * self.outcome[row];
                for b in 0..3 {
                    gram[a][b] += x[a] * x[b];
                }
            }
        }
        solve(gram, vec![right]).0.remove(0)
    }
}

fn theta(fit: &Propensity) -> Vec<f64> {
    [&[fit.intercept], fit.coefficients.as_slice()].concat()
}

#[test]
fn weighting_has_the_sandwich_of_its_stack() {
    let data = sample(7, 240);
    let (x, t, y) = (slices(&data.columns), &data.treated, &data.outcome);
    for c in [None, Some(0.05)] {
        let fit = Propensity::fit(&x, t, c).unwrap();
        for estimand in [Estimand::Ate, Estimand::Att, Estimand::Atc, Estimand::Ato] {
            let clustered = Some(data.clusters.as_slice());
            for (clip, clusters) in [
                ((0.0, 1.0), None),
                ((0.2, 0.8), None),
                ((0.0, 1.0), clustered),
                ((0.2, 0.8), clustered),
            ] {
                let found = weighting(&x, t, y, &fit, estimand, clip, clusters).unwrap();
                assert_eq!(found.clipped > 0, clip.0 > 0.0);
                let equations = |at: &[f64], row: usize| {
                    let e = data.score(at, row).clamp(clip.0, clip.1);
                    let (t, y) = (data.t(row), data.outcome[row]);
                    let (one, none) = match estimand {
                        Estimand::Ate => (1.0 / e, 1.0 / (1.0 - e)),
                        Estimand::Att => (1.0, e / (1.0 - e)),
                        Estimand::Atc => ((1.0 - e) / e, 1.0),
                        Estimand::Ato => (1.0 - e, e),
                    };
                    let mut g = data.logistic(at, row, c);
                    g.push(t * one * (y - at[3]));
                    g.push((1.0 - t) * none * (y - at[4]));
                    g
                };
                let mut at = theta(&fit);
                at.push(found.control_mean + found.estimate.value);
                at.push(found.control_mean);
                let expected = sandwich(equations, &at, &[0.0, 0.0, 0.0, 1.0, -1.0], 240, clusters);
                let what = format!("{estimand:?} {c:?} {clip:?}");
                close(&what, found.estimate.standard_error, expected, 1e-7);
            }
        }
    }
}

fn robust(data: &Sample, fit: &Propensity, clip: (f64, f64), clustered: bool) -> f64 {
    let covariates = slices(&data.columns);
    let clusters = clustered.then_some(data.clusters.as_slice());
    let found = aipw(&covariates, &data.treated, &data.outcome, fit, clip, clusters).unwrap();
    let mut at = theta(fit);
    at.extend(data.least_squares(true));
    at.extend(data.least_squares(false));
    at.push(found.estimate.value);
    let equations = |at: &[f64], row: usize| {
        let e = data.score(at, row).clamp(clip.0, clip.1);
        let (t, y, x) = (data.t(row), data.outcome[row], data.row(row));
        let mut g = data.logistic(at, row, fit.c);
        let inner = |b: &[f64]| x.iter().zip(b).map(|(x, b)| x * b).sum::<f64>();
        let (one, none) = (inner(&at[3..6]), inner(&at[6..9]));
        g.extend(x.map(|x| x * t * (y - one)));
        g.extend(x.map(|x| x * (1.0 - t) * (y - none)));
        let psi = one - none + t * (y - one) / e - (1.0 - t) * (y - none) / (1.0 - e);
        g.push(psi - at[9]);
        g
    };
    let mut contrast = [0.0; 10];
    contrast[9] = 1.0;
    let expected = sandwich(equations, &at, &contrast, data.treated.len(), clusters);
    let what = format!("aipw {clip:?} {clustered} {:?}", fit.c);
    close(&what, found.estimate.standard_error, expected, 1e-7);
    found.estimate.standard_error
}

#[test]
fn augmented_weighting_has_the_sandwich_of_its_stack() {
    let data = sample(11, 240);
    for c in [None, Some(0.05)] {
        let fit = Propensity::fit(&slices(&data.columns), &data.treated, c).unwrap();
        let plain = robust(&data, &fit, (0.0, 1.0), false);
        let clipped = robust(&data, &fit, (0.2, 0.8), false);
        let clustered = robust(&data, &fit, (0.2, 0.8), true);
        assert!(plain != clipped && clipped != clustered);
    }
}
