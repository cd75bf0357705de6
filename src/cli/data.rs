//! `show`, `sql` and `path`: the rows of results, statistics and plots of them, and their files.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Schema, SchemaRef};
use clap::Args;
use datafusion::catalog::{MemorySchemaProvider, SchemaProvider};
use datafusion::dataframe::DataFrame;
use datafusion::error::DataFusionError;
use datafusion::execution::context::{SQLOptions, SessionContext};
use datafusion::functions::expr_fn::concat_ws;
use datafusion::logical_expr::{Expr, cast, lit};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::Statement as SqlStatement;
use serde_json::{Map, Value, json};

use super::context::{
    Exit, Failure, LookArgs, Surveyed, check_not_read, fail, fail_unknown, failed, load, look,
    named_step, print, print_json, width, with_help,
};
use super::rows::{ALL_ROWS, OutArgs, RowFormat, TableRows, row_limit, write_rows, write_text};
use super::trace::{id_begins_with, id_is, key_is};
use super::{Format, WorkflowArgs, screen};
use galeras_base::id::ID;
use galeras_base::terminal_escape::{escape, escape_json, shell_word};
use galeras_display::{ColumnSummary, TableStyle, TableSummary, count, number, write_records};
use galeras_engine::plan::{Input, Plan, TableRef, cell_columns};
use galeras_engine::runner::{StepManifests, open};
use galeras_figures::{Kind, Spec, terminal};
use galeras_operator::table_digest::type_name;
use galeras_operator::{TableSchema, plain_message};
use galeras_sql::session::{
    FigureColumn, SqlText, check_query, column, dropped_group_columns, explain, figure_data,
    parse_row_expr, session, sorted_by_key,
};
use galeras_store::Store;
use galeras_study::report::{one_value, text_of};
use galeras_study::{by_importance, columns_for_people};

#[derive(Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    look: LookArgs,
    /// The table: `valid`, `valid.rejects`, a cell of a matrix `gen[seed=1]`, all cells `gen[*]`,
    /// the output of an embedded workflow `collected.methods`.
    #[arg(value_name = "STEP[.PORT]")]
    step: Option<String>,
    /// The number of rows, or `all` (default: 10 for a table, all for other formats).
    #[arg(long, value_name = "N", value_parser = row_limit)]
    rows: Option<usize>,
    /// The columns, separated by commas.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    columns: Vec<String>,
    /// A condition in SQL over the columns.
    #[arg(long = "where", value_name = "SQL")]
    condition: Option<String>,
    /// Print the row with this id, this beginning of its id, or this value of its key, in full.
    #[arg(long, value_name = "ID", conflicts_with_all = ["stats", "plot", "rows"])]
    row: Option<String>,
    /// Describe each column instead: type, nulls, distinct values; minimum, quartiles, maximum and
    /// mean of its numbers, or of the lengths of its texts and lists.
    #[arg(long)]
    stats: bool,
    /// Draw it: estimates with their intervals, or the distribution of the column of numbers that
    /// `--columns` names (with one of texts: by its values).
    #[arg(long, conflicts_with_all = ["stats", "rows", "format", "output"])]
    plot: bool,
    #[command(flatten)]
    out: OutArgs,
}

#[derive(Args)]
pub(crate) struct SqlArgs {
    #[command(flatten)]
    look: LookArgs,
    /// The query. Every step is a table, and its ports are `step.port`; names with more than small
    /// letters, digits and `_` are written in double quotes: "testbed[*]", "gen[seed=1].rejects".
    query: String,
    #[command(flatten)]
    out: OutArgs,
}

