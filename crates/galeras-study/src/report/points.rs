//! Data points: prompt, answer, reference, and origin.

use galeras_pages::model::{
    CodeLanguage, DataPoint, DataPointBlock, Labelled, ScoreValue, TraceStep,
};
use serde_json::Value;

use super::values::{JsonRow, number, order_words, rows, table, text, value};
use crate::Surveyed;
use galeras_base::id::ID;
use galeras_engine::plan::{Input, cell_columns};
use galeras_engine::runner::RunError;
use galeras_sql::session::column;

/// Columns that distinguish rows on the page.
const GROUPS: &[&str] = &["treatment", "model", "baseline", "sample", "repo"];
/// Text columns shown next to the answer, if present.
const TEXTS: &[&str] =
    &["random_cut", "code", "code_before", "docstring", "commit_message", "reason"];
/// Columns that are never scores.
const NO_SCORES: &[&str] = &[
    "sample",
    "seconds",
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "start_line",
    "end_line",
    "start_column",
    "end_column",
    "usd",
];

/// The columns with the parts of a data point.
#[derive(Default)]
pub(super) struct PointColumns {
    answer: Option<String>,
    reference: Option<String>,
    scores: Vec<String>,
    groups: Vec<String>,
}

impl PointColumns {
    /// The columns of a table that hold a data point; `None` if it has neither an answer nor a
    /// reference.
    pub(super) fn of(surveyed: &Surveyed, input: &Input) -> Option<Self> {
        let step = &surveyed.plan.steps[input.tables.first()?.step];
        let args = step.step.args();
        let named = |arg: &str| args.get(arg).and_then(Value::as_str).map(str::to_string);
        let is_there = |name: &String| input.schema.field(name).is_some();
        let column = |name: &str| {
            named(name).filter(is_there).or_else(|| Some(name.to_string()).filter(is_there))
        };
        let (answer, reference) = (Some(column("prediction")?), column("reference"));
        // Numeric columns after the answer were computed from it.
        let fields = input.schema.schema.fields();
        let behind = fields.iter().skip_while(|field| Some(field.name()) != answer.as_ref());
        let scores: Vec<String> = behind
            .filter(|field| field.data_type().is_numeric())
            .map(|field| field.name().clone())
            .filter(|name| !NO_SCORES.contains(&name.as_str()))
            .collect();
        let cells = cell_columns(&input.tables.first()?.cell).map(|(name, _)| name.to_string());
        let cells: Vec<String> = cells.filter(|_| input.united).collect();
        let groups = GROUPS.iter().map(|name| (*name).to_string()).filter(is_there);
        let mut all = cells.clone();
        all.extend(groups.filter(|name| !cells.contains(name)));
        Some(Self { answer, reference, scores, groups: all })
    }
}

/// The first data points of a table; only these columns, if any are named.
pub(super) async fn points(
    surveyed: &Surveyed,
    name: &str,
    input: &Input,
    columns: &[String],
    limit: usize,
) -> Result<DataPointBlock, RunError> {
    let place = PointColumns::of(surveyed, input).unwrap_or_default();
    let mut df = table(surveyed, input)?.limit(0, Some(limit))?;
    if !columns.is_empty() {
        let key = &input.schema.key;
        let chosen = key.iter().chain(columns.iter().filter(|name| !key.contains(name)));
        df = df.select(chosen.map(|name| column(name)).collect::<Vec<_>>())?;
    }
    let rows = rows(df).await?;
    let total = surveyed.rows(input).filter(|total| *total > rows.len() as u64);
    Ok(DataPointBlock {
        points: rows.iter().map(|row| point(row, &place, columns, name)).collect(),
        choice: total.map(|_| order_words(input)).unwrap_or_default(),
        total,
        source: name.to_string(),
        ..DataPointBlock::default()
    })
}

fn point(row: &JsonRow, place: &PointColumns, columns: &[String], source: &str) -> DataPoint {
    let path = text(row, "path");
    let name = text(row, "qualified_name");
    let title = match (path.is_empty(), name.is_empty()) {
        (false, false) => format!("{path}: {name}"),
        (true, false) => name,
        (false, true) => path,
        (true, true) => String::new(),
    };
    let whole = |name: &Option<String>| {
        let name = name.as_ref()?;
        value(row, name).as_str().map(str::to_string)
    };
    let labelled = |name: &str| {
        let value = text(row, name);
        (!value.is_empty()).then(|| Labelled { name: name.to_string(), value })
    };
    let names: Vec<&str> = match columns {
        [] => TEXTS.to_vec(),
        names => names.iter().map(String::as_str).collect(),
    };
    let texts = names.into_iter().filter_map(labelled);
    let is_shown = |name: &String| columns.is_empty() || columns.contains(name);
    DataPoint {
        id: text(row, ID),
        title,
        groups: place.groups.iter().filter_map(|name| labelled(name)).collect(),
        scores: place
            .scores
            .iter()
            .filter(|name| is_shown(name))
            .map(|name| ScoreValue { metric: name.clone(), value: number(row, name) })
            .collect(),
        prompt: prompt(row),
        answer: whole(&place.answer),
        reference: whole(&place.reference),
        language: CodeLanguage::Python,
        texts: texts.filter(|text| Some(&text.name) != place.reference.as_ref()).collect(),
        trace: trace(row, source),
    }
}

/// The messages of the conversation, or the text of the prompt.
fn prompt(row: &JsonRow) -> Vec<Labelled> {
    if let Value::Array(messages) = value(row, "messages") {
        let said = |message: &Value, key: &str| {
            message.get(key).and_then(Value::as_str).unwrap_or_default().to_string()
        };
        let message = |of: &Value| Labelled { name: said(of, "role"), value: said(of, "content") };
        return messages.iter().map(message).collect();
    }
    match text(row, "prompt") {
        prompt if prompt.is_empty() => Vec::new(),
        value => vec![Labelled { name: "user".to_string(), value }],
    }
}

/// The origin of the row, back to its commit.
fn trace(row: &JsonRow, source: &str) -> Vec<TraceStep> {
    let mut steps =
        vec![TraceStep { step: source.to_string(), id: text(row, ID), ..TraceStep::default() }];
    for (name, what) in [("prompt_id", "the prompt"), ("snippet_id", "the data point")] {
        let id = text(row, name);
        if !id.is_empty() {
            let what = what.to_string();
            steps.push(TraceStep { id, text: what, ..TraceStep::default() });
        }
    }
    let commit = text(row, "commit_id");
    if !commit.is_empty() {
        let (url, path, line) = (text(row, "url"), text(row, "path"), text(row, "start_line"));
        let short: String = commit.chars().take(12).collect();
        let place = match url.starts_with("https://") {
            true => format!("{url}/blob/{commit}/{path}#L{line}"),
            false => String::new(),
        };
        steps.push(TraceStep {
            text: format!("commit {short} of {}, {path}, line {line}", text(row, "repo")),
            id: commit,
            url: place,
            ..TraceStep::default()
        });
    }
    steps
}
