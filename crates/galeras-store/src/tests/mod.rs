//! Behaviour of a whole store, in folders and in memory.

mod damage;
mod gc;
mod locks;
mod objects;
mod outputs;
mod signed;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use serde_json::json;
use tempfile::TempDir;

use super::integrity::seal;
use super::object_name::{manifest_name, memo_name, signature_name};
use super::*;
use galeras_base::digest::{Digest, table_digest};
use galeras_operator::event::{ROWS, RunStatus, StepStatus, StepSummary};
use galeras_operator::table_digest::TableHasher;

/// The report of a collection. Other tests start programs, and a forked process holds a copy of
/// every lock until it becomes that program.
async fn cleaned(store: &Store, policy: GcPolicy) -> GcReport {
    for _ in 0..100 {
        match store.gc(policy).await {
            Err(error) if error.kind() == StoreErrorKind::Busy => {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
            result => return result.unwrap(),
        }
    }
    panic!("the store is held all the time");
}

async fn open(folder: &Path) -> Store {
    Store::open(folder.to_str().unwrap()).await.unwrap()
}

/// A new folder, and an empty store in it.
async fn new_store() -> (TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).await;
    (folder, store)
}

async fn kinds(store: &Store) -> Vec<FindingKind> {
    store.verify(&|_| {}).await.unwrap().iter().map(|finding| finding.kind).collect()
}

fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[at] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

fn batch(seed: i64, rows: i64) -> RecordBatch {
    let schema = Schema::new(vec![
        Field::new("id", DataType::Utf8, false),
        Field::new("n", DataType::Int64, true),
        Field::new("x", DataType::Float64, true),
        Field::new("__row", DataType::Utf8, false),
    ]);
    let ids: Vec<String> = (0..rows).map(|row| format!("{seed:04}-{row:06}")).collect();
    let numbers: Int64Array = (0..rows).map(|row| (row % 7 != 0).then_some(row * seed)).collect();
    let floats: Float64Array = (0..rows).map(|row| Some(row as f64 / 3.0)).collect();
    RecordBatch::try_new(
        Arc::new(schema),
        vec![
            Arc::new(StringArray::from(ids.clone())),
            Arc::new(numbers),
            Arc::new(floats),
            Arc::new(StringArray::from(ids)),
        ],
    )
    .unwrap()
}

/// Stores a table like an executor; hidden columns are only in the file.
async fn put_table(store: &Store, batch: &RecordBatch) -> PortArtifact {
    let mut writer =
        ArrowWriter::try_new(store.blob_writer().unwrap(), batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    let (blob, bytes) = writer.into_inner().unwrap().commit(store).await.unwrap();
    let mut hasher = TableHasher::new(&batch.schema());
    hasher.update(batch).unwrap();
    let (mut columns, rows) = hasher.finish();
    columns.retain(|column| !column.name.starts_with("__"));
    let digest = table_digest(&columns, rows);
    PortArtifact { port: "out".into(), digest, blob, bytes, rows, key: vec!["id".into()], columns }
}

/// Stores a result of the operator `test` with this seed.
async fn put_result(store: &Store, seed: i64, created: &str) -> Manifest {
    put_result_of(store, "test", seed, created).await
}

async fn put_result_of(store: &Store, operator: &str, seed: i64, created: &str) -> Manifest {
    let preimage = Preimage {
        format: FORMAT_VERSION,
        operator: operator.into(),
        version: 1,
        args: json!({"threshold": 0.1, "seed": seed}),
        inputs: BTreeMap::from([("input".to_string(), Digest::of(&seed.to_le_bytes()))]),
        files: vec![],
        recipe_args: None,
        recipe_version: None,
    };
    let manifest = Manifest {
        format: MANIFEST_VERSION,
        key: preimage.key(),
        preimage,
        labels: ManifestLabels { step: format!("step{seed}"), ..ManifestLabels::default() },
        created: created.into(),
        seconds: 0.25,
        computed_rows: 20,
        reused_rows: 0,
        retry_rows: 0,
        ports: vec![put_table(store, &batch(seed, 20)).await],
        reads: vec![],
    };
    store.put_manifest(&manifest).await.unwrap();
    manifest
}

/// Adds a finished part to a recipe.
async fn put_part(store: &Store, recipe: &Digest, seed: i64, created: &str) -> MemoPart {
    let PortArtifact { blob, bytes, rows, .. } = put_table(store, &batch(seed, 3)).await;
    let part = MemoPart { blob, bytes, rows, created: created.into(), row: None };
    store.put_memo_part(recipe, &part).await.unwrap();
    part
}

/// Stores the record of a run that refers to these results.
async fn put_run(
    store: &Store,
    started: &str,
    status: Option<RunStatus>,
    results: &[&Manifest],
) -> RunRecord {
    let step = |manifest: &&Manifest| StepSummary {
        rows: 20,
        computed_rows: 20,
        digest: Some(manifest.ports[0].digest),
        seconds: 0.1,
        key: Some(manifest.key),
        ..StepSummary::new(&manifest.labels.step, StepStatus::Ran, ROWS)
    };
    let mut run = RunRecord::new("flow", "flow.yaml");
    run.id = format!("{}-00000000", started.replace(['-', ':'], ""));
    run.started = started.into();
    run.status = status;
    run.steps = results.iter().map(step).collect();
    store.put_run(&run).await.unwrap();
    run
}

/// The files below a folder, without locks and the record of verified files.
fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = walkdir::WalkDir::new(folder)
        .into_iter()
        .flatten()
        .filter(|entry| entry.file_type().is_file())
        .map(|entry| entry.path().strip_prefix(folder).unwrap().to_str().unwrap().to_string())
        .filter(|name| !name.starts_with("locks/") && name != "verified.log")
        .collect();
    names.sort();
    names
}