pub(crate) async fn show(args: ShowArgs) -> Result<Exit, Failure> {
    args.out.check()?;
    let surveyed = look(&args.look, Format::Human).await?;
    if let Some(path) = &args.out.output {
        check_not_read(&surveyed.plan, path)?;
    }
    let step = named_step(&surveyed.plan, args.step.as_deref())?;
    let input = surveyed.computed_table(step)?;
    let session = session(1);
    let wanted = match &args.row {
        Some(id) => Some(row_filter(&surveyed, &session, &input, step, id).await?),
        None => None,
    };
    let opened = |part: &Input| {
        let mut df = surveyed.open(&session, part).map_err(failed)?;
        if let Some(wanted) = &wanted {
            df = df.filter(wanted.clone()).map_err(invalid)?;
        }
        chosen(&session, df, &args, &surveyed.plan, &input)
    };
    if args.plot {
        return show_plot(opened(&input)?, &input.schema, &args.columns).await;
    }
    // Cells are shown one after the other.
    let cell = |table: &TableRef| opened(&Input { tables: vec![table.clone()], ..input.clone() });
    let tables = input.tables.iter().map(cell).collect::<Result<Vec<_>, _>>()?;
    let people = args.out.format() == RowFormat::Table && !args.stats;
    let limit = args.rows.or(people.then_some(ROWS)).filter(|rows| *rows != ALL_ROWS);
    let mut rows = TableRows::new(tables, limit);
    if args.stats {
        return show_stats(rows, &args.out).await;
    }
    if people && args.row.is_some() {
        let mut batches = Vec::new();
        while let Some(batch) = rows.next().await.map_err(|e| failed(plain_message(&e)))? {
            batches.push(batch);
        }
        let mut text = Vec::new();
        write_records(&mut text, &batches).map_err(failed)?;
        return write_text(&String::from_utf8_lossy(&text), &args.out);
    }
    let columns_hint = args.columns.is_empty().then_some("use --columns");
    let style = TableStyle { short_ids: true, columns_hint, ..TableStyle::default() };
    write_rows(rows, &args.out, style).await?;
    let all = surveyed.rows(&input).filter(|_| args.condition.is_none()).unwrap_or(0);
    let more = all.saturating_sub(limit.unwrap_or(usize::MAX) as u64);
    if people && args.out.output.is_none() && more > 0 {
        print(&format!("… {} more of {} rows (use --rows)\n", count(more), count(all)))?;
    }
    Ok(Exit::Done)
}

/// The condition that chooses rows by their id: this one, or else those that begin with it, or that
/// have this key.
async fn row_filter(
    surveyed: &Surveyed,
    session: &SessionContext,
    input: &Input,
    step: &str,
    id: &str,
) -> Result<Expr, Failure> {
    if input.schema.field(ID).is_none() {
        let message = format!("`{step}` has no column `id`; choose rows with --where");
        return Err(fail(message, Exit::Invalid));
    }
    if id.is_empty() {
        return Err(fail("--row: the id is empty; its beginning is enough", Exit::Invalid));
    }
    let planned = input.tables.first().map(|table| &surveyed.plan.steps[table.step]);
    let by_key = planned.and_then(|planned| key_is(planned, &input.schema, id));
    for wanted in [id_is(id), id_begins_with(id)].into_iter().chain(by_key) {
        let df = surveyed.open(session, input).map_err(failed)?;
        let found = df.filter(wanted.clone()).map_err(invalid)?.count().await;
        if found.map_err(|error| failed(plain_message(&error)))? > 0 {
            return Ok(wanted);
        }
    }
    let message = format!("`{step}` has no row with the id {id}; `galeras trace` finds its steps");
    Err(failed(message))
}

const ROWS: usize = 10;

/// Rows of an output that are printed at the end of a run.
const SHOWN_ROWS: usize = 100;

