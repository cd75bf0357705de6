//! `describe`: summary statistics per column and group.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Float64Builder, Int64Array, RecordBatch, StringArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, Float64Type, Int64Type, Schema};
use datafusion::dataframe::DataFrame;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use galeras_base::prose::{intervals, name_list};
use galeras_causal::tail::t_quantile;
use galeras_causal::{
    clustered_interval, exact_clustered_interval, exact_interval, logit_interval, wilson_interval,
};
use galeras_operator::columns::{is_number, is_text, require_column};
use galeras_operator::far_numbers::is_far;
use galeras_operator::{
    ArgError, BindContext, BoundStep, Descriptor, Effect, Grain, INPUT, InputPorts, Inputs,
    LowerContext, Lowering, MAIN, Operator, Port, Ports, Reads, StepError, TableSchema, TableStep,
    Tell, TypedOperator, args_schema, describe, take_input,
};
use galeras_workflow::code::Code;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The columns to describe: numbers, or texts of few different values, of which the shares are
    /// described.
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
    /// The interval of a rate, and of a mean of values from 0 to 1: `score`, or `exact`, which
    /// covers at least 1 - alpha if rows are independent.
    #[serde(default, skip_serializing_if = "RateInterval::is_score")]
    interval: RateInterval,
}

/// The interval of a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum RateInterval {
    /// Wilson's; with clusters, that of the logit.
    #[default]
    Score,
    /// Clopper and Pearson's; with clusters, Korn and Graubard's.
    Exact,
}

impl RateInterval {
    /// For serde, which hands over a reference.
    fn is_score(&self) -> bool {
        *self == Self::Score
    }
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
        version: 4,
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
            let fits = |t: &DataType| is_number(t) || is_text(t);
            require_column(cx, &path, name, "a number or a text", fits, &mut errors);
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
        let text = |name: &&String| input.field(name).is_some_and(|f| is_text(f.data_type()));
        let texts = args.columns.iter().filter(text).cloned().collect();
        Ok(Box::new(BoundDescribe { args, ports, whole, texts }))
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

/// The kind of a column, which decides the interval of its mean. All groups of a column are of one
/// kind, so that a group without failures is a rate of 0, and a group without errors a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    /// Every value is 0 or 1: the mean is a proportion.
    Proportion,
    /// Every value is between 0 and 1.
    Unit,
    Unbounded,
}

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
    /// The columns of text.
    texts: BTreeSet<String>,
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

    fn intervals(&self, _: &str) -> Option<String> {
        let Args { alpha, interval, cluster, .. } = &self.args;
        let rates = match (interval, cluster) {
            (RateInterval::Score, None) => "Wilson's",
            (RateInterval::Score, Some(_)) => "of the logit",
            (RateInterval::Exact, None) => "Clopper and Pearson's",
            (RateInterval::Exact, Some(_)) => "Korn and Graubard's",
        };
        let method = format!("{rates} for rates, Student's t for other means");
        Some(intervals(*alpha, &method, cluster.as_deref()))
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
            if let Some(warning) = self.missing_values(cx).await? {
                (cx.tell)(Tell::Warning(warning));
            }
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
            let columns = self.described(cx).await?;
            for names in columns.chunks(TOGETHER) {
                let outside = cx.session.sql(&outside_query(names)).await?.collect().await?;
                let scales = scales(&outside, names.len());
                let wide = cx.session.sql(&self.query(names)).await?.collect().await?;
                for batch in wide {
                    parts.extend(self.rows(&batch, names, &scales)?);
                }
            }
            if parts.is_empty() {
                parts.push(RecordBatch::new_empty(self.ports[0].table.stored()));
            }
            let table = cx.session.read_batches(parts)?;
            if let Some(warning) = self.unequal_arms(cx, table.clone()).await? {
                (cx.tell)(Tell::Warning(warning));
            }
            Ok(vec![(MAIN, table)])
        })
    }
}

/// For each column, the number of values outside of 0 to 1, and of those other than 0 and 1. NaN is
/// greater than every number.
fn outside_query(names: &[DescribedColumn]) -> String {
    let counts = names.iter().flat_map(|name| {
        let value = format!("CAST({} AS DOUBLE)", name.number(""));
        [format!("{value} < 0 OR {value} > 1"), format!("{value} <> 0 AND {value} <> 1")]
            .map(|test| format!("count(CASE WHEN {test} THEN 1 END)"))
    });
    let counts = counts.enumerate().map(|(at, count)| format!("{count} AS \"__{at}\""));
    format!("SELECT {} FROM {INPUT}", counts.collect::<Vec<_>>().join(", "))
}

/// The kinds of the columns, from the row of [`outside_query`].
fn scales(outside: &[RecordBatch], columns: usize) -> Vec<Scale> {
    let row = outside.iter().find(|batch| batch.num_rows() > 0);
    let count =
        |at: usize| row.map_or(0, |row| row.column(at).as_primitive::<Int64Type>().value(0));
    let scale = |column: usize| match (count(2 * column), count(2 * column + 1)) {
        (0, 0) => Scale::Proportion,
        (0, _) => Scale::Unit,
        _ => Scale::Unbounded,
    };
    (0..columns).map(scale).collect()
}

