//! Tables.

use serde::{Deserialize, Serialize};

/// A table, or its first rows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TableBlock {
    /// The heading; may be empty.
    pub title: String,
    /// The caption, in Markdown.
    pub caption: String,
    /// The columns.
    pub columns: Vec<TableColumn>,
    /// The rows: a JSON value for each column.
    pub rows: Vec<Vec<serde_json::Value>>,
    /// The number of rows in all, if these are a part of them.
    pub total: Option<u64>,
    /// How the shown rows were chosen, if they are a part: `first by id`.
    pub choice: String,
    /// The step that it comes from.
    pub source: String,
    /// The name of its file when it is copied or saved, without a suffix. Its label in LaTeX.
    pub file_name: String,
    /// Where each row leads, in the order of `rows`: an address relative to the page, or beginning
    /// with `#`. Empty if nowhere.
    pub row_links: Vec<String>,
}

/// A column of a table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TableColumn {
    /// Its name.
    pub name: String,
    /// Its type as Galeras writes it: `utf8!`, `float64`.
    pub data_type: String,
    /// The unit of its values; may be empty.
    pub unit: String,
    /// A description; may be empty.
    pub description: String,
    /// The link of the heading, for pages that a server sorts. Without it a script of the page
    /// sorts.
    pub sort_link: Option<String>,
    /// For pages that a server sorts: whether the rows are in the order of this column.
    pub sorted: Option<SortDirection>,
}

/// The direction in which rows are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SortDirection {
    /// The smallest first.
    Ascending,
    /// The largest first.
    Descending,
}
