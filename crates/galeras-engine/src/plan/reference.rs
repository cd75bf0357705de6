//! Resolves references (`a`, `a.rejects`, `a[*]`, `a[k=v]`) to the tables of planned steps, and
//! names that users type on a command line, which may also be full names of steps in embedded
//! workflows (`collected/methods`).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use serde_json::Value;

use super::cell::{
    Cell, cell_columns, cell_suffix, fixed_keys, is_selected, key_value, lookup, plain,
};
use super::expander::{Expander, Site, StepCells, StepTargets};
use super::graph;
use super::mistake::already_reported;
use super::model::{Input, NOWHERE, Plan, PlannedStep, StepTarget};
use galeras_operator::table_digest::type_name;
use galeras_operator::{INPUT, MAIN, TableSchema, describe};
use galeras_workflow::code::Code;
use galeras_workflow::{
    Cells, Diagnostic, Diagnostics, From, Reference, Source, Span, StepRef, StepSpec, Text,
    Workflow, did_you_mean, parse_step_ref, quote,
};

impl Expander {
    /// The tables of a step's references in one cell; `None` if they cannot be read. A missing
    /// table is an unknown one.
    pub(super) fn inputs(
        &mut self,
        site: &Site<'_>,
        step: &StepSpec,
        cell: &Cell,
        targets: &StepTargets,
    ) -> Option<Vec<Input>> {
        match &step.from {
            None => Some(Vec::new()),
            Some(From::One(reference)) => {
                let table = self.table(site, reference.fixed()?, cell, targets, INPUT);
                Some(vec![table.unwrap_or_else(|| Input::unknown(INPUT))])
            }
            Some(From::Ports(ports)) => {
                // All of them are resolved, so that all mistakes are reported.
                let table = |(port, r): &(Text, Reference)| {
                    let fixed = r.fixed();
                    let table = fixed.and_then(|r| self.table(site, r, cell, targets, &port.value));
                    table.unwrap_or_else(|| Input::unknown(&port.value))
                };
                Some(ports.iter().map(table).collect())
            }
            Some(From::Invalid(_)) => None,
        }
    }

    pub(super) fn table(
        &mut self,
        site: &Site<'_>,
        reference: &StepRef,
        cell: &Cell,
        targets: &StepTargets,
        port: &str,
    ) -> Option<Input> {
        let (steps, diagnostics) = (&self.steps, &mut self.diagnostics);
        let mut finder = TableFinder { workflow: site.workflow, steps, diagnostics };
        finder.table(reference, cell, targets, port)
    }
}

/// Finds the tables of references, and reports references without one.
pub(super) struct TableFinder<'a> {
    pub(super) workflow: &'a Workflow,
    pub(super) steps: &'a [PlannedStep],
    pub(super) diagnostics: &'a mut Diagnostics,
}

