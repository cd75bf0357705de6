//! From the steps of a file to the steps of a plan: matrices become cells, embedded workflows
//! become steps with a path in their name, references become tables.
//!
//! Does not live here: the binding of one step (`bind`), the order of steps (`graph`).

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::code;
use super::graph;
use super::load::{Settings, params, read, scope};
use super::model::{
    Cell, Input, OutputFormat, PlannedOutput, PlannedStep, TableRef, cell_suffix, plain,
};
use crate::operator::{INPUT, Registry};
use crate::workflow::{
    Cells, Diagnostic, Diagnostics, From, Node, Output, Span, Step, StepKind, StepRef, Text,
    Workflow, check_param_value, collect_refs, output_path_problem, quote, substitute_node,
};

/// Workflows embed one another at most this deep.
const MAX_EMBEDDING: usize = 16;
/// A matrix has at most this many cells: more is a mistake, and each costs planning time.
const MAX_CELLS: usize = 10_000;

/// What the name of a step stands for, in one cell.
#[derive(Clone)]
pub(super) enum Target {
    /// A planned step.
    Step(usize),
    /// An embedded workflow: its outputs.
    Embedded(BTreeMap<String, Input>),
    /// Something that could not be planned; the reason is reported.
    Broken,
}

/// The cells of the steps of one file.
pub(super) type Targets = HashMap<String, Vec<(Cell, Target)>>;

/// Builds the plan step by step.
pub(super) struct Expander {
    pub(super) registry: Registry,
    pub(super) settings: Settings,
    pub(super) diagnostics: Diagnostics,
    pub(super) steps: Vec<PlannedStep>,
    outputs: Vec<PlannedOutput>,
    /// The files that embed the one at hand.
    embedding: Vec<PathBuf>,
}

/// A file at hand: its text, its folder, its parameters, the prefix of its steps' names.
pub(super) struct Site<'a> {
    pub(super) workflow: &'a Workflow,
    pub(super) base: &'a Path,
    pub(super) params: &'a Map<String, Value>,
    pub(super) prefix: &'a str,
}

impl Expander {
    pub(super) fn new(registry: Registry, settings: Settings, diagnostics: Diagnostics) -> Self {
        Self {
            registry,
            settings,
            diagnostics,
            steps: Vec::new(),
            outputs: Vec::new(),
            embedding: Vec::new(),
        }
    }

    pub(super) fn finish(self) -> (Vec<PlannedStep>, Vec<PlannedOutput>, Diagnostics) {
        (self.steps, self.outputs, self.diagnostics)
    }

    /// Plans the workflow of the command line, with its outputs.
    pub(super) async fn top(&mut self, workflow: &Workflow, base: &Path, params: Map<String, Value>) {
        let site = Site { workflow, base, params: &params, prefix: "" };
        let targets = self.workflow(&site).await;
        for output in &workflow.outputs {
            if let Some(planned) = self.output(&site, output, &targets) {
                self.outputs.push(planned);
            }
        }
    }

    fn output(&mut self, site: &Site<'_>, output: &Output, targets: &Targets) -> Option<PlannedOutput> {
        let source = &site.workflow.source;
        let input = self.table(site, &output.from, &Vec::new(), targets, &output.name.value);
        let scope = scope(site.params);
        let path = substitute_node(&output.path, source, &scope, &mut self.diagnostics);
        let path = path.as_str()?.to_string();
        if let Some(problem) = output_path_problem(&path) {
            let code = crate::workflow::code::BAD_PATH;
            self.diagnostics.push(Diagnostic::error(code, problem, source, output.path.span));
            return None;
        }
        let format = match Path::new(&path).extension().and_then(|e| e.to_str()) {
            Some("parquet") => OutputFormat::Parquet,
            Some("jsonl") => OutputFormat::Jsonl,
            _ => OutputFormat::Csv,
        };
        let path = PathBuf::from(path);
        if let Some(other) = self.outputs.iter().find(|o| o.path == path) {
            let message = format!(
                "the outputs {} and {} would both be written to {}",
                quote(&other.name),
                quote(&output.name.value),
                path.display()
            );
            let code = crate::workflow::code::BAD_PATH;
            self.diagnostics.push(Diagnostic::error(code, message, source, output.path.span));
            return None;
        }
        Some(PlannedOutput { name: output.name.value.clone(), input: input?, path, format })
    }

