//! The origins of output files: a record for every content that a run wrote to a file.
//!
//! A record is found by the digest of the content, so that a file is recognised after it was moved.
//! It also has the digest of the path of the file, never the path: a file there with another
//! content was not written by a run.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::content_store::Store;
use super::error::Result;
use super::integrity::unseal;
use galeras_base::digest::Digest;

/// The origin of the content of an output file, without path, user and time, so that equal content
/// has an equal origin.
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

/// The names of the parts of an origin in the metadata of a Parquet file, after `galeras.`.
const PAIRS: [&str; 6] = ["workflow", "file", "step", "port", "table_digest", "version"];

impl OutputOrigin {
    /// Returns true if the names of the workflow and of its file are the same.
    pub fn same_workflow(&self, other: &Self) -> bool {
        (&self.workflow, &self.file) == (&other.workflow, &other.file)
    }

    /// The origin as key-value metadata.
    pub fn to_pairs(&self) -> Vec<(String, String)> {
        let table = self.table.to_string();
        let Self { workflow, file, step, port, version, .. } = self;
        let values = [workflow, file, step, port, &table, version];
        let pair = |(key, value): (&str, &String)| (format!("galeras.{key}"), value.clone());
        PAIRS.into_iter().zip(values).map(pair).collect()
    }

    /// The origin in key-value metadata, if it is complete.
    pub fn from_pairs(pairs: &[(String, String)]) -> Option<Self> {
        let value = |key: &str| {
            let is = |name: &str| name.strip_prefix("galeras.") == Some(key);
            pairs.iter().find(|(name, _)| is(name)).map(|(_, value)| value.clone())
        };
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

/// The record of an output file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputRecord {
    /// The digest of the file's bytes.
    pub content: Digest,
    /// Their origin.
    pub origin: OutputOrigin,
    /// The output's path in the workflow, relative to the folder of the outputs.
    pub path: String,
    /// The digest of the file's absolute path.
    pub place: Digest,
    /// The run that wrote it.
    pub run: String,
    /// The time, RFC 3339 in UTC.
    pub written: String,
}

impl Store {
    /// Stores the record of an output, replacing an earlier one of this content, origin and place.
    pub async fn put_output(&self, record: &OutputRecord) -> Result<()> {
        self.write_sealed(&output_name(record), record).await
    }

    /// The records of a content, the newest last. Damaged ones are left out.
    pub async fn outputs_of(&self, content: &Digest) -> Result<Vec<OutputRecord>> {
        let records = self.outputs_below(&content_folder(content)).await?;
        Ok(records.into_iter().filter(|record| record.content == *content).collect())
    }

    /// The records of a place, the newest last. This reads every record.
    pub async fn outputs_at(&self, place: &Digest) -> Result<Vec<OutputRecord>> {
        let records = self.outputs_below(FOLDER).await?;
        Ok(records.into_iter().filter(|record| record.place == *place).collect())
    }

    /// The names of records that are older than `cutoff` and whose files were replaced since.
    pub(super) async fn superseded_outputs(&self, cutoff: &str) -> Result<Vec<String>> {
        let records = self.outputs_below(FOLDER).await?;
        let last: HashMap<Digest, String> =
            records.iter().map(|record| (record.place, output_name(record))).collect();
        let old = records.iter().filter(|record| record.written.as_str() < cutoff);
        let replaced = old.filter_map(|record| {
            let name = output_name(record);
            (last[&record.place] != name).then_some(name)
        });
        Ok(replaced.collect())
    }

    async fn outputs_below(&self, folder: &str) -> Result<Vec<OutputRecord>> {
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
