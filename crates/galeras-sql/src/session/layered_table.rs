//! A stored table that leaves columns to other files, as a table of plans.
//!
//! Only the files of the columns that a plan asks for are opened. Row groups go to the partitions one
//! after another, so that each partition, and one after the other, has the order of the key.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::{SortOptions, cast};
use arrow::datatypes::{DataType, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{ScalarValue, Statistics};
use datafusion::datasource::{TableProvider, TableType};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, Operator, TableProviderFilterPushDown};
use datafusion::physical_expr::expressions::col;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};
use futures::StreamExt;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;

use super::stored_object::{GroupRows, StoredObject};
use galeras_base::digest::Digest;
use galeras_store::Store;

/// A stored table of which not all columns are in its own file.
#[derive(Debug)]
pub(super) struct LayeredTable {
    pub(super) store: Store,
    pub(super) blob: Digest,
    /// The columns as they were planned.
    pub(super) schema: SchemaRef,
    /// The columns by which the rows are sorted.
    pub(super) key: Vec<String>,
}

#[async_trait]
impl TableProvider for LayeredTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let kind = |filter: &&Expr| match one_value(filter) {
            Some(_) => TableProviderFilterPushDown::Inexact,
            None => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(kind).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let stored = Arc::new(StoredObject::open(&self.store, &self.blob).await?);
        let planned = Planned::new(stored.schema(), &self.schema, projection.map(Vec::as_slice))?;
        let groups: Vec<usize> = kept_groups(&stored, filters);
        let count = state.config().target_partitions().clamp(1, groups.len().max(1));
        let rows = |group: &usize| stored.groups()[*group].end - stored.groups()[*group].start;
        let total: u64 = groups.iter().map(rows).sum();
        let parts = groups.chunks(groups.len().div_ceil(count).max(1)).map(<[usize]>::to_vec);
        let mut parts: Vec<Vec<usize>> = parts.collect();
        if parts.is_empty() {
            parts.push(Vec::new());
        }
        let properties = stored_properties(&planned.schema, &self.key, parts.len());
        Ok(Arc::new(LayeredScan {
            stored,
            planned: Arc::new(planned),
            parts,
            rows: usize::try_from(total).unwrap_or(usize::MAX),
            properties: Arc::new(properties),
        }))
    }
}

/// What plans know of rows that are read from a stored table: they come in the order of the key, as
/// far as its columns are read.
pub(super) fn stored_properties(
    schema: &SchemaRef,
    key: &[String],
    partitions: usize,
) -> PlanProperties {
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
        Partitioning::UnknownPartitioning(partitions),
        EmissionType::Incremental,
        Boundedness::Bounded,
    )
}

/// A column that must have one value for a row to be kept.
fn one_value(filter: &Expr) -> Option<(&str, &ScalarValue)> {
    let Expr::BinaryExpr(both) = filter else { return None };
    if both.op != Operator::Eq {
        return None;
    }
    match (both.left.as_ref(), both.right.as_ref()) {
        (Expr::Column(column), Expr::Literal(value, _))
        | (Expr::Literal(value, _), Expr::Column(column)) => Some((column.name(), value)),
        _ => None,
    }
}

/// The row groups that may have rows that the filters keep, as footers say the least and the largest
/// value of columns.
fn kept_groups(stored: &StoredObject, filters: &[Expr]) -> Vec<usize> {
    let mut kept: Vec<bool> = vec![true; stored.groups().len()];
    for (name, value) in filters.iter().filter_map(one_value) {
        if let Some(can) = groups_with(stored, name, value) {
            kept.iter_mut().zip(can).for_each(|(kept, can)| *kept &= can);
        }
    }
    kept.iter().enumerate().filter(|(_, kept)| **kept).map(|(at, _)| at).collect()
}

