//! `describe`: summary statistics per column and group.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Float64Builder, Int64Array, RecordBatch, StringArray,
};
use arrow::datatypes::{DataType, FieldRef, Float64Type, Int64Type, Schema};
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use galeras_causal::tail::t_quantile;
use galeras_operator::columns::{is_number, require_column};
use galeras_operator::far_numbers::is_far;
use galeras_operator::{
    ArgError, BindContext, BoundStep, Descriptor, Effect, Grain, INPUT, InputPorts, Inputs,
    LowerContext, Lowering, MAIN, Operator, Port, Ports, Reads, StepError, TableSchema, TableStep,
    TypedOperator, args_schema, describe, take_input,
};
use galeras_workflow::code::Code;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The numeric columns to describe.
    #[schemars(length(min = 1))]
    columns: Vec<String>,
    /// Columns whose combinations are described separately.
    #[serde(default)]
    by: Vec<String>,
    /// The column with the cluster that a row belongs to, such as a repository: rows of one cluster
    /// need not be independent of each other.
    #[serde(default)]
    cluster: Option<String>,
    /// 1 - alpha is the coverage of the intervals.
    #[serde(default = "five_percent")]
    #[schemars(range(min = 0.0, max = 1.0))]
    alpha: f64,
}

fn five_percent() -> f64 {
    0.05
}

struct DescribeOperator;

/// The operator.
pub const DESCRIBE: &dyn Operator = &DescribeOperator;

impl TypedOperator for DescribeOperator {
    type Args = Args;

    const DESCRIPTOR: Descriptor = Descriptor {
        name: "describe",
        version: 3,
        grain: Grain::of::<BoundDescribe, _>(),
        effect: Effect::Pure,
        inputs: InputPorts::One,
        doc: include_str!("describe.md"),
        args_schema: args_schema::<Args>,
    };

    fn bind(args: Args, cx: &BindContext) -> Result<Box<dyn BoundStep>, Vec<ArgError>> {
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
            if is_result(name) {
                let message = format!("`{name}` is the name of a column of the result");
                errors.push(ArgError::new(format!("by[{at}]"), Code::DuplicateColumn, message));
            }
        }
        if let Some(cluster) = &args.cluster {
            let plain = |t: &DataType| !t.is_nested();
            require_column(cx, "cluster", cluster, "a plain value", plain, &mut errors);
        }
        if !(args.alpha > 0.0 && args.alpha < 1.0) {
            let message = "`alpha` must be between 0 and 1";
            errors.push(ArgError::new("alpha", Code::OutOfRange, message));
        }
        ArgError::none(errors)?;
        let input = cx.input();
        let mut fields: Vec<FieldRef> =
            args.by.iter().filter_map(|name| input.field(name).cloned()).collect();
        fields.push(describe("column", DataType::Utf8, false, "the described column", None));
        for (name, data_type, about, _) in STATISTICS {
            fields.push(describe(name, data_type.clone(), true, about, None));
            if *name == "std" {
                let float = |(name, about)| describe(name, DataType::Float64, true, about, None);
                fields.extend(INTERVAL.map(float));
            }
        }
        if args.cluster.is_some() {
            let about = "clusters with a value";
            fields.push(describe(CLUSTERS, DataType::Int64, true, about, Some("clusters")));
        }
        let mut key: Vec<&str> = args.by.iter().map(String::as_str).collect();
        key.push("column");
        let table = TableSchema::default().with(&fields).keyed(&key);
        let ports = vec![Port::new(MAIN, table)];
        let long = |name: &&String| {
            let field = input.field(name);
            field.is_some_and(|f| matches!(f.data_type(), DataType::Int64 | DataType::UInt64))
        };
        let whole = args.columns.iter().filter(long).cloned().collect();
        Ok(Box::new(BoundDescribe { args, ports, whole }))
    }
}

struct DescribedValue {
    /// Unchanged for 64-bit integers, some of which are not exact as doubles; otherwise a double.
    exact: String,
    double: String,
}