impl TableFinder<'_> {
    fn error(&self, code: Code, message: impl Into<String>, span: Span) -> Diagnostic {
        Diagnostic::error(code, message, &self.workflow.source, span)
    }

    /// The table of a reference, as the input port `port`.
    pub(super) fn table(
        &mut self,
        reference: &StepRef,
        cell: &Cell,
        targets: &StepTargets,
        port: &str,
    ) -> Option<Input> {
        let name = quote(&reference.step);
        let Some(upstream) = targets.get(&reference.step) else {
            // Not for every cell: the search for a suggestion is slow.
            let source = &self.workflow.source;
            let known = already_reported(self.diagnostics, source, reference.step_span);
            if !known && !self.diagnostics.is_full() {
                self.diagnostics.push(graph::unknown_step(self.workflow, reference));
            }
            return None;
        };
        let selection = selection(reference);
        self.check_selection(reference, upstream.all(), selection)?;
        let mut fixed = HashMap::new();
        if !selection.is_empty() {
            let cells = upstream.all().iter().map(|(cell, _)| cell);
            let selected: Vec<&Cell> = cells.filter(|c| is_selected(c, selection)).collect();
            fixed = fixed_keys(&selected, selection);
        }
        let united = reference.cells == Cells::All;
        let matches = |other: &Cell| {
            is_selected(other, selection)
                && other.iter().all(|k| match fixed.get(&k.key) {
                    Some(wanted) => plain(&k.value) == *wanted,
                    None => united || key_value(cell, &k.key) == Some(&k.value),
                })
        };
        let mut chosen: Vec<&(Cell, StepTarget)> = match united {
            true => upstream.all().iter().collect(),
            false => upstream.candidates(|key| match fixed.get(key) {
                Some(wanted) => Some(wanted.clone()),
                None => key_value(cell, key).map(plain),
            }),
        };
        chosen.retain(|(c, _)| matches(c));
        if chosen.is_empty() && upstream.all().iter().any(|(c, _)| !c.is_empty()) {
            let message = format!("{name} is a matrix step");
            let problem = self.error(Code::UnknownCell, message, reference.span);
            let name = &reference.step;
            let one = upstream.all().iter().map(|(c, _)| c).find(|c| is_selected(c, selection));
            let one = one.map(cell_suffix).unwrap_or_default();
            let help = format!("write `{name}[*]` for all its cells, or `{name}{one}` for one");
            self.diagnostics.push(problem.with_help(help));
            return None;
        }
        let mut tables = Vec::new();
        let mut input: Option<Input> = None;
        for (cell, target) in chosen {
            let one = self.port(reference, target, port)?;
            if united {
                for mut table in one.tables.clone() {
                    table.cell.extend(cell.iter().cloned());
                    tables.push(table);
                }
            } else {
                tables = one.tables.clone();
            }
            match &input {
                Some(first) if !same_columns(first, &one) => {
                    let message = format!("the cells of {name} have different columns");
                    let problem = self.error(Code::WrongInputs, message, reference.span);
                    self.diagnostics.push(problem);
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
            input.schema = match united_schema(&input) {
                Ok(schema) => schema,
                Err(message) => {
                    let problem = self.error(Code::WrongInputs, message, reference.span);
                    self.diagnostics.push(problem.with_help("give the matrix key another name"));
                    return None;
                }
            };
        }
        Some(input)
    }

    /// Reports keys and values of the selection that no cell has.
    pub(super) fn check_selection(
        &mut self,
        reference: &StepRef,
        upstream: &[(Cell, StepTarget)],
        fixed: &[(String, String)],
    ) -> Option<()> {
        let mut ok = Some(());
        let told = already_reported(self.diagnostics, &self.workflow.source, reference.span);
        let step = quote(&reference.step);
        for (key, wanted) in fixed {
            let values = || upstream.iter().filter_map(|(c, _)| lookup(c, key)).map(plain);
            if values().any(|value| value == *wanted) {
                continue;
            }
            ok = None;
            if told {
                // Another cell has it.
                continue;
            }
            let names = upstream.iter().flat_map(|(c, _)| cell_columns(c).map(|(name, _)| name));
            let keys = distinct(names.map(str::to_string));
            let (message, given, known) = match keys.contains(key) {
                true => {
                    (format!("no cell of {step} has {key}={wanted}"), wanted, distinct(values()))
                }
                false => (format!("{step} has no matrix key {}", quote(key)), key, keys),
            };
            let problem = self.error(Code::UnknownCell, message, reference.span);
            let known = known.iter().map(String::as_str);
            self.diagnostics.push(problem.with_suggestion(given, known));
        }
        ok
    }

    pub(super) fn port(
        &mut self,
        reference: &StepRef,
        target: &StepTarget,
        port: &str,
    ) -> Option<Input> {
        let steps = self.steps;
        let (step, ports) = match target {
            StepTarget::Broken => return Some(Input::unknown(port)),
            StepTarget::Step(at) => (*at, steps[*at].step.ports()),
            StepTarget::Outline(ports) => (NOWHERE, &**ports),
            StepTarget::Embedded(outputs) => {
                let output = match &reference.port {
                    Some(name) => outputs.get(name),
                    None if outputs.len() == 1 => outputs.values().next(),
                    None => outputs.get(MAIN),
                };
                if output.is_none() {
                    let known = outputs.keys().map(String::as_str).collect();
                    self.unknown_port(reference, known);
                }
                return Some(Input { port: port.to_string(), ..output?.clone() });
            }
        };
        let output = match &reference.port {
            None => ports.first(),
            Some(name) => ports.iter().find(|p| p.name == name),
        };
        if output.is_none() {
            self.unknown_port(reference, ports.iter().map(|p| p.name).collect());
        }
        Some(Input::of(step, output?, port))
    }

    fn unknown_port(&mut self, reference: &StepRef, known: Vec<&str>) {
        let span = reference.port_span.unwrap_or(reference.span);
        let step = &reference.step;
        let problem = match &reference.port {
            Some(name) => {
                let message = format!("step {} has no port {}", quote(step), quote(name));
                self.error(Code::UnknownPort, message, span).with_suggestion(name, known)
            }
            None => {
                let message = format!("step {} has several outputs; name one", quote(step));
                let problem = self.error(Code::UnknownPort, message, span);
                let choices = known.iter().map(|k| format!("{step}.{k}")).collect::<Vec<_>>();
                problem.with_help(format!("the outputs are {}", choices.join(", ")))
            }
        };
        self.diagnostics.push(problem);
    }
}

/// The different texts in their order.
fn distinct(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = HashSet::new();
    texts.filter(|text| seen.insert(text.clone())).collect()
}

/// The keys and values that a reference selects.
fn selection(reference: &StepRef) -> &[(String, String)] {
    match &reference.cells {
        Cells::Select(keys) => keys,
        Cells::Plain | Cells::All => &[],
    }
}

fn same_columns(one: &Input, other: &Input) -> bool {
    // Unknown columns may be equal.
    if one.schema.is_vague() || other.schema.is_vague() {
        return true;
    }
    let (one, other) = (one.schema.schema.fields(), other.schema.schema.fields());
    let same = |(a, b): (&FieldRef, &FieldRef)| {
        a.name() == b.name()
            && (a.data_type() == b.data_type()
                || type_name(a.data_type()) == type_name(b.data_type()))
    };
    one.len() == other.len() && one.iter().zip(other).all(same)
}

/// The columns of united cells. A column of the step with the name of a matrix key stays: its
/// values must equal the key's, which is checked when rows are read.
pub(super) fn united_schema(input: &Input) -> Result<TableSchema, String> {
    let mut values: HashMap<&str, Vec<&Value>> = HashMap::new();
    let mut order: Vec<&str> = Vec::new();
    for (name, value) in input.tables.iter().flat_map(|table| cell_columns(&table.cell)) {
        let all = values.entry(name).or_default();
        if all.is_empty() {
            order.push(name);
        }
        all.push(value);
    }
    let mut fields: Vec<FieldRef> = Vec::new();
    for name in &order {
        let all = &values[name];
        let kind = data_type(all);
        match input.schema.field(name) {
            Some(column) if comparable(column.data_type(), &kind) => {}
            Some(column) => {
                return Err(format!(
                    "the cells have a column {} of type {} already, and the matrix key of that \
                     name is {}",
                    quote(name),
                    type_name(column.data_type()),
                    type_name(&kind),
                ));
            }
            None => {
                // The cells of embedded workflows may have different values with their keys.
                let null = all.len() < input.tables.len() || all.iter().any(|v| v.is_null());
                fields.push(describe(name, kind, null, "the key of the matrix cell", None));
            }
        }
    }
    let mut schema = input.schema.with(&fields);
    for key in input.tables.iter().flat_map(|table| &table.cell) {
        if !schema.key.contains(&key.key) {
            schema.key.push(key.key.clone());
        }
    }
    Ok(schema)
}

fn data_type(values: &[&Value]) -> DataType {
    let all = |is: fn(&Value) -> bool| {
        let mut known = values.iter().filter(|value| !value.is_null()).peekable();
        known.peek().is_some() && known.all(|value| is(value))
    };
    if all(Value::is_i64) {
        DataType::Int64
    } else if all(Value::is_number) {
        DataType::Float64
    } else if all(Value::is_boolean) {
        DataType::Boolean
    } else {
        DataType::Utf8
    }
}

/// True if values of the column's type can equal those of the other type.
fn comparable(column: &DataType, values: &DataType) -> bool {
    let text =
        |t: &DataType| matches!(t, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    (column.is_numeric() && values.is_numeric())
        || (text(column) && text(values))
        || (*column == DataType::Boolean && *values == DataType::Boolean)
}

const LISTED: usize = 5;

impl Plan {
    /// The table with this name. As in `from:`, but a selection that leaves several cells
    /// (`gen[seed=1]` where cells also have a model) unites them, with the matrix keys as columns,
    /// and a step's only cell needs no brackets.
    ///
    /// # Errors
    /// The mistake in the name, with a suggestion if there is one.
    pub fn table(&self, name: &str) -> Result<Input, Box<Diagnostic>> {
        if let Some(input) = self.exactly(name) {
            return Ok(input);
        }
        let (prefix, last) = split_path(name);
        let Some(scope) = self.scopes.get(prefix) else {
            return Err(Box::new(self.no_path(prefix, last)));
        };
        let reference = parse_step_ref(last)?;
        let source = Source::new("the name of a table", last);
        let Some(cells) = scope.get(&reference.step) else {
            return Err(Box::new(self.unknown(&format!("{prefix}{}", reference.step), &source)));
        };
        // Places are in the name, not in the file.
        let workflow = Workflow { source: Arc::clone(&source), ..self.workflow.clone() };
        let mut diagnostics = Diagnostics::new();
        let (workflow, steps) = (&workflow, self.steps.as_slice());
        let mut finder = TableFinder { workflow, steps, diagnostics: &mut diagnostics };
        let found = match chosen(&reference, cells) {
            Chosen::One(target) => finder.port(&reference, target, INPUT),
            Chosen::Several(cells) => {
                let targets = StepTargets::from([(reference.step.clone(), StepCells::new(cells))]);
                let all = StepRef { cells: Cells::All, ..reference };
                finder.table(&all, &Vec::new(), &targets, INPUT)
            }
            Chosen::Unclear => return Err(Box::new(unclear(prefix, &reference, cells, &source))),
            Chosen::None => {
                finder.check_selection(&reference, cells, selection(&reference)).and(None)
            }
        };
        found.ok_or_else(|| {
            let first = diagnostics.into_sorted().into_iter().next();
            let none = || {
                let message = format!("there are no cells {}", quote(name));
                Diagnostic::error(Code::UnknownCell, message, &source, Span::new(0, last.len()))
            };
            Box::new(first.unwrap_or_else(none))
        })
    }

    /// The names of the steps without cells, and of the outputs of embedded workflows, in plan
    /// order.
    pub fn table_names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for step in &self.steps {
            if names.last() != Some(&step.family) && !names.contains(&step.family) {
                names.push(step.family.clone());
            }
        }
        for (name, cells) in self.scopes.get("").into_iter().flatten() {
            if let Some((_, StepTarget::Embedded(outputs))) = cells.first() {
                names.extend(outputs.keys().map(|output| format!("{name}.{output}")));
            }
        }
        names
    }

    /// The port of the step with exactly this full name, including its cell.
    fn exactly(&self, name: &str) -> Option<Input> {
        let split = |at: usize| (&name[..at], Some(&name[at + 1..]));
        let mut candidates =
            std::iter::once((name, None)).chain(name.rmatch_indices('.').map(|(at, _)| split(at)));
        candidates.find_map(|(step, port)| {
            let at = self.steps.iter().position(|s| s.name == step)?;
            let ports = self.steps[at].step.ports();
            let port = match port {
                None => ports.first(),
                Some(port) => ports.iter().find(|p| p.name == port),
            }?;
            Some(Input::of(at, port, INPUT))
        })
    }

    fn unknown(&self, step: &str, source: &Arc<Source>) -> Diagnostic {
        let message = format!("the workflow has no step {}", quote(step));
        let span = Span::new(0, source.text().len());
        let problem = Diagnostic::error(Code::UnknownStep, message, source, span);
        let names = self.table_names();
        problem.with_help(match did_you_mean(step, names.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the steps are {}", listed(&names, 4 * LISTED)),
        })
    }

    fn no_path(&self, prefix: &str, last: &str) -> Diagnostic {
        let outer = prefix.trim_end_matches('/');
        let step = outer.split('[').next().unwrap_or(outer);
        let source = Source::new("the name of a table", format!("{prefix}{last}"));
        let begins = |known: &&String| {
            known.strip_prefix(step).is_some_and(|rest| rest.starts_with('[') && !step.is_empty())
        };
        let mut cells: Vec<String> =
            self.scopes.keys().filter(begins).map(|known| format!("{known}{last}")).collect();
        cells.sort();
        if cells.is_empty() {
            return self.unknown(
                &format!("{prefix}{}", last.split(['[', '.']).next().unwrap_or("")),
                &source,
            );
        }
        let message = format!("{} is a matrix step", quote(step));
        let span = Span::new(0, source.text().len());
        let problem = Diagnostic::error(Code::UnknownCell, message, &source, span);
        problem.with_help(format!("name one cell: {}", listed(&cells, LISTED)))
    }
}

/// The cells that a reference selects.
enum Chosen<'a> {
    One(&'a StepTarget),
    Several(Vec<(Cell, StepTarget)>),
    /// A matrix step without a selection of cells.
    Unclear,
    None,
}

fn chosen<'a>(reference: &StepRef, cells: &'a [(Cell, StepTarget)]) -> Chosen<'a> {
    let fixed = selection(reference);
    // If no cell has the key, none is left.
    let fits = |(cell, _): &&(Cell, StepTarget)| {
        fixed.iter().all(|(key, value)| lookup(cell, key).is_some_and(|v| plain(v) == *value))
    };
    let left: Vec<&(Cell, StepTarget)> = cells.iter().filter(fits).collect();
    match (left.as_slice(), &reference.cells) {
        ([], _) => Chosen::None,
        ([(_, target)], Cells::Plain | Cells::Select(_)) => Chosen::One(target),
        (_, Cells::Plain) => Chosen::Unclear,
        (several, _) => Chosen::Several(several.iter().map(|cell| (*cell).clone()).collect()),
    }
}

