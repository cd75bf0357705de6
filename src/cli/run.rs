//! `run`.

use std::collections::HashSet;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use tokio_util::sync::CancellationToken;

use super::context::{Exit, color, fail, load, open_store, print_json, unknown_step, width};
use super::{Format, WorkflowArgs};
use crate::event::{EventSink, RunEvent};
use crate::exec::{RunOptions, run as run_plan};
use crate::plan::{Locking, Plan};
use crate::report::{HumanReporter, JsonReporter};

#[derive(Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    workflow: WorkflowArgs,
    /// Run only this step and what it needs (a matrix step: all its cells). May be repeated.
    #[arg(long, value_name = "STEP")]
    select: Vec<String>,
    /// Compute this step again although its result is stored. May be repeated.
    #[arg(long, value_name = "STEP")]
    force: Vec<String>,
    /// Fail if anything that the workflow asks of the world is not pinned in galeras.lock.
    #[arg(long)]
    frozen: bool,
    /// After a failure go on with the steps that do not depend on it.
    #[arg(long)]
    keep_going: bool,
    /// Threads to compute with (default: all).
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// The folder for output files.
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// How to report.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl RunArgs {
    pub(crate) fn jobs(&self) -> usize {
        let all = || std::thread::available_parallelism().map_or(1, usize::from);
        self.jobs.map_or_else(all, usize::from)
    }
}

pub(crate) async fn run(args: RunArgs) -> Exit {
    let lock = if args.frozen { Locking::Frozen } else { Locking::Pinned };
    let plan = match load(&args.workflow, args.format, lock).await {
        Ok(plan) => plan,
        Err(exit) => return invalid(exit, args.format),
    };
    let (select, force) = match (steps(&plan, &args.select), steps(&plan, &args.force)) {
        (Ok(select), Ok(force)) => (select, force),
        (Err(exit), _) | (_, Err(exit)) => return invalid(exit, args.format),
    };
    let store = match open_store(&args.workflow.store.cache).await {
        Ok(store) => store,
        Err(exit) => return exit,
    };
    let events: Arc<dyn EventSink> = match args.format {
        Format::Json => Arc::new(JsonReporter::new(std::io::stdout())),
        Format::Human => {
            let terminal = std::io::stderr().is_terminal();
            Arc::new(HumanReporter::new(Box::new(std::io::stderr()), terminal, color(), width()))
        }
    };
    for step in force.iter().map(|at| &plan.steps[*at]).filter(|step| step.pinned) {
        events.send(RunEvent::Warning {
            step: Some(step.name.clone()),
            message: "pinned by galeras.lock; `galeras lock` asks again".into(),
        });
    }
    let cancel = CancellationToken::new();
    tokio::spawn(watch_signals(cancel.clone()));
    let options = RunOptions {
        jobs: args.jobs(),
        select: (!args.select.is_empty()).then_some(select),
        force: force.into_iter().collect::<HashSet<_>>(),
        outputs: true,
        keep_going: args.keep_going,
        out: args.out.clone(),
        cancel,
        events,
    };
    run_plan(Arc::new(plan), store, options).await.status.into()
}

/// Says to programs, too, that nothing was run.
fn invalid(exit: Exit, format: Format) -> Exit {
    if format == Format::Json {
        print_json(&serde_json::json!({
            "event": "finished", "status": "invalid", "steps": [], "seconds": 0.0,
        }));
    }
    exit
}

/// The positions of the steps that the names stand for.
fn steps(plan: &Plan, names: &[String]) -> Result<Vec<usize>, Exit> {
    let mut found = Vec::new();
    for name in names {
        let matching = plan.matching(name);
        if matching.is_empty() {
            return Err(unknown_step(plan, name));
        }
        found.extend(matching);
    }
    Ok(found)
}

/// Cancels the run at the first Ctrl-C or termination, and ends at once at the second.
pub(super) async fn watch_signals(cancel: CancellationToken) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        fail("signals cannot be watched; Ctrl-C ends the run at once", Exit::Failed);
        return;
    };
    for _ in 0..2 {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        if cancel.is_cancelled() {
            std::process::exit(i32::from(Exit::Interrupted.code()));
        }
        cancel.cancel();
    }
}
