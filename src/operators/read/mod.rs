//! `read`: a table from a file or a URL.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::{Field, FieldRef, Schema};
use async_trait::async_trait;
use datafusion::dataframe::DataFrame;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::Expr;
use datafusion::prelude::{CsvReadOptions, JsonReadOptions, ParquetReadOptions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::Digest as _;

use crate::digest::Digest;
use crate::engine::column;
use crate::functions::{RowId, call};
use crate::id::ID;
use crate::operator::{
    ArgError, BindContext, Effect, Fact, Grain, InputPorts, LowerContext, Lowering, MAIN, Operator,
    Port, Ports, SideFile, Step, StepError, TableSchema, TableStep, args_schema, describe,
    parse_args, stored_type,
};

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The file, relative to the workflow file.
    #[serde(default)]
    path: Option<String>,
    /// The address of the file (http or https).
    #[serde(default)]
    url: Option<String>,
    /// The SHA-256 of the file behind `url`, in hexadecimal digits. With it, the file is
    /// fetched once.
    #[serde(default)]
    sha256: Option<String>,
    /// The file's format; by its suffix if absent.
    #[serde(default)]
    format: Option<Format>,
    /// New names for columns: name in the file -> name in the table.
    #[serde(default)]
    columns: Map<String, Value>,
    /// The columns (by their new names) that identify a row, from which `id` is derived if the
    /// file has none; all columns if absent.
    #[serde(default)]
    key: Option<Vec<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Format {
    /// Apache Parquet.
    Parquet,
    /// One JSON object per line.
    Jsonl,
    /// Comma-separated values with a header line.
    Csv,
    /// A JSON list of objects.
    Json,
}

impl Format {
    fn of_suffix(name: &str) -> Option<Self> {
        let name = name.split(['?', '#']).next().unwrap_or(name);
        match Path::new(name).extension()?.to_str()?.to_lowercase().as_str() {
            "parquet" | "pq" => Some(Self::Parquet),
            "jsonl" | "ndjson" => Some(Self::Jsonl),
            "csv" => Some(Self::Csv),
            "json" => Some(Self::Json),
            _ => None,
        }
    }
}

/// The operator.
pub(super) struct Read;

const DOC: &str = r#"Read a table from a file or a URL.

## What it does
Reads Parquet, JSON lines, CSV (with a header line) or a JSON list of objects. Types of JSON and
CSV columns are inferred from the whole file. `columns` renames columns.

If the table has no column `id`, one is added: 32 hexadecimal digits of BLAKE3 over the `key`
columns, or over all columns. Ids must be unique.

The content of the file counts, not its path or time. A `url` is fetched when the workflow is
planned; give its `sha256` to fetch it once and to be sure of what you get.

## Example
```yaml
data:
  op: read
  with: { path: data.csv, columns: { source: code }, key: [code] }
```

## Cost and reuse
Reads the file as a whole whenever its content has changed.
"#;

#[async_trait]
impl Operator for Read {
    fn name(&self) -> &'static str {
        "read"
    }

    fn version(&self) -> u32 {
        2
    }

    fn grain(&self) -> Grain {
        Grain::Table
    }

    fn effect(&self) -> Effect {
        Effect::Pure
    }

    fn inputs(&self) -> InputPorts {
        InputPorts::None
    }

    fn doc(&self) -> &'static str {
        DOC
    }

    fn args_schema(&self) -> Value {
        args_schema::<Args>()
    }

    async fn bind(&self, args: &Value, cx: &BindContext) -> Result<Box<dyn Step>, Vec<ArgError>> {
        let args: Args = parse_args(args)?;
        let one = |error| vec![error];
        let (at, name, file) = match (&args.path, &args.url) {
            (Some(path), None) => {
                let file = cx.base.join(path);
                if !file.is_file() {
                    let what = if file.is_dir() { "is a folder" } else { "does not exist" };
                    let message = format!("the file `{path}` {what}");
                    let error = ArgError::new("path", "missing-file", message);
                    return Err(one(error.help("paths are relative to the workflow file")));
                }
                ("path", path.clone(), file)
            }
            (None, Some(url)) => {
                let file = fetch(url, args.sha256.as_deref(), &cx.downloads).await.map_err(one)?;
                ("url", url.clone(), file)
            }
            (None, None) => {
                let error = ArgError::new("", "missing-argument", "`read` needs `path` or `url`");
                return Err(one(error));
            }
            (Some(_), Some(_)) => {
                let message = "give either `path` or `url`, not both";
                return Err(one(ArgError::new("url", "conflicting-arguments", message)));
            }
        };
        if args.sha256.is_some() && args.url.is_none() {
            let message = "`sha256` belongs to `url`; a file counts by its content anyway";
            return Err(one(ArgError::new("sha256", "conflicting-arguments", message)));
        }
        let Some(format) = args.format.or_else(|| Format::of_suffix(&name)) else {
            let error =
                ArgError::new(at, "unknown-format", format!("`{name}` has no known suffix"));
            return Err(one(error.help("add `format: parquet`, `jsonl`, `csv` or `json`")));
        };
        if let Err(why) = check_whole(&file, format) {
            let message = format!("cannot read `{name}`: {why}");
            return Err(one(ArgError::new(at, "unreadable-file", message)));
        }
        let raw = open(&cx.session, &file, format).await.map_err(|e| {
            let text = crate::operator::plain_message(&e);
            one(ArgError::new(at, "unreadable-file", format!("cannot read `{name}`: {text}")))
        })?;
        let mut step = BoundRead { args, name, file, format, names: Vec::new(), ports: Vec::new() };
        step.bind_schema(raw.schema().as_arrow())?;
        Ok(Box::new(step))
    }
}

