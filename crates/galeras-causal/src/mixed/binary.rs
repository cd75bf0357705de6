//! Mixed logistic models: the log odds of an outcome of yes and no are X β + Z b, with intercepts b of
//! groups, by Laplace's approximation, as in lme4's `glmer` (Bates, Mächler, Bolker and Walker 2015).
//!
//! For given deviations θ and fixed effects the modes u of the random effects (b = θ u) maximise the
//! penalised likelihood, by Newton steps. The deviance -2 ln p(y | u) + u'u + ln |Λ'Z'WZΛ + I| is
//! then minimised over θ and the fixed effects. The groups of the largest term share no row, so that
//! their block of the matrix is diagonal: they are taken out one by one, and a dense matrix of the
//! other groups is left.

use std::f64::consts::PI;

use super::criterion::refuse_explained_by_fixed;
use super::design::{Design, Products, RandomTerm};
use super::fit::{MixedFamily, MixedFit, RandomCovariance};
use super::minimise::{Objective, SINGULAR, derivatives, free_parameters, minimise};
use crate::cholesky::Cholesky;
use crate::glm::check_binary;
use crate::linear::ClusterRows;
use crate::propensity::design::{StandardisedDesign, dot};
use crate::propensity::logistic::{expit, solve};
use crate::refusal::require;
use crate::{Estimate, Refusal};

/// The most groups besides those of the largest term.
const MOST_DENSE: usize = 1000;
/// Newton steps after which there is no value.
const MOST_STEPS: usize = 60;
/// The unit of fixed effects in the search, in coordinates of the orthonormal basis: with it their
/// standard errors have the size of those of θ.
const UNIT: f64 = 20.0;

/// The intercepts of the groups of one term.
struct Groups<'a> {
    of_rows: &'a [u32],
    /// The position of its deviation in θ.
    term: usize,
    /// The first of its modes.
    first: usize,
}

/// The deviance, as a function of the deviations and of the moves of the fixed effects from those of
/// a model without groups.
struct BinaryCriterion<'a> {
    design: &'a Design<'a>,
    outcome: &'a [f64],
    /// The log odds of the model without groups.
    base: Vec<f64>,
    /// The term with the most groups first.
    groups: Vec<Groups<'a>>,
    /// The rows of each group of the largest term.
    largest: ClusterRows,
    /// The modes at the last point, where the next search begins.
    modes: Vec<f64>,
}

/// A Newton step of the modes.
struct Step {
    modes: Vec<f64>,
    /// The gradient times the step: zero at the modes.
    decrement: f64,
    log_determinant: f64,
}

