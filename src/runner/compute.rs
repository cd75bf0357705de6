//! One step: from its key to its stored result.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use datafusion::execution::context::SessionContext;
use tokio_util::sync::CancellationToken;

use super::ask;
use super::each;
use super::error::RunError;
use super::input::open;
use super::key::{Done, Keyed, keyed};
use super::row;
use crate::digest::Digest;
use crate::event::{EventSink, RunEvent};
use crate::operator::{LowerContext, Lowering, Ports, StepError, Tell};
use crate::plan::{Plan, PlannedStep};
use crate::session::{Hints, bounded_session, ordered_session, session, store_table};
use crate::store::{FORMAT_VERSION, Manifest, ManifestLabels, Store, timestamp};

/// What a step may take of the machine.
#[derive(Clone, Copy, Debug)]
pub struct Resources {
    /// Threads.
    pub jobs: usize,
    /// Bytes of memory for work that can go on in files.
    pub memory: usize,
}

/// The sorts of a step get one of this many parts of the memory: its threads need the rest.
const SORTS: usize = 4;

/// What a running step works with.
pub(super) struct StepContext {
    pub(super) name: String,
    pub(super) store: Store,
    pub(super) lower: LowerContext,
    /// A session that keeps the order of stored rows.
    ordered: SessionContext,
    jobs: usize,
    pub(super) events: Arc<dyn EventSink>,
    /// Earlier results may not be used, not even of single rows.
    pub(super) forced: bool,
    /// Removed with everything in it when the step ends.
    _scratch: tempfile::TempDir,
}

impl StepContext {
    pub(super) fn new(
        plan: &Plan,
        step: &PlannedStep,
        store: &Store,
        events: &Arc<dyn EventSink>,
        cancel: &CancellationToken,
        resources: Resources,
        forced: bool,
    ) -> Result<Self, RunError> {
        let Resources { jobs, memory } = resources;
        let scratch = tempfile::Builder::new().prefix("galeras-").tempdir()?;
        let lower = LowerContext {
            session: match step.step.lowering() {
                Lowering::FanOut(_) => bounded_session(jobs, memory / SORTS),
                Lowering::Table(table) if table.bounded() => bounded_session(jobs, memory / SORTS),
                Lowering::Row(_) | Lowering::Paid(_) | Lowering::Table(_) => session(jobs),
            },
            scratch: scratch.path().to_path_buf(),
            base: step.base.clone(),
            downloads: plan.downloads.clone(),
            jobs,
            memory,
            forced,
            cancel: cancel.clone(),
            retry: Arc::default(),
            tell: teller(&step.name, events),
        };
        Ok(Self {
            name: step.name.clone(),
            store: store.clone(),
            lower,
            ordered: ordered_session(jobs),
            jobs,
            events: Arc::clone(events),
            forced,
            _scratch: scratch,
        })
    }

    pub(super) fn total(&self, total: u64, reused: u64) {
        self.events.send(RunEvent::StepTotal { step: self.name.clone(), total, reused });
    }

    pub(super) fn progress(&self, rows: u64) {
        self.events.send(RunEvent::Progress { step: self.name.clone(), rows });
    }

    pub(super) fn warn(&self, message: String) {
        self.events.send(RunEvent::Warning { step: Some(self.name.clone()), message });
    }
}

/// No more than one activity of a step is told in this time.
const ACTIVITY: Duration = Duration::from_millis(100);

/// What the step says, as events.
fn teller(step: &str, events: &Arc<dyn EventSink>) -> Arc<dyn Fn(Tell) + Send + Sync> {
    let (events, step) = (Arc::clone(events), step.to_string());
    let told: Mutex<Option<Instant>> = Mutex::new(None);
    Arc::new(move |tell| {
        let step = step.clone();
        events.send(match tell {
            Tell::Activity(text) => {
                let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
                if told.is_some_and(|told| told.elapsed() < ACTIVITY) {
                    return;
                }
                *told = Some(Instant::now());
                RunEvent::Activity { step, text, waiting: false }
            }
            Tell::Waiting(text) => RunEvent::Activity { step, text, waiting: true },
            Tell::Warning(message) => RunEvent::Warning { step: Some(step), message },
            Tell::Total { rows, reused } => RunEvent::StepTotal { step, total: rows, reused },
            Tell::Progress(rows) => RunEvent::Progress { step, rows },
        });
    })
}

