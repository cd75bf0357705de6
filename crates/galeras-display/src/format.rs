//! The formats in which tables are written for programs.

/// The format of a written table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// One JSON object per line.
    Json,
    /// An array of JSON objects, one per line.
    JsonArray,
    /// CSV with a header.
    Csv,
}