/// Prints the outputs marked `show`, from a run's results.
pub(super) async fn show_outputs(
    plan: &Plan,
    store: &Store,
    results: &StepManifests,
) -> Result<Exit, Failure> {
    let reading = store.reading_lock().await;
    let _reading = reading.map_err(|error| fail(error.to_string(), Exit::Disk))?;
    for output in plan.outputs.iter().filter(|output| output.show) {
        let session = session(1);
        let first = open(&session, store, plan, &output.input, results).and_then(|df| {
            let df = sorted_by_key(df, &output.input.schema.key)?.limit(0, Some(SHOWN_ROWS))?;
            let schema = df.schema().as_arrow().clone();
            let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
            let order = by_importance(plan, &output.input, &names);
            Ok(df.select(order.into_iter().map(column).collect::<Vec<_>>())?)
        });
        // Stored results record their row counts.
        let stored = output.input.tables.iter().filter_map(|table| {
            let result = results.get(table.step)?.as_ref()?;
            result.port(table.port).map(|port| port.rows)
        });
        let rows: u64 = stored.sum();
        let first = first.map_err(failed)?;
        let path = escape(&output.path.display().to_string());
        print(&format!("\n{} ({path})\n", output.name))?;
        let out = OutArgs { format: Some(RowFormat::Table), output: None };
        let style = TableStyle { columns_hint: Some("in the file"), ..TableStyle::default() };
        write_rows(TableRows::new(vec![first], None), &out, style).await?;
        let more = rows.saturating_sub(SHOWN_ROWS as u64);
        if more > 0 {
            print(&format!("… {} more of {} rows\n", count(more), count(rows)))?;
        }
    }
    Ok(Exit::Done)
}

fn chosen(
    session: &SessionContext,
    mut df: DataFrame,
    args: &ShowArgs,
    plan: &Plan,
    input: &Input,
) -> Result<DataFrame, Failure> {
    let schema: SchemaRef = Arc::new(df.schema().as_arrow().clone());
    if let Some(condition) = &args.condition {
        let expr = parse_row_expr(session, &schema, condition, "").map_err(|error| {
            let help = error.help.or_else(|| other_clause(condition).map(str::to_string));
            fail(format!("--where: {}", with_help(error.message, help)), Exit::Invalid)
        })?;
        if expr.data_type != DataType::Boolean {
            let message = format!(
                "--where is true or false, but this has type {}; compare the value, as in \
                 `nloc > 1`",
                type_name(&expr.data_type)
            );
            return Err(fail(message, Exit::Invalid));
        }
        df = df.filter(expr.expr).map_err(invalid)?;
    }
    let known: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    if let Some(name) = args.columns.iter().find(|name| !known.contains(&name.as_str())) {
        let message = format!("there is no column `{name}`");
        return Err(fail_unknown(&message, name, known, "the columns are"));
    }
    let columns = match args.columns.as_slice() {
        [] if args.out.format() == RowFormat::Table && !args.stats => {
            columns_for_people(plan, input)
        }
        [] => return Ok(df),
        columns => columns.to_vec(),
    };
    df.select(columns.iter().map(|name| column(name)).collect::<Vec<_>>()).map_err(invalid)
}

/// The help if a condition has another part of a query in it.
fn other_clause(condition: &str) -> Option<&'static str> {
    let mut words = condition.split_whitespace().map(str::to_uppercase);
    if words.next()? == "WHERE" {
        return Some("leave out the word WHERE");
    }
    let is_other = |word: String| matches!(word.as_str(), "ORDER" | "LIMIT" | "GROUP" | "SELECT");
    words.any(is_other).then_some("give a condition only; `galeras sql` takes a whole query")
}

fn invalid(error: DataFusionError) -> Failure {
    fail(plain_message(&error), Exit::Invalid)
}

pub(crate) async fn sql(args: SqlArgs) -> Result<Exit, Failure> {
    args.out.check()?;
    let surveyed = look(&args.look, Format::Human).await?;
    if let Some(path) = &args.out.output {
        check_not_read(&surveyed.plan, path)?;
    }
    check_query(&args.query, "")
        .map_err(|error| fail(with_help(error.message, error.help), Exit::Invalid))?;
    let session = session(std::thread::available_parallelism().map_or(1, usize::from));
    register(&session, &surveyed, &args.query)?;
    let options =
        SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    let df = session.sql_with_options(&args.query, options).await.map_err(|error| {
        let sql = &args.query;
        let text = SqlText { sql, path: "", session: &session, columns: &[], tables: &[] };
        let error = explain(&error, &text);
        fail(with_help(error.message, error.help), Exit::Invalid)
    })?;
    if dropped_group_columns(df.logical_plan()).is_ok_and(|dropped| !dropped.is_empty()) {
        let message = "the query groups rows that `unnest` made of groups, which would give wrong \
                       groups; unnest in a step of the workflow, and query that";
        return Err(fail(message, Exit::Invalid));
    }
    let style = TableStyle { columns_hint: Some("name fewer in SELECT"), ..TableStyle::default() };
    write_rows(TableRows::new(vec![df], None), &args.out, style).await
}

