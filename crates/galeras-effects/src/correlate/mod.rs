//! `correlate`: correlations of outcomes with variables, by group.
//!
//! The arithmetic is in `galeras_causal::correlation`.

mod number_column;

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray};
use arrow::datatypes::DataType;
use datafusion::dataframe::DataFrame;
use datafusion::logical_expr::{Expr, cast};
use futures::StreamExt;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use self::number_column::NumberColumn;
use crate::checks::{ArgChecks, five_percent, is_plain};
use crate::columns::{LabelCodes, NONE, is_missing_text, label};
use crate::shared_columns::{self as columns, Answer, NoNumber, found, reason_of, status_of};
use crate::step::{Analysis, BoundAnalysis, required, resolved};
use crate::words::{ci, left_out};
use galeras_base::prose::{by_interval, count, four_digits, intervals, p_equals, thousands};
use galeras_causal::{
    ColumnRef, Correlation, CorrelationMethod, clustered_correlation, correlation, dense,
};
use galeras_operator::columns::is_number;
use galeras_operator::missing_values::MissingValues;
use galeras_operator::small_table::{
    TableColumn, TableRow, count_of, number, optional_count, record_batch, table_schema, text,
};
use galeras_operator::worker_threads::{on_thread, pool};
use galeras_operator::{
    ArgError, BindContext, BoundStep, Descriptor, Effect, Grain, InputPorts, LowerContext, MAIN,
    Operator, Port, Ports, StepError, TypedOperator, args_schema,
};
use galeras_sql::group_columns::{GroupColumns, check_by};
use galeras_sql::projection::in_key_order;
use galeras_sql::session::column;
use galeras_workflow::code::Code;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The columns that are correlated with each of `variables`.
    #[schemars(length(min = 1))]
    outcomes: Vec<String>,
    /// The other columns.
    #[schemars(length(min = 1))]
    variables: Vec<String>,
    /// Columns whose combinations are correlated separately.
    #[serde(default)]
    by: Vec<String>,
    /// The column with the cluster that a row belongs to, such as a prompt or a repository: rows of
    /// one cluster need not be independent of each other.
    #[serde(default)]
    cluster: Option<String>,
    /// The kind of correlation.
    #[serde(default)]
    method: MethodName,
    /// Intervals cover with probability `1 - alpha`.
    #[serde(default = "five_percent")]
    #[schemars(range(min = 0.0, max = 1.0))]
    alpha: f64,
    /// The treatment of rows without one of the two values: `refuse` the number, or `drop` and
    /// count the rows.
    #[serde(default)]
    missing: MissingValues,
}

#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", const_into_str)]
enum MethodName {
    /// Pearson's r: how linear the relation is.
    #[default]
    Pearson,
    /// Spearman's rank correlation: how monotone it is.
    Spearman,
    /// Kendall's tau-b: of pairs of rows, how many more agree than disagree in their order.
    Kendall,
}

impl MethodName {
    /// The name of the coefficient in a sentence.
    fn in_a_sentence(self) -> &'static str {
        match self {
            Self::Pearson => "Pearson's r",
            Self::Spearman => "Spearman's rho",
            Self::Kendall => "Kendall's tau-b",
        }
    }
}

struct CorrelateOperator;

/// The operator.
pub const CORRELATE: &dyn Operator = &CorrelateOperator;

impl TypedOperator for CorrelateOperator {
    type Args = Args;

    const DESCRIPTOR: Descriptor = Descriptor {
        name: "correlate",
        version: 4,
        grain: Grain::of::<BoundAnalysis<CorrelateAnalysis>, _>(),
        effect: Effect::Pure,
        inputs: InputPorts::One,
        doc: include_str!("doc.md"),
        args_schema: args_schema::<Args>,
    };

