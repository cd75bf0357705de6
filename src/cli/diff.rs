//! `diff`: two runs of a workflow, step by step, column by column, row by row.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::context::{
    Exit, Failure, both, fail, fail_unknown, failed, open_store, print, print_json,
};
use super::diff_text::{port_text, summary_text};
use super::past_runs::find_run;
use super::{Format, StoreArgs};
use galeras_operator::event::StepSummary;
use galeras_store::RunRecord;
use galeras_study::diff_tables::{PortDiff, compare_ports};
use galeras_study::run_pair::{StepPair, Verdict, changed_params, step_pairs};
use galeras_study::runs::{outcome, past_runs};

#[derive(Args)]
pub(crate) struct DiffArgs {
    /// The workflow file.
    file: PathBuf,
    /// The earlier run: `last~1`, or the beginning of its id in `galeras runs`.
    #[arg(value_name = "RUN")]
    old: String,
    /// The later run: `last`, or the beginning of its id.
    #[arg(value_name = "RUN")]
    new: String,
    /// Compare only this step (a matrix step: all its cells). May be repeated.
    #[arg(long, value_name = "STEP")]
    select: Vec<String>,
    /// Changed rows to show of each table.
    #[arg(long, value_name = "N", default_value_t = 3)]
    rows: usize,
    #[command(flatten)]
    store: StoreArgs,
    /// How to answer.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) async fn diff(args: DiffArgs) -> Result<Exit, Failure> {
    if !args.file.is_file() {
        let message = format!("there is no workflow file {}", args.file.display());
        return Err(fail(message, Exit::Invalid));
    }
    let store = open_store(&args.store.cache).await?;
    // The lock keeps `gc` from removing tables while they are read.
    let _reading = store.reading_lock().await?;
    let runs = past_runs(&args.file, &store).await?;
    let find = |name: &str| find_run(&runs, &args.file, name);
    let (old, new) = both(find(&args.old), find(&args.new))?;
    for run in [old, new] {
        if run.steps.is_empty() {
            let message = format!("nothing is recorded of run {}: {}", run.id, outcome(run));
            return Err(failed(message));
        }
    }
    let pairs = step_pairs(old, new, &args.select);
    if pairs.is_empty() {
        let known = old.steps.iter().chain(&new.steps).map(|s| s.step.split('[').next());
        let mut known: Vec<&str> = known.flatten().collect();
        known.dedup();
        let chosen = args.select.join(", ");
        let message = format!("neither run has a step `{chosen}`");
        return Err(fail_unknown(&message, &chosen, known, "the steps are"));
    }
    match args.format {
        Format::Human => print(&summary_text(old, new, &pairs)),
        Format::Json => print_json(&summary_json(old, new, &pairs)),
    }?;
    for pair in pairs.iter().filter(|pair| pair.verdict() == Verdict::Differs) {
        for port in pair.differing_ports() {
            let diff = compare_ports(&store, pair, &port, args.rows).await?;
            match args.format {
                Format::Human => print(&port_text(pair, &diff)),
                Format::Json => print_json(&port_json(pair, &diff)),
            }?;
        }
    }
    Ok(Exit::Done)
}

fn summary_json(old: &RunRecord, new: &RunRecord, pairs: &[StepPair<'_>]) -> Value {
    let run =
        |run: &RunRecord| json!({"run": run.id, "started": run.started, "status": run.status});
    let params: Vec<Value> = changed_params(old, new)
        .into_iter()
        .map(|(name, old, new)| json!({"name": name, "old": old, "new": new}))
        .collect();
    let steps: Vec<Value> = pairs
        .iter()
        .map(|pair| {
            let status = |step: Option<&StepSummary>| step.map(|step| step.status);
            let reason = pair.new.and_then(|step| step.reason);
            json!({"step": pair.name, "verdict": pair.verdict().name(), "old": status(pair.old),
                "new": status(pair.new), "reason": reason,
                "detail": pair.new.and_then(|step| step.detail.clone())})
        })
        .collect();
    json!({"event": "diff", "old": run(old), "new": run(new), "params": params, "steps": steps})
}

fn port_json(pair: &StepPair<'_>, diff: &PortDiff) -> Value {
    let [old, new] = pair.port(&diff.port).map(|port| port.map(|port| port.rows));
    let mut out = json!({"event": "table", "step": pair.name, "port": diff.port,
        "rows": {"old": old, "new": new},
        "columns": {"added": diff.added_columns, "removed": diff.removed_columns,
            "retyped": diff.retyped.iter().map(|(name, old, new)| {
                json!({"column": name, "old": old, "new": new})
            }).collect::<Vec<_>>()}});
    match &diff.rows {
        Err(why) => out["not_compared"] = json!(why),
        Ok(rows) => {
            out["key"] = json!(diff.key);
            out["added"] = json!(rows.added);
            out["removed"] = json!(rows.removed);
            out["changed"] = json!(rows.changed);
            out["same"] = json!(rows.same);
            let changed: serde_json::Map<String, Value> =
                rows.columns.iter().map(|(name, rows)| (name.clone(), json!(rows))).collect();
            out["columns"]["changed"] = Value::Object(changed);
            let examples = rows.examples.iter().map(|row| {
                let (key, old, new) = (&row.key, &row.old, &row.new);
                json!({"key": key, "old": old, "new": new})
            });
            out["examples"] = examples.collect();
        }
    }
    out
}
