//! `exec`: rows from an external program.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::dataframe::DataFrame;
use datafusion::datasource::MemTable;
use futures::future::BoxFuture;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::code::Code;
use crate::digest::{Digest, type_name};
use crate::operator::{
    ArgError, BindContext, BoundStep, Descriptor, Effect, Grain, InputPorts, LowerContext,
    Lowering, MAIN, Operator, Port, Ports, SideFile, StepError, TableSchema, TableStep,
    args_schema, parse_args, parse_column,
};

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The command, run by `sh -c` in the folder of the workflow file.
    command: String,
    /// How tables are passed in and out.
    #[serde(default)]
    format: Format,
    /// The columns that the command prints: name -> type, as in a `schema:` contract.
    output: Map<String, Value>,
    /// Files that the command reads, relative to the workflow file; their content enters the
    /// key, so a changed file is a reason to run.
    #[serde(default)]
    files: Vec<String>,
    /// The columns that identify a row; `id` if there is one, else all columns.
    #[serde(default)]
    key: Option<Vec<String>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Format {
    /// One JSON object per line.
    #[default]
    Jsonl,
    /// A Parquet file.
    Parquet,
    /// An Arrow IPC stream.
    Arrow,
}

/// The operator.
pub(super) struct ExecOperator;

const DOC: &str = r#"Compute a table with a program of your own.

## What it does
Runs `command` with `sh -c` in the folder of the workflow file. Every input table is written to
a file, whose path is in the environment variable `GALERAS_INPUT_<PORT>` (`GALERAS_INPUT_INPUT`
for a plain `from`); with exactly one input it is also the standard input. What the command
prints on standard output, in `format`, is the result; it must have just the columns of
`output`. What it prints on standard error is shown when it fails.

The program must be deterministic: its result is stored and reused. The key holds the command,
the arguments, the input tables and the content of `files`, so name the program's own source
there.

## Example
```yaml
numbers:
  op: exec
  with:
    command: printf '{"id":"a","x":1}\n{"id":"b","x":2}\n'
    output: { id: utf8!, x: int64 }
```

## Cost and reuse
Runs as a whole when an input, the command or a declared file has changed. An interrupted run
ends the program and everything it started.
"#;

const DESCRIPTOR: Descriptor = Descriptor {
    name: "exec",
    version: 1,
    grain: Grain::of::<BoundExec, _>(),
    effect: Effect::External,
    inputs: InputPorts::Any,
    doc: DOC,
    args_schema: args_schema::<Args>,
};

impl Operator for ExecOperator {
    fn descriptor(&self) -> &'static Descriptor {
        &DESCRIPTOR
    }

    fn bind<'a>(
        &'a self,
        args: &'a Value,
        cx: &'a BindContext,
    ) -> BoxFuture<'a, Result<Box<dyn BoundStep>, Vec<ArgError>>> {
        Box::pin(async move {
            let args: Args = parse_args(args)?;
            let mut errors = Vec::new();
            let mut fields = Vec::new();
            for (name, kind) in &args.output {
                match parse_column(name, kind.as_str().unwrap_or_default()) {
                    Ok(field) => fields.push(field),
                    Err(why) => {
                        errors.push(ArgError::new(
                            format!("output.{name}"),
                            Code::UnknownType,
                            why,
                        ));
                    }
                }
            }
            if args.output.is_empty() {
                errors.push(ArgError::new(
                    "output",
                    Code::MissingArgument,
                    "`output` declares no columns",
                ));
            }
            let schema: SchemaRef = Arc::new(Schema::new(fields));
            for (at, name) in args.key.iter().flatten().enumerate() {
                if schema.field_with_name(name).is_err() {
                    let known = args.output.keys().map(String::as_str);
                    errors.push(ArgError::unknown_column(format!("key[{at}]"), name, known));
                }
            }
            for (at, name) in args.files.iter().enumerate() {
                if !cx.base.join(name).is_file() {
                    let message = format!("there is no file `{name}`");
                    let error = ArgError::new(format!("files[{at}]"), Code::MissingFile, message);
                    errors.push(error.help("paths are relative to the workflow file"));
                }
            }
            if !errors.is_empty() {
                return Err(errors);
            }
            let table = TableSchema::new(Arc::clone(&schema), args.key.clone());
            let base = cx.base.clone();
            Ok(Box::new(BoundExec { args, schema, base, ports: vec![Port::new(MAIN, table)] })
                as Box<dyn BoundStep>)
        })
    }
}

#[derive(Debug)]
struct BoundExec {
    args: Args,
    schema: SchemaRef,
    base: PathBuf,
    ports: Vec<Port>,
}

