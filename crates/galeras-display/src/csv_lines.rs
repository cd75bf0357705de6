//! Rows as CSV in which an empty text (`""`) differs from a null (nothing), so that `read` restores
//! both.

use std::io::{self, Write};

use arrow::array::{Array, RecordBatch};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use super::cell::failed;

pub(super) fn write_header(out: &mut impl Write, names: &[&str]) -> io::Result<()> {
    let mut line = Vec::new();
    for (at, name) in names.iter().enumerate() {
        if at > 0 {
            line.push(b',');
        }
        push_text(&mut line, name);
    }
    line.push(b'\n');
    out.write_all(&line)
}

/// Writes the rows of a batch without nested columns.
pub(super) fn write_rows(out: &mut impl Write, batch: &RecordBatch) -> io::Result<()> {
    const OPTIONS: FormatOptions<'static> = FormatOptions::new();
    let columns = batch.columns().iter().map(|array| {
        let formatter = ArrayFormatter::try_new(array.as_ref(), &OPTIONS);
        formatter.map(|formatter| (array.as_ref(), formatter)).map_err(|e| failed(&e))
    });
    let columns: Vec<(&dyn Array, ArrayFormatter)> = columns.collect::<io::Result<_>>()?;
    let mut lines = Vec::new();
    for row in 0..batch.num_rows() {
        for (at, (array, formatter)) in columns.iter().enumerate() {
            if at > 0 {
                lines.push(b',');
            }
            if !array.is_null(row) {
                let text = formatter.value(row).try_to_string().map_err(|e| failed(&e))?;
                push_text(&mut lines, &text);
            }
        }
        lines.push(b'\n');
        if lines.len() > 1 << 16 {
            out.write_all(&lines)?;
            lines.clear();
        }
    }
    out.write_all(&lines)
}

fn push_text(line: &mut Vec<u8>, text: &str) {
    if text.is_empty() || text.contains([',', '"', '\n', '\r']) {
        line.push(b'"');
        line.extend_from_slice(text.replace('"', "\"\"").as_bytes());
        line.push(b'"');
    } else {
        line.extend_from_slice(text.as_bytes());
    }
}
