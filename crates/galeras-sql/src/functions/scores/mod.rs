//! Scores of predictions as DataFusion functions.
//!
//! A metric is a file and a line in `metric`; `pair_scores` has the functions that score rows, and
//! `corpus_scores` the one that scores a corpus. The algorithms are in the crate `galeras_metrics`.

mod bleu;
mod chrf;
mod codebleu;
mod corpus_scores;
mod edit_distance;
mod exact_match;
mod metric;
mod pair_scores;
mod parses;
mod pass_at_k;
mod rouge_l;
mod spec;

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;

use self::pair_scores::MetricFunction;
use self::parses::Parses;
use super::function_doc::{FunctionDoc, documented};

pub use corpus_scores::{CORPUS_FIELDS, CorpusScores};
pub use metric::{
    CorpusMetric, CorpusScore, Metric, Pair, PairMetric, PairScorer, ScoreColumn, TooLarge,
    count_of_counts,
};
pub use pair_scores::{
    BEGINNINGS, BEGINS, BEGINS_DISTANCE, COUNTS, ScoreContinuation, ScorePair, score_type,
};
pub use pass_at_k::{PassAtK, PassHatK};
pub use spec::{BleuSmooth, ScoreMode, ScoreSpec, Tokenize};

/// The functions with their descriptions.
pub(super) fn all() -> Vec<(FunctionDoc, Arc<ScalarUDF>)> {
    let mut all = vec![
        documented::<ScorePair>(),
        documented::<ScoreContinuation>(),
        documented::<CorpusScores>(),
        documented::<PassAtK>(),
        documented::<PassHatK>(),
        documented::<Parses>(),
    ];
    let functions = MetricFunction::all();
    all.extend(functions.map(|(doc, function)| (doc, Arc::new(ScalarUDF::from(function)))));
    all
}
