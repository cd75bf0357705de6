//! One row: its columns, highlighted code, answer and reference side by side, and its origin.

use arrow::array::RecordBatch;
use axum::extract::{Query, State};
use datafusion::logical_expr::{cast, lit};
use galeras_pages::PageLink;
use galeras_pages::model::{CodeLanguage, FigureBlock, Labelled};
use galeras_pages::view::{RowParts, RowText, row_page};
use serde::Deserialize;
use serde_json::Value;

use super::answer::{Answered, Refusal, Served, address, html};
use super::indexes::{blocking, opened};
use super::study::Snapshot;
use super::table::{SVG_START, value};
use crate::table_name;
use galeras_base::id::ID;
use galeras_engine::plan::{Input, TableRef};
use galeras_engine::runner::RunError;
use galeras_sql::session::{column, session, stored_rows};

#[derive(Deserialize)]
pub(super) struct RowQuery {
    name: String,
    #[serde(default)]
    id: String,
    at: Option<u64>,
}

/// A text of this many characters, or with a line break, has its own box.
const LONG: usize = 120;

const PYTHON: [&str; 9] = [
    "code",
    "code_before",
    "code_no_docstring",
    "cut_rest",
    "prediction",
    "random_cut",
    "reference",
    "signature",
    "test_code",
];

/// Columns shown next to each other: before and after.
const PAIRS: [(&str, &str); 3] =
    [("reference", "prediction"), ("cut_rest", "prediction"), ("code_before", "code")];

/// Columns with the id of a row that this one was made from.
const PARENTS: [&str; 2] = ["prompt_id", "snippet_id"];

pub(super) async fn row(State(served): State<Served>, Query(query): Query<RowQuery>) -> Answered {
    let (snapshot, input) = served.table(&query.name).await?;
    let _reading = served.study.reading().await?;
    let found = match query.at {
        Some(at) => by_position(&snapshot, &input, at).await,
        None => by_id(&snapshot, &input, &query.id).await,
    };
    let Some(values) = found? else {
        let why = "The table has no such row; it may have been computed again.";
        return Err(Refusal::missing(why));
    };
    let mut parts = row_parts(&values);
    let address = address("/table", &[("name", &query.name)]);
    let text = format!("Table {}", query.name);
    parts.links.insert(0, PageLink { address, text, current: false });
    parts.trace = trace(&snapshot, &input, &values).await?;
    Ok(html(row_page(&served.frame(&snapshot, ""), &parts)?))
}

pub(super) type RowValues = Vec<(String, Value)>;

async fn by_position(
    snapshot: &Snapshot,
    input: &Input,
    at: u64,
) -> Result<Option<RowValues>, RunError> {
    let Some((blob, _)) = snapshot.local_blob(input).filter(|(_, rows)| at < *rows) else {
        return Ok(None);
    };
    let store = snapshot.surveyed.store.clone();
    let names: Vec<String> = input.schema.names().map(str::to_string).collect();
    let batch = blocking(move || {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Ok(stored_rows(&opened(&store, &blob)?, &[at], &names)?)
    });
    Ok(Some(of_batch(&batch.await?)))
}

/// The row with this id; the first one if there are several.
pub(super) async fn by_id(
    snapshot: &Snapshot,
    input: &Input,
    id: &str,
) -> Result<Option<RowValues>, RunError> {
    let Some(field) = input.schema.field(ID) else { return Ok(None) };
    let data = snapshot.surveyed.open(&session(1), input)?;
    // Without a cast around the column, the file's statistics can exclude row groups.
    let this = match field.data_type() {
        arrow::datatypes::DataType::Utf8 => column(ID),
        _ => cast(column(ID), arrow::datatypes::DataType::Utf8),
    };
    let found =
        data.filter(this.eq(lit(id))).and_then(|df| df.limit(0, Some(1)))?.collect().await?;
    Ok(found.iter().find(|batch| batch.num_rows() > 0).map(of_batch))
}

