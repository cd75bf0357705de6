//! The stored rows of a fan-out: whole tables, and pieces of them.
//!
//! A part is named by its row in hexadecimal digits. For a piece, the digest of the cut, the
//! piece's number and the total number follow, so that the names alone show which rows are
//! complete.

use std::collections::{BTreeMap, HashMap};

use galeras_base::digest::Digest;
use galeras_sql::functions::RowDigest;
use galeras_store::MemoPart;

/// Digits of the digest of a row.
const ROW: usize = 2 * RowDigest::BYTES as usize;
const NUMBER: usize = 8;

/// A division of the work on a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct RowCut {
    /// The digest of the row in hexadecimal digits.
    pub(super) row: String,
    /// The digest of the pieces.
    pub(super) cut: Digest,
    pub(super) pieces: u32,
}

impl RowCut {
    /// The part's name of a piece. A single piece is the row.
    pub(super) fn part(&self, piece: u32) -> String {
        let Self { row, cut, pieces } = self;
        match pieces {
            1 => row.clone(),
            _ => format!("{row}{cut}{piece:0NUMBER$x}{pieces:0NUMBER$x}"),
        }
    }

    /// The cut and the number of the piece that a part is, if it is not a whole row.
    fn of(part: &str) -> Option<(Self, u32)> {
        let (rest, pieces) = part.split_at_checked(part.len().checked_sub(NUMBER)?)?;
        let (rest, piece) = rest.split_at_checked(rest.len().checked_sub(NUMBER)?)?;
        let (row, cut) = rest.split_at_checked(ROW)?;
        let number = |digits: &str| u32::from_str_radix(digits, 16).ok();
        let cut = Self { row: row.to_string(), cut: cut.parse().ok()?, pieces: number(pieces)? };
        let piece = number(piece).filter(|piece| *piece < cut.pieces)?;
        Some((cut, piece))
    }
}

#[derive(Debug, Default)]
pub(super) struct StoredRows {
    /// The time of each table, and the tables that form it.
    whole: HashMap<String, (String, Vec<Digest>)>,
    pieces: HashMap<RowCut, BTreeMap<u32, Digest>>,
}

impl StoredRows {
    /// Sorts these parts by row. If a row has several tables, as after a forced run, the latest
    /// counts.
    pub(super) fn of(parts: &[MemoPart]) -> Self {
        let mut rows = Self::default();
        let mut finished: HashMap<RowCut, &str> = HashMap::new();
        for part in parts {
            let Some(name) = &part.row else { continue };
            match RowCut::of(name) {
                None => rows.finish(name, &part.created, vec![part.blob]),
                Some((cut, piece)) => {
                    let last = finished.entry(cut.clone()).or_default();
                    *last = (*last).max(&part.created);
                    rows.pieces.entry(cut).or_default().insert(piece, part.blob);
                }
            }
        }
        for (cut, last) in finished {
            let Some(pieces) = rows.pieces.get(&cut) else { continue };
            if pieces.len() == cut.pieces as usize {
                let tables = pieces.values().copied().collect();
                rows.finish(&cut.row, last, tables);
            }
        }
        rows
    }

    fn finish(&mut self, row: &str, when: &str, tables: Vec<Digest>) {
        let known = self.whole.entry(row.to_string()).or_default();
        // At equal times the content decides, not the order of the parts.
        if (when, &tables) >= (known.0.as_str(), &known.1) {
            *known = (when.to_string(), tables);
        }
    }

    /// The tables that form that of the row, if it is complete.
    pub(super) fn whole(&self, row: &str) -> Option<&[Digest]> {
        self.whole.get(row).map(|(_, tables)| tables.as_slice())
    }

    /// The number of complete rows.
    pub(super) fn count(&self) -> usize {
        self.whole.len()
    }

    /// The table of a piece, if it is stored.
    pub(super) fn piece(&self, cut: &RowCut, piece: u32) -> Option<Digest> {
        self.pieces.get(cut)?.get(&piece).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(pieces: u32) -> RowCut {
        RowCut { row: "ab".repeat(16), cut: Digest::of(b"cut"), pieces }
    }

    fn part(row: String, table: &[u8], created: &str) -> MemoPart {
        let created = created.to_string();
        MemoPart { blob: Digest::of(table), bytes: 1, rows: 1, created, row: Some(row) }
    }

    #[test]
    fn names_are_hexadecimal_and_read_back() {
        let name = cut(300).part(299);
        assert!(name.bytes().all(|byte| byte.is_ascii_hexdigit()) && name.len() < 200, "{name}");
        assert_eq!(RowCut::of(&name), Some((cut(300), 299)));
        assert_eq!(cut(1).part(0), cut(1).row, "the only piece is the row");
        for other in [cut(1).part(0), cut(3).part(3), String::new(), "x".repeat(112)] {
            assert_eq!(RowCut::of(&other), None, "{other}");
        }
    }

    #[test]
    fn a_row_is_whole_with_its_last_piece() {
        let (cut, row) = (cut(3), cut(3).row);
        let other = RowCut { cut: Digest::of(b"another cut"), ..cut.clone() };
        let mut parts = vec![
            part(cut.part(0), b"0", "1"),
            part(cut.part(2), b"2", "2"),
            part(other.part(1), b"1 of another", "3"),
        ];
        let stored = StoredRows::of(&parts);
        assert_eq!((stored.whole(&row), stored.count()), (None, 0));
        assert_eq!(stored.piece(&cut, 2), Some(Digest::of(b"2")));
        assert_eq!(stored.piece(&cut, 1), None, "pieces of another cut are others");
        parts.push(part(cut.part(1), b"1", "4"));
        let tables = [b"0", b"1", b"2"].map(|table| Digest::of(table));
        let stored = StoredRows::of(&parts);
        assert_eq!((stored.whole(&row), stored.count()), (Some(&tables[..]), 1));
    }

    #[test]
    fn of_two_tables_of_a_row_the_last_one_counts() {
        let (cut, row) = (cut(2), cut(2).row);
        let pieces = [part(cut.part(0), b"0", "1"), part(cut.part(1), b"1", "5")];
        let tables = [b"0", b"1"].map(|table| Digest::of(table));
        for (when, wanted) in [("4", &tables[..]), ("6", &[Digest::of(b"whole")][..])] {
            let mut parts = pieces.to_vec();
            parts.push(part(row.clone(), b"whole", when));
            assert_eq!(StoredRows::of(&parts).whole(&row), Some(wanted));
            parts.reverse();
            assert_eq!(StoredRows::of(&parts).whole(&row), Some(wanted));
        }
    }
}
