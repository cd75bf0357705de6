//! A table, page by page. The rows of a page are found by a query over the columns of the filter and
//! the order, and only then read: however wide and long the table is, a page reads no more.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Field, UInt64Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use axum::extract::{Query, State};
use datafusion::dataframe::DataFrame;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::Expr;
use galeras_pages::model::{SortDirection, TableBlock, TableColumn};
use galeras_pages::view::{TablePage, TableTools, table_page};
use serde::Deserialize;
use serde_json::{Value, json};

use super::address::address;
use super::answer::{Answered, Refusal, html};
use super::served::Served;
use super::study::Snapshot;
use super::table_filter::{OPERATORS, condition};
use crate::cli::report::described;
use crate::operator::{is_virtual, plain_message};
use crate::plan::Input;
use crate::report::count;
use crate::session::{column, session, stored_rows};

/// Rows of a page.
const PAGE: u64 = 50;

/// Columns of a page.
const COLUMNS: usize = 60;

/// Characters of a text that a cell gets.
const CELL: usize = 120;

/// The position of a row in its table, from 0.
const POSITION: &str = "__position";

/// What a page of a table shows, as the address says it.
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

    /// The address of this page with another order.
    fn sorted(&self, sort: &str, descending: bool) -> String {
        let desc = if descending { "1" } else { "" };
        Self { sort: sort.into(), desc: desc.into(), ..self.clone() }.page(1)
    }

    /// The address of another page of these rows.
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

    fn is_filtered(&self) -> bool {
        !self.value.is_empty() || self.op == "null"
    }
}

pub(super) async fn table(
    State(served): State<Served>,
    Query(mut query): Query<TableQuery>,
) -> Answered {
    let snapshot = served.study.snapshot().await?;
    let input = snapshot
        .table(&query.name)
        .map_err(|why| Refusal::missing(why).run(served.study.command(&snapshot.plan)))?;
    let _reading = served.study.reading().await?;
    let schema = &input.schema.schema;
    if !query.sort.is_empty() && schema.field_with_name(&query.sort).is_err() {
        query.sort.clear();
    }
    let (filter, problem) = match condition(schema, &query.column, &query.op, &query.value) {
        Ok(filter) => (filter, String::new()),
        Err(problem) => (None, problem),
    };
    let asked = query.page.unwrap_or(1).max(1);
    let rows = Rows { served: &served, snapshot: &snapshot, input: &input, filter, query: &query };
    let total = rows.count().await.map_err(Refusal::failed)?;
    let pages = total.div_ceil(PAGE).max(1);
    let page = asked.min(pages);
    let (positions, batch) = rows.page((page - 1) * PAGE).await.map_err(Refusal::failed)?;
    let first = (page - 1) * PAGE;
    let place = match total {
        0 => "no rows".to_string(),
        _ => {
            let last = first + batch.num_rows() as u64;
            format!("rows {} to {} of {}", count(first + 1), count(last), count(total))
        }
    };
    let tools = TableTools {
        name: query.name.clone(),
        columns: schema
            .fields()
            .iter()
            .filter(|f| !f.data_type().is_nested())
            .map(|f| f.name().clone())
            .collect(),
        column: query.column.clone(),
        operators: OPERATORS
            .iter()
            .map(|(name, text)| (name.to_string(), text.to_string()))
            .collect(),
        operator: query.op.clone(),
        value: query.value.clone(),
        sort: query.sort.clone(),
        descending: query.descending(),
        place,
        problem,
        previous: if page > 1 { query.page(page - 1) } else { String::new() },
        next: if page < pages { query.page(page + 1) } else { String::new() },
        first: address("/table", &[("name", &query.name)]),
        last: if page < pages { query.page(pages) } else { String::new() },
        page,
    };
    let link =
        |position: &u64| address("/row", &[("name", &query.name), ("at", &position.to_string())]);
    let block = TableBlock {
        columns: batch
            .schema()
            .fields()
            .iter()
            .map(|field| heading(&query, &input, field))
            .collect(),
        rows: (0..batch.num_rows()).map(|row| values(&batch, row)).collect(),
        total: Some(batch.num_rows() as u64),
        file_name: query.name.replace(['.', '[', ']', '/'], "_"),
        row_links: positions.iter().map(link).collect(),
        ..TableBlock::default()
    };
    let page = TablePage { table: block, tools };
    Ok(html(table_page(&served.frame(&snapshot, ""), &page)?))
}

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

/// The rows of a table that a page may show.
struct Rows<'a> {
    served: &'a Served,
    snapshot: &'a Snapshot,
    input: &'a Input,
    filter: Option<Expr>,
    query: &'a TableQuery,
}

