//! Recomputes steps to verify the store, from their stored inputs, into a separate empty store. A
//! few rows of a row step are enough to check a large table, as the result of each is independent
//! of the others.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use arrow::row::{RowConverter, SortField};
use datafusion::common::JoinType;
use datafusion::dataframe::DataFrame;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::{Operator, binary_expr};
use futures::StreamExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::compute::{compute, compute_rows};
use super::context::{StepContext, StepTask, folder_of};
use super::error::RunError;
use super::input::{StoredInput, input_size, open, open_port};
use super::key::{StepManifests, artifact, step_key};
use super::row_step::RowInput;
use super::spending::RunSpending;
use super::spread::Embedded;
use crate::plan::{Input, Plan, PlannedStep};
use galeras_base::digest::{Digest, table_digest};
use galeras_base::id::keyed_hash;
use galeras_operator::table_digest::TableHasher;
use galeras_operator::{Access, Lowering, Port, RunEnv, StepError, TableSchema};
use galeras_sql::session::{column, open_table, ordered_session, scan_stored};
use galeras_store::{CopyError, Manifest, PortArtifact, Store};

/// The inputs of a recomputation.
pub struct Recomputation<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The store that has the results.
    pub store: &'a Store,
    /// The results, by position in the plan.
    pub done: &'a StepManifests,
    /// The environment of the steps.
    pub env: RunEnv,
}

impl Recomputation<'_> {
    /// The reason why a step is not recomputed, in words that follow its name; `None` if it can be.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn objection(&self, at: usize) -> Result<Option<String>, RunError> {
        let step = &self.plan.steps[at];
        match self.done.get(at).and_then(Option::as_ref) {
            None => return Ok(Some("is not computed yet".into())),
            Some(manifest) if manifest.retry_rows > 0 => {
                return Ok(Some("has rows that failed and are tried again".into()));
            }
            Some(_) => {}
        }
        match step.step.lowering() {
            Lowering::Paid(paid) => {
                let does = if paid.terms().is_some() { "asks a model" } else { "runs programs" };
                return Ok(Some(does.into()));
            }
            Lowering::FanOut(_) => return Ok(Some("fetches what it reads".into())),
            Lowering::Row(_) | Lowering::Table(_) => {}
        }
        for demand in step.step.demands() {
            if matches!(
                demand.access,
                Access::Host { .. } | Access::Variable { .. } | Access::Network { .. }
            ) {
                return Ok(Some("needs a network".into()));
            }
            if let Some(refused) = self.env.consent.refusal(&demand.access) {
                return Ok(Some(refused.message));
            }
        }
        for table in step.inputs.iter().flat_map(|input| &input.tables) {
            let name = &self.plan.steps[table.step].name;
            let Some(port) = artifact(self.done, table.step, table.port) else {
                return Ok(Some(format!("reads `{name}`, which is not computed yet")));
            };
            if !self.store.has_blob(&port.blob, port.bytes).await? {
                return Ok(Some(format!("reads `{name}`, whose table is not here")));
            }
        }
        Ok(None)
    }

    /// Computes a step from its stored inputs into `scratch`, without reuse. The result has the key
    /// of the stored one, and should have its digests.
    ///
    /// # Errors
    /// If the step fails, an input is damaged, or a disk fails.
    pub async fn compute(&self, at: usize, scratch: &Store) -> Result<Manifest, RunError> {
        let step = &self.plan.steps[at];
        for table in step.inputs.iter().flat_map(|input| &input.tables) {
            let Some(port) = artifact(self.done, table.step, table.port) else { continue };
            let copied = self.store.copy_table(scratch, port, None).await;
            copied.map_err(|(CopyError::From(error) | CopyError::To(error))| error)?;
        }
        let key = step_key(self.plan, step, self.done)?;
        let cx = self.context(at, scratch)?;
        compute(self.plan, at, &key, self.done, (&cx, &Embedded), self.turn().await?).await
    }

    /// The context of a step that is computed into `scratch`.
    pub(super) fn context(&self, at: usize, scratch: &Store) -> Result<StepContext, RunError> {
        let step = &self.plan.steps[at];
        let spending = RunSpending::new(self.plan);
        let bytes = input_size(step, self.done).map(|(_, bytes)| bytes);
        let task = StepTask::of(self.plan, step);
        let budget = spending.budget(at);
        let mut cx = StepContext::new(&task, scratch, &self.env, budget, bytes, true)?;
        cx.lower.sealed.extend(folder_of(self.store));
        Ok(cx)
    }

    /// Nothing else is computed at the same time.
    pub(super) async fn turn(&self) -> Result<OwnedSemaphorePermit, RunError> {
        let turn = Arc::new(Semaphore::new(1)).acquire_owned().await;
        turn.map_err(|_| RunError::Interrupted)
    }
}

