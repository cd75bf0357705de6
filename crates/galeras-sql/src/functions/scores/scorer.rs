//! All scores of a pair of texts.
//!
//! Here: one object per thread that holds the memory of every algorithm, references that were
//! read already, and counts that add up. The Arrow form is in `score_pair`.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::LazyLock;

use super::spec::{Metric, ScoreSpec};
use galeras_metrics::codebleu::{
    CodeBleu, CodeBleuCounts, CodeBleuMode, CodeBleuReadings, CodeBleuReference, CodeBleuScores,
};
use galeras_metrics::text::{
    Bleu, BleuStatistics, Chrf, Levenshtein, MAX_STEPS, RougeL, continuation,
};
use galeras_python::{is_space, with_parser};

/// How many counts a pair has: those of BLEU, then those of CodeBLEU as it is published, and ours.
pub const COUNT: usize = BLEU + 2 * CODEBLEU;
const BLEU: usize = 14;
const CODEBLEU: usize = 20;

/// The texts of references are read again after this many bytes of them, so that what is kept
/// of them stays below some hundred times as much memory.
const KEPT_BYTES: usize = 1 << 20;

/// What the scorers of all threads have read: rows with one reference come to any of them.
static READINGS: LazyLock<[(CodeBleuMode, CodeBleuReadings); 3]> = LazyLock::new(|| {
    [CodeBleuMode::Strict, CodeBleuMode::Published, CodeBleuMode::CodeXGlue]
        .map(|mode| (mode, CodeBleuReadings::new(mode)))
});

/// The scores of a pair; those that were not asked for, or do not exist, are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Scored {
    pub(super) bleu: Option<f64>,
    pub(super) codebleu: Option<CodeBleuScores>,
    pub(super) codebleu_strict: Option<CodeBleuScores>,
    pub(super) levenshtein: Option<i64>,
    pub(super) similarity: Option<f64>,
    pub(super) exact_match: Option<i64>,
    pub(super) chrf: Option<f64>,
    pub(super) rouge_l: Option<f64>,
    pub(super) parses: Option<i64>,
}

/// Why a pair has no scores.
#[derive(Debug, PartialEq)]
pub(super) enum Unscored {
    /// The reference does not begin with the text that was given.
    NotGiven,
    /// The texts are so large and so different that this score would take hours.
    TooLarge(Metric),
}

/// Scores pairs of texts; one per thread.
pub struct Scorer {
    spec: ScoreSpec,
    bleu: Bleu,
    codebleu: PairCodeBleu,
    codebleu_strict: PairCodeBleu,
    levenshtein: Levenshtein,
    chrf: Chrf,
    rouge_l: RougeL,
}

/// CodeBLEU of one mode, with the references that were read already. Both modes read a text from
/// one parse of it, unless there are comments, docstrings or blank lines, which the published
/// programs cut out before they parse.
struct PairCodeBleu {
    codebleu: CodeBleu,
    /// `None` of references that cannot be parsed.
    references: HashMap<blake3::Hash, Option<Rc<CodeBleuReference>>>,
    kept_bytes: usize,
}

impl Scorer {
    pub(super) fn new(spec: ScoreSpec) -> Self {
        Self {
            bleu: Bleu::new(spec.bleu()),
            codebleu: PairCodeBleu::new(spec.mode.codebleu(), spec.codebleu_weights),
            codebleu_strict: PairCodeBleu::new(CodeBleuMode::Strict, spec.codebleu_weights),
            levenshtein: Levenshtein::default(),
            chrf: Chrf::default(),
            rouge_l: RougeL::new(spec.mode.words()),
            spec,
        }
    }

