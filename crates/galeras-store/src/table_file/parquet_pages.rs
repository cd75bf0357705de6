//! What a Parquet file takes in memory once it is read, found out before any of it is.
//!
//! A page that packs a gigabyte of zeros has a few kilobytes, and a text in a dictionary is written
//! once however many rows have it. So the headers of all pages are walked, which takes no time beside
//! reading the pages. What they cannot tell is bounded from above; only where the bound is too large,
//! dictionaries, and then levels and places in dictionaries, are decoded (`parquet_decoded`).

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use parquet::basic::Type;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaDataReader};

use super::parquet_decoded::{Decoded, ROWS_AT_ONCE, Window, decoded};
use super::thrift::{Kind, Reader};
use galeras_workflow::quote;

/// The largest page, unpacked. Writers begin another after a megabyte, some after a hundred.
const MAX_PAGE: u64 = 256 << 20;
/// The most that the open pages of all columns take: one of each, and its dictionary.
const MAX_OPEN: u64 = 2 << 30;
/// The most that the rows take which are handed on at a time.
const MAX_BATCH: u64 = 2 << 30;
/// Rows that are handed on at a time.
const WINDOW: u64 = ROWS_AT_ONCE as u64;
/// What the texts of a file may take in all, however small it is, and for each of its bytes.
const MAX_TEXTS: u64 = 16 << 30;
const MAX_TEXTS_PER_BYTE: u64 = 1000;

/// What a file may take; tests allow less.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageLimits {
    pub(super) page: u64,
    pub(super) open: u64,
    pub(super) batch: u64,
    pub(super) texts: u64,
}

impl PageLimits {
    /// Of stored tables some eight times as many rows are handed on at a time.
    pub(super) fn of_stored() -> Self {
        Self { batch: MAX_BATCH / 4, ..Self::default() }
    }
}

impl Default for PageLimits {
    fn default() -> Self {
        Self { page: MAX_PAGE, open: MAX_OPEN, batch: MAX_BATCH, texts: MAX_TEXTS }
    }
}

/// How much of a file is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Headers of pages, which takes milliseconds.
    Headers,
    /// What they cannot tell, too, where that matters.
    Rows,
}

/// Checks that the file, whose footer was checked, can be read in memory that is bounded.
///
/// # Errors
/// A sentence that fits after "cannot read FILE: ".
pub(super) fn check_pages(file: File, limits: PageLimits, look: Look) -> Result<(), String> {
    let size = file.metadata().map_err(|e| e.to_string())?.len();
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&file);
    let metadata = metadata.map_err(|e| format!("its footer is damaged: {e}"))?;
    let most_texts = limits.texts.max(size.saturating_mul(MAX_TEXTS_PER_BYTE));
    let file = Arc::new(file);
    let mut texts = 0_u64;
    for group in metadata.row_groups() {
        let mut chunks = Vec::with_capacity(group.num_columns());
        for column in group.columns() {
            chunks.push(Chunk::walk(&file, column, limits.page)?);
        }
        let open = sum(&chunks, |chunk| chunk.dictionary + chunk.largest);
        if open > limits.open {
            let largest = largest(&chunks, |chunk| chunk.dictionary + chunk.largest);
            return Err(format!(
                "the pages of its columns that are open at a time have {}, most of them those of \
                 column {largest}, and at most {} can be read; write it with smaller pages",
                bytes(open),
                bytes(limits.open)
            ));
        }
        if look == Look::Headers {
            continue;
        }
        for chunk in chunks.iter_mut().filter(|chunk| chunk.has_deltas) {
            // Room is made for as many lengths as a page says there are.
            chunk.look(&file, true)?;
        }
        // Dictionaries first: their texts are hardly ever all as large as the page.
        for whole in [false, true] {
            let is_fine = sum(&chunks, |chunk| chunk.batch()) <= limits.batch
                && texts.saturating_add(sum(&chunks, |chunk| chunk.texts())) <= most_texts;
            if is_fine {
                break;
            }
            for chunk in chunks.iter_mut().filter(|chunk| chunk.is_unclear(whole)) {
                chunk.look(&file, whole)?;
            }
        }
        let batch = sum(&chunks, |chunk| chunk.batch());
        if batch > limits.batch {
            return Err(format!(
                "{WINDOW} of its rows have {} once they are unpacked, most of them in column {}, and \
                 at most {} can be read",
                bytes(batch),
                largest(&chunks, |chunk| chunk.batch()),
                bytes(limits.batch)
            ));
        }
        texts = texts.saturating_add(sum(&chunks, |chunk| chunk.texts()));
        if texts > most_texts {
            return Err(format!(
                "its texts have {} or more once they are unpacked, most of them in column {}; a file \
                 of {} may have at most {}",
                bytes(texts),
                largest(&chunks, |chunk| chunk.texts()),
                bytes(size),
                bytes(most_texts)
            ));
        }
    }
    Ok(())
}

fn sum(chunks: &[Chunk<'_>], of: impl Fn(&Chunk<'_>) -> u64) -> u64 {
    chunks.iter().map(of).fold(0, u64::saturating_add)
}

