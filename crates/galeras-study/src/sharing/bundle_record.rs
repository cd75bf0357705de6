//! The machine-readable description of a bundle.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::listing::is_plain;
use galeras_base::digest::Digest;

/// The name of the file that describes a bundle.
pub const BUNDLE_RECORD: &str = "bundle.json";
/// The store in a bundle, where a run looks for it.
pub(super) const STORE: &str = "cache";
/// The version of that file.
pub(super) const VERSION: u32 = 1;

/// Tables with more rows, or more bytes, are not written as CSV as well.
const SMALL_ROWS: u64 = 1000;
const SMALL_BYTES: u64 = 256 << 10;

/// The description of a bundle's content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BundleRecord {
    /// The version of the file.
    pub galeras_bundle: u32,
    /// The version of the program that made it.
    pub program: String,
    /// The workflow's name.
    pub name: String,
    /// The workflow's description.
    pub description: Option<String>,
    /// The workflow file in the bundle.
    pub workflow: String,
    /// Values of params, as they are to be typed in the folder of the unpacked bundle.
    pub set: Vec<String>,
    /// The values of the workflow's params, with the bundle's paths.
    pub params: Map<String, Value>,
    /// When the last of the results was computed.
    pub computed: String,
    /// The results.
    pub steps: Vec<BundleStep>,
    /// The outputs.
    pub outputs: Vec<BundleOutput>,
}

/// A result in a bundle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BundleStep {
    /// The step.
    pub step: String,
    /// Its operator.
    pub operator: String,
    /// The digest of everything that can change the result.
    pub key: Digest,
    /// When it was computed.
    pub computed: String,
    /// Its tables.
    pub tables: Vec<BundleTable>,
}

/// A table of a result in a bundle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BundleTable {
    /// The port.
    pub port: String,
    /// Its rows.
    pub rows: u64,
    /// The digest of its content.
    pub digest: Digest,
    /// The digest of its file.
    pub blob: Digest,
    /// The size of its file.
    pub bytes: u64,
    /// Its Parquet file in the bundle; nothing if it was left out.
    pub file: Option<String>,
    /// The same as CSV, if it is small.
    pub csv: Option<String>,
}

/// An output in a bundle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BundleOutput {
    /// Its name.
    pub name: String,
    /// The step, or steps, that it comes from.
    pub from: String,
    /// The digest of its table; nothing if that was left out.
    pub digest: Option<Digest>,
    /// The file; nothing if its table was left out.
    pub file: Option<String>,
}

impl BundleTable {
    /// It is small enough to be written as CSV as well.
    pub(super) fn is_small(&self) -> bool {
        self.rows <= SMALL_ROWS && self.bytes <= SMALL_BYTES
    }

    /// The name that its Parquet file has in a bundle.
    pub(super) fn blob_name(&self) -> String {
        format!("{STORE}/blobs/{}/{}.parquet", self.blob.shard(), self.blob)
    }
}

impl BundleRecord {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct VersionOnly {
            galeras_bundle: u32,
        }
        let version: VersionOnly = serde_json::from_str(text).map_err(|e| e.to_string())?;
        if version.galeras_bundle > VERSION {
            return Err("a newer version of galeras wrote it; use that version".into());
        }
        let record: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        match is_plain(&record.workflow) {
            true => Ok(record),
            false => Err("its workflow is not in the bundle".into()),
        }
    }

    /// How many tables were left out.
    pub fn left_out(&self) -> usize {
        let tables = self.steps.iter().flat_map(|step| &step.tables);
        tables.filter(|table| table.file.is_none()).count()
    }
}
