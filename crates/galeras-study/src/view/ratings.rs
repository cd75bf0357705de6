//! A step that asks people: its questions, its data points, and the answers so far.

use std::path::PathBuf;

use arrow::array::{Array, AsArray};
use arrow::datatypes::DataType;
use datafusion::logical_expr::{cast, lit};
use datafusion::prelude::coalesce;
use serde_json::Value;

use super::study::Snapshot;
use galeras_base::id::ID;
use galeras_engine::plan::{Input, PlannedStep};
use galeras_engine::runner::RunError;
use galeras_operator::{INPUT, StepError};
use galeras_ratings::{ADJUDICATED, Rating, RatingAnswer, Ratings};
use galeras_sql::session::{column, parse_row_expr, session};

const REVIEW: &str = "review";

/// The most data points of a review page.
const MOST_POINTS: u64 = 100_000;

/// The steps that ask, one for each set of questions and folder.
pub(super) fn steps(snapshot: &Snapshot) -> Vec<&PlannedStep> {
    let mut known: Vec<(Option<PathBuf>, Value)> = Vec::new();
    let mut steps = Vec::new();
    for step in &snapshot.surveyed.plan.steps {
        if step.operator.descriptor().name != REVIEW {
            continue;
        }
        let folder = step.step.local_files().into_iter().next().map(|(_, path)| path);
        let same = (folder, step.step.args()["questions"].clone());
        if !known.contains(&same) {
            known.push(same);
            steps.push(step);
        }
    }
    steps
}

pub(super) struct AskedQuestion {
    pub(super) name: String,
    pub(super) text: String,
}

/// A data point, with a flag for each question that is asked.
pub(super) struct AskedPoint {
    pub(super) id: String,
    pub(super) asked: Vec<bool>,
}

/// A point and a question, by their positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) point: usize,
    pub(super) question: usize,
}

/// A step that asks, with its points and ratings.
pub(super) struct Review {
    pub(super) step: String,
    pub(super) input: Input,
    pub(super) questions: Vec<AskedQuestion>,
    /// The number of raters per point.
    pub(super) wanted: usize,
    pub(super) folder: PathBuf,
    pub(super) points: Vec<AskedPoint>,
    pub(super) ratings: Ratings,
}

pub(super) fn questions(step: &PlannedStep) -> Vec<AskedQuestion> {
    let args = step.step.args();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let asked = args["questions"].as_array().into_iter().flatten();
    asked.map(|one| AskedQuestion { name: text(&one["name"]), text: text(&one["text"]) }).collect()
}

