//! What is generated from the code and committed is fresh: schemas, contracts, the pages and the
//! table of operators. `GALERAS_UPDATE=1 cargo test -p galeras-tests --test docs` writes it anew.
//! And what is written by hand names files, pages and types that exist.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the repository: cargo runs the tests of a package in the package's folder. (What
/// it says while it compiles may name another clone, with which build output is shared.)
fn root() -> &'static Path {
    Path::new("..")
}

fn galeras(args: &[&str]) -> String {
    let out = Command::new(env!("CARGO_BIN_EXE_galeras-under-test")).args(args).output().unwrap();
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// Compares a committed file with what it should be, or writes it.
fn fresh(path: &str, wanted: &str) {
    let file = root().join(path);
    if std::env::var_os("GALERAS_UPDATE").is_some() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, wanted).unwrap();
    }
    let committed = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        committed == wanted,
        "{path} is stale; run GALERAS_UPDATE=1 cargo test -p galeras-tests --test docs"
    );
}

fn operators() -> Vec<String> {
    galeras(&["ops", "--format", "json"])
        .lines()
        .map(|line| {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            value["name"].as_str().unwrap().to_string()
        })
        .collect()
}

#[test]
fn the_schema_of_workflow_files_is_fresh() {
    fresh("schemas/workflow.schema.json", &galeras(&["schema"]));
}

#[test]
fn the_contracts_of_published_tables_are_fresh() {
    for name in ["raw_data", "random_cut", "table_1"] {
        fresh(&format!("schemas/{name}.contract.json"), &galeras(&["schema", name]));
    }
}

#[test]
fn the_pages_of_the_operators_are_fresh() {
    for name in operators() {
        fresh(&format!("docs/operators/{name}.md"), &galeras(&["ops", &name]));
    }
}

#[test]
fn no_page_is_left_of_an_operator_that_is_gone() {
    let mut known: BTreeSet<String> = operators().iter().map(|name| format!("{name}.md")).collect();
    known.insert("README.md".into());
    for entry in fs::read_dir(root().join("docs/operators")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(known.contains(&name), "docs/operators/{name}");
    }
}

#[test]
fn the_table_of_operators_is_fresh() {
    const PAGE: &str = "docs/operators/README.md";
    const BEGIN: &str = "<!-- operators: generated -->\n";
    const END: &str = "<!-- /operators -->";
    let page = fs::read_to_string(root().join(PAGE)).unwrap();
    let start = page.find(BEGIN).expect("the page marks its table") + BEGIN.len();
    let end = page.find(END).expect("the page marks its table");
    let table = galeras(&["ops", "--format", "markdown"]);
    fresh(PAGE, &format!("{}{table}{}", &page[..start], &page[end..]));
}

/// The pages below docs/, from there, but for the table of contents itself.
fn pages_of_the_manual() -> BTreeSet<String> {
    let docs = root().join("docs");
    let mut pages = BTreeSet::new();
    for folder in ["", "operators/"] {
        for entry in fs::read_dir(docs.join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".md") && name != "SUMMARY.md" {
                pages.insert(format!("{folder}{name}"));
            }
        }
    }
    pages
}

/// The targets of the links of a page, without those to other places and within the page.
fn local_links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let files = targets.filter_map(|target| target.split('#').next());
    files.filter(|file| !file.is_empty() && !file.contains("://") && !file.contains(' '))
}

#[test]
fn the_table_of_contents_lists_every_page() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let listed: BTreeSet<String> = local_links(&summary).map(str::to_string).collect();
    assert_eq!(listed, pages_of_the_manual());
}

/// The pages that people write and read, from the root.
fn written_pages() -> Vec<PathBuf> {
    let top = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"];
    let manual = pages_of_the_manual().into_iter().map(|page| format!("docs/{page}"));
    top.into_iter().map(str::to_string).chain(manual).map(PathBuf::from).collect()
}

#[test]
fn links_lead_to_files_that_exist() {
    for page in written_pages() {
        let text = fs::read_to_string(root().join(&page)).unwrap();
        for target in local_links(&text) {
            let file = root().join(page.parent().unwrap()).join(target);
            assert!(file.exists(), "{} links to {target}", page.display());
        }
    }
}