/// The steps in random order by a seed. The order depends on their keys, so that their places in
/// the file do not matter.
pub fn drawn(steps: &[usize], done: &StepManifests, seed: i64) -> Vec<usize> {
    let mut steps = steps.to_vec();
    steps.sort_by_cached_key(|at| {
        let key = done.get(*at).and_then(Option::as_ref).map(|manifest| manifest.key.to_string());
        (keyed_hash(seed, "recompute", key.unwrap_or_default().as_bytes()), *at)
    });
    steps
}

/// The prefix of the recomputed key columns in a join with the stored table.
const DRAWN: &str = "__drawn_";

/// The results of some input rows at one port.
pub struct RowsAgain {
    /// Their stored rows, as a table.
    pub stored: PortArtifact,
    /// Their recomputed rows.
    pub computed: PortArtifact,
}

/// Rows of a step's input, in its order.
pub struct DrawnRows(RecordBatch);

impl DrawnRows {
    /// Their number.
    pub fn len(&self) -> usize {
        self.0.num_rows()
    }

    /// True without rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Recomputation<'_> {
    /// The number of input rows of a step that can each be recomputed; zero if that is not how it
    /// computes. Their keys identify the stored rows.
    pub fn rows(&self, at: usize) -> u64 {
        let step = &self.plan.steps[at];
        let rows = input_size(step, self.done).map_or(0, |(rows, _)| rows);
        if own_ports(step).next().is_none() { 0 } else { rows }
    }

    /// This many rows of a step's input, drawn by a seed.
    ///
    /// # Errors
    /// If the input cannot be read.
    pub async fn draw(&self, at: usize, rows: usize, seed: i64) -> Result<DrawnRows, RunError> {
        let step = &self.plan.steps[at];
        let input = only_input(step).ok_or_else(|| StepError::new(NO_ROWS))?;
        let session = ordered_session(1);
        let table = open(&session, self.store, self.plan, input, self.done)?;
        let schema: SchemaRef = Arc::new(table.schema().as_arrow().clone());
        let name = step_key(self.plan, step, self.done)?.preimage.key().to_string();
        let wanted = positions(self.rows(at), rows, |number| {
            keyed_hash(seed, "recompute-rows", format!("{name}-{number}").as_bytes())
        });
        let (mut found, mut before) = (Vec::new(), 0_u64);
        let mut wanted = wanted.into_iter().peekable();
        'table: for mut partition in table.execute_stream_partitioned().await? {
            while let Some(batch) = partition.next().await {
                if wanted.peek().is_none() {
                    break 'table;
                }
                let batch = batch?;
                let after = before + batch.num_rows() as u64;
                while let Some(position) = wanted.next_if(|position| *position < after) {
                    found.push(batch.slice((position - before) as usize, 1));
                }
                before = after;
            }
        }
        Ok(DrawnRows(concat_batches(&schema, &found)?))
    }

    /// Computes the step for these rows into `scratch`, without reuse, and returns the stored and
    /// the new tables.
    ///
    /// # Errors
    /// If the step fails, an input is damaged, or a disk fails.
    pub async fn compute_rows(
        &self,
        at: usize,
        rows: &DrawnRows,
        scratch: &Store,
    ) -> Result<Vec<RowsAgain>, RunError> {
        let step = &self.plan.steps[at];
        let recipe = step_key(self.plan, step, self.done)?.preimage.recipe();
        let cx = self.context(at, scratch)?;
        let input = only_input(step).ok_or_else(|| StepError::new(NO_ROWS))?;
        let given = RowInput {
            rows: Some(ordered_session(1).read_batch(rows.0.clone())?),
            stored: Some(rows.len() as u64),
            order: StoredInput::of(self.plan, input, self.done)?.order(),
        };
        let computed = compute_rows(step, recipe, given, &cx, self.turn().await?).await?;
        let mut again = Vec::new();
        for port in own_ports(step) {
            let computed = computed.iter().find(|table| table.port == port.name);
            let Some(computed) = computed.cloned() else { continue };
            let stored = self.stored_of(at, port, &computed, scratch).await?;
            let stored = open_table(stored, &port.table).await?;
            let stored = stored.store(port.name, scratch, 1, |_| {}, || {}).await?;
            again.push(RowsAgain { stored, computed });
        }
        Ok(again)
    }

    /// The number of these input rows whose recomputed results differ from the stored ones.
    ///
    /// # Errors
    /// If `scratch`, which has the tables, cannot be read.
    pub async fn differing_rows(
        &self,
        rows: &DrawnRows,
        tables: &[RowsAgain],
        scratch: &Store,
    ) -> Result<u64, RunError> {
        let mut differing: HashSet<Vec<u8>> = HashSet::new();
        for RowsAgain { stored, computed } in tables {
            if stored.digest == computed.digest {
                continue;
            }
            let old = rows_by_key(scratch, stored).await?;
            let new = rows_by_key(scratch, computed).await?;
            let keys: HashSet<&Vec<u8>> = old.keys().chain(new.keys()).collect();
            let other = keys.into_iter().filter(|key| old.get(*key) != new.get(*key));
            differing.extend(other.cloned());
        }
        // One input row may have given several.
        Ok((differing.len() as u64).min(rows.len() as u64))
    }

    /// The stored rows of a port with the keys of the recomputed ones.
    async fn stored_of(
        &self,
        at: usize,
        port: &Port,
        computed: &PortArtifact,
        scratch: &Store,
    ) -> Result<DataFrame, RunError> {
        let session: SessionContext = ordered_session(1);
        let table = open_port(&session, self.store, self.plan, at, port.name, self.done)?;
        let key = &port.table.key;
        let drawn = key.iter().map(|name| column(name).alias(format!("{DRAWN}{name}")));
        let computed = scan_stored(&session, scratch, computed).await?;
        let drawn = computed.select(drawn.collect::<Vec<_>>())?;
        let same = key.iter().map(|name| {
            let other = column(&format!("{DRAWN}{name}"));
            binary_expr(column(name), Operator::IsNotDistinctFrom, other)
        });
        Ok(table.join_on(drawn, JoinType::LeftSemi, same)?)
    }
}

