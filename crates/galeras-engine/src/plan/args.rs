//! Uses the operator's JSON Schema: replaces expressions in arguments, then checks the arguments
//! and places every mistake.
//!
//! Supports the schemas that `schemars` writes for spec structs: types, properties, required, enums
//! and constants, items, bounds, `anyOf` / `oneOf`. Other schemas allow everything.

use std::sync::Arc;

use serde_json::Value;

use super::cell::plain;
use super::mistake::already_reported;
use super::other_names::instead_of;
use galeras_operator::ARGUMENT_LANGUAGE;
use galeras_workflow::code::Code;
use galeras_workflow::{
    Diagnostic, Diagnostics, Language, Node, Scope, Source, Span, Value as NodeValue, did_you_mean,
    quote, substitute_code, substitute_node,
};

/// The argument for fields of requests that an operator does not have.
const EXTRA_BODY: &str = "extra_body";

/// Fields that many servers know, which are not misspelt arguments.
const SERVER_FIELDS: &[&str] = &[
    "frequency_penalty",
    "logit_bias",
    "min_p",
    "presence_penalty",
    "reasoning_effort",
    "repetition_penalty",
    "response_format",
    "top_k",
];

/// Reports each violation of the schema in `node`, and returns true if it fits. `owner` names the
/// operator; a missing argument is reported at `place`.
pub(super) fn check(
    node: Option<&Node>,
    schema: &Value,
    owner: &str,
    source: &Arc<Source>,
    place: Span,
    diagnostics: &mut Diagnostics,
) -> bool {
    let empty = Node::new(NodeValue::Map(Vec::new()), place);
    let checker = Checker { source, owner };
    let problems = checker.check(node.unwrap_or(&empty), schema, "", place);
    let fits = problems.is_empty();
    for problem in problems {
        // Mistakes already found while reading the file are not repeated.
        if problem.code == Code::MissingArgument
            || !already_reported(
                diagnostics,
                source,
                Span::new(problem.span.start, problem.span.end()),
            )
        {
            diagnostics.push(problem);
        }
    }
    fits
}

/// The path of an argument below another one.
pub(super) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_string() } else { format!("{path}.{name}") }
}

pub(super) fn fits(node: &Node, schema: &Value, owner: &str, source: &Arc<Source>) -> bool {
    Checker { source, owner }.check(node, schema, "", node.span).is_empty()
}

/// The values that the schema allows, if it lists them.
pub(super) fn constants(schema: &Value) -> Option<Vec<&Value>> {
    if let Some(all) = schema.get("enum").and_then(Value::as_array) {
        return Some(all.iter().collect());
    }
    if let Some(one) = schema.get("const") {
        return Some(vec![one]);
    }
    let choices = ["anyOf", "oneOf"].iter().find_map(|word| schema.get(word)?.as_array())?;
    let of = |choice: &&Value| choice.get("const").is_some() || choice.get("enum").is_some();
    if !choices.iter().all(|choice| of(&choice)) {
        return None;
    }
    Some(choices.iter().filter_map(constants).flatten().collect())
}

struct Checker<'a> {
    source: &'a Arc<Source>,
    owner: &'a str,
}

