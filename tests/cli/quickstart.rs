//! The way of a newcomer: `init`, `run`, look around. The only tests on the whole corpus.

use serde_json::{Value, json};

use crate::harness::{Project, flat, says, text};
use crate::model_comparisons::{average, effects_are_right, mean, paired, same_rounded};
use crate::paper::table;
use crate::repository::{Repository, at, day};

const QUICKSTART: &str = include_str!("../../workflows/quickstart.yaml");

/// The rows of the table of scores: what comes after the cut, then some of the whole.
#[rustfmt::skip]
const SCORES: [&str; 10] = [
    "bleu", "chrf", "codebleu", "exact_match", "levenshtein", "parses", "rouge_l", "similarity",
    "whole_bleu", "whole_similarity",
];

#[test]
fn what_init_writes_runs() {
    let project = Project::empty();
    project.run(&["init", "first"]).exits(0).prints(&["  cd first\n  galeras run workflow.yaml\n"]);
    assert!(!project.read("first/workflow.yaml").contains("quickstart.yaml"));
    project.run(&["check", "first/workflow.yaml"]).exits(0);
    let file = "first/workflow.yaml";
    let run = |set: &str| {
        project.run(&["run", file, "--format", "json", "--out", "first", "--set", set]).exits(0)
    };
    let first = run("n=50");
    assert!(first.step("methods")["rows"].as_u64().unwrap() > 10_000, "{first}");
    assert_eq!(first.step("testbed")["rows"], 50);
    assert_eq!(first.step("table_1")["rows"], 8);
    assert_eq!(first.events("assertion").len(), 0, "{first}");
    let kept = first.step("valid")["rows"].as_u64().unwrap();
    let rejected = project.read("first/quickstart/rejected.jsonl");
    let methods = first.step("features")["rows"].as_u64().unwrap();
    assert_eq!(kept + rejected.lines().count() as u64, methods);
    assert!(project.path("first/quickstart/testbed.parquet").exists());
    assert_eq!(project.read("first/quickstart/table_1.csv").lines().count(), 9);
    for step in ["prompts", "answers", "scores", "whole_scores"] {
        assert_eq!(first.step(step)["rows"], 150, "{step}: three treatments");
    }
    assert_eq!(first.step("whole_baselines")["rows"], 100, "two baselines");
    let table = project.read("first/quickstart/table_2.csv");
    assert_eq!(table.lines().count(), 1 + SCORES.len());
    assert_eq!(table.lines().next(), Some("score,echo,control,T1,T2,reference,of_the_way"));

    // Git sees what was written by hand, and nothing else.
    let script = "cd first && git init -q && git status --porcelain --untracked-files=all";
    assert_eq!(project.sh(script).exits(0).stdout, "?? .gitignore\n?? workflow.yaml\n");

    // Again: nothing runs. A larger testbed: only what hangs on the number.
    run("n=50").all_hit_as(&first);
    let larger = run("n=60");
    assert_eq!(
        larger.statuses(),
        "methods=hit features=hit valid=hit unique=hit sampled=ran testbed=ran table_1=ran \
         prompts=ran answers=ran echo=ran best=ran baselines=ran scores=ran baseline_scores=ran \
         whole_scores=ran whole_baselines=ran table_2=ran effects=ran figure=ran"
    );
    let testbed = larger.step("testbed");
    assert_eq!((&testbed["computed_rows"], &testbed["reused_rows"]), (&10.into(), &50.into()));

    // A row leads back to its file; so does a score, by way of its prompt.
    let traced = |step: &str| {
        let row = project.json(&["show", file, step, "--set", "n=60", "--rows", "1"]).remove(0);
        let traced = project.run(&["trace", file, text(&row, "id"), "--set", "n=60"]).exits(0);
        (row, traced.stdout)
    };
    let (row, told) = traced("testbed");
    says(&told, &[text(&row, "path"), "python-stdlib"]);
    let (score, told) = traced("scores");
    says(&told, &["prompt_id", "snippet_id", "path"].map(|column| text(&score, column)));
    assert_eq!(told.matches("made from row").count(), 2, "{told}");
}

