//! The page "Your first benchmark": the workflow in it, on loopback.

use std::collections::BTreeSet;

use crate::harness::Project;
use galeras_test_servers::chat_api::ChatApi;

const PAGE: &str = include_str!("../../docs/first-benchmark.md");

fn workflow() -> &'static str {
    let (_, rest) = PAGE.split_once("```yaml\n").unwrap();
    // The prompt in it has its own fence, which is indented.
    &rest[..=rest.find("\n```\n").unwrap()]
}

#[test]
fn the_page_has_a_benchmark_that_runs() {
    let api = ChatApi::start();
    let project = Project::new(workflow());
    let model = |name: &str| {
        format!("{{name: {name}, base_url: \"{}\", price: {{input: 1, output: 4}}}}", api.url())
    };
    let models = format!("models=[{}]", ["small", "medium", "large"].map(model).join(", "));
    let set = ["--set", models.as_str(), "--set", "n=6"];
    let run = |args: &[&str]| project.run(&[args, &set[..]].concat()).exits(0);
    run(&["check", "w.yaml"]);
    // The prompts cost nothing, and then a plan knows what the answers do.
    run(&["run", "w.yaml", "--select", "prompts"]);
    assert_eq!(api.count(), 0);
    assert!(run(&["plan", "w.yaml"]).stdout.contains("requests"));
    assert!(run(&["run", "w.yaml"]).stdout.contains("ci_low"));
    // Two seeds may cut a short method at the same place: equal prompts share their answer.
    let asked = api.take();
    let texts: BTreeSet<(String, String)> =
        asked.iter().map(|a| (a.body["model"].to_string(), a.last())).collect();
    assert_eq!(asked.len(), texts.len());
    assert!((3 * 3 * 6..=3 * 2 * 3 * 6).contains(&asked.len()), "{}", asked.len());
    let table = project.read("my-benchmark/by_cell.csv");
    let mut lines = table.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    for column in ["share", "seed", "model", "mean", "ci_low", "ci_high", "n_clusters"] {
        assert!(header.contains(&column), "{column}: {header:?}");
    }
    let cells: BTreeSet<String> =
        lines.map(|line| line.split(',').take(3).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(cells.len(), 18, "{cells:?}");
    // A larger sample asks only for the new rows.
    let more = ["--set", models.as_str(), "--set", "n=7"];
    project.run(&[&["run", "w.yaml"][..], &more[..]].concat()).exits(0);
    assert!((9..=18).contains(&api.count()), "{}", api.count());
}
