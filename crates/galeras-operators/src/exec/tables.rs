//! Tables in files. An input is complete and on disk before the command starts; the output must be
//! complete, with exactly the declared columns.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, IntoInnerError, Read, Seek};
use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use arrow::json::LineDelimitedWriter;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Map, Value};

use super::Format;
use crate::read::json_scan::scan_typed;
use galeras_operator::StepError;
use galeras_operator::table_digest::type_name;
use galeras_sql::session::check_parquet;

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

/// Reads the table in the file `path`.
///
/// # Errors
/// The problem in words, with the line for formats with lines.
pub(super) fn read_table(
    path: &Path,
    format: Format,
    schema: &SchemaRef,
) -> Result<Vec<RecordBatch>, String> {
    let open = || File::open(path).map_err(|e| e.to_string());
    let batches: Vec<RecordBatch> = match format {
        Format::Jsonl => {
            check_json(BufReader::new(open()?), schema)?;
            // The parser takes the last value of a key that an object has twice.
            scan_typed(BufReader::new(open()?))
                .map_err(|what| format!("in its standard output, {what}"))?;
            arrow::json::ReaderBuilder::new(Arc::clone(schema))
                .with_strict_mode(true)
                .build(BufReader::new(open()?))
                .and_then(Iterator::collect)
                .map_err(|e| e.to_string())?
        }
        Format::Arrow => read_stream(open()?)?,
        Format::Parquet => {
            check_footer(&open()?)?;
            check_parquet(path)?;
            read_parquet(open()?)?
        }
    };
    batches.into_iter().map(|batch| fit(&batch, schema)).collect()
}

const CUT: &str = "the Arrow stream broke off: the mark of its end is missing (a writer that was \
                   not closed leaves it out)";

/// Reads an Arrow stream up to its end mark; nothing may follow.
fn read_stream(file: File) -> Result<Vec<RecordBatch>, String> {
    let length = file.metadata().map_err(|e| e.to_string())?.len();
    let mut file = BufReader::new(file);
    check_messages(&mut file, length)?;
    file.rewind().map_err(|e| e.to_string())?;
    StreamReader::try_new(file, None).and_then(Iterator::collect).map_err(|e| e.to_string())
}

/// Walks over the messages. Arrow's reader accepts a stream that is cut between two messages, and
/// allocates any length that a message claims.
fn check_messages(file: &mut (impl Read + Seek), length: u64) -> Result<(), String> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => CUT.to_string(),
        _ => error.to_string(),
    };
    let mut number = [0; 4];
    loop {
        file.read_exact(&mut number).map_err(failed)?;
        // Old streams lack the four bytes before the length.
        if number == [0xff; 4] {
            file.read_exact(&mut number).map_err(failed)?;
        }
        let left = length - file.stream_position().map_err(failed)?;
        let size = u32::from_le_bytes(number);
        if size == 0 {
            return match left {
                0 => Ok(()),
                _ => Err("something follows the end of the Arrow stream".into()),
            };
        }
        if number == *b"ARRO" {
            return Err("this is an Arrow file; print an Arrow stream".into());
        }
        if u64::from(size) > left {
            return Err(CUT.into());
        }
        let mut head = vec![0; size as usize];
        file.read_exact(&mut head).map_err(failed)?;
        let message = arrow::ipc::root_as_message(&head)
            .map_err(|error| format!("this is not an Arrow stream: {error}"))?;
        let body = message.bodyLength();
        if !u64::try_from(body).is_ok_and(|body| body <= left - u64::from(size)) {
            return Err(CUT.into());
        }
        file.seek_relative(body).map_err(failed)?;
    }
}

fn read_parquet(file: File) -> Result<Vec<RecordBatch>, String> {
    ParquetRecordBatchReaderBuilder::try_new(file)
        .and_then(ParquetRecordBatchReaderBuilder::build)
        .map_err(|e| e.to_string())?
        .collect::<Result<_, _>>()
        .map_err(|e| e.to_string())
}

