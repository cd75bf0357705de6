//! The results of a recipe by row digest, of earlier runs and of this one. An index has the place
//! of each result; parts are decoded when a window needs them, and kept while there is room.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::datatypes::{Schema, SchemaRef};
use futures::StreamExt;
use tokio::task::JoinHandle;
use tracing::Instrument;

use super::super::context::{StepContext, commit_part};
use super::super::error::RunError;
use super::{RowKey, digests, row_key};
use galeras_base::digest::Digest;
use galeras_base::id::ROW_DIGEST;
use galeras_operator::StepError;
use galeras_sql::session::{BlobEncoding, scan_files, session, stored_rows};
use galeras_store::{MemoPart, Store};

/// The maximum time until a part is finished, which limits the lost work of a killed run.
const PART_TIME: Duration = Duration::from_millis(500);
/// The size in memory at which a part is finished.
const PART_BYTES: usize = 64 << 20;
/// A part without room in memory is only decoded as a whole for at least one of this many of its
/// rows.
const FEW: usize = 8;

#[derive(Default)]
struct Part {
    /// `None` while it is not in the store.
    blob: Option<Digest>,
    /// Its rows, if they are in memory.
    batches: Option<Vec<RecordBatch>>,
    rows: usize,
    /// Their size in memory; zero if they were never there.
    bytes: usize,
    /// The number of rows requested since it was last in memory.
    asked: usize,
    /// Its last use, in windows.
    used: u64,
    /// It could not be read.
    lost: bool,
}

#[derive(Default)]
pub(super) struct Found {
    pub(super) batches: Vec<RecordBatch>,
    /// For each requested row, the place of its result, if there is one.
    pub(super) places: Vec<Option<FoundPlace>>,
}

#[derive(Clone, Copy)]
pub(super) struct FoundPlace {
    pub(super) batch: usize,
    pub(super) row: usize,
    /// An earlier run computed it.
    pub(super) reused: bool,
}

/// The number of a requested row, and a row of a part that may have its result.
type Wanted = (usize, u32);

pub(super) struct Results<'a> {
    cx: &'a StepContext,
    recipe: Digest,
    schema: SchemaRef,
    places: Places,
    parts: Vec<Part>,
    /// The number of parts from earlier runs.
    earlier: usize,
    /// The memory limit of decoded parts, and their size.
    budget: usize,
    held: usize,
    clock: u64,
    /// The start time of the growing part, which is the last one.
    growing: Option<Instant>,
    /// The part that is being stored.
    pending: Option<(usize, JoinHandle<Result<Digest, RunError>>)>,
}

