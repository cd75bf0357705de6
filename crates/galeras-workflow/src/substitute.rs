//! Substitutes the values of expressions in a tree.

use std::sync::Arc;

use super::diagnostic::{Diagnostic, Diagnostics, quote};
use super::expr::{Namespace, Piece, Ref, Template, parse_template};
use super::language::{CodeText, Language};
use super::node::{Node, Value};
use super::source::Source;
use super::unfit::Unfit;
use crate::code::Code;

/// Resolves expressions. Implemented by every `Fn(&Ref) -> Option<Value>`.
pub trait Resolve {
    /// The value, or `None` if there is no such name.
    fn value(&self, reference: &Ref) -> Option<serde_json::Value>;

    /// The known names, for "did you mean".
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
        reference.within(self.of(reference.namespace).get(&reference.name)?)
    }

    fn names(&self, namespace: Namespace) -> Vec<String> {
        self.of(namespace).keys().cloned().collect()
    }
}

/// Replaces every expression in a tree by its value and keeps the places. An expression without a
/// value is reported and becomes null.
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

/// As [`substitute_node`], without the places.
pub fn substitute(
    node: &Node,
    source: &Arc<Source>,
    resolver: &dyn Resolve,
    diagnostics: &mut Diagnostics,
) -> serde_json::Value {
    substitute_node(node, source, resolver, diagnostics).to_json()
}

/// Replaces the expressions in a text that is code: values enter it as literals and quoted words,
/// never as code. Other nodes are unchanged.
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
            // The code would be a single text literal, which is not what was meant.
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
    let message = format!("{} is a text and cannot be the whole {what}", quote(&r.to_string()));
    Diagnostic::error(Code::UnsafeSubstitution, message, source, r.span).with_help(help)
}

fn not_quotable(r: &Ref, place: &str, language: Language, source: &Arc<Source>) -> Diagnostic {
    let name = r.to_string();
    let message = format!(
        "the value of {} is not allowed in {place}, where quotes cannot keep it from being read as code",
        quote(&name)
    );
    let help = match language {
        Language::Sql => "write it alone, or in '…'",
        Language::Shell => "give it to a variable first: `x=${{ … }}` on a separate line",
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
    if let Some(problem) = unknown_key(r, source, resolver) {
        return problem;
    }
    let what = match r.namespace {
        Namespace::Params => "parameter",
        Namespace::Matrix => "matrix key",
    };
    let known = resolver.names(r.namespace);
    let message = format!("there is no {what} {}", quote(&r.name));
    Diagnostic::error(Code::UnknownParam, message, source, r.span)
        .with_suggestion(&r.name, known.iter().map(String::as_str))
}

/// The diagnostic for the first key that leads nowhere; `None` if it is the name.
fn unknown_key(r: &Ref, source: &Arc<Source>, resolver: &dyn Resolve) -> Option<Diagnostic> {
    let at = |count: usize| Ref { keys: r.keys[..count].to_vec(), ..r.clone() };
    let known = (0..r.keys.len()).rev().map(at).find(|r| resolver.value(r).is_some())?;
    let key = r.keys.get(known.keys.len())?;
    let named = quote(&known.to_string());
    let error = |message| Diagnostic::error(Code::UnknownParam, message, source, r.span);
    let value = resolver.value(&known)?;
    Some(match value.as_object() {
        Some(keys) => error(format!("{named} has no key {}", quote(key)))
            .with_suggestion(key, keys.keys().map(String::as_str)),
        None => error(format!("{named} has no keys: it is {}", kind(&value)))
            .with_help("only a value within a mapping is named by its key"),
    })
}

/// The kind of a value, in a message.
fn kind(value: &serde_json::Value) -> &'static str {
    use serde_json::Value as Json;
    match value {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "a list",
        Json::Object(_) => "a mapping",
    }
}

fn not_text(r: &Ref, kind: &str, source: &Arc<Source>) -> Diagnostic {
    let name = r.to_string();
    Diagnostic::error(
        Code::WrongType,
        format!("{} is {kind} and cannot be part of a text", quote(&name)),
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
        Json::Null | Json::Array(_) | Json::Object(_) => Err(kind(value)),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::expr::collect_refs;
    use crate::load::load;
    use crate::source::Span;
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
    fn a_key_of_a_mapping_is_a_value_too() {
        let source = Source::new("f", "a: ${{ params.m.deep.n }}\nb: 'x${{ params.m.t }}'\n");
        let mut all = Diagnostics::new();
        let node = load(&source, &mut all).unwrap();
        let mut scope = Scope::default();
        scope.params.insert("m".into(), json!({"deep": {"n": [1]}, "t": 0.5}));
        assert_eq!(substitute(&node, &source, &scope, &mut all), json!({"a": [1], "b": "x0.5"}));
        assert!(all.is_empty());
    }

    #[test]
    fn a_key_that_leads_nowhere_is_named() {
        let of = |expression: &str| {
            let source = Source::new("f", format!("a: ${{{{ {expression} }}}}\n"));
            let mut all = Diagnostics::new();
            let node = load(&source, &mut all).unwrap();
            let mut scope = Scope::default();
            scope.params.insert("m".into(), json!({"deep": {"near": 1}}));
            substitute(&node, &source, &scope, &mut all);
            let found = all.into_sorted().remove(0);
            (found.code, found.message, found.help.unwrap_or_default())
        };
        let (code, message, help) = of("params.m.deep.naer");
        assert_eq!(code, Code::UnknownParam);
        assert_eq!(message, "`params.m.deep` has no key `naer`");
        assert_eq!(help, "did you mean `near`?");
        assert_eq!(of("params.m.dep.near").1, "`params.m` has no key `dep`");
        assert_eq!(
            of("params.m.deep.near.x").1,
            "`params.m.deep.near` has no keys: it is a number"
        );
        assert_eq!(of("params.n.x").1, "there is no parameter `n`");
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
