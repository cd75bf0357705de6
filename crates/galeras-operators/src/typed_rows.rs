//! Tables from rows of serializable types.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::json::ReaderBuilder;
use arrow::json::reader::Decoder;
use datafusion::dataframe::DataFrame;
use datafusion::execution::context::SessionContext;
use serde::Serialize;

use galeras_operator::StepError;

/// The most rows of a batch.
pub(super) const BATCH: usize = 8192;

/// Makes batches of rows. It refuses fields without a column.
pub(super) fn decoder(schema: &SchemaRef) -> Result<Decoder, ArrowError> {
    ReaderBuilder::new(Arc::clone(schema)).with_strict_mode(true).build_decoder()
}

/// The rows in batches, at least one. A column has the rows' field of its name, or is null.
///
/// # Errors
/// If a row has a field without a column, or a value that does not fit its column.
pub(super) fn batches<Row: Serialize>(
    schema: &SchemaRef,
    rows: impl IntoIterator<Item = Row>,
) -> Result<Vec<RecordBatch>, StepError> {
    let mut decoder = decoder(schema)?;
    let mut batches = Vec::new();
    for row in rows {
        decoder.serialize(&[row])?;
        if decoder.len() == BATCH {
            batches.extend(decoder.flush()?);
        }
    }
    batches.extend(decoder.flush()?);
    if batches.is_empty() {
        batches.push(RecordBatch::new_empty(Arc::clone(schema)));
    }
    Ok(batches)
}

/// The rows as a table in memory, with the errors of [`batches`].
pub(super) fn table<Row: Serialize>(
    session: &SessionContext,
    schema: &SchemaRef,
    rows: impl IntoIterator<Item = Row>,
) -> Result<DataFrame, StepError> {
    Ok(session.read_batches(batches(schema, rows)?)?)
}