impl<'a> Results<'a> {
    /// Opens the stored results. An unreadable part is only a warning, and a miss.
    pub(super) async fn open(
        cx: &'a StepContext,
        recipe: Digest,
        schema: SchemaRef,
        budget: usize,
    ) -> Result<Self, RunError> {
        let mut results = Self {
            cx,
            recipe,
            schema,
            places: Places::default(),
            parts: Vec::new(),
            earlier: 0,
            budget,
            held: 0,
            clock: 0,
            growing: None,
            pending: None,
        };
        let stored = cx.parts(&recipe).await?;
        let at = results.schema.index_of(ROW_DIGEST)?;
        let digests = Arc::new(Schema::new(vec![Arc::clone(&results.schema.fields()[at])]));
        let read = futures::stream::iter(stored).map(|part| {
            let schema = Arc::clone(&digests);
            async move {
                let batches = read(&cx.store, part.blob, schema).await;
                (part, batches)
            }
        });
        let read: Vec<(MemoPart, Result<Vec<RecordBatch>, RunError>)> =
            read.buffered(cx.lower.env.jobs.max(1)).collect().await;
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

    pub(super) fn known_rows(&self) -> u64 {
        self.places.rows()
    }

    /// Indexes the next batch of a part.
    fn index(&mut self, part: usize, batch: &RecordBatch) -> Result<(), RunError> {
        let keys = digests(batch)?;
        let first = self.parts[part].rows;
        self.places.reserve(keys.len());
        for row in 0..keys.len() {
            let (Ok(part), Ok(row_of_part)) = (u32::try_from(part), u32::try_from(first + row))
            else {
                break;
            };
            self.places.add(&row_key(keys, row), Place { part, row: row_of_part });
        }
        self.parts[part].rows += keys.len();
        Ok(())
    }

    /// Starts a new window; parts that it does not use may leave memory.
    pub(super) fn tick(&mut self) {
        self.clock += 1;
        while self.held > self.budget {
            let stored = self.parts.iter_mut();
            let stored = stored.filter(|part| part.batches.is_some() && part.blob.is_some());
            let Some(oldest) = stored.min_by_key(|part| part.used) else { break };
            self.held -= oldest.bytes;
            (oldest.batches, oldest.asked) = (None, 0);
        }
    }

    /// The stored results of these rows.
    pub(super) async fn find(&mut self, keys: &[RowKey]) -> Result<Found, RunError> {
        let mut found = Found { places: vec![None; keys.len()], ..Found::default() };
        for (part, wanted) in self.parts_of(keys) {
            self.parts[part].used = self.clock;
            if self.parts[part].batches.is_none() && !self.fetch(part, wanted.len()).await? {
                // Decoding a part that this run has stored is as slow as computing it again.
                if part < self.earlier {
                    self.pick(part, keys, &wanted, &mut found).await?;
                }
                continue;
            }
            let (first, mut starts) = (found.batches.len(), Vec::new());
            let mut start = 0;
            for batch in self.parts[part].batches.iter().flatten() {
                starts.push(start);
                start += batch.num_rows();
                found.batches.push(batch.clone());
            }
            for (asked, row) in wanted {
                let row = row as usize;
                let at = starts.partition_point(|start| *start <= row).saturating_sub(1);
                let (batch, row) = (first + at, row - starts.get(at).copied().unwrap_or(0));
                let reused = part < self.earlier;
                found.take(asked, &keys[asked], FoundPlace { batch, row, reused })?;
            }
        }
        Ok(found)
    }

    /// The parts to read for these rows. If several have a row, one that is in memory or needed
    /// anyway.
    fn parts_of(&self, keys: &[RowKey]) -> BTreeMap<usize, Vec<Wanted>> {
        let mut rows = vec![0_usize; self.parts.len()];
        for place in keys.iter().flat_map(|key| self.places.of(key)) {
            rows[place.part as usize] += 1;
        }
        let mut parts: BTreeMap<usize, Vec<Wanted>> = BTreeMap::new();
        for (asked, key) in keys.iter().enumerate() {
            let places = self.places.of(key).filter(|place| !self.parts[place.part as usize].lost);
            let best = places.max_by_key(|place| {
                let part = place.part as usize;
                (self.parts[part].batches.is_some(), rows[part], std::cmp::Reverse(part))
            });
            if let Some(place) = best {
                parts.entry(place.part as usize).or_default().push((asked, place.row));
            }
        }
        parts
    }

    /// Decodes a part for this many rows; `false` if they are few, or it cannot be read.
    async fn fetch(&mut self, part: usize, wanted: usize) -> Result<bool, RunError> {
        let Some(blob) = self.parts[part].blob else { return Ok(false) };
        let is_few = |wanted: usize| wanted.saturating_mul(FEW) < self.parts[part].rows;
        let alone = match part < self.earlier {
            // Single rows are read in pages: repeatedly, that costs more than the whole part.
            true => !self.has_room(part) && is_few(self.parts[part].asked + wanted),
            false => is_few(wanted),
        };
        self.parts[part].asked += wanted;
        // Single rows are read from local files.
        if alone && (part >= self.earlier || self.cx.store.local_blob(&blob).is_some()) {
            return Ok(false);
        }
        match read(&self.cx.store, blob, Arc::clone(&self.schema)).await {
            Ok(batches) => {
                let bytes = batches.iter().flat_map(RecordBatch::columns).map(own_bytes).sum();
                self.held += bytes;
                let part = &mut self.parts[part];
                (part.batches, part.bytes) = (Some(batches), bytes);
            }
            Err(error) => self.lose(part, &blob, &error),
        }
        Ok(!self.parts[part].lost)
    }

    /// True if a part could be decoded without removing another one, as far as known.
    fn has_room(&self, part: usize) -> bool {
        let part = &self.parts[part];
        let bytes = match part.bytes {
            // Estimated from the decoded parts.
            0 => {
                let known = self.parts.iter().filter(|part| part.bytes > 0);
                let (rows, bytes) = known.fold((0, 0), |(rows, bytes), part| {
                    (rows + part.rows as u128, bytes + part.bytes as u128)
                });
                usize::try_from(bytes * part.rows as u128 / rows.max(1)).unwrap_or(usize::MAX)
            }
            bytes => bytes,
        };
        self.held.saturating_add(bytes) <= self.budget
    }

    /// Finds rows in a part and decodes only their pages.
    async fn pick(
        &mut self,
        part: usize,
        keys: &[RowKey],
        wanted: &[Wanted],
        found: &mut Found,
    ) -> Result<(), RunError> {
        let Some(blob) = self.parts[part].blob.filter(|_| !self.parts[part].lost) else {
            return Ok(());
        };
        let rows: Vec<u64> = wanted.iter().map(|(_, row)| u64::from(*row)).collect();
        let (store, schema) = (self.cx.store.clone(), Arc::clone(&self.schema));
        let picked = tokio::task::spawn_blocking(move || {
            let columns: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
            let table = store.table_file(&blob)?;
            table.map(|table| stored_rows(&Arc::new(table), &rows, &columns)).transpose()
        });
        match picked.await.map_err(|_| StepError::new("a reader thread panicked"))? {
            Ok(picked) => {
                let batch = found.batches.len();
                found.batches.extend(picked);
                for (row, (asked, _)) in wanted.iter().enumerate() {
                    found.take(*asked, &keys[*asked], FoundPlace { batch, row, reused: true })?;
                }
            }
            Err(error) => self.lose(part, &blob, &error.into()),
        }
        Ok(())
    }

    /// A damaged part counts as a miss.
    fn lose(&mut self, part: usize, blob: &Digest, error: &RunError) {
        unreadable(self.cx, blob, error);
        self.parts[part].lost = true;
    }

    /// Adds computed results; finishes the growing part when it is time.
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
            let bytes: usize = batch.columns().iter().map(own_bytes).sum();
            let part = &mut self.parts[at];
            part.bytes += bytes;
            self.held += bytes;
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
    pub(super) async fn finish(mut self) -> Result<(), RunError> {
        self.store_growing().await?;
        self.finish_pending().await
    }
}

impl Found {
    /// Records the place of a row's result. Its digest is compared, as another row may have the
    /// same first bytes.
    fn take(&mut self, asked: usize, key: &RowKey, place: FoundPlace) -> Result<(), RunError> {
        if let Some(batch) = self.batches.get(place.batch)
            && row_key(digests(batch)?, place.row) == *key
        {
            self.places[asked] = Some(place);
        }
        Ok(())
    }
}

/// The bytes of an array's rows, which may be a slice of a larger buffer.
pub(super) fn own_bytes(array: &ArrayRef) -> usize {
    array.to_data().get_slice_memory_size().unwrap_or(0)
}

/// The rows of a stored part in their order, with the columns of the schema.
async fn read(
    store: &Store,
    blob: Digest,
    schema: SchemaRef,
) -> Result<Vec<RecordBatch>, RunError> {
    Ok(scan_files(&session(1), store, &[blob], schema)?.collect().await?)
}

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
    let encoding = BlobEncoding::start(&store, schema, 1, move || batches.next())?;
    let blob = encoding.finish().await?.commit(&store).await?;
    let digest = blob.digest;
    commit_part(&store, &recipe, blob, None).await?;
    Ok(digest)
}