impl Review {
    /// The step with that name, or the reason why it cannot be rated now.
    pub(super) async fn load(snapshot: &Snapshot, name: &str) -> Result<Self, String> {
        let step = steps(snapshot).into_iter().find(|step| step.name == name);
        let step = step.ok_or_else(|| format!("No step {name} asks people."))?;
        let folder = step.step.local_files().into_iter().next().map(|(_, path)| path);
        let folder = folder.ok_or_else(|| {
            "The step names no folder for ratings: add `ratings: ratings` to its `with:`."
                .to_string()
        })?;
        if folder.is_file() {
            return Err("The ratings are one file. Name a folder in `ratings` to rate here.".into());
        }
        let input = ["sheet", INPUT]
            .iter()
            .find_map(|port| step.inputs.iter().find(|input| input.port == *port))
            .cloned()
            .ok_or("The step has no input.")?;
        snapshot.stored(&input).map_err(|why| format!("{why}: run the workflow first."))?;
        let rows = snapshot.surveyed.rows(&input).unwrap_or(0);
        if rows > MOST_POINTS {
            return Err(format!(
                "{rows} data points are too many to go through; draw some with `sample`, and name \
                 them as `sheet`."
            ));
        }
        let questions = questions(step);
        let names: Vec<&str> = questions.iter().map(|question| question.name.as_str()).collect();
        let ratings = Ratings::read(&folder, &names).map_err(|errors| {
            let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
            all.join("; ")
        })?;
        let args = step.step.args();
        let points = points(snapshot, &input, &questions, &args["applies"]).await;
        let points = points.map_err(|error| error.to_string())?;
        let wanted = args["raters"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(2);
        let step = step.name.clone();
        Ok(Self { step, input, questions, wanted, folder, points, ratings })
    }

    /// The items of a rater, in order.
    pub(super) fn all_items(&self) -> Vec<Item> {
        let mut items = Vec::new();
        for (point, of) in self.points.iter().enumerate() {
            let asked = of.asked.iter().enumerate().filter(|(_, asked)| **asked);
            items.extend(asked.map(|(question, _)| Item { point, question }));
        }
        items
    }

    /// The items that raters disagree on, in order.
    pub(super) fn disagreements(&self) -> Vec<Item> {
        let mut items = self.all_items();
        items.retain(|item| {
            let answers = self.ratings.answers(self.id(*item), self.question(*item));
            answers.iter().any(|(_, answer)| *answer != answers[0].1)
        });
        items
    }

    pub(super) fn id(&self, item: Item) -> &str {
        &self.points[item.point].id
    }

    pub(super) fn question(&self, item: Item) -> &str {
        &self.questions[item.question].name
    }

    /// The rating of an item by a rater, or the decision.
    pub(super) fn rating(&self, rater: &str, item: Item) -> Option<&Rating> {
        let (id, question) = (self.id(item), self.question(item));
        match rater {
            ADJUDICATED => self.ratings.adjudicated.get(id)?.get(question),
            rater => self.ratings.rating(rater, id, question),
        }
    }

    pub(super) fn answer(&self, rater: &str, item: Item) -> Option<RatingAnswer> {
        self.rating(rater, item)?.answer
    }

    pub(super) fn done(&self, rater: &str, items: &[Item]) -> usize {
        items.iter().filter(|item| self.answer(rater, **item).is_some()).count()
    }

    pub(super) fn item(&self, items: &[Item], id: &str, question: &str) -> Option<Item> {
        let here = |item: &&Item| self.id(**item) == id && self.question(**item) == question;
        items.iter().find(here).copied()
    }

    /// The reason why it is too early to decide: raters must not see other ratings before they are
    /// done.
    pub(super) fn too_early(&self) -> Option<String> {
        let items = self.all_items();
        let begun: Vec<(&String, usize)> = self
            .ratings
            .raters
            .keys()
            .map(|rater| (rater, self.done(rater, &items)))
            .filter(|(_, done)| *done > 0)
            .collect();
        let left: Vec<String> = begun
            .iter()
            .filter(|(_, done)| *done < items.len())
            .map(|(rater, done)| format!("{rater} has {} answers left", items.len() - done))
            .collect();
        if begun.len() < self.wanted {
            let people = if begun.len() == 1 {
                "1 person has".into()
            } else {
                format!("{} people have", begun.len())
            };
            return Some(format!("{people} begun, and {} are wanted.", self.wanted));
        }
        (!left.is_empty()).then(|| format!("{}.", left.join(", ")))
    }

    /// The answers of a rater are in a file that people edit by hand.
    pub(super) fn is_by_hand(&self, rater: &str) -> bool {
        let of = |file: &str| {
            let stem = file.strip_suffix(".csv")?.to_lowercase();
            let rater = rater.to_lowercase();
            let numbered = rater.strip_prefix(&stem)?;
            Some(
                numbered.is_empty()
                    || numbered.starts_with('-') && self.ratings.raters.contains_key(&rater),
            )
        };
        self.ratings.files.iter().any(|(file, _)| of(file) == Some(true))
    }
}

async fn points(
    snapshot: &Snapshot,
    input: &Input,
    questions: &[AskedQuestion],
    applies: &Value,
) -> Result<Vec<AskedPoint>, RunError> {
    let session = session(1);
    let data = snapshot.surveyed.open(&session, input)?;
    let schema = std::sync::Arc::new(data.schema().as_arrow().clone());
    let mut columns = vec![cast(column(ID), DataType::Utf8).alias("id")];
    for (at, question) in questions.iter().enumerate() {
        let asked = match applies[&question.name].as_str() {
            None => lit(true),
            Some(sql) => {
                let parsed = parse_row_expr(&session, &schema, sql, "");
                let parsed = parsed.map_err(|error| StepError::new(error.message))?;
                coalesce(vec![parsed.expr, lit(false)])
            }
        };
        columns.push(asked.alias(format!("asked{at}")));
    }
    let batches = data
        .select(columns)
        .and_then(|df| df.sort(vec![column("id").sort(true, true)]))?
        .collect()
        .await?;
    let mut points = Vec::new();
    for batch in &batches {
        let ids = batch.column(0).as_string::<i32>();
        let asked = (1..=questions.len()).map(|at| batch.column(at).as_boolean());
        let asked: Vec<_> = asked.collect();
        points.extend((0..ids.len()).map(|row| AskedPoint {
            id: ids.value(row).to_string(),
            asked: asked.iter().map(|asked| asked.value(row)).collect(),
        }));
    }
    Ok(points)
}
