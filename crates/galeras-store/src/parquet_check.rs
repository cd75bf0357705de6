//! Checks Parquet files from strangers before the Parquet library reads them.
//!
//! The library trusts the footer. It panics at a footer longer than the file, allocates memory for
//! a list of 2^31 row groups, and overflows its stack at deeply nested columns. Rows that need too
//! much memory are left to the memory guard of the process.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use parquet::basic::Repetition;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader};
use parquet::schema::types::Type;

use galeras_base::system_limits;
use galeras_workflow::quote;

/// The bytes at the end of a file: the length of the footer and the magic.
const TAIL: u64 = 8;

/// The deepest nesting of columns in a file that is read, lists and structs counted.
pub const MAX_COLUMN_DEPTH: usize = 32;

/// The most columns of a file that is read, those within columns counted. The time to plan a query
/// grows with their square, and is minutes for more.
pub const MAX_COLUMNS: usize = 10_000;

/// The most columns and groups of columns: a list is three of them.
const MAX_SCHEMA: usize = 4 * MAX_COLUMNS;

/// The largest footer: that of more than a hundred thousand columns.
const MAX_FOOTER_BYTES: u64 = 1 << 30;

/// The library needs less than a kilobyte of stack for each level of the schema.
const STACK_BYTES: usize = MAX_SCHEMA << 12;

/// The deepest nesting of values in a footer.
const MAX_VALUE_DEPTH: usize = 32;

// The errors of these functions are sentences that fit after "cannot read FILE: ".

/// Checks that the footer of a file lies within it.
pub fn check_footer(file: &Path) -> Result<(), String> {
    let file = File::open(file).map_err(|e| e.to_string())?;
    footer_range(&file).map(drop)
}

/// Checks that the library can read a file: the footer is valid, it and the columns lie within the
/// file, no two columns have the same name, and there are not too many.
pub fn check_parquet(file: &Path) -> Result<(), String> {
    let file = File::open(file).map_err(|e| e.to_string())?;
    match check_whole_footer(&file)? {
        columns if columns > MAX_COLUMNS => Err(too_many_columns(columns)),
        _ => Ok(()),
    }
}

/// Checks the footer of a file; returns the number of columns, those within columns counted.
pub fn check_whole_footer(file: &File) -> Result<usize, String> {
    let (start, length, size) = footer_range(file)?;
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
    file.read_exact_at(&mut bytes, start).map_err(|e| e.to_string())?;
    let elements = schema_elements(&bytes).ok_or("its footer is damaged")?;
    if elements > MAX_SCHEMA {
        return Err(too_many_columns(elements));
    }
    // A thread, for its stack, and because the library panics at some footers.
    let check = || {
        let metadata = ParquetMetaDataReader::decode_metadata(&bytes);
        let metadata = metadata.map_err(|e| format!("its footer is damaged: {e}"))?;
        check_metadata(&metadata, size)
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        let thread = thread.spawn_scoped(scope, check).map_err(|e| system_limits::no_thread(&e))?;
        thread.join().unwrap_or_else(|_| Err("it is damaged: its reader gave up".into()))
    })
}

/// The start of the footer, its length, and the size of the file.
pub fn footer_range(file: &File) -> Result<(u64, u64, u64), String> {
    let size = file.metadata().map_err(|e| e.to_string())?.len();
    let Some(tail) = size.checked_sub(TAIL).filter(|at| *at >= 4) else {
        return Err(format!("a Parquet file has more than {size} bytes"));
    };
    let mut bytes = [0; TAIL as usize];
    file.read_exact_at(&mut bytes, tail).map_err(|e| e.to_string())?;
    let [a, b, c, d, magic @ ..] = bytes;
    match &magic {
        b"PAR1" => {}
        b"PARE" => return Err("it is encrypted".into()),
        _ => return Err("it is not Parquet, or its end is missing".into()),
    }
    let length = u64::from(u32::from_le_bytes([a, b, c, d]));
    // The first four bytes are another magic.
    if length > tail - 4 {
        return Err(format!(
            "its footer should have {length} bytes, and the whole file has {size}; it is damaged \
             or was cut"
        ));
    }
    if length > MAX_FOOTER_BYTES {
        return Err(format!("its footer has {} MiB", length >> 20));
    }
    Ok((tail - length, length, size))
}

fn check_metadata(metadata: &ParquetMetaData, size: u64) -> Result<usize, String> {
    let columns = metadata.file_metadata().schema_descr().num_columns();
    for group in metadata.row_groups() {
        if group.num_rows() < 0 || metadata.file_metadata().num_rows() < 0 {
            return Err("it is damaged: a number of rows is below zero".into());
        }
        if group.num_columns() != columns {
            return Err("it is damaged: its numbers of columns contradict each other".into());
        }
        if !group.columns().iter().flat_map(parts).all(|part| is_within(part, size)) {
            return Err("it is damaged: a column lies outside of the file".into());
        }
    }
    check_columns(metadata.file_metadata().schema(), 0, 0)?;
    Ok(columns)
}

