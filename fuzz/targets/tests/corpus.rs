//! Every target over its committed inputs, and over the same changes of them in every run.
//!
//! An input that once broke a target is in its corpus, so it is run here without any fuzzer.
//! `GALERAS_FUZZ_SECONDS` sets the time of a target for changed inputs, which is one second, and
//! `GALERAS_FUZZ_SEED` selects them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use galeras_fuzz_targets::{Mutator, Target, corpus, dictionary, targets};

/// The folder `fuzz`: cargo runs the tests of a package in the package's folder.
const ROOT: &str = "..";

/// Committed inputs stay small enough to be read.
const MOST_BYTES: usize = 4096;

/// Changed inputs of a target in a run without settings.
const MOST_INPUTS: u32 = 400;

/// No input of a few kilobytes takes so long in any build on any machine.
const LONGEST: Duration = Duration::from_secs(60);

macro_rules! each {
    ($($name:ident),* $(,)?) => {
        $(#[test]
        fn $name() {
            check(stringify!($name));
        })*
        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

each! {
    python_outline, python_measures, python_pattern, text_scores, codebleu, similarity, ngram,
    causal_graph, chat_answers, github_answers, git_objects, git_pack, workflow, templates,
    row_expression, sql_query, lock_file, manifest, journal, read_parquet, read_csv, read_json,
    read_jsonl, bundle, spending, ratings, exec_output, tokenizer_model, allowed_access,
    table_filter
}

fn check(name: &str) {
    let Some(target) = targets().into_iter().find(|target| target.name == name) else {
        // Without the engine there are targets of algorithms only.
        let engine = usize::from(cfg!(feature = "engine"));
        assert_eq!(engine, 0, "there is no target `{name}`");
        return;
    };
    let files = corpus(Path::new(ROOT), name).unwrap();
    assert!(!files.is_empty(), "fuzz/corpus/{name} is empty");
    for file in &files {
        run(target, &file.bytes, &file.path.display().to_string());
    }
    let setting = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let seconds = setting("GALERAS_FUZZ_SECONDS");
    let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(1));
    let most = if seconds.is_some() { u32::MAX } else { MOST_INPUTS };
    let mut mutator = Mutator::new(setting("GALERAS_FUZZ_SEED").unwrap_or(1));
    let inputs: Vec<&[u8]> = files.iter().map(|file| file.bytes.as_slice()).collect();
    let words = dictionary(Path::new(ROOT), name);
    let mut done = 0;
    while done < most && Instant::now() < end {
        let input = mutator.next_input(&inputs, &words);
        done += 1;
        run(target, &input, &format!("changed input {done}"));
    }
    println!("{name}: {} committed inputs, {done} changed ones", files.len());
}

/// Runs one input; if it breaks the target, keeps it and names its place.
fn run(target: Target, input: &[u8], what: &str) {
    let begun = Instant::now();
    let ended = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    let took = begun.elapsed();
    if ended.is_ok() && took < LONGEST {
        return;
    }
    let path = std::env::temp_dir().join(format!("galeras-fuzz-{}", target.name));
    fs::write(&path, input).unwrap();
    let path = path.display();
    panic!(
        "{what} breaks `{}` (after {took:?}); it is in {path}; put it into fuzz/corpus/{} when \
         it is mended",
        target.name, target.name
    );
}

#[test]
fn every_target_is_tested_and_every_folder_is_of_a_target() {
    let names: BTreeSet<&str> = NAMES.iter().copied().collect();
    let built: BTreeSet<&str> = targets().iter().map(|target| target.name).collect();
    if cfg!(feature = "engine") {
        assert_eq!(names, built);
    }
    for folder in ["corpus", "dictionaries"] {
        for entry in fs::read_dir(Path::new(ROOT).join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            assert!(names.contains(name.as_str()), "{} is of no target", path.display());
        }
    }
}

#[test]
fn committed_inputs_are_small_and_dictionaries_can_be_read() {
    for name in NAMES {
        for file in corpus(Path::new(ROOT), name).unwrap() {
            let bytes = file.bytes.len();
            assert!(bytes <= MOST_BYTES, "{} has {bytes} bytes", file.path.display());
        }
        let path = Path::new(ROOT).join("dictionaries").join(format!("{name}.dict"));
        let text = fs::read_to_string(path).unwrap_or_default();
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        assert_eq!(lines.count(), dictionary(Path::new(ROOT), name).len(), "{name}.dict");
    }
}
