//! The way in: reads the workflow file, resolves its parameters, and plans.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::expand::Expander;
use super::lockfile::LockFile;
use super::model::Plan;
use crate::code::Code;
use crate::operator::{Pins, Registry};
use crate::workflow::{
    Diagnostic, Diagnostics, MAX_FILE_BYTES, Node, Param, ParamType, Scope, Source, Span, Text,
    Workflow, check_param_value, parse_source, quote,
};

/// What the command line adds to a workflow file.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Values of parameters, as typed: `--set name=value`.
    pub set: Vec<String>,
    /// The folder from which relative paths in `--set` start.
    pub working_dir: PathBuf,
    /// The folder for files that have to be fetched.
    pub downloads: PathBuf,
    /// What counts of `galeras.lock`.
    pub lock: Locking,
}

/// What counts of `galeras.lock`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Locking {
    /// What it pins is taken from it; of the rest the world is asked.
    #[default]
    Pinned,
    /// It must pin everything.
    Frozen,
    /// Nothing: the world is asked.
    Ignored,
}

/// Plans the workflow in `file`. Without a plan, the diagnostics hold at least one error;
/// with one, warnings at most.
pub async fn plan(
    file: &Path,
    registry: Registry,
    settings: &Settings,
) -> (Option<Plan>, Diagnostics) {
    let mut diagnostics = Diagnostics::new();
    let display = file.display().to_string();
    let Some((workflow, base)) = read(file, &display, &mut diagnostics) else {
        return (None, diagnostics);
    };
    let mut settings = settings.clone();
    let lock = if settings.lock == Locking::Ignored {
        Ok(Pins::default())
    } else {
        LockFile::beside(file).map(|lock| lock.pins())
    };
    let pins = Arc::new(lock.unwrap_or_else(|problem| {
        let source = &workflow.source;
        let found = Diagnostic::error(Code::BadLock, problem, source, Span::new(0, 0));
        diagnostics.push(found.with_help("write it anew with `galeras lock`"));
        // That nothing is pinned then needs no mention.
        settings.lock = Locking::Pinned;
        Pins::default()
    }));
    let params = command_line_params(&workflow, &settings, &mut diagnostics);
    let mut expander = Expander::new(registry, settings.clone(), pins, diagnostics);
    expander.top(&workflow, &base, params.clone()).await;
    let (steps, outputs, mut diagnostics) = expander.finish();
    if diagnostics.has_errors() {
        diagnostics.sort();
        return (None, diagnostics);
    }
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let name = workflow.name.as_ref().map_or(stem, |n| n.value.clone());
    let downloads = settings.downloads.clone();
    (Some(Plan { name, file: display, params, steps, outputs, downloads }), diagnostics)
}

/// Reads and parses a workflow file; its folder comes with it.
pub(super) fn read(
    file: &Path,
    display: &str,
    diagnostics: &mut Diagnostics,
) -> Option<(Workflow, PathBuf)> {
    let text = match read_text(file) {
        Ok(text) => text,
        Err(problem) => {
            let source = Source::new(display, "");
            let found = Diagnostic::error(Code::MissingFile, problem, &source, Span::new(0, 0));
            diagnostics.push(found.with_help("give the path of a workflow file"));
            return None;
        }
    };
    let source = Source::new(display, text);
    let (workflow, found) = parse_source(&source);
    diagnostics.extend(found);
    let base = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    };
    let base = base.canonicalize().unwrap_or(base);
    Some((workflow?, base))
}

fn read_text(file: &Path) -> Result<String, String> {
    let shown = file.display();
    let failed = |e: &dyn std::fmt::Display| format!("cannot read {shown}: {e}");
    let metadata = std::fs::metadata(file).map_err(|e| failed(&e))?;
    if metadata.is_dir() {
        return Err(format!("{shown} is a folder, not a workflow file"));
    }
    if metadata.len() > 16 * MAX_FILE_BYTES as u64 {
        let size = metadata.len() >> 20;
        return Err(format!("{shown} has {size} MiB, far more than a workflow may have"));
    }
    let bytes = std::fs::read(file).map_err(|e| failed(&e))?;
    String::from_utf8(bytes)
        .map_err(|e| format!("{shown} is not UTF-8 (byte {})", e.utf8_error().valid_up_to()))
}

