//! The raw specification: the content of a workflow file, with the place of everything.
//!
//! Nothing is resolved: operators, ports, columns and steps are names, `with` is a tree,
//! expressions are not substituted. The plan checks that the names exist.

use std::fmt;
use std::sync::Arc;

use strum::{EnumString, IntoStaticStr, VariantNames};

use super::columns::ItemType;
use super::node::Node;
use super::source::{Source, Span};

/// A string with its place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text {
    /// The string.
    pub value: String,
    /// Its bytes, with quotes.
    pub span: Span,
}

/// A workflow file. Wrong parts are absent or marked `Invalid`, and have a diagnostic; the rest can
/// still be checked.
#[derive(Debug, Clone)]
pub struct Workflow {
    /// The text, for the places of later diagnostics.
    pub source: Arc<Source>,
    /// The format version, always 1.
    pub format: u32,
    /// `name`
    pub name: Option<Text>,
    /// `description`
    pub description: Option<Text>,
    /// `remote`
    pub remote: Option<RemoteSpec>,
    /// `prereg`: the names of steps.
    pub prereg: Vec<Text>,
    /// `budget`
    pub budget: Option<BudgetSpec>,
    /// `params` in the order of the file; names may repeat after a `duplicate-key` error.
    pub params: Vec<Param>,
    /// `steps`, in the same way.
    pub steps: Vec<StepSpec>,
    /// `outputs`, in the same way.
    pub outputs: Vec<Output>,
    /// `report`
    pub report: Option<ReportSpec>,
    /// The whole document.
    pub node: Node,
}

impl Workflow {
    /// The first parameter of a name.
    pub fn param(&self, name: &str) -> Option<&Param> {
        self.params.iter().find(|p| p.name.value == name)
    }

    /// The first step of a name.
    pub fn step(&self, name: &str) -> Option<&StepSpec> {
        self.steps.iter().find(|s| s.name.value == name)
    }
}

/// `remote`: another store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteSpec {
    /// A folder, or a URL.
    pub url: Text,
    /// The file of the signers whose results are accepted.
    pub allowed_signers: Option<Text>,
}

/// `budget`: the limits for all steps of a workflow together; numbers or expressions.
#[derive(Debug, Clone)]
pub struct BudgetSpec {
    /// The maximum of US dollars.
    pub max_usd: Option<Node>,
    /// The maximum of requests.
    pub max_requests: Option<Node>,
    /// The key.
    pub span: Span,
}

/// The type of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum ParamType {
    /// A 64-bit integer.
    Int,
    /// A number; integers are accepted.
    Float,
    /// Text.
    String,
    /// `true` or `false`.
    Bool,
    /// A path: relative to the workflow file if written there, to the current folder in `--set`.
    Path,
    /// A list of any values.
    List,
    /// A mapping from names to any values.
    Mapping,
    /// Repositories in one text, as `query` takes them; its paths are like those of `Path`.
    Repos,
}

impl ParamType {
    /// The name in a workflow.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// An entry of `params`.
#[derive(Debug, Clone, Default)]
pub struct Param {
    /// The key.
    pub name: Text,
    /// `type`; `None` if it is missing or unknown, which has been reported.
    pub ty: Option<ParamType>,
    /// `default`; without one, a value must be given.
    pub default: Option<Node>,
    /// `min`, inclusive, of an `int` or `float`.
    pub min: Option<Node>,
    /// `max`, inclusive, of an `int` or `float`.
    pub max: Option<Node>,
    /// `choices`, each of the parameter's type, or allowed entries of a list; empty if there are
    /// none.
    pub choices: Vec<Node>,
    /// `help`
    pub help: Option<Text>,
    /// The value under the key.
    pub span: Span,
}

/// The kind of a step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum StepKind {
    /// `op: name`
    Op(Text),
    /// `uses: ./other.yaml`, relative to the workflow file.
    Uses(Text),
    /// Neither could be read; reported.
    #[default]
    Invalid,
}

/// The selected cells of a matrix step.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Cells {
    /// `a`: the step, or the cell that matches the reader's.
    Plain,
    /// `a[*]`: all cells, united, with the matrix keys as columns.
    All,
    /// `a[model=x,seed=1]`: those whose keys have these values, in the order written.
    Select(Vec<(String, String)>),
}