impl Checker<'_> {
    fn check(&self, node: &Node, schema: &Value, path: &str, place: Span) -> Vec<Diagnostic> {
        if let Some(allowed) = constants(schema) {
            return self.check_enum(node, allowed, path);
        }
        for word in ["anyOf", "oneOf"] {
            if let Some(choices) = schema.get(word).and_then(Value::as_array) {
                return self.check_choices(node, choices, path, place);
            }
        }
        let types: Vec<&str> = match schema.get("type") {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
            _ => return Vec::new(),
        };
        if !types.iter().any(|t| has_type(node, t)) {
            let wanted: Vec<String> = types
                .iter()
                .filter(|t| **t != "null")
                .map(|t| with_article(type_word(t)))
                .collect();
            let what = if path.is_empty() { "this".to_string() } else { quote(path) };
            let given = with_article(node.type_name());
            let message = format!("{what} must be {}, not {given}", wanted.join(" or "));
            let mut problem = self.error(Code::WrongType, message, node.span);
            let written = self.source.slice(node.span);
            problem.help = right_form(node, written, &types, schema, path);
            return vec![problem];
        }
        let mut problems = self.check_bounds(node, schema, path);
        match &node.value {
            NodeValue::Map(entries) => {
                problems.extend(self.check_object(entries, schema, path, place));
            }
            NodeValue::Seq(items) => {
                if let Some(items_schema) = schema.get("items") {
                    for (at, item) in items.iter().enumerate() {
                        let path = format!("{path}[{at}]");
                        problems.extend(self.check(item, items_schema, &path, item.span));
                    }
                }
                let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
                if (items.len() as u64) < least {
                    let entries = if least == 1 { "entry" } else { "entries" };
                    let message = format!("{} needs at least {least} {entries}", quote(path));
                    problems.push(self.error(Code::WrongValue, message, node.span));
                }
            }
            _ => {}
        }
        problems
    }

    /// One alternative must fit. Otherwise the nearest one gives the mistakes: the one whose outer
    /// type fits, without null.
    fn check_choices(
        &self,
        node: &Node,
        choices: &[Value],
        path: &str,
        place: Span,
    ) -> Vec<Diagnostic> {
        let mut nearest: Option<Vec<Diagnostic>> = None;
        for choice in choices {
            let problems = self.check(node, choice, path, place);
            if problems.is_empty() {
                return problems;
            }
            let is_null = choice.get("type").and_then(Value::as_str) == Some("null");
            let type_fits = !problems
                .iter()
                .any(|d| d.code == Code::WrongType && d.span.start == node.span.start);
            if nearest.is_none() || (!is_null && type_fits) {
                nearest = Some(problems);
            }
        }
        nearest.unwrap_or_default()
    }

    fn check_enum(&self, node: &Node, allowed: Vec<&Value>, path: &str) -> Vec<Diagnostic> {
        let given = node.to_json();
        if allowed.contains(&&given) {
            return Vec::new();
        }
        let names: Vec<String> = allowed.iter().map(|v| plain(v)).collect();
        let shown = plain(&given);
        let message = format!("{} cannot be {}", quote(path), quote(&shown));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut problem = self.error(Code::WrongValue, message, node.span);
        let meant = did_you_mean(&shown, names.iter().copied());
        problem = match (instead_of(&shown), meant) {
            (Some(instead), _) => {
                problem.with_help(format!("{instead}; allowed: {}", names.join(", ")))
            }
            (None, Some(name)) => problem.with_help(format!("did you mean {}?", quote(name))),
            (None, None) => problem.with_help(format!("allowed: {}", names.join(", "))),
        };
        vec![problem]
    }

    fn check_bounds(&self, node: &Node, schema: &Value, path: &str) -> Vec<Diagnostic> {
        let Some(value) = node.as_f64() else { return Vec::new() };
        let bound = |word: &str| schema.get(word).and_then(Value::as_f64);
        let problem = match (bound("minimum"), bound("maximum")) {
            (Some(min), _) if value < min => format!("at least {min}"),
            (_, Some(max)) if value > max => format!("at most {max}"),
            _ => return Vec::new(),
        };
        let message = format!("{} must be {problem}", quote(path));
        vec![self.error(Code::WrongValue, message, node.span)]
    }

    fn check_object(
        &self,
        entries: &[(Node, Node)],
        schema: &Value,
        path: &str,
        place: Span,
    ) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        let none = serde_json::Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let rest = schema.get("additionalProperties");
        for (key, value) in entries {
            let Some(name) = key.as_str() else { continue };
            if let Some(schema) = properties.get(name) {
                problems.extend(self.check(value, schema, &join(path, name), value.span));
            } else if rest == Some(&Value::Bool(false)) {
                let message = match path {
                    "" => format!("operator {} has no argument {}", quote(self.owner), quote(name)),
                    _ => format!("{} has no key {}", quote(path), quote(name)),
                };
                let error = self.error(Code::UnknownArgument, message, key.span);
                let mut error = error.with_suggestion(name, properties.keys().map(String::as_str));
                if path.is_empty() && properties.contains_key(EXTRA_BODY) {
                    let known = error.help.take().filter(|_| !SERVER_FIELDS.contains(&name));
                    let known = known.map_or_else(String::new, |known| format!("; {known}"));
                    error.help = Some(format!(
                        "a field that only the server knows goes into \
                         `{EXTRA_BODY}: {{ {name}: … }}`{known}"
                    ));
                }
                problems.push(error);
            } else if let Some(schema @ Value::Object(_)) = rest {
                problems.extend(self.check(value, schema, &join(path, name), value.span));
            }
        }
        let required = schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            let given = entries.iter().any(|(key, _)| key.as_str() == Some(name));
            // A misspelt argument is only one mistake.
            let misspelt = entries.iter().filter_map(|(key, _)| key.as_str()).any(|key| {
                !properties.contains_key(key)
                    && did_you_mean(key, properties.keys().map(String::as_str)) == Some(name)
            });
            if !given && !misspelt {
                let message = match path {
                    "" => {
                        format!("operator {} needs the argument {}", quote(self.owner), quote(name))
                    }
                    _ => format!("{} needs {}", quote(path), quote(name)),
                };
                let mut error = self.error(Code::MissingArgument, message, place);
                let description = properties.get(name).and_then(|p| p.get("description"));
                if let Some(text) = description.and_then(Value::as_str) {
                    error = error.with_help(format!("{name}: {}", text.replace('\n', " ")));
                }
                problems.push(error);
            }
        }
        problems
    }

    fn error(&self, code: Code, message: String, span: Span) -> Diagnostic {
        Diagnostic::error(code, message, self.source, span)
    }
}

