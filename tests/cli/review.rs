//! `review`: ratings in files, how far people agree, which rows leave, what stops the step.

use serde_json::Value;

use crate::harness::{Outcome, Project, says};

const WORKFLOW: &str = r#"galeras: 1
params:
  min_kappa: { type: float, default: -1 }
  min_valid: { type: float, default: 0 }
  min_rated: { type: int, default: 0 }
steps:
  points: { op: read, with: { path: points.csv } }
  judged:
    op: review
    from: points
    with: &questions
      questions: { message: Does it say what?, code: Is it whole? }
      applies: { message: "message <> ''" }
      ratings: ratings
  gated:
    op: review
    from: points
    with:
      <<: *questions
      min_kappa: "${{ params.min_kappa }}"
      min_valid: "${{ params.min_valid }}"
      min_rated: "${{ params.min_rated }}"
  after: { op: sql, from: gated, with: { query: SELECT id FROM input, key: [id] } }
"#;

fn project(points: usize) -> Project {
    let line = |n| format!("p{n:02},f{n},{}\n", if n % 3 == 2 { "\"\"" } else { "says" });
    let lines: String = (0..points).map(line).collect();
    let points = format!("id,code,message\n{lines}");
    Project::new(WORKFLOW).with("points.csv", points).with("ratings/README.md", "")
}

/// A file of answers to the question `code`, of the points from the first on.
fn file(project: &Project, rater: &str, answers: &str) {
    let line = |(n, answer): (usize, char)| {
        format!("{{\"id\":\"p{n:02}\",\"question\":\"code\",\"answer\":\"{answer}\"}}\n")
    };
    let text: String = answers.chars().enumerate().filter(|(_, c)| *c != '.').map(line).collect();
    project.write(&format!("ratings/{rater}.jsonl"), text);
}

#[track_caller]
fn agreement(project: &Project, question: &str) -> Value {
    let rows = project.rows("judged.agreement");
    rows.into_iter().find(|row| row["question"] == question).unwrap()
}

fn ids(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| row["id"].as_str().unwrap()).collect()
}

#[track_caller]
fn refused(project: &Project, reason: &str) -> Outcome {
    project.run_json(&[]).exits(2).prints(&[reason])
}

#[test]
fn nobody_has_rated_yet() {
    let project = project(6).ran();
    assert_eq!(project.rows("judged").len(), 6);
    assert!(project.rows("judged.rejects").is_empty() && project.rows("judged.answers").is_empty());
    let (code, message) = (agreement(&project, "code"), agreement(&project, "message"));
    assert_eq!((&code["points"], &message["points"]), (&6.into(), &4.into()));
    assert_eq!(code["rated"], 0);
    for name in ["yes", "agreement", "kappa", "alpha"] {
        assert!(code[name].is_null(), "{code}");
    }
    let sheet = project.rows("judged.sheet");
    for column in ["message_1", "message_2", "code_1", "code_2"] {
        assert_eq!(sheet[0][column], "", "{column}");
    }
}

#[test]
fn what_people_call_invalid_leaves_with_the_reason() {
    let project = project(8);
    file(&project, "ann", "ynynuy..");
    project.write(
        "ratings/ben.csv",
        "id,question,answer,note\np00,code,y,\np01,code,No,a fragment\np02,code,y,\np03,code,y,\n\
         p05,message,n,there is none\np06,message,n,\n",
    );
    let decided = r#"{"id":"p03","question":"code","answer":"yes","note":"it is whole"}"#;
    project.write("ratings/adjudicated.jsonl", format!("{decided}\n"));
    project.run_ok(&[]);
    assert_eq!(ids(&project.rows("judged")), ["p00", "p02", "p03", "p04", "p05", "p07"]);
    let gone =
        ["p01 | code | code: no by ann, ben (a fragment)", "p06 | message | message: no by ben"];
    assert_eq!(project.cells("judged.rejects", "id rule reason"), gone);
    let code = agreement(&project, "code");
    assert_eq!((&code["disagreements"], &code["undecided"]), (&1.into(), &0.into()));
    assert_eq!(code["rated_by_all"], 4);
    // A decision against both, and a rating that was taken back.
    file(&project, "adjudicated", "n");
    project.write("ratings/ben.csv", project.read("ratings/ben.csv") + "p06,message,,\n");
    project.run_ok(&[]);
    assert_eq!(ids(&project.rows("judged.rejects")), ["p00", "p01", "p03"]);
}

