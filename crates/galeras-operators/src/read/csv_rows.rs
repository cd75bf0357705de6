//! Splits a CSV file into rows with their lines, and values with a flag for quotes. Only quotes
//! distinguish an empty text from a missing value, and no reader of the libraries reports them.

use std::io::{BufRead, Cursor, Read};
use std::path::Path;

use super::formats::buffered;

/// How values are separated, and which texts are missing values.
#[derive(Clone, Debug)]
pub(super) struct CsvDialect {
    pub(super) delimiter: u8,
    pub(super) null_values: Vec<String>,
}

impl Default for CsvDialect {
    fn default() -> Self {
        Self { delimiter: b',', null_values: Vec::new() }
    }
}

#[derive(Default)]
pub(super) struct CsvRow {
    /// The values, each followed by a comma, so that bytes of two values never form one character.
    bytes: Vec<u8>,
    /// The start and end of each value, and true if it is quoted.
    values: Vec<(usize, usize, bool)>,
    /// Its first line, from 1.
    pub(super) line: u64,
}

impl CsvRow {
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn is_blank(&self) -> bool {
        matches!(self.values.as_slice(), [(0, 0, false)])
    }

    /// The values; `None` for an empty value without quotes.
    pub(super) fn values(&self) -> impl Iterator<Item = Option<&str>> {
        self.values.iter().map(|(start, end, quoted)| {
            let bytes = self.bytes.get(*start..*end).unwrap_or_default();
            // They were checked when the row was read.
            let text = std::str::from_utf8(bytes).unwrap_or_default();
            (*quoted || !text.is_empty()).then_some(text)
        })
    }

    /// The same, and `None` for a text without quotes that stands for a missing value.
    pub(super) fn values_but(&self, null_values: &[String]) -> impl Iterator<Item = Option<&str>> {
        self.values().zip(&self.values).map(move |(text, (_, _, quoted))| {
            text.filter(|text| *quoted || !null_values.iter().any(|null| null == text))
        })
    }

    fn end_value(&mut self, quoted: bool) {
        let start = self.values.last().map_or(0, |(_, end, _)| end + 1);
        self.values.push((start, self.bytes.len(), quoted));
        self.bytes.push(b',');
    }
}

pub(super) struct CsvRows {
    reader: Box<dyn BufRead + Send>,
    line: u64,
    /// A carriage return ended the previous row: a line feed after it belongs to it.
    returned: bool,
    delimiter: u8,
}

/// The position of the reader in a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Start,
    Plain,
    Quoted,
    /// After a quote that ends the value, unless another follows.
    Closed,
}

impl CsvRows {
    pub(super) fn open(file: &Path, delimiter: u8) -> Result<Self, String> {
        Self::new(buffered(file)?, delimiter)
    }

    fn new(mut reader: impl BufRead + Send + 'static, delimiter: u8) -> Result<Self, String> {
        // The byte order mark of Windows programs.
        let mut head = Vec::new();
        (&mut reader).take(3).read_to_end(&mut head).map_err(|e| e.to_string())?;
        if head == b"\xef\xbb\xbf" {
            head.clear();
        }
        let reader = Box::new(Cursor::new(head).chain(reader));
        Ok(Self { reader, line: 1, returned: false, delimiter })
    }

    /// Reads the next row; false if there is none.
    ///
    /// # Errors
    /// In words, with the line.
    pub(super) fn next(&mut self, row: &mut CsvRow) -> Result<bool, String> {
        row.bytes.clear();
        row.values.clear();
        row.line = self.line;
        let delimiter = self.delimiter;
        let (mut place, mut begun, mut opened) = (Place::Start, false, self.line);
        loop {
            let bytes = self.reader.fill_buf().map_err(|e| e.to_string())?;
            if bytes.is_empty() {
                if place == Place::Quoted {
                    return Err(format!("line {opened}: a quoted value is never closed"));
                }
                if begun {
                    row.end_value(place == Place::Closed);
                    checked(row)?;
                }
                return Ok(begun);
            }
            let mut at = 0;
            let mut ended = false;
            while let Some(byte) = bytes.get(at).copied() {
                if std::mem::take(&mut self.returned) && byte == b'\n' {
                    at += 1;
                    continue;
                }
                let rest = bytes.get(at..).unwrap_or_default();
                match place {
                    Place::Quoted => {
                        let run = rest.iter().position(|b| *b == b'"').unwrap_or(rest.len());
                        let text = rest.get(..run).unwrap_or_default();
                        self.line += text.iter().filter(|b| **b == b'\n').count() as u64;
                        row.bytes.extend_from_slice(text);
                        at += run;
                        if run < rest.len() {
                            place = Place::Closed;
                            at += 1;
                        }
                        continue;
                    }
                    Place::Plain => {
                        let end = |b: &u8| *b == delimiter || matches!(b, b'\n' | b'\r');
                        let run = rest.iter().position(end).unwrap_or(rest.len());
                        row.bytes.extend_from_slice(rest.get(..run).unwrap_or_default());
                        at += run;
                        if run > 0 {
                            continue;
                        }
                    }
                    Place::Start | Place::Closed => {}
                }
                at += 1;
                match (byte, place) {
                    (byte, _) if byte == delimiter => {
                        row.end_value(place == Place::Closed);
                        place = Place::Start;
                    }
                    (b'\n' | b'\r', _) => {
                        row.end_value(place == Place::Closed);
                        self.line += 1;
                        self.returned = byte == b'\r';
                        ended = true;
                        break;
                    }
                    (b'"', Place::Start) => (place, opened) = (Place::Quoted, self.line),
                    (b'"', Place::Closed) => {
                        row.bytes.push(b'"');
                        place = Place::Quoted;
                    }
                    (_, Place::Closed) => {
                        return Err(format!(
                            "line {}: something follows the quote that ends a value; a quote \
                             within a quoted value is written twice",
                            self.line
                        ));
                    }
                    _ => {
                        row.bytes.push(byte);
                        place = Place::Plain;
                    }
                }
                begun = true;
            }
            self.reader.consume(at);
            // Checked before the end of the row: an unclosed quote spans the rest of the file.
            bounded(row)?;
            if ended {
                checked(row)?;
                return Ok(true);
            }
        }
    }
}

