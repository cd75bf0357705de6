//! The plan: steps in order, with their tables, tests, outputs and the page of the study.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::logical_expr::Expr;
use serde_json::{Map, Value, json};
use url::Url;

use super::cell::Cell;
use galeras_chat::{SpendingLimit, Usd};
use galeras_display::PaperTable;
use galeras_operator::{
    Access, BoundStep, MAIN, Operator, Port, Registration, ServerAddress, TableSchema,
};
use galeras_sql::session::OutputShape;
use galeras_workflow::{
    AssertSeverity, KnownPart, Node, Param, Source, SourceSpan, TableView, Workflow,
};

/// A bound, typed, acyclic workflow.
pub struct Plan {
    /// The workflow's name.
    pub name: String,
    /// The path of the file, as given.
    pub file: String,
    /// The settings of the command line, `name=value`, as typed in the current folder.
    pub set: Vec<String>,
    /// The values of the parameters.
    pub params: Map<String, Value>,
    /// The steps; every step comes after its inputs.
    pub steps: Vec<PlannedStep>,
    /// The files to write.
    pub outputs: Vec<PlannedOutput>,
    /// The page of the study.
    pub report: PlannedReport,
    /// The spending limits.
    pub limits: Vec<PlannedLimit>,
    /// Another store whose results may be used.
    pub remote: Option<PlannedRemote>,
    /// The signers whose results are accepted from a remote; `None` if signatures are not required.
    pub allowed_signers: Option<PlannedSigners>,
    /// The folder for files that steps fetch.
    pub downloads: PathBuf,
    /// The files that define it: its own first, then those that it embeds, and contracts.
    pub(super) written_in: Vec<PathBuf>,
    pub(super) workflow: Workflow,
    /// The targets of step names: those of the workflow under the empty text, those of an embedded
    /// one under the prefix of its steps' names (`collect[n=1]/`).
    pub(super) scopes: HashMap<String, StepScope>,
}

impl Plan {
    /// The name of the workflow's file, without the folder.
    pub fn file_name(&self) -> String {
        let name = Path::new(&self.file).file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// The workflow's own description.
    pub fn description(&self) -> Option<&str> {
        self.workflow.description.as_ref().map(|text| text.value.as_str())
    }

    /// The local files of the workflow, each once: those that define it, its own first, then those
    /// that its steps read.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut files = self.written_in.clone();
        let mut known: HashSet<PathBuf> = files.iter().cloned().collect();
        let read = self.steps.iter().flat_map(|step| step.step.local_files());
        let read = read.flat_map(|(_, path)| files_at(path));
        files.extend(read.filter(|path| known.insert(path.clone())));
        files
    }

    /// The parameters as the workflow declares them.
    pub fn declared_params(&self) -> &[Param] {
        &self.workflow.params
    }

    /// The step of that full name (`collect/methods`, `gen[model=a]`).
    pub fn step(&self, name: &str) -> Option<&PlannedStep> {
        self.steps.iter().find(|s| s.name == name)
    }

    /// The steps that `name` refers to: the step of that full name, all cells of a matrix step
    /// (`gen` or `gen[*]`), or all steps of an embedded workflow.
    pub fn matching(&self, name: &str) -> Vec<usize> {
        let name = name.strip_suffix("[*]").unwrap_or(name);
        let part_of = |full: &str| {
            full.strip_prefix(name).is_some_and(|rest| {
                rest.is_empty() || rest.starts_with('[') || rest.starts_with('/')
            })
        };
        (0..self.steps.len()).filter(|i| part_of(&self.steps[*i].name)).collect()
    }

    /// The given steps with all their ancestors.
    pub fn with_ancestors(&self, steps: &[usize]) -> Vec<usize> {
        with_ancestors(&self.steps, steps.iter().copied())
    }

    /// The number of `wanted` steps that may run at the same time as this one, counted up to
    /// `most`: neither needs the other.
    pub fn independent_of(&self, step: usize, wanted: &[bool], most: usize) -> usize {
        let mut needed = vec![false; self.steps.len()];
        self.with_ancestors(&[step]).into_iter().for_each(|i| needed[i] = true);
        // Earlier steps do not need it.
        let before = (0..step).filter(|i| wanted[*i] && !needed[*i]).take(most).count();
        let mut after = vec![false; self.steps.len()];
        after[step] = true;
        let behind = (step + 1..self.steps.len()).filter(|i| {
            after[*i] = self.steps[*i].upstream().any(|u| after[u]);
            wanted[*i] && !after[*i]
        });
        before + behind.take(most - before).count()
    }
}

