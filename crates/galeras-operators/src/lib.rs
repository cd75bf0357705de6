//! The operators, one file (or small folder) each, and their documentation.
//!
//! Adding an operator: one file here, its `mod` line, its line in the registry. Help, JSON Schema,
//! documentation page and plan-time checks derive from that file.

mod ast;
mod cut;
mod dedup;
mod describe;
mod exec;
mod execute;
mod few_shot;
mod figure;
mod generate;
mod judge;
mod methods;
mod mine;
mod oracle;
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
mod patterns;
mod repository_access;
pub mod sandbox;
mod typed_rows;

pub use ast::AST;
pub use cut::CUT;
pub use dedup::DEDUP;
pub use describe::DESCRIBE;
pub use exec::EXEC;
pub use execute::EXECUTE;
pub use few_shot::FEW_SHOT;
pub use figure::FIGURE;
pub use generate::GENERATE;
pub use judge::JUDGE;
pub use methods::METHODS;
pub use mine::MINE;
pub use oracle::ORACLE;
pub use prompt::PROMPT;
pub use query::QUERY;
pub use read::READ;
pub use review::REVIEW;
pub use sample::SAMPLE;
pub use score::SCORE;
pub use sql::SQL;
pub use taxonomy::TAXONOMY;
pub use tokenizer::TOKENIZER;
pub use union::UNION;
pub use validate::VALIDATE;
