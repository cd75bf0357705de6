//! The house rules: layers, headers, file sizes, and nothing that has no place in the source.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};

/// The modules from the bottom to the top. A module may use those before it only.
const ORDER: &[&str] = &[
    "code",
    "digest",
    "id",
    "event",
    "cause",
    "secret",
    "workflow",
    "operator",
    "cache",
    "functions",
    "causal",
    "git",
    "github",
    "chat",
    "engine",
    "operators",
    "plan",
    "report",
    "exec",
    "cli",
];

/// What a module must not name although it lies below: module, forbidden, why.
const NEVER: &[(&str, &str, &str)] = &[
    ("operators", "cache", "an operator does not know how its result is stored"),
    ("report", "plan", "reporters know events and tables only"),
    ("report", "cache", "reporters know events and tables only"),
    ("exec", "operators", "the executor gets bound steps, whatever their operator"),
    ("plan", "operators", "the planner gets a registry"),
    ("plan", "cache", "a plan does not depend on what is stored"),
];

const MAX_LINES: usize = 500;

/// Files below `src/operators` that several operators share.
const SHARED_BY_OPERATORS: &[&str] = &[
    "columns",
    "git_threads",
    "patterns",
    "projection",
    "rejects",
    "support",
    "tokenizer_model",
    "worker_threads",
];

/// Where cargo runs tests. (What it says while it compiles may be of another clone, with which a
/// folder for build output is shared.)
const ROOT: &str = ".";

fn sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(ROOT);
    let mut files = vec![root.join("build.rs")];
    for folder in ["src", "tests", "benches"] {
        collect(&root.join(folder), &mut files);
    }
    files
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            (path.strip_prefix(root).unwrap().to_path_buf(), text)
        })
        .collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
}

/// The module below `src/` that a file belongs to.
fn module(path: &Path) -> Option<String> {
    let inside = path.strip_prefix("src").ok()?;
    let first = inside.components().next()?.as_os_str().to_str()?;
    let name = first.strip_suffix(".rs").unwrap_or(first);
    (!["main", "lib"].contains(&name)).then(|| name.to_string())
}

fn fail_if_any(problems: Vec<String>) {
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

#[test]
fn every_file_says_what_lives_there() {
    let silent = sources().into_iter().filter(|(_, text)| !text.starts_with("//! "));
    fail_if_any(silent.map(|(path, _)| format!("{} has no //! header", path.display())).collect());
}

#[test]
fn files_stay_small() {
    let long = sources().into_iter().filter_map(|(path, text)| {
        let lines = text.lines().count();
        let header: String = text.lines().take_while(|l| l.starts_with("//!")).collect();
        (lines > MAX_LINES && !header.contains("One file because"))
            .then(|| format!("{} has {lines} lines, more than {MAX_LINES}", path.display()))
    });
    fail_if_any(long.collect());
}

#[test]
fn imports_point_downward() {
    let mut problems = Vec::new();
    for (path, text) in sources() {
        let Some(own) = module(&path) else { continue };
        let Some(rank) = ORDER.iter().position(|m| *m == own) else {
            problems.push(format!("{} is in no layer", path.display()));
            continue;
        };
        for (at, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("//") {
                continue;
            }
            for rest in line.split("crate::").skip(1) {
                let name: String =
                    rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                let place = format!("{}:{}", path.display(), at + 1);
                match ORDER.iter().position(|m| *m == name) {
                    Some(other) if other > rank => {
                        problems.push(format!("{place}: {own} uses {name}, which lies above it"));
                    }
                    _ => {}
                }
                for (_, _, why) in NEVER.iter().filter(|(a, b, _)| *a == own && *b == name) {
                    problems.push(format!("{place}: {own} uses {name}: {why}"));
                }
            }
        }
    }
    fail_if_any(problems);
}

/// What operators share, in the folder of operators.
const SHARED: &[&str] = &["mod", "support", "missing_values", "prose", "small_table"];

#[test]
fn an_operator_names_no_other() {
    let root = Path::new(ROOT).join("src/operators");
    let mut problems = Vec::new();
    for (path, text) in sources() {
        let Ok(inside) = path.strip_prefix("src/operators") else { continue };
        if inside == Path::new("mod.rs") {
            continue;
        }
        let own = inside.components().next().unwrap().as_os_str().to_str().unwrap().to_string();
        for entry in fs::read_dir(&root).unwrap() {
            let other = entry.unwrap().file_name().into_string().unwrap();
            let name = other.trim_end_matches(".rs");
            if other == own || name == "mod" || SHARED_BY_OPERATORS.contains(&name) {
                continue;
            }
            for needle in [format!("super::{name}::"), format!("operators::{name}::")] {
                if text.contains(&needle) {
                    problems.push(format!("{} names the operator {name}", path.display()));
                }
            }
        }
    }
    fail_if_any(problems);
}

#[test]
fn only_the_workflow_layer_reads_yaml_and_it_knows_no_datafusion() {
    let mut problems = Vec::new();
    for (path, text) in sources() {
        let inside = path.starts_with("src/workflow");
        let code = || text.lines().filter(|l| !l.trim_start().starts_with("//"));
        if !inside && path.starts_with("src") && code().any(|l| l.contains("serde_yaml::")) {
            problems.push(format!("{} reads YAML", path.display()));
        }
        if inside && code().any(|l| l.contains("datafusion::") || l.contains("arrow::")) {
            problems.push(format!("{} knows the engine", path.display()));
        }
    }
    fail_if_any(problems);
}

#[test]
fn float_aggregates_come_from_the_exact_ones() {
    let mut problems = Vec::new();
    for (path, text) in sources().into_iter().filter(|(p, _)| p.starts_with("src")) {
        for name in ["sum", "avg", "stddev", "var_pop", "var_sample", "corr"] {
            if text.contains(&format!("functions_aggregate::expr_fn::{name}(")) {
                problems.push(format!("{} sums in row order with {name}", path.display()));
            }
        }
    }
    fail_if_any(problems);
}

#[test]
fn nothing_is_left_to_do_in_the_source() {
    let words = ["todo!(", "unimplemented!(", concat!("FIX", "ME"), concat!("TO", "DO"), "dbg!("];
    let mut problems = Vec::new();
    for (path, text) in sources() {
        if path == Path::new("tests/tidy.rs") {
            continue;
        }
        for word in words {
            if text.contains(word) {
                problems.push(format!("{} contains {word}", path.display()));
            }
        }
    }
    fail_if_any(problems);
}

#[test]
fn every_module_has_a_layer() {
    let root = Path::new(ROOT).join("src");
    let mut modules: Vec<String> = fs::read_dir(root)
        .unwrap()
        .filter_map(|entry| module(&Path::new("src").join(entry.unwrap().file_name())))
        .collect();
    modules.sort();
    let mut known: Vec<String> = ORDER.iter().map(ToString::to_string).collect();
    known.sort();
    assert_eq!(modules, known);
}
