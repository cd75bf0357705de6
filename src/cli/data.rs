//! `show` and `sql`: the rows of results.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use clap::{Args, ValueEnum};
use datafusion::catalog::{MemorySchemaProvider, SchemaProvider};
use datafusion::dataframe::DataFrame;
use datafusion::execution::context::{SQLOptions, SessionContext};
use parquet::arrow::ArrowWriter;

use super::Format;
use super::context::{Exit, Surveyed, fail, print};
use super::recall::LookArgs;
use super::screen;
use super::stdout::has_failed;
use crate::operator::{MAIN, plain_message};
use crate::plan::Plan;
use crate::report::{TableFormat, TableRoom, write_table};
use crate::runner::{StepManifests, open, open_port};
use crate::scratch::WholeFile;
use crate::session::{check_sql_depth, column, explain, parse_row_expr, session};
use crate::store::Store;
use crate::visible::escape;
use crate::workflow::did_you_mean;

/// How rows are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum RowFormat {
    /// A table for people, cropped to the terminal.
    #[default]
    Table,
    /// One JSON object per line.
    Json,
    /// Comma-separated values.
    Csv,
    /// A Parquet file (with `-o`).
    Parquet,
}

#[derive(Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    look: LookArgs,
    /// The step, or one of its ports: `valid`, `valid.rejects`.
    step: String,
    /// The number of rows (default: 10 for a table, all for other formats).
    #[arg(long, value_name = "N")]
    rows: Option<usize>,
    /// The columns, separated by commas.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    columns: Vec<String>,
    /// A condition in SQL over the columns.
    #[arg(long = "where", value_name = "SQL")]
    condition: Option<String>,
    #[command(flatten)]
    out: OutArgs,
}

#[derive(Args)]
pub(crate) struct SqlArgs {
    #[command(flatten)]
    look: LookArgs,
    /// The query. Every step is a table; its ports are `step.port`.
    query: String,
    #[command(flatten)]
    out: OutArgs,
}

#[derive(Args)]
struct OutArgs {
    /// How the rows are written.
    #[arg(long, value_enum, default_value_t)]
    format: RowFormat,
    /// A file to write to.
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
}

pub(crate) async fn show(args: ShowArgs) -> Exit {
    let surveyed = match Surveyed::look(&args.look, Format::Human).await {
        Ok(surveyed) => surveyed,
        Err(exit) => return exit,
    };
    let (at, port) = match surveyed.find(&args.step) {
        Ok(port) => port,
        Err(exit) => return exit,
    };
    let done = surveyed.done();
    if done[at].is_none() {
        return surveyed.not_computed(at);
    }
    let session = session(1);
    let df = match open_port(&session, &surveyed.store, &surveyed.plan, at, port, &done) {
        Ok(df) => df,
        Err(error) => return fail(&error.to_string(), Exit::Failed),
    };
    match chosen(&session, df, &args) {
        Ok(df) => write(df, &args.out, "use --columns").await,
        Err(message) => fail(&message, Exit::Invalid),
    }
}

/// RowFormat of an output that are printed at the end of a run.
const SHOWN_ROWS: usize = 100;

/// Prints the outputs that the workflow wants to be shown, from the results that a run left.
pub(super) async fn show_outputs(plan: &Plan, store: &Store, results: &StepManifests) -> Exit {
    let _reading = match store.reading_lock().await {
        Ok(guard) => guard,
        Err(error) => return fail(&error.to_string(), Exit::Disk),
    };
    for output in plan.outputs.iter().filter(|output| output.show) {
        let session = session(1);
        let key = output.input.schema.key.iter().map(|c| column(c).sort(true, true)).collect();
        let limited = open(&session, store, plan, &output.input, results)
            .and_then(|df| Ok((df.clone(), df.sort(key)?.limit(0, Some(SHOWN_ROWS))?)));
        let exit = match limited {
            Ok((all, first)) => {
                let path = escape(&output.path.display().to_string());
                print(&format!("\n{} ({path})\n", output.name));
                let out = OutArgs { format: RowFormat::Table, output: None };
                let exit = write(first, &out, "in the file").await;
                match all.count().await {
                    Ok(rows) if rows > SHOWN_ROWS && exit == Exit::Done => {
                        print(&format!("… {} more rows\n", rows - SHOWN_ROWS))
                    }
                    _ => exit,
                }
            }
            Err(error) => fail(&error.to_string(), Exit::Failed),
        };
        if exit != Exit::Done {
            return exit;
        }
    }
    Exit::Done
}

