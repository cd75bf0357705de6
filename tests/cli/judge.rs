//! `judge`: verdicts in answers, both orders of two candidates, agreement with people.

use serde_json::{Value, json};

use crate::harness::{Project, every, has, lines, says};

const WORKFLOW: &str = "galeras: 1
steps:
  data: { op: read, with: { path: data.jsonl } }
  prompts:
    op: prompt
    from: data
    with: { treatments: { ask: 'Is it so? {{ code }}' } }
  answers: { op: generate, from: prompts, with: { provider: reference, reference: reply } }
  people:
    op: review
    from: data
    with: { questions: { right: Is it so? }, ratings: ratings }
  verdicts:
    op: judge
    from: { input: answers, labels: people.answers }
    with: { choices: [yes, no], question: right }
";

/// Data points with the answers of a judge, in their order.
fn data(replies: &[&str]) -> String {
    let row = |(at, reply): (usize, &&str)| json!({"id": format!("p{at:02}"), "code": format!("x = {at}"), "reply": reply});
    lines(&replies.iter().enumerate().map(row).collect::<Vec<Value>>())
}

fn label(point: usize, answer: &str) -> Value {
    json!({"id": format!("p{point:02}"), "question": "right", "answer": answer})
}

/// Agreement as of the counts 3, 1, 2, 6, with 17 of 40 called yes: the shares and their interval are
/// those of `tests/reference/judge.json`; kappa is (3/4 - 19/36) / (1 - 19/36).
#[test]
fn verdicts_are_compared_with_those_of_people() {
    let (yes, no) = ("It is.\nVERDICT: yes", "It is not.\n**Verdict: No.**");
    let labelled = [(yes, "yes", 3), (no, "yes", 1), (yes, "no", 2), (no, "no", 6)];
    let labelled = labelled.into_iter().flat_map(|(reply, answer, n)| vec![(reply, answer); n]);
    let labelled: Vec<(&str, &str)> = labelled.collect();
    let mut replies: Vec<&str> = labelled.iter().map(|(reply, _)| *reply).collect();
    replies.extend([yes; 12]);
    replies.extend([no; 16]);
    replies.push("I cannot tell.");
    let ann = labelled.iter().enumerate().map(|(at, (_, answer))| label(at, answer));
    let mut ann: Vec<Value> = ann.collect();
    // Two people differ on the first point and on the last; only the first is decided.
    ann.push(label(39, "no"));
    let ben = [label(0, "no"), label(1, "yes"), label(2, "unsure"), label(39, "yes")];
    let project = Project::new(WORKFLOW)
        .with("data.jsonl", data(&replies))
        .with("ratings/ann.jsonl", lines(&ann))
        .with("ratings/ben.jsonl", lines(&ben))
        .with("ratings/adjudicated.jsonl", lines(&[label(0, "yes")]));
    let outcome = project.run_ok(&[]);
    says(&outcome.warnings().join("\n"), &["no verdict in 1 of 41 answers", "`I cannot tell.`"]);
    let row = project.only("verdicts.agreement");
    has(&row, "model treatment points decided labelled", json!(["reference", "ask", 40, 40, 12]));
    has(&row, "true_yes false_no false_yes true_no", json!([3, 1, 2, 6]));
    has(&row, "sensitivity specificity yes corrected", json!([0.75, 0.75, 0.425, 0.35]));
    has(&row, "ci_low ci_high", json!([0.0, 1.0]));
    assert!((row["kappa"].as_f64().unwrap() - 8.0 / 17.0).abs() < 1e-11, "{row}");
    let rejected = project.only("verdicts.rejects");
    has(&rejected, "snippet_id rule", json!(["p40", "no_verdict"]));
    let verdicts = project.rows("verdicts");
    assert_eq!(verdicts.iter().filter(|row| row["yes"] == true).count(), 17);
    assert!(verdicts.iter().all(|row| (row["verdict"] == "yes") == (row["yes"] == true)));
    // Another label computes the verdicts again, and asks nobody.
    project.write("ratings/ann.jsonl", lines(&ann[1..]));
    let outcome = project.run_ok(&[]);
    assert_eq!(
        (outcome.status("answers"), outcome.status("verdicts")),
        ("hit".into(), "ran".into())
    );
}

