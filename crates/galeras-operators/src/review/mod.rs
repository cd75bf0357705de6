//! `review`: ratings of data points by people, their agreement, and the rows that are dropped.

mod gates;
mod questions;
mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::JoinType;
use datafusion::dataframe::DataFrame;
use datafusion::logical_expr::{Expr, cast, lit};
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use self::questions::{AskedPoints, Question, asked_points, questions};
use self::tables::{AgreementRow, AnswerRow, answer_columns};
use super::typed_rows;
use galeras_base::id::ID;
use galeras_operator::columns::require_column;
use galeras_operator::rejects::{reject_table, reject_values};
use galeras_operator::small_table::{record_batch, table_schema};
use galeras_operator::{
    Access, ArgError, BindContext, BoundStep, Demand, Descriptor, Effect, Grain, INPUT, InputPorts,
    Inputs, LowerContext, Lowering, MAIN, Operator, Port, Ports, REJECTS, SideFile, StepError,
    TableStep, Tell, TypedOperator, args_schema, take_input,
};
use galeras_ratings::{QuestionAgreement, RatingAnswer, Ratings};
use galeras_sql::projection::project;
use galeras_sql::session::column;
use galeras_workflow::code::Code;
use galeras_workflow::quote;

/// The optional input with the rows to rate.
const SHEET: &str = "sheet";
/// The output with the agreement of raters.
const AGREEMENT: &str = "agreement";
const ANSWERS: &str = "answers";

/// A condition in SQL over the columns of a row.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("x-language" = "sql"))]
struct Condition(String);

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The questions by name, as raters read them: each is answered with yes, no or unsure. Names
    /// are of letters, digits and `_`.
    #[schemars(with = "BTreeMap<String, String>", length(min = 1))]
    questions: Map<String, Value>,
    /// Conditions for questions that are not asked about all rows: the name of the question -> a
    /// condition in SQL over the columns.
    #[serde(default)]
    applies: BTreeMap<String, Condition>,
    /// The folder with a file for each rater, or one such file, relative to the workflow file.
    /// Without it there are no ratings.
    #[serde(default)]
    ratings: Option<String>,
    /// The number of people who rate each data point.
    #[serde(default = "two")]
    #[schemars(range(min = 1, max = 99))]
    raters: usize,
    /// The rows that leave.
    #[serde(default)]
    drop: DropRows,
    /// The step fails if raters agree less on a question: Cohen's kappa of two people,
    /// Krippendorff's alpha of more.
    #[serde(default)]
    #[schemars(range(min = -1.0, max = 1.0))]
    min_kappa: Option<f64>,
    /// The step fails if a rater's share of yes is smaller, for any question.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    min_valid: Option<f64>,
    /// The step fails if fewer points have the answers of `raters` people to all questions that are
    /// asked of them.
    #[serde(default)]
    min_rated: Option<u64>,
}

