//! The plan: what is run, in which order, with which tables.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use datafusion::logical_expr::Expr;
use serde_json::{Map, Value, json};

use super::cell::Cell;
use crate::operator::{BoundStep, Operator, Port, TableSchema};
use crate::workflow::{AssertSeverity, Node, Source, SourceSpan};

/// A bound, typed, acyclic workflow.
pub struct Plan {
    /// The workflow's name.
    pub name: String,
    /// The file, as it was given.
    pub file: String,
    /// The values of the parameters.
    pub params: Map<String, Value>,
    /// The steps; every step comes after those it reads.
    pub steps: Vec<PlannedStep>,
    /// The files to write.
    pub outputs: Vec<PlannedOutput>,
    /// The folder for what steps fetch.
    pub downloads: PathBuf,
}

impl Plan {
    /// The step of that full name (`collect/methods`, `gen[model=a]`).
    pub fn step(&self, name: &str) -> Option<&PlannedStep> {
        self.steps.iter().find(|s| s.name == name)
    }

    /// The steps that `name` stands for: the step of that full name, all cells of a matrix
    /// step, or all steps of an embedded workflow.
    pub fn matching(&self, name: &str) -> Vec<usize> {
        let part_of = |full: &str| {
            full.strip_prefix(name).is_some_and(|rest| {
                rest.is_empty() || rest.starts_with('[') || rest.starts_with('/')
            })
        };
        (0..self.steps.len()).filter(|i| part_of(&self.steps[*i].name)).collect()
    }

    /// The given steps with everything they need.
    pub fn with_ancestors(&self, steps: &[usize]) -> Vec<usize> {
        let mut needed = vec![false; self.steps.len()];
        steps.iter().for_each(|i| needed[*i] = true);
        for i in (0..self.steps.len()).rev() {
            if needed[i] {
                self.steps[i].upstream().for_each(|u| needed[u] = true);
            }
        }
        (0..needed.len()).filter(|i| needed[*i]).collect()
    }
}

/// One step, ready to be run.
pub struct PlannedStep {
    /// The full name, with the embedding steps and the cell.
    pub name: String,
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
    /// Whether the lock file has the answer to what it asks of the world.
    pub pinned: bool,
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

    /// The nearest place to an argument that is written; the step's name for the empty path.
    pub fn span_of(&self, path: &str) -> SourceSpan {
        match &self.arguments {
            Some(node) if !path.is_empty() => {
                SourceSpan::new(&self.source, node.nearest(path).span)
            }
            _ => self.place.clone(),
        }
    }

    /// Where an argument stands: `file:line:column` of the nearest place that is written.
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

/// The table of one input port: one artifact, or the united cells of a matrix step.
#[derive(Clone, Debug)]
pub struct Input {
    /// The input port.
    pub port: String,
    /// The artifacts.
    pub tables: Vec<TableRef>,
    /// Whether the cells are united, with their keys as columns (`step[*]`).
    pub united: bool,
    /// The columns of the input.
    pub schema: TableSchema,
}

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

/// A data test of a port.
#[derive(Clone, Debug)]
pub struct Check {
    /// The port.
    pub port: &'static str,
    /// What must hold.
    pub kind: CheckKind,
    /// What happens if it does not.
    pub severity: AssertSeverity,
    /// Where it is written.
    pub place: SourceSpan,
}

/// What a data test asks.
#[derive(Clone, Debug)]
pub enum CheckKind {
    /// No two rows agree in these columns.
    Unique(Vec<String>),
    /// These columns have no nulls.
    NotNull(Vec<String>),
    /// The column has these values only; nulls are allowed.
    AcceptedValues {
        /// The column.
        column: String,
        /// The values as texts.
        values: Vec<String>,
    },
    /// The condition is true for every row.
    Holds {
        /// As written.
        sql: String,
        /// As bound.
        expr: Box<Expr>,
    },
    /// The number of rows lies in these bounds.
    Rows {
        /// At least.
        min: Option<u64>,
        /// At most.
        max: Option<u64>,
    },
}

impl CheckKind {
    /// The test as data, for the key under which its outcome is remembered.
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
    /// Where to, relative to `--out`.
    pub path: PathBuf,
    /// As what.
    pub format: OutputFormat,
    /// Whether it is also printed at the end of a run.
    pub show: bool,
    /// Where the path is written.
    pub place: SourceSpan,
}

/// The format of an output file, by its suffix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// Apache Parquet.
    Parquet,
    /// One JSON object per line.
    Jsonl,
    /// Comma-separated values with a header line.
    Csv,
    /// The value of one column of a table of one row, as it is.
    Text {
        /// The column.
        column: String,
    },
}