fn unclear(
    prefix: &str,
    reference: &StepRef,
    cells: &[(Cell, StepTarget)],
    source: &Arc<Source>,
) -> Diagnostic {
    let step = format!("{prefix}{}", reference.step);
    let port = reference.port.as_ref().map(|port| format!(".{port}")).unwrap_or_default();
    let names: Vec<String> =
        cells.iter().map(|(cell, _)| format!("{step}{}{port}", cell_suffix(cell))).collect();
    let message = format!("{} has {} cells", quote(&step), cells.len());
    let problem = Diagnostic::error(Code::UnknownCell, message, source, reference.span);
    problem.with_help(format!(
        "write `{step}[*]{port}` for all of them, or name one: {}",
        listed(&names, LISTED)
    ))
}

fn listed(names: &[String], most: usize) -> String {
    let mut shown: Vec<String> = names.iter().take(most).map(|name| format!("`{name}`")).collect();
    if names.len() > most {
        shown.push(format!("and {} more", names.len() - most));
    }
    shown.join(", ")
}

/// Splits a name after the last `/` outside brackets, where values may have one.
fn split_path(name: &str) -> (&str, &str) {
    let mut depth = 0_usize;
    let mut at = 0;
    for (i, c) in name.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            '/' if depth == 0 => at = i + 1,
            _ => {}
        }
    }
    name.split_at(at)
}

#[cfg(test)]
mod tests {
    use super::split_path;

    #[test]
    fn a_path_is_split_outside_of_brackets() {
        assert_eq!(split_path("a"), ("", "a"));
        assert_eq!(split_path("a/b/c[x=y/z].p"), ("a/b/", "c[x=y/z].p"));
        assert_eq!(split_path("a[m=org/x]/b"), ("a[m=org/x]/", "b"));
        assert_eq!(split_path("a[m=org/x"), ("", "a[m=org/x"));
    }
}
