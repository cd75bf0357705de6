//! Data tests of stored results. Outcomes are stored by test and table digest.

use std::sync::LazyLock;

use datafusion::logical_expr::{Expr, cast, lit, not};
use datafusion::prelude::coalesce;
use serde_json::{Value, json};

use super::error::RunError;
use super::input::open_port;
use super::key::{StepManifests, artifact};
use crate::plan::{Check, CheckKind, Plan};
use galeras_base::digest::Digest;
use galeras_operator::event::{EventSink, RunEvent, RunStatus, StepStatus, StepSummary};
use galeras_operator::{MAIN, StepError, is_virtual};
use galeras_sql::functions;
use galeras_sql::session::{column, session};
use galeras_store::{Manifest, PortArtifact, Store};
use galeras_workflow::AssertSeverity;

/// The version of the tests. Increase it when a test may give another result or message for the
/// same table.
const CHECK_FORMAT: u32 = 2;

/// The versions that an outcome depends on in addition to the test and the table: those of
/// DataFusion and of its functions.
static VERSIONS: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "format": CHECK_FORMAT,
        "datafusion": datafusion::DATAFUSION_VERSION,
        "functions": functions::versions(),
    })
});

/// Runs the data tests of a step's result, reports failures, and marks the summary if one has
/// severity error.
pub(super) async fn check_all(
    plan: &Plan,
    at: usize,
    store: &Store,
    done: &StepManifests,
    events: &dyn EventSink,
    summary: &mut StepSummary,
) -> Option<RunStatus> {
    let mut failure = None;
    for test in &plan.steps[at].checks {
        let problem = match check(plan, at, test, store, done).await {
            Ok(None) => continue,
            Ok(Some(problem)) => problem,
            Err(error) => {
                summary.status = StepStatus::Failed;
                summary.detail = Some(error.explained());
                return Some(RunStatus::Failed);
            }
        };
        let message = violation(test, &problem);
        let error = test.severity == AssertSeverity::Error;
        events.send(RunEvent::Assertion {
            step: plan.steps[at].name.clone(),
            severity: if error { "error" } else { "warn" }.into(),
            message: message.clone(),
        });
        if error {
            summary.status = StepStatus::Failed;
            summary.detail = Some(format!("assertion failed: {message}"));
            failure = Some(RunStatus::AssertFailed);
        }
    }
    failure
}

/// The problem, or `None` if the test holds.
async fn check(
    plan: &Plan,
    at: usize,
    test: &Check,
    store: &Store,
    done: &StepManifests,
) -> Result<Option<String>, RunError> {
    let missing = || StepError::new("the step has no result to test");
    let artifact = artifact(done, at, test.port).ok_or_else(missing)?;
    if let CheckKind::Rows { min, max } = &test.kind {
        let rows = artifact.rows;
        let few = min.is_some_and(|min| rows < min);
        let many = max.is_some_and(|max| rows > max);
        return Ok((few || many).then(|| format!("{rows} rows")));
    }
    if !reads_table(test, artifact) {
        return Ok(None);
    }
    let key = outcome_key(plan, at, test, artifact);
    if let Some(known) = store.check_result(&key).await {
        tracing::debug!(test = %test.kind, %key, "outcome of the data test reused");
        return Ok(known.get("problem").and_then(Value::as_str).map(String::from));
    }
    let problem = count_violations(plan, at, test, store, done).await?;
    tracing::debug!(test = %test.kind, %key, problem = problem.as_deref(), "data test computed");
    let outcome = json!({"problem": problem});
    // The outcome can be recomputed, so a read-only store is not an error.
    let _ = store.put_check_result(&key, &outcome, vec![artifact.blob]).await;
    Ok(problem)
}

/// True if the outcome of the test depends on the rows.
fn reads_table(test: &Check, table: &PortArtifact) -> bool {
    match &test.kind {
        CheckKind::Rows { .. } => false,
        // A stored table never has two rows with one key.
        CheckKind::Unique(columns) => !table.key.iter().all(|key| columns.contains(key)),
        _ => true,
    }
}

fn outcome_key(plan: &Plan, at: usize, test: &Check, table: &PortArtifact) -> Digest {
    Digest::of_json(&json!({
        "versions": *VERSIONS,
        "check": test.kind.preimage(),
        "table": table.digest,
        "step": reads_virtual(plan, at, test).then_some(&plan.steps[at].name),
    }))
}

/// The stored outcome of a data test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestOutcome {
    /// The test as written.
    pub test: String,
    /// A failure is only a warning.
    pub warns: bool,
    /// `None` if it was not run on this table.
    pub held: Option<bool>,
    /// The problem, if it did not hold.
    pub problem: String,
}

/// The outcomes of a step's data tests that are stored or need no rows.
pub async fn test_outcomes(
    plan: &Plan,
    at: usize,
    store: &Store,
    done: &StepManifests,
) -> Vec<TestOutcome> {
    let mut outcomes = Vec::new();
    for test in &plan.steps[at].checks {
        let mut known = None;
        if let Some(table) = artifact(done, at, test.port) {
            let remembered = store.check_result(&outcome_key(plan, at, test, table)).await;
            if remembered.is_some() || !reads_table(test, table) {
                known = check(plan, at, test, store, done).await.ok();
            }
        }
        outcomes.push(TestOutcome {
            test: test.kind.to_string(),
            warns: test.severity == AssertSeverity::Warn,
            held: known.as_ref().map(Option::is_none),
            problem: known.flatten().unwrap_or_default(),
        });
    }
    outcomes
}