    fn bind(args: Args, cx: &BindContext) -> Result<Box<dyn BoundStep>, Vec<ArgError>> {
        let mut checks = ArgChecks::new(cx);
        checks.columns("outcomes", &args.outcomes, "a number", is_number);
        checks.columns("variables", &args.variables, "a number", is_number);
        let outcome = |name: &String| args.outcomes.contains(name).then_some("an outcome");
        checks.role("variables", &args.variables, Code::DuplicateColumn, outcome);
        if let Some(cluster) = &args.cluster {
            checks.column("cluster", cluster, "a plain value", is_plain);
        }
        let is_result =
            |name: &str| CorrelationRow::COLUMNS.iter().any(|column| column.name() == name);
        check_by(cx, &args.by, is_result, &mut checks.errors);
        checks.alpha(args.alpha);
        if !checks.errors.is_empty() {
            return Err(checks.errors);
        }
        let input = cx.input();
        let groups = GroupColumns::new(&args.by, &input);
        let produced = table_schema::<CorrelationRow>().keyed(&["outcome", "variable"]);
        let table = groups.in_front_of(&produced);
        Ok(Box::new(BoundAnalysis {
            resolved_args: resolved(&args)?,
            analysis: CorrelateAnalysis { args, groups },
            key: input.key,
            ports: vec![Port::new(MAIN, table)],
        }))
    }
}

/// A correlation; the columns come after those of `by`.
struct CorrelationRow {
    outcome: String,
    variable: String,
    method: MethodName,
    correlation: Answer<Correlation>,
    n: usize,
    n_clusters: Option<usize>,
    n_missing: usize,
    note: String,
}

impl TableRow for CorrelationRow {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        text("outcome", "the one column", |row| &row.outcome),
        text("variable", "the other column", |row| &row.variable),
        text("method", "pearson, spearman or kendall", |row| row.method.into_str()),
        text("status", "ok or refused", |row| status_of(&row.correlation)),
        columns::reason(|row| reason_of(&row.correlation)),
        number("coefficient", "the correlation", |row| Some(found(&row.correlation)?.coefficient)),
        number(
            "ci_low",
            "lower end of its confidence interval; null in very small samples",
            |row| Some(found(&row.correlation)?.interval?.0),
        ),
        number("ci_high", "upper end", |row| Some(found(&row.correlation)?.interval?.1)),
        number("p_value", "two-sided p-value of no correlation", |row| {
            Some(found(&row.correlation)?.p_value)
        }),
        count_of("n", "rows that were used", "rows", |row| row.n),
        optional_count(
            "n_clusters",
            "clusters of these rows; null without `cluster`",
            Some("clusters"),
            |row| row.n_clusters,
        ),
        count_of("n_missing", "rows of the group without one of the two values", "rows", |row| {
            row.n_missing
        }),
        columns::note(|row| &row.note),
    ];
}

#[derive(Debug)]
struct CorrelateAnalysis {
    args: Args,
    groups: GroupColumns,
}

/// The columns of a group.
#[derive(Debug, Default)]
struct GroupNumbers {
    /// By position in outcomes and then variables.
    numbers: Vec<NumberColumn>,
    /// Empty without clusters.
    clusters: LabelCodes,
}

impl Analysis for CorrelateAnalysis {
    const STAYS: Option<&'static str> =
        Some("its tables are small, and its sums are taken in one order");

    fn columns(&self) -> Vec<String> {
        let Args { outcomes, variables, by, cluster, .. } = &self.args;
        outcomes.iter().chain(variables).chain(by).chain(cluster).cloned().collect()
    }

    fn intervals(&self, _: &str) -> Option<String> {
        let Args { alpha, cluster, .. } = &self.args;
        Some(intervals(*alpha, "by Fisher's transformation", cluster.as_deref()))
    }

