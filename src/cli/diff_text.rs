//! The difference between two runs, for people.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use galeras_base::visible::escape;
use galeras_display::count;
use galeras_operator::MAIN;
use galeras_store::RunRecord;
use galeras_study::diff_tables::PortDiff;
use galeras_study::run_pair::{StepPair, Verdict, changed_params};
use galeras_study::runs::outcome;

/// The most steps per verdict that are named; others are only counted.
const NAMED: usize = 10;

const SHOWN: usize = 70;

/// Characters shown before the first difference of two values.
const BEFORE: usize = 20;

/// The differences between the runs as a whole, and the number of steps that differ.
pub(super) fn summary_text(old: &RunRecord, new: &RunRecord, pairs: &[StepPair<'_>]) -> String {
    let mut text = String::new();
    for (word, run) in [("old", old), ("new", new)] {
        let time = run.started.get(..19).unwrap_or(&run.started).replacen('T', " ", 1);
        let _ = writeln!(text, "{word}     {}  {time}  {}", run.id, outcome(run));
    }
    for (name, old, new) in changed_params(old, new) {
        let (old, new) = (param(old), param(new));
        let _ = writeln!(text, "param   {}: {old} → {new}", escape(name));
    }
    let of = |verdict: Verdict| -> Vec<&str> {
        pairs.iter().filter(|pair| pair.verdict() == verdict).map(|pair| pair.name).collect()
    };
    let same = of(Verdict::Same).len();
    if same == pairs.len() {
        let _ = writeln!(text, "steps   all {} are the same", count(same as u64));
        return text;
    }
    let _ = writeln!(text, "steps   {} the same", count(same as u64));
    let words = [
        (Verdict::Differs, "differ"),
        (Verdict::Added, "only in the new run"),
        (Verdict::Removed, "only in the old run"),
        (Verdict::NoResult, "without a result in one of the runs"),
    ];
    for (verdict, words) in words {
        let names = of(verdict);
        if names.is_empty() {
            continue;
        }
        let shown: Vec<String> = names.iter().take(NAMED).map(|name| escape(name)).collect();
        let more = match names.len() - shown.len() {
            0 => String::new(),
            more => format!(", and {} more", count(more as u64)),
        };
        let number = count(names.len() as u64);
        let _ = writeln!(text, "        {number} {words}: {}{more}", shown.join(", "));
    }
    text
}

fn param(value: Option<&Value>) -> String {
    value.map_or("(none)".to_string(), |value| cut(&value.to_string(), 0))
}

/// The differences between the tables of one port.
pub(super) fn port_text(pair: &StepPair<'_>, diff: &PortDiff) -> String {
    let mut text = String::new();
    let port = if diff.port == MAIN { String::new() } else { format!(".{}", diff.port) };
    let rows = pair.port(&diff.port).map(|port| match port {
        Some(port) => count(port.rows),
        None => "no table".to_string(),
    });
    let rows = match &rows {
        [old, new] if old == new => format!("{new} rows"),
        [old, new] => format!("{old} → {new} rows"),
    };
    let _ = writeln!(text, "\n{}{port}  {rows}", escape(pair.name));
    if let Some(step) = pair.new
        && let Some(reason) = step.reason
        && diff.port == MAIN
    {
        let detail = step.detail.as_ref().map(|detail| format!(": {}", escape(detail)));
        let _ = writeln!(text, "  why      {}{}", reason.code(), detail.unwrap_or_default());
    }
    text + &table_text(diff, "use --rows")
}

/// The differences between two versions of a table; `more` explains how to see more examples.
pub(super) fn table_text(diff: &PortDiff, more: &str) -> String {
    let mut text = String::new();
    for (word, names) in [("added", &diff.added_columns), ("removed", &diff.removed_columns)] {
        if !names.is_empty() {
            let _ = writeln!(text, "  columns  {word}: {}", escape(&names.join(", ")));
        }
    }
    for (name, old, new) in &diff.retyped {
        let _ = writeln!(text, "  column   {}: {old} → {new}", escape(name));
    }
    let rows = match &diff.rows {
        Ok(rows) => rows,
        Err(why) => {
            let _ = writeln!(text, "  rows     not compared: {}", escape(why));
            return text;
        }
    };
    let _ = writeln!(
        text,
        "  rows     {} added, {} removed, {} changed, {} the same",
        count(rows.added),
        count(rows.removed),
        count(rows.changed),
        count(rows.same)
    );
    if !rows.columns.is_empty() {
        let columns =
            rows.columns.iter().map(|(name, n)| format!("{} ({})", escape(name), count(*n)));
        let columns = columns.collect::<Vec<_>>().join(", ");
        let _ = writeln!(text, "  changed  {columns}");
    }
    for example in &rows.examples {
        let key =
            example.key.iter().map(|(name, value)| format!("{}={}", escape(name), plain(value)));
        let _ = writeln!(text, "  {}", key.collect::<Vec<_>>().join(", "));
        changes(&mut text, &example.old, &example.new);
    }
    let hidden = rows.changed.saturating_sub(rows.examples.len() as u64);
    if hidden > 0 {
        let _ = writeln!(text, "  … {} more changed rows ({more})", count(hidden));
    }
    text
}

/// A line for each old value, and one for each new value.
fn changes(text: &mut String, old: &Map<String, Value>, new: &Map<String, Value>) {
    let wide = old.keys().map(|name| escape(name).chars().count()).max().unwrap_or(0);
    for (name, was) in old {
        let is = new.get(name).unwrap_or(&Value::Null);
        let (was, is) = (was.to_string(), is.to_string());
        // Long texts are shown from where they begin to differ.
        let shared = was.chars().zip(is.chars()).take_while(|(a, b)| a == b).count();
        let (name, blank) = (escape(name), "");
        let _ = writeln!(text, "    {name:wide$}  - {}", cut(&was, shared));
        let _ = writeln!(text, "    {blank:wide$}  + {}", cut(&is, shared));
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => cut(text, 0),
        other => cut(&other.to_string(), 0),
    }
}

fn cut(text: &str, place: usize) -> String {
    let chars = text.chars().count();
    if chars <= SHOWN {
        return escape(text);
    }
    let start = place.saturating_sub(BEFORE).min(chars.saturating_sub(SHOWN));
    let part: String = text.chars().skip(start).take(SHOWN).collect();
    let before = if start > 0 { "…" } else { "" };
    let after = if start + SHOWN < chars { "…" } else { "" };
    format!("{before}{}{after}", escape(&part))
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn long_values_are_shown_where_they_differ() {
        let text = format!("{}X{}", "a".repeat(200), "b".repeat(200));
        let shown = cut(&text, 200);
        assert!(shown.starts_with('…') && shown.ends_with('…') && shown.contains('X'), "{shown}");
        assert!(shown.chars().count() <= 72, "{shown}");
        assert_eq!(cut("short", 3), "short");
        assert!(cut(&text, 400).ends_with('b'));
        assert!(cut(&text, 0).starts_with('a'));
    }
}
