//! The pages on which people judge data points. An answer is a form; it is on disk before the
//! browser is redirected. Raters do not see each other's answers, except on the page that decides,
//! when all are done.

use std::time::Duration;

use axum::extract::{Form, Query, State};
use galeras_pages::view::{review_page, review_start_page, tables_page};
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{Answered, Refusal, Served, address, html, see};
use super::ratings::{Item, Review, questions, steps};
use super::row::{by_id, row_parts};
use super::runs::block;
use galeras_operator::{Access, RefusedAccess};
use galeras_ratings::{
    ADJUDICATED, QuestionAgreement, RatingAnswer, RatingEvent, append, file_of, is_rater_name,
};
use galeras_store::timestamp;

/// The maximum age of the plan while people rate: ratings do not change it.
const SETTLED: Duration = Duration::from_secs(3);

const LONGEST_NOTE: usize = 2000;

/// A rater's position.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct RateQuery {
    step: String,
    #[serde(default)]
    rater: String,
    #[serde(default)]
    point: String,
    #[serde(default)]
    question: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct RateForm {
    step: String,
    rater: String,
    point: String,
    question: String,
    answer: String,
    #[serde(default)]
    note: String,
}

/// The rater whose last answer is undone.
#[derive(Debug, Deserialize)]
pub(super) struct UndoForm {
    step: String,
    rater: String,
}

pub(super) async fn start(State(served): State<Served>) -> Answered {
    let snapshot = served.study.snapshot_within(SETTLED).await?;
    let mut choices = Vec::new();
    for step in steps(&snapshot) {
        let name = &step.name;
        let asked: Vec<_> = questions(step).into_iter().map(|q| (q.name, q.text)).collect();
        let mut choice = json!({"step": name, "questions": asked, "problem": "", "raters": [],
            "agreement": address("/review/agreement", &[("step", name)]),
            "decide": address("/review/rate", &[("step", name), ("rater", ADJUDICATED)])});
        match Review::load(&snapshot, name).await {
            Err(problem) => choice["problem"] = json!(problem),
            Ok(review) => {
                let items = review.all_items();
                choice["points"] = json!(review.points.len());
                choice["answers"] = json!(items.len());
                choice["folder"] = json!(review.folder.display().to_string());
                let line = |rater: &String| {
                    let address = match review.is_by_hand(rater) {
                        true => String::new(),
                        false => place(name, rater, "", ""),
                    };
                    let done = review.done(rater, &items);
                    json!({"name": rater, "address": address, "done": done})
                };
                choice["raters"] = review.ratings.raters.keys().map(line).collect();
            }
        }
        choices.push(choice);
    }
    Ok(html(review_start_page(&served.frame(&snapshot, "/review"), &choices)?))
}

fn place(step: &str, rater: &str, point: &str, question: &str) -> String {
    let values = [("step", step), ("rater", rater), ("point", point), ("question", question)];
    address("/review/rate", &values)
}

/// The review of a step, with the items of this rater.
async fn asked(served: &Served, step: &str, rater: &str) -> Result<(Review, Vec<Item>), Refusal> {
    let snapshot = served.study.snapshot_within(SETTLED).await?;
    let _reading = served.study.reading().await?;
    let review = Review::load(&snapshot, step).await;
    let review = review.map_err(|why| Refusal::invalid(why).run(snapshot.surveyed.command()))?;
    if rater == ADJUDICATED {
        if let Some(why) = review.too_early() {
            let message = "What raters differ on is decided when all of them are done, so that \
                           nobody sees what others say before.";
            return Err(Refusal::invalid(format!("{message} {why}")));
        }
        let items = review.disagreements();
        return Ok((review, items));
    }
    if !is_rater_name(rater) {
        let message = "A rater's name has up to 64 letters, digits, `-`, `_` and `.`, and begins \
                       with a letter or a digit: it becomes the name of a file.";
        return Err(Refusal::invalid(message));
    }
    let other = review
        .ratings
        .raters
        .keys()
        .find(|known| known.as_str() != rater && known.to_lowercase() == rater.to_lowercase());
    if let Some(other) = other {
        return Err(Refusal::invalid(format!(
            "There is a rater {other}; write the name like that."
        )));
    }
    if review.is_by_hand(rater) {
        return Err(Refusal::invalid(format!(
            "The answers of {rater} are in a CSV file; fill it in, or take another name."
        )));
    }
    let items = review.all_items();
    Ok((review, items))
}

