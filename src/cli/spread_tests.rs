//! Steps give the same tables when their work is sent to engines, even if the engines fail.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::registry::REGISTRY;
use galeras_base::digest::Digest;
use galeras_engine::plan::{Plan, PlanSettings, plan};
use galeras_engine::runner::{
    Embedded, Engine, EngineError, RunOptions, RunOutcome, Worker, build_stamp, run,
};
use galeras_operator::event::{EventSink, RunEvent, RunStatus};
use galeras_operator::{Access, Consent, FullConsent, RefusedAccess, RunEnv};
use galeras_store::Store;

const WORKFLOW: &str = r#"galeras: 1
name: spread
steps:
  rows: { op: read, with: { path: rows.csv, key: [id] } }
  parsed: { op: ast, from: rows }
  kept:
    op: sql
    from: parsed
    with: { query: "select id, code, n_words, filler from input where n_words > 2", key: [id] }
  counts: { op: describe, from: kept, with: { columns: [n_words] } }
  both: { op: union, from: { a: parsed, b: kept }, with: { label: table, columns: [id, code, filler, n_words] } }
"#;

/// The behaviour of an in-process engine.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mood {
    Plain,
    /// Every item twice, side by side.
    Twice,
    /// At first it does every third item only, but reports all as done.
    Lazy,
    /// At first it is unreachable, and later it forgets the job in the middle.
    Shaky,
    /// It does nothing, but reports all as done.
    Idle,
}

#[derive(Debug)]
struct Inside {
    worker: Arc<Worker>,
    mood: Mood,
    build: String,
    calls: AtomicU32,
    /// Requested items, including repeated ones.
    items: AtomicU32,
}

impl Engine for Inside {
    fn address(&self) -> Option<&str> {
        Some("df://inside")
    }

    fn build(&self) -> &str {
        &self.build
    }

    fn scatter<'a>(
        &'a self,
        job: &'a str,
        items: &'a [u32],
    ) -> BoxFuture<'a, Result<(), EngineError>> {
        Box::pin(async move {
            let call = self.calls.fetch_add(1, Ordering::SeqCst);
            self.items.fetch_add(items.len() as u32, Ordering::SeqCst);
            let lost = || Err(EngineError::Unreachable("it went away".into()));
            match self.mood {
                Mood::Idle => return Ok(()),
                Mood::Shaky if call == 0 => return lost(),
                _ => {}
            }
            for (at, item) in items.iter().enumerate() {
                match self.mood {
                    Mood::Lazy if call.is_multiple_of(2) && at % 3 > 0 => continue,
                    Mood::Shaky if call == 1 && at > items.len() / 2 => return lost(),
                    Mood::Twice => {
                        let twice = tokio::join!(
                            self.worker.perform(job, *item),
                            self.worker.perform(job, *item)
                        );
                        twice.0.and(twice.1).unwrap();
                    }
                    _ => self.worker.perform(job, *item).await.unwrap(),
                }
            }
            Ok(())
        })
    }
}

#[derive(Default)]
struct Events(Mutex<Vec<RunEvent>>);

impl EventSink for Events {
    fn send(&self, event: RunEvent) {
        self.0.lock().unwrap().push(event);
    }
}

async fn planned(folder: &Path) -> Arc<Plan> {
    let settings = PlanSettings {
        downloads: folder.join("downloads"),
        working_dir: folder.to_path_buf(),
        ..PlanSettings::default()
    };
    let (plan, diagnostics) = plan(&folder.join("w.yaml"), REGISTRY, &settings).await;
    assert!(diagnostics.is_empty(), "{:?}", diagnostics.as_slice());
    Arc::new(plan.unwrap())
}

async fn ran(
    plan: &Arc<Plan>,
    store: &Store,
    engine: Arc<dyn Engine>,
) -> (RunOutcome, Vec<RunEvent>) {
    ran_with(plan, store, engine, Arc::new(FullConsent)).await
}

async fn ran_with(
    plan: &Arc<Plan>,
    store: &Store,
    engine: Arc<dyn Engine>,
    consent: Arc<dyn Consent>,
) -> (RunOutcome, Vec<RunEvent>) {
    let events = Arc::new(Events::default());
    let options = RunOptions {
        env: RunEnv {
            jobs: 2,
            memory: 1 << 30,
            consent,
            cancel: CancellationToken::new(),
            events: Arc::clone(&events) as Arc<dyn EventSink>,
        },
        select: None,
        force: Default::default(),
        outputs: None,
        remembered: None,
        keep_going: false,
        engine,
        remote: None,
        started: Instant::now(),
    };
    let outcome = run(Arc::clone(plan), store.clone(), options).await;
    let events = std::mem::take(&mut *events.0.lock().unwrap());
    (outcome, events)
}