/// The data tests of a result that must read a table and have no stored outcome: the port, and the
/// key of the outcome.
pub(super) async fn open_checks<'a>(
    plan: &'a Plan,
    at: usize,
    store: &Store,
    manifest: &Manifest,
) -> Vec<(&'a str, Digest)> {
    let mut open = Vec::new();
    for (test, key) in outcome_keys(plan, at, manifest) {
        if store.check_result(&key).await.is_none() {
            open.push((test.port, key));
        }
    }
    open
}

/// The data tests of a result that read a table, with the keys of their outcomes.
pub(super) fn outcome_keys<'a>(
    plan: &'a Plan,
    at: usize,
    manifest: &Manifest,
) -> Vec<(&'a Check, Digest)> {
    let tests = plan.steps[at].checks.iter();
    let tables = tests.filter_map(|test| Some((test, manifest.port(test.port)?)));
    let reading = tables.filter(|(test, table)| reads_table(test, table));
    reading.map(|(test, table)| (test, outcome_key(plan, at, test, table))).collect()
}

/// The message for a failed test: the test, the problem, and its place in the file.
fn violation(test: &Check, problem: &str) -> String {
    let at = test.place.source.position(test.place.start);
    let port = match test.port {
        MAIN => String::new(),
        port => format!(" (port {port})"),
    };
    let file = test.place.source.path();
    format!("{}{port}: {problem} ({file}:{}:{})", test.kind, at.line, at.column)
}

fn reads_virtual(plan: &Plan, at: usize, test: &Check) -> bool {
    let port = plan.steps[at].port(test.port);
    port.is_some_and(|port| port.table.schema.fields().iter().any(|f| is_virtual(f)))
}

async fn count_violations(
    plan: &Plan,
    at: usize,
    test: &Check,
    store: &Store,
    done: &StepManifests,
) -> Result<Option<String>, RunError> {
    let session = session(1);
    let df = open_port(&session, store, plan, at, test.port, done)?;
    let key: Vec<String> =
        plan.steps[at].port(test.port).map(|p| p.table.key.clone()).unwrap_or_default();
    let violated: Expr = match &test.kind {
        CheckKind::Rows { .. } => return Ok(None),
        CheckKind::Unique(columns) => {
            let rows = datafusion::functions_aggregate::expr_fn::count(lit(1));
            let groups = df
                .aggregate(columns.iter().map(|c| column(c)).collect(), vec![rows.alias("n")])?
                .filter(column("n").gt(lit(1)))?;
            let number = groups.clone().count().await?;
            if number == 0 {
                return Ok(None);
            }
            let order = columns.iter().map(|c| column(c).sort(true, true)).collect();
            let first = groups.sort(order)?.limit(0, Some(1))?.collect().await?;
            return Ok(Some(format!(
                "{number} values occur more than once, first {}",
                first_row(&first)
            )));
        }
        CheckKind::NotNull(columns) => {
            any_of(columns.iter().map(|c| column(c).is_null()).collect())
        }
        CheckKind::AcceptedValues { column: name, values } => {
            let text = cast(column(name), arrow::datatypes::DataType::Utf8);
            let allowed = values.iter().map(|v| lit(v.as_str())).collect();
            coalesce(vec![not(text.in_list(allowed, false)), lit(false)])
        }
        CheckKind::Holds { expr, .. } => not(coalesce(vec![(**expr).clone(), lit(false)])),
    };
    let bad = df.filter(violated)?;
    let number = bad.clone().count().await?;
    if number == 0 {
        return Ok(None);
    }
    let order = key.iter().map(|c| column(c).sort(true, true)).collect();
    let keys: Vec<Expr> = key.iter().map(|c| column(c)).collect();
    let first = bad.select(keys)?.sort(order)?.limit(0, Some(1))?.collect().await?;
    Ok(Some(format!("{number} rows do not, first {}", first_row(&first))))
}

/// True if one of the conditions holds. The tree is as flat as possible, because plans are walked
/// recursively.
fn any_of(mut conditions: Vec<Expr>) -> Expr {
    while conditions.len() > 1 {
        let mut pairs = Vec::with_capacity(conditions.len().div_ceil(2));
        let mut rest = conditions.into_iter();
        while let Some(one) = rest.next() {
            pairs.push(match rest.next() {
                Some(other) => one.or(other),
                None => one,
            });
        }
        conditions = pairs;
    }
    conditions.pop().unwrap_or_else(|| lit(false))
}

/// The first row as `name = value, …`.
fn first_row(batches: &[arrow::array::RecordBatch]) -> String {
    let Some(batch) = batches.iter().find(|b| b.num_rows() > 0) else { return String::new() };
    let options = arrow::util::display::FormatOptions::default().with_null("null");
    let values = batch.columns().iter().zip(batch.schema_ref().fields()).map(|(array, field)| {
        let value = arrow::util::display::ArrayFormatter::try_new(array, &options)
            .map(|f| f.value(0).to_string())
            .unwrap_or_default();
        format!("{} = {value}", field.name())
    });
    values.collect::<Vec<_>>().join(", ")
}
