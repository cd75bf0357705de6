//! Files generated from the code and committed are fresh: schemas, contracts, the pages and the
//! table of operators. `GALERAS_UPDATE=1 cargo test -p galeras-tests --test docs` writes it anew.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, unreachable_pub)]

use std::fs;

use serde_json::Value;

mod examples;

use examples::{example, galeras, galeras_in, needs_a_network, operators, project, root};

/// Compares a committed file with what it should be, or writes it.
fn fresh(path: &str, wanted: &str) {
    let file = root().join(path);
    if std::env::var_os("GALERAS_UPDATE").is_some() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, wanted).unwrap();
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        found == wanted,
        "{path} is stale; run GALERAS_UPDATE=1 cargo test -p galeras-tests --test docs"
    );
}

#[test]
fn schemas_and_contracts_are_fresh() {
    fresh("schemas/workflow.schema.json", &galeras(&["schema"]));
    for name in ["raw_data", "random_cut", "table_1"] {
        fresh(&format!("schemas/{name}.contract.json"), &galeras(&["schema", name]));
    }
}

#[test]
fn operators_have_fresh_pages_and_no_others_are_left() {
    // The README is the table of all of them.
    let mut wanted = vec!["README.md".to_string()];
    for (name, _) in operators() {
        fresh(&format!("docs/operators/{name}.md"), &galeras(&["ops", &name]));
        wanted.push(format!("{name}.md"));
    }
    for entry in fs::read_dir(root().join("docs/operators")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(wanted.contains(&name), "docs/operators/{name}");
    }
}

