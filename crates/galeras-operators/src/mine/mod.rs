//! `mine`: the Python methods that the commits of a time window changed.

mod columns;
mod work;

use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::SchemaRef;
use datafusion::common::JoinType;
use datafusion::dataframe::DataFrame;
use datafusion::functions::regex::expr_fn::regexp_replace;
use datafusion::logical_expr::lit;
use futures::future::BoxFuture;
use globset::GlobSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::columns::{HEAD, methods_table, output_schema, rejected_fields, rejected_repository};
use self::work::Task;
use super::patterns::{glob_set, listed, other_languages, python_files};
use galeras_git::{MineOptions, Window};
use galeras_operator::columns::{is_text, require_column};
use galeras_operator::rejects::reject_columns;
use galeras_operator::{
    ArgError, BindContext, BoundStep, Descriptor, Effect, Fact, FanOutError, FanOutStep,
    FanOutWork, Grain, InputPorts, LowerContext, Lowering, MAIN, Operator, Port, Ports, REJECTS,
    Reads, StepError, TableSchema, TypedOperator, args_schema,
};
use galeras_sql::functions::moment;
use galeras_sql::projection::project;
use galeras_sql::session::column;
use galeras_workflow::code::Code;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The first moment of the window of committer dates: a date (`2022-01-01`, midnight UTC)
    /// or a date with time and zone (RFC 3339).
    since: String,
    /// The first moment after the window.
    until: String,
    /// The branch to walk, by its tip when the repository is mined. Without it, the commit
    /// in the column `head_sha` is the tip.
    #[serde(default)]
    branch: Option<String>,
    /// Also counts merges, compared with their first parent.
    #[serde(default)]
    merges: bool,
    /// Also lists functions inside functions.
    #[serde(default)]
    nested: bool,
    /// Glob patterns of the paths to mine.
    #[serde(default = "python_files")]
    include: Vec<String>,
    /// Files larger than this are rejected.
    #[serde(default = "max_file_kb")]
    #[schemars(range(min = 1, max = 4096))]
    max_file_kb: u64,
}

fn max_file_kb() -> u64 {
    1024
}

struct MineOperator;

/// The operator.
pub const MINE: &dyn Operator = &MineOperator;

impl TypedOperator for MineOperator {
    type Args = Args;

    const DESCRIPTOR: Descriptor = Descriptor {
        name: "mine",
        version: 4,
        grain: Grain::of::<BoundMine, _>(),
        effect: Effect::External,
        inputs: InputPorts::One,
        doc: include_str!("doc.md"),
        args_schema: args_schema::<Args>,
    };

    fn fixed_ports() -> Option<Vec<Port>> {
        Some(ports())
    }

    fn bind(mut args: Args, cx: &BindContext) -> Result<Box<dyn BoundStep>, Vec<ArgError>> {
        let mut errors = Vec::new();
        for name in ["repo", "clone_url", "head_sha"] {
            require_column(cx, "", name, "text", is_text, &mut errors);
        }
        let mut read = |path: &str, text: &str| {
            let moment = moment(text);
            if moment.is_none() {
                let message = format!("`{text}` is not a date");
                let help = "write 2022-01-31, or 2022-01-31T12:00:00Z";
                errors.push(ArgError::new(path, Code::WrongType, message).help(help));
            }
            moment
        };
        let window = match (read("since", &args.since), read("until", &args.until)) {
            (Some((since, from)), Some((until, to))) => {
                // Different notations of the same window are equal.
                (args.since, args.until) = (from, to);
                Some(Window { since, until })
            }
            _ => None,
        };
        if window.is_some_and(|window| window.since >= window.until) {
            let message = format!("the window from {} until {} is empty", args.since, args.until);
            let help = "`until` is the first moment after the window";
            errors.push(ArgError::new("until", Code::EmptyWindow, message).help(help));
        }
        errors.extend(other_languages("include", &args.include, "mine"));
        let include = glob_set("include", &args.include).map_err(|error| errors.push(error)).ok();
        match (window, include) {
            (Some(window), Some(include)) if errors.is_empty() => {
                Ok(Box::new(BoundMine { args, window, include, ports: ports() })
                    as Box<dyn BoundStep>)
            }
            _ => Err(errors),
        }
    }
}