pub(super) async fn point(
    State(served): State<Served>,
    Query(query): Query<RateQuery>,
) -> Answered {
    let (review, items) = asked(&served, &query.step, &query.rater).await?;
    let rater = query.rater.as_str();
    let deciding = rater == ADJUDICATED;
    let snapshot = served.study.snapshot_within(SETTLED).await?;
    let open = |item: &&Item| review.answer(rater, **item).is_none();
    let at_point = |item: &&Item| review.id(**item) == query.point;
    let current = review
        .item(&items, &query.point, &query.question)
        .or_else(|| items.iter().filter(at_point).find(open).copied())
        .or_else(|| items.iter().find(at_point).copied())
        .or_else(|| items.iter().find(open).copied())
        .or_else(|| items.first().copied());
    let Some(current) = current else {
        let what = match deciding {
            true => "Raters differ on nothing.",
            false => "There are no data points to rate.",
        };
        return Err(Refusal::missing(what));
    };
    let mut points: Vec<usize> = items.iter().map(|item| item.point).collect();
    points.dedup();
    let position = points.iter().position(|point| *point == current.point).unwrap_or(0);
    let other = |at: Option<usize>| match at.and_then(|at| points.get(at)) {
        Some(point) => place(&review.step, rater, &review.points[*point].id, ""),
        None => String::new(),
    };
    let here = items.iter().filter(|item| item.point == current.point);
    let question = |item: &Item| {
        let rating = review.rating(rater, *item);
        let answer = rating.and_then(|rating| rating.answer);
        let given = review.ratings.answers(review.id(*item), review.question(*item));
        let given = given.into_iter().filter(|_| deciding).map(|(by, answer)| {
            let note = review.rating(by, *item).map_or("", |rating| rating.note.as_str());
            json!({"rater": by, "answer": answer.word(), "note": note})
        });
        json!({"name": review.question(*item), "text": review.questions[item.question].text,
            "answer": answer.map_or("", RatingAnswer::word),
            "note": rating.map_or("", |rating| rating.note.as_str()),
            "current": *item == current, "given": given.collect::<Vec<Value>>()})
    };
    let id = review.id(current).to_string();
    let _reading = served.study.reading().await?;
    let values = by_id(&snapshot, &review.input, &id).await?;
    let page = json!({"step": review.step, "rater": rater, "deciding": deciding, "id": id,
        "place": position + 1, "points": points.len(), "done": review.done(rater, &items),
        "answers": items.len(), "questions": here.map(question).collect::<Vec<Value>>(),
        "previous": other(position.checked_sub(1)), "next": other(Some(position + 1)),
        "action": "/review/rate", "undo": "/review/undo", "leave": "/review"});
    let title = if deciding { "Decide" } else { "Review" };
    let row = row_parts(&values.unwrap_or_default());
    Ok(html(review_page(&served.frame(&snapshot, "/review"), title, &row, &page)?))
}

pub(super) async fn rate(State(served): State<Served>, Form(form): Form<RateForm>) -> Answered {
    let (review, items) = asked(&served, &form.step, &form.rater).await?;
    let item = review.item(&items, &form.point, &form.question);
    let item = item.ok_or_else(|| Refusal::invalid("This is not asked of such a data point."))?;
    let answer = RatingAnswer::parse(&form.answer);
    let answer = answer.map_err(|_| Refusal::invalid("There is no such answer."))?;
    if form.note.chars().count() > LONGEST_NOTE {
        return Err(Refusal::invalid(format!("A note has at most {LONGEST_NOTE} characters.")));
    }
    let before = review.answer(&form.rater, item);
    keep(&served, &review, &form.rater, item, (answer, form.note.trim())).await?;
    // A note alone, or the same answer with a note, stays on the item.
    let stays = answer.is_none() || before == answer && !form.note.trim().is_empty();
    let next = match items.iter().position(|other| *other == item) {
        _ if stays => Some(item),
        None => None,
        // Revising an answer leads to the next item in order, a new answer to the next open item.
        Some(at) if before.is_some() => items.get(at + 1).copied(),
        Some(at) => {
            let open =
                |other: &&Item| **other != item && review.answer(&form.rater, **other).is_none();
            items[at + 1..].iter().chain(&items[..at]).find(open).copied()
        }
    };
    Ok(see(&match next {
        Some(next) => place(&review.step, &form.rater, review.id(next), review.question(next)),
        None => address("/review/agreement", &[("step", &review.step)]),
    }))
}

