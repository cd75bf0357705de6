//! Whether a file is Parquet that can be handed to the library that reads it.
//!
//! The library trusts what a file says about itself: a footer that is longer than the file makes
//! it panic, and a column of 2^40 bytes makes it ask for as much memory, which ends the process.
//! So the footer is walked first, without building anything, and then the headers of its pages
//! (`parquet_pages`). It is Thrift in the compact protocol
//! (github.com/apache/parquet-format, `parquet.thrift`).

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::parquet_pages::{Look, PageLimits, check_pages};
use super::thrift::{Kind, Reader};

/// The bytes at the end of a file: the footer's length and the magic.
const TAIL: u64 = 8;
const MAGIC: &[u8; 4] = b"PAR1";
/// The magic of a file whose footer is encrypted.
const ENCRYPTED: &[u8; 4] = b"PARE";

/// The deepest nesting of columns in a file that is read, lists and structs counted.
pub const MAX_COLUMN_DEPTH: usize = 32;

/// The most columns of a file that is read, those within columns counted. To plan a query over
/// more of them takes minutes: the time grows with their square.
pub const MAX_COLUMNS: usize = 10_000;

/// The code of what may occur any number of times.
const REPEATED: i64 = 2;

/// The largest footer: that of a hundred thousand columns and more.
const MAX_FOOTER_BYTES: u64 = 1 << 30;

/// Checks that the footer of the file lies within it.
///
/// # Errors
/// A sentence that fits after "cannot read FILE: ".
pub fn check_footer(file: &Path) -> Result<(), String> {
    let file = File::open(file).map_err(|e| e.to_string())?;
    footer_range(&file).map(drop)
}

/// Checks that the file can be handed to the library: the footer lies within the file and can
/// be read, what it says lies within the file, too, no two columns have one name, there are not too
/// many, and no page is too large.
///
/// # Errors
/// A sentence that fits after "cannot read FILE: ".
pub fn check_parquet(file: &Path) -> Result<(), String> {
    let file = File::open(file).map_err(|e| e.to_string())?;
    match check_whole_footer(&file)? {
        columns if columns > MAX_COLUMNS => Err(too_many_columns(columns)),
        _ => check_pages(file, PageLimits::default(), Look::Headers),
    }
}

/// Checks, before all rows of a file that was checked are read, that so many of them as are handed on
/// at a time take memory that is bounded, and that there is an end to what they take in all.
///
/// # Errors
/// A sentence that fits after "cannot read FILE: ".
pub fn check_rows(file: &Path) -> Result<(), String> {
    let file = File::open(file).map_err(|e| e.to_string())?;
    check_pages(file, PageLimits::default(), Look::Rows)
}

/// Both of a stored table that comes from elsewhere, however many columns it has: its rows are handed
/// on more at a time.
///
/// # Errors
/// A sentence that fits after "cannot read FILE: ".
pub fn check_foreign_table(file: File) -> Result<(), String> {
    check_whole_footer(&file)?;
    // The library that reads footers is written for sound ones.
    let check = AssertUnwindSafe(|| check_pages(file, PageLimits::of_stored(), Look::Rows));
    catch_unwind(check).unwrap_or_else(|_| Err("it is damaged: its reader gave up".into()))
}

/// How many columns the file has, those within columns counted.
fn check_whole_footer(file: &File) -> Result<usize, String> {
    let (start, length, size) = footer_range(file)?;
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
    file.read_exact_at(&mut bytes, start).map_err(|e| e.to_string())?;
    Footer::read(&bytes).ok_or("its footer is damaged")?.check(size)
}