/// Pages have the same sections, and are short enough to be read.
#[test]
fn the_pages_of_the_operators_are_short() {
    for line in galeras(&["ops", "--format", "json"]).lines() {
        let operator: Value = serde_json::from_str(line).unwrap();
        let (name, doc) = (operator["name"].as_str().unwrap(), operator["doc"].as_str().unwrap());
        let sections: Vec<&str> = doc.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(sections, ["Example", "Columns out", "Rules", "Cost and limits"], "{name}");
        let most = if name == "regress" { 2_500 } else { 900 };
        let prose = doc.split("```").step_by(2);
        let words: usize = prose.map(|part| part.split_whitespace().count()).sum();
        assert!(words <= most, "the page of `{name}` has {words} words; {most} are allowed");
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

#[test]
fn shipped_workflows_have_no_problem() {
    for entry in fs::read_dir(root().join("workflows")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|suffix| suffix != "yaml") {
            continue; // what a workflow reads
        }
        let path = path.to_str().unwrap();
        if !["table3.yaml", "causal_se.yaml"].iter().any(|name| path.ends_with(name)) {
            galeras(&["check", path]);
            continue;
        }
        // Its data are on a server; what is checked is the rest of it.
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("data.json");
        fs::write(&copy, published()).unwrap();
        galeras(&["check", path, "--set", &format!("data={}", copy.display())]);
    }
}

/// The contracts fit the steps of the shipped workflows after which they are named.
#[test]
fn the_shipped_workflows_keep_the_contracts() {
    let folder = tempfile::tempdir().unwrap();
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let write = |path: &str, text: &str| {
        let file = folder.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        file.display().to_string()
    };
    write("workflows/ratings/README.md", "");
    write("workflows/collect.yaml", &read("workflows/collect.yaml"));
    for (name, workflow) in
        [("random_cut", "galeras"), ("table_1", "galeras"), ("raw_data", "collect")]
    {
        let contract = format!("schemas/{name}.contract.json");
        write(&contract, &read(&contract));
        let path = format!("workflows/{workflow}.yaml");
        let (text, step) = (read(&path), format!("\n  {name}:\n"));
        assert_eq!(text.split("\noutputs:\n").next().unwrap().matches(&step).count(), 1, "{name}");
        let promised = format!("{step}    schema: ../{contract}\n");
        galeras(&["check", &write(&path, &text.replacen(&step, &promised, 1))]);
    }
}

/// Two rows in the form of the published data.
fn published() -> String {
    let numbers = "y_levenshtein z_prompt_size z_n_whitespaces z_token_counts z_nloc z_complexity \
                   z_n_ast_nodes z_n_ast_errors z_ast_levels";
    let column = |name| format!("\"{name}\": {{\"0\": 1, \"1\": 2}}, ");
    let columns: String = numbers.split(' ').map(column).collect();
    format!("{{{columns}\"t_treatment\": {{\"0\": \"control\", \"1\": \"T1\"}}}}")
}

/// The example of every operator's page is a workflow that runs. (Its results are pinned by
/// `example_digests`.)
#[test]
fn the_examples_of_the_operators_run() {
    for (name, _) in operators() {
        let folder = project(&example(&name));
        let args: &[&str] = match needs_a_network(&name) {
            true => &["check", "w.yaml"],
            false => &["run", "w.yaml", "--allow", "exec"],
        };
        galeras_in(folder.path(), args);
    }
}

/// The commands in a page's blocks of `console` and `sh`, without comments.
fn commands(page: &str) -> Vec<String> {
    let joined = page.replace("\\\n", " ");
    let blocks = joined.split("```").skip(1).step_by(2);
    let lines = blocks.flat_map(|block| {
        let (kind, lines) = block.split_once('\n').unwrap_or_default();
        let start = match kind {
            "console" => Some("$ galeras "),
            "sh" => Some("galeras "),
            _ => None,
        };
        lines.split(['\n', '&']).filter_map(move |line| line.trim().strip_prefix(start?))
    });
    lines.map(|line| line.split(" #").next().unwrap().to_owned()).collect()
}

/// The commands of the manual have verbs and flags that the program has.
#[test]
fn the_commands_of_the_manual_exist() {
    let folders = ["docs", "docs/recipes"].map(|folder| fs::read_dir(root().join(folder)).unwrap());
    let files = folders.into_iter().flatten().map(|entry| entry.unwrap().path());
    let pages = files.filter(|path| path.extension().is_some_and(|suffix| suffix == "md"));
    let mut found = 0;
    for page in pages.chain([root().join("README.md")]) {
        for command in commands(&fs::read_to_string(&page).unwrap()) {
            let words: Vec<&str> = command.split_whitespace().collect();
            let verb = match words.as_slice() {
                // Only builds with this feature have it.
                [] | ["cluster", ..] => continue,
                [flag, ..] if flag.starts_with('-') => vec![],
                ["cache", verb, ..] => vec!["cache", *verb],
                [verb, ..] => vec![*verb],
            };
            let help = galeras(&[&verb[..], &["--help"]].concat());
            for flag in words.iter().filter(|word| word.starts_with("--")) {
                assert!(help.contains(flag), "{}: `galeras {command}` has {flag}", page.display());
            }
            found += 1;
        }
    }
    assert!(found > 50, "{found} commands were found");
}

/// The picture on the page of the second tutorial is the graph of its workflow.
#[test]
fn the_graph_of_the_executed_benchmark_is_fresh() {
    let page = fs::read_to_string(root().join("docs/first-executed-benchmark.md")).unwrap();
    let block = |kind: &str| {
        let (_, rest) = page.split_once(&format!("```{kind}\n")).unwrap();
        rest[..=rest.find("\n```\n").unwrap()].to_owned()
    };
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("executed.yaml", block("yaml")), ("problems.jsonl", block("json"))] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let svg = galeras_in(folder.path(), &["graph", "executed.yaml", "--format", "svg"]);
    fresh("docs/gallery/workflow.svg", &svg);
}

/// A text with one space between its words, however it is broken and indented.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Each kind of figure is drawn by the shipped workflow, and shown on a page with the step that
/// draws it.
#[test]
fn the_gallery_is_fresh() {
    let operator = galeras(&["ops", "figure"]);
    let kinds = operator.lines().find_map(|line| line.strip_prefix("- `kind`: ")).unwrap();
    let (kinds, _) = kinds.split_once(", required").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let workflow = root().canonicalize().unwrap().join("workflows/gallery.yaml");
    galeras_in(folder.path(), &["run", workflow.to_str().unwrap()]);
    let page = fs::read_to_string(root().join("docs/gallery.md")).unwrap();
    for kind in kinds.split(" or ") {
        let svg = fs::read_to_string(folder.path().join(format!("gallery/{kind}.svg")));
        let svg = svg.unwrap_or_else(|error| panic!("no output is a {kind}: {error}"));
        assert!(svg.len() < 40_000, "{kind} has {} bytes", svg.len());
        fresh(&format!("docs/gallery/{kind}.svg"), &svg);
        assert!(page.contains(&format!("(gallery/{kind}.svg)")), "the page lacks the {kind}");
    }
    let text = fs::read_to_string(workflow).unwrap();
    let text = words(&text.replace("theme: \"${{ params.theme }}\"", ""));
    for step in page.split("```yaml").skip(1) {
        let step = step.split("```").next().unwrap();
        assert!(text.contains(&words(step)), "not a step of workflows/gallery.yaml:{step}");
    }
}
