//! Seconds of one thread for each score over pairs of texts, and for parsing both texts alone.
//!
//!   cargo bench --bench scores -- PAIRS.jsonl [ROUNDS]
//!
//! PAIRS.jsonl holds one object with the texts `reference` and `hypothesis` per line. Prints a line
//! of JSON for each round: name -> seconds of the thread's processor time.
//! `benches/scores_vs_peers.py` compares it with the Python packages.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use galeras_metrics::codebleu::{CodeBleu, CodeBleuMode, EQUAL_WEIGHTS};
use galeras_metrics::text::{Bleu, BleuOptions, Chrf, Levenshtein, RougeL, RougeWords};
use galeras_python::PythonParser;
use serde_json::{Map, Value};

type Pair = (String, String);

/// Processor seconds of this thread so far.
fn now() -> f64 {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    times.split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1e9
}

/// The seconds of a score over all pairs, and its sum, so that nothing is optimised away.
fn timed(pairs: &[Pair], mut score: impl FnMut(&str, &str) -> f64) -> f64 {
    let start = now();
    let sum: f64 = pairs.iter().map(|(reference, made)| score(reference, made)).sum();
    assert!(sum.is_finite());
    now() - start
}

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let Some(file) = arguments.first() else {
        // `cargo test --benches` passes no file.
        println!("name a file of JSON lines with texts `reference` and `hypothesis`");
        return;
    };
    let rounds = arguments.get(1).map_or(3, |rounds| rounds.parse().unwrap());
    let text = std::fs::read_to_string(file).unwrap();
    let pairs: Vec<Pair> = text
        .lines()
        .map(|line| {
            let pair: Value = serde_json::from_str(line).unwrap();
            let of = |name: &str| pair[name].as_str().unwrap().to_string();
            (of("reference"), of("hypothesis"))
        })
        .collect();
    let mut bare = tree_sitter::Parser::new();
    bare.set_language(&tree_sitter_python::LANGUAGE.into()).unwrap();
    let mut parser = PythonParser::new().unwrap();
    let (mut levenshtein, mut chrf) = (Levenshtein::default(), Chrf::default());
    let (mut bleu, mut rouge) =
        (Bleu::new(BleuOptions::default()), RougeL::new(RougeWords::Unicode));
    for _ in 0..rounds {
        let mut round = Map::new();
        let mut parse = |text: &str| bare.parse(text, None).unwrap().root_node().end_byte() as f64;
        round.insert("parse".into(), timed(&pairs, |a, b| parse(a) + parse(b)).into());
        for (name, mode) in [
            ("codebleu", CodeBleuMode::Published),
            ("codebleu_strict", CodeBleuMode::Strict),
            ("codebleu_codexglue", CodeBleuMode::CodeXGlue),
        ] {
            let mut scorer = CodeBleu::new(mode, EQUAL_WEIGHTS);
            let seconds = timed(&pairs, |a, b| {
                let reference = scorer.reference(&mut parser, a).unwrap();
                scorer.score(&mut parser, &reference, b).unwrap().0.codebleu
            });
            round.insert(name.into(), seconds.into());
        }
        round.insert("bleu".into(), timed(&pairs, |a, b| bleu.sentence(a, b)).into());
        round.insert("chrf".into(), timed(&pairs, |a, b| chrf.score(a, b)).into());
        round.insert("rouge_l".into(), timed(&pairs, |a, b| rouge.score(a, b)).into());
        let distance = timed(&pairs, |a, b| levenshtein.distance(a, b) as f64);
        round.insert("levenshtein".into(), distance.into());
        println!("{}", Value::Object(round));
    }
}
