//! Tests on small inputs: the definition of dpu_utils, equality with all pairs by definition, and
//! independence of everything but documents and thresholds.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

pub(super) const GO: StopFlag<'static> = &|| false;
pub(super) const QUIET: PairProgress<'static> = &|_, _| {};

pub(super) fn limits(memory: usize, threads: usize) -> SimilarityLimits {
    SimilarityLimits { memory, threads, scratch: std::env::temp_dir() }
}

pub(super) const BOTH: [PairSearch; 2] = [PairSearch::Exact, PairSearch::MinHash];

/// The components under the default thresholds of dpu_utils.
pub(super) fn components_by(method: PairSearch, corpus: &Corpus) -> Vec<(u32, u32)> {
    corpus.components(&Thresholds::default(), method, GO, QUIET).unwrap()
}

/// A corpus of texts; `None` is null.
pub(super) fn corpus_of(texts: &[Option<String>], keywords: bool, min: u32) -> Corpus {
    let limits = limits(1 << 30, 2);
    let mut reader = CorpusReader::words(&limits, keywords, min).unwrap();
    reader.read_texts(0, texts.iter().map(Option::as_deref), GO).unwrap();
    Corpus::new(vec![reader], limits, GO).unwrap()
}

/// Set and multiset Jaccard similarity by definition; NaN if both lists are empty.
pub(super) fn jaccard<T: Ord>(a: &[T], b: &[T]) -> (f64, f64) {
    let mut counts: BTreeMap<&T, (u64, u64)> = BTreeMap::new();
    a.iter().for_each(|token| counts.entry(token).or_default().0 += 1);
    b.iter().for_each(|token| counts.entry(token).or_default().1 += 1);
    let both = counts.values().filter(|(a, b)| *a > 0 && *b > 0).count();
    let minima: u64 = counts.values().map(|(a, b)| a.min(b)).sum();
    let maxima: u64 = counts.values().map(|(a, b)| a.max(b)).sum();
    (both as f64 / counts.len() as f64, minima as f64 / maxima as f64)
}

type Pairs = BTreeMap<(u32, u32), (f64, f64)>;

/// All similar pairs by definition.
fn by_definition(rows: &[Option<Vec<u32>>], t: &Thresholds, min: u32) -> Pairs {
    let mut pairs = Pairs::new();
    let long = |row: &Option<Vec<u32>>| {
        row.clone().filter(|row| row.len() >= t.min_tokens.max(min).max(1) as usize)
    };
    let rows: Vec<_> = rows.iter().map(long).collect();
    for (b, right) in rows.iter().enumerate() {
        for (a, left) in rows[..b].iter().enumerate() {
            if let (Some(left), Some(right)) = (left, right) {
                let (set, multi) = jaccard(left, right);
                if set >= t.set && multi >= t.multiset {
                    pairs.insert((a as u32, b as u32), (set, multi));
                }
            }
        }
    }
    pairs
}

fn components_of(pairs: &Pairs) -> Vec<(u32, u32)> {
    let mut component: BTreeMap<u32, u32> = BTreeMap::new();
    pairs.keys().for_each(|&(a, b)| {
        component.insert(a, a);
        component.insert(b, b);
    });
    let mut changed = true;
    while changed {
        changed = false;
        for &(a, b) in pairs.keys() {
            let least = component[&a].min(component[&b]);
            changed |= component.insert(a, least) != Some(least);
            changed |= component.insert(b, least) != Some(least);
        }
    }
    component.into_iter().collect()
}

/// Reads rows with several readers; `deal` chooses the reader of each row.
fn corpus_of_ids(
    rows: &[Option<Vec<u32>>],
    min: u32,
    limits: SimilarityLimits,
    deal: &[u8],
) -> Corpus {
    let mut readers: Vec<CorpusReader> = (0..4).map(|_| CorpusReader::ids(&limits, min)).collect();
    for (row, ids) in rows.iter().enumerate() {
        let reader = usize::from(deal[row % deal.len()]) % readers.len();
        readers[reader].read_ids(row as u32, ids.as_deref(), GO).unwrap();
    }
    Corpus::new(readers, limits, GO).unwrap()
}

