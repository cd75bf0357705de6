//! Compares the similarity join with a comparison of all pairs.
//!
//! cargo bench --bench jaccard_pairs -- METHODS.jsonl [THRESHOLD] [MEMORY_MIB]
//!
//! METHODS.jsonl has one object with a text `code` per line (`galeras show … --format json`).
//! Prints seconds and numbers of pairs; exits with 1 if pairs or similarities differ. 20,000
//! methods take about a minute, nearly all of it the comparison.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use galeras_similarity::{
    Corpus, CorpusReader, PairSearch, PairSink, SimilarityLimits, Thresholds, expected_recall,
};

/// Two rows and their similarities.
type Pair = (u32, u32, f64, f64);

struct Collect(Mutex<Vec<Pair>>);

impl PairSink for Collect {
    fn wants(&self, _: u32, _: u32) -> bool {
        true
    }

    fn found(&self, a: u32, b: u32, set: f64, multiset: f64) {
        self.0.lock().unwrap().push((a, b, set, multiset));
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let Some(file) = arguments.first() else {
        // `cargo test --benches` names no file.
        println!("name a file of JSON lines with a text `code`");
        return ExitCode::SUCCESS;
    };
    let number =
        |at: usize, default: f64| arguments.get(at).map_or(default, |a| a.parse().unwrap());
    let thresholds = Thresholds { set: number(1, 0.8), ..Thresholds::default() };
    let memory = (number(2, 1024.0) as usize) << 20;
    let texts: Vec<String> = std::fs::read_to_string(file)
        .unwrap()
        .lines()
        .map(|line| {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            row["code"].as_str().unwrap().to_string()
        })
        .collect();

    let started = Instant::now();
    let limits = SimilarityLimits { memory, threads: 2, scratch: std::env::temp_dir() };
    let mut reader = CorpusReader::words(&limits, false, thresholds.min_tokens).unwrap();
    reader.read_texts(0, texts.iter().map(|t| Some(t.as_str())), &|| false).unwrap();
    let corpus = Corpus::new(vec![reader], limits, &|| false).unwrap();
    let exact = pairs(&corpus, &thresholds, PairSearch::Exact);
    println!("exact: {} pairs of rows in {:.2} s", exact.len(), started.elapsed().as_secs_f64());

    let hashed = pairs(&corpus, &thresholds, PairSearch::MinHash);
    let found = hashed.iter().filter(|pair| exact.binary_search_by(|p| order(p, pair)).is_ok());
    println!(
        "minhash: {} pairs, recall {:.5} (just at the threshold at least {:.3})",
        hashed.len(),
        found.count() as f64 / exact.len().max(1) as f64,
        expected_recall(thresholds.set)
    );

    let started = Instant::now();
    let expected = compare_all(&texts, &thresholds);
    let seconds = started.elapsed().as_secs_f64();
    println!("all with all: {} pairs of rows in {seconds:.1} s", expected.len());
    let equal = exact == expected;
    println!("equal, similarities included: {equal}");
    if equal { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn order(a: &Pair, b: &Pair) -> std::cmp::Ordering {
    (a.0, a.1).cmp(&(b.0, b.1))
}

/// The sorted pairs of rows that the join finds; rows with equal tokens count separately.
fn pairs(corpus: &Corpus, thresholds: &Thresholds, method: PairSearch) -> Vec<Pair> {
    let sink = Collect(Mutex::new(Vec::new()));
    corpus.pairs(thresholds, method, &sink, &|| false, &|_, _| {}).unwrap();
    let mut groups: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    corpus.groups().for_each(|(row, first)| groups.entry(first).or_default().push(row));
    let mut pairs = Vec::new();
    for (a, b, set, multiset) in sink.0.into_inner().unwrap() {
        for x in &groups[&a] {
            pairs.extend(groups[&b].iter().map(|y| (*x.min(y), *x.max(y), set, multiset)));
        }
    }
    for rows in groups.values() {
        for (at, a) in rows.iter().enumerate() {
            pairs.extend(rows[at + 1..].iter().map(|b| (*a, *b, 1.0, 1.0)));
        }
    }
    pairs.sort_by(order);
    pairs.dedup_by_key(|pair| (pair.0, pair.1));
    pairs
}

/// A row, its number of words, and its words with their counts.
type Document = (u32, u32, Vec<(u32, u32)>);

/// The similar pairs by definition; shares no code with the join.
fn compare_all(texts: &[String], t: &Thresholds) -> Vec<Pair> {
    let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
    let mut documents: Vec<Document> = Vec::new();
    for (row, text) in (0..).zip(texts) {
        let runs = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        let starts = |c: char| c == '_' || c.is_ascii_alphabetic();
        let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
        for word in runs.filter(|run| run.starts_with(starts)) {
            let next = numbers.len() as u32;
            *counts.entry(*numbers.entry(word).or_insert(next)).or_default() += 1;
        }
        let total: u32 = counts.values().sum();
        if total >= t.min_tokens {
            documents.push((row, total, counts.into_iter().collect()));
        }
    }
    documents.sort_by_key(|document| document.2.len());
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut own = Vec::new();
                while let Some(one) = documents.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let others =
                        &documents[documents.partition_point(|d| d.2.len() < one.2.len())..];
                    let near = |other: &&Document| {
                        one.2.len() as f64 >= t.set * other.2.len() as f64 - 0.001
                    };
                    let larger =
                        |other: &&Document| (other.2.len(), other.0) > (one.2.len(), one.0);
                    for other in others.iter().take_while(near).filter(larger) {
                        let (set, multiset) = similarity(one, other);
                        if set >= t.set && multiset >= t.multiset {
                            own.push((one.0.min(other.0), one.0.max(other.0), set, multiset));
                        }
                    }
                }
                found.lock().unwrap().extend(own);
            });
        }
    });
    let mut found = found.into_inner().unwrap();
    found.sort_by(order);
    found
}

fn similarity((_, total, left): &Document, (_, other, right): &Document) -> (f64, f64) {
    let (mut i, mut j, mut both, mut minima) = (0, 0, 0, 0);
    while i < left.len() && j < right.len() {
        let (a, b) = (left[i], right[j]);
        if a.0 == b.0 {
            both += 1;
            minima += a.1.min(b.1);
        }
        i += usize::from(a.0 <= b.0);
        j += usize::from(b.0 <= a.0);
    }
    let union = left.len() + right.len() - both;
    (both as f64 / union as f64, f64::from(minima) / f64::from(total + other - minima))
}