/// A Parquet file ends with the length of its footer and a mark.
fn check_footer(file: &File) -> Result<(), String> {
    use std::os::unix::fs::FileExt;
    const MARK: &[u8] = b"PAR1";
    let length = file.metadata().map_err(|e| e.to_string())?.len();
    let mut end = [0; 8];
    if length < 12 {
        return Err(format!("{length} bytes are not a Parquet file"));
    }
    file.read_exact_at(&mut end, length - 8).map_err(|e| e.to_string())?;
    let (footer, mark) = end.split_at(4);
    if mark != MARK {
        return Err("the Parquet file broke off, or is none: the mark at its end is missing".into());
    }
    let footer = footer.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    if footer > length - 12 {
        return Err("the Parquet file broke off: its footer is longer than the file".into());
    }
    Ok(())
}

/// Arrow's reader rounds numbers and accepts texts as numbers; a contract does not.
fn check_json(mut file: impl BufRead, schema: &SchemaRef) -> Result<(), String> {
    let mut bytes = Vec::new();
    let mut number = 0;
    loop {
        bytes.clear();
        number += 1;
        let read = file.read_until(b'\n', &mut bytes);
        match read.map_err(|e| e.to_string())? {
            0 => return Ok(()),
            _ => check_line(&bytes, schema)
                .map_err(|what| format!("line {number} of its standard output: {what}"))?,
        }
    }
}

fn check_line(bytes: &[u8], schema: &SchemaRef) -> Result<(), String> {
    let whole = bytes.ends_with(b"\n");
    let broke_off = "the output broke off: there is no line break at its end, and";
    let line = std::str::from_utf8(bytes).map_err(|e| {
        let what = format!("byte {} is not UTF-8", e.valid_up_to() + 1);
        if whole { what } else { format!("{broke_off} {what}") }
    })?;
    if line.trim().is_empty() {
        return Ok(());
    }
    let row: Map<String, Value> = serde_json::from_str(line).map_err(|e| {
        // The parser only sees one line, and numbers it 1.
        let what = e.to_string();
        let what = what.split(" at line 1 ").collect::<Vec<_>>().join(" at ");
        if whole { what } else { format!("{broke_off} {what}") }
    })?;
    for field in schema.fields() {
        let value = row.get(field.name()).unwrap_or(&Value::Null);
        if !json_fits(value, field.data_type()) {
            let wanted = type_name(field.data_type());
            return Err(format!("column `{}` is {value}, not {wanted}", field.name()));
        }
        if value.is_null() && !field.is_nullable() {
            return Err(format!("column `{}` is missing or null", field.name()));
        }
    }
    match row.keys().find(|k| schema.field_with_name(k).is_err()) {
        Some(extra) => Err(format!("column `{extra}` is not declared")),
        None => Ok(()),
    }
}

fn json_fits(value: &Value, data_type: &DataType) -> bool {
    match (value, data_type) {
        (Value::Null, _) => true,
        (Value::Bool(_), t) => *t == DataType::Boolean,
        (Value::Number(n), t) if t.is_integer() => n.is_i64() || n.is_u64(),
        (Value::Number(_), t) => t.is_floating(),
        (Value::String(_), t) => !t.is_numeric() && !t.is_nested() && *t != DataType::Boolean,
        (Value::Array(items), DataType::List(item)) => {
            items.iter().all(|v| json_fits(v, item.data_type()))
        }
        (Value::Object(map), DataType::Struct(fields)) => fields
            .iter()
            .all(|f| json_fits(map.get(f.name()).unwrap_or(&Value::Null), f.data_type())),
        _ => false,
    }
}

