//! Targets of the engine: what it reads of a workflow, the files of stores, of users and of
//! strangers, and typed input.

mod bundles;
mod given;
mod sql;
mod stored;
mod tables;
mod templates;

use std::path::{Path, PathBuf};

use galeras::registry::REGISTRY;
use galeras_engine::plan::{Locking, Plan, PlanSettings, plan};
use galeras_workflow::{Diagnostics, Severity, parse, plain, render, to_json};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use crate::Target;

/// The most memory of the process: templates and SQL may ask for any amount, as in the program.
const MEMORY: u64 = 4 << 30;

pub(crate) fn targets() -> Vec<Target> {
    galeras_base::memory_guard::start(MEMORY, |_| std::process::abort(), || std::process::abort())
        .unwrap();
    let target = |name, run| Target { name, run };
    vec![
        target("workflow", workflow),
        target("templates", templates::templates),
        target("row_expression", sql::row_expression),
        target("sql_query", sql::query),
        target("lock_file", stored::lock_file),
        target("manifest", stored::manifest),
        target("journal", stored::journal),
        target("read_parquet", |input| tables::read("parquet", input)),
        target("read_csv", |input| tables::read("csv", input)),
        target("read_json", |input| tables::read("json", input)),
        target("read_jsonl", |input| tables::read("jsonl", input)),
        target("exec_output", tables::exec_output),
        target("bundle", bundles::bundle),
        target("spending", stored::spending),
        target("ratings", given::ratings),
        target("tokenizer_model", given::tokenizer_model),
        target("allowed_access", given::allowed_access),
        target("table_filter", given::table_filter),
    ]
}

/// Reads a workflow file; nothing in it is resolved.
fn workflow(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (workflow, diagnostics) = parse("w.yaml", &text);
    shown(&diagnostics);
    assert!(workflow.is_some() || diagnostics.has_errors());
    let (again, same) = parse("w.yaml", &text);
    assert_eq!(diagnostics.as_slice(), same.as_slice());
    assert_eq!(workflow.is_some(), again.is_some());
}

thread_local! {
    /// On this thread, so that what overflows the stack overflows that of the fuzzer.
    static RUNTIME: Runtime = Builder::new_current_thread().enable_all().build().unwrap();
    /// A folder for the files of all inputs, one after the other.
    static FOLDER: TempDir = tempfile::tempdir().unwrap();
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.with(|runtime| runtime.block_on(future))
}

fn folder() -> PathBuf {
    FOLDER.with(|folder| folder.path().to_path_buf())
}

/// Plans the workflow file in `folder`, and checks its diagnostics.
async fn planned(folder: &Path, text: &str) -> Option<Plan> {
    let file = folder.join("w.yaml");
    std::fs::write(&file, text).unwrap();
    let settings = PlanSettings {
        working_dir: folder.to_path_buf(),
        downloads: folder.join("downloads"),
        lock: Locking::Ignored,
        ..PlanSettings::default()
    };
    let (plan, diagnostics) = plan(&file, REGISTRY, &settings).await;
    assert_eq!(plan.is_none(), diagnostics.has_errors());
    shown(&diagnostics);
    plan
}

/// Diagnostics can be shown in every form, and none steers a terminal.
fn shown(diagnostics: &Diagnostics) {
    let harmless = |text: &str| {
        let control = text.chars().find(|c| c.is_control() && !"\n\t".contains(*c));
        assert_eq!(control, None, "in {text:?}");
    };
    harmless(&render(diagnostics.as_slice(), false, 80));
    let _ = render(diagnostics.as_slice(), true, 40);
    for diagnostic in diagnostics {
        let span = &diagnostic.span;
        let text = span.source.text();
        assert!(text.is_char_boundary(span.start) && text.is_char_boundary(span.end()), "{span:?}");
        let line = plain(diagnostic);
        harmless(&line);
        assert_eq!(line.matches('\n').count(), 1, "{line:?}");
        let json = to_json(diagnostic);
        assert!(json["line"].as_u64() >= Some(1) && json["column"].as_u64() >= Some(1));
        assert!(!diagnostic.message.is_empty());
    }
    let errors = diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    assert!(!errors || diagnostics.has_errors());
}
