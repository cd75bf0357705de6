//! The messages between the coordinator and executors, in the store.
//!
//! An order has names, arguments and digests, but never a row or the value of a variable.

use std::collections::BTreeMap;

use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::input::{StoredInput, StoredTable};
use crate::plan::Cell;
use galeras_base::digest::Digest;
use galeras_operator::{Registry, StepError, TableSchema};
use galeras_store::PortArtifact;

pub(super) const ORDER: &str = "order";
/// The folder of outcomes.
pub(super) const DONE: &str = "done";
/// The folder of started items.
pub(super) const BEGUN: &str = "begun";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(super) enum WorkItem {
    /// Rows of a row step: the position of the table in its input, of the first row, and the number
    /// of rows.
    Rows { table: usize, start: u64, len: u64 },
    /// A share of one row of a fan-out: the pieces with `number % of == share`.
    Share { row: String, label: String, share: u32, of: u32 },
    /// The whole step, of which some rows may be stored.
    Whole,
}

impl WorkItem {
    pub(super) fn name(&self) -> String {
        match self {
            Self::Rows { start, len, .. } => format!("rows {start} to {}", start + len),
            Self::Share { label, share, of, .. } => format!("{label}, share {} of {of}", share + 1),
            Self::Whole => "the step as a whole".into(),
        }
    }
}

/// A job: a step and its items.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct JobOrder {
    /// The build of the coordinator; other builds do not compute its items.
    pub(super) build: String,
    pub(super) step: StepOrder,
    pub(super) items: Vec<WorkItem>,
    /// Earlier results of rows may not be used, or there are none.
    pub(super) fresh: bool,
}

/// A step with everything needed to compute it elsewhere.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StepOrder {
    pub(super) name: String,
    pub(super) operator: String,
    pub(super) version: u32,
    /// As written, with expressions replaced.
    pub(super) arguments: Value,
    /// With every default, as in the key: binding elsewhere must give the same.
    pub(super) bound_args: Value,
    pub(super) recipe: Digest,
    pub(super) base: String,
    pub(super) inputs: Vec<InputOrder>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct InputOrder {
    port: String,
    united: bool,
    schema: SchemaOrder,
    tables: Vec<TableOrder>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct TableOrder {
    step: String,
    cell: Cell,
    schema: SchemaOrder,
    stored: PortArtifact,
}

/// A schema in Arrow's IPC format, in hexadecimal digits, and its key.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SchemaOrder {
    arrow: String,
    key: Vec<String>,
}

impl SchemaOrder {
    fn of(table: &TableSchema) -> Result<Self, StepError> {
        let mut bytes = Vec::new();
        let mut writer = StreamWriter::try_new(&mut bytes, &table.schema)?;
        writer.finish()?;
        drop(writer);
        let arrow = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { arrow, key: table.key.clone() })
    }

    fn schema(&self) -> Result<TableSchema, StepError> {
        let digits =
            |at: usize| self.arrow.get(at..at + 2).and_then(|d| u8::from_str_radix(d, 16).ok());
        let bytes: Option<Vec<u8>> = (0..self.arrow.len()).step_by(2).map(digits).collect();
        let bytes = bytes.ok_or_else(|| StepError::new("a schema of the job cannot be read"))?;
        let schema = StreamReader::try_new(bytes.as_slice(), None)?.schema();
        Ok(TableSchema { schema, key: self.key.clone(), open: false })
    }
}

impl InputOrder {
    pub(super) fn of(input: &StoredInput) -> Result<Self, StepError> {
        let mut tables = Vec::with_capacity(input.tables.len());
        for StoredTable { step, cell, table, stored } in &input.tables {
            let (step, cell, stored) = (step.clone(), cell.clone(), stored.clone());
            tables.push(TableOrder { step, cell, schema: SchemaOrder::of(table)?, stored });
        }
        let (port, schema) = (input.port.clone(), SchemaOrder::of(&input.schema)?);
        Ok(Self { port, united: input.united, schema, tables })
    }

    pub(super) fn input(&self) -> Result<StoredInput, StepError> {
        let mut tables = Vec::with_capacity(self.tables.len());
        for TableOrder { step, cell, schema, stored } in &self.tables {
            let (step, cell, stored) = (step.clone(), cell.clone(), stored.clone());
            tables.push(StoredTable { step, cell, table: schema.schema()?, stored });
        }
        let (port, schema) = (self.port.clone(), self.schema.schema()?);
        Ok(StoredInput { port, united: self.united, schema, tables })
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Begun {
    pub(super) executor: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Outcome {
    pub(super) executor: String,
    pub(super) seconds: f64,
    /// The computed work in the unit of the step; for a share, its pieces.
    pub(super) computed: u64,
    pub(super) reused: u64,
    /// Rows that the next run tries again.
    pub(super) retry: u64,
    pub(super) warnings: Vec<String>,
    pub(super) failure: Option<Failure>,
    /// The tables of the step, if the item was the whole step.
    pub(super) tables: Option<Vec<PortArtifact>>,
    /// The stored files that were read.
    pub(super) reads: Vec<Digest>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Failure {
    pub(super) message: String,
    pub(super) help: Option<String>,
    /// Another attempt may succeed, for example after a full disk.
    pub(super) again: bool,
    /// The cause may exist only there, for example a network that does not reach a repository.
    pub(super) only_there: bool,
}

/// The build of this process: two processes of one build compute equal results. It names the
/// program's version, the target machine, and the version of every operator.
pub fn build_stamp(registry: &Registry) -> String {
    let versions: BTreeMap<&str, u32> = registry
        .iter()
        .map(|operator| (operator.descriptor().name, operator.descriptor().version))
        .collect();
    let operators = Digest::of_json(&serde_json::json!(versions));
    let (version, machine) = (env!("CARGO_PKG_VERSION"), env!("GALERAS_TARGET"));
    format!("galeras {version} for {machine}, operators {}", operators.short())
}

/// The arguments of a step as JSON.
pub(super) fn arguments(written: Option<&galeras_workflow::Node>) -> Value {
    written.map_or_else(|| Value::Object(serde_json::Map::new()), galeras_workflow::Node::to_json)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::{DataType, Schema};

    use super::*;
    use galeras_operator::{describe, virtual_step};

    #[test]
    fn a_schema_comes_back_with_all_it_says() {
        let list = DataType::new_list(DataType::Utf8, true);
        let fields = vec![describe("a", list, true, "texts", Some("words")), virtual_step()];
        let table = TableSchema::new(Arc::new(Schema::new(fields)), Some(vec!["a".into()]));
        let order = SchemaOrder::of(&table).unwrap();
        let json = serde_json::to_string(&order).unwrap();
        let read: SchemaOrder = serde_json::from_str(&json).unwrap();
        let read = read.schema().unwrap();
        assert_eq!((read.schema, read.key), (table.schema, table.key));
    }
}
