//! A stored table of a few kilobytes as a table of plans: its file is read in one go.
//!
//! A workflow may have thousands of small tables. Listing a file, asking for its size, and reading
//! its footer and columns one after another on other threads takes longer than the work on their
//! rows.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::{SortOptions, cast};
use arrow::datatypes::{Field, SchemaRef};
use async_trait::async_trait;
use bytes::Bytes;
use datafusion::catalog::Session;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics, exec_err};
use datafusion::datasource::{TableProvider, TableType};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::expressions::col;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};

use galeras_base::error_chain;
use galeras_operator::table_digest::type_name;
use galeras_workflow::quote;

/// The largest file that is read in one go, and held while a plan uses it.
pub(super) const SMALL_BYTES: u64 = 32 << 10;

/// A stored table in one small file of this machine.
#[derive(Debug)]
pub(super) struct SmallTable {
    pub(super) file: PathBuf,
    /// The columns as they were planned.
    pub(super) schema: SchemaRef,
    /// The columns by which the rows are sorted.
    pub(super) key: Vec<String>,
}

#[async_trait]
impl TableProvider for SmallTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let named = |error: io::Error| {
            let message = format!("{}: {}", self.file.display(), error_chain::plain(&error));
            io::Error::new(error.kind(), message)
        };
        let bytes = Bytes::from(std::fs::read(&self.file).map_err(named)?);
        let metadata = ArrowReaderMetadata::load(&bytes, ArrowReaderOptions::new())?;
        let planned = Planned::new(metadata.schema(), &self.schema, projection.map(Vec::as_slice))?;
        let rows = metadata.metadata().file_metadata().num_rows();
        let properties = Arc::new(stored_properties(&planned.schema, &self.key));
        Ok(Arc::new(SmallScan {
            bytes,
            metadata,
            planned: Arc::new(planned),
            rows: usize::try_from(rows).unwrap_or_default(),
            properties,
        }))
    }
}

/// The properties of a scan: rows come in the order of the key, as far as its columns are read.
fn stored_properties(schema: &SchemaRef, key: &[String]) -> PlanProperties {
    let order = key.iter().map_while(|name| {
        let options = SortOptions { descending: false, nulls_first: true };
        Some(PhysicalSortExpr::new(col(name, schema).ok()?, options))
    });
    let order: Vec<PhysicalSortExpr> = order.collect();
    let equivalences = match order.is_empty() {
        true => EquivalenceProperties::new(Arc::clone(schema)),
        false => EquivalenceProperties::new_with_orderings(Arc::clone(schema), [order]),
    };
    PlanProperties::new(
        equivalences,
        Partitioning::UnknownPartitioning(1),
        EmissionType::Incremental,
        Boundedness::Bounded,
    )
}

/// Columns as they were planned, and where the stored table has them.
#[derive(Debug)]
pub(super) struct Planned {
    schema: SchemaRef,
    /// Where the stored table has them, in its order.
    pub(super) columns: Vec<usize>,
    /// Which of those that are read each column of the schema is.
    order: Vec<usize>,
}

impl Planned {
    /// These columns of `schema`, or all of them.
    ///
    /// # Errors
    /// If the stored table lacks one, or has another type of it.
    pub(super) fn new(
        stored: &SchemaRef,
        schema: &SchemaRef,
        projection: Option<&[usize]>,
    ) -> Result<Self> {
        let schema = match projection {
            Some(columns) => Arc::new(schema.project(columns)?),
            None => Arc::clone(schema),
        };
        let mut places = Vec::with_capacity(schema.fields().len());
        for field in schema.fields() {
            let place = stored.index_of(field.name())?;
            check_type(stored.field(place), field)?;
            places.push(place);
        }
        let mut columns = places.clone();
        columns.sort_unstable();
        columns.dedup();
        let order = places.iter().map(|at| columns.binary_search(at).unwrap_or_default()).collect();
        Ok(Self { schema, columns, order })
    }

    /// Converts a batch of these columns to the planned schema.
    ///
    /// # Errors
    /// If a column has nulls that were not planned.
    pub(super) fn batch(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let columns = self.order.iter().zip(self.schema.fields()).map(|(at, field)| {
            let column = batch.column(*at);
            match column.data_type() == field.data_type() {
                true => Ok(Arc::clone(column)),
                false => Ok(cast(column, field.data_type())?),
            }
        });
        let columns = columns.collect::<Result<Vec<ArrayRef>>>()?;
        let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &rows)?)
    }
}

/// Checks that a stored column has the planned type: a cast might lose digits.
///
/// # Errors
/// If it does not.
pub(super) fn check_type(stored: &Field, planned: &Field) -> Result<()> {
    let [is, wanted] = [stored, planned].map(|field| type_name(field.data_type()));
    match is == wanted {
        true => Ok(()),
        false => {
            exec_err!("the stored column {} is {is}, not {wanted}", quote(planned.name()))
        }
    }
}

/// Decodes the columns of a small table.
#[derive(Debug)]
struct SmallScan {
    bytes: Bytes,
    metadata: ArrowReaderMetadata,
    planned: Arc<Planned>,
    rows: usize,
    properties: Arc<PlanProperties>,
}

impl DisplayAs for SmallScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = self.planned.schema.fields().iter();
        let columns: Vec<&str> = fields.map(|field| field.name().as_str()).collect();
        write!(f, "SmallScan: rows={}, columns=[{}]", self.rows, columns.join(", "))
    }
}

