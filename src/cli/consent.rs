//! `--allow`: what the command line lets a workflow do to the machine. Asks for consent to the rest
//! on a terminal; elsewhere reports the missing permissions.

use std::fmt::Write as _;
use std::io::{BufRead as _, IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde_json::json;

use super::context::{Exit, Failure, note, plan_into, print_json, show_diagnostics};
use super::{Format, Settings, WorkflowArgs, screen};
use galeras_base::terminal_escape::{escape_all, shell_word};
use galeras_engine::plan::{Locking, Plan};
use galeras_engine::trust::{
    AccessRequest, Allowance, Ground, Trust, TrustMemory, phrase, program_lines,
};
use galeras_operator::{Access, Consent as _};
use galeras_workflow::code::Code;
use galeras_workflow::{Diagnostic, Diagnostics, SourceSpan, Span};

/// The permissions given on the command line.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct AllowArgs {
    /// Allow what a workflow does to the machine, with commas: exec, unsandboxed, env:NAME=HOST,
    /// host:HOST, read:PATH, write:PATH, send:FROM=HOST. May be repeated.
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = Allowance::parse)]
    allow: Vec<Allowance>,
    /// Allow everything the workflow does: for one that you wrote or read.
    #[arg(long)]
    allow_all: bool,
}

impl WorkflowArgs {
    /// The trust in the workflow and its permissions; `out` is the folder for outputs.
    pub(super) fn trust(&self, out: Option<&Path>) -> Arc<Trust> {
        trust(&self.file, &self.set, &self.allow, out)
    }
}

/// The same for any workflow file.
pub(super) fn trust(
    file: &Path,
    set: &[String],
    allow: &AllowArgs,
    out: Option<&Path>,
) -> Arc<Trust> {
    trust_on(file, set, out, allow, |ground| ground)
}

/// The same for the workflow of a bundle unpacked into `folder`: files in there may be read, and
/// only servers that are allowed are asked, so that verifying a bundle reveals nothing to its
/// maker.
pub(super) fn trust_in_bundle(file: &Path, folder: &Path, allow: &AllowArgs) -> Arc<Trust> {
    let mut allow = allow.clone();
    let real = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    allow.allow.push(Allowance::Read(real));
    trust_on(file, &[], None, &allow, Ground::offline)
}

fn trust_on(
    file: &Path,
    set: &[String],
    out: Option<&Path>,
    allow: &AllowArgs,
    limited: impl Fn(Ground) -> Ground,
) -> Arc<Trust> {
    let current = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let ground = limited(Ground::new(file, &current, home.as_deref(), set, out));
    let workflow = current.join(file);
    let memory = TrustMemory::of_user(workflow.canonicalize().unwrap_or(workflow));
    Arc::new(Trust::new(ground, memory, allow.allow.clone(), allow.allow_all))
}

/// Plans the workflow. If planning itself needs consent (to fetch a schema from a server), it is
/// asked for first.
pub(super) async fn load_trusted(
    args: &WorkflowArgs,
    format: Format,
    lock: Locking,
    trust: &Arc<Trust>,
    out: &Path,
) -> Result<Plan, Failure> {
    loop {
        let consent = Arc::clone(trust);
        let cache = &args.store.cache;
        let (plan, diagnostics) =
            plan_into(&args.file, Settings::typed(&args.set), cache, lock, consent, out).await?;
        let refused = trust.take_refused();
        let only_that = diagnostics.iter().all(|problem| problem.code == Code::NotAllowed);
        if plan.is_none() && only_that && !refused.is_empty() && can_ask(format) {
            let places = diagnostics
                .iter()
                .map(|problem| place(&problem.span))
                .collect::<Vec<_>>()
                .join(", ");
            let asked: Vec<(&Access, String)> =
                refused.iter().map(|access| (access, places.clone())).collect();
            if ask(&args.file, &asked, trust) {
                continue;
            }
            return Err(Exit::Invalid.into());
        }
        show_diagnostics(&diagnostics, format);
        return plan.ok_or_else(|| Exit::Invalid.into());
    }
}

