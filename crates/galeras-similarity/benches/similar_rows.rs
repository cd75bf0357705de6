//! Times the search for similar rows of a file, and for rows near to those of another file.
//!
//! cargo bench -p galeras-similarity --bench similar_rows -- ROWS.jsonl [OTHERS.jsonl]
//!
//! Both files have one object with a text `code` per line (`galeras show … --format json`). Prints
//! the seconds of each phase and numbers of rows. The tests compare results with the definition.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use galeras_similarity::{
    Corpus, CorpusReader, NearIndex, NearProbe, NearThresholds, PairSearch, SimilarityLimits,
    Targets, Thresholds, TokenRows,
};

const THREADS: usize = 2;

fn main() {
    let files: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let Some(rows) = files.first().map(|file| texts(file)) else {
        // `cargo test --benches` names no file.
        println!("name a file of JSON lines with a text `code`");
        return;
    };
    let limits =
        SimilarityLimits { memory: 1 << 30, threads: THREADS, scratch: std::env::temp_dir() };
    let similar = Thresholds::default();
    let corpus = timed("read", || {
        let mut reader = CorpusReader::words(&limits, false, similar.min_tokens).unwrap();
        reader.read_texts(0, rows.iter().map(|t| Some(t.as_str())), &|| false).unwrap();
        Corpus::new(vec![reader], limits.clone(), &|| false).unwrap()
    });
    for method in [PairSearch::Exact, PairSearch::MinHash] {
        let name = format!("{method:?}");
        let components =
            timed(&name, || corpus.components(&similar, method, &|| false, &|_, _| {}).unwrap());
        println!("{} of {} rows are similar to another", components.len(), rows.len());
    }
    if let Some(others) = files.get(1).map(|file| texts(file)) {
        let index = timed("index", || {
            let mut targets =
                Targets::new(NearThresholds { similar, containment: [0.7, 0.0] }, &limits);
            targets.push(&tokens(&rows), &|| false).unwrap();
            Arc::new(NearIndex::new(targets, &|| false).unwrap())
        });
        let near = timed("near rows", || near_pairs(&index, &others));
        println!("{near} near pairs of a document and one of {} other rows", others.len());
    }
}

fn timed<T>(name: &str, work: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let result = work();
    println!("{name}: {:.2} s", started.elapsed().as_secs_f64());
    result
}

fn texts(file: &str) -> Vec<String> {
    let code = |line| {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        row["code"].as_str().unwrap().to_string()
    };
    std::fs::read_to_string(file).unwrap().lines().map(code).collect()
}

fn tokens(texts: &[String]) -> TokenRows {
    let mut rows = TokenRows::new(false);
    texts.iter().for_each(|text| rows.push_text(Some(text), &|| false).unwrap());
    rows
}

fn near_pairs(index: &Arc<NearIndex>, others: &[String]) -> usize {
    let count = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for share in others.chunks(others.len().div_ceil(THREADS).max(1)) {
            scope.spawn(|| {
                let mut probe = NearProbe::new(index);
                for batch in share.chunks(1000) {
                    let rows = tokens(batch);
                    for row in 0..rows.len() {
                        let found = |_, _| {
                            count.fetch_add(1, Ordering::Relaxed);
                        };
                        probe.row(&rows, row, |_| true, found, &|| false).unwrap();
                    }
                }
            });
        }
    });
    count.into_inner()
}
