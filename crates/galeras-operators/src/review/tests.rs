//! Decisions, reasons and gates on ratings in memory.

use std::collections::BTreeMap;

use super::*;
use galeras_ratings::{RaterAnswers, Rating};

fn rating(answer: RatingAnswer, note: &str) -> Rating {
    Rating { answer: Some(answer), note: note.into(), time: String::new() }
}

fn answers(of: &[(&str, &str, RatingAnswer, &str)]) -> RaterAnswers {
    let mut answers = RaterAnswers::new();
    for (id, question, answer, note) in of {
        let by_question = answers.entry(id.to_string()).or_default();
        by_question.insert(question.to_string(), rating(*answer, note));
    }
    answers
}

fn step(raters: &[(&str, RaterAnswers)], adjudicated: RaterAnswers) -> BoundReview {
    let args: Args = serde_json::from_value(json!({
        "questions": { "message": "Is it so?", "code": "Is it code?" },
        "min_kappa": 0.6, "min_valid": 0.9, "min_rated": 2,
    }))
    .unwrap();
    let question = |name: &str| Question { name: name.into(), text: String::new(), applies: None };
    let raters: BTreeMap<String, RaterAnswers> =
        raters.iter().map(|(name, answers)| (name.to_string(), answers.clone())).collect();
    BoundReview {
        questions: vec![question("message"), question("code")],
        args,
        folder: None,
        ratings: Ratings { raters, adjudicated, ..Ratings::default() },
        ports: Vec::new(),
    }
}

fn points(of: &[(&str, [bool; 2])]) -> AskedPoints {
    let rated = of.iter().map(|(id, asked)| (id.to_string(), asked.to_vec())).collect();
    AskedPoints { asked: vec![of.len(); 2], rated }
}

#[test]
fn a_no_drops_a_row_unless_it_was_decided_otherwise_or_never_asked() {
    use RatingAnswer::{No, Unsure, Yes};
    let ann = answers(&[
        ("a", "code", No, "a fragment"),
        ("a", "message", No, ""),
        ("b", "code", Yes, ""),
        ("c", "code", No, ""),
        ("d", "code", Unsure, ""),
        ("e", "message", No, ""),
        ("f", "code", Yes, ""),
    ]);
    let ben = answers(&[("a", "code", No, ""), ("b", "code", Yes, "")]);
    let decided = answers(&[("c", "code", Yes, ""), ("f", "code", No, "both missed it")]);
    let step = step(&[("ann", ann), ("ben", ben)], decided);
    let ids = ["a", "b", "c", "d", "f"].map(|id| (id, [true, true]));
    let dropped = step.dropped(&points(&[&ids[..], &[("e", [false, true])]].concat()));
    let found: Vec<(&str, &str, &str)> =
        dropped.iter().map(|row| (&*row.id, &*row.rule, &*row.reason)).collect();
    assert_eq!(
        found,
        [
            ("a", "message", "message: no by ann; code: no by ann (a fragment), ben"),
            ("f", "code", "code: decided: no (both missed it)"),
        ]
    );
}

#[test]
fn gates_say_all_that_is_missing() {
    use RatingAnswer::{No, Yes};
    let ann = answers(&[("a", "code", Yes, ""), ("b", "code", No, ""), ("c", "code", Yes, "")]);
    let ben = answers(&[("a", "code", No, ""), ("b", "code", Yes, ""), ("c", "code", Yes, "")]);
    let step = step(&[("ann", ann), ("ben", ben)], RaterAnswers::new());
    let all = points(&["a", "b", "c", "d"].map(|id| (id, [true, true])));
    let agreements = step.agreements(&all);
    let error = gates::check(&step.args, &agreements, step.rated(&all)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the ratings do not allow it yet: 0 points have the answers of 2 people to all of their \
         questions, and min_rated asks for 2 (`message`: 0 of 4); `code`: a rater says yes to \
         0.6667 of the points, and min_valid asks for 0.9; `code`: Cohen's kappa is -0.5, \
         and min_kappa asks for 0.6 (they differ on 2 points)"
    );
    let open =
        Args { min_kappa: Some(-0.5), min_valid: Some(0.5), min_rated: Some(0), ..step.args };
    gates::check(&open, &agreements, 0).unwrap();
}

#[test]
fn a_point_is_rated_when_all_that_is_asked_of_it_is_answered_by_enough_people() {
    use RatingAnswer::{Unsure, Yes};
    let both = [("a", "code", Yes, ""), ("a", "message", Unsure, ""), ("b", "code", Yes, "")];
    let ann = answers(&[&both[..], &[("c", "code", Yes, ""), ("d", "code", Yes, "")]].concat());
    let ben = answers(&[&both[..], &[("d", "code", Yes, "")]].concat());
    let step = step(&[("ann", ann), ("ben", ben)], RaterAnswers::new());
    // `b` and `c` have no message to rate; `c` has one answer, and `d` none to its message.
    let asked = [("a", true), ("b", false), ("c", false), ("d", true)];
    assert_eq!(step.rated(&points(&asked.map(|(id, message)| (id, [message, true])))), 2);
}

#[test]
fn ratings_of_rows_that_are_not_to_be_rated_are_counted() {
    let ann =
        answers(&[("a", "code", RatingAnswer::Yes, ""), ("zz", "code", RatingAnswer::Yes, "")]);
    let step = step(&[("ann", ann)], RaterAnswers::new());
    let found = step.agreements(&points(&[("a", [true, true])]));
    assert_eq!(found.iter().map(|(_, stray)| *stray).collect::<Vec<_>>(), [0, 1]);
    assert_eq!((found[1].0.rated, found[1].0.points), (1, 1));
}
