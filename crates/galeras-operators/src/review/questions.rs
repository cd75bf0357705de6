//! The questions of a review, and the rows that each is asked about.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{Array, AsArray};
use arrow::datatypes::DataType;
use datafusion::dataframe::DataFrame;
use datafusion::logical_expr::{Expr, cast, lit};
use datafusion::prelude::coalesce;
use futures::StreamExt;

use super::Args;
use galeras_base::id::ID;
use galeras_operator::{ArgError, BindContext, StepError};
use galeras_sql::session::{column, parse_row_expr};
use galeras_workflow::code::Code;
use galeras_workflow::{did_you_mean, quote};

#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) name: String,
    pub(super) text: String,
    /// A condition over the columns of the rows to rate and of the input; null counts as false.
    pub(super) applies: Option<Expr>,
}

pub(super) fn questions(
    args: &Args,
    cx: &BindContext,
    errors: &mut Vec<ArgError>,
) -> Vec<Question> {
    let mut questions = Vec::new();
    for (name, text) in &args.questions {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(plain) {
            let message = format!("{} cannot be the name of a question", quote(name));
            let error = ArgError::new("questions", Code::WrongArgument, message);
            errors.push(error.help("use letters, digits and `_`: it becomes part of a column"));
        }
        let text = text.as_str().unwrap_or_default().to_string();
        questions.push(Question { name: name.clone(), text, applies: None });
    }
    for (name, condition) in &args.applies {
        let path = format!("applies.{name}");
        let Some(question) = questions.iter_mut().find(|question| question.name == *name) else {
            let known = args.questions.keys().map(String::as_str);
            let message = format!("there is no question {}", quote(name));
            let error = ArgError::new(path, Code::WrongArgument, message);
            errors.push(match did_you_mean(name, known.clone()) {
                Some(near) => error.help(format!("did you mean {}?", quote(near))),
                None => {
                    let names: Vec<&str> = known.collect();
                    error.help(format!("the questions are {}", names.join(", ")))
                }
            });
            continue;
        };
        // The condition selects the questions for rows to rate, and the answers that count for the
        // input.
        for table in cx.inputs.values().filter(|table| !table.open) {
            match parse_row_expr(&cx.session, &table.schema, &condition.0, &path) {
                Ok(parsed) if parsed.data_type == DataType::Boolean => {
                    question.applies = Some(parsed.expr);
                }
                Ok(_) => {
                    let message = "the condition is neither true nor false";
                    errors.push(ArgError::new(&path, Code::WrongType, message));
                    break;
                }
                Err(error) => {
                    errors.push(error);
                    break;
                }
            }
        }
    }
    questions
}

pub(super) struct AskedPoints {
    /// The number of rows for each question.
    pub(super) asked: Vec<usize>,
    /// For each rated row, by id: true for each question that is asked.
    pub(super) rated: BTreeMap<String, Vec<bool>>,
}

/// Reads the rows of a table once, and keeps the needed columns of rated rows.
pub(super) async fn asked_points(
    rows: DataFrame,
    questions: &[Question],
    rated: &BTreeSet<&str>,
) -> Result<AskedPoints, StepError> {
    let mut columns: Vec<Expr> = vec![cast(column(ID), DataType::Utf8).alias("id")];
    for (at, question) in questions.iter().enumerate() {
        let asked = match &question.applies {
            None => lit(true),
            Some(condition) => coalesce(vec![condition.clone(), lit(false)]),
        };
        columns.push(asked.alias(format!("asked{at}")));
    }
    let mut found = AskedPoints { asked: vec![0; questions.len()], rated: BTreeMap::new() };
    let mut stream = rows.select(columns)?.execute_stream().await?;
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        let ids = batch.column(0).as_string::<i32>();
        if ids.null_count() > 0 {
            return Err(StepError::new("`id` is null in some rows"));
        }
        let asked: Vec<_> =
            (0..questions.len()).map(|at| batch.column(at + 1).as_boolean()).collect();
        for (count, asked) in found.asked.iter_mut().zip(&asked) {
            *count += asked.true_count();
        }
        for row in (0..ids.len()).filter(|row| rated.contains(ids.value(*row))) {
            let asked = asked.iter().map(|asked| asked.value(row)).collect();
            found.rated.insert(ids.value(row).to_string(), asked);
        }
    }
    Ok(found)
}
