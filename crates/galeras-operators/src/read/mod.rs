//! `read`: a table from a file or a URL.

mod csv_rows;
mod csv_table;
mod csv_values;
mod fetch;
mod formats;
pub(crate) mod json_scan;
mod json_values;
mod pandas;
mod plain_text;
mod types;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::dataframe::DataFrame;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::{Expr, cast};
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use self::csv_rows::CsvDialect;
use self::fetch::fetch;
use self::formats::{FileFormat, check_readable, check_whole, open};
use self::plain_text::{PlainText, plain_text};
use self::types::{Declared, check_storable, declared_types};
use galeras_base::digest::Digest;
use galeras_base::id::ID;
use galeras_net::secret_in;
use galeras_operator::{
    Access, ArgError, BindContext, BoundStep, Demand, Descriptor, Effect, Fact, Grain, InputPorts,
    Inputs, LowerContext, Lowering, MAIN, Operator, Port, Ports, ServerAddress, SideFile,
    StepError, TableSchema, TableStep, args_schema, describe, parse_args, stored_type,
};
use galeras_sql::functions::{RowId, call};
use galeras_sql::session::{column, guarded};
use galeras_workflow::code::Code;

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Args {
    /// The file, relative to the workflow file. If it is given and not empty, it is read instead of
    /// `url`.
    path: Option<String>,
    /// The address of the file (http or https).
    url: Option<String>,
    /// The SHA-256 of the file behind `url`, in hexadecimal digits. With it, the file is
    /// fetched once.
    sha256: Option<String>,
    /// The file's format; by its suffix if absent.
    format: Option<FileFormat>,
    /// New names for columns: name in the file -> name in the table.
    columns: Map<String, Value>,
    /// Types of columns of CSV and JSON, instead of the inferred ones: the column (by its new name)
    /// -> its type as in a `schema:` contract (`utf8`, `int64`, `float64`, `bool`, `date`,
    /// `timestamp` …). With `!`, a value is never missing. In JSON, `json` keeps a value of any
    /// kind as JSON text, and with `?` the file need not have the column.
    types: Map<String, Value>,
    /// The character between the values of a CSV file, such as `;` or `"\t"`; a comma if absent.
    delimiter: Option<String>,
    /// Texts that mean a missing value in a CSV file, unless they have quotes: `[NA, "N/A"]`.
    null_values: Vec<String>,
    /// The columns (by their new names) that identify a row, from which `id` is derived if the
    /// file has none; all columns if absent.
    key: Option<Vec<String>>,
    /// Adds a column with the position of each row in the file, from 0.
    position: Option<Position>,
}

/// A column with the positions of rows.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Position {
    /// Its name. A file that has such a column keeps it.
    column: String,
    /// Rows are counted apart for every combination of these columns (by their new names).
    #[serde(default)]
    within: Vec<String>,
}

struct ReadOperator;

/// The operator.
pub const READ: &dyn Operator = &ReadOperator;

const DESCRIPTOR: Descriptor = Descriptor {
    name: "read",
    version: 5,
    grain: Grain::of::<BoundRead, _>(),
    effect: Effect::Pure,
    inputs: InputPorts::None,
    doc: include_str!("doc.md"),
    args_schema: args_schema::<Args>,
};

