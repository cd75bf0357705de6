//! Cached facts about stored tables: their rows sorted by a column, and the rows that meet a
//! condition. A stored table never changes, so the facts stay valid; the least recently used are
//! dropped first.

use std::sync::{Arc, Mutex as StdMutex, PoisonError};

use arrow::buffer::BooleanBuffer;
use datafusion::logical_expr::Expr;
use tokio::sync::Mutex;

use galeras_base::digest::Digest;
use galeras_engine::runner::RunError;
use galeras_operator::StepError;
use galeras_sql::session::{stored_matches, stored_order};
use galeras_store::Store;
use galeras_store::TableFile;

/// The most bytes of cached orders: a dozen for a table of five million rows.
const ORDERS: usize = 256 << 20;

/// The most bytes of cached matches: a bit for each row.
const MATCHES: usize = 64 << 20;

/// The cached facts of all tables.
pub(super) struct Indexes {
    orders: Recent<Option<Arc<Vec<u32>>>>,
    matches: Recent<Option<BooleanBuffer>>,
    /// Only one is computed at a time: each uses all processors, and the memory of a column.
    computing: Mutex<()>,
}

impl Default for Indexes {
    fn default() -> Self {
        Self {
            orders: Recent::new(ORDERS),
            matches: Recent::new(MATCHES),
            computing: Mutex::default(),
        }
    }
}

impl Indexes {
    /// The positions of a table's rows sorted by a column; `None` if that is too large.
    pub(super) async fn order(
        &self,
        blob: &Digest,
        store: Store,
        column: &str,
        descending: bool,
    ) -> Result<Option<Arc<Vec<u32>>>, RunError> {
        let key = format!("{blob} {descending} {column}");
        let column = column.to_string();
        let table = *blob;
        let compute = move || {
            let table = opened(&store, &table)?;
            Ok(stored_order(&table, &column, descending)?.map(Arc::new))
        };
        let bytes = |order: &Option<Arc<Vec<u32>>>| order.as_ref().map_or(0, |o| o.len() * 4);
        self.kept(&self.orders, key, bytes, compute).await
    }

    /// The rows of a table that meet a condition; `None` if it lacks a column.
    pub(super) async fn matches(
        &self,
        blob: &Digest,
        store: Store,
        condition: Expr,
    ) -> Result<Option<BooleanBuffer>, RunError> {
        let key = format!("{blob} {condition:?}");
        let table = *blob;
        let compute = move || {
            let table = opened(&store, &table)?;
            Ok(stored_matches(&table, &condition)?)
        };
        let bytes = |found: &Option<BooleanBuffer>| found.as_ref().map_or(0, |f| f.len() / 8);
        self.kept(&self.matches, key, bytes, compute).await
    }

    async fn kept<T: Clone + Send + 'static>(
        &self,
        kept: &Recent<T>,
        key: String,
        size: impl Fn(&T) -> usize,
        compute: impl FnOnce() -> Result<T, RunError> + Send + 'static,
    ) -> Result<T, RunError> {
        if let Some(known) = kept.get(&key) {
            return Ok(known);
        }
        let _alone = self.computing.lock().await;
        // Another request may have computed the same meanwhile.
        if let Some(known) = kept.get(&key) {
            return Ok(known);
        }
        let found = blocking(compute).await?;
        kept.put(key, found.clone(), size(&found));
        Ok(found)
    }
}

pub(super) fn opened(store: &Store, blob: &Digest) -> Result<Arc<TableFile>, RunError> {
    let table = store.table_file(blob)?;
    Ok(Arc::new(table.ok_or_else(|| StepError::new("the store is not a folder"))?))
}

/// Reads files on a thread that may block.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RunError> + Send + 'static,
) -> Result<T, RunError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| StepError::new(error.to_string()))?
}

/// The most recently used entries, up to a size.
struct Recent<T> {
    limit: usize,
    /// Least recently used first.
    entries: StdMutex<Vec<Entry<T>>>,
}

struct Entry<T> {
    key: String,
    value: T,
    size: usize,
}

impl<T: Clone> Recent<T> {
    fn new(limit: usize) -> Self {
        Self { limit, entries: StdMutex::default() }
    }

    fn get(&self, key: &str) -> Option<T> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let at = entries.iter().position(|entry| entry.key == key)?;
        entries[at..].rotate_left(1);
        entries.last().map(|entry| entry.value.clone())
    }

    /// Caches a value, unless it alone is larger than the limit.
    fn put(&self, key: String, value: T, size: usize) {
        // The overhead of an entry counts as well, which limits the number of tiny entries.
        let size = size.max(self.limit / 4096).max(1);
        if size > self.limit {
            return;
        }
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        while entries.iter().map(|entry| entry.size).sum::<usize>() + size > self.limit {
            entries.remove(0);
        }
        entries.push(Entry { key, value, size });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_longest_makes_room() {
        let recent = Recent::new(10);
        for (key, size) in [("a", 4), ("b", 4), ("c", 2)] {
            recent.put(key.to_string(), key, size);
        }
        assert_eq!(recent.get("a"), Some("a"));
        recent.put("d".to_string(), "d", 5);
        let found: Vec<Option<&str>> =
            ["a", "b", "c", "d"].iter().map(|key| recent.get(key)).collect();
        assert_eq!(found, [Some("a"), None, None, Some("d")]);
        recent.put("e".to_string(), "e", 11);
        assert_eq!((recent.get("e"), recent.get("d")), (None, Some("d")));
    }

    #[tokio::test]
    async fn what_failed_is_tried_again_and_what_succeeded_is_not() {
        let indexes = Indexes::default();
        let kept = Recent::new(10);
        let ask = async |answer: Result<u64, RunError>| {
            indexes.kept(&kept, "key".to_string(), |_| 1, move || answer).await
        };
        assert!(ask(Err(StepError::new("no").into())).await.is_err());
        assert_eq!(ask(Ok(1)).await.ok(), Some(1));
        assert_eq!(ask(Ok(2)).await.ok(), Some(1));
    }
}
