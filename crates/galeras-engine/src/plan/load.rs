//! Reads the workflow file, resolves its parameters, and plans.

use std::path::Path;
use std::sync::Arc;

use super::expander::Expander;
use super::file::read_named;
use super::locked_analysis::RegisteredSteps;
use super::lockfile::LockFile;
use super::model::{ExpandedPlan, Plan, PlannedRemote, PlannedSigners};
use super::params::{command_line_params, settings_here};
use super::settings::{Locking, PlanSettings};
use galeras_base::terminal_escape::shell_word;
use galeras_operator::Registry;
use galeras_workflow::code::Code;
use galeras_workflow::{Diagnostic, Diagnostics, RemoteSpec, Source, SourceSpan, Span};

/// Plans the workflow in `file`. Without a plan, the diagnostics include at least one error; with
/// one, only warnings.
pub async fn plan(
    file: &Path,
    registry: Registry,
    settings: &PlanSettings,
) -> (Option<Plan>, Diagnostics) {
    let mut diagnostics = Diagnostics::new();
    let display = file.display().to_string();
    let Some((workflow, base)) = read_named(file, &display, &mut diagnostics) else {
        return (None, diagnostics);
    };
    let mut settings = settings.clone();
    let lock = match settings.lock {
        Locking::Ignored => Ok(LockFile::default()),
        Locking::Pinned | Locking::Frozen => LockFile::beside(file),
    };
    let lock = lock.unwrap_or_else(|problem| {
        let source = &workflow.source;
        let problem = Diagnostic::error(Code::BadLock, problem, source, Span::new(0, 0));
        diagnostics.push(problem.with_help("write a new one with `galeras lock`"));
        // Then a missing lock needs no mention.
        settings.lock = Locking::Pinned;
        LockFile::default()
    });
    let file_name = file.file_name().unwrap_or_default().to_string_lossy();
    if let Some(version) = lock.other_program(&file_name) {
        diagnostics.push(other_program(&workflow.source, version, settings.lock));
    }
    let (pins, locked) = (Arc::new(lock.pins()), lock.analyses_of(&file_name));
    let params = command_line_params(&workflow, &base, &settings, &mut diagnostics);
    let set = settings_here(&workflow, &settings);
    let flags = set.iter().map(|setting| format!(" --set {}", shell_word(setting)));
    let named = format!("{}{}", shell_word(&display), flags.collect::<String>());
    let mut expander = Expander::new(registry, settings.clone(), named, pins, diagnostics);
    expander.registered = RegisteredSteps { names: workflow.prereg.clone(), locked };
    expander.top(&workflow, &base, params.clone()).await;
    expander.check_prereg(&workflow);
    expander.check_places(file);
    let (expanded, mut diagnostics) = expander.finish();
    let remote = workflow.remote.as_ref().and_then(|RemoteSpec { url: text, .. }| {
        let place = SourceSpan::new(&workflow.source, text.span);
        let remote = PlannedRemote::of(&text.value, &base, place);
        if remote.is_none() {
            let message = "`remote` must be a folder or the URL of a store";
            let problem = Diagnostic::error(Code::WrongValue, message, &workflow.source, text.span);
            diagnostics.push(problem.with_help("as in `https://example.org/study/cache`"));
        }
        remote
    });
    let signers = workflow.remote.as_ref().and_then(|remote| remote.allowed_signers.as_ref());
    let allowed_signers = signers.map(|text| PlannedSigners {
        path: base.join(&text.value),
        place: SourceSpan::new(&workflow.source, text.span),
    });
    if diagnostics.has_errors() {
        diagnostics.sort();
        return (None, diagnostics);
    }
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let name = workflow.name.as_ref().map_or(stem, |n| n.value.clone());
    let downloads = settings.downloads.clone();
    let ExpandedPlan { steps, outputs, report, limits, scopes, files } = expanded;
    let mut written_in = vec![settings.working_dir.join(file)];
    written_in.extend(files.into_iter().map(|path| settings.working_dir.join(path)));
    let signers = allowed_signers.iter().map(|signers| settings.working_dir.join(&signers.path));
    written_in.extend(signers);
    let plan = Plan {
        name,
        file: display,
        set,
        params,
        steps,
        outputs,
        report,
        limits,
        remote,
        allowed_signers,
        downloads,
        written_in,
        workflow,
        scopes,
    };
    (Some(plan), diagnostics)
}

fn other_program(source: &Arc<Source>, version: &str, lock: Locking) -> Diagnostic {
    let own = env!("CARGO_PKG_VERSION");
    let message = format!("galeras.lock was written by galeras {version}, and this is {own}");
    let (code, place) = (Code::OtherProgram, Span::new(0, 0));
    let problem = match lock {
        Locking::Frozen => Diagnostic::error(code, message, source, place),
        Locking::Pinned | Locking::Ignored => Diagnostic::warning(code, message, source, place),
    };
    problem.with_help("use that version, or lock it again with `galeras lock`")
}
