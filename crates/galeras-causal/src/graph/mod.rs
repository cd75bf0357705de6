//! Causal graphs: the effects that they identify, and the estimators to use.
//!
//! A `CausalGraph` is parsed from DOT or dagitty text. It answers d-separation, minimal adjustment
//! sets for the backdoor criterion, the frontdoor criterion, instruments, and implied
//! independencies. `identify` chooses between the criteria.
//!
//! There can be exponentially many sets, so every list has a limit on work. Its entries are always
//! correct; `complete` is false if some may be missing.

mod adjustment;
mod dag;
mod error;
mod frontdoor;
mod identify;
mod independencies;
mod instruments;
mod parse;
mod separation;
mod subsets;
#[cfg(test)]
mod tests;

pub use dag::CausalGraph;
pub use error::{GraphError, QueryError};
pub use identify::{Identification, IdentificationReport, identify};
pub use independencies::{Independence, Independencies};
pub use instruments::{Instrument, Instruments};
pub use subsets::VariableSets;
