//! The operators of the program.

use galeras_effects::{CorrelateOperator, MixedOperator, PowerOperator, RegressOperator};
use galeras_operator::{Operator, Registry};
use galeras_operators::{
    AstOperator, CutOperator, DedupOperator, DescribeOperator, ExecOperator, FigureOperator,
    GenerateOperator, MethodsOperator, MineOperator, PromptOperator, QueryOperator, ReadOperator,
    ReviewOperator, SampleOperator, ScoreOperator, SqlOperator, TaxonomyOperator,
    TokenizerOperator, UnionOperator, ValidateOperator,
};

/// Every operator, in the order of the documentation.
pub const ALL: &[&dyn Operator] = &[
    &ReadOperator,
    &MethodsOperator,
    &QueryOperator,
    &MineOperator,
    &AstOperator,
    &ValidateOperator,
    &ReviewOperator,
    &TokenizerOperator,
    &DedupOperator,
    &SampleOperator,
    &CutOperator,
    &PromptOperator,
    &GenerateOperator,
    &ScoreOperator,
    &TaxonomyOperator,
    &SqlOperator,
    &UnionOperator,
    &DescribeOperator,
    &CorrelateOperator,
    &RegressOperator,
    &PowerOperator,
    &MixedOperator,
    &FigureOperator,
    &ExecOperator,
];

/// The registry of [`ALL`].
pub const REGISTRY: Registry = Registry::new(ALL);
