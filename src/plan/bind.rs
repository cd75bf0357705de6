//! One step in one cell: its operator found, its arguments checked, its tables typed, its
//! contract and data tests bound.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use serde_json::Value;

use super::args;
use super::expand::{Expander, Site, Target, Targets};
use super::load::{Locking, covers};
use super::model::{Cell, Check, CheckKind, Input, PlannedStep, cell_suffix, plain};
use crate::code::Code;
use crate::digest::type_name;
use crate::operator::Step as BoundStep;
use crate::operator::{
    ArgError, BindContext, Fact, INPUT, InputPorts, Operator, Port, TableSchema, describe,
};
use crate::session::{parse_row_expr, session};
use crate::workflow::{
    Assert, AssertKind, AssertSeverity, Contract, Diagnostic, From, Node, SchemaField, SourceSpan,
    Span, Step, StepKind, StepRef, Text, quote, substitute_node,
};

impl Expander {
    /// Plans one cell of a step; everything that is wrong with it is reported.
    pub(super) async fn step(
        &mut self,
        site: &Site<'_>,
        step: &Step,
        cell: &Cell,
        targets: &Targets,
    ) -> Target {
        let source = &site.workflow.source;
        let StepKind::Op(op) = &step.kind else {
            self.check_expressions(site, step);
            return Target::Broken;
        };
        let inputs = self.inputs(site, step, cell, targets);
        let Some(operator) = self.registry.get(&op.value) else {
            let message = format!("there is no operator {}", quote(&op.value));
            let known: Vec<&str> = self.registry.iter().map(|o| o.name()).collect();
            let found = Diagnostic::error(Code::UnknownOperator, message, source, op.span);
            self.diagnostics.push(found.with_suggestion(&op.value, known));
            self.check_expressions(site, step);
            return Target::Broken;
        };
        let before = self.diagnostics.len();
        let scope = self.cell_scope(site, cell);
        let with = step
            .with
            .as_ref()
            .map(|node| substitute_node(node, source, &scope, &mut self.diagnostics));
        // Where `with` could not be read, its mistake has been reported.
        let mut fits = with.is_some() || !covers(&self.diagnostics, source, step.span);
        if fits && self.diagnostics.len() == before {
            let schema = operator.args_schema();
            let place = with.as_ref().map_or(op.span, |_| step.name.span);
            let (with, name) = (with.as_ref(), operator.name());
            fits = args::check(with, &schema, name, source, place, &mut self.diagnostics);
        }
        let ports_fit = self.check_ports(site, step, operator);
        let fits = fits && ports_fit && self.diagnostics.len() == before;
        let finite = with.as_ref().is_none_or(Node::is_finite);
        let (Some(inputs), true) = (inputs, fits && finite) else {
            return Target::Broken;
        };
        let session = session(1);
        let cx = BindContext {
            session: session.clone(),
            inputs: inputs.iter().map(|i| (i.port.clone(), i.schema.clone())).collect(),
            base: site.base.to_path_buf(),
            downloads: self.settings.downloads.clone(),
            pins: Arc::clone(&self.pins),
        };
        let arguments =
            with.as_ref().map_or_else(|| Value::Object(serde_json::Map::new()), Node::to_json);
        let bound = match operator.bind(&arguments, &cx).await {
            Ok(bound) => bound,
            Err(errors) => {
                for error in errors {
                    let found = place(&error, source, with.as_ref(), step.name.span);
                    self.diagnostics.push(found);
                }
                return Target::Broken;
            }
        };
        let bound: Arc<dyn crate::operator::Step> = Arc::from(bound);
        let before = self.diagnostics.len();
        let pinned = match bound.fact() {
            Some(Fact::Snapshot { of }) => self.pins.snapshot(operator.name(), &of).is_some(),
            Some(Fact::Version { .. } | Fact::File { .. } | Fact::Moving(_)) | None => false,
        };
        if let Some(problem) = self.unpinned(operator, bound.as_ref()) {
            let message = format!("step {} {problem}", quote(&step.name.value));
            let found = Diagnostic::error(Code::NotLocked, message, source, step.name.span);
            let help = format!("run `galeras lock {}` and commit galeras.lock", source.path());
            self.diagnostics.push(found.with_help(help));
        }
        let mut checks = self.contract(site, step, &bound.ports()[0]);
        for assert in &step.asserts {
            let check = self.check(site, assert, bound.ports(), &scope, &session);
            checks.extend(check);
        }
        if self.diagnostics.len() > before {
            return Target::Broken;
        }
        self.steps.push(PlannedStep {
            name: format!("{}{}{}", site.prefix, step.name.value, cell_suffix(cell)),
            operator,
            step: bound,
            inputs,
            checks,
            base: site.base.to_path_buf(),
            source: Arc::clone(source),
            arguments: with,
            place: SourceSpan::new(source, step.name.span),
            pinned,
        });
        Target::Step(self.steps.len() - 1)
    }

