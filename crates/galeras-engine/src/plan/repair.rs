//! Repairs arguments that break the operator's JSON Schema, so that the rest is checked as if the
//! user had followed the help.
//!
//! A misspelt name becomes the suggested one. A number that is wrong or missing could have any
//! value: it differs in each variant, and results that all variants share do not depend on it.
//! Anything else is left out.

use std::sync::Arc;

use serde_json::Value;

use super::args::{self, join};
use super::cell::plain;
use galeras_workflow::{Node, Source, Span, Value as NodeValue, did_you_mean, has_expression};

pub(super) const VARIANTS: usize = 3;

/// Arguments that fit their schema.
pub(super) struct Repaired {
    /// The arguments, with different values for the unknown parts.
    pub(super) variants: Vec<Node>,
    /// The paths of changes; mistakes there have been reported.
    pub(super) changed: Vec<String>,
    /// Something that might have changed the columns was left out.
    pub(super) lossy: bool,
}

/// Repairs the arguments; `None` if that is impossible. `written` are the arguments before their
/// expressions were replaced; an expression without a value is null now.
pub(super) fn repaired(
    node: Option<&Node>,
    written: Option<&Node>,
    schema: &Value,
    owner: &str,
    (source, place): (&Arc<Source>, Span),
) -> Option<Repaired> {
    let empty = Node::new(NodeValue::Map(Vec::new()), place);
    let node = node.unwrap_or(&empty);
    let mut paths = Vec::new();
    if let Some(written) = written {
        without_value(node, written, "", &mut paths);
    }
    let unresolved = &paths[..];
    let (mut changed, mut lossy) = (Vec::new(), false);
    let mut variants: Vec<Node> = Vec::new();
    for variant in 0..VARIANTS as i64 {
        let mut mender =
            Mender { variant, owner, source, unresolved, changed: Vec::new(), lossy: false };
        let mended = mender.mend(node, schema, "")?;
        (changed, lossy) = (mender.changed, mender.lossy);
        if !variants.contains(&mended) {
            variants.push(mended);
        }
    }
    Some(Repaired { variants, changed, lossy })
}

/// Collects the paths of nulls whose expression has no value.
fn without_value(node: &Node, written: &Node, path: &str, out: &mut Vec<String>) {
    if node.is_null() && written.as_str().is_some_and(has_expression) {
        out.push(path.to_string());
    }
    match (&node.value, &written.value) {
        (NodeValue::Seq(items), NodeValue::Seq(before)) => {
            for (at, (item, before)) in items.iter().zip(before).enumerate() {
                without_value(item, before, &format!("{path}[{at}]"), out);
            }
        }
        (NodeValue::Map(entries), NodeValue::Map(before)) => {
            for ((key, value), (_, before)) in entries.iter().zip(before) {
                without_value(value, before, &join(path, key.as_str().unwrap_or("")), out);
            }
        }
        _ => {}
    }
}

struct Mender<'a> {
    variant: i64,
    owner: &'a str,
    source: &'a Arc<Source>,
    unresolved: &'a [String],
    changed: Vec<String>,
    lossy: bool,
}