/// The columns that one query describes: it keeps the values of each in memory for the quartiles.
const TOGETHER: usize = 16;

/// The columns of `prompt` and `generate` whose values are compared on the same data points.
const ARMS: [&str; 2] = ["treatment", "model"];

/// A text with more different values is not described.
const MOST_VALUES: usize = 100;

/// A column of the result.
struct DescribedColumn {
    /// Its name in the result.
    name: String,
    /// The column of the input.
    source: String,
    /// The value of a text whose share is described.
    text: Option<String>,
}

impl DescribedColumn {
    /// The SQL of its value; of a text 1 where the column has it, else 0. `table` is the prefix of
    /// the column.
    fn number(&self, table: &str) -> String {
        let source = format!("{table}{}", quoted(&self.source));
        match &self.text {
            None => source,
            Some(text) => format!(
                "CASE WHEN {source} IS NOT NULL THEN CASE WHEN {source} = '{}' THEN 1.0 ELSE 0.0 \
                 END END",
                text.replace('\'', "''")
            ),
        }
    }
}

impl BoundDescribe {
    /// The columns that are described: those of numbers, and of texts one for each value.
    async fn described(&self, cx: &LowerContext) -> Result<Vec<DescribedColumn>, StepError> {
        let mut columns = Vec::new();
        for source in &self.args.columns {
            if !self.texts.contains(source) {
                let (name, source) = (source.clone(), source.clone());
                columns.push(DescribedColumn { name, source, text: None });
                continue;
            }
            let value = format!("CAST({} AS VARCHAR)", quoted(source));
            let query = format!(
                "SELECT DISTINCT {value} AS value FROM {INPUT} WHERE {value} IS NOT NULL \
                 ORDER BY value LIMIT {}",
                MOST_VALUES + 1
            );
            let before = columns.len();
            for batch in cx.session.sql(&query).await?.collect().await? {
                let values = cast(batch.column(0), &DataType::Utf8)?;
                for text in values.as_string::<i32>().iter().flatten() {
                    let (name, text) = (format!("{source} = {text}"), Some(text.to_owned()));
                    columns.push(DescribedColumn { name, source: source.clone(), text });
                }
            }
            if columns.len() - before > MOST_VALUES {
                let message = format!("`{source}` has more than {MOST_VALUES} different texts");
                return Err(StepError::new(message)
                    .help("describe a number of it, or group its values with `sql` first"));
            }
        }
        Ok(columns)
    }

    /// The warning that columns have no value in some rows, or in none.
    async fn missing_values(&self, cx: &LowerContext) -> Result<Option<String>, StepError> {
        let names = &self.args.columns;
        let counts = names.iter().map(|name| format!("count({})", quoted(name)));
        let counts = ["count(*)".to_owned()].into_iter().chain(counts).enumerate();
        let counts: Vec<String> =
            counts.map(|(at, count)| format!("{count} AS \"__{at}\"")).collect();
        let query = format!("SELECT {} FROM {INPUT}", counts.join(", "));
        let counts = cx.session.sql(&query).await?.collect().await?;
        let Some(counts) = counts.iter().find(|batch| batch.num_rows() > 0) else {
            return Ok(None);
        };
        let count = |at: usize| counts.column(at).as_primitive::<Int64Type>().value(0);
        let rows = count(0);
        if rows == 0 {
            return Ok(Some(format!("there are no rows: no mean of {}", name_list(names))));
        }
        let missing =
            names.iter().enumerate().filter_map(|(at, name)| match rows - count(1 + at) {
                0 => None,
                nulls if nulls == rows => {
                    Some(format!("`{name}` is null in all {rows} rows and has no mean"))
                }
                nulls => Some(format!("`{name}` is null in {nulls} of {rows} rows")),
            });
        let missing: Vec<String> = missing.collect();
        let warning = format!("means leave out null values: {}", missing.join(", "));
        Ok((!missing.is_empty()).then_some(warning))
    }

    /// The warning that arms have different numbers of values, so that some data points count in one
    /// and not in another. Groups by other columns may be of any size.
    async fn unequal_arms(
        &self,
        cx: &LowerContext,
        described: DataFrame,
    ) -> Result<Option<String>, StepError> {
        let is_arm = |name: &&String| ARMS.contains(&name.as_str());
        let (arms, others): (Vec<&String>, Vec<&String>) = self.args.by.iter().partition(is_arm);
        if arms.is_empty() {
            return Ok(None);
        }
        cx.session.register_table("described", described.into_view())?;
        let others: String = others.iter().map(|name| format!(", {}", quoted(name))).collect();
        let query = format!(
            "SELECT \"column\", min(n), max(n) FROM described GROUP BY \"column\"{others} \
             HAVING min(n) <> max(n) ORDER BY 1, 2, 3 LIMIT 1"
        );
        let found = cx.session.sql(&query).await?.collect().await?;
        let Some(row) = found.iter().find(|batch| batch.num_rows() > 0) else { return Ok(None) };
        let name = cast(row.column(0), &DataType::Utf8)?;
        let [least, most] = [1, 2].map(|at| row.column(at).as_primitive::<Int64Type>().value(0));
        Ok(Some(format!(
            "`{}` has {least} to {most} values by {}: some data points are missing in some groups, and \
             the means are not of the same ones; keep those that all groups have, or see why the \
             others are missing",
            name.as_string::<i32>().value(0),
            name_list(&arms),
        )))
    }

