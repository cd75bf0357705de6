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
mod figure;
mod generate;
mod methods;
mod mine;
mod missing_values;
mod mixed;
mod power;
mod prompt;
mod prose;
mod query;
mod read;
mod regress;
mod review;
mod sample;
mod score;
mod small_table;
mod sql;
mod taxonomy;
mod tokenizer;
mod union;
mod validate;

// What several operators share.
mod columns;
mod far_numbers;
mod git_threads;
mod group_columns;
mod patterns;
mod projection;
mod rejects;
mod repository_access;
mod tokenizer_model;
mod worker_threads;

use crate::operator::{Operator, Registry};

/// Every operator, in the order of the documentation.
pub const ALL: &[&dyn Operator] = &[
    &read::ReadOperator,
    &methods::MethodsOperator,
    &query::QueryOperator,
    &mine::MineOperator,
    &ast::AstOperator,
    &validate::ValidateOperator,
    &review::ReviewOperator,
    &tokenizer::TokenizerOperator,
    &dedup::DedupOperator,
    &sample::SampleOperator,
    &cut::CutOperator,
    &prompt::PromptOperator,
    &generate::GenerateOperator,
    &score::ScoreOperator,
    &taxonomy::TaxonomyOperator,
    &sql::SqlOperator,
    &union::UnionOperator,
    &describe::DescribeOperator,
    &correlate::CorrelateOperator,
    &regress::RegressOperator,
    &power::PowerOperator,
    &mixed::MixedOperator,
    &figure::FigureOperator,
    &exec::ExecOperator,
];

/// The registry of [`ALL`].
pub const REGISTRY: Registry = Registry::new(ALL);
