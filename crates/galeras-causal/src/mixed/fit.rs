//! A fitted linear mixed model.

use std::collections::HashMap;

use super::criterion::Criterion;
use super::degrees::{satterthwaite, variances};
use super::design::{Design, RandomTerm};
use super::minimise::{SINGULAR, minimise};
use crate::{Estimate, Refusal};

/// The distribution of the outcome, given the random effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MixedFamily {
    /// Normal, with one variance of residuals.
    Normal,
    /// Yes and no, by the logistic function.
    Binary,
}

/// A fitted mixed model.
#[derive(Clone, Debug)]
pub struct MixedFit {
    /// The distribution that was fitted.
    pub family: MixedFamily,
    /// The intercept and then the fixed columns, with Satterthwaite's degrees of freedom; log odds
    /// and the normal distribution for yes and no.
    pub coefficients: Vec<Estimate>,
    /// The covariance of the effects of a group, for each random term.
    pub random: Vec<RandomCovariance>,
    /// The variance of the residuals, in squared units of the outcome; for yes and no that of the
    /// logistic distribution, π²/3, which is not estimated.
    pub residual_variance: f64,
    /// The relative covariance parameters θ in lme4's order: triangles of Λ, column by column.
    pub theta: Vec<f64>,
    /// The minimum of the REML criterion, or of the deviance for maximum likelihood. Equals lme4's.
    pub criterion: f64,
    /// The gradient is zero at the minimum, and no direction descends.
    pub converged: bool,
    /// A variance is zero or a correlation 1 or -1, to lme4's tolerance of 1e-4 in θ.
    pub singular: bool,
    /// Rows.
    pub rows: usize,
}

/// The covariance of the effects of each group of a term.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomCovariance {
    /// The number of groups.
    pub levels: usize,
    /// Row-major, as wide as the number of effects (intercept first, if there is one, then slopes),
    /// in squared units of the outcome per unit of the column.
    pub covariance: Vec<f64>,
}

impl RandomCovariance {
    /// The number of effects of a group.
    pub fn width(&self) -> usize {
        self.covariance.len().isqrt()
    }

    /// The correlation of two effects; `None` if one of them has zero variance.
    pub fn correlation(&self, one: usize, other: usize) -> Option<f64> {
        let width = self.width();
        let variances = self.covariance[one * width + one] * self.covariance[other * width + other];
        let correlation = self.covariance[one * width + other] / variances.sqrt();
        (variances > 0.0).then_some(correlation.clamp(-1.0, 1.0))
    }
}

impl MixedFit {
    /// The number of estimated parameters: coefficients, θ, and the residual variance, if any.
    pub fn parameters(&self) -> usize {
        let residual = usize::from(self.family == MixedFamily::Normal);
        self.coefficients.len() + self.theta.len() + residual
    }

    /// The logarithm of the likelihood, or of the restricted likelihood (lme4's `logLik`).
    pub fn log_likelihood(&self) -> f64 {
        -0.5 * self.criterion
    }

    /// Akaike's criterion (lme4's `AIC`).
    pub fn aic(&self) -> f64 {
        self.criterion + 2.0 * self.parameters() as f64
    }

    /// Schwarz's criterion with the number of rows (lme4's `BIC`).
    pub fn bic(&self) -> f64 {
        self.criterion + (self.rows as f64).ln() * self.parameters() as f64
    }
}

/// Fits `outcome` on 1, the `fixed` columns and the `random` effects, by REML or by maximum
/// likelihood. All columns have one entry for each row. Equals lme4's `lmer`; degrees of freedom
/// are those of lmerTest. Refuses a grouping factor ([`ColumnRef::Grouping`](crate::ColumnRef))
/// with one group, with as many effects as rows, with the groups of an earlier one, or with groups
/// that the fixed effects determine; groups that explain the outcome completely, or whose crossing
/// makes the system too large.
pub fn mixed(
    outcome: &[f64],
    fixed: &[&[f64]],
    random: &[RandomTerm<'_>],
    reml: bool,
) -> Result<MixedFit, Refusal> {
    let design = Design::new(outcome, fixed, random)?;
    let mut criterion = Criterion::new(&design, reml)?;
    let minimum = minimise(&mut criterion);
    let no_rest = || {
        Refusal::Other(
            "the groups explain the outcome without a rest: no residual is left to estimate a \
             variance from"
                .into(),
        )
    };
    let system = criterion.system(&minimum.theta).ok_or_else(no_rest)?;
    let square = system.residual / criterion.degrees;
    // The residuals of least squares have a mean square of 1.
    if square.is_nan() || square <= 1e-12 {
        return Err(no_rest());
    }
    let size = design.fixed();
    let transform = &design.ordinary.transform;
    let degrees = satterthwaite(&mut criterion, &minimum.theta, transform, size);
    let degrees = degrees.unwrap_or_else(|| vec![f64::INFINITY; size]);
    let variances = variances(&system.fixed_factor, transform, size);
    let moved = transform.chunks_exact(size).map(|row| {
        row.iter().zip(&system.coefficients).map(|(a, b)| a * b).sum::<f64>() * design.scale
    });
    let estimates = design.ordinary.coefficients.iter().zip(moved);
    let coefficients = estimates
        .zip(variances.iter().zip(degrees))
        .map(|((ordinary, moved), (variance, degrees))| Estimate {
            value: ordinary + moved,
            standard_error: (square * variance).sqrt() * design.scale,
            degrees,
        })
        .collect();
    let singular = criterion.diagonal().iter().any(|(at, _)| minimum.theta[*at].abs() < SINGULAR);
    let unit = square * design.scale * design.scale;
    let (random, theta) = covariances(&design, &criterion, &minimum.theta, unit);
    Ok(MixedFit {
        family: MixedFamily::Normal,
        coefficients,
        random,
        residual_variance: unit,
        theta,
        criterion: minimum.value,
        converged: minimum.converged,
        singular,
        rows: design.rows,
    })
}

/// σ² Λ Λ' and θ, for slopes on their own scales; `unit` is σ².
fn covariances(
    design: &Design<'_>,
    criterion: &Criterion,
    theta: &[f64],
    unit: f64,
) -> (Vec<RandomCovariance>, Vec<f64>) {
    let (mut random, mut unscaled) = (Vec::new(), Vec::new());
    for (term, mut block) in design.terms.iter().zip(criterion.lambda(theta)) {
        let width = term.width();
        for row in 0..width {
            for column in 0..width {
                block[row * width + column] /= term.scales[row];
            }
        }
        for column in 0..width {
            unscaled.extend((column..width).map(|row| block[row * width + column]));
        }
        let cell = |at: usize| {
            let (row, column) = (at / width, at % width);
            let pairs =
                (0..=row.min(column)).map(|k| block[row * width + k] * block[column * width + k]);
            unit * pairs.sum::<f64>()
        };
        let covariance = (0..width * width).map(cell).collect();
        random.push(RandomCovariance { levels: term.levels, covariance });
    }
    (random, unscaled)
}

/// True if every group of `inner` lies in one group of `outer`; both are codes of the same rows.
pub fn is_nested(inner: &[u32], outer: &[u32]) -> bool {
    let mut within = HashMap::new();
    inner.iter().zip(outer).all(|(inner, outer)| *within.entry(inner).or_insert(outer) == outer)
}