/// Makes sure that all of this was agreed to: asks on a terminal, and elsewhere reports the missing
/// flags.
pub(super) fn require(
    args: &WorkflowArgs,
    requests: Vec<AccessRequest>,
    trust: &Trust,
    format: Format,
) -> Result<(), Failure> {
    let open = trust.open(requests);
    if open.is_empty() {
        return Ok(());
    }
    if can_ask(format) {
        let asked: Vec<(&Access, String)> = open
            .iter()
            .map(|request| (&request.access, format!("{}, {}", by(request), place(&request.place))))
            .collect();
        return if ask(&args.file, &asked, trust) { Ok(()) } else { Err(Exit::Invalid.into()) };
    }
    let mut missing = Diagnostics::new();
    for request in &open {
        let Some(refused) = trust.refusal(&request.access) else { continue };
        let message = format!("{} {}", by(request), refused.message);
        let span = Span::new(request.place.start, request.place.end());
        let problem = Diagnostic::error(Code::NotAllowed, message, &request.place.source, span);
        missing.push(problem.with_help(refused.help));
    }
    show_diagnostics(&missing, format);
    if format == Format::Human {
        let mut flags: Vec<String> =
            open.iter().map(|request| Allowance::of(&request.access).to_string()).collect();
        flags.sort();
        flags.dedup();
        let flags = format!("--allow {}", shell_word(&flags.join(",")));
        note(&format!("to allow all of this:\n  {}", with_flags(&flags)));
    }
    Err(Exit::Invalid.into())
}

/// The current command with more flags, as typed.
fn with_flags(flags: &str) -> String {
    let typed = std::env::args_os().skip(1).map(|word| shell_word(&word.to_string_lossy()));
    let words: Vec<String> = std::iter::once("galeras".to_string()).chain(typed).collect();
    format!("{} {flags}", words.join(" "))
}

/// A user at a terminal can answer.
pub(super) fn can_ask(format: Format) -> bool {
    format == Format::Human && std::io::stdin().is_terminal() && screen::is_terminal()
}

/// The steps that ask: ``step `a` (and 2 more)``.
fn by(request: &AccessRequest) -> String {
    let first = request.by.first().map(|by| escape_all(by)).unwrap_or_default();
    match request.by.len() {
        0 | 1 => first,
        n => format!("{first} (and {} more)", n - 1),
    }
}

fn place(span: &SourceSpan) -> String {
    let position = span.source.position(span.start);
    format!("{}:{}:{}", escape_all(span.source.path()), position.line, position.column)
}

/// Shows all requests and waits for the answer. A yes is remembered.
fn ask(file: &Path, asked: &[(&Access, String)], trust: &Trust) -> bool {
    let mut text =
        format!("{} does what you have not allowed yet:\n", escape_all(&file.to_string_lossy()));
    for (access, place) in asked {
        match access {
            Access::Program { command, folder, files } => {
                let folder = escape_all(&folder.to_string_lossy());
                let _ = writeln!(text, "\n- runs a program in {folder}:");
                for line in program_lines(command) {
                    let _ = writeln!(text, "    | {line}");
                }
                for file in files {
                    let (name, digest) = (escape_all(&file.name), file.digest.short());
                    let _ = writeln!(text, "  with the file {name} as it is now ({digest})");
                }
            }
            other => {
                let _ = writeln!(text, "\n- {}", phrase(other));
            }
        }
        let _ = writeln!(text, "  ({place})");
    }
    text.push_str("\nAllow this, now and whenever this file is run again? [y/N] ");
    let mut terminal = screen::stderr();
    if terminal.write_all(text.as_bytes()).and_then(|()| terminal.flush()).is_err() {
        return false;
    }
    let mut answer = String::new();
    let heard = std::io::stdin().lock().read_line(&mut answer).is_ok();
    if !heard || !matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") {
        note("nothing was run");
        return false;
    }
    match trust.agree(asked.iter().map(|(access, _)| *access)) {
        Ok(Some(folder)) => {
            let folder = escape_all(&folder.to_string_lossy());
            note(&format!("remembered in {folder}; delete the files there to be asked again"));
        }
        Ok(None) => {}
        Err(error) => note(&format!("this is not remembered: {error}")),
    }
    true
}

/// Reports to programs as well that nothing was run.
pub(super) fn invalid(failure: Failure, format: Format) -> Failure {
    if format == Format::Human {
        return failure;
    }
    let exit = failure.show();
    let event = json!({"event": "finished", "status": "invalid", "steps": [], "seconds": 0.0});
    let _ = print_json(&event);
    exit.into()
}