#[test]
fn the_quickstart_goes_from_methods_to_scores_without_a_server() {
    let project = Project::new(QUICKSTART);
    let set = ["--set", "n=30"];
    let shown = project.run(&[&["run", "w.yaml"], &set[..]].concat()).exits(0);
    let rows = |step: &str| project.json(&[&["show", "w.yaml", step], &set[..]].concat());
    let scores = rows("whole_scores");
    assert_eq!(rows("testbed").len(), 30);
    paired(&scores, 30);
    for rejects in ["prompts.rejects", "answers.rejects", "echo.rejects", "best.rejects"] {
        assert!(rows(rejects).is_empty(), "{rejects}");
    }
    for row in &scores {
        assert!(text(row, "prediction").starts_with(text(row, "random_cut").trim_end()), "{row}");
        // The shown part of a method earns no score.
        assert!(row["bleu"].as_f64() <= row["whole_bleu"].as_f64(), "{row}");
    }
    // A model that learned a method would continue with the rest of it.
    let exact = scores.iter().filter(|row| row["exact_match"] == 1).count();
    assert!(exact <= 9, "{exact} of 90 methods were known");

    // An echo has written nothing, the reference all: on every row, and in what is printed.
    let baselines = rows("whole_baselines");
    let of = |name: &str| -> Vec<Value> {
        baselines.iter().filter(|row| row["baseline"] == name).cloned().collect()
    };
    let (echo, best) = (of("echo"), of("reference"));
    assert_eq!((echo.len(), best.len()), (30, 30));
    for (echo, best) in echo.iter().zip(&best) {
        for score in ["bleu", "chrf", "similarity", "exact_match"] {
            let both = (echo[score].as_f64(), best[score].as_f64());
            assert_eq!(both, (Some(0.0), Some(1.0)), "{score}: {echo}");
        }
        let whole = echo["whole_similarity"].as_f64().unwrap();
        assert!(0.2 < whole && whole < 0.9, "shown is what is whole: {echo}");
        let code = text(echo, "code");
        let rest = code.strip_prefix(text(echo, "random_cut")).unwrap().trim();
        assert_eq!(echo["levenshtein"], rest.chars().count(), "{echo}");
        assert_eq!(best["levenshtein"], 0);
    }
    let printed = table(&project.read("quickstart/table_2.csv"));
    let names: Vec<&str> = printed.iter().map(|line| line["score"].as_str()).collect();
    assert_eq!(names, SCORES);
    for line in &printed {
        let score = line["score"].as_str();
        let number = |column: &str| line[column].parse::<f64>().unwrap();
        for treatment in ["control", "T1", "T2"] {
            same_rounded(&line[treatment], mean(&scores, treatment, score), score);
        }
        for (column, rows) in [("echo", &echo), ("reference", &best)] {
            same_rounded(&line[column], average(rows, score), score);
        }
        let (low, high) = (number("echo"), number("reference"));
        let way = (number("control") - low) / (high - low);
        assert!((number("of_the_way") - way).abs() < 0.01, "{line:?}");
        // The line is on the screen as well, with both ends.
        let told = shown.stdout.lines().find(|told| told.starts_with(&format!("{score} ")));
        let told: Vec<&str> = told.unwrap().split_whitespace().collect();
        assert_eq!(told.len(), 7, "{told:?}");
        for (told, column) in [(told[1], "echo"), (told[5], "reference")] {
            // The screen shows six digits.
            let shown = told.parse::<f64>().unwrap();
            assert!((shown - number(column)).abs() <= 1e-3, "{score}: {column} {shown}");
        }
        if ["bleu", "chrf", "similarity"].contains(&score) {
            assert_eq!((told[1], told[5]), ("0", "1"), "{told:?}");
        }
    }
    effects_are_right(&project.read("quickstart/effects.csv"), &scores, 5);
    says(&shown.stdout, &["table_1 (", "table_2 (", "control", "T1", "T2", "codebleu"]);
    // The scores of all answers as one text, for each treatment.
    let corpus = rows("scores.corpus");
    assert_eq!(corpus.len(), 3 * 10);
    assert!(corpus.iter().all(|row| row["rows"] == 30), "{corpus:?}");
    // Again: nothing is computed.
    project.run(&[&["run", "w.yaml", "--format", "json"], &set[..]].concat()).exits(0).all_hit();
}

/// Every template is right as it is written, and those that need no server run.
#[test]
fn templates_are_workflows_to_start_from() {
    let project = Project::empty();
    let problem = json!({
        "task_id": "HumanEval/0", "prompt": "def f(a):\n    \"\"\"Add one.\"\"\"\n",
        "entry_point": "f", "canonical_solution": "    return a + 1\n",
        "test": "def check(candidate):\n    assert candidate(1) == 2\n",
    });
    project.write("humaneval/HumanEval.jsonl", format!("{problem}\n"));
    let code = "def a(x):\n    y = x + 1\n    return y\n\n\ndef b(x):\n    return [x] * 2\n";
    project.write("own-code/m.py", code);
    let repository = Repository::bare(project.path("mining/r"));
    repository.commit(at(day(1)).message("Add the first module").write("m.py", code));
    let names = ["completion", "compare", "mining", "humaneval", "judge", "own-code"];
    for name in names {
        project.run(&["init", name, "--template", name]).exits(0);
        project.run(&["check", &format!("{name}/workflow.yaml")]).exits(0);
    }
    // The things that are not there yet are named, when it is written and when they are missing.
    project.run(&["init", "h", "--template", "humaneval"]).exits(0).prints(&[
        "it needs HumanEval.jsonl and a server",
        "\n  galeras run workflow.yaml --set model=NAME",
    ]);
    let checked = project.run(&["check", "h/workflow.yaml"]).exits(2);
    says(&flat(&checked.stderr), &["`--set path=PATH` names another, from the current folder"]);
    let run = |name: &str, set: &[&str]| {
        let file = format!("{name}/workflow.yaml");
        let set = set.iter().flat_map(|set| ["--set", *set]);
        let args: Vec<&str> = ["run", file.as_str()].into_iter().chain(set).collect();
        project.run(&args).exits(0)
    };
    let done = run("own-code", &[]).prints(&["nloc", "too_short"]);
    done.reports(&["2 of 2 rows have fewer than 20 tokens and are not compared"]);
    assert_eq!(table(&project.read("own-code/table.csv"))[0]["n"], "2");
    run("completion", &["n=12"]).prints(&["chrf"]);
    says(&project.read("completion/effects.tex"), &["\\toprule", "chrf & "]);
    says(&project.read("completion/scores.svg"), &["<svg", "similarity"]);
    run("mining", &["repos=./mining/r", "since=2022-01-01", "until=2023-01-01"]);
    assert_eq!(table(&project.read("mining/table.csv"))[0]["n"], "1", "`b` has one line");
}

