//! Compares the search for near rows of another table with a comparison of all pairs.
//!
//! cargo bench --bench near_rows -- ROWS.jsonl OTHERS.jsonl [no-check] [MEMORY_MIB]
//!
//! Both files have one object with a text `code` per line (`galeras show … --format json`). Prints
//! seconds of each phase, the size of the index, and numbers of near pairs and rows; exits with 1
//! if pairs or measures differ. 20,000 by 20,000 methods take some minutes, nearly all of it the
//! comparison; `no-check` skips it.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::panic)]

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use galeras_similarity::{
    NGRAMS, NearIndex, NearProbe, NearThresholds, Nearest, Nearness, SimilarityLimits, Targets,
    Thresholds, TokenRows,
};

const THREADS: usize = 2;
const THRESHOLDS: NearThresholds = NearThresholds {
    similar: Thresholds { set: 0.8, multiset: 0.7, min_tokens: 20 },
    containment: [0.7, 0.0],
};

/// Pairs of near rows, with their nearness.
type Pairs = Vec<(u32, u32, Nearness)>;

fn main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let [rows, others, more @ ..] = arguments.as_slice() else {
        // `cargo test --benches` names no files.
        println!("name two files of JSON lines with a text `code`");
        return ExitCode::SUCCESS;
    };
    let check = more.first().is_none_or(|word| word != "no-check");
    let memory = more.get(1).map_or(1024, |mib| mib.parse().unwrap()) << 20;
    let (rows, others) = (texts(rows), texts(others));

    let started = Instant::now();
    let limits = SimilarityLimits { memory, threads: THREADS, scratch: std::env::temp_dir() };
    let mut parts: Vec<(usize, Arc<NearIndex>)> = Vec::new();
    let mut first = 0;
    while parts.is_empty() || first < rows.len() {
        let mut targets = Targets::new(THRESHOLDS, &limits);
        let start = first;
        while first < rows.len() && !targets.is_full() {
            let end = rows.len().min(first + 1000);
            targets.push(&tokens(&rows[first..end]), &|| false).unwrap();
            first = end;
        }
        parts.push((start, Arc::new(NearIndex::new(targets, &|| false).unwrap())));
    }
    let seconds = started.elapsed().as_secs_f64();
    println!("index: {} rows in {} parts, {seconds:.2} s", rows.len(), parts.len());
    let started = Instant::now();
    let found: Pairs =
        parts.iter().flat_map(|(start, index)| probe(*start, index, &others, check)).collect();
    println!(
        "{} rows passed by: {:.2} s, {} near pairs",
        others.len(),
        started.elapsed().as_secs_f64(),
        found.len()
    );
    if !check {
        return ExitCode::SUCCESS;
    }
    let mut found = found;
    found.sort_by_key(|pair| (pair.0, pair.1));
    let started = Instant::now();
    let expected = compare_all(&rows, &others);
    let near = found.chunk_by(|a, b| a.0 == b.0).count();
    let seconds = started.elapsed().as_secs_f64();
    println!("all with all: {} near pairs of {near} rows in {seconds:.1} s", expected.len());
    let equal = found == expected;
    println!("equal, all measures included: {equal}");
    if equal { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn texts(file: &str) -> Vec<String> {
    let lines = BufReader::new(File::open(file).unwrap()).lines();
    lines
        .map(|line| {
            let row: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
            row["code"].as_str().unwrap().to_string()
        })
        .collect()
}

fn tokens(texts: &[String]) -> TokenRows {
    let mut rows = TokenRows::new(false);
    texts.iter().for_each(|text| rows.push_text(Some(text), &|| false).unwrap());
    rows
}

/// The near pairs of some rows, the first of which is row `start`; unless `all` is set, only the
/// nearest pair of each row.
fn probe(start: usize, index: &Arc<NearIndex>, others: &[String], all: bool) -> Pairs {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Pairs::new());
    let nearest = Mutex::new(Nearest::default());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut probe = NearProbe::new(index);
                let (mut own, mut best) = (Pairs::new(), Nearest::default());
                let mut rows = TokenRows::new(false);
                loop {
                    let first = next.fetch_add(1000, Ordering::Relaxed);
                    let end = others.len().min(first + 1000);
                    if first >= end {
                        break;
                    }
                    rows.clear();
                    for text in &others[first..end] {
                        rows.push_text(Some(text), &|| false).unwrap();
                    }
                    for row in 0..end - first {
                        let other = (first + row) as u32;
                        let id = format!("{other:08}");
                        let mut near = Vec::new();
                        let wants = |document| all || best.wants(document, &id);
                        let note = |document, nearness| near.push((document, other, nearness));
                        probe.row(&rows, row, wants, note, &|| false).unwrap();
                        if all {
                            own.append(&mut near);
                        }
                        for (document, _, nearness) in near {
                            best.note(document, nearness, &id, None);
                        }
                    }
                }
                found.lock().unwrap().append(&mut own);
                nearest.lock().unwrap().merge(best);
            });
        }
    });
    let (found, nearest) = (found.into_inner().unwrap(), nearest.into_inner().unwrap());
    let mut of: HashMap<u32, Vec<(u32, Nearness)>> = HashMap::new();
    found.into_iter().for_each(|(doc, other, near)| of.entry(doc).or_default().push((other, near)));
    let mut pairs = Pairs::new();
    for row in 0..index.rows() {
        let Some(document) = index.document(row) else { continue };
        let row = (start + row) as u32;
        if all {
            let others = of.get(&document).into_iter().flatten();
            pairs.extend(others.map(|&(other, nearness)| (row, other, nearness)));
        } else if let Some(near) = nearest.of(document) {
            pairs.push((row, near.id.parse().unwrap(), near.nearness));
        }
    }
    pairs
}

