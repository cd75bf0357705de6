//! What the footer of a file says of the columns that are in other files.
//!
//! Does not live here: where they are found (`layout`).

use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ParquetMetaData;
use serde::{Deserialize, Serialize};

use galeras_base::digest::Digest;

/// The key of the footer's metadata under which it is written, as JSON.
pub const LAYERS: &str = "galeras.layers";

const ELSEWHERE: &str = "__elsewhere:";
const POSITIONS: &str = "__positions:";

/// The version of what is written there.
const VERSION: u32 = 1;

/// The columns of a file that are in other files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layers {
    version: u32,
    /// The digests of the other files.
    pub files: Vec<Digest>,
    /// The names of the columns that are elsewhere, in some row groups at least.
    pub columns: Vec<String>,
    /// Those of them, as positions in `columns`, that have no nulls.
    pub required: Vec<usize>,
    /// For each row group what of it is elsewhere.
    pub groups: Vec<Vec<Elsewhere>>,
}

/// Columns of a row group in one other file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elsewhere {
    /// The file, as a position in [`Layers::files`].
    pub file: usize,
    /// The columns, as positions in [`Layers::columns`].
    pub columns: Vec<usize>,
    /// The rows of the file.
    pub rows: Rows,
}

/// The rows of another file that are the rows of a row group, one for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rows {
    /// From this position on, one after the other.
    From(u64),
    /// At the positions in this column of the own file (see [`positions_name`]), each larger than the
    /// one before.
    Listed(usize),
    /// At the positions in this column of the own file, in any order and as often as it may be.
    Gathered(usize),
}

impl Layers {
    pub fn new(files: Vec<Digest>, columns: Vec<String>, required: Vec<usize>) -> Self {
        Self { version: VERSION, files, columns, required, groups: Vec::new() }
    }

    /// What the footer of a file says; `None` of a file that has all its columns.
    ///
    /// # Errors
    /// If it says what this version does not know.
    pub fn of(metadata: &ParquetMetaData) -> Result<Option<Self>> {
        let pairs = metadata.file_metadata().key_value_metadata();
        let text = pairs.into_iter().flatten().find(|pair| pair.key == LAYERS);
        let Some(text) = text.and_then(|pair| pair.value.as_ref()) else { return Ok(None) };
        let layers: Self = serde_json::from_str(text).map_err(|error| {
            ParquetError::General(format!("what it says of other files cannot be read: {error}"))
        })?;
        if layers.version != VERSION {
            let version = layers.version;
            return Err(ParquetError::General(format!(
                "it refers to other files in version {version} of the format; this program knows \
                 version {VERSION}"
            )));
        }
        Ok(Some(layers))
    }
}

/// The name that a column has in a file that leaves it to others.
pub fn elsewhere_name(column: &str) -> String {
    format!("{ELSEWHERE}{column}")
}

/// The name of a column of positions, of which a file may have several.
pub fn positions_name(at: usize) -> String {
    format!("{POSITIONS}{at}")
}

/// Whether a table with a column of this name has to be a file of its own.
pub fn is_reserved(column: &str) -> bool {
    column.starts_with(ELSEWHERE) || column.starts_with(POSITIONS)
}