/// The most bytes of a row: those that a text column can hold.
pub(super) const MAX_ROW_BYTES: usize = i32::MAX as usize / 2;

/// The most values of a row, far more than a table has columns. Rows with fewer are reported with
/// their exact number.
const MAX_ROW_VALUES: usize = 1_000_000;

fn bounded(row: &CsvRow) -> Result<(), String> {
    let line = row.line;
    if row.bytes.len() > MAX_ROW_BYTES {
        return Err(format!("line {line}: the row has more than 1 GiB"));
    }
    if row.values.len() > MAX_ROW_VALUES {
        return Err(format!("line {line}: the row has more than {MAX_ROW_VALUES} values"));
    }
    Ok(())
}

fn checked(row: &CsvRow) -> Result<(), String> {
    bounded(row)?;
    match std::str::from_utf8(&row.bytes) {
        Ok(_) => Ok(()),
        Err(_) => Err(format!("line {}: the row is not UTF-8: save the file as UTF-8", row.line)),
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    type Row = (u64, Vec<Option<String>>);

    fn of(text: &str) -> Result<Vec<Row>, String> {
        let all = |size: usize| {
            let text = Cursor::new(text.as_bytes().to_vec());
            let mut rows = CsvRows::new(BufReader::with_capacity(size, text), b',')?;
            let (mut row, mut all) = (CsvRow::default(), Vec::new());
            while rows.next(&mut row)? {
                all.push((row.line, row.values().map(|v| v.map(str::to_owned)).collect()));
            }
            Ok(all)
        };
        let whole = all(1 << 16);
        for size in [1, 2, 5] {
            assert_eq!(all(size), whole, "in pieces of {size} bytes");
        }
        whole
    }

    fn row(line: u64, values: &[Option<&str>]) -> Row {
        (line, values.iter().map(|v| v.map(str::to_owned)).collect())
    }

    #[test]
    fn an_empty_text_is_not_nothing() {
        let rows = of("a,b\n\"\",\n,\"\"\n\"x\"\"\",5\" y").unwrap();
        assert_eq!(rows[1], row(2, &[Some(""), None]));
        assert_eq!(rows[2], row(3, &[None, Some("")]));
        assert_eq!(rows[3], row(4, &[Some("x\""), Some("5\" y")]));
    }

    #[test]
    fn a_row_without_an_end_is_refused_before_the_file_has_one() {
        let refused = |head: &'static str, rest: u8| {
            let endless = head.as_bytes().chain(std::io::repeat(rest));
            let mut rows = CsvRows::new(BufReader::with_capacity(1 << 16, endless), b',').unwrap();
            let mut row = CsvRow::default();
            rows.next(&mut row).unwrap();
            rows.next(&mut row).unwrap_err()
        };
        assert_eq!(refused("a\n", b','), "line 2: the row has more than 1000000 values");
        assert_eq!(refused("a\n\"", b'x'), "line 2: the row has more than 1 GiB");
    }

    #[test]
    fn lines_are_counted_within_quotes_and_of_every_kind() {
        let rows = of("\u{feff}a\r\n\"1\n\n2\"\r3\n\n\"\"\n").unwrap();
        let wanted = [
            row(1, &[Some("a")]),
            row(2, &[Some("1\n\n2")]),
            row(5, &[Some("3")]),
            row(6, &[None]),
            row(7, &[Some("")]),
        ];
        assert_eq!(rows, wanted);
        assert_eq!(of("").unwrap(), []);
    }

    #[test]
    fn quotes_that_mean_nothing_are_refused_with_their_line() {
        assert_eq!(of("a\n1\n\"x\ny\n").unwrap_err(), "line 3: a quoted value is never closed");
        assert!(of("a\n\"x\"y\n").unwrap_err().starts_with("line 2: something follows"));
    }
}