    /// Plans the steps of one file.
    async fn workflow(&mut self, site: &Site<'_>) -> Targets {
        let order = graph::order(site.workflow, &mut self.diagnostics);
        let mut targets = Targets::new();
        let mut done = vec![false; site.workflow.steps.len()];
        for i in order {
            done[i] = true;
            let step = &site.workflow.steps[i];
            let cells = self.cells(site, step, &targets);
            let mut planned = Vec::with_capacity(cells.len());
            for cell in cells {
                let target = match &step.kind {
                    StepKind::Uses(path) => self.embed(site, step, path, &cell).await,
                    StepKind::Op(_) | StepKind::Invalid => {
                        self.step(site, step, &cell, &targets).await
                    }
                };
                planned.push((cell, target));
            }
            targets.insert(step.name.value.clone(), planned);
        }
        // Steps on a cycle are checked as far as they can be without their inputs.
        for (i, step) in site.workflow.steps.iter().enumerate() {
            if !done[i] {
                targets
                    .entry(step.name.value.clone())
                    .or_insert_with(|| vec![(Vec::new(), Target::Broken)]);
            }
        }
        for (i, step) in site.workflow.steps.iter().enumerate() {
            if !done[i] && matches!(step.kind, StepKind::Op(_)) {
                self.step(site, step, &Vec::new(), &targets).await;
            }
        }
        targets
    }

    /// The cells of a step: those of the matrix steps it reads, times its own matrix.
    fn cells(&mut self, site: &Site<'_>, step: &Step, targets: &Targets) -> Vec<Cell> {
        let mut cells: Vec<Cell> = vec![Vec::new()];
        for reference in step.from.iter().flat_map(From::refs) {
            let Some(upstream) = targets.get(&reference.step) else { continue };
            let fixed = match &reference.cells {
                Cells::Plain => &[][..],
                Cells::Select(keys) => keys,
                Cells::All => continue,
            };
            let mut joined: Vec<Cell> = Vec::new();
            for cell in &cells {
                for (other, _) in upstream {
                    if fixed.iter().all(|(k, v)| lookup(other, k).is_none_or(|o| plain(o) == *v))
                        && let Some(merged) = merge(cell, other, fixed)
                        && !joined.contains(&merged)
                    {
                        joined.push(merged);
                    }
                }
            }
            cells = joined;
        }
        let source = &site.workflow.source;
        let scope = scope(site.params);
        for (key, values) in &step.matrix {
            if cells.iter().any(|cell| lookup(cell, &key.value).is_some()) {
                let message = format!(
                    "the matrix key {} comes with the input already",
                    quote(&key.value)
                );
                let code = crate::workflow::code::DUPLICATE_KEY;
                self.diagnostics.push(Diagnostic::error(code, message, source, key.span));
                continue;
            }
            let values: Vec<Value> = values
                .iter()
                .map(|v| substitute_node(v, source, &scope, &mut self.diagnostics).to_json())
                .collect();
            if cells.len() * values.len() > MAX_CELLS {
                let message = format!("the matrix has more than {MAX_CELLS} cells");
                let code = crate::workflow::code::WRONG_VALUE;
                self.diagnostics.push(Diagnostic::error(code, message, source, key.span));
                return Vec::new();
            }
            cells = cells
                .iter()
                .flat_map(|cell| {
                    values.iter().map(|value| {
                        let mut cell = cell.clone();
                        cell.push((key.value.clone(), value.clone()));
                        cell
                    })
                })
                .collect();
        }
        cells
    }

