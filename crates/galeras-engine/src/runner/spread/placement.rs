//! Decides which steps executors may compute, and which stay with the process that runs the
//! workflow.

use galeras_operator::{BoundStep, Lowering};

/// The place where a step of a run on a cluster is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Executors compute ranges of its rows, and one of them builds the tables.
    Rows,
    /// Executors compute its rows in shares, and one of them builds the tables.
    Shares,
    /// An executor computes the whole step.
    Whole,
    /// The coordinator computes it, for this reason.
    Coordinator(&'static str),
}

impl Placement {
    /// The placement of a step by its arguments. A step with little input still stays with the
    /// coordinator.
    pub fn of(bound: &dyn BoundStep) -> Self {
        let lowering = bound.lowering();
        if let Lowering::Paid(_) = lowering {
            return Self::Coordinator(
                "answers are paid for once, and kept where they are asked for",
            );
        }
        if let Some(reason) = bound.stays() {
            return Self::Coordinator(reason);
        }
        if !bound.local_files().is_empty() || bound.side_files().map_or(true, |f| !f.is_empty()) {
            return Self::Coordinator("it reads files of this machine");
        }
        match lowering {
            // Consent for each row is asked before it is handed out.
            Lowering::FanOut(_) => Self::Shares,
            _ if bound.fact().is_some() || !bound.demands().is_empty() => {
                Self::Coordinator("it asks the world")
            }
            Lowering::Row(row) if row.is_source() => {
                Self::Coordinator("it has no input whose rows could be divided")
            }
            Lowering::Row(row) if row.is_light() => Self::Whole,
            Lowering::Row(_) => Self::Rows,
            Lowering::Table(_) => Self::Whole,
            Lowering::Paid(_) => Self::Coordinator("it is paid for"),
        }
    }

    /// The words of `plan --engine`.
    pub fn describe(self) -> String {
        match self {
            Self::Rows => "executors, by ranges of rows".into(),
            Self::Shares => "executors, by shares of each row".into(),
            Self::Whole => "one executor".into(),
            Self::Coordinator(reason) => format!("coordinator: {reason}"),
        }
    }
}

/// A row step with fewer input rows is computed faster here.
pub(super) const MIN_ROWS: u64 = 2048;
/// A table step with fewer stored bytes of input is computed faster here.
pub(super) const MIN_BYTES: u64 = 1 << 20;
/// The least rows of an item ...
const MIN_ITEM_ROWS: u64 = 1024;
/// ... and the most items of a table, unless they would be larger than ...
const MAX_ITEMS: u64 = 256;
/// ... this many rows, whose work may be lost.
const MAX_ITEM_ROWS: u64 = 16 * 1024;
/// The least number of items of a fan-out, cut into shares if it has fewer rows.
const SHARES: usize = 16;

/// The ranges of a table with this many rows: starts and lengths.
pub(super) fn ranges(rows: u64) -> impl Iterator<Item = (u64, u64)> {
    let wanted = rows.div_ceil(MAX_ITEMS).clamp(MIN_ITEM_ROWS, MAX_ITEM_ROWS);
    let items = rows.div_ceil(wanted);
    (0..items).map(move |item| {
        let (start, end) = (item * rows / items, (item + 1) * rows / items);
        (start, end - start)
    })
}

/// The number of shares of each row of a fan-out with this many rows.
pub(super) fn shares(rows: usize) -> u32 {
    match rows {
        0 => 1,
        rows => SHARES.div_ceil(rows) as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_a_table_once() {
        for rows in [0, 1, 255, 256, 257, 1024, 17_000, 65_536, 10_000_000] {
            let mut next = 0;
            for (start, len) in ranges(rows) {
                assert_eq!(start, next);
                assert!(len > 0 && len <= MAX_ITEM_ROWS + 1);
                next = start + len;
            }
            assert_eq!(next, rows);
        }
        assert_eq!((shares(1), shares(3), shares(16), shares(900)), (16, 6, 1, 1));
    }
}
