//! Pages that people write name files, pages and types that exist, and the README is short.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::fail_if_any;
use crate::sources::{ROOT, names_in, read, rust_files};

/// The pages of the manual, from docs/, but for the table of contents itself.
fn pages_of_the_manual() -> BTreeSet<String> {
    let mut pages = BTreeSet::new();
    for folder in ["", "operators/", "recipes/"] {
        let names = names_in(&format!("docs/{folder}")).into_iter();
        let pages_here = names.filter(|name| name.ends_with(".md") && name != "SUMMARY.md");
        pages.extend(pages_here.map(|name| format!("{folder}{name}")));
    }
    pages
}

/// All pages, from the root.
fn pages() -> Vec<PathBuf> {
    let top = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"];
    let manual = pages_of_the_manual().into_iter().map(|page| format!("docs/{page}"));
    top.into_iter().map(str::to_string).chain(manual).map(PathBuf::from).collect()
}

/// The targets of the links of a page, without those to other places and within the page.
fn local_links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let files = targets.filter_map(|target| target.split('#').next());
    files.filter(|file| !file.is_empty() && !file.contains("://") && !file.contains(' '))
}

/// The single words in code type of a page, outside of its blocks of code.
fn code_words(text: &str) -> impl Iterator<Item = &str> {
    let prose = text.split("```").step_by(2);
    let spans = prose.flat_map(|part| part.split('`').skip(1).step_by(2));
    spans.filter(|span| !span.is_empty() && !span.contains(char::is_whitespace))
}

fn exists(path: &Path) -> bool {
    Path::new(ROOT).join(path).exists()
}

#[test]
fn the_table_of_contents_lists_every_page() {
    let summary = read("docs/SUMMARY.md".into());
    let listed: BTreeSet<String> = local_links(&summary.text).map(str::to_string).collect();
    assert_eq!(listed, pages_of_the_manual());
}

#[test]
fn links_lead_to_files_that_exist() {
    let mut problems = Vec::new();
    for page in pages().into_iter().map(read) {
        for target in local_links(&page.text) {
            if !exists(&page.path.parent().unwrap().join(target)) {
                problems.push(format!("{} links to {target}", page.path.display()));
            }
        }
    }
    fail_if_any(problems);
}

/// Words in code type that are paths, as `src/lib.rs`, are of files and folders that exist.
#[test]
fn paths_that_pages_name_exist() {
    const FOLDERS: [&str; 7] =
        ["benches/", "crates/", "fuzz/", "schemas/", "src/", "tests/", "workflows/"];
    let mut problems = Vec::new();
    for page in pages().into_iter().map(read) {
        for word in code_words(&page.text) {
            let ours = FOLDERS.iter().any(|folder| word.starts_with(folder));
            let placeholder = word.contains(|c: char| c.is_uppercase() || "*<…".contains(c));
            if ours && !placeholder && !exists(Path::new(word)) {
                problems.push(format!("{} names {word}", page.path.display()));
            }
        }
    }
    fail_if_any(problems);
}

#[test]
fn types_that_the_architecture_and_the_guide_name_exist() {
    let sources: Vec<String> = rust_files().into_iter().map(|file| file.text).collect();
    let defined: BTreeSet<&str> = ["struct ", "enum ", "trait ", "type "]
        .iter()
        .flat_map(|kind| sources.iter().flat_map(|text| text.split(*kind).skip(1)))
        .filter_map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next())
        .collect();
    let mut problems = Vec::new();
    for page in ["ARCHITECTURE.md", "CONTRIBUTING.md"] {
        for word in code_words(&read(page.into()).text) {
            let name = word.split("::").next().unwrap();
            let camel = name.starts_with(char::is_uppercase)
                && name.contains(char::is_lowercase)
                && name.chars().all(char::is_alphanumeric);
            // DataFusion's.
            if camel && name != "ScalarUDFImpl" && !defined.contains(name) {
                problems.push(format!("{page} names the type {name}"));
            }
        }
    }
    fail_if_any(problems);
}

#[test]
fn the_readme_is_short() {
    let lines = read("README.md".into()).text.lines().count();
    assert!(lines < 120, "the README has {lines} lines; the manual is in docs/");
}
