//! The values of params: from the command line, from an embedding step, from their defaults.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::mistake::already_reported;
use super::param_paths::{given_text, text_here};
use super::settings::PlanSettings;
use galeras_workflow::code::Code;
use galeras_workflow::{
    Diagnostic, Diagnostics, Node, Param, ParamType, Scope, Source, Span, Text, Workflow,
    check_param_value, load, quote,
};

pub(super) fn command_line_params(
    workflow: &Workflow,
    base: &Path,
    settings: &PlanSettings,
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
            let problem = Diagnostic::error(Code::UnknownParam, message, &source, span);
            diagnostics.push(problem.with_suggestion(name, known));
            continue;
        };
        let span = Span::new(name.len() + 1, setting.len());
        let (source, node) = match param.ty {
            Some(ParamType::List | ParamType::Mapping) => match collection(name, text, diagnostics)
            {
                Some(read) => read,
                None => continue,
            },
            _ => {
                let value = typed(param, text, &settings.set_folder, base);
                (source, Node::from_json(&value, span))
            }
        };
        if check_param_value(param, &node, &source, diagnostics) {
            given.insert(name.to_string(), node);
        }
    }
    params(workflow, &given, None, diagnostics)
}

/// Reads a list or a mapping as YAML (and so JSON), with places. `None` if it cannot be read, which
/// is reported.
fn collection(
    name: &str,
    text: &str,
    diagnostics: &mut Diagnostics,
) -> Option<(Arc<Source>, Node)> {
    let source = Source::new(format!("--set {name}"), text);
    if text.trim().is_empty() {
        // An empty document; reported in the words of a param.
        let nothing = Node::new(galeras_workflow::Value::Null, Span::new(0, text.len()));
        return Some((source, nothing));
    }
    let mut found = Diagnostics::new();
    let node = load(&source, &mut found).filter(|_| !found.has_errors());
    diagnostics.extend(found);
    Some((source, node?))
}

pub(super) fn settings_here(workflow: &Workflow, settings: &PlanSettings) -> Vec<String> {
    let here = |setting: &String| match setting.split_once('=') {
        Some((name, text)) => {
            let ty = workflow.param(name).and_then(|param| param.ty);
            let text = text_here(ty, text, &settings.set_folder, &settings.working_dir);
            format!("{name}={text}")
        }
        None => setting.clone(),
    };
    settings.set.iter().map(here).collect()
}

/// A setting as a value of the parameter's type, or as text if it does not fit.
fn typed(param: &Param, text: &str, folder: &Path, base: &Path) -> Value {
    let as_text = || Value::String(given_text(param.ty, text, folder, base));
    match param.ty {
        Some(ParamType::Int) => text.parse::<i64>().map_or_else(|_| as_text(), Value::from),
        Some(ParamType::Float) => match text.parse::<i64>() {
            Ok(whole) => Value::from(whole),
            Err(_) => text.parse::<f64>().map_or_else(|_| as_text(), Value::from),
        },
        Some(ParamType::Bool) => text.parse::<bool>().map_or_else(|_| as_text(), Value::from),
        Some(ParamType::String | ParamType::Path | ParamType::Repos) => as_text(),
        Some(ParamType::List | ParamType::Mapping) | None => as_text(),
    }
}

/// Every parameter's value: the given one, or the default. A missing value is reported at `caller`,
/// or else at the parameter.
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
            (Some(node), _) => node.to_json(),
            // A wrong default has been reported: steps are checked with a correct one.
            (None, Some(node)) if already_reported(diagnostics, &workflow.source, node.span) => {
                stand_in(param)
            }
            (None, Some(node)) => node.to_json(),
            // A wrong default has been reported.
            (None, None) if already_reported(diagnostics, &workflow.source, param.span) => {
                stand_in(param)
            }
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
                let problem = Diagnostic::error(Code::MissingArgument, message, source, span);
                diagnostics.push(problem.with_help(help));
                stand_in(param)
            }
        };
        // An integer for a float becomes a float: both must have one key.
        let value = match (param.ty, value.as_i64()) {
            (Some(ParamType::Float), Some(whole)) => Value::from(whole as f64),
            _ => value,
        };
        values.insert(name.clone(), value);
    }
    values
}

/// A value of the parameter's type, for further checks when its own is wrong.
pub(super) fn stand_in(param: &Param) -> Value {
    if let Some(choice) = param.choices.first() {
        return choice.to_json();
    }
    let least = param.min.as_ref().or(param.max.as_ref());
    match param.ty {
        Some(ParamType::Int) => Value::from(least.and_then(Node::as_i64).unwrap_or(0)),
        Some(ParamType::Float) => Value::from(least.and_then(Node::as_f64).unwrap_or(0.0)),
        Some(ParamType::Bool) => Value::Bool(false),
        Some(ParamType::List) => Value::Array(Vec::new()),
        Some(ParamType::Mapping) => Value::Object(Map::new()),
        Some(ParamType::String | ParamType::Path | ParamType::Repos) | None => {
            Value::from(param.name.value.as_str())
        }
    }
}

pub(super) fn scope(params: &Map<String, Value>) -> Scope {
    Scope { params: params.clone(), matrix: Map::new() }
}
