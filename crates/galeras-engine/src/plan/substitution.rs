//! Substitutes expressions in arguments. The operator's JSON Schema marks arguments that are code,
//! and their language.

use std::sync::Arc;

use serde_json::Value;

use galeras_operator::ARGUMENT_LANGUAGE;
use galeras_workflow::{
    Diagnostics, Language, Node, Scope, Source, Value as NodeValue, substitute_code,
    substitute_node,
};

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
