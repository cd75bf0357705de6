//! Tables as JSON lines or CSV, batch by batch: for output files and for programs.

use std::io::{self, Write};
use std::sync::Arc;

use arrow::array::{Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::json;
use arrow::util::display::{ArrayFormatter, FormatOptions};

use super::cell::{as_json_text, failed};
use galeras_sql::session::check_times;

/// The format of a written table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// One JSON object per line.
    Json,
    /// An array of JSON objects, one per line.
    JsonArray,
    /// CSV with a header.
    Csv,
}

/// Writes batches to a file or a pipe as they come.
///
/// JSON: one object per line, alone or in an array, with every column and explicit nulls. NaN and
/// infinities are null, as JSON has no numbers for them. CSV: always a header, nested columns as
/// JSON text; an empty text is an empty field in quotes, a null one without. Numbers have all their
/// digits.
pub struct TableWriter<W: Write> {
    schema: SchemaRef,
    inner: FormatWriter<W>,
    broken: bool,
}

enum FormatWriter<W: Write> {
    Json(json::LineDelimitedWriter<W>),
    JsonArray(json::Writer<W, RowPerLine>),
    Csv(W),
}

/// An array with one row per line, so that a changed row is a changed line.
#[derive(Debug, Default)]
struct RowPerLine;

impl json::writer::JsonFormat for RowPerLine {
    fn start_stream<W: Write>(&self, writer: &mut W) -> Result<(), ArrowError> {
        Ok(writer.write_all(b"[")?)
    }

    fn start_row<W: Write>(&self, writer: &mut W, is_first_row: bool) -> Result<(), ArrowError> {
        Ok(writer.write_all(if is_first_row { b"\n" } else { b",\n" })?)
    }

    fn end_stream<W: Write>(&self, writer: &mut W) -> Result<(), ArrowError> {
        Ok(writer.write_all(b"\n]\n")?)
    }
}

impl<W: Write> TableWriter<W> {
    /// A writer of tables of this schema.
    pub fn new(mut out: W, schema: SchemaRef, format: TableFormat) -> io::Result<Self> {
        let json = json::WriterBuilder::new().with_explicit_nulls(true);
        let inner = match format {
            TableFormat::Json => FormatWriter::Json(json.build(out)),
            TableFormat::JsonArray => FormatWriter::JsonArray(json.build(out)),
            TableFormat::Csv => {
                let mut line = Vec::new();
                for (at, field) in schema.fields().iter().enumerate() {
                    push_text(&mut line, at, Some(field.name()));
                }
                line.push(b'\n');
                out.write_all(&line)?;
                FormatWriter::Csv(out)
            }
        };
        Ok(Self { schema, inner, broken: false })
    }

    /// Writes the rows of `batch`, whose columns must be those of the schema, in its order.
    pub fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        check_columns(&self.schema, batch)?;
        let written = match &mut self.inner {
            FormatWriter::Json(writer) => writer.write(batch).map_err(|e| failed(&e)),
            FormatWriter::JsonArray(writer) => writer.write(batch).map_err(|e| failed(&e)),
            FormatWriter::Csv(out) => write_rows(out, &flatten(batch)?),
        };
        self.broken |= written.is_err();
        written
    }

    /// Writes the rest and returns the writer.
    pub fn finish(self) -> io::Result<W> {
        if self.broken {
            return Err(io::Error::other("the table is incomplete: a write failed"));
        }
        let mut out = match self.inner {
            FormatWriter::Json(mut writer) => {
                writer.finish().map_err(|e| failed(&e))?;
                writer.into_inner()
            }
            FormatWriter::JsonArray(mut writer) => {
                writer.finish().map_err(|e| failed(&e))?;
                writer.into_inner()
            }
            FormatWriter::Csv(out) => out,
        };
        out.flush()?;
        Ok(out)
    }
}

/// Columns must have the names of the schema, as swapped columns would corrupt the file, and times
/// must be valid.
pub(super) fn check_columns(schema: &SchemaRef, batch: &RecordBatch) -> io::Result<()> {
    let columns = batch.schema_ref().fields();
    let same = columns.len() == schema.fields().len()
        && columns.iter().zip(schema.fields()).all(|(a, b)| a.name() == b.name());
    if same {
        return check_times(batch).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why));
    }
    let message = "the batch and the table have different columns";
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

/// The batch with text columns instead of nested ones.
fn flatten(batch: &RecordBatch) -> io::Result<RecordBatch> {
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    for (array, field) in batch.columns().iter().zip(batch.schema_ref().fields()) {
        if array.data_type().is_nested() {
            fields.push(Arc::new(Field::new(field.name(), DataType::Utf8, true)));
            columns.push(as_json_text(field, array.as_ref())?);
        } else {
            fields.push(Arc::clone(field));
            columns.push(Arc::clone(array));
        }
    }
    let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &rows)
        .map_err(|e| failed(&e))
}