impl<'a> BinaryCriterion<'a> {
    fn new(
        design: &'a Design<'a>,
        outcome: &'a [f64],
        random: &[RandomTerm<'a>],
        base: Vec<f64>,
    ) -> Result<Self, Refusal> {
        let mut order: Vec<usize> = (0..random.len()).collect();
        order.sort_by_key(|term| std::cmp::Reverse(design.terms[*term].levels));
        let mut first = 0;
        let mut groups = Vec::with_capacity(order.len());
        for term in order {
            groups.push(Groups { of_rows: random[term].groups, term, first });
            first += design.terms[term].levels;
        }
        let largest = design.terms[groups[0].term].levels;
        let rest = first - largest;
        let reason = format!(
            "there are {rest} groups besides the {largest} of the largest grouping column, and at \
             most {MOST_DENSE} can be fitted; leave out a grouping column, or take a coarser one"
        );
        require(rest <= MOST_DENSE, reason)?;
        let largest = ClusterRows::new(groups[0].of_rows);
        Ok(Self { design, outcome, base, groups, largest, modes: vec![0.0; first] })
    }

    fn terms(&self) -> usize {
        self.groups.len()
    }

    /// The log odds of each row.
    fn log_odds(&self, fixed: &[f64], theta: &[f64], modes: &[f64]) -> Vec<f64> {
        let mut odds = fixed.to_vec();
        for groups in &self.groups {
            for (value, group) in odds.iter_mut().zip(groups.of_rows) {
                *value += theta[groups.term] * modes[groups.first + *group as usize];
            }
        }
        odds
    }

    /// -2 ln p(y | u) + u'u.
    fn penalised(&self, odds: &[f64], modes: &[f64]) -> f64 {
        let rows = odds.iter().zip(self.outcome);
        let loss: f64 =
            rows.map(|(odds, y)| odds.max(0.0) + (-odds.abs()).exp().ln_1p() - y * odds).sum();
        2.0 * loss + dot(modes, modes)
    }

    fn newton(&self, odds: &[f64], theta: &[f64], modes: &[f64]) -> Option<Step> {
        let risks: Vec<f64> = odds.iter().map(|odds| expit(*odds)).collect();
        let mut gradient: Vec<f64> = modes.iter().map(|mode| -mode).collect();
        for groups in &self.groups {
            for ((y, risk), group) in self.outcome.iter().zip(&risks).zip(groups.of_rows) {
                gradient[groups.first + *group as usize] += theta[groups.term] * (y - risk);
            }
        }
        let [largest, others @ ..] = self.groups.as_slice() else { return None };
        let count = self.largest.count();
        let rest = modes.len() - count;
        let mut matrix = vec![0.0; rest * rest];
        matrix.iter_mut().step_by(rest + 1).for_each(|cell| *cell = 1.0);
        let mut right = gradient[count..].to_vec();
        let mut log_determinant = 0.0_f64;
        let mut diagonal = Vec::with_capacity(count);
        let mut couplings: Vec<Vec<(usize, f64)>> = Vec::with_capacity(count);
        let mut cells = vec![0.0; rest];
        for (group, members) in self.largest.members().enumerate() {
            let own = theta[largest.term];
            let mut pivot = 1.0_f64;
            let mut touched: Vec<usize> = Vec::new();
            for row in members {
                let weight = risks[*row] * (1.0 - risks[*row]);
                pivot += own * own * weight;
                let places: Vec<(usize, f64)> = others
                    .iter()
                    .map(|one| {
                        let place = one.first - count + one.of_rows[*row] as usize;
                        (place, theta[one.term])
                    })
                    .collect();
                for (place, scale) in &places {
                    if !touched.contains(place) {
                        touched.push(*place);
                    }
                    cells[*place] += own * scale * weight;
                    for (other, by) in &places {
                        if other <= place {
                            matrix[place * rest + other] += scale * by * weight;
                        }
                    }
                }
            }
            log_determinant += pivot.ln();
            for place in &touched {
                right[*place] -= cells[*place] * gradient[group] / pivot;
                for other in touched.iter().filter(|other| *other <= place) {
                    matrix[place * rest + other] -= cells[*place] * cells[*other] / pivot;
                }
            }
            let coupled = touched.iter().map(|place| (*place, std::mem::take(&mut cells[*place])));
            couplings.push(coupled.collect());
            diagonal.push(pivot);
        }
        let factor = Cholesky::of_lower(&matrix, rest, 0.0).ok()?;
        let upper = factor.upper();
        log_determinant += 2.0 * upper.iter().step_by(rest + 1).map(|cell| cell.ln()).sum::<f64>();
        let tail = factor.solve(&right);
        let head = couplings.iter().zip(&diagonal).zip(&gradient).map(|((coupled, pivot), own)| {
            let along: f64 = coupled.iter().map(|(place, cell)| cell * tail[*place]).sum();
            (own - along) / pivot
        });
        let step: Vec<f64> = head.chain(tail.iter().copied()).collect();
        let decrement = dot(&gradient, &step);
        decrement.is_finite().then_some(Step { modes: step, decrement, log_determinant })
    }

    fn deviance(&mut self, parameters: &[f64]) -> Option<f64> {
        let (theta, moves) = parameters.split_at(self.terms());
        let fixed: Vec<f64> = (0..self.design.rows)
            .map(|row| self.base[row] + UNIT * dot(self.design.basis_row(row), moves))
            .collect();
        let mut modes = self.modes.clone();
        let mut odds = self.log_odds(&fixed, theta, &modes);
        let mut value = self.penalised(&odds, &modes);
        let mut last = f64::INFINITY;
        for _ in 0..MOST_STEPS {
            let step = self.newton(&odds, theta, &modes)?;
            let rounding = step.decrement <= 1e-10 && step.decrement >= 0.25 * last;
            if rounding || step.decrement <= 1e-22 * (1.0 + value) {
                self.modes = modes;
                return Some(value + step.log_determinant);
            }
            last = step.decrement;
            let mut share = 1.0;
            loop {
                let next: Vec<f64> =
                    modes.iter().zip(&step.modes).map(|(mode, by)| mode + share * by).collect();
                let there = self.log_odds(&fixed, theta, &next);
                let reached = self.penalised(&there, &next);
                if reached <= value + 1e-12 * (1.0 + value.abs()) {
                    (modes, odds, value) = (next, there, reached);
                    break;
                }
                share *= 0.5;
                if share < 1e-6 {
                    return None;
                }
            }
        }
        None
    }
}

impl Objective for BinaryCriterion<'_> {
    fn start(&self) -> Vec<f64> {
        let mut start = vec![1.0; self.terms()];
        start.resize(self.terms() + self.design.fixed(), 0.0);
        start
    }

    fn diagonal(&self) -> Vec<(usize, usize)> {
        (0..self.terms()).map(|term| (term, 1)).collect()
    }