impl BoundStep for BoundExec {
    fn args(&self) -> Value {
        // The order of the columns is part of the result, so it must enter the key.
        let output: Vec<Value> =
            self.args.output.iter().map(|(name, kind)| json!([name, kind])).collect();
        json!({
            "command": self.args.command,
            "format": self.args.format,
            "output": output,
            "key": self.ports[0].table.key,
        })
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn side_files(&self) -> Result<Vec<SideFile>, StepError> {
        self.args
            .files
            .iter()
            .map(|name| {
                let content = std::fs::read(self.base.join(name))
                    .map_err(|e| StepError::new(format!("cannot read `{name}`: {e}")).because(e))?;
                Ok(SideFile { name: name.clone(), digest: Digest::of(&content) })
            })
            .collect()
    }

    fn local_files(&self) -> Vec<(String, PathBuf)> {
        let files = self.args.files.iter().enumerate();
        files.map(|(at, name)| (format!("files[{at}]"), self.base.join(name))).collect()
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Table(self)
    }
}

impl TableStep for BoundExec {
    fn lower<'a>(
        &'a self,
        cx: &'a LowerContext,
        inputs: BTreeMap<String, DataFrame>,
    ) -> BoxFuture<'a, Result<Ports, StepError>> {
        Box::pin(async move {
            let mut files = Vec::new();
            for (name, df) in inputs {
                let path = cx.scratch.join(format!("input-{name}"));
                let schema: SchemaRef = Arc::new(df.schema().as_arrow().clone());
                let batches = df.collect().await?;
                write_table(&path, self.args.format, &schema, &batches)?;
                files.push((name, path));
            }
            let output = cx.scratch.join("output");
            self.run(cx, &files, &output).await?;
            let batches = read_table(&output, self.args.format, &self.schema)?;
            let table = MemTable::try_new(Arc::clone(&self.schema), vec![batches])?;
            Ok(vec![(MAIN, cx.session.read_table(Arc::new(table))?)])
        })
    }
}

/// Ends the program and everything it started, unless it has ended by itself.
struct ProcessGroup(Option<rustix::process::Pid>);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            // The group may be gone already; there is nothing else to do about it then.
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
    }
}

impl BoundExec {
    async fn run(
        &self,
        cx: &LowerContext,
        inputs: &[(String, PathBuf)],
        output: &Path,
    ) -> Result<(), StepError> {
        let errors = cx.scratch.join("stderr");
        let mut command = tokio::process::Command::new("sh");
        command.arg("-c").arg(&self.args.command).current_dir(&cx.base).process_group(0);
        for (name, path) in inputs {
            command.env(format!("GALERAS_INPUT_{}", name.to_uppercase()), path);
        }
        let stdin = match inputs {
            [(_, path)] => Stdio::from(File::open(path)?),
            _ => Stdio::null(),
        };
        command.stdin(stdin).stdout(File::create(output)?).stderr(File::create(&errors)?);
        let mut child = command.spawn()?;
        let pid = child.id().and_then(|id| rustix::process::Pid::from_raw(id as i32));
        let mut group = ProcessGroup(pid);
        let status = tokio::select! {
            status = child.wait() => status?,
            () = cx.cancel.cancelled() => return Err(StepError::interrupted()),
        };
        if status.success() {
            group.0 = None;
            return Ok(());
        }
        let mut message = format!("the command ended with {status}");
        if rustix::fs::statvfs(&cx.scratch).is_ok_and(|s| s.f_bavail == 0) {
            let folder = std::env::temp_dir();
            message.push_str(&format!("; no space left on device in {}", folder.display()));
        }
        let said = last_lines(&errors)?;
        if !said.is_empty() {
            message.push_str(&format!("; it said:\n{said}"));
        }
        Err(StepError::new(message))
    }
}

/// The last lines of a text file, at most 2,000 bytes.
fn last_lines(path: &Path) -> Result<String, StepError> {
    const BYTES: u64 = 2_000;
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(BYTES)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_string())
}

fn write_table(
    path: &Path,
    format: Format,
    schema: &SchemaRef,
    batches: &[RecordBatch],
) -> Result<(), StepError> {
    let file = File::create(path)?;
    match format {
        Format::Jsonl => {
            let mut writer = arrow::json::LineDelimitedWriter::new(std::io::BufWriter::new(file));
            for batch in batches {
                writer.write(batch)?;
            }
            writer.finish()?;
        }
        Format::Arrow => {
            let mut writer = arrow::ipc::writer::StreamWriter::try_new(file, schema)?;
            for batch in batches {
                writer.write(batch)?;
            }
            writer.finish()?;
        }
        Format::Parquet => {
            let failed = |e: parquet::errors::ParquetError| StepError::from(e);
            let mut writer =
                ArrowWriter::try_new(file, Arc::clone(schema), None).map_err(failed)?;
            for batch in batches {
                writer.write(batch).map_err(failed)?;
            }
            writer.close().map_err(failed)?;
        }
    }
    Ok(())
}

