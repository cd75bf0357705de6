//! Writes an input table of the command to a file, which is complete and on disk before the command
//! starts.

use std::fs::File;
use std::io::{BufWriter, IntoInnerError};
use std::path::Path;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::ipc::writer::StreamWriter;
use arrow::json::LineDelimitedWriter;
use parquet::arrow::ArrowWriter;

use super::Format;
use galeras_operator::StepError;

/// Writes the table to `path`.
///
/// # Errors
/// If the file cannot be written completely, for example because the disk is full.
pub(super) fn write_table(
    path: &Path,
    format: Format,
    schema: &SchemaRef,
    batches: &[RecordBatch],
) -> Result<(), StepError> {
    // The writers below do not flush this one, so it stays here.
    let mut out = BufWriter::new(File::create(path)?);
    match format {
        Format::Jsonl => {
            let mut writer = LineDelimitedWriter::new(&mut out);
            for batch in batches {
                writer.write(batch)?;
            }
            writer.finish()?;
        }
        Format::Arrow => {
            let mut writer = StreamWriter::try_new(&mut out, schema)?;
            for batch in batches {
                writer.write(batch)?;
            }
            writer.finish()?;
        }
        Format::Parquet => {
            let mut writer = ArrowWriter::try_new(&mut out, SchemaRef::clone(schema), None)?;
            for batch in batches {
                writer.write(batch)?;
            }
            writer.close()?;
        }
    }
    // A network file system may report a full disk only now.
    out.into_inner().map_err(IntoInnerError::into_error)?.sync_data()?;
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use arrow::array::Int64Array;

    use super::*;

    #[test]
    fn a_small_table_that_does_not_fit_is_an_error() {
        // `/dev/full` accepts no bytes; small content stays in a buffer until the end.
        let column = Arc::new(Int64Array::from(vec![1, 2, 3])) as _;
        let batch = RecordBatch::try_from_iter([("x", column)]).unwrap();
        for format in [Format::Jsonl, Format::Parquet, Format::Arrow] {
            let path = Path::new("/dev/full");
            let error = write_table(path, format, &batch.schema(), std::slice::from_ref(&batch));
            let kind = error.unwrap_err().kind();
            assert_eq!(kind, galeras_operator::StepErrorKind::DiskFull, "{format:?}");
        }
    }
}
