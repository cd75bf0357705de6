//! Finds `${{ params.x }}` and `${{ matrix.y }}` in strings. `${{ params.x.key }}` is a value
//! within a mapping.
//!
//! There are no operators, functions, loops or environment, on purpose: readers must see what a
//! step computes from the workflow and its parameters. `{{ }}` without `$` belongs to prompt
//! templates and is unchanged; there is no escape for `${{`.

use std::fmt;
use std::sync::Arc;

use strum::{EnumString, IntoStaticStr, VariantNames};

use super::diagnostic::{Diagnostic, Diagnostics, quote};
use super::node::{Node, Value};
use super::source::{Source, Span};
use crate::code::Code;

pub(super) const OPEN: &str = "${{";
pub(super) const CLOSE: &str = "}}";
/// Upper bound of expressions in one string: finding a place takes time linear in the string.
const MAX_PER_STRING: usize = 200;

/// The source of an expression's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum Namespace {
    /// The workflow's `params`.
    Params,
    /// The keys of the step's `matrix`.
    Matrix,
}

impl Namespace {
    /// `params` or `matrix`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// One expression: `params.threshold`, `matrix.model.base_url`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ref {
    /// The part before the first dot.
    pub namespace: Namespace,
    /// The part after it.
    pub name: String,
    /// Keys within a mapping, the outermost first, if the value is inside one.
    pub keys: Vec<String>,
    /// The bytes from `$` to the last `}`, or the whole scalar if escapes or folding hide the exact
    /// place.
    pub span: Span,
}

impl Ref {
    /// The value at these keys within the value of the name.
    pub fn within(&self, value: &serde_json::Value) -> Option<serde_json::Value> {
        self.keys.iter().try_fold(value, |value, key| value.as_object()?.get(key)).cloned()
    }
}

impl fmt::Display for Ref {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.namespace.as_str(), self.name)?;
        self.keys.iter().try_for_each(|key| write!(f, ".{key}"))
    }
}

/// A part of a string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// Text, unchanged.
    Text(&'a str),
    /// An expression. One that is the whole string keeps the type of its value.
    Ref(Ref),
}

/// True if a string contains the beginning of an expression.
pub fn has_expression(text: &str) -> bool {
    text.contains(OPEN)
}

/// True if a name has the form `[A-Za-z_][A-Za-z0-9_-]*` of steps, parameters, outputs, ports and
/// matrix keys.
pub fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// Parses the expressions of a string node. Returns `None` if the node is not a string or an
/// expression in it cannot be parsed (all of these are reported).
pub(super) fn parse_template<'a>(
    node: &'a Node,
    source: &Arc<Source>,
    diagnostics: &mut Diagnostics,
) -> Option<Vec<Piece<'a>>> {
    let text = node.as_str()?;
    let mut pieces = Vec::new();
    let mut sound = true;
    let (mut at, mut count) = (0, 0);
    while let Some(offset) = text.get(at..).and_then(|rest| rest.find(OPEN)) {
        let open = at + offset;
        count += 1;
        if count > MAX_PER_STRING {
            let message = format!("a string may hold at most {MAX_PER_STRING} expressions");
            diagnostics.push(Diagnostic::error(Code::YamlLimit, message, source, node.span));
            return None;
        }
        if open > at {
            pieces.push(Piece::Text(text.get(at..open).unwrap_or("")));
        }
        let inner = open + OPEN.len();
        let rest = text.get(inner..).unwrap_or("");
        let close = rest.find(CLOSE);
        let nested = rest.find(OPEN);
        // A second opening before the closing means that the first one was never closed.
        let Some(length) = close.filter(|c| nested.is_none_or(|n| *c < n)) else {
            let (code, message) = (Code::BadExpression, "`${{` is never closed");
            let span = node.part_span(source.text(), open, inner);
            let problem = Diagnostic::error(code, message, source, span);
            diagnostics.push(problem.with_help("write `${{ params.name }}`"));
            sound = false;
            at = inner + nested.unwrap_or(rest.len());
            continue;
        };
        let end = inner + length + CLOSE.len();
        let span = node.part_span(source.text(), open, end);
        let body = rest.get(..length).unwrap_or("");
        match parse_ref(body, span) {
            Ok(reference) => pieces.push(Piece::Ref(reference)),
            Err((message, help)) => {
                let problem = Diagnostic::error(Code::BadExpression, message, source, span);
                diagnostics.push(problem.with_help(help));
                sound = false;
            }
        }
        at = end;
    }
    if at < text.len() {
        pieces.push(Piece::Text(text.get(at..).unwrap_or("")));
    }
    sound.then_some(pieces)
}

