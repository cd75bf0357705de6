//! Tests on inputs for which a careless join takes quadratic time or memory; fewer rows in debug
//! builds.

use super::tests::{BOTH, GO, components_by, corpus_of, limits};
use super::*;

const ROWS: u32 = if cfg!(debug_assertions) { 2_000 } else { 50_000 };

fn random(state: &mut u64, below: u64) -> u64 {
    *state = keys::mix(state.wrapping_add(0x9E37_79B9_7F4A_7C15));
    *state % below
}

fn corpus(rows: impl Iterator<Item = Vec<u32>>, memory: usize, threads: usize) -> Corpus {
    let limits = limits(memory, threads);
    let mut reader = CorpusReader::ids(&limits, 20);
    for (row, ids) in (0..).zip(rows) {
        reader.read_ids(row, Some(&ids), GO).unwrap();
    }
    Corpus::new(vec![reader], limits, GO).unwrap()
}

fn components(
    rows: impl Iterator<Item = Vec<u32>>,
    memory: usize,
    threads: usize,
) -> Vec<(u32, u32)> {
    components_by(PairSearch::Exact, &corpus(rows, memory, threads))
}

#[test]
fn rows_that_are_the_same_but_for_a_word_are_one_component() {
    let texts = vec![Some((0..30).map(|n| format!("t{n} ")).collect()); ROWS as usize];
    let identical = corpus_of(&texts, true, 20);
    assert_eq!(identical.counts().distinct, 1);
    let own = corpus((0..ROWS).map(|row| (0..30).chain([100 + row]).collect()), 1 << 30, 2);
    let common =
        |row: u32| (0..40).map(|n| if n == row % 40 { 100 + row / 40 % 50 } else { n }).collect();
    let common = corpus((0..ROWS).map(common), 1 << 30, 2);
    for (name, corpus, methods) in [
        ("identical", identical, &BOTH[..]),
        ("an own word", own, &BOTH),
        ("a common word", common, &[PairSearch::Exact]),
    ] {
        for &method in methods {
            let found = components_by(method, &corpus);
            assert_eq!(found.len(), ROWS as usize, "{name} {method:?}");
            assert!(found.iter().all(|&(_, component)| component == 0), "{name} {method:?}");
        }
    }
}

#[test]
fn rows_that_share_one_rare_token_are_not_similar() {
    let mut state = 1;
    let mut word = |n| if n == 0 { 7 } else { 9 + random(&mut state, 1 << 22) as u32 };
    let rows = (0..ROWS).map(|_| (0..30).map(&mut word).collect());
    assert!(components(rows, 1 << 30, 2).is_empty());
}

#[test]
fn rows_of_few_distinct_words_are_joined_in_time() {
    let mut state = 1;
    let rows: Vec<Vec<u32>> =
        (0..ROWS).map(|_| (0..25).map(|_| random(&mut state, 30) as u32).collect()).collect();
    let found = components(rows.iter().cloned(), 1 << 30, 2);
    assert!(found.len() < rows.len());
    let few = || rows[..rows.len() / 5].iter().cloned();
    assert_eq!(components(few(), 1 << 20, 2), components(few(), 1 << 30, 1));
}

#[test]
fn documents_of_a_million_words_are_documents() {
    let size = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };
    let row = |changed: u32| (0..size).map(|n| if n < changed { n + size } else { n }).collect();
    let rows = [row(0), row(10), (0..30).collect(), row(size / 2), (1..30).collect()];
    for memory in [1 << 27, 1 << 30] {
        let found = components(rows.clone().into_iter(), memory, 2);
        assert_eq!(found, [(0, 0), (1, 0), (2, 2), (4, 2)]);
    }
    let text = "def word(self, other): return other\n".repeat(10_000_000 / 36);
    let texts = [Some(text.clone()), Some("a b c d ".repeat(5)), Some(text)];
    let corpus = corpus_of(&texts, true, 20);
    assert_eq!(components_by(PairSearch::Exact, &corpus), [(0, 0), (2, 0)]);
}

#[test]
fn spilled_documents_give_the_same_result() {
    let mut state = 1;
    let rows: Vec<Vec<u32>> = (0..ROWS / 2)
        .map(|row| {
            let family = row / 3;
            let length = 25 + family % 40;
            let kept = (0..length).map(|n| (family * 7 + n * n) % 6000);
            kept.map(|id| if random(&mut state, 20) == 0 { id + 1 } else { id }).collect()
        })
        .collect();
    let expected = components(rows.iter().cloned(), 1 << 30, 1);
    assert!(expected.len() > 300);
    for threads in 1..=4 {
        assert_eq!(components(rows.iter().cloned(), 1 << 20, threads), expected);
    }
}

#[test]
fn a_vocabulary_beyond_the_memory_is_an_error_that_tells_the_bytes() {
    let limits = limits(1 << 20, 1);
    let mut reader = CorpusReader::ids(&limits, 1);
    let ids: Vec<u32> = (0..100_000).collect();
    let error = reader.read_ids(0, Some(&ids), GO).unwrap_err();
    let expected = "the vocabulary needs 2097152 bytes of memory; the limit is 1048576 bytes";
    assert_eq!(error.to_string(), expected);
}
