//! What can stand at the cursor: names of verbs and flags, values that clap knows, and what the
//! workflow at hand has: steps, ports, columns, params.

use std::path::{Path, PathBuf};

use clap::{Arg, Command, ValueHint};

use super::cursor::{CommandLine, Cursor};
use crate::cli::contracts;
use crate::registry::REGISTRY;
use galeras_base::small_file::{self, MAX_TEXT_BYTES};
use galeras_engine::plan::{Plan, PlanSettings, plan};
use galeras_operator::{MAIN, NoConsent};
use galeras_workflow::code::Code;
use galeras_workflow::{Param, ParamType, Source, Workflow, parse_source};

/// What can stand at the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// The whole word.
    pub(super) value: String,
    /// What it is, in a few words.
    pub(super) help: String,
}

impl Candidate {
    pub(super) fn new(value: impl Into<String>, help: impl Into<String>) -> Self {
        Self { value: value.into(), help: help.into() }
    }

    /// Whether more is typed after it: a folder, or `name=`.
    pub(super) fn goes_on(&self) -> bool {
        self.value.ends_with(['/', '='])
    }
}

/// What can stand at the cursor of the line. Those that do not begin with what is typed may be
/// among it.
pub(super) async fn candidates(line: &CommandLine<'_>) -> Vec<Candidate> {
    match &line.cursor {
        Cursor::Nowhere => Vec::new(),
        Cursor::Verb(command) => verbs(command),
        Cursor::Flag(command) => flags(command),
        Cursor::Value { arg, before, typed } => {
            let mut found = values(line, arg, typed).await;
            for candidate in &mut found {
                candidate.value.insert_str(0, before);
            }
            found
        }
    }
}

fn verbs(command: &Command) -> Vec<Candidate> {
    let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    let about = |verb: &Command| verb.get_about().map(ToString::to_string).unwrap_or_default();
    shown.map(|verb| Candidate::new(verb.get_name(), about(verb))).collect()
}

fn flags(command: &Command) -> Vec<Candidate> {
    let named = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let help = |arg: &Arg| arg.get_help().map(ToString::to_string).unwrap_or_default();
    named
        .filter_map(|arg| Some(Candidate::new(format!("--{}", arg.get_long()?), help(arg))))
        .collect()
}

async fn values(line: &CommandLine<'_>, arg: &Arg, typed: &str) -> Vec<Candidate> {
    let possible = arg.get_possible_values();
    if !possible.is_empty() {
        let help = |help: Option<&clap::builder::StyledStr>| {
            help.map(ToString::to_string).unwrap_or_default()
        };
        return possible.iter().map(|v| Candidate::new(v.get_name(), help(v.get_help()))).collect();
    }
    match (arg.get_id().as_str(), line.verb.as_str()) {
        ("file" | "files", _) => files(typed, is_workflow),
        ("set", _) => settings(line, typed),
        ("step" | "tables" | "without", _) => steps(line, true).await,
        ("select" | "force", _) => steps(line, false).await,
        ("columns", _) => columns(line).await,
        ("name", "ops") => operators(),
        ("name", "schema") => {
            let tables = contracts::names().map(|name| Candidate::new(name, "a published table"));
            operators().into_iter().chain(tables).collect()
        }
        ("explain", "check") => {
            Code::all().map(|code| Candidate::new(code.name(), code.title())).collect()
        }
        ("cache" | "out" | "dir", _) => files(typed, |_| false),
        _ if matches!(arg.get_value_hint(), ValueHint::AnyPath) => files(typed, |_| true),
        _ => Vec::new(),
    }
}

fn operators() -> Vec<Candidate> {
    let operators = REGISTRY.iter().map(|operator| operator.descriptor());
    operators.map(|operator| Candidate::new(operator.name, operator.summary())).collect()
}

/// The workflow at hand, as it is written.
fn workflow(line: &CommandLine<'_>) -> Option<Workflow> {
    let file = line.value("file").or_else(|| line.value("files"))?;
    // Not a pipe, which can be read only once.
    let bytes = small_file::read(&expanded(file), MAX_TEXT_BYTES).ok()?;
    let (workflow, _) = parse_source(&Source::new(file, String::from_utf8(bytes).ok()?));
    workflow
}

/// The plan of the workflow at hand, if it has no mistake.
async fn planned(line: &CommandLine<'_>) -> Option<Plan> {
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let store = line.value("cache").unwrap_or(crate::cli::DEFAULT_CACHE);
    let settings = PlanSettings {
        set: line.values.get("set").cloned().unwrap_or_default(),
        set_folder: here.clone(),
        working_dir: here,
        downloads: expanded(store).join("downloads"),
        consent: std::sync::Arc::new(NoConsent),
        ..PlanSettings::default()
    };
    plan(&expanded(line.value("file")?), REGISTRY, &settings).await.0
}

/// The steps of the workflow; with `ports`, their other tables, too. One that has a mistake shows
/// the steps that are written in it.
async fn steps(line: &CommandLine<'_>, ports: bool) -> Vec<Candidate> {
    let Some(plan) = planned(line).await else {
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
                add(all.to_string(), "all of it");
            }
        }
        add(step.name.clone(), operator);
    }
    found
}

/// The columns of the table that is named.
async fn columns(line: &CommandLine<'_>) -> Vec<Candidate> {
    let (Some(plan), Some(name)) = (planned(line).await, line.value("step")) else {
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

/// `name=` for every param; after the `=`, its choices or files.
fn settings(line: &CommandLine<'_>, typed: &str) -> Vec<Candidate> {
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
        Some(ParamType::Bool) => ["true", "false"].map(|word| Candidate::new(word, "")).to_vec(),
        Some(ParamType::Path | ParamType::Repos) => files(last, |_| true),
        _ => Vec::new(),
    };
    let whole = |c: Candidate| Candidate::new(format!("{name}={done}{}", c.value), c.help);
    values.into_iter().map(whole).collect()
}

fn is_workflow(path: &Path) -> bool {
    path.extension().is_some_and(|suffix| suffix == "yaml" || suffix == "yml")
}

/// The path that a shell makes of one that begins with `~/`.
fn expanded(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => PathBuf::from(path),
    }
}

/// More entries of a folder help nobody.
const MOST_FILES: usize = 1000;

/// Folders, and the files that are wanted, whose paths begin with what is typed.
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
        .take(MOST_FILES)
        .collect();
    found.sort_by(|a, b| a.value.cmp(&b.value));
    found
}