/// The expression between the braces, or a message and advice.
fn parse_ref(body: &str, span: Span) -> Result<Ref, (String, String)> {
    let usage = "only `params.name` and `matrix.name` are allowed here";
    let fail = |message: String, help: &str| Err((message, help.to_owned()));
    let body = body.trim();
    if body.is_empty() {
        return fail("the expression is empty".to_owned(), usage);
    }
    let Some((namespace, name)) = body.split_once('.') else {
        if Namespace::VARIANTS.contains(&body) {
            let help = format!("write `{body}.name`");
            return fail(format!("{} needs a name", quote(body)), &help);
        }
        if is_name(body) {
            let help = format!("write `params.{body}`");
            return fail(format!("{} is not an expression", quote(body)), &help);
        }
        return fail(format!("{} is not an expression", quote(body)), usage);
    };
    let namespace = namespace.trim();
    let names: Vec<&str> = name.split('.').map(str::trim).collect();
    // Anything except names is an attempt at a richer language; report that first.
    if !is_name(namespace) || !names.iter().all(|name| is_name(name)) {
        let richer = body.contains(|c: char| "()|&+*/<>=!?[]{}'\",%".contains(c) || c == ' ');
        if richer {
            return fail(
                format!("{} is more than a reference", quote(body)),
                "expressions have no functions, operators or filters: compute the value where \
                 the parameter is set",
            );
        }
        return fail(format!("{} is not a valid reference", quote(body)), usage);
    }
    let namespace = match namespace.parse() {
        Ok(namespace) => namespace,
        Err(strum::ParseError::VariantNotFound) => {
            let known = Namespace::VARIANTS.iter().copied();
            let help = match super::suggest::did_you_mean(namespace, known) {
                Some(known) => format!("did you mean `{known}.{}`?", names.join(".")),
                None => usage.to_owned(),
            };
            return fail(format!("there is no {} to refer to", quote(namespace)), &help);
        }
    };
    let mut names = names.into_iter().map(str::to_owned);
    let name = names.next().unwrap_or_default();
    Ok(Ref { namespace, name, keys: names.collect(), span })
}

/// Parses the expressions of every string in a tree, and reports those in keys, where they are not
/// allowed. Returns the references in the order of the file.
pub fn collect_refs(node: &Node, source: &Arc<Source>, diagnostics: &mut Diagnostics) -> Vec<Ref> {
    match &node.value {
        Value::String(_) => {
            let pieces = parse_template(node, source, diagnostics).into_iter().flatten();
            let reference = |piece| if let Piece::Ref(found) = piece { Some(found) } else { None };
            pieces.filter_map(reference).collect()
        }
        Value::Seq(items) => {
            items.iter().flat_map(|item| collect_refs(item, source, diagnostics)).collect()
        }
        Value::Map(entries) => {
            let of_entry = |(key, value): &(Node, Node)| {
                if key.as_str().is_some_and(has_expression) {
                    diagnostics.push(no_expression_here("a key", source, key.span));
                }
                collect_refs(value, source, diagnostics)
            };
            entries.iter().flat_map(of_entry).collect()
        }
        _ => Vec::new(),
    }
}

/// True if a text in a tree contains the beginning of an expression.
pub fn holds_expression(node: &Node) -> bool {
    match &node.value {
        Value::String(text) => has_expression(text),
        Value::Seq(items) => items.iter().any(holds_expression),
        Value::Map(entries) => {
            entries.iter().any(|(key, value)| holds_expression(key) || holds_expression(value))
        }
        _ => false,
    }
}

/// The diagnostic for an expression in a place that must not depend on parameters.
pub(super) fn no_expression_here(what: &str, source: &Arc<Source>, span: Span) -> Diagnostic {
    let message = format!("{what} cannot contain an expression");
    Diagnostic::error(Code::BadExpression, message, source, span)
        .with_help("the shape of a workflow is fixed; only values can be substituted")
}