/// Reads what the program printed, which must have exactly the declared columns.
fn read_table(
    path: &Path,
    format: Format,
    schema: &SchemaRef,
) -> Result<Vec<RecordBatch>, StepError> {
    let broken = |what: String| {
        StepError::new(format!("the command printed rows that break its `output` schema: {what}"))
    };
    let file = File::open(path)?;
    let batches: Vec<RecordBatch> = match format {
        Format::Jsonl => {
            check_json(path, schema).map_err(broken)?;
            arrow::json::ReaderBuilder::new(Arc::clone(schema))
                .with_strict_mode(true)
                .build(BufReader::new(file))?
                .collect::<Result<_, _>>()
                .map_err(|e| broken(e.to_string()))?
        }
        Format::Arrow => arrow::ipc::reader::StreamReader::try_new(BufReader::new(file), None)
            .and_then(|reader| reader.collect::<Result<_, _>>())
            .map_err(|e| broken(e.to_string()))?,
        Format::Parquet => ParquetRecordBatchReaderBuilder::try_new(file)
            .and_then(ParquetRecordBatchReaderBuilder::build)
            .map_err(|e| broken(e.to_string()))?
            .collect::<Result<_, _>>()
            .map_err(|e| broken(e.to_string()))?,
    };
    batches.into_iter().map(|batch| fit(&batch, schema).map_err(broken)).collect()
}

/// Arrow's reader rounds numbers and takes texts for numbers; a contract does not.
fn check_json(path: &Path, schema: &SchemaRef) -> Result<(), String> {
    use std::io::BufRead as _;
    let file = File::open(path).map_err(|e| e.to_string())?;
    for (at, line) in BufReader::new(file).lines().enumerate() {
        let line = line.map_err(|e| format!("line {}: {e}", at + 1))?;
        if line.trim().is_empty() {
            continue;
        }
        let row: Map<String, Value> =
            serde_json::from_str(&line).map_err(|e| format!("line {}: {e}", at + 1))?;
        for field in schema.fields() {
            let value = row.get(field.name()).unwrap_or(&Value::Null);
            if !json_fits(value, field.data_type()) {
                return Err(format!(
                    "line {}: column `{}` is {value}, not {}",
                    at + 1,
                    field.name(),
                    type_name(field.data_type())
                ));
            }
            if value.is_null() && !field.is_nullable() {
                return Err(format!(
                    "line {}: column `{}` is missing or null",
                    at + 1,
                    field.name()
                ));
            }
        }
        if let Some(extra) = row.keys().find(|k| schema.field_with_name(k).is_err()) {
            return Err(format!("line {}: column `{extra}` is not declared", at + 1));
        }
    }
    Ok(())
}

fn json_fits(value: &Value, data_type: &DataType) -> bool {
    match (value, data_type) {
        (Value::Null, _) => true,
        (Value::Bool(_), t) => *t == DataType::Boolean,
        (Value::Number(n), t) if t.is_integer() => n.is_i64() || n.is_u64(),
        (Value::Number(_), t) => t.is_floating(),
        (Value::String(_), t) => !t.is_numeric() && !t.is_nested() && *t != DataType::Boolean,
        (Value::Array(items), DataType::List(item)) => {
            items.iter().all(|v| json_fits(v, item.data_type()))
        }
        (Value::Object(map), DataType::Struct(fields)) => fields
            .iter()
            .all(|f| json_fits(map.get(f.name()).unwrap_or(&Value::Null), f.data_type())),
        _ => false,
    }
}

/// The batch with its columns in the declared order and of the declared types.
fn fit(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, String> {
    let printed = batch.schema();
    if let Some(extra) = printed.fields().iter().find(|f| schema.field_with_name(f.name()).is_err())
    {
        return Err(format!("column `{}` is not declared", extra.name()));
    }
    let mut columns = Vec::with_capacity(schema.fields().len());
    for field in schema.fields() {
        let column = batch
            .column_by_name(field.name())
            .ok_or_else(|| format!("column `{}` is missing", field.name()))?;
        if type_name(column.data_type()) != type_name(field.data_type()) {
            return Err(format!(
                "column `{}` has type {} instead of {}",
                field.name(),
                type_name(column.data_type()),
                type_name(field.data_type())
            ));
        }
        let column = arrow::compute::cast(column, field.data_type()).map_err(|e| e.to_string())?;
        if !field.is_nullable() && column.null_count() > 0 {
            return Err(format!("column `{}` has nulls", field.name()));
        }
        columns.push(column);
    }
    RecordBatch::try_new(Arc::clone(schema), columns).map_err(|e| e.to_string())
}