/// The batch with the declared columns, in order and with their types.
fn fit(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, String> {
    let printed = batch.schema();
    if let Some(extra) = printed.fields().iter().find(|f| schema.field_with_name(f.name()).is_err())
    {
        return Err(format!("column `{}` is not declared", extra.name()));
    }
    let mut columns = Vec::with_capacity(schema.fields().len());
    for field in schema.fields() {
        let column = batch
            .column_by_name(field.name())
            .ok_or_else(|| format!("column `{}` is missing", field.name()))?;
        if type_name(column.data_type()) != type_name(field.data_type()) {
            return Err(format!(
                "column `{}` has type {} instead of {}",
                field.name(),
                type_name(column.data_type()),
                type_name(field.data_type())
            ));
        }
        let column = arrow::compute::cast(column, field.data_type()).map_err(|e| e.to_string())?;
        if !field.is_nullable() && column.null_count() > 0 {
            return Err(format!("column `{}` has nulls", field.name()));
        }
        columns.push(column);
    }
    RecordBatch::try_new(Arc::clone(schema), columns).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use arrow::array::{Int64Array, StringArray};
    use arrow::datatypes::{Field, Schema};

    use super::*;

    fn batch() -> RecordBatch {
        let schema = Schema::new(vec![
            Field::new("id", DataType::Utf8, false),
            Field::new("x", DataType::Int64, false),
        ]);
        let ids = Arc::new(StringArray::from(vec!["é", "b"]));
        // The bytes of the last number equal the end mark of an Arrow stream.
        let xs = Arc::new(Int64Array::from(vec![-1, 0xffff_ffff]));
        RecordBatch::try_new(Arc::new(schema), vec![ids, xs]).unwrap()
    }

    /// The number of rows read from a file with these bytes.
    fn rows(bytes: &[u8], format: Format) -> Result<usize, String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let batches = read_table(file.path(), format, &batch().schema())?;
        Ok(batches.iter().map(RecordBatch::num_rows).sum())
    }

    fn written(format: Format) -> Vec<u8> {
        let file = tempfile::NamedTempFile::new().unwrap();
        write_table(file.path(), format, &batch().schema(), &[batch(), batch()]).unwrap();
        std::fs::read(file.path()).unwrap()
    }

    #[test]
    fn no_part_of_a_file_of_columns_is_a_table() {
        for format in [Format::Arrow, Format::Parquet] {
            let bytes = written(format);
            assert_eq!(rows(&bytes, format), Ok(4));
            for end in 0..bytes.len() {
                assert!(rows(&bytes[..end], format).is_err(), "{format:?} up to {end}");
            }
        }
        let twice = [written(Format::Arrow), written(Format::Arrow)].concat();
        let error = rows(&twice, Format::Arrow).unwrap_err();
        assert!(error.contains("follows the end"), "{error}");
    }

    #[test]
    fn a_line_that_broke_off_is_no_row() {
        let bytes = written(Format::Jsonl);
        assert_eq!(rows(&bytes, Format::Jsonl), Ok(4));
        let last = bytes[..bytes.len() - 1].iter().rposition(|b| *b == b'\n').unwrap() + 1;
        for end in last + 1..bytes.len() - 1 {
            let error = rows(&bytes[..end], Format::Jsonl).unwrap_err();
            assert!(error.starts_with("line 4 of") && error.contains("broke off"), "{error}");
        }
        // The last line break may be missing after a complete object.
        assert_eq!(rows(&bytes[..bytes.len() - 1], Format::Jsonl), Ok(4));
    }

    #[test]
    fn a_key_that_comes_twice_is_told_with_its_line() {
        let error =
            rows(b"{\"id\":\"a\",\"x\":1}\n{\"id\":\"b\",\"x\":1,\"x\":2}\n", Format::Jsonl);
        let error = error.unwrap_err();
        let start = "in its standard output, line 2: an object has the key `x` twice";
        assert!(error.starts_with(start), "{error}");
    }

    #[test]
    fn a_footer_that_is_longer_than_the_file_is_told() {
        let mut bytes = written(Format::Parquet);
        let at = bytes.len() - 8;
        bytes[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        let error = rows(&bytes, Format::Parquet).unwrap_err();
        assert!(error.contains("longer than the file"), "{error}");
    }

    #[test]
    fn bytes_that_are_no_text_are_told_with_their_place() {
        let error = rows(b"{\"id\":\"a\",\"x\":1}\n{\"id\":\"\xff\",\"x\":1}\n", Format::Jsonl);
        assert_eq!(error, Err("line 2 of its standard output: byte 8 is not UTF-8".into()));
    }

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