    /// Plans an embedded workflow for one cell.
    async fn embed(&mut self, site: &Site<'_>, step: &Step, path: &Text, cell: &Cell) -> Target {
        let source = &site.workflow.source;
        let file = site.base.join(&path.value);
        let file = file.canonicalize().unwrap_or(file);
        let mut refuse = |code, message: String, span: Span, help: &str| {
            let found = Diagnostic::error(code, message, source, span);
            self.diagnostics.push(found.with_help(help));
            Target::Broken
        };
        if !file.is_file() {
            let message = format!("there is no workflow file {}", quote(&path.value));
            return refuse(code::MISSING_FILE, message, path.span,
                "paths are relative to the workflow file");
        }
        if self.embedding.contains(&file) || self.embedding.len() >= MAX_EMBEDDING {
            let message = format!("{} embeds itself", quote(&path.value));
            return refuse(code::CYCLE, message, path.span, "a workflow cannot contain itself");
        }
        if let Some(from) = &step.from {
            let span = from.refs().next().map_or(step.name.span, |r| r.span);
            let message = "a step with `uses` has no `from`".to_string();
            return refuse(code::WRONG_INPUTS, message, span,
                "an embedded workflow has its own sources; give it values through `with`");
        }
        let display = site.base.join(&path.value).display().to_string();
        let Some((workflow, base)) = read(&file, &display, &mut self.diagnostics) else {
            return Target::Broken;
        };
        let scope = self.cell_scope(site, cell);
        let mut given = BTreeMap::new();
        let empty = Vec::new();
        let entries = step.with.as_ref().and_then(Node::as_map).unwrap_or(&empty);
        for (key, value) in entries {
            let Some(name) = key.as_str() else { continue };
            let value = substitute_node(value, source, &scope, &mut self.diagnostics);
            match workflow.param(name) {
                Some(param) => {
                    if check_param_value(param, &value, source, &mut self.diagnostics) {
                        let value = based(value, param.ty, site.base);
                        given.insert(name.to_string(), value);
                    }
                }
                None => {
                    let message = format!("{} has no param {}", quote(&path.value), quote(name));
                    let known = workflow.params.iter().map(|p| p.name.value.as_str());
                    let code = crate::workflow::code::UNKNOWN_PARAM;
                    let found = Diagnostic::error(code, message, source, key.span);
                    self.diagnostics.push(found.with_suggestion(name, known));
                }
            }
        }
        let inner_params =
            params(&workflow, &given, Some((source, &step.name)), &mut self.diagnostics);
        let prefix = format!("{}{}{}/", site.prefix, step.name.value, cell_suffix(cell));
        let inner =
            Site { workflow: &workflow, base: &base, params: &inner_params, prefix: &prefix };
        self.embedding.push(file);
        let targets = Box::pin(self.workflow(&inner)).await;
        self.embedding.pop();
        let mut outputs = BTreeMap::new();
        for output in &workflow.outputs {
            let name = &output.name.value;
            match self.table(&inner, &output.from, &Vec::new(), &targets, name) {
                Some(input) => outputs.insert(name.clone(), input),
                None => return Target::Broken,
            };
        }
        Target::Embedded(outputs)
    }

    /// The scope of expressions in a cell of a step.
    pub(super) fn cell_scope(&self, site: &Site<'_>, cell: &Cell) -> crate::workflow::Scope {
        let mut scope = scope(site.params);
        scope.matrix = cell.iter().cloned().collect();
        scope
    }

    /// The tables behind the references of a step in one cell; `None` if one is broken.
    pub(super) fn inputs(
        &mut self,
        site: &Site<'_>,
        step: &Step,
        cell: &Cell,
        targets: &Targets,
    ) -> Option<Vec<Input>> {
        match &step.from {
            None => Some(Vec::new()),
            Some(From::One(reference)) => {
                Some(vec![self.table(site, reference, cell, targets, INPUT)?])
            }
            Some(From::Ports(ports)) => {
                // All of them are looked at, so that all mistakes are reported.
                let tables: Vec<Option<Input>> = ports
                    .iter()
                    .map(|(port, r)| self.table(site, r, cell, targets, &port.value))
                    .collect();
                tables.into_iter().collect()
            }
            Some(From::Invalid(_)) => None,
        }
    }

