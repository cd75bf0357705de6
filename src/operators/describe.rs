//! `describe`: summary statistics per column and group.

use std::collections::BTreeMap;

use arrow::datatypes::{DataType, FieldRef};
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
    /// Columns whose combinations are described apart.
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
                if STATISTICS.iter().any(|(s, _, _)| s == name) || name == "column" {
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
            for (name, data_type, description) in STATISTICS {
                fields.push(describe(name, data_type.clone(), true, description, None));
            }
            let mut key: Vec<&str> = args.by.iter().map(String::as_str).collect();
            key.push("column");
            let table = TableSchema::default().with(&fields).keyed(&key);
            Ok(Box::new(BoundDescribe { args, ports: vec![Port::new(MAIN, table)] })
                as Box<dyn BoundStep>)
        })
    }
}

/// The statistics: name, type, description.
const STATISTICS: &[(&str, DataType, &str)] = &[
    ("n", DataType::Int64, "values that are not null"),
    ("mean", DataType::Float64, "arithmetic mean"),
    ("std", DataType::Float64, "sample standard deviation (divisor n - 1)"),
    ("min", DataType::Float64, "smallest value"),
    ("q1", DataType::Float64, "first quartile"),
    ("median", DataType::Float64, "second quartile"),
    ("q3", DataType::Float64, "third quartile"),
    ("max", DataType::Float64, "largest value"),
];

#[derive(Debug)]
struct BoundDescribe {
    args: Args,
    ports: Vec<Port>,
}

impl BoundStep for BoundDescribe {
    fn args(&self) -> Value {
        serde_json::json!(self.args)
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
            let by: Vec<String> = self.args.by.iter().map(|name| quoted(name)).collect();
            let group =
                if by.is_empty() { String::new() } else { format!("GROUP BY {}", by.join(", ")) };
            let by = by.iter().map(|name| format!("{name}, ")).collect::<String>();
            let selects = self.args.columns.iter().map(|name| {
            let label = name.replace('\'', "''");
            let value = format!("CAST({} AS DOUBLE)", quoted(name));
            format!(
                "SELECT {by}'{label}' AS \"column\", count({value}) AS n, avg({value}) AS mean, \
                 stddev({value}) AS std, min({value}) AS min, \
                 percentile_cont(0.25) WITHIN GROUP (ORDER BY {value}) AS q1, \
                 percentile_cont(0.5) WITHIN GROUP (ORDER BY {value}) AS median, \
                 percentile_cont(0.75) WITHIN GROUP (ORDER BY {value}) AS q3, \
                 max({value}) AS max FROM {INPUT} {group}"
            )
        });
            let query = selects.collect::<Vec<_>>().join(" UNION ALL ");
            Ok(vec![(MAIN, cx.session.sql(&query).await?)])
        })
    }
}
