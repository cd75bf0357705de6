//! Stored results as DataFrames: single ports, and the united cells of a matrix step.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::datatypes::DataType;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use datafusion::common::ScalarValue;
use datafusion::dataframe::DataFrame;
use datafusion::execution::context::SessionContext;
use datafusion::functions::expr_fn::{coalesce, concat, left};
use datafusion::logical_expr::{
    Expr, LogicalPlan, Operator, Union, binary_expr, cast, lit, not, when,
};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::key::{StepManifests, artifact};
use crate::plan::{Cell, Input, Plan, PlannedStep, cell_columns};
use galeras_base::digest::Digest;
use galeras_operator::{StepError, TableSchema};
use galeras_sql::functions::{RaiseIf, call};
use galeras_sql::session::{column, scan, scan_range};
use galeras_store::{PortArtifact, Store};
use galeras_workflow::quote;

pub(super) fn blobs(input: &Input, done: &StepManifests) -> Vec<Digest> {
    let tables = input.tables.iter().filter_map(|table| artifact(done, table.step, table.port));
    tables.map(|stored| stored.blob).collect()
}

/// The rows and the bytes of the inputs' stored tables; `None` for a step without inputs.
pub(super) fn input_size(step: &PlannedStep, done: &StepManifests) -> Option<(u64, u64)> {
    let tables = step.inputs.iter().flat_map(|input| &input.tables);
    let stored = tables.filter_map(|table| artifact(done, table.step, table.port));
    let sizes = stored.map(|stored| (stored.rows, stored.bytes));
    sizes.reduce(|(rows, bytes), more| (rows + more.0, bytes + more.1))
}

/// The table of an input, with united cells and virtual columns.
pub fn open(
    session: &SessionContext,
    store: &Store,
    plan: &Plan,
    input: &Input,
    done: &StepManifests,
) -> Result<DataFrame, StepError> {
    StoredInput::of(plan, input, done)?.open(session, store)
}

/// An input whose tables are stored: everything needed to read them without the plan, also in
/// another process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StoredInput {
    pub(super) port: String,
    /// The tables are the cells of a matrix step, with their keys as columns.
    pub(super) united: bool,
    #[serde(serialize_with = "write_schema", deserialize_with = "read_schema")]
    pub(super) schema: TableSchema,
    /// Its tables; several only if they are united.
    pub(super) tables: Vec<StoredTable>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StoredTable {
    pub(super) step: String,
    /// Its cell, for united cells.
    pub(super) cell: Cell,
    /// Its planned columns.
    #[serde(serialize_with = "write_schema", deserialize_with = "read_schema")]
    pub(super) table: TableSchema,
    pub(super) stored: PortArtifact,
}

/// Writes a schema in Arrow's IPC format, and its key.
fn write_schema<S: Serializer>(table: &TableSchema, to: S) -> Result<S::Ok, S::Error> {
    let mut bytes = Vec::new();
    let written = StreamWriter::try_new(&mut bytes, &table.schema).and_then(|mut to| to.finish());
    written.map_err(S::Error::custom)?;
    (bytes, &table.key).serialize(to)
}

fn read_schema<'de, D: Deserializer<'de>>(from: D) -> Result<TableSchema, D::Error> {
    let (bytes, key) = <(Vec<u8>, Vec<String>)>::deserialize(from)?;
    let schema = StreamReader::try_new(bytes.as_slice(), None).map_err(D::Error::custom)?.schema();
    Ok(TableSchema { schema, key, open: false })
}

impl StoredInput {
    /// The input of a step whose upstream steps are done.
    pub(super) fn of(plan: &Plan, input: &Input, done: &StepManifests) -> Result<Self, StepError> {
        let mut tables = Vec::with_capacity(input.tables.len());
        for table in &input.tables {
            let step = &plan.steps[table.step];
            let missing = || StepError::new(format!("step {} has no result", step.name));
            let port = step.port(table.port).ok_or_else(missing)?;
            let stored = artifact(done, table.step, table.port).ok_or_else(missing)?;
            tables.push(StoredTable {
                step: step.name.clone(),
                cell: table.cell.clone(),
                table: port.table.clone(),
                stored: stored.clone(),
            });
        }
        let (port, schema) = (input.port.clone(), input.schema.clone());
        Ok(Self { port, united: input.united, schema, tables })
    }

    /// Its tables as one, with united cells and virtual columns.
    pub(super) fn open(
        &self,
        session: &SessionContext,
        store: &Store,
    ) -> Result<DataFrame, StepError> {
        let mut tables: Vec<DataFrame> = Vec::with_capacity(self.tables.len());
        for table in &self.tables {
            let df = scan(session, store, &table.stored, &table.table, &table.step)?;
            tables.push(self.with_cell(df, table)?);
        }
        if tables.len() < 2 {
            let missing = || StepError::new("a matrix without cells has no rows to read");
            return tables.pop().ok_or_else(missing);
        }
        // One flat union: nested ones would be as deep as there are cells.
        let plans = tables.into_iter().map(|df| Arc::new(df.into_unoptimized_plan()));
        let union = Union::try_new_with_loose_types(plans.collect())?;
        Ok(DataFrame::new(session.state(), LogicalPlan::Union(union)))
    }

