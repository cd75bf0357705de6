//! The values that the program offers at the cursor: files, operators, and the steps, ports, columns and
//! params of the workflow on the line.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Arg, ArgMatches, Command, CommandFactory as _, ValueHint};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};

use crate::cli::{Cli, ops};
use crate::registry::REGISTRY;
use galeras_base::small_file::{self, MAX_TEXT_BYTES};
use galeras_base::terminal_escape::is_hidden;
use galeras_engine::plan::{Plan, PlanSettings, plan};
use galeras_operator::{MAIN, NoConsent};
use galeras_store::default_store;
use galeras_workflow::code::Code;
use galeras_workflow::{Param, ParamType, Source, Workflow, parse_source};

struct Candidate {
    value: String,
    help: String,
}

impl Candidate {
    fn new(value: impl Into<String>, help: impl Into<String>) -> Self {
        Self { value: value.into(), help: help.into() }
    }
}

/// The program's command line with candidates for values. `words` are those before the cursor,
/// `current` the one at the cursor.
pub(super) fn command(words: &[String], current: &str) -> Command {
    let line = Arc::new(Line::read(words));
    let command = Cli::command();
    let verb = command.get_name().to_string();
    with_candidates(command, &verb, &line, current.is_empty())
}

/// With `bare`, flags are hidden: the engine would offer all of them for an empty word, in addition to
/// the only file.
fn with_candidates(command: Command, verb: &str, line: &Arc<Line>, bare: bool) -> Command {
    let command = command.disable_help_flag(bare).disable_version_flag(bare);
    let command = command.mut_args(|arg| {
        let hidden = arg.is_hide_set() || (bare && !arg.is_positional());
        arg.hide(hidden)
    });
    let verbs: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().into()).collect();
    let command = command.mut_args(|arg| match candidates_of(verb, &arg) {
        Some(candidates) => {
            let line = Arc::clone(line);
            arg.add(ArgValueCompleter::new(move |typed: &OsStr| {
                offered(typed, |typed| candidates(&line, typed))
            }))
        }
        None => arg,
    });
    verbs.iter().fold(command, |command, name| {
        command.mut_subcommand(name, |sub| with_candidates(sub, name, line, bare))
    })
}

/// The candidates that begin with the typed text and contain no control characters.
fn offered(
    typed: &OsStr,
    candidates: impl FnOnce(&str) -> Vec<Candidate>,
) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else { return Vec::new() };
    let fits = |c: &Candidate| c.value.starts_with(typed) && !c.value.contains(is_hidden);
    let candidate = |c: Candidate| {
        let help: String = c.help.chars().filter(|c| !is_hidden(*c)).collect();
        let help = Some(help.trim().to_string()).filter(|help| !help.is_empty());
        CompletionCandidate::new(c.value).help(help.map(Into::into))
    };
    candidates(typed).into_iter().filter(fits).map(candidate).collect()
}

type Candidates = fn(&Line, &str) -> Vec<Candidate>;

fn candidates_of(verb: &str, arg: &Arg) -> Option<Candidates> {
    if !arg.get_possible_values().is_empty() {
        return None;
    }
    Some(match (arg.get_id().as_str(), verb) {
        ("file" | "files", _) => |_, typed| files(typed, is_workflow),
        ("set", _) => settings,
        ("step" | "tables" | "without", _) => |line, _| steps(line, true),
        ("select" | "force", _) => |line, _| steps(line, false),
        ("columns", _) => |line, _| columns(line),
        ("name", "ops") => |_, _| operators(),
        ("name", "schema") => |_, _| {
            let tables = ops::table_names().map(|name| Candidate::new(name, "a published table"));
            operators().into_iter().chain(tables).collect()
        },
        ("explain", "check") => {
            |_, _| Code::all().map(|code| Candidate::new(code.name(), code.title())).collect()
        }
        ("cache" | "out" | "dir", _) => |_, typed| files(typed, |_| false),
        _ if matches!(arg.get_value_hint(), ValueHint::AnyPath) => {
            |_, typed| files(typed, |_| true)
        }
        _ => return None,
    })
}

struct Line(Option<ArgMatches>);

impl Line {
    fn read(words: &[String]) -> Self {
        let parsed = Cli::command().ignore_errors(true).try_get_matches_from(words).ok();
        Self(parsed.map(|mut parsed| {
            while let Some((_, verb)) = parsed.remove_subcommand() {
                parsed = verb;
            }
            parsed
        }))
    }

    fn values(&self, name: &str) -> Vec<String> {
        let raw = self.0.as_ref().and_then(|line| line.try_get_raw(name).ok().flatten());
        raw.into_iter().flatten().map(|value| value.to_string_lossy().into_owned()).collect()
    }

    fn value(&self, name: &str) -> Option<String> {
        self.values(name).pop()
    }
}

fn operators() -> Vec<Candidate> {
    let operators = REGISTRY.iter().map(|operator| operator.descriptor());
    operators.map(|operator| Candidate::new(operator.name, operator.summary())).collect()
}

fn workflow(line: &Line) -> Option<Workflow> {
    let file = line.value("file").or_else(|| line.value("files"))?;
    // A pipe could be read only once.
    let bytes = small_file::read(&expanded(&file), MAX_TEXT_BYTES).ok()?;
    let (workflow, _) = parse_source(&Source::new(&file, String::from_utf8(bytes).ok()?));
    workflow
}

