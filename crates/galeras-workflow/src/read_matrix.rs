//! Reads `matrix`: the axes whose points, in all combinations, are the cells of a step.
//!
//! An axis is a key with a list of scalars or of mappings. Or the whole matrix is one axis: a list
//! of mappings whose values vary together. A matrix is read twice: with the file, when values with
//! expressions are skipped, and again when the expressions have values.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::diagnostic::{Diagnostics, quote};
use super::expr::has_expression;
use super::node::{Node, Value};
use super::reader::WorkflowReader;
use super::source::{Source, Span};
use super::spec::Text;
use super::suggest::did_you_mean;
use crate::code::Code;

const NAME: &str = "name";

/// One of the lists that a matrix combines.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The names that its points set, `${{ matrix.NAME }}`.
    pub names: Vec<Text>,
    /// Its points in the order of the list.
    pub points: Vec<AxisPoint>,
}

/// A cell's part of an axis.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct AxisPoint {
    /// The key in the name of the cell.
    pub key: String,
    /// The scalar in the name of the cell.
    pub value: Json,
    /// Other values of the point, by name. A value under the name of the key is the mapping that an
    /// expression gets instead of the scalar that names it.
    pub values: Vec<(String, Json)>,
}

/// The axes of a `matrix` whose expressions have values; reports every mistake.
pub fn matrix_axes(node: &Node, source: &Arc<Source>, diagnostics: &mut Diagnostics) -> Vec<Axis> {
    WorkflowReader { source, diagnostics }.axes(node)
}

struct ReadMappings {
    names: Vec<Text>,
    /// The key whose values name the mappings.
    label: String,
    /// The place of each, the scalar that names it, and its entries.
    mappings: Vec<(Span, Json, Map<String, Json>)>,
}

