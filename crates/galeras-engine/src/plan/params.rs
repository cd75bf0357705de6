//! The values of params: from the command line, from an embedding step, from their defaults. Paths
//! of the first two start in another folder than those of the file.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::load::PlanSettings;
use super::mistake::already_reported;
use galeras_workflow::code::Code;
use galeras_workflow::{
    Diagnostic, Diagnostics, Node, Param, ParamType, Scope, Source, Span, Text, Workflow,
    check_param_value, load, quote, with_moved_paths,
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
            let problem = Diagnostic::error(Code::UnknownOption, message, &source, whole);
            diagnostics
                .push(problem.with_help("as in `--set n=5`; a file of settings is not read"));
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
    let (from, to) = (&settings.set_folder, &settings.working_dir);
    let here = |setting: &String| match setting.split_once('=') {
        Some((name, text)) if from != to => {
            let ty = workflow.param(name).and_then(|param| param.ty);
            format!("{name}={}", given_text(ty, text, from, to))
        }
        _ => setting.clone(),
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

/// A text of the command line, whose relative paths start in `from`, as a workflow in the folder
/// `base` must read it. A path becomes absolute, since the value may be used anywhere. Repositories
/// are part of results, so theirs stay relative to `base` and do not reveal the location.
pub(super) fn given_text(ty: Option<ParamType>, text: &str, from: &Path, base: &Path) -> String {
    match ty {
        Some(ParamType::Path) => absolute(text, from),
        Some(ParamType::Repos) => moved_list(text, from, base),
        _ => text.to_string(),
    }
}

/// A path that starts in `from`; an empty one stays empty.
pub(super) fn absolute(path: &str, from: &Path) -> String {
    match path {
        "" => String::new(),
        path => from.join(path).to_string_lossy().into_owned(),
    }
}

/// Rewrites a list of repositories whose relative paths start in `from` to paths that start in
/// `to`.
pub(super) fn moved_list(list: &str, from: &Path, to: &Path) -> String {
    let exists = |path: &str| from.join(path).exists();
    with_moved_paths(list, exists, |path| {
        let there = from.join(path);
        let moved = || relative(path, &from.canonicalize().ok()?, &to.canonicalize().ok()?);
        match there.exists() && Path::new(path).is_relative() {
            true => moved().unwrap_or_else(|| absolute(path, from)),
            // Unchanged, or a path that an error can name.
            false => absolute(path, from),
        }
    })
}

/// The path from the folder `to` to the target of `path` from the folder `from`. Both folders are
/// without links; links in `path` stay, and are followed when it is opened. `None` if it is not
/// valid text.
fn relative(path: &str, from: &Path, to: &Path) -> Option<String> {
    let shared = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    let mut way: Vec<Component<'_>> = Vec::new();
    way.extend(to.components().skip(shared).map(|_| Component::ParentDir));
    let ups = way.len();
    way.extend(from.components().skip(shared));
    // Parts of `from` may be removed: they are not links.
    let mut own = way.len() - ups;
    for part in Path::new(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if own > 0 => {
                way.pop();
                own -= 1;
            }
            part => {
                // After a name that may be a link, nothing may be removed.
                own = if part == Component::ParentDir { own } else { 0 };
                way.push(part);
            }
        }
    }
    let way: PathBuf = way.into_iter().collect();
    let text = way.to_str()?;
    Some(match way.components().next() {
        None => ".".to_string(),
        Some(Component::ParentDir) => text.to_string(),
        Some(_) => format!("./{text}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_to_the_same_from_another_folder() {
        let way = |path, from, to| relative(path, Path::new(from), Path::new(to)).unwrap();
        assert_eq!(way("./clone", "/p", "/p"), "./clone");
        assert_eq!(way("clone", "/p", "/p/flows"), "../clone");
        assert_eq!(way("../clone", "/p/sub", "/p/flows"), "../clone");
        assert_eq!(way("../../x", "/p/sub", "/p/sub/flows"), "../../../x");
        assert_eq!(way("flows/r", "/p", "/p/flows"), "../flows/r");
        assert_eq!(way(".", "/p/r", "/p"), "./r");
        assert_eq!(way("..", "/p/r", "/p"), ".");
        // `link` may lead anywhere, so `link/..` is not its folder.
        assert_eq!(way("link/../r", "/p/sub", "/p"), "./sub/link/../r");
    }

    #[test]
    fn what_is_not_there_is_named_in_full() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("flows")).unwrap();
        std::fs::create_dir_all(root.join("r")).unwrap();
        let list = moved_list("./r,psf/requests,./none,/x", &root, &root.join("flows"));
        assert_eq!(list, format!("../r,psf/requests,{}/./none,/x", root.display()));
        assert_eq!(given_text(Some(ParamType::Path), "", &root, &root), "");
        let path = given_text(Some(ParamType::Path), "a b", &root, &root);
        assert_eq!(path, root.join("a b").to_str().unwrap());
        assert_eq!(given_text(Some(ParamType::String), "./r", &root, &root.join("r")), "./r");
    }
}
