//! The rows of a page of a table. Their positions are found by reading only the columns of the
//! filter and the order, and cached; then only the rows of the page are read, however large the
//! table is.

use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::UInt64Type;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::dataframe::DataFrame;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{Expr, lit};

use super::answer::Served;
use super::indexes::{blocking, opened};
use super::study::Snapshot;
use galeras_base::digest::Digest;
use galeras_engine::plan::Input;
use galeras_engine::runner::RunError;
use galeras_operator::is_virtual;
use galeras_sql::session::{column, session, stored_rows};

const PAGE: u64 = 50;

const COLUMNS: usize = 60;

/// The position of a row in its table, from 1.
const POSITION: &str = "__position";

pub(super) struct Rows<'a> {
    pub(super) served: &'a Served,
    pub(super) snapshot: &'a Snapshot,
    pub(super) input: &'a Input,
    pub(super) filter: Option<Expr>,
    /// The column to sort by; empty for the order of the table.
    pub(super) sort: &'a str,
    pub(super) descending: bool,
}

pub(super) struct PageRows {
    pub(super) total: u64,
    /// The number of the page, from 1.
    pub(super) page: u64,
    pub(super) pages: u64,
    /// The position of the first row among the rows of all pages.
    pub(super) first: u64,
    /// The positions of the rows in the stored table; empty if it is not one local file.
    pub(super) positions: Vec<u64>,
    pub(super) batch: RecordBatch,
}

