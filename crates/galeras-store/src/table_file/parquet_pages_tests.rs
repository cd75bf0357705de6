//! Parquet files that take much more memory than disk, and sound ones that look like them.

use std::sync::Arc;

use arrow::array::{ArrayRef, ListArray, RecordBatch, StringArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};

use super::check_parquet;
use super::parquet_pages::{Look, PageLimits, check_pages};
use super::thrift::Reader;

/// A sixty-fourth of what is allowed, so that files are built at once.
const LIMITS: PageLimits =
    PageLimits { page: 4 << 20, open: 32 << 20, batch: 32 << 20, texts: 256 << 20 };

fn zstd() -> WriterPropertiesBuilder {
    WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default()))
}

fn written(
    properties: WriterPropertiesBuilder,
    columns: &[(&str, ArrayRef)],
    times: usize,
) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter(columns.iter().cloned()).unwrap();
    let mut writer =
        ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties.build())).unwrap();
    (0..times).for_each(|_| writer.write(&batch).unwrap());
    writer.into_inner().unwrap()
}

fn check(bytes: &[u8]) -> Result<(), String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    check_pages(file.reopen().unwrap(), LIMITS, Look::Rows)
}

fn texts(each: &str, rows: usize) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(std::iter::repeat_n(each, rows)))
}

/// The same text in lists of so many.
fn lists(each: &str, lengths: &[usize]) -> ArrayRef {
    let values = texts(each, lengths.iter().sum());
    let field = Arc::new(Field::new("item", DataType::Utf8, true));
    let offsets = OffsetBuffer::from_lengths(lengths.iter().copied());
    Arc::new(ListArray::new(field, offsets, values, None))
}

#[test]
fn a_page_that_unpacks_to_more_than_is_allowed_is_refused() {
    let zeros = "\0".repeat(5 << 20);
    let plain = zstd().set_dictionary_enabled(false);
    let bytes = written(plain, &[("zeros", texts(&zeros, 1))], 1);
    assert!(bytes.len() < 16 << 10, "{}", bytes.len());
    let problem = check(&bytes).unwrap_err();
    assert!(problem.contains("column `zeros` has a page of 5 MiB"), "{problem}");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    assert_eq!(check_parquet(file.path()), Ok(()));
}

#[test]
fn no_flipped_bit_of_a_page_panics() {
    let field = [1, 0, 2, 3];
    let delta = zstd().set_column_encoding("delta".into(), Encoding::DELTA_BYTE_ARRAY);
    let columns =
        [("list", lists("a", &field)), ("delta", texts("b", 4)), ("plain", texts("c", 4))];
    let sound = written(delta.set_column_dictionary_enabled("delta".into(), false), &columns, 1);
    assert_eq!(check(&sound), Ok(()));
    // So tight that everything is decoded.
    let tight = PageLimits { batch: 0, texts: 0, ..LIMITS };
    let file = tempfile::NamedTempFile::new().unwrap();
    let footer: [u8; 4] = sound[sound.len() - 8..][..4].try_into().unwrap();
    let pages = sound.len() - 8 - u32::from_le_bytes(footer) as usize;
    let mut refused = 0;
    for at in 4..pages {
        for bit in 0..8 {
            let mut bytes = sound.clone();
            bytes[at] ^= 1 << bit;
            std::fs::write(file.path(), bytes).unwrap();
            refused += usize::from(check_pages(file.reopen().unwrap(), tight, Look::Rows).is_err());
        }
    }
    assert!(refused > pages, "{refused} of {}", 8 * pages);
}

/// All values are places in the dictionary, however large it gets.
fn lasting() -> WriterPropertiesBuilder {
    zstd().set_dictionary_page_size_limit(usize::MAX)
}

#[test]
fn a_long_text_of_a_dictionary_in_many_rows_is_refused() {
    let text = "x".repeat(200 << 10);
    let few = written(lasting(), &[("text", texts(&text, 100))], 12);
    assert_eq!(check(&few), Ok(()));
    let many = written(lasting(), &[("text", texts(&text, 100))], 14);
    assert!(many.len() < 64 << 10, "{}", many.len());
    let problem = check(&many).unwrap_err();
    assert!(problem.contains("its texts have 273 MiB") && problem.contains("`text`"), "{problem}");
}

#[test]
fn rows_that_are_too_large_together_are_refused_though_each_column_is_not() {
    let column = texts(&"x".repeat(100 << 10), 16);
    let names = ["a", "b", "c", "d", "e"];
    let columns = names.map(|name| (name, Arc::clone(&column)));
    assert_eq!(check(&written(lasting(), &columns[..2], 10)), Ok(()));
    let problem = check(&written(lasting(), &columns, 10)).unwrap_err();
    assert!(problem.contains("128 of its rows have 62 MiB"), "{problem}");
}

