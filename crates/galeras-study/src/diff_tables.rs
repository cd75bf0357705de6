//! Compares two stored versions of a table: columns by the store's records, rows by reading both.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::dataframe::DataFrame;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use serde_json::{Map, Value};

use crate::report::rows_of;
use crate::runs::StepPair;
use galeras_display::compare_tables;
use galeras_engine::runner::RunError;
use galeras_operator::event::StepSummary;
use galeras_operator::table_digest::type_name;
use galeras_sql::session::{column, scan_stored, session};
use galeras_store::{PortArtifact, Store, VerifyLevel};

/// The differences between two versions of a table.
pub struct PortDiff {
    /// The port of the table.
    pub port: String,
    /// The columns that match the rows.
    pub key: Vec<String>,
    /// Columns of only the second version.
    pub added_columns: Vec<String>,
    /// Columns of only the first version.
    pub removed_columns: Vec<String>,
    /// Columns with another type: name, old type, new type.
    pub retyped: Vec<(String, String, String)>,
    /// The rows, or why they cannot be compared.
    pub rows: Result<RowsDiff, String>,
}

/// The differences between the rows.
pub struct RowsDiff {
    /// Rows of only the second version.
    pub added: u64,
    /// Rows of only the first version.
    pub removed: u64,
    /// Rows with the same key and other values.
    pub changed: u64,
    /// Equal rows.
    pub same: u64,
    /// The number of changed rows for each column.
    pub columns: Vec<(String, u64)>,
    /// Some of the changed rows.
    pub examples: Vec<Example>,
}

/// A changed row as JSON values by column.
pub struct Example {
    /// The columns of the key.
    pub key: Map<String, Value>,
    /// The changed columns before.
    pub old: Map<String, Value>,
    /// The changed columns after.
    pub new: Map<String, Value>,
}

/// Compares the tables that two runs left at a port.
///
/// # Errors
/// If the store or a table cannot be read.
pub async fn compare_ports(
    store: &Store,
    pair: &StepPair<'_>,
    port: &str,
    examples: usize,
) -> Result<PortDiff, RunError> {
    let old = artifact(store, pair.old, port).await?;
    let new = artifact(store, pair.new, port).await?;
    match (old, new) {
        (Ok(old), Ok(new)) => compare_stored((store, &old), (store, &new), examples).await,
        (Err(why), _) => Ok(not_compared(port, format!("of the first run, {why}"))),
        (_, Err(why)) => Ok(not_compared(port, format!("of the second run, {why}"))),
    }
}

fn not_compared(port: &str, why: String) -> PortDiff {
    PortDiff {
        port: port.to_string(),
        key: Vec::new(),
        added_columns: Vec::new(),
        removed_columns: Vec::new(),
        retyped: Vec::new(),
        rows: Err(why),
    }
}

/// Compares two stored versions of a table.
///
/// # Errors
/// If a table cannot be read.
pub async fn compare_stored(
    (old_store, old): (&Store, &PortArtifact),
    (new_store, new): (&Store, &PortArtifact),
    examples: usize,
) -> Result<PortDiff, RunError> {
    let mut diff = not_compared(&new.port, String::new());
    diff.key.clone_from(&new.key);
    let (old_table, new_table) = (shown(old_store, old).await?, shown(new_store, new).await?);
    columns(&mut diff, old_table.schema().as_arrow(), new_table.schema().as_arrow());
    if let Some(why) = keys_differ(old, new, &diff) {
        diff.rows = Err(why);
        return Ok(diff);
    }
    let (old, new) = (rows(old_table).await?, rows(new_table).await?);
    let rows = compare_tables(old, new, &diff.key, examples).await?;
    let example = |row: &galeras_display::ChangedRow| -> std::io::Result<Example> {
        Ok(Example { key: as_json(&row.key)?, old: as_json(&row.old)?, new: as_json(&row.new)? })
    };
    let examples = rows.examples.iter().map(example).collect::<Result<Vec<_>, _>>()?;
    diff.rows = Ok(RowsDiff {
        added: rows.added,
        removed: rows.removed,
        changed: rows.changed,
        same: rows.same,
        columns: rows.columns,
        examples,
    });
    Ok(diff)
}

/// The stored table of a port of a step that ran, or why there is none.
async fn artifact(
    store: &Store,
    step: Option<&StepSummary>,
    port: &str,
) -> Result<Result<PortArtifact, String>, RunError> {
    let Some(summary) = step.and_then(|step| step.ports.iter().find(|p| p.port == port)) else {
        return Ok(Err("there is no such table".into()));
    };
    let gone = || Ok(Err("the table is no longer in the store".into()));
    let Some(key) = step.and_then(|step| step.key) else { return gone() };
    let manifest = store.manifest(&key).await?;
    let Some(manifest) = manifest else { return gone() };
    // The same key may have another result now if the step cannot be reused or was forced.
    let Some(table) = manifest.port(port).filter(|table| table.digest == summary.digest) else {
        return gone();
    };
    let unsound = store.unsound_blobs(&manifest, VerifyLevel::Usual).await?;
    if unsound.iter().any(|(blob, _)| *blob == table.blob) {
        return Ok(Err("the table in the store is damaged or missing".into()));
    }
    Ok(Ok(table.clone()))
}

/// A stored table without hidden columns.
async fn shown(store: &Store, stored: &PortArtifact) -> Result<DataFrame, DataFusionError> {
    let table = scan_stored(&session(1), store, stored).await?;
    let fields = table.schema().fields().iter().map(|field| field.name());
    let shown = fields.filter(|name| !name.starts_with("__") || stored.key.contains(name));
    let shown = shown.map(|name| column(name)).collect::<Vec<_>>();
    table.select(shown)
}

async fn rows(table: DataFrame) -> Result<(SchemaRef, SendableRecordBatchStream), DataFusionError> {
    Ok((Arc::new(table.schema().as_arrow().clone()), table.execute_stream().await?))
}

fn columns(diff: &mut PortDiff, old: &Schema, new: &Schema) {
    let name = |field: &arrow::datatypes::FieldRef| field.name().clone();
    let lacks = |schema: &Schema, name: &str| schema.field_with_name(name).is_err();
    diff.removed_columns = old.fields().iter().map(name).filter(|n| lacks(new, n)).collect();
    diff.added_columns = new.fields().iter().map(name).filter(|n| lacks(old, n)).collect();
    for field in old.fields() {
        let Ok(other) = new.field_with_name(field.name()) else { continue };
        if other.data_type() != field.data_type() {
            let (was, is) = (type_name(field.data_type()), type_name(other.data_type()));
            diff.retyped.push((field.name().clone(), was, is));
        }
    }
}

/// Why the rows of the two cannot be matched, if so.
fn keys_differ(old: &PortArtifact, new: &PortArtifact, diff: &PortDiff) -> Option<String> {
    if old.key != new.key {
        let (was, is) = (old.key.join(", "), new.key.join(", "));
        return Some(format!("the key was {was} and is {is}: rows cannot be matched"));
    }
    if new.key.is_empty() {
        return Some("the table has no key by which rows could be matched".into());
    }
    let retyped = diff.retyped.iter().find(|(name, ..)| new.key.contains(name));
    retyped.map(|(name, was, is)| {
        format!("the key column {name} was {was} and is {is}: rows cannot be matched")
    })
}

/// A batch of one row.
fn as_json(row: &RecordBatch) -> std::io::Result<Map<String, Value>> {
    Ok(rows_of(row)?.pop().unwrap_or_default())
}