/// A column of the result: name, type, description, and the SQL that computes it from a value.
type Statistic = (&'static str, DataType, &'static str, fn(&DescribedValue) -> String);

const STATISTICS: &[Statistic] = &[
    ("n", DataType::Int64, "values that are not null", |x| format!("count({})", x.double)),
    ("mean", DataType::Float64, "arithmetic mean", |x| format!("avg({})", x.exact)),
    ("std", DataType::Float64, "sample standard deviation (divisor n - 1)", |x| {
        format!("stddev({})", x.exact)
    }),
    ("min", DataType::Float64, "smallest value", |x| format!("min({})", x.double)),
    ("q1", DataType::Float64, "first quartile", |x| quantile(x, "0.25")),
    ("median", DataType::Float64, "second quartile", |x| quantile(x, "0.5")),
    ("q3", DataType::Float64, "third quartile", |x| quantile(x, "0.75")),
    ("max", DataType::Float64, "largest value", |x| format!("max({})", x.double)),
];

/// The columns after `std`: computed from the statistics, not by SQL.
const INTERVAL: [(&str, &str); 3] = [
    ("standard_error", "standard error of the mean"),
    ("ci_low", "lower end of the mean's interval"),
    ("ci_high", "upper end of the mean's interval"),
];
/// The column with the number of clusters, with the argument `cluster`.
const CLUSTERS: &str = "n_clusters";

/// The result has a column of this name, so groups must have other ones.
fn is_result(name: &str) -> bool {
    let computed = STATISTICS.iter().map(|statistic| statistic.0);
    let mut columns = computed.chain(INTERVAL.map(|(name, _)| name)).chain(["column", CLUSTERS]);
    columns.any(|column| column == name)
}

/// The positions of `n`, `mean`, `std`, `min` and `max` among the statistics.
const N: usize = 0;
const MEAN: usize = 1;
const STD: usize = 2;
const MIN: usize = 3;
const MAX: usize = 7;
/// The number of values per column that follow the statistics of all columns: those for
/// [`corrected_squares`].
const OF_CLUSTERS: usize = 5;

fn quantile(value: &DescribedValue, share: &str) -> String {
    format!("percentile_cont({share}) WITHIN GROUP (ORDER BY {})", value.double)
}

#[derive(Debug)]
struct BoundDescribe {
    args: Args,
    ports: Vec<Port>,
    /// The columns with 64-bit integers.
    whole: BTreeSet<String>,
}

