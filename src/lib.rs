//! Galeras: declarative, reproducible benchmarks for code language models.
//!
//! A workflow file becomes a plan, a plan is run step by step, and every result is stored
//! under the digest of everything that can change it.
//!
//! # Layers
//!
//! Imports point only downward; `tests/tidy.rs` enforces it.
//!
//! | layer | modules | what lives there |
//! |---|---|---|
//! | 0 | `id`, `digest`, `event`, `cause` | newtypes, hashing, run events, causes of errors |
//! | 1 | `workflow`, `operator`, `store`, `session` | YAML to a raw spec; the operator contract; the store; DataFusion sessions |
//! | 2 | `functions`, `causal`, `git`, `github`, `chat` | algorithms as DataFusion functions; causal inference; repositories and their histories; searches; models |
//! | 2 | `operators`, `plan` | the operators; the bound plan |
//! | 3 | `runner`, `report` | running a plan; showing what happened |
//! | 4 | `cli` | the verbs of the command line |
//!
//! # Invariants
//!
//! - An operator names no other operator, and neither `store` nor `runner`.
//! - `plan` and `runner` name no operator; they get a registry.
//! - `report` does not know `runner`; both know `event`.
//! - Nothing here prints, except through a writer that it was given, and progress bars.
//! - A result is stored before the manifest that names it.

pub mod cause;
pub mod cli;
pub mod code;
pub mod digest;
pub mod event;
pub mod functions;
pub mod id;
pub mod operator;
pub mod operators;
pub mod plan;
pub mod report;
pub mod runner;
pub mod session;
pub mod store;
pub mod workflow;