fn of_batch(batch: &RecordBatch) -> RowValues {
    let schema = batch.schema();
    let names = schema.fields().iter().map(|field| field.name().clone());
    names.zip(batch.columns().iter().map(|array| value(array.as_ref(), 0))).collect()
}

pub(super) fn text<'a>(values: &'a RowValues, name: &str) -> Option<&'a str> {
    let value = values.iter().find(|(column, _)| column == name).map(|(_, value)| value)?;
    value.as_str().filter(|text| !text.is_empty())
}

pub(super) fn row_parts(values: &RowValues) -> RowParts {
    let mut parts = RowParts { title: title(values), ..RowParts::default() };
    parts.links.extend(commit_link(values));
    let mut placed: Vec<&str> = Vec::new();
    let labelled = |name: &str, text: &str| Labelled { name: name.into(), value: text.into() };
    for (old, new) in PAIRS {
        if placed.contains(&new) || placed.contains(&old) {
            continue;
        }
        if let (Some(was), Some(is)) = (text(values, old), text(values, new)) {
            placed.extend([old, new]);
            parts.texts.push(RowText {
                text: labelled(old, was),
                other: Some(labelled(new, is)),
                language: CodeLanguage::Python,
            });
        }
    }
    let long = |text: &str| text.contains('\n') || text.chars().nth(LONG).is_some();
    let mut texts: Vec<(&str, &str)> = Vec::new();
    for (name, value) in values.iter().filter(|(name, _)| !placed.contains(&name.as_str())) {
        match value {
            Value::String(picture) if picture.starts_with(SVG_START) => {
                let of = |name: &str| text(values, name).unwrap_or_default().to_string();
                parts.pictures.push(FigureBlock {
                    svg: picture.clone(),
                    caption: of("caption"),
                    alt: of("alt"),
                    ..FigureBlock::default()
                });
            }
            Value::String(text) if long(text) => texts.push((name, text)),
            Value::String(text) => parts.facts.push(labelled(name, text)),
            Value::Null => parts.facts.push(labelled(name, "–")),
            other => parts.facts.push(labelled(name, &other.to_string())),
        }
    }
    // Code comes first, since users look for it.
    texts.sort_by_key(|(name, _)| PYTHON.iter().position(|known| known == name).unwrap_or(99));
    parts.texts.extend(texts.into_iter().map(|(name, text)| RowText {
        text: labelled(name, text),
        other: None,
        language: if PYTHON.contains(&name) { CodeLanguage::Python } else { CodeLanguage::Plain },
    }));
    parts
}

fn title(values: &RowValues) -> String {
    let name = text(values, "qualified_name").or_else(|| text(values, "fun_name"));
    match (text(values, "path"), name, text(values, "id")) {
        (Some(path), Some(name), _) => format!("{path}: {name}"),
        (_, Some(name), _) => name.to_string(),
        (_, _, Some(id)) => id.to_string(),
        _ => "Row".to_string(),
    }
}

/// A link to the lines of the commit, if the table has them.
fn commit_link(values: &RowValues) -> Option<PageLink> {
    let url = text(values, "url")
        .filter(|url| url.starts_with("https://") || url.starts_with("http://"))?;
    let url = url.trim_end_matches('/').trim_end_matches(".git");
    let commit = text(values, "commit_id")?;
    if !commit.chars().all(|c| c.is_ascii_hexdigit()) {
        return None;
    }
    let line = |name: &str| values.iter().find(|(column, _)| column == name)?.1.as_u64();
    let lines = match (line("start_line"), line("end_line")) {
        (Some(start), Some(end)) => format!("#L{start}-L{end}"),
        _ => String::new(),
    };
    let address = match text(values, "path") {
        Some(path) => {
            let path: Vec<String> = path.split('/').map(encoded).collect();
            format!("{url}/blob/{commit}/{}{lines}", path.join("/"))
        }
        None => format!("{url}/commit/{commit}"),
    };
    Some(PageLink { address, text: format!("Commit {}", commit.get(..10)?), current: false })
}

