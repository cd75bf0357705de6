//! Logical digests of tables: over the values, not over the bytes of a file.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use galeras_base::digest::ColumnDigest;

/// Accumulates the digests of a table's columns, batch by batch.
pub struct TableHasher {
    columns: Vec<(String, String, blake3::Hasher)>,
    rows: u64,
    buffer: Vec<u8>,
}

impl TableHasher {
    /// A hasher for tables of this schema.
    pub fn new(schema: &Schema) -> Self {
        let columns = schema
            .fields()
            .iter()
            .map(|f| (f.name().clone(), type_name(f.data_type()), blake3::Hasher::new()))
            .collect();
        Self { columns, rows: 0, buffer: Vec::new() }
    }

    /// Adds the rows of `batch`, whose columns must be those of the schema, in its order.
    pub fn update(&mut self, batch: &RecordBatch) -> Result<(), UnsupportedType> {
        for (column, (_, _, hasher)) in batch.columns().iter().zip(&mut self.columns) {
            self.buffer.clear();
            encode_column(column.as_ref(), &mut self.buffer)?;
            hasher.update(&self.buffer);
        }
        self.rows += batch.num_rows() as u64;
        Ok(())
    }

    /// The digests of the columns and the number of rows.
    pub fn finish(self) -> (Vec<ColumnDigest>, u64) {
        let columns = self
            .columns
            .into_iter()
            .map(|(name, data_type, hasher)| ColumnDigest {
                name,
                data_type,
                digest: hasher.finalize().into(),
            })
            .collect();
        (columns, self.rows)
    }
}

/// A column's type has no canonical encoding.
#[derive(Debug, thiserror::Error)]
#[error("columns of type {0} cannot be stored; cast the column to another type")]
pub struct UnsupportedType(pub String);

/// The canonical bytes of each row of `columns`, for digests of rows: `emit` gets the row number
/// and the encoding of its columns, each length-prefixed and typed as in the table digest.
pub fn encode_rows(
    columns: &[arrow::array::ArrayRef],
    rows: usize,
    mut emit: impl FnMut(usize, &[u8]),
) -> Result<(), UnsupportedType> {
    let mut buffer = Vec::new();
    for row in 0..rows {
        buffer.clear();
        for column in columns {
            encode_value(column.as_ref(), row, &mut buffer)?;
        }
        emit(row, &buffer);
    }
    Ok(())
}

fn encode_column(array: &dyn Array, out: &mut Vec<u8>) -> Result<(), UnsupportedType> {
    // The common types first, without a dispatch per value.
    match array.data_type() {
        DataType::Utf8 => {
            let array = array.as_string::<i32>();
            out.reserve(array.value_data().len() + 9 * array.len());
            for value in array {
                encode_bytes(value.map(str::as_bytes), out);
            }
            Ok(())
        }
        _ => (0..array.len()).try_for_each(|row| encode_value(array, row, out)),
    }
}

fn encode_bytes(value: Option<&[u8]>, out: &mut Vec<u8>) {
    match value {
        None => out.push(0),
        Some(bytes) => {
            out.push(1);
            out.extend((bytes.len() as u64).to_le_bytes());
            out.extend(bytes);
        }
    }
}

fn encode_value(array: &dyn Array, row: usize, out: &mut Vec<u8>) -> Result<(), UnsupportedType> {
    use arrow::datatypes::{
        Date32Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
        TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
        TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
    };
    macro_rules! primitive {
        ($t:ty) => {{
            out.push(1);
            out.extend(array.as_primitive::<$t>().value(row).to_le_bytes());
        }};
    }
    if array.is_null(row) {
        out.push(0);
        return Ok(());
    }
    match array.data_type() {
        DataType::Null => out.push(0),
        DataType::Boolean => out.extend([1, u8::from(array.as_boolean().value(row))]),
        DataType::Int8 => primitive!(Int8Type),
        DataType::Int16 => primitive!(Int16Type),
        DataType::Int32 => primitive!(Int32Type),
        DataType::Int64 => primitive!(Int64Type),
        DataType::UInt8 => primitive!(UInt8Type),
        DataType::UInt16 => primitive!(UInt16Type),
        DataType::UInt32 => primitive!(UInt32Type),
        DataType::UInt64 => primitive!(UInt64Type),
        DataType::Float32 => {
            let value = array.as_primitive::<Float32Type>().value(row);
            let value = if value.is_nan() { f32::NAN } else { value };
            out.push(1);
            out.extend(value.to_bits().to_le_bytes());
        }
        DataType::Float64 => {
            // NaN has many bit patterns and one meaning.
            let value = array.as_primitive::<Float64Type>().value(row);
            let value = if value.is_nan() { f64::NAN } else { value };
            out.push(1);
            out.extend(value.to_bits().to_le_bytes());
        }
        DataType::Date32 => primitive!(Date32Type),
        DataType::Timestamp(TimeUnit::Second, _) => primitive!(TimestampSecondType),
        DataType::Timestamp(TimeUnit::Millisecond, _) => primitive!(TimestampMillisecondType),
        DataType::Timestamp(TimeUnit::Microsecond, _) => primitive!(TimestampMicrosecondType),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => primitive!(TimestampNanosecondType),
        DataType::Utf8 => {
            encode_bytes(Some(array.as_string::<i32>().value(row).as_bytes()), out);
        }
        DataType::LargeUtf8 => {
            encode_bytes(Some(array.as_string::<i64>().value(row).as_bytes()), out);
        }
        DataType::Utf8View => encode_bytes(Some(array.as_string_view().value(row).as_bytes()), out),
        DataType::Binary => encode_bytes(Some(array.as_binary::<i32>().value(row)), out),
        DataType::FixedSizeBinary(_) => {
            encode_bytes(Some(array.as_fixed_size_binary().value(row)), out);
        }
        DataType::List(_) => {
            let values = array.as_list::<i32>().value(row);
            out.push(1);
            out.extend((values.len() as u64).to_le_bytes());
            for i in 0..values.len() {
                encode_value(values.as_ref(), i, out)?;
            }
        }
        DataType::Struct(_) => {
            out.push(1);
            for column in array.as_struct().columns() {
                encode_value(column.as_ref(), row, out)?;
            }
        }
        other => return Err(UnsupportedType(type_name(other))),
    }
    Ok(())
}