/// Adds a line to the rater's file, if it may be written; it is on disk when this returns.
async fn keep(
    served: &Served,
    review: &Review,
    rater: &str,
    item: Item,
    (answer, note): (Option<RatingAnswer>, &str),
) -> Result<(), Refusal> {
    let access = Access::Write { path: file_of(&review.folder, rater) };
    if let Some(RefusedAccess { message, help }) = served.study.consent.refusal(&access) {
        let message = format!("The answer is not kept: the step {message}; {help}.");
        return Err(Refusal::invalid(message));
    }
    let event = RatingEvent {
        id: review.id(item).to_string(),
        question: review.question(item).to_string(),
        answer: answer.map(|answer| answer.word().to_string()),
        note: note.to_string(),
        time: timestamp(),
    };
    let (folder, rater) = (review.folder.clone(), rater.to_string());
    let kept = tokio::task::spawn_blocking(move || append(&folder, &rater, &event)).await;
    match kept {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Refusal::failed(format!("The answer is not kept: {error}"))),
        Err(error) => Err(Refusal::failed(format!("The answer is not kept: {error}"))),
    }
}

pub(super) async fn undo(State(served): State<Served>, Form(form): Form<UndoForm>) -> Answered {
    let (review, items) = asked(&served, &form.step, &form.rater).await?;
    let given = items.iter().filter_map(|item| {
        let rating = review.rating(&form.rater, *item)?;
        (!rating.is_empty()).then_some((rating.time.as_str(), *item))
    });
    // The latest by time; of equal times, the last in the order of points.
    let last =
        given.enumerate().max_by(|(a, (one, _)), (b, (other, _))| one.cmp(other).then(a.cmp(b)));
    let Some((_, (_, item))) = last else {
        return Ok(see(&place(&review.step, &form.rater, "", "")));
    };
    keep(&served, &review, &form.rater, item, (None, "")).await?;
    Ok(see(&place(&review.step, &form.rater, review.id(item), review.question(item))))
}

#[derive(Debug, Deserialize)]
pub(super) struct AgreementQuery {
    step: String,
}

type Column = (&'static str, fn(&QuestionAgreement) -> Value);

const COLUMNS: [Column; 14] = [
    ("question", |of| json!(of.question)),
    ("points", |of| json!(of.points)),
    ("raters", |of| json!(of.raters)),
    ("rated by all", |of| json!(of.rated_by_all)),
    ("yes", |of| json!(of.answers[0])),
    ("no", |of| json!(of.answers[1])),
    ("unsure", |of| json!(of.answers[2])),
    ("agreement", |of| json!(of.agreement)),
    ("kappa", |of| json!(of.kappa)),
    ("kappa low", |of| json!(of.kappa_interval.map(|(low, _)| low))),
    ("kappa high", |of| json!(of.kappa_interval.map(|(_, high)| high))),
    ("alpha", |of| json!(of.alpha)),
    ("differ on", |of| json!(of.disagreements)),
    ("undecided", |of| json!(of.undecided)),
];

pub(super) async fn agreement(
    State(served): State<Served>,
    Query(query): Query<AgreementQuery>,
) -> Answered {
    let snapshot = served.study.snapshot_within(SETTLED).await?;
    let _reading = served.study.reading().await?;
    let review = Review::load(&snapshot, &query.step).await.map_err(Refusal::invalid)?;
    let rows = review.questions.iter().enumerate().map(|(at, question)| {
        let asked = review.points.iter().filter(|point| point.asked[at]);
        let ids = asked.map(|point| point.id.as_str());
        let of = QuestionAgreement::of(&review.ratings, &question.name, ids, review.wanted);
        COLUMNS.iter().map(|(_, value)| value(&of)).collect::<Vec<Value>>()
    });
    let names = COLUMNS.map(|(name, _)| name);
    let items = review.all_items();
    let raters = review
        .ratings
        .raters
        .keys()
        .map(|rater| vec![json!(rater), json!(review.done(rater, &items)), json!(items.len())]);
    let tables = [
        block("Agreement", &names, rows.collect()),
        block("Raters", &["rater", "answers", "of"], raters.collect()),
    ];
    let (frame, title) =
        (served.frame(&snapshot, "/review"), format!("Agreement: {}", review.step));
    let text = "Kappa is Cohen's, of two raters, with its 95 % interval; alpha is Krippendorff's, of \
                two and more. `unsure` is an answer of its own. The page follows the ratings.";
    Ok(html(tables_page(&frame, &title, text, &tables, &[], &snapshot.events())?))
}
