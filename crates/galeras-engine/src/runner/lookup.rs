//! Looks up the result of a key: it must be complete, its files sound, and its tables those that
//! the plan expects. Without a result, the key's pre-image is compared with that of the last one.

use std::fmt;

use serde_json::Value;

use super::error::RunError;
use super::history::RunHistory;
use super::key::StepKey;
use crate::plan::PlannedStep;
use galeras_base::digest::Digest;
use galeras_operator::event::Reason;
use galeras_store::{BlobState, Manifest, Store, TableShape, VerifyLevel};

pub(super) enum Lookup {
    /// A result with all its files.
    Hit(Box<Manifest>),
    /// The same, with rows that failed for external reasons and are tried again.
    Retry(Box<Manifest>),
    /// A result with missing or damaged files.
    Incomplete(UnsoundFiles),
    /// A result whose tables are not those of the step, for this reason.
    Unfit(String),
    /// Nothing.
    Miss,
}

/// The missing or damaged files of a result.
#[derive(Debug)]
pub(super) struct UnsoundFiles {
    pub(super) missing: Vec<Digest>,
    pub(super) damaged: Vec<Digest>,
}

impl UnsoundFiles {
    pub(super) fn of(blobs: Vec<(Digest, BlobState)>) -> Self {
        let with = |state| {
            let found = blobs.iter().filter(move |(_, is)| *is == state);
            found.map(|(blob, _)| *blob).collect()
        };
        Self { missing: with(BlobState::Missing), damaged: with(BlobState::Damaged) }
    }
}

impl fmt::Display for UnsoundFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = |count, state| match count {
            0 => None,
            1 => Some(format!("one stored file is {state}")),
            _ => Some(format!("{count} stored files are {state}")),
        };
        let parts = [files(self.missing.len(), "missing"), files(self.damaged.len(), "damaged")];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

/// Looks for the result of a step under `key`, and at its files.
pub(super) async fn lookup(
    store: &Store,
    step: &PlannedStep,
    key: &Digest,
) -> Result<Lookup, RunError> {
    let Some(manifest) = store.manifest(key).await? else { return Ok(Lookup::Miss) };
    if let Some(cause) = other_tables(step, &manifest) {
        return Ok(Lookup::Unfit(cause));
    }
    let unsound = store.unsound_blobs(&manifest, VerifyLevel::Usual).await?;
    if !unsound.is_empty() {
        return Ok(Lookup::Incomplete(UnsoundFiles::of(unsound)));
    }
    for (port, stored) in step.step.ports().iter().zip(&manifest.ports) {
        if let Some(cause) = store.misshapen(stored, &TableShape::of(&port.table)).await? {
            return Ok(Lookup::Unfit(cause));
        }
    }
    Ok(match manifest.retry_rows {
        0 => Lookup::Hit(Box::new(manifest)),
        _ => Lookup::Retry(Box::new(manifest)),
    })
}

/// Describes how the tables of a result differ from those of the step, by its manifest.
pub(super) fn other_tables(step: &PlannedStep, manifest: &Manifest) -> Option<String> {
    let ports = step.step.ports();
    if !manifest.ports.iter().map(|port| port.port.as_str()).eq(ports.iter().map(|port| port.name))
    {
        return Some("it has other tables".into());
    }
    let mut tables = ports.iter().zip(&manifest.ports);
    tables.find_map(|(port, stored)| TableShape::of(&port.table).differs(stored))
}

/// The message about a result that is not used.
pub(super) fn unfit(cause: &str) -> String {
    format!("its stored result is not what the workflow says: {cause}")
}

/// The reason to recompute a result with rows that failed for external reasons.
pub(super) fn retry_reason(manifest: &Manifest) -> String {
    match manifest.retry_rows {
        1 => "one row failed and is tried again".to_string(),
        rows => format!("{rows} rows failed and are tried again"),
    }
}

/// The reason why `step` has no result under its present key, with details.
pub(super) async fn reason_to_run(
    history: &RunHistory,
    step: &PlannedStep,
    now: &StepKey,
) -> (Reason, Option<String>) {
    match history.last(&step.name).await {
        Ok(before) => compare(step, &before, now),
        Err(reason) => reason,
    }
}

