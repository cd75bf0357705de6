//! The formats in which tables are written for programs.

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// One JSON object per line.
    Json,
    /// An array of JSON objects, one on each line.
    JsonArray,
    /// CSV with a header.
    Csv,
}
