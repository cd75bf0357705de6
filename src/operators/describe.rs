//! `describe`: summary statistics per column and group.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{RecordBatch, StringArray};
use arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::dataframe::DataFrame;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::columns::{is_number, require_column};
use crate::code::Code;
use crate::operator::{
    ArgError, BindContext, BoundStep, Descriptor, Effect, Grain, INPUT, InputPorts, LowerContext,
    Lowering, MAIN, Operator, Port, Ports, Reads, StepError, TableSchema, TableStep, args_schema,
    describe, parse_args,
};

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The numeric columns to describe.
    #[schemars(length(min = 1))]
    columns: Vec<String>,
    /// Columns whose combinations are described separately.
    #[serde(default)]
    by: Vec<String>,
}

/// The operator.
pub(super) struct DescribeOperator;

const DOC: &str = r#"Summarise numeric columns: count, mean, deviation, quartiles.

## What it does
Gives one row per column (and per combination of the `by` columns) with `n` (values that are
not null), `mean`, `std` (sample standard deviation, divisor n - 1), `min`, `q1`, `median`,
`q3` (linear interpolation, as NumPy's default) and `max`. All are exact: they do not depend on
the order of rows or the number of threads.

## Example
```yaml
methods:
  op: methods
  with: { corpus: python-stdlib, include: ["json/*.py"] }
features:
  op: ast
  from: methods
table:
  op: describe
  from: features
  with: { columns: [nloc, complexity], by: [path] }
```

## Cost and reuse
Runs as a whole, but only when one of the named columns has changed.
"#;

const DESCRIPTOR: Descriptor = Descriptor {
    name: "describe",
    version: 1,
    grain: Grain::of::<BoundDescribe, _>(),
    effect: Effect::Pure,
    inputs: InputPorts::One,
    doc: DOC,
    args_schema: args_schema::<Args>,
};

impl Operator for DescribeOperator {
    fn descriptor(&self) -> &'static Descriptor {
        &DESCRIPTOR
    }

    fn bind<'a>(
        &'a self,
        args: &'a Value,
        cx: &'a BindContext,
    ) -> BoxFuture<'a, Result<Box<dyn BoundStep>, Vec<ArgError>>> {
        Box::pin(async move {
            let args: Args = parse_args(args)?;
            let mut errors = Vec::new();
            for (at, name) in args.columns.iter().enumerate() {
                let path = format!("columns[{at}]");
                require_column(cx, &path, name, "a number", is_number, &mut errors);
                if args.columns[..at].contains(name) {
                    let message = format!("column `{name}` is named twice");
                    errors.push(ArgError::new(path, Code::DuplicateColumn, message));
                }
            }
            for (at, name) in args.by.iter().enumerate() {
                let path = format!("by[{at}]");
                require_column(cx, &path, name, "a plain value", |t| !t.is_nested(), &mut errors);
                if STATISTICS.iter().any(|statistic| statistic.name == name) || name == "column" {
                    let message = format!("`{name}` is the name of a column of the result");
                    errors.push(ArgError::new(format!("by[{at}]"), Code::DuplicateColumn, message));
                }
            }
            if !errors.is_empty() {
                return Err(errors);
            }
            let input = cx.input();
            let mut fields: Vec<FieldRef> =
                args.by.iter().filter_map(|name| input.field(name).cloned()).collect();
            fields.push(describe("column", DataType::Utf8, false, "the described column", None));
            for Statistic { name, data_type, about, .. } in STATISTICS {
                fields.push(describe(name, data_type.clone(), true, about, None));
            }
            let mut key: Vec<&str> = args.by.iter().map(String::as_str).collect();
            key.push("column");
            let table = TableSchema::default().with(&fields).keyed(&key);
            let resolved_args = serde_json::to_value(&args)
                .map_err(|error| vec![ArgError::new("", Code::WrongType, error.to_string())])?;
            let ports = vec![Port::new(MAIN, table)];
            Ok(Box::new(BoundDescribe { args, resolved_args, ports }) as Box<dyn BoundStep>)
        })
    }
}

/// A column of the result, and the SQL that computes it from a value.
struct Statistic {
    name: &'static str,
    data_type: DataType,
    about: &'static str,
    sql: fn(&str) -> String,
}

const fn statistic(
    name: &'static str,
    data_type: DataType,
    about: &'static str,
    sql: fn(&str) -> String,
) -> Statistic {
    Statistic { name, data_type, about, sql }
}