    /// The scores of what comes after the given text, in both alike; `None` if nothing but white
    /// space does in the reference. Whether it parses is asked of the whole that the prediction
    /// makes with what was given.
    ///
    /// # Errors
    /// If the reference does not begin with the given text, and those of [`Scorer::score`].
    pub(super) fn score_continuation(
        &mut self,
        given: &str,
        reference: &str,
        prediction: &str,
    ) -> Result<Option<(Scored, [i64; COUNT])>, Unscored> {
        let wanted = continuation(given, reference);
        if !wanted.repeats {
            return Err(Unscored::NotGiven);
        }
        if wanted.rest.trim_matches(is_space).is_empty() {
            return Ok(None);
        }
        let added = continuation(given, prediction);
        let (mut scored, counts) = self.score(wanted.rest, added.rest)?;
        if self.spec.has(Metric::Parses) {
            scored.parses = match added.whole {
                Some(whole) => parses(whole.trim_matches(is_space)),
                None => parses(format!("{given}{}", added.rest).trim_matches(is_space)),
            };
        }
        Ok(Some((scored, counts)))
    }

    /// The scores, and the counts that add up to those of a corpus.
    ///
    /// # Errors
    /// If the texts are too large for a score whose time grows with their product.
    pub(super) fn score(
        &mut self,
        reference: &str,
        prediction: &str,
    ) -> Result<(Scored, [i64; COUNT]), Unscored> {
        self.score_within(reference, prediction, MAX_STEPS)
    }

    fn score_within(
        &mut self,
        reference: &str,
        prediction: &str,
        steps: u64,
    ) -> Result<(Scored, [i64; COUNT]), Unscored> {
        let (reference, prediction) = match self.spec.mode.strips() {
            true => (reference.trim_matches(is_space), prediction.trim_matches(is_space)),
            false => (reference, prediction),
        };
        let mut scored = Scored::default();
        let mut counts = [0; COUNT];
        for at in 0..self.spec.metrics.len() {
            let metric = self.spec.metrics[at];
            match metric {
                Metric::Bleu => {
                    let statistics = self.bleu.statistics(reference, prediction);
                    scored.bleu = Some(self.bleu.score(&statistics));
                    counts[..BLEU].copy_from_slice(&of_bleu(&statistics));
                }
                Metric::Codebleu => {
                    let (scores, of_pair) = self.codebleu.score(reference, prediction).unzip();
                    scored.codebleu = scores;
                    let place = &mut counts[BLEU..BLEU + CODEBLEU];
                    place.copy_from_slice(&of_pair.map_or([0; CODEBLEU], |c| of_codebleu(&c)));
                }
                Metric::CodebleuStrict => {
                    let scored_pair = self.codebleu_strict.score(reference, prediction);
                    let (scores, of_pair) = scored_pair.unzip();
                    scored.codebleu_strict = scores;
                    let place = &mut counts[BLEU + CODEBLEU..];
                    place.copy_from_slice(&of_pair.map_or([0; CODEBLEU], |c| of_codebleu(&c)));
                }
                Metric::Levenshtein => {
                    let distance = self.levenshtein.distance_within(reference, prediction, steps);
                    let distance = distance.ok_or(Unscored::TooLarge(metric))?;
                    scored.levenshtein = Some(i64::try_from(distance).unwrap_or(i64::MAX));
                }
                Metric::Similarity => {
                    let found = self.levenshtein.similarity_within(reference, prediction, steps);
                    scored.similarity = Some(found.ok_or(Unscored::TooLarge(metric))?);
                }
                Metric::ExactMatch => scored.exact_match = Some(i64::from(reference == prediction)),
                Metric::Chrf => scored.chrf = Some(self.chrf.score(reference, prediction)),
                Metric::RougeL => {
                    let found = self.rouge_l.score_within(reference, prediction, steps);
                    scored.rouge_l = Some(found.ok_or(Unscored::TooLarge(metric))?);
                }
                Metric::Parses => scored.parses = parses(prediction),
            }
        }
        Ok((scored, counts))
    }
}

impl PairCodeBleu {
    fn new(mode: CodeBleuMode, weights: [f64; 4]) -> Self {
        let shared = READINGS.iter().find(|(of, _)| *of == mode);
        let codebleu = match shared {
            Some((_, readings)) => CodeBleu::sharing(readings, weights),
            None => CodeBleu::new(mode, weights),
        };
        Self { codebleu, references: HashMap::new(), kept_bytes: 0 }
    }

