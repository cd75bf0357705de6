//! Substitutes the values of expressions in a tree.

use std::sync::Arc;

use super::diagnostic::{Diagnostic, Diagnostics, quote};
use super::expr::{Namespace, Piece, Ref, parse_template};
use super::language::{Insertion, Language, Unfit, kind};
use super::node::{Node, Value};
use super::source::Source;
use crate::code::Code;

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

    /// The value of an expression, or `None` if there is no such name or key.
    fn value(&self, reference: &Ref) -> Option<serde_json::Value> {
        reference.within(self.of(reference.namespace).get(&reference.name)?)
    }
}

/// Replaces every expression in a tree by its value and keeps the places. An expression without a
/// value is reported and becomes null.
pub fn substitute_node(
    node: &Node,
    source: &Arc<Source>,
    scope: &Scope,
    diagnostics: &mut Diagnostics,
) -> Node {
    let value = match &node.value {
        Value::String(_) => {
            return substitute_text(node, None, source, scope, diagnostics);
        }
        Value::Seq(items) => Value::Seq(
            items.iter().map(|item| substitute_node(item, source, scope, diagnostics)).collect(),
        ),
        Value::Map(entries) => {
            let entry = |(key, value): &(Node, Node)| {
                (key.clone(), substitute_node(value, source, scope, diagnostics))
            };
            Value::Map(entries.iter().map(entry).collect())
        }
        _ => return node.clone(),
    };
    Node { value, span: node.span, quoted: node.quoted }
}

/// Replaces the expressions in a text that is code: values enter it as literals and quoted words,
/// never as code. Other nodes are unchanged.
pub fn substitute_code(
    node: &Node,
    language: Language,
    source: &Arc<Source>,
    scope: &Scope,
    diagnostics: &mut Diagnostics,
) -> Node {
    match node.as_str() {
        Some(_) => substitute_text(node, Some(language), source, scope, diagnostics),
        None => node.clone(),
    }
}

fn substitute_text(
    node: &Node,
    language: Option<Language>,
    source: &Arc<Source>,
    scope: &Scope,
    diagnostics: &mut Diagnostics,
) -> Node {
    let null = Node::new(Value::Null, node.span);
    let Some(pieces) = parse_template(node, source, diagnostics) else { return null };
    if let [Piece::Ref(r)] = pieces.as_slice()
        && let Some(value) = scope.value(r)
    {
        match language {
            None => return Node::from_json(&value, node.span),
            // The code would be a single text literal, which is not what was meant.
            Some(language) if value.is_string() => {
                diagnostics.push(whole_code(r, language, source));
                return null;
            }
            Some(_) => {}
        }
    }
    let mut text: Box<dyn Insertion> = match language {
        Some(language) => language.insertion(),
        None => Box::new(String::new()),
    };
    let mut sound = true;
    for piece in &pieces {
        let problem = match piece {
            Piece::Text(part) => {
                text.code(part);
                continue;
            }
            Piece::Ref(r) => match scope.value(r).map(|value| text.value(&value)) {
                Some(Ok(())) => continue,
                Some(Err(unfit)) => not_inserted(r, unfit, language, source),
                None => unknown(r, source, scope),
            },
        };
        diagnostics.push(problem);
        sound = false;
    }
    match sound {
        true => Node { value: Value::String(text.text()), span: node.span, quoted: node.quoted },
        false => null,
    }
}

fn whole_code(r: &Ref, language: Language, source: &Arc<Source>) -> Diagnostic {
    let (what, help) = match language {
        Language::Sql => ("SQL", "write the SQL here, and give the values in it by params"),
        Language::Shell => ("command", "write the command here, and give its arguments by params"),
    };
    let message = format!("{} is a text and cannot be the whole {what}", quote(&r.to_string()));
    Diagnostic::error(Code::UnsafeSubstitution, message, source, r.span).with_help(help)
}

fn not_inserted(
    r: &Ref,
    unfit: Unfit,
    language: Option<Language>,
    source: &Arc<Source>,
) -> Diagnostic {
    let name = quote(&r.to_string());
    let (code, message, help) = match unfit {
        Unfit::Type(kind) => (
            Code::WrongType,
            format!("{name} is {kind} and cannot be part of a text"),
            "let the expression be the whole value, or use a string or a number",
        ),
        Unfit::Place(place) => (
            Code::UnsafeSubstitution,
            format!(
                "the value of {name} is not allowed in {place}, where quotes cannot keep it from \
                 being read as code"
            ),
            match language {
                Some(Language::Shell) => {
                    "give it to a variable first: `x=${{ … }}` on a separate line"
                }
                _ => "write it alone, or in '…'",
            },
        ),
    };
    Diagnostic::error(code, message, source, r.span).with_help(help)
}

fn unknown(r: &Ref, source: &Arc<Source>, scope: &Scope) -> Diagnostic {
    if let Some(problem) = unknown_key(r, source, scope) {
        return problem;
    }
    let what = match r.namespace {
        Namespace::Params => "parameter",
        Namespace::Matrix => "matrix key",
    };
    let message = format!("there is no {what} {}", quote(&r.name));
    Diagnostic::error(Code::UnknownParam, message, source, r.span)
        .with_suggestion(&r.name, scope.of(r.namespace).keys().map(String::as_str))
}