impl WorkflowReader<'_> {
    pub(super) fn axes(&mut self, node: &Node) -> Vec<Axis> {
        match &node.value {
            Value::String(text) if has_expression(text) => Vec::new(),
            Value::Map(entries) if !entries.is_empty() => {
                entries.iter().filter_map(|(key, values)| self.axis(key, values)).collect()
            }
            Value::Seq(items)
                if items.iter().any(|item| item.as_map().is_some() || is_open(item)) =>
            {
                self.together(items).into_iter().collect()
            }
            _ => {
                let wanted = "a mapping from keys to lists of values, or a list of mappings";
                self.wrong_type(node, "`matrix`", wanted);
                Vec::new()
            }
        }
    }

    fn axis(&mut self, key: &Node, values: &Node) -> Option<Axis> {
        let key = self.name(key)?;
        let what = format!("matrix key {}", quote(&key.value));
        if is_open(values) {
            return None;
        }
        let items = self.list(values, (&what, "a list of at least one value"), 1)?;
        let points = if items.iter().any(|item| item.as_map().is_some()) {
            let ReadMappings { mappings, .. } =
                self.mappings(&format!("a value of {what}"), items)?;
            let point = |(span, value, entries)| {
                let key = key.value.clone();
                (span, AxisPoint { values: vec![(key.clone(), Json::Object(entries))], key, value })
            };
            mappings.into_iter().map(point).collect()
        } else {
            self.scalars(&key.value, &what, items)
        };
        let points = self.distinct(points);
        Some(Axis { names: vec![key], points })
    }

    fn together(&mut self, items: &[Node]) -> Option<Axis> {
        let ReadMappings { names, label, mappings } =
            self.mappings("an entry of `matrix`", items)?;
        let point = |(span, value, entries): (Span, Json, Map<String, Json>)| {
            let values = entries.into_iter().filter(|(name, _)| *name != label).collect();
            (span, AxisPoint { key: label.clone(), value, values })
        };
        let points = self.distinct(mappings.into_iter().map(point).collect());
        Some(Axis { names, points })
    }

    fn scalars(&mut self, key: &str, what: &str, items: &[Node]) -> Vec<(Span, AxisPoint)> {
        let mut points = Vec::with_capacity(items.len());
        for item in items.iter().filter(|item| !is_open(item)) {
            if item.is_scalar() {
                let (key, value) = (key.to_owned(), item.to_json());
                points.push((item.span, AxisPoint { key, value, values: Vec::new() }));
            } else {
                self.wrong_type(item, &format!("a value of {what}"), "a scalar or a mapping");
            }
        }
        points
    }

    /// Reads mappings that must have the same keys.
    fn mappings(&mut self, what: &str, items: &[Node]) -> Option<ReadMappings> {
        let mut read = Vec::with_capacity(items.len());
        for item in items.iter().filter(|item| !is_open(item)) {
            match item.as_map() {
                Some(entries) if !entries.is_empty() => read.push((item, entries)),
                _ => self.wrong_type(item, what, "a mapping of at least one key"),
            }
        }
        let (first, entries) = *read.first()?;
        let names: Vec<Text> = entries.iter().filter_map(|(key, _)| self.name(key)).collect();
        let has_name = names.iter().find(|name| name.value == NAME);
        let label = has_name.or_else(|| names.first())?.value.clone();
        for (other, entries) in &read[1..] {
            self.same_keys(first, &names, other, entries);
        }
        let mut mappings = Vec::with_capacity(read.len());
        for (item, _) in read {
            let Some((_, value)) = item.entry(&label) else { continue };
            if is_open(value) {
                continue;
            }
            if !value.is_scalar() {
                let what = format!("{}, which names the cell,", quote(&label));
                self.wrong_type(value, &what, "a scalar");
                continue;
            }
            if let Json::Object(entries) = item.to_json() {
                mappings.push((item.span, value.to_json(), entries));
            }
        }
        Some(ReadMappings { names, label, mappings })
    }

    /// Reports keys that this mapping has and the first has not, and vice versa.
    fn same_keys(&mut self, first: &Node, names: &[Text], item: &Node, entries: &[(Node, Node)]) {
        let missing: Vec<&Text> =
            names.iter().filter(|name| item.get(&name.value).is_none()).collect();
        let mut meant = Vec::new();
        for (key, _) in entries {
            let unknown = key.as_str().filter(|text| first.get(text).is_none());
            let Some(text) = unknown else { continue };
            let guess = did_you_mean(text, missing.iter().map(|name| name.value.as_str()));
            let message = format!("the first mapping has no key {}", quote(text));
            let problem = self.error(Code::UnknownKey, message, key.span);
            let problem = problem.with_related(self.source, first.head(), "the first mapping");
            self.push(match guess {
                Some(name) => problem.with_help(format!("did you mean {}?", quote(name))),
                None => problem.with_help("all mappings of a matrix have the same keys"),
            });
            meant.extend(guess);
        }
        for name in missing.into_iter().filter(|name| !meant.contains(&name.value.as_str())) {
            let message = format!("this mapping has no key {}", quote(&name.value));
            let problem = self.error(Code::MissingKey, message, item.head());
            let problem = problem.with_related(self.source, name.span, "the first mapping has it");
            self.push(problem.with_help(format!(
                "all mappings of a matrix have the same keys; `{}: null` means that there is no value",
                name.value
            )));
        }
    }

    /// Removes points that would have the name of another, and reports each.
    fn distinct(&mut self, points: Vec<(Span, AxisPoint)>) -> Vec<AxisPoint> {
        let mut names = HashMap::new();
        let mut kept = Vec::with_capacity(points.len());
        for (span, point) in points {
            let name = cell_value(&point.value);
            let Some(first) = names.get(&name) else {
                names.insert(name, span);
                kept.push(point);
                continue;
            };
            let cell = format!("{}={name}", point.key);
            let message = format!("two cells would be called {}", quote(&cell));
            let problem = self.error(Code::WrongValue, message, span).with_label("again here");
            let problem = problem.with_related(self.source, *first, "first here");
            self.push(problem.with_help(match point.values.is_empty() {
                true => "remove one of them",
                false => "give each mapping a different `name`",
            }));
        }
        kept
    }
}

/// A value as written in the name of a cell; equal numbers have one form.
fn cell_value(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => {
                (float as i64).to_string()
            }
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}

fn is_open(node: &Node) -> bool {
    node.as_str().is_some_and(has_expression)
}
