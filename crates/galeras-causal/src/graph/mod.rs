//! Causal graphs: what a drawing of causes says about which effect can be estimated, and how.
//!
//! A `CausalGraph` is read from DOT or dagitty text (`parse`). It knows d-separation
//! (`separation`), minimal adjustment sets for the backdoor criterion (`adjustment`), the frontdoor
//! criterion (`frontdoor`), instruments (`instruments`) and the independencies that data can
//! contradict (`independencies`). `identify` chooses between these. Nothing here sees data.
//!
//! There can be exponentially many sets, so every list is bounded by an amount of work. What it
//! holds is always right; `complete` says whether it is all there is.

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