/// The diagnostic for the first key that leads nowhere; `None` if it is the name.
fn unknown_key(r: &Ref, source: &Arc<Source>, scope: &Scope) -> Option<Diagnostic> {
    let at = |count: usize| Ref { keys: r.keys[..count].to_vec(), ..r.clone() };
    let known = (0..r.keys.len()).rev().map(at).find(|r| scope.value(r).is_some())?;
    let key = r.keys.get(known.keys.len())?;
    let named = quote(&known.to_string());
    let error = |message| Diagnostic::error(Code::UnknownParam, message, source, r.span);
    let value = scope.value(&known)?;
    Some(match value.as_object() {
        Some(keys) => error(format!("{named} has no key {}", quote(key)))
            .with_suggestion(key, keys.keys().map(String::as_str)),
        None => error(format!("{named} has no keys: it is {}", kind(&value)))
            .with_help("only a value within a mapping is named by its key"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::collect_refs;
    use crate::load::load;
    use crate::source::Span;
    use serde_json::json;

    /// Code, place, message and help.
    type Found = Vec<(Code, String, String, String)>;

    fn run(text: &str) -> (serde_json::Value, Found) {
        let source = Source::new("f", text);
        let mut all = Diagnostics::new();
        let node = load(&source, &mut all).unwrap();
        let params = json!({
            "n": 3, "t": 0.5, "list": [1, "x"], "m": {"deep": {"n": [1], "near": 1}, "t": 0.5},
        });
        let scope = Scope {
            params: params.as_object().unwrap().clone(),
            matrix: [("model".to_owned(), json!("a/b"))].into_iter().collect(),
        };
        let out = substitute_node(&node, &source, &scope, &mut all).to_json();
        let problems = all.into_sorted().into_iter();
        let place = |d: &Diagnostic| source.slice(Span::new(d.span.start, d.span.end())).to_owned();
        let found = |d: Diagnostic| (d.code, place(&d), d.message, d.help.unwrap_or_default());
        (out, problems.map(found).collect())
    }

    #[test]
    fn a_whole_scalar_keeps_its_type_and_a_mixed_one_is_text() {
        for (text, expected) in [
            ("${{params.n}}", json!(3)),
            ("'${{ params.list }}'", json!([1, "x"])),
            ("\"n=${{ params.n }}, ${{matrix.model}}\"", json!("n=3, a/b")),
            ("'{{ keep }} $x ${y}'", json!("{{ keep }} $x ${y}")),
            ("' ${{ params.t }}'", json!(" 0.5")),
            ("${{ params.m.deep.n }}", json!([1])),
            ("'x${{ params.m.t }}'", json!("x0.5")),
        ] {
            assert_eq!(run(&format!("a: {text}\n")), (json!({"a": expected}), vec![]), "{text}");
        }
    }

    #[test]
    fn mistakes_point_at_their_own_expression() {
        let (out, problems) = run(
            "é: '${{ parms.n }} ${{ params.m }}'\nb: \"\\u00e9 ${{ }}\"\nc: x ${{ params.n\nd: ${{ n }}\ne: ${{ params.n + 1 }}\nf: '${{ params.list }}!'\ng: |\n  SELECT ${{ params.n }}\n  FROM ${{ params.x }}\nh: ${{ matrix.modle }}\n",
        );
        assert_eq!(out["h"], json!(null));
        let found = |(code, place, _, help): &(Code, String, String, String)| {
            let help = help.split(':').next().unwrap_or_default();
            format!("{code} {place} ({help})")
        };
        let found: Vec<String> = problems.iter().map(found).collect();
        insta::assert_snapshot!(found.join("\n"), @r"
        bad-expression ${{ parms.n }} (did you mean `params.n`?)
        bad-expression ${{ }} (only `params.name` and `matrix.name` are allowed here)
        bad-expression ${{ (write `${{ params.name }}`)
        bad-expression ${{ n }} (write `params.n`)
        bad-expression ${{ params.n + 1 }} (expressions have no functions, operators or filters)
        wrong-type ${{ params.list }} (let the expression be the whole value, or use a string or a number)
        unknown-param ${{ params.x }} (known here)
        unknown-param ${{ matrix.modle }} (did you mean `model`?)
        ");
    }

    #[test]
    fn a_key_that_leads_nowhere_is_named() {
        let only = "only a value within a mapping is named by its key";
        for (expression, message, help) in [
            ("params.m.deep.naer", "`params.m.deep` has no key `naer`", "did you mean `near`?"),
            ("params.m.dep.near", "`params.m` has no key `dep`", "did you mean `deep`?"),
            ("params.m.deep.near.x", "`params.m.deep.near` has no keys: it is a number", only),
            ("params.no.x", "there is no parameter `no`", "did you mean `n`?"),
        ] {
            let (_, found) = run(&format!("a: ${{{{ {expression} }}}}\n"));
            let (code, _, found_message, found_help) = &found[0];
            assert_eq!(*code, Code::UnknownParam, "{expression}");
            assert_eq!((found_message.as_str(), found_help.as_str()), (message, help));
        }
    }

    #[test]
    fn keys_hold_no_expressions() {
        let source = Source::new("f", "'${{ params.n }}': 1\n");
        let mut all = Diagnostics::new();
        let node = load(&source, &mut all).unwrap();
        assert_eq!(collect_refs(&node, &source, &mut all), []);
        assert_eq!(all.len(), 1);
    }
}