/// The type in the words of a workflow's `schema:` contract: `utf8`, `int64`,
/// `list<utf8>`, `struct<role: utf8, content: utf8>`.
pub fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Null => "null".into(),
        DataType::Boolean => "bool".into(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "utf8".into(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "binary".into(),
        DataType::Timestamp(unit, zone) => {
            let unit = match unit {
                TimeUnit::Second => "s",
                TimeUnit::Millisecond => "ms",
                TimeUnit::Microsecond => "us",
                TimeUnit::Nanosecond => "ns",
            };
            match zone {
                None => format!("timestamp[{unit}]"),
                Some(zone) => format!("timestamp[{unit}, {zone}]"),
            }
        }
        DataType::List(item) | DataType::LargeList(item) => {
            format!("list<{}>", type_name(item.data_type()))
        }
        DataType::Struct(fields) => {
            let field =
                |f: &std::sync::Arc<Field>| format!("{}: {}", f.name(), type_name(f.data_type()));
            format!("struct<{}>", fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
        DataType::Date32 => "date".into(),
        other => other.to_string().to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Float64Array, Int64Array, StringArray};
    use serde_json::json;

    use galeras_base::digest::{Digest, table_digest};

    use super::*;

    fn batch() -> RecordBatch {
        let schema = Schema::new(vec![
            Field::new("id", DataType::Utf8, false),
            Field::new("x", DataType::Int64, true),
            Field::new("y", DataType::Float64, true),
        ]);
        RecordBatch::try_new(
            Arc::new(schema),
            vec![
                Arc::new(StringArray::from(vec!["a", "b", "c"])),
                Arc::new(Int64Array::from(vec![Some(1), None, Some(3)])),
                Arc::new(Float64Array::from(vec![Some(0.5), Some(f64::NAN), None])),
            ],
        )
        .expect("columns fit the schema")
    }

    fn digest_in_slices(batch: &RecordBatch, size: usize) -> Digest {
        let mut hasher = TableHasher::new(&batch.schema());
        for start in (0..batch.num_rows()).step_by(size) {
            let slice = batch.slice(start, size.min(batch.num_rows() - start));
            hasher.update(&slice).expect("types are supported");
        }
        let (columns, rows) = hasher.finish();
        table_digest(&columns, rows)
    }

    #[test]
    fn a_table_digest_does_not_depend_on_batches() {
        assert_eq!(digest_in_slices(&batch(), 1), digest_in_slices(&batch(), 3));
    }

    #[test]
    fn digests_are_pinned() {
        assert_eq!(
            digest_in_slices(&batch(), 3).to_string(),
            "e3b33ab796c1d8d811b327665dfd7b0349c69003f1ce7c83295f592428676927"
        );
        assert_eq!(
            Digest::of_json(&json!({"b": [1, 1.0, "x", null, true], "a": {}})).to_string(),
            "0e9ae3fb667e9a3258c9ac68e9408715b77717828465e9d4481f1501dae4e7d9"
        );
    }

    #[test]
    fn key_order_does_not_matter_but_type_and_list_order_do() {
        let digest = |v| Digest::of_json(&v);
        assert_eq!(digest(json!({"a": 1, "b": 2})), digest(json!({"b": 2, "a": 1})));
        assert_ne!(digest(json!([1, 2])), digest(json!([2, 1])));
        assert_ne!(digest(json!(1)), digest(json!(1.0)));
        assert_ne!(digest(json!("1")), digest(json!(1)));
        assert_ne!(digest(json!(["ab", "c"])), digest(json!(["a", "bc"])));
    }

    #[test]
    fn neighbouring_texts_do_not_run_together() {
        let table = |values: Vec<&str>| {
            let schema = Arc::new(Schema::new(vec![Field::new("s", DataType::Utf8, false)]));
            let column = Arc::new(StringArray::from(values));
            RecordBatch::try_new(schema, vec![column]).expect("columns fit the schema")
        };
        let one = digest_in_slices(&table(vec!["ab", "c"]), 2);
        assert_ne!(one, digest_in_slices(&table(vec!["a", "bc"]), 2));
    }
}
