//! The function that is minimised over the relative covariance parameters θ.

use std::f64::consts::TAU;

use super::design::{Design, Products};
use super::factor::{Factoriser, System};
use super::minimise::Objective;
use crate::refusal::require_column;
use crate::{ColumnRef, Refusal};

/// The profiled deviance, or the profiled REML criterion, of a design.
pub(super) struct Criterion {
    factoriser: Factoriser,
    widths: Vec<usize>,
    reml: bool,
    /// Rows, minus the number of fixed effects for REML.
    pub(super) degrees: f64,
    /// The terms that depend neither on θ nor on the scale of the design.
    constant: f64,
}

impl Criterion {
    pub(super) fn new(design: &Design<'_>, reml: bool) -> Result<Self, Refusal> {
        let products = Products::new(design);
        refuse_explained_by_fixed(design, &products)?;
        let widths: Vec<usize> = design.terms.iter().map(|term| term.width()).collect();
        let fixed = design.fixed();
        let degrees = (design.rows - if reml { fixed } else { 0 }) as f64;
        let mut constant = degrees * 2.0 * design.scale.ln();
        if reml {
            // ln |X'X| of the original columns; that of the basis is 0.
            let transform = &design.ordinary.transform;
            let diagonal = (0..fixed).map(|at| transform[at * fixed + at].abs().ln());
            constant -= 2.0 * diagonal.sum::<f64>();
        }
        let factoriser = Factoriser::new(products, widths.clone(), fixed, design.rows)?;
        Ok(Self { factoriser, widths, reml, degrees, constant })
    }

    pub(super) fn parameters(&self) -> usize {
        self.widths.iter().map(|width| width * (width + 1) / 2).sum()
    }

    /// The start of the search: Λ = I, as in lme4.
    pub(super) fn start(&self) -> Vec<f64> {
        let mut theta = Vec::with_capacity(self.parameters());
        for width in &self.widths {
            for column in 0..*width {
                theta.push(1.0);
                theta.extend(std::iter::repeat_n(0.0, width - 1 - column));
            }
        }
        theta
    }

    /// The positions of the diagonal elements of Λ in θ, each with the number of elements of its
    /// column from there on, which are contiguous.
    pub(super) fn diagonal(&self) -> Vec<(usize, usize)> {
        let mut places = Vec::new();
        let mut at = 0;
        for width in &self.widths {
            for column in 0..*width {
                places.push((at, width - column));
                at += width - column;
            }
        }
        places
    }

    /// For each term its block of Λ, row-major. θ holds the columns of the lower triangles.
    pub(super) fn lambda(&self, theta: &[f64]) -> Vec<Vec<f64>> {
        let mut values = theta.iter();
        let block = |width: &usize| {
            let mut block = vec![0.0; width * width];
            for column in 0..*width {
                for row in column..*width {
                    block[row * width + column] = values.next().copied().unwrap_or(0.0);
                }
            }
            block
        };
        self.widths.iter().map(block).collect()
    }

    /// The factor at θ; `None` if rounding makes it indefinite.
    pub(super) fn system(&mut self, theta: &[f64]) -> Option<System> {
        let lambda = self.lambda(theta);
        self.factoriser.factor(&lambda)
    }

    pub(super) fn of(&self, system: &System) -> f64 {
        if system.residual <= 0.0 {
            return f64::INFINITY;
        }
        self.determinants(system)
            + self.degrees * (1.0 + (TAU * system.residual / self.degrees).ln())
            + self.constant
    }

    pub(super) fn determinants(&self, system: &System) -> f64 {
        system.log_random + if self.reml { system.log_fixed } else { 0.0 }
    }

    /// The criterion at θ; infinite if there is no factor.
    pub(super) fn at(&mut self, theta: &[f64]) -> f64 {
        match self.system(theta) {
            Some(system) => self.of(&system),
            None => f64::INFINITY,
        }
    }
}

impl Objective for Criterion {
    fn start(&self) -> Vec<f64> {
        Criterion::start(self)
    }

    fn diagonal(&self) -> Vec<(usize, usize)> {
        Criterion::diagonal(self)
    }

    fn at(&mut self, parameters: &[f64]) -> f64 {
        Criterion::at(self, parameters)
    }
}

/// Refuses random effects that the fixed effects explain completely.
pub(super) fn refuse_explained_by_fixed(
    design: &Design<'_>,
    products: &Products,
) -> Result<(), Refusal> {
    let width = design.fixed() + 1;
    for (at, term) in design.terms.iter().enumerate() {
        let nodes = products.first_node[at]..products.first_node[at + 1];
        let left = nodes.into_iter().any(|node| {
            let Ok(pair) = products.pairs.binary_search(&(node as u32, node as u32)) else {
                return false;
            };
            let own = products.offsets[pair];
            (0..term.width()).any(|effect| {
                let square = products.values[own + effect * term.width() + effect];
                let start = products.fixed_offsets[node] + effect * width;
                let taken = &products.fixed_values[start..start + width - 1];
                square - taken.iter().map(|value| value * value).sum::<f64>() > 1e-9 * square
            })
        });
        let problem = "has groups that the fixed effects tell apart, so that no random effect of \
                       it can be seen";
        require_column(ColumnRef::Grouping(at), left, problem)?;
    }
    Ok(())
}