fn digests(outcome: &RunOutcome) -> Vec<Vec<(String, Digest, u64)>> {
    assert_eq!(outcome.status, RunStatus::Ok, "{:?}", outcome.steps);
    let ports = |step: &galeras_operator::event::StepSummary| {
        step.ports.iter().map(|port| (port.port.clone(), port.digest, port.rows)).collect()
    };
    outcome.steps.iter().map(ports).collect()
}

/// A folder with the workflow and 3,600 rows, which do not compress well.
fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut rows = String::from("id,code,filler\n");
    for row in 0..3_600_u32 {
        let filler: String = (0..10_u32)
            .map(|part| {
                blake3::hash(&[row.to_le_bytes(), part.to_le_bytes()].concat()).to_hex().to_string()
            })
            .collect();
        let code = match row % 7 {
            0 => "x = (\n".to_string(),
            _ => format!("def f{row}(a, b):\n    return a + {row} * b\n"),
        };
        writeln!(rows, "{row:06},\"{code}\",{filler}").unwrap();
    }
    std::fs::write(folder.path().join("rows.csv"), rows).unwrap();
    std::fs::write(folder.path().join("w.yaml"), WORKFLOW).unwrap();
    folder
}

fn inside(store: &Store, folder: &Path, mood: Mood, build: Option<&str>) -> Arc<Inside> {
    let downloads = folder.join("downloads");
    let name = "worker-1".to_string();
    let worker = Arc::new(Worker::new(name, REGISTRY, store.clone(), downloads, (2, 1 << 30)));
    let build = build.map_or_else(|| build_stamp(&REGISTRY), str::to_string);
    Arc::new(Inside { worker, mood, build, calls: AtomicU32::new(0), items: AtomicU32::new(0) })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn the_tables_are_those_of_an_embedded_run_whatever_happens_on_the_way() {
    let folder = project();
    let plan = planned(folder.path()).await;
    let store =
        async |name: &str| Store::open(&folder.path().join(name).to_string_lossy()).await.unwrap();
    let alone = ran(&plan, &store("alone").await, Arc::new(Embedded)).await.0;
    let expected = digests(&alone);
    for mood in [Mood::Plain, Mood::Twice, Mood::Lazy, Mood::Shaky] {
        let store = store(&format!("{mood:?}")).await;
        let engine = inside(&store, folder.path(), mood, None);
        let (outcome, events) = ran(&plan, &store, Arc::clone(&engine) as Arc<dyn Engine>).await;
        assert_eq!(digests(&outcome), expected, "{mood:?}");
        let parsed = outcome.steps.iter().find(|step| step.step == "parsed").unwrap();
        assert_eq!((parsed.computed_rows, parsed.reused_rows), (3_600, 0), "{mood:?}");
        // The rows of `parsed` in ranges; it, `kept`, `counts` and `both` as a whole.
        assert!(engine.items.load(Ordering::SeqCst) >= 4 + 4, "{mood:?}: {engine:?}");
        let by_worker = |event: &RunEvent| matches!(event, RunEvent::Activity { text, .. } if text.contains("worker-1"));
        assert!(events.iter().any(by_worker), "{mood:?}");
        // No files of the work are left, and the next run computes nothing.
        assert!(!folder.path().join(format!("{mood:?}/work")).join("x").exists());
        let left = std::fs::read_dir(folder.path().join(format!("{mood:?}/work"))).unwrap();
        assert_eq!(left.count(), 0, "{mood:?}");
        let (again, _) = ran(&plan, &store, engine).await;
        assert!(again.steps.iter().all(|step| step.computed_rows == 0), "{mood:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_run_whose_items_nobody_does_ends_and_says_so() {
    let folder = project();
    let plan = planned(folder.path()).await;
    let store = Store::open(&folder.path().join("idle").to_string_lossy()).await.unwrap();
    let engine = inside(&store, folder.path(), Mood::Idle, None);
    let (outcome, _) = ran(&plan, &store, engine).await;
    assert_eq!(outcome.status, RunStatus::Failed);
    let failed = outcome.steps.iter().find(|step| step.detail.is_some()).unwrap();
    let detail = failed.detail.as_deref().unwrap();
    assert!(failed.step == "parsed" && detail.contains("times without a result"), "{detail}");
    assert!(detail.contains("the same store"), "{detail}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_worker_of_another_build_is_refused_by_name() {
    let folder = project();
    let plan = planned(folder.path()).await;
    let store = Store::open(&folder.path().join("other").to_string_lossy()).await.unwrap();
    let engine = inside(&store, folder.path(), Mood::Plain, Some("galeras 9.9.9 for a toaster"));
    let (outcome, _) = ran(&plan, &store, engine).await;
    assert_eq!(outcome.status, RunStatus::Failed);
    let failed = outcome.steps.iter().find(|step| step.detail.is_some()).unwrap();
    let detail = failed.detail.as_deref().unwrap();
    assert!(detail.contains("worker-1 is galeras") && detail.contains("9.9.9"), "{detail}");
}

const MINING: &str = r#"galeras: 1
name: mining
steps:
  repos: { op: read, with: { path: repos.csv, key: [repo] } }
  mined: { op: mine, from: repos, with: { since: 2022-01-01, until: 2023-01-01 } }
"#;

/// The user agrees to everything except reading folders of this name.
#[derive(Debug)]
struct AllBut(&'static str);

impl Consent for AllBut {
    fn refusal(&self, access: &Access) -> Option<RefusedAccess> {
        let Access::Read { path } = access else { return None };
        let (message, help) = (format!("reads {}", path.display()), "say yes".to_string());
        path.ends_with(self.0).then_some(RefusedAccess { message, help })
    }
}

/// A repository with one commit that adds a method; returns the commit.
fn repository(folder: &Path) -> String {
    std::fs::create_dir(folder).unwrap();
    let method = format!("def {}():\n    return 1\n", folder.file_name().unwrap().display());
    std::fs::write(folder.join("a.py"), method).unwrap();
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        git.current_dir(folder).env_clear().env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", folder);
        git.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        for who in ["AUTHOR", "COMMITTER"] {
            git.env(format!("GIT_{who}_NAME"), "Ann").env(format!("GIT_{who}_EMAIL"), "ann@x.org");
            git.env(format!("GIT_{who}_DATE"), "2022-06-01T00:00:00Z");
        }
        let ended = git.args(args).output().unwrap();
        assert!(ended.status.success(), "{ended:?}");
        String::from_utf8(ended.stdout).unwrap().trim().to_string()
    };
    git(&["init", "--quiet"]);
    git(&["add", "a.py"]);
    git(&["commit", "--quiet", "--message", "Begin"]);
    git(&["rev-parse", "HEAD"])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_repository_to_which_the_user_did_not_agree_is_opened_by_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let mut rows = String::from("repo,clone_url,head_sha\n");
    for name in ["agreed", "private"] {
        let head = repository(&folder.path().join(name));
        writeln!(rows, "{name},./{name},{head}").unwrap();
    }
    std::fs::write(folder.path().join("repos.csv"), rows).unwrap();
    std::fs::write(folder.path().join("w.yaml"), MINING).unwrap();
    let plan = planned(folder.path()).await;
    let store =
        async |name: &str| Store::open(&folder.path().join(name).to_string_lossy()).await.unwrap();
    let consent = || Arc::new(AllBut("private"));
    let alone = store("alone").await;
    let alone = ran_with(&plan, &alone, Arc::new(Embedded), consent()).await.0;
    let store = store("spread").await;
    let engine = inside(&store, folder.path(), Mood::Plain, None);
    let by_worker = Arc::clone(&engine) as Arc<dyn Engine>;
    let (outcome, events) = ran_with(&plan, &store, by_worker, consent()).await;
    assert_eq!(digests(&outcome), digests(&alone));
    let mined = &outcome.steps[1];
    let rows: Vec<u64> = mined.ports.iter().map(|port| port.rows).collect();
    assert_eq!(rows, [1, 1], "a method of `agreed`, and a reject: {mined:?}");
    // The worker did `agreed`, and the run reports why the other step has no result.
    assert!(engine.items.load(Ordering::SeqCst) > 0, "{engine:?}");
    let why = |event: &RunEvent| matches!(event, RunEvent::Warning { message, .. } if message.contains("private: this reads"));
    assert!(events.iter().any(why), "{events:?}");
}