impl Operator for ReadOperator {
    fn descriptor(&self) -> &'static Descriptor {
        &DESCRIPTOR
    }

    fn bind<'a>(
        &'a self,
        args: &'a Value,
        cx: &'a BindContext,
    ) -> BoxFuture<'a, Result<Box<dyn BoundStep>, Vec<ArgError>>> {
        Box::pin(async move {
            let mut args: Args = parse_args(args)?;
            args.path = args.path.filter(|path| !path.is_empty());
            let one = |error| vec![error];
            // Also for an unused address: the lock file would contain it.
            if let Some(secret) = args.url.as_deref().and_then(secret_in) {
                let message = format!("the address must not hold {secret}");
                let help = "results and galeras.lock name the address; fetch the file yourself, \
                        and read it by its `path`";
                return Err(one(ArgError::new("url", Code::BadUrl, message).help(help)));
            }
            let (at, name, file) = match (&args.path, &args.url) {
                (Some(path), _) => {
                    let file = cx.base.join(path);
                    if !file.is_file() {
                        let what = if file.is_dir() { "is a folder" } else { "does not exist" };
                        let message = format!("the file `{path}` {what}");
                        return Err(one(ArgError::missing_file("path", message, &cx.base, path)));
                    }
                    ("path", path.clone(), file)
                }
                (None, Some(url)) => {
                    let file = fetch(url, args.sha256.as_deref(), cx).await.map_err(one)?;
                    ("url", url.clone(), file)
                }
                (None, None) => {
                    let message = "`read` needs `path` or `url`";
                    return Err(one(ArgError::new("", Code::MissingArgument, message)));
                }
            };
            if args.sha256.is_some() && args.url.is_none() {
                let message = "`sha256` applies to `url` only; a local file is always identified by \
                               its content";
                return Err(one(ArgError::new("sha256", Code::ConflictingArguments, message)));
            }
            let Some(format) = args.format.or_else(|| FileFormat::of_suffix(&name)) else {
                let message = format!("`{name}` has no known suffix");
                let error = ArgError::new(at, Code::UnknownFormat, message);
                return Err(one(error.help("add `format: parquet`, `jsonl`, `csv` or `json`")));
            };
            let declared = declared_types(&args.types, &args.columns, format)?;
            let dialect = dialect(&args, format)?;
            let unreadable = |why: String| {
                let message = format!("cannot read `{name}`: {why}");
                one(ArgError::new(at, Code::UnreadableFile, message))
            };
            let plain = plain_text(&file, format, &declared.json).map_err(unreadable)?;
            let content = plain.as_ref().map_or_else(|| file.clone(), PlainText::path);
            let sound = async {
                check_whole(&content, format)?;
                let raw = open(&cx.session, &content, format, &dialect, &declared).await;
                let raw = raw.map_err(|e| galeras_operator::plain_message(&e))?;
                check_storable(raw.schema().as_arrow())?;
                check_readable(&raw, &content, format, &declared.types).await.map(|()| raw)
            };
            let raw = guarded(sound).await.unwrap_or_else(|panic| {
                Err(format!("it is damaged, or not {format}: its reader gave up ({panic})"))
            });
            let raw = raw.map_err(unreadable)?;
            let (names, positioned, ports) = (Vec::new(), false, Vec::new());
            let mut step = BoundRead {
                args,
                name,
                file,
                plain,
                format,
                dialect,
                declared,
                names,
                positioned,
                ports,
            };
            step.bind_schema(raw.schema().as_arrow())?;
            Ok(Box::new(step) as Box<dyn BoundStep>)
        })
    }
}

#[derive(Debug)]
struct BoundRead {
    args: Args,
    name: String,
    file: PathBuf,
    /// The text that is read instead of the file.
    plain: Option<PlainText>,
    format: FileFormat,
    dialect: CsvDialect,
    declared: Declared,
    /// Column in the file, column in the table.
    names: Vec<(String, String)>,
    /// A column of positions is added.
    positioned: bool,
    ports: Vec<Port>,
}

impl BoundRead {
    fn bind_schema(&mut self, schema: &Schema) -> Result<(), Vec<ArgError>> {
        let mut errors = Vec::new();
        if schema.fields().is_empty() {
            let message = format!("the file `{}` has no columns", self.name);
            let at = if self.args.path.is_some() { "path" } else { "url" };
            return Err(vec![ArgError::new(at, Code::UnreadableFile, message)]);
        }
        for (from, to) in &self.args.columns {
            if schema.field_with_name(from).is_err() {
                let known = schema.fields().iter().map(|f| f.name().as_str());
                errors.push(ArgError::unknown_column(format!("columns.{from}"), from, known));
            }
            if !to.is_string() {
                let message = "the new name of a column must be a text";
                errors.push(ArgError::new(format!("columns.{from}"), Code::WrongType, message));
            }
        }
        let mut fields: Vec<FieldRef> = Vec::new();
        let mut names: HashSet<String> = HashSet::new();
        for field in schema.fields() {
            let new = self.args.columns.get(field.name()).and_then(Value::as_str);
            let new = new.unwrap_or(field.name()).to_string();
            if !names.insert(new.clone()) {
                let message = format!("two columns would be called `{new}`");
                errors.push(ArgError::new("columns", Code::DuplicateColumn, message));
            }
            let column = Field::new(&new, stored_type(field.data_type()), field.is_nullable());
            self.names.push((field.name().clone(), new));
            fields.push(Arc::new(column));
        }
        let other = match self.format {
            FileFormat::Csv => other_delimiter(schema),
            _ => None,
        };
        let unknown = |path: String, name: &str, fields: &[FieldRef]| {
            let known = fields.iter().map(|f| f.name().as_str());
            let error = ArgError::unknown_column(path, name, known);
            match other {
                Some(other) => error.help(format!(
                    "the file has one column; if `{other}` is between its values, add `delimiter: \
                     \"{other}\"`"
                )),
                None => error,
            }
        };
        for name in self.args.types.keys().filter(|name| !names.contains(*name)) {
            errors.push(unknown(format!("types.{name}"), name, &fields));
        }
        if let Some(position) = &self.args.position {
            for (at, name) in position.within.iter().enumerate() {
                if !names.contains(name) {
                    errors.push(unknown(format!("position.within[{at}]"), name, &fields));
                }
            }
            if names.insert(position.column.clone()) {
                let about = "the position of the row, from 0";
                fields.push(describe(&position.column, DataType::Int64, false, about, None));
                self.positioned = true;
            }
        }
        for (at, name) in self.args.key.iter().flatten().enumerate() {
            if !names.contains(name) {
                errors.push(unknown(format!("key[{at}]"), name, &fields));
            }
        }
        ArgError::none(errors)?;
        if !self.has_id() {
            let id = "derived from the key columns";
            fields.insert(0, describe(ID, DataType::Utf8, false, id, None));
        }
        let table = TableSchema::new(Arc::new(Schema::new(fields)), None);
        self.ports = vec![Port::new(MAIN, table)];
        Ok(())
    }