fn two() -> usize {
    2
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum DropRows {
    /// Rows that a rater answered with no, unless the decision was yes, and rows decided as no.
    #[default]
    Invalid,
    /// None.
    None,
}

struct ReviewOperator;

/// The operator.
pub const REVIEW: &dyn Operator = &ReviewOperator;

impl TypedOperator for ReviewOperator {
    type Args = Args;

    const DESCRIPTOR: Descriptor = Descriptor {
        name: "review",
        version: 2,
        grain: Grain::of::<BoundReview, _>(),
        effect: Effect::Pure,
        inputs: InputPorts::OneAnd(&[SHEET]),
        doc: include_str!("doc.md"),
        args_schema: args_schema::<Args>,
    };

    fn bind(args: Args, cx: &BindContext) -> Result<Box<dyn BoundStep>, Vec<ArgError>> {
        let mut errors = Vec::new();
        let questions = questions(&args, cx, &mut errors);
        let input = cx.input();
        let sheet = cx.inputs.get(SHEET).unwrap_or(&input);
        require_column(cx, "", ID, "a plain value", |t| !t.is_nested(), &mut errors);
        if sheet.field(ID).is_none() && cx.inputs.contains_key(SHEET) && !sheet.open {
            let message = "the input `sheet` has no column `id`";
            errors.push(ArgError::at_port(SHEET, Code::UnknownColumn, message));
        }
        let filled = answer_columns(&questions, args.raters);
        for field in &filled {
            if sheet.field(field.name()).is_some() {
                let message = format!("the rows to rate have a column `{}` already", field.name());
                let error = ArgError::new("questions", Code::DuplicateColumn, message);
                errors.push(error.help("give the question another name"));
            }
        }
        let (folder, ratings) = read_ratings(&args, &questions, cx, &mut errors);
        ArgError::none(errors)?;
        let ports = vec![
            Port::new(MAIN, input.clone()),
            Port::new(REJECTS, reject_table(&input)),
            Port::new(AGREEMENT, table_schema::<AgreementRow>().keyed(&["question"])),
            Port::new(SHEET, sheet.materialised().with(&filled)),
            Port::new(ANSWERS, table_schema::<AnswerRow>().keyed(&["id", "question", "rater"])),
        ];
        Ok(Box::new(BoundReview { args, questions, folder, ratings, ports }))
    }
}

fn read_ratings(
    args: &Args,
    questions: &[Question],
    cx: &BindContext,
    errors: &mut Vec<ArgError>,
) -> (Option<PathBuf>, Ratings) {
    let Some(path) = args.ratings.as_deref().filter(|path| !path.is_empty()) else {
        return (None, Ratings::default());
    };
    let place = cx.base.join(path);
    if !place.exists() {
        let message = format!("the folder {} does not exist", quote(path));
        let error = ArgError::missing_file("ratings", message, &cx.base, path);
        let where_it_is = error.help.as_deref().unwrap_or_default();
        let help = format!("make it, empty, if nobody has rated yet; {where_it_is}");
        errors.push(error.help(help));
        return (Some(place), Ratings::default());
    }
    let names: Vec<&str> = questions.iter().map(|question| question.name.as_str()).collect();
    let ratings = Ratings::read(&place, &names).unwrap_or_else(|found| {
        errors.extend(found.into_iter().map(|problem| {
            let error = ArgError::new("ratings", Code::UnreadableFile, problem.to_string());
            problem.help.into_iter().fold(error, |error, help| error.help(help))
        }));
        Ratings::default()
    });
    (Some(place), ratings)
}

#[derive(Debug)]
struct BoundReview {
    args: Args,
    questions: Vec<Question>,
    folder: Option<PathBuf>,
    /// The ratings at planning time, so that they match the hash.
    ratings: Ratings,
    ports: Vec<Port>,
}

impl BoundStep for BoundReview {
    fn args(&self) -> Value {
        // The order of the questions counts, the path does not. A file's name is its rater; its
        // content is a side file, in the same order.
        let questions: Vec<Value> = self
            .questions
            .iter()
            .map(|question| json!({ "name": question.name, "text": question.text }))
            .collect();
        let files: Vec<&str> = self.ratings.files.iter().map(|(name, _)| name.as_str()).collect();
        json!({
            "questions": questions,
            "applies": self.args.applies,
            "files": files,
            "raters": self.args.raters,
            "drop": self.args.drop,
            "min_kappa": self.args.min_kappa,
            "min_valid": self.args.min_valid,
            "min_rated": self.args.min_rated,
        })
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn side_files(&self) -> Result<Vec<SideFile>, StepError> {
        let files = self.ratings.files.iter();
        Ok(files.map(|(name, digest)| SideFile { name: name.clone(), digest: *digest }).collect())
    }

    fn local_files(&self) -> Vec<(String, PathBuf)> {
        self.folder.iter().map(|folder| ("ratings".to_string(), folder.clone())).collect()
    }

    fn demands(&self) -> Vec<Demand> {
        let read = |path: &PathBuf| Demand::new("ratings", Access::Read { path: path.clone() });
        self.folder.iter().map(read).collect()
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Table(self)
    }
}

/// Hidden columns: the id as text, a dropped row, its rule and reason.
const KEY: &str = "__id";
const DROPPED: &str = "__dropped";
const RULE: &str = "__rule";
const REASON: &str = "__reason";

#[derive(Serialize)]
struct DroppedRow {
    #[serde(rename = "__dropped")]
    id: String,
    #[serde(rename = "__rule")]
    rule: String,
    #[serde(rename = "__reason")]
    reason: String,
}

impl BoundReview {
    /// The dropped rows of the input, by id.
    fn dropped(&self, input: &AskedPoints) -> Vec<DroppedRow> {
        let mut dropped = Vec::new();
        for (id, asked) in &input.rated {
            let failing: Vec<(&str, String)> = self
                .questions
                .iter()
                .zip(asked)
                .filter(|(_, asked)| **asked)
                .filter_map(|(question, _)| {
                    Some((&*question.name, self.objection(id, &question.name)?))
                })
                .collect();
            let Some((rule, _)) = failing.first() else { continue };
            let reasons: Vec<String> =
                failing.iter().map(|(name, reason)| format!("{name}: {reason}")).collect();
            let (id, rule) = (id.clone(), rule.to_string());
            dropped.push(DroppedRow { id, rule, reason: reasons.join("; ") });
        }
        dropped
    }

    /// The raters who answered no, with their notes; `None` if there are none, or the decision was
    /// yes.
    fn objection(&self, id: &str, question: &str) -> Option<String> {
        let with_note = |who: &str, note: &str| match note.trim() {
            "" => who.to_string(),
            note => format!("{who} ({note})"),
        };
        if let Some(decision) = self.ratings.decision(id, question) {
            let note = &self.ratings.adjudicated.get(id)?.get(question)?.note;
            return (decision == RatingAnswer::No).then(|| with_note("decided: no", note));
        }
        let against: Vec<String> = self
            .ratings
            .answers(id, question)
            .into_iter()
            .filter(|(_, answer)| *answer == RatingAnswer::No)
            .map(|(rater, _)| {
                let note = self.ratings.rating(rater, id, question).map_or("", |r| r.note.as_str());
                with_note(rater, note)
            })
            .collect();
        (!against.is_empty()).then(|| format!("no by {}", against.join(", ")))
    }

    /// The number of points that have the answers of enough people to every question asked of them.
    fn rated(&self, points: &AskedPoints) -> usize {
        let answered = |id: &str, question: &Question| {
            self.ratings.answers(id, &question.name).len() >= self.args.raters
        };
        let rated = points.rated.iter().filter(|(id, asked)| {
            self.questions
                .iter()
                .zip(*asked)
                .all(|(question, asked)| !*asked || answered(id, question))
        });
        rated.count()
    }

    /// The agreement on each question, and the number of rated points that are not among those to
    /// rate.
    fn agreements(&self, points: &AskedPoints) -> Vec<(QuestionAgreement, usize)> {
        let mut all = Vec::with_capacity(self.questions.len());
        for (at, question) in self.questions.iter().enumerate() {
            let asked = points.rated.iter().filter(|(_, asked)| asked[at]);
            let ids = asked.map(|(id, _)| id.as_str());
            let mut found =
                QuestionAgreement::of(&self.ratings, &question.name, ids, self.args.raters);
            found.points = points.asked[at];
            let stray = self.ratings.points().into_iter().filter(|id| {
                !points.rated.contains_key(*id)
                    && !self.ratings.answers(id, &question.name).is_empty()
            });
            all.push((found, stray.count()));
        }
        all
    }
}

impl TableStep for BoundReview {
    fn bounded(&self) -> bool {
        true
    }

    fn lower<'a>(
        &'a self,
        cx: &'a LowerContext,
        mut inputs: Inputs,
    ) -> BoxFuture<'a, Result<Ports, StepError>> {
        Box::pin(async move {
            let input = take_input(&mut inputs, INPUT)?;
            let sheet = inputs.remove(SHEET);
            let rated: BTreeSet<&str> = self.ratings.points();
            let to_rate = sheet.as_ref().unwrap_or(&input).clone();
            let points = asked_points(to_rate.clone(), &self.questions, &rated).await?;
            let all = match &sheet {
                None => None,
                Some(_) => Some(asked_points(input.clone(), &self.questions, &rated).await?),
            };
            let all = all.as_ref().unwrap_or(&points);
            self.ratings.warnings.iter().for_each(|text| (cx.tell)(Tell::Warning(text.clone())));
            warn_of_strays(cx, &rated, &points, all);
            let agreements = self.agreements(&points);
            gates::check(&self.args, &agreements, self.rated(&points))?;

            let dropped = match self.args.drop {
                DropRows::Invalid => self.dropped(all),
                DropRows::None => Vec::new(),
            };
            let session = &cx.session;
            let hidden =
                [DROPPED, RULE, REASON].map(|name| Field::new(name, DataType::Utf8, false));
            let small =
                typed_rows::table(session, &Arc::new(Schema::new(hidden.to_vec())), dropped)?;
            let keyed = input.with_column(KEY, cast(column(ID), DataType::Utf8))?;
            let join = |kind: JoinType| -> Result<DataFrame, StepError> {
                Ok(small.clone().join(keyed.clone(), kind, &[DROPPED], &[KEY], None)?)
            };
            let kept = project(join(JoinType::RightAnti)?, &self.ports[0].table, Vec::new())?;
            let values = reject_values(column(RULE), column(REASON));
            let rejected = project(join(JoinType::Inner)?, &self.ports[1].table, values)?;
            let empty = answer_columns(&self.questions, self.args.raters);
            let empty: Vec<(&str, Expr)> =
                empty.iter().map(|field| (field.name().as_str(), lit(""))).collect();
            let sheet = project(to_rate, &self.ports[3].table, empty)?;
            let rows = self.questions.iter().zip(agreements);
            let rows = rows.map(|(question, (numbers, not_in_sheet))| AgreementRow {
                text: question.text.clone(),
                numbers,
                not_in_sheet,
            });
            let rows: Vec<AgreementRow> = rows.collect();
            Ok(vec![
                (MAIN, kept),
                (REJECTS, rejected),
                (AGREEMENT, session.read_batch(record_batch(&rows)?)?),
                (SHEET, sheet),
                (ANSWERS, session.read_batch(record_batch(&AnswerRow::all(&self.ratings))?)?),
            ])
        })
    }
}

fn warn_of_strays(
    cx: &LowerContext,
    rated: &BTreeSet<&str>,
    points: &AskedPoints,
    all: &AskedPoints,
) {
    let unknown: Vec<&&str> = rated
        .iter()
        .filter(|id| !points.rated.contains_key(**id) && !all.rated.contains_key(**id))
        .collect();
    if let Some(first) = unknown.first() {
        let of = unknown.len();
        (cx.tell)(Tell::Warning(format!(
            "{of} rated data points are not in the table, {} among them: ratings of other data?",
            quote(first)
        )));
    }
}

#[cfg(test)]
mod tests;