/// Kappa as of the same tables in the unit tests, which scikit-learn confirms.
#[test]
fn numbers_are_of_two_people_or_more() {
    let project = project(50);
    let people = |counts: [(usize, char, char); 4]| {
        let one: String = counts.iter().flat_map(|(n, a, _)| std::iter::repeat_n(*a, *n)).collect();
        let two: String = counts.iter().flat_map(|(n, _, b)| std::iter::repeat_n(*b, *n)).collect();
        (one, two)
    };
    let (ann, ben) = people([(20, 'y', 'y'), (5, 'y', 'n'), (10, 'n', 'y'), (15, 'n', 'n')]);
    file(&project, "ann", &ann);
    file(&project, "ben", &ben);
    project.run_ok(&[]);
    let row = agreement(&project, "code");
    for (name, wanted) in [("kappa", 0.4), ("agreement", 0.7), ("least_yes", 0.5), ("yes", 0.55)] {
        assert!((row[name].as_f64().unwrap() - wanted).abs() < 1e-11, "{name} of {row}");
    }
    assert!(row["kappa_low"].as_f64().unwrap() < 0.4 && row["kappa_high"].as_f64().unwrap() > 0.4);
    file(&project, "cas", &ann);
    project.run_ok(&[]);
    let row = agreement(&project, "code");
    assert!(row["kappa"].is_null() && row["alpha"].as_f64().unwrap() > 0.4, "{row}");
    assert_eq!((&row["raters"], &row["n_unsure"]), (&3.into(), &0.into()));
    // Gates stop the steps that follow, and name the missing ratings.
    let project = self::project(10);
    file(&project, "ann", "yyyyyyyyny");
    file(&project, "ben", "yyyyyyyyyn");
    for (set, told) in [
        ("min_kappa=0.6", "`code`: Cohen's kappa is -0.1111, and min_kappa asks for 0.6"),
        ("min_valid=0.95", "`code`: a rater says yes to 0.9 of the points, and min_valid asks"),
        // Three points have no message to rate.
        ("min_rated=4", "3 points have the answers of 2 people to all of their questions"),
        ("min_rated=4", "and min_rated asks for 4 (`message`: 0 of 7)"),
    ] {
        let outcome = project.run_json(&["--set", set]).exits(1).prints(&[told]);
        assert!(outcome.statuses().ends_with(" gated=failed after=skipped"), "{set}: {outcome}");
    }
    let enough = ["--set", "min_kappa=-0.2", "--set", "min_valid=0.9", "--set", "min_rated=3"];
    project.run_json(&enough).exits(0);
}

#[test]
fn files_are_sources_by_their_content_and_their_raters() {
    let project = project(4);
    file(&project, "ann", "yn");
    project.run_ok(&[]);
    project.run_ok(&[]).all_hit();
    file(&project, "ann", "yn");
    project.run_ok(&[]).all_hit();
    // The same lines of someone else are another result.
    std::fs::rename(project.path("ratings/ann.jsonl"), project.path("ratings/zoe.jsonl")).unwrap();
    assert_eq!(project.run_ok(&[]).status("judged"), "ran");
    assert!(project.rows("judged.rejects")[0]["reason"].as_str().unwrap().contains("zoe"));
    // Another answer that drops no other row computes nothing behind it.
    file(&project, "zoe", "yny");
    let outcome = project.run_ok(&[]);
    assert_eq!((outcome.status("gated"), outcome.status("after")), ("ran".into(), "hit".into()));
}

#[test]
fn ratings_that_cannot_be_read_are_told_before_anything_runs_and_others_warned_of() {
    let project = project(3);
    let line = |question: &str, answer: &str| {
        format!("{{\"id\":\"p00\",\"question\":\"{question}\",\"answer\":\"{answer}\"}}\n")
    };
    for (name, text, told) in [
        ("ann.jsonl", "{\"id\":\"p00\"\n", "ann.jsonl, line 1"),
        ("ann.jsonl", "<<<<<<< HEAD\n", "Git left a conflict"),
        ("ann.jsonl", &line("cod", "y"), "did you mean `code`"),
        ("ann.jsonl", &line("code", "x"), "`x` is not an answer"),
        ("ann.csv", "id,code_1\np00,y\n", "there is no column `message_1`"),
        ("ann.csv", "id,code_1,message_1\np00,maybe,y\n", "`maybe` is not an answer"),
        ("ann.csv", "id,code_1,message_1\np00,y,y\np00,n,y\n", "was rated in line 2 already"),
        ("ann.csv", "code_1\ny\n", "no column `id`"),
        ("ann.xlsx", "PK", "neither .jsonl nor .csv"),
        ("ann.csv", "id,code_1,message_1\np00,\u{1b}[2J,y\n", "u{1b}[2J"),
    ] {
        project.write(&format!("ratings/{name}"), text);
        refused(&project, told);
        std::fs::remove_file(project.path(&format!("ratings/{name}"))).unwrap();
    }
    file(&project, "ann", "y");
    project.write("ratings/Ann.csv", "id,question,answer\n");
    refused(&project, "of the same rater");
    std::fs::remove_file(project.path("ratings/Ann.csv")).unwrap();
    std::fs::File::create(project.path("ratings/big.jsonl")).unwrap().set_len(1 << 30).unwrap();
    refused(&project, "1024 MiB");
    std::fs::remove_dir_all(project.path("ratings")).unwrap();
    refused(&project, "the folder `ratings` does not exist");
    assert!(project.stored_nothing());
    // A line that was cut off and ratings of other data are warned of.
    let project = self::project(3);
    let text = "{\"id\":\"p00\",\"question\":\"code\",\"answer\":\"y\"}\n{\"id\":\"p0";
    project.write("ratings/ann.jsonl", text);
    project.write("ratings/ben.jsonl", "{\"id\":\"zz\",\"question\":\"code\",\"answer\":\"n\"}\n");
    let warned = project.run_ok(&[]).warnings().concat();
    let words = "1 rated data points are not in the table, `zz` among them";
    says(&warned, &["the last line is cut off", words]);
    assert_eq!(agreement(&project, "code")["not_in_sheet"], 1);
    assert_eq!(project.rows("judged").len(), 3);
}

#[test]
fn mistakes_in_the_arguments_are_found_when_it_is_planned() {
    let project = project(1);
    for (old, new, told) in [
        ("code: Is it whole?", "\"a b\": x", "cannot be the name of a question"),
        ("applies: { message:", "applies: { massage:", "did you mean `message`"),
        ("message <> ''", "length(message)", "neither true nor false"),
        ("message <> ''", "massage <> ''", "there is no column `massage`"),
        ("{ message: Does it say what?, code: Is it whole? }", "{}", "questions"),
    ] {
        project.change(old, new);
        refused(&project, told);
        project.write("w.yaml", WORKFLOW);
    }
}
