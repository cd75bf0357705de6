//! What the pages of one column hold that their headers do not tell: how long the texts of its
//! dictionary are, how often each occurs, how many values a row has.
//!
//! Pages are unpacked one at a time, and no value is copied.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;

use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageReader};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::serialized_reader::SerializedPageReader;

use super::parquet_runs::{bit_width, differences, runs};

/// Rows that are handed on at a time where there may be rows of megabytes: a sort has to hold the
/// largest batch twice.
pub const ROWS_AT_ONCE: usize = 128;

/// What was found in a column of a row group.
#[derive(Debug, Default)]
pub(super) struct Decoded {
    /// Whether all pages were read, and not only the dictionary.
    pub(super) whole: bool,
    /// The longest text that is written once and may occur often.
    pub(super) longest: u64,
    /// The bytes of all occurrences of such texts.
    pub(super) repeated: u64,
    /// The most values that so many rows have as are handed on at a time.
    pub(super) values_of_rows: u64,
    /// The most bytes of pages that lie within these.
    pub(super) within: u64,
}

/// Reads the dictionary, or the whole column. `None` if it cannot be read.
pub(super) fn decoded(
    file: &Arc<File>,
    column: &ColumnChunkMetaData,
    whole: bool,
) -> Option<Decoded> {
    let mut pages = SerializedPageReader::new(Arc::clone(file), column, 0, None).ok()?;
    let mut found = Decoded { whole, ..Decoded::default() };
    let mut dictionary = Vec::new();
    let mut rows = Rows::default();
    let mut window = Window::default();
    while let Some(page) = pages.get_next_page().ok()? {
        if let Page::DictionaryPage { buf, num_values, .. } = &page {
            dictionary = lengths(column, buf, *num_values)?;
            found.longest = dictionary.iter().copied().max().map_or(0, u64::from);
        } else if whole {
            found.page(column, &page, &dictionary, &mut rows, &mut window)?;
        }
        if !whole {
            break;
        }
    }
    found.values_of_rows = rows.most.max(rows.sum);
    Some(found)
}

/// The length of each value of a dictionary.
fn lengths(column: &ColumnChunkMetaData, mut page: &[u8], values: u32) -> Option<Vec<u32>> {
    if column.column_type() != Type::BYTE_ARRAY {
        return Some(Vec::new());
    }
    let mut lengths = Vec::new();
    while let Some(length) = page.split_off(..4).filter(|_| lengths.len() < values as usize) {
        let length = u32::from_le_bytes(length.try_into().ok()?);
        page.split_off(..length as usize)?;
        lengths.push(length);
    }
    Some(lengths)
}

impl Decoded {
    fn page(
        &mut self,
        column: &ColumnChunkMetaData,
        page: &Page,
        dictionary: &[u32],
        rows: &mut Rows,
        window: &mut Window,
    ) -> Option<()> {
        let about = column.column_descr();
        let (mut levels, mut data) = (None, page.buffer().as_ref());
        let values = u64::from(page.num_values());
        match page {
            Page::DataPageV2 { rep_levels_byte_len, def_levels_byte_len, .. } => {
                levels = Some(data.split_off(..*rep_levels_byte_len as usize)?);
                data.split_off(..*def_levels_byte_len as usize)?;
            }
            Page::DataPage { rep_level_encoding, def_level_encoding, .. } => {
                if about.max_rep_level() > 0 {
                    levels = Some(prefixed(&mut data, *rep_level_encoding)?);
                }
                if about.max_def_level() > 0 {
                    prefixed(&mut data, *def_level_encoding)?;
                }
            }
            Page::DictionaryPage { .. } => return None,
        }
        let size = page.buffer().len() as u64;
        match levels.filter(|_| about.max_rep_level() > 0) {
            Some(levels) => {
                let before = rows.begun;
                runs(levels, bit_width(about.max_rep_level()), values, |level, count| {
                    if level == 0 { rows.begin(count) } else { rows.go_on(count) }
                })?;
                self.within = self.within.max(window.push(rows.begun - before, size));
            }
            None => self.within = self.within.max(window.push(values, size)),
        }
        if column.column_type() == Type::BYTE_ARRAY {
            self.texts(page.encoding(), data, values, dictionary)?;
        }
        Some(())
    }

