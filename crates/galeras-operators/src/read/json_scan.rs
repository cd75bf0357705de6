//! Finds problems that the JSON reader ignores: a key that an object has twice, so that one value
//! would be lost, a whole number that does not fit 64 bits, nesting that could not be stored,
//! and more keys than a table can have columns.
//!
//! This scans the bytes and does not check that the text is JSON: the reader does.

use std::collections::HashMap;
use std::io::BufRead;

use super::csv_rows::MAX_ROW_BYTES;
use galeras_sql::session::{MAX_COLUMN_DEPTH, MAX_COLUMNS};
use galeras_workflow::quote;

/// Scans a sequence of JSON values. The values of columns are nested in this many brackets.
///
/// # Errors
/// A sentence with the line of the first mistake, or the error of the reader.
pub(super) fn scan(reader: impl BufRead, brackets: usize) -> Result<(), String> {
    scanned(reader, brackets, false)
}

/// As [`scan`], for rows on lines whose declared types check their numbers.
///
/// # Errors
/// As for [`scan`].
pub(crate) fn scan_typed(reader: impl BufRead) -> Result<(), String> {
    scanned(reader, 1, true)
}

fn scanned(mut reader: impl BufRead, brackets: usize, any_number: bool) -> Result<(), String> {
    let deepest = brackets + MAX_COLUMN_DEPTH;
    let mut scan = Scan { line: 1, brackets, deepest, any_number, ..Scan::default() };
    let mut before = 0;
    loop {
        let bytes = reader.fill_buf().map_err(|e| e.to_string())?;
        if bytes.is_empty() {
            return scan.end_number();
        }
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            // Fast path: most bytes of most files are in text values.
            if scan.text == Text::Value && !matches!(byte, b'"' | b'\\') {
                let rest = bytes.get(at..).unwrap_or_default();
                at += rest.iter().take_while(|b| !matches!(b, b'"' | b'\\')).count();
                continue;
            }
            scan.offset = before + at as u64;
            scan.byte(*byte)?;
            at += 1;
        }
        let read = bytes.len();
        before += read as u64;
        // A text without an end spans the rest of the file.
        scan.check_row(before)?;
        reader.consume(read);
    }
}

#[derive(Default)]
struct Scan {
    line: u64,
    /// The bytes before the current one.
    offset: u64,
    /// The offset and the line at which the current row begins.
    row: Option<(u64, u64)>,
    /// The nesting depth of the columns' values, if the rows are objects.
    brackets: usize,
    /// The most open brackets allowed.
    deepest: usize,
    /// Numbers may have any digits.
    any_number: bool,
    text: Text,
    /// The bytes of the current text, if it may be a key.
    key: Vec<u8>,
    /// The bytes of the current number.
    number: Vec<u8>,
    open: Vec<Bracket>,
    /// The number of objects so far.
    objects: u64,
    /// By depth: all keys, each with the number of the latest object that has it.
    known: Vec<HashMap<Vec<u8>, u64>>,
    /// The number of different keys, counted once per depth.
    keys: usize,
}

