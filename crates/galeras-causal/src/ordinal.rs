//! Proportional odds: a logistic regression of an ordered outcome with thresholds between levels.

#[cfg(test)]
mod tests;

use crate::cholesky::Cholesky;
use crate::column::{cluster_sums, distinct};
use crate::linear::{Covariance, treatment_column, treatment_first};
use crate::newton::{Failure, Point, minimise};
use crate::propensity::design::{BLOCK, StandardisedDesign, combine};
use crate::propensity::logistic::expit;
use crate::refusal::{at_least, require, require_column};
use crate::{ColumnRef, Estimate, Refusal};

/// An outcome with more levels is not treated as ordinal.
const MOST_LEVELS: usize = 50;
/// A probability this close to 1 counts as certain.
const CERTAIN: f64 = 1e-10;

/// The effect of a binary treatment on an ordered outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct OrdinalEffect {
    /// The logarithm of the ratio of the odds of a higher level, the same at every level.
    pub log_odds_ratio: Estimate,
    /// The levels of the outcome, ascending.
    pub levels: Vec<f64>,
}

/// The proportional odds model (McCullagh 1980, JRSS B 42:109) of `outcome`, whose values are
/// ordered levels, on `treated` and `covariates`, by maximum likelihood. Coefficients equal those
/// of statsmodels' `OrderedModel(distr="logit")`. The reference distribution is normal, or
/// Student's t with G - 1 degrees of freedom for G clusters. Errors are those of
/// [`adjusted`](crate::adjusted), more than 50 levels, separation, a kind that needs leverages, and
/// no convergence.
pub fn proportional_odds(
    treated: &[bool],
    outcome: &[f64],
    covariates: &[&[f64]],
    kind: Covariance,
    clusters: Option<&[u32]>,
) -> Result<OrdinalEffect, Refusal> {
    let rows = outcome.len();
    let indicator = treatment_column(treated, rows)?;
    let (levels, codes) = levels(outcome)?;
    let columns = treatment_first(&indicator, covariates);
    let design = StandardisedDesign::new(&columns, rows).map_err(Refusal::after_treatment)?;
    Cholesky::of_gram(&design.gram(&vec![1.0; rows]), design.width())
        .map_err(Refusal::after_treatment)?;
    let model = OrdinalModel { design: &design, codes: &codes, thresholds: levels.len() - 1 };
    at_least("rows", rows, model.width() + 1)?;
    let (parameters, factor) = model.maximise()?;
    let at = model.thresholds;
    let mut unit = vec![0.0; model.width()];
    unit[at] = 1.0;
    let direction = factor.solve(&unit);
    let variance = model.variance(&parameters, &direction, direction[at], kind, clusters)?;
    let (_, scale) = design.standard(0);
    let standard_error = variance.sqrt() / scale;
    let value = parameters[at] / scale;
    let reason =
        format!("the {kind} variance is zero: the rows or clusters leave no variation to judge by");
    let usable = standard_error > 0.0 && standard_error.is_finite() && value.is_finite();
    require(usable, reason)?;
    let degrees = match clusters.filter(|_| kind.is_clustered()) {
        Some(codes) => (distinct(codes) - 1) as f64,
        None => f64::INFINITY,
    };
    Ok(OrdinalEffect { log_odds_ratio: Estimate { value, standard_error, degrees }, levels })
}

/// The levels of a column, ascending, and the position of each row among them.
fn levels(outcome: &[f64]) -> Result<(Vec<f64>, Vec<usize>), Refusal> {
    let finite = outcome.iter().all(|y| y.is_finite());
    require_column(ColumnRef::Outcome, finite, "has a value that is not finite")?;
    // Adding zero makes -0.0 equal to 0.0.
    let mut levels: Vec<f64> = outcome.iter().map(|y| y + 0.0).collect();
    levels.sort_unstable_by(f64::total_cmp);
    levels.dedup();
    if levels.len() < 2 {
        return Err(Refusal::Constant(ColumnRef::Outcome));
    }
    let reason = format!(
        "the outcome has {} levels, more than {MOST_LEVELS}: proportional odds are for a scale \
         (`wilcoxon` compares ranks of any outcome)",
        levels.len()
    );
    require(levels.len() <= MOST_LEVELS, reason)?;
    let code = |y: &f64| levels.partition_point(|level| *level < *y);
    let codes = outcome.iter().map(code).collect();
    Ok((levels, codes))
}