    fn has_id(&self) -> bool {
        self.names.iter().any(|(_, new)| new == ID)
    }
}

impl BoundStep for BoundRead {
    fn args(&self) -> Value {
        // The content counts, as a side file, but not the path or address.
        let mut args = json!({
            "format": self.format,
            "columns": self.args.columns,
            "key": self.args.key,
        });
        if let Some(position) = &self.args.position {
            args["position"] = json!(position);
        }
        if !self.args.types.is_empty() {
            args["types"] = json!(self.args.types);
        }
        if self.dialect.delimiter != b',' {
            args["delimiter"] = json!(char::from(self.dialect.delimiter));
        }
        if !self.args.null_values.is_empty() {
            args["null_values"] = json!(self.args.null_values);
        }
        args
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn side_files(&self) -> Result<Vec<SideFile>, StepError> {
        let failed = |e: std::io::Error| {
            StepError::new(format!("cannot read `{}`: {e}", self.name)).because(e)
        };
        let digest = std::fs::File::open(&self.file).and_then(Digest::of_reader);
        let digest = digest.map_err(failed)?;
        Ok(vec![SideFile { name: self.name.clone(), digest }])
    }

    fn local_files(&self) -> Vec<(String, PathBuf)> {
        self.args.path.iter().map(|_| ("path".to_string(), self.file.clone())).collect()
    }

    fn fact(&self) -> Option<Fact> {
        self.args.url.clone().map(|url| Fact::File { url })
    }

    fn demands(&self) -> Vec<Demand> {
        match (&self.args.path, &self.args.url) {
            (Some(_), _) => {
                vec![Demand::new("path", Access::Read { path: self.file.clone() })]
            }
            (None, url) => {
                let to = url.as_deref().and_then(ServerAddress::of);
                to.map(|to| Demand::new("url", Access::Host { to })).into_iter().collect()
            }
        }
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Table(self)
    }
}

impl TableStep for BoundRead {
    // A file may have any size, and is not sorted by its key.
    fn bounded(&self) -> bool {
        true
    }