/// The state within a text.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Text {
    #[default]
    Outside,
    Key,
    Value,
    /// After a backslash in a key, or in a value.
    Escape {
        key: bool,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bracket {
    List,
    /// The object of this number; `key` is true if a key comes next.
    Object {
        key: bool,
        number: u64,
    },
}

impl Scan {
    fn byte(&mut self, byte: u8) -> Result<(), String> {
        match self.text {
            Text::Outside => return self.outside(byte),
            Text::Escape { key } => {
                self.text = if key { Text::Key } else { Text::Value };
                if key {
                    self.key.push(byte);
                }
            }
            Text::Value => match byte {
                b'"' => self.text = Text::Outside,
                b'\\' => self.text = Text::Escape { key: false },
                _ => {}
            },
            Text::Key => match byte {
                b'"' => {
                    self.text = Text::Outside;
                    return self.end_key();
                }
                _ => {
                    if byte == b'\\' {
                        self.text = Text::Escape { key: true };
                    }
                    self.key.push(byte);
                }
            },
        }
        Ok(())
    }

    fn outside(&mut self, byte: u8) -> Result<(), String> {
        if matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E') {
            if self.number.len() < LONGEST_NUMBER {
                self.number.push(byte);
            }
            return Ok(());
        }
        self.end_number()?;
        match byte {
            b'\n' => self.line += 1,
            b'"' => match self.open.last() {
                Some(Bracket::Object { key: true, .. }) => {
                    self.key.clear();
                    self.text = Text::Key;
                }
                _ => self.text = Text::Value,
            },
            b'{' => {
                self.objects += 1;
                self.open(Bracket::Object { key: true, number: self.objects })?;
                let depth = self.open.len();
                self.known.resize_with(self.known.len().max(depth), HashMap::new);
            }
            b'[' => self.open(Bracket::List)?,
            b'}' | b']' => {
                self.open.pop();
                if self.open.len() < self.brackets {
                    self.check_row(self.offset)?;
                    self.row = None;
                }
            }
            b':' => {
                if let Some(Bracket::Object { key, .. }) = self.open.last_mut() {
                    *key = false;
                }
            }
            b',' => {
                if let Some(Bracket::Object { key, .. }) = self.open.last_mut() {
                    *key = true;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The reader would turn a whole number too large for 64 bits into a float, and with it its column.
    fn end_number(&mut self) -> Result<(), String> {
        if self.number.len() < SHORTEST_LOSS || self.any_number {
            self.number.clear();
            return Ok(());
        }
        if std::str::from_utf8(&self.number).is_ok_and(fits_or_is_float) {
            self.number.clear();
            return Ok(());
        }
        Err(format!(
            "line {}: the whole number {} does not fit 64 bits; write it as a text, in quotes, or \
             with a point if it is a float",
            self.line,
            shortened(&String::from_utf8_lossy(&self.number))
        ))
    }

    fn open(&mut self, bracket: Bracket) -> Result<(), String> {
        self.open.push(bracket);
        // An object of columns has no rows.
        let of_rows = self.brackets == 1 || matches!(self.open.first(), Some(Bracket::List));
        if of_rows && self.open.len() == self.brackets {
            self.row = Some((self.offset, self.line));
        }
        if self.open.len() <= self.deepest {
            return Ok(());
        }
        Err(format!(
            "line {}: values are nested more than {MAX_COLUMN_DEPTH} deep; no more can be stored, \
             so keep the inner ones as text",
            self.line
        ))
    }

    /// Checks the length of the row, which is known up to this offset.
    fn check_row(&self, offset: u64) -> Result<(), String> {
        match self.row {
            Some((start, line)) if offset - start > MAX_ROW => {
                Err(format!("line {line}: the row has more than 1 GiB"))
            }
            _ => Ok(()),
        }
    }

    fn end_key(&mut self) -> Result<(), String> {
        let line = self.line;
        if self.key.contains(&b'\\') {
            self.key = unescaped(&self.key);
        }
        let Some(Bracket::Object { number, .. }) = self.open.last() else { return Ok(()) };
        let depth = self.open.len();
        // In an object of columns, the keys of an inner object are row labels.
        let of_rows = depth > 1 && self.brackets > 1;
        let of_rows = of_rows && matches!(self.open.first(), Some(Bracket::Object { .. }));
        let Some(keys) = self.known.get_mut(depth - 1) else { return Ok(()) };
        match keys.get_mut(&self.key) {
            Some(latest) if *latest == *number => {}
            Some(latest) => {
                *latest = *number;
                return Ok(());
            }
            None => {
                keys.insert(self.key.clone(), *number);
                self.keys += usize::from(!of_rows);
                if self.keys <= MAX_COLUMNS {
                    return Ok(());
                }
                return Err(format!(
                    "line {line}: its objects have more than {MAX_COLUMNS} different keys, and each \
                     would be a column; write them as values (`{{\"key\": …, \"value\": …}}`), or \
                     keep the object as text"
                ));
            }
        }
        let name = quote(&String::from_utf8_lossy(&self.key));
        Err(format!(
            "line {line}: an object has the key {name} twice, and only one of its values could be \
             kept; rename or remove one of them"
        ))
    }
}

/// The most bytes of a row, as in CSV.
const MAX_ROW: u64 = if cfg!(test) { 1 << 20 } else { MAX_ROW_BYTES as u64 };

const SHORTEST_LOSS: usize = 19;
/// The most characters of a number that are checked: a float has at most 309 before its point.
const LONGEST_NUMBER: usize = 400;

/// The number fits 64 bits, or has a fraction or an exponent.
fn fits_or_is_float(number: &str) -> bool {
    number.parse::<i64>().is_ok() || !number.bytes().all(|b| b.is_ascii_digit() || b == b'-')
}

fn shortened(number: &str) -> String {
    match number.get(..40) {
        Some(start) if number.len() > 40 => format!("{start}…"),
        _ => number.to_string(),
    }
}

/// The unescaped form of a key; the key unchanged if it is not JSON.
fn unescaped(key: &[u8]) -> Vec<u8> {
    let quoted = [b"\"", key, b"\""].concat();
    serde_json::from_slice::<String>(&quoted).map_or_else(|_| key.to_vec(), String::into_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<(), String> {
        let whole = scan(text.as_bytes(), 1);
        for size in [1, 2, 7] {
            let pieces = std::io::BufReader::with_capacity(size, text.as_bytes());
            assert_eq!(scan(pieces, 1), whole, "in pieces of {size} bytes");
        }
        whole
    }

    #[test]
    fn sound_rows_pass() {
        for text in [
            "",
            "{\"a\":1}\n{\"a\":2,\"b\":{\"a\":1}}\n{\"b\":{},\"a\":3}\n{}\n",
            "[{\"a\":\"a\",\"b\":\"\\\"a\\\":\",\"c\":[\"a\",{\"a\":1},{\"a\":2}]}]",
            "{\"x\":{\"0\":1,\"1\":2},\"y\":{\"0\":1,\"1\":2}}",
            "}}]] \"a\": {",
        ] {
            assert_eq!(of(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn a_key_that_comes_twice_is_named_with_its_line() {
        for (text, line, name) in [
            ("{\"a\":1,\"a\":2}", 1, "a"),
            ("{\"a\":1,\"b\":2}\n{\"a\":1,\"b\":2,\"a\":3}\n", 2, "a"),
            ("{\"a\":1,\"b\":2}\n\n{\"b\":1,\"a\":2,\"b\":3}\n", 3, "b"),
            ("{\"a\":1,\"\\u0061\":2}", 1, "a"),
            ("{\"o\":{\"k\":1,\"l\":[{\"z\":1,\"z\":2}]}}", 1, "z"),
            ("[\n{\"a\":\"x\\\\\",\n\"a\":2}]", 3, "a"),
            ("{\"x\":{\"0\":1},\n\"x\":{\"0\":1}}", 2, "x"),
        ] {
            let message = of(text).unwrap_err();
            let start = format!("line {line}: an object has the key `{name}` twice");
            assert!(message.starts_with(&start), "{text}: {message}");
        }
    }

    #[test]
    fn more_keys_than_a_table_can_have_columns_are_refused() {
        let rows = |keys: usize| {
            let row = |at: usize| format!("{{\"k{at}\":1,\"s\":{{\"t\":[{{\"u{at}\":1}}]}}}}\n");
            (0..keys).map(row).collect::<String>()
        };
        assert_eq!(scan(rows(MAX_COLUMNS / 2 - 1).as_bytes(), 1), Ok(()));
        let message = scan(rows(MAX_COLUMNS / 2).as_bytes(), 1).unwrap_err();
        assert!(message.starts_with("line 5000: its objects have more than 10000"), "{message}");
        let list = |keys: usize| format!("[{}]", rows(keys).trim_end().replace('\n', ",\n"));
        assert!(scan(list(MAX_COLUMNS / 2).as_bytes(), 2).is_err());
        // In the format of pandas, the keys within columns are row labels.
        let labels: Vec<String> = (0..MAX_COLUMNS * 2).map(|at| format!("\"{at}\":1")).collect();
        let columns = format!("{{\"x\":{{{}}}}}", labels.join(","));
        assert_eq!(scan(columns.as_bytes(), 2), Ok(()));
        assert!(scan(columns.as_bytes(), 1).is_err());
    }

    #[test]
    fn a_row_without_an_end_is_refused_before_the_file_has_one() {
        for (head, brackets) in
            [("{\"a\":1}\n{\"a\":\"", 1), ("[{\"a\":1},\n{\"a\":\"", 2), ("\n{\"", 1)]
        {
            let endless = std::io::Read::chain(head.as_bytes(), std::io::repeat(b'x'));
            let message = scan(std::io::BufReader::new(endless), brackets).unwrap_err();
            assert_eq!(message, "line 2: the row has more than 1 GiB", "{head}");
        }
        // Neither many rows nor an object of columns are a row.
        let rows = "{\"a\":\"0123456789\"}\n".repeat(100_000);
        assert_eq!(scan(rows.as_bytes(), 1), Ok(()));
        let columns = format!("{{\"a\":{{\"0\":\"{}\"}}}}", "x".repeat(2 << 20));
        assert_eq!(scan(columns.as_bytes(), 2), Ok(()));
    }

    #[test]
    fn whole_numbers_that_do_not_fit_64_bits_are_refused() {
        for number in [
            "12345678901234567890",
            "-9223372036854775809",
            "100000000000000000001",
            // Floats have these values, or print like them.
            "9223372036854775808",
            "18446744073709551616",
            "18446744073709552000",
            "100000000000000000000",
        ] {
            for text in [
                format!("{{\"a\":1}}\n{{\"a\":{number}}}"),
                format!("{{\"a\":1}}\n{{\"a\":[{number}]}}\n{{}}"),
                format!("[\n{number}"),
            ] {
                let message = of(&text).unwrap_err();
                let start = format!("line 2: the whole number {number} does not fit 64 bits");
                assert!(message.starts_with(&start), "{text}: {message}");
            }
        }
        let long = "7".repeat(1_000_000);
        assert!(of(&long).unwrap_err().contains(" 7777777777777777777777777777777777777777… does"));
        for number in [
            "9223372036854775807",
            "-9223372036854775808",
            "100000000000000000000.0",
            "1e20",
            "1.2345678901234567890123",
            "123456789012345678901.5",
            "12345678901234567890e3",
        ] {
            assert_eq!(of(&format!("{{\"a\":{number},\"b\":\"12345678901234567890\"}}")), Ok(()));
        }
    }

    #[test]
    fn depth_is_limited() {
        let nested =
            |depth: usize| format!("{{\"a\":{}1{}}}\n", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(of(&nested(MAX_COLUMN_DEPTH)), Ok(()));
        let text = format!("{}{}", nested(1), nested(120));
        let message = of(&text).unwrap_err();
        assert!(message.starts_with("line 2: values are nested more than 32 deep"), "{message}");
    }
}
