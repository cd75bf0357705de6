//! Which rows an outcome is analysed from, and what is missing in the others.

use super::adjustment::AdjustmentPlan;
use super::args::Args;
use super::frame::{AnalysisFrame, NONE};
use super::incomplete_units::IncompleteUnits;
use galeras_operator::missing_values::MissingValues;

/// The rows that are used for an outcome, and what is missing in those that could be.
#[derive(Default)]
pub(super) struct UsableRows {
    pub(super) kept: Vec<u32>,
    /// Rows without an arm, or of these arms without a value that is needed.
    pub(super) missing: usize,
    /// The part of them that no estimator can do without.
    pub(super) missing_always: usize,
    /// Per covariate, how many rows lack it.
    pub(super) missing_covariates: Vec<(String, usize)>,
    /// The units that lack an arm, whatever their values are.
    pub(super) absent: IncompleteUnits,
    /// Rows without an arm or a unit.
    pub(super) unknown: usize,
    /// Units that were left out because they lack an arm, or values under it.
    pub(super) left_out: usize,
}

impl UsableRows {
    pub(super) fn of(
        args: &Args,
        frame: &AnalysisFrame,
        plan: &AdjustmentPlan,
        outcome: &str,
        candidates: &[u32],
        treatment: Option<u32>,
    ) -> Self {
        let values = &frame.numbers[outcome];
        let codes = [&frame.units, &frame.clusters];
        let group_missing = |row: usize| codes.into_iter().flatten().any(|c| c.rows()[row] == NONE);
        let covariates: Vec<(&String, &Vec<f64>)> = plan
            .adjusted
            .iter()
            .chain(&plan.instruments)
            .chain(&args.absorb)
            .chain(&plan.mediators)
            .map(|name| (name, &frame.numbers[name]))
            .collect();
        let without_arm = frame.arms.rows().iter().filter(|arm| **arm == NONE).count();
        let no_unit =
            |row: &&u32| codes[0].as_ref().is_some_and(|c| c.rows()[**row as usize] == NONE);
        let without_unit = candidates.iter().filter(no_unit).count();
        let mut usable = Self {
            kept: Vec::with_capacity(candidates.len()),
            missing: without_arm,
            missing_always: without_arm,
            missing_covariates: covariates.iter().map(|(name, _)| ((*name).clone(), 0)).collect(),
            absent: IncompleteUnits::of(frame, treatment, candidates),
            unknown: without_arm + without_unit,
            left_out: 0,
        };
        for row in candidates {
            let at = *row as usize;
            let always = values[at].is_nan() || group_missing(at);
            let mut lacking = false;
            for ((_, column), (_, missing)) in covariates.iter().zip(&mut usable.missing_covariates)
            {
                if column[at].is_nan() {
                    *missing += 1;
                    lacking = true;
                }
            }
            usable.missing_always += usize::from(always);
            usable.missing += usize::from(always || lacking);
            // A row without an outcome is of no use; one without a covariate is, to estimators
            // that use none, unless the user wants all of them to have the same rows.
            let dropped = always || (lacking && args.missing == MissingValues::Drop);
            if !dropped {
                usable.kept.push(*row);
            }
        }
        if args.missing == MissingValues::Drop {
            // Every estimator has the same units, so that their estimates can be compared.
            let incomplete = IncompleteUnits::of(frame, treatment, &usable.kept);
            usable.kept.retain(|row| !incomplete.has(frame, *row));
            usable.left_out = incomplete.count();
        }
        usable
    }
}
