//! The outputs of the workflow of the command line: what is written where, and as what.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::DataType;

use super::expander::{Expander, Site, StepTargets};
use super::model::{Input, OutputFormat, PlannedOutput};
use super::params::scope;
use crate::code::Code;
use crate::digest::type_name;
use crate::workflow::{
    Diagnostic, Output, Source, SourceSpan, output_path_problem, quote, substitute_node,
};

impl Expander {
    /// The output as planned; mistakes are reported.
    pub(super) fn output(
        &mut self,
        site: &Site<'_>,
        output: &Output,
        targets: &StepTargets,
    ) -> Option<PlannedOutput> {
        let source = &site.workflow.source;
        let from = output.from.fixed();
        let input =
            from.and_then(|from| self.table(site, from, &Vec::new(), targets, &output.name.value));
        let scope = scope(site.params);
        let path = substitute_node(&output.path, source, &scope, &mut self.diagnostics);
        let path = path.as_str()?.to_string();
        let bad_path = |problem: String| {
            let code = Code::BadPath;
            Diagnostic::error(code, problem, source, output.path.span)
        };
        if let Some(problem) = output_path_problem(&path) {
            self.diagnostics.push(bad_path(problem));
            return None;
        }
        let suffix = Path::new(&path).extension().and_then(|e| e.to_str()).unwrap_or_default();
        let format = match (suffix, &output.column) {
            ("json" | "txt", Some(column)) => OutputFormat::Text { column: column.value.clone() },
            ("json" | "txt", None) => {
                let problem = format!("a table cannot be written as .{suffix}");
                self.diagnostics.push(bad_path(problem).with_help(
                    "rows are written as .jsonl, .csv or .parquet; a .json or .txt file is the \
                     text in a `column` of a table of one row",
                ));
                return None;
            }
            (_, Some(column)) => {
                let code = Code::ConflictingKeys;
                let problem = format!("a .{suffix} file always has all columns");
                let problem = Diagnostic::error(code, problem, source, column.span);
                self.diagnostics.push(problem.with_help("`column` is for .json and .txt files"));
                return None;
            }
            ("parquet", None) => OutputFormat::Parquet,
            ("jsonl", None) => OutputFormat::Jsonl,
            _ => OutputFormat::Csv,
        };
        let path = PathBuf::from(path);
        if let Some(other) = self.outputs.iter().find(|o| o.path == path) {
            let problem = format!(
                "the outputs {} and {} would both be written to {}",
                quote(&other.name),
                quote(&output.name.value),
                path.display()
            );
            self.diagnostics.push(bad_path(problem));
            return None;
        }
        let input = input?;
        if let Some(problem) = column_problem(source, output, &input) {
            self.diagnostics.push(problem);
            return None;
        }
        let name = output.name.value.clone();
        let place = SourceSpan::new(source, output.path.span);
        Some(PlannedOutput { name, input, path, format, show: output.show, place })
    }
}

/// What is wrong with the `column` of an output, if it has one.
fn column_problem(source: &Arc<Source>, output: &Output, input: &Input) -> Option<Diagnostic> {
    let column = output.column.as_ref()?;
    match input.schema.field(&column.value) {
        None => {
            let message = format!("there is no column {}", quote(&column.value));
            let problem = Diagnostic::error(Code::UnknownColumn, message, source, column.span);
            Some(problem.with_suggestion(&column.value, input.schema.names()))
        }
        Some(field) if *field.data_type() != DataType::Utf8 => {
            let given = type_name(field.data_type());
            let message = format!("column {} has type {given}, not utf8", quote(&column.value));
            let code = Code::WrongType;
            Some(Diagnostic::error(code, message, source, column.span))
        }
        Some(_) => None,
    }
}