/// The words of a row with their counts, and its n-grams, as ascending numbers.
struct Document {
    row: u32,
    total: u32,
    words: Vec<(u32, u32)>,
    grams: [Vec<u32>; 2],
}

/// The near pairs by definition; shares no code with the search.
fn compare_all(rows: &[String], others: &[String]) -> Pairs {
    let mut words: HashMap<String, u32> = HashMap::new();
    let mut grams: [HashMap<Vec<u32>, u32>; 2] = Default::default();
    let mut read = |texts: &[String]| -> Vec<Document> {
        let mut documents = Vec::new();
        for (row, text) in (0..).zip(texts) {
            let runs = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
            let starts = |c: char| c == '_' || c.is_ascii_alphabetic();
            let mut sequence = Vec::new();
            for word in runs.filter(|run| run.starts_with(starts)) {
                let next = words.len() as u32;
                sequence.push(*words.entry(word.to_string()).or_insert(next));
            }
            if sequence.len() < THRESHOLDS.similar.min_tokens as usize {
                continue;
            }
            let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
            sequence.iter().for_each(|word| *counts.entry(*word).or_default() += 1);
            let mut own: [Vec<u32>; 2] = Default::default();
            for ((n, known), own) in NGRAMS.into_iter().zip(&mut grams).zip(&mut own) {
                for gram in sequence.windows(n) {
                    let next = known.len() as u32;
                    own.push(*known.entry(gram.to_vec()).or_insert(next));
                }
                own.sort_unstable();
                own.dedup();
            }
            let words = counts.into_iter().collect();
            documents.push(Document { row, total: sequence.len() as u32, words, grams: own });
        }
        documents
    };
    let (rows, others) = (read(rows), read(others));
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Pairs::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut own = Pairs::new();
                while let Some(one) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    for other in &others {
                        let nearness = measure(one, other);
                        if nearness.similar || nearness.containment[0].unwrap() >= 0.7 {
                            own.push((one.row, other.row, nearness));
                        }
                    }
                }
                found.lock().unwrap().extend(own);
            });
        }
    });
    let mut found = found.into_inner().unwrap();
    found.sort_by_key(|pair| (pair.0, pair.1));
    found
}

fn measure(one: &Document, other: &Document) -> Nearness {
    let (mut i, mut j, mut both, mut minima) = (0, 0, 0, 0);
    while i < one.words.len() && j < other.words.len() {
        let (a, b) = (one.words[i], other.words[j]);
        if a.0 == b.0 {
            both += 1;
            minima += a.1.min(b.1);
        }
        i += usize::from(a.0 <= b.0);
        j += usize::from(b.0 <= a.0);
    }
    let union = one.words.len() + other.words.len() - both;
    let jaccard = both as f64 / union as f64;
    let multiset = f64::from(minima) / f64::from(one.total + other.total - minima);
    let similar = jaccard >= THRESHOLDS.similar.set && multiset >= THRESHOLDS.similar.multiset;
    let containment = [0, 1].map(|at| {
        let (one, other) = (&one.grams[at], &other.grams[at]);
        let (mut i, mut j, mut both) = (0, 0, 0_u32);
        while i < one.len() && j < other.len() {
            both += u32::from(one[i] == other[j]);
            let (a, b) = (one[i], other[j]);
            i += usize::from(a <= b);
            j += usize::from(b <= a);
        }
        (!one.is_empty()).then(|| f64::from(both) / one.len() as f64)
    });
    Nearness { similar, jaccard, multiset, containment }
}
