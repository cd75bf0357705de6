//! The results of a recipe by row digest: of earlier runs and of this one. What is known of a row
//! is where its result is; parts are decoded when a window needs them, and kept as long as there
//! is room.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::datatypes::{Schema, SchemaRef};
use futures::StreamExt;
use tokio::task::JoinHandle;
use tracing::Instrument;

use super::super::context::StepContext;
use super::super::error::RunError;
use super::super::parts::commit_part;
use super::{RowKey, digests, row_key};
use crate::digest::Digest;
use crate::id::ROW_DIGEST;
use crate::operator::StepError;
use crate::session::{BlobEncoding, scan_files, session};
use crate::store::{MemoPart, Store};

/// A part is finished after this time at the latest, so that not more than this is lost.
const PART_TIME: Duration = Duration::from_millis(500);
/// A part is finished when it has this many bytes in memory.
const PART_BYTES: usize = 64 << 20;

/// Row digests are uniform already: their first eight bytes stand for them, and are their hash.
#[derive(Default)]
struct Uniform(u64);

impl Hasher for Uniform {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for (at, byte) in bytes.iter().take(8).enumerate() {
            self.0 ^= u64::from(*byte) << (8 * at);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

fn prefix(key: &RowKey) -> u64 {
    let mut first = [0; 8];
    first.copy_from_slice(&key[..8]);
    u64::from_le_bytes(first)
}

/// Where a result is: a part, and a row of it.
#[derive(Clone, Copy)]
struct Place {
    part: u32,
    row: u32,
}

/// A part of the recipe.
#[derive(Default)]
struct Part {
    /// `None` while it is not in the store.
    blob: Option<Digest>,
    /// Its rows, if they are in memory.
    batches: Option<Vec<RecordBatch>>,
    rows: usize,
    bytes: usize,
    /// When it was used last, in windows.
    used: u64,
    /// It could not be read.
    lost: bool,
}

/// A result in memory.
pub(super) struct Found {
    pub(super) batch: RecordBatch,
    pub(super) row: usize,
    /// Which batch it is, among all.
    pub(super) at: (usize, usize),
    /// Whether an earlier run computed it.
    pub(super) reused: bool,
}

/// The results of a recipe.
pub(super) struct Results<'a> {
    cx: &'a StepContext,
    recipe: Digest,
    schema: SchemaRef,
    places: HashMap<u64, Place, BuildHasherDefault<Uniform>>,
    parts: Vec<Part>,
    /// How many parts are of earlier runs.
    earlier: usize,
    /// Bytes that decoded parts may take.
    budget: usize,
    clock: u64,
    /// When the part that grows was begun; it is the last one.
    growing: Option<Instant>,
    /// The part that is on its way to the store.
    pending: Option<(usize, JoinHandle<Result<Digest, RunError>>)>,
}

impl<'a> Results<'a> {
    /// The results that the store has.
    ///
    /// # Errors
    /// If the store cannot be read. A part that cannot be is a warning, and a miss.
    pub(super) async fn open(
        cx: &'a StepContext,
        recipe: Digest,
        schema: SchemaRef,
        budget: usize,
    ) -> Result<Self, RunError> {
        let (places, parts, growing, pending) = Default::default();
        let mut results = Self {
            cx,
            recipe,
            schema,
            places,
            parts,
            earlier: 0,
            budget,
            clock: 0,
            growing,
            pending,
        };
        let stored = cx.parts(&recipe).await?;
        let digests = digest_schema(&results.schema)?;
        let read = futures::stream::iter(stored).map(|part| {
            let schema = Arc::clone(&digests);
            async move {
                let batches = read(&cx.store, part.blob, schema).await;
                (part, batches)
            }
        });
        let read: Vec<(MemoPart, Result<Vec<RecordBatch>, RunError>)> =
            read.buffered(cx.jobs.max(1)).collect().await;
        for (part, batches) in read {
            match batches {
                Ok(batches) => {
                    let at = results.parts.len();
                    results.parts.push(Part { blob: Some(part.blob), ..Part::default() });
                    for batch in &batches {
                        results.index(at, batch)?;
                    }
                }
                Err(error) => unreadable(cx, &part.blob, &error),
            }
        }
        results.earlier = results.parts.len();
        Ok(results)
    }

    /// How many rows have a result.
    pub(super) fn known_rows(&self) -> u64 {
        self.places.len() as u64
    }

    /// Notes where the rows of the next batch of a part are.
    fn index(&mut self, part: usize, batch: &RecordBatch) -> Result<(), RunError> {
        let keys = digests(batch)?;
        let first = self.parts[part].rows;
        self.places.reserve(keys.len());
        for row in 0..keys.len() {
            let (Ok(part), Ok(row_of_part)) = (u32::try_from(part), u32::try_from(first + row))
            else {
                break;
            };
            let place = Place { part, row: row_of_part };
            // Two parts with the same row hold the same result; one is enough.
            self.places.entry(prefix(&row_key(keys, row))).or_insert(place);
        }
        self.parts[part].rows += keys.len();
        Ok(())
    }

