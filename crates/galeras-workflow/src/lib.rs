//! Reads YAML text to a raw specification, with the place of everything; nothing is resolved.
//!
//! [`parse`] is the entry point. It returns a [`Workflow`] whenever there is anything to work with,
//! and all [`Diagnostics`] at once. Later layers add their own with the same types: a [`Node`]
//! finds an argument's bytes ([`Node::at_pointer`]), [`substitute_node`] gives expressions their values,
//! [`render`] and [`to_json`] show the result.
//!
//! Data flows one way: `load` (YAML) → `node` → `read*` → `spec`. No module here reads a file,
//! knows an operator, or prints. The plan finds unknown operators, columns, ports and steps, and
//! cycles.

pub mod code;
mod columns;
mod diagnostic;
mod expr;
mod language;
mod load;
mod node;
mod read;
mod read_matrix;
mod read_params;
mod read_steps;
mod reader;
mod reference;
mod render;
mod repository_list;
mod scalar_text;
mod schema;
mod shell_text;
mod source;
mod spec;
mod sql_text;
mod substitute;
mod suggest;
#[cfg(test)]
mod tests;
mod yaml_mistake;

pub use columns::{ColumnType, ItemType, ScalarType};
pub use diagnostic::{Diagnostic, Diagnostics, Severity, quote};
pub use expr::{Namespace, Ref, collect_refs, has_expression, holds_expression, is_name};
pub use language::Language;
pub use load::{MAX_DEPTH, MAX_FILE_BYTES, MAX_NODES, load};
pub use node::{Node, Value};
pub use read::{budget_limit_problem, parse, parse_source};
pub use read_matrix::{Axis, AxisPoint, matrix_axes};
pub use read_params::check_param_value;
pub use read_steps::{OUTPUT_PATH_HELP, output_path_problem};
pub use reference::{parse_reference, parse_step_ref};
pub use render::{plain, render, to_json};
pub use repository_list::{
    is_owner_and_name, is_repository_file, repository_entries, with_moved_paths,
};
pub use scalar_text::word_span;
pub use schema::json_schema;
pub use source::{Position, Source, SourceSpan, Span};
pub use spec::{
    Assert, AssertKind, AssertSeverity, BudgetSpec, Cells, Contract, From, KnownPart, Output,
    PaperSpec, Param, ParamType, Reference, RemoteSpec, ReportPart, ReportSection, ReportSpec,
    SchemaField, StepKind, StepRef, StepSpec, TableView, Text, Workflow,
};
pub use substitute::{Scope, substitute_code, substitute_node};
pub use suggest::did_you_mean;
