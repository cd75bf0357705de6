//! From references (`a`, `a.rejects`, `a[*]`, `a[k=v]`) to the tables of planned steps.

use std::collections::{BTreeMap, HashSet};

use arrow::datatypes::{DataType, FieldRef};
use serde_json::Value;

use super::expander::{Expander, Site, StepTarget, StepTargets};
use super::graph;
use super::mistake::already_reported;
use super::model::{Cell, Input, NOWHERE, TableRef, lookup, plain};
use crate::code::Code;
use crate::digest::type_name;
use crate::operator::{INPUT, MAIN, TableSchema, describe};
use crate::workflow::{Cells, Diagnostic, From, StepRef, StepSpec, Text, quote};

impl Expander {
    /// The tables behind the references of a step in one cell; `None` if they cannot be read. Of a
    /// table that is not there, nothing is known.
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
                let table = self.table(site, reference, cell, targets, INPUT);
                Some(vec![table.unwrap_or_else(|| Input::unknown(INPUT))])
            }
            Some(From::Ports(ports)) => {
                // All of them are looked at, so that all mistakes are reported.
                let table = |(port, r): &(Text, StepRef)| {
                    let table = self.table(site, r, cell, targets, &port.value);
                    table.unwrap_or_else(|| Input::unknown(&port.value))
                };
                Some(ports.iter().map(table).collect())
            }
            Some(From::Invalid(_)) => None,
        }
    }

    /// The table behind a reference, as the input port `port`.
    pub(super) fn table(
        &mut self,
        site: &Site<'_>,
        reference: &StepRef,
        cell: &Cell,
        targets: &StepTargets,
        port: &str,
    ) -> Option<Input> {
        let Some(upstream) = targets.get(&reference.step) else {
            // Not once for every cell: to find the name that was meant takes long.
            let source = &site.workflow.source;
            let known = already_reported(&self.diagnostics, source, reference.step_span);
            if !known && !self.diagnostics.is_full() {
                self.diagnostics.push(graph::unknown_step(site.workflow, reference));
            }
            return None;
        };
        let fixed = match &reference.cells {
            Cells::Select(keys) => keys.as_slice(),
            Cells::Plain | Cells::All => &[],
        };
        self.check_selection(site, reference, upstream.all(), fixed)?;
        let matches = |other: &Cell| {
            other.iter().all(|(key, value)| match fixed.iter().find(|(k, _)| k == key) {
                Some((_, wanted)) => plain(value) == *wanted,
                None => reference.cells == Cells::All || lookup(cell, key) == Some(value),
            })
        };
        let united = reference.cells == Cells::All;
        let mut chosen: Vec<&(Cell, StepTarget)> = match united {
            true => upstream.all().iter().collect(),
            false => upstream.candidates(|key| match fixed.iter().find(|(k, _)| k == key) {
                Some((_, wanted)) => Some(wanted.clone()),
                None => lookup(cell, key).map(plain),
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
            let help =
                format!("write `{name}[*]` for all its cells, or `{name}[key=value]` for one");
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
                    self.diagnostics.push(problem);
                })
                .ok()?;
        }
        Some(input)
    }

    /// Reports keys and values of a selection that no cell has.
    fn check_selection(
        &mut self,
        site: &Site<'_>,
        reference: &StepRef,
        upstream: &[(Cell, StepTarget)],
        fixed: &[(String, String)],
    ) -> Option<()> {
        let mut ok = Some(());
        let told = already_reported(&self.diagnostics, &site.workflow.source, reference.span);
        for (key, wanted) in fixed {
            if upstream.iter().any(|(c, _)| lookup(c, key).is_some_and(|v| plain(v) == *wanted)) {
                continue;
            }
            ok = None;
            if told {
                // By another cell.
                continue;
            }
            let keys: Vec<&str> =
                upstream.iter().flat_map(|(c, _)| c.iter().map(|(k, _)| k.as_str())).collect();
            let values: Vec<String> =
                upstream.iter().filter_map(|(c, _)| lookup(c, key)).map(plain).collect();
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

    /// The port of a target that a reference names.
    fn port(
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
    // What is not known may be the same.
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

/// The columns of united cells: those of the step, and the matrix keys.
fn united_schema(input: &Input) -> Result<TableSchema, String> {
    let mut values: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    let mut order: Vec<&str> = Vec::new();
    for (key, value) in input.tables.iter().flat_map(|t| &t.cell) {
        values.entry(key).or_default().push(value);
        if !order.contains(&key.as_str()) {
            order.push(key);
        }
    }
    let existing: HashSet<&str> = input.schema.names().collect();
    let mut fields: Vec<FieldRef> = Vec::new();
    for key in &order {
        if existing.contains(key) {
            return Err(format!(
                "the cells already have a column {}, which is also a matrix key",
                quote(key)
            ));
        }
        let all = &values[key];
        let data_type = if all.iter().all(|v| v.is_i64()) {
            DataType::Int64
        } else if all.iter().all(|v| v.is_number()) {
            DataType::Float64
        } else if all.iter().all(|v| v.is_boolean()) {
            DataType::Boolean
        } else {
            DataType::Utf8
        };
        fields.push(describe(key, data_type, false, "the key of the matrix cell", None));
    }
    let mut schema = input.schema.with(&fields);
    schema.key.extend(order.iter().map(ToString::to_string));
    Ok(schema)
}
