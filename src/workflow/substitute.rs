//! Giving the expressions of a tree their values.

use std::sync::Arc;

use super::diagnostic::{Diagnostic, Diagnostics, quote};
use super::expr::{Namespace, Piece, Ref, Template, parse_template};
use super::language::{CodeText, Language};
use super::node::{Node, Value};
use super::source::Source;
use super::unfit::Unfit;
use crate::code::Code;

/// Gives expressions their values. Implemented by every `Fn(&Ref) -> Option<Value>`.
pub trait Resolve {
    /// The value, or `None` if there is no such name.
    fn value(&self, reference: &Ref) -> Option<serde_json::Value>;

    /// The names that exist, for "did you mean".
    fn names(&self, namespace: Namespace) -> Vec<String> {
        let _ = namespace;
        Vec::new()
    }
}

impl<F: Fn(&Ref) -> Option<serde_json::Value>> Resolve for F {
    fn value(&self, reference: &Ref) -> Option<serde_json::Value> {
        self(reference)
    }
}

/// The values of all parameters and of the matrix keys of one cell.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// The workflow's parameters.
    pub params: serde_json::Map<String, serde_json::Value>,
    /// The keys of the cell; empty outside a matrix.
    pub matrix: serde_json::Map<String, serde_json::Value>,
}

impl Scope {
    fn of(&self, namespace: Namespace) -> &serde_json::Map<String, serde_json::Value> {
        match namespace {
            Namespace::Params => &self.params,
            Namespace::Matrix => &self.matrix,
        }
    }
}

impl Resolve for Scope {
    fn value(&self, reference: &Ref) -> Option<serde_json::Value> {
        self.of(reference.namespace).get(&reference.name).cloned()
    }

    fn names(&self, namespace: Namespace) -> Vec<String> {
        self.of(namespace).keys().cloned().collect()
    }
}

/// Replaces every expression in a tree by its value and keeps the places. What cannot be
/// replaced is reported and becomes null.
pub fn substitute_node(
    node: &Node,
    source: &Arc<Source>,
    resolver: &dyn Resolve,
    diagnostics: &mut Diagnostics,
) -> Node {
    let value = match &node.value {
        Value::String(_) => return substitute_scalar(node, source, resolver, diagnostics),
        Value::Seq(items) => Value::Seq(
            items.iter().map(|item| substitute_node(item, source, resolver, diagnostics)).collect(),
        ),
        Value::Map(entries) => Value::Map(
            entries
                .iter()
                .map(|(key, value)| {
                    let value = substitute_node(value, source, resolver, diagnostics);
                    (key.clone(), value)
                })
                .collect(),
        ),
        other => other.clone(),
    };
    Node { value, ..node.clone_shell() }
}

/// Like [`substitute_node`], without the places.
pub fn substitute(
    node: &Node,
    source: &Arc<Source>,
    resolver: &dyn Resolve,
    diagnostics: &mut Diagnostics,
) -> serde_json::Value {
    substitute_node(node, source, resolver, diagnostics).to_json()
}

/// Replaces the expressions in a text that is code: values enter it as literals and quoted words,
/// never as code. Anything but a text is left as it is.
pub fn substitute_code(
    node: &Node,
    language: Language,
    source: &Arc<Source>,
    resolver: &dyn Resolve,
    diagnostics: &mut Diagnostics,
) -> Node {
    if node.as_str().is_none() {
        return node.clone();
    }
    let null = Node::new(Value::Null, node.span);
    let pieces = match parse_template(node, source, diagnostics) {
        None => return null,
        Some(Template::Literal(_)) => return node.clone(),
        Some(Template::Whole(r)) => {
            // A text would be nothing but a literal, which is not what was meant.
            if resolver.value(&r).is_some_and(|value| value.is_string()) {
                diagnostics.push(whole_code(&r, language, source));
                return null;
            }
            vec![Piece::Ref(r)]
        }
        Some(Template::Mixed(pieces)) => pieces,
    };
    let mut text = CodeText::new(language);
    let mut sound = true;
    for piece in &pieces {
        match piece {
            Piece::Text(part) => text.code(part),
            Piece::Ref(r) => match resolver.value(r) {
                None => {
                    diagnostics.push(unknown(r, source, resolver));
                    sound = false;
                }
                Some(value) => {
                    if let Err(unfit) = text.value(&value) {
                        diagnostics.push(match unfit {
                            Unfit::Type(kind) => not_text(r, kind, source),
                            Unfit::Place(place) => not_quotable(r, place, language, source),
                        });
                        sound = false;
                    }
                }
            },
        }
    }
    if !sound {
        return null;
    }
    Node { value: Value::String(text.finish()), ..node.clone_shell() }
}

