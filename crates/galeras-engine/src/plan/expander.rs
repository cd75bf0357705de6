//! The plan under construction and the state that its builders share: the current file, the targets
//! of step names, everything planned and reported so far.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::execution::context::SessionContext;
use serde_json::{Map, Value};

use super::cell::{Cell, matrix_values, plain};
use super::load::PlanSettings;
use super::model::{
    FileBudget, PlannedLimit, PlannedOutput, PlannedReport, PlannedStep, StepScope, StepTarget,
    add_ancestors,
};
use super::params::scope;
use super::registration::LockedAnalysis;
use galeras_operator::{BindContext, BoundStep, Operator, Pins, Registry};
use galeras_sql::session::{RowExpr, planning_session};
use galeras_workflow::code::Code;
use galeras_workflow::{
    Diagnostic, Diagnostics, Scope, SourceSpan, Span, StepSpec, Text, Workflow, collect_refs,
};

pub(super) type StepTargets = HashMap<String, StepCells>;

/// The cells of one step in order, indexed by their values: each cell of a matrix looks for
/// matching cells in every step that it reads.
#[derive(Default)]
pub(super) struct StepCells {
    cells: Vec<(Cell, StepTarget)>,
    /// The keys that every cell has, in the same order; `None` if they differ.
    keys: Option<Vec<String>>,
    /// Positions by the values of `keys`, as written.
    places: HashMap<Vec<String>, Vec<usize>>,
}

impl StepCells {
    pub(super) fn new(cells: Vec<(Cell, StepTarget)>) -> Self {
        let names = |cell: &Cell| cell.iter().map(|k| k.key.clone()).collect::<Vec<_>>();
        let keys = cells.first().map(|(cell, _)| names(cell)).unwrap_or_default();
        let same = cells.iter().all(|(cell, _)| cell.iter().map(|k| &k.key).eq(&keys));
        let mut places: HashMap<Vec<String>, Vec<usize>> = HashMap::new();
        if same {
            for (at, (cell, _)) in cells.iter().enumerate() {
                let values = cell.iter().map(|k| plain(&k.value)).collect();
                places.entry(values).or_default().push(at);
            }
        }
        Self { cells, keys: same.then_some(keys), places }
    }

    pub(super) fn all(&self) -> &[(Cell, StepTarget)] {
        &self.cells
    }

    /// The cells that may have these values, in order; `value` returns the value of a key as text.
    /// If it returns `None`, no such cell has the key.
    pub(super) fn candidates(
        &self,
        value: impl Fn(&str) -> Option<String>,
    ) -> Vec<&(Cell, StepTarget)> {
        let Some(keys) = &self.keys else { return self.cells.iter().collect() };
        let values: Option<Vec<String>> = keys.iter().map(|key| value(key)).collect();
        let places = values.and_then(|values| self.places.get(&values));
        places.into_iter().flatten().map(|at| &self.cells[*at]).collect()
    }
}

pub(super) struct Expander {
    pub(super) registry: Registry,
    pub(super) settings: PlanSettings,
    pub(super) named: String,
    pub(super) pins: Arc<Pins>,
    /// The names of registered steps, and their analyses in the lock file.
    pub(super) prereg: Vec<Text>,
    pub(super) locked: Vec<LockedAnalysis>,
    pub(super) diagnostics: Diagnostics,
    pub(super) steps: Vec<PlannedStep>,
    pub(super) outputs: Vec<PlannedOutput>,
    pub(super) report: PlannedReport,
    pub(super) budgets: Vec<FileBudget>,
    /// The targets of step names, by the prefix of the file.
    pub(super) scopes: HashMap<String, StepScope>,
    /// The contract files that steps name, and where.
    pub(super) contracts: Vec<(PathBuf, SourceSpan)>,
    /// The files that embed the current one.
    pub(super) embedding: Vec<PathBuf>,
    /// For planning: it has all functions, and the tables of one step at a time.
    pub(super) session: SessionContext,
    args_schemas: HashMap<&'static str, Arc<Value>>,
    /// Bound steps. Cells often differ only in their inputs.
    pub(super) bound: HashMap<BindKey, Arc<dyn BoundStep>>,
    /// The bound conditions of data tests, by columns and text.
    pub(super) conditions: HashMap<(SchemaRef, String), RowExpr>,
    /// Embedded files by path and display name, each read once; `None` if it is not a workflow.
    pub(super) files: HashMap<(PathBuf, String), Option<Arc<WorkflowFile>>>,
    pub(super) extent: Extent,
    /// The positions of the steps that came from steps with `uses` of the top file, by the name of
    /// the step, one range per cell.
    pub(super) embedded: BTreeMap<String, Vec<Range<usize>>>,
    /// The number of times that steps with mistakes were bound, to find further mistakes.
    pub(super) outlined: usize,
}

