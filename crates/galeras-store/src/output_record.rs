//! Where output files come from: a record for every content that a run gave to a file.
//!
//! A record is found by the digest of the content, so that a file is known wherever it was moved
//! to. It also has the digest of the place where the file was written, never the place itself: a
//! file there that has another content was changed by somebody else.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::content_store::Store;
use super::error::StoreError;
use super::sealed::unseal;
use galeras_base::digest::Digest;

/// Where the content of an output file comes from. No path, no user and no time is in it, so that
/// equal content has an equal origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputOrigin {
    /// The workflow's name.
    pub workflow: String,
    /// The name of its file, without the folder.
    pub file: String,
    /// The step with its matrix cell, `gen[model=a]`; `gen[*]` for united cells.
    pub step: String,
    /// The step's port.
    pub port: String,
    /// The logical digest of the table.
    pub table: Digest,
    /// The version of the program.
    pub version: String,
}

/// The names under which an origin stands in the metadata of a Parquet file.
const PAIRS: [&str; 6] = [
    "galeras.workflow",
    "galeras.file",
    "galeras.step",
    "galeras.port",
    "galeras.table_digest",
    "galeras.version",
];

impl OutputOrigin {
    /// Returns true if both are of one workflow: of the same name, in a file of the same name.
    pub fn same_workflow(&self, other: &Self) -> bool {
        (&self.workflow, &self.file) == (&other.workflow, &other.file)
    }

    /// The origin as key-value metadata.
    pub fn to_pairs(&self) -> Vec<(String, String)> {
        let table = self.table.to_string();
        let Self { workflow, file, step, port, version, .. } = self;
        let values = [workflow, file, step, port, &table, version];
        PAIRS.iter().zip(values).map(|(key, value)| (key.to_string(), value.clone())).collect()
    }

    /// The origin in key-value metadata, if all of it is there.
    pub fn from_pairs(pairs: &[(String, String)]) -> Option<Self> {
        let value = |key: &str| pairs.iter().find(|(name, _)| name == key).map(|(_, v)| v.clone());
        let [workflow, file, step, port, table, version] = PAIRS.map(value);
        Some(Self {
            workflow: workflow?,
            file: file?,
            step: step?,
            port: port?,
            table: table?.parse().ok()?,
            version: version?,
        })
    }
}

/// What a run wrote to a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputRecord {
    /// The digest of the file's bytes.
    pub content: Digest,
    /// Where they come from.
    pub origin: OutputOrigin,
    /// The output's path in the workflow, relative to the folder of the outputs.
    pub path: String,
    /// The digest of the file's absolute path.
    pub place: Digest,
    /// The run that wrote it.
    pub run: String,
    /// When, RFC 3339 in UTC.
    pub written: String,
}

impl Store {
    /// Stores the record of an output, replacing an earlier one of this content, origin and place.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub async fn put_output(&self, record: &OutputRecord) -> Result<(), StoreError> {
        self.write_sealed(&output_name(record), record).await
    }

    /// The records of a content, the newest last. Damaged ones are left out.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn outputs_of(&self, content: &Digest) -> Result<Vec<OutputRecord>, StoreError> {
        let records = self.outputs_below(&content_folder(content)).await?;
        Ok(records.into_iter().filter(|record| record.content == *content).collect())
    }

    /// The records of a place, the newest last. All records are read.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn outputs_at(&self, place: &Digest) -> Result<Vec<OutputRecord>, StoreError> {
        let records = self.outputs_below(FOLDER).await?;
        Ok(records.into_iter().filter(|record| record.place == *place).collect())
    }

    /// The names of records that are older than `cutoff` and tell of what was replaced since.
    pub(super) async fn superseded_outputs(&self, cutoff: &str) -> Result<Vec<String>, StoreError> {
        let records = self.outputs_below(FOLDER).await?;
        let last: HashMap<Digest, String> =
            records.iter().map(|record| (record.place, output_name(record))).collect();
        let names = records.iter().filter(|record| record.written.as_str() < cutoff);
        let names = names.map(|record| (record.place, output_name(record)));
        Ok(names.filter(|(place, name)| last[place] != *name).map(|(_, name)| name).collect())
    }

    async fn outputs_below(&self, folder: &str) -> Result<Vec<OutputRecord>, StoreError> {
        let entries = self.inner.backend.read_listable(folder).await?;
        let mut records: Vec<OutputRecord> = entries
            .into_iter()
            .filter_map(|(entry, bytes)| {
                let record: OutputRecord = unseal(&bytes).ok()?;
                (output_name(&record) == entry.name).then_some(record)
            })
            .collect();
        records.sort_by(|a, b| a.written.cmp(&b.written).then(a.run.cmp(&b.run)));
        Ok(records)
    }
}

/// The folder of the records.
pub(super) const FOLDER: &str = "outputs";

fn content_folder(content: &Digest) -> String {
    format!("{FOLDER}/{}/{content}", content.shard())
}

pub(super) fn output_name(record: &OutputRecord) -> String {
    let id = Digest::of_json(&json!({"origin": record.origin, "place": record.place}));
    format!("{}/{id}.json", content_folder(&record.content))
}
