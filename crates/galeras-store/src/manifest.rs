//! The stored description of a result: the pre-image of its key, its ports, and the finished parts
//! of row-precise reuse.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::integrity::{is_sealed, unseal};
use galeras_base::digest::{ColumnDigest, Digest, table_digest};

/// The version of keys. Another version is another key.
pub const FORMAT_VERSION: u32 = 1;

/// The version of manifests. Another version is a miss: before 4, a table could have columns in the
/// files of other tables.
pub const MANIFEST_VERSION: u32 = 4;

/// The last version whose manifests did not contain their digest.
const UNSEALED: u32 = 1;

/// Everything that can change a step's result, and nothing else: its digest is the key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Preimage {
    /// The format version, [`FORMAT_VERSION`].
    pub format: u32,
    /// The operator's name.
    pub operator: String,
    /// The operator's version.
    pub version: u32,
    /// The resolved arguments, defaults included, secrets not.
    pub args: Value,
    /// Input port -> logical digest of its table (of the columns that are read).
    pub inputs: BTreeMap<String, Digest>,
    /// The content of the files that the step reads, in the operator's order.
    pub files: Vec<Digest>,
    /// The arguments that affect the result of a row, unless all of them do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe_args: Option<Value>,
    /// The version that affects the result of a row, unless it is the operator's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe_version: Option<u32>,
}

impl Preimage {
    /// The action key.
    pub fn key(&self) -> Digest {
        Digest::of_json(&json!({
            "format": self.format,
            "operator": self.operator,
            "version": self.version,
            "args": self.args,
            "inputs": self.inputs,
            "files": self.files,
        }))
    }

    /// The digest without inputs and files, and without arguments that do not affect the result of
    /// a row: rows computed under one recipe from equal columns are equal, in any table.
    pub fn recipe(&self) -> Digest {
        Digest::of_json(&json!({
            "format": self.format,
            "operator": self.operator,
            "version": self.recipe_version.unwrap_or(self.version),
            "args": self.recipe_args.as_ref().unwrap_or(&self.args),
        }))
    }
}

/// The stored result of a step. It is written after its blobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the manifest, [`MANIFEST_VERSION`].
    pub format: u32,
    /// The action key, the digest of `preimage`.
    pub key: Digest,
    /// The content of the key.
    pub preimage: Preimage,
    /// Names for people, which are in no key.
    pub labels: ManifestLabels,
    /// The time of the computation, as by [`timestamp`](super::timestamp).
    pub created: String,
    /// The duration in seconds.
    pub seconds: f64,
    /// Rows that were computed.
    pub computed_rows: u64,
    /// Rows that came from earlier results.
    pub reused_rows: u64,
    /// Input rows that failed for external reasons, such as a network; the next run tries them
    /// again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retry_rows: u64,
    /// The tables.
    pub ports: Vec<PortArtifact>,
    /// The stored files that it was computed from, sorted: tables of its inputs, and parts of
    /// earlier results. If one of them is found to be damaged, this result is forgotten.
    pub reads: Vec<Digest>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Manifest {
    /// The table of a port.
    pub fn port(&self, name: &str) -> Option<&PortArtifact> {
        self.ports.iter().find(|port| port.port == name)
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<Self, ManifestError> {
        #[derive(Deserialize)]
        struct FormatOnly {
            format: u32,
        }
        let format = serde_json::from_slice::<FormatOnly>(bytes).map(|only| only.format).ok();
        match (format, is_sealed(bytes)) {
            (Some(UNSEALED), false) => Err(ManifestError::OtherFormat(UNSEALED)),
            (Some(format), true) if format != MANIFEST_VERSION => {
                Err(ManifestError::OtherFormat(format))
            }
            _ => unseal(bytes).map_err(ManifestError::Damaged),
        }
    }
}

/// Why bytes cannot be read as a manifest.
#[derive(Debug)]
pub(super) enum ManifestError {
    OtherFormat(u32),
    Damaged(String),
}

/// Names of the step that first computed a result. They may be outdated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ManifestLabels {
    /// The step.
    pub step: String,
    /// The workflow.
    pub workflow: String,
    /// The names of the pre-image's files, in its order.
    pub file_names: Vec<String>,
}

/// One stored table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PortArtifact {
    /// The port's name.
    pub port: String,
    /// The logical digest: `table_digest` of `columns` and `rows`.
    pub digest: Digest,
    /// The digest of the Parquet file.
    pub blob: Digest,
    /// The size of the Parquet file.
    pub bytes: u64,
    /// The number of rows.
    pub rows: u64,
    /// The names of the key columns.
    pub key: Vec<String>,
    /// The columns in the order of the file. Hidden columns (`__…`) may be left out.
    pub columns: Vec<ColumnDigest>,
}

