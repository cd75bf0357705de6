//! Tables for people: aligned columns that fit the terminal.

use std::io::{self, Write};

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Float64Type, SchemaRef};

use super::cell::{CellFormatter, json_options};
use super::stream::check_columns;
use super::text;
use galeras_figures::{ERRORS, fixed, is_estimate, row_decimals};

/// The least width of a column of text, unless its cells are narrower.
const NARROWEST: usize = 12;

/// More characters than any screen shows; the rest is ignored.
const LONGEST_CELL: usize = 4096;

/// The layout of a table for people.
#[derive(Clone, Debug, Default)]
pub struct TableStyle {
    /// The columns of the terminal: longer cells are cropped. The last columns follow below, after the
    /// first ones again, if not even a cropped part fits; where they need more than that, they are left
    /// out, with a note that names them. Without a width only cells of many thousand characters are
    /// cropped.
    pub width: Option<u16>,
    /// Shortens ids and digests to a prefix that distinguishes those shown.
    pub short_ids: bool,
    /// Advice about columns that are left out: `use --columns`.
    pub columns_hint: Option<&'static str>,
    /// Columns of numbers as text, to be aligned right.
    pub numeric: &'static [&'static str],
}

/// Writes the rows of `batches` as aligned columns.
pub fn write_table(
    out: &mut dyn Write,
    batches: &[RecordBatch],
    schema: &SchemaRef,
    style: &TableStyle,
) -> io::Result<()> {
    let width = style.width.map(usize::from);
    let mut columns = columns(batches, schema, style)?;
    let dropped = match width {
        Some(width) => fit(&mut columns, width),
        None => Vec::new(),
    };
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    write_rows(out, &columns, rows)?;
    if rows == 0 {
        writeln!(out, "(0 rows)")?;
    }
    let below = width.filter(|_| rows > 0).and_then(|width| folded(&columns, &dropped, width));
    if let Some(below) = below {
        writeln!(out)?;
        write_rows(out, &below, rows)?;
    } else if !dropped.is_empty() {
        let s = if dropped.len() == 1 { "" } else { "s" };
        let hint = style.columns_hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
        let names: Vec<&str> = dropped.iter().map(|column| column.name.as_str()).collect();
        let note = format!("… {} more column{s}: {}{hint}", names.len(), names.join(", "));
        for line in text::wrap(&note, width.unwrap_or(usize::MAX)) {
            writeln!(out, "{line}")?;
        }
    }
    out.flush()
}

/// Writes every row in full: a line per column, and texts of several lines below their names.
///
/// # Errors
/// If a value cannot be written.
pub fn write_records(out: &mut dyn Write, batches: &[RecordBatch]) -> io::Result<()> {
    let options = json_options();
    let mut is_first = true;
    for batch in batches {
        let schema = batch.schema();
        let names: Vec<String> =
            schema.fields().iter().map(|field| text::escape(field.name())).collect();
        let wide = names.iter().map(|name| text::width(name)).max().unwrap_or(0);
        for row in 0..batch.num_rows() {
            if !std::mem::take(&mut is_first) {
                writeln!(out)?;
            }
            for ((field, array), name) in schema.fields().iter().zip(batch.columns()).zip(&names) {
                let value = CellFormatter::new(field, array.as_ref(), &options)?.text(row)?;
                let lines = text::escape_lines(&value);
                if lines.contains('\n') {
                    writeln!(out, "{name}")?;
                    lines.lines().try_for_each(|line| writeln!(out, "    {line}"))?;
                } else {
                    writeln!(out, "{}", format!("{}  {lines}", text::left(name, wide)).trim_end())?;
                }
            }
        }
    }
    out.flush()
}

#[derive(Clone)]
struct Column {
    name: String,
    numeric: bool,
    cells: Vec<String>,
    /// The width of the widest cell or of the name.
    natural: usize,
    /// The assigned width.
    width: usize,
}

impl Column {
    fn least(&self) -> usize {
        if self.numeric { self.natural } else { self.natural.min(NARROWEST) }
    }

    fn shown(&self, cell: &str, last: bool) -> String {
        let cell = text::crop(cell, self.width);
        match (self.numeric, last) {
            (true, _) => text::right(&cell, self.width),
            (false, true) => cell,
            (false, false) => text::left(&cell, self.width),
        }
    }
}