/// Finds what the readers below pass over: a list that does not end, or does not end the
/// file, and a quote that is never closed.
fn check_whole(file: &Path, format: Format) -> Result<(), String> {
    let open = || std::fs::File::open(file).map_err(|e| e.to_string());
    match format {
        Format::Json => {
            let reader = std::io::BufReader::new(open()?);
            let rows: Vec<IgnoredRow> =
                serde_json::from_reader(reader).map_err(|e| format!("not a JSON list: {e}"))?;
            if rows.is_empty() { Err("the list is empty".into()) } else { Ok(()) }
        }
        Format::Csv => {
            let mut reader = std::io::BufReader::new(open()?);
            let mut buffer = vec![0; 1 << 16];
            let (mut quotes, mut bytes) = (0usize, 0usize);
            loop {
                let n = reader.read(&mut buffer).map_err(|e| e.to_string())?;
                if n == 0 {
                    break;
                }
                bytes += n;
                quotes += buffer[..n].iter().filter(|b| **b == b'"').count();
            }
            match (bytes, quotes % 2) {
                (0, _) => Err("the file is empty".into()),
                (_, 1) => Err("a quoted value is never closed".into()),
                _ => check_header(open()?),
            }
        }
        Format::Jsonl | Format::Parquet => Ok(()),
    }
}

/// Two columns of one name would be merged into one.
fn check_header(file: std::fs::File) -> Result<(), String> {
    use std::io::BufRead as _;
    let mut header = String::new();
    let read = std::io::BufReader::new(file).take(1 << 20).read_line(&mut header);
    read.map_err(|e| e.to_string())?;
    // Quoted names may contain commas; the reader then finds what is wrong with the rows.
    if header.contains('"') {
        return Ok(());
    }
    let names: Vec<&str> = header.trim().split(',').collect();
    let twice = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name));
    match twice {
        Some((_, name)) => Err(format!("two columns are called `{name}`")),
        _ => Ok(()),
    }
}

/// A JSON object whose values do not matter.
type IgnoredRow = BTreeMap<String, serde::de::IgnoredAny>;

/// The schema of a file of comma-separated values, inferred from all of it. (DataFusion infers it
/// from pieces that end at line feeds, also at those within quotes.)
fn csv_schema(file: &Path) -> Result<Schema, datafusion::error::DataFusionError> {
    let reader = std::io::BufReader::new(std::fs::File::open(file)?);
    let format = arrow::csv::reader::Format::default().with_header(true);
    Ok(format.infer_schema(reader, None)?.0)
}