fn register(session: &SessionContext, surveyed: &Surveyed, query: &str) -> Result<(), Failure> {
    let state = session.state();
    let dialect = state.config_options().sql_parser.dialect;
    let statement = state.sql_to_statement(query, &dialect).map_err(|error| {
        if Path::new(query).is_file() {
            let word = shell_word(query);
            let message =
                format!("the query is the name of a file; pass its text: \"$(cat {word})\"");
            return fail(message, Exit::Invalid);
        }
        let text = SqlText { sql: query, path: "", session, columns: &[], tables: &[] };
        let error = explain(&error, &text);
        let cells = unquoted_cells(query).map(|name| {
            format!("a table whose name has brackets is written in double quotes: \"{name}\"")
        });
        fail(with_help(error.message, cells.or(error.help)), Exit::Invalid)
    })?;
    let is_query = match &statement {
        Statement::Statement(inner) => matches!(**inner, SqlStatement::Query(_)),
        other => matches!(other, Statement::Explain(_)),
    };
    if !is_query {
        let message = "results can be read but not changed; write a query that begins with SELECT or \
                       WITH";
        return Err(fail(message, Exit::Invalid));
    }
    let references = state.resolve_table_references(&statement).map_err(invalid)?;
    for reference in references {
        let name = match reference.schema() {
            Some(schema) => format!("{schema}.{}", reference.table()),
            None => reference.table().to_string(),
        };
        let input = surveyed.computed_table(&name)?;
        let df = surveyed.open(session, &input).map_err(failed)?;
        let catalog = session.catalog("datafusion");
        match (reference.schema(), catalog) {
            (Some(schema), Some(catalog)) => {
                let tables = match catalog.schema(schema) {
                    Some(tables) => tables,
                    None => {
                        let tables: Arc<dyn SchemaProvider> = Arc::new(MemorySchemaProvider::new());
                        catalog.register_schema(schema, Arc::clone(&tables)).map_err(invalid)?;
                        tables
                    }
                };
                let table = reference.table().to_string();
                tables.register_table(table, df.into_view()).map_err(invalid)?;
            }
            _ => {
                session.register_table(reference, df.into_view()).map_err(invalid)?;
            }
        }
    }
    Ok(())
}

/// The first name with cells (`gen[*]`, `gen[seed=1].rejects`) that is not quoted in a query, where
/// SQL does not accept it. An element of a list (`tags[1]`) is not such a name.
fn unquoted_cells(query: &str) -> Option<String> {
    let in_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    // Text within either kind of quotes is at the odd positions.
    query.split(['"', '\'']).step_by(2).find_map(|text| {
        text.match_indices('[').find_map(|(open, _)| {
            let close = open + text[open..].find(']')?;
            let cells = &text[open + 1..close];
            let start = text[..open]
                .rfind(|c| !in_name(c))
                .map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
            let rest = &text[close + 1..];
            let end = rest.find(|c| !in_name(c)).unwrap_or(rest.len());
            let is_name = start < open && (cells.trim() == "*" || cells.contains('='));
            is_name.then(|| format!("{}{}", &text[start..=close], &rest[..end]))
        })
    })
}

