//! The contract and the data tests of a step's results.

use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use serde_json::Value;

use super::cell::plain;
use super::expander::{Expander, Site};
use super::mistake::{diagnostic_of, word_of};
use super::model::{Check, CheckKind};
use galeras_base::small_file::{self, MAX_TEXT_BYTES};
use galeras_operator::table_digest::type_name;
use galeras_operator::{ArgError, Port};
use galeras_sql::session::{RowExpr, parse_row_expr};
use galeras_workflow::code::Code;
use galeras_workflow::{
    Assert, AssertKind, AssertSeverity, Contract, Language, Node, SchemaField, Scope, SourceSpan,
    StepSpec, Text, quote, substitute_code, substitute_node,
};

impl Expander {
    /// Checks `schema:` against the main port. A type cannot promise that a column has no nulls;
    /// that becomes a data test.
    pub(super) fn contract(&mut self, site: &Site<'_>, step: &StepSpec, port: &Port) -> Vec<Check> {
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
            let Some(column) = port.table.field(name) else {
                if port.table.open {
                    continue;
                }
                let message = format!("the step does not produce the column {}", quote(name));
                let problem = site.error(Code::BrokenContract, message, field.column.span);
                self.diagnostics.push(problem.with_suggestion(name, port.table.names()));
                continue;
            };
            let wanted = field.ty.ty.to_string();
            let given = type_name(column.data_type());
            let unknown = *column.data_type() == DataType::Null;
            let same =
                unknown || given == wanted || given.split('[').next() == Some(wanted.as_str());
            if !same {
                let message = format!("column {} has type {given}, not {wanted}", quote(name));
                self.diagnostics.push(site.error(Code::BrokenContract, message, field.span));
            }
            if field.ty.non_null && column.is_nullable() {
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

    fn contract_file(&mut self, site: &Site<'_>, path: &Text) -> Option<Vec<SchemaField>> {
        let source = &site.workflow.source;
        let file = site.base.join(&path.value);
        self.contracts.push((file.clone(), SourceSpan::new(source, path.span)));
        let mut refuse = |message: String| {
            let help = "a contract file maps columns to types: {\"id\": \"utf8!\"}";
            let problem = site.error(Code::MissingFile, message, path.span);
            self.diagnostics.push(problem.with_help(help));
        };
        let text = match small_file::read(&file, MAX_TEXT_BYTES) {
            Ok(text) => text,
            Err(e) => {
                refuse(format!("cannot read the contract {}: {e}", quote(&path.value)));
                return None;
            }
        };
        let columns = serde_json::from_slice::<Value>(&text)
            .ok()
            .and_then(|v| v.get("columns").unwrap_or(&v).as_object().cloned());
        let Some(columns) = columns else {
            refuse(format!("{} is not a contract", quote(&path.value)));
            return None;
        };
        let field = |(name, kind): (&String, &Value)| match kind.as_str().map(str::parse) {
            Some(Ok(ty)) => Ok(SchemaField {
                column: Text { value: name.clone(), span: path.span },
                ty,
                span: path.span,
            }),
            Some(Err(reason)) => Err(format!("its column {}: {reason}", quote(name))),
            None => Err(format!("the type of its column {} is not a text", quote(name))),
        };
        match columns.iter().map(field).collect() {
            Ok(fields) => Some(fields),
            Err(reason) => {
                refuse(format!("{} is not a contract; {reason}", quote(&path.value)));
                None
            }
        }
    }

    /// A condition over the rows of a table, bound once for all cells of a matrix.
    fn condition(&mut self, schema: &SchemaRef, sql: &str) -> Result<RowExpr, ArgError> {
        let key = (Arc::clone(schema), sql.to_string());
        if let Some(known) = self.conditions.get(&key) {
            return Ok(known.clone());
        }
        let bound = parse_row_expr(&self.session, schema, sql, "")?;
        self.conditions.insert(key, bound.clone());
        Ok(bound)
    }

    /// The least and the greatest number of rows; `None` after a mistake.
    pub(super) fn row_bounds(
        &mut self,
        site: &Site<'_>,
        (min, max): (&Option<Node>, &Option<Node>),
        scope: &Scope,
    ) -> Option<(Option<u64>, Option<u64>)> {
        let source = &site.workflow.source;
        let mut bound = |node: &Option<Node>| -> Option<Option<u64>> {
            let Some(node) = node else { return Some(None) };
            let value = substitute_node(node, source, scope, &mut self.diagnostics);
            match value.as_i64().and_then(|v| u64::try_from(v).ok()) {
                Some(rows) => Some(Some(rows)),
                None => {
                    let message = "a number of rows must be a whole number, 0 or more";
                    self.diagnostics.push(site.error(Code::WrongType, message, node.span));
                    None
                }
            }
        };
        Some((bound(min)?, bound(max)?))
    }

    pub(super) fn check(
        &mut self,
        site: &Site<'_>,
        assert: &Assert,
        ports: &[Port],
        scope: &Scope,
    ) -> Option<Check> {
        let source = &site.workflow.source;
        let port = match &assert.port {
            None => &ports[0],
            Some(name) => match ports.iter().find(|p| p.name == name.value) {
                Some(port) => port,
                None => {
                    let message = format!("the step has no port {}", quote(&name.value));
                    let problem = site.error(Code::UnknownPort, message, name.span);
                    let known = ports.iter().map(|p| p.name);
                    self.diagnostics.push(problem.with_suggestion(&name.value, known));
                    return None;
                }
            },
        };
        let mut columns = |names: &[Text]| -> Option<Vec<String>> {
            let mut ok = true;
            for name in names {
                if port.table.field(&name.value).is_none() && !port.table.open {
                    let error = ArgError::unknown_column("", &name.value, port.table.names());
                    self.diagnostics.push(diagnostic_of(&error, source, None, name.span));
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
                let sql =
                    substitute_code(node, Language::Sql, source, scope, &mut self.diagnostics);
                let place = |error: &ArgError| word_of(error, source, Some(&sql), Some(node));
                let mistake = |error: &ArgError| {
                    let span = place(error).unwrap_or(node.span);
                    diagnostic_of(error, source, None, span)
                };
                let sql = plain(&sql.to_json());
                match self.condition(&port.table.schema, &sql) {
                    Ok(e) if e.data_type == DataType::Boolean => {
                        CheckKind::Holds { sql, expr: Box::new(e.expr) }
                    }
                    Ok(_) if port.table.is_vague() => return None,
                    Ok(e) => {
                        let message = format!(
                            "an assertion must be true or false, but this has type {}",
                            type_name(&e.data_type)
                        );
                        self.diagnostics.push(site.error(Code::WrongType, message, node.span));
                        return None;
                    }
                    Err(error) => {
                        // Mistakes in the use of unknown columns cannot be judged.
                        let of_text = matches!(error.code, Code::SqlSyntax | Code::UnknownFunction);
                        if !port.table.is_vague() || of_text {
                            self.diagnostics.push(mistake(&error));
                        }
                        return None;
                    }
                }
            }
            AssertKind::Rows { min, max } => {
                let (min, max) = self.row_bounds(site, (min, max), scope)?;
                CheckKind::Rows { min, max }
            }
        };
        let place = SourceSpan::new(source, assert.span);
        Some(Check { port: port.name, kind, severity: assert.severity, place })
    }
}