/// Words in code type that are paths, as in `src/lib.rs`, are of files and folders that exist.
#[test]
fn paths_that_the_pages_name_exist() {
    const FOLDERS: [&str; 6] = ["benches/", "crates/", "schemas/", "src/", "tests/", "workflows/"];
    for page in written_pages() {
        let text = fs::read_to_string(root().join(&page)).unwrap();
        for word in code_words(&text) {
            let path = FOLDERS.iter().any(|folder| word.starts_with(folder));
            let placeholder = word.contains(|c: char| c.is_uppercase() || "*<…".contains(c));
            assert!(
                !path || placeholder || root().join(word).exists(),
                "{} names {word}",
                page.display()
            );
        }
    }
}

/// The single words in code type of a page, outside of its blocks of code.
fn code_words(text: &str) -> impl Iterator<Item = &str> {
    let prose = text.split("```").step_by(2);
    let spans = prose.flat_map(|part| part.split('`').skip(1).step_by(2));
    spans.filter(|span| !span.is_empty() && !span.contains(char::is_whitespace))
}

#[test]
fn types_that_the_architecture_names_exist() {
    let mut sources = String::new();
    collect_sources(&root().join("src"), &mut sources);
    collect_sources(&root().join("crates"), &mut sources);
    let defined: BTreeSet<&str> = ["struct ", "enum ", "trait ", "type "]
        .iter()
        .flat_map(|kind| sources.split(kind).skip(1))
        .filter_map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next())
        .collect();
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for word in code_words(&page) {
        let first = word.split("::").next().unwrap();
        let camel = first.starts_with(char::is_uppercase)
            && first.contains(char::is_lowercase)
            && first.chars().all(char::is_alphanumeric);
        assert!(!camel || defined.contains(first), "ARCHITECTURE.md names the type {first}");
    }
}

fn collect_sources(folder: &Path, sources: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect_sources(&path, sources);
        } else if path.extension().is_some_and(|suffix| suffix == "rs") {
            sources.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn the_readme_is_short() {
    let lines = fs::read_to_string(root().join("README.md")).unwrap().lines().count();
    assert!(lines < 150, "the README has {lines} lines; the manual is in docs/");
}

#[test]
fn shipped_workflows_have_no_problem() {
    for entry in fs::read_dir(root().join("workflows")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|suffix| suffix == "csv") {
            continue; // what a workflow reads
        }
        let path = path.to_str().unwrap();
        if path.ends_with("table3.yaml") {
            // Its data are on a server; what is checked is the rest of it.
            let folder = tempfile::tempdir().unwrap();
            let copy = folder.path().join("data.json");
            fs::write(&copy, published()).unwrap();
            galeras(&["check", path, "--set", &format!("data={}", copy.display())]);
        } else {
            galeras(&["check", path]);
        }
    }
}

/// Two rows in the form of the published data.
fn published() -> String {
    let numbers = [
        "y_levenshtein",
        "z_prompt_size",
        "z_n_whitespaces",
        "z_token_counts",
        "z_nloc",
        "z_complexity",
        "z_n_ast_nodes",
        "z_n_ast_errors",
        "z_ast_levels",
    ];
    let columns = numbers.map(|name| format!("\"{name}\": {{\"0\": 1, \"1\": 2}}"));
    let arms = "\"t_treatment\": {\"0\": \"control\", \"1\": \"T1\"}";
    format!("{{{}, {arms}}}", columns.join(", "))
}

/// Their examples name repositories on GitHub: they are checked, not run.
const NEED_A_NETWORK: [&str; 2] = ["query", "mine"];

/// The example of every operator's page is a workflow that runs.
#[test]
fn the_examples_of_the_operators_run() {
    for name in operators() {
        let verb = if NEED_A_NETWORK.contains(&name.as_str()) { "check" } else { "run" };
        let page = galeras(&["ops", &name]);
        let example = page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next());
        let example = example.unwrap_or_else(|| panic!("{name} has no example"));
        let steps: String = example.lines().map(|line| format!("  {line}\n")).collect();
        let folder = tempfile::tempdir().unwrap();
        let workflow = format!("galeras: 1\nname: example\nsteps:\n{steps}");
        fs::write(folder.path().join("w.yaml"), workflow).unwrap();
        fs::write(folder.path().join("data.csv"), "source,n\ndef f(): pass,1\nx,2\n").unwrap();
        run_in(folder.path(), verb, &name);
    }
}

fn run_in(folder: &Path, verb: &str, name: &str) {
    let out = Command::new(env!("CARGO_BIN_EXE_galeras-under-test"))
        .args([verb, "w.yaml"])
        .current_dir(folder)
        .env_remove("GALERAS_CACHE")
        .output()
        .unwrap();
    assert!(out.status.success(), "{name}: {}", String::from_utf8_lossy(&out.stderr));
}
