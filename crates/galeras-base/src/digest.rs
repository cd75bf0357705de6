//! Content digests: BLAKE3 values, the canonical encoding of keys, and the logical digest of
//! tables.
//!
//! Everything that turns a value into the bytes that are hashed is here. Changing any of it
//! changes every key and every digest ever written, so the digests are pinned in tests.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A 32-byte BLAKE3 value, written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// The digest of everything that `reader` returns.
    ///
    /// # Errors
    /// If reading fails.
    pub fn of_reader(reader: impl std::io::Read) -> std::io::Result<Self> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(reader)?;
        Ok(hasher.finalize().into())
    }

    /// The digest of a canonical encoding of `value`: every value carries its type and its
    /// length, and mappings are unordered.
    pub fn of_json(value: &serde_json::Value) -> Self {
        let mut out = Vec::with_capacity(256);
        encode_json(value, &mut out);
        Self::of(&out)
    }

    /// The first two hexadecimal digits, which name the folder of a stored object.
    pub fn shard(&self) -> String {
        format!("{:02x}", self.0[0])
    }

    /// The first twelve hexadecimal digits, for people.
    pub fn short(&self) -> String {
        self.to_string()[..12].to_string()
    }
}

impl From<blake3::Hash> for Digest {
    fn from(hash: blake3::Hash) -> Self {
        Self(*hash.as_bytes())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not 64 hexadecimal digits.
#[derive(Debug, thiserror::Error)]
#[error("a digest has 64 hexadecimal digits")]
pub struct InvalidDigest;

impl FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(s: &str) -> Result<Self, InvalidDigest> {
        blake3::Hash::from_hex(s).map(Self::from).map_err(|_| InvalidDigest)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

fn encode_json(value: &serde_json::Value, out: &mut Vec<u8>) {
    use serde_json::Value;
    match value {
        Value::Null => out.push(b'0'),
        Value::Bool(b) => out.extend([b'b', u8::from(*b)]),
        Value::Number(n) => {
            if let Some(i) = n.as_i64() {
                out.push(b'i');
                out.extend(i.to_le_bytes());
            } else if let Some(u) = n.as_u64() {
                out.push(b'u');
                out.extend(u.to_le_bytes());
            } else {
                out.push(b'f');
                out.extend(n.as_f64().unwrap_or(f64::NAN).to_bits().to_le_bytes());
            }
        }
        Value::String(s) => {
            out.push(b's');
            out.extend((s.len() as u64).to_le_bytes());
            out.extend(s.as_bytes());
        }
        Value::Array(items) => {
            out.push(b'a');
            out.extend((items.len() as u64).to_le_bytes());
            items.iter().for_each(|item| encode_json(item, out));
        }
        Value::Object(map) => {
            out.push(b'o');
            out.extend((map.len() as u64).to_le_bytes());
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| key.as_str());
            for (key, item) in entries {
                out.extend((key.len() as u64).to_le_bytes());
                out.extend(key.as_bytes());
                encode_json(item, out);
            }
        }
    }
}

/// The name, type and content digest of one column of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnDigest {
    /// The column's name.
    pub name: String,
    /// The column's type, as `galeras_operator::table_digest::type_name` writes it.
    #[serde(rename = "type")]
    pub data_type: String,
    /// The digest of the column's values, in row order.
    pub digest: Digest,
}

/// The logical digest of a table: over its column names, types and values and its number of
/// rows. Batch size, row groups, partitioning, metadata and file bytes do not enter.
pub fn table_digest<'a>(columns: impl IntoIterator<Item = &'a ColumnDigest>, rows: u64) -> Digest {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"galeras table 1");
    hasher.update(&rows.to_le_bytes());
    for column in columns {
        for text in [&column.name, &column.data_type] {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        hasher.update(&column.digest.0);
    }
    hasher.finalize().into()
}