fn largest(chunks: &[Chunk<'_>], of: impl Fn(&Chunk<'_>) -> u64) -> String {
    chunks.iter().max_by_key(|chunk| of(chunk)).map(|chunk| chunk.name()).unwrap_or_default()
}

fn bytes(bytes: u64) -> String {
    let mib = bytes >> 20;
    if mib > 0 { format!("{mib} MiB") } else { format!("{bytes} bytes") }
}

/// What the header of a page says.
#[derive(Debug, Default)]
struct PageHeader {
    kind: Option<i64>,
    unpacked: Option<i64>,
    packed: Option<i64>,
    values: Option<i64>,
    encoding: Option<i64>,
}

const DATA_PAGE: i64 = 0;
const DICTIONARY_PAGE: i64 = 2;
const DATA_PAGE_V2: i64 = 3;
const PLAIN_DICTIONARY: i64 = 2;
const DELTA_LENGTH_BYTE_ARRAY: i64 = 6;
const DELTA_BYTE_ARRAY: i64 = 7;
const RLE_DICTIONARY: i64 = 8;

/// The most texts of a page that are written as their difference to others: room is made for the
/// lengths of all of them.
const MAX_DIFFERENCES: u64 = 16 << 20;

impl PageHeader {
    /// `None` if it makes no sense, or says something twice: which of them counts is up to the reader.
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let mut header = Self::default();
        reader.fields(|reader, id, kind| match (id, kind) {
            (1, Kind::I32) => once(&mut header.kind, reader.integer()?),
            (2, Kind::I32) => once(&mut header.unpacked, reader.integer()?),
            (3, Kind::I32) => once(&mut header.packed, reader.integer()?),
            (5 | 7 | 8, Kind::Struct) => {
                let encoding = if id == 8 { 4 } else { 2 };
                reader.fields(|reader, id, kind| match (id, kind) {
                    (1, Kind::I32) => once(&mut header.values, reader.integer()?),
                    (_, Kind::I32) if id == encoding => {
                        once(&mut header.encoding, reader.integer()?)
                    }
                    _ => reader.skip(kind),
                })
            }
            (1..=3 | 5 | 7 | 8, _) => None,
            _ => reader.skip(kind),
        })?;
        Some(header)
    }
}

fn once(place: &mut Option<i64>, value: i64) -> Option<()> {
    place.replace(value).is_none().then_some(())
}

/// A column of a row group.
#[derive(Debug)]
struct Chunk<'a> {
    column: &'a ColumnChunkMetaData,
    /// The bytes of its dictionary and of its largest other page.
    dictionary: u64,
    largest: u64,
    /// The most bytes of pages that lie within so many rows as are handed on at a time.
    within: u64,
    /// All values, and those that are places in the dictionary.
    values: u64,
    by_place: u64,
    /// All pages but the dictionary.
    unpacked: u64,
    /// Whether there are texts written as their difference to others.
    has_deltas: bool,
    /// What a closer look has found.
    decoded: Option<Decoded>,
}

/// What a value of a list, or a null of it, takes beside its bytes: levels, an offset, and room.
const LIST_VALUE: u64 = 24;

impl<'a> Chunk<'a> {
    fn walk(file: &File, column: &'a ColumnChunkMetaData, most: u64) -> Result<Self, String> {
        let mut chunk = Self {
            column,
            dictionary: 0,
            largest: 0,
            within: 0,
            values: 0,
            by_place: 0,
            unpacked: 0,
            has_deltas: false,
            decoded: None,
        };
        let mut window = Window::default();
        let (start, length) = column.byte_range();
        let end = start.saturating_add(length);
        let mut at = start;
        let mut buffer = Buffer::default();
        while at < end {
            let (header, length) = buffer.header(file, at, end)?.ok_or_else(|| chunk.damaged())?;
            let numbers = (header.kind, header.unpacked, header.packed, header.values);
            let (Some(kind), Some(unpacked), Some(packed), Some(values)) = numbers else {
                return Err(chunk.damaged());
            };
            let number = |number: i64| u64::try_from(number).map_err(|_| chunk.damaged());
            let (unpacked, packed, values) = (number(unpacked)?, number(packed)?, number(values)?);
            at = at.saturating_add(length).saturating_add(packed);
            if at > end {
                return Err(chunk.damaged());
            }
            if unpacked > most {
                return Err(format!(
                    "column {} has a page of {} once it is unpacked, and at most {} can be read; \
                     write it with smaller pages",
                    chunk.name(),
                    bytes(unpacked),
                    bytes(most)
                ));
            }
            match kind {
                DICTIONARY_PAGE => {
                    // Room is made for as many values as it says; each has a byte at least.
                    if chunk.dictionary > 0 || values > unpacked {
                        return Err(chunk.damaged());
                    }
                    chunk.dictionary = unpacked;
                }
                DATA_PAGE | DATA_PAGE_V2 => {
                    let is_delta =
                        matches!(header.encoding, Some(DELTA_LENGTH_BYTE_ARRAY | DELTA_BYTE_ARRAY));
                    if is_delta && values > MAX_DIFFERENCES {
                        return Err(format!(
                            "column {} has a page of {values} texts that are written as \
                             differences, and at most {MAX_DIFFERENCES} can be read; write it with \
                             smaller pages",
                            chunk.name()
                        ));
                    }
                    chunk.add(header.encoding, unpacked, values);
                    chunk.within = chunk.within.max(window.push(values, unpacked));
                }
                // Readers take what is in a page of another kind for pages, or for none.
                _ => return Err(chunk.damaged()),
            }
        }
        Ok(chunk)
    }