/// The file at this path, or the files of the folder there that are not hidden.
fn files_at(path: PathBuf) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path];
    }
    let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
    let shown = entries.filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."));
    let mut files: Vec<PathBuf> = shown.map(|entry| entry.path()).collect();
    files.retain(|file| file.is_file());
    files.sort();
    files
}

/// The steps at these positions with all their ancestors, in order. Steps that could not be planned
/// have no position, and are left out.
pub(super) fn with_ancestors(
    steps: &[PlannedStep],
    wanted: impl Iterator<Item = usize>,
) -> Vec<usize> {
    let mut needed = vec![false; steps.len()];
    wanted.filter(|step| *step < steps.len()).for_each(|step| needed[step] = true);
    add_ancestors(steps, &mut needed);
    (0..needed.len()).filter(|at| needed[*at]).collect()
}

/// Adds the steps that needed steps read; every step comes after its inputs.
pub(super) fn add_ancestors(steps: &[PlannedStep], needed: &mut [bool]) {
    for at in (0..steps.len()).rev() {
        if needed[at] {
            let planned = steps[at].upstream().filter(|upstream| *upstream < steps.len());
            planned.for_each(|upstream| needed[upstream] = true);
        }
    }
}

/// The `remote` of a workflow: another store.
#[derive(Clone, Debug)]
pub struct PlannedRemote {
    /// The folder, or the URL as written.
    pub location: String,
    /// The access that reading requires.
    pub access: Access,
    /// The place of the value.
    pub place: SourceSpan,
}

/// The file of allowed signers that a workflow names.
#[derive(Clone, Debug)]
pub struct PlannedSigners {
    /// The file.
    pub path: PathBuf,
    /// The place of the value.
    pub place: SourceSpan,
}

impl PlannedSigners {
    /// The access that reading requires.
    pub fn access(&self) -> Access {
        Access::Read { path: self.path.clone() }
    }
}

impl PlannedRemote {
    /// The remote that a workflow in the folder `base` names; `None` if the text is not a location.
    pub(super) fn of(text: &str, base: &Path, place: SourceSpan) -> Option<Self> {
        if !text.contains("://") {
            let path = base.join(text);
            let location = path.to_str()?.to_string();
            let access = Access::Read { path };
            return (!text.is_empty()).then_some(Self { location, access, place });
        }
        // Parsed in the same way as `Remote` does, so that consent is for the location that is
        // opened.
        let url = Url::parse(text).ok()?;
        let access = match url.scheme() {
            "file" => Access::Read { path: url.to_file_path().ok()? },
            _ => Access::Host { to: ServerAddress::of(text)? },
        };
        Some(Self { location: text.to_string(), access, place })
    }

    /// The access that writing requires.
    pub fn writing(&self) -> Access {
        match &self.access {
            Access::Read { path } => Access::Write { path: path.clone() },
            other => other.clone(),
        }
    }
}

/// The target of a step's name, in one cell.
#[derive(Clone)]
pub(super) enum StepTarget {
    Step(usize),
    /// An embedded workflow: its outputs.
    Embedded(BTreeMap<String, Input>),
    /// Something that could not be planned, with its tables as far as they are known; the reason is
    /// reported.
    Outline(Arc<[Port]>),
    /// Something that could not be planned; the reason is reported.
    Broken,
}

/// The steps of one file by name, with their cells in order.
pub(super) type StepScope = BTreeMap<String, Vec<(Cell, StepTarget)>>;

/// A step that is ready to run.
pub struct PlannedStep {
    /// The full name, with the embedding steps and the cell.
    pub name: String,
    /// The name without cells, which all cells of a matrix step share (`collect/gen`).
    pub family: String,
    /// The operator.
    pub operator: &'static dyn Operator,
    /// The operator bound to arguments and input schemas.
    pub step: Arc<dyn BoundStep>,
    /// The tables it reads, by input port.
    pub inputs: Vec<Input>,
    /// The data tests of its results.
    pub checks: Vec<Check>,
    /// The folder of its workflow file.
    pub base: PathBuf,
    /// The text of its workflow file.
    pub source: Arc<Source>,
    /// The arguments as written, expressions replaced, with their places.
    pub arguments: Option<Node>,
    /// The place of the step's name.
    pub place: SourceSpan,
    /// The lock file has the answer to its external request.
    pub pinned: bool,
    /// Its registration, if the workflow's `prereg` names it.
    pub registration: Option<Arc<Registration>>,
}