fn has_type(node: &Node, name: &str) -> bool {
    match (&node.value, name) {
        (NodeValue::Null, "null")
        | (NodeValue::Bool(_), "boolean")
        | (NodeValue::Int(_), "integer" | "number")
        | (NodeValue::Float(_), "number")
        | (NodeValue::String(_), "string")
        | (NodeValue::Seq(_), "array")
        | (NodeValue::Map(_), "object") => true,
        (NodeValue::Float(f), "integer") => f.fract() == 0.0 && f.abs() < 9e15,
        _ => false,
    }
}

/// The form of a value that has another type than those `wanted`, or the purpose of the argument.
fn right_form(
    node: &Node,
    written: &str,
    wanted: &[&str],
    schema: &Value,
    path: &str,
) -> Option<String> {
    let name = path.rsplit('.').next().unwrap_or(path);
    let purpose = schema.get("description").and_then(Value::as_str);
    let purpose = purpose
        .filter(|_| !path.is_empty())
        .map(|text| format!("{name}: {}", text.replace('\n', " ")));
    if written.trim_matches(['"', '\'']).starts_with("${{ params.") {
        let wanted = wanted.iter().find(|name| **name != "null").copied()?;
        return Some(format!("the param needs `type: {}`", param_type(wanted)));
    }
    let is = |name: &str| wanted.contains(&name);
    let given = plain(&node.to_json());
    // The unit of an argument such as `timeout: 10s`.
    let default = schema.get("default").and_then(Value::as_str).unwrap_or_default();
    let unit = default.trim_start_matches(|c: char| c.is_ascii_digit());
    let form = match &node.value {
        NodeValue::String(text) if is("integer") || is("number") => {
            let fits = text.parse::<i64>().is_ok()
                || (is("number") && text.parse::<f64>().is_ok_and(f64::is_finite));
            match (fits, other_expression(text)) {
                (true, _) => return Some(format!("without quotes: `{text}`")),
                (false, Some(name)) => {
                    return Some(format!("a param is written `\"${{{{ params.{name} }}}}\"`"));
                }
                (false, None) => "a number in digits".to_owned(),
            }
        }
        NodeValue::Float(_) if is("integer") => "a number without a fraction".to_owned(),
        NodeValue::Int(_) | NodeValue::Float(_)
            if is("string")
                && unit.len() < default.len()
                && unit.chars().all(char::is_alphabetic) =>
        {
            format!("with a unit: `{name}: {given}{unit}`")
        }
        NodeValue::Int(_) | NodeValue::Float(_) | NodeValue::Bool(_) if is("string") => {
            return Some(format!("in quotes: `\"{given}\"`"));
        }
        NodeValue::Seq(_) | NodeValue::Map(_) | NodeValue::Null => return purpose,
        _ if is("array") => return Some(format!("a list: `[{given}]`")),
        _ => return purpose,
    };
    Some(purpose.map_or_else(|| form.clone(), |purpose| format!("{form}; {purpose}")))
}

