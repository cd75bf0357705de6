//! Arguments whose values are names of entries of a registry: `metrics`, `estimators`, named checks.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;

/// An entry of a registry.
pub trait Entry: 'static {
    /// The registry, in the order of its documentation.
    const ALL: &'static [&'static Self];
    /// The description of the argument's values in the schema.
    const ABOUT: &'static str;

    /// The name in files.
    fn name(&self) -> &'static str;

    /// The description of the entry in the schema.
    fn doc(&self) -> &'static str;
}

/// An entry of a registry, which files know by its name.
pub struct Choice<E: 'static>(pub &'static E);

impl<E: Entry> Choice<E> {
    /// All entries, in the order of the registry.
    pub fn all() -> impl Iterator<Item = Self> {
        E::ALL.iter().map(|entry| Self(*entry))
    }
}

impl<E: 'static> Clone for Choice<E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E: 'static> Copy for Choice<E> {}

impl<E: 'static> Deref for Choice<E> {
    type Target = E;

    fn deref(&self) -> &E {
        self.0
    }
}

impl<E: Entry> PartialEq for Choice<E> {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl<E: Entry> Eq for Choice<E> {}

impl<E: Entry> Hash for Choice<E> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl<E: Entry> fmt::Debug for Choice<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl<E: Entry> Serialize for Choice<E> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de, E: Entry> Deserialize<'de> for Choice<E> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let entry = Self::all().find(|entry| entry.name() == name);
        entry.ok_or_else(|| D::Error::custom(format!("unknown: `{name}`")))
    }
}

impl<E: Entry> JsonSchema for Choice<E> {
    fn schema_name() -> Cow<'static, str> {
        E::ABOUT.into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let entry = |entry: &&E| json!({ "description": entry.doc(), "type": "string", "const": entry.name() });
        let entries: Vec<_> = E::ALL.iter().map(entry).collect();
        json_schema!({ "description": E::ABOUT, "oneOf": entries })
    }
}
