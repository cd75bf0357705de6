//! Runs of workflows in the process of the test, which is all that a test of an operator needs.
//!
//! The steps of `run FILE --format json --allow exec,unsandboxed` and of `show --format json`, without their
//! program. A workflow that needs more than planning and computing (consent, a requirement that is
//! missing, a report, a remote) is left to the program.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Instant;

use serde_json::{Value, json};

use crate::harness::{Outcome, binary};
use galeras::registry::REGISTRY;
use galeras_display::{JsonReporter, TableFormat, TableWriter};
use galeras_engine::plan::{Input, Locking, Plan, PlanSettings, plan, preflight};
use galeras_engine::runner::{
    Embedded, OutputOptions, RunOptions, StepManifests, open, output_conflicts, run,
};
use galeras_engine::trust::{Allowance, Ground, StoreMemory, Trust, TrustMemory, requests};
use galeras_operator::RunEnv;
use galeras_operator::event::{EventSink, RunStatus};
use galeras_operators::sandbox::use_launcher;
use galeras_sql::session::session;
use galeras_store::{RunSettings, STORE_FOLDERS, Store};
use galeras_workflow::{Diagnostics, to_json};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// The stack of the program's threads.
const STACK_BYTES: usize = 64 << 20;
/// The memory of one run; the program has a share of the machine's.
const MEMORY: usize = 1 << 30;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.thread_stack_size(STACK_BYTES).enable_all().build().expect("threads start")
});

/// The results of a run.
pub struct Computed {
    /// The workflow's file and its text.
    file: PathBuf,
    text: String,
    /// The values of params, `name=value`.
    pub set: Vec<String>,
    plan: Arc<Plan>,
    store: Store,
    manifests: Box<StepManifests>,
}

/// Bytes that another part of the test reads at the end.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs a workflow of the project at `root` with these values of params; `None` if it is a run for
/// the program.
pub fn run_here(
    root: &Path,
    home: &Path,
    file: &str,
    set: &[String],
) -> Option<(Outcome, Option<Computed>)> {
    on_a_deep_stack(|| RUNTIME.block_on(perform(root, home, root.join(file), set.to_vec())))
}

/// Does this on a thread with the stack of the program's.
fn on_a_deep_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().stack_size(STACK_BYTES);
        let thread = builder.spawn_scoped(scope, work);
        thread.expect("a thread starts").join().expect("nothing panics")
    })
}

