//! The rows that each question is asked about.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{Array, AsArray};
use arrow::datatypes::DataType;
use datafusion::dataframe::DataFrame;
use datafusion::logical_expr::{Expr, cast, lit};
use datafusion::prelude::coalesce;
use futures::StreamExt;

use super::questions::Question;
use galeras_base::id::ID;
use galeras_operator::StepError;
use galeras_sql::session::column;

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
