//! Reads YAML text to a [`Node`]: the only module that uses the YAML library, its options and its
//! limits.
//!
//! The library checks syntax and limits (depth, nodes and alias expansion all count repetitions by
//! aliases). Duplicate keys and key types are checked here, so that all are reported, with both
//! places. Merge keys (`<<`) are expanded here, so that every value keeps the place where it is
//! written.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_yaml::budget::BudgetBreach;
use serde_yaml::options::{AliasLimits, DuplicateKeyPolicy, NonFiniteFloatPolicy};
use serde_yaml::{Budget, Error, Location, MergeKeyPolicy, Options, Spanned};

use galeras_base::system_limits::{self, ADVICE};

use super::diagnostic::{Diagnostic, Diagnostics, quote};
use super::node::{Node, Value};
use super::reader::describe;
use super::source::{Source, Span};
use super::yaml_mistake;
use crate::code::Code;

/// The largest workflow file, in bytes.
pub const MAX_FILE_BYTES: usize = 4 * 1024 * 1024;
/// The deepest nesting of lists and mappings.
pub const MAX_DEPTH: usize = 64;
/// The maximum number of values in a file, including those that aliases repeat.
pub const MAX_NODES: usize = 250_000;
/// The maximum number of parser events that aliases may repeat.
const MAX_REPEATED: usize = 100_000;
/// Measured: 64 levels need between 2 and 8 MiB in a debug build, far less in a release build.
const PARSER_STACK: usize = 32 * 1024 * 1024;

/// Reads one YAML document. Returns `None`, with a diagnostic, if there is none. With mistakes such
/// as duplicate keys, both a report and a document are returned.
pub fn load(source: &Arc<Source>, diagnostics: &mut Diagnostics) -> Option<Node> {
    let text = source.text();
    let error = |code, message: &str| Diagnostic::error(code, message, source, Span::default());
    if text.len() > MAX_FILE_BYTES {
        let size =
            format!("the file has {} bytes; a workflow may have {MAX_FILE_BYTES}", text.len());
        let help = "keep data in separate files and name them in the workflow";
        diagnostics.push(error(Code::YamlLimit, &size).with_help(help));
        return None;
    }
    match read(source, diagnostics) {
        Ok(node) if node.is_null() => {
            let help = "start with `galeras: 1` and `steps:`, or run `galeras init`";
            let problem = error(Code::EmptyFile, "the file has no workflow in it");
            diagnostics.push(problem.with_help(help));
            None
        }
        Ok(node) => Some(node),
        Err(problem) => {
            diagnostics.push(*problem);
            None
        }
    }
}

/// Parses on a separate thread: the library recurses through serde, and 64 levels of that need more
/// than the 2 MiB of a worker thread in a debug build.
fn read(source: &Arc<Source>, diagnostics: &mut Diagnostics) -> Result<Node, Box<Diagnostic>> {
    let parse = || {
        let raw = serde_yaml::from_str_with_options::<Spanned<Raw>>(source.text(), options())
            .map_err(|error| Box::new(yaml_error(source, &error)))?;
        let mut builder = Builder { source, diagnostics, merging: false };
        Ok(builder.node(raw))
    };
    let failed = |message: &str| {
        Box::new(Diagnostic::error(Code::YamlLimit, message, source, Span::default()))
    };
    std::thread::scope(|scope| {
        let thread =
            std::thread::Builder::new().name("galeras-yaml".to_owned()).stack_size(PARSER_STACK);
        match thread.spawn_scoped(scope, parse) {
            Ok(handle) => handle
                .join()
                .map_err(|_| failed("the file could not be read: its parser did not finish"))?,
            Err(error) => {
                Err(Box::new(failed(&system_limits::no_thread(&error)).with_help(ADVICE)))
            }
        }
    })
}