impl Rows<'_> {
    /// The page with that number, or the last one.
    pub(super) async fn page(&self, asked: u64) -> Result<PageRows, RunError> {
        let names = self.columns();
        let Some((blob, rows)) = self.snapshot.local_blob(self.input) else {
            let total = self.count().await?;
            let place = place(total, asked);
            let batch = self.scanned(&names, place.first).await?;
            return Ok(PageRows { batch, ..place });
        };
        let place = match self.indexed(&blob, rows, asked).await? {
            Some(place) => place,
            None => {
                let place = place(self.count().await?, asked);
                PageRows { positions: self.searched(place.first).await?, ..place }
            }
        };
        let (wanted, store) = (place.positions.clone(), self.snapshot.surveyed.store.clone());
        let batch = blocking(move || {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let table = opened(&store, &blob)?;
            let batch = stored_rows(&table, &wanted, &names)?;
            // A file returns its columns in its own order.
            let places = names.iter().filter_map(|name| batch.schema().index_of(name).ok());
            Ok(batch.project(&places.collect::<Vec<_>>())?)
        });
        Ok(PageRows { batch: batch.await?, ..place })
    }

    /// The position of a page and its rows from cached facts; `None` if these would be too large.
    async fn indexed(
        &self,
        blob: &Digest,
        rows: u64,
        asked: u64,
    ) -> Result<Option<PageRows>, RunError> {
        let (indexes, store) = (&self.served.study.indexes, &self.snapshot.surveyed.store);
        let matches = match self.stored_filter()? {
            None => None,
            Some(filter) => match indexes.matches(blob, store.clone(), filter).await? {
                Some(matches) => Some(matches),
                None => return Ok(None),
            },
        };
        let is_ordered = !self.sort.is_empty()
            && self.input.schema.field(self.sort).is_some_and(|field| !is_virtual(field));
        let order = match is_ordered {
            false => None,
            true => {
                let order = indexes.order(blob, store.clone(), self.sort, self.descending);
                match order.await? {
                    Some(order) => Some(order),
                    None => return Ok(None),
                }
            }
        };
        let total = match &matches {
            Some(matches) => matches.count_set_bits() as u64,
            None => rows,
        };
        let place = place(total, asked);
        let (skip, take) = (to_usize(place.first), to_usize(PAGE));
        let positions: Vec<u64> = match (&order, &matches) {
            (None, None) => (place.first..total.min(place.first + PAGE)).collect(),
            (None, Some(matches)) => {
                matches.set_indices().skip(skip).take(take).map(|at| at as u64).collect()
            }
            (Some(order), None) => {
                order.iter().skip(skip).take(take).map(|at| u64::from(*at)).collect()
            }
            (Some(order), Some(matches)) => {
                let found = order.iter().filter(|at| matches.value(**at as usize));
                found.skip(skip).take(take).map(|at| u64::from(*at)).collect()
            }
        };
        Ok(Some(PageRows { positions, ..place }))
    }

    /// The filter over the columns of the file: other columns have a constant value.
    fn stored_filter(&self) -> Result<Option<Expr>, RunError> {
        let Some(filter) = self.filter.clone() else { return Ok(None) };
        let step =
            self.input.tables.first().map(|table| &self.snapshot.surveyed.plan.steps[table.step]);
        let schema = &self.input.schema;
        let replaced = filter.transform(|part| match &part {
            Expr::Column(named) if schema.field(&named.name).is_some_and(|f| is_virtual(f)) => {
                Ok(Transformed::yes(lit(step.map_or("", |step| step.name.as_str()))))
            }
            _ => Ok(Transformed::no(part)),
        });
        Ok(Some(replaced?.data))
    }

    fn data(&self, jobs: usize) -> Result<DataFrame, RunError> {
        Ok(self.snapshot.surveyed.open(&session(jobs), self.input)?)
    }

    fn filtered(&self, df: DataFrame) -> Result<DataFrame, RunError> {
        match &self.filter {
            Some(filter) => Ok(df.filter(filter.clone())?),
            None => Ok(df),
        }
    }

    async fn count(&self) -> Result<u64, RunError> {
        if self.filter.is_none() {
            return Ok(self.snapshot.surveyed.rows(self.input).unwrap_or(0));
        }
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(self.filtered(self.data(jobs)?)?.count().await? as u64)
    }

    /// The rows of a page of a table with several files, or in another store.
    async fn scanned(&self, names: &[String], skip: u64) -> Result<RecordBatch, RunError> {
        let df = self.filtered(self.data(1)?)?;
        let mut order = Vec::new();
        if !self.sort.is_empty() {
            order.push(column(self.sort).sort(!self.descending, false));
        }
        order.extend(self.input.schema.key.iter().map(|key| column(key).sort(true, true)));
        let page = df
            .select(names.iter().map(|name| column(name)).collect::<Vec<_>>())
            .and_then(|df| df.sort(order))
            .and_then(|df| df.limit(to_usize(skip), Some(to_usize(PAGE))))?;
        let schema = Arc::new(page.schema().as_arrow().clone());
        Ok(arrow::compute::concat_batches(&schema, &page.collect().await?)?)
    }

    /// The positions of a page's rows in a table whose order is too large to cache. Reads only the
    /// columns of the filter and the order; one thread scans the file, so that rows can be counted.
    async fn searched(&self, skip: u64) -> Result<Vec<u64>, RunError> {
        let numbered = self.data(1)?.window(vec![row_number().alias(POSITION)])?;
        let mut columns = vec![column(POSITION)];
        let mut order = Vec::new();
        if !self.sort.is_empty() {
            columns.push(column(self.sort).alias("__sort"));
            order.push(column("__sort").sort(!self.descending, false));
        }
        order.push(column(POSITION).sort(true, true));
        let page = self
            .filtered(numbered)?
            .select(columns)
            .and_then(|df| df.sort(order))
            .and_then(|df| df.limit(to_usize(skip), Some(to_usize(PAGE))))?;
        let batches = page.collect().await?;
        let positions = batches
            .iter()
            .flat_map(|batch| batch.column(0).as_primitive::<UInt64Type>().values().to_vec());
        Ok(positions.map(|number| number.saturating_sub(1)).collect())
    }

    /// The columns of a page: first the key, then the columns of the step, then the others.
    fn columns(&self) -> Vec<String> {
        let plan = &self.snapshot.surveyed.plan;
        let mut names = crate::columns_for_people(plan, self.input);
        if self.snapshot.only_blob(self.input).is_some() {
            names.retain(|name| self.input.schema.field(name).is_some_and(|f| !is_virtual(f)));
        }
        names.truncate(COLUMNS);
        names
    }
}

/// The position of a page among this many rows, without its rows.
fn place(total: u64, asked: u64) -> PageRows {
    let pages = total.div_ceil(PAGE).max(1);
    let page = asked.clamp(1, pages);
    let batch = RecordBatch::new_empty(Arc::new(arrow::datatypes::Schema::empty()));
    PageRows { total, page, pages, first: (page - 1) * PAGE, positions: Vec::new(), batch }
}

fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