/// The parts of a bound step's inputs that differ between the steps of a plan.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct BindKey {
    operator: &'static str,
    arguments: String,
    base: PathBuf,
    inputs: Vec<(String, SchemaRef, Vec<String>)>,
    registration: Option<String>,
}

impl BindKey {
    pub(super) fn new(operator: &dyn Operator, arguments: &Value, cx: &BindContext) -> Self {
        let inputs = cx.inputs.iter();
        Self {
            operator: operator.descriptor().name,
            arguments: arguments.to_string(),
            base: cx.base.clone(),
            registration: cx.registration.as_ref().map(|registration| format!("{registration:?}")),
            inputs: inputs
                .map(|(port, table)| (port.clone(), Arc::clone(&table.schema), table.key.clone()))
                .collect(),
        }
    }
}

pub(super) type WorkflowFile = (Workflow, PathBuf);

/// The current file: its text, its folder, its parameters, the prefix of its steps' names.
pub(super) struct Site<'a> {
    /// All its references name their steps.
    pub(super) workflow: &'a Workflow,
    /// The same before params had their values.
    pub(super) written: &'a Workflow,
    pub(super) base: &'a Path,
    pub(super) params: &'a Map<String, Value>,
    pub(super) prefix: &'a str,
    /// The same without cells.
    pub(super) family: &'a str,
}

impl Site<'_> {
    pub(super) fn error(&self, code: Code, message: impl Into<String>, span: Span) -> Diagnostic {
        Diagnostic::error(code, message, &self.workflow.source, span)
    }
}

impl Expander {
    pub(super) fn new(
        registry: Registry,
        settings: PlanSettings,
        named: String,
        pins: Arc<Pins>,
        diagnostics: Diagnostics,
    ) -> Self {
        Self {
            registry,
            settings,
            named,
            pins,
            prereg: Vec::new(),
            locked: Vec::new(),
            diagnostics,
            steps: Vec::new(),
            outputs: Vec::new(),
            report: PlannedReport::default(),
            budgets: Vec::new(),
            scopes: HashMap::new(),
            contracts: Vec::new(),
            embedding: Vec::new(),
            session: planning_session(),
            args_schemas: HashMap::new(),
            bound: HashMap::new(),
            conditions: HashMap::new(),
            files: HashMap::new(),
            extent: Extent::default(),
            embedded: BTreeMap::new(),
            outlined: 0,
        }
    }

    pub(super) fn args_schema(&mut self, operator: &dyn Operator) -> Arc<Value> {
        let operator = operator.descriptor();
        let make = || Arc::new((operator.args_schema)());
        Arc::clone(self.args_schemas.entry(operator.name).or_insert_with(make))
    }

    pub(super) fn keep_scope(&mut self, prefix: &str, targets: StepTargets) {
        let steps = targets.into_iter().map(|(name, cells)| (name, cells.cells));
        self.scopes.insert(prefix.to_string(), steps.collect());
    }

