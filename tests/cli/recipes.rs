//! The pages of the manual with a whole workflow: each runs on loopback, as a reader would run it.

use std::collections::BTreeMap;

use serde_json::json;

use crate::harness::{Project, every, says, text};
use crate::paper::table;
use crate::repository::{Repository, at, day};
use galeras_test_servers::chat_api::{ChatApi, ChatFault, ChatRequest};

const EXECUTED: &str = include_str!("../../docs/first-executed-benchmark.md");
const JSONL: &str = include_str!("../../docs/recipes/jsonl.md");
const METRIC: &str = include_str!("../../docs/recipes/own-metric.md");
const ENTERPRISE: &str = include_str!("../../docs/recipes/github-enterprise.md");
const CAUSAL_EFFECTS: &str = include_str!("../../docs/causal-effects.md");
const ERROR_BARS: &str = include_str!("../../docs/error-bars.md");
const MODELS: &str = include_str!("../../docs/models-and-scores.md");
const WORKFLOW_FILE: &str = include_str!("../../docs/workflow-file.md");

/// The address of the model's server on the pages.
const SERVER: &str = "http://localhost:8000/v1";

const TOTAL: &str = "def total(values):\n    result = 0\n    for value in values:\n        \
                     result += value\n    return result\n";
const REPORT: &str = "def report(rows, out):\n    total = 0\n    for name, price, count in rows:\n        \
                      line = name.ljust(20) + str(price * count)\n        out.write(line)\n        \
                      total += price * count\n    out.write(str(total))\n    return total\n";

/// The first block of a page that is marked with this word.
fn block<'a>(page: &'a str, kind: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("```{kind}\n")).unwrap();
    &rest[..=rest.find("\n```\n").unwrap()]
}

/// The workflow of a page, with another server.
fn workflow(page: &str, server: &str) -> String {
    block(page, "yaml").replace(SERVER, server)
}

/// A verdict for a judge, and a right answer to the problems of the recipes.
fn answer(asked: &ChatRequest) -> String {
    let is_judged = asked.last().contains("VERDICT");
    let answer = if is_judged {
        "It does.\nVERDICT: yes"
    } else {
        "```python\ndef double(x):\n    return 2 * x\n```"
    };
    answer.to_owned()
}

fn server() -> ChatApi {
    let api = ChatApi::start();
    api.script(|asked| {
        Some(ChatFault::Message(json!({"role": "assistant", "content": answer(asked)})))
    });
    api
}

/// A page, the files that it needs, values of params, and words in a file that it writes.
struct Recipe {
    page: &'static str,
    files: Vec<(&'static str, String)>,
    set: &'static [&'static str],
    output: &'static str,
    words: &'static [&'static str],
}

fn recipes() -> Vec<(&'static str, Recipe)> {
    let code = || vec![("src/a.py", TOTAL.to_owned()), ("src/b.py", REPORT.to_owned())];
    let seen = format!("{}\n", json!({"name": "known", "code": REPORT}));
    let scores = "problem,model,prompt,chrf\n1,small,plain,0.5\n2,small,plain,0.25\n\
                  1,small,long,0.5\n2,small,long,0.75\n1,large,plain,0.75\n2,large,plain,0.5\n\
                  1,large,long,0.5\n2,large,long,0.25\n";
    vec![
        (
            "own-code",
            Recipe {
                page: include_str!("../../docs/recipes/own-code.md"),
                files: code(),
                set: &[],
                output: "own-code/table.csv",
                words: &["qwen2.5-coder", "exact_match", "ci_low"],
            },
        ),
        (
            "few-shot",
            Recipe {
                page: include_str!("../../docs/recipes/few-shot.md"),
                files: vec![],
                set: &["n=10"],
                output: "few-shot/table.csv",
                words: &["no_shots", "two_shots", "similarity"],
            },
        ),
        (
            "own-metric",
            Recipe {
                page: METRIC,
                files: vec![("metric.py", block(METRIC, "python").to_owned())],
                set: &[],
                output: "own-metric/table.csv",
                words: &["longest_line", "json/decoder.py"],
            },
        ),
        (
            "contamination",
            Recipe {
                page: include_str!("../../docs/recipes/contamination.md"),
                files: [code(), vec![("seen.jsonl", seen)]].concat(),
                set: &[],
                output: "contamination/found.csv",
                words: &["report", "known"],
            },
        ),
        (
            "paper-table",
            Recipe {
                page: include_str!("../../docs/recipes/paper-table.md"),
                files: vec![("scores.csv", scores.to_owned())],
                set: &[],
                output: "paper/means.tex",
                words: &["\\toprule", "\\label{tab:means}", "95 \\% interval"],
            },
        ),
    ]
}

