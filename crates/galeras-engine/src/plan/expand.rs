//! Expands the steps of a file to the steps of a plan: matrices become cells, embedded workflows
//! become steps with a path in their name, references become tables.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::cell::{Cell, cell_suffix, fixed_keys, has_name, is_selected, join};
use super::choices::resolved;
use super::expander::{Expander, Extent, MAX_DEPTH, Site, StepCells, StepTargets, WorkflowFile};
use super::graph;
use super::load::read_workflow;
use super::model::{Input, StepTarget};
use super::params::{given_text, params, scope, stand_in};
use galeras_workflow::code::Code;
use galeras_workflow::{
    Axis, Cells, Diagnostics, From, Node, Span, StepKind, StepSpec, Text, Workflow,
    check_param_value, holds_expression, matrix_axes, quote, substitute_node,
};

/// Upper bound of a matrix's cells; each costs planning time.
const MAX_CELLS: usize = 10_000;

impl Expander {
    pub(super) async fn top(
        &mut self,
        workflow: &Workflow,
        base: &Path,
        params: Map<String, Value>,
    ) {
        let fixed = resolved(workflow, &params, &mut self.diagnostics);
        let site = Site {
            workflow: &fixed,
            written: workflow,
            base,
            params: &params,
            prefix: "",
            family: "",
        };
        if workflow.steps.iter().any(|step| matches!(step.kind, StepKind::Uses(_))) {
            self.measure(&site).await;
        }
        if self.extent.beyond.is_some() {
            return;
        }
        let targets = self.workflow(&site).await;
        if self.extent.beyond.is_some() {
            return;
        }
        for output in &site.workflow.outputs {
            if let Some(planned) = self.output(&site, output, &targets) {
                self.outputs.push(planned);
            }
        }
        self.plan_report(&site, &targets);
        self.keep_scope("", targets);
    }

    /// Walks the whole workflow without binding anything, so that one that is too large is rejected
    /// before it costs time and memory. Planning reports its mistakes later.
    async fn measure(&mut self, site: &Site<'_>) {
        let diagnostics = std::mem::take(&mut self.diagnostics);
        self.extent.measuring = true;
        self.workflow(site).await;
        self.diagnostics = diagnostics;
        // Planning reads them again and reports their mistakes.
        self.files.clear();
        if !self.report_excess(site) {
            self.extent = Extent::default();
        }
    }

    fn report_excess(&mut self, site: &Site<'_>) -> bool {
        let (Some(span), Some(excess)) = (self.extent.beyond, self.extent.excess()) else {
            return false;
        };
        let problem = site.error(Code::PlanLimit, excess, span);
        let help = "every `uses` adds all steps of the workflow that it names, once for each cell \
                    of a matrix";
        self.diagnostics.push(problem.with_label("with this step").with_help(help));
        true
    }

    async fn workflow(&mut self, site: &Site<'_>) -> StepTargets {
        if !self.extent.measuring {
            self.budget(site);
        }
        let order = graph::order(site.workflow, &mut self.diagnostics);
        let mut targets = StepTargets::new();
        let mut done = vec![false; site.workflow.steps.len()];
        order.iter().for_each(|i| done[*i] = true);
        // The results of steps on a cycle are unknown, and a name that several steps share is
        // ambiguous.
        let unclear = unclear(site.workflow, &done);
        self.unclear_cells(site, &unclear, &mut targets);
        for i in order {
            let step = &site.workflow.steps[i];
            let cells = self.cells(site, step, &targets);
            let mut planned = Vec::with_capacity(cells.len());
            for cell in cells {
                let target = match &step.kind {
                    StepKind::Uses(path) => {
                        self.extent.embedded += 1;
                        let first = self.steps.len();
                        let target = self.embed(site, step, path, &cell).await;
                        if site.prefix.is_empty() {
                            let cells = self.embedded.entry(step.name.value.clone()).or_default();
                            cells.push(first..self.steps.len());
                        }
                        target
                    }
                    StepKind::Op(_) | StepKind::Invalid => {
                        self.extent.steps += 1;
                        if self.extent.measuring {
                            StepTarget::Broken
                        } else {
                            self.step(site, step, &cell, &targets).await
                        }
                    }
                };
                planned.push((cell, target));
                if self.extent.excess().is_some() {
                    if site.prefix.is_empty() {
                        self.extent.beyond = Some(step.name.span);
                        if !self.extent.measuring {
                            self.report_excess(site);
                        }
                    }
                    return StepTargets::new();
                }
            }
            if unclear.contains(step.name.value.as_str()) {
                planned.iter_mut().for_each(|(_, target)| *target = StepTarget::Broken);
            }
            targets.insert(step.name.value.clone(), StepCells::new(planned));
        }
        // Steps on a cycle are checked as far as possible without their inputs.
        for (i, step) in site.workflow.steps.iter().enumerate() {
            if !done[i] && matches!(step.kind, StepKind::Op(_)) && !self.extent.measuring {
                let cells = targets.get(&step.name.value).map(StepCells::all);
                let cell = cells.and_then(<[_]>::first).map(|(cell, _)| cell.clone());
                self.step(site, step, &cell.unwrap_or_default(), &targets).await;
            }
        }
        if !self.extent.measuring {
            self.check_choices(site, &targets);
        }
        targets
    }

