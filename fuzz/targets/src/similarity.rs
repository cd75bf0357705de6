//! The similarity join against all pairs by definition.

use std::collections::BTreeMap;

use galeras_similarity::{
    Corpus, CorpusReader, PairProgress, PairSearch, SimilarityLimits, StopFlag, Thresholds,
    expected_recall,
};

/// All pairs are compared.
const MOST_ROWS: usize = 40;

const GO: StopFlag<'static> = &|| false;
const QUIET: PairProgress<'static> = &|_, _| {};

/// Similar pairs of rows.
type Pairs = Vec<(u32, u32)>;

/// Rows of bytes, parted by line feeds, after four bytes for thresholds, limits and readers.
pub(crate) fn join(input: &[u8]) {
    let Some((&[set, multiset, least, how], rows)) = input.split_first_chunk() else { return };
    let thresholds = Thresholds {
        set: share(set).max(0.01),
        multiset: share(multiset),
        min_tokens: u32::from(least % 8),
    };
    let limits = SimilarityLimits {
        memory: if how & 1 == 0 { 1 << 16 } else { 1 << 24 },
        threads: usize::from(1 + (how >> 1 & 1)),
        scratch: std::env::temp_dir(),
    };
    let rows = rows.split(|byte| *byte == b'\n').take(MOST_ROWS);
    let rows: Vec<Option<Vec<u32>>> = rows
        .map(|row| (row != b"-").then(|| row.iter().map(|byte| u32::from(*byte)).collect()))
        .collect();
    let Some(corpus) = corpus(&rows, &thresholds, limits, how >> 2) else { return };
    assert!((0.0..=1.0).contains(&expected_recall(thresholds.set)));
    let want = connected(&by_definition(&rows, &thresholds));
    let got = corpus.components(&thresholds, PairSearch::Exact, GO, QUIET).unwrap();
    assert_eq!(got, want, "{thresholds:?}");
    // MinHash may miss pairs, but connects no others.
    let want: BTreeMap<u32, u32> = want.into_iter().collect();
    for (row, first) in corpus.components(&thresholds, PairSearch::MinHash, GO, QUIET).unwrap() {
        assert_eq!(want.get(&row), want.get(&first), "{thresholds:?}: {row} and {first}");
    }
}

/// Round numbers, at which rounding shows, and others.
fn share(byte: u8) -> f64 {
    const ROUND: [f64; 8] = [0.0, 0.1, 1.0 / 3.0, 0.5, 2.0 / 3.0, 0.7, 0.8, 1.0];
    match byte {
        byte @ 0..=7 => ROUND[usize::from(byte)],
        b'0'..=b'9' => f64::from(byte - b'0') / 10.0,
        byte => f64::from(byte) / 255.0,
    }
}

/// Reads the rows with two readers, which `deal` shares them out to. None if the memory does not
/// hold the vocabulary.
fn corpus(
    rows: &[Option<Vec<u32>>],
    thresholds: &Thresholds,
    limits: SimilarityLimits,
    deal: u8,
) -> Option<Corpus> {
    let reader = || CorpusReader::ids(&limits, thresholds.min_tokens);
    let mut readers = vec![reader()];
    if limits.threads > 1 {
        readers.push(reader());
    }
    for (row, ids) in rows.iter().enumerate() {
        let to = (row + usize::from(deal)) % readers.len();
        readers[to].read_ids(row as u32, ids.as_deref(), GO).ok()?;
    }
    Corpus::new(readers, limits, GO).ok()
}

fn by_definition(rows: &[Option<Vec<u32>>], thresholds: &Thresholds) -> Pairs {
    let least = thresholds.min_tokens.max(1) as usize;
    let mut pairs = Pairs::new();
    for (b, right) in rows.iter().enumerate() {
        for (a, left) in rows[..b].iter().enumerate() {
            let (Some(left), Some(right)) = (left, right) else { continue };
            if left.len() < least || right.len() < least {
                continue;
            }
            let (set, multiset) = jaccard(left, right);
            if set >= thresholds.set && multiset >= thresholds.multiset {
                pairs.push((a as u32, b as u32));
            }
        }
    }
    pairs
}

/// The Jaccard similarities of two rows: of their sets, and of their multisets.
fn jaccard(a: &[u32], b: &[u32]) -> (f64, f64) {
    let mut counts: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    a.iter().for_each(|token| counts.entry(*token).or_default().0 += 1);
    b.iter().for_each(|token| counts.entry(*token).or_default().1 += 1);
    let both = counts.values().filter(|(a, b)| *a > 0 && *b > 0).count();
    let minima: u64 = counts.values().map(|(a, b)| a.min(b)).sum();
    let maxima: u64 = counts.values().map(|(a, b)| a.max(b)).sum();
    (both as f64 / counts.len() as f64, minima as f64 / maxima as f64)
}

/// Every row of a pair with the smallest row that it is connected to.
fn connected(pairs: &Pairs) -> Vec<(u32, u32)> {
    let rows = pairs.iter().flat_map(|&(a, b)| [(a, a), (b, b)]);
    let mut least: BTreeMap<u32, u32> = rows.collect();
    let mut changed = true;
    while changed {
        changed = false;
        for (a, b) in pairs {
            let smaller = least[a].min(least[b]);
            for row in [a, b] {
                changed |= least.insert(*row, smaller) != Some(smaller);
            }
        }
    }
    least.into_iter().collect()
}