impl PortArtifact {
    /// The logical digest of the table, or of these columns in any order. Unknown names are
    /// ignored.
    pub fn digest_of(&self, columns: Option<&[String]>) -> Digest {
        let Some(names) = columns else { return self.digest };
        let mut chosen: Vec<&ColumnDigest> =
            self.columns.iter().filter(|column| names.contains(&column.name)).collect();
        chosen.sort_by(|a, b| a.name.cmp(&b.name));
        table_digest(chosen, self.rows)
    }
}

/// A Parquet file whose rows were computed under one recipe and may be reused one by one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoPart {
    /// The digest of the Parquet file.
    pub blob: Digest,
    /// The size of the Parquet file.
    pub bytes: u64,
    /// The number of rows.
    pub rows: u64,
    /// When it was written, RFC 3339 in UTC.
    pub created: String,
    /// The digest of the only input row, in hexadecimal digits, if the part is its whole result,
    /// with more digits if it is a piece of that. Otherwise each row of the part has the digest of
    /// its input row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row: Option<String>,
}

impl MemoPart {
    /// The part in these bytes. A part of an older version does not contain its digest and is
    /// accepted: its answers may have been paid for, and its name and its blob's name identify its
    /// content.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct SealOnly {
            integrity: Option<serde::de::IgnoredAny>,
        }
        match serde_json::from_slice::<SealOnly>(bytes) {
            Ok(SealOnly { integrity: None }) => {
                serde_json::from_slice(bytes).map_err(|error| error.to_string())
            }
            Ok(_) | Err(_) => unseal(bytes),
        }
    }
}

/// The finished parts of a recipe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecipeParts {
    /// The parts that may be used.
    pub sound: Vec<MemoPart>,
    /// The damaged blobs.
    pub damaged: Vec<Digest>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preimage() -> Preimage {
        Preimage {
            format: FORMAT_VERSION,
            operator: "cut".into(),
            version: 3,
            args: json!({"seed": 42, "max": 0.65}),
            inputs: BTreeMap::from([("input".to_string(), Digest::of(b"table"))]),
            files: vec![Digest::of(b"one"), Digest::of(b"two")],
            recipe_args: None,
            recipe_version: None,
        }
    }

    #[test]
    fn keys_are_pinned() {
        let value = serde_json::to_value(preimage()).unwrap();
        assert_eq!(Digest::of_json(&value), preimage().key(), "the digest of the JSON");
        let key = "06aa5f08e47897b5fcc3406bf439e42ca56f23bdab7a0aee9f126850430c21b1";
        assert_eq!(preimage().key().to_string(), key);
        let recipe = "a4a7b7936b803968f75774c085600f3539563fed967623939267f78dbb27edbe";
        assert_eq!(preimage().recipe().to_string(), recipe);
    }

    #[test]
    fn a_recipe_ignores_inputs_and_files_and_nothing_else() {
        let mut other = preimage();
        other.inputs.clear();
        other.files.clear();
        assert_eq!(other.recipe(), preimage().recipe());
        assert_ne!(other.key(), preimage().key());
        other.version = 4;
        assert_ne!(other.recipe(), preimage().recipe());
        // Unless the results of rows have a separate version.
        other.recipe_version = Some(3);
        assert_eq!(other.recipe(), preimage().recipe());
    }

    #[test]
    fn keys_survive_being_stored() {
        // Needs serde_json's `float_roundtrip`: without it some numbers come back changed.
        let some = [0.1, 0.65, 1e-300, 5e-324, 123_456.789_012_345_67, f64::MAX, -0.0];
        let random = |seed| galeras_base::id::keyed_hash(seed, "floats", b"") & !(1 << 62);
        for number in some.into_iter().chain((0..2000).map(|seed| f64::from_bits(random(seed)))) {
            let stored = Preimage { args: json!({ "x": number }), ..preimage() };
            let text = serde_json::to_vec(&stored).unwrap();
            let read: Preimage = serde_json::from_slice(&text).unwrap();
            assert_eq!(read.key(), stored.key(), "{number}");
        }
    }

    #[test]
    fn the_digest_of_some_columns_ignores_the_others_and_their_order() {
        let column = |name: &str, content: &[u8]| {
            let (data_type, digest) = ("utf8".into(), Digest::of(content));
            ColumnDigest { name: name.into(), data_type, digest }
        };
        let port = |columns: Vec<ColumnDigest>| PortArtifact {
            port: "out".into(),
            digest: table_digest(&columns, 3),
            blob: Digest::of(b""),
            bytes: 0,
            rows: 3,
            key: vec!["id".into()],
            columns,
        };
        let one = port(vec![column("id", b"1"), column("b", b"2"), column("c", b"3")]);
        let two = port(vec![column("b", b"2"), column("id", b"1"), column("c", b"changed")]);
        let names = ["id".to_string(), "b".into(), "absent".into()];
        assert_eq!(one.digest_of(Some(&names)), two.digest_of(Some(&names)));
        assert_ne!(one.digest_of(None), two.digest_of(None));
        assert_eq!(one.digest_of(None), one.digest);
    }
}
