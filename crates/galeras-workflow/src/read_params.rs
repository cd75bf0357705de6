//! Reads `params`: types, bounds, choices and defaults. [`check_param_value`] also checks the
//! values of the command line.

use std::cmp::Ordering;
use std::sync::Arc;

use strum::VariantNames as _;

use super::diagnostic::{Diagnostic, Diagnostics, quote};
use super::expr::{holds_expression, no_expression_here};
use super::node::{Node, Value};
use super::reader::{WorkflowReader, describe};
use super::source::Source;
use super::spec::{Param, ParamType, Text};
use crate::code::Code;

const KEYS: [&str; 6] = ["type", "default", "min", "max", "choices", "help"];

impl WorkflowReader<'_> {
    pub(super) fn param(&mut self, name: Text, node: &Node) -> Option<Param> {
        let what = format!("parameter {}", quote(&name.value));
        let mut out = Param { name, span: node.span, ..Param::default() };
        if node.as_map().is_none() {
            self.not_a_mapping(&what, &out.name, node);
            return Some(out);
        }
        self.known_keys(node, &what, &KEYS);
        out.ty = self.param_type(&what, &out.name, node);
        out.help = self.optional_text(node, "help");
        let Some(ty) = out.ty else { return Some(out) };
        out.min = self.bound(&what, ty, node, "min");
        out.max = self.bound(&what, ty, node, "max");
        if let (Some(min), Some(max)) = (&out.min, &out.max)
            && compare(min, max) == Some(Ordering::Greater)
        {
            let message = format!("{what} has a `min` above its `max`");
            let problem = self.error(Code::WrongValue, message, min.span);
            self.push(problem.with_related(self.source, max.span, "the `max`"));
        }
        if let Some((key, choices)) = node.entry("choices") {
            out.choices = self.choices(&what, ty, key, choices);
        }
        if let Some(default) = node.get("default") {
            // Wrong bounds and choices are absent here.
            if check_param_value(&out, default, self.source, self.diagnostics) {
                out.default = Some(default.clone());
            }
        }
        Some(out)
    }

    fn not_a_mapping(&mut self, what: &str, name: &Text, node: &Node) {
        let ty = match node.value {
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Float(_) => "float",
            Value::Seq(_) => "list",
            _ => "string",
        };
        let written = self.source.slice(node.span);
        let help = match node.is_null() || written.contains('\n') {
            true => "write `{ type: …, default: … }`".to_owned(),
            false => format!("write `{}: {{ type: {ty}, default: {written} }}`", name.value),
        };
        let message = format!("{what} must be a mapping, not {}", describe(node));
        self.fail(Code::WrongType, message, node.span, &help.chars().take(200).collect::<String>());
    }

    fn param_type(&mut self, what: &str, name: &Text, node: &Node) -> Option<ParamType> {
        let types: Vec<String> = ParamType::VARIANTS.iter().map(|ty| quote(ty)).collect();
        let help = format!("the types are {}", types.join(", "));
        let ty = self.required(node, (what, "type"), name.span, &help)?;
        let text = self.text(ty, &format!("the type of {what}"))?;
        if let Ok(ty) = text.value.parse() {
            return Some(ty);
        }
        let message = format!("there is no parameter type {}", quote(&text.value));
        let problem = self.error(Code::UnknownType, message, ty.span);
        let meant = match text.value.to_lowercase().as_str() {
            "str" | "text" | "utf8" => "string",
            "integer" | "int64" => "int",
            "number" | "double" | "float64" => "float",
            "file" | "dir" => "path",
            "array" | "sequence" => "list",
            "dict" | "map" | "object" => "mapping",
            "repo" | "repositories" => "repos",
            _ => text.value.as_str(),
        };
        self.push(problem.with_suggestion(meant, ParamType::VARIANTS.iter().copied()));
        None
    }

    fn bound(&mut self, what: &str, ty: ParamType, node: &Node, key: &str) -> Option<Node> {
        let (name, value) = node.entry(key)?;
        if !matches!(ty, ParamType::Int | ParamType::Float) {
            let message = format!("`{key}` does not apply to a {}", ty.as_str());
            let help = "only an `int` or a `float` has bounds";
            self.fail(Code::ConflictingKeys, message, name.span, help);
            return None;
        }
        if !fits(ty, value) {
            self.wrong_type(value, &format!("`{key}` of {what}"), wanted(ty));
            return None;
        }
        Some(value.clone())
    }

    /// The choices of a list apply to each of its entries.
    fn choices(&mut self, what: &str, ty: ParamType, key: &Node, node: &Node) -> Vec<Node> {
        if ty == ParamType::Mapping {
            let message = "`choices` does not apply to a mapping";
            let help = "name one mapping of several by a param of type `string`";
            self.fail(Code::ConflictingKeys, message, key.span, help);
            return Vec::new();
        }
        let list = format!("`choices` of {what}");
        let items = self.list(node, (&list, "a list of values"), 1).unwrap_or_default();
        let choice = |item: &&Node| {
            let (fits, wanted) = match ty {
                ParamType::List => (item.is_scalar(), "a scalar"),
                _ => (fits(ty, item), wanted(ty)),
            };
            if !fits {
                self.wrong_type(item, &format!("a choice of {what}"), wanted);
            }
            fits
        };
        items.iter().filter(choice).cloned().collect()
    }
}