/// Where the footer starts, its length, and the size of the file.
pub fn footer_range(file: &File) -> Result<(u64, u64, u64), String> {
    let size = file.metadata().map_err(|e| e.to_string())?.len();
    let Some(tail) = size.checked_sub(TAIL).filter(|at| *at >= 4) else {
        return Err(format!("a Parquet file has more than {size} bytes"));
    };
    let mut bytes = [0; TAIL as usize];
    file.read_exact_at(&mut bytes, tail).map_err(|e| e.to_string())?;
    let [a, b, c, d, magic @ ..] = bytes;
    if &magic == ENCRYPTED {
        return Err("it is encrypted".into());
    }
    if &magic != MAGIC {
        return Err("it is not Parquet, or its end is missing".into());
    }
    let length = u64::from(u32::from_le_bytes([a, b, c, d]));
    // The file begins with a magic, too.
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

/// A column, or a group of columns.
#[derive(Default)]
struct SchemaElement {
    name: String,
    children: i64,
    /// Whether it is the inner of the two groups that make a list.
    repeated: bool,
}

/// What a footer says that must be so.
#[derive(Default)]
struct Footer {
    /// The schema as a tree in depth-first order.
    schema: Vec<SchemaElement>,
    /// Rows of the file, and of each row group.
    rows: i64,
    group_rows: Vec<i64>,
    /// Columns of each row group.
    group_columns: Vec<usize>,
    /// Parts of the file: where they start, and their length.
    parts: Vec<(i64, i64)>,
}

impl Footer {
    /// `None` if it is not Thrift, or a value is of another kind than the format says: the library
    /// reads it all the same, as something else.
    fn read(bytes: &[u8]) -> Option<Self> {
        let mut footer = Self::default();
        let mut reader = Reader::new(bytes);
        reader.fields(|reader, id, kind| match (id, kind) {
            (2, Kind::List) => reader.list(Kind::Struct, |reader| {
                let mut element = SchemaElement::default();
                reader.fields(|reader, id, kind| match (id, kind) {
                    (3, Kind::I32) => reader.integer().map(|is| element.repeated = is == REPEATED),
                    (4, Kind::Binary) => {
                        element.name = String::from_utf8_lossy(reader.binary()?).into_owned();
                        Some(())
                    }
                    (5, Kind::I32) => reader.integer().map(|number| element.children = number),
                    (3..=5, _) => None,
                    _ => reader.skip(kind),
                })?;
                footer.schema.push(element);
                Some(())
            }),
            (3, Kind::I64) => reader.integer().map(|rows| footer.rows = rows),
            (4, Kind::List) => reader.list(Kind::Struct, |reader| footer.row_group(reader)),
            (2..=4, _) => None,
            _ => reader.skip(kind),
        })?;
        Some(footer)
    }

    fn row_group(&mut self, reader: &mut Reader<'_>) -> Option<()> {
        let (mut rows, mut columns) = (0, 0);
        reader.fields(|reader, id, kind| match (id, kind) {
            (1, Kind::List) => reader.list(Kind::Struct, |reader| {
                columns += 1;
                self.column_chunk(reader)
            }),
            (3, Kind::I64) => reader.integer().map(|number| rows = number),
            (1 | 3, _) => None,
            _ => reader.skip(kind),
        })?;
        self.group_rows.push(rows);
        self.group_columns.push(columns);
        Some(())
    }

    fn column_chunk(&mut self, reader: &mut Reader<'_>) -> Option<()> {
        let (mut data, mut dictionary, mut length) = (0, None, 0);
        let (mut offsets, mut statistics) = ((0, 0), (0, 0));
        reader.fields(|reader, id, kind| match (id, kind) {
            (3, Kind::Struct) => reader.fields(|reader, id, kind| match (id, kind) {
                (7, Kind::I64) => reader.integer().map(|number| length = number),
                (9, Kind::I64) => reader.integer().map(|number| data = number),
                (11, Kind::I64) => reader.integer().map(|number| dictionary = Some(number)),
                (7 | 9 | 11, _) => None,
                _ => reader.skip(kind),
            }),
            (4, Kind::I64) => reader.integer().map(|number| offsets.0 = number),
            (5, Kind::I32) => reader.integer().map(|number| offsets.1 = number),
            (6, Kind::I64) => reader.integer().map(|number| statistics.0 = number),
            (7, Kind::I32) => reader.integer().map(|number| statistics.1 = number),
            (3..=7, _) => None,
            _ => reader.skip(kind),
        })?;
        self.parts.extend([(dictionary.unwrap_or(data), length), offsets, statistics]);
        Some(())
    }

    /// How many columns there are, those within columns counted.
    fn check(&self, size: u64) -> Result<usize, String> {
        let within = |&(start, length): &(i64, i64)| {
            let (start, length) = (u64::try_from(start).ok(), u64::try_from(length).ok());
            let end = start.zip(length).and_then(|(start, length)| start.checked_add(length));
            end.is_some_and(|end| end <= size)
        };
        if !self.parts.iter().all(within) {
            return Err("it is damaged: a column lies outside of the file".into());
        }
        if self.rows < 0 || self.group_rows.iter().any(|rows| *rows < 0) {
            return Err("it is damaged: a number of rows is below zero".into());
        }
        let columns = self.check_schema()?;
        if self.group_columns.iter().any(|number| *number != columns) {
            return Err("it is damaged: its numbers of columns contradict each other".into());
        }
        Ok(columns)
    }

    /// Walks the tree of columns; returns how many leaves it has.
    fn check_schema(&self) -> Result<usize, String> {
        let damaged = || Err("it is damaged: its columns make no tree".to_owned());
        let mut open: Vec<Group<'_>> = Vec::new();
        let mut leaves = 0;
        for element in &self.schema {
            let is_root = leaves == 0 && open.is_empty();
            let mut levels = 0;
            if let Some(outer) = open.last_mut() {
                outer.missing -= 1;
                outer.names.push(&element.name);
                levels = outer.levels + usize::from(!element.repeated);
            } else if !is_root {
                return damaged();
            }
            if element.children < 0 || element.children > self.schema.len() as i64 {
                return damaged();
            }
            if element.children == 0 && !is_root {
                leaves += 1;
            } else {
                // Groups that are repeated one in another are no lists that anybody writes.
                if levels > MAX_COLUMN_DEPTH || open.len() > 2 * MAX_COLUMN_DEPTH {
                    return Err(format!(
                        "its columns are nested more than {MAX_COLUMN_DEPTH} deep; no more can be \
                         stored"
                    ));
                }
                open.push(Group { missing: element.children, levels, names: Vec::new() });
            }
            while let Some(group) = open.last_mut().filter(|group| group.missing == 0) {
                if let Some(twice) = repeated(&mut group.names) {
                    return Err(two_columns(twice));
                }
                open.pop();
            }
        }
        if open.is_empty() { Ok(leaves) } else { damaged() }
    }
}

/// A group of columns whose children are being counted.
struct Group<'a> {
    missing: i64,
    /// Lists and structs from the root to here, this one included.
    levels: usize,
    names: Vec<&'a str>,
}

