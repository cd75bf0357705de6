//! Finds the reason why a step runs, by comparing its key's pre-image with that of its last result.

use serde_json::Value;

use super::history::{LastRun, RunHistory};
use super::key::StepKey;
use crate::plan::PlannedStep;
use galeras_operator::event::Reason;
use galeras_store::Manifest;

/// The reason why `step` has no result under its present key, with details.
pub(super) async fn reason_to_run(
    history: &RunHistory,
    step: &PlannedStep,
    now: &StepKey,
) -> (Reason, Option<String>) {
    match history.last(&step.name).await {
        LastRun::None => (Reason::New, None),
        LastRun::Failed(why) => (Reason::PrevFailed, Some(why.to_string())),
        LastRun::Gone => {
            (Reason::BlobMissing, Some("the last result is no longer in the store".into()))
        }
        LastRun::Result(before) => compare(step, &before, now),
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
            format!("with.{path}: {} → {} ({})", shown(old), shown(new), step.place_of(path))
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
        return (Reason::SourceMoved, Some(detail));
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

/// A value shortened for a line.
fn shown(value: &Value) -> String {
    const WIDTH: usize = 60;
    let text = value.to_string();
    if text.chars().count() <= WIDTH {
        return text;
    }
    let head: String = text.chars().take(WIDTH).collect();
    format!("{head}…")
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
}
