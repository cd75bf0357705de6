//! Key-value metadata of Parquet files: added while a stored table is copied, and read back; and
//! the logical digest of the table in a file.

use std::fs::File;
use std::io::{Read as _, Write};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::{
    FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataBuilder, ParquetMetaDataOptions,
    ParquetMetaDataReader, ParquetMetaDataWriter,
};

use galeras_base::digest::{Digest, table_digest};
use galeras_operator::StepError;
use galeras_operator::table_digest::TableHasher;
use galeras_store::{check_parquet, footer_range};

/// Copies a Parquet file of ours and adds key-value metadata. The data are the same bytes; only the
/// footer is rewritten.
///
/// # Errors
/// If one of the files fails, or `from` is damaged.
pub fn copy_with_metadata(
    from: &File,
    mut to: impl Write,
    pairs: &[(String, String)],
) -> Result<(), StepError> {
    let (start, length, _) = footer_range(from).map_err(StepError::new)?;
    std::io::copy(&mut from.take(start), &mut to)?;
    let metadata = decode(from, start, length)?;
    let file = metadata.file_metadata();
    let mut all = file.key_value_metadata().cloned().unwrap_or_default();
    all.extend(key_values(pairs));
    let file = FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_string),
        Some(all),
        file.schema_descr_ptr(),
        file.column_orders().cloned(),
    );
    // The offsets of the data are also those of the copy.
    let groups = metadata.row_groups().to_vec();
    let metadata = ParquetMetaDataBuilder::new(file).set_row_groups(groups).build();
    Ok(ParquetMetaDataWriter::new(&mut to, &metadata).finish()?)
}

/// Pairs as a Parquet file has them.
pub fn key_values(pairs: &[(String, String)]) -> Vec<KeyValue> {
    pairs.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone())).collect()
}

/// The key-value metadata of a file, which may be anybody's.
///
/// # Errors
/// A sentence that fits after "cannot read FILE: ".
pub fn read_metadata(file: &Path) -> Result<Vec<(String, String)>, String> {
    check_parquet(file)?;
    let file = File::open(file).map_err(|error| error.to_string())?;
    let (start, length, _) = footer_range(&file)?;
    let metadata = decode(&file, start, length).map_err(|error| error.to_string())?;
    let pairs = metadata.file_metadata().key_value_metadata().into_iter().flatten();
    Ok(pairs.filter_map(|pair| Some((pair.key.clone(), pair.value.clone()?))).collect())
}

/// The logical digest of the table in a file, which may be anybody's. Hidden columns do not count.
///
/// # Errors
/// A sentence that fits after "cannot read FILE: ".
pub fn read_table_digest(file: &Path) -> Result<Digest, String> {
    check_parquet(file)?;
    let file = File::open(file).map_err(|error| error.to_string())?;
    let failed = |error: &dyn std::fmt::Display| error.to_string();
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| failed(&e))?;
    let mut hasher = TableHasher::new(builder.schema());
    for batch in builder.build().map_err(|e| failed(&e))? {
        hasher.update(&batch.map_err(|e| failed(&e))?).map_err(|e| failed(&e))?;
    }
    let (mut columns, rows) = hasher.finish();
    columns.retain(|column| !column.name.starts_with("__"));
    Ok(table_digest(&columns, rows))
}

fn decode(file: &File, start: u64, length: u64) -> Result<ParquetMetaData, StepError> {
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
    file.read_exact_at(&mut bytes, start)?;
    // Complete, so that nothing is lost in a copy.
    let options = ParquetMetaDataOptions::new().with_encoding_stats_as_mask(false);
    Ok(ParquetMetaDataReader::decode_metadata_with_options(&bytes, Some(&options))?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};

    use super::*;
    use crate::session::encode::encode;

    fn batch() -> RecordBatch {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100_000));
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values(
            (0..100_000).map(|i| format!("text {}", i % 7)),
        ));
        RecordBatch::try_from_iter([("n", numbers), ("s", texts)]).unwrap()
    }

    #[test]
    fn a_copy_has_the_same_data_and_more_to_say() {
        let folder = tempfile::tempdir().unwrap();
        let (stored, copied) = (folder.path().join("a"), folder.path().join("b"));
        let mut rows = [batch().slice(0, 40_000), batch().slice(40_000, 60_000)].into_iter();
        let (bytes, _) = encode(Vec::new(), batch().schema(), 2, || rows.next()).unwrap();
        std::fs::write(&stored, &bytes).unwrap();
        let pairs = [("galeras.step".to_string(), "a \"b\"\n".to_string())];
        let copy = || {
            let mut copy = Vec::new();
            copy_with_metadata(&File::open(&stored).unwrap(), &mut copy, &pairs).unwrap();
            copy
        };
        std::fs::write(&copied, copy()).unwrap();
        assert_eq!(copy(), std::fs::read(&copied).unwrap());

        let (before, after) = (read_metadata(&stored).unwrap(), read_metadata(&copied).unwrap());
        assert_eq!(after, [before, pairs.to_vec()].concat());
        assert_eq!(read_table_digest(&stored), read_table_digest(&copied));
        let metadata = |path: &Path| {
            let file = File::open(path).unwrap();
            let (start, length, _) = footer_range(&file).unwrap();
            decode(&file, start, length).unwrap()
        };
        let (before, after) = (metadata(&stored), metadata(&copied));
        assert_eq!(before.row_groups(), after.row_groups(), "statistics and offsets");
        assert_eq!(before.num_row_groups(), 2);
        let data = footer_range(&File::open(&stored).unwrap()).unwrap().0 as usize;
        assert_eq!(copy()[..data], bytes[..data]);
    }

    #[test]
    fn a_file_that_is_not_parquet_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        std::fs::write(&file, "PAR1, or so it says, PAR1").unwrap();
        assert!(read_metadata(&file).is_err() && read_table_digest(&file).is_err());
    }
}