impl ExecutionPlan for SmallScan {
    fn name(&self) -> &'static str {
        "SmallScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(
            self.bytes.clone(),
            self.metadata.clone(),
        );
        let mask =
            ProjectionMask::roots(builder.parquet_schema(), self.planned.columns.iter().copied());
        let batch_size = context.session_config().batch_size();
        let rows = builder.with_projection(mask).with_batch_size(batch_size).build()?;
        let planned = Arc::clone(&self.planned);
        let batches = rows.map(move |batch| planned.batch(&batch?));
        let schema = Arc::clone(&self.planned.schema);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::iter(batches))))
    }

    fn partition_statistics(&self, _: Option<usize>) -> Result<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.planned.schema);
        statistics.num_rows = Precision::Exact(self.rows);
        Ok(Arc::new(statistics))
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array, StringArray};
    use datafusion::dataframe::DataFrame;
    use datafusion::functions_aggregate::expr_fn::count;
    use datafusion::logical_expr::lit;
    use datafusion::physical_plan::displayable;

    use super::*;
    use crate::session::{column, open_table, scan, scan_files, session};
    use galeras_operator::TableSchema;
    use galeras_store::{PortArtifact, Store};

    async fn stored(store: &Store, rows: i64) -> (PortArtifact, TableSchema) {
        let ids: StringArray = (0..rows).map(|i| Some(format!("{i:06}"))).collect();
        let texts: StringArray = (0..rows).map(|i| (i % 3 > 0).then(|| format!("{i}"))).collect();
        let numbers = Int64Array::from_iter_values((0..rows).map(|i| -i));
        let columns: [(&str, ArrayRef); 3] =
            [("id", Arc::new(ids)), ("text", Arc::new(texts)), ("n", Arc::new(numbers))];
        let batch = RecordBatch::try_from_iter_with_nullable(
            columns.map(|(name, column)| (name, column, name == "text")),
        );
        let batch = batch.unwrap();
        let table = TableSchema::new(batch.schema(), None);
        let open = open_table(session(2).read_batch(batch).unwrap(), &table).await.unwrap();
        (open.store("out", store, 2, |_| {}, || {}).await.unwrap(), table)
    }

    async fn plan(df: &DataFrame) -> String {
        let plan = df.clone().create_physical_plan().await.unwrap();
        displayable(plan.as_ref()).indent(false).to_string()
    }

    async fn shown(df: DataFrame) -> String {
        let batches = df.collect().await.unwrap();
        arrow::util::pretty::pretty_format_batches(&batches).unwrap().to_string()
    }

    #[tokio::test]
    async fn a_small_table_has_the_rows_of_its_file_in_the_order_of_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().to_string_lossy()).await.unwrap();
        for rows in [0, 1, 100, 2500] {
            let (file, table) = stored(&store, rows).await;
            assert!(file.bytes <= SMALL_BYTES, "{rows} rows: {} bytes", file.bytes);
            let session = session(2);
            let small = scan(&session, &store, &file, &table, "step").unwrap();
            let schema = Arc::clone(&table.schema);
            let listed = scan_files(&session, &store, &[file.blob], schema).unwrap();
            let sorted = |df: DataFrame| {
                let wanted = df.filter(column("n").lt(lit(-5))).unwrap();
                let wanted = wanted.select(vec![column("n"), column("text"), column("id")]);
                wanted.unwrap().sort(vec![column("id").sort(true, true)]).unwrap()
            };
            let (small_plan, listed_plan) =
                (plan(&sorted(small.clone())).await, plan(&sorted(listed.clone())).await);
            assert!(small_plan.contains("SmallScan") && !small_plan.contains("SortExec"));
            assert!(!listed_plan.contains("SmallScan"), "{listed_plan}");
            let counted = small.clone().aggregate(vec![], vec![count(lit(1))]).unwrap();
            assert!(shown(counted).await.contains(&format!(" {rows} ")));
            assert_eq!(shown(sorted(small)).await, shown(sorted(listed)).await);
        }
    }

    #[tokio::test]
    async fn a_file_that_is_not_small_is_not_read_in_one_go() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().to_string_lossy()).await.unwrap();
        let (file, table) = stored(&store, 20_000).await;
        assert!(file.bytes > SMALL_BYTES, "{} bytes", file.bytes);
        let large = scan(&session(2), &store, &file, &table, "step").unwrap();
        assert!(!plan(&large).await.contains("SmallScan"));
    }

    #[tokio::test]
    async fn a_column_that_the_file_lacks_is_an_error_and_so_is_a_file_that_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().to_string_lossy()).await.unwrap();
        let (file, table) = stored(&store, 3).await;
        let file = store.local_blob(&file.blob).unwrap();
        let gone = SmallTable {
            file: file.with_extension("x"),
            schema: table.schema.clone(),
            key: vec![],
        };
        let read = session(1).read_table(Arc::new(gone)).unwrap().collect().await;
        let message = galeras_operator::plain_message(&read.unwrap_err());
        assert!(message.contains(".x: No such file"), "{message}");
        let mut fields: Vec<_> = table.schema.fields().iter().cloned().collect();
        fields.push(Arc::new(arrow::datatypes::Field::new(
            "no",
            fields[0].data_type().clone(),
            true,
        )));
        let schema = Arc::new(arrow::datatypes::Schema::new(fields));
        let lacking = SmallTable { file, schema, key: vec![] };
        let read = session(1).read_table(Arc::new(lacking)).unwrap().collect().await;
        assert!(read.unwrap_err().to_string().contains("\"no\""));
    }
}
