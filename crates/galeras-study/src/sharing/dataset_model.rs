//! The metadata of a data set, for the files that describe it.

use std::collections::BTreeMap;

use arrow::datatypes::SchemaRef;

use galeras_base::digest::Digest;
use galeras_display::ColumnSummary;

/// The split that rows are in: they are for evaluation, not for training.
pub(super) const SPLIT: &str = "test";
/// The name of the file with Croissant metadata.
pub(super) const CROISSANT: &str = "croissant.json";

/// A table of a data set, with the rows that may be published.
#[derive(Clone, Debug)]
pub struct PublishedTable {
    /// The table as it was named.
    pub table: String,
    /// Its name in the data set.
    pub name: String,
    /// Its columns, with their descriptions.
    pub schema: SchemaRef,
    /// The columns that identify a row.
    pub key: Vec<String>,
    /// Rows that are published.
    pub rows: u64,
    /// Rows that were left out, by reason.
    pub left_out: BTreeMap<String, u64>,
    /// Rows by licence; those without one under the empty text.
    pub licences: BTreeMap<String, u64>,
    /// The digest of the published data.
    pub digest: Digest,
    /// The file, below the folder.
    pub file: String,
    /// Its size.
    pub bytes: u64,
    /// The size of its rows in memory.
    pub memory: u64,
    /// The digest of its bytes, as Croissant wants it.
    pub sha256: String,
    /// The summaries of its columns.
    pub columns: Vec<ColumnSummary>,
}

/// The metadata of a repository with published rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attribution {
    /// Its licence, if it is known.
    pub licence: Option<String>,
    /// Its address, if a row has it.
    pub address: Option<String>,
    /// Its rows, in all tables.
    pub rows: u64,
}

/// A data set: the metadata in its files.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// The workflow's name.
    pub name: String,
    /// Its purpose.
    pub description: Option<String>,
    /// The tables.
    pub tables: Vec<PublishedTable>,
    /// The repositories.
    pub repositories: BTreeMap<String, Attribution>,
    /// When the last of the results was computed.
    pub computed: String,
    /// Its authors; empty if none were given.
    pub authors: Vec<String>,
    /// The workflow file, as a word of a command, and its settings.
    pub command: String,
    /// The graph of the steps in Mermaid.
    pub graph: String,
    /// The loss of rows: each step with the row counts of its tables.
    pub attrition: Vec<(String, Vec<(String, u64)>)>,
    /// The pins in `galeras.lock`, a line each.
    pub locked: Vec<String>,
    /// It includes rows without a known, permitted licence.
    pub any_licence: bool,
}

impl Dataset {
    /// Rows that are published.
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(|table| table.rows).sum()
    }

    /// Rows that were left out.
    pub fn left_out(&self) -> u64 {
        self.tables.iter().flat_map(|table| table.left_out.values()).sum()
    }

    /// Its authors, on one line.
    pub(super) fn makers(&self) -> String {
        match self.authors.as_slice() {
            [] => format!("The authors of {}", self.name),
            named => named.join(", "),
        }
    }

    /// The licences of the rows, with how many have each.
    pub(super) fn licences(&self) -> BTreeMap<&str, u64> {
        let mut licences = BTreeMap::new();
        for (licence, rows) in self.tables.iter().flat_map(|table| &table.licences) {
            *licences.entry(licence.as_str()).or_default() += rows;
        }
        licences
    }
}