/// The plan of the workflow on the line, if it has no errors.
fn planned(line: &Line) -> Option<Plan> {
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let file = expanded(&line.value("file")?);
    let store = line.value("cache").map_or_else(|| default_store(&file), |typed| expanded(&typed));
    let settings = PlanSettings {
        set: line.values("set"),
        set_folder: here.clone(),
        working_dir: here,
        downloads: store.join("downloads"),
        consent: Arc::new(NoConsent),
        ..PlanSettings::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    runtime.block_on(plan(&file, REGISTRY, &settings)).0
}

/// The workflow's steps, and with `ports` also their other tables. A workflow with errors has the
/// steps written in it.
fn steps(line: &Line, ports: bool) -> Vec<Candidate> {
    let Some(plan) = planned(line) else {
        let steps = workflow(line).map(|workflow| workflow.steps).unwrap_or_default();
        return steps.into_iter().map(|step| Candidate::new(step.name.value, "")).collect();
    };
    let mut found: Vec<Candidate> = Vec::new();
    let mut add = |value: String, help: &str| {
        if !found.iter().any(|known| known.value == value) {
            found.push(Candidate::new(value, help));
        }
    };
    for step in &plan.steps {
        let operator = step.operator.descriptor().name;
        if ports {
            let tables = step.step.ports().iter().enumerate();
            for (at, port) in tables {
                match (at, port.name) {
                    (0, _) => add(step.name.clone(), operator),
                    (_, MAIN) => {}
                    (_, port) => add(format!("{}.{port}", step.name), operator),
                }
            }
            continue;
        }
        // A name for several: all cells of a matrix, all steps of an embedded workflow.
        for (at, _) in step.name.match_indices(['/', '[']) {
            let all = &step.name[..at];
            if !all.contains('[') {
                add(all.to_string(), "all of these steps");
            }
        }
        add(step.name.clone(), operator);
    }
    found
}

fn columns(line: &Line) -> Vec<Candidate> {
    let (Some(plan), Some(name)) = (planned(line), line.value("step")) else {
        return Vec::new();
    };
    let named = plan.steps.iter().find_map(|step| {
        let ports = step.step.ports();
        match name.strip_prefix(step.name.as_str())? {
            "" => ports.first(),
            rest => ports.iter().find(|port| Some(port.name) == rest.strip_prefix('.')),
        }
    });
    let fields = named.map(|port| port.table.schema.fields().clone()).unwrap_or_default();
    fields.iter().map(|field| Candidate::new(field.name(), "")).collect()
}

/// `name=` for every param, and after the `=` its choices or files.
fn settings(line: &Line, typed: &str) -> Vec<Candidate> {
    let params = workflow(line).map(|workflow| workflow.params).unwrap_or_default();
    let Some((name, value)) = typed.split_once('=') else {
        let about = |param: &Param| match (&param.help, param.ty) {
            (Some(help), _) => help.value.clone(),
            (None, ty) => ty.map_or(String::new(), |ty| ty.as_str().to_string()),
        };
        return params
            .iter()
            .map(|param| Candidate::new(format!("{}=", param.name.value), about(param)))
            .collect();
    };
    let Some(param) = params.iter().find(|param| param.name.value == name) else {
        return Vec::new();
    };
    let (done, last) = match param.ty {
        Some(ParamType::Repos) => value.split_at(value.rfind(',').map_or(0, |at| at + 1)),
        _ => ("", value),
    };
    let values = match param.ty {
        _ if !param.choices.is_empty() => {
            let text = |choice: &galeras_workflow::Node| match choice.as_str() {
                Some(text) => text.to_string(),
                None => choice.to_json().to_string(),
            };
            param.choices.iter().map(|choice| Candidate::new(text(choice), "")).collect()
        }
        Some(ParamType::Bool) => ["true", "false"].map(|word| Candidate::new(word, "")).into(),
        Some(ParamType::Path | ParamType::Repos) => files(last, |_| true),
        _ => Vec::new(),
    };
    let whole = |c: Candidate| Candidate::new(format!("{name}={done}{}", c.value), c.help);
    values.into_iter().map(whole).collect()
}

fn is_workflow(path: &Path) -> bool {
    path.extension().is_some_and(|suffix| suffix == "yaml" || suffix == "yml")
}

/// Replaces `~/` as a shell does.
fn expanded(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => PathBuf::from(path),
    }
}

const MAX_FILES: usize = 1000;

/// Folders and wanted files whose paths begin with the typed text.
fn files(typed: &str, wanted: impl Fn(&Path) -> bool) -> Vec<Candidate> {
    let (folder, begun) = typed.split_at(typed.rfind('/').map_or(0, |at| at + 1));
    let place = if folder.is_empty() { PathBuf::from(".") } else { expanded(folder) };
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    let mut found: Vec<Candidate> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            if !name.starts_with(begun) || (name.starts_with('.') && !begun.starts_with('.')) {
                return None;
            }
            match entry.path() {
                path if path.is_dir() => Some(Candidate::new(format!("{folder}{name}/"), "")),
                path => wanted(&path).then(|| Candidate::new(format!("{folder}{name}"), "")),
            }
        })
        .take(MAX_FILES)
        .collect();
    found.sort_by(|a, b| a.value.cmp(&b.value));
    found
}
