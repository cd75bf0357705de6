//! Data points: prompt, answer, reference, and origin.

use std::iter::once;

use arrow::datatypes::DataType;
use datafusion::dataframe::DataFrame;
use datafusion::logical_expr::{cast, lit};
use galeras_pages::model::{
    CodeLanguage, DataPoint, DataPointBlock, Labelled, ScoreValue, TraceStep,
};
use serde_json::Value;

use super::values::{JsonRow, number, order_words, rows, table, text, value};
use crate::Surveyed;
use galeras_base::id::ID;
use galeras_engine::plan::{Input, Plan, cell_columns};
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

/// The providers whose answers no model gave.
const BASELINES: &[&str] = &["echo", "reference"];

/// Who gave the answers in a table.
#[derive(Default)]
pub(super) struct Answerers {
    pub(super) are_models: bool,
    /// The names of baselines in the column `model`.
    baselines: Vec<String>,
}

impl Answerers {
    pub(super) fn of(plan: &Plan, input: &Input) -> Self {
        let tables: Vec<usize> = input.tables.iter().map(|table| table.step).collect();
        let mut found = Self::default();
        for at in plan.with_ancestors(&tables) {
            let step = &plan.steps[at];
            if step.operator.descriptor().name != "generate" {
                continue;
            }
            let args = step.step.args();
            let text = |name: &str| args.get(name).and_then(Value::as_str);
            match text("provider").filter(|provider| BASELINES.contains(provider)) {
                Some(provider) => {
                    found.baselines.push(text("model").unwrap_or(provider).to_string());
                }
                None => found.are_models = true,
            }
        }
        found
    }

    /// The rows with answers of models, if the table has others, too.
    fn of_models(&self, df: DataFrame) -> Result<DataFrame, RunError> {
        let names = self.baselines.iter().map(|name| lit(name.as_str())).collect();
        let model = cast(column("model"), DataType::Utf8);
        Ok(df.filter(model.in_list(names, true))?)
    }
}

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

/// Data points of a table: answers of models before others, the lowest and the highest by a score
/// where there are more than `limit`. Only these columns, if any are named.
pub(super) async fn points(
    surveyed: &Surveyed,
    name: &str,
    input: &Input,
    columns: &[String],
    limit: usize,
) -> Result<DataPointBlock, RunError> {
    let place = PointColumns::of(surveyed, input).unwrap_or_default();
    let mut df = table(surveyed, input)?;
    let answerers = Answerers::of(&surveyed.plan, input);
    let is_mixed = answerers.are_models
        && !answerers.baselines.is_empty()
        && input.schema.field("model").is_some();
    if is_mixed {
        df = answerers.of_models(df)?;
    }
    let all = surveyed.rows(input).unwrap_or(0);
    let is_shown = |name: &&String| columns.is_empty() || columns.contains(name);
    let score = place.scores.iter().find(is_shown).filter(|_| all > limit as u64);
    let key = &input.schema.key;
    let chosen: Vec<&String> = match columns {
        [] => Vec::new(),
        names => key.iter().chain(names.iter().filter(|name| !key.contains(name))).collect(),
    };
    let (rows, words) = match score {
        Some(score) => {
            let half = limit.div_ceil(2);
            let words = format!("the {half} lowest and {} highest by {score}", limit - half);
            (extremes(df, score, key, (half, limit - half), &chosen).await?, words)
        }
        None => (rows(selected(df.limit(0, Some(limit))?, &chosen)?).await?, order_words(input)),
    };
    let baselines = match is_mixed {
        true => format!(", without {}", answerers.baselines.join(", ")),
        false => String::new(),
    };
    let total = Some(all).filter(|total| *total > rows.len() as u64);
    Ok(DataPointBlock {
        points: rows.iter().map(|row| point(row, &place, columns, name)).collect(),
        choice: total.map(|_| words + &baselines).unwrap_or_default(),
        total,
        source: name.to_string(),
        ..DataPointBlock::default()
    })
}

/// These columns, or all if none are named.
fn selected(df: DataFrame, columns: &[&String]) -> Result<DataFrame, RunError> {
    match columns {
        [] => Ok(df),
        names => Ok(df.select(names.iter().map(|name| column(name)).collect::<Vec<_>>())?),
    }
}

/// So many rows with the lowest scores and with the highest, in the order of the score.
async fn extremes(
    df: DataFrame,
    score: &str,
    key: &[String],
    (lowest, highest): (usize, usize),
    columns: &[&String],
) -> Result<Vec<JsonRow>, RunError> {
    let order = |rising: bool| {
        let by_key = key.iter().map(|name| column(name).sort(rising, rising));
        once(column(score).sort(rising, !rising)).chain(by_key).collect::<Vec<_>>()
    };
    let low = df.clone().sort(order(true))?.limit(0, Some(lowest))?;
    let high = df.filter(column(score).is_not_null())?;
    let high = high.sort(order(false))?.limit(0, Some(highest))?;
    let mut all = rows(selected(low, columns)?).await?;
    let mut high = rows(selected(high, columns)?).await?;
    // A few rows are among both.
    high.retain(|row| !all.contains(row));
    all.extend(high.into_iter().rev());
    Ok(all)
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