    /// The cells of steps without known tables. Runs twice, as steps on a cycle have each other's
    /// cells; mistakes in a matrix are reported when the step is planned.
    fn unclear_cells(
        &mut self,
        site: &Site<'_>,
        unclear: &HashSet<&str>,
        targets: &mut StepTargets,
    ) {
        if unclear.is_empty() {
            return;
        }
        let diagnostics = std::mem::take(&mut self.diagnostics);
        for _ in 0..2 {
            for step in site.workflow.steps.iter() {
                let name = step.name.value.as_str();
                if unclear.contains(name) {
                    let cells = self.cells(site, step, targets).into_iter();
                    let cells = cells.map(|cell| (cell, StepTarget::Broken)).collect();
                    targets.insert(name.to_string(), StepCells::new(cells));
                }
            }
        }
        self.diagnostics = diagnostics;
    }

    /// The cells of a step: those of the matrix steps it reads, times its own matrix.
    fn cells(&mut self, site: &Site<'_>, step: &StepSpec, targets: &StepTargets) -> Vec<Cell> {
        let mut cells: Vec<Cell> = vec![Vec::new()];
        for reference in step.from.iter().flat_map(From::refs) {
            let Some(upstream) = targets.get(&reference.step) else { continue };
            let selection = match &reference.cells {
                Cells::Plain => &[][..],
                Cells::Select(keys) => keys,
                Cells::All => continue,
            };
            let upstream = upstream.all().iter().map(|(cell, _)| cell);
            let chosen: Vec<&Cell> = upstream.filter(|cell| is_selected(cell, selection)).collect();
            let fixed = fixed_keys(&chosen, selection);
            let Some(joined) = join(&cells, &chosen, &fixed, MAX_CELLS) else {
                let message = format!("the step has more than {MAX_CELLS} cells");
                let help =
                    "it has one for every combination of the cells of the steps that it reads";
                let problem = site.error(Code::WrongValue, message, reference.span);
                self.diagnostics.push(problem.with_help(help));
                return Vec::new();
            };
            // A selection that fits no cell is reported when the table is looked up.
            if !joined.is_empty()
                || targets.get(&reference.step).is_some_and(|t| t.all().is_empty())
            {
                cells = joined;
            }
        }
        let Some(axes) = self.axes(site, step) else { return Vec::new() };
        for axis in &axes {
            let known = |name: &str| cells.iter().any(|cell| has_name(cell, name));
            if let Some(name) = axis.names.iter().find(|name| known(&name.value)) {
                let message =
                    format!("the input already has the matrix key {}", quote(&name.value));
                self.diagnostics.push(site.error(Code::DuplicateKey, message, name.span));
                continue;
            }
            if cells.len() * axis.points.len() > MAX_CELLS {
                let message = format!("the matrix has more than {MAX_CELLS} cells");
                let span = axis.names.first().map_or(step.name.span, |name| name.span);
                self.diagnostics.push(site.error(Code::WrongValue, message, span));
                return Vec::new();
            }
            cells = cells
                .iter()
                .flat_map(|cell| {
                    axis.points.iter().map(|point| {
                        let mut cell = cell.clone();
                        cell.push(point.clone());
                        cell
                    })
                })
                .collect();
        }
        cells
    }

    /// The axes of a step's own matrix, or `None` if it has a mistake.
    fn axes(&mut self, site: &Site<'_>, step: &StepSpec) -> Option<Vec<Axis>> {
        let Some(matrix) = &step.matrix else { return Some(Vec::new()) };
        let source = &site.workflow.source;
        let mut found = Diagnostics::new();
        if !holds_expression(matrix) {
            // The reader of the file has reported its mistakes.
            let axes = matrix_axes(matrix, source, &mut found);
            return (!found.has_errors()).then_some(axes);
        }
        let matrix = substitute_node(matrix, source, &scope(site.params), &mut found);
        let axes = match found.has_errors() {
            true => Vec::new(),
            false => matrix_axes(&matrix, source, &mut found),
        };
        let sound = !found.has_errors();
        self.diagnostics.extend(found);
        sound.then_some(axes)
    }