    /// Rows of one of the tables, `len` from position `start`, with the columns of its cell.
    pub(super) async fn open_rows(
        &self,
        session: &SessionContext,
        store: &Store,
        (table, start, len): (usize, u64, u64),
    ) -> Result<DataFrame, StepError> {
        let missing = || StepError::new("a defect: there is no such table in the input");
        let table = self.tables.get(table).ok_or_else(missing)?;
        let rows = (start, len);
        let df = scan_range(session, store, &table.stored.blob, (&table.table, &table.step), rows)
            .await?;
        self.with_cell(df, table)
    }

    fn with_cell(&self, df: DataFrame, table: &StoredTable) -> Result<DataFrame, StepError> {
        if self.united { with_cell(df, self, table) } else { Ok(df) }
    }

    /// The columns by which its rows are sorted; none for united cells, which are concatenated.
    pub(super) fn order(&self) -> Vec<String> {
        match self.tables.as_slice() {
            [table] if !self.united => table.stored.key.clone(),
            _ => Vec::new(),
        }
    }

    pub(super) fn blobs(&self) -> impl Iterator<Item = Digest> {
        self.tables.iter().map(|table| table.stored.blob)
    }
}

/// A table of united cells with the columns of its cell. An existing column of that name must have
/// the cell's value in every row.
fn with_cell(
    df: DataFrame,
    input: &StoredInput,
    table: &StoredTable,
) -> Result<DataFrame, StepError> {
    let step = table.step.as_str();
    let said: HashMap<&str, &Value> = cell_columns(&table.cell).collect();
    let own: HashSet<String> = df.schema().fields().iter().map(|f| f.name().clone()).collect();
    let mut df = df;
    for (name, value) in cell_columns(&table.cell).filter(|(name, _)| own.contains(*name)) {
        let says = says(step, name, value, &df)?;
        df = df.filter(says)?;
    }
    let columns = input.schema.schema.fields().iter().map(|field| {
        match said.get(field.name().as_str()) {
            Some(value) if !own.contains(field.name()) => {
                cast(literal(value), field.data_type().clone()).alias(field.name())
            }
            // A column that only other cells of embedded workflows have.
            None if !own.contains(field.name()) => {
                cast(lit(ScalarValue::Null), field.data_type().clone()).alias(field.name())
            }
            _ => column(field.name()),
        }
    });
    Ok(df.select(columns.collect::<Vec<_>>())?)
}

/// True for rows whose column has the cell's value; the plan fails at other rows.
fn says(step: &str, name: &str, value: &Value, df: &DataFrame) -> Result<Expr, StepError> {
    let data_type = df.schema().field_with_unqualified_name(name)?.data_type().clone();
    let expected = cast(literal(value), data_type);
    let differs = binary_expr(column(name), Operator::IsDistinctFrom, expected.clone());
    let shown = coalesce(vec![left(cast(column(name), DataType::Utf8), lit(60_i64)), lit("null")]);
    let wanted = match value {
        Value::String(text) => quote(text),
        other => quote(&other.to_string()),
    };
    let message = concat(vec![
        lit(format!("a row of {step} has `")),
        shown,
        lit(format!(
            "` in the column {}, but its cell has {wanted}; give the matrix key another name",
            quote(name)
        )),
    ]);
    // Only for rows that differ: a message for each row would take time.
    let fails = call::<RaiseIf>(vec![differs.clone(), message]).is_not_null();
    Ok(when(not(differs), lit(true)).otherwise(fails)?)
}

/// The stored table of a port.
pub fn open_port(
    session: &SessionContext,
    store: &Store,
    plan: &Plan,
    step: usize,
    port: &str,
    done: &StepManifests,
) -> Result<DataFrame, StepError> {
    let planned = &plan.steps[step];
    let missing = || StepError::new(format!("step {} has no result {port}", planned.name));
    let table = &planned.port(port).ok_or_else(missing)?.table;
    let stored = artifact(done, step, port).ok_or_else(missing)?;
    Ok(scan(session, store, stored, table, &planned.name)?)
}

/// A scalar of a matrix cell as a literal.
fn literal(value: &Value) -> Expr {
    match value {
        Value::Bool(b) => lit(*b),
        Value::Number(n) => match n.as_i64() {
            Some(i) => lit(i),
            None => lit(n.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(s) => lit(s.as_str()),
        _ => lit(ScalarValue::Null),
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Schema;

    use super::*;
    use galeras_operator::{describe, virtual_step};

    #[test]
    fn a_schema_comes_back_with_all_it_says() {
        let list = DataType::new_list(DataType::Utf8, true);
        let fields = vec![describe("a", list, true, "texts", Some("words")), virtual_step()];
        let table = TableSchema::new(Arc::new(Schema::new(fields)), Some(vec!["a".into()]));
        let json = write_schema(&table, serde_json::value::Serializer).unwrap();
        let read = read_schema(json).unwrap();
        assert_eq!((read.schema, read.key), (table.schema, table.key));
    }
}
