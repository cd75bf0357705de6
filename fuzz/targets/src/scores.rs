//! Scores of two texts: against their definitions, between 0 and 1, and the same with buffers
//! that were used before.

use std::collections::HashMap;
use std::hash::Hash;

use galeras_metrics::codebleu::{CodeBleu, CodeBleuMode, EQUAL_WEIGHTS};
use galeras_metrics::text::{
    Bleu, BleuOptions, BleuSmoothing, BleuTokenizer, Chrf, Levenshtein, RougeL, RougeWords,
    pass_at_k,
};
use galeras_python::{PythonParser, is_space, with_parser};

use crate::is_share;

/// The naive versions take quadratic time.
const LONGEST: usize = 400;

/// Edit distance, BLEU, chrF and ROUGE-L of two texts.
pub(crate) fn texts(input: &[u8]) {
    let parts = crate::texts(input);
    let a: String = parts[0].chars().take(LONGEST).collect();
    let b: String = parts.get(1).map_or("", |b| b).chars().take(LONGEST).collect();
    edit_distance(&a, &b);
    for tokens in
        [BleuTokenizer::Tok13a, BleuTokenizer::Whitespace, BleuTokenizer::Intl, BleuTokenizer::Char]
    {
        bleu(tokens, &a, &b);
    }
    chrf(&a, &b);
    rouge(&a, &b);
    if let [n, c, k, ..] = *input {
        let (n, c, k) = (u64::from(n), u64::from(c), u64::from(k));
        assert_eq!(pass_at_k(n, c, k).is_none(), c > n || k == 0 || k > n);
        assert!(pass_at_k(n, c, k).is_none_or(is_share), "pass@{k} of {c} of {n}");
    }
}

fn edit_distance(a: &str, b: &str) {
    let (left, right): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut scorer = Levenshtein::default();
    let distance = scorer.distance(a, b);
    assert_eq!(distance, edits(&left, &right));
    assert_eq!(distance, scorer.distance(b, a));
    assert!(is_share(scorer.similarity(a, b)));
    assert_eq!(scorer.similarity(a, b) == 1.0, a == b);
}

fn bleu(tokens: BleuTokenizer, a: &str, b: &str) {
    let split = |text: &str| {
        let mut list = Vec::new();
        let text = text.trim_end_matches(is_space);
        tokens.each(text, |token| list.push(token.to_vec()));
        list
    };
    let (left, right) = (split(a), split(b));
    let mut scorer = Bleu::new(BleuOptions { tokens, ..BleuOptions::default() });
    let statistics = scorer.statistics(a, b);
    assert_eq!(statistics.reference_len, left.len() as u64);
    assert_eq!(statistics.hypothesis_len, right.len() as u64);
    for order in 1..=4 {
        assert_eq!(statistics.matches[order - 1], matches(&left, &right, order));
        let total = (right.len() + 1).saturating_sub(order) as u64;
        assert_eq!(statistics.totals[order - 1], total);
    }
    let smoothings = [
        BleuSmoothing::None,
        BleuSmoothing::Floor(0.1),
        BleuSmoothing::AddK(1.0),
        BleuSmoothing::Exp,
    ];
    for smoothing in smoothings {
        for effective in [true, false] {
            let score = statistics.score(smoothing, effective);
            assert!(is_share(score), "{tokens:?} {smoothing:?} {effective}: {score}");
        }
    }
    if left.len() >= 4 {
        let same = scorer.sentence(a, a);
        assert!((same - 1.0).abs() < 1e-12, "{tokens:?}: {same}");
    }
    assert_eq!(statistics, scorer.statistics(a, b), "its buffers have no say");
}

fn chrf(a: &str, b: &str) {
    let split = |text: &str| -> Vec<char> { text.chars().filter(|c| !is_space(*c)).collect() };
    let (left, right) = (split(a), split(b));
    let mut scorer = Chrf::default();
    let statistics = scorer.statistics(a, b);
    for order in 1..=6 {
        assert_eq!(statistics.matches[order - 1], matches(&left, &right, order));
    }
    assert!(is_share(scorer.score(a, b)));
    let same = scorer.score(a, a);
    assert!(left.is_empty() || (same - 1.0).abs() < 1e-12, "{same}");
}

