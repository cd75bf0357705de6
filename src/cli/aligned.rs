//! Lines in columns, for verbs that list something. Tables of results are in `report`.

use unicode_width::UnicodeWidthStr as _;

use galeras_base::terminal_escape::escape;

/// The side of its column that a cell is aligned to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

/// Rows in columns that are as wide as their widest cell, two spaces between them. A row may be
/// shorter than the list of columns. Cells are escaped here.
pub(super) fn aligned<const N: usize>(columns: [Side; N], rows: &[[String; N]]) -> String {
    let rows: Vec<[String; N]> =
        rows.iter().map(|row| row.each_ref().map(|cell| escape(cell))).collect();
    let width = |at: usize| rows.iter().map(|row| row[at].width()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for row in &rows {
        let cells: Vec<String> = (0..N)
            .map(|at| {
                let room = " ".repeat(widths[at] - row[at].width());
                match columns[at] {
                    Side::Left => format!("{}{room}", row[at]),
                    Side::Right => format!("{room}{}", row[at]),
                }
            })
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// A time as users read it: `2026-11-22 21:40:05`.
pub(super) fn to_the_second(time: &str) -> String {
    time.get(..19).unwrap_or(time).replacen('T', " ", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stand_below_each_other() {
        let rows =
            [["name", "n"], ["日本\u{1b}", "1,000"], ["x", ""]].map(|row| row.map(String::from));
        let text = aligned([Side::Left, Side::Right], &rows);
        assert_eq!(text, "name            n\n日本\\u{1b}  1,000\nx\n");
        assert_eq!(aligned([Side::Left], &[]), "");
    }
}