/// Rows of ids from a small, skewed vocabulary; many are variants of another row.
fn rows() -> impl Strategy<Value = Vec<Option<Vec<u32>>>> {
    let id = (1_u32..60, 0_u32..60).prop_map(|(most, id)| id % most);
    let row = prop::collection::vec(id, 0..40);
    let edit =
        (any::<prop::sample::Index>(), prop::collection::vec((0_usize..40, 0_u32..90), 0..6));
    (prop::collection::vec(row, 1..12), prop::collection::vec(edit, 0..40)).prop_map(
        |(mut rows, edits)| {
            for (from, edits) in edits {
                let mut row = rows[from.index(rows.len())].clone();
                for (at, id) in edits {
                    match row.get_mut(at) {
                        Some(place) => *place = id,
                        None => row.push(id),
                    }
                }
                rows.push(row);
            }
            let row = |(n, row): (usize, Vec<u32>)| (n % 17 != 16).then_some(row);
            rows.into_iter().enumerate().map(row).collect()
        },
    )
}

fn thresholds() -> impl Strategy<Value = Thresholds> {
    let set = prop_oneof![
        0.05..1.0_f64,
        prop::sample::select(vec![0.05, 0.25, 0.5, 0.6, 2.0 / 3.0, 0.7, 0.75, 0.8, 0.9, 1.0])
    ];
    let multi =
        prop_oneof![0.0..=1.0_f64, prop::sample::select(vec![0.0, 0.5, 2.0 / 3.0, 0.7, 0.8, 1.0])];
    let min = prop::sample::select(vec![0, 1, 5]);
    (set, multi, min).prop_map(|(set, multiset, min_tokens)| Thresholds {
        set,
        multiset,
        min_tokens,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 200 } else { 3000 }))]

    #[test]
    fn similarities_and_components_are_those_of_the_definition(
        rows in rows(),
        t in thresholds(),
        min in prop::sample::select(vec![0_u32, 1, 5]),
        deal in prop::collection::vec(any::<u8>(), 1..9),
        threads in 1_usize..=4,
        memory in prop::sample::select(vec![16 << 10, 64 << 10, 1 << 20, 1 << 30]),
    ) {
        let expected = by_definition(&rows, &t, min);
        let corpus = corpus_of_ids(&rows, min, limits(memory, threads), &deal);
        let other = corpus_of_ids(&rows, min, limits(1 << 30, 1), &[0]);
        prop_assert_eq!(other.counts(), corpus.counts());
        let asked: Vec<(u32, u32)> = expected.keys().copied().collect();
        let similarities = corpus.similarities(&asked).unwrap();
        prop_assert_eq!(similarities, expected.values().copied().collect::<Vec<_>>());
        let components = |corpus: &Corpus, method| corpus.components(&t, method, GO, QUIET).unwrap();
        let exact = components(&corpus, PairSearch::Exact);
        prop_assert_eq!(&exact, &components_of(&expected));
        prop_assert_eq!(components(&other, PairSearch::Exact), exact);
        // Some of the pairs connect each component of MinHash.
        let hashed = components(&corpus, PairSearch::MinHash);
        let component: BTreeMap<u32, u32> = hashed.iter().copied().collect();
        let mut some = expected;
        some.retain(|(a, b), _| component.contains_key(a) && component.get(a) == component.get(b));
        prop_assert_eq!(&hashed, &components_of(&some));
        prop_assert_eq!(components(&other, PairSearch::MinHash), hashed);
    }
}

fn words(range: std::ops::Range<u32>) -> String {
    range.map(|n| format!("t{n} ")).collect()
}

fn duplicates(texts: &[String]) -> Vec<(u32, u32)> {
    let texts: Vec<_> = texts.iter().cloned().map(Some).collect();
    components_by(PairSearch::Exact, &corpus_of(&texts, false, 20))
}

