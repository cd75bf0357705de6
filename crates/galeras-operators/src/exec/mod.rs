//! `exec`: rows from an external program.

mod command_files;
mod confined;
mod process;
mod tables;

use std::path::PathBuf;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::datasource::MemTable;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use self::command_files::named_files;
use self::process::{room, shown};
use self::tables::{read_table, write_table};
use galeras_base::digest::Digest;
use galeras_base::small_file;
use galeras_operator::{
    Access, ArgError, BindContext, BoundStep, Demand, Descriptor, Effect, Grain, InputPorts,
    Inputs, LowerContext, Lowering, MAIN, Operator, Port, Ports, SideFile, StepError, TableSchema,
    TableStep, TypedOperator, args_schema, parse_column,
};
use galeras_workflow::code::Code;

use crate::sandbox::SandboxArg;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The command, run by `sh -c` in the folder of the workflow file.
    #[schemars(extend("x-language" = "shell"))]
    command: String,
    /// How tables are passed in and out.
    #[serde(default)]
    format: Format,
    /// The columns that the command prints: name -> type, as in a `schema:` contract.
    output: Map<String, Value>,
    /// Files that the command reads, relative to the workflow file: a sandbox has no others. Their
    /// content enters the key, so a changed file is a reason to run. Programs in source code that the
    /// command names are added to them.
    #[serde(default)]
    files: Vec<String>,
    /// The columns that identify a row; `id` if there is one, else all columns.
    #[serde(default)]
    key: Option<Vec<String>>,
    /// The confinement of the command: `auto`, `none`, or `auto` with more rights. `none`,
    /// `command` and most rights need consent.
    #[serde(default)]
    sandbox: SandboxArg,
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

struct ExecOperator;

/// The operator.
pub const EXEC: &dyn Operator = &ExecOperator;

impl TypedOperator for ExecOperator {
    type Args = Args;

    const DESCRIPTOR: Descriptor = Descriptor {
        name: "exec",
        version: 2,
        grain: Grain::of::<BoundExec, _>(),
        effect: Effect::External,
        inputs: InputPorts::Any,
        doc: include_str!("doc.md"),
        args_schema: args_schema::<Args>,
    };

    fn bind(args: Args, cx: &BindContext) -> Result<Box<dyn BoundStep>, Vec<ArgError>> {
        let mut errors = Vec::new();
        let mut fields = Vec::new();
        for (name, kind) in &args.output {
            match parse_column(name, kind.as_str().unwrap_or_default()) {
                Ok(field) => fields.push(field),
                Err(why) => {
                    errors.push(ArgError::new(format!("output.{name}"), Code::UnknownType, why));
                }
            }
        }
        if args.output.is_empty() {
            let message = "`output` declares no columns";
            errors.push(ArgError::new("output", Code::MissingArgument, message));
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
                errors.push(ArgError::missing_file(
                    format!("files[{at}]"),
                    message,
                    &cx.base,
                    name,
                ));
            }
        }
        errors.extend(args.sandbox.check(&cx.base));
        ArgError::none(errors)?;
        let table = TableSchema::new(Arc::clone(&schema), args.key.clone());
        let base = cx.base.clone();
        let mut files = args.files.clone();
        for name in named_files(&args.command) {
            let path = base.join(&name);
            if path.is_file() && !files.iter().any(|file| base.join(file) == path) {
                files.push(name);
            }
        }
        Ok(Box::new(BoundExec { args, files, schema, base, ports: vec![Port::new(MAIN, table)] }))
    }
}

#[derive(Debug)]
struct BoundExec {
    args: Args,
    /// Those of the arguments, then those that the command names.
    files: Vec<String>,
    schema: SchemaRef,
    base: PathBuf,
    ports: Vec<Port>,
}

impl BoundStep for BoundExec {
    fn args(&self) -> Value {
        // The order of the columns is part of the result, so it enters the key.
        let output: Vec<Value> =
            self.args.output.iter().map(|(name, kind)| json!([name, kind])).collect();
        let mut args = json!({
            "command": self.args.command,
            "format": self.args.format,
            "output": output,
            "key": self.ports[0].table.key,
        });
        if !self.args.sandbox.is_default() {
            args["sandbox"] = json!(self.args.sandbox);
        }
        args
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn side_files(&self) -> Result<Vec<SideFile>, StepError> {
        self.files
            .iter()
            .map(|name| {
                // Hashed in pieces: the file may be larger than the memory.
                let digest = small_file::open(&self.base.join(name)).and_then(Digest::of_reader);
                let digest = digest
                    .map_err(|e| StepError::new(format!("cannot read `{name}`: {e}")).because(e))?;
                Ok(SideFile { name: name.clone(), digest })
            })
            .collect()
    }

    fn demands(&self) -> Vec<Demand> {
        let command = self.args.command.clone();
        // A missing file is an error of the key and needs no consent.
        let files = self.side_files().unwrap_or_default();
        let rights = self.args.sandbox.demands(&command, &self.base);
        let access = Access::Program { command, folder: self.base.clone(), files };
        let mut demands = vec![Demand::new("command", access)];
        // In a sandbox it sees these, and a link may lead anywhere. Without one it sees everything.
        if !self.args.sandbox.is_none() {
            let reads = self.local_files().into_iter();
            demands.extend(reads.map(|(at, path)| Demand::new(at, Access::Read { path })));
        }
        demands.extend(rights);
        demands
    }

    fn local_files(&self) -> Vec<(String, PathBuf)> {
        let place = |at: usize| match at < self.args.files.len() {
            true => format!("files[{at}]"),
            false => "command".to_string(),
        };
        let files = self.files.iter().enumerate();
        files.map(|(at, name)| (place(at), self.base.join(name))).collect()
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Table(self)
    }
}

impl TableStep for BoundExec {
    fn lower<'a>(
        &'a self,
        cx: &'a LowerContext,
        inputs: Inputs,
    ) -> BoxFuture<'a, Result<Ports, StepError>> {
        Box::pin(async move {
            let (mut files, scratch) = (Vec::new(), cx.scratch.path()?);
            for (name, df) in inputs {
                let path = scratch.join(format!("input-{name}"));
                let schema: SchemaRef = Arc::new(df.schema().as_arrow().clone());
                let batches = df.collect().await?;
                write_table(&path, self.args.format, &schema, &batches).map_err(|error| {
                    let message = format!("cannot write `{name}` for the command: {error}");
                    StepError::new(message).because(error).help(room())
                })?;
                files.push((name, path));
            }
            let (command, output) = (&self.args.command, scratch.join("output"));
            if self.args.sandbox.is_none() {
                process::run(command, cx, &files, &output).await?;
            } else {
                confined::run(&self.args, &self.files, cx, &files, &output).await?;
            }
            let batches = read_table(&output, self.args.format, &self.schema).map_err(|what| {
                let command = shown(command);
                StepError::new(format!(
                    "the command {command} printed rows that break its `output` schema: {what}"
                ))
            })?;
            let table = MemTable::try_new(Arc::clone(&self.schema), vec![batches])?;
            Ok(vec![(MAIN, cx.session.read_table(Arc::new(table))?)])
        })
    }
}
