//! A table, page by page.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Field};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use axum::extract::{Query, State};
use galeras_pages::model::{SortDirection, TableBlock, TableColumn};
use galeras_pages::view::table_page;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{Answered, Served, address, html};
use super::table_filter::{OPERATORS, condition};
use super::table_rows::Rows;
use crate::report::described;
use galeras_display::count;
use galeras_engine::plan::Input;

/// The most characters shown of a text in a cell.
const CELL: usize = 120;

/// The part of a table that a page shows, from its address.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TableQuery {
    name: String,
    sort: String,
    desc: String,
    column: String,
    op: String,
    value: String,
    page: Option<u64>,
}

impl TableQuery {
    fn descending(&self) -> bool {
        !self.desc.is_empty()
    }

    fn sorted(&self, sort: &str, descending: bool) -> String {
        let desc = if descending { "1" } else { "" };
        Self { sort: sort.into(), desc: desc.into(), ..self.clone() }.page(1)
    }

    fn page(&self, page: u64) -> String {
        let number = if page > 1 { page.to_string() } else { String::new() };
        address(
            "/table",
            &[
                ("name", &self.name),
                ("sort", &self.sort),
                ("desc", &self.desc),
                ("column", &self.column),
                ("op", &self.op),
                ("value", &self.value),
                ("page", &number),
            ],
        )
    }
}

pub(super) async fn table(
    State(served): State<Served>,
    Query(mut query): Query<TableQuery>,
) -> Answered {
    let (snapshot, input) = served.table(&query.name).await?;
    let _reading = served.study.reading().await?;
    let schema = &input.schema.schema;
    if !query.sort.is_empty() && schema.field_with_name(&query.sort).is_err() {
        query.sort.clear();
    }
    let (filter, problem) = match condition(schema, &query.column, &query.op, &query.value) {
        Ok(filter) => (filter, String::new()),
        Err(problem) => (None, problem),
    };
    let asked = query.page.unwrap_or(1);
    let (sort, descending) = (query.sort.as_str(), query.descending());
    let (served, snapshot, input) = (&served, snapshot.as_ref(), &input);
    let rows = Rows { served, snapshot, input, filter, sort, descending };
    let found = rows.page(asked).await?;
    let (page, pages, batch) = (found.page, found.pages, &found.batch);
    let (first, total) = (found.first, found.total);
    let place = match total {
        0 => "no rows".to_string(),
        _ => {
            let last = first + batch.num_rows() as u64;
            format!("rows {} to {} of {}", count(first + 1), count(last), count(total))
        }
    };
    let flat = schema.fields().iter().filter(|field| !field.data_type().is_nested());
    let columns: Vec<&str> = flat.map(|field| field.name().as_str()).collect();
    let at = |number: u64, there: bool| if there { query.page(number) } else { String::new() };
    let first_page = address("/table", &[("name", &query.name)]);
    let tools = json!({"name": query.name, "columns": columns, "column": query.column,
        "operators": OPERATORS, "operator": query.op, "value": query.value, "sort": query.sort,
        "descending": query.descending(), "place": place, "problem": problem,
        "previous": at(page.saturating_sub(1), page > 1), "next": at(page + 1, page < pages),
        "first": first_page, "last": at(pages, page < pages)});
    let link =
        |position: &u64| address("/row", &[("name", &query.name), ("at", &position.to_string())]);
    let block = TableBlock {
        columns: batch
            .schema()
            .fields()
            .iter()
            .map(|field| heading(&query, input, field))
            .collect(),
        rows: (0..batch.num_rows()).map(|row| values(batch, row)).collect(),
        total: Some(batch.num_rows() as u64),
        file_name: query.name.replace(['.', '[', ']', '/'], "_"),
        row_links: found.positions.iter().map(link).collect(),
        ..TableBlock::default()
    };
    Ok(html(table_page(&served.frame(snapshot, ""), &query.name, &block, &tools)?))
}

/// The beginning of a picture.
pub(super) const SVG_START: &str = "<svg ";

fn heading(query: &TableQuery, input: &Input, field: &Field) -> TableColumn {
    let name = field.name().as_str();
    let by_this = query.sort == name;
    TableColumn {
        sort_link: (!field.data_type().is_nested())
            .then(|| query.sorted(name, by_this && !query.descending())),
        sorted: by_this.then_some(match query.descending() {
            true => SortDirection::Descending,
            false => SortDirection::Ascending,
        }),
        ..described(input.schema.field(name).map_or(field, AsRef::as_ref))
    }
}

/// The values of a row for a page: numbers, and shortened texts.
pub(super) fn values(batch: &RecordBatch, row: usize) -> Vec<Value> {
    batch.columns().iter().map(|array| cut(value(array.as_ref(), row))).collect()
}

fn cut(value: Value) -> Value {
    match value {
        // The page of the row shows it.
        Value::String(text) if text.starts_with(SVG_START) => json!("picture"),
        Value::String(text) => match text.char_indices().nth(CELL) {
            Some((end, _)) => Value::String(format!("{}…", &text[..end])),
            None => Value::String(text),
        },
        other => other,
    }
}

pub(super) fn value(array: &dyn Array, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    match array.data_type() {
        DataType::Utf8 => json!(array.as_string::<i32>().value(row)),
        DataType::Boolean => json!(array.as_boolean().value(row)),
        kind => {
            let options = FormatOptions::default();
            let text = ArrayFormatter::try_new(array, &options)
                .map(|formatter| formatter.value(row).to_string())
                .unwrap_or_default();
            match kind.is_numeric() {
                true => serde_json::from_str(&text).unwrap_or(Value::String(text)),
                false => Value::String(text),
            }
        }
    }
}