fn rouge(a: &str, b: &str) {
    for words in [RougeWords::Ascii, RougeWords::Unicode] {
        let mut scorer = RougeL::new(words);
        let score = scorer.score(a, b);
        assert!(is_share(score), "{words:?}: {score}");
        assert!((score - scorer.score(b, a)).abs() < 1e-12, "{words:?} is not symmetric");
        if !(a.is_ascii() && b.is_ascii()) {
            continue;
        }
        let split = |text: &str| -> Vec<String> {
            let words = text.split(|c: char| !c.is_ascii_alphanumeric());
            words.filter(|word| !word.is_empty()).map(str::to_ascii_lowercase).collect()
        };
        let (left, right) = (split(a), split(b));
        let common = subsequence(&left, &right) as f64;
        let want = match left.len() + right.len() {
            0 => 0.0,
            both => 2.0 * common / both as f64,
        };
        assert!((score - want).abs() < 1e-12, "{words:?}: {score} for {want}");
    }
}

/// CodeBLEU of two texts in all modes.
pub(crate) fn codebleu(input: &[u8]) {
    let parts = crate::texts(input);
    let (a, b) = (parts[0].as_str(), parts.get(1).map_or("", |b| b));
    with_parser(|parser| {
        for mode in [CodeBleuMode::Strict, CodeBleuMode::Published, CodeBleuMode::CodeXGlue] {
            let mut scorer = CodeBleu::new(mode, EQUAL_WEIGHTS);
            let first = scored(parser, &mut scorer, a, b);
            let same = scored(parser, &mut scorer, a, a);
            assert_eq!(first, scored(parser, &mut scorer, a, b), "its buffers have no say");
            if let Some([_, _, _, syntax, flow]) = same.filter(|_| mode == CodeBleuMode::Strict) {
                assert!([0.0, 1.0].contains(&syntax), "a text has the syntax of itself: {syntax}");
                assert_eq!(flow, 1.0, "a text has the data flow of itself");
            }
        }
    })
    .expect("the parser is there");
}

/// CodeBLEU and its components; an absent data flow counts as 1.
fn scored(
    parser: &mut PythonParser,
    scorer: &mut CodeBleu,
    reference: &str,
    hypothesis: &str,
) -> Option<[f64; 5]> {
    let reference = scorer.reference(parser, reference).ok()?;
    let (scores, counts) = scorer.score(parser, &reference, hypothesis).ok()?;
    assert_eq!(counts.pairs, 1);
    let flow = scores.dataflow.unwrap_or(1.0);
    let all = [scores.codebleu, scores.ngram, scores.weighted, scores.syntax, flow];
    assert!(all.into_iter().all(is_share), "{scores:?}");
    Some(all)
}

// The definitions, in as much time as they take.

/// The edit distance by the whole matrix.
fn edits(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

/// The length of the longest common subsequence.
fn subsequence<T: Eq>(a: &[T], b: &[T]) -> usize {
    let mut row = vec![0; b.len() + 1];
    for x in a {
        let mut corner = 0;
        for (j, y) in b.iter().enumerate() {
            let longer = if x == y { corner + 1 } else { row[j].max(row[j + 1]) };
            corner = row[j + 1];
            row[j + 1] = longer;
        }
    }
    row[b.len()]
}

/// N-grams of `b` that `a` has too, each at most as often as there.
fn matches<T: Eq + Hash>(a: &[T], b: &[T], order: usize) -> u64 {
    let mut counts: HashMap<&[T], u64> = HashMap::new();
    a.windows(order).for_each(|gram| *counts.entry(gram).or_default() += 1);
    let mut matched = 0;
    for gram in b.windows(order) {
        if let Some(left) = counts.get_mut(gram).filter(|left| **left > 0) {
            *left -= 1;
            matched += 1;
        }
    }
    matched
}
