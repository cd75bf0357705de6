//! The plan under construction, and what all its builders share: the file at hand, what the
//! names of its steps stand for, everything planned and reported so far.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::model::{Cell, Input, PlannedOutput, PlannedStep};
use super::params::scope;
use super::settings::PlanSettings;
use crate::operator::{Pins, Registry};
use crate::workflow::{Diagnostics, Scope, SourceSpan, StepSpec, Workflow, collect_refs};

/// What the name of a step stands for, in one cell.
#[derive(Clone)]
pub(super) enum StepTarget {
    /// A planned step.
    Step(usize),
    /// An embedded workflow: its outputs.
    Embedded(BTreeMap<String, Input>),
    /// Something that could not be planned; the reason is reported.
    Broken,
}

/// The cells of the steps of one file.
pub(super) type StepTargets = HashMap<String, Vec<(Cell, StepTarget)>>;

/// Builds the plan step by step.
pub(super) struct Expander {
    pub(super) registry: Registry,
    pub(super) settings: PlanSettings,
    /// The facts that the lock file pins.
    pub(super) pins: Arc<Pins>,
    pub(super) diagnostics: Diagnostics,
    pub(super) steps: Vec<PlannedStep>,
    pub(super) outputs: Vec<PlannedOutput>,
    /// The contract files that steps name, and where.
    pub(super) contracts: Vec<(PathBuf, SourceSpan)>,
    /// The files that embed the one at hand.
    pub(super) embedding: Vec<PathBuf>,
}

/// A file at hand: its text, its folder, its parameters, the prefix of its steps' names.
pub(super) struct Site<'a> {
    pub(super) workflow: &'a Workflow,
    pub(super) base: &'a Path,
    pub(super) params: &'a Map<String, Value>,
    pub(super) prefix: &'a str,
}

impl Expander {
    pub(super) fn new(
        registry: Registry,
        settings: PlanSettings,
        pins: Arc<Pins>,
        diagnostics: Diagnostics,
    ) -> Self {
        Self {
            registry,
            settings,
            pins,
            diagnostics,
            steps: Vec::new(),
            outputs: Vec::new(),
            contracts: Vec::new(),
            embedding: Vec::new(),
        }
    }

    pub(super) fn finish(self) -> (Vec<PlannedStep>, Vec<PlannedOutput>, Diagnostics) {
        (self.steps, self.outputs, self.diagnostics)
    }

    /// The scope of expressions in a cell of a step.
    pub(super) fn cell_scope(&self, site: &Site<'_>, cell: &Cell) -> Scope {
        let mut scope = scope(site.params);
        scope.matrix = cell.iter().cloned().collect();
        scope
    }

    /// Reports mistakes in expressions of a step that has no cell to be bound in.
    pub(super) fn check_expressions(&mut self, site: &Site<'_>, step: &StepSpec) {
        if let Some(with) = &step.with {
            collect_refs(with, &site.workflow.source, &mut self.diagnostics);
        }
    }
}