    /// Why a frozen run cannot have this step.
    fn unpinned(&self, operator: &dyn Operator, step: &dyn BoundStep) -> Option<String> {
        if self.settings.lock != Locking::Frozen {
            return None;
        }
        match step.fact()? {
            Fact::Snapshot { of } => match self.pins.snapshot(operator.name(), &of) {
                Some(_) => None,
                None => Some("asks what galeras.lock has no answer to".to_string()),
            },
            Fact::Version { of } => match self.pins.version(operator.name(), &of) {
                Some(_) => None,
                None => Some("uses what galeras.lock pins no version of".to_string()),
            },
            Fact::File { url } => {
                let found = step.side_files().ok()?.first()?.digest;
                match self.pins.files.get(&url) {
                    Some(pinned) if *pinned == found => None,
                    Some(_) => Some(format!("reads {url}, which has changed since it was locked")),
                    None => Some(format!("reads {url}, which galeras.lock does not pin")),
                }
            }
            Fact::Moving(why) => Some(format!("cannot be frozen: {why}")),
        }
    }

    /// Whether `from` gives what the operator takes.
    fn check_ports(&mut self, site: &Site<'_>, step: &Step, operator: &dyn Operator) -> bool {
        let name = operator.name();
        let first = step.from.iter().flat_map(From::refs).next().map(|r| r.span);
        let (message, span, help) = match (operator.inputs(), &step.from) {
            (InputPorts::None, Some(From::One(_) | From::Ports(_))) => (
                format!("operator {} takes no input", quote(name)),
                first.unwrap_or(step.name.span),
                "remove `from`".to_string(),
            ),
            // `form:` for `from:` is reported as an unknown key.
            (InputPorts::One | InputPorts::OneAnd(_), None)
                if covers_unknown_key(&self.diagnostics, site, step) =>
            {
                return false;
            }
            (InputPorts::One | InputPorts::OneAnd(_), None) => (
                format!("operator {} needs an input", quote(name)),
                step.name.span,
                "add `from: <step>`".to_string(),
            ),
            (InputPorts::One, Some(From::Ports(_))) => (
                format!("operator {} takes one input", quote(name)),
                first.unwrap_or(step.name.span),
                "write `from: <step>`".to_string(),
            ),
            (InputPorts::OneAnd(also), Some(From::Ports(ports))) => {
                match port_problem(name, also, ports) {
                    Some(problem) => problem,
                    None => return true,
                }
            }
            _ => return true,
        };
        let found = Diagnostic::error(Code::WrongInputs, message, &site.workflow.source, span);
        self.diagnostics.push(found.with_help(help));
        false
    }

