//! `runs`: lists the runs with their times, params and results.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::context::{Exit, Failure, fail, note, open_store, print, print_json};
use super::past_runs::PastRuns;
use super::{Format, StoreArgs};
use galeras_base::digest::Digest;
use galeras_base::visible::escape;
use galeras_display::{count, seconds};
use galeras_operator::event::{RunStatus, StepStatus};
use galeras_store::RunRecord;

#[derive(Args)]
pub(crate) struct RunsArgs {
    /// The workflow file.
    file: PathBuf,
    /// The number of runs (default: 20 for people, all for programs).
    #[arg(long, value_name = "N")]
    rows: Option<usize>,
    #[command(flatten)]
    store: StoreArgs,
    /// How to answer.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

const SHOWN: usize = 20;

pub(crate) async fn runs(args: RunsArgs) -> Result<Exit, Failure> {
    if !args.file.is_file() {
        let message = format!("there is no workflow file {}", args.file.display());
        return Err(fail(message, Exit::Invalid));
    }
    let store = open_store(&args.store.cache).await?;
    let past = PastRuns::of(&args.file, &store).await?;
    let all = past.all();
    if args.format == Format::Json {
        for run in all.iter().take(args.rows.unwrap_or(usize::MAX)) {
            print_json(&as_json(run))?;
        }
        return Ok(Exit::Done);
    }
    if all.is_empty() {
        let (file, store) = (args.file.display(), store.location());
        note(&format!("no run of {file} is recorded in {store}"));
        return Ok(Exit::Done);
    }
    let shown = args.rows.unwrap_or(SHOWN).min(all.len());
    print(&listing(&all[..shown]))?;
    match all.len() - shown {
        0 => Ok(Exit::Done),
        more => print(&format!("… {} more (use --rows)\n", count(more as u64))),
    }
}

/// The outcome of a run in words; a run without an end was killed or still runs.
pub(super) fn outcome(run: &RunRecord) -> &'static str {
    match run.status {
        Some(RunStatus::Ok) => "ok",
        Some(RunStatus::Failed) => "failed",
        Some(RunStatus::AssertFailed) => "assertion failed",
        Some(RunStatus::CacheFailed) => "store failed",
        Some(RunStatus::Interrupted) => "interrupted",
        None => "no end",
    }
}

/// One digest of a run's results: equal digests mean equal results.
pub(super) fn results_digest(run: &RunRecord) -> Option<Digest> {
    let mut ports: BTreeMap<String, Digest> = BTreeMap::new();
    for step in &run.steps {
        let ended = matches!(step.status, StepStatus::Hit | StepStatus::Ran);
        for port in step.ports.iter().filter(|_| ended) {
            ports.insert(format!("{}.{}", step.step, port.port), port.digest);
        }
    }
    (!ports.is_empty()).then(|| Digest::of_json(&json!(ports)))
}

fn as_json(run: &RunRecord) -> Value {
    json!({
        "event": "run", "run": run.id, "workflow": run.workflow, "file": run.file,
        "started": run.started, "seconds": run.seconds, "status": run.status,
        "params": run.params, "results": results_digest(run), "steps": run.steps,
    })
}

/// The params sorted by name: `seed=1, threshold=0.8`.
pub(super) fn params_text(params: &Value) -> String {
    let shown = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let params = params.as_object().into_iter().flatten();
    params.map(|(name, value)| format!("{name}={}", shown(value))).collect::<Vec<_>>().join(", ")
}

fn listing(runs: &[RunRecord]) -> String {
    let head = ["run", "started (UTC)", "took", "outcome", "steps", "results", "params"];
    let mut rows = vec![head.map(String::from)];
    for run in runs {
        let steps: Vec<String> = [
            (StepStatus::Hit, "hit"),
            (StepStatus::Ran, "ran"),
            (StepStatus::Failed, "failed"),
            (StepStatus::Skipped, "skipped"),
        ]
        .into_iter()
        .map(|(status, word)| (run.steps.iter().filter(|s| s.status == status).count(), word))
        .filter(|(number, _)| *number > 0)
        .map(|(number, word)| format!("{} {word}", count(number as u64)))
        .collect();
        let time = run.started.get(..19).unwrap_or(&run.started).replacen('T', " ", 1);
        rows.push([
            run.id.clone(),
            time,
            if run.status.is_some() { seconds(run.seconds) } else { String::new() },
            outcome(run).to_string(),
            steps.join(", "),
            results_digest(run).map(|digest| digest.short()).unwrap_or_default(),
            escape(&params_text(&run.params)),
        ]);
    }
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |row: &[String; 7]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}
