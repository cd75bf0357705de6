//! `codebleu` as it is published, and `codebleu_strict` without the faults of the published programs.

use std::collections::HashMap;
use std::rc::Rc;

use super::metric::{
    CorpusMetric, CorpusScore, Pair, PairMetric, PairScorer, ScoreColumn, as_count, pair_function,
};
use crate::functions::function_doc::FunctionDoc;
use galeras_metrics::codebleu::{
    CodeBleu, CodeBleuCounts, CodeBleuMode, CodeBleuReference, CodeBleuScores,
};
use galeras_python::with_parser;

pub(super) const CODEBLEU: PairMetric = PairMetric {
    columns: &[
        ScoreColumn::share("codebleu", "CodeBLEU of the prediction, as it is published"),
        ScoreColumn::share("codebleu_ngram", "CodeBLEU's n-gram match"),
        ScoreColumn::share(
            "codebleu_weighted",
            "CodeBLEU's n-gram recall with weights for keywords",
        ),
        ScoreColumn::share(
            "codebleu_syntax",
            "share of the reference's subtrees in the prediction",
        ),
        ScoreColumn::share(
            "codebleu_dataflow",
            "share of the reference's data flow; 0 if it has none",
        ),
    ],
    about: "CodeBLEU with its four components, as it is published.",
    function: Some(FunctionDoc {
        version: 2,
        nulls: NULLS,
        ..pair_function(
            "codebleu",
            "float",
            "CodeBLEU of two Python texts (Ren et al. 2020), with the faults of the package codebleu",
            "codebleu('def f(a, b):\n    c = a\n    return c + b', 'def f(a, b):\n    return b + a')",
        )
    }),
    scorer: |spec| scorer(spec.mode.codebleu(), spec.codebleu_weights, components),
    corpus: Some(CorpusMetric {
        counts: COUNTS,
        score: |spec, _, sums| {
            of_corpus(spec.mode.codebleu(), &spec.codebleu_weights, sums, components)
        },
    }),
};

pub(super) const CODEBLEU_STRICT: PairMetric = PairMetric {
    // The n-grams are those of `codebleu`.
    columns: &[
        ScoreColumn::share(
            "codebleu_strict",
            "CodeBLEU of the prediction without the faults of published programs",
        ),
        ScoreColumn::share(
            "codebleu_strict_weighted",
            "the same of its n-gram match with weights for keywords, a precision",
        ),
        ScoreColumn::share(
            "codebleu_strict_syntax",
            "the same of its syntax: clipped, no comments and docstrings",
        ),
        ScoreColumn::share(
            "codebleu_strict_dataflow",
            "the same of its data flow; null if the reference has none",
        ),
    ],
    about: "CodeBLEU without the faults of the published programs.",
    function: Some(FunctionDoc {
        version: 2,
        nulls: NULLS,
        ..pair_function(
            "codebleu_strict",
            "float",
            "CodeBLEU without the faults of the published programs",
            "codebleu_strict('def f(a, b):\n    c = a\n    return c + b', 'def f(a, b):\n    return b + a')",
        )
    }),
    scorer: |spec| scorer(CodeBleuMode::Strict, spec.codebleu_weights, strict_components),
    corpus: Some(CorpusMetric {
        counts: COUNTS,
        score: |spec, _, sums| {
            of_corpus(CodeBleuMode::Strict, &spec.codebleu_weights, sums, strict_components)
        },
    }),
};

const COUNTS: usize = 21;

const NULLS: &str = "null if a text is null or cannot be parsed";

/// The values of the columns of a score.
type Components = fn(&CodeBleuScores) -> Vec<Option<f64>>;

/// A score that has no weight left is null.
fn components(scores: &CodeBleuScores) -> Vec<Option<f64>> {
    vec![
        Some(scores.codebleu).filter(|score| !score.is_nan()),
        Some(scores.ngram),
        Some(scores.weighted),
        Some(scores.syntax),
        scores.dataflow,
    ]
}

fn strict_components(scores: &CodeBleuScores) -> Vec<Option<f64>> {
    let mut values = components(scores);
    values.remove(1);
    values
}

/// A reference's text counts towards this limit until what is kept of references is dropped: it
/// takes some hundred times as much memory as the texts.
const KEPT_BYTES: usize = 1 << 20;

