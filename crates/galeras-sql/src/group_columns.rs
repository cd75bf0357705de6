//! The argument `by` of operators that analyse groups of rows separately: its columns, the group of
//! a row, and results with the values of their group in front.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray, UInt32Array};
use arrow::compute::{cast as cast_array, concat_batches, take};
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::dataframe::DataFrame;
use datafusion::logical_expr::{Expr, cast, lit, when};

use crate::functions::{RowId, call};
use crate::session::column;
use galeras_operator::columns::require_column;
use galeras_operator::{ArgError, BindContext, StepError, TableSchema};
use galeras_workflow::code::Code;

/// A hidden column: the group of a row.
const GROUP: &str = "__group";

/// Columns whose values make the groups.
#[derive(Clone, Debug, Default)]
pub struct GroupColumns {
    fields: Vec<FieldRef>,
}

/// Checks the columns of `by`: they are there, each once, and no result has one of their names.
pub fn check_by(
    cx: &BindContext,
    by: &[String],
    is_result: impl Fn(&str) -> bool,
    errors: &mut Vec<ArgError>,
) {
    for (at, name) in by.iter().enumerate() {
        let path = format!("by[{at}]");
        require_column(cx, &path, name, "a plain value", |t| !t.is_nested(), errors);
        if is_result(name) {
            let message = format!("`{name}` is the name of a column of the result");
            errors.push(ArgError::new(path.as_str(), Code::DuplicateColumn, message));
        }
        if by[..at].contains(name) {
            let message = format!("column `{name}` is named twice");
            errors.push(ArgError::new(path, Code::DuplicateColumn, message));
        }
    }
}

impl GroupColumns {
    /// The columns of `by` that the input has.
    pub fn new(by: &[String], input: &TableSchema) -> Self {
        Self { fields: by.iter().filter_map(|name| input.field(name).cloned()).collect() }
    }

    /// Returns true if there are no groups.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The names of the columns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|field| field.name().as_str())
    }

    /// The table with the columns in front, and in front of its key.
    pub fn in_front_of(&self, table: &TableSchema) -> TableSchema {
        let produced = table.schema.fields().to_vec();
        let key: Vec<&str> = self.names().chain(table.key.iter().map(String::as_str)).collect();
        TableSchema::default().with(&self.fields).with(&produced).keyed(&key)
    }

    /// The values; the two zeros of floating-point numbers are one.
    pub fn values(&self) -> Result<Vec<Expr>, StepError> {
        self.fields.iter().map(one_zero).collect()
    }

    /// The group of a row, as a text.
    pub fn id(&self) -> Result<Expr, StepError> {
        let values = self.values()?;
        Ok(match values.as_slice() {
            [] => lit(""),
            by => call::<RowId>(by.iter().flat_map(|n| [n.clone().is_null(), n.clone()]).collect()),
        })
    }

    /// The groups of a table, in the order of their values.
    pub async fn groups(&self, input: DataFrame) -> Result<Groups, StepError> {
        let mut columns = vec![self.id()?.alias(GROUP)];
        columns.extend(
            self.values()?.into_iter().zip(self.names()).map(|(value, name)| value.alias(name)),
        );
        let order = self.names().map(|name| column(name).sort(true, true));
        let table = input.select(columns)?.distinct()?.sort(order.collect())?;
        let schema = Arc::new(table.schema().as_arrow().clone());
        let batch = concat_batches(&schema, &table.collect().await?)?;
        let ids = cast_array(batch.column(0), &DataType::Utf8)?;
        let ids = ids.as_string::<i32>().iter().flatten().map(str::to_owned).collect();
        let values: Vec<ArrayRef> = self
            .fields
            .iter()
            .zip(&batch.columns()[1..])
            .map(|(field, values)| cast_array(values, field.data_type()))
            .collect::<Result<_, _>>()?;
        Ok(Groups { fields: self.fields.clone(), ids, values })
    }
}

/// A group column, in which the two zeros of floating-point numbers are one value.
fn one_zero(field: &FieldRef) -> Result<Expr, StepError> {
    let value = column(field.name());
    if !field.data_type().is_floating() {
        return Ok(value);
    }
    let zero = ScalarValue::new_zero(field.data_type())?;
    let is_zero = value
        .clone()
        .gt_eq(lit(zero.arithmetic_negate()?))
        .and(value.clone().lt_eq(lit(zero.clone())));
    Ok(when(is_zero, lit(zero)).otherwise(value)?)
}

/// The groups of a table: ids and values.
#[derive(Debug)]
pub struct Groups {
    fields: Vec<FieldRef>,
    ids: Vec<String>,
    values: Vec<ArrayRef>,
}

impl Groups {
    /// The ids, in the order of the values.
    pub fn ids(&self) -> &[String] {
        &self.ids
    }

    /// A group in words: `model` is gpt and `size` is 3.
    pub fn label(&self, group: usize) -> Result<String, StepError> {
        let mut parts = Vec::new();
        for (field, values) in self.fields.iter().zip(&self.values) {
            let text = cast_array(&values.slice(group, 1), &DataType::Utf8)?;
            let text = text.as_string::<i32>();
            let value = if text.is_null(0) { "missing" } else { text.value(0) };
            parts.push(format!("`{}` is {value}", field.name()));
        }
        Ok(parts.join(" and "))
    }

    /// Joins the tables of the groups (a batch of the schema `own` for each, in the order of the
    /// groups), with the values of the group in front. Texts in the columns `worded` begin with the
    /// group.
    pub fn united(
        &self,
        tables: &[RecordBatch],
        own: &SchemaRef,
        worded: &[&str],
    ) -> Result<RecordBatch, StepError> {
        let fields: Vec<FieldRef> =
            self.fields.iter().chain(own.fields()).map(Arc::clone).collect();
        let schema = Arc::new(Schema::new(fields));
        let mut united = Vec::with_capacity(tables.len());
        for (group, table) in tables.iter().take(self.ids.len()).enumerate() {
            let of = UInt32Array::from(vec![group as u32; table.num_rows()]);
            let mut columns = Vec::new();
            for values in &self.values {
                columns.push(take(values, &of, None)?);
            }
            let label = self.label(group)?;
            for (field, column) in own.fields().iter().zip(table.columns()) {
                columns.push(match worded.contains(&field.name().as_str()) {
                    true => Arc::new(prefixed(column, &label)?) as ArrayRef,
                    false => Arc::clone(column),
                });
            }
            united.push(RecordBatch::try_new(Arc::clone(&schema), columns)?);
        }
        Ok(concat_batches(&schema, &united)?)
    }
}

/// Texts behind the group that they are about.
fn prefixed(texts: &ArrayRef, label: &str) -> Result<StringArray, StepError> {
    let texts = cast_array(texts, &DataType::Utf8)?;
    let texts = texts.as_string::<i32>().iter();
    Ok(texts.map(|text| text.map(|text| format!("Where {label}: {text}"))).collect())
}

/// The group id of each row is read with this expression, as text.
pub fn as_text(id: Expr) -> Expr {
    cast(id, DataType::Utf8)
}
