//! `methods`: the Python methods of a packed corpus or of a folder.

mod source;

use std::path::PathBuf;

use arrow::datatypes::DataType;
use datafusion::dataframe::DataFrame;
use datafusion::datasource::MemTable;
use datafusion::functions::core::expr_fn::get_field;
use datafusion::functions::regex::expr_fn::regexp_replace;
use datafusion::logical_expr::lit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::source::{FileSource, Origin};
pub(crate) use self::source::{corpus_digest, corpus_files};
use super::patterns::python_files;
use galeras_base::id::ID;
use galeras_operator::rejects::{reject_columns, reject_values};
use galeras_operator::{
    Access, ArgError, BindContext, BoundStep, Demand, Descriptor, Effect, Grain, InputPorts,
    LowerContext, Lowering, MAIN, Operator, Port, Ports, REJECTS, RowStep, SideFile, StepError,
    TableSchema, Tell, TypedOperator, args_schema, describe,
};
use galeras_sql::functions::{METHOD_FIELDS, PythonMethods, RowId, call, methods_type};
use galeras_sql::projection::{keep_hidden, project, text};
use galeras_sql::session::column;
use galeras_workflow::code::Code;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// A corpus that Galeras carries.
    #[serde(default)]
    corpus: Option<Corpus>,
    /// A folder of Python files, relative to the workflow file.
    #[serde(default)]
    dir: Option<String>,
    /// Glob patterns of the files to read.
    #[serde(default = "python_files")]
    include: Vec<String>,
    /// Glob patterns of files to leave out.
    #[serde(default)]
    exclude: Vec<String>,
    /// Also lists functions inside functions.
    #[serde(default)]
    nested: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
enum Corpus {
    /// CPython's standard library: 718 files, about 17,000 methods.
    #[serde(rename = "python-stdlib")]
    PythonStdlib,
}

struct MethodsOperator;

/// The operator.
pub const METHODS: &dyn Operator = &MethodsOperator;

impl TypedOperator for MethodsOperator {
    type Args = Args;

    const DESCRIPTOR: Descriptor = Descriptor {
        name: "methods",
        version: 2,
        grain: Grain::of::<BoundMethods, _>(),
        effect: Effect::Pure,
        inputs: InputPorts::None,
        doc: include_str!("doc.md"),
        args_schema: args_schema::<Args>,
    };

    fn fixed_ports() -> Option<Vec<Port>> {
        Some(ports())
    }

    fn bind(args: Args, cx: &BindContext) -> Result<Box<dyn BoundStep>, Vec<ArgError>> {
        let one = |error| vec![error];
        let origin = match (&args.corpus, &args.dir) {
            (Some(Corpus::PythonStdlib), None) => Origin::Stdlib,
            (None, Some(name)) => {
                let path = cx.base.join(name);
                if !path.is_dir() {
                    let message = format!("there is no folder `{name}`");
                    return Err(one(ArgError::missing_file("dir", message, &cx.base, name)));
                }
                Origin::Folder { name: name.clone(), path }
            }
            (None, None) => {
                let message = "`methods` needs `corpus` or `dir`";
                let error = ArgError::new("", Code::MissingArgument, message);
                return Err(one(error.help("corpus: python-stdlib needs nothing else")));
            }
            (Some(_), Some(_)) => {
                let message = "give either `corpus` or `dir`, not both";
                return Err(one(ArgError::new("dir", Code::ConflictingArguments, message)));
            }
        };
        let source = FileSource::new(origin, &args.include, &args.exclude)?;
        Ok(Box::new(BoundMethods { args, source, ports: ports() }))
    }
}

fn ports() -> Vec<Port> {
    let file = [
        describe(ID, DataType::Utf8, false, "the row's identity", None),
        describe("repo", DataType::Utf8, false, "the corpus or folder", None),
        describe("path", DataType::Utf8, false, "the file's path in the corpus", None),
    ];
    let file_name = describe("file_name", DataType::Utf8, false, "the file's name", None);
    let methods = TableSchema::default().with(&file).with(&[file_name]).with(&methods_type());
    let rejects = TableSchema::default().with(&file).with(&reject_columns());
    vec![Port::new(MAIN, methods.keyed(&[ID])), Port::new(REJECTS, rejects.keyed(&[ID]))]
}

