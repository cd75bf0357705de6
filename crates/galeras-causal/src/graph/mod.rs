//! Causal graphs: the effects that they identify, and the estimators to use.
//!
//! A `CausalGraph` is parsed from DOT or dagitty text. It answers d-separation, minimal adjustment
//! sets for the backdoor criterion, the frontdoor criterion, instruments, and implied
//! independencies. `identify` chooses between the criteria.
//!
//! There can be exponentially many sets, so every list has a limit on work. Its entries are always
//! correct; `complete` is false if some may be missing.

mod criteria;
mod dag;
mod identify;
mod parse;
mod separation;
#[cfg(test)]
mod tests;

pub use criteria::{Independence, Independencies, Instrument, Instruments};
pub use dag::{CausalGraph, GraphError, QueryError};
pub use identify::{Identification, IdentificationReport, identify};
pub use separation::VariableSets;