    fn add(&mut self, encoding: Option<i64>, unpacked: u64, values: u64) {
        self.largest = self.largest.max(unpacked);
        self.values = self.values.saturating_add(values);
        self.unpacked = self.unpacked.saturating_add(unpacked);
        match encoding {
            Some(PLAIN_DICTIONARY | RLE_DICTIONARY) => self.by_place += values,
            Some(DELTA_LENGTH_BYTE_ARRAY | DELTA_BYTE_ARRAY) => self.has_deltas = true,
            _ => {}
        }
    }

    fn look(&mut self, file: &Arc<File>, whole: bool) -> Result<(), String> {
        if self.decoded.as_ref().is_none_or(|decoded| whole && !decoded.whole) {
            let found = decoded(file, self.column, whole);
            self.decoded = Some(found.ok_or_else(|| self.damaged())?);
        }
        Ok(())
    }

    fn name(&self) -> String {
        quote(&self.column.column_path().string())
    }

    fn damaged(&self) -> String {
        format!("it is damaged: the pages of column {} make no sense", self.name())
    }

    /// Whether a row may have several values.
    fn is_list(&self) -> bool {
        self.column.column_descr().max_rep_level() > 0
    }

    /// Whether a closer look tells more.
    fn is_unclear(&self, whole: bool) -> bool {
        let repeats = self.by_place > 0 && self.column.column_type() == Type::BYTE_ARRAY;
        repeats || whole && self.is_list()
    }

    /// What a value has whatever is in it.
    fn width(&self) -> u64 {
        match self.column.column_type() {
            Type::FIXED_LEN_BYTE_ARRAY => {
                u64::try_from(self.column.column_descr().type_length()).unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// The most that a value takes which its page does not have: a text of the dictionary.
    fn repeated(&self) -> u64 {
        match &self.decoded {
            _ if self.column.column_type() != Type::BYTE_ARRAY => 0,
            Some(decoded) => decoded.longest,
            None => self.dictionary,
        }
    }

    /// The most that the rows take which are handed on at a time, beside open pages.
    fn batch(&self) -> u64 {
        let decoded = self.decoded.as_ref().filter(|decoded| decoded.whole);
        let (values, within) = match (self.is_list(), decoded) {
            (false, _) => (WINDOW.min(self.values), self.within),
            (true, None) => (self.values, self.unpacked),
            (true, Some(decoded)) => (decoded.values_of_rows, decoded.within),
        };
        let each = self.width() + if self.is_list() { LIST_VALUE } else { 0 };
        let repeated = match self.by_place > 0 || self.has_deltas {
            true => values.min(self.values).saturating_mul(self.repeated()),
            false => 0,
        };
        within.saturating_add(values.saturating_mul(each)).saturating_add(repeated)
    }

    /// The most that its texts take in all.
    fn texts(&self) -> u64 {
        if self.column.column_type() != Type::BYTE_ARRAY {
            return self.values.saturating_mul(self.width());
        }
        match &self.decoded {
            Some(decoded) if decoded.whole => self.unpacked.saturating_add(decoded.repeated),
            _ => self.unpacked.saturating_add(self.by_place.saturating_mul(self.repeated())),
        }
    }
}

/// Bytes of a file, read ahead.
#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    start: u64,
}

/// Headers of pages have some tens of bytes, and more only with the least and the largest value.
const AHEAD: usize = 4 << 10;
const MAX_HEADER: usize = 16 << 20;

impl Buffer {
    /// The header at `at` and its length; nothing if there is none.
    fn header(
        &mut self,
        file: &File,
        at: u64,
        end: u64,
    ) -> Result<Option<(PageHeader, u64)>, String> {
        let mut ahead = AHEAD;
        loop {
            let skip = at.checked_sub(self.start).and_then(|skip| usize::try_from(skip).ok());
            if let Some(rest) = skip.and_then(|skip| self.bytes.get(skip..)) {
                let mut reader = Reader::new(rest);
                if let Some(header) = PageHeader::read(&mut reader) {
                    let length = rest.len() - reader.left();
                    return Ok(Some((header, length as u64)));
                }
                if at + rest.len() as u64 >= end || rest.len() >= MAX_HEADER {
                    return Ok(None);
                }
                ahead = ahead.max(2 * rest.len());
            }
            let size = usize::try_from(end - at).unwrap_or(ahead).min(ahead);
            self.bytes.resize(size, 0);
            file.read_exact_at(&mut self.bytes, at).map_err(|e| e.to_string())?;
            self.start = at;
        }
    }
}