/// Opens the file with its schema inferred from all of it.
async fn open(
    session: &SessionContext,
    file: &Path,
    format: Format,
) -> Result<DataFrame, datafusion::error::DataFusionError> {
    let path = file.to_string_lossy();
    let path = path.as_ref();
    // A fetched file has no suffix; the format is known by now.
    let suffix = file.extension().map(|e| format!(".{}", e.to_string_lossy())).unwrap_or_default();
    match format {
        Format::Parquet => {
            let options = ParquetReadOptions { file_extension: &suffix, ..Default::default() };
            session.read_parquet(path, options).await
        }
        Format::Csv => {
            let schema = csv_schema(file)?;
            let options = CsvReadOptions {
                schema: Some(&schema),
                file_extension: &suffix,
                newlines_in_values: true,
                ..Default::default()
            };
            session.read_csv(path, options).await
        }
        Format::Jsonl | Format::Json => {
            let options = JsonReadOptions {
                file_extension: &suffix,
                schema_infer_max_records: usize::MAX,
                newline_delimited: format == Format::Jsonl,
                ..Default::default()
            };
            session.read_json(path, options).await
        }
    }
}

#[derive(Debug)]
struct BoundRead {
    args: Args,
    name: String,
    file: PathBuf,
    format: Format,
    /// Column in the file, column in the table.
    names: Vec<(String, String)>,
    ports: Vec<Port>,
}