impl PlannedStep {
    /// The positions in the plan of the steps it reads.
    pub fn upstream(&self) -> impl Iterator<Item = usize> {
        self.inputs.iter().flat_map(|input| input.tables.iter().map(|t| t.step))
    }

    /// The output port of that name.
    pub fn port(&self, name: &str) -> Option<&Port> {
        self.step.ports().iter().find(|p| p.name == name)
    }

    /// The place of the nearest written argument; the step's name for the empty path.
    pub fn span_of(&self, path: &str) -> SourceSpan {
        match &self.arguments {
            Some(node) if !path.is_empty() => {
                SourceSpan::new(&self.source, node.nearest(path).span)
            }
            _ => self.place.clone(),
        }
    }

    /// The place of an argument: `file:line:column` of the nearest written one.
    pub fn place_of(&self, path: &str) -> String {
        let span = self.span_of(path);
        let position = self.source.position(span.start);
        format!("{}:{}:{}", self.source.path(), position.line, position.column)
    }
}

impl fmt::Debug for PlannedStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlannedStep").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A limit on what steps may spend together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedLimit {
    /// The limit. Its account is the path of a step, or that of a workflow with a slash.
    pub limit: SpendingLimit,
    /// The positions of the steps.
    pub steps: Vec<usize>,
}

#[derive(Clone, Debug)]
pub(super) struct FileBudget {
    /// The path of its steps: nothing, or `collect/`.
    pub(super) path: String,
    pub(super) max_usd: Option<Usd>,
    pub(super) max_requests: Option<u64>,
    pub(super) place: SourceSpan,
}

/// A data test of a port.
#[derive(Clone, Debug)]
pub struct Check {
    /// The port.
    pub port: &'static str,
    /// The condition that must hold.
    pub kind: CheckKind,
    /// The consequence of a failure.
    pub severity: AssertSeverity,
    /// Its place in the file.
    pub place: SourceSpan,
}

/// The condition of a data test.
#[derive(Clone, Debug)]
pub enum CheckKind {
    /// No two rows agree in these columns.
    Unique(Vec<String>),
    /// These columns have no nulls.
    NotNull(Vec<String>),
    /// The column has only these values; nulls are allowed.
    AcceptedValues {
        /// The column.
        column: String,
        /// The values as texts.
        values: Vec<String>,
    },
    /// The condition is true for every row.
    Holds {
        /// The SQL text as written.
        sql: String,
        /// The bound expression.
        expr: Box<Expr>,
    },
    /// The number of rows is within these bounds.
    Rows {
        /// The least number.
        min: Option<u64>,
        /// The greatest number.
        max: Option<u64>,
    },
}

impl CheckKind {
    /// The test as data, for the key of its stored outcome.
    pub fn preimage(&self) -> Value {
        match self {
            Self::Unique(columns) => json!({"unique": columns}),
            Self::NotNull(columns) => json!({"not_null": columns}),
            Self::AcceptedValues { column, values } => {
                json!({"accepted_values": {"column": column, "values": values}})
            }
            Self::Holds { sql, .. } => json!({"expr": sql}),
            Self::Rows { min, max } => json!({"rows": {"min": min, "max": max}}),
        }
    }
}

impl fmt::Display for CheckKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unique(columns) => write!(f, "unique: [{}]", columns.join(", ")),
            Self::NotNull(columns) => write!(f, "not_null: [{}]", columns.join(", ")),
            Self::AcceptedValues { column, values } => {
                write!(f, "accepted_values of {column}: [{}]", values.join(", "))
            }
            Self::Holds { sql, .. } => write!(f, "expr: {sql}"),
            Self::Rows { min, max } => {
                let bound = |b: &Option<u64>| b.map_or("any".to_string(), |b| b.to_string());
                write!(f, "rows: min {}, max {}", bound(min), bound(max))
            }
        }
    }
}

/// A file to write.
#[derive(Clone, Debug)]
pub struct PlannedOutput {
    /// The output's name.
    pub name: String,
    /// The table.
    pub input: Input,
    /// The path, relative to `--out`.
    pub path: PathBuf,
    /// The file format.
    pub format: OutputFormat,
    /// The shape, if not that of the table.
    pub shape: Option<OutputShape>,
    /// The least number of rows. Without it, an empty table is an error if rows were lost.
    pub min_rows: Option<u64>,
    /// The greatest number of rows.
    pub max_rows: Option<u64>,
    /// It is also printed at the end of a run.
    pub show: bool,
    /// The place of the path.
    pub place: SourceSpan,
}