fn ports() -> Vec<Port> {
    let rejects = TableSchema::default().with(&rejected_fields()).with(&reject_columns());
    vec![Port::new(MAIN, methods_table()), Port::new(REJECTS, rejects.keyed(&["id"]))]
}

#[derive(Debug)]
struct BoundMine {
    args: Args,
    window: Window,
    include: GlobSet,
    ports: Vec<Port>,
}

impl BoundStep for BoundMine {
    fn args(&self) -> Value {
        serde_json::json!(self.args)
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn reads(&self, _: &str) -> Reads {
        Reads::Columns(["repo", "clone_url", "head_sha"].map(String::from).to_vec())
    }

    fn fact(&self) -> Option<Fact> {
        let branch = self.args.branch.as_ref()?;
        let why = format!("the tip of the branch `{branch}` moves; give `branch` to `query`");
        Some(Fact::Moving(why))
    }

    fn no_rows_means(&self) -> Option<String> {
        let Args { since, until, include, .. } = &self.args;
        let all = *include == python_files();
        let of =
            if all { "a method".into() } else { format!("a method in {}", include.join(", ")) };
        Some(format!("no commit from {since} until {until} adds or changes {of}"))
    }

    fn work_unit(&self) -> &'static str {
        "repositories"
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::FanOut(self)
    }
}

impl BoundMine {
    fn task(&self, cx: &LowerContext, row: &RecordBatch) -> Task {
        let options = MineOptions {
            window: self.window,
            merges: self.args.merges,
            nested: self.args.nested,
            include: self.include.clone(),
            max_file_bytes: self.args.max_file_kb * 1024,
            jobs: cx.env.jobs,
        };
        Task {
            repo: text(row, "repo"),
            address: text(row, "clone_url"),
            head: text(row, "head_sha"),
            branch: self.args.branch.clone(),
            options: Arc::new(options),
            patterns: listed(&self.args.include),
        }
    }
}

impl FanOutStep for BoundMine {
    fn reads(&self) -> Vec<String> {
        // A commit identifies its content, no matter where the repository is.
        ["repo", "head_sha"].map(String::from).to_vec()
    }

    fn label(&self) -> &'static str {
        "repo"
    }

    fn output_schema(&self) -> SchemaRef {
        output_schema()
    }

    fn open<'a>(
        &'a self,
        cx: &'a LowerContext,
        row: RecordBatch,
    ) -> BoxFuture<'a, Result<Box<dyn FanOutWork>, FanOutError>> {
        Box::pin(async move {
            let task = self.task(cx, &row);
            task.ready(cx).await
        })
    }

    fn refusal(&self, cx: &LowerContext, row: &RecordBatch) -> Option<FanOutError> {
        self.task(cx, row).refusal(cx)
    }

    fn failed(&self, row: &RecordBatch, error: &FanOutError) -> Result<RecordBatch, StepError> {
        let (repo, head) = (text(row, "repo"), text(row, "head_sha"));
        rejected_repository((&repo, &head), error.rule, &error.reason)
    }

    fn ports(&self, input: DataFrame, output: DataFrame) -> Result<Ports, StepError> {
        // The address in the user's table may contain a password.
        let url = regexp_replace(column("clone_url"), lit("^(https?://)[^/]*@"), lit("$1"), None);
        let addresses = input.select(vec![
            column("repo").alias("__repo"),
            column("head_sha").alias("__sha"),
            url.alias("url"),
        ])?;
        // The left side of a join is held in memory: that of the few repositories.
        let kept = output.clone().filter(column("rule").is_null())?;
        let (left, right) = (["__repo", "__sha"], ["repo", HEAD]);
        let kept = addresses.join(kept, JoinType::Inner, &left, &right, None)?;
        let rejected = output.filter(column("rule").is_not_null())?;
        Ok(vec![
            (MAIN, project(kept, &self.ports[0].table, Vec::new())?),
            (REJECTS, project(rejected, &self.ports[1].table, Vec::new())?),
        ])
    }
}

/// The text in a column of a batch of one row; empty if it is null.
fn text(row: &RecordBatch, name: &str) -> String {
    row.column_by_name(name)
        .and_then(|column| column.as_string_opt::<i32>())
        .filter(|column| !column.is_empty() && !column.is_null(0))
        .map(|column| column.value(0).to_string())
        .unwrap_or_default()
}