#[test]
fn the_recipes_run() {
    let api = server();
    every(recipes(), |recipe| {
        let project = Project::new(&workflow(recipe.page, &api.url()));
        for (name, content) in &recipe.files {
            project.write(name, content);
        }
        project.run_file("w.yaml", recipe.set).exits(0);
        says(&project.read(recipe.output), recipe.words);
        project.run_file("w.yaml", recipe.set).exits(0).all_hit();
    });
}

fn row_of(project: &Project, output: &str) -> BTreeMap<String, String> {
    let mut rows = table(&project.read(output));
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows.remove(0)
}

#[test]
fn the_tutorial_counts_the_answers_that_pass() {
    let project = Project::new(block(EXECUTED, "yaml"));
    project.write("problems.jsonl", block(EXECUTED, "json"));
    let reference = "{ provider: reference, reference: solution }";
    let echo =
        EXECUTED.split("    with: ").find(|part| part.starts_with("{ provider: echo")).unwrap();
    let echo = echo.lines().next().unwrap();
    // Wilson's interval of two problems, all or none of them: 2 / (2 + z²) with z of 97.5 %.
    let reach = 2.0 / (2.0 + 1.959_963_984_540_054_f64.powi(2));
    let check = |mean: f64, low: f64, high: f64| {
        let row = project.only("table");
        for (name, wanted) in [("mean", mean), ("ci_low", low), ("ci_high", high)] {
            assert!((row[name].as_f64().unwrap() - wanted).abs() < 1e-9, "{name} {wanted}: {row}");
        }
    };
    project.run_ok(&[]);
    check(1.0, reach, 1.0);
    project.rerun(reference, echo);
    check(0.0, 0.0, 1.0 - reach);
}

