//! The description of an operator, one per operator, in its own file.

use serde_json::Value;

use super::step::{FanOutStep, Lowering, PaidStep, RowStep, TableStep};

/// The influences on an operator's result besides its inputs and arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
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
        self.into()
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
    /// Markdown: a one-line summary, the operator in two sentences, then the sections Example, Columns
    /// out, Rules, and Cost and limits. At most 900 words.
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

/// The part of the input that one output row depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Grain {
    /// One input row; results are reused row by row.
    Row,
    /// The whole input.
    Table,
}

impl Grain {
    /// The grain of a type of step, from the lowering that the type implements. Write
    /// `Grain::of::<BoundStep, _>()`: the compiler infers the lowering, and rejects a type with
    /// several of them, or none.
    pub const fn of<S: LoweredBy<L>, L: ?Sized>() -> Self {
        S::GRAIN
    }

    /// The word for documentation.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A type of step that implements the lowering `L`: [`RowStep`], [`FanOutStep`], [`PaidStep`] or
/// [`TableStep`].
pub trait LoweredBy<L: ?Sized> {
    /// The grain of that lowering.
    const GRAIN: Grain;
}

impl<S: RowStep + ?Sized> LoweredBy<dyn RowStep> for S {
    const GRAIN: Grain = Grain::Row;
}

impl<S: FanOutStep + ?Sized> LoweredBy<dyn FanOutStep> for S {
    const GRAIN: Grain = Grain::Row;
}

// The input is read as a whole, but each answer depends on one row and is reused for it.
impl<S: PaidStep + ?Sized> LoweredBy<dyn PaidStep> for S {
    const GRAIN: Grain = Grain::Row;
}

impl<S: TableStep + ?Sized> LoweredBy<dyn TableStep> for S {
    const GRAIN: Grain = Grain::Table;
}

impl Lowering<'_> {
    /// The part of the input that one output row depends on.
    pub fn grain(&self) -> Grain {
        fn of<L: ?Sized, S: LoweredBy<L> + ?Sized>(_: &S) -> Grain {
            S::GRAIN
        }
        match self {
            Self::Row(step) => of::<dyn RowStep, _>(*step),
            Self::FanOut(step) => of::<dyn FanOutStep, _>(*step),
            Self::Paid(step) => of::<dyn PaidStep, _>(*step),
            Self::Table(step) => of::<dyn TableStep, _>(*step),
        }
    }
}