    /// Removes the embedded steps that the top file does not need. An embedded workflow is planned
    /// completely before, so that all its mistakes are found. A step with `uses` that nothing reads
    /// runs completely, like any other step.
    pub(super) fn keep_needed(&mut self, limits: &mut [PlannedLimit]) {
        let Self { steps, outputs, report, scopes, embedded, .. } = self;
        if embedded.is_empty() {
            return;
        }
        let mut needed = vec![true; steps.len()];
        for range in embedded.values().flatten() {
            needed[range.clone()].fill(false);
        }
        let read = outputs.iter().map(|output| &output.input).chain(report.inputs());
        read.flat_map(|input| &input.tables).for_each(|table| needed[table.step] = true);
        add_ancestors(steps, &mut needed);
        for ranges in embedded.values() {
            if !ranges.iter().cloned().flatten().any(|at| needed[at]) {
                ranges.iter().cloned().flatten().for_each(|at| needed[at] = true);
            }
        }
        add_ancestors(steps, &mut needed);
        let mut places = Vec::with_capacity(needed.len());
        let mut kept = 0;
        for needed in &needed {
            places.push(kept);
            kept += usize::from(*needed);
        }
        let mut at = 0..;
        steps.retain(|_| at.next().is_some_and(|at: usize| needed[at]));
        let inputs = steps.iter_mut().flat_map(|step| &mut step.inputs);
        let inputs = inputs.chain(outputs.iter_mut().map(|output| &mut output.input));
        let inputs = inputs.chain(report.inputs_mut());
        for table in inputs.flat_map(|input| &mut input.tables) {
            table.step = places[table.step];
        }
        for limit in limits {
            limit.steps.retain(|at| needed[*at]);
            limit.steps.iter_mut().for_each(|at| *at = places[*at]);
        }
        for scope in scopes.values_mut() {
            for cells in scope.values_mut() {
                cells.retain_mut(|(_, target)| match target {
                    StepTarget::Step(at) if !needed[*at] => false,
                    StepTarget::Step(at) => {
                        *at = places[*at];
                        true
                    }
                    StepTarget::Embedded(outputs) => {
                        outputs.retain(|_, input| input.tables.iter().all(|t| needed[t.step]));
                        let tables = outputs.values_mut().flat_map(|input| &mut input.tables);
                        tables.for_each(|table| table.step = places[table.step]);
                        true
                    }
                    StepTarget::Outline(_) | StepTarget::Broken => true,
                });
            }
            scope.retain(|_, cells| !cells.is_empty());
        }
    }

    pub(super) fn cell_scope(&self, site: &Site<'_>, cell: &Cell) -> Scope {
        let mut scope = scope(site.params);
        scope.matrix = matrix_values(cell);
        scope
    }

    pub(super) fn check_expressions(&mut self, site: &Site<'_>, step: &StepSpec) {
        if let Some(with) = &step.with {
            collect_refs(with, &site.workflow.source, &mut self.diagnostics);
        }
    }
}

/// Upper bound of steps, including every cell of a matrix and embedded workflows.
pub(super) const MAX_STEPS: usize = 50_000;

/// Upper bound of embedded workflows, each use counted.
pub(super) const MAX_EMBEDDED: usize = 10_000;

pub(super) const MAX_DEPTH: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Extent {
    /// Steps are only counted, not bound.
    pub(super) measuring: bool,
    pub(super) steps: usize,
    pub(super) embedded: usize,
    /// The step of the top file that exceeded a limit.
    pub(super) beyond: Option<Span>,
}

impl Extent {
    pub(super) fn excess(&self) -> Option<String> {
        if self.embedded > MAX_EMBEDDED {
            return Some(format!("the plan would embed more than {MAX_EMBEDDED} workflows"));
        }
        (self.steps > MAX_STEPS).then(|| format!("the plan would have more than {MAX_STEPS} steps"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_may_have_as_many_as_the_limits_say_and_no_more() {
        let mut extent = Extent { embedded: MAX_EMBEDDED, steps: MAX_STEPS, ..Extent::default() };
        assert_eq!(extent.excess(), None);
        extent.steps += 1;
        assert_eq!(extent.excess().as_deref(), Some("the plan would have more than 50000 steps"));
        extent.embedded += 1;
        assert!(extent.excess().is_some_and(|what| what.contains("embed more than 10000")));
    }
}