impl BoundStep for BoundDescribe {
    fn args(&self) -> Value {
        serde_json::json!(self.args)
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn reads(&self, _: &str) -> Reads {
        let Args { columns, by, cluster, .. } = &self.args;
        Reads::Columns(columns.iter().chain(by).chain(cluster).cloned().collect())
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Table(self)
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

impl TableStep for BoundDescribe {
    fn lower<'a>(
        &'a self,
        cx: &'a LowerContext,
        mut inputs: Inputs,
    ) -> BoxFuture<'a, Result<Ports, StepError>> {
        Box::pin(async move {
            let input = take_input(&mut inputs, INPUT)?;
            cx.session.register_table(INPUT, input.into_view())?;
            if let Some(cluster) = &self.args.cluster {
                let query = format!("SELECT 1 FROM {INPUT} WHERE {} IS NULL", quoted(cluster));
                let missing = cx.session.sql(&query).await?.count().await?;
                if missing > 0 {
                    let message = format!("{missing} rows have no cluster: `{cluster}` is null");
                    return Err(StepError::new(message)
                        .help("leave them out with `sql` or `validate`, or name them"));
                }
            }
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

/// The columns that one query describes: it keeps the values of each in memory for the quartiles.
const TOGETHER: usize = 16;

impl BoundDescribe {
    /// The statistics of these columns in one row per group; with clusters, followed by each
    /// column's cluster sums.
    fn query(&self, names: &[String]) -> String {
        let by: Vec<String> = self.args.by.iter().map(|name| quoted(name)).collect();
        let group =
            if by.is_empty() { String::new() } else { format!("GROUP BY {}", by.join(", ")) };
        let value = |name: &String| {
            let double = format!("CAST({} AS DOUBLE)", quoted(name));
            let exact = if self.whole.contains(name) { quoted(name) } else { double.clone() };
            DescribedValue { exact, double }
        };
        let values: Vec<DescribedValue> = names.iter().map(value).collect();
        let statistics = values.iter().enumerate().flat_map(|(at, value)| {
            STATISTICS.iter().enumerate().map(move |(which, statistic)| {
                format!("{} AS \"__{at}_{which}\"", (statistic.3)(value))
            })
        });
        let selected: Vec<String> = by.iter().cloned().chain(statistics).collect();
        let statistics = format!("SELECT {} FROM {INPUT} {group}", selected.join(", "));
        let Some(cluster) = &self.args.cluster else { return statistics };
        // For each cluster, the sum of distances from the group's mean, squared and added.
        let cluster = quoted(cluster);
        let of = |table: &str| -> Vec<String> {
            by.iter().map(|name| format!("{table}.{name}")).collect()
        };
        let same = |left: &str, right: &str| match by.is_empty() {
            true => "TRUE".to_owned(),
            false => of(left)
                .iter()
                .zip(of(right))
                .map(|(left, right)| format!("({left} IS NOT DISTINCT FROM {right})"))
                .collect::<Vec<_>>()
                .join(" AND "),
        };
        let listed = |columns: Vec<String>, more: Vec<String>| {
            columns.into_iter().chain(more).collect::<Vec<_>>().join(", ")
        };
        let positions = 0..names.len();
        let sums = positions.clone().map(|at| {
            let value = format!("i.{}", quoted(&names[at]));
            let mean = format!("s.\"__{at}_{MEAN}\"");
            let distance = format!("CAST({value} AS DOUBLE) - {mean}");
            let distance = match self.whole.contains(&names[at]) {
                // Beyond 2^53 the mean is a whole number, and doubles are too coarse for the value.
                true => format!(
                    "CASE WHEN abs({mean}) >= 9007199254740992 THEN CAST(CAST({value} AS \
                     DECIMAL(20, 0)) - CAST({mean} AS DECIMAL(20, 0)) AS DOUBLE) ELSE {distance} END"
                ),
                false => distance,
            };
            format!("CAST(count({value}) AS DOUBLE) AS \"__c{at}\", sum({distance}) AS \"__d{at}\"")
        });
        let squares = positions.clone().map(|at| {
            format!(
                "sum(\"__d{at}\" * \"__d{at}\") AS \"__q{at}\", \
                 count(CASE WHEN \"__c{at}\" > 0 THEN 1 END) AS \"__g{at}\", \
                 sum(\"__d{at}\") AS \"__e{at}\", sum(\"__c{at}\" * \"__d{at}\") AS \"__p{at}\", \
                 sum(\"__c{at}\" * \"__c{at}\") AS \"__k{at}\""
            )
        });
        let behind = positions
            .flat_map(|at| ["q", "g", "e", "p", "k"].map(|which| format!("q.\"__{which}{at}\"")));
        format!(
            "WITH s AS ({statistics}), \
             d AS (SELECT {}, i.{cluster} AS \"__cluster\" FROM {INPUT} i JOIN s ON {} GROUP BY {}), \
             q AS (SELECT {} FROM d {group}) \
             SELECT s.*, {} FROM s JOIN q ON {}",
            listed(of("i"), sums.collect()),
            same("i", "s"),
            listed(of("i"), vec![format!("i.{cluster}")]),
            listed(by.clone(), squares.collect()),
            behind.collect::<Vec<_>>().join(", "),
            same("s", "q"),
        )
    }

    /// A table for each described column, from the wide row of statistics.
    fn rows(&self, wide: &RecordBatch, names: &[String]) -> Result<Vec<RecordBatch>, StepError> {
        let groups = self.args.by.len();
        let table = self.ports[0].table.stored();
        let fields = wide.schema_ref().fields()[..groups].iter().cloned();
        let fields = fields.chain(table.fields()[groups..].iter().cloned());
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let tables = names.iter().enumerate().map(|(at, name)| -> Result<_, StepError> {
            let first = groups + at * STATISTICS.len();
            let statistics = &wide.columns()[first..first + STATISTICS.len()];
            let behind = groups + names.len() * STATISTICS.len() + OF_CLUSTERS * at;
            let clusters = self.args.cluster.as_ref().map(|_| {
                let sums = &wide.columns()[behind..behind + OF_CLUSTERS];
                (corrected_squares(sums, statistics), sums[1].as_primitive::<Int64Type>())
            });
            let mut columns = wide.columns()[..groups].to_vec();
            columns.push(Arc::new(StringArray::from(vec![name.as_str(); wide.num_rows()])));
            columns.extend_from_slice(&statistics[..=STD]);
            let given = clusters.as_ref().map(|(squares, clusters)| (squares, *clusters));
            columns.extend(self.intervals(statistics, given));
            columns.extend_from_slice(&statistics[STD + 1..]);
            if let Some((_, clusters)) = clusters {
                columns.push(Arc::new(clusters.clone()));
            }
            Ok(RecordBatch::try_new(Arc::clone(&schema), columns)?)
        });
        tables.collect()
    }

    /// Standard errors and the ends of intervals for each group; null with fewer than two rows or
    /// clusters. With clusters, the sums of their squared distances and their numbers are given.
    fn intervals(
        &self,
        statistics: &[ArrayRef],
        clusters: Option<(&Float64Array, &Int64Array)>,
    ) -> [ArrayRef; 3] {
        let n = statistics[N].as_primitive::<Int64Type>();
        let mean = statistics[MEAN].as_primitive::<Float64Type>();
        let std = statistics[STD].as_primitive::<Float64Type>();
        let mut ends: [Float64Builder; 3] = Default::default();
        for at in 0..n.len() {
            let rows = n.value(at) as f64;
            let (error, degrees) = match clusters {
                None => (std.value(at) / rows.sqrt(), rows - 1.0),
                Some((squares, clusters)) => {
                    let clusters = clusters.value(at) as f64;
                    let correction = clusters / (clusters - 1.0);
                    ((correction * squares.value(at)).sqrt() / rows, clusters - 1.0)
                }
            };
            let known = mean.is_valid(at) && rows >= 2.0 && degrees >= 1.0;
            let interval = known.then(|| {
                let reach = t_quantile(1.0 - 0.5 * self.args.alpha, degrees) * error;
                [error, mean.value(at) - reach, mean.value(at) + reach]
            });
            for (which, end) in ends.iter_mut().enumerate() {
                end.append_option(interval.map(|values| values[which]));
            }
        }
        ends.map(|mut end| Arc::new(end.finish()) as ArrayRef)
    }
}

/// The sum of squares of each group, corrected for the rounding of the mean, which matters far from
/// zero. The sums over the group's clusters are: squared distances from the mean, the number of
/// clusters, distances (zero except for the rounding), distances times numbers of values, and squared
/// numbers of values.
fn corrected_squares(sums: &[ArrayRef], statistics: &[ArrayRef]) -> Float64Array {
    let [squares, distances, products, counts] =
        [0, 2, 3, 4].map(|at| sums[at].as_primitive::<Float64Type>());
    let n = statistics[N].as_primitive::<Int64Type>();
    let [min, max] = [MIN, MAX].map(|at| statistics[at].as_primitive::<Float64Type>());
    let squares = squares.iter().enumerate().map(|(at, squares)| {
        if !is_far(min.value(at), max.value(at)) {
            return squares;
        }
        let off = distances.value(at) / n.value(at) as f64;
        let (products, counts) = (products.value(at), counts.value(at));
        squares.map(|squares| squares - off * (2.0 * products - off * counts))
    });
    squares.collect()
}