/// Writes the names of the columns and their cells.
fn write_rows(out: &mut dyn Write, columns: &[Column], rows: usize) -> io::Result<()> {
    let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
    write_row(out, columns, &names)?;
    let rules: Vec<String> = columns.iter().map(|c| "─".repeat(c.width)).collect();
    write_row(out, columns, &rules.iter().map(String::as_str).collect::<Vec<_>>())?;
    for row in 0..rows {
        let cells: Vec<&str> =
            columns.iter().map(|c| c.cells.get(row).map_or("", String::as_str)).collect();
        write_row(out, columns, &cells)?;
    }
    Ok(())
}

fn write_row(out: &mut dyn Write, columns: &[Column], cells: &[&str]) -> io::Result<()> {
    let last = columns.len().saturating_sub(1);
    let shown: Vec<String> = columns
        .iter()
        .zip(cells)
        .enumerate()
        .map(|(i, (column, cell))| column.shown(cell, i == last))
        .collect();
    writeln!(out, "{}", shown.join("  ").trim_end())
}

fn columns(
    batches: &[RecordBatch],
    schema: &SchemaRef,
    style: &TableStyle,
) -> io::Result<Vec<Column>> {
    batches.iter().try_for_each(|batch| check_columns(schema, batch))?;
    let options = json_options();
    let decimals = decimals(batches, schema);
    let mut columns = Vec::with_capacity(schema.fields().len());
    for (i, field) in schema.fields().iter().enumerate() {
        let mut cells: Vec<String> = Vec::new();
        let estimates = is_estimate(field.name()).then(|| floats(batches, i)).flatten();
        for batch in batches {
            let mut source = CellFormatter::new(
                &batch.schema_ref().fields()[i],
                batch.column(i).as_ref(),
                &options,
            )?;
            for row in 0..batch.num_rows() {
                let at = cells.len();
                let estimate = estimates.as_ref().and_then(|numbers| numbers[at]).zip(decimals[at]);
                cells.push(match estimate {
                    Some((estimate, decimals)) => fixed(estimate, decimals),
                    None => one_line(&source.text(row)?),
                });
            }
        }
        if style.short_ids {
            shorten_ids(&mut cells);
        }
        let name = one_line(field.name());
        let widest = cells.iter().map(|cell| text::width(cell)).max().unwrap_or(0);
        let natural = widest.max(text::width(&name)).max(1);
        let numeric =
            field.data_type().is_numeric() || style.numeric.contains(&field.name().as_str());
        columns.push(Column { name, numeric, cells, natural, width: natural });
    }
    Ok(columns)
}

/// The decimals of the estimates of each row.
pub(super) fn decimals(batches: &[RecordBatch], schema: &SchemaRef) -> Vec<Option<usize>> {
    let column = |name| floats(batches, schema.index_of(name).ok()?);
    let errors = ERRORS.map(|name| (name, column(name)));
    let rows = batches.iter().map(RecordBatch::num_rows).sum();
    row_decimals(rows, |name, row| {
        let (_, numbers) = errors.iter().find(|(error, _)| *error == name)?;
        numbers.as_ref()?[row]
    })
}

/// The numbers of a column of doubles.
pub(super) fn floats(batches: &[RecordBatch], column: usize) -> Option<Vec<Option<f64>>> {
    let mut all = Vec::new();
    for batch in batches {
        all.extend(batch.column(column).as_primitive_opt::<Float64Type>()?.iter());
    }
    Some(all)
}

/// The least length of an id or a digest in hexadecimal digits.
const ID_DIGITS: usize = 32;

/// The digits of a shortened id, unless more are needed.
const SHORT_ID: usize = 10;

