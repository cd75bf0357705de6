//! The outputs of the workflow of the command line: files, paths and formats.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::DataType;

use super::expander::{Expander, Site, StepTargets};
use super::input::Input;
use super::model::{OutputFormat, PictureFormat, PlannedOutput};
use super::params::scope;
use super::report::SVG;
use galeras_operator::table_digest::type_name;
use galeras_sql::session::OutputShape;
use galeras_workflow::code::Code;
use galeras_workflow::{
    Diagnostic, OUTPUT_PATH_HELP, Output, Source, SourceSpan, Text, output_path_problem, quote,
    substitute_node,
};

impl Expander {
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
            self.diagnostics.push(bad_path(problem).with_help(OUTPUT_PATH_HELP));
            return None;
        }
        let suffix = Path::new(&path).extension().and_then(|e| e.to_str()).unwrap_or_default();
        let format = match (suffix, &output.column) {
            ("json" | "txt" | "svg" | "html", Some(column)) => {
                OutputFormat::Text { column: column.value.clone() }
            }
            ("svg", None) if has_svg(input.as_ref()) => {
                OutputFormat::Picture { column: SVG.to_string(), format: PictureFormat::Svg }
            }
            ("png" | "pdf", column) => {
                let column = column.as_ref().map_or(SVG, |column| &column.value).to_string();
                let format = if suffix == "png" { PictureFormat::Png } else { PictureFormat::Pdf };
                OutputFormat::Picture { column, format }
            }
            ("txt" | "svg" | "html", None) => {
                let problem = format!("a table cannot be written as .{suffix}");
                self.diagnostics.push(bad_path(problem).with_help(
                    "name the text `column` of a table of one row whose value is the file: \
                     `column: name`; rows are written as .parquet, .jsonl, .json or .csv",
                ));
                return None;
            }
            (_, Some(column)) => {
                let code = Code::ConflictingKeys;
                let problem = format!("a .{suffix} file always has all columns");
                let problem = Diagnostic::error(code, problem, source, column.span);
                self.diagnostics
                    .push(problem.with_help(
                        "`column` is for .txt, .json, .svg, .png, .pdf and .html files",
                    ));
                return None;
            }
            ("parquet", None) => OutputFormat::Parquet,
            ("jsonl", None) => OutputFormat::Jsonl,
            ("json", None) => OutputFormat::Json,
            _ => OutputFormat::Csv,
        };
        let suffix = suffix.to_string();
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
        if let OutputFormat::Picture { column, .. } = &format
            && output.column.is_none()
            && !has_svg(Some(&input))
        {
            let message =
                format!("a .{suffix} file is a figure, and there is no column `{column}`");
            self.diagnostics.push(
                Diagnostic::error(Code::UnknownColumn, message, source, output.path.span)
                    .with_help("a step with `op: figure` draws one"),
            );
            return None;
        }
        if let Some(problem) = column_problem(source, output, &input) {
            self.diagnostics.push(problem);
            return None;
        }
        let shape = match &output.shape {
            None => None,
            Some(given) => match output_shape(source, given, &format, &input) {
                Ok(shape) => Some(shape),
                Err(problem) => {
                    self.diagnostics.push(*problem);
                    return None;
                }
            },
        };
        let name = output.name.value.clone();
        let place = SourceSpan::new(source, output.path.span);
        Some(PlannedOutput { name, input, path, format, shape, show: output.show, place })
    }
}

fn has_svg(input: Option<&Input>) -> bool {
    input.is_some_and(|input| input.schema.open || input.schema.field(SVG).is_some())
}

/// The shape of an output, or the reason why its table cannot have it.
fn output_shape(
    source: &Arc<Source>,
    given: &Text,
    format: &OutputFormat,
    input: &Input,
) -> Result<OutputShape, Box<Diagnostic>> {
    let problem = |code, message: String| Diagnostic::error(code, message, source, given.span);
    let Some(shape) = OutputShape::from_name(&given.value) else {
        let message = format!("there is no shape {}", quote(&given.value));
        let problem = problem(Code::WrongValue, message);
        return Err(Box::new(problem.with_suggestion(&given.value, OutputShape::NAMES)));
    };
    if !matches!(format, OutputFormat::Parquet | OutputFormat::Jsonl | OutputFormat::Json) {
        let message = format!("the shape {} is nested", quote(shape.name()));
        let problem = problem(Code::ConflictingKeys, message);
        return Err(Box::new(problem.with_help("write it as .parquet, .jsonl or .json")));
    }
    let missing = shape.missing(&input.schema.schema);
    if missing.is_empty() || input.schema.open {
        return Ok(shape);
    }
    let names: Vec<String> = missing.iter().map(|name| quote(name)).collect();
    let message =
        format!("the shape {} needs more columns: {}", quote(shape.name()), names.join(", "));
    Err(Box::new(problem(Code::UnknownColumn, message)))
}

/// The problem with the `column` of an output, if it has one.
fn column_problem(source: &Arc<Source>, output: &Output, input: &Input) -> Option<Diagnostic> {
    let column = output.column.as_ref()?;
    match input.schema.field(&column.value) {
        None if input.schema.open => None,
        None => {
            let message = format!("there is no column {}", quote(&column.value));
            let problem = Diagnostic::error(Code::UnknownColumn, message, source, column.span);
            Some(problem.with_suggestion(&column.value, input.schema.names()))
        }
        Some(field) if !matches!(field.data_type(), DataType::Utf8 | DataType::Null) => {
            let given = type_name(field.data_type());
            let message = format!("column {} has type {given}, not utf8", quote(&column.value));
            let code = Code::WrongType;
            Some(Diagnostic::error(code, message, source, column.span))
        }
        Some(_) => None,
    }
}
