//! Proportional odds: a logistic regression of an ordered outcome with a threshold between each two
//! neighbouring levels.

#[cfg(test)]
mod tests;

use crate::cholesky::Cholesky;
use crate::linear::{Covariance, treatment_column};
use crate::propensity::design::{BLOCK, StandardisedDesign, combine};
use crate::propensity::logistic::expit;
use crate::{ColumnRef, Estimate, Refusal};

/// An outcome with more levels is not treated as ordinal.
const MOST_LEVELS: usize = 50;
const MOST_STEPS: usize = 200;
/// The squared Newton step, in standard errors, after which one more full step is exact.
const CONVERGED: f64 = 1e-16;
/// A probability this close to 1 counts as certain.
const CERTAIN: f64 = 1e-10;
/// The share 1 - R² of a covariate below which the others explain it.
const DEPENDENT: f64 = 1e-10;

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
/// of statsmodels' `OrderedModel(distr="logit")`.
///
/// Columns have one entry for each of n rows. `kind` is one of `Classic`, `Hc0`, `Hc1`, `Cr0` and
/// `Cr1`: the others need leverages, which this model does not have. The reference distribution is
/// normal for independent rows, and Student's t with G - 1 degrees of freedom for G clusters.
///
/// # Errors
/// [`Refusal::TooFew`] if an arm is empty, below two clusters or with too few rows;
/// [`Refusal::Constant`], [`Refusal::Collinear`] for covariates by position; [`Refusal::Other`]
/// with fewer than 2 or more than 50 levels, for separation, for a kind that is not defined, or if
/// the fit does not converge.
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
    let columns: Vec<&[f64]> =
        std::iter::once(indicator.as_slice()).chain(covariates.iter().copied()).collect();
    let of_treatment = |position: usize| match position.checked_sub(1) {
        None => ColumnRef::Treatment,
        Some(covariate) => ColumnRef::Covariate(covariate),
    };
    let design = StandardisedDesign::new(&columns, rows)
        .map_err(|refusal| refusal.map_covariate(of_treatment))?;
    let gram = design.gram(&vec![1.0; rows]);
    Cholesky::of_lower(&gram, design.width(), DEPENDENT)
        .map_err(|column| Refusal::Collinear { column: of_treatment(column.saturating_sub(1)) })?;
    let model = OrdinalModel { design: &design, codes: &codes, thresholds: levels.len() - 1 };
    if rows <= model.width() {
        return Err(Refusal::TooFew { what: "rows", found: rows, needed: model.width() + 1 });
    }
    let (parameters, factor) = model.maximise()?;
    let at = model.thresholds;
    let mut unit = vec![0.0; model.width()];
    unit[at] = 1.0;
    let direction = factor.solve(&unit);
    let variance = model.variance(&parameters, &direction, direction[at], kind, clusters)?;
    let (_, scale) = design.standard(0);
    let standard_error = variance.sqrt() / scale;
    let value = parameters[at] / scale;
    if !(standard_error > 0.0 && standard_error.is_finite() && value.is_finite()) {
        return Err(Refusal::Other(format!(
            "the {kind} variance is zero: the rows or clusters leave no variation to judge by"
        )));
    }
    let degrees = match clusters.filter(|_| kind.is_clustered()) {
        Some(codes) => (distinct(codes) - 1) as f64,
        None => f64::INFINITY,
    };
    Ok(OrdinalEffect { log_odds_ratio: Estimate { value, standard_error, degrees }, levels })
}

/// The levels of a column, ascending, and the position of each row among them.
fn levels(outcome: &[f64]) -> Result<(Vec<f64>, Vec<usize>), Refusal> {
    if outcome.iter().any(|y| !y.is_finite()) {
        let problem = "has a value that is not finite".to_owned();
        return Err(Refusal::UnusableColumn { column: ColumnRef::Outcome, problem });
    }
    // Adding zero makes -0.0 equal to 0.0.
    let mut levels: Vec<f64> = outcome.iter().map(|y| y + 0.0).collect();
    levels.sort_unstable_by(f64::total_cmp);
    levels.dedup();
    if levels.len() < 2 {
        return Err(Refusal::Constant(ColumnRef::Outcome));
    }
    if levels.len() > MOST_LEVELS {
        return Err(Refusal::Other(format!(
            "the outcome has {} levels, more than {MOST_LEVELS}: proportional odds are for a scale \
             (`wilcoxon` compares ranks of any outcome)",
            levels.len()
        )));
    }
    let code = |y: &f64| levels.partition_point(|level| *level < *y);
    let codes = outcome.iter().map(code).collect();
    Ok((levels, codes))
}

fn distinct(codes: &[u32]) -> usize {
    let mut sorted = codes.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted.len()
}

