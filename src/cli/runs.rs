//! `runs`: lists the runs with their times, params and results. `diff`: compares two of them, step
//! by step, column by column, row by row.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Map, Value, json};

use super::aligned::{Side, aligned, to_the_second};
use super::context::{
    Exit, Failure, answer, both, fail, fail_unknown, failed, note, open_store, print, print_json,
};
use super::rows::row_limit;
use super::{Format, StoreArgs};
use galeras_base::terminal_escape::escape;
use galeras_display::{count, seconds};
use galeras_operator::MAIN;
use galeras_operator::event::{StepStatus, StepSummary};
use galeras_store::RunRecord;
use galeras_study::diff_tables::{PortDiff, compare_ports};
use galeras_study::runs::{
    StepPair, Verdict, changed_params, outcome, params_text, past_runs, results_digest, step_pairs,
    value_text,
};
use galeras_study::table_name;

#[derive(Args)]
pub(crate) struct RunsArgs {
    /// The workflow file.
    file: PathBuf,
    /// The number of runs, or `all` (default: 20 for people, all for programs).
    #[arg(long, value_name = "N", value_parser = row_limit)]
    rows: Option<usize>,
    #[command(flatten)]
    store: StoreArgs,
    /// How to answer.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

const LISTED_RUNS: usize = 20;

pub(crate) async fn runs(args: RunsArgs) -> Result<Exit, Failure> {
    check_file(&args.file)?;
    let store = open_store(&args.store.of(&args.file)?).await?;
    let all = past_runs(&args.file, &store).await?;
    if args.format == Format::Json {
        for run in all.iter().take(args.rows.unwrap_or(usize::MAX)) {
            print_json(&as_json(run))?;
        }
        return Ok(Exit::Done);
    }
    if all.is_empty() {
        let (file, store) = (args.file.display(), store.location());
        note(&format!("no run of {file} is recorded in {store}; {NO_RUN}"));
        return Ok(Exit::Done);
    }
    let shown = args.rows.unwrap_or(LISTED_RUNS).min(all.len());
    print(&listing(&all[..shown]))?;
    match all.len() - shown {
        0 => Ok(Exit::Done),
        more => print(&format!("… {} more (use --rows)\n", count(more as u64))),
    }
}

fn as_json(run: &RunRecord) -> Value {
    json!({
        "event": "run", "run": run.id, "workflow": run.workflow, "file": run.file,
        "started": run.started, "seconds": run.seconds, "status": run.status,
        "params": run.params, "results": results_digest(run), "steps": run.steps,
    })
}

fn listing(runs: &[RunRecord]) -> String {
    let head = ["run", "started (UTC)", "took", "outcome", "steps", "results", "params"];
    let mut rows = vec![head.map(String::from)];
    for run in runs {
        let steps: Vec<String> = [
            (StepStatus::Hit, "hit"),
            (StepStatus::Ran, "ran"),
            (StepStatus::Failed, "failed"),
            (StepStatus::Skipped, "skipped"),
        ]
        .into_iter()
        .map(|(status, word)| (run.steps.iter().filter(|s| s.status == status).count(), word))
        .filter(|(number, _)| *number > 0)
        .map(|(number, word)| format!("{} {word}", count(number as u64)))
        .collect();
        let time = to_the_second(&run.started);
        rows.push([
            run.id.clone(),
            time,
            if run.status.is_some() { seconds(run.seconds) } else { String::new() },
            outcome(run).to_string(),
            steps.join(", "),
            results_digest(run).map(|digest| digest.short()).unwrap_or_default(),
            params_text(&run.params),
        ]);
    }
    aligned([Side::Left; 7], &rows)
}

fn check_file(file: &Path) -> Result<(), Failure> {
    match file.is_file() {
        true => Ok(()),
        false => {
            let message = format!("there is no workflow file {}", file.display());
            Err(fail(message, Exit::Invalid))
        }
    }
}

#[derive(Args)]
pub(crate) struct DiffArgs {
    /// The workflow file.
    file: PathBuf,
    /// The earlier run: `last~1`, or the beginning of its id in `galeras runs`.
    #[arg(value_name = "RUN")]
    old: String,
    /// The later run: `last`, or the beginning of its id.
    #[arg(value_name = "RUN")]
    new: String,
    /// Compare only this step (a matrix step: all its cells). May be repeated.
    #[arg(long, value_name = "STEP")]
    select: Vec<String>,
    /// Changed rows to show of each table.
    #[arg(long, value_name = "N", default_value_t = 3)]
    rows: usize,
    #[command(flatten)]
    store: StoreArgs,
    /// How to answer.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) async fn diff(args: DiffArgs) -> Result<Exit, Failure> {
    check_file(&args.file)?;
    let store = open_store(&args.store.of(&args.file)?).await?;
    // The lock keeps `gc` from removing tables while they are read.
    let _reading = store.reading_lock().await?;
    let runs = past_runs(&args.file, &store).await?;
    let find = |name: &str| find_run(&runs, &args.file, name);
    let (old, new) = both(find(&args.old), find(&args.new))?;
    for run in [old, new] {
        if run.steps.is_empty() {
            let message = format!("nothing is recorded of run {}: {}", run.id, outcome(run));
            return Err(failed(message));
        }
    }
    let pairs = step_pairs(old, new, &args.select);
    if pairs.is_empty() {
        let known = old.steps.iter().chain(&new.steps).map(|s| s.step.split('[').next());
        let mut known: Vec<&str> = known.flatten().collect();
        known.dedup();
        let chosen = args.select.join(", ");
        let message = format!("neither run has a step `{chosen}`");
        return Err(fail_unknown(&message, &chosen, known, "the steps are"));
    }
    answer(args.format, summary_json(old, new, &pairs), &summary_text(old, new, &pairs))?;
    for pair in pairs.iter().filter(|pair| pair.verdict() == Verdict::Differs) {
        for port in pair.differing_ports() {
            let diff = compare_ports(&store, pair, &port, args.rows).await?;
            answer(args.format, port_json(pair, &diff), &port_text(pair, &diff))?;
        }
    }
    Ok(Exit::Done)
}

fn summary_json(old: &RunRecord, new: &RunRecord, pairs: &[StepPair<'_>]) -> Value {
    let run =
        |run: &RunRecord| json!({"run": run.id, "started": run.started, "status": run.status});
    let params: Vec<Value> = changed_params(old, new)
        .into_iter()
        .map(|(name, old, new)| json!({"name": name, "old": old, "new": new}))
        .collect();
    let steps: Vec<Value> = pairs
        .iter()
        .map(|pair| {
            let status = |step: Option<&StepSummary>| step.map(|step| step.status);
            let reason = pair.new.and_then(|step| step.reason);
            json!({"step": pair.name, "verdict": pair.verdict().name(), "old": status(pair.old),
                "new": status(pair.new), "reason": reason,
                "detail": pair.new.and_then(|step| step.detail.clone())})
        })
        .collect();
    json!({"event": "diff", "old": run(old), "new": run(new), "params": params, "steps": steps})
}

fn port_json(pair: &StepPair<'_>, diff: &PortDiff) -> Value {
    let [old, new] = pair.port(&diff.port).map(|port| port.map(|port| port.rows));
    let mut out = json!({"event": "table", "step": pair.name, "port": diff.port,
        "rows": {"old": old, "new": new},
        "columns": {"added": diff.added_columns, "removed": diff.removed_columns,
            "retyped": diff.retyped.iter().map(|(name, old, new)| {
                json!({"column": name, "old": old, "new": new})
            }).collect::<Vec<_>>()}});
    match &diff.rows {
        Err(why) => out["not_compared"] = json!(why),
        Ok(rows) => {
            out["key"] = json!(diff.key);
            out["added"] = json!(rows.added);
            out["removed"] = json!(rows.removed);
            out["changed"] = json!(rows.changed);
            out["same"] = json!(rows.same);
            let changed: Map<String, Value> =
                rows.columns.iter().map(|(name, rows)| (name.clone(), json!(rows))).collect();
            out["columns"]["changed"] = Value::Object(changed);
            let examples = rows.examples.iter().map(|row| {
                let (key, old, new) = (&row.key, &row.old, &row.new);
                json!({"key": key, "old": old, "new": new})
            });
            out["examples"] = examples.collect();
        }
    }
    out
}

const LISTED: usize = 5;

/// The next step if no run is recorded.
const NO_RUN: &str = "`galeras run` records one, and --cache names another store";

/// The run with this name among those of a file, newest first.
fn find_run<'a>(runs: &'a [RunRecord], file: &Path, name: &str) -> Result<&'a RunRecord, Failure> {
    let file = file.display();
    if runs.is_empty() {
        let message = format!("no run of {file} is recorded; {NO_RUN}");
        return Err(failed(message));
    }
    if let Some(back) = steps_back(name) {
        return runs.get(back).ok_or_else(|| {
            let recorded = match runs.len() {
                1 => "only one run is recorded".to_string(),
                runs => format!("only {runs} runs are recorded"),
            };
            fail(format!("there is no run `{name}` of {file}: {recorded}"), Exit::Invalid)
        });
    }
    // The digits after the time also distinguish runs.
    let begins = |run: &&RunRecord| {
        let digits = run.id.rsplit_once('-').map_or("", |(_, digits)| digits);
        !name.is_empty() && (run.id.starts_with(name) || digits.starts_with(name))
    };
    let found: Vec<&RunRecord> = runs.iter().filter(begins).collect();
    let ids = |runs: &[&RunRecord]| {
        let ids: Vec<&str> = runs.iter().take(LISTED).map(|run| run.id.as_str()).collect();
        let more = if runs.len() > LISTED { ", …" } else { "" };
        format!("{}{more}", ids.join(", "))
    };
    match found.as_slice() {
        [run] => Ok(run),
        [] => {
            let all: Vec<&RunRecord> = runs.iter().collect();
            let message = format!(
                "there is no run `{name}` of {file}; write the beginning of an id, `last` or \
                     `last~1`; the runs are {}",
                ids(&all)
            );
            Err(fail(message, Exit::Invalid))
        }
        many => {
            let (runs, ids) = (many.len(), ids(many));
            let message = format!("{runs} runs begin with `{name}`: {ids}; write more of the id");
            Err(fail(message, Exit::Invalid))
        }
    }
}

