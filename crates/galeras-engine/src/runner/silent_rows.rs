//! Input rows without results, in steps that work long on each row: a repository without a commit
//! in the window is neither in the result nor among the rejects.

use arrow::array::AsArray;
use arrow::datatypes::DataType;
use datafusion::common::JoinType;
use datafusion::logical_expr::cast;
use serde_json::{Value, json};

use super::error::RunError;
use super::input::{blobs, open, open_port};
use super::key::{StepManifests, artifact, input_digest};
use crate::plan::{Input, Plan};
use galeras_base::digest::Digest;
use galeras_operator::{Lowering, MAIN, Reads};
use galeras_sql::session::{column, session};
use galeras_store::Store;
use galeras_workflow::quote;

/// The version of the check. Increase it when the same tables give another answer.
const QUESTION_FORMAT: u32 = 1;

/// The number of names in the message.
const TOLD: usize = 5;

/// The message about a step's input rows without results; `None` if all or none have results, or if
/// the step is of another kind. The answer is stored.
///
/// # Errors
/// If a stored table cannot be read.
pub(super) async fn silent_rows(
    plan: &Plan,
    store: &Store,
    done: &StepManifests,
    step: usize,
) -> Result<Option<String>, RunError> {
    let planned = &plan.steps[step];
    let Lowering::FanOut(fan_out) = planned.step.lowering() else { return Ok(None) };
    let label = fan_out.label();
    let ([input], Some(main)) = (planned.inputs.as_slice(), artifact(done, step, MAIN)) else {
        return Ok(None);
    };
    if main.rows == 0 {
        return Ok(None);
    }
    let labelled = planned.step.ports().iter().filter(|port| port.table.field(label).is_some());
    let ports: Vec<&'static str> = labelled.map(|port| port.name).collect();
    let reads = Reads::Columns(vec![label.to_string()]);
    let Some(read) = input_digest(plan, input, &reads, done) else { return Ok(None) };
    let tables: Vec<Digest> =
        ports.iter().filter_map(|port| Some(artifact(done, step, port)?.digest)).collect();
    let key = Digest::of_json(&json!({
        "silent_rows": QUESTION_FORMAT, "label": label, "input": read, "ports": tables,
    }));
    let names: Vec<String> = match store.check_result(&key).await {
        Some(known) => serde_json::from_value(known).unwrap_or_default(),
        None => {
            let names = names(plan, store, done, (step, input), label, &ports).await?;
            let mut reads = blobs(input, done);
            let stored = ports.iter().filter_map(|port| artifact(done, step, port));
            reads.extend(stored.map(|port| port.blob));
            // It can be recomputed at any time.
            let _ = store.put_check_result(&key, &Value::from(names.clone()), reads).await;
            names
        }
    };
    if names.is_empty() {
        return Ok(None);
    }
    let mut told: Vec<String> = names.iter().take(TOLD).map(|name| quote(name)).collect();
    if names.len() > TOLD {
        told.push(format!("and {} more", names.len() - TOLD));
    }
    let told = told.join(", ");
    let because =
        planned.step.no_rows_means().map_or_else(String::new, |words| format!(": {words}"));
    Ok(Some(format!("no rows from the {label} {told}{because}")))
}

/// The labels of the input rows that are in no port, in order.
async fn names(
    plan: &Plan,
    store: &Store,
    done: &StepManifests,
    (step, input): (usize, &Input),
    label: &str,
    ports: &[&'static str],
) -> Result<Vec<String>, RunError> {
    let session = session(1);
    let text = |name: &str| cast(column(label), DataType::Utf8).alias(name);
    let mut rest = open(&session, store, plan, input, done)?.select(vec![text("read")])?;
    for port in ports {
        let given = open_port(&session, store, plan, step, port, done)?;
        let given = given.select(vec![text("given")])?.distinct()?;
        rest = rest.join(given, JoinType::LeftAnti, &["read"], &["given"], None)?;
    }
    let rest = rest.distinct()?.sort(vec![column("read").sort(true, true)])?;
    let mut names = Vec::new();
    for batch in rest.collect().await? {
        let column = arrow::compute::cast(batch.column(0), &DataType::Utf8)?;
        names.extend(column.as_string::<i32>().iter().flatten().map(str::to_string));
    }
    Ok(names)
}