fn whole_code(r: &Ref, language: Language, source: &Arc<Source>) -> Diagnostic {
    let (what, help) = match language {
        Language::Sql => ("SQL", "write the SQL here, and give the values in it by params"),
        Language::Shell => ("command", "write the command here, and give its arguments by params"),
    };
    let name = format!("{}.{}", r.namespace.as_str(), r.name);
    let message = format!("{} is a text and cannot be the whole {what}", quote(&name));
    Diagnostic::error(Code::UnsafeSubstitution, message, source, r.span).with_help(help)
}

fn not_quotable(r: &Ref, place: &str, language: Language, source: &Arc<Source>) -> Diagnostic {
    let name = format!("{}.{}", r.namespace.as_str(), r.name);
    let message = format!(
        "the value of {} cannot stand in {place}, where no quotes keep it from being read as code",
        quote(&name)
    );
    let help = match language {
        Language::Sql => "let it stand by itself, or in '…'",
        Language::Shell => "give it to a variable first: `x=${{ … }}` on a line of its own",
    };
    Diagnostic::error(Code::UnsafeSubstitution, message, source, r.span).with_help(help)
}

fn substitute_scalar(
    node: &Node,
    source: &Arc<Source>,
    resolver: &dyn Resolve,
    diagnostics: &mut Diagnostics,
) -> Node {
    let null = Node::new(Value::Null, node.span);
    let Some(template) = parse_template(node, source, diagnostics) else {
        return null;
    };
    let value = |r: &Ref, diagnostics: &mut Diagnostics| {
        let value = resolver.value(r);
        if value.is_none() {
            diagnostics.push(unknown(r, source, resolver));
        }
        value
    };
    match template {
        Template::Literal(_) => node.clone(),
        Template::Whole(r) => match value(&r, diagnostics) {
            Some(json) => Node::from_json(&json, node.span),
            None => null,
        },
        Template::Mixed(pieces) => {
            let mut text = String::new();
            let mut sound = true;
            for piece in &pieces {
                match piece {
                    Piece::Text(part) => text.push_str(part),
                    Piece::Ref(r) => match value(r, diagnostics).map(|v| written(&v)) {
                        Some(Ok(part)) => text.push_str(&part),
                        Some(Err(kind)) => {
                            diagnostics.push(not_text(r, kind, source));
                            sound = false;
                        }
                        None => sound = false,
                    },
                }
            }
            if !sound {
                return null;
            }
            Node { value: Value::String(text), ..node.clone_shell() }
        }
    }
}

fn unknown(r: &Ref, source: &Arc<Source>, resolver: &dyn Resolve) -> Diagnostic {
    let what = match r.namespace {
        Namespace::Params => "parameter",
        Namespace::Matrix => "matrix key",
    };
    let known = resolver.names(r.namespace);
    let message = format!("there is no {what} {}", quote(&r.name));
    Diagnostic::error(Code::UnknownParam, message, source, r.span)
        .with_suggestion(&r.name, known.iter().map(String::as_str))
}

fn not_text(r: &Ref, kind: &str, source: &Arc<Source>) -> Diagnostic {
    let name = format!("{}.{}", r.namespace.as_str(), r.name);
    Diagnostic::error(
        Code::WrongType,
        format!("{} is {kind} and cannot stand inside a text", quote(&name)),
        source,
        r.span,
    )
    .with_help("let the expression be the whole value, or use a string or a number")
}