#[test]
fn a_list_that_repeats_a_text_is_counted_by_its_values() {
    let text = "x".repeat(16 << 10);
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        let properties = || lasting().set_writer_version(version);
        let one_row = written(properties(), &[("list", lists(&text, &[4000]))], 1);
        let problem = check(&one_row).unwrap_err();
        assert!(problem.contains("of its rows have 62 MiB"), "{problem}");
        // The same values in many rows are fine.
        let rows = written(properties(), &[("list", lists(&text, &[4; 1000]))], 1);
        assert_eq!(check(&rows), Ok(()));
    }
}

#[test]
fn a_row_of_a_list_with_millions_of_nulls_counts_what_they_take() {
    let field = Arc::new(Field::new("item", DataType::Int64, true));
    let nulls: ArrayRef = Arc::new(arrow::array::Int64Array::new_null(2 << 20));
    let offsets = OffsetBuffer::from_lengths([2 << 20]);
    let list: ArrayRef = Arc::new(ListArray::new(field, offsets, nulls, None));
    let bytes = written(zstd(), &[("list", list)], 1);
    assert!(bytes.len() < 4 << 10, "{}", bytes.len());
    assert!(check(&bytes).unwrap_err().contains("of its rows have 48 MiB"));
}

#[test]
fn what_many_columns_with_large_dictionaries_really_hold_counts() {
    // Dictionaries of 200 kilobytes each, whose texts have a kilobyte.
    let values: Vec<String> = (0..200).map(|i| format!("{i:01000}")).collect();
    let column: ArrayRef = Arc::new(StringArray::from(values));
    let names: Vec<String> = (0..40).map(|i| format!("c{i}")).collect();
    let columns: Vec<(&str, ArrayRef)> =
        names.iter().map(|name| (name.as_str(), Arc::clone(&column))).collect();
    assert_eq!(check(&written(zstd(), &columns, 2)), Ok(()));
}

#[test]
fn texts_that_are_differences_to_others_count_with_what_they_share() {
    let delta = || zstd().set_dictionary_enabled(false).set_encoding(Encoding::DELTA_BYTE_ARRAY);
    let short: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..50_000).map(|i| format!("text {i:09}"))));
    assert_eq!(check(&written(delta(), &[("short", short)], 1)), Ok(()));
    let long = texts(&"x".repeat(100 << 10), 100);
    let bytes = written(delta(), &[("long", long)], 30);
    let problem = check(&bytes).unwrap_err();
    assert!(problem.contains("its texts have") && problem.contains("`long`"), "{problem}");
}

#[test]
fn a_header_that_lies_is_refused_here_or_by_the_reader() {
    let text = "x".repeat(1 << 20);
    let sound = written(zstd().set_dictionary_enabled(false), &[("text", texts(&text, 3))], 1);
    assert_eq!(check(&sound), Ok(()));
    // The first page begins behind the magic: kind, size unpacked, size packed.
    assert_eq!(sound[4..7], [0x15, 0, 0x15]);
    let mut reader = Reader::new(&sound[7..]);
    let size = reader.integer().unwrap();
    let used = sound.len() - 7 - reader.left();
    assert_eq!(used, 4);
    assert!(size > 1 << 20);
    // As many bytes, so that nothing else moves: far more, and far less than there is.
    let varint = |mut n: u64| {
        let mut bytes = Vec::new();
        for _ in 0..used {
            bytes.push((n & 0x7f) as u8 | 0x80);
            n >>= 7;
        }
        *bytes.last_mut().unwrap() &= 0x7f;
        bytes
    };
    let lie = |said: u64| {
        let mut bytes = sound.clone();
        bytes[7..7 + used].copy_from_slice(&varint(said * 2));
        bytes
    };
    assert!(check(&lie(5 << 20)).unwrap_err().contains("has a page of 5 MiB"));
    let small = lie(1000);
    assert_eq!(check(&small), Ok(()));
    let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(
        bytes::Bytes::from(small),
    );
    let rows: Result<Vec<_>, _> = reader.unwrap().build().unwrap().collect();
    assert!(rows.is_err());
    // A page of a kind that nobody writes could hide others.
    let mut bytes = sound.clone();
    bytes[5] = 2;
    assert!(check(&bytes).unwrap_err().contains("pages of column `text` make no sense"));
}