/// Checks a value against a parameter's type, bounds and choices; reports mistakes and returns
/// whether there are none.
pub fn check_param_value(
    param: &Param,
    value: &Node,
    source: &Arc<Source>,
    diagnostics: &mut Diagnostics,
) -> bool {
    let Some(ty) = param.ty else { return true };
    let what = format!("parameter {}", quote(&param.name.value));
    let mut fail = |problem: Diagnostic| {
        diagnostics.push(problem);
        false
    };
    if holds_expression(value) {
        return fail(no_expression_here("a parameter", source, value.span));
    }
    if !fits(ty, value) {
        let message = format!("{what} must be {}, not {}", wanted(ty), describe(value));
        let problem = Diagnostic::error(Code::WrongType, message, source, value.span);
        return fail(match ty {
            ParamType::List => problem.with_help("a list is written `[a, b]`"),
            ParamType::Mapping => problem.with_help("a mapping is written `{ key: value }`"),
            ParamType::Int | ParamType::Float => match value.as_str().map(str::parse::<f64>) {
                Some(Ok(_)) => problem.with_help("a number has no quotes"),
                Some(Err(_)) => problem.with_help("a number is written in digits"),
                None => problem,
            },
            ParamType::String | ParamType::Path if value.is_scalar() => {
                problem.with_help("a value in quotes is a string")
            }
            _ => problem,
        });
    }
    let bounds = [(&param.min, Ordering::Less, "least"), (&param.max, Ordering::Greater, "most")];
    for (bound, wrong, word) in bounds {
        if let Some(bound) = bound
            && compare(value, bound) == Some(wrong)
        {
            let limit = bound.to_json();
            let message = format!("{what} must be at {word} {limit}, not {}", value.to_json());
            return fail(Diagnostic::error(Code::WrongValue, message, source, value.span));
        }
    }
    let entries = match ty {
        ParamType::List => value.as_seq().unwrap_or_default(),
        _ => std::slice::from_ref(value),
    };
    let mut allowed = true;
    for entry in entries {
        let same = |choice: &Node| compare(choice, entry) == Some(Ordering::Equal);
        if !param.choices.is_empty() && !param.choices.iter().any(same) {
            diagnostics.push(no_choice(param, &what, entry, source));
            allowed = false;
        }
    }
    allowed
}

fn no_choice(param: &Param, what: &str, value: &Node, source: &Arc<Source>) -> Diagnostic {
    let message = format!("{} is not one of the choices of {what}", describe(value));
    let name = |c: &Node| c.as_str().map_or_else(|| c.to_json().to_string(), str::to_owned);
    let names: Vec<String> = param.choices.iter().map(name).collect();
    let given = value.as_str().unwrap_or("");
    let problem = Diagnostic::error(Code::WrongValue, message, source, value.span);
    problem.with_suggestion(given, names.iter().map(String::as_str))
}

fn fits(ty: ParamType, node: &Node) -> bool {
    match ty {
        ParamType::Int => matches!(node.value, Value::Int(_)),
        ParamType::Float => node.as_f64().is_some_and(f64::is_finite),
        ParamType::String | ParamType::Path | ParamType::Repos => node.as_str().is_some(),
        ParamType::Bool => matches!(node.value, Value::Bool(_)),
        ParamType::List => node.as_seq().is_some(),
        ParamType::Mapping => node.as_map().is_some(),
    }
}

fn wanted(ty: ParamType) -> &'static str {
    match ty {
        ParamType::Int => "an integer",
        ParamType::Float => "a number",
        ParamType::String => "a string",
        ParamType::Bool => "`true` or `false`",
        ParamType::Path => "a path",
        ParamType::List => "a list",
        ParamType::Mapping => "a mapping",
        ParamType::Repos => "a text with repositories, separated by commas",
    }
}

fn compare(a: &Node, b: &Node) -> Option<Ordering> {
    match (&a.value, &b.value) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}
