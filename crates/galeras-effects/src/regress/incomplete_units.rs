//! Units that lack an arm of a contrast: rows that are absent are missing, as are those without a
//! value.

use super::frame::{AnalysisFrame, NONE};
use galeras_base::prose::count;

/// The units of some rows that have none under one of two arms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct IncompleteUnits {
    /// Units without a row under the treatment.
    pub(super) without_treatment: usize,
    /// Units without a row under control.
    pub(super) without_control: usize,
    /// All units, complete or not.
    pub(super) units: usize,
    /// Per unit of the frame, which arms it has: control, treatment.
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

    /// How many lack an arm: as many rows are absent.
    pub(super) fn count(&self) -> usize {
        self.without_treatment + self.without_control
    }

    /// Whether the unit of a row of the frame lacks an arm.
    pub(super) fn has(&self, frame: &AnalysisFrame, row: u32) -> bool {
        let Some(units) = &frame.units else { return false };
        let unit = units.rows()[row as usize];
        unit != NONE && self.arms.get(unit as usize).is_some_and(|has| *has != [true, true])
    }

    /// What is said of them, if there are any; with the names of the arms.
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