/// The rows and columns that were asked for.
fn chosen(
    session: &SessionContext,
    mut df: DataFrame,
    args: &ShowArgs,
) -> Result<DataFrame, String> {
    let schema: SchemaRef = Arc::new(df.schema().as_arrow().clone());
    let failed = |e: datafusion::error::DataFusionError| plain_message(&e);
    if let Some(condition) = &args.condition {
        let expr = parse_row_expr(session, &schema, condition, "").map_err(|e| match e.help {
            Some(help) => format!("--where: {}; {help}", e.message),
            None => format!("--where: {}", e.message),
        })?;
        df = df.filter(expr.expr).map_err(failed)?;
    }
    if !args.columns.is_empty() {
        let known: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        for name in &args.columns {
            if !known.contains(&name.as_str()) {
                return Err(match did_you_mean(name, known.iter().copied()) {
                    Some(near) => format!("there is no column `{name}`; did you mean `{near}`?"),
                    None => {
                        format!("there is no column `{name}`; the columns are {}", known.join(", "))
                    }
                });
            }
        }
        df = df
            .select(args.columns.iter().map(|c| column(c)).collect::<Vec<_>>())
            .map_err(failed)?;
    }
    let limit = args.rows.or((args.out.format == RowFormat::Table).then_some(10));
    match limit {
        Some(rows) => df.limit(0, Some(rows)).map_err(failed),
        None => Ok(df),
    }
}

pub(crate) async fn sql(args: SqlArgs) -> Exit {
    let surveyed = match Surveyed::look(&args.look, Format::Human).await {
        Ok(surveyed) => surveyed,
        Err(exit) => return exit,
    };
    if let Err(error) = check_sql_depth(&args.query, "") {
        let help = error.help.map(|help| format!("; {help}")).unwrap_or_default();
        return fail(&format!("{}{help}", error.message), Exit::Invalid);
    }
    let session = session(std::thread::available_parallelism().map_or(1, usize::from));
    if let Err(exit) = register(&session, &surveyed, &args.query) {
        return exit;
    }
    let options =
        SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    match session.sql_with_options(&args.query, options).await {
        Ok(df) => write(df, &args.out, "name fewer in SELECT").await,
        Err(error) => {
            let nothing: SchemaRef = Arc::new(arrow::datatypes::Schema::empty());
            let error = explain(&error, &nothing, "");
            let help = error.help.map(|h| format!("; {h}")).unwrap_or_default();
            fail(&format!("{}{help}", error.message), Exit::Invalid)
        }
    }
}

/// Makes the tables that the query names known to the session.
fn register(session: &SessionContext, surveyed: &Surveyed, query: &str) -> Result<(), Exit> {
    let failed = |e: datafusion::error::DataFusionError| fail(&plain_message(&e), Exit::Invalid);
    let state = session.state();
    let dialect = state.config_options().sql_parser.dialect;
    let statement = state.sql_to_statement(query, &dialect).map_err(failed)?;
    let references = state.resolve_table_references(&statement).map_err(failed)?;
    let done = surveyed.done();
    for reference in references {
        let name = match reference.schema() {
            Some(schema) => format!("{schema}.{}", reference.table()),
            None => reference.table().to_string(),
        };
        let (at, port) = surveyed.find(&name)?;
        if done[at].is_none() {
            return Err(surveyed.not_computed(at));
        }
        let df = open_port(session, &surveyed.store, &surveyed.plan, at, port, &done)
            .map_err(|e| fail(&e.to_string(), Exit::Failed))?;
        let catalog = session.catalog("datafusion");
        match (reference.schema(), catalog) {
            (Some(schema), Some(catalog)) => {
                let tables = match catalog.schema(schema) {
                    Some(tables) => tables,
                    None => {
                        let tables: Arc<dyn SchemaProvider> = Arc::new(MemorySchemaProvider::new());
                        catalog.register_schema(schema, Arc::clone(&tables)).map_err(failed)?;
                        tables
                    }
                };
                let table = reference.table().to_string();
                tables.register_table(table, df.into_view()).map_err(failed)?;
            }
            _ => {
                debug_assert!(port == MAIN || !name.contains('.'));
                session.register_table(reference, df.into_view()).map_err(failed)?;
            }
        }
    }
    Ok(())
}