/// Every line of the README's runs of the quickstart is what the program prints, but for times and ids.
#[test]
fn the_readme_shows_what_the_program_prints() {
    const RUN: &str = "```console\n$ galeras run workflows/quickstart.yaml\n";
    let readme = include_str!("../../README.md");
    let blocks = readme.split(RUN).skip(1).map(|rest| rest.split("```").next().unwrap());
    let project = Project::empty().with("workflows/quickstart.yaml", QUICKSTART);
    project.write("cache/README.md", "");
    for (block, cut) in blocks.zip(["max: 0.65", "max: 0.7"]) {
        project.write("workflows/quickstart.yaml", QUICKSTART.replace("max: 0.65", cut));
        let outcome = project.run(&["run", "workflows/quickstart.yaml"]).exits(0);
        let lines: Vec<String> =
            outcome.stdout.lines().chain(outcome.stderr.lines()).map(flat).collect();
        for line in block.lines().map(flat).filter(|line| line != "…") {
            // `methods ran 16,596 rows 1.60 s NEW`, `quickstart: 19 steps, run ID`.
            let words: Vec<&str> = line.split(' ').collect();
            let parts = match (words.iter().position(|word| *word == "s"), words.as_slice()) {
                (Some(at), _) => vec![words[..at - 1].join(" "), words[at + 1..].join(" ")],
                (None, ["quickstart:", ..]) => vec!["quickstart: 19 steps, run ".to_string()],
                (None, _) => vec![line.clone()],
            };
            let is_printed = |shown: &String| parts.iter().all(|part| shown.contains(part));
            assert!(lines.iter().any(is_printed), "{line:?} in {outcome}");
        }
    }
}

#[test]
fn init_overwrites_nothing() {
    let project = Project::empty().with("workflow.yaml", "mine");
    let help = "workflow.yaml already exists, and nothing was written; name another folder";
    project.run(&["init"]).exits(2).reports(&[help]);
    assert_eq!(project.read("workflow.yaml"), "mine");
    project.write("other/.gitignore", "mine\n");
    project.run(&["init", "other"]).exits(0).prints(&["lines to other/.gitignore"]);
    let ignored = project.read("other/.gitignore");
    assert!(ignored.starts_with("mine\n# galeras\n/cache/\n"), "{ignored}");
    // Entries that are there already are not added, however they are written.
    project.write("third/.gitignore", ignored.replace('/', ""));
    project.run(&["init", "third"]).exits(0);
    assert_eq!(project.read("third/.gitignore"), ignored.replace('/', ""));
    project.write("file", "");
    project.run(&["init", "file"]).exits(2).reports(&["file is a file; name the folder"]);
}

const JSON: &str =
    "  methods: { op: methods, with: { corpus: python-stdlib, include: ['json/*.py'] } }\n";

#[test]
fn part_of_the_corpus_is_chosen_by_pattern() {
    let rows = Project::steps(JSON).ran().rows("methods");
    assert!(rows.len() > 10 && rows.iter().all(|r| text(r, "path").starts_with("json/")));
    assert!(rows.iter().all(|r| r["repo"] == "python-stdlib"), "{rows:?}");
    assert!(rows.iter().any(|r| r["qualified_name"] == "JSONEncoder.encode"));
    // People see a line per step and a summary.
    let outputs = "outputs:\n  methods: { from: methods, path: methods.csv }\n";
    let project = Project::steps(&format!("{JSON}{outputs}"));
    let shown = project.run(&["run", "w.yaml"]).exits(0);
    assert!(shown.stdout.is_empty(), "{shown}");
    says(&shown.stderr, &["methods", "ran", "NEW", "rows", "methods.csv"]);
    assert!(!shown.stderr.contains('\u{1b}'), "no colours: {shown}");
    assert!(shown.stderr.lines().all(|l| l.chars().count() <= 80), "{shown}");
    let again = project.run(&["run", "w.yaml"]).exits(0);
    assert!(again.stderr.contains("hit") && !again.stderr.contains("NEW"), "{again}");
}