    /// Checks `schema:` against the main port. What a type cannot promise, that a column has
    /// no nulls, becomes a data test.
    fn contract(&mut self, site: &Site<'_>, step: &Step, port: &Port) -> Vec<Check> {
        let source = &site.workflow.source;
        let fields = match &step.schema {
            None => return Vec::new(),
            Some(Contract::Fields(fields)) => fields.clone(),
            Some(Contract::File(path)) => match self.contract_file(site, path) {
                Some(fields) => fields,
                None => return Vec::new(),
            },
        };
        let mut not_null = Vec::new();
        for field in &fields {
            let name = &field.column.value;
            let Some(found) = port.table.field(name) else {
                let message = format!("the step gives no column {}", quote(name));
                let found =
                    Diagnostic::error(Code::BrokenContract, message, source, field.column.span);
                self.diagnostics.push(found.with_suggestion(name, port.table.names()));
                continue;
            };
            let wanted = field.ty.ty.to_string();
            let given = type_name(found.data_type());
            let same = given == wanted || given.split('[').next() == Some(wanted.as_str());
            if !same {
                let message = format!("column {} has type {given}, not {wanted}", quote(name));
                self.diagnostics.push(Diagnostic::error(
                    Code::BrokenContract,
                    message,
                    source,
                    field.span,
                ));
            }
            if field.ty.non_null && found.is_nullable() {
                not_null.push(name.clone());
            }
        }
        if not_null.is_empty() {
            return Vec::new();
        }
        let place = fields.first().map_or(step.name.span, |f| f.column.span);
        vec![Check {
            port: port.name,
            kind: CheckKind::NotNull(not_null),
            severity: AssertSeverity::Error,
            place: SourceSpan::new(source, place),
        }]
    }

    /// The columns of a contract file, all placed where the file is named.
    fn contract_file(&mut self, site: &Site<'_>, path: &Text) -> Option<Vec<SchemaField>> {
        let source = &site.workflow.source;
        let mut refuse = |message: String| {
            self.diagnostics.push(
                Diagnostic::error(Code::MissingFile, message, source, path.span)
                    .with_help("a contract file maps columns to types: {\"id\": \"utf8!\"}"),
            );
        };
        let text = match std::fs::read_to_string(site.base.join(&path.value)) {
            Ok(text) => text,
            Err(e) => {
                refuse(format!("cannot read the contract {}: {e}", quote(&path.value)));
                return None;
            }
        };
        let columns: Option<serde_json::Map<String, Value>> = serde_json::from_str::<Value>(&text)
            .ok()
            .and_then(|v| v.get("columns").unwrap_or(&v).as_object().cloned());
        let fields: Option<Vec<SchemaField>> = columns.and_then(|columns| {
            columns
                .iter()
                .map(|(name, kind)| {
                    Some(SchemaField {
                        column: Text { value: name.clone(), span: path.span },
                        ty: kind.as_str()?.parse().ok()?,
                        span: path.span,
                    })
                })
                .collect()
        });
        if fields.is_none() {
            refuse(format!("{} is no contract", quote(&path.value)));
        }
        fields
    }

