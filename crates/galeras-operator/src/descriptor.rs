//! The description of an operator, one per operator, in its own file.

use serde_json::Value;

use super::grain::Grain;

/// The influences on an operator's result besides its inputs and arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    Pure,
    /// An explicit seed argument.
    Seeded,
    /// External facts: a network, another program.
    External,
}

impl Effect {
    /// The word for documentation.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pure => "pure",
            Self::Seeded => "seeded",
            Self::External => "external",
        }
    }
}

/// The inputs an operator takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputPorts {
    /// The operator is a source.
    None,
    /// One table, called `input`.
    One,
    /// A table called `input`, and optional tables of these names.
    OneAnd(&'static [&'static str]),
    /// Any number of tables (or none), under the names that the workflow chooses.
    Any,
}

/// The description of an operator. Help, JSON Schema, documentation page and plan-time checks
/// derive from it.
///
/// Each operator's file has one, as a `const`.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor {
    /// The name in `op:`.
    pub name: &'static str,
    /// Increased whenever the result for the same arguments and inputs changes.
    pub version: u32,
    /// The input that one output row depends on: [`Grain::of`] the operator's bound step.
    pub grain: Grain,
    /// The influences besides inputs and arguments.
    pub effect: Effect,
    /// The tables it takes.
    pub inputs: InputPorts,
    /// Markdown: a one-line summary, then the sections What it does, Example, Cost and reuse.
    pub doc: &'static str,
    /// The JSON Schema of the arguments (`with:`).
    pub args_schema: fn() -> Value,
}

impl Descriptor {
    /// The first line of the documentation.
    pub fn summary(&self) -> &'static str {
        self.doc.lines().next().unwrap_or_default()
    }
}
