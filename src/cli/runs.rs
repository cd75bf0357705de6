//! `runs`: lists the runs with their times, params and results.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::aligned::{Side, aligned};
use super::context::{Exit, Failure, fail, note, open_store, print, print_json};
use super::{Format, StoreArgs};
use galeras_display::{count, seconds};
use galeras_operator::event::StepStatus;
use galeras_store::RunRecord;
use galeras_study::runs::{outcome, params_text, past_runs, results_digest};

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
    let all = past_runs(&args.file, &store).await?;
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

fn as_json(run: &RunRecord) -> Value {
    json!({
        "event": "run", "run": run.id, "workflow": run.workflow, "file": run.file,
        "started": run.started, "seconds": run.seconds, "status": run.status,
        "params": run.params, "results": results_digest(run), "steps": run.steps,
    })
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
            params_text(&run.params),
        ]);
    }
    aligned([Side::Left; 7], &rows)
}