fn options() -> Options {
    let mut budget = Budget::default();
    budget.max_depth = MAX_DEPTH;
    budget.flow_nesting_limit = MAX_DEPTH;
    budget.max_nodes = MAX_NODES;
    budget.max_total_scalar_bytes = 4 * MAX_FILE_BYTES;
    budget.max_recorded_anchor_bytes = 4 * MAX_FILE_BYTES;
    // One anchor may have many uses; only their expansion is limited.
    budget.enforce_alias_anchor_ratio = false;
    let mut aliases = AliasLimits::default();
    aliases.max_total_replayed_events = MAX_REPEATED;
    aliases.max_replay_stack_depth = MAX_DEPTH;
    let mut options = Options::default();
    options.budget = Some(budget);
    options.alias_limits = aliases;
    // `LastWins` passes both entries to a map visitor.
    options.duplicate_keys = DuplicateKeyPolicy::LastWins;
    options.merge_keys = MergeKeyPolicy::AsOrdinary;
    options.strict_booleans = true;
    options.reject_unsupported_tags = true;
    options.non_finite_float_policy = NonFiniteFloatPolicy::PassThrough;
    options.with_snippet = false;
    options
}

/// A value of the visitor, before its place is computed.
enum Raw {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    String(String),
    Seq(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<Raw>, Spanned<Raw>)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_bool<E>(self, v: bool) -> Result<Raw, E> {
        Ok(Raw::Bool(v))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Raw, E> {
        Ok(Raw::Int(v))
    }

    fn visit_u64<E>(self, v: u64) -> Result<Raw, E> {
        Ok(i64::try_from(v).map_or(Raw::Float(f64::INFINITY), Raw::Int))
    }

    fn visit_f64<E>(self, v: f64) -> Result<Raw, E> {
        Ok(Raw::Float(v))
    }

    fn visit_str<E>(self, v: &str) -> Result<Raw, E> {
        Ok(Raw::String(v.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Raw::Seq(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Raw::Map(entries))
    }
}

/// Turns raw values into nodes and checks what the library does not.
struct Builder<'a> {
    source: &'a Arc<Source>,
    diagnostics: &'a mut Diagnostics,
    /// Inside the value of a merge key: entries keep the place where they are written.
    merging: bool,
}

impl Builder<'_> {
    fn node(&mut self, raw: Spanned<Raw>) -> Node {
        let mut span = match self.merging {
            true => self.place(&raw.defined),
            false => self.place(&raw.referenced),
        };
        // An alias has the text of its definition, but its own place.
        let written = self.source.slice(self.place(&raw.defined)).to_owned();
        let alias = self.source.slice(span).starts_with('*');
        let quoted = written.starts_with(['"', '\'']);
        let value = match raw.value {
            Raw::Null => Value::Null,
            Raw::Bool(b) => Value::Bool(b),
            Raw::Int(i) => Value::Int(i),
            Raw::Float(f) => self.number(span, &written, f),
            Raw::String(s) => {
                if !quoted && !alias {
                    let content = self.source.slice(span).trim_end();
                    span = Span::new(span.start, span.start + content.len());
                }
                Value::String(s)
            }
            Raw::Seq(items) => {
                let items: Vec<Node> = items.into_iter().map(|i| self.node(i)).collect();
                if !alias {
                    span = self.close(span.start, items.last());
                }
                Value::Seq(items)
            }
            Raw::Map(entries) => {
                let entries: Vec<(Node, Node)> =
                    entries.into_iter().map(|(key, value)| self.entry(key, value)).collect();
                if !alias {
                    span = self.close(span.start, entries.last().map(|(_, v)| v));
                }
                Value::Map(self.entries(entries))
            }
        };
        Node { quoted: quoted && matches!(value, Value::String(_)), value, span }
    }

    fn entry(&mut self, key: Spanned<Raw>, value: Spanned<Raw>) -> (Node, Node) {
        let key = self.node(key);
        let merging = self.merging;
        self.merging |= is_merge(&key);
        let value = self.node(value);
        self.merging = merging;
        (key, value)
    }

    fn place(&self, location: &Location) -> Span {
        let start = offset(self.source, location);
        let len = location.span().byte_len().unwrap_or(0);
        Span::new(start, start + usize::try_from(len).unwrap_or(0))
    }

    /// Integers that the library reads as floats (`017`), and numbers outside every type's range.
    fn number(&mut self, span: Span, written: &str, float: f64) -> Value {
        let digits = written.trim_start_matches(['-', '+']);
        let integral = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        if integral && let Ok(i) = written.parse::<i64>() {
            return Value::Int(i);
        }
        if integral || !float.is_finite() {
            let problem = match integral {
                true => "does not fit a 64-bit integer",
                false => "is not a finite number",
            };
            let message = format!("{} {problem}", quote(written));
            let problem = Diagnostic::error(Code::WrongValue, message, self.source, span);
            self.diagnostics.push(problem.with_help("write it in quotes if it is meant as text"));
        }
        Value::Float(float)
    }

    /// The full extent of a collection: the library returns only its first byte.
    fn close(&self, start: usize, last: Option<&Node>) -> Span {
        let text = self.source.text().as_bytes();
        let flow = matches!(text.get(start), Some(b'[' | b'{'));
        let content = last.map_or(start, |n| n.span.end).max(start);
        if !flow {
            return Span::new(start, content);
        }
        let mut at = content.max(start + 1);
        while let Some(&byte) = text.get(at) {
            match byte {
                b']' | b'}' => return Span::new(start, at + 1),
                b' ' | b'\t' | b'\r' | b'\n' | b',' => at += 1,
                b'#' => {
                    let rest = text.get(at..).unwrap_or_default();
                    at += rest.iter().take_while(|&&b| b != b'\n').count();
                }
                _ => break,
            }
        }
        Span::new(start, content.max(start + 1))
    }

    /// Reports keys that are not strings (and removes them) and duplicates, and expands merge keys
    /// (`<<`).
    fn entries(&mut self, entries: Vec<(Node, Node)>) -> Vec<(Node, Node)> {
        let mut first: HashMap<String, Span> = HashMap::new();
        let mut kept = Vec::with_capacity(entries.len());
        let own: HashSet<String> = match entries.iter().any(|(key, _)| is_merge(key)) {
            true => entries.iter().filter_map(|(k, _)| k.as_str().map(str::to_owned)).collect(),
            false => HashSet::new(),
        };
        let mut merged: HashSet<String> = HashSet::new();
        for (key, value) in entries {
            let Some(name) = key.as_str() else {
                let message = format!("a key must be a string, not {}", describe(&key));
                let problem = Diagnostic::error(Code::WrongType, message, self.source, key.span);
                let written = self.source.slice(key.span).trim();
                let is_word = key.is_scalar() || written == "null";
                self.diagnostics.push(match (is_word, written.starts_with('{')) {
                    (true, _) => problem.with_help(format!("write it in quotes: \"{written}\"")),
                    (false, true) => problem.with_help(format!(
                        "a template needs quotes: \"{{{}}}\"",
                        yaml_mistake::short(written)
                    )),
                    (false, false) => problem,
                });
                continue;
            };
            if let Some(&earlier) = first.get(name) {
                let (code, message) =
                    (Code::DuplicateKey, format!("{} is defined twice", quote(name)));
                self.diagnostics.push(
                    Diagnostic::error(code, message, self.source, key.span)
                        .with_label("again here")
                        .with_related(self.source, earlier, "first here")
                        .with_help("rename or remove one of them"),
                );
            } else {
                first.insert(name.to_owned(), key.span);
            }
            if is_merge(&key) {
                // Written entries take precedence, then the first merged ones.
                let new = |key: &Node| {
                    let name = key.as_str().unwrap_or_default();
                    !own.contains(name) && merged.insert(name.to_owned())
                };
                kept.extend(self.merged(value, new));
                continue;
            }
            kept.push((key, value));
        }
        kept
    }

    fn merged(&mut self, value: Node, mut new: impl FnMut(&Node) -> bool) -> Vec<(Node, Node)> {
        let mappings = match value.value {
            Value::Seq(items) if !items.is_empty() => items,
            _ => vec![value],
        };
        let mut kept = Vec::new();
        for mapping in mappings {
            match mapping.value {
                Value::Map(entries) => kept.extend(entries.into_iter().filter(|(key, _)| new(key))),
                _ => {
                    let value = describe(&mapping);
                    let message = format!("`<<` takes over the keys of a mapping, not {value}");
                    let (code, span) = (Code::WrongType, mapping.span);
                    let help = "name a mapping with `&name` where it is written, and write \
                                `<<: *name` here";
                    let problem = Diagnostic::error(code, message, self.source, span);
                    self.diagnostics.push(problem.with_help(help));
                }
            }
        }
        kept
    }
}

/// True for YAML's merge key, which inserts the entries of its value.
fn is_merge(key: &Node) -> bool {
    key.as_str() == Some("<<") && !key.quoted
}

/// The byte offset of a location. Syntax errors have only a character offset.
fn offset(source: &Arc<Source>, location: &Location) -> usize {
    let bytes = location.span().byte_offset();
    match bytes.and_then(|b| usize::try_from(b).ok()) {
        Some(byte) if byte > 0 || location.span().offset() == 0 => byte,
        _ => {
            let chars = usize::try_from(location.span().offset()).unwrap_or(usize::MAX);
            source.byte_of_char(chars)
        }
    }
}

fn yaml_error(source: &Arc<Source>, error: &Error) -> Diagnostic {
    let mut inner = error.without_snippet();
    if let Error::AliasError { error, .. } = inner {
        inner = error.without_snippet();
    }
    let start = inner.location().or_else(|| error.location()).map_or(0, |l| offset(source, &l));
    let (code, message, help) = explain(inner);
    if code == Code::YamlSyntax
        && help.is_none()
        && let Some(found) = yaml_mistake::find(source, start, &message)
    {
        return found;
    }
    let rest = source.text().get(start..).unwrap_or("");
    // A caret under one character; at a line break or the end of the text, between two.
    let width = match rest.chars().next() {
        Some('\n' | '\r') | None => 0,
        Some(c) => c.len_utf8(),
    };
    let mut problem = Diagnostic::error(code, message, source, Span::new(start, start + width));
    problem.help = help.map(str::to_owned);
    problem
}

/// Code, message without the place, and advice for an error of the YAML library.
fn explain(error: &Error) -> (Code, String, Option<&'static str>) {
    let limit = |message: String| (Code::YamlLimit, message, None);
    let depth = format!("lists and mappings are nested more than {MAX_DEPTH} deep");
    let aliases = "aliases in this file expand to too many values";
    match error {
        Error::Budget { breach, .. } => match breach {
            BudgetBreach::Depth { .. } => limit(depth),
            BudgetBreach::Nodes { .. } | BudgetBreach::Events { .. } => limit(format!(
                "the file has more than {MAX_NODES} values, counting what aliases repeat"
            )),
            _ => limit("the file is too large, counting what aliases repeat".to_owned()),
        },
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => limit(aliases.to_owned()),
        Error::RecursiveReferencesRequireWeakTypes { .. } => {
            (Code::YamlSyntax, "an alias refers to the value that contains it".to_owned(), None)
        }
        Error::MultipleDocuments { .. } => (
            Code::YamlSyntax,
            "the file has more than one YAML document".to_owned(),
            Some("one file is one workflow: remove the `---` and the text after it"),
        ),
        Error::UnsupportedTag { tag, .. } => (
            Code::YamlSyntax,
            format!("unknown YAML tag {}", quote(tag)),
            Some("workflows use no tags; write a value that begins with `!` in quotes"),
        ),
        other => {
            let text = other.to_string();
            let line = text.lines().next().unwrap_or("invalid YAML");
            let line = line.rsplit_once(" at line ").map_or(line, |(m, _)| m);
            let line = line.strip_prefix("error: ").unwrap_or(line);
            // The scanner's own message for brackets nested beyond its limit.
            if line.contains("recursion limit") {
                return limit(depth);
            }
            (Code::YamlSyntax, line.to_owned(), None)
        }
    }
}