    fn texts(
        &mut self,
        encoding: Encoding,
        mut data: &[u8],
        values: u64,
        dictionary: &[u32],
    ) -> Option<()> {
        match encoding {
            #[allow(deprecated)]
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => {
                // A page of nulls alone has not even a width.
                let Some(width) = data.split_off_first() else { return Some(()) };
                runs(data, u32::from(*width), values, |place, count| {
                    let length = usize::try_from(place).ok().and_then(|at| dictionary.get(at));
                    let length = length.copied().map_or(0, u64::from);
                    self.repeated = self.repeated.saturating_add(length.saturating_mul(count));
                })
            }
            Encoding::DELTA_LENGTH_BYTE_ARRAY => differences(data, values, |_| ()).map(drop),
            Encoding::DELTA_BYTE_ARRAY => {
                let mut shared = Vec::new();
                let rest = differences(data, values, |length| shared.push(length))?;
                let mut shared = shared.into_iter();
                let (mut longest, mut all) = (0, 0_u64);
                // A text is no longer than what its page has: each has a part of the one before.
                let most = data.len() as i64;
                differences(rest, values, |own| {
                    let shared = shared.next().unwrap_or(0).clamp(0, most);
                    let length = (shared + own.clamp(0, most)).unsigned_abs();
                    longest = longest.max(length);
                    all = all.saturating_add(length);
                })?;
                self.longest = self.longest.max(longest);
                self.repeated = self.repeated.saturating_add(all);
                Some(())
            }
            _ => Some(()),
        }
    }
}

/// The pages that lie within a number of rows.
#[derive(Default)]
pub(super) struct Window {
    pages: VecDeque<(u64, u64)>,
    rows: u64,
    bytes: u64,
}

impl Window {
    /// Adds a page; returns the bytes of the last pages that so few rows may have.
    pub(super) fn push(&mut self, rows: u64, bytes: u64) -> u64 {
        match self.pages.back_mut().filter(|_| rows == 0) {
            Some(last) => last.1 += bytes,
            None => self.pages.push_back((rows, bytes)),
        }
        self.rows += rows;
        self.bytes = self.bytes.saturating_add(bytes);
        while self.rows > ROWS_AT_ONCE as u64 {
            let Some((rows, bytes)) = self.pages.pop_front() else { break };
            self.rows -= rows;
            self.bytes -= bytes;
        }
        self.bytes
    }
}

/// Levels with their length before them. Those of old, without, nobody writes.
fn prefixed<'a>(data: &mut &'a [u8], encoding: Encoding) -> Option<&'a [u8]> {
    if encoding != Encoding::RLE {
        return None;
    }
    let length = u32::from_le_bytes(data.split_off(..4)?.try_into().ok()?);
    data.split_off(..length as usize)
}

/// How many values rows have.
#[derive(Default)]
struct Rows {
    /// The values of each of the last rows.
    last: VecDeque<u64>,
    sum: u64,
    most: u64,
    begun: u64,
}

impl Rows {
    /// So many rows begin, each with a value.
    fn begin(&mut self, count: u64) {
        self.begun += count;
        // More of them than are handed on at a time push out nothing but each other.
        for _ in 0..count.min(ROWS_AT_ONCE as u64 + 1) {
            self.most = self.most.max(self.sum);
            if self.last.len() == ROWS_AT_ONCE {
                self.sum -= self.last.pop_front().unwrap_or(0);
            }
            self.last.push_back(1);
            self.sum += 1;
        }
    }

    /// The last row has so many values more.
    fn go_on(&mut self, count: u64) {
        match self.last.back_mut() {
            Some(last) => *last += count,
            None => self.last.push_back(count),
        }
        self.sum += count;
    }
}