/// The start and the length of parts of the file.
fn parts(column: &ColumnChunkMetaData) -> [(i64, i64); 3] {
    let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
    let index = |offset: Option<i64>, length: Option<i32>| {
        (offset.unwrap_or(0), i64::from(length.unwrap_or(0)))
    };
    [
        (start, column.compressed_size()),
        index(column.offset_index_offset(), column.offset_index_length()),
        index(column.column_index_offset(), column.column_index_length()),
    ]
}

fn is_within((start, length): (i64, i64), size: u64) -> bool {
    let (start, length) = (u64::try_from(start).ok(), u64::try_from(length).ok());
    let end = start.zip(length).and_then(|(start, length)| start.checked_add(length));
    end.is_some_and(|end| end <= size)
}

/// Checks the names in a group of columns, in so many lists and structs, and so many groups: a list
/// is two groups, of which the inner one is repeated.
fn check_columns(group: &Type, levels: usize, groups: usize) -> Result<(), String> {
    if levels > MAX_COLUMN_DEPTH || groups > 2 * MAX_COLUMN_DEPTH {
        return Err(format!(
            "its columns are nested more than {MAX_COLUMN_DEPTH} deep; no more can be stored"
        ));
    }
    let mut names: Vec<&str> = group.get_fields().iter().map(|field| field.name()).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(two_columns(pair[0]));
    }
    for field in group.get_fields().iter().filter(|field| field.is_group()) {
        let about = field.get_basic_info();
        let inner = about.has_repetition() && about.repetition() == Repetition::REPEATED;
        check_columns(field, levels + usize::from(!inner), groups + 1)?;
    }
    Ok(())
}

/// The message about too many columns, for every format but JSON.
pub fn too_many_columns(columns: usize) -> String {
    format!(
        "it has {columns} columns, and at most {MAX_COLUMNS} can be read; turn columns into rows \
         in the file (name, value)"
    )
}

/// The message about two columns with the same name, for every format.
pub fn two_columns(name: &str) -> String {
    format!(
        "two columns are called {}, and only one of them could be kept; give one of them another \
         name in the file",
        quote(name)
    )
}

/// The number of columns and groups in a footer (Thrift, compact protocol); `None` if a list or a
/// text in it is longer than the footer.
fn schema_elements(mut footer: &[u8]) -> Option<usize> {
    let mut elements = 0;
    skip_fields(&mut footer, 0, &mut elements)?;
    Some(elements)
}

/// Skips a struct. At the top, sets `elements` to the length of field 2, the list of columns.
fn skip_fields(rest: &mut &[u8], depth: usize, elements: &mut usize) -> Option<()> {
    let mut id = 0;
    loop {
        let header = *rest.split_off_first()?;
        id = match header >> 4 {
            _ if header == 0 => return Some(()),
            // In zigzag.
            0 => number(rest)? >> 1,
            more => id + u64::from(more),
        };
        let length = match header & 0x0f {
            // A Boolean is in the header.
            1 | 2 => 0,
            kind => skip_value(rest, kind, depth + 1)?,
        };
        if depth == 0 && id == 2 {
            *elements = length;
        }
    }
}

