//! Unexpectedly empty tables, with the step that lost the last row, and input rows without results
//! in steps that work long on each row.

use arrow::array::AsArray;
use arrow::datatypes::DataType;
use datafusion::common::JoinType;
use datafusion::logical_expr::cast;
use serde_json::{Value, json};

use super::error::RunError;
use super::input::{blobs, open, open_port};
use super::key::{StepManifests, artifact, input_digest};
use crate::plan::{Input, Plan, PlannedOutput, TableRef};
use galeras_base::digest::Digest;
use galeras_display::count;
use galeras_operator::event::{EventSink, RejectedRows, RunEvent};
use galeras_operator::{Lowering, MAIN, REJECTS, Reads};
use galeras_sql::session::{column, session};
use galeras_store::Store;
use galeras_workflow::quote;

/// A step with input rows, or a source, that returned no rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EmptyPort {
    step: usize,
    port: &'static str,
}

/// A step that lost the last row, and the outputs that are empty because of it.
type LostRows<'a> = (EmptyPort, Vec<&'a PlannedOutput>);

/// Reports empty tables and rows without results at the end of a run.
pub(super) async fn tell_lost_rows(
    plan: &Plan,
    store: &Store,
    done: &StepManifests,
    lost: &[LostRows<'_>],
    events: &dyn EventSink,
) {
    lost.iter().for_each(|(port, outputs)| events.send(event(plan, done, *port, outputs)));
    for (at, step) in plan.steps.iter().enumerate() {
        // Read errors were already reported.
        if let Ok(Some(message)) = silent_rows(plan, store, done, at).await {
            tracing::warn!("{message}");
            events.send(RunEvent::Warning { step: Some(step.name.clone()), message });
        }
    }
}

/// Each step that lost the last row of an output, expected rows, or rejected all of them.
///
/// An output with rows that were all made from empty tables, such as the mean of no values, counts
/// as empty. Those of a query do not: it may count what should not be there.
///
/// Outputs that may be empty are left out: all with `allow_empty`, those with `rows: { min: 0 }`, an
/// empty port `rejects`, and everything computed from it.
pub(super) fn lost_rows<'a>(
    plan: &'a Plan,
    done: &StepManifests,
    allow_empty: bool,
) -> Vec<LostRows<'a>> {
    let mut empty: Vec<LostRows<'_>> = Vec::new();
    let tables = EmptyTables::of(plan, done);
    for output in &plan.outputs {
        let rejects = |table: &TableRef| table.port == REJECTS;
        if allow_empty
            || !tables.has_input(&output.input)
            || output.min_rows == Some(0)
            || output.input.tables.iter().all(rejects)
        {
            continue;
        }
        let Some(lost) = output.input.tables.first().and_then(|t| lost_at(plan, &tables, t)) else {
            continue;
        };
        match empty.iter_mut().find(|(known, _)| *known == lost) {
            Some((_, outputs)) => outputs.push(output),
            None => empty.push((lost, vec![output])),
        }
    }
    for (step, planned) in plan.steps.iter().enumerate() {
        let lost = EmptyPort { step, port: MAIN };
        let main = artifact(done, step, MAIN);
        let expected = || planned.step.no_rows_means().is_some() && rows_read(plan, done, step) > 0;
        let rejected = || artifact(done, step, REJECTS).is_some_and(|table| table.rows > 0);
        if main.is_some_and(|table| table.rows == 0)
            && (expected() || rejected())
            && !empty.iter().any(|(known, _)| *known == lost)
        {
            empty.push((lost, Vec::new()));
        }
    }
    empty.sort_by_key(|(lost, _)| lost.step);
    empty
}

/// The step that lost the last row on the way to an empty table; `None` if it was expected to be
/// empty.
fn lost_at(plan: &Plan, empty: &EmptyTables<'_>, table: &TableRef) -> Option<EmptyPort> {
    let (mut step, mut port) = (table.step, table.port);
    loop {
        let inputs = &plan.steps[step].inputs;
        let without = || inputs.iter().filter(|input| empty.has_input(input));
        let next = without().find_map(|input| input.tables.iter().find(|t| t.port != REJECTS));
        match next {
            Some(table) => (step, port) = (table.step, table.port),
            None if !inputs.is_empty() && without().count() == inputs.len() => return None,
            None => return Some(EmptyPort { step, port }),
        }
    }
}

/// The tables without a row that was made from data.
struct EmptyTables<'a> {
    done: &'a StepManifests,
    /// True for the steps that read tables, all of them empty. A step comes after its inputs.
    made_from_none: Vec<bool>,
}

