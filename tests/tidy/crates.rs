//! A crate of algorithms is built without DataFusion, Arrow and the engine.

use std::collections::BTreeMap;

use crate::fail_if_any;
use crate::sources::{names_in, read};

/// What no crate below `crates/` depends on, by whatever way.
const FORBIDDEN: &[&str] = &["datafusion", "arrow", "parquet", "galeras"];

/// The names that a manifest lists in any of its tables of dependencies. `galeras.workspace`,
/// `galeras = …` and `[dependencies.galeras]` are all `galeras`.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut inside = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_end_matches(']');
            let (_, after) = header.rsplit_once("dependencies").unwrap_or(("", "-"));
            inside = after.is_empty();
            names.extend(after.strip_prefix('.').map(str::to_string));
        } else if inside && !line.is_empty() && !line.starts_with('#') {
            let name = line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').next();
            names.extend(name.map(str::to_string));
        }
    }
    names
}

/// Whether a dependency is a forbidden package or one of its family (`arrow-array`). A name that
/// only begins with `galeras-` is a crate of algorithms.
fn forbidden(name: &str) -> bool {
    FORBIDDEN.iter().any(|package| {
        name == *package || (*package != "galeras" && name.starts_with(&format!("{}-", *package)))
    })
}

#[test]
fn crates_of_algorithms_know_neither_datafusion_nor_the_engine() {
    let manifests: BTreeMap<String, Vec<String>> = names_in("crates")
        .into_iter()
        .map(|name| {
            let manifest = read(format!("crates/{name}/Cargo.toml").into());
            (name, dependencies(&manifest.text))
        })
        .collect();
    let mut problems = Vec::new();
    for start in manifests.keys() {
        // Every crate below crates/ that this one reaches is checked by itself; the way there
        // is said, so that a problem names the crates that it spoils.
        let mut ways = vec![vec![start.as_str()]];
        let mut seen = vec![start.as_str()];
        while let Some(way) = ways.pop() {
            for name in &manifests[*way.last().unwrap()] {
                if forbidden(name) {
                    problems.push(format!("{} -> {name}", way.join(" -> ")));
                } else if manifests.contains_key(name) && !seen.contains(&name.as_str()) {
                    seen.push(name);
                    ways.push([way.as_slice(), &[name]].concat());
                }
            }
        }
    }
    assert!(manifests.len() > 5, "too few crates: {:?}", manifests.keys());
    fail_if_any(problems);
}

#[test]
fn dependencies_are_read_from_manifests() {
    let manifest = "[package]\nname = \"x\"\n[dependencies]\narrow.workspace = true\n# no\n\
                    serde = \"1\"\n[target.'cfg(unix)'.dev-dependencies]\ngaleras = { path = \".\" }\n\
                    [dependencies.tokio]\nversion = \"1\"\n[lints]\nworkspace = true\n";
    assert_eq!(dependencies(manifest), ["arrow", "serde", "galeras", "tokio"]);
    assert!(forbidden("arrow-array") && forbidden("galeras") && !forbidden("galeras-git"));
}