    /// `None` if one of the texts is too large or too hostile to be parsed.
    fn score(
        &mut self,
        reference: &str,
        prediction: &str,
    ) -> Option<(CodeBleuScores, CodeBleuCounts)> {
        let key = blake3::hash(reference.as_bytes());
        let known = match self.references.get(&key) {
            Some(known) => known.clone(),
            None => {
                let read = with_parser(|parser| self.codebleu.reference(parser, reference));
                let read = read.ok().and_then(Result::ok).map(Rc::new);
                self.kept_bytes += reference.len();
                if self.kept_bytes > KEPT_BYTES {
                    self.references.clear();
                    self.kept_bytes = reference.len();
                }
                self.references.insert(key, read.clone());
                read
            }
        }?;
        let scored = with_parser(|parser| self.codebleu.score(parser, &known, prediction));
        scored.ok()?.ok()
    }
}

/// 1 for Python 3 without a syntax error, 0 for other texts and for none at all; `None` if the
/// text cannot be parsed within its bounds.
fn parses(text: &str) -> Option<i64> {
    let parses = with_parser(|parser| galeras_python::parses(parser, text)).ok()?.ok()?;
    Some(i64::from(parses))
}

fn count(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn of_bleu(s: &BleuStatistics) -> [i64; BLEU] {
    let mut counts = [0; BLEU];
    let all = s.matches.iter().chain(&s.totals).chain(&s.without);
    let all = all.chain([&s.hypothesis_len, &s.reference_len]);
    counts.iter_mut().zip(all).for_each(|(to, from)| *to = count(*from));
    counts
}

fn of_codebleu(c: &CodeBleuCounts) -> [i64; CODEBLEU] {
    let mut counts = [0; CODEBLEU];
    let lengths = [&c.pairs, &c.hypothesis_tokens, &c.reference_tokens];
    let all = lengths.into_iter().chain(&c.matched).chain(&c.hypothesis_ngrams);
    let all = all.chain(&c.reference_ngrams).chain([
        &c.matched_fifths,
        &c.reference_fifths,
        &c.matched_subtrees,
        &c.reference_subtrees,
        &c.matched_flow,
        &c.reference_flow,
    ]);
    counts.iter_mut().zip(all).for_each(|(to, from)| *to = count(*from));
    counts
}

/// A score of a corpus: its name, its value if there is one, and the pairs it is of.
pub(super) type CorpusScore = (&'static str, Option<f64>, i64);

/// The scores of a corpus, from the sums of the counts of its pairs.
pub(super) fn of_corpus(spec: &ScoreSpec, rows: i64, sums: &[i64]) -> Vec<CorpusScore> {
    let mut scores = Vec::new();
    let mut sums = sums.iter().map(|sum| u64::try_from(*sum).unwrap_or(0));
    let mut next = || sums.next().unwrap_or(0);
    let mut four = || [next(), next(), next(), next()];
    let statistics = BleuStatistics {
        matches: four(),
        totals: four(),
        without: four(),
        hypothesis_len: next(),
        reference_len: next(),
    };
    if spec.has(Metric::Bleu) {
        let options = spec.bleu();
        // Orders that no text has are left out of a sentence's score, not of a corpus'.
        let value = statistics.score(options.smoothing, false);
        scores.push(("bleu", (rows > 0).then_some(value), rows));
    }
    let mut of_codebleu = || CodeBleuCounts {
        pairs: next(),
        hypothesis_tokens: next(),
        reference_tokens: next(),
        matched: [next(), next(), next(), next()],
        hypothesis_ngrams: [next(), next(), next(), next()],
        reference_ngrams: [next(), next(), next()],
        matched_fifths: next(),
        reference_fifths: next(),
        matched_subtrees: next(),
        reference_subtrees: next(),
        matched_flow: next(),
        reference_flow: next(),
    };
    let (published, strict) = (of_codebleu(), of_codebleu());
    let weights = &spec.codebleu_weights;
    let mut add = |metric: Metric, counts: &CodeBleuCounts, values: Vec<Option<f64>>| {
        if spec.has(metric) {
            let values = values.into_iter().map(|value| value.filter(|_| counts.pairs > 0));
            let pairs = count(counts.pairs);
            let names = metric.columns().iter();
            scores.extend(names.zip(values).map(|(name, value)| (*name, value, pairs)));
        }
    };
    let corpus = published.scores(spec.mode.codebleu(), weights);
    add(Metric::Codebleu, &published, components(&corpus).to_vec());
    let corpus = strict.scores(CodeBleuMode::Strict, weights);
    add(Metric::CodebleuStrict, &strict, strict_components(&corpus).to_vec());
    scores
}

/// The values of the columns of the strict CodeBLEU, whose n-grams are those of the other.
pub(super) fn strict_components(scores: &CodeBleuScores) -> [Option<f64>; 4] {
    let [codebleu, _, weighted, syntax, dataflow] = components(scores);
    [codebleu, weighted, syntax, dataflow]
}

/// The values of CodeBLEU's columns; a score that has no weight left is none.
pub(super) fn components(scores: &CodeBleuScores) -> [Option<f64>; 5] {
    [
        Some(scores.codebleu).filter(|score| !score.is_nan()),
        Some(scores.ngram),
        Some(scores.weighted),
        Some(scores.syntax),
        scores.dataflow,
    ]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::functions::scores::spec::{BleuSmooth, Tokenize};

    fn spec(metrics: &[Metric]) -> ScoreSpec {
        ScoreSpec { metrics: metrics.to_vec(), ..ScoreSpec::only(Metric::Bleu) }
    }

    #[test]
    fn the_corpus_of_one_pair_has_its_scores() {
        let spec = ScoreSpec {
            bleu_tokenize: Tokenize::None,
            bleu_smooth: BleuSmooth::AddK,
            ..spec(&Metric::ALL)
        };
        let (scored, counts) = Scorer::new(spec.clone())
            .score("def f(a, b):\n    c = a\n    return c + b", "def f(a, b):\n    return b + a")
            .unwrap();
        let corpus = of_corpus(&spec, 1, &counts);
        let codebleu = scored.codebleu.map(|scores| components(&scores)).into_iter().flatten();
        let strict = scored.codebleu_strict.map(|scores| strict_components(&scores));
        let strict = strict.into_iter().flatten();
        let wanted: Vec<Option<f64>> =
            std::iter::once(scored.bleu).chain(codebleu).chain(strict).collect();
        assert_eq!(wanted.len(), 10);
        assert_eq!(corpus.iter().map(|score| score.1).collect::<Vec<_>>(), wanted);
        assert!(corpus.iter().all(|score| score.2 == 1));
    }

    #[test]
    fn an_echo_is_worth_nothing_and_the_reference_all() {
        let given = "def f(a, b):\n    c = a # kept\n    retu";
        let rest = "rn c + b\n";
        let whole = format!("{given}{rest}");
        let relaid = "def f(a,b):\n\tc = a\n\treturn c + b";
        let mut scorer = Scorer::new(spec(&Metric::ALL));
        let mut score = |text: &str| {
            let scored = scorer.score_continuation(given, &whole, text);
            scored.ok().flatten().map(|(scores, _)| scores).unwrap_or_default()
        };
        for echo in [given, "", "def f(a, b):\n    c = a\n    retu"] {
            let s = score(echo);
            assert_eq!((s.bleu, s.chrf, s.rouge_l), (Some(0.0), Some(0.0), Some(0.0)), "{echo}");
            assert_eq!((s.similarity, s.exact_match), (Some(0.0), Some(0)));
            assert_eq!(s.levenshtein, Some(8));
            assert_eq!(s.codebleu_strict.map(|s| s.codebleu), Some(0.0));
        }
        for all in [whole.as_str(), rest, relaid] {
            let s = score(all);
            let shares = [s.bleu, s.chrf, s.rouge_l, s.similarity];
            assert!(
                shares.iter().all(|share| share.is_some_and(|x| x > 1.0 - 1e-12)),
                "{shares:?}"
            );
            // What CodeBLEU gives to a text of so few tokens that is equal to its reference.
            let codebleu = s.codebleu_strict.map(|s| s.codebleu);
            assert!(codebleu.is_some_and(|x| x > 0.95), "{codebleu:?}");
            assert_eq!((s.levenshtein, s.exact_match, s.parses), (Some(0), Some(1), Some(1)));
        }
        let mut scorer = Scorer::new(spec(&Metric::ALL));
        assert_eq!(
            scorer.score_continuation(given, "def g(): pass", "").err(),
            Some(Unscored::NotGiven)
        );
        assert_eq!(scorer.score_continuation(given, &format!("{given} \n"), "x"), Ok(None));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// All scores of an answer are the same whether it repeats what it was given or goes on;
        /// an echo has none of the points, the reference all of them.
        #[test]
        fn given_and_continuation_score_as_the_continuation(
            given in "def f\\(a\\):\n[ab =#'\n]{0,16}|[a #'\n\"\\\\]{0,12}|\\PC{0,12}",
            rest in "[ab(=)#' \n]{0,16}|    return [a-c+]{1,9}\n|\\PC{0,16}",
            text in "[ab(=)#' \n]{0,16}|    return [a-c+]{1,9}\n|\\PC{0,16}",
        ) {
            let whole = format!("{given}{rest}");
            let mut scorer = Scorer::new(spec(&Metric::ALL));
            let mut score = |text: &str| scorer.score_continuation(&given, &whole, text);
            let repeated = score(&format!("{given}{text}"));
            // As text: CodeBLEU may be no number.
            prop_assert_eq!(format!("{repeated:?}"), format!("{:?}", score(&text)));
            let wanted = continuation(&given, &whole).rest.trim_matches(is_space);
            let echo = score(&given);
            prop_assert_eq!(echo == Ok(None), wanted.is_empty());
            if let (Ok(Some((echo, _))), Ok(Some((best, _)))) = (echo, score(&whole)) {
                let all = i64::try_from(wanted.chars().count()).unwrap_or(i64::MAX);
                prop_assert_eq!((echo.levenshtein, best.levenshtein), (Some(all), Some(0)));
                prop_assert_eq!((echo.exact_match, best.exact_match), (Some(0), Some(1)));
                prop_assert_eq!((echo.similarity, best.similarity), (Some(0.0), Some(1.0)));
                prop_assert_eq!((echo.bleu, echo.chrf), (Some(0.0), Some(0.0)));
                prop_assert!(best.chrf.is_some_and(|chrf| chrf > 1.0 - 1e-12), "{:?}", best);
                prop_assert!(best.bleu.is_some_and(|bleu| bleu > 1.0 - 1e-12), "{:?}", best);
            }
        }
    }

    #[test]
    fn a_score_that_would_take_hours_is_an_error() {
        let (reference, prediction) = ("a b\n".repeat(400), "c d\n".repeat(300));
        for metric in Metric::ALL {
            let mut scorer = Scorer::new(spec(&[metric]));
            let found = scorer.score_within(&reference, &prediction, 100);
            match metric {
                Metric::Levenshtein | Metric::Similarity | Metric::RougeL => {
                    assert_eq!(found, Err(Unscored::TooLarge(metric)));
                }
                _ => assert!(found.is_ok()),
            }
            assert!(scorer.score(&reference, &prediction).is_ok(), "{metric:?}");
        }
    }

    #[test]
    fn references_are_forgotten_and_read_again() {
        let mut scorer = Scorer::new(spec(&[Metric::Codebleu]));
        let long = "x = [1, 2]\n".repeat(60_000);
        let first = scorer.score("x = 1", "x = 2");
        for at in 0..4 {
            scorer.score(&format!("{long}y = {at}"), "x = 2").unwrap();
            assert!(scorer.codebleu.kept_bytes < 2 * KEPT_BYTES);
        }
        assert_eq!(scorer.score("x = 1", "x = 2"), first);
    }
}
