//! Stored artifacts as DataFrames.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::{Result, exec_datafusion_err};
use datafusion::dataframe::DataFrame;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::datasource::{MemTable, ViewTable, provider_as_source};
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::{LogicalPlanBuilder, SortExpr, UNNAMED_TABLE, lit};

use super::small_table::{SMALL_BYTES, SmallTable, check_type};
use super::stored_range::stored_footer;
use super::write::column;
use galeras_base::digest::Digest;
use galeras_operator::{TableSchema, is_virtual};
use galeras_store::{PortArtifact, Store, check_footer};

/// An artifact as a table of the planned schema; `step` fills the virtual column that
/// names the step a row comes from.
///
/// Plans know that the rows are stored in the order of the key, so that what only filters or
/// extends them needs no sort.
pub fn scan(
    session: &SessionContext,
    store: &Store,
    stored: &PortArtifact,
    table: &TableSchema,
    step: &str,
) -> Result<DataFrame> {
    let schema = table.stored();
    let known = |name: &&String| schema.field_with_name(name).is_ok();
    let key: Vec<String> = table.key.iter().filter(known).cloned().collect();
    let stored = match store.local_blob(&stored.blob).filter(|_| stored.bytes <= SMALL_BYTES) {
        Some(file) => {
            check_stored(store, &stored.blob)?;
            session.read_table(Arc::new(SmallTable { file, schema, key }))?
        }
        None => {
            let order = key.iter().map(|name| column(name).sort(true, true)).collect();
            listing(session, store, &[stored.blob], schema, order)?
        }
    };
    with_step(stored, table, step)
}

/// Stored rows with the virtual column of the table, if it has one.
pub(super) fn with_step(stored: DataFrame, table: &TableSchema, step: &str) -> Result<DataFrame> {
    if !table.schema.fields().iter().any(|field| is_virtual(field)) {
        return Ok(stored);
    }
    stored.select(table.schema.fields().iter().map(|field| match is_virtual(field) {
        true => lit(step).alias(field.name()),
        false => column(field.name()),
    }))
}

/// Blobs of one schema as one table.
///
/// # Errors
/// If a file on this disk has other types: a plan would cast its values and might lose digits.
pub fn scan_files(
    session: &SessionContext,
    store: &Store,
    blobs: &[Digest],
    schema: SchemaRef,
) -> Result<DataFrame> {
    for blob in blobs {
        check_stored(store, blob)?;
        let Ok(Some(table)) = store.table_file(blob) else { continue };
        for field in table.schema().fields() {
            if let Ok(planned) = schema.field_with_name(field.name()) {
                check_type(field, planned)?;
            }
        }
    }
    listing(session, store, blobs, schema, Vec::new())
}

/// A stored table as its file describes it, even if its operator has other columns today.
pub async fn scan_stored(
    session: &SessionContext,
    store: &Store,
    stored: &PortArtifact,
) -> Result<DataFrame> {
    let (_, metadata) = stored_footer(store, &stored.blob).await?;
    listing(session, store, &[stored.blob], Arc::clone(metadata.schema()), Vec::new())
}

/// A damaged footer is an error here, before a library trusts it.
pub(super) fn check_stored(store: &Store, blob: &Digest) -> Result<()> {
    match store.local_blob(blob).filter(|file| file.exists()) {
        Some(file) => check_footer(&file).map_err(|why| {
            let file = file.display();
            exec_datafusion_err!(
                "the stored table {file} is damaged: {why}; `galeras cache verify --repair` removes \
                 it, and the next run computes it again"
            )
        }),
        None => Ok(()),
    }
}

fn listing(
    session: &SessionContext,
    store: &Store,
    blobs: &[Digest],
    schema: SchemaRef,
    order: Vec<SortExpr>,
) -> Result<DataFrame> {
    session.register_object_store(&store.url(), store.object_store());
    blobs.iter().try_for_each(|blob| check_stored(store, blob))?;
    let base = store.url();
    let paths = blobs
        .iter()
        .map(|blob| {
            let path = store.blob_path(blob);
            ListingTableUrl::parse(format!("{}/{path}", base.as_str().trim_end_matches('/')))
        })
        .collect::<Result<Vec<_>>>()?;
    let mut options =
        ListingOptions::new(Arc::new(ParquetFormat::default())).with_file_extension("parquet");
    if !order.is_empty() {
        options = options.with_file_sort_order(vec![order]);
    }
    let config = ListingTableConfig::new_with_multi_paths(paths)
        .with_listing_options(options)
        .with_schema(schema);
    session.read_table(Arc::new(ListingTable::try_new(config)?))
}

/// A view of no rows, for planning: under another name, as a stored table is when a step runs.
///
/// # Errors
/// If two columns have one name.
pub fn empty_view(table: &TableSchema) -> Result<ViewTable> {
    let provider = MemTable::try_new(Arc::clone(&table.schema), vec![vec![]])?;
    let source = provider_as_source(Arc::new(provider));
    Ok(ViewTable::new(LogicalPlanBuilder::scan(UNNAMED_TABLE, source, None)?.build()?, None))
}

/// A table without rows, for planning.
pub fn empty_table(session: &SessionContext, table: &TableSchema) -> Result<DataFrame> {
    let provider = MemTable::try_new(Arc::clone(&table.schema), vec![vec![]])?;
    session.read_table(Arc::new(provider))
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, RecordBatch, StringArray};
    use datafusion::common::JoinType;
    use datafusion::physical_plan::displayable;

    use super::*;
    use crate::session::{bounded_session, open_table, session};

    async fn plan_of(df: DataFrame) -> String {
        let sorted = df.sort(vec![column("id").sort(true, true)]).unwrap();
        let plan = sorted.create_physical_plan().await.unwrap();
        displayable(plan.as_ref()).indent(false).to_string()
    }

    #[tokio::test]
    async fn what_filters_or_extends_a_stored_table_is_not_sorted_again() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().to_string_lossy()).await.unwrap();
        let ids = |n: usize| (0..n).map(|i| Some(format!("{i:06}"))).collect::<StringArray>();
        let batch = |name: &str, n| {
            RecordBatch::try_from_iter([(name, std::sync::Arc::new(ids(n)) as ArrayRef)]).unwrap()
        };
        let rows = session(2).read_batch(batch("id", 50_000)).unwrap();
        let table = TableSchema::new(batch("id", 0).schema(), None);
        let open = open_table(rows, &table).await.unwrap();
        let stored = open.store("out", &store, 2, |_| {}, || {}).await.unwrap();

        let plain = session(2);
        let scanned = scan(&plain, &store, &stored, &table, "step").unwrap();
        let plan = plan_of(scanned.filter(column("id").gt(lit("000100"))).unwrap()).await;
        assert!(!plan.contains("SortExec"), "{plan}");

        let bounded = bounded_session(2, 1 << 20, folder.path()).unwrap();
        let scanned = scan(&bounded, &store, &stored, &table, "step").unwrap();
        let small = bounded.read_batch(batch("other", 40_000)).unwrap();
        let anti = small.join(scanned, JoinType::RightAnti, &["other"], &["id"], None).unwrap();
        let plan = plan_of(anti.clone()).await;
        assert!(!plan.contains("SortExec"), "{plan}");
        assert_eq!(anti.count().await.unwrap(), 10_000);
    }
}