/// The parameters of the workflow named on the command line.
fn command_line_params(
    workflow: &Workflow,
    settings: &Settings,
    diagnostics: &mut Diagnostics,
) -> Map<String, Value> {
    let mut given = BTreeMap::new();
    for setting in &settings.set {
        let source = Source::new("--set", setting.as_str());
        let whole = Span::new(0, setting.len());
        let Some((name, text)) = setting.split_once('=') else {
            let message = "a setting has the form name=value";
            diagnostics.push(Diagnostic::error(Code::UnknownOption, message, &source, whole));
            continue;
        };
        let Some(param) = workflow.param(name) else {
            let message = format!("the workflow has no param {}", quote(name));
            let span = Span::new(0, name.len());
            let known = workflow.params.iter().map(|p| p.name.value.as_str());
            let found = Diagnostic::error(Code::UnknownParam, message, &source, span);
            diagnostics.push(found.with_suggestion(name, known));
            continue;
        };
        let span = Span::new(name.len() + 1, setting.len());
        let value = typed(param, text, &settings.working_dir);
        let node = Node::from_json(&value, span);
        if check_param_value(param, &node, &source, diagnostics) {
            given.insert(name.to_string(), node);
        }
    }
    params(workflow, &given, None, diagnostics)
}

/// The text of a setting as a value of the parameter's type, or as text if it is none.
fn typed(param: &Param, text: &str, working_dir: &Path) -> Value {
    let as_text = || Value::String(text.to_string());
    match param.ty {
        Some(ParamType::Int) => text.parse::<i64>().map_or_else(|_| as_text(), Value::from),
        Some(ParamType::Float) => match text.parse::<i64>() {
            Ok(whole) => Value::from(whole),
            Err(_) => text.parse::<f64>().map_or_else(|_| as_text(), Value::from),
        },
        Some(ParamType::Bool) => text.parse::<bool>().map_or_else(|_| as_text(), Value::from),
        Some(ParamType::Path) => {
            Value::String(working_dir.join(text).to_string_lossy().into_owned())
        }
        Some(ParamType::String) | None => as_text(),
    }
}

/// Every parameter's value: the given one, or the default. `caller` is the place to blame for
/// a parameter that has neither, if it is not the parameter itself.
pub(super) fn params(
    workflow: &Workflow,
    given: &BTreeMap<String, Node>,
    caller: Option<(&Arc<Source>, &Text)>,
    diagnostics: &mut Diagnostics,
) -> Map<String, Value> {
    let mut values = Map::new();
    for param in &workflow.params {
        let name = &param.name.value;
        let value = match (given.get(name), &param.default) {
            (Some(node), _) | (None, Some(node)) => node.to_json(),
            // A default that is wrong has been reported.
            (None, None) if covers(diagnostics, &workflow.source, param.span) => Value::Null,
            (None, None) => {
                let message = format!("param {} has no value", quote(name));
                let (source, span, help) = match caller {
                    Some((source, text)) => (source, text.span, format!("add `{name}` to `with`")),
                    None => (
                        &workflow.source,
                        param.name.span,
                        format!("add a default, or run with --set {name}=…"),
                    ),
                };
                let found = Diagnostic::error(Code::MissingArgument, message, source, span);
                diagnostics.push(found.with_help(help));
                Value::Null
            }
        };
        // An integer given for a float is that float: the two must have one key.
        let value = match (param.ty, value.as_i64()) {
            (Some(ParamType::Float), Some(whole)) => Value::from(whole as f64),
            _ => value,
        };
        values.insert(name.clone(), value);
    }
    values
}

/// Whether a mistake within this place has been reported already.
pub(super) fn covers(diagnostics: &Diagnostics, source: &Arc<Source>, place: Span) -> bool {
    diagnostics.iter().any(|d| {
        Arc::ptr_eq(&d.span.source, source)
            && (place.start..=place.end).contains(&d.span.start)
            && d.span.end() <= place.end
    })
}

/// The scope of expressions outside of any matrix.
pub(super) fn scope(params: &Map<String, Value>) -> Scope {
    Scope { params: params.clone(), matrix: Map::new() }
}
