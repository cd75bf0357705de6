//! Loads what verbs share: a workflow with its store and the state of its steps. Verbs that look at
//! results use the settings of the last run by default.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

pub(super) use super::exit::{Exit, Failure, both, cannot_write, fail, failed};
use super::remote::RemoteArgs;
use super::screen::tell;
pub(super) use super::screen::{answer, color, note, print, print_json, width};
use super::store_places::{StorePlaces, check_origin, refuse_linked};
use super::{Format, Settings, WorkflowArgs};
use crate::registry::REGISTRY;
use galeras_base::terminal_escape::{escape, shell_word};
use galeras_engine::plan::{Locking, Plan, PlanSettings, PlannedSigners, lock_path, plan};
use galeras_engine::runner::Remote;
use galeras_operator::{Consent, Fact};
use galeras_store::{RunSettings, Store, StoreError};
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
async fn planned(
    args: &WorkflowArgs,
    settings: Settings,
    format: Format,
    out: &Path,
) -> Result<Plan, Failure> {
    let (cache, lock) = (args.cache()?, Locking::Pinned);
    let planned = plan_into(&args.file, settings, &cache, lock, args.trust(None), out);
    let (plan, diagnostics) = planned.await?;
    show_diagnostics(&diagnostics, format);
    plan.ok_or_else(|| Exit::Invalid.into())
}

/// Plans a workflow with its pins, and outputs below the current folder.
pub(super) async fn plan_file(
    file: &Path,
    settings: Settings,
    cache: &str,
    consent: Arc<dyn Consent>,
) -> Result<(Option<Plan>, Diagnostics), Failure> {
    plan_into(file, settings, cache, Locking::Pinned, consent, Path::new(".")).await
}

pub(super) async fn plan_into(
    file: &Path,
    Settings { set, folder }: Settings,
    cache: &str,
    lock: Locking,
    consent: Arc<dyn Consent>,
    out: &Path,
) -> Result<(Option<Plan>, Diagnostics), Failure> {
    check_local(out)?;
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

/// Opens the store of a workflow to use its results.
pub(super) async fn open_results(args: &WorkflowArgs) -> Result<Store, Failure> {
    let cache = args.cache()?;
    check_origin(&cache, args.trust_store);
    open_store(&cache).await
}

pub(super) async fn load(args: &WorkflowArgs, format: Format) -> Result<Surveyed, Failure> {
    let plan = planned(args, Settings::typed(&args.set), format, Path::new(".")).await?;
    let cache = args.cache()?;
    Ok(Surveyed::of(plan, open_results(args).await?, &cache, None).await?)
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
    let mut plan = planned(args, Settings::typed(&args.set), format, out).await?;
    remote.settle(&mut plan);
    let consent = args.trust(ask.then_some(out));
    let signers = || {
        let access = plan.allowed_signers.as_ref().map(PlannedSigners::access);
        access.and_then(|access| consent.refusal(&access))
    };
    let refused = if ask { RemoteArgs::refusal(&plan, &*consent) } else { signers() };
    let remote = match refused {
        Some(_) => None,
        None => remote.open(&plan).await?,
    };
    let store = open_results(args).await?;
    let asked = remote.as_deref().filter(|_| ask);
    let surveyed = Surveyed::of(plan, store, &args.cache()?, asked).await?;
    for warning in asked.iter().flat_map(|remote| remote.untold()) {
        note(&format!("warning: {}", escape(&warning)));
    }
    if asked.is_some() {
        warn_without_lock(&surveyed, &args.file);
    }
    Ok((surveyed, remote))
}

/// Warns if results are missing in the remote, as they may be, since the answers that they depend on
/// are not pinned here.
fn warn_without_lock(surveyed: &Surveyed, file: &Path) {
    let lock = lock_path(file);
    let steps = surveyed.plan.steps.iter().zip(&surveyed.states);
    let asks = steps.filter(|(step, state)| {
        let is_pinnable = !matches!(step.step.fact(), None | Some(Fact::Moving(_)));
        is_pinnable && !state.forecast.is_hit()
    });
    let mut names: Vec<&str> = asks.map(|(step, _)| step.family.as_str()).collect();
    names.dedup();
    let Some(first) = names.first().filter(|_| !lock.exists()) else { return };
    let more = if names.len() > 1 { " and others" } else { "" };
    note(&format!(
        "warning: {} is missing: results of `{}`{more} may be in the remote for the versions that it \
         pins; ask for it where the results come from, or a run asks (and pays) again",
        escape(&lock.display().to_string()),
        escape(first)
    ));
}

/// A workflow and the settings of the results to show.
#[derive(Args, Clone, Debug)]
pub(crate) struct LookArgs {
    #[command(flatten)]
    pub(crate) workflow: WorkflowArgs,
    /// Look at the results for the defaults of the params. Without this and without `--set`, it
    /// is those for the `--set` of the last run.
    #[arg(long, conflicts_with = "set")]
    pub(crate) defaults: bool,
}

/// The longest value that a note shows in full.
const LONGEST_VALUE: usize = 60;

impl LookArgs {
    /// The given settings, or else those of the last run, with a note that they are used.
    pub(super) async fn settings(&self, store: &Store) -> Result<Settings, StoreError> {
        let given = Settings::typed(&self.workflow.set);
        if self.defaults || !given.set.is_empty() {
            return Ok(given);
        }
        // A file that does not exist is reported when it is read.
        let Some(path) = real_path(&self.workflow.file) else { return Ok(given) };
        let last = store.last_run(|run| run.settings.path == path).await?;
        match last.map(|run| run.settings).filter(|settings| !settings.set.is_empty()) {
            None => Ok(given),
            Some(RunSettings { set, set_folder, .. }) => {
                note(&mention(&set));
                Ok(Settings { set, folder: PathBuf::from(set_folder) })
            }
        }
    }
}

/// The settings to remember from a run of the workflow in `file`.
pub(super) fn settings_of_run(file: &Path, settings: &Settings) -> Option<RunSettings> {
    Some(RunSettings {
        path: real_path(file)?,
        set: settings.set.clone(),
        set_folder: settings.folder.to_string_lossy().into_owned(),
    })
}

fn real_path(file: &Path) -> Option<String> {
    file.canonicalize().ok().map(|path| path.to_string_lossy().into_owned())
}

/// The note that these settings are used although they were not given now.
fn mention(set: &[String]) -> String {
    let shown = |setting: &String| {
        let word = match setting.char_indices().nth(LONGEST_VALUE) {
            Some((end, _)) => format!("{}…", &setting[..end]),
            None => setting.clone(),
        };
        format!("--set {}", shell_word(&word))
    };
    let shown: Vec<String> = set.iter().map(shown).collect();
    format!(
        "with {} as in the last run; --set NAME=VALUE or --defaults for others",
        shown.join(" ")
    )
}

/// The workflow with the given settings, or else those of its last run.
pub(super) async fn look(args: &LookArgs, format: Format) -> Result<Surveyed, Failure> {
    let workflow = &args.workflow;
    let store = open_results(workflow).await?;
    let settings = args.settings(&store).await?;
    // Only settings typed now name files that may be read: a store may come from anywhere.
    let plan = planned(workflow, settings, format, Path::new(".")).await?;
    Ok(Surveyed::of(plan, store, &workflow.cache()?, None).await?)
}

/// The step that the command line names, or the error with the names that it may have.
pub(super) fn named_step<'a>(plan: &Plan, step: Option<&'a str>) -> Result<&'a str, Failure> {
    step.ok_or_else(|| {
        let message = format!("name a step; the steps are {}", plan.table_names().join(", "));
        fail(message, Exit::Invalid)
    })
}

