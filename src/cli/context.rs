//! What the verbs share: a workflow with its store and the state of its steps.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::allow::trust;
pub(super) use super::exit::Exit;
use super::hint;
use super::recall::LookArgs;
use super::screen::tell;
pub(super) use super::screen::{color, fail, note, print, print_json, width};
use super::store_places::StorePlaces;
use super::{Format, Settings, WorkflowArgs};
use crate::event::Reason;
use crate::operator::Consent;
use crate::operators::REGISTRY;
use crate::plan::{Locking, Plan, PlanSettings, plan, preflight};
use crate::runner::{Forecast, RunError, StepState, survey};
use crate::store::{LockGuard, Store, StoreError};
use crate::visible::shell_word;
use crate::workflow::{Diagnostics, did_you_mean, render, to_json};

/// The exit of an error of the store or of a step.
pub(super) fn fail_run(error: &RunError) -> Exit {
    let exit = if error.blames_disk() { Exit::Disk } else { Exit::Failed };
    fail(&error.explained(), exit)
}

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
                print_json(&line);
            }
        }
    }
}

/// Plans the workflow; shows what is wrong with it, and in that case returns the exit.
pub(super) async fn load(args: &WorkflowArgs, format: Format, lock: Locking) -> Result<Plan, Exit> {
    let consent = trust(&args.file, &args.set, &args.allow, None);
    load_with(args, Settings::typed(&args.set), format, lock, consent).await
}

/// Plans the workflow with these settings; shows what is wrong with it.
async fn load_with(
    args: &WorkflowArgs,
    settings: Settings,
    format: Format,
    lock: Locking,
    consent: Arc<dyn Consent>,
) -> Result<Plan, Exit> {
    let (cache, out) = (&args.store.cache, Path::new("."));
    let (plan, diagnostics) = plan_file(&args.file, settings, cache, lock, consent, out).await?;
    show_diagnostics(&diagnostics, format);
    plan.ok_or(Exit::Invalid)
}

/// Plans the workflow in `file`; an error if there cannot be such a store.
pub(super) async fn plan_file(
    file: &Path,
    Settings { set, folder }: Settings,
    cache: &str,
    lock: Locking,
    consent: Arc<dyn Consent>,
    out: &Path,
) -> Result<(Option<Plan>, Diagnostics), Exit> {
    let StorePlaces { downloads, guarded } =
        StorePlaces::of(cache).map_err(|error| fail_cache(&error))?;
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

/// Opens the store.
pub(super) async fn open_store(location: &str) -> Result<Store, Exit> {
    Store::open(location).await.map_err(|error| fail_cache(&error))
}

/// The exit of an error of the store.
pub(super) fn fail_cache(error: &StoreError) -> Exit {
    match error.help() {
        Some(help) => fail(&format!("{error}\nhelp: {help}"), Exit::Disk),
        None => fail(&error.to_string(), Exit::Disk),
    }
}

/// A workflow with its store and the state of every step.
pub(super) struct Surveyed {
    pub(super) plan: Arc<Plan>,
    pub(super) store: Store,
    pub(super) states: Vec<StepState>,
    /// The store as it was named.
    cache: String,
    /// Nothing is removed from the store meanwhile.
    _reading: LockGuard,
}

impl Surveyed {
    pub(super) async fn load(args: &WorkflowArgs, format: Format) -> Result<Self, Exit> {
        let plan = load(args, format, Locking::Pinned).await?;
        let store = open_store(&args.store.cache).await?;
        Self::of(plan, store, args).await
    }

    /// The workflow with the settings that were given, or else those of its last run.
    pub(super) async fn look(args: &LookArgs, format: Format) -> Result<Self, Exit> {
        let store = open_store(&args.workflow.store.cache).await?;
        let settings = args.settings(&store).await.map_err(|error| fail_cache(&error))?;
        // Only what is typed now names files that may be read: a store may come from anywhere.
        let consent = trust(&args.workflow.file, &args.workflow.set, &args.workflow.allow, None);
        let plan = load_with(&args.workflow, settings, format, Locking::Pinned, consent).await?;
        Self::of(plan, store, &args.workflow).await
    }

    async fn of(plan: Plan, store: Store, args: &WorkflowArgs) -> Result<Self, Exit> {
        let reading = store.reading_lock().await.map_err(|error| fail_cache(&error))?;
        let states = survey(&plan, &store).await.map_err(|e| fail_run(&e))?;
        let cache = args.store.cache.clone();
        Ok(Self { plan: Arc::new(plan), store, states, cache, _reading: reading })
    }

    /// The results that are stored, by position in the plan.
    pub(super) fn done(&self) -> Vec<Option<Arc<crate::store::Manifest>>> {
        self.states.iter().map(|s| s.manifest.clone()).collect()
    }

    /// What the steps that would run need and do not find.
    pub(super) fn lacking(&self) -> Diagnostics {
        let runs = |at: &usize| !matches!(self.states[*at].forecast, Forecast::Hit);
        preflight(&self.plan, (0..self.states.len()).filter(runs))
    }

    /// The step and port that `name` (`valid`, `valid.rejects`) stands for.
    pub(super) fn find(&self, name: &str) -> Result<(usize, &'static str), Exit> {
        let split = |at: usize| (&name[..at], Some(&name[at + 1..]));
        let candidates =
            std::iter::once((name, None)).chain(name.rmatch_indices('.').map(|(at, _)| split(at)));
        for (step, port) in candidates {
            let Some(at) = self.plan.steps.iter().position(|s| s.name == step) else { continue };
            let ports = self.plan.steps[at].step.ports();
            let named = match port {
                None => ports.first(),
                Some(port) => ports.iter().find(|p| p.name == port),
            };
            return match named {
                Some(port) => Ok((at, port.name)),
                None => {
                    let known: Vec<&str> = ports.iter().map(|p| p.name).collect();
                    let message = format!(
                        "step `{step}` has no port `{}`; its ports are {}",
                        port.unwrap_or_default(),
                        known.join(", ")
                    );
                    Err(fail(&message, Exit::Invalid))
                }
            };
        }
        Err(unknown_step(&self.plan, name))
    }

    /// The command that computes what is missing.
    pub(super) fn command(&self) -> String {
        hint::command("run", &self.plan.file, &self.plan.set, &self.cache)
    }

    /// Says that the step has no stored result, and what to do.
    pub(super) fn not_computed(&self, at: usize) -> Exit {
        let step = &self.plan.steps[at].name;
        let state = match &self.states[at].forecast {
            Forecast::Runs { reason: Reason::BlobMissing, detail: Some(detail) } => {
                format!("the result of `{step}` cannot be used, because {detail}")
            }
            _ => format!("`{step}` is not computed yet as the workflow stands now"),
        };
        let step = shell_word(step);
        let message = format!("{state}; run\n  {} --select {step}", self.command());
        fail(&message, Exit::Failed)
    }
}

/// Says that there is no such step, with a suggestion.
pub(super) fn unknown_step(plan: &Plan, name: &str) -> Exit {
    let known = plan.steps.iter().map(|s| s.name.as_str());
    fail_unknown(&format!("the workflow has no step `{name}`"), name, known, "the steps are")
}

/// Says that a name on the command line stands for nothing, with the name that was probably
/// meant, or else with all that `known_as` introduces: `the steps are`.
pub(super) fn fail_unknown<'a>(
    message: &str,
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
    known_as: &str,
) -> Exit {
    let known: Vec<&str> = known.into_iter().collect();
    let help = match did_you_mean(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("{known_as} {}", known.join(", ")),
    };
    fail(&format!("{message}; {help}"), Exit::Invalid)
}
