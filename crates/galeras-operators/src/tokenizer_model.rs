//! Tokenizer models as operators exchange them: the table of one row from a `tokenizer` step, or a
//! `tokenizer.json`.

use std::path::Path;

use arrow::array::AsArray;
use datafusion::dataframe::DataFrame;

use galeras_base::small_file::{self, MAX_MODEL_BYTES};
use galeras_operator::StepError;
use galeras_sql::functions::bpe::{Bpe, BpeError};
use galeras_sql::session::column;

/// The port and the column with the content of the `tokenizer.json`.
pub(super) const MODEL: &str = "model";

pub(super) async fn model(table: DataFrame) -> Result<Bpe, StepError> {
    let rows = table.select(vec![column(MODEL)])?.collect().await?;
    let mut texts = rows.iter().flat_map(|batch| batch.column(0).as_string::<i32>().iter());
    match (texts.next(), texts.next()) {
        (Some(Some(json)), None) => Bpe::from_json(json).map_err(bad_model),
        _ => Err(StepError::new("the port `tokenizer` takes one row with a `model`")),
    }
}

pub(super) fn read_model(path: &Path) -> Result<Bpe, StepError> {
    let shown = path.display();
    let content = small_file::read(path, MAX_MODEL_BYTES)
        .map_err(|error| StepError::new(format!("cannot read {shown}: {error}")).because(error))?;
    let no_tokenizer =
        |why: &dyn std::fmt::Display| StepError::new(format!("{shown} is not a tokenizer: {why}"));
    let json = String::from_utf8(content).map_err(|error| no_tokenizer(&error))?;
    Bpe::from_json(&json).map_err(|error| no_tokenizer(&error))
}

pub(super) fn bad_model(error: BpeError) -> StepError {
    StepError::new(error.to_string())
}
