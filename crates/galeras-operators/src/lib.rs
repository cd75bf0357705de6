//! The operators, one file (or small folder) each, and the list that names them all.
//!
//! Adding an operator: one file here, its `mod` line, its line in [`ALL`]. Help, JSON Schema,
//! documentation page and plan-time checks derive from that file.

mod ast;
mod cut;
mod dedup;
mod describe;
mod exec;
mod figure;
mod generate;
mod methods;
mod mine;
mod prompt;
mod query;
mod read;
mod review;
mod sample;
mod score;
mod sql;
mod taxonomy;
mod tokenizer;
mod union;
mod validate;

// Shared by several operators.
mod git_threads;
mod patterns;
mod repository_access;
mod tokenizer_model;

pub use ast::AstOperator;
pub use cut::CutOperator;
pub use dedup::DedupOperator;
pub use describe::DescribeOperator;
pub use exec::ExecOperator;
pub use figure::FigureOperator;
pub use generate::GenerateOperator;
pub use methods::MethodsOperator;
pub use mine::MineOperator;
pub use prompt::PromptOperator;
pub use query::QueryOperator;
pub use read::ReadOperator;
pub use review::ReviewOperator;
pub use sample::SampleOperator;
pub use score::ScoreOperator;
pub use sql::SqlOperator;
pub use taxonomy::TaxonomyOperator;
pub use tokenizer::TokenizerOperator;
pub use union::UnionOperator;
pub use validate::ValidateOperator;