    async fn tables(
        bound: &BoundAnalysis<Self>,
        cx: &LowerContext,
        input: Option<DataFrame>,
    ) -> Result<Ports, StepError> {
        let Self { args, groups: by } = &bound.analysis;
        let input = required(input, "correlate")?;
        let groups = match by.is_empty() {
            true => None,
            false => Some(by.groups(input.clone()).await?),
        };
        let ids = groups.as_ref().map_or(vec![String::new()], |groups| groups.ids().to_vec());
        let numbers = bound.analysis.read(input, &bound.key, by.id()?).await?;
        let (owned, jobs) = (args.clone(), cx.env.jobs);
        let rows = on_thread(move || Ok(pool(jobs)?.install(|| correlate(&owned, &ids, &numbers))))
            .await?;
        let table = match &groups {
            None => record_batch(&rows)?,
            Some(groups) => {
                let of_group = (args.outcomes.len() * args.variables.len()).max(1);
                let tables =
                    rows.chunks(of_group).map(record_batch).collect::<Result<Vec<_>, _>>()?;
                groups.united(&tables, &table_schema::<CorrelationRow>().schema, &["note"])?
            }
        };
        Ok(vec![(MAIN, cx.session.read_batch(table)?)])
    }
}

impl CorrelateAnalysis {
    /// Reads the columns of numbers by group, in the order of the input's key.
    async fn read(
        &self,
        input: DataFrame,
        key: &[String],
        group: Expr,
    ) -> Result<BTreeMap<String, GroupNumbers>, StepError> {
        let names: Vec<&String> = self.args.outcomes.iter().chain(&self.args.variables).collect();
        let mut columns = vec![group.alias("group")];
        for (at, name) in names.iter().enumerate() {
            // Whole numbers are taken apart here: a cast rounds those beyond 2^53.
            let whole = input.schema().field_with_unqualified_name(name);
            let value = match whole.map(|field| field.data_type()) {
                Ok(DataType::Int64 | DataType::UInt64) => column(name),
                _ => cast(column(name), DataType::Float64),
            };
            columns.push(value.alias(format!("n{at}")));
        }
        if let Some(cluster) = &self.args.cluster {
            columns.push(label(input.schema(), cluster)?.alias("cluster"));
        }
        let mut stream = in_key_order(input, key, columns)?.execute_stream().await?;
        let mut groups: BTreeMap<String, GroupNumbers> = BTreeMap::new();
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            let of_rows = arrow::compute::cast(batch.column(0), &DataType::Utf8)?;
            let of_rows = of_rows.as_string::<i32>();
            let numbers = batch.columns()[1..].iter().take(names.len());
            let values = numbers.map(NumberColumn::of).collect::<Result<Vec<_>, _>>()?;
            let clusters = match &self.args.cluster {
                None => None,
                Some(_) => {
                    Some(arrow::compute::cast(batch.column(1 + names.len()), &DataType::Utf8)?)
                }
            };
            let clusters = clusters.as_ref().map(|clusters| clusters.as_string::<i32>());
            for row in 0..batch.num_rows() {
                let name = of_rows.value(row);
                let group = match groups.get_mut(name) {
                    Some(group) => group,
                    None => groups.entry(name.to_string()).or_insert_with(|| no_rows(values.len())),
                };
                for (column, values) in group.numbers.iter_mut().zip(&values) {
                    column.push(values.get(row));
                }
                if let Some(clusters) = clusters {
                    let cluster = clusters.is_valid(row).then(|| clusters.value(row));
                    group.clusters.push(cluster.filter(|text| !is_missing_text(text)));
                }
            }
        }
        if self.args.by.is_empty() && groups.is_empty() {
            groups.insert(String::new(), no_rows(names.len()));
        }
        Ok(groups)
    }
}

fn no_rows(columns: usize) -> GroupNumbers {
    let numbers = vec![NumberColumn::default(); columns];
    GroupNumbers { numbers, clusters: LabelCodes::default() }
}