    /// The statistics of these columns in one row per group; with clusters, followed by each
    /// column's cluster sums.
    fn query(&self, names: &[DescribedColumn]) -> String {
        let by: Vec<String> = self.args.by.iter().map(|name| quoted(name)).collect();
        let group =
            if by.is_empty() { String::new() } else { format!("GROUP BY {}", by.join(", ")) };
        let value = |column: &DescribedColumn| {
            let double = format!("CAST({} AS DOUBLE)", column.number(""));
            let is_whole = self.whole.contains(&column.source);
            let exact = if is_whole { quoted(&column.source) } else { double.clone() };
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
            let value = names[at].number("i.");
            let mean = format!("s.\"__{at}_{MEAN}\"");
            let distance = format!("CAST({value} AS DOUBLE) - {mean}");
            let distance = match self.whole.contains(&names[at].source) {
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
    fn rows(
        &self,
        wide: &RecordBatch,
        names: &[DescribedColumn],
        scales: &[Scale],
    ) -> Result<Vec<RecordBatch>, StepError> {
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
            columns.push(Arc::new(StringArray::from(vec![name.name.as_str(); wide.num_rows()])));
            columns.extend_from_slice(&statistics[..=STD]);
            let given = clusters.as_ref().map(|(squares, clusters)| (squares, *clusters));
            columns.extend(self.intervals(scales[at], statistics, given));
            columns.extend_from_slice(&statistics[STD + 1..]);
            if let Some((_, clusters)) = clusters {
                columns.push(Arc::new(clusters.clone()));
            }
            Ok(RecordBatch::try_new(Arc::clone(&schema), columns)?)
        });
        tables.collect()
    }

    /// Standard errors and the ends of intervals for each group; null with fewer than two rows or
    /// clusters, but for the interval of a proportion of one row. With clusters, the sums of their
    /// squared distances and their numbers are given.
    fn intervals(
        &self,
        scale: Scale,
        statistics: &[ArrayRef],
        clusters: Option<(&Float64Array, &Int64Array)>,
    ) -> [ArrayRef; 3] {
        let (alpha, exact) = (self.args.alpha, self.args.interval == RateInterval::Exact);
        let n = statistics[N].as_primitive::<Int64Type>();
        let mean = statistics[MEAN].as_primitive::<Float64Type>();
        let std = statistics[STD].as_primitive::<Float64Type>();
        let mut columns: [Float64Builder; 3] = Default::default();
        for at in 0..n.len() {
            let (rows, mean) = (n.value(at) as f64, mean.is_valid(at).then(|| mean.value(at)));
            let (error, degrees) = match clusters {
                None => (std.value(at) / rows.sqrt(), rows - 1.0),
                Some((squares, clusters)) => {
                    let clusters = clusters.value(at) as f64;
                    let correction = clusters / (clusters - 1.0);
                    ((correction * squares.value(at)).sqrt() / rows, clusters - 1.0)
                }
            };
            let error = mean.filter(|_| rows >= 2.0 && degrees >= 1.0).map(|_| error);
            let ends = mean.and_then(|mean| {
                // Values from 0 to 1 that are all 0 or all 1 are a rate in this group.
                let is_rate = scale == Scale::Proportion
                    || (scale == Scale::Unit && (mean == 0.0 || mean == 1.0));
                if is_rate && clusters.is_none() {
                    let interval = if exact { exact_interval } else { wilson_interval };
                    return Some(interval(mean, rows, alpha));
                }
                let error = error?;
                if exact && scale != Scale::Unbounded {
                    return Some(exact_clustered_interval(mean, error, rows, degrees + 1.0, alpha));
                }
                if is_rate {
                    return Some(clustered_interval(mean, error, rows, degrees + 1.0, alpha));
                }
                let reach = t_quantile(1.0 - 0.5 * alpha, degrees) * error;
                let ends = (mean - reach, mean + reach);
                let beyond = error > 0.0 && (ends.0 < 0.0 || ends.1 > 1.0);
                Some(match scale == Scale::Unit && beyond {
                    true => logit_interval(mean, error, degrees, alpha),
                    false => ends,
                })
            });
            let values = [error, ends.map(|ends| ends.0), ends.map(|ends| ends.1)];
            for (column, value) in columns.iter_mut().zip(values) {
                column.append_option(value);
            }
        }
        columns.map(|mut column| Arc::new(column.finish()) as ArrayRef)
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
