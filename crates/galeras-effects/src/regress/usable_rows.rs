//! The rows that an outcome is analysed from, and the gaps in the others.

use super::adjustment::AdjustmentPlan;
use super::args::Args;
use super::frame::{AnalysisFrame, NONE};
use galeras_base::prose::count;
use galeras_operator::missing_values::MissingValues;

/// The rows that are used for an outcome, and counts of those that are not.
#[derive(Default)]
pub(super) struct UsableRows {
    pub(super) kept: Vec<u32>,
    /// Rows without an arm, or of these arms without a value that is needed.
    pub(super) missing: usize,
    /// The part of them that no estimator can do without.
    pub(super) missing_always: usize,
    /// Per covariate, the number of rows that lack it.
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

/// The units of some rows that have none under one of two arms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct IncompleteUnits {
    pub(super) without_treatment: usize,
    pub(super) without_control: usize,
    pub(super) units: usize,
    /// Per unit of the frame, whether it has control and treatment.
    arms: Vec<[bool; 2]>,
}

impl IncompleteUnits {
    /// Those of these rows of the frame; a row without a unit belongs to none. Where no unit has
    /// both arms, units are not what is compared, and so nothing is absent.
    pub(super) fn of(frame: &AnalysisFrame, treatment: Option<u32>, rows: &[u32]) -> Self {
        let Some(units) = &frame.units else { return Self::default() };
        let mut arms = vec![[false; 2]; units.names().len()];
        for row in rows {
            let unit = units.rows()[*row as usize];
            if unit != NONE {
                let treated = Some(frame.arms.rows()[*row as usize]) == treatment;
                arms[unit as usize][usize::from(treated)] = true;
            }
        }
        let number = |wanted: [bool; 2]| arms.iter().filter(|has| **has == wanted).count();
        let complete = number([true, true]);
        if complete == 0 {
            return Self::default();
        }
        let (without_treatment, without_control) = (number([true, false]), number([false, true]));
        let units = complete + without_treatment + without_control;
        Self { without_treatment, without_control, units, arms }
    }

    /// The number of absent rows: one per unit that lacks an arm.
    pub(super) fn count(&self) -> usize {
        self.without_treatment + self.without_control
    }

    pub(super) fn has(&self, frame: &AnalysisFrame, row: u32) -> bool {
        let Some(units) = &frame.units else { return false };
        let unit = units.rows()[row as usize];
        unit != NONE && self.arms.get(unit as usize).is_some_and(|has| *has != [true, true])
    }

    pub(super) fn reason(&self, treatment: &str, control: &str) -> Option<String> {
        let arms = [(self.without_treatment, treatment), (self.without_control, control)];
        let lacking: Vec<String> = arms
            .into_iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, arm)| format!("{} no row under `{arm}`", count(n, "unit has", "units have")))
            .collect();
        (!lacking.is_empty()).then(|| {
            format!(
                "of {} {} (missing: drop leaves such units out)",
                count(self.units, "unit", "units"),
                lacking.join(", ")
            )
        })
    }
}