const STATISTICS: &[Statistic] = &[
    statistic("n", DataType::Int64, "values that are not null", |x| format!("count({x})")),
    statistic("mean", DataType::Float64, "arithmetic mean", |x| format!("avg({x})")),
    statistic("std", DataType::Float64, "sample standard deviation (divisor n - 1)", |x| {
        format!("stddev({x})")
    }),
    statistic("min", DataType::Float64, "smallest value", |x| format!("min({x})")),
    statistic("q1", DataType::Float64, "first quartile", |x| quantile(x, "0.25")),
    statistic("median", DataType::Float64, "second quartile", |x| quantile(x, "0.5")),
    statistic("q3", DataType::Float64, "third quartile", |x| quantile(x, "0.75")),
    statistic("max", DataType::Float64, "largest value", |x| format!("max({x})")),
];

fn quantile(value: &str, share: &str) -> String {
    format!("percentile_cont({share}) WITHIN GROUP (ORDER BY {value})")
}

#[derive(Debug)]
struct BoundDescribe {
    args: Args,
    /// The arguments with their defaults, for the key of the result.
    resolved_args: Value,
    ports: Vec<Port>,
}

impl BoundStep for BoundDescribe {
    fn args(&self) -> Value {
        self.resolved_args.clone()
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn reads(&self, _: &str) -> Reads {
        Reads::Columns(self.args.columns.iter().chain(&self.args.by).cloned().collect())
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Table(self)
    }
}

/// A name as a quoted SQL identifier.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

impl TableStep for BoundDescribe {
    fn lower<'a>(
        &'a self,
        cx: &'a LowerContext,
        mut inputs: BTreeMap<String, DataFrame>,
    ) -> BoxFuture<'a, Result<Ports, StepError>> {
        Box::pin(async move {
            let input = inputs
                .remove(INPUT)
                .ok_or_else(|| StepError::new("`describe` needs an input table"))?;
            cx.session.register_table(INPUT, input.into_view())?;
            let mut parts = Vec::new();
            for names in self.args.columns.chunks(TOGETHER) {
                let wide = cx.session.sql(&self.query(names)).await?.collect().await?;
                for batch in wide {
                    parts.extend(self.rows(&batch, names)?);
                }
            }
            if parts.is_empty() {
                parts.push(RecordBatch::new_empty(self.ports[0].table.stored()));
            }
            Ok(vec![(MAIN, cx.session.read_batches(parts)?)])
        })
    }
}

/// Columns that one query describes: the values of all of them are held for their quartiles.
const TOGETHER: usize = 16;

impl BoundDescribe {
    /// The statistics of these columns, side by side in one row per group.
    fn query(&self, names: &[String]) -> String {
        let by: Vec<String> = self.args.by.iter().map(|name| quoted(name)).collect();
        let group =
            if by.is_empty() { String::new() } else { format!("GROUP BY {}", by.join(", ")) };
        let statistics = names.iter().enumerate().flat_map(|(at, name)| {
            let value = format!("CAST({} AS DOUBLE)", quoted(name));
            STATISTICS.iter().enumerate().map(move |(which, statistic)| {
                format!("{} AS \"__{at}_{which}\"", (statistic.sql)(&value))
            })
        });
        let selected: Vec<String> = by.iter().cloned().chain(statistics).collect();
        format!("SELECT {} FROM {INPUT} {group}", selected.join(", "))
    }

    /// A table for each of the described columns, from the statistics side by side.
    fn rows(&self, wide: &RecordBatch, names: &[String]) -> Result<Vec<RecordBatch>, StepError> {
        let groups = self.args.by.len();
        let table = self.ports[0].table.stored();
        let fields = wide.schema_ref().fields()[..groups].iter().cloned();
        let fields = fields.chain(table.fields()[groups..].iter().cloned());
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let tables = names.iter().enumerate().map(|(at, name)| -> Result<_, StepError> {
            let first = groups + at * STATISTICS.len();
            let mut columns = wide.columns()[..groups].to_vec();
            columns.push(Arc::new(StringArray::from(vec![name.as_str(); wide.num_rows()])));
            columns.extend_from_slice(&wide.columns()[first..first + STATISTICS.len()]);
            Ok(RecordBatch::try_new(Arc::clone(&schema), columns)?)
        });
        tables.collect()
    }
}