    fn at(&mut self, parameters: &[f64]) -> f64 {
        self.deviance(parameters).unwrap_or(f64::INFINITY)
    }
}

/// Fits the log odds of `outcome`, 0 or 1, on 1, the `fixed` columns and intercepts of the groups of
/// `random`, by maximum likelihood with Laplace's approximation. Deviance, coefficients and
/// deviations are those of lme4's `glmer` at its optimum; standard errors are from the second
/// derivatives of the deviance by all parameters, as lme4's and glmmTMB's. Errors are those of
/// [`mixed`](super::mixed), other values of the outcome, slopes, separation, and more than 1000
/// groups besides those of the largest term.
pub fn mixed_binary(
    outcome: &[f64],
    fixed: &[&[f64]],
    random: &[RandomTerm<'_>],
) -> Result<MixedFit, Refusal> {
    check_binary(outcome)?;
    let only_intercepts = random.iter().all(|term| term.intercept && term.slopes.is_empty());
    require(only_intercepts, "of yes and no only intercepts of groups are fitted, and no slopes")?;
    let design = Design::new(outcome, fixed, random)?;
    refuse_explained_by_fixed(&design, &Products::new(&design))?;
    let plain = StandardisedDesign::new(fixed, design.rows)?;
    let without_groups = solve(&plain, outcome, None).map_err(|refusal| match refusal {
        Refusal::Separated | Refusal::NoOverlap(_) => Refusal::Other(
            "the fixed effects predict the outcome of some rows without error (separation): a \
             coefficient is infinite"
                .into(),
        ),
        Refusal::Other(_) => {
            Refusal::Other("the logistic regression on the fixed effects did not converge".into())
        }
        other => other,
    })?;
    let (intercept, slopes) = plain.raw(&without_groups.coefficients);
    let base = plain.predict(&without_groups.coefficients);
    let mut criterion = BinaryCriterion::new(&design, outcome, random, base)?;
    let minimum = minimise(&mut criterion);
    let terms = random.len();
    let (theta, moves) = minimum.theta.split_at(terms);
    let covariance = covariance_of_moves(&mut criterion, &minimum.theta, minimum.value)
        .ok_or_else(|| {
            Refusal::Other(
                "the search for the variances did not converge: they may not be identified by \
                 these groups; try fewer random effects"
                    .into(),
            )
        })?;
    let size = design.fixed();
    let rows = design.ordinary.transform.chunks_exact(size);
    let coefficients = std::iter::once(intercept).chain(slopes).zip(rows).map(|(plain, row)| {
        let along = |line: &[f64]| dot(row, line);
        let variance: f64 = row
            .iter()
            .zip(covariance.chunks_exact(size))
            .map(|(cell, line)| cell * along(line))
            .sum();
        Estimate {
            value: plain + UNIT * dot(row, moves),
            standard_error: UNIT * variance.sqrt(),
            degrees: f64::INFINITY,
        }
    });
    let of_term = |(term, deviation): (usize, &f64)| RandomCovariance {
        levels: design.terms[term].levels,
        covariance: vec![deviation * deviation],
    };
    Ok(MixedFit {
        family: MixedFamily::Binary,
        coefficients: coefficients.collect(),
        random: theta.iter().enumerate().map(of_term).collect(),
        residual_variance: PI * PI / 3.0,
        theta: theta.to_vec(),
        criterion: minimum.value,
        converged: minimum.converged,
        singular: theta.iter().any(|deviation| *deviation < SINGULAR),
        rows: design.rows,
    })
}

/// The covariance of the moves of the fixed effects, row-major: twice the inverse of the second
/// derivatives, without deviations of zero. `None` if these are not positive definite.
fn covariance_of_moves(
    criterion: &mut BinaryCriterion<'_>,
    parameters: &[f64],
    value: f64,
) -> Option<Vec<f64>> {
    let (_, hessian) = derivatives(criterion, parameters, value);
    let free = free_parameters(&criterion.diagonal(), parameters);
    let places: Vec<usize> = (0..parameters.len()).filter(|at| free[*at]).collect();
    let size = places.len();
    let pairs = places.iter().flat_map(|row| places.iter().map(move |column| (*row, *column)));
    let inner: Vec<f64> =
        pairs.map(|(row, column)| hessian[row * parameters.len() + column]).collect();
    let factor = Cholesky::of_lower(&inner, size, 1e-12).ok()?;
    let fixed = criterion.design.fixed();
    let mut covariance = Vec::with_capacity(fixed * fixed);
    for column in size - fixed..size {
        let mut unit = vec![0.0; size];
        unit[column] = 2.0;
        covariance.extend_from_slice(&factor.solve(&unit)[size - fixed..]);
    }
    Some(covariance)
}