/// A name that occurs twice.
fn repeated<'a>(names: &mut [&'a str]) -> Option<&'a str> {
    names.sort_unstable();
    names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

/// What is said of too many columns, for every format but JSON.
pub fn too_many_columns(columns: usize) -> String {
    format!(
        "it has {columns} columns, and at most {MAX_COLUMNS} can be read; turn columns into rows \
         in the file (name, value)"
    )
}

/// What is said of two columns of one name, for every format.
pub fn two_columns(name: &str) -> String {
    format!(
        "two columns are called {}, and only one of them could be kept; give one of them another \
         name in the file",
        galeras_workflow::quote(name)
    )
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
    fn what_is_nested_as_deep_as_the_limit_is_read_back() {
        let bytes = written(vec![("l", nested(MAX_COLUMN_DEPTH))]);
        assert_eq!(check(&bytes), Ok(()));
        ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap();
        let problem = check(&written(vec![("l", nested(MAX_COLUMN_DEPTH + 1))])).unwrap_err();
        assert!(problem.contains("nested more than 32 deep"), "{problem}");
    }

    #[test]
    fn no_flipped_bit_of_a_footer_panics() {
        let sound = written(vec![("n", numbers()), ("s", texts())]);
        let [.., a, b, c, d, _, _, _, _] = sound[..] else { unreachable!() };
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        let mut refused = 0;
        for at in sound.len() - 8 - length..sound.len() {
            for bit in 0..8 {
                let mut bytes = sound.clone();
                bytes[at] ^= 1 << bit;
                let tail = bytes.len() - 8;
                let footer = Footer::read(&bytes[tail - length..tail]);
                refused += usize::from(footer.is_none_or(|f| f.check(sound.len() as u64).is_err()));
            }
        }
        assert!(refused > length, "{refused} of {}", 8 * length);
    }
}