/// The name in a reference as shells and templates write it: `$n`, `${n}`, `{{ n }}`.
fn other_expression(text: &str) -> Option<&str> {
    let is_one = text.starts_with('$') || (text.starts_with("{{") && text.ends_with("}}"));
    let name = text.trim_matches(['$', '{', '}', ' ']);
    let name = name.strip_prefix("params.").unwrap_or(name);
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    (is_one && is_name).then_some(name)
}

/// The type of a param with values of a type of JSON Schema.
fn param_type(name: &str) -> &str {
    match name {
        "integer" => "int",
        "number" => "float",
        "boolean" => "bool",
        other => type_word(other),
    }
}

fn with_article(word: &str) -> String {
    match word.chars().next() {
        _ if word == "nothing" => word.to_string(),
        Some('a' | 'e' | 'i' | 'o' | 'u') => format!("an {word}"),
        _ => format!("a {word}"),
    }
}

fn type_word(name: &str) -> &str {
    match name {
        "array" => "list",
        "object" => "mapping",
        other => other,
    }
}

/// Replaces the expressions in the arguments `node` by their values: as literals and quoted words
/// where `schema` marks the text as code, unchanged elsewhere.
pub(super) fn substitute_arguments(
    node: &Node,
    schema: &Value,
    source: &Arc<Source>,
    scope: &Scope,
    diagnostics: &mut Diagnostics,
) -> Node {
    let value = match &node.value {
        NodeValue::Map(entries) => NodeValue::Map(
            entries
                .iter()
                .map(|(key, value)| {
                    let schema = property(schema, key.as_str().unwrap_or_default());
                    let value = substitute_arguments(value, schema, source, scope, diagnostics);
                    (key.clone(), value)
                })
                .collect(),
        ),
        NodeValue::Seq(items) => NodeValue::Seq(
            items
                .iter()
                .map(|item| {
                    let schema = first(schema, &|s| s.get("items"));
                    substitute_arguments(item, schema, source, scope, diagnostics)
                })
                .collect(),
        ),
        NodeValue::String(_) => {
            return match language(schema) {
                Some(language) => substitute_code(node, language, source, scope, diagnostics),
                None => substitute_node(node, source, scope, diagnostics),
            };
        }
        other => other.clone(),
    };
    Node { value, span: node.span, quoted: node.quoted }
}

fn property<'a>(schema: &'a Value, name: &str) -> &'a Value {
    first(schema, &|s| {
        let named = s.get("properties").and_then(|properties| properties.get(name));
        named.or_else(|| s.get("additionalProperties"))
    })
}

/// The result of `find` for the schema itself or its first alternative with a result.
fn first<'a>(schema: &'a Value, find: &dyn Fn(&'a Value) -> Option<&'a Value>) -> &'a Value {
    let alternatives = ["anyOf", "oneOf"]
        .iter()
        .filter_map(|word| schema.get(word))
        .filter_map(Value::as_array)
        .flatten();
    std::iter::once(schema).chain(alternatives).find_map(find).unwrap_or(&Value::Null)
}

fn language(schema: &Value) -> Option<Language> {
    first(schema, &|s| s.get(ARGUMENT_LANGUAGE)).as_str()?.parse().ok()
}
