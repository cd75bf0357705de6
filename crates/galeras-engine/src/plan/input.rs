//! The tables that steps read.

use super::cell::Cell;
use galeras_operator::{MAIN, TableSchema};

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