/// The stored result of `key`, if it is complete; otherwise why not.
pub(super) enum Lookup {
    /// Everything is there.
    Hit(Box<Manifest>),
    /// There was a result, but these of its files are missing or of another size.
    Incomplete(Vec<Digest>),
    /// There is none.
    Miss,
}

/// Why a result is not the last word.
pub(super) fn retries(manifest: &Manifest) -> String {
    match manifest.retry_rows {
        1 => "one row failed and is tried again".to_string(),
        rows => format!("{rows} rows failed and are tried again"),
    }
}

pub(super) async fn lookup(store: &Store, key: &Digest) -> Result<Lookup, RunError> {
    let Some(manifest) = store.manifest(key).await? else { return Ok(Lookup::Miss) };
    let missing = store.missing_blobs(&manifest).await;
    Ok(if missing.is_empty() {
        Lookup::Hit(Box::new(manifest))
    } else {
        Lookup::Incomplete(missing)
    })
}

/// Computes a step and stores its result; the manifest comes last.
pub(super) async fn compute(
    plan: &Plan,
    at: usize,
    keyed_step: &Keyed,
    done: &Done,
    cx: &StepContext,
) -> Result<Manifest, RunError> {
    let started = Instant::now();
    let step = &plan.steps[at];
    let mut inputs = BTreeMap::new();
    for input in &step.inputs {
        let session = match step.step.lowering() {
            Lowering::Row(_) => &cx.ordered,
            Lowering::FanOut(_) | Lowering::Paid(_) | Lowering::Table(_) => &cx.lower.session,
        };
        let df = open(session, &cx.store, plan, input, done)?;
        inputs.insert(input.port.clone(), df);
    }
    let mut pending = row::Pending::default();
    let (ports, counts): (Ports, Option<(u64, u64)>) = match step.step.lowering() {
        Lowering::Row(row) => {
            let input = inputs.into_values().next();
            let recipe = keyed_step.preimage.recipe();
            let result = row::run(cx, row, input, recipe).await?;
            pending = result.pending;
            (result.ports, Some((result.computed, result.reused)))
        }
        Lowering::FanOut(each) => {
            let input = inputs.into_values().next();
            let input = input.ok_or_else(|| StepError::new("the operator needs an input"))?;
            let recipe = keyed_step.preimage.recipe();
            let result = each::run(cx, each, input, recipe).await?;
            (result.ports, Some((result.computed, result.reused)))
        }
        Lowering::Paid(ask) => {
            let recipe = keyed_step.preimage.recipe();
            let asked = ask::run(cx, ask, inputs, recipe).await?;
            (asked.ports, Some((asked.computed, asked.reused)))
        }
        Lowering::Table(table) => (table.lower(&cx.lower, inputs).await?, None),
    };
    let sorted = matches!(step.step.lowering(), Lowering::Row(_));
    let hints = Hints { threads: cx.jobs, sorted };
    let mut artifacts = Vec::with_capacity(ports.len());
    for (name, df) in ports {
        let port = step
            .port(name)
            .ok_or_else(|| StepError::new(format!("the operator has no port {name}")))?;
        let first = artifacts.is_empty() && counts.is_none();
        let rows = std::sync::atomic::AtomicU64::new(0);
        let on_rows = |n| {
            let before = rows.fetch_add(n, std::sync::atomic::Ordering::Relaxed);
            if first {
                cx.progress(before + n);
            }
        };
        artifacts.push(store_table(df, name, &port.table, &cx.store, hints, on_rows).await?);
    }
    pending.finish().await?;
    // A file that changed while it was read may have given a mixture of both.
    let unchanged = keyed(plan, step, done)?;
    if unchanged.preimage.files != keyed_step.preimage.files {
        return Err(StepError::new("a file changed while it was being read")
            .help("run again when it no longer changes")
            .into());
    }
    let rows = artifacts.first().map_or(0, |a| a.rows);
    let (computed_rows, reused_rows) = counts.unwrap_or((rows, 0));
    let manifest = Manifest {
        format: FORMAT_VERSION,
        key: keyed_step.preimage.key(),
        preimage: keyed_step.preimage.clone(),
        labels: ManifestLabels {
            step: step.name.clone(),
            workflow: plan.name.clone(),
            file_names: keyed_step.files.iter().map(|f| f.name.clone()).collect(),
        },
        created: timestamp(),
        seconds: started.elapsed().as_secs_f64(),
        computed_rows,
        reused_rows,
        retry_rows: cx.lower.retry.load(std::sync::atomic::Ordering::Relaxed),
        ports: artifacts,
    };
    cx.store.put_manifest(&manifest).await?;
    Ok(manifest)
}