/// Writes the rows of a batch without nested columns as CSV in which an empty text (`""`) differs
/// from a null (nothing), so that `read` restores both.
fn write_rows(out: &mut impl Write, batch: &RecordBatch) -> io::Result<()> {
    const OPTIONS: FormatOptions<'static> = FormatOptions::new();
    let columns = batch.columns().iter().map(|array| {
        let formatter = ArrayFormatter::try_new(array.as_ref(), &OPTIONS);
        formatter.map(|formatter| (array.as_ref(), formatter)).map_err(|e| failed(&e))
    });
    let columns: Vec<(&dyn Array, ArrayFormatter)> = columns.collect::<io::Result<_>>()?;
    let mut lines = Vec::new();
    for row in 0..batch.num_rows() {
        for (at, (array, formatter)) in columns.iter().enumerate() {
            let value = array.is_valid(row).then(|| formatter.value(row).try_to_string());
            let text = value.transpose().map_err(|e| failed(&e))?;
            push_text(&mut lines, at, text.as_deref());
        }
        lines.push(b'\n');
        if lines.len() > 1 << 16 {
            out.write_all(&lines)?;
            lines.clear();
        }
    }
    out.write_all(&lines)
}

/// Adds the text of column `at` to a line.
fn push_text(line: &mut Vec<u8>, at: usize, text: Option<&str>) {
    if at > 0 {
        line.push(b',');
    }
    match text {
        None => {}
        Some(text) if text.is_empty() || text.contains([',', '"', '\n', '\r']) => {
            line.push(b'"');
            line.extend_from_slice(text.replace('"', "\"\"").as_bytes());
            line.push(b'"');
        }
        Some(text) => line.extend_from_slice(text.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float64Array, Int64Array, ListBuilder, StringArray, StringBuilder};

    use super::*;

    fn batch() -> RecordBatch {
        let mut tags = ListBuilder::new(StringBuilder::new());
        tags.append_value([Some("a\"b"), None]);
        tags.append_null();
        RecordBatch::try_from_iter_with_nullable(vec![
            ("id", Arc::new(StringArray::from(vec!["x,\n", "y"])) as _, false),
            ("n", Arc::new(Int64Array::from(vec![Some(1), None])) as _, true),
            ("f", Arc::new(Float64Array::from(vec![0.1 + 0.2, f64::NAN])) as _, true),
            ("tags", Arc::new(tags.finish()) as _, true),
        ])
        .unwrap()
    }

    fn written(format: TableFormat, batches: &[RecordBatch]) -> String {
        let mut writer = TableWriter::new(Vec::new(), batch().schema(), format).unwrap();
        batches.iter().for_each(|b| writer.write(b).unwrap());
        String::from_utf8(writer.finish().unwrap()).unwrap()
    }

    #[test]
    fn json_lines_spell_out_nulls_and_do_not_depend_on_batches() {
        let whole = written(TableFormat::Json, &[batch()]);
        assert_eq!(
            whole,
            "{\"id\":\"x,\\n\",\"n\":1,\"f\":0.30000000000000004,\"tags\":[\"a\\\"b\",null]}\n\
             {\"id\":\"y\",\"n\":null,\"f\":null,\"tags\":null}\n"
        );
        let parts = [batch().slice(0, 1), batch().slice(1, 0), batch().slice(1, 1)];
        assert_eq!(written(TableFormat::Json, &parts), whole);
    }

    #[test]
    fn an_array_has_a_row_per_line_and_does_not_depend_on_batches() {
        let whole = written(TableFormat::JsonArray, &[batch()]);
        let rows = written(TableFormat::Json, &[batch()]);
        assert_eq!(whole, format!("[\n{}\n]\n", rows.trim_end().replace('\n', ",\n")));
        let parts = [batch().slice(0, 1), batch().slice(1, 0), batch().slice(1, 1)];
        assert_eq!(written(TableFormat::JsonArray, &parts), whole);
    }

    #[test]
    fn csv_holds_nested_columns_as_json_text() {
        let whole = written(TableFormat::Csv, &[batch()]);
        assert_eq!(
            whole,
            "id,n,f,tags\n\"x,\n\",1,0.30000000000000004,\"[\"\"a\\\"\"b\"\",null]\"\ny,,NaN,\n"
        );
        let parts = [batch().slice(0, 1), batch().slice(1, 1)];
        assert_eq!(written(TableFormat::Csv, &parts), whole);
    }

    #[test]
    fn an_empty_table_has_a_csv_header_and_no_json_line() {
        assert_eq!(written(TableFormat::Csv, &[]), "id,n,f,tags\n");
        assert_eq!(written(TableFormat::Json, &[]), "");
        assert_eq!(written(TableFormat::JsonArray, &[]), "[\n]\n");
    }

    #[test]
    fn other_columns_are_refused() {
        let other = batch().project(&[1, 0, 2, 3]).unwrap();
        let mut writer = TableWriter::new(Vec::new(), batch().schema(), TableFormat::Csv).unwrap();
        assert!(writer.write(&other).is_err());
    }

    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let n = bytes.len().min(self.0);
            self.0 -= n;
            if n == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(n) }
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_an_error_and_no_panic() {
        for format in [TableFormat::Json, TableFormat::JsonArray, TableFormat::Csv] {
            let mut writer = TableWriter::new(Full(20), batch().schema(), format).unwrap();
            assert!(writer.write(&batch()).is_err());
            assert!(writer.finish().is_err());
        }
    }

    #[test]
    fn a_table_for_people_on_a_full_disk_is_an_error_too() {
        let style = crate::TableStyle::default();
        let written = crate::write_table(&mut Full(5), &[batch()], &batch().schema(), &style);
        assert!(written.is_err());
    }
}