#[derive(Debug)]
struct BoundMethods {
    args: Args,
    source: FileSource,
    ports: Vec<Port>,
}

impl BoundStep for BoundMethods {
    fn args(&self) -> Value {
        let mut args = serde_json::json!(self.args);
        // The folder counts by its content and by its name in `repo`.
        if let Some(map) = args.as_object_mut() {
            map.insert("dir".into(), Value::Null);
            map.insert("repo".into(), Value::String(self.source.repo()));
        }
        args
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn side_files(&self) -> Result<Vec<SideFile>, StepError> {
        Ok(vec![self.source.side_file()?])
    }

    fn local_files(&self) -> Vec<(String, PathBuf)> {
        // An unreadable folder is an error of the key.
        let files = self.source.local_files().unwrap_or_default();
        files.into_iter().map(|path| ("dir".to_string(), path)).collect()
    }

    fn demands(&self) -> Vec<Demand> {
        match &self.source.origin {
            Origin::Stdlib => Vec::new(),
            Origin::Folder { path, .. } => {
                vec![Demand::new("dir", Access::Read { path: path.clone() })]
            }
        }
    }

    fn no_rows_means(&self) -> Option<String> {
        let files = self.source.files().ok()?;
        if files.is_empty() { self.source.nothing_matched().ok() } else { None }
    }

    fn work_unit(&self) -> &'static str {
        "files"
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Row(self)
    }
}

/// The struct column that the function returns for a file.
const FILE: &str = "__file";
const METHOD: &str = "__method";

impl RowStep for BoundMethods {
    fn is_source(&self) -> bool {
        true
    }

    fn source(&self, cx: &LowerContext) -> Result<DataFrame, StepError> {
        let partitions = cx.session.copied_config().target_partitions();
        let files = self.source.files()?;
        if files.is_empty() {
            (cx.tell)(Tell::Warning(self.source.nothing_matched()?));
        }
        let batches = self.source.batches(files, partitions)?;
        let table = MemTable::try_new(source::schema(), batches)?;
        Ok(cx.session.read_table(std::sync::Arc::new(table))?)
    }

    fn reads(&self) -> Vec<String> {
        ["repo", "path", "content"].map(String::from).to_vec()
    }

    fn evaluate(&self, rows: DataFrame) -> Result<DataFrame, StepError> {
        let file = call::<PythonMethods>(vec![column("content"), lit(self.args.nested)]);
        keep_hidden(rows, vec![file.alias(FILE)])
    }

    fn ports(&self, rows: DataFrame) -> Result<Ports, StepError> {
        let field = |name: &str| get_field(column(METHOD), name);
        let file_name = regexp_replace(column("path"), lit("^.*/"), lit(""), None);
        let mut produced = vec![
            (
                ID,
                call::<RowId>(vec![
                    column("repo"),
                    column("path"),
                    field("qualified_name"),
                    field("ordinal"),
                ]),
            ),
            ("file_name", file_name),
        ];
        produced.extend(METHOD_FIELDS.iter().map(|(name, _, _)| (*name, field(name))));
        let of_file = |name: &str| get_field(column(FILE), name);
        // Avoids copies of a file's content for each of its methods.
        let kept = rows
            .clone()
            .select(vec![column("repo"), column("path"), of_file("methods").alias(METHOD)])?
            .unnest_columns(&[METHOD])?
            .filter(column(METHOD).is_not_null())?;
        let rejected = rows.filter(of_file("reason").is_not_null())?;
        let mut reject = reject_values(text("readable"), of_file("reason"));
        reject.push((ID, call::<RowId>(vec![column("repo"), column("path")])));
        Ok(vec![
            (MAIN, project(kept, &self.ports[0].table, produced)?),
            (REJECTS, project(rejected, &self.ports[1].table, reject)?),
        ])
    }
}