impl<'a> EmptyTables<'a> {
    fn of(plan: &Plan, done: &'a StepManifests) -> Self {
        let mut empty = Self { done, made_from_none: Vec::with_capacity(plan.steps.len()) };
        for step in &plan.steps {
            let reads_none = step.inputs.iter().all(|input| empty.has_input(input));
            // A query may count the rows that break a rule: its 0 is a result.
            let counts = step.operator.descriptor().name == "sql"
                && step.inputs.iter().any(|input| rows(done, input) == Some(0));
            empty.made_from_none.push(!step.inputs.is_empty() && reads_none && !counts);
        }
        empty
    }

    fn has_input(&self, input: &Input) -> bool {
        let is_empty = |table: &TableRef| {
            let made_from_none = self.made_from_none.get(table.step).is_some_and(|none| *none);
            let stored = artifact(self.done, table.step, table.port);
            stored.is_some_and(|stored| stored.rows == 0 || made_from_none)
        };
        input.tables.iter().all(is_empty)
    }
}

/// The rows of an input, if all its tables exist.
fn rows(done: &StepManifests, input: &Input) -> Option<u64> {
    let rows = |table: &TableRef| artifact(done, table.step, table.port).map(|a| a.rows);
    input.tables.iter().map(rows).sum()
}

fn rows_read(plan: &Plan, done: &StepManifests, step: usize) -> u64 {
    plan.steps[step].inputs.iter().filter_map(|input| rows(done, input)).sum()
}

fn event(
    plan: &Plan,
    done: &StepManifests,
    lost: EmptyPort,
    outputs: &[&PlannedOutput],
) -> RunEvent {
    let planned = &plan.steps[lost.step];
    let mut message = match outputs {
        [] => String::new(),
        [first, rest @ ..] => {
            // A mean of no values is a row.
            let made = if rows(done, &first.input) == Some(0) { "in" } else { "to compute" };
            let more = match rest.len() {
                0 => String::new(),
                1 => " and 1 other".to_string(),
                more => format!(" and {more} others"),
            };
            format!("no rows {made} the output {}{more}: ", quote(&first.name))
        }
    };
    message += &cause(plan, done, lost, if outputs.is_empty() { "no rows" } else { "none" });
    if !outputs.is_empty() {
        message +=
            "; an output with `rows: { min: 0 }` may be empty, and with --allow-empty all may";
    }
    RunEvent::NoRows {
        step: planned.name.clone(),
        port: lost.port.to_string(),
        outputs: outputs.iter().map(|output| output.name.clone()).collect(),
        read: rows_read(plan, done, lost.step),
        rejected: rejected_rows(plan, done, lost.step),
        message,
    }
}

fn rejected_rows(plan: &Plan, done: &StepManifests, step: usize) -> Option<RejectedRows> {
    let table = artifact(done, step, REJECTS).filter(|table| table.rows > 0)?;
    let port = format!("{}.{REJECTS}", plan.steps[step].name);
    Some(RejectedRows { port, rows: table.rows })
}

/// How a step lost the last row, in words; `none` are those for the result of a source.
fn cause(plan: &Plan, done: &StepManifests, lost: EmptyPort, none: &str) -> String {
    let planned = &plan.steps[lost.step];
    let name = match lost.port {
        MAIN => quote(&planned.name),
        port => quote(&format!("{}.{port}", planned.name)),
    };
    let mut message = match rows_read(plan, done, lost.step) {
        0 => format!("step {name} made {none}"),
        1 => format!("step {name} read 1 row and gave none"),
        read => format!("step {name} read {} rows and gave none", count(read)),
    };
    match rejected_rows(plan, done, lost.step) {
        Some(RejectedRows { port, rows: 1 }) => {
            message += &format!("; {} has 1 row, with the reason", quote(&port));
        }
        Some(RejectedRows { port, rows }) => {
            let (port, rows) = (quote(&port), count(rows));
            message += &format!("; {port} has {rows} rows, with the reasons");
        }
        None if lost.port == MAIN => {
            let words = planned.step.no_rows_means();
            message += &words.map_or_else(String::new, |words| format!("; {words}"));
        }
        None => {}
    }
    message
}

/// Why a step has an input without rows, which may be why it failed; `None` if it has none.
pub(super) fn empty_input(plan: &Plan, done: &StepManifests, step: usize) -> Option<String> {
    let empty = EmptyTables::of(plan, done);
    let input = plan.steps[step].inputs.iter().find(|input| empty.has_input(input))?;
    let lost = lost_at(plan, &empty, input.tables.first()?)?;
    Some(format!("an input is empty: {}", cause(plan, done, lost, "no rows")))
}

/// The version of the check. Increase it when the same tables give another answer.
const QUESTION_FORMAT: u32 = 1;

/// The number of names in the message.
const TOLD: usize = 5;

/// The message about a step's input rows without results; `None` if all or none have results, or if
/// the step is of another kind. The answer is stored.
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
