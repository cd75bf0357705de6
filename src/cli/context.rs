//! Loads what verbs share: a workflow with its store and the state of its steps.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::allow::trust;
pub(super) use super::exit::{Exit, Failure, both, cannot_write, fail, failed};
use super::recall::LookArgs;
use super::remote_args::RemoteArgs;
use super::screen::tell;
pub(super) use super::screen::{answer, color, note, print, print_json, width};
use super::store_places::{StorePlaces, refuse_linked};
use super::{Format, Settings, WorkflowArgs};
use crate::registry::REGISTRY;
use galeras_base::terminal_escape::escape;
use galeras_engine::plan::{Locking, Plan, PlanSettings, PlannedSigners, plan};
use galeras_engine::runner::Remote;
use galeras_operator::Consent;
use galeras_store::Store;
pub(super) use galeras_study::Surveyed;
use galeras_workflow::{Diagnostics, did_you_mean, render, to_json};

/// Shows diagnostics: for people on standard error, as JSON on standard output.
pub(super) fn show_diagnostics(diagnostics: &Diagnostics, format: Format) {
    if diagnostics.is_empty() {
        return;
    }
    match format {
        Format::Human => {
            let text = render(diagnostics.as_slice(), color(), usize::from(width()));
            tell(&text);
        }
        Format::Json => {
            for diagnostic in diagnostics {
                let mut line = serde_json::json!({"event": "diagnostic"});
                if let (Some(map), serde_json::Value::Object(rest)) =
                    (line.as_object_mut(), to_json(diagnostic))
                {
                    map.extend(rest);
                }
                let _ = print_json(&line);
            }
        }
    }
}

/// Plans the workflow, with outputs below the folder `out`; shows its errors.
async fn load_for(args: &WorkflowArgs, format: Format, out: &Path) -> Result<Plan, Failure> {
    load_set(args, Settings::typed(&args.set), format, out).await
}

async fn load_set(
    args: &WorkflowArgs,
    settings: Settings,
    format: Format,
    out: &Path,
) -> Result<Plan, Failure> {
    let consent = trust(&args.file, &args.set, &args.allow, None);
    let (cache, lock) = (&args.store.cache, Locking::Pinned);
    let (plan, diagnostics) = plan_file(&args.file, settings, cache, lock, consent, out).await?;
    show_diagnostics(&diagnostics, format);
    plan.ok_or_else(|| Exit::Invalid.into())
}

pub(super) async fn plan_file(
    file: &Path,
    Settings { set, folder }: Settings,
    cache: &str,
    lock: Locking,
    consent: Arc<dyn Consent>,
    out: &Path,
) -> Result<(Option<Plan>, Diagnostics), Failure> {
    let StorePlaces { downloads, guarded } = StorePlaces::of(cache)?;
    let settings = PlanSettings {
        set,
        set_folder: folder,
        working_dir: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
        downloads,
        out: out.to_path_buf(),
        guarded,
        lock,
        consent,
    };
    Ok(plan(file, REGISTRY, &settings).await)
}

pub(super) async fn open_store(location: &str) -> Result<Store, Failure> {
    refuse_linked(location)?;
    Ok(Store::open(location).await?)
}

pub(super) async fn load(args: &WorkflowArgs, format: Format) -> Result<Surveyed, Failure> {
    let plan = load_for(args, format, Path::new(".")).await?;
    let cache = &args.store.cache;
    Ok(Surveyed::of(plan, open_store(cache).await?, cache, None).await?)
}

/// Like [`load`], with outputs below the folder `out`, and with the remote unless using it needs
/// consent first. Without `ask`, the remote is only written to, and not asked for its results.
pub(super) async fn load_with_remote(
    args: &WorkflowArgs,
    format: Format,
    out: &Path,
    remote: &RemoteArgs,
    ask: bool,
) -> Result<(Surveyed, Option<Arc<Remote>>), Failure> {
    let mut plan = load_for(args, format, out).await?;
    remote.settle(&mut plan);
    let consent = trust(&args.file, &args.set, &args.allow, ask.then_some(out));
    let signers = || {
        let access = plan.allowed_signers.as_ref().map(PlannedSigners::access);
        access.and_then(|access| consent.refusal(&access))
    };
    let refused = if ask { RemoteArgs::refusal(&plan, &*consent) } else { signers() };
    let remote = match refused {
        Some(_) => None,
        None => remote.open(&plan).await?,
    };
    let store = open_store(&args.store.cache).await?;
    let asked = remote.as_deref().filter(|_| ask);
    let surveyed = Surveyed::of(plan, store, &args.store.cache, asked).await?;
    for warning in asked.iter().flat_map(|remote| remote.untold()) {
        note(&format!("warning: {}", escape(&warning)));
    }
    Ok((surveyed, remote))
}

/// The workflow with the given settings, or else those of its last run.
pub(super) async fn look(args: &LookArgs, format: Format) -> Result<Surveyed, Failure> {
    let workflow = &args.workflow;
    let store = open_store(&workflow.store.cache).await?;
    let settings = args.settings(&store).await?;
    // Only settings typed now name files that may be read: a store may come from anywhere.
    let plan = load_set(workflow, settings, format, Path::new(".")).await?;
    Ok(Surveyed::of(plan, store, &workflow.store.cache, None).await?)
}

pub(super) fn unknown_step(plan: &Plan, name: &str) -> Failure {
    let known = plan.table_names();
    // Ports and outputs of embedded workflows are not steps.
    let known = known.iter().map(String::as_str).filter(|name| !name.contains('.'));
    let message = format!("the workflow has no step `{name}`");
    fail_unknown(&message, name.split('[').next().unwrap_or(name), known, "the steps are")
}

/// `MESSAGE; HELP`
pub(super) fn with_help(message: String, help: Option<String>) -> String {
    match help {
        Some(help) => format!("{message}; {help}"),
        None => message,
    }
}

/// The error for an unknown name on the command line, with the closest name, or else with all known
/// names after `known_as` ("the steps are").
pub(super) fn fail_unknown<'a>(
    message: &str,
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
    known_as: &str,
) -> Failure {
    let known: Vec<&str> = known.into_iter().collect();
    let help = match did_you_mean(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("{known_as} {}", known.join(", ")),
    };
    fail(format!("{message}; {help}"), Exit::Invalid)
}