    fn lower<'a>(
        &'a self,
        cx: &'a LowerContext,
        _: Inputs,
    ) -> BoxFuture<'a, Result<Ports, StepError>> {
        Box::pin(async move {
            let position = self.args.position.as_ref().filter(|_| self.positioned);
            let session =
                if position.is_some() { in_order(&cx.session) } else { cx.session.clone() };
            let content = self.plain.as_ref().map_or_else(|| self.file.clone(), PlainText::path);
            let raw = open(&session, &content, self.format, &self.dialect, &self.declared).await?;
            // An id is made of values as they are stored: another kind of list gives the same one.
            let kinds = Arc::new(raw.schema().as_arrow().clone());
            let renamed = self.names.iter().zip(kinds.fields()).map(|((from, to), field)| {
                let (value, stored) = (column(from), stored_type(field.data_type()));
                match field.name() == from && *field.data_type() != stored {
                    true => cast(value, stored).alias(to),
                    false => value.alias(to),
                }
            });
            let mut renamed = raw.select(renamed.collect::<Vec<Expr>>())?;
            let mut names: Vec<&str> = self.names.iter().map(|(_, name)| name.as_str()).collect();
            if let Some(position) = position {
                renamed = with_positions(&cx.session, renamed, position).await?;
                names.push(&position.column);
            }
            if self.has_id() {
                return Ok(vec![(MAIN, renamed)]);
            }
            let identity: Vec<Expr> = match &self.args.key {
                Some(key) => key.iter().map(|name| column(name)).collect(),
                None => names.iter().map(|name| column(name)).collect(),
            };
            let mut columns = vec![call::<RowId>(identity).alias(ID)];
            columns.extend(names.into_iter().map(column));
            Ok(vec![(MAIN, renamed.select(columns)?)])
        })
    }
}

/// The character that seems to be between the values of a file with a single column, as in YAML.
fn other_delimiter(schema: &Schema) -> Option<&'static str> {
    let [only] = &schema.fields()[..] else { return None };
    let known = [(";", ";"), ("\t", "\\t"), ("|", "|"), (",", ",")];
    known.into_iter().find(|(text, _)| only.name().contains(text)).map(|(_, shown)| shown)
}

/// The dialect of a CSV file; other formats have none.
fn dialect(args: &Args, format: FileFormat) -> Result<CsvDialect, Vec<ArgError>> {
    let error = |at: &str, code, message: String| Err(vec![ArgError::new(at, code, message)]);
    let given =
        [("delimiter", args.delimiter.is_some()), ("null_values", !args.null_values.is_empty())];
    if let Some((at, _)) = given.into_iter().find(|(_, is_given)| *is_given)
        && format != FileFormat::Csv
    {
        let message = format!("`{at}` is for CSV, and this file is {format}");
        return error(at, Code::ConflictingArguments, message);
    }
    let delimiter = match args.delimiter.as_deref().map(str::as_bytes) {
        None => CsvDialect::default().delimiter,
        Some([delimiter]) if delimiter.is_ascii() && !b"\"\r\n".contains(delimiter) => *delimiter,
        Some(_) => {
            let message =
                "`delimiter` is one ASCII character, and not a quote or the end of a line";
            return error("delimiter", Code::WrongValue, message.to_string());
        }
    };
    Ok(CsvDialect { delimiter, null_values: args.null_values.clone() })
}

/// A session that keeps the order of a file: with one partition, plans do not redistribute rows.
fn in_order(session: &SessionContext) -> SessionContext {
    let mut state = session.state();
    state.config_mut().options_mut().execution.target_partitions = 1;
    SessionContext::new_with_state(state)
}

/// The rows with their positions, in memory.
async fn with_positions(
    session: &SessionContext,
    rows: DataFrame,
    position: &Position,
) -> Result<DataFrame, StepError> {
    let group = match position.within.as_slice() {
        [] => datafusion::logical_expr::lit(""),
        // The digest is equal only for equal values.
        within => call::<RowId>(within.iter().map(|name| column(name)).collect()),
    };
    let rows = rows.with_column(GROUP, group)?;
    let schema = Arc::new(rows.schema().as_arrow().clone());
    let mut batches = rows.collect().await?;
    if batches.is_empty() {
        batches.push(RecordBatch::new_empty(schema));
    }
    let mut counted: HashMap<String, i64> = HashMap::new();
    let mut numbered = Vec::with_capacity(batches.len());
    for batch in batches {
        let last = batch.num_columns() - 1;
        let positions: Int64Array = batch
            .column(last)
            .as_string::<i32>()
            .iter()
            .map(|group| {
                let next = counted.entry(group.unwrap_or_default().to_string()).or_insert(0);
                *next += 1;
                Some(*next - 1)
            })
            .collect();
        let mut columns: Vec<ArrayRef> = batch.columns()[..last].to_vec();
        columns.push(Arc::new(positions));
        let mut fields: Vec<FieldRef> = batch.schema().fields()[..last].to_vec();
        fields.push(Arc::new(Field::new(&position.column, DataType::Int64, false)));
        numbered.push(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?);
    }
    Ok(session.read_batches(numbered)?)
}

/// A hidden column: the group within which a row is counted.
const GROUP: &str = "__group";
