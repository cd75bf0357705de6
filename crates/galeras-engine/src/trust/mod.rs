//! Consent to the actions of a workflow.
//!
//! [`Trust`] combines the actions that need no consent ([`Ground`]), the consent of the command
//! line ([`Allowance`]) and of earlier runs, and the actions of a plan ([`requests`]). The reasons
//! are in docs/trust.md.

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