/// Refuses a path that other programs read as the address of a server or as a folder of a user: a
/// folder of that name would be made here.
pub(super) fn check_local(path: &Path) -> Result<(), Failure> {
    let text = path.to_string_lossy();
    let problem = match text.split('/').next() {
        _ if text.contains("://") => "is a URL; give a path of this machine",
        Some(first) if first.starts_with('~') && !Path::new(first).exists() => {
            "would be in a folder `~`: only a shell knows it, and only at the start of a word; write \
             $HOME"
        }
        _ => return Ok(()),
    };
    Err(fail(format!("{} {problem}", escape(&text)), Exit::Invalid))
}

/// Refuses a file whose suffix is that of another format than those that are written.
pub(super) fn check_suffix(path: &Path, written: &[&str]) -> Result<(), Failure> {
    check_local(path)?;
    let Some(suffix) = path.extension().map(|suffix| suffix.to_string_lossy()) else {
        return Ok(());
    };
    if written.contains(&&*suffix) {
        return Ok(());
    }
    let (path, suffix) = (escape(&path.display().to_string()), escape(&suffix));
    let message =
        format!("{path} would not be a .{suffix} file; this verb writes .{}", written.join(", ."));
    Err(fail(message, Exit::Invalid))
}

/// Refuses to replace a file that the workflow reads, or the workflow itself.
pub(super) fn check_not_read(plan: &Plan, path: &Path) -> Result<(), Failure> {
    // A file that does not exist replaces nothing.
    let Ok(own) = path.canonicalize() else { return Ok(()) };
    if !plan.files().iter().any(|read| read.canonicalize().is_ok_and(|read| read == own)) {
        return Ok(());
    }
    let path = escape(&path.display().to_string());
    let message = format!("the workflow reads {path}, which would be replaced; name another file");
    Err(fail(message, Exit::Invalid))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_mentioned_on_one_safe_line() {
        let long = format!("long={}", "x".repeat(1000));
        let set = ["n=5", "text=a\nb\u{1b}[2J", &long].map(String::from);
        let line = mention(&set);
        assert!(line.starts_with(r"with --set n=5 --set $'text=a\nb\x1b[2J' --set "), "{line}");
        assert!(!line.contains('\n') && line.chars().count() < 250, "{line}");
    }
}