/// Skips a value; returns the length of a list.
fn skip_value(rest: &mut &[u8], kind: u8, depth: usize) -> Option<usize> {
    if depth > MAX_VALUE_DEPTH {
        return None;
    }
    let bytes = match kind {
        1..=3 => 1,
        4..=6 => number(rest).map(|_| 0)?,
        7 => 8,
        8 => usize::try_from(number(rest)?).ok()?,
        9 | 10 => {
            let header = *rest.split_off_first()?;
            let length = match header >> 4 {
                15 => usize::try_from(number(rest)?).ok()?,
                short => usize::from(short),
            };
            // Each item has at least one byte.
            if length > rest.len() {
                return None;
            }
            (0..length).try_for_each(|_| skip_value(rest, header & 0x0f, depth + 1).map(drop))?;
            return Some(length);
        }
        12 => skip_fields(rest, depth, &mut 0).map(|()| 0)?,
        _ => return None,
    };
    rest.split_off(..bytes).map(|_| 0)
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = *rest.split_off_first()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, ListArray, RecordBatch, StringArray, StructArray};
    use arrow::buffer::OffsetBuffer;
    use arrow::datatypes::{Field, Schema};
    use parquet::arrow::ArrowWriter;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    use super::*;

    fn written(columns: Vec<(&str, ArrayRef)>) -> Vec<u8> {
        let fields: Vec<_> = columns
            .iter()
            .map(|(name, array)| Field::new(*name, array.data_type().clone(), true))
            .collect();
        let arrays = columns.into_iter().map(|(_, array)| array).collect();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.into_inner().unwrap()
    }

    fn numbers() -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(0..100))
    }

    fn texts() -> ArrayRef {
        Arc::new(StringArray::from_iter_values((0..100).map(|i| format!("text {i}"))))
    }

    fn check(bytes: &[u8]) -> Result<(), String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        check_parquet(file.path())
    }

    fn nested(depth: usize) -> ArrayRef {
        let mut array: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        for _ in 0..depth {
            let field = Arc::new(Field::new("item", array.data_type().clone(), true));
            let offsets = OffsetBuffer::from_lengths([array.len()]);
            array = Arc::new(ListArray::new(field, offsets, array, None));
        }
        array
    }

    #[test]
    fn sound_files_are_sound() {
        let inner = Arc::new(Field::new("n", numbers().data_type().clone(), true));
        let group: ArrayRef = Arc::new(StructArray::from(vec![(inner, numbers())]));
        let bytes = written(vec![("n", numbers()), ("s", texts()), ("g", group)]);
        assert_eq!(check(&bytes), Ok(()));
        assert_eq!(check(&written(vec![("l", nested(3))])), Ok(()));
    }

    #[test]
    fn a_footer_longer_than_the_file_is_refused() {
        let sound = written(vec![("n", numbers())]);
        let at = sound.len() - 8;
        for length in [u32::MAX, sound.len() as u32, sound.len() as u32 - 11] {
            let mut bytes = sound.clone();
            bytes[at..at + 4].copy_from_slice(&length.to_le_bytes());
            let problem = check(&bytes).unwrap_err();
            assert!(problem.contains("footer should have"), "{length}: {problem}");
        }
        for cut in [0, 4, 11, at, sound.len() - 1] {
            assert!(check(&sound[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn two_columns_of_one_name_are_refused_at_every_level() {
        let twice = check(&written(vec![("n", numbers()), ("n", texts())])).unwrap_err();
        assert!(twice.contains("two columns are called `n`"), "{twice}");
        let field = |name| Arc::new(Field::new(name, numbers().data_type().clone(), true));
        let group: ArrayRef =
            Arc::new(StructArray::from(vec![(field("a"), numbers()), (field("a"), numbers())]));
        let twice = check(&written(vec![("g", group)])).unwrap_err();
        assert!(twice.contains("two columns are called `a`"), "{twice}");
    }

    #[test]
    fn columns_as_deep_as_the_limit_are_read_back() {
        let bytes = written(vec![("l", nested(MAX_COLUMN_DEPTH))]);
        assert_eq!(check(&bytes), Ok(()));
        ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap();
        let problem = check(&written(vec![("l", nested(MAX_COLUMN_DEPTH + 1))])).unwrap_err();
        assert!(problem.contains("nested more than 32 deep"), "{problem}");
    }

    #[test]
    fn no_flipped_bit_of_a_footer_ends_the_process() {
        let sound = written(vec![("n", numbers()), ("s", texts())]);
        let [.., a, b, c, d, _, _, _, _] = sound[..] else { unreachable!() };
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        let mut refused = 0;
        for at in sound.len() - 8 - length..sound.len() {
            for bit in 0..8 {
                let mut bytes = sound.clone();
                bytes[at] ^= 1 << bit;
                refused += usize::from(check(&bytes).is_err());
            }
        }
        assert!(refused > length, "{refused} of {}", 8 * length);
    }

    /// A footer whose list of columns, or whose name of a writer, claims to be longer than the
    /// footer.
    #[test]
    fn lists_without_end_are_refused_before_memory_is_asked_for() {
        let version = [0x15, 2];
        let endless = [0xff, 0xff, 0xff, 0xff, 0x07];
        for footer in [
            [&version[..], &[0x19, 0xfc], &endless, &[0]].concat(),
            [&version[..], &[0x58], &endless, &[0]].concat(),
            [&version[..], &[0x1c; 100]].concat(),
        ] {
            assert_eq!(schema_elements(&footer), None, "{footer:?}");
        }
        let groups = [&version[..], &[0x19, 0x2c], &[0x48, 0, 0x15, 2, 0].repeat(2), &[0]].concat();
        assert_eq!(schema_elements(&groups), Some(2));
        // Groups in each other, as many as may be, and one more.
        for (count, words) in [(MAX_SCHEMA, "nested more than 32"), (MAX_SCHEMA + 1, "columns")] {
            let mut footer = [&version[..], &[0x19, 0xfc]].concat();
            footer.extend([0x80 | (count & 0x7f) as u8, 0x80 | (count >> 7 & 0x7f) as u8]);
            footer.push((count >> 14) as u8);
            (1..count).for_each(|_| footer.extend([0x35, 4, 0x18, 1, b'g', 0x15, 2, 0]));
            footer.extend([0x15, 2, 0x25, 0, 0x18, 1, b'n', 0]);
            footer.extend([0x16, 0, 0x19, 0x0c, 0]);
            let length = (footer.len() as u32).to_le_bytes();
            let file = [&b"PAR1"[..], &footer, &length, b"PAR1"].concat();
            let problem = check(&file).unwrap_err();
            assert!(problem.contains(words), "{problem}");
        }
    }
}
