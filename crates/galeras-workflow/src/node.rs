//! [`Node`]: a YAML value with the bytes of every key and value.
//!
//! The loader limits the depth, so recursion over a node is safe.

use std::ops::Range;

use super::scalar_text::part_of;
use super::source::Span;

/// A YAML value with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Its bytes, with quotes and brackets. Of a block scalar: the content from its first to its
    /// last non-blank character. Of a value from an alias: the alias. Of an absent value (`key:`):
    /// the empty place after the colon.
    pub span: Span,
    /// The string was written in quotes.
    pub quoted: bool,
}

/// The kinds of values in a workflow.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `null`, `~` or nothing.
    Null,
    /// `true` or `false`; `yes`, `no`, `on` and `off` are strings.
    Bool(bool),
    /// A 64-bit integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// Any other scalar.
    String(String),
    /// A list.
    Seq(Vec<Node>),
    /// A mapping in the order of the file. After a `duplicate-key` diagnostic both entries
    /// are here.
    Map(Vec<(Node, Node)>),
}

impl Node {
    /// A node without quotes.
    pub fn new(value: Value, span: Span) -> Self {
        Self { value, span, quoted: false }
    }

    /// The type's name in messages: `string`, `list`, `mapping` …
    pub fn type_name(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "boolean",
            Value::Int(_) => "integer",
            Value::Float(_) => "number",
            Value::String(_) => "string",
            Value::Seq(_) => "list",
            Value::Map(_) => "mapping",
        }
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        if let Value::String(s) = &self.value { Some(s) } else { None }
    }

    /// The value of a boolean.
    pub fn as_bool(&self) -> Option<bool> {
        if let Value::Bool(b) = self.value { Some(b) } else { None }
    }

    /// The value of an integer.
    pub fn as_i64(&self) -> Option<i64> {
        if let Value::Int(i) = self.value { Some(i) } else { None }
    }

    /// The value of a number; an integer counts as one.
    pub fn as_f64(&self) -> Option<f64> {
        match self.value {
            Value::Int(i) => Some(i as f64),
            Value::Float(f) => Some(f),
            _ => None,
        }
    }

    /// The entries of a list.
    pub fn as_seq(&self) -> Option<&[Node]> {
        if let Value::Seq(items) = &self.value { Some(items) } else { None }
    }

    /// The entries of a mapping.
    pub fn as_map(&self) -> Option<&[(Node, Node)]> {
        if let Value::Map(entries) = &self.value { Some(entries) } else { None }
    }

    /// True for a boolean, a number or a string.
    pub(super) fn is_scalar(&self) -> bool {
        !matches!(self.value, Value::Seq(_) | Value::Map(_) | Value::Null)
    }

    /// The place of the first key of a mapping, or of the whole value.
    pub(super) fn head(&self) -> Span {
        self.as_map().and_then(<[_]>::first).map_or(self.span, |(key, _)| key.span)
    }

    /// True if the value is absent or null.
    pub fn is_null(&self) -> bool {
        self.value == Value::Null
    }

    /// The key and value of an entry of a mapping; the first one for a duplicate key.
    pub fn entry(&self, key: &str) -> Option<(&Node, &Node)> {
        let entries = self.as_map()?;
        let entry = entries.iter().find(|(k, _)| k.as_str() == Some(key))?;
        Some((&entry.0, &entry.1))
    }

    /// The value of an entry of a mapping.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|(_, value)| value)
    }

    /// True if every number in it is finite; the loader has reported the others.
    pub fn is_finite(&self) -> bool {
        match &self.value {
            Value::Float(f) => f.is_finite(),
            Value::Seq(items) => items.iter().all(Self::is_finite),
            Value::Map(entries) => entries.iter().all(|(_, value)| value.is_finite()),
            _ => true,
        }
    }

    /// The value without its places. A number that JSON cannot represent becomes `null` (the loader
    /// has reported it), and the first value of a duplicate key is used.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match &self.value {
            Value::Null => Json::Null,
            Value::Bool(b) => Json::Bool(*b),
            Value::Int(i) => Json::from(*i),
            Value::Float(f) => Json::from(*f),
            Value::String(s) => Json::from(s.as_str()),
            Value::Seq(items) => items.iter().map(Node::to_json).collect(),
            Value::Map(entries) => {
                let mut map = serde_json::Map::new();
                for (key, value) in entries {
                    if let Some(key) = key.as_str() {
                        map.entry(key).or_insert_with(|| value.to_json());
                    }
                }
                Json::Object(map)
            }
        }
    }

    /// Builds a node from a value without text; every part of it gets `span`.
    pub fn from_json(json: &serde_json::Value, span: Span) -> Self {
        use serde_json::Value as Json;
        let value = match json {
            Json::Null => Value::Null,
            Json::Bool(b) => Value::Bool(*b),
            Json::Number(n) => match n.as_i64() {
                Some(i) => Value::Int(i),
                None => Value::Float(n.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(s) => Value::String(s.clone()),
            Json::Array(items) => {
                Value::Seq(items.iter().map(|i| Self::from_json(i, span)).collect())
            }
            Json::Object(map) => {
                let key = |name: &String| Self::new(Value::String(name.clone()), span);
                let entries = map.iter().map(|(name, v)| (key(name), Self::from_json(v, span)));
                Value::Map(entries.collect())
            }
        };
        Self::new(value, span)
    }

    /// The node at a path such as `rules[2].check`, in the form of serde's path trackers. The empty
    /// path and `.` are the node itself. Keys may contain dots.
    pub fn at_pointer(&self, path: &str) -> Option<&Node> {
        let (node, rest) = self.walk(path);
        rest.is_empty().then_some(node)
    }

    /// The deepest existing node on the way to `path`: for a message about something missing.
    pub fn nearest(&self, path: &str) -> &Node {
        self.walk(path).0
    }

    /// Follows a path as far as it exists: the node, and the rest of the path.
    fn walk<'a, 'p>(&'a self, path: &'p str) -> (&'a Node, &'p str) {
        let (mut node, mut rest) = (self, if path == "." { "" } else { path });
        while !rest.is_empty()
            && let Some((at, after)) = node.entry_at(rest)
        {
            node = match &node.value {
                Value::Seq(items) => &items[at],
                Value::Map(entries) => &entries[at].1,
                _ => break,
            };
            rest = after;
        }
        (node, rest)
    }

    /// The position of the first entry on `path`, and the rest of the path.
    fn entry_at<'p>(&self, path: &'p str) -> Option<(usize, &'p str)> {
        match &self.value {
            Value::Seq(items) => {
                let inner = path.strip_prefix('[')?;
                let (index, after) = inner.split_once(']')?;
                let at = index.parse::<usize>().ok()?;
                (at < items.len()).then_some((at, after))
            }
            Value::Map(entries) => {
                let path = path.strip_prefix('.').unwrap_or(path);
                let mut best: Option<(usize, &str)> = None;
                for (at, (key, _)) in entries.iter().enumerate() {
                    let Some(after) = key.as_str().and_then(|k| path.strip_prefix(k)) else {
                        continue;
                    };
                    let ends = after.is_empty() || after.starts_with(['.', '[']);
                    // The longest key wins: it leaves the shortest rest.
                    if ends && best.is_none_or(|(_, b)| after.len() < b.len()) {
                        best = Some((at, after));
                    }
                }
                best
            }
            _ => None,
        }
    }

    /// The place of `value[start..end]` for a string node, or of the whole scalar if it is unknown.
    pub(super) fn part_span(&self, text: &str, start: usize, end: usize) -> Span {
        self.part(text, start..end).unwrap_or(self.span)
    }

    /// The place of `value[range]` for a string node; `None` if it is unknown.
    pub(super) fn part(&self, text: &str, range: Range<usize>) -> Option<Span> {
        part_of(text, self.span, self.as_str()?, self.quoted, range)
    }

    /// The same tree with another node at `path`; `None` if there is none, or `change` returns
    /// none.
    pub fn changed(&self, path: &str, change: &dyn Fn(&Node) -> Option<Node>) -> Option<Node> {
        if path.is_empty() {
            return change(self);
        }
        let (at, after) = self.entry_at(path)?;
        let mut copy = self.clone();
        match &mut copy.value {
            Value::Seq(items) => items[at] = items[at].changed(after, change)?,
            Value::Map(entries) => entries[at].1 = entries[at].1.changed(after, change)?,
            _ => return None,
        }
        Some(copy)
    }

    /// The same tree without the innermost entry on the way to `path`: an item of a list, or a key
    /// with its value. `None` if there is no such entry.
    pub fn without(&self, path: &str) -> Option<Node> {
        let (at, after) = self.entry_at(path)?;
        let mut copy = self.clone();
        match &mut copy.value {
            Value::Seq(items) => match items[at].without(after) {
                Some(inner) => items[at] = inner,
                None => drop(items.remove(at)),
            },
            Value::Map(entries) => match entries[at].1.without(after) {
                Some(inner) => entries[at].1 = inner,
                None => drop(entries.remove(at)),
            },
            _ => return None,
        }
        Some(copy)
    }
}