/// Shortens the cells of a column of ids to the fewest common digits that distinguish them.
/// `galeras trace` accepts such prefixes.
fn shorten_ids(cells: &mut [String]) {
    let is_id = |cell: &&String| {
        cell.len() >= ID_DIGITS && cell.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    let mut ids: Vec<&String> = cells.iter().filter(|cell| *cell != "null").collect();
    if ids.is_empty() || !ids.iter().all(is_id) {
        return;
    }
    ids.sort_unstable();
    ids.dedup();
    let shared =
        |(a, b): (&&String, &&String)| a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let longest = ids.iter().zip(ids.iter().skip(1)).map(shared).max().unwrap_or(0);
    let digits = SHORT_ID.max(longest + 1);
    cells.iter_mut().filter(|cell| *cell != "null").for_each(|cell| cell.truncate(digits));
}

fn one_line(cell: &str) -> String {
    let (shown, whole) = text::prefix(cell, LONGEST_CELL);
    let mut shown = text::escape_with(shown, "⏎");
    if !whole {
        shown.push('…');
    }
    shown
}

/// The columns that did not fit, after the texts that begin the table; `None` if they do not fit either.
fn folded(kept: &[Column], dropped: &[Column], width: usize) -> Option<Vec<Column>> {
    if dropped.is_empty() {
        return None;
    }
    let mut taken = 0;
    let labels = kept.iter().take_while(|column| {
        let fits = !column.numeric && taken + column.width + 2 <= width / 2;
        taken += if fits { column.width + 2 } else { 0 };
        fits
    });
    // They have the width that they have above.
    let labels: Vec<Column> = labels.cloned().collect();
    let needed: usize = dropped.iter().map(|column| column.least() + 2).sum();
    if labels.is_empty() || taken + needed > width + 2 {
        return None;
    }
    let mut rest = dropped.to_vec();
    fit(&mut rest, width - taken);
    Some([labels, rest].concat())
}

/// Sets the widths of the columns, and returns those that do not fit.
fn fit(columns: &mut Vec<Column>, width: usize) -> Vec<Column> {
    let mut used = 0;
    let mut kept = 0;
    for column in columns.iter() {
        let with = used + column.least() + if kept > 0 { 2 } else { 0 };
        if kept > 0 && with > width {
            break;
        }
        used = with;
        kept += 1;
    }
    let dropped = columns.drain(kept..).collect();
    columns.iter_mut().for_each(|c| c.width = c.least());
    if let Some(first) = columns.first_mut() {
        first.width = first.width.min(width.max(1));
    }
    // The rest goes to the narrowest column that needs more, one by one.
    let mut room = width.saturating_sub(used);
    while room > 0 {
        let wanting = columns.iter_mut().filter(|c| c.width < c.natural);
        let Some(column) = wanting.min_by_key(|c| c.width) else { break };
        column.width += 1;
        room -= 1;
    }
    dropped
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, BooleanArray, Float32Array, Float64Array, Int64Array, ListBuilder, StringArray,
        StringBuilder, TimestampMicrosecondArray,
    };

    use super::*;

    fn shown(columns: Vec<(&str, ArrayRef)>, width: Option<u16>) -> String {
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut out = Vec::new();
        let schema = batch.schema();
        let columns_hint = Some("use --columns");
        let style = TableStyle { width, short_ids: true, columns_hint, ..TableStyle::default() };
        write_table(&mut out, &[batch], &schema, &style).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn texts(values: Vec<Option<&str>>) -> ArrayRef {
        Arc::new(StringArray::from(values))
    }

    #[test]
    fn numbers_are_aligned_right_and_texts_left() {
        let mut tags = ListBuilder::new(StringBuilder::new());
        tags.append_value([Some("a"), None]);
        tags.append_null();
        let table = shown(
            vec![
                ("id", texts(vec![Some("abc"), None])),
                ("n", Arc::new(Int64Array::from(vec![Some(17_102), None]))),
                ("bleu", Arc::new(Float64Array::from(vec![0.25, 1.0 / 3.0]))),
                ("f32", Arc::new(Float32Array::from(vec![0.1, 1e-9]))),
                ("ok", Arc::new(BooleanArray::from(vec![true, false]))),
                ("at", Arc::new(TimestampMicrosecondArray::from(vec![0, 1]).with_timezone("UTC"))),
                ("tags", Arc::new(tags.finish())),
            ],
            Some(100),
        );
        let expected = "\
id        n      bleu   f32  ok     at                           tags
────  ─────  ────────  ────  ─────  ───────────────────────────  ──────────
abc   17102      0.25   0.1  true   1970-01-01T00:00:00Z         [\"a\",null]
null   null  0.333333  1e-9  false  1970-01-01T00:00:00.000001Z  null
";
        assert_eq!(table, expected);
    }

    #[test]
    fn estimates_have_the_decimals_of_their_standard_errors() {
        let floats = |values: [f64; 2]| Arc::new(Float64Array::from(values.to_vec())) as ArrayRef;
        let table = shown(
            vec![
                ("outcome", texts(vec![Some("chrf"), Some("chrf")])),
                ("estimate", floats([0.002_751, 0.02])),
                ("ci_low", floats([-0.001_226, 0.018_24])),
                ("ci_high", floats([0.006_727, 0.028_13])),
                ("power", floats([0.123_456, 0.5])),
            ],
            Some(100),
        );
        let expected = "\
outcome  estimate   ci_low  ci_high     power
───────  ────────  ───────  ───────  ────────
chrf       0.0028  -0.0012   0.0067  0.123456
chrf       0.0200   0.0182   0.0281       0.5
";
        assert_eq!(table, expected);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let code = "def f():\n\treturn '測試'\r\n".repeat(20);
        for width in [10, 20, 40, 79, 80, 200] {
            let table = shown(
                vec![
                    ("id", texts(vec![Some("0123456789abcdef0123456789abcdef")])),
                    ("code", texts(vec![Some(&code)])),
                    ("nloc", Arc::new(Int64Array::from(vec![3]))),
                    ("message", texts(vec![Some("\x1b[31mred\u{202e}")])),
                    ("other", texts(vec![None])),
                ],
                Some(width),
            );
            assert!(table.lines().all(|l| text::width(l) <= width.into()), "{table}");
            assert!(!table.contains('\x1b'));
        }
    }

    #[test]
    fn columns_that_do_not_fit_are_named() {
        let column = || texts(vec![Some("some longer text")]);
        let table = shown(
            vec![("first", column()), ("second", column()), ("third", column()), ("x", column())],
            Some(30),
        );
        assert!(table.ends_with("… 2 more columns: third, x\n(use --columns)\n"), "{table}");
        let whole = shown(vec![("first", column()), ("second", column())], None);
        assert!(whole.contains("some longer text  some longer text"), "{whole}");
    }

    #[test]
    fn columns_that_do_not_fit_follow_below() {
        let numbers = |n: usize| -> ArrayRef { Arc::new(Int64Array::from(vec![1, n as i64])) };
        let mut columns = vec![("column", texts(vec![Some("bleu"), Some("chrf")]))];
        let names = ["first", "second", "third", "fourth", "fifth"];
        columns.extend(names.iter().enumerate().map(|(at, name)| (*name, numbers(at))));
        let expected = "\
column  first  second  third
──────  ─────  ──────  ─────
bleu        1       1      1
chrf        0       1      2

column  fourth  fifth
──────  ──────  ─────
bleu         1      1
chrf         3      4
";
        assert_eq!(shown(columns.clone(), Some(30)), expected);
        let more: Vec<(&str, ArrayRef)> = (0..4).map(|_| ("further", numbers(1))).collect();
        assert!(shown([columns, more].concat(), Some(30)).contains("… 6 more columns: fourth"));
    }

    #[test]
    fn a_record_has_whole_texts() {
        let code = "def f():\n\treturn 1\x1b\n";
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("id", texts(vec![Some("a"), Some("b")])),
            ("prediction", texts(vec![Some(code), None])),
            ("n", Arc::new(Int64Array::from(vec![3, 4]))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut out = Vec::new();
        write_records(&mut out, &[batch]).unwrap();
        let expected = "\
id          a
prediction
    def f():
    \treturn 1\\u{1b}
n           3

id          b
prediction  null
n           4
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn an_empty_table_shows_its_columns() {
        let table = shown(vec![("id", texts(vec![])), ("code", texts(vec![]))], Some(80));
        assert_eq!(table, "id  code\n──  ────\n(0 rows)\n");
    }

    #[test]
    fn a_huge_cell_is_not_read_to_its_end() {
        let huge = "x".repeat(1 << 24);
        let table = shown(vec![("raw", texts(vec![Some(&huge)]))], None);
        assert!(table.len() < 1 << 16);
        for width in [None, Some(80)] {
            let table =
                shown(vec![("id", texts(vec![Some("a")])), (&huge, texts(vec![None]))], width);
            assert!(table.len() < 1 << 16);
        }
    }
}
