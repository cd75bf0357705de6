//! Measures the cost of a method's features compared with parsing its text.
//!
//! cargo bench -p galeras-python --bench features -- FOLDER [ROUNDS]
//!
//! FOLDER is searched for Python files: a clone, or the standard library (`python3 -c 'import os;
//! print(os.path.dirname(os.__file__))'`). Each round (5 by default) runs these over the texts of
//! all methods on one thread: tree-sitter alone; our parse, with its limits and table; both on the
//! first half of each text, which has errors; the features; the size metrics alone. Prints the
//! least processor time of each, nanoseconds per byte, and the ratio to tree-sitter.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::hint::black_box;
use std::path::Path;

use galeras_python::{PythonParser, decode_source, features, methods, size};

/// Processor seconds of this thread so far.
fn now() -> f64 {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    times.split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1e9
}

/// The methods of the Python files below a folder.
fn texts(folder: &Path, all: &mut Vec<String>) {
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths.into_iter().filter(|path| !path.is_symlink()) {
        if path.is_dir() {
            texts(&path, all);
        } else if path.extension().is_some_and(|suffix| suffix == "py")
            && let Ok(source) = decode_source(&std::fs::read(&path).unwrap())
            && let Ok(list) = methods(&source.text, false)
        {
            all.extend(list.into_iter().map(|method| method.code));
        }
    }
}

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let Some(folder) = arguments.first() else {
        // `cargo test --benches` names no folder.
        println!("name a folder of Python files");
        return;
    };
    let rounds = arguments.get(1).map_or(5, |rounds| rounds.parse().unwrap());
    let mut parser = PythonParser::new().unwrap();
    let mut all = Vec::new();
    texts(Path::new(folder), &mut all);
    let bytes: usize = all.iter().map(String::len).sum();
    println!("{} methods, {:.1} MB, one thread", all.len(), bytes as f64 / 1e6);

    let mut bare = tree_sitter::Parser::new();
    bare.set_language(&tree_sitter_python::LANGUAGE.into()).unwrap();
    let mut bare_cut = tree_sitter::Parser::new();
    bare_cut.set_language(&tree_sitter_python::LANGUAGE.into()).unwrap();
    let mut parsing = PythonParser::new().unwrap();
    let mut parsing_cut = PythonParser::new().unwrap();
    fn half(text: &str) -> &str {
        &text[..text.floor_char_boundary(text.len() / 2)]
    }
    type Run<'a> = (&'static str, Box<dyn FnMut(&str) -> bool + 'a>);
    let mut runs: [Run<'_>; 6] = [
        ("bare parse", Box::new(|text| bare.parse(text, None).is_some())),
        ("parse", Box::new(|text| parsing.parse(text).is_ok())),
        ("bare, cut", Box::new(|text| bare_cut.parse(half(text), None).is_some())),
        ("parse, cut", Box::new(|text| parsing_cut.parse(half(text)).is_ok())),
        ("features", Box::new(|text| features(&mut parser, text).is_ok_and(|f| f.nloc > 0))),
        ("size", Box::new(|text| size(text).is_some())),
    ];
    let mut best = [f64::MAX; 6];
    for _ in 0..rounds {
        for ((_, run), best) in runs.iter_mut().zip(&mut best) {
            let start = now();
            all.iter().for_each(|text| _ = black_box(run(text)));
            *best = best.min(now() - start);
        }
    }
    println!("{:10} {:>8} {:>8} {:>10}", "", "s", "ns/byte", "bare parse");
    for ((name, _), seconds) in runs.iter().zip(best) {
        let per_byte = seconds * 1e9 / bytes as f64;
        println!("{name:10} {seconds:8.3} {per_byte:8.1} {:9.2}x", seconds / best[0]);
    }
}