/// The rows of these groups, one after another.
fn correlate(
    args: &Args,
    ids: &[String],
    groups: &BTreeMap<String, GroupNumbers>,
) -> Vec<CorrelationRow> {
    let mut pairs: Vec<(&GroupNumbers, usize, usize)> = Vec::new();
    for group in ids.iter().filter_map(|id| groups.get(id)) {
        for outcome in 0..args.outcomes.len() {
            pairs.extend((0..args.variables.len()).map(|variable| (group, outcome, variable)));
        }
    }
    let row = |(group, outcome, variable): &(&GroupNumbers, usize, usize)| {
        let names = (args.outcomes[*outcome].as_str(), args.variables[*variable].as_str());
        correlation_row(args, names, group, (*outcome, args.outcomes.len() + variable))
    };
    pairs.par_iter().map(row).collect()
}

fn correlation_row(
    args: &Args,
    (outcome, variable): (&str, &str),
    group: &GroupNumbers,
    (x, y): (usize, usize),
) -> CorrelationRow {
    let (x, y) = (&group.numbers[x], &group.numbers[y]);
    let of_rows = args.cluster.as_ref().map(|_| &group.clusters.rows);
    let clustered = |row: usize| of_rows.is_none_or(|clusters| clusters[row] != NONE);
    let method = match args.method {
        MethodName::Pearson => CorrelationMethod::Pearson,
        MethodName::Spearman => CorrelationMethod::Spearman,
        MethodName::Kendall => CorrelationMethod::Kendall,
    };
    let complete = |row: &usize| x.has(*row) && y.has(*row) && clustered(*row);
    let kept: Vec<usize> = (0..x.len()).filter(complete).collect();
    let missing = x.len() - kept.len();
    let clusters = of_rows.map(|codes| dense(kept.iter().map(|row| codes[*row])));
    let n_clusters =
        clusters.as_ref().map(|codes| codes.iter().max().map_or(0, |last| *last as usize + 1));
    let or_cluster = if args.cluster.is_some() { " or a cluster" } else { "" };
    let by_rank = args.method != MethodName::Pearson;
    let (x, y) = (x.comparable(&kept, by_rank), y.comparable(&kept, by_rank));
    let infinite = x.iter().zip(&y).filter(|(x, y)| x.is_infinite() || y.is_infinite()).count();
    let result = if missing > 0 && args.missing == MissingValues::Refuse {
        Err(format!(
            "{} of {} rows lack one of the two values{or_cluster} (missing: drop leaves such rows \
             out)",
            thousands(missing),
            thousands(missing + x.len())
        ))
    } else if infinite > 0 {
        Err(format!("values are infinite in {}", count(infinite, "row", "rows")))
    } else {
        let found = match &clusters {
            None => correlation(&x, &y, method, args.alpha),
            Some(clusters) => clustered_correlation(&x, &y, clusters, method, args.alpha),
        };
        found.map_err(|refusal| {
            refusal.describe(|column| match column {
                ColumnRef::X => Some(outcome),
                ColumnRef::Y => Some(variable),
                _ => None,
            })
        })
    };
    let what = format!("{} of {outcome} and {variable}", args.method.in_a_sentence());
    let note = match &result {
        Ok(correlation) => {
            let (coefficient, covered) = match correlation.interval {
                Some(ends) => (
                    by_interval(correlation.coefficient, ends),
                    format!("{}, ", ci(args.alpha, ends)),
                ),
                None => (four_digits(correlation.coefficient), String::new()),
            };
            let row = format!("row without one of the two{or_cluster} is");
            let rows = format!("rows without one of the two{or_cluster} are");
            let left_out = left_out(missing, &row, &rows);
            let in_clusters = match n_clusters {
                Some(n) => format!(" in {}", count(n, "cluster", "clusters")),
                None => String::new(),
            };
            format!(
                "{what}: {coefficient} ({covered}p {}, n = {}{in_clusters}).{left_out}",
                p_equals(correlation.p_value),
                thousands(correlation.n)
            )
        }
        Err(reason) => format!("{what}: refused, because {reason}."),
    };
    CorrelationRow {
        outcome: outcome.into(),
        variable: variable.into(),
        method: args.method,
        n: result.as_ref().map_or(x.len(), |correlation| correlation.n),
        correlation: result.map_err(NoNumber::Refused),
        n_clusters,
        n_missing: missing,
        note,
    }
}
