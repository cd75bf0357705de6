//! `trace`: follows a row through the workflow.

use std::collections::HashSet;
use std::fmt::Write as _;

use arrow::array::RecordBatch;
use arrow::datatypes::DataType;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use clap::Args;
use datafusion::logical_expr::{Expr, cast, lit};
use serde_json::{Map, Value, json};

use super::Format;
use super::context::{Exit, Failure, LookArgs, Surveyed, fail, failed, look, print, print_json};
use galeras_base::id::ID;
use galeras_base::terminal_escape::{escape, shell_word};
use galeras_display::count;
use galeras_engine::plan::{PlannedStep, TableRef};
use galeras_operator::{MAIN, REJECTS, StepError, TableSchema};
use galeras_sql::session::{column, session};
use galeras_study::table_name;
use galeras_workflow::did_you_mean;

#[derive(Args)]
pub(crate) struct TraceArgs {
    #[command(flatten)]
    look: LookArgs,
    /// The row's id or the beginning of it, or a value of the key: `HumanEval/3`; of any column:
    /// `task_id=HumanEval/3`.
    id: String,
    /// Follow only rows of this table (`valid.rejects`, a cell `gen[seed=1]`, all cells `gen[*]`),
    /// and through the steps that lead to it.
    #[arg(long = "in", value_name = "STEP[.PORT]")]
    place: Option<String>,
    /// How to answer.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Columns that record a row's origin or the reason it was dropped, in this order.
const PROVENANCE: &[&str] = &[
    "repo",
    "url",
    "commit_id",
    "commit_time",
    "path",
    "start_line",
    "end_line",
    "qualified_name",
    "treatment",
    "model",
    "sample",
    "rule",
    "reason",
    "prompt_id",
    "snippet_id",
];

/// Columns with the id of a row that this one was made from, the nearest first.
const PARENTS: &[&str] = &["prompt_id", "snippet_id"];

/// A stored table that has the row, and its values there.
struct Occurrence {
    step: usize,
    port: &'static str,
    id: String,
    values: Map<String, Value>,
}

pub(crate) async fn trace(args: TraceArgs) -> Result<Exit, Failure> {
    let surveyed = look(&args.look, args.format).await?;
    if args.id.is_empty() {
        return Err(fail("the id is empty; its beginning is enough", Exit::Invalid));
    }
    let place = args.place.as_ref().map(|place| surveyed.computed_table(place)).transpose()?;
    let steps = match &place {
        None => (0..surveyed.plan.steps.len()).collect(),
        Some(input) => {
            let steps: Vec<usize> = input.tables.iter().map(|table| table.step).collect();
            surveyed.plan.with_ancestors(&steps)
        }
    };
    let is_there = |o: &&Occurrence| {
        let is_table = |table: &TableRef| (table.step, table.port) == (o.step, o.port);
        place.as_ref().is_none_or(|input| input.tables.iter().any(is_table))
    };
    let begins =
        |_: &PlannedStep, table: &TableSchema| table.field(ID).map(|_| id_begins_with(&args.id));
    let mut occurrences = find(&surveyed, &steps, begins).await.map_err(failed)?;
    let is_key = occurrences.is_empty();
    if is_key {
        let has_key = |step: &PlannedStep, table: &TableSchema| {
            table.field(ID)?;
            key_is(step, table, &args.id)
        };
        let found = find(&surveyed, &steps, has_key).await.map_err(failed)?;
        // Rows made from this one may also have the column.
        let first = found.iter().find(is_there).map(|o| (o.step, o.port));
        let of_first = found.iter().filter(|o| first == Some((o.step, o.port)));
        let ids: HashSet<&str> = of_first.map(|o| o.id.as_str()).collect();
        let has_id = |_: &PlannedStep, table: &TableSchema| {
            table.field(ID)?;
            let ids: Vec<Expr> = ids.iter().map(|id| lit(*id)).collect();
            (!ids.is_empty()).then(|| id_text().in_list(ids, false))
        };
        occurrences = find(&surveyed, &steps, has_id).await.map_err(failed)?;
    }
    if place.is_some() {
        let ids: HashSet<String> =
            occurrences.iter().filter(is_there).map(|o| o.id.clone()).collect();
        occurrences.retain(|o| ids.contains(&o.id));
    }
    // A whole id may also be the beginning of another one.
    if occurrences.iter().any(|place| place.id == args.id) {
        occurrences.retain(|place| place.id == args.id);
    }
    let mut ids: Vec<&str> = occurrences.iter().map(|place| place.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    match ids.as_slice() {
        [] => {
            let searched = args.place.as_ref().map(|place| format!("`{place}`"));
            let searched = searched.unwrap_or_else(|| "no computed step".to_string());
            let not = if args.place.is_some() { " no" } else { " a" };
            let message = format!("{searched} has{not} row with the id {}", args.id);
            let tables: Vec<(usize, &str)> = match &place {
                Some(input) => input.tables.iter().map(|table| (table.step, table.port)).collect(),
                None => steps.iter().map(|step| (*step, MAIN)).collect(),
            };
            let known = examples(&surveyed, &tables, &args.id).await.map_err(failed)?;
            Err(failed(format!("{message}{known}{}", missing(&surveyed))))
        }
        [id] => {
            let id = (*id).to_string();
            let made = made_from(&surveyed, &steps, &id).await.map_err(failed)?;
            let rows = with_parents(&surveyed, &steps, id, occurrences).await;
            show(&surveyed, &rows.map_err(failed)?, &made, args.format)
        }
        many => {
            let few: Vec<String> = many.iter().take(5).map(|id| escape(id)).collect();
            let how = if is_key { "match" } else { "begin with" };
            let (rows, few) = (many.len(), few.join(", "));
            let message = format!("{rows} rows {how} {}: {few}; give one of these ids", args.id);
            Err(fail(message, Exit::Invalid))
        }
    }
}

/// A row and the places where it is.
struct TracedRow {
    id: String,
    occurrences: Vec<Occurrence>,
}

/// The row, and the rows it was made from, back to the first.
async fn with_parents(
    surveyed: &Surveyed,
    steps: &[usize],
    id: String,
    occurrences: Vec<Occurrence>,
) -> Result<Vec<TracedRow>, StepError> {
    let mut rows = vec![TracedRow { id, occurrences }];
    loop {
        let named = rows
            .iter()
            .flat_map(|row| &row.occurrences)
            .flat_map(|place| PARENTS.iter().filter_map(|name| place.values.get(*name)?.as_str()));
        let known = |id: &str| id.is_empty() || rows.iter().any(|row| row.id == id);
        let Some(parent) = named.into_iter().find(|id| !known(id)).map(str::to_string) else {
            return Ok(rows);
        };
        let is_parent =
            |_: &PlannedStep, table: &TableSchema| table.field(ID).map(|_| id_is(&parent));
        let occurrences = find(surveyed, steps, is_parent).await?;
        rows.push(TracedRow { id: parent, occurrences });
    }
}

/// The rows that were made from this one: the prompts of a data point, and the answers to both.
async fn made_from(
    surveyed: &Surveyed,
    steps: &[usize],
    id: &str,
) -> Result<Vec<Occurrence>, StepError> {
    let is_made = |_: &PlannedStep, table: &TableSchema| {
        table.field(ID)?;
        let parents = PARENTS.iter().filter(|name| table.field(name).is_some());
        let is_parent = |name: &&str| cast(column(name), DataType::Utf8).eq(lit(id));
        parents.map(is_parent).reduce(Expr::or)
    };
    let mut made = find(surveyed, steps, is_made).await?;
    made.retain(|place| place.id != id);
    Ok(made)
}

/// The steps that are not computed, in words; empty if there are none.
fn missing(surveyed: &Surveyed) -> String {
    let waiting = not_computed(surveyed);
    if waiting.is_empty() {
        return String::new();
    }
    format!("\nnot computed yet: {}; run\n  {}", waiting.join(", "), surveyed.command())
}

fn not_computed(surveyed: &Surveyed) -> Vec<&str> {
    surveyed
        .states
        .iter()
        .zip(&surveyed.plan.steps)
        .filter(|(state, _)| state.manifest.is_none())
        .map(|(_, step)| step.name.as_str())
        .collect()
}

fn id_text() -> Expr {
    cast(column(ID), DataType::Utf8)
}

pub(super) fn id_is(id: &str) -> Expr {
    id_text().eq(lit(id))
}

pub(super) fn id_begins_with(id: &str) -> Expr {
    // Escapes the wildcards of SQL patterns.
    let beginning: String = id
        .chars()
        .flat_map(|c| matches!(c, '\\' | '%' | '_').then_some('\\').into_iter().chain([c]))
        .chain(['%'])
        .collect();
    id_text().like(lit(beginning))
}

/// The columns by which people know the rows of a table: its key, and the step's argument `key`.
fn key_columns(step: &PlannedStep, table: &TableSchema) -> Vec<String> {
    let args = step.step.args();
    let given = args.get("key").and_then(Value::as_array).into_iter().flatten();
    let names = table.key.iter().map(String::as_str).chain(given.filter_map(Value::as_str));
    let mut names: Vec<String> =
        names.filter(|name| *name != ID && is_plain(table, name)).map(str::to_owned).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn is_plain(table: &TableSchema, name: &str) -> bool {
    table.field(name).is_some_and(|field| !field.data_type().is_nested())
}

/// The condition that a row has this value: `column=value`, or that of a key column. `None` if the
/// table has no such column.
pub(super) fn key_is(step: &PlannedStep, table: &TableSchema, given: &str) -> Option<Expr> {
    let has = |name: &str, value: &str| cast(column(name), DataType::Utf8).eq(lit(value));
    match given.split_once('=').filter(|(name, _)| is_plain(table, name)) {
        Some((name, value)) => Some(has(name, value)),
        None => key_columns(step, table).iter().map(|name| has(name, given)).reduce(Expr::or),
    }
}

/// Rows that are read to find one of nearly this id, and those that are listed otherwise.
const EXAMPLE_ROWS: (usize, usize) = (1000, 3);

/// The rest of a message that there is no such row: the one that may be meant, or the first rows,
/// of the first of these tables that has rows.
async fn examples(
    surveyed: &Surveyed,
    tables: &[(usize, &str)],
    given: &str,
) -> Result<String, StepError> {
    let rows = |(at, port): &(usize, &str)| surveyed.stored(*at, port).map_or(0, |t| t.rows);
    let table = tables.iter().filter(|table| rows(table) > 0).find_map(|(at, port)| {
        let port = surveyed.plan.steps[*at].port(port)?;
        port.table.field(ID).map(|_| (*at, port))
    });
    let Some((at, port)) = table else { return Ok(String::new()) };
    let step = &surveyed.plan.steps[at];
    let mut key = key_columns(step, &port.table);
    // A column alone tells no rows of a longer key apart.
    let key = key.pop().filter(|_| key.is_empty());
    let mut columns = vec![id_text().alias(ID)];
    columns.extend(key.iter().map(|name| cast(column(name), DataType::Utf8).alias(name)));
    let rows = surveyed.open_port(&session(1), at, port.name)?.select(columns)?;
    let mut known: Vec<String> = Vec::new();
    for batch in &rows.limit(0, Some(EXAMPLE_ROWS.0))?.collect().await? {
        known.extend(rows_of(batch, at, port.name)?.into_iter().map(|row| {
            let value = key.as_ref().and_then(|name| row.values.get(name)?.as_str());
            value.map_or_else(|| row.id.clone(), str::to_owned)
        }));
    }
    let name = table_name(&step.name, port.name);
    let value = given.split_once('=').map_or(given, |(_, value)| value);
    let told = match did_you_mean(value, known.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{}`?", escape(near)),
        None => {
            let first = known.iter().take(EXAMPLE_ROWS.1);
            let first: Vec<String> = first.map(|name| format!("`{}`", escape(name))).collect();
            format!("the first rows of `{name}` are {}", first.join(", "))
        }
    };
    let (file, name) = (shell_word(&surveyed.plan.file), shell_word(&name));
    Ok(format!("; {told}; `galeras show {file} {name}` lists more"))
}

/// The rows of every computed table of these steps that its condition chooses, in the order of the
/// plan.
async fn find(
    surveyed: &Surveyed,
    steps: &[usize],
    condition: impl Fn(&PlannedStep, &TableSchema) -> Option<Expr>,
) -> Result<Vec<Occurrence>, StepError> {
    let session = session(1);
    let mut occurrences = Vec::new();
    for at in steps.iter().copied().filter(|at| surveyed.states[*at].manifest.is_some()) {
        let step = &surveyed.plan.steps[at];
        for port in step.step.ports() {
            let Some(condition) = condition(step, &port.table) else { continue };
            let df = surveyed.open_port(&session, at, port.name)?;
            let columns: Vec<_> = std::iter::once(id_text().alias(ID))
                .chain(
                    PROVENANCE
                        .iter()
                        .filter(|name| port.table.field(name).is_some())
                        .map(|name| column(name)),
                )
                .collect();
            let rows = df
                .filter(condition)
                .and_then(|df| df.select(columns))
                .and_then(|df| df.limit(0, Some(1000)))?
                .collect()
                .await?;
            for batch in &rows {
                occurrences.extend(rows_of(batch, at, port.name)?);
            }
        }
    }
    Ok(occurrences)
}

fn rows_of(
    batch: &RecordBatch,
    step: usize,
    port: &'static str,
) -> Result<Vec<Occurrence>, StepError> {
    let options = FormatOptions::default();
    let formatters = batch
        .columns()
        .iter()
        .map(|c| ArrayFormatter::try_new(c, &options))
        .collect::<Result<Vec<_>, _>>()?;
    let schema = batch.schema();
    Ok((0..batch.num_rows())
        .map(|row| {
            let id = formatters[0].value(row).to_string();
            let values = (1..formatters.len()).map(|i| {
                let name = schema.field(i).name().clone();
                (name, Value::String(formatters[i].value(row).to_string()))
            });
            Occurrence { step, port, id, values: values.collect() }
        })
        .collect())
}

/// Rows made from the traced one that are listed for people.
const MADE_ROWS: usize = 20;

fn show(
    surveyed: &Surveyed,
    rows: &[TracedRow],
    made_rows: &[Occurrence],
    format: Format,
) -> Result<Exit, Failure> {
    let plan = &surveyed.plan;
    if format == Format::Json {
        let places = |row: &TracedRow| -> Value {
            let place = |f: &Occurrence| {
                json!({"step": plan.steps[f.step].name, "port": f.port, "values": f.values,
                    "counts": counts(surveyed, f.step)})
            };
            row.occurrences.iter().map(place).collect()
        };
        let [row, parents @ ..] = rows else { return Err(Exit::Failed.into()) };
        let parents: Vec<Value> =
            parents.iter().map(|row| json!({"id": row.id, "places": places(row)})).collect();
        let made = |f: &Occurrence| json!({"id": f.id, "step": plan.steps[f.step].name, "port": f.port, "values": f.values});
        let made: Vec<Value> = made_rows.iter().map(made).collect();
        return print_json(&json!({"event": "trace", "id": row.id, "places": places(row),
            "made_from": parents, "leads_to": made, "not_computed": not_computed(surveyed)}));
    }
    let wide = plan.steps.iter().map(|s| s.name.chars().count()).max().unwrap_or(0).min(40);
    let mut text = String::new();
    let mut shown = Map::new();
    for (at, row) in rows.iter().enumerate() {
        let _ = match at {
            0 => writeln!(text, "row {}", escape(&row.id)),
            _ => writeln!(text, "made from row {}", escape(&row.id)),
        };
        for place in &row.occurrences {
            let news = news(place, &shown, &[]);
            shown.extend(place.values.clone());
            let name = escape(&plan.steps[place.step].name);
            let line = format!("  {name:wide$}  {:8} {news}", verdict(place));
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }
    if !made_rows.is_empty() {
        let _ = writeln!(text, "leads to");
    }
    for place in made_rows.iter().take(MADE_ROWS) {
        let (name, id) = (escape(&plan.steps[place.step].name), escape(&place.id));
        let line =
            format!("  {name:wide$}  {:8} {id} {}", verdict(place), news(place, &shown, PARENTS));
        let _ = writeln!(text, "{}", line.trim_end());
    }
    if let Some(more) = made_rows.len().checked_sub(MADE_ROWS).filter(|more| *more > 0) {
        let _ = writeln!(text, "  … {} more rows", count(more as u64));
    }
    let _ = writeln!(text, "\nrows of these steps");
    let mut steps: Vec<usize> =
        rows.iter().flat_map(|r| &r.occurrences).map(|place| place.step).collect();
    steps.sort_unstable();
    steps.dedup();
    for step in steps {
        let name = escape(&plan.steps[step].name);
        let numbers = counts(surveyed, step);
        let of = |key: &str| numbers.get(key).and_then(Value::as_u64).map(count);
        let line = match (of("input"), of("kept"), of("rejected")) {
            (Some(input), Some(kept), Some(rejected)) => {
                format!("{input} = {kept} kept + {rejected} rejected")
            }
            (_, Some(kept), _) => format!("{kept} kept"),
            _ => continue,
        };
        let _ = writeln!(text, "  {name:wide$}  {line}");
    }
    let missing = missing(surveyed);
    if !missing.is_empty() {
        let _ = writeln!(text, "{missing}");
    }
    print(&text)
}

fn verdict(place: &Occurrence) -> &'static str {
    if place.port == REJECTS { "dropped" } else { place.port }
}

/// The values of a row that were not printed above.
fn news(place: &Occurrence, shown: &Map<String, Value>, without: &[&str]) -> String {
    let is_new = |(name, value): &(&String, &Value)| {
        shown.get(*name) != Some(*value) && !without.contains(&name.as_str())
    };
    let words = |(name, value): (&String, &Value)| {
        format!("{name} {}", escape(value.as_str().unwrap_or_default()))
    };
    place.values.iter().filter(is_new).map(words).collect::<Vec<_>>().join(", ")
}

fn counts(surveyed: &Surveyed, at: usize) -> Map<String, Value> {
    let mut out = Map::new();
    let step = &surveyed.plan.steps[at];
    let port = |step: usize, name: &str| surveyed.stored(step, name).map(|table| table.rows);
    if let ([input], Some(rejected)) = (step.inputs.as_slice(), port(at, REJECTS)) {
        let rows: Option<u64> = input.tables.iter().map(|t| port(t.step, t.port)).sum();
        // The numbers do not add up where a row becomes several.
        if rows == port(at, MAIN).map(|kept| kept + rejected) {
            out.insert("input".into(), rows.into());
            out.insert("rejected".into(), rejected.into());
        }
    }
    out.insert("kept".into(), port(at, MAIN).into());
    out
}