/// Encodes a name for the path of an address.
fn encoded(name: &str) -> String {
    url::form_urlencoded::byte_serialize(name.as_bytes()).collect::<String>().replace('+', "%20")
}

/// The tables that contain the row, or a row it was made from, among the steps that lead here.
async fn trace(
    snapshot: &Snapshot,
    input: &Input,
    values: &RowValues,
) -> Result<Vec<PageLink>, RunError> {
    let steps: Vec<usize> = input.tables.iter().map(|table| table.step).collect();
    let ids: Vec<(&str, &str)> = std::iter::once(ID)
        .chain(PARENTS)
        .filter_map(|name| Some((name, text(values, name)?)))
        .collect();
    let mut links = Vec::new();
    for at in snapshot.surveyed.plan.with_ancestors(&steps) {
        let step = &snapshot.surveyed.plan.steps[at];
        if snapshot.surveyed.states[at].manifest.is_none() {
            continue;
        }
        for port in step.step.ports().iter().filter(|port| port.table.field(ID).is_some()) {
            let table = TableRef { step: at, port: port.name, cell: Vec::new() };
            let one = Input {
                port: String::new(),
                tables: vec![table],
                united: false,
                schema: port.table.clone(),
            };
            for (column, id) in &ids {
                let Some(found) = by_id(snapshot, &one, id).await? else { continue };
                let name = table_name(&step.name, port.name);
                let mut words = name.clone();
                if *column != ID {
                    words.push_str(&format!(" ({column})"));
                }
                if let (Some(rule), Some(reason)) = (text(&found, "rule"), text(&found, "reason")) {
                    words.push_str(&format!(": rejected by {rule}, {reason}"));
                }
                let address = address("/row", &[("name", &name), ("id", id)]);
                links.push(PageLink { address, text: words, current: false });
                break;
            }
        }
    }
    Ok(links)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn values(of: &[(&str, Value)]) -> RowValues {
        of.iter().map(|(name, value)| (name.to_string(), value.clone())).collect()
    }

    #[test]
    fn a_commit_is_linked_by_its_lines_and_nothing_else_is() {
        let row = |url: &str, commit: &str| {
            values(&[
                ("url", json!(url)),
                ("commit_id", json!(commit)),
                ("path", json!("a b/c#d.py")),
                ("start_line", json!(3)),
                ("end_line", json!(9)),
            ])
        };
        let commit = "0123456789abcdef";
        let link = commit_link(&row("https://example.org/o/r.git", commit));
        let address = link.map(|link| link.address);
        let expected = "https://example.org/o/r/blob/0123456789abcdef/a%20b/c%23d.py#L3-L9";
        assert_eq!(address.as_deref(), Some(expected));
        for (url, commit) in [
            ("javascript:alert(1)", commit),
            ("/tmp/clone", commit),
            ("https://example.org/o/r", "\"><script>x"),
        ] {
            assert!(commit_link(&row(url, commit)).is_none(), "{url} {commit}");
        }
    }

    #[test]
    fn answers_stand_beside_references_and_code_before_other_texts() {
        let parts = row_parts(&values(&[
            ("id", json!("x")),
            ("message", json!("a\nb")),
            ("prediction", json!("return 1")),
            ("reference", json!("return 2")),
            ("code", json!("def f():\n    return 2")),
            ("n", json!(3)),
            ("none", Value::Null),
            ("svg", json!("<svg xmlns=\"http://www.w3.org/2000/svg\"/>")),
        ]));
        assert_eq!(parts.pictures.len(), 1);
        let names: Vec<&str> = parts.texts.iter().map(|text| text.text.name.as_str()).collect();
        assert_eq!(names, ["reference", "code", "message"]);
        assert_eq!(
            parts.texts[0].other.as_ref().map(|text| text.name.as_str()),
            Some("prediction")
        );
        assert_eq!(parts.facts.len(), 3);
    }
}
