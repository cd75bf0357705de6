//! One name, one type: a reader who meets a public type by its name alone knows which it is.

use std::collections::BTreeMap;

use crate::fail_if_any;
use crate::graph::is_test;
use crate::sources::rust_files;
use crate::tokens::without_comments_and_tests;

#[test]
fn no_public_type_name_stands_twice_in_the_workspace() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in rust_files() {
        // What stands below tests/ is used by tests alone, by its module.
        let ours = file.path.starts_with("src") || file.path.starts_with("crates");
        if !ours || is_test(&file.path) {
            continue;
        }
        let code = without_comments_and_tests(&file.text);
        for (at, line) in code.lines().enumerate() {
            if let Some(name) = public_type(line) {
                let place = format!("{}:{}", file.path.display(), at + 1);
                places.entry(name.to_string()).or_default().push(place);
            }
        }
    }
    assert!(places.len() > 100, "types are read wrongly: {} of them", places.len());
    let twice = places.into_iter().filter(|(_, places)| places.len() > 1);
    fail_if_any(twice.map(|(name, places)| format!("{name}: {}", places.join(", "))).collect());
}

/// The name that a line declares as `pub struct`, `enum`, `trait`, `type` or `union`.
fn public_type(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub ")?;
    let (kind, rest) = rest.split_once(' ')?;
    if !["struct", "enum", "trait", "type", "union"].contains(&kind) {
        return None;
    }
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

#[test]
fn public_types_are_read_from_their_lines() {
    assert_eq!(public_type("pub struct Row<'a> {"), Some("Row"));
    assert_eq!(public_type("    pub enum Kind {"), Some("Kind"));
    assert_eq!(public_type("pub(crate) struct Row;"), None);
    assert_eq!(public_type("pub fn row() {}"), None);
}
