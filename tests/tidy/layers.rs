//! Inside the engine imports point only downward. The layers are the table of `src/lib.rs`, which
//! is the only list of them; ARCHITECTURE.md shows the same modules in the same order.

use std::path::Path;

use crate::fail_if_any;
use crate::sources::{names_in, read, rust_files};

/// What a module must not name although it lies below: module, forbidden, why.
const NEVER: &[(&str, &str, &str)] = &[
    ("operators", "store", "an operator does not know how its result is stored"),
    ("report", "plan", "reporters know events and tables only"),
    ("report", "store", "reporters know events and tables only"),
    ("runner", "operators", "the runner gets bound steps, whatever their operator"),
    ("plan", "operators", "the planner gets a registry"),
    ("plan", "store", "a plan does not depend on what is stored"),
];

/// The modules of the engine from the bottom to the top. A module uses those before it only.
fn layers() -> Vec<String> {
    let lib = read("src/lib.rs".into());
    let rows = lib.text.lines().filter_map(|line| line.strip_prefix("//! "));
    first_cells(rows)
}

/// The words in code type that begin the rows of the table of layers.
fn first_cells<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    lines
        .skip_while(|line| !line.starts_with("| module |"))
        .take_while(|line| line.starts_with('|'))
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(name, _)| name.to_string())
        .collect()
}

/// The module below `src/` that a file belongs to.
fn module(path: &Path) -> Option<String> {
    let inside = path.strip_prefix("src").ok()?;
    let first = inside.components().next()?.as_os_str().to_str()?;
    let name = first.strip_suffix(".rs").unwrap_or(first);
    (!["main", "lib"].contains(&name)).then(|| name.to_string())
}

/// The lines of a file that are not comments, with their numbers.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
}

#[test]
fn every_module_has_a_layer() {
    let mut modules: Vec<String> =
        names_in("src").iter().filter_map(|name| module(&Path::new("src").join(name))).collect();
    modules.sort();
    let mut known = layers();
    known.sort();
    assert_eq!(modules, known, "the modules below src/, and the table of layers in src/lib.rs");
}

#[test]
fn the_architecture_shows_the_same_layers() {
    let page = read("ARCHITECTURE.md".into());
    assert_eq!(first_cells(page.text.lines()), layers());
}

#[test]
fn imports_point_downward() {
    let order = layers();
    let rank = |name: &str| order.iter().position(|module| module == name);
    let mut problems = Vec::new();
    for file in rust_files() {
        let Some(own) = module(&file.path) else { continue };
        let Some(own_rank) = rank(&own) else {
            problems.push(format!("{} is in no layer", file.path.display()));
            continue;
        };
        for (number, line) in code_lines(&file.text) {
            for rest in line.split("crate::").skip(1) {
                let name: String =
                    rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                let place = format!("{}:{number}", file.path.display());
                if rank(&name).is_some_and(|other| other > own_rank) {
                    problems.push(format!("{place}: {own} uses {name}, which lies above it"));
                }
                for (_, _, why) in NEVER.iter().filter(|(a, b, _)| *a == own && *b == name) {
                    problems.push(format!("{place}: {own} uses {name}: {why}"));
                }
            }
        }
    }
    fail_if_any(problems);
}

/// The operators' modules: the first words of the entries of `ALL` in `src/operators/mod.rs`.
fn operator_modules() -> Vec<String> {
    let registry = read("src/operators/mod.rs".into());
    let modules: Vec<String> = registry
        .text
        .lines()
        .filter_map(|line| line.trim().strip_prefix('&')?.split_once("::"))
        .map(|(module, _)| module.to_string())
        .collect();
    assert!(modules.len() > 10, "the list ALL is read wrongly: {modules:?}");
    modules
}

#[test]
fn an_operator_names_no_other() {
    let modules = operator_modules();
    let mut problems = Vec::new();
    for file in rust_files() {
        let Ok(inside) = file.path.strip_prefix("src/operators") else { continue };
        if inside == Path::new("mod.rs") {
            continue;
        }
        let own = inside.components().next().unwrap().as_os_str().to_str().unwrap();
        let own = own.trim_end_matches(".rs");
        for other in modules.iter().filter(|other| *other != own) {
            // Inside of an operator's folder `super` is the operator, not the list of them.
            let nested = inside.components().count() > 1 && inside.file_name().unwrap() != "mod.rs";
            let up = if nested { "super::super" } else { "super" };
            for needle in [format!("{up}::{other}::"), format!("operators::{other}::")] {
                if code_lines(&file.text).any(|(_, line)| line.contains(&needle)) {
                    problems.push(format!("{} names the operator {other}", file.path.display()));
                }
            }
        }
    }
    fail_if_any(problems);
}

#[test]
fn only_the_workflow_layer_reads_yaml_and_it_knows_no_datafusion() {
    let mut problems = Vec::new();
    for file in rust_files() {
        let inside = file.path.starts_with("src/workflow");
        let engine = file.path.starts_with("src") || file.path.starts_with("crates");
        let contains = |word: &str| code_lines(&file.text).any(|(_, line)| line.contains(word));
        if !inside && engine && contains("serde_yaml::") {
            problems.push(format!("{} reads YAML", file.path.display()));
        }
        if inside && (contains("datafusion::") || contains("arrow::")) {
            problems.push(format!("{} knows DataFusion or Arrow", file.path.display()));
        }
    }
    fail_if_any(problems);
}