/// The number in `last~2`; `last` is 0.
fn steps_back(name: &str) -> Option<usize> {
    match name.strip_prefix("last")? {
        "" => Some(0),
        rest => rest.strip_prefix('~')?.parse().ok(),
    }
}

/// The most steps per verdict that are named; others are only counted.
const NAMED: usize = 10;

const SHOWN: usize = 70;

/// Characters shown before the first difference of two values.
const BEFORE: usize = 20;

/// The differences between the runs as a whole, and the number of steps that differ.
fn summary_text(old: &RunRecord, new: &RunRecord, pairs: &[StepPair<'_>]) -> String {
    let mut text = String::new();
    for (word, run) in [("old", old), ("new", new)] {
        let time = to_the_second(&run.started);
        let _ = writeln!(text, "{word}     {}  {time}  {}", run.id, outcome(run));
    }
    for (name, old, new) in changed_params(old, new) {
        let text_of = |value: Option<&Value>| value.map_or("(none)".to_string(), Value::to_string);
        let (old, new) = (text_of(old), text_of(new));
        let shared = shared_start(&old, &new);
        let (name, old, new) = (escape(name), cut(&old, shared), cut(&new, shared));
        let _ = writeln!(text, "param   {name}: {old} → {new}");
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

fn port_text(pair: &StepPair<'_>, diff: &PortDiff) -> String {
    let mut text = String::new();
    let table = table_name(&escape(pair.name), &diff.port);
    let rows = pair.port(&diff.port).map(|port| match port {
        Some(port) => count(port.rows),
        None => "no table".to_string(),
    });
    let rows = match &rows {
        [old, new] if old == new => format!("{new} rows"),
        [old, new] => format!("{old} → {new} rows"),
    };
    let _ = writeln!(text, "\n{table}  {rows}");
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
        let key = example
            .key
            .iter()
            .map(|(name, value)| format!("{}={}", escape(name), cut(&value_text(value), 0)));
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
        let shared = shared_start(&was, &is);
        let (name, blank) = (escape(name), "");
        let _ = writeln!(text, "    {name:wide$}  - {}", cut(&was, shared));
        let _ = writeln!(text, "    {blank:wide$}  + {}", cut(&is, shared));
    }
}

/// The characters with which both texts begin. Long ones are shown from where they begin to differ.
fn shared_start(old: &str, new: &str) -> usize {
    old.chars().zip(new.chars()).take_while(|(a, b)| a == b).count()
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
    use super::*;

    #[test]
    fn runs_are_counted_from_the_last() {
        assert_eq!(steps_back("last"), Some(0));
        assert_eq!(steps_back("last~0"), Some(0));
        assert_eq!(steps_back("last~12"), Some(12));
        assert_eq!(steps_back("last~"), None);
        assert_eq!(steps_back("last-1"), None);
        assert_eq!(steps_back("lasting"), None);
        assert_eq!(steps_back("2026"), None);
    }

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