#[derive(Args)]
pub(crate) struct PathArgs {
    #[command(flatten)]
    workflow: WorkflowArgs,
    /// The table, as `show` takes it; of several cells (`gen[*]`), a file each.
    #[arg(value_name = "STEP[.PORT]")]
    step: Option<String>,
    /// How to answer.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) async fn path(args: PathArgs) -> Result<Exit, Failure> {
    use std::os::unix::ffi::OsStringExt as _;
    let surveyed = load(&args.workflow, args.format).await?;
    let step = named_step(&surveyed.plan, args.step.as_deref())?;
    for table in &surveyed.computed_table(step)?.tables {
        let missing = || failed(format!("`{step}` has no stored table"));
        let stored = surveyed.stored(table.step, table.port).ok_or_else(missing)?;
        let place = match surveyed.store.local_blob(&stored.blob) {
            Some(file) => std::path::absolute(&file).unwrap_or(file).into_os_string().into_vec(),
            None => {
                let (base, path) = (surveyed.store.url(), surveyed.store.blob_path(&stored.blob));
                format!("{}/{path}", base.as_str().trim_end_matches('/')).into_bytes()
            }
        };
        if args.format == Format::Human {
            // For `$(galeras path …)`: unescaped, since a folder's name may contain any bytes.
            let line = [place.as_slice(), b"\n"].concat();
            screen::write_out(&mut screen::data_stdout(), &line)?;
            continue;
        }
        let cell = cell_columns(&table.cell).map(|(name, value)| (name.to_owned(), value.clone()));
        let cell: Map<String, Value> = cell.collect();
        print_json(&json!({
            "event": "path", "step": surveyed.plan.steps[table.step].name, "port": table.port,
            "cell": cell, "path": String::from_utf8_lossy(&place),
            "rows": stored.rows, "bytes": stored.bytes, "digest": stored.digest, "key": stored.key,
        }))?;
    }
    Ok(Exit::Done)
}

const NUMBERS: &[&str] = &["rows", "nulls", "distinct", "min", "q1", "median", "q3", "max", "mean"];

/// Reads the rows once and writes statistics of their columns.
async fn show_stats(mut rows: TableRows, out: &OutArgs) -> Result<Exit, Failure> {
    if matches!(out.format(), RowFormat::Parquet | RowFormat::Arrow) {
        return Err(fail("--stats is written as a table, json or csv", Exit::Invalid));
    }
    let broken = |error: DataFusionError| failed(plain_message(&error));
    let mut summary = TableSummary::new(&rows.schema);
    while let Some(batch) = rows.next().await.map_err(broken)? {
        summary.add(&batch).map_err(|error| broken(error.into()))?;
    }
    let columns = summary.finish();
    if out.format() == RowFormat::Json {
        let line = |column| format!("{}\n", escape_json(as_json(column).to_string()));
        return write_text(&columns.iter().map(line).collect::<String>(), out);
    }
    let table = as_table(&columns, out.format() == RowFormat::Table).map_err(failed)?;
    let table = session(1).read_batch(table).map_err(broken)?;
    let style = TableStyle { numeric: NUMBERS, ..TableStyle::default() };
    write_rows(TableRows::new(vec![table], None), out, style).await
}

/// A column's summary as an object; numbers are numbers, points in time are texts.
fn as_json(column: &ColumnSummary) -> Value {
    let mut out = Map::new();
    let mut put = |name: &str, value: Value| out.insert(name.to_string(), value);
    put("column", json!(column.name));
    put("type", json!(column.data_type));
    put("rows", json!(column.rows));
    put("nulls", json!(column.nulls));
    put("distinct", json!(column.distinct.map(|d| d.values)));
    put("distinct_exact", json!(column.distinct.map(|d| d.exact)));
    put("of", json!(column.measured.word()));
    let extremes = column.extremes.as_ref();
    put("min", extremes.map_or(Value::Null, |(least, _)| one_value(least)));
    for (at, name) in ["q1", "median", "q3"].into_iter().enumerate() {
        put(name, json!(column.quartiles.map(|q| q.values[at])));
    }
    put("max", extremes.map_or(Value::Null, |(_, most)| one_value(most)));
    put("mean", json!(column.mean));
    put("quartiles_exact", json!(column.quartiles.map(|q| q.exact)));
    Value::Object(out)
}

