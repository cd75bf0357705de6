//! Stored artifacts as DataFrames.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::Column;
use datafusion::dataframe::DataFrame;
use datafusion::datasource::MemTable;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::error::Result;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::{Expr, lit};

use crate::cache::Store;
use crate::digest::Digest;
use crate::operator::{TableSchema, is_virtual};

/// The artifact `blob` as a table of the planned schema; `step` fills the virtual column that
/// names the step a row comes from.
pub fn scan(
    session: &SessionContext,
    store: &Store,
    blob: &Digest,
    table: &TableSchema,
    step: &str,
) -> Result<DataFrame> {
    let stored = scan_files(session, store, &[*blob], table.stored())?;
    if table.schema.fields().iter().any(|f| is_virtual(f)) {
        let columns = table.schema.fields().iter().map(|f| {
            if is_virtual(f) {
                lit(step).alias(f.name())
            } else {
                Expr::Column(Column::from_name(f.name()))
            }
        });
        return stored.select(columns);
    }
    Ok(stored)
}

/// Blobs of one schema as one table.
pub fn scan_files(
    session: &SessionContext,
    store: &Store,
    blobs: &[Digest],
    schema: SchemaRef,
) -> Result<DataFrame> {
    session.register_object_store(&store.url(), store.object_store());
    let base = store.url();
    let paths = blobs
        .iter()
        .map(|blob| {
            let path = store.blob_path(blob);
            ListingTableUrl::parse(format!("{}/{path}", base.as_str().trim_end_matches('/')))
        })
        .collect::<Result<Vec<_>>>()?;
    let options =
        ListingOptions::new(Arc::new(ParquetFormat::default())).with_file_extension("parquet");
    let config = ListingTableConfig::new_with_multi_paths(paths)
        .with_listing_options(options)
        .with_schema(schema);
    session.read_table(Arc::new(ListingTable::try_new(config)?))
}

/// A table without rows, for planning.
pub fn empty_table(session: &SessionContext, table: &TableSchema) -> Result<DataFrame> {
    let provider = MemTable::try_new(Arc::clone(&table.schema), vec![vec![]])?;
    session.read_table(Arc::new(provider))
}