/// Whether each row group can have a value of a column; `None` if nobody knows.
fn groups_with(stored: &StoredObject, name: &str, value: &ScalarValue) -> Option<Vec<bool>> {
    let at = stored.schema().index_of(name).ok()?;
    // Text is what ids are; what compares otherwise than its type says is left to the plan.
    let wanted = match (stored.schema().field(at).data_type(), value) {
        (DataType::Utf8, ScalarValue::Utf8(Some(text))) => text,
        _ => return None,
    };
    let (metadata, root) = stored.own_column(at)?;
    let file = metadata.file_metadata();
    let schema =
        parquet::arrow::parquet_to_arrow_schema(file.schema_descr(), file.key_value_metadata())
            .ok()?;
    let name = schema.field(root).name();
    let converter = StatisticsConverter::try_new(name, &schema, file.schema_descr()).ok()?;
    let least = converter.row_group_mins(metadata.row_groups()).ok()?;
    let most = converter.row_group_maxes(metadata.row_groups()).ok()?;
    let text = |array: &ArrayRef, at: usize| {
        let array = cast(array, &DataType::Utf8).ok()?;
        let texts = arrow::array::AsArray::as_string_opt::<i32>(&array)?;
        texts.is_valid(at).then(|| texts.value(at).to_string())
    };
    let groups = 0..stored.groups().len();
    let within = groups.map(|at| match (text(&least, at), text(&most, at)) {
        (Some(least), Some(most)) => *wanted >= least && *wanted <= most,
        _ => true,
    });
    Some(within.collect())
}

/// Columns as they were planned, and where the stored table has them.
#[derive(Debug)]
pub(super) struct Planned {
    schema: SchemaRef,
    columns: Vec<usize>,
}

impl Planned {
    /// These columns of `schema`, or all of them.
    ///
    /// # Errors
    /// If the stored table lacks one.
    pub(super) fn new(
        stored: &SchemaRef,
        schema: &SchemaRef,
        projection: Option<&[usize]>,
    ) -> Result<Self> {
        let schema = match projection {
            Some(columns) => Arc::new(schema.project(columns)?),
            None => Arc::clone(schema),
        };
        let columns = schema.fields().iter().map(|field| stored.index_of(field.name()));
        let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
        Ok(Self { schema, columns })
    }

    /// The columns as they were planned.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Where the stored table has them.
    pub(super) fn columns(&self) -> Vec<usize> {
        self.columns.clone()
    }

    /// What was read of these columns, as it was planned.
    ///
    /// # Errors
    /// If a column cannot be what was planned.
    pub(super) fn batch(&self, batch: RecordBatch) -> Result<RecordBatch> {
        let columns = batch.columns().iter().zip(self.schema.fields()).map(|(column, field)| {
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

/// Reads the columns of a layered table.
#[derive(Debug)]
struct LayeredScan {
    stored: Arc<StoredObject>,
    planned: Arc<Planned>,
    /// The row groups of each partition.
    parts: Vec<Vec<usize>>,
    rows: usize,
    properties: Arc<PlanProperties>,
}

impl DisplayAs for LayeredScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<&str> =
            self.planned.schema.fields().iter().map(|field| field.name().as_str()).collect();
        let groups: usize = self.parts.iter().map(Vec::len).sum();
        let (parts, columns) = (self.parts.len(), columns.join(", "));
        write!(f, "LayeredScan: partitions={parts}, groups={groups}, columns=[{columns}]")
    }
}

impl ExecutionPlan for LayeredScan {
    fn name(&self) -> &'static str {
        "LayeredScan"
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

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let groups = self.parts.get(partition).ok_or_else(|| {
            DataFusionError::Internal(format!("there is no partition {partition}"))
        })?;
        let all =
            |group: &usize| -> GroupRows { (*group, vec![self.stored.groups()[*group].clone()]) };
        let parts = groups.iter().map(all).collect();
        let batch = context.session_config().batch_size();
        let planned = Arc::clone(&self.planned);
        let rows = Arc::clone(&self.stored).read(planned.columns(), parts, batch);
        let rows = rows.map(move |batch| planned.batch(batch?));
        let schema = Arc::clone(&self.planned.schema);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }

    fn partition_statistics(&self, partition: Option<usize>) -> Result<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.planned.schema);
        if partition.is_none() {
            statistics.num_rows = Precision::Exact(self.rows);
        }
        Ok(Arc::new(statistics))
    }
}