impl Mender<'_> {
    fn fits(&self, node: &Node, schema: &Value) -> bool {
        args::fits(node, schema, self.owner, self.source)
    }

    /// The value repaired to fit the schema, if possible.
    fn mend(&mut self, node: &Node, schema: &Value, path: &str) -> Option<Node> {
        if node.is_null() && self.unresolved.iter().any(|other| other == path) {
            self.changed.push(path.to_string());
            self.lossy = true;
            return self.made(schema, node.span);
        }
        let below = self.unresolved.iter().any(|other| other.starts_with(path));
        if !below && self.fits(node, schema) {
            return Some(node.clone());
        }
        if let Some(allowed) = args::constants(schema) {
            self.changed.push(path.to_string());
            return self.choose(node, &allowed);
        }
        for word in ["anyOf", "oneOf"] {
            if let Some(choices) = schema.get(word).and_then(Value::as_array) {
                return choices.iter().find_map(|choice| {
                    let before = (self.changed.len(), self.lossy);
                    let mended = self.mend(node, choice, path).filter(|n| !n.is_null());
                    if mended.is_none() {
                        self.changed.truncate(before.0);
                        self.lossy = before.1;
                    }
                    mended
                });
            }
        }
        match (&node.value, schema.get("items"), schema.get("properties")) {
            (NodeValue::Map(entries), _, properties) if has_type(schema, "object") => {
                self.mapping(node, entries, schema, properties, path)
            }
            (NodeValue::Seq(items), Some(of), _) if has_type(schema, "array") => {
                self.list(node, items, of, path)
            }
            // A list of one may have been meant.
            (_, Some(of), _) if has_type(schema, "array") && self.fits(node, of) => {
                self.changed.push(path.to_string());
                Some(Node { value: NodeValue::Seq(vec![node.clone()]), ..node.clone() })
            }
            _ => {
                self.changed.push(path.to_string());
                self.made(schema, node.span)
            }
        }
    }

    fn choose(&self, node: &Node, allowed: &[&Value]) -> Option<Node> {
        let given = plain(&node.to_json());
        let names: Vec<String> = allowed.iter().map(|v| plain(v)).collect();
        let near = did_you_mean(&given, names.iter().map(String::as_str));
        let near = near.and_then(|near| names.iter().position(|name| name == near));
        let any = usize::try_from(self.variant).unwrap_or(0) % allowed.len().max(1);
        allowed.get(near.unwrap_or(any)).map(|value| Node::from_json(value, node.span))
    }

    /// A number for a missing or wrong value, different in each variant.
    fn made(&self, schema: &Value, span: Span) -> Option<Node> {
        let choices = ["anyOf", "oneOf"].iter().filter_map(|word| schema.get(word));
        for choice in choices.filter_map(Value::as_array).flatten() {
            if let Some(made) = self.made(choice, span) {
                return Some(made);
            }
        }
        let bound = |word: &str| schema.get(word).and_then(Value::as_f64);
        let value = if has_type(schema, "integer") {
            NodeValue::Int(bound("minimum").map_or(1, |least| least as i64) + self.variant)
        } else if has_type(schema, "number") {
            let least = bound("minimum").unwrap_or(0.0);
            let most = bound("maximum").unwrap_or(least + 1.0);
            NodeValue::Float(least + (most - least) * (0.5 + 0.1 * self.variant as f64))
        } else if has_type(schema, "boolean") {
            NodeValue::Bool(self.variant % 2 == 0)
        } else {
            return None;
        };
        Some(Node::new(value, span))
    }

    fn list(&mut self, node: &Node, items: &[Node], of: &Value, path: &str) -> Option<Node> {
        let mut mended = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            let path = format!("{path}[{at}]");
            match self.mend(item, of, &path) {
                Some(item) => mended.push(item),
                None => {
                    self.changed.push(path);
                    self.lossy = true;
                }
            }
        }
        Some(Node { value: NodeValue::Seq(mended), ..node.clone() })
    }

    fn mapping(
        &mut self,
        node: &Node,
        entries: &[(Node, Node)],
        schema: &Value,
        properties: Option<&Value>,
        path: &str,
    ) -> Option<Node> {
        let none = serde_json::Map::new();
        let properties = properties.and_then(Value::as_object).unwrap_or(&none);
        let rest = schema.get("additionalProperties");
        let join = |name: &str| join(path, name);
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let mut mended: Vec<(Node, Node)> = Vec::new();
        for (key, value) in entries {
            let Some(name) = key.as_str() else { continue };
            let own = properties.get(name).map(|of| (name, of));
            let meant = || {
                let free = properties.keys().map(String::as_str);
                let free = free.filter(|known| node.get(known).is_none());
                did_you_mean(name, free).and_then(|near| Some((near, properties.get(near)?)))
            };
            let of = match (own, rest) {
                (Some(own), _) => Some(own),
                (None, Some(of @ Value::Object(_))) => Some((name, of)),
                (None, _) => {
                    self.changed.push(join(name));
                    meant()
                }
            };
            let Some((as_name, of)) = of else { continue };
            match self.mend(value, of, &join(name)) {
                Some(value) => {
                    let key = Node { value: NodeValue::String(as_name.to_string()), ..key.clone() };
                    mended.push((key, value));
                }
                None => {
                    self.changed.push(join(name));
                    self.lossy = true;
                }
            }
        }
        for name in required {
            let given = mended.iter().any(|(key, _)| key.as_str() == Some(name));
            if !given {
                self.changed.push(join(name));
                let value = self.made(properties.get(name)?, node.span)?;
                mended.push((Node::new(NodeValue::String(name.to_string()), node.span), value));
            }
        }
        Some(Node { value: NodeValue::Map(mended), ..node.clone() })
    }
}

fn has_type(schema: &Value, name: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(one)) => one == name,
        Some(Value::Array(many)) => many.iter().any(|one| one.as_str() == Some(name)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use galeras_workflow::{Diagnostics, load};

    fn mend(yaml: &str) -> Option<(Vec<Value>, Vec<String>, bool)> {
        let schema = json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "column": {"type": "string"},
                "seed": {"type": "integer", "minimum": 0},
                "share": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
                "at": {"oneOf": [{"const": "line"}, {"const": "token"}]},
                "key": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
            },
            "required": ["column", "seed"],
        });
        let source = Source::new("f", yaml);
        let node = load(&source, &mut Diagnostics::new()).unwrap();
        let out = repaired(Some(&node), None, &schema, "op", (&source, Span::default()))?;
        let variants = out.variants.iter().map(Node::to_json).collect();
        Some((variants, out.changed, out.lossy))
    }

    #[test]
    fn misspelt_names_and_words_become_what_is_suggested() {
        let (variants, changed, lossy) = mend("{ colunm: code, seed: 1, at: lines }").unwrap();
        assert_eq!(variants, [json!({"column": "code", "seed": 1, "at": "line"})]);
        assert_eq!((changed, lossy), (vec!["colunm".to_string(), "at".to_string()], false));
    }

    #[test]
    fn numbers_that_are_not_known_vary() {
        let (variants, changed, lossy) = mend("{ column: code, share: half }").unwrap();
        assert_eq!(variants.len(), VARIANTS);
        assert_ne!(variants[0]["seed"], variants[1]["seed"]);
        assert_ne!(variants[0]["share"], variants[1]["share"]);
        assert_eq!((changed, lossy), (vec!["share".to_string(), "seed".to_string()], false));
    }

    #[test]
    fn a_list_of_one_is_made_and_what_cannot_be_mended_is_left_out() {
        let (variants, _, lossy) = mend("{ column: code, seed: 1, key: path }").unwrap();
        assert_eq!((&variants[0]["key"], lossy), (&json!(["path"]), false));
        let (variants, changed, lossy) = mend("{ column: code, seed: 1, key: { a: b } }").unwrap();
        assert_eq!((variants[0].get("key"), lossy), (None, true));
        assert!(changed.contains(&"key".to_string()));
        assert!(mend("{ seed: 1 }").is_none());
    }
}