/// The format of an output file, by its suffix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// Apache Parquet.
    Parquet,
    /// One JSON object per line.
    Jsonl,
    /// An array of JSON objects.
    Json,
    /// Comma-separated values with a header line.
    Csv,
    /// A table for a paper: `.tex`, `.md`.
    Paper(PaperTable),
    /// The value of one column of a table of one row, unchanged: `.txt`, `.json`, `.svg`, `.html`.
    Text {
        /// The column.
        column: String,
    },
    /// A figure, from the SVG in one column of a table of one row.
    Picture {
        /// The column.
        column: String,
        /// The picture format.
        format: PictureFormat,
    },
}

/// The format of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PictureFormat {
    /// Shapes and text, with its font.
    Svg,
    /// Pixels: 300 per inch.
    Png,
    /// A PDF file.
    Pdf,
}

/// The table of one input port: one artifact, or the united cells of a matrix step.
#[derive(Clone, Debug)]
pub struct Input {
    /// The input port.
    pub port: String,
    /// The artifacts.
    pub tables: Vec<TableRef>,
    /// The cells are united, with their keys as columns (`step[*]`).
    pub united: bool,
    /// The columns of the input.
    pub schema: TableSchema,
}

impl Input {
    /// The table of a port of the step at this position.
    pub(super) fn of(step: usize, output: &Port, port: &str) -> Self {
        let table = TableRef { step, port: output.name, cell: Vec::new() };
        let schema = output.table.materialised();
        Self { port: port.to_string(), tables: vec![table], united: false, schema }
    }

    pub(super) fn unknown(port: &str) -> Self {
        let table = TableRef { step: NOWHERE, port: MAIN, cell: Vec::new() };
        let schema = TableSchema { open: true, ..TableSchema::default() };
        Self { port: port.to_string(), tables: vec![table], united: false, schema }
    }
}

/// The position of a step that could not be planned. A finished plan has none, as there are errors
/// then.
pub(super) const NOWHERE: usize = usize::MAX;

/// A port of a planned step.
#[derive(Clone, Debug)]
pub struct TableRef {
    /// The step's position in the plan.
    pub step: usize,
    /// The port.
    pub port: &'static str,
    /// Its cell, for united cells.
    pub cell: Cell,
}

/// The content of a study's page.
#[derive(Clone, Debug, Default)]
pub struct PlannedReport {
    /// Its file; `None` to write it only on request.
    pub file: Option<PlannedReportFile>,
    /// The title, if it is not the workflow's name.
    pub title: Option<String>,
    /// The sections in their order; `None` for those that suit the results.
    pub sections: Option<Vec<PlannedSection>>,
}

/// The file of a study's page.
#[derive(Clone, Debug)]
pub struct PlannedReportFile {
    /// The path, relative to `--out`.
    pub path: PathBuf,
    /// The place of the path in the workflow.
    pub place: SourceSpan,
}

/// A section of the page.
#[derive(Clone, Debug)]
pub struct PlannedSection {
    /// Its content.
    pub part: PlannedPart,
    /// The text above it.
    pub heading: Option<String>,
    /// The text below it.
    pub caption: Option<String>,
    /// The columns; all if empty.
    pub columns: Vec<String>,
    /// The maximum number of rows.
    pub limit: Option<usize>,
}

/// The content of a section. The name is the reference as written in the workflow.
#[derive(Clone, Debug)]
pub enum PlannedPart {
    /// Markdown.
    Text(String),
    /// A table, in this form.
    Table(TableView, String, Input),
    /// Information of the program that is not a table.
    Known(KnownPart),
}

impl PlannedReport {
    /// The tables that it shows.
    pub fn inputs(&self) -> impl Iterator<Item = &Input> {
        self.sections.iter().flatten().filter_map(|section| {
            if let PlannedPart::Table(_, _, input) = &section.part { Some(input) } else { None }
        })
    }

    pub(super) fn inputs_mut(&mut self) -> impl Iterator<Item = &mut Input> {
        self.sections.iter_mut().flatten().filter_map(|section| {
            if let PlannedPart::Table(_, _, input) = &mut section.part { Some(input) } else { None }
        })
    }
}