/// From the key of a row, as bytes, to the digests of its rows, sorted.
type RowsByKey = HashMap<Vec<u8>, Vec<Digest>>;

async fn rows_by_key(store: &Store, table: &PortArtifact) -> Result<RowsByKey, RunError> {
    let key = &table.key;
    let rows = scan_stored(&ordered_session(1), store, table).await?;
    let mut found = RowsByKey::new();
    for batch in rows.collect().await? {
        let schema = batch.schema();
        let shown: Vec<usize> = (0..schema.fields().len())
            .filter(|at| !schema.field(*at).name().starts_with("__"))
            .collect();
        let columns: Result<Vec<_>, _> = key.iter().map(|name| schema.index_of(name)).collect();
        let keys = batch.project(&columns?)?;
        let fields =
            keys.schema().fields().iter().map(|f| SortField::new(f.data_type().clone())).collect();
        let keys = RowConverter::new(fields)?.convert_columns(keys.columns())?;
        let batch = batch.project(&shown)?;
        for (row, key) in keys.iter().enumerate() {
            let mut hasher = TableHasher::new(&batch.schema());
            let hashed = hasher.update(&batch.slice(row, 1));
            hashed.map_err(|error| StepError::new(error.to_string()))?;
            let (columns, rows) = hasher.finish();
            let digest = table_digest(&columns, rows);
            found.entry(key.as_ref().to_vec()).or_default().push(digest);
        }
    }
    found.values_mut().for_each(|rows| rows.sort());
    Ok(found)
}

const NO_ROWS: &str = "a defect: the step does not compute row by row";

/// The only input of a row step, if its rows have a key.
fn only_input(step: &PlannedStep) -> Option<&Input> {
    let row = matches!(step.step.lowering(), Lowering::Row(_));
    match step.inputs.as_slice() {
        [input] if row && !input.schema.key.is_empty() => Some(input),
        _ => None,
    }
}

/// The ports whose rows each belong to one input row, as they contain its key. A summary has
/// another key.
fn own_ports(step: &PlannedStep) -> impl Iterator<Item = &Port> {
    let input = only_input(step);
    let kind = |table: &TableSchema, name: &str| {
        table.schema.field_with_name(name).ok().map(|field| field.data_type().clone())
    };
    step.step.ports().iter().filter(move |port| {
        let own = |input: &Input, name: &String| {
            port.table.key.contains(name) && kind(&port.table, name) == kind(&input.schema, name)
        };
        input.is_some_and(|input| input.schema.key.iter().all(|name| own(input, name)))
    })
}

/// `wanted` different positions below `rows`, ascending.
fn positions(rows: u64, wanted: usize, draw: impl Fn(u64) -> u64) -> Vec<u64> {
    let wanted = wanted.min(usize::try_from(rows).unwrap_or(usize::MAX));
    if wanted as u64 == rows {
        return (0..rows).collect();
    }
    let mut drawn = std::collections::BTreeSet::new();
    let mut number = 0;
    while drawn.len() < wanted {
        drawn.insert(draw(number) % rows);
        number += 1;
    }
    drawn.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_different_and_in_order_and_of_the_seed() {
        let drawn = |rows, wanted, seed| {
            positions(rows, wanted, |n| keyed_hash(seed, "test", &n.to_le_bytes()))
        };
        for (rows, wanted) in [(0, 5), (1, 1), (5, 9), (6, 5), (1000, 20), (u64::MAX, 3)] {
            let found = drawn(rows, wanted, 7);
            assert_eq!(found.len() as u64, (wanted as u64).min(rows));
            assert!(found.is_sorted_by(|a, b| a < b) && found.iter().all(|at| *at < rows));
        }
        assert_ne!(drawn(1000, 20, 7), drawn(1000, 20, 8));
    }
}
