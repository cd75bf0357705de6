//! Resolves references (`a`, `a.rejects`, `a[*]`, `a[k=v]`) to the tables of planned steps.

use std::collections::HashMap;

use super::cell::{Cell, cell_columns, cell_suffix, fixed_keys, is_selected, key_value, lookup};
use super::expander::{Expander, Site, StepTargets};
use super::graph;
use super::input::{Input, NOWHERE, TableRef};
use super::mistake::already_reported;
use super::model::{PlannedStep, StepTarget};
use super::scalar::plain;
use super::united::united_schema;
use arrow::datatypes::FieldRef;
use galeras_operator::table_digest::type_name;
use galeras_operator::{INPUT, MAIN};
use galeras_workflow::code::Code;
use galeras_workflow::{
    Cells, Diagnostic, Diagnostics, From, Reference, StepRef, StepSpec, Text, quote,
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
        let mut finder = TableFinder { steps: &self.steps, diagnostics: &mut self.diagnostics };
        finder.table(site, reference, cell, targets, port)
    }
}

/// Finds the tables of references, and reports references without one.
pub(super) struct TableFinder<'a> {
    pub(super) steps: &'a [PlannedStep],
    pub(super) diagnostics: &'a mut Diagnostics,
}

impl TableFinder<'_> {
    /// The table of a reference, as the input port `port`.
    pub(super) fn table(
        &mut self,
        site: &Site<'_>,
        reference: &StepRef,
        cell: &Cell,
        targets: &StepTargets,
        port: &str,
    ) -> Option<Input> {
        let Some(upstream) = targets.get(&reference.step) else {
            // Not for every cell: the search for a suggestion is slow.
            let source = &site.workflow.source;
            let known = already_reported(self.diagnostics, source, reference.step_span);
            if !known && !self.diagnostics.is_full() {
                self.diagnostics.push(graph::unknown_step(site.workflow, reference));
            }
            return None;
        };
        let selection = match &reference.cells {
            Cells::Select(keys) => keys.as_slice(),
            Cells::Plain | Cells::All => &[],
        };
        self.check_selection(site, reference, upstream.all(), selection)?;
        let mut fixed = HashMap::new();
        if !selection.is_empty() {
            let cells = upstream.all().iter().map(|(cell, _)| cell);
            let selected: Vec<&Cell> = cells.filter(|c| is_selected(c, selection)).collect();
            fixed = fixed_keys(&selected, selection);
        }
        let matches = |other: &Cell| {
            is_selected(other, selection)
                && other.iter().all(|k| match fixed.get(&k.key) {
                    Some(wanted) => plain(&k.value) == *wanted,
                    None => {
                        reference.cells == Cells::All || key_value(cell, &k.key) == Some(&k.value)
                    }
                })
        };
        let united = reference.cells == Cells::All;
        let mut chosen: Vec<&(Cell, StepTarget)> = match united {
            true => upstream.all().iter().collect(),
            false => upstream.candidates(|key| match fixed.get(key) {
                Some(wanted) => Some(wanted.clone()),
                None => key_value(cell, key).map(plain),
            }),
        };
        chosen.retain(|(c, _)| matches(c));
        if chosen.is_empty() && upstream.all().iter().any(|(c, _)| !c.is_empty()) {
            let message = format!("{} is a matrix step", quote(&reference.step));
            let problem = Diagnostic::error(
                Code::UnknownCell,
                message,
                &site.workflow.source,
                reference.span,
            );
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
                Some(first) if !same_columns(first, &one) => {
                    let message =
                        format!("the cells of {} have different columns", quote(&reference.step));
                    let source = &site.workflow.source;
                    self.diagnostics.push(Diagnostic::error(
                        Code::WrongInputs,
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
            input.schema = united_schema(&input)
                .map_err(|message| {
                    let source = &site.workflow.source;
                    let problem =
                        Diagnostic::error(Code::WrongInputs, message, source, reference.span);
                    let help = "give the matrix key another name";
                    self.diagnostics.push(problem.with_help(help));
                })
                .ok()?;
        }
        Some(input)
    }

    pub(super) fn check_selection(
        &mut self,
        site: &Site<'_>,
        reference: &StepRef,
        upstream: &[(Cell, StepTarget)],
        fixed: &[(String, String)],
    ) -> Option<()> {
        let mut ok = Some(());
        let told = already_reported(self.diagnostics, &site.workflow.source, reference.span);
        for (key, wanted) in fixed {
            if upstream.iter().any(|(c, _)| lookup(c, key).is_some_and(|v| plain(v) == *wanted)) {
                continue;
            }
            ok = None;
            if told {
                // Another cell has it.
                continue;
            }
            let names = upstream.iter().flat_map(|(c, _)| cell_columns(c).map(|(name, _)| name));
            let mut keys: Vec<&str> = Vec::new();
            for name in names {
                if !keys.contains(&name) {
                    keys.push(name);
                }
            }
            let mut values: Vec<String> = Vec::new();
            for value in upstream.iter().filter_map(|(c, _)| lookup(c, key)).map(plain) {
                if !values.contains(&value) {
                    values.push(value);
                }
            }
            let (message, given, known) = if keys.contains(&key.as_str()) {
                let message = format!("no cell of {} has {key}={wanted}", quote(&reference.step));
                (message, wanted, values.iter().map(String::as_str).collect())
            } else {
                let message =
                    format!("{} has no matrix key {}", quote(&reference.step), quote(key));
                (message, key, keys)
            };
            let source = &site.workflow.source;
            let problem = Diagnostic::error(Code::UnknownCell, message, source, reference.span);
            self.diagnostics.push(problem.with_suggestion(given, known));
        }
        ok
    }

    pub(super) fn port(
        &mut self,
        site: &Site<'_>,
        reference: &StepRef,
        target: &StepTarget,
        port: &str,
    ) -> Option<Input> {
        let unknown = |known: Vec<&str>| {
            let span = reference.port_span.unwrap_or(reference.span);
            let source = &site.workflow.source;
            match &reference.port {
                Some(name) => {
                    let message =
                        format!("step {} has no port {}", quote(&reference.step), quote(name));
                    let problem = Diagnostic::error(Code::UnknownPort, message, source, span);
                    problem.with_suggestion(name, known)
                }
                None => {
                    let message =
                        format!("step {} has several outputs; name one", quote(&reference.step));
                    let problem = Diagnostic::error(Code::UnknownPort, message, source, span);
                    let step = &reference.step;
                    let choices = known.iter().map(|k| format!("{step}.{k}")).collect::<Vec<_>>();
                    problem.with_help(format!("the outputs are {}", choices.join(", ")))
                }
            }
        };
        match target {
            StepTarget::Broken => Some(Input::unknown(port)),
            StepTarget::Step(_) | StepTarget::Outline(_) => {
                let (step, ports) = match target {
                    StepTarget::Step(i) => (*i, self.steps[*i].step.ports()),
                    StepTarget::Outline(ports) => (NOWHERE, &**ports),
                    _ => return None,
                };
                let output = match &reference.port {
                    None => ports.first(),
                    Some(name) => ports.iter().find(|p| p.name == name),
                };
                let Some(output) = output else {
                    let known = ports.iter().map(|p| p.name).collect();
                    self.diagnostics.push(unknown(known));
                    return None;
                };
                let table = TableRef { step, port: output.name, cell: Vec::new() };
                Some(Input {
                    port: port.to_string(),
                    tables: vec![table],
                    united: false,
                    schema: output.table.materialised(),
                })
            }
            StepTarget::Embedded(outputs) => {
                let output = match &reference.port {
                    Some(name) => outputs.get(name),
                    None if outputs.len() == 1 => outputs.values().next(),
                    None => outputs.get(MAIN),
                };
                let Some(output) = output else {
                    let known = outputs.keys().map(String::as_str).collect();
                    self.diagnostics.push(unknown(known));
                    return None;
                };
                Some(Input { port: port.to_string(), ..output.clone() })
            }
        }
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