/// The parameters are the thresholds, ascending, and then the slopes of standardised columns.
struct OrdinalModel<'a> {
    design: &'a StandardisedDesign<'a>,
    codes: &'a [usize],
    thresholds: usize,
}

struct Point {
    objective: f64,
    gradient: Vec<f64>,
    hessian: Vec<f64>,
    /// The largest probability of a row's observed level.
    surest: f64,
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

    /// `parameters` without its thresholds, with an intercept of zero: the coefficients of the
    /// design.
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

    fn evaluate(&self, parameters: &[f64]) -> Point {
        let (width, design_width) = (self.width(), self.design.width());
        let mut point = Point {
            objective: 0.0,
            gradient: vec![0.0; width],
            hessian: vec![0.0; width * width],
            surest: 0.0,
        };
        let slopes = self.slopes(parameters);
        let mut predictor = [0.0; BLOCK];
        let mut z = vec![0.0; design_width - 1];
        self.design.blocks(&mut self.design.scratch(), |start, length, block| {
            combine(block, &slopes, &mut predictor[..length]);
            let mut part = 0.0;
            for row in 0..length {
                let level = self.codes[start + row];
                let terms = self.terms(parameters, level, predictor[row]);
                part -= terms.probability.ln();
                point.surest = point.surest.max(terms.probability);
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
        let mut point = self.evaluate(&parameters);
        for _ in 0..MOST_STEPS {
            let Ok(factor) = Cholesky::of_lower(&point.hessian, width, f64::EPSILON) else {
                return Err(separated());
            };
            let step = factor.solve(&point.gradient);
            let decrement: f64 = step.iter().zip(&point.gradient).map(|(s, g)| s * g).sum();
            let rounding = decrement <= 1e-26 * point.objective.abs().max(1.0);
            if rounding || decrement <= CONVERGED {
                if !rounding {
                    parameters.iter_mut().zip(&step).for_each(|(p, s)| *p -= s);
                    point = self.evaluate(&parameters);
                }
                if point.surest >= 1.0 - CERTAIN {
                    return Err(separated());
                }
                let factor = Cholesky::of_lower(&point.hessian, width, f64::EPSILON);
                return factor.map(|factor| (parameters, factor)).map_err(|_| separated());
            }
            let mut share = 1.0;
            loop {
                let trial: Vec<f64> =
                    parameters.iter().zip(&step).map(|(p, s)| p - share * s).collect();
                // Thresholds out of order make a probability negative, and the objective NaN.
                let ordered = trial[..self.thresholds].is_sorted_by(|a, b| a < b);
                let next = ordered.then(|| self.evaluate(&trial));
                match next {
                    Some(next)
                        if next.objective <= point.objective + 1e-13 * point.objective.abs() =>
                    {
                        (parameters, point) = (trial, next);
                        break;
                    }
                    _ => share *= 0.5,
                }
                if share < 1e-10 {
                    return Err(not_converged());
                }
            }
        }
        Err(if point.surest >= 1.0 - CERTAIN { separated() } else { not_converged() })
    }

    /// The variance of a linear combination of the parameters whose product with the inverse
    /// Hessian is `direction`.
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
        match kind {
            Covariance::Classic => return Ok(classic),
            Covariance::Hc0 | Covariance::Hc1 | Covariance::Cr0 | Covariance::Cr1 => {}
            _ => {
                return Err(Refusal::Other(format!(
                    "{kind} is not defined for proportional odds, which has no leverages \
                     (classic, HC0, HC1, CR0 and CR1 are)"
                )));
            }
        }
        let influence = self.influence(parameters, direction);
        let Some(codes) = clusters.filter(|_| kind.is_clustered()) else {
            if kind.is_clustered() {
                return Err(Refusal::Other(format!("{kind} needs clusters")));
            }
            let sum: f64 = influence.iter().map(|value| value * value).sum();
            return Ok(if kind == Covariance::Hc1 { sum * factor } else { sum });
        };
        let count = distinct(codes);
        if codes.len() != self.codes.len() {
            return Err(Refusal::Other("there is not one cluster for each row".into()));
        }
        if count < 2 {
            return Err(Refusal::TooFew { what: "clusters", found: count, needed: 2 });
        }
        let size = codes.iter().max().map_or(0, |last| *last as usize + 1);
        let mut sums = vec![0.0; size];
        for (code, value) in codes.iter().zip(&influence) {
            sums[*code as usize] += value;
        }
        let sum: f64 = sums.iter().map(|value| value * value).sum();
        let groups = count as f64;
        Ok(match kind {
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

fn separated() -> Refusal {
    Refusal::Other(
        "the treatment and the covariates tell the level of some rows without error \
         (separation): a coefficient is infinite"
            .into(),
    )
}

fn not_converged() -> Refusal {
    Refusal::Other("the proportional odds model did not converge".into())
}