/// Row digests are already uniform: their first eight bytes serve as key and as hash.
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

type ByPrefix<T> = HashMap<u64, T, BuildHasherDefault<Uniform>>;

fn prefix(key: &RowKey) -> u64 {
    let mut first = [0; 8];
    first.copy_from_slice(&key[..8]);
    u64::from_le_bytes(first)
}

/// The place of a result: a part and a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) part: u32,
    pub(super) row: u32,
}

#[derive(Default)]
pub(super) struct Places {
    first: ByPrefix<Place>,
    /// Places of results that several parts have.
    more: ByPrefix<Vec<Place>>,
}

impl Places {
    pub(super) fn rows(&self) -> u64 {
        self.first.len() as u64
    }

    pub(super) fn reserve(&mut self, rows: usize) {
        self.first.reserve(rows);
    }

    /// Adds a place, once for each result of a part.
    pub(super) fn add(&mut self, key: &RowKey, place: Place) {
        let key = prefix(key);
        let first = *self.first.entry(key).or_insert(place);
        if first.part == place.part {
            return;
        }
        let more = self.more.entry(key).or_default();
        if more.iter().all(|known| known.part != place.part) {
            more.push(place);
        }
    }

    /// The places of a result, or of another one with the same first bytes.
    pub(super) fn of(&self, key: &RowKey) -> impl Iterator<Item = Place> {
        let key = prefix(key);
        let more = self.more.get(&key).into_iter().flatten();
        self.first.get(&key).into_iter().chain(more).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_may_be_in_several_parts() {
        let mut places = Places::default();
        let place = |part, row| Place { part, row };
        let (one, other) = ([1; 16], [2; 16]);
        places.add(&one, place(0, 7));
        places.add(&one, place(0, 9));
        places.add(&one, place(3, 1));
        places.add(&one, place(3, 2));
        places.add(&one, place(4, 0));
        places.add(&other, place(4, 1));
        let of = |key| places.of(key).collect::<Vec<_>>();
        assert_eq!(of(&one), [place(0, 7), place(3, 1), place(4, 0)]);
        assert_eq!(of(&other), [place(4, 1)]);
        assert_eq!((of(&[3; 16]), places.rows()), (vec![], 2));
    }
}