/// A scalar as text inside a string.
fn written(value: &serde_json::Value) -> Result<String, &'static str> {
    use serde_json::Value as Json;
    match value {
        Json::String(s) => Ok(s.clone()),
        Json::Bool(_) | Json::Number(_) => Ok(value.to_string()),
        Json::Null => Err("null"),
        Json::Array(_) => Err("a list"),
        Json::Object(_) => Err("a mapping"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::workflow::expr::collect_refs;
    use crate::workflow::load::load;
    use crate::workflow::source::Span;
    use serde_json::json;

    /// Code, place and help.
    type Found = Vec<(Code, String, Option<String>)>;

    fn run(text: &str) -> (serde_json::Value, Found) {
        let source = Source::new("f", text);
        let mut all = Diagnostics::new();
        let node = load(&source, &mut all).unwrap();
        let mut scope = Scope::default();
        scope.params.insert("n".into(), json!(3));
        scope.params.insert("t".into(), json!(0.5));
        scope.params.insert("list".into(), json!([1, "x"]));
        scope.matrix.insert("model".into(), json!("a/b"));
        let out = substitute(&node, &source, &scope, &mut all);
        let problems = all.into_sorted().into_iter();
        let place = |d: &Diagnostic| source.slice(Span::new(d.span.start, d.span.end())).to_owned();
        (out, problems.map(|d| (d.code, place(&d), d.help)).collect())
    }

    #[test]
    fn a_whole_scalar_keeps_its_type_and_a_mixed_one_is_text() {
        let (out, problems) = run(
            "a: ${{params.n}}\nb: '${{ params.list }}'\nc: \"n=${{ params.n }}, ${{matrix.model}}\"\nd: '{{ keep }} $x ${y}'\ne: ' ${{ params.t }}'\n",
        );
        assert_eq!(problems, []);
        assert_eq!(
            out,
            json!({"a": 3, "b": [1, "x"], "c": "n=3, a/b", "d": "{{ keep }} $x ${y}", "e": " 0.5"})
        );
    }

    #[test]
    fn mistakes_point_at_their_own_expression() {
        let (_, problems) = run(
            "é: '${{ parms.n }} ${{ params.m }}'\nb: \"\\u00e9 ${{ }}\"\nc: x ${{ params.n\nd: ${{ n }}\ne: ${{ params.n + 1 }}\nf: '${{ params.list }}!'\n",
        );
        let seen: Vec<(Code, &str)> = problems.iter().map(|p| (p.0, p.1.as_str())).collect();
        assert_eq!(
            seen,
            [
                (Code::BadExpression, "${{ parms.n }}"),
                (Code::BadExpression, "${{ }}"),
                (Code::BadExpression, "${{"),
                (Code::BadExpression, "${{ n }}"),
                (Code::BadExpression, "${{ params.n + 1 }}"),
                (Code::WrongType, "${{ params.list }}"),
            ]
        );
        assert_eq!(problems[0].2.as_deref(), Some("did you mean `params.n`?"));
        assert_eq!(problems[3].2.as_deref(), Some("write `params.n`"));
    }

    #[test]
    fn an_unknown_name_is_suggested() {
        let (out, problems) = run("a: ${{ matrix.modle }}\n");
        assert_eq!(out, json!({"a": null}));
        assert_eq!(problems[0].0, Code::UnknownParam);
        assert_eq!(problems[0].2.as_deref(), Some("did you mean `model`?"));
    }

    #[test]
    fn block_scalars_have_exact_places_too() {
        let (_, problems) = run("q: |\n  SELECT ${{ params.n }}\n  FROM ${{ params.x }}\n");
        assert_eq!(problems[0].1, "${{ params.x }}");
    }

    #[test]
    fn keys_hold_no_expressions() {
        let source = Source::new("f", "'${{ params.n }}': 1\n");
        let mut all = Diagnostics::new();
        let node = load(&source, &mut all).unwrap();
        assert_eq!(collect_refs(&node, &source, &mut all), []);
        assert_eq!(all.len(), 1);
    }

    #[test]
    fn a_closure_resolves() {
        let source = Source::new("f", "a: ${{ params.n }}\n");
        let mut all = Diagnostics::new();
        let node = load(&source, &mut all).unwrap();
        let twice = |r: &Ref| Some(json!(format!("{}{}", r.name, r.name)));
        assert_eq!(substitute(&node, &source, &twice, &mut all), json!({"a": "nn"}));
    }
}