#[cfg(test)]
mod tests {
    use crate::source::Source;
    use crate::{Diagnostics, load};

    #[test]
    fn paths_lead_to_nodes_and_keys() {
        let text = "rules:\n  - {check: a}\n  - {check: b, 'x.y': [1]}\n";
        let source = Source::new("f", text);
        let node = load(&source, &mut Diagnostics::new()).unwrap();
        assert_eq!(node.at_pointer("rules[1].check").unwrap().as_str(), Some("b"));
        assert_eq!(node.at_pointer("rules[1].x.y[0]").unwrap().as_i64(), Some(1));
        assert_eq!(node.at_pointer(".").unwrap(), &node);
        assert_eq!(node.at_pointer("").unwrap(), &node);
        assert!(node.at_pointer("rules[2]").is_none());
        assert!(node.at_pointer("rules[x]").is_none());
        assert_eq!(node.nearest("rules[0].gone").span, node.at_pointer("rules[0]").unwrap().span);
    }

    #[test]
    fn json_keeps_order_and_types() {
        let source = Source::new("f", "z: [1, 2.5, true, ~, no]\na: {b: 'x'}\n");
        let node = load(&source, &mut Diagnostics::new()).unwrap();
        let json = node.to_json();
        assert_eq!(json.to_string(), r#"{"z":[1,2.5,true,null,"no"],"a":{"b":"x"}}"#);
        let back = super::Node::from_json(&json, node.span);
        assert_eq!(back.to_json(), json);
    }
}
