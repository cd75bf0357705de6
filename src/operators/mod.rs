//! The operators, one file (or small folder) each, and the list that names them all.
//!
//! Adding an operator: one file here, its `mod` line, its line in [`ALL`]. Help, JSON Schema,
//! documentation page and plan-time checks derive from that file.

mod ast;
mod correlate;
mod cut;
mod dedup;
mod describe;
mod exec;
mod generate;
mod methods;
mod mine;
mod missing_values;
mod prompt;
mod prose;
mod query;
mod read;
mod regress;
mod sample;
mod score;
mod small_table;
mod sql;
mod support;
mod taxonomy;
mod tokenizer;
mod validate;

use crate::operator::{Operator, Registry};

/// Every operator, in the order of the documentation.
pub const ALL: &[&dyn Operator] = &[
    &read::Read,
    &methods::Methods,
    &query::QueryRepositories,
    &mine::Mine,
    &ast::Ast,
    &validate::Validate,
    &tokenizer::Tokenizer,
    &dedup::Dedup,
    &sample::Sample,
    &cut::Cut,
    &prompt::Prompt,
    &generate::Generate,
    &score::Score,
    &taxonomy::Taxonomy,
    &sql::Sql,
    &describe::Describe,
    &correlate::Correlate,
    &regress::Regress,
    &exec::Exec,
];

/// The registry of [`ALL`].
pub const REGISTRY: Registry = Registry::new(ALL);