/// The summaries as a table of texts; for people, numbers are short and estimates have a `~`.
fn as_table(
    columns: &[ColumnSummary],
    people: bool,
) -> Result<RecordBatch, arrow::error::ArrowError> {
    let shown = |value: f64| if people { number(value) } else { value.to_string() };
    let whole = |n: u64| if people { count(n) } else { n.to_string() };
    let about = |exact: bool| if people && !exact { "~" } else { "" };
    let quartile = |at: usize| {
        move |c: &ColumnSummary| {
            c.quartiles.map(|q| format!("{}{}", about(q.exact), shown(q.values[at])))
        }
    };
    let extreme = |array: &ArrayRef| {
        let text = text_of(array);
        match text.parse::<f64>() {
            Ok(value) if people && array.data_type().is_floating() => number(value),
            _ => text,
        }
    };
    let cells = |name: &str| -> Vec<Option<String>> {
        columns
            .iter()
            .map(|c| match name {
                "column" => Some(c.name.clone()),
                "type" => Some(c.data_type.clone()),
                "rows" => Some(whole(c.rows)),
                "nulls" => Some(whole(c.nulls)),
                "distinct" => c.distinct.map(|d| format!("{}{}", about(d.exact), whole(d.values))),
                "of" => Some(c.measured.word().to_string()),
                "min" => c.extremes.as_ref().map(|(least, _)| extreme(least)),
                "q1" => quartile(0)(c),
                "median" => quartile(1)(c),
                "q3" => quartile(2)(c),
                "max" => c.extremes.as_ref().map(|(_, most)| extreme(most)),
                _ => c.mean.map(shown),
            })
            .map(|cell| if people { Some(cell.unwrap_or_default()) } else { cell })
            .collect()
    };
    let names = [
        "column", "type", "rows", "nulls", "distinct", "of", "min", "q1", "median", "q3", "max",
        "mean",
    ];
    // On a terminal, the number of rows is left out, as it is the same in every line.
    let names = names.into_iter().filter(|name| !people || *name != "rows");
    let arrays: Vec<(&str, ArrayRef)> =
        names.map(|name| (name, Arc::new(StringArray::from(cells(name))) as ArrayRef)).collect();
    let fields: Vec<_> = arrays
        .iter()
        .map(|(name, array)| arrow::datatypes::Field::new(*name, array.data_type().clone(), true))
        .collect();
    let arrays = arrays.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}

const LINES: usize = 24;
const NARROWEST: usize = 30;

/// Draws the rows: a forest plot of a table with estimates or means and their intervals, else a
/// histogram of the first column of numbers among `columns`, by the first of texts.
async fn show_plot(
    rows: DataFrame,
    table: &TableSchema,
    columns: &[String],
) -> Result<Exit, Failure> {
    let (spec, drawn) = picture(table, columns).map_err(|message| fail(message, Exit::Invalid))?;
    let (drawn, values): (Vec<FigureColumn>, Vec<Expr>) = drawn.into_iter().unzip();
    let ordered = sorted_by_key(rows, &table.key).and_then(|rows| rows.select(values));
    let data = figure_data(ordered.map_err(failed)?, &drawn).await.map_err(failed)?;
    let width = usize::from(width()).max(NARROWEST);
    let text = terminal(&spec, &data, width, LINES, false);
    print(&text.map_err(|error| fail(error.to_string(), Exit::Invalid))?)
}

/// A column of a plot, and its values.
type DrawnColumn = (FigureColumn, Expr);