fn compare(step: &PlannedStep, before: &Manifest, now: &StepKey) -> (Reason, Option<String>) {
    let (old, new) = (&before.preimage, &now.preimage);
    if old.operator != new.operator {
        let detail = format!("operator {} → {}", old.operator, new.operator);
        return (Reason::OpChanged, Some(detail));
    }
    if old.version != new.version || old.format != new.format {
        let detail = format!("{} version {} → {}", new.operator, old.version, new.version);
        return (Reason::OpChanged, Some(detail));
    }
    let mut changes = Vec::new();
    differences("", &old.args, &new.args, &mut changes);
    if !changes.is_empty() {
        let lines = changes.iter().map(|(path, old, new)| {
            let (old, new) = changed_parts(old, new);
            format!("with.{path}: {old} → {new} ({})", step.place_of(path))
        });
        return (Reason::ArgChanged, Some(lines.collect::<Vec<_>>().join("; ")));
    }
    if old.files != new.files {
        let changed = now
            .files
            .iter()
            .filter(|f| !old.files.contains(&f.digest))
            .map(|f| f.name.as_str())
            .collect::<Vec<_>>();
        let detail = match changed.as_slice() {
            [] => "the list of files changed".to_string(),
            names => format!("{} changed", names.join(", ")),
        };
        return (Reason::FileChanged, Some(detail));
    }
    let changed: Vec<String> = new
        .inputs
        .iter()
        .filter(|(port, digest)| old.inputs.get(*port) != Some(digest))
        .map(|(port, digest)| match old.inputs.get(port) {
            Some(old) => format!("{port}: {} → {}", old.short(), digest.short()),
            None => format!("{port} is new"),
        })
        .collect();
    if !changed.is_empty() || old.inputs.len() != new.inputs.len() {
        return (Reason::InputChanged, Some(changed.join("; ")));
    }
    (Reason::BlobMissing, Some("the last result is no longer complete".into()))
}

/// The paths at which two values differ, with both values.
fn differences(path: &str, old: &Value, new: &Value, out: &mut Vec<(String, Value, Value)>) {
    match (old, new) {
        (Value::Object(a), Value::Object(b)) => {
            let names = a.keys().chain(b.keys().filter(|k| !a.contains_key(*k)));
            for name in names {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                let of = |map: &serde_json::Map<String, Value>| {
                    map.get(name).cloned().unwrap_or(Value::Null)
                };
                differences(&path, &of(a), &of(b), out);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (at, (a, b)) in a.iter().zip(b).enumerate() {
                differences(&format!("{path}[{at}]"), a, b, out);
            }
        }
        _ if old == new => {}
        _ => out.push((path.to_string(), old.clone(), new.clone())),
    }
}

/// Two values for a line: long ones from shortly before the first character that differs. Texts keep
/// their quotes, within which a narrow screen crops more than [`LONGEST_VALUE`].
fn changed_parts(old: &Value, new: &Value) -> (String, String) {
    let (old_text, new_text) = (old.to_string(), new.to_string());
    let shared = old_text.chars().zip(new_text.chars()).take_while(|(a, b)| a == b).count();
    (part(old, &old_text, shared), part(new, &new_text, shared))
}

/// The most characters of a value.
const LONGEST_VALUE: usize = 38;

/// The characters before the first that differs.
const BEFORE_CHANGE: usize = 12;

/// The part of a JSON text that begins shortly before the character at `change`.
fn part(value: &Value, text: &str, change: usize) -> String {
    let chars: Vec<char> = text.chars().collect();
    if chars.len() <= LONGEST_VALUE {
        return text.to_string();
    }
    let quote = if value.is_string() { "\"" } else { "" };
    let (first, end) = (quote.len(), chars.len() - quote.len());
    let room = LONGEST_VALUE - 2;
    let start = change.saturating_sub(BEFORE_CHANGE).min(end.saturating_sub(room)).max(first);
    let stop = (start + room).min(end);
    let part: String = chars[start..stop].iter().collect();
    let mark = |is_cut: bool| if is_cut { "…" } else { "" };
    format!("{quote}{}{part}{}{quote}", mark(start > first), mark(stop < end))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_name_the_deepest_place() {
        let mut changes = Vec::new();
        let old = json!({"rules": [{"name": "a", "check": "x"}], "n": 1});
        let new = json!({"rules": [{"name": "a", "check": "y"}], "n": 1, "m": 2});
        differences("", &old, &new, &mut changes);
        let paths: Vec<&str> = changes.iter().map(|c| c.0.as_str()).collect();
        assert_eq!(paths, ["rules[0].check", "m"]);
    }

    #[test]
    fn long_values_are_shown_where_they_differ() {
        let text = |end: &str| json!(format!("{}{end}", "nloc > 1 AND ".repeat(10)));
        let (old, new) = changed_parts(&text("complexity < 5"), &text("complexity < 9"));
        assert_eq!(old, "\"… > 1 AND nloc > 1 AND complexity < 5\"");
        assert_eq!(new, "\"… > 1 AND nloc > 1 AND complexity < 9\"");
        // A change in the middle has text at both sides.
        let text = |word: &str| json!(format!("{}{word}{}", "a".repeat(50), "b".repeat(50)));
        let (old, new) = changed_parts(&text("X"), &text("Y"));
        let expected = |word: &str| format!("\"…{}{word}{}…\"", "a".repeat(12), "b".repeat(23));
        assert_eq!((old, new), (expected("X"), expected("Y")));
        let (old, new) = changed_parts(&json!(0.65), &json!(0.7));
        assert_eq!((old.as_str(), new.as_str()), ("0.65", "0.7"));
    }
}
