//! The operators of the program.

use galeras_effects::{CORRELATE, MIXED, POWER, REGRESS};
use galeras_operator::{Operator, Registry};
use galeras_operators::{
    AST, CUT, DEDUP, DESCRIBE, EXEC, EXECUTE, FEW_SHOT, FIGURE, GENERATE, JUDGE, METHODS, MINE,
    ORACLE, PROMPT, QUERY, READ, REVIEW, SAMPLE, SCORE, SQL, TAXONOMY, TOKENIZER, UNION, VALIDATE,
};

/// Every operator, in the order of the documentation.
pub const ALL: &[&dyn Operator] = &[
    READ, METHODS, QUERY, MINE, AST, VALIDATE, REVIEW, TOKENIZER, DEDUP, SAMPLE, CUT, FEW_SHOT,
    PROMPT, GENERATE, JUDGE, ORACLE, EXECUTE, SCORE, TAXONOMY, SQL, UNION, DESCRIBE, CORRELATE,
    REGRESS, POWER, MIXED, FIGURE, EXEC,
];

/// The registry of [`ALL`].
pub const REGISTRY: Registry = Registry::new(ALL);
