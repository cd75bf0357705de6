//! The page "Run the code" and `workflows/humaneval.yaml`: from published problems to pass@k, without a
//! model. The published solution passes every test, an echo of the question none.

use serde_json::json;

use crate::harness::{Project, says, text};
use crate::paper::table;
use galeras_test_servers::chat_api::{ChatApi, ChatFault, ChatRequest};

const PAGE: &str = include_str!("../../docs/pass-at-k.md");

/// The shipped problems, in the form of each benchmark.
const PROBLEMS: [(&str, &str); 3] = [
    ("humaneval", include_str!("../../workflows/problems/humaneval.jsonl")),
    ("humaneval_plus", include_str!("../../workflows/problems/humaneval_plus.jsonl")),
    ("mbpp", include_str!("../../workflows/problems/mbpp.jsonl")),
];

fn workflow() -> &'static str {
    let (_, rest) = PAGE.split_once("```yaml\n").unwrap();
    &rest[..=rest.find("\n```\n").unwrap()]
}

#[test]
fn the_page_leads_from_problems_to_a_table_and_a_figure() {
    assert!(workflow().lines().count() <= 25);
    let project = Project::new(workflow()).with("problems.jsonl", PROBLEMS[0].1);
    project.change("HumanEval.jsonl.gz", "problems.jsonl");
    let mut asked = "model: qwen2.5-coder, base_url: \"http://localhost:8000/v1\"".to_owned();
    // Wilson's interval of three problems, all or none of them: 3 / (3 + z²) with z of 97.5 %.
    let reach = 3.0 / (3.0 + 1.959_963_984_540_054_f64.powi(2));
    for (answers, mean, low, high) in [
        ("model: best, provider: reference, reference: canonical_solution", 1.0, reach, 1.0),
        ("model: echo, provider: echo, given: context", 0.0, 0.0, 1.0 - reach),
    ] {
        project.rerun(&asked, answers);
        answers.clone_into(&mut asked);
        let row = project.rows("pass").remove(0);
        assert_eq!((&row["n"], &row["n_clusters"]), (&15.into(), &3.into()), "{row}");
        for (name, wanted) in [("mean", mean), ("ci_low", low), ("ci_high", high)] {
            assert!((row[name].as_f64().unwrap() - wanted).abs() < 1e-9, "{name} {wanted}: {row}");
        }
        assert!(project.read("pass.svg").contains("<svg"));
        assert_eq!(table(&project.read("pass.csv")).len(), 1);
    }
}

#[test]
fn the_other_steps_of_the_page_fit_its_workflow() {
    let more = PAGE.split("```yaml\n").skip(2).map(|rest| &rest[..rest.find("\n```").unwrap()]);
    let steps: String = more.flat_map(str::lines).map(|line| format!("  {line}\n")).collect();
    let project = Project::new(workflow()).with("problems.jsonl", PROBLEMS[0].1);
    project.change("HumanEval.jsonl.gz", "problems.jsonl");
    project.change("\noutputs:", &format!("\n{steps}outputs:"));
    project.run(&["check", "w.yaml"]).exits(0);
}

/// A project with the shipped workflow and its problems.
fn shipped() -> Project {
    let project = Project::empty();
    for (name, text) in [
        ("humaneval.yaml", include_str!("../../workflows/humaneval.yaml")),
        ("problems.yaml", include_str!("../../workflows/problems.yaml")),
    ] {
        project.write(name, text);
    }
    for (format, text) in PROBLEMS {
        project.write(&format!("problems/{format}.jsonl"), text);
    }
    project
}

#[test]
fn published_solutions_pass_in_every_published_form_and_echoes_do_not() {
    let project = shipped();
    for (format, _) in PROBLEMS {
        let set = [format!("format={format}"), format!("path=problems/{format}.jsonl")];
        project.run_file("humaneval.yaml", &set).exits(0);
        let board = table(&project.read("humaneval/leaderboard.csv"));
        // Three scores of two baselines under two prompts.
        assert_eq!(board.len(), 12, "{format}");
        for line in &board {
            // Clopper and Pearson's interval of 3 of 3: 0.025^(1/3) to 1.
            let wanted = match line["model"].as_str() {
                "reference" => ("1.0", "0.2924", "1.0"),
                _ => ("0.0", "0.0", "0.7076"),
            };
            let found = (&*line["mean"], &*line["ci_low"], &*line["ci_high"]);
            assert_eq!(found, wanted, "{format}: {line:?}");
            assert_eq!(line["problems"], "3");
        }
        assert_eq!(table(&project.read("humaneval/broken.csv")).len(), 0, "{format}");
        project.run_file("humaneval.yaml", &set).exits(0).all_hit();
    }
    // A file of another form is refused.
    let set = ["format=mbpp".to_owned(), "path=problems/humaneval.jsonl".to_owned()];
    project.run_file("humaneval.yaml", &set).exits(1);
    // The baselines answer once, so that there is no pass@2: of 2 models, 2 prompts and 3 problems.
    let outcome = project.run_file("humaneval.yaml", &["k=2".to_owned()]).exits(0);
    says(&outcome.warnings().join("\n"), &["`pass_at_k` is null in all 12 rows and has no mean"]);
    says(text(&outcome.events("assertion")[0], "message"), &["n >= 2: 12 rows do not"]);
}

/// A right program for seeds that are even.
fn answer(asked: &ChatRequest) -> String {
    let programs = [
        (
            "running_total",
            "    return [sum(given[0][:at]) for at in range(1, len(given[0]) + 1)]\n",
        ),
        ("vowels", "    return sum(given[0].lower().count(letter) for letter in 'aeiou')\n"),
        ("middle", "    return (given[0] + given[1]) / 2\n"),
    ];
    let said = asked.said().join("\n");
    let (name, body) = programs.iter().find(|(name, _)| said.contains(*name)).unwrap();
    let is_right = asked.body["seed"].as_i64().unwrap() % 2 == 0;
    let body = if is_right { *body } else { "    return None\n" };
    format!("Here it is:\n```python\ndef {name}(*given):\n{body}```\n")
}

#[test]
fn answers_of_models_are_counted_by_problem_and_more_samples_ask_only_for_them() {
    let api = ChatApi::start();
    api.script(|asked| {
        Some(ChatFault::Message(json!({"role": "assistant", "content": answer(asked)})))
    });
    let project = shipped();
    let price = "price: { input: 0, output: 0 }";
    let models =
        format!("models=[{{ name: m, base_url: \"{}\", api_key_env: \"\", {price} }}]", api.url());
    // Seeds 42 and 44 are right, 43 is not: one of two answers, then two of three.
    for (samples, asked, [one, any, all]) in
        [(2, 12, ["0.5", "1.0", "0.0"]), (3, 6, ["0.6667", "1.0", "0.3333"])]
    {
        let set =
            [models.clone(), "answers=models".into(), "k=2".into(), format!("samples={samples}")];
        project.run_file("humaneval.yaml", &set).exits(0);
        assert_eq!(api.take().len(), asked);
        let board = table(&project.read("humaneval/leaderboard.csv"));
        assert_eq!(board.len(), 6);
        for line in &board {
            let wanted = match line["score"].as_str() {
                "pass_at_1" => one,
                "pass_at_k" => any,
                _ => all,
            };
            assert_eq!(line["mean"], wanted, "{line:?}");
        }
    }
}
