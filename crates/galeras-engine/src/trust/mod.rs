//! Who agreed to what a workflow may do to the machine.
//!
//! Lives here: what needs consent ([`Ground`]), the consent of the command line ([`Allowance`])
//! and of earlier runs, what a plan asks for ([`requests`]), and [`Trust`], which puts them
//! together. Does not live here: what a step does (its operator states it), the question itself
//! (`cli`), and the refusal of a step that nobody agreed to (`runner`).
//!
//! docs/trust.md says what needs consent and why.

mod allowance;
mod ground;
mod memory;
mod request;
mod trust_state;
mod words;

pub use allowance::Allowance;
pub use ground::Ground;
pub use memory::TrustMemory;
pub use request::{AccessRequest, report_request, requests};
pub use trust_state::Trust;
pub use words::{phrase, program_lines};