impl Rows<'_> {
    fn data(&self, jobs: usize) -> Result<DataFrame, String> {
        self.snapshot.data(&session(jobs), &self.served.study.store, self.input)
    }

    /// How many rows there are.
    async fn count(&self) -> Result<u64, String> {
        let all = self.snapshot.rows(self.input).unwrap_or(0);
        let Some(filter) = self.filter.clone().filter(|_| self.query.is_filtered()) else {
            return Ok(all);
        };
        let blob = self.snapshot.only_blob(self.input).map(|(blob, _)| blob.to_string());
        let key = blob.map(|blob| format!("{blob} {filter}"));
        if let Some(known) = key.as_ref().and_then(|key| self.served.study.known_count(key)) {
            return Ok(known);
        }
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let matching = self.data(jobs)?.filter(filter).map_err(|error| plain_message(&error))?;
        let found = matching.count().await.map_err(|error| plain_message(&error))? as u64;
        if let Some(key) = key {
            self.served.study.remember_count(key, found);
        }
        Ok(found)
    }

    /// The rows of a page that begins after so many, with their positions in the table if it is
    /// stored in one file.
    async fn page(&self, skip: u64) -> Result<(Vec<u64>, RecordBatch), String> {
        let failed = |error: datafusion::error::DataFusionError| plain_message(&error);
        let stored = self.snapshot.only_blob(self.input);
        let local = stored.and_then(|(blob, rows)| {
            let file = self.served.study.store.local_blob(&blob)?;
            file.is_file().then_some((file, rows))
        });
        let names = self.columns();
        let Some((file, rows)) = local else {
            // Several files, or none on this disk.
            let mut df = self.data(1)?;
            if let Some(filter) = &self.filter {
                df = df.filter(filter.clone()).map_err(failed)?;
            }
            let mut order = Vec::new();
            if !self.query.sort.is_empty() {
                order.push(column(&self.query.sort).sort(!self.query.descending(), false));
            }
            order.extend(self.input.schema.key.iter().map(|key| column(key).sort(true, true)));
            let page = df
                .select(names.iter().map(|name| column(name)).collect::<Vec<_>>())
                .and_then(|df| df.sort(order))
                .and_then(|df| df.limit(to_usize(skip), Some(to_usize(PAGE))))
                .map_err(failed)?;
            let schema = std::sync::Arc::new(page.schema().as_arrow().clone());
            let batches = page.collect().await.map_err(failed)?;
            let batch = arrow::compute::concat_batches(&schema, &batches);
            return Ok((Vec::new(), batch.map_err(|error| error.to_string())?));
        };
        let positions = match (&self.filter, self.query.sort.as_str()) {
            (None, "") => (skip..rows.min(skip + PAGE)).collect(),
            _ => self.positions(skip).await?,
        };
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let wanted = positions.clone();
        let names: Vec<String> = names.into_iter().map(str::to_string).collect();
        // Files are read on a thread that may wait.
        let batch = tokio::task::spawn_blocking(move || {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            stored_rows(&file, &wanted, &names)
        });
        let batch = batch.await.map_err(|error| error.to_string())?;
        Ok((positions, batch.map_err(|error| error.to_string())?))
    }

    /// The positions of the rows of a page. Only the columns of the filter and of the order are
    /// read; one thread goes over the file, so that rows can be counted.
    async fn positions(&self, skip: u64) -> Result<Vec<u64>, String> {
        let find = async {
            let mut df = self.numbered().map_err(|error| error.to_string())?;
            if let Some(filter) = &self.filter {
                df = df.filter(filter.clone()).map_err(|error| plain_message(&error))?;
            }
            let mut columns = vec![column(POSITION)];
            let mut order = Vec::new();
            if !self.query.sort.is_empty() {
                columns.push(column(&self.query.sort).alias("__sort"));
                order.push(column("__sort").sort(!self.query.descending(), false));
            }
            order.push(column(POSITION).sort(true, true));
            let page = df
                .select(columns)
                .and_then(|df| df.sort(order))
                .and_then(|df| df.limit(to_usize(skip), Some(to_usize(PAGE))))
                .map_err(|error| plain_message(&error))?;
            page.collect().await.map_err(|error| plain_message(&error))
        };
        let batches = find.await?;
        let positions = batches
            .iter()
            .flat_map(|batch| batch.column(0).as_primitive::<UInt64Type>().values().to_vec());
        Ok(positions.map(|number| number.saturating_sub(1)).collect())
    }

    /// The table with the numbers of its rows, from 1.
    fn numbered(&self) -> Result<DataFrame, String> {
        self.data(1)?
            .window(vec![row_number().alias(POSITION)])
            .map_err(|error| plain_message(&error))
    }

    /// The columns that a page shows: what tells rows apart, then what the step made, then the others.
    fn columns(&self) -> Vec<String> {
        let plan = &self.snapshot.plan;
        let mut names = super::super::data::columns_for_people(plan, self.input);
        if self.snapshot.only_blob(self.input).is_some() {
            names.retain(|name| self.input.schema.field(name).is_some_and(|f| !is_virtual(f)));
        }
        names.truncate(COLUMNS);
        names
    }
}

fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// The values of a row for a page: numbers as such, long texts cut.
pub(super) fn values(batch: &RecordBatch, row: usize) -> Vec<Value> {
    batch.columns().iter().map(|array| cut(value(array.as_ref(), row))).collect()
}

fn cut(value: Value) -> Value {
    match value {
        Value::String(text) => match text.char_indices().nth(CELL) {
            Some((end, _)) => Value::String(format!("{}…", &text[..end])),
            None => Value::String(text),
        },
        other => other,
    }
}

/// A value as JSON; lists and structs as a text.
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