fn scorer(mode: CodeBleuMode, weights: [f64; 4], components: Components) -> PairScorer {
    let mut scorer = CodeBleuScorer::new(mode, weights, components);
    Box::new(move |pair, values, counts| {
        scorer.score(pair, values, counts);
        Ok(())
    })
}

struct CodeBleuScorer {
    codebleu: CodeBleu,
    components: Components,
    /// `None` for references that cannot be parsed.
    references: HashMap<blake3::Hash, Option<Rc<CodeBleuReference>>>,
    kept_bytes: usize,
}

impl CodeBleuScorer {
    fn new(mode: CodeBleuMode, weights: [f64; 4], components: Components) -> Self {
        let codebleu = CodeBleu::new(mode, weights);
        Self { codebleu, components, references: HashMap::new(), kept_bytes: 0 }
    }

    fn reference(&mut self, text: &str) -> Option<Rc<CodeBleuReference>> {
        let key = blake3::hash(text.as_bytes());
        if let Some(known) = self.references.get(&key) {
            return known.clone();
        }
        let read = with_parser(|parser| self.codebleu.reference(parser, text));
        let read = read.ok().and_then(Result::ok).map(Rc::new);
        self.kept_bytes += text.len();
        if self.kept_bytes > KEPT_BYTES {
            self.references.clear();
            self.kept_bytes = text.len();
        }
        self.references.insert(key, read.clone());
        read
    }

    /// The values are null if one of the texts is too large or too hostile to be parsed.
    fn score(&mut self, pair: &Pair<'_>, values: &mut [Option<f64>], counts: &mut [i64]) {
        let Some(reference) = self.reference(pair.reference) else { return };
        let scored = with_parser(|parser| self.codebleu.score(parser, &reference, pair.prediction));
        let Ok(Ok((scores, c))) = scored else { return };
        values.copy_from_slice(&(self.components)(&scores));
        let lengths = [c.pairs, c.hypothesis_tokens, c.reference_tokens];
        let ngrams = c.matched.into_iter().chain(c.hypothesis_ngrams).chain(c.reference_ngrams);
        let all = lengths.into_iter().chain(ngrams).chain([
            c.matched_fifths,
            c.hypothesis_fifths,
            c.reference_fifths,
            c.matched_subtrees,
            c.reference_subtrees,
            c.matched_flow,
            c.reference_flow,
        ]);
        counts.iter_mut().zip(all).for_each(|(to, from)| *to = as_count(from));
    }
}

fn of_corpus(
    mode: CodeBleuMode,
    weights: &[f64; 4],
    sums: &[u64],
    components: Components,
) -> CorpusScore {
    let counts = CodeBleuCounts {
        pairs: sums[0],
        hypothesis_tokens: sums[1],
        reference_tokens: sums[2],
        matched: std::array::from_fn(|order| sums[3 + order]),
        hypothesis_ngrams: std::array::from_fn(|order| sums[7 + order]),
        reference_ngrams: std::array::from_fn(|order| sums[11 + order]),
        matched_fifths: sums[14],
        hypothesis_fifths: sums[15],
        reference_fifths: sums[16],
        matched_subtrees: sums[17],
        reference_subtrees: sums[18],
        matched_flow: sums[19],
        reference_flow: sums[20],
    };
    let mut values = components(&counts.scores(mode, weights));
    values.iter_mut().for_each(|value| *value = value.filter(|_| counts.pairs > 0));
    CorpusScore { values, pairs: as_count(counts.pairs) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use galeras_metrics::codebleu::EQUAL_WEIGHTS;

    #[test]
    fn references_are_forgotten_and_read_again() {
        let mut scorer = CodeBleuScorer::new(CodeBleuMode::Published, EQUAL_WEIGHTS, components);
        let mut score = |reference: &str| {
            let (mut values, mut counts) = ([None; 5], [0; COUNTS]);
            let pair = Pair { reference, prediction: "x = 2", program: "x = 2", steps: 0 };
            scorer.score(&pair, &mut values, &mut counts);
            (values, counts, scorer.kept_bytes)
        };
        let long = "x = [1, 2]\n".repeat(60_000);
        let first = score("x = 1");
        for at in 0..4 {
            assert!(score(&format!("{long}y = {at}")).2 < 2 * KEPT_BYTES);
        }
        let last = score("x = 1");
        assert_eq!((first.0, first.1), (last.0, last.1));
    }
}