    /// The table behind a reference, as the input port `port`.
    fn table(
        &mut self,
        site: &Site<'_>,
        reference: &StepRef,
        cell: &Cell,
        targets: &Targets,
        port: &str,
    ) -> Option<Input> {
        let upstream = targets.get(&reference.step)?;
        let fixed = match &reference.cells {
            Cells::Select(keys) => keys.as_slice(),
            Cells::Plain | Cells::All => &[],
        };
        self.check_selection(site, reference, upstream, fixed)?;
        let matches = |other: &Cell| {
            other.iter().all(|(key, value)| {
                match fixed.iter().find(|(k, _)| k == key) {
                    Some((_, wanted)) => plain(value) == *wanted,
                    None => reference.cells == Cells::All || lookup(cell, key) == Some(value),
                }
            })
        };
        let found: Vec<&(Cell, Target)> = upstream.iter().filter(|(c, _)| matches(c)).collect();
        let united = reference.cells == Cells::All;
        if found.is_empty() && upstream.iter().any(|(c, _)| !c.is_empty()) {
            let message = format!("{} is a matrix step", quote(&reference.step));
            let found =
                Diagnostic::error(code::UNKNOWN_CELL, message, &site.workflow.source, reference.span);
            let name = &reference.step;
            let help = format!("write `{name}[*]` for all its cells, or `{name}[key=value]` for one");
            self.diagnostics.push(found.with_help(help));
            return None;
        }
        let mut tables = Vec::new();
        let mut input: Option<Input> = None;
        for (cell, target) in found {
            let one = self.port(site, reference, target, port)?;
            if united {
                for mut table in one.tables.clone() {
                    table.cell.extend(cell.iter().cloned());
                    tables.push(table);
                }
            } else {
                tables = one.tables.clone();
            }
            match &input {
                Some(first) if names_and_types(first) != names_and_types(&one) => {
                    let message =
                        format!("the cells of {} have different columns", quote(&reference.step));
                    let source = &site.workflow.source;
                    self.diagnostics.push(Diagnostic::error(
                        code::WRONG_INPUTS,
                        message,
                        source,
                        reference.span,
                    ));
                    return None;
                }
                Some(_) => {}
                None => input = Some(one),
            }
        }
        let mut input = input?;
        input.tables = tables;
        if united {
            input.united = true;
            input.schema = super::bind::united_schema(&input).map_err(|message| {
                let source = &site.workflow.source;
                let found =
                    Diagnostic::error(code::WRONG_INPUTS, message, source, reference.span);
                self.diagnostics.push(found);
            }).ok()?;
        }
        Some(input)
    }

    /// Reports keys and values of a selection that no cell has.
    fn check_selection(
        &mut self,
        site: &Site<'_>,
        reference: &StepRef,
        upstream: &[(Cell, Target)],
        fixed: &[(String, String)],
    ) -> Option<()> {
        let mut ok = Some(());
        for (key, wanted) in fixed {
            let keys: Vec<&str> =
                upstream.iter().flat_map(|(c, _)| c.iter().map(|(k, _)| k.as_str())).collect();
            let values: Vec<String> =
                upstream.iter().filter_map(|(c, _)| lookup(c, key)).map(plain).collect();
            let (message, given, known) = if keys.contains(&key.as_str()) {
                if values.contains(wanted) {
                    continue;
                }
                let message = format!(
                    "no cell of {} has {key}={wanted}",
                    quote(&reference.step)
                );
                (message, wanted, values.iter().map(String::as_str).collect())
            } else {
                let message = format!("{} has no matrix key {}", quote(&reference.step), quote(key));
                (message, key, keys)
            };
            let source = &site.workflow.source;
            let found = Diagnostic::error(code::UNKNOWN_CELL, message, source, reference.span);
            self.diagnostics.push(found.with_suggestion(given, known));
            ok = None;
        }
        ok
    }