/// The parameters are the thresholds, ascending, and then the slopes of standardised columns.
struct OrdinalModel<'a> {
    design: &'a StandardisedDesign<'a>,
    codes: &'a [usize],
    thresholds: usize,
}

/// The probability of a row's level and the derivatives of its logarithm by the distances of the
/// linear predictor from the thresholds above and below the level.
struct RowTerms {
    probability: f64,
    first: [f64; 2],
    /// By above twice, below twice, and both.
    second: [f64; 3],
}

impl OrdinalModel<'_> {
    fn width(&self) -> usize {
        self.thresholds + self.design.width() - 1
    }

    /// `parameters` with an intercept of zero in place of the thresholds.
    fn slopes(&self, parameters: &[f64]) -> Vec<f64> {
        std::iter::once(0.0).chain(parameters[self.thresholds..].iter().copied()).collect()
    }

    fn terms(&self, parameters: &[f64], level: usize, eta: f64) -> RowTerms {
        // P(Y <= k) = expit(threshold k - eta).
        let above = (level < self.thresholds).then(|| parameters[level] - eta);
        let below = level.checked_sub(1).map(|at| parameters[at] - eta);
        let density = |x: f64| expit(x) * expit(-x);
        let probability = match (above, below) {
            (Some(a), None) => expit(a),
            (None, Some(b)) => expit(-b),
            // On the side where nothing cancels.
            (Some(a), Some(b)) if b > 0.0 => expit(-b) - expit(-a),
            (Some(a), Some(b)) => expit(a) - expit(b),
            (None, None) => 1.0,
        };
        let part = |x: Option<f64>, sign: f64| match x {
            None => (0.0, 0.0),
            Some(x) => {
                let first = sign * density(x) / probability;
                (first, first * (expit(-x) - expit(x)))
            }
        };
        let ((a1, a2), (b1, b2)) = (part(above, 1.0), part(below, -1.0));
        RowTerms { probability, first: [a1, b1], second: [a2 - a1 * a1, b2 - b1 * b1, -a1 * b1] }
    }

    /// The extreme of the point is the largest probability of a row's observed level.
    fn evaluate(&self, parameters: &[f64]) -> Point {
        let mut point = Point::zero(self.width());
        let slopes = self.slopes(parameters);
        let mut predictor = [0.0; BLOCK];
        let mut z = vec![0.0; self.design.width() - 1];
        self.design.blocks(&mut self.design.scratch(), |start, length, block| {
            combine(block, &slopes, &mut predictor[..length]);
            let mut part = 0.0;
            for row in 0..length {
                let level = self.codes[start + row];
                let terms = self.terms(parameters, level, predictor[row]);
                part -= terms.probability.ln();
                point.extreme = point.extreme.max(terms.probability);
                for (position, cell) in z.iter_mut().enumerate() {
                    *cell = block[(position + 1) * BLOCK + row];
                }
                self.add(&mut point, &terms, level, &z);
            }
            point.objective += part;
        });
        point
    }

    /// Adds a row's derivatives of the negative log-likelihood.
    fn add(&self, point: &mut Point, terms: &RowTerms, level: usize, z: &[f64]) {
        let (width, first) = (self.width(), self.thresholds);
        let [a1, b1] = terms.first;
        let [a2, b2, ab] = terms.second;
        let (above, below) = ((level < first).then_some(level), level.checked_sub(1));
        let (by_eta, by_eta_twice) = (-(a1 + b1), a2 + b2 + 2.0 * ab);
        if let Some(above) = above {
            point.gradient[above] -= a1;
            point.hessian[above * width + above] -= a2;
            if let Some(below) = below {
                point.hessian[above * width + below] -= ab;
            }
        }
        if let Some(below) = below {
            point.gradient[below] -= b1;
            point.hessian[below * width + below] -= b2;
        }
        for (i, zi) in z.iter().enumerate() {
            let line = (first + i) * width;
            point.gradient[first + i] -= by_eta * zi;
            if let Some(above) = above {
                point.hessian[line + above] += (a2 + ab) * zi;
            }
            if let Some(below) = below {
                point.hessian[line + below] += (b2 + ab) * zi;
            }
            for (j, zj) in z[..=i].iter().enumerate() {
                point.hessian[line + first + j] -= by_eta_twice * zi * zj;
            }
        }
    }

    fn maximise(&self) -> Result<(Vec<f64>, Cholesky), Refusal> {
        let width = self.width();
        // Without slopes the thresholds are the log odds of the shares below them.
        let mut parameters = vec![0.0; width];
        for (at, threshold) in parameters[..self.thresholds].iter_mut().enumerate() {
            let below = self.codes.iter().filter(|code| **code <= at).count() as f64;
            *threshold = (below / (self.codes.len() as f64 - below)).ln();
        }
        // Thresholds out of order make a probability negative, and the objective NaN.
        let evaluate = |at: &[f64]| {
            at[..self.thresholds].is_sorted_by(|a, b| a < b).then(|| self.evaluate(at))
        };
        let certain = |point: &Point| point.extreme >= 1.0 - CERTAIN;
        let separated = || {
            Refusal::Other(
                "the treatment and the covariates tell the level of some rows without error \
                 (separation): a coefficient is infinite"
                    .into(),
            )
        };
        let first = self.evaluate(&parameters);
        let optimum =
            minimise(parameters, first, 1e-13, evaluate, |_, _| false).map_err(|failure| {
                let separation = match &failure {
                    Failure::Stopped(..) => true,
                    Failure::NoDescent => false,
                    Failure::Exhausted(_, point) => certain(point),
                };
                let other = "the proportional odds model did not converge";
                if separation { separated() } else { Refusal::Other(other.into()) }
            })?;
        let point = match optimum.exact {
            true => optimum.point,
            false => self.evaluate(&optimum.coefficients),
        };
        let factor = Cholesky::of_lower(&point.hessian, width, f64::EPSILON);
        match factor {
            Ok(factor) if !certain(&point) => Ok((optimum.coefficients, factor)),
            _ => Err(separated()),
        }
    }

    /// The variance of a combination of the parameters; `direction` is its inverse Hessian product.
    fn variance(
        &self,
        parameters: &[f64],
        direction: &[f64],
        classic: f64,
        kind: Covariance,
        clusters: Option<&[u32]>,
    ) -> Result<f64, Refusal> {
        let rows = self.codes.len() as f64;
        let factor = rows / (rows - self.width() as f64);
        if kind == Covariance::Classic {
            return Ok(classic);
        }
        let reason = format!(
            "{kind} is not defined for proportional odds, which has no leverages (classic, HC0, \
             HC1, CR0 and CR1 are)"
        );
        require(!kind.needs_leverages(), reason)?;
        let clusters = clusters.filter(|_| kind.is_clustered());
        require(clusters.is_some() || !kind.is_clustered(), format!("{kind} needs clusters"))?;
        let all = clusters.is_none_or(|codes| codes.len() == self.codes.len());
        require(all, "there is not one cluster for each row")?;
        let count = clusters.map_or(self.codes.len(), distinct);
        at_least("clusters", count, 2)?;
        let sums = cluster_sums(&self.influence(parameters, direction), clusters);
        let sum: f64 = sums.iter().map(|value| value * value).sum();
        let groups = count as f64;
        Ok(match kind {
            Covariance::Hc1 => sum * factor,
            Covariance::Cr1 => sum * groups / (groups - 1.0) * factor * (rows - 1.0) / rows,
            _ => sum,
        })
    }

    /// The contribution of each row to the error of a linear combination of the parameters.
    fn influence(&self, parameters: &[f64], direction: &[f64]) -> Vec<f64> {
        let along = self.design.predict(&self.slopes(direction));
        let predictor = self.design.predict(&self.slopes(parameters));
        let rows = self.codes.iter().zip(predictor.iter().zip(&along));
        rows.map(|(level, (eta, along))| {
            let [a1, b1] = self.terms(parameters, *level, *eta).first;
            let above = if *level < self.thresholds { a1 * direction[*level] } else { 0.0 };
            let below = level.checked_sub(1).map_or(0.0, |at| b1 * direction[at]);
            above + below - (a1 + b1) * along
        })
        .collect()
    }
}