#[test]
fn duplicates_are_those_of_dpu_utils() {
    assert_eq!(jaccard(&["a", "a", "b"], &["a", "b", "c"]), (2.0 / 3.0, 0.5));
    let many = |word: &str, n: usize| format!("{word} ").repeat(n);
    let both = vec![(0, 0), (1, 0)];
    assert_eq!(duplicates(&[words(0..25), words(0..25)]), both, "exact");
    assert_eq!(duplicates(&[words(0..19), words(0..19)]), [], "too_short_19");
    assert_eq!(duplicates(&[words(0..20), words(0..25)]), both, "boundary_set_0.8");
    assert_eq!(duplicates(&[words(0..20), words(1..25)]), [], "below_set");
    let repeated = |n: u32, times| words(0..n) + &many("t0", times);
    assert_eq!(duplicates(&[words(0..20), repeated(20, 10)]), [], "set_ok_multiset_fails");
    assert_eq!(duplicates(&[words(0..21), repeated(21, 9)]), both, "multiset_boundary_0.7");
    let chain = [words(0..20), words(0..25), words(4..25)];
    assert_eq!(duplicates(&chain), [(0, 0), (1, 0), (2, 0)], "transitive_chain");
    let other = words(0..25).replace('t', "z");
    assert_eq!(duplicates(&[words(0..25), other]), [], "no_duplicates_raises");
    assert_eq!(duplicates(&[]), [], "no_documents_raises");
    let texts = [many("ñ", 30), many("nñ", 30), many("nñ", 20)];
    let corpus = corpus_of(&texts.map(Some), false, 20);
    let counts = CorpusCounts { rows: 3, documents: 2, too_short: 1, nulls: 0, distinct: 2 };
    assert_eq!(corpus.counts(), counts, "non_ascii_start_ignored");
    let texts = [many("def return", 15), words(0..25)];
    let counts = corpus_of(&texts.map(Some), true, 20).counts();
    assert_eq!((counts.documents, counts.too_short), (1, 1), "language_python_drops_keywords");
}

#[test]
fn an_empty_corpus_and_one_of_nulls_have_no_components() {
    for rows in [0, 5] {
        let corpus = corpus_of(&vec![None; rows], false, 20);
        assert!(BOTH.iter().all(|&method| components_by(method, &corpus).is_empty()));
        assert_eq!(
            corpus.counts(),
            CorpusCounts { rows: rows as u64, nulls: rows as u64, ..CorpusCounts::default() }
        );
        assert_eq!(corpus.similarities(&[(0, 1)]).unwrap(), [(0.0, 0.0)]);
    }
    let none = Corpus::new(Vec::new(), limits(0, 0), GO).unwrap();
    assert_eq!(none.counts(), CorpusCounts::default());
}

#[test]
fn every_phase_stops_when_asked() {
    let texts: Vec<_> = (0..50).map(|n| Some(words(n..n + 30))).collect();
    let limits = limits(1 << 20, 2);
    let read = || {
        let mut reader = CorpusReader::words(&limits, false, 20).unwrap();
        reader.read_texts(0, texts.iter().map(Option::as_deref), GO).unwrap();
        reader
    };
    let stopped = Corpus::new(vec![read()], limits.clone(), &|| true);
    assert!(matches!(stopped, Err(SimilarityError::Stopped)));
    let corpus = Corpus::new(vec![read()], limits.clone(), GO).unwrap();
    for method in BOTH {
        let stopped = corpus.components(&Thresholds::default(), method, &|| true, QUIET);
        assert!(matches!(stopped, Err(SimilarityError::Stopped)));
    }
}

#[test]
fn a_small_result_is_pinned() {
    // Twelve families of rows from a linear congruence, so that only this module can change the
    // result.
    let mut state = 1_u64;
    let mut number = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let texts: Vec<Option<String>> = (0..60)
        .map(|row| {
            let word = |n| format!("w{}_{n} ", row % 12);
            let text: String = (0..30).filter(|_| number(12) > 0).map(word).collect();
            Some(text + &format!("x{} ", number(40)))
        })
        .collect();
    let corpus = corpus_of(&texts, true, 20);
    let digest = |pairs: &[(u32, u32)]| {
        pairs.iter().fold(0_u64, |sum, &(row, component)| {
            sum.wrapping_mul(31).wrapping_add(u64::from(row * 64 + component))
        })
    };
    for method in BOTH {
        let found = components_by(method, &corpus);
        assert_eq!((found.len(), digest(&found)), (51, 9_209_071_846_223_885_986), "{method:?}");
    }
}
