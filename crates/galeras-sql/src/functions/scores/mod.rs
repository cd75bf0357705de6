//! Scores of predictions as DataFusion functions.
//!
//! | file | holds |
//! |---|---|
//! | `spec` | what is scored and how, as a literal argument |
//! | `scorer` | all scores of a pair of texts, with memory that is used again |
//! | `score_pair` | `score_pair(spec, reference, prediction)`, what the operator `score` calls |
//! | `score_continuation` | the same of what comes after a text that was given |
//! | `one_score` | a function for each single score, for `sql` |
//! | `corpus_scores` | sums of counts -> the scores of a corpus |
//! | `pass_at_k` | `pass_at_k(n, c, k)` |
//!
//! The algorithms are in the crate `galeras_metrics`.

mod corpus_scores;
mod one_score;
mod pass_at_k;
mod score_continuation;
mod score_pair;
mod scorer;
mod spec;

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;

use super::function_doc::{FunctionDoc, documented};

pub use corpus_scores::{CORPUS_FIELDS, CorpusScores};
pub use one_score::OneScore;
pub use pass_at_k::PassAtK;
pub use score_continuation::ScoreContinuation;
pub use score_pair::{COUNTS, ScorePair, score_type};
pub use scorer::{COUNT, Scorer};
pub use spec::{BleuSmooth, Metric, ScoreMode, ScoreSpec, Tokenize};

/// The functions with their descriptions.
pub(super) fn all() -> Vec<(FunctionDoc, Arc<ScalarUDF>)> {
    let mut all = vec![
        documented::<ScorePair>(),
        documented::<ScoreContinuation>(),
        documented::<CorpusScores>(),
        documented::<PassAtK>(),
    ];
    all.extend(OneScore::all().map(|score| (score.doc(), Arc::new(ScalarUDF::from(score)))));
    all
}