/// Writes the rows; `advice` says how to see columns for which a table has no room.
async fn write(df: DataFrame, out: &OutArgs, advice: &'static str) -> Exit {
    let schema: SchemaRef = Arc::new(df.schema().as_arrow().clone());
    let batches = match df.collect().await {
        Ok(batches) => batches,
        Err(error) => return fail(&plain_message(&error), Exit::Failed),
    };
    match write_batches(&batches, &schema, out, advice) {
        Ok(()) => Exit::Done,
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Exit::Done,
        Err(e) if e.kind() == std::io::ErrorKind::InvalidInput => {
            fail(&e.to_string(), Exit::Invalid)
        }
        Err(e) => match &out.output {
            Some(path) => fail(&format!("cannot write {}: {e}", path.display()), Exit::Disk),
            // Told when the program ends, unless the reader has gone away.
            None if has_failed() => Exit::Done,
            None => fail(&format!("cannot write standard output: {e}"), Exit::Disk),
        },
    }
}

fn write_batches(
    batches: &[RecordBatch],
    schema: &SchemaRef,
    out: &OutArgs,
    advice: &'static str,
) -> std::io::Result<()> {
    let format = match out.format {
        RowFormat::Table => TableFormat::Table,
        RowFormat::Json => TableFormat::Json,
        RowFormat::Csv => TableFormat::Csv,
        RowFormat::Parquet => return write_parquet(batches, schema, out.output.as_deref()),
    };
    match &out.output {
        Some(path) => replace(path, |file| {
            let mut file = BufWriter::new(file);
            write_table(&mut file, batches, schema, format, None)?;
            file.flush()
        }),
        None => {
            let room = TableRoom { columns: screen::stdout_width().unwrap_or(80), advice };
            let stdout: Box<dyn Write + Send> = match format {
                TableFormat::Table => Box::new(screen::stdout()),
                // Data for programs is as it is, unless it goes to a terminal.
                TableFormat::Json | TableFormat::Csv => screen::data_stdout(),
            };
            let mut out = BufWriter::new(stdout);
            write_table(&mut out, batches, schema, format, Some(room))?;
            out.flush()
        }
    }
}

/// Writes a file that replaces the one at `path` when it is whole. What is no file, such as
/// `/dev/stdout` or a pipe, is written as it is.
fn replace(path: &Path, write: impl FnOnce(&File) -> std::io::Result<()>) -> std::io::Result<()> {
    if std::fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return write(&File::options().write(true).open(path)?);
    }
    // A link stays one.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let whole = WholeFile::beside(&path)?;
    write(whole.file())?;
    whole.finish(&path)
}

fn write_parquet(
    batches: &[RecordBatch],
    schema: &SchemaRef,
    path: Option<&Path>,
) -> std::io::Result<()> {
    let Some(path) = path else {
        let message = "Parquet is written to a file; add -o PATH";
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, message));
    };
    let failed = |e: parquet::errors::ParquetError| std::io::Error::other(e);
    replace(path, |file| {
        let mut writer = ArrowWriter::try_new(file, Arc::clone(schema), None).map_err(failed)?;
        for batch in batches {
            writer.write(batch).map_err(failed)?;
        }
        writer.close().map_err(failed)?;
        Ok(())
    })
}
