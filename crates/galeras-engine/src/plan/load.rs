//! Reads the workflow file, resolves its parameters, and plans.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::expander::{Expander, WorkflowFile};
use super::lockfile::LockFile;
use super::model::{Plan, PlannedRemote, PlannedSigners};
use super::params::{command_line_params, settings_here};
use galeras_base::small_file::{self, MAX_TEXT_BYTES};
use galeras_base::terminal_escape::shell_word;
use galeras_operator::{Consent, FullConsent, Registry};
use galeras_workflow::code::Code;
use galeras_workflow::{
    Diagnostic, Diagnostics, RemoteSpec, Source, SourceSpan, Span, did_you_mean, parse_source,
    quote,
};

/// Settings of the command line for a workflow file.
#[derive(Clone, Debug)]
pub struct PlanSettings {
    /// Values of parameters, as typed: `--set name=value`.
    pub set: Vec<String>,
    /// The folder from which relative paths in `set` start: the current one, or that of the run
    /// whose settings these are.
    pub set_folder: PathBuf,
    /// The current folder.
    pub working_dir: PathBuf,
    /// The folder for fetched files.
    pub downloads: PathBuf,
    /// The folder from which the paths of outputs start.
    pub out: PathBuf,
    /// Folders of the store, which must not contain outputs.
    pub guarded: Vec<PathBuf>,
    /// The use of `galeras.lock`.
    pub lock: Locking,
    /// The user's consent, here for fetching a file at a URL to learn its schema.
    pub consent: Arc<dyn Consent>,
}

impl Default for PlanSettings {
    fn default() -> Self {
        Self {
            set: Vec::new(),
            set_folder: PathBuf::default(),
            working_dir: PathBuf::default(),
            downloads: PathBuf::default(),
            out: PathBuf::default(),
            guarded: Vec::new(),
            lock: Locking::default(),
            consent: Arc::new(FullConsent),
        }
    }
}

/// The use of `galeras.lock`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Locking {
    /// Use pinned facts, and ask for the others.
    #[default]
    Pinned,
    /// Require that every fact is pinned.
    Frozen,
    /// Ignore it and ask for every fact.
    Ignored,
}