/// A reference to a step's output: `a`, `a.rejects`, `a[*]`, `a[model=x].rejects`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepRef {
    /// The step.
    pub step: String,
    /// The output port, if one is named.
    pub port: Option<String>,
    /// The cells.
    pub cells: Cells,
    /// The whole reference.
    pub span: Span,
    /// The step's name in it.
    pub step_span: Span,
    /// The port's name in it, without the dot.
    pub port_span: Option<Span>,
}

impl fmt::Display for StepRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.step)?;
        match &self.cells {
            Cells::Plain => {}
            Cells::All => f.write_str("[*]")?,
            Cells::Select(keys) => {
                let keys: Vec<String> = keys.iter().map(|(k, v)| format!("{k}={v}")).collect();
                write!(f, "[{}]", keys.join(","))?;
            }
        }
        self.port.iter().try_for_each(|port| write!(f, ".{port}"))
    }
}

/// A reference as written.
#[derive(Debug, Clone, PartialEq)]
pub enum Reference {
    /// It names its step.
    Fixed(StepRef),
    /// It names a step when its expressions have values: `testbeds.${{ params.testbed }}`.
    Open(Node),
    /// It could not be read; reported.
    Invalid(Span),
}

impl Reference {
    /// The reference, if it names its step.
    pub fn fixed(&self) -> Option<&StepRef> {
        if let Self::Fixed(reference) = self { Some(reference) } else { None }
    }

    /// Its place.
    pub fn span(&self) -> Span {
        match self {
            Self::Fixed(reference) => reference.span,
            Self::Open(node) => node.span,
            Self::Invalid(span) => *span,
        }
    }
}

/// The inputs of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum From {
    /// `from: a`: the only input port.
    One(Reference),
    /// `from: { left: a, right: b }`: input ports by name.
    Ports(Vec<(Text, Reference)>),
    /// It could not be read; reported.
    Invalid(Span),
}

impl From {
    /// The references in the order of the file.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        let (one, ports) = match self {
            Self::One(r) => (Some(r), None),
            Self::Ports(ports) => (None, Some(ports)),
            Self::Invalid(_) => (None, None),
        };
        one.into_iter().chain(ports.into_iter().flatten().map(|(_, r)| r))
    }

    /// The references that name their step.
    pub fn refs(&self) -> impl Iterator<Item = &StepRef> {
        self.references().filter_map(Reference::fixed)
    }
}

/// A column of a schema contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaField {
    /// The column.
    pub column: Text,
    /// Its type.
    pub ty: ItemType,
    /// The type's place.
    pub span: Span,
}

/// `schema` of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contract {
    /// Columns and types, written in place.
    Fields(Vec<SchemaField>),
    /// The path of a contract file, relative to the workflow file.
    File(Text),
}

/// The effect of a failed assertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum AssertSeverity {
    /// Stops the steps that depend on it.
    #[default]
    Error,
    /// Only reports it.
    Warn,
}

/// The condition of an assertion. `VARIANTS` are the keys of the kinds in a workflow.
#[derive(Debug, Clone, PartialEq, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum AssertKind {
    /// `unique: [a, b]`: no two rows agree in all of these columns.
    Unique(Vec<Text>),
    /// `not_null: [a]`: no nulls in any of these columns.
    NotNull(Vec<Text>),
    /// `accepted_values: { column: c, values: […] }`; scalars or expressions.
    AcceptedValues {
        /// The column.
        column: Text,
        /// The values.
        values: Vec<Node>,
    },
    /// `expr: SQL` that is true for every row; may contain expressions.
    Expr(Node),
    /// `rows: { min: 1, max: 9 }`: natural numbers or expressions, at least one of the two.
    Rows {
        /// The least number of rows.
        min: Option<Node>,
        /// The greatest number of rows.
        max: Option<Node>,
    },
}

/// An entry of `assert`.
#[derive(Debug, Clone, PartialEq)]
pub struct Assert {
    /// The condition.
    pub kind: AssertKind,
    /// The effect of a failure.
    pub severity: AssertSeverity,
    /// The output port that it checks; the main one if absent.
    pub port: Option<Text>,
    /// The whole entry.
    pub span: Span,
}

