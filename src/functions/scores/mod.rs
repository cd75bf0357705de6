//! Scores of predictions as DataFusion functions.
//!
//! | file | holds |
//! |---|---|
//! | `spec` | what is scored and how, as a literal argument |
//! | `scorer` | all scores of a pair of texts, with memory that is used again |
//! | `score_pair` | `score_pair(spec, reference, prediction)`, what the operator `score` calls |
//! | `one_score` | a function for each single score, for `sql` |
//! | `corpus_scores` | sums of counts -> the scores of a corpus |
//! | `pass_at_k` | `pass_at_k(n, c, k)` |
//!
//! The algorithms are in `functions::text` and `functions::codebleu`.

mod corpus_scores;
mod one_score;
mod pass_at_k;
mod score_pair;
mod scorer;
mod spec;

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;

pub use corpus_scores::{CORPUS_FIELDS, CorpusScores};
pub use one_score::OneScore;
pub use pass_at_k::PassAtK;
pub use score_pair::{COUNTS, ScorePair, score_type};
pub use scorer::{COUNT, Scorer};
pub use spec::{BleuSmooth, Metric, Mode, Spec, Tokenize};

/// The functions.
pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    let mut all = vec![
        Arc::new(ScalarUDF::from(ScorePair::default())),
        Arc::new(ScalarUDF::from(CorpusScores::default())),
        Arc::new(ScalarUDF::from(PassAtK::default())),
    ];
    all.extend(OneScore::all().map(|score| Arc::new(ScalarUDF::from(score))));
    all
}