    /// Binds one data test.
    fn check(
        &mut self,
        site: &Site<'_>,
        assert: &Assert,
        ports: &[Port],
        scope: &crate::workflow::Scope,
        session: &datafusion::execution::context::SessionContext,
    ) -> Option<Check> {
        let source = &site.workflow.source;
        let port = match &assert.port {
            None => &ports[0],
            Some(name) => match ports.iter().find(|p| p.name == name.value) {
                Some(port) => port,
                None => {
                    let message = format!("the step has no port {}", quote(&name.value));
                    let found = Diagnostic::error(Code::UnknownPort, message, source, name.span);
                    let known = ports.iter().map(|p| p.name);
                    self.diagnostics.push(found.with_suggestion(&name.value, known));
                    return None;
                }
            },
        };
        let mut columns = |names: &[Text]| -> Option<Vec<String>> {
            let mut ok = true;
            for name in names {
                if port.table.field(&name.value).is_none() {
                    let error = ArgError::unknown_column("", &name.value, port.table.names());
                    self.diagnostics.push(place(&error, source, None, name.span));
                    ok = false;
                }
            }
            ok.then(|| names.iter().map(|n| n.value.clone()).collect())
        };
        let kind = match &assert.kind {
            AssertKind::Unique(names) => CheckKind::Unique(columns(names)?),
            AssertKind::NotNull(names) => CheckKind::NotNull(columns(names)?),
            AssertKind::AcceptedValues { column, values } => {
                let column = columns(std::slice::from_ref(column))?.remove(0);
                let values = values
                    .iter()
                    .map(|v| substitute_node(v, source, scope, &mut self.diagnostics).to_json())
                    .map(|v| plain(&v))
                    .collect();
                CheckKind::AcceptedValues { column, values }
            }
            AssertKind::Expr(node) => {
                let sql = substitute_node(node, source, scope, &mut self.diagnostics);
                let sql = plain(&sql.to_json());
                match parse_row_expr(session, &port.table.schema, &sql, "") {
                    Ok(e) if e.data_type == DataType::Boolean => {
                        CheckKind::Holds { sql, expr: Box::new(e.expr) }
                    }
                    Ok(e) => {
                        let message = format!(
                            "an assertion is true or false, but this has type {}",
                            type_name(&e.data_type)
                        );
                        let code = Code::WrongType;
                        self.diagnostics.push(Diagnostic::error(code, message, source, node.span));
                        return None;
                    }
                    Err(error) => {
                        self.diagnostics.push(place(&error, source, None, node.span));
                        return None;
                    }
                }
            }
            AssertKind::Rows { min, max } => {
                let mut bound = |node: &Option<Node>| -> Option<Option<u64>> {
                    let Some(node) = node else { return Some(None) };
                    let value = substitute_node(node, source, scope, &mut self.diagnostics);
                    match value.as_i64().and_then(|v| u64::try_from(v).ok()) {
                        Some(rows) => Some(Some(rows)),
                        None => {
                            let message = "a number of rows is a natural number";
                            let code = Code::WrongType;
                            let found = Diagnostic::error(code, message, source, node.span);
                            self.diagnostics.push(found);
                            None
                        }
                    }
                };
                CheckKind::Rows { min: bound(min)?, max: bound(max)? }
            }
        };
        let place = SourceSpan::new(source, assert.span);
        Some(Check { port: port.name, kind, severity: assert.severity, place })
    }
}

/// What is wrong with the names of the input ports, if anything: message, place and help.
fn port_problem(
    operator: &str,
    also: &[&str],
    ports: &[(Text, StepRef)],
) -> Option<(String, Span, String)> {
    let takes = format!("it takes `{INPUT}` and, if you like, {}", also.join(", "));
    let unknown =
        ports.iter().find(|(port, _)| port.value != INPUT && !also.contains(&&*port.value));
    if let Some((port, _)) = unknown {
        let message = format!("operator {} has no input {}", quote(operator), quote(&port.value));
        return Some((message, port.span, takes));
    }
    let (first, _) = ports.first()?;
    if ports.iter().any(|(port, _)| port.value == INPUT) {
        return None;
    }
    let message = format!("operator {} needs an input called `{INPUT}`", quote(operator));
    Some((message, first.span, takes))
}

/// Whether the step has a key that is unknown, and may be a misspelt `from`.
fn covers_unknown_key(
    diagnostics: &crate::workflow::Diagnostics,
    site: &Site<'_>,
    step: &Step,
) -> bool {
    diagnostics.iter().any(|d| {
        d.code == Code::UnknownKey
            && Arc::ptr_eq(&d.span.source, &site.workflow.source)
            && (step.span.start..step.span.end).contains(&d.span.start)
    })
}

/// An operator's complaint at the place of the argument it is about.
pub(super) fn place(
    error: &ArgError,
    source: &Arc<crate::workflow::Source>,
    with: Option<&Node>,
    fallback: Span,
) -> Diagnostic {
    let span = match with {
        Some(node) if !error.path.is_empty() => node.nearest(&error.path).span,
        _ => fallback,
    };
    let found = Diagnostic::error(error.code, error.message.as_str(), source, span);
    match &error.help {
        Some(help) => found.with_help(help.as_str()),
        None => found,
    }
}

/// The columns of united cells: those of the step, and the matrix keys.
pub(super) fn united_schema(input: &Input) -> Result<TableSchema, String> {
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
                "the cells have a column {} already, which is also a matrix key",
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