/// An entry of `steps`.
#[derive(Debug, Clone, Default)]
pub struct StepSpec {
    /// The key.
    pub name: Text,
    /// `op` or `uses`.
    pub kind: StepKind,
    /// `from`; a source has none.
    pub from: Option<From>,
    /// `with`, always a mapping.
    pub with: Option<Node>,
    /// `matrix`, as written; [`matrix_axes`](super::matrix_axes) reads it when its expressions have
    /// values.
    pub matrix: Option<Node>,
    /// `schema`
    pub schema: Option<Contract>,
    /// `assert`
    pub asserts: Vec<Assert>,
    /// `description`
    pub description: Option<Text>,
    /// The value under the key.
    pub span: Span,
}

/// An entry of `outputs`.
#[derive(Debug, Clone)]
pub struct Output {
    /// The key.
    pub name: Text,
    /// The table to write.
    pub from: Reference,
    /// The path, relative to `--out`; may contain expressions.
    pub path: Node,
    /// The text column whose only value becomes the file.
    pub column: Option<Text>,
    /// The name of the shape of its rows.
    pub shape: Option<Text>,
    /// The number of rows that the table must have, as in `assert`.
    pub rows: Option<AssertKind>,
    /// How it is set in a paper.
    pub paper: PaperSpec,
    /// The table is also printed at the end of a run.
    pub show: bool,
    /// The value under the key.
    pub span: Span,
}

/// How a table is set in a paper: the keys of `.tex` and `.md` outputs.
#[derive(Debug, Clone, Default)]
pub struct PaperSpec {
    /// The first of these keys, if there is one.
    pub first: Option<Text>,
    /// The columns, in this order; all if empty.
    pub columns: Vec<Text>,
    /// The decimals of numbers with a fraction.
    pub digits: Option<usize>,
    /// The caption.
    pub caption: Option<Text>,
    /// The label in LaTeX.
    pub label: Option<Text>,
    /// Columns whose best number is bold, with `max` or `min`.
    pub bold: Vec<(Text, Text)>,
    /// The column whose values become columns, and the one whose values are in them.
    pub pivot: Option<(Text, Text)>,
}

/// `report`: the content of a study's page, in order.
#[derive(Debug, Clone)]
pub struct ReportSpec {
    /// The path for `run`, relative to `--out`.
    pub path: Option<Text>,
    /// The title; the workflow's name if absent.
    pub title: Option<Text>,
    /// The sections; those that suit the results if absent.
    pub sections: Option<Vec<ReportSection>>,
}

/// An entry of `sections`.
#[derive(Debug, Clone)]
pub struct ReportSection {
    /// The content.
    pub part: ReportPart,
    /// The text above it.
    pub heading: Option<Text>,
    /// The text below a figure or a table.
    pub caption: Option<Text>,
    /// The columns of a table or of rows; all if absent.
    pub columns: Vec<Text>,
    /// The maximum number of rows of a table or of rows.
    pub limit: Option<usize>,
    /// The whole entry.
    pub span: Span,
}

/// The content of a report's section.
#[derive(Debug, Clone)]
pub enum ReportPart {
    /// Markdown.
    Text(Text),
    /// A table, in this form.
    Table(TableView, Reference),
    /// Information that the program has without a table.
    Known(KnownPart),
}

impl ReportPart {
    /// The table of the section.
    pub fn table(&self) -> Option<&Reference> {
        if let Self::Table(_, from) = self { Some(from) } else { None }
    }

    /// The same, mutable.
    pub fn table_mut(&mut self) -> Option<&mut Reference> {
        if let Self::Table(_, from) = self { Some(from) } else { None }
    }
}

/// The forms in which a report shows a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum TableView {
    /// The sentences of a table of findings.
    Findings,
    /// The pictures of a table with a column `svg`.
    Figure,
    /// A table to read.
    Table,
    /// Single rows: question, answer, and reference.
    Rows,
}

/// Sections of a report that need no table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum KnownPart {
    /// The steps and their results.
    Graph,
    /// The steps at which rows were lost, and why.
    Attrition,
    /// Rejected estimates, and failed or warning data tests.
    Diagnostics,
    /// The models, and the guidelines for studies with language models.
    Guidelines,
    /// Instructions to reproduce the results.
    Reproduce,
}