    async fn embed(
        &mut self,
        site: &Site<'_>,
        step: &StepSpec,
        path: &Text,
        cell: &Cell,
    ) -> StepTarget {
        let source = &site.workflow.source;
        let file = site.base.join(&path.value);
        let file = file.canonicalize().unwrap_or(file);
        let mut refuse = |code, message: String, span: Span, help: &str| {
            self.diagnostics.push(site.error(code, message, span).with_help(help));
            StepTarget::Broken
        };
        if !file.is_file() {
            let message = format!("there is no workflow file {}", quote(&path.value));
            return refuse(
                Code::MissingFile,
                message,
                path.span,
                "paths are relative to the workflow file",
            );
        }
        if self.embedding.contains(&file) {
            let message = format!("{} embeds itself", quote(&path.value));
            return refuse(Code::Cycle, message, path.span, "a workflow cannot contain itself");
        }
        if self.embedding.len() >= MAX_DEPTH {
            let message = format!("workflows embed one another more than {MAX_DEPTH} deep");
            let help = "name the workflows further down in the files above";
            return refuse(Code::PlanLimit, message, path.span, help);
        }
        if let Some(from) = &step.from {
            let span = from.refs().next().map_or(step.name.span, |r| r.span);
            let message = "a step with `uses` has no `from`".to_string();
            return refuse(
                Code::WrongInputs,
                message,
                span,
                "an embedded workflow reads its own sources; pass values to it through `with`",
            );
        }
        let display = site.base.join(&path.value).display().to_string();
        let Some(embedded) = self.embedded_file(&file, display) else {
            return StepTarget::Broken;
        };
        let (workflow, base) = &*embedded;
        let scope = self.cell_scope(site, cell);
        let mut given = BTreeMap::new();
        let empty = Vec::new();
        let entries = step.with.as_ref().and_then(Node::as_map).unwrap_or(&empty);
        for (key, value) in entries {
            let Some(name) = key.as_str() else { continue };
            let value = substitute_node(value, source, &scope, &mut self.diagnostics);
            match workflow.param(name) {
                Some(param) => {
                    let value =
                        match check_param_value(param, &value, source, &mut self.diagnostics) {
                            true => match value.as_str() {
                                // Its paths start in the folder of this file.
                                Some(text) => {
                                    let text = given_text(param.ty, text, site.base, base);
                                    Node::from_json(&Value::String(text), value.span)
                                }
                                None => value,
                            },
                            // A wrong value here is not a mistake in the other file.
                            false => Node::from_json(&stand_in(param), value.span),
                        };
                    given.insert(name.to_string(), value);
                }
                None => {
                    let message = format!("{} has no param {}", quote(&path.value), quote(name));
                    let known = workflow.params.iter().map(|p| p.name.value.as_str());
                    let problem = site.error(Code::UnknownParam, message, key.span);
                    self.diagnostics.push(problem.with_suggestion(name, known));
                }
            }
        }
        let inner_params =
            params(workflow, &given, Some((source, &step.name)), &mut self.diagnostics);
        let prefix = format!("{}{}{}/", site.prefix, step.name.value, cell_suffix(cell));
        let family = format!("{}{}/", site.family, step.name.value);
        let fixed = resolved(workflow, &inner_params, &mut self.diagnostics);
        let inner = Site {
            workflow: &fixed,
            written: workflow,
            base,
            params: &inner_params,
            prefix: &prefix,
            family: &family,
        };
        self.embedding.push(file);
        let targets = Box::pin(self.workflow(&inner)).await;
        self.embedding.pop();
        if self.extent.measuring || self.extent.excess().is_some() {
            return StepTarget::Broken;
        }
        let mut outputs = BTreeMap::new();
        for output in &inner.workflow.outputs {
            let name = &output.name.value;
            let input = match output.from.fixed() {
                Some(from) => self.table(&inner, from, &Vec::new(), &targets, name),
                None => None,
            };
            outputs.insert(name.clone(), input.unwrap_or_else(|| Input::unknown(name)));
        }
        self.keep_scope(&prefix, targets);
        StepTarget::Embedded(outputs)
    }

    /// The workflow in an embedded file, which is read once for all uses.
    fn embedded_file(&mut self, file: &Path, display: String) -> Option<Arc<WorkflowFile>> {
        let key: (PathBuf, String) = (file.to_path_buf(), display);
        if let Some(known) = self.files.get(&key) {
            return known.clone();
        }
        let parsed = read_workflow(file, &key.1, false, &mut self.diagnostics).map(Arc::new);
        self.files.insert(key, parsed.clone());
        parsed
    }
}

/// The names of the steps without an order, and of those that share a name.
fn unclear<'a>(workflow: &'a Workflow, ordered: &[bool]) -> HashSet<&'a str> {
    let mut seen = HashSet::new();
    let steps = workflow.steps.iter().zip(ordered);
    steps
        .filter(|(step, ordered)| !seen.insert(step.name.value.as_str()) || !**ordered)
        .map(|(step, _)| step.name.value.as_str())
        .collect()
}