    /// The port of a target that a reference names.
    fn port(
        &mut self,
        site: &Site<'_>,
        reference: &StepRef,
        target: &Target,
        port: &str,
    ) -> Option<Input> {
        let unknown = |known: Vec<&str>| {
            let span = reference.port_span.unwrap_or(reference.span);
            let source = &site.workflow.source;
            match &reference.port {
                Some(name) => {
                    let message =
                        format!("step {} has no port {}", quote(&reference.step), quote(name));
                    let found = Diagnostic::error(code::UNKNOWN_PORT, message, source, span);
                    found.with_suggestion(name, known)
                }
                None => {
                    let message =
                        format!("step {} has several outputs; name one", quote(&reference.step));
                    let found = Diagnostic::error(code::UNKNOWN_PORT, message, source, span);
                    let step = &reference.step;
                    let choices = known.iter().map(|k| format!("{step}.{k}")).collect::<Vec<_>>();
                    found.with_help(format!("the outputs are {}", choices.join(", ")))
                }
            }
        };
        match target {
            Target::Broken => None,
            Target::Step(i) => {
                let ports = self.steps[*i].step.ports();
                let found = match &reference.port {
                    None => ports.first(),
                    Some(name) => ports.iter().find(|p| p.name == name),
                };
                let Some(found) = found else {
                    let known = ports.iter().map(|p| p.name).collect();
                    self.diagnostics.push(unknown(known));
                    return None;
                };
                let table = TableRef { step: *i, port: found.name, cell: Vec::new() };
                Some(Input {
                    port: port.to_string(),
                    tables: vec![table],
                    united: false,
                    schema: found.table.clone(),
                })
            }
            Target::Embedded(outputs) => {
                let found = match &reference.port {
                    Some(name) => outputs.get(name),
                    None if outputs.len() == 1 => outputs.values().next(),
                    None => outputs.get(crate::operator::MAIN),
                };
                let Some(found) = found else {
                    let known = outputs.keys().map(String::as_str).collect();
                    self.diagnostics.push(unknown(known));
                    return None;
                };
                Some(Input { port: port.to_string(), ..found.clone() })
            }
        }
    }

    /// Reports mistakes in expressions of a step that has no cell to be bound in.
    pub(super) fn check_expressions(&mut self, site: &Site<'_>, step: &Step) {
        if let Some(with) = &step.with {
            collect_refs(with, &site.workflow.source, &mut self.diagnostics);
        }
    }
}

fn names_and_types(input: &Input) -> Vec<(String, String)> {
    let fields = input.schema.schema.fields().iter();
    fields.map(|f| (f.name().clone(), crate::digest::type_name(f.data_type()))).collect()
}

/// A path given to an embedded workflow starts at the file that gives it.
fn based(node: Node, ty: Option<crate::workflow::ParamType>, base: &Path) -> Node {
    match (ty, node.as_str()) {
        (Some(crate::workflow::ParamType::Path), Some(path)) => {
            let path = base.join(path).to_string_lossy().into_owned();
            Node::from_json(&Value::String(path), node.span)
        }
        _ => node,
    }
}

fn lookup<'a>(cell: &'a Cell, key: &str) -> Option<&'a Value> {
    cell.iter().find(|(k, _)| k == key).map(|(_, value)| value)
}

/// The two cells together, without the keys that a selection fixes in the second; `None` if
/// they disagree.
fn merge(cell: &Cell, other: &Cell, fixed: &[(String, String)]) -> Option<Cell> {
    let mut merged = cell.clone();
    for (key, value) in other {
        if fixed.iter().any(|(k, _)| k == key) {
            continue;
        }
        match lookup(&merged, key) {
            Some(found) if found != value => return None,
            Some(_) => {}
            None => merged.push((key.clone(), value.clone())),
        }
    }
    Some(merged)
}