#[test]
fn problems_in_json_lines_become_pass_at_k() {
    let api = server();
    let project = Project::new(&workflow(JSONL, &api.url()));
    project.write("problems.jsonl", block(JSONL, "json"));
    project.run_file("w.yaml", &["samples=3", "k=2"]).exits(0);
    assert_eq!(api.take().len(), 3);
    let row = row_of(&project, "problems/table.csv");
    assert_eq!((&*row["column"], &*row["n"], &*row["mean"]), ("pass_at_k", "1", "1.0"));
    // Tests in a list, as the page joins them.
    let joined = "tests: \"{{ tests | join('\\n') }}\"";
    assert!(JSONL.contains(joined));
    project.edit("problems.jsonl", r#""assert double(3) == 6\n""#, r#"["assert double(3) == 6"]"#);
    project.change("tests: utf8", "tests: list<utf8>");
    project.change("tests: \"{{ tests }}\"", joined);
    project.run_file("w.yaml", &["samples=3", "k=2"]).exits(0);
    assert_eq!(&*row_of(&project, "problems/table.csv")["mean"], "1.0");
    // A solution that fails its tests ends the run.
    project.edit("problems.jsonl", "return 2 * x", "return 3 * x");
    project.run_file("w.yaml", &["samples=3", "k=2"]).exits(3);
}

#[test]
fn answers_of_another_program_are_counted() {
    let page = workflow(JSONL, SERVER);
    let (before, rest) = page.split_once("  answers:\n").unwrap();
    let (_, after) = rest.split_once("  executed:").unwrap();
    let project = Project::new(&format!("{before}{}  executed:{after}", steps(JSONL, 1)));
    project.write("problems.jsonl", block(JSONL, "json"));
    let (_, second) = JSONL.split_once("put its answers into").unwrap();
    project.write("answers.jsonl", block(second, "json"));
    project.run_file("w.yaml", &["samples=2"]).exits(0);
    // One of two answers is right.
    assert_eq!(&*row_of(&project, "problems/table.csv")["mean"], "0.5");
}

#[test]
fn verdicts_of_a_model_are_compared_with_those_of_people() {
    let api = server();
    let project = Project::empty();
    project.run(&["init", "judge", "--template", "judge"]).exits(0);
    let file = "judge/workflow.yaml";
    let set = ["n=5".to_owned(), format!("base_url={}", api.url())];
    project.run_file(file, &set).exits(0);
    assert_eq!(api.count(), 5);
    let drawn = project.rows_of(file, "sampled", &set);
    let line = |id: &str| {
        format!(
            "{}\n",
            json!({"id": id, "question": "right", "answer": "no", "time": "2026-01-01T00:00:00Z"})
        )
    };
    project.write(
        "judge/ratings/ann.jsonl",
        drawn.iter().map(|row| line(text(row, "id"))).collect::<String>(),
    );
    project.edit(file, " }   # , ratings: ratings", ", ratings: ratings }");
    project.run_file(file, &set).exits(0);
    let row = project.rows_of(file, "verdicts.agreement", &set).remove(0);
    assert_eq!((&row["labelled"], &row["false_yes"]), (&json!(5), &json!(5)), "{row}");
}

/// The search needs a server, the list that replaces it does not.
#[test]
fn repositories_of_a_list_are_mined_by_the_page_on_github_enterprise() {
    let project = Project::new(block(ENTERPRISE, "yaml"));
    project.change("since: 2025-01-01, until: 2026-01-01", "since: 2022-01-01, until: 2023-01-01");
    let repository = Repository::bare(project.path("r"));
    repository.commit(at(day(1)).message("Add the first module").write("m.py", TOTAL));
    project.run_file("w.yaml", &["repos=./r"]).exits(0);
    assert_eq!(project.rows_of("w.yaml", "methods", &["repos=./r"]).len(), 1);
}

/// Lines as steps of a workflow.
fn indented<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.map(|line| format!("  {line}\n")).collect()
}

/// The blocks of a page as steps, without the first ones.
fn steps(page: &str, skipped: usize) -> String {
    let blocks = page.split("```yaml\n").skip(1 + skipped);
    indented(blocks.flat_map(|rest| rest[..rest.find("\n```").unwrap()].lines()))
}

#[test]
fn steps_of_other_pages_fit_the_tables_that_the_pages_describe() {
    let answers = json!({
        "problem": "p1", "repo": "r", "model": "small", "prompt": "plain", "passed": true,
    });
    let scores = json!({
        "treatment": "control", "snippet_id": "a", "bleu": 0.5, "codebleu": 0.25, "nloc": 4,
        "control_prompt_size": 9, "ast_levels": 5,
    });
    let testbed =
        json!({"code": "def f():\n    return 1\n", "random_cut": "def f():", "fun_name": "f"});
    let read = |name: &str| format!("  {name}: {{ op: read, with: {{ path: data.jsonl }} }}\n");
    let (_, baselines) = MODELS.split_once("## Add baselines").unwrap();
    let asked = [block(MODELS, "yaml"), block(baselines, "yaml")];
    let asked = read("testbed") + &indented(asked.iter().flat_map(|steps| steps.lines()));
    let prompts =
        "  prompts: { op: prompt, from: testbed, with: { treatments: { a: '{{ code }}' } } }\n";
    let matrices = read("testbed") + prompts + &steps(WORKFLOW_FILE, 1);
    let causal = read("scores") + &indented(block(CAUSAL_EFFECTS, "yaml").lines());
    for (steps, data) in [
        (read("scores") + &read("pilot") + &steps(ERROR_BARS, 0), answers),
        (causal, scores),
        (asked, testbed.clone()),
        (matrices, testbed),
    ] {
        let project = Project::steps(&steps).with("data.jsonl", format!("{data}\n"));
        project.run(&["check", "w.yaml"]).exits(0);
    }
    Project::new(block(WORKFLOW_FILE, "yaml")).run(&["check", "w.yaml"]).exits(0);
}