#[test]
fn two_candidates_are_shown_in_both_orders() {
    let project = Project::steps(
        "  data: { op: read, with: { path: data.jsonl } }
  prompts:
    op: prompt
    from: data
    with: { treatments: { ab: 'Which? {{ code }}', ba: 'Which? {{ code }} ' } }
  given:
    op: sql
    from: prompts
    with: { query: \"SELECT *, CASE treatment WHEN 'ab' THEN ab ELSE ba END AS reply FROM input\" }
  answers: { op: generate, from: given, with: { provider: reference, reference: reply } }
  verdicts:
    op: judge
    from: answers
    with: { choices: [A, B, tie], swapped: { ba: ab }, marker: '' }
",
    );
    let rows = [("p0", "A", "B"), ("p1", "A", "A"), ("p2", "tie", "tie"), ("p3", "B", "A")];
    let row = |(id, ab, ba): (&str, &str, &str)| json!({"id": id, "code": id, "ab": ab, "ba": ba});
    project.write("data.jsonl", lines(&rows.map(row)));
    let project = project.ran();
    let wanted =
        ["p0 | A | 1.0 | 2", "p1 | null | 0.5 | 2", "p2 | tie | 0.0 | 2", "p3 | B | 0.0 | 2"];
    assert_eq!(project.cells("verdicts.points", "id verdict yes answers"), wanted);
    let row = project.only("verdicts.agreement");
    has(&row, "treatment same_orders kappa corrected", json!(["ab", 0.75, null, null]));
    // A scale, with the mean of the samples; a treatment that is missing would not be exchanged.
    project.change("ba: ab }", "b: ab }");
    project.fails("verdicts", &["`swapped` names the treatment `b`"]);
    project.write("data.jsonl", lines(&[json!({"id": "p0", "code": "x", "ab": "4", "ba": "5/5"})]));
    project.change("choices: [A, B, tie], swapped: { b: ab }", "scale: [1, 5]");
    project.run_ok(&[]);
    has(&project.only("verdicts"), "verdict yes", json!([4, true]));
    has(&project.only("verdicts.points"), "verdict score yes", json!(["4", 4.0, 1.0]));
    project.write("data.jsonl", lines(&[json!({"id": "p0", "code": "x", "ab": "?", "ba": "5/5"})]));
    project.fails("verdicts", &["none of 2 answers has a verdict: the last line is `"]);
}

#[test]
fn mistakes_are_found_before_anything_runs() {
    let with = "with: { choices: [yes, no], question: right }";
    let labels = "labels: people.answers";
    let cases = [
        (with, "with: { question: right }", "missing-argument", "`choices`, or a `scale`"),
        (
            with,
            "with: { choices: [yes, Yes], question: right }",
            "wrong-argument",
            "`Yes` is there twice",
        ),
        (
            with,
            "with: { choices: [yes, no], positive: [maybe], question: right }",
            "wrong-argument",
            "`maybe` is not one of `yes` and `no`",
        ),
        (
            with,
            "with: { scale: [1, 5], at_least: 6, question: right }",
            "out-of-range",
            "from 1 to 5",
        ),
        (with, "with: { choices: [yes, no] }", "missing-argument", "needs a `question`"),
        (labels, "labels: data", "unknown-column", "the port `answers` of a step `review`"),
    ];
    every(cases.map(|case| (case.1, case)), |(old, new, code, told)| {
        let project = Project::new(&WORKFLOW.replace(old, new))
            .with("data.jsonl", data(&["yes"]))
            .with("ratings/README.md", "");
        project.refused_once(code, told);
    });
}