impl BoundRead {
    fn bind_schema(&mut self, schema: &Schema) -> Result<(), Vec<ArgError>> {
        let mut errors = Vec::new();
        if schema.fields().is_empty() {
            let message = format!("the file `{}` has no columns", self.name);
            let at = if self.args.path.is_some() { "path" } else { "url" };
            return Err(vec![ArgError::new(at, "unreadable-file", message)]);
        }
        let known = || schema.fields().iter().map(|f| f.name().as_str());
        for (from, to) in &self.args.columns {
            if schema.field_with_name(from).is_err() {
                errors.push(ArgError::unknown_column(format!("columns.{from}"), from, known()));
            }
            if !to.is_string() {
                let message = "the new name of a column is a text";
                errors.push(ArgError::new(format!("columns.{from}"), "wrong-type", message));
            }
        }
        let mut fields: Vec<FieldRef> = Vec::new();
        for field in schema.fields() {
            let new = self.args.columns.get(field.name()).and_then(Value::as_str);
            let new = new.unwrap_or(field.name()).to_string();
            if fields.iter().any(|f| *f.name() == new) {
                let message = format!("two columns would be called `{new}`");
                errors.push(ArgError::new("columns", "duplicate-column", message));
            }
            let column = Field::new(&new, stored_type(field.data_type()), field.is_nullable());
            self.names.push((field.name().clone(), new));
            fields.push(Arc::new(column));
        }
        for (at, name) in self.args.key.iter().flatten().enumerate() {
            if !fields.iter().any(|f| f.name() == name) {
                let known = fields.iter().map(|f| f.name().as_str());
                errors.push(ArgError::unknown_column(format!("key[{at}]"), name, known));
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        if !self.has_id() {
            let id = "derived from the key columns";
            fields.insert(0, describe(ID, arrow::datatypes::DataType::Utf8, false, id, None));
        }
        let table = TableSchema::new(Arc::new(Schema::new(fields)), None);
        self.ports = vec![Port::new(MAIN, table)];
        Ok(())
    }

    fn has_id(&self) -> bool {
        self.names.iter().any(|(_, new)| new == ID)
    }
}

impl Step for BoundRead {
    fn args(&self) -> Value {
        // Path and address do not count, the content does: it is a side file.
        json!({
            "format": self.format,
            "columns": self.args.columns,
            "key": self.args.key,
        })
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn side_files(&self) -> Result<Vec<SideFile>, StepError> {
        let failed = |e| StepError::new(format!("cannot read `{}`: {e}", self.name));
        let mut hasher = blake3::Hasher::new();
        let file = std::fs::File::open(&self.file).map_err(failed)?;
        hasher.update_reader(file).map_err(failed)?;
        let digest = Digest::from(hasher.finalize());
        Ok(vec![SideFile { name: self.name.clone(), digest }])
    }

    fn fact(&self) -> Option<Fact> {
        self.args.url.clone().map(|url| Fact::File { url })
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Table(self)
    }
}

#[async_trait]
impl TableStep for BoundRead {
    async fn lower(
        &self,
        cx: &LowerContext,
        _: BTreeMap<String, DataFrame>,
    ) -> Result<Ports, StepError> {
        let raw = open(&cx.session, &self.file, self.format).await?;
        let mut columns: Vec<Expr> =
            self.names.iter().map(|(from, to)| column(from).alias(to)).collect();
        let renamed = raw.select(columns.clone())?;
        if self.has_id() {
            return Ok(vec![(MAIN, renamed)]);
        }
        let identity: Vec<Expr> = match &self.args.key {
            Some(key) => key.iter().map(|name| column(name)).collect(),
            None => self.names.iter().map(|(_, name)| column(name)).collect(),
        };
        columns = vec![call::<RowId>(identity).alias(ID)];
        columns.extend(self.names.iter().map(|(_, name)| column(name)));
        Ok(vec![(MAIN, renamed.select(columns)?)])
    }
}

/// Fetches `url` into the folder of downloads, or finds it there by its SHA-256.
async fn fetch(url: &str, sha256: Option<&str>, downloads: &Path) -> Result<PathBuf, ArgError> {
    let failed = |e: &dyn std::fmt::Display| {
        ArgError::new("url", "unreachable-url", format!("cannot fetch {url}: {e}"))
    };
    let wanted = sha256.map(str::to_lowercase);
    if let Some(wanted) = &wanted {
        if wanted.len() != 64 || !wanted.bytes().all(|b| b.is_ascii_hexdigit()) {
            let message = "a SHA-256 has 64 hexadecimal digits";
            return Err(ArgError::new("sha256", "wrong-type", message));
        }
        let stored = downloads.join(wanted);
        if stored.is_file() && sha256_of(&stored).is_ok_and(|found| found == *wanted) {
            return Ok(stored);
        }
    }
    if !url.starts_with("http://") && !url.starts_with("https://") {
        let error = ArgError::new("url", "unsupported-url", "only http and https are supported");
        return Err(error.help("use `path:` for a local file"));
    }
    std::fs::create_dir_all(downloads).map_err(|e| failed(&e))?;
    let mut response = reqwest::get(url)
        .await
        .and_then(reqwest::Response::error_for_status)
        .map_err(|e| failed(&e.without_url()))?;
    let mut temp = tempfile::NamedTempFile::new_in(downloads).map_err(|e| failed(&e))?;
    let mut hasher = sha2::Sha256::new();
    while let Some(chunk) = response.chunk().await.map_err(|e| failed(&e.without_url()))? {
        hasher.update(&chunk);
        std::io::Write::write_all(&mut temp, &chunk).map_err(|e| failed(&e))?;
    }
    let found: String = hasher.finalize().iter().map(|b| format!("{b:02x}")).collect();
    if let Some(wanted) = wanted
        && wanted != found
    {
        let message = format!("the file behind {url} has the SHA-256 {found}");
        return Err(ArgError::new("sha256", "wrong-content", message)
            .help("the file has changed, or the digest was mistyped"));
    }
    let stored = downloads.join(&found);
    temp.as_file().sync_all().map_err(|e| failed(&e))?;
    temp.persist(&stored).map_err(|e| failed(&e))?;
    Ok(stored)
}

fn sha256_of(path: &Path) -> std::io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let mut hasher = sha2::Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let n = file.read(&mut buffer)?;
        if n == 0 {
            return Ok(hasher.finalize().iter().map(|b| format!("{b:02x}")).collect());
        }
        hasher.update(&buffer[..n]);
    }
}