async fn perform(
    root: &Path,
    home: &Path,
    file: PathBuf,
    set: Vec<String>,
) -> Option<(Outcome, Option<Computed>)> {
    let started = Instant::now();
    let cache = root.join("cache");
    let ground = Ground::new(&file, root, Some(home), &set, Some(root));
    let memory = TrustMemory::of_user(file.clone());
    let allowed = ["exec", "unsandboxed"].map(|item| Allowance::parse(item).expect("it is known"));
    let trust = Arc::new(Trust::new(ground, memory, allowed.to_vec(), false));
    // The program of the tests does not start confined processes.
    use_launcher(binary());
    let settings = PlanSettings {
        set: set.clone(),
        set_folder: root.to_path_buf(),
        working_dir: root.to_path_buf(),
        downloads: cache.join("downloads"),
        out: root.to_path_buf(),
        guarded: STORE_FOLDERS.iter().map(|name| cache.join(name)).collect(),
        lock: Locking::Pinned,
        consent: Arc::clone(&trust) as _,
    };
    let out = Shared::default();
    let ended = |code: i32| {
        let text = String::from_utf8(out.0.lock().unwrap().clone()).expect("JSON is UTF-8");
        // The program is started in the project and shows paths as they are typed.
        let stdout = text.replace(&format!("{}/", root.display()), "");
        let took = started.elapsed();
        Outcome { code: Some(code), stdout, stderr: String::new(), took }
    };
    let (planned, diagnostics) = plan(&file, REGISTRY, &settings).await;
    tell(&out, &diagnostics);
    let Some(planned) = planned else {
        if !trust.take_refused().is_empty() {
            return None;
        }
        let invalid =
            json!({"event": "finished", "status": "invalid", "steps": [], "seconds": 0.0});
        writeln!(out.clone(), "{invalid}").unwrap();
        return Some((ended(2), None));
    };
    let all: Vec<usize> = (0..planned.steps.len()).collect();
    let more = planned.report.file.is_some()
        || planned.remote.is_some()
        || !preflight(&planned, all.iter().copied()).is_empty()
        || !trust.open(requests(&planned, &all, Some(root), &*trust)).is_empty();
    if more {
        return None;
    }
    let store = Store::open(cache.to_str().expect("a path of a test")).await.ok()?;
    StoreMemory::at(home.join(".local/share/galeras/stores")).remember(&cache).ok()?;
    let outputs = OutputOptions {
        folder: root.to_path_buf(),
        overwrite: false,
        allow_empty: false,
        digests: Arc::default(),
    };
    if !output_conflicts(&planned, &store, &all, &outputs).await.ok()?.is_empty() {
        return None;
    }
    let events: Arc<dyn EventSink> = Arc::new(JsonReporter::new(out.clone()));
    let path = file.canonicalize().ok()?.to_string_lossy().into_owned();
    let options = RunOptions {
        env: RunEnv {
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            memory: MEMORY,
            consent: trust,
            cancel: CancellationToken::new(),
            events: Arc::clone(&events),
        },
        select: None,
        force: HashSet::new(),
        outputs: Some(outputs),
        remembered: Some(RunSettings {
            path,
            set: set.clone(),
            set_folder: root.to_string_lossy().into_owned(),
        }),
        keep_going: false,
        engine: Arc::new(Embedded),
        remote: None,
        started,
    };
    let planned = Arc::new(planned);
    let outcome = run(Arc::clone(&planned), store.clone(), options).await;
    events.send(outcome.finished(started));
    let code = match outcome.status {
        RunStatus::Ok => 0,
        RunStatus::Failed => 1,
        RunStatus::AssertFailed => 3,
        _ => return None,
    };
    let text = fs::read_to_string(&file).ok()?;
    let manifests = outcome.manifests.into_boxed_slice();
    Some((ended(code), Some(Computed { file, text, set, plan: planned, store, manifests })))
}

fn tell(out: &Shared, diagnostics: &Diagnostics) {
    for diagnostic in diagnostics {
        let mut line = to_json(diagnostic);
        line["event"] = "diagnostic".into();
        writeln!(out.clone(), "{line}").unwrap();
    }
}

impl Computed {
    /// The rows of a port, if the workflow is still the one that ran and the port is computed.
    pub fn rows(&self, file: &Path, port: &str) -> Option<Vec<Value>> {
        let same = self.file == file && fs::read_to_string(file).is_ok_and(|now| now == self.text);
        let input = same.then(|| self.plan.table(port).ok())??;
        if input.tables.iter().any(|table| self.manifests[table.step].is_none()) {
            return None;
        }
        let read = || async {
            let session = session(1);
            let mut lines = Vec::new();
            // One cell after the other, as `show` does.
            for table in &input.tables {
                let cell = Input { tables: vec![table.clone()], ..input.clone() };
                let rows = open(&session, &self.store, &self.plan, &cell, &self.manifests).ok()?;
                let schema = Arc::new(rows.schema().as_arrow().clone());
                let mut writer = TableWriter::new(Vec::new(), schema, TableFormat::Json).ok()?;
                for batch in rows.collect().await.ok()? {
                    writer.write(&batch).ok()?;
                }
                lines.extend(writer.finish().ok()?);
            }
            Some(lines)
        };
        let lines = on_a_deep_stack(|| RUNTIME.block_on(read()))?;
        let text = String::from_utf8(lines).expect("JSON is UTF-8");
        Some(text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect())
    }
}