/// Plans the workflow in `file`. Without a plan, the diagnostics include at least one error; with
/// one, only warnings.
pub async fn plan(
    file: &Path,
    registry: Registry,
    settings: &PlanSettings,
) -> (Option<Plan>, Diagnostics) {
    let mut diagnostics = Diagnostics::new();
    let display = file.display().to_string();
    let Some((workflow, base)) = read_workflow(file, &display, true, &mut diagnostics) else {
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
    (expander.prereg, expander.locked) = (workflow.prereg.clone(), locked);
    expander.top(&workflow, &base, params.clone()).await;
    expander.check_prereg(&workflow);
    expander.check_places(file);
    let mut limits = expander.limits();
    if !expander.diagnostics.has_errors() {
        expander.keep_needed(&mut limits);
    }
    let Expander { steps, outputs, report, scopes, contracts, files, mut diagnostics, .. } =
        expander;
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
    let contracts = contracts.into_iter().map(|(path, _)| path);
    let mut files: Vec<PathBuf> =
        contracts.chain(files.into_keys().map(|(path, _)| path)).collect();
    files.sort();
    files.dedup();
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

/// Reads and parses a workflow file, and returns its folder. `named` if the command line names it.
pub(super) fn read_workflow(
    file: &Path,
    display: &str,
    named: bool,
    diagnostics: &mut Diagnostics,
) -> Option<WorkflowFile> {
    let text = match read_text(file, named) {
        Ok(text) => text,
        Err((problem, help)) => {
            let source = Source::new(display, "");
            let problem = Diagnostic::error(Code::MissingFile, problem, &source, Span::new(0, 0));
            let help = help.map_or_else(|| nearby_workflows(file, display), str::to_owned);
            diagnostics.push(problem.with_help(help));
            return None;
        }
    };
    let source = Source::new(display, text);
    let (workflow, problems) = parse_source(&source);
    diagnostics.extend(problems);
    let base = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    };
    let base = base.canonicalize().unwrap_or(base);
    Some((workflow?, base))
}

/// Suffixes of data and programs, which are often YAML by chance.
const OTHER_FILES: [&str; 11] =
    ["csv", "tsv", "jsonl", "ndjson", "parquet", "arrow", "gz", "zst", "zip", "py", "md"];

/// The workflow files in a help.
const LISTED_FILES: usize = 5;

/// Names the workflow that a wrong path may mean, or those in its folder.
fn nearby_workflows(file: &Path, display: &str) -> String {
    let is_folder = file.is_dir();
    if file.extension().is_some_and(|suffix| suffix == "zip") && file.is_file() {
        return "unpack a bundle; its workflow is then in the folder `workflow`".to_owned();
    }
    let folder = match file.parent() {
        _ if is_folder => file,
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let suffix = |name: &str| Path::new(name).extension().map(|suffix| suffix.to_owned());
    let is_workflow = |name: &String| suffix(name).is_some_and(|s| s == "yaml" || s == "yml");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(is_workflow).collect();
    // It may exist, and not be readable.
    names.retain(|name| file.file_name().is_none_or(|own| own != name.as_str()));
    names.sort_unstable();
    let shown = |name: &str| {
        let path = Path::new(display);
        let path = if is_folder { path.join(name) } else { path.with_file_name(name) };
        quote(&path.display().to_string())
    };
    let help = "give the path of a workflow file";
    let stem = |name: &str| Path::new(name).file_stem().map(|stem| stem.to_owned());
    let wanted = file.file_name().and_then(|name| name.to_str()).filter(|_| !is_folder);
    let near = wanted.and_then(|wanted| {
        let same =
            |name: &&String| stem(name).is_some_and(|s| s == wanted || Some(s) == stem(wanted));
        let same = names.iter().find(same).map(String::as_str);
        same.or_else(|| did_you_mean(wanted, names.iter().map(String::as_str)))
    });
    match (near, names.as_slice()) {
        (Some(near), _) => format!("did you mean {}?", shown(near)),
        (None, []) => format!("{help}; `galeras init` writes one"),
        (None, names) => {
            let listed: Vec<String> =
                names.iter().take(LISTED_FILES).map(|name| shown(name)).collect();
            let more = if names.len() > LISTED_FILES { ", …" } else { "" };
            format!("{help}, such as {}{more}", listed.join(", "))
        }
    }
}

/// The text of a file, or the problem, with a help if another file is not the way out.
fn read_text(file: &Path, named: bool) -> Result<String, (String, Option<&'static str>)> {
    let shown = file.display().to_string();
    if shown.contains("://") {
        let help = "download it first, and give the path of the file";
        return Err((format!("{shown} is a URL, not a file of this machine"), Some(help)));
    }
    let suffix = file.extension().and_then(|suffix| suffix.to_str()).unwrap_or_default();
    if named && OTHER_FILES.contains(&suffix) && file.is_file() {
        return Err((format!("{shown} is a .{suffix} file, not a workflow file"), None));
    }
    let bytes = if named {
        small_file::read_named(file, MAX_TEXT_BYTES)
    } else {
        small_file::read(file, MAX_TEXT_BYTES)
    };
    let bytes = bytes.map_err(|e| match e.kind() {
        std::io::ErrorKind::InvalidInput if file.is_dir() => {
            (format!("{shown} is a folder, not a workflow file"), None)
        }
        std::io::ErrorKind::PermissionDenied => {
            (format!("cannot read {shown}: {e}"), Some("check who may read it"))
        }
        _ => (format!("cannot read {shown}: {e}"), None),
    })?;
    String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        (format!("{shown} is not UTF-8 (byte {at})"), Some("save it as UTF-8"))
    })
}
