//! The grain of a step: the part of its input that one row of the result depends on.

use super::step::{FanOutStep, Lowering, PaidStep, RowStep, TableStep};

/// The part of the input that one output row depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
        match self {
            Self::Row => "row",
            Self::Table => "table",
        }
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