    /// A new window begins: what it does not use may leave the memory.
    pub(super) fn tick(&mut self) {
        self.clock += 1;
        let mut kept: usize = self.parts.iter().map(|part| part.held()).sum();
        while kept > self.budget {
            let stored =
                self.parts.iter_mut().filter(|part| part.held() > 0 && part.blob.is_some());
            let Some(oldest) = stored.min_by_key(|part| part.used) else { break };
            kept -= oldest.held();
            oldest.batches = None;
        }
    }

    /// The result of a row, if there is one.
    ///
    /// # Errors
    /// If the operator's columns are not those of the part, which would be a defect.
    pub(super) async fn find(&mut self, key: &RowKey) -> Result<Option<Found>, RunError> {
        let Some(place) = self.places.get(&prefix(key)).copied() else { return Ok(None) };
        let at = place.part as usize;
        if self.parts[at].lost {
            return Ok(None);
        }
        self.parts[at].used = self.clock;
        if self.parts[at].batches.is_none()
            && let Some(blob) = self.parts[at].blob
        {
            match read(&self.cx.store, blob, Arc::clone(&self.schema)).await {
                Ok(batches) => self.parts[at].keep(batches),
                Err(error) => {
                    unreadable(self.cx, &blob, &error);
                    self.parts[at].lost = true;
                    return Ok(None);
                }
            }
        }
        let mut row = place.row as usize;
        for (number, batch) in self.parts[at].batches.iter().flatten().enumerate() {
            if row < batch.num_rows() {
                // Another row may have the same first bytes.
                let same = row_key(digests(batch)?, row) == *key;
                let reused = at < self.earlier;
                let (batch, at) = (batch.clone(), (at, number));
                return Ok(same.then_some(Found { batch, row, at, reused }));
            }
            row -= batch.num_rows();
        }
        Ok(None)
    }

    /// Takes what was computed now; finishes the part that grows when it is time.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub(super) async fn add(&mut self, batches: Vec<RecordBatch>) -> Result<(), RunError> {
        if batches.is_empty() {
            return Ok(());
        }
        if self.growing.is_none() {
            self.growing = Some(Instant::now());
            self.parts.push(Part { batches: Some(Vec::new()), ..Part::default() });
        }
        let at = self.parts.len() - 1;
        self.parts[at].used = self.clock;
        for batch in batches {
            self.index(at, &batch)?;
            let part = &mut self.parts[at];
            part.bytes += batch.columns().iter().map(own_bytes).sum::<usize>();
            part.batches.get_or_insert_default().push(batch);
        }
        let old = self.growing.is_some_and(|began| began.elapsed() > PART_TIME);
        if old || self.parts[at].bytes > PART_BYTES {
            self.store_growing().await?;
        }
        Ok(())
    }

    async fn store_growing(&mut self) -> Result<(), RunError> {
        self.finish_pending().await?;
        if self.growing.take().is_some()
            && let Some(part) = self.parts.last()
        {
            let batches = part.batches.clone().unwrap_or_default();
            let (store, schema) = (self.cx.store.clone(), Arc::clone(&self.schema));
            let work = store_part(store, self.recipe, schema, batches).in_current_span();
            self.pending = Some((self.parts.len() - 1, tokio::spawn(work)));
        }
        Ok(())
    }

    async fn finish_pending(&mut self) -> Result<(), RunError> {
        if let Some((at, handle)) = self.pending.take() {
            let stored = handle.await.map_err(|_| StepError::new("a writer thread panicked"))?;
            self.parts[at].blob = Some(stored?);
        }
        Ok(())
    }

    /// Finishes the last part, and waits until all are stored.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub(super) async fn finish(mut self) -> Result<(), RunError> {
        self.store_growing().await?;
        self.finish_pending().await
    }
}

impl Part {
    fn held(&self) -> usize {
        if self.batches.is_some() { self.bytes } else { 0 }
    }

    fn keep(&mut self, batches: Vec<RecordBatch>) {
        self.bytes = batches.iter().flat_map(RecordBatch::columns).map(own_bytes).sum();
        self.batches = Some(batches);
    }
}

/// The bytes of an array's own rows, which may be a slice of a larger buffer.
pub(super) fn own_bytes(array: &ArrayRef) -> usize {
    array.to_data().get_slice_memory_size().unwrap_or(0)
}

/// The column of row digests.
fn digest_schema(schema: &SchemaRef) -> Result<SchemaRef, RunError> {
    let at = schema.index_of(ROW_DIGEST)?;
    Ok(Arc::new(Schema::new(vec![Arc::clone(&schema.fields()[at])])))
}

/// The rows of a stored part in their order, with the columns of the schema.
async fn read(
    store: &Store,
    blob: Digest,
    schema: SchemaRef,
) -> Result<Vec<RecordBatch>, RunError> {
    Ok(scan_files(&session(1), store, &[blob], schema)?.collect().await?)
}

/// A damaged part is a miss.
fn unreadable(cx: &StepContext, blob: &Digest, error: &RunError) {
    cx.warn(format!("part {} cannot be read: {error}", blob.short()));
}

async fn store_part(
    store: Store,
    recipe: Digest,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
) -> Result<Digest, RunError> {
    let mut batches = batches.into_iter();
    let encoding = BlobEncoding::start(&store, schema, 1, None, move || batches.next())?;
    let blob = encoding.finish().await?.commit(&store).await?;
    let digest = blob.digest;
    commit_part(&store, &recipe, blob, None).await?;
    Ok(digest)
}