/// The kind of plot and the columns for a table.
fn picture(table: &TableSchema, columns: &[String]) -> Result<(Spec, Vec<DrawnColumn>), String> {
    let field = |name: &str| table.field(name);
    let is_number = |name: &str| field(name).is_some_and(|f| f.data_type().is_numeric());
    let mut drawn = Vec::new();
    let mut take = |name: &str, number: bool| {
        if let Some(field) = field(name) {
            drawn.push((FigureColumn::of(field, number), column(name)));
        }
        Some(name.to_string())
    };
    let points = ["estimate", "effect", "mean", "coefficient", "value"];
    let point = points.into_iter().find(|name| is_number(name));
    if let Some(point) = point.filter(|_| is_number("ci_low") && is_number("ci_high"))
        && columns.is_empty()
    {
        // Whatever tells rows apart is in their labels.
        let mut keys: Vec<&str> = table.key.iter().map(String::as_str).collect();
        keys.retain(|name| field(name).is_some() && *name != "control");
        let texts = ["outcome", "column", "score", "variable", "treatment"];
        let about = texts.into_iter().find(|name| field(name).is_some());
        let Some(y) = about.or_else(|| keys.last().copied()) else {
            return Err("the table has no column that names its estimates".to_string());
        };
        let group = Some("treatment").filter(|name| field(name).is_some() && *name != y);
        keys.retain(|name| *name != y && Some(*name) != group);
        let mut groups = keys.into_iter();
        let facet = groups.next();
        let group = group.or_else(|| groups.next());
        let rest: Vec<&str> = groups.collect();
        let mut spec = Spec { control_first: true, ..Spec::new(Kind::FOREST) };
        spec.y = take(y, false);
        spec.x = take(point, true);
        spec.low = take("ci_low", true);
        spec.high = take("ci_high", true);
        spec.color = group.and_then(|group| take(group, false));
        spec.facet = facet.and_then(|facet| take(facet, false));
        if let Some((_, names)) = drawn.first_mut().filter(|_| !rest.is_empty()) {
            let parts = std::iter::once(y).chain(rest);
            let parts = parts.map(|name| cast(column(name), DataType::Utf8)).collect();
            *names = concat_ws(lit(", "), parts).alias(y);
        }
        return Ok((spec, drawn));
    }
    let numbers: Vec<&str> = match columns {
        [] => table.names().filter(|name| is_number(name)).collect(),
        names => names.iter().map(String::as_str).filter(|name| is_number(name)).collect(),
    };
    let (Some(x), true) = (numbers.first(), columns.is_empty() || numbers.len() == 1) else {
        let known: Vec<&str> = table.names().filter(|name| is_number(name)).collect();
        let help = match known.as_slice() {
            [] => "the table has none".to_string(),
            known => format!("the table has {}", known.join(", ")),
        };
        return Err(format!("--plot draws one column of numbers, `--columns NAME`; {help}"));
    };
    if columns.is_empty() && numbers.len() > 1 {
        let known = numbers.join(", ");
        return Err(format!("--plot draws one column: `--columns NAME`, one of {known}"));
    }
    let mut spec = Spec { control_first: true, ..Spec::new(Kind::HISTOGRAM) };
    spec.x = take(x, true);
    let group = columns.iter().find(|name| name.as_str() != *x && !is_number(name));
    spec.color = group.and_then(|group| take(group, false));
    Ok((spec, drawn))
}

#[cfg(test)]
mod tests {
    use super::*;
    use galeras_operator::describe;

    #[test]
    fn every_key_is_in_the_names_of_a_plot() {
        let text = ["column", "treatment", "model", "repo", "language"];
        let field = |name: &&str, kind: DataType| describe(name, kind, true, "", None);
        let mut fields: Vec<_> = text.iter().map(|name| field(name, DataType::Utf8)).collect();
        fields.extend(["mean", "ci_low", "ci_high"].iter().map(|n| field(n, DataType::Float64)));
        let table = TableSchema::default().with(&fields).keyed(&text);
        let (spec, drawn) = picture(&table, &[]).unwrap();
        let roles = [&spec.y, &spec.color, &spec.facet].map(|name| name.as_deref());
        assert_eq!(roles, [Some("column"), Some("treatment"), Some("model")]);
        let names = drawn[0].1.to_string();
        assert!(["column", "repo", "language"].iter().all(|name| names.contains(name)), "{names}");
    }

    #[test]
    fn names_with_cells_are_found_outside_of_quotes() {
        let found = |query| unquoted_cells(query);
        assert_eq!(found("SELECT * FROM gen[*] WHERE x").as_deref(), Some("gen[*]"));
        assert_eq!(
            found("SELECT 1 FROM a JOIN g[n=1].rejects r").as_deref(),
            Some("g[n=1].rejects")
        );
        assert_eq!(found("SELECT tags[1] FROM a"), None);
        assert_eq!(found("SELECT '[*]' FROM \"gen[*]\" WHERE é[*"), None);
        assert_eq!(found("SELECT [*]"), None);
    }
}
