//! Galeras: declarative, reproducible benchmarks for code language models.
//!
//! A workflow file becomes a plan, a plan is run step by step, and every result is stored
//! under the digest of everything that can change it.
//!
//! # Layers
//!
//! From the bottom to the top; a module imports only those before it. `tests/tidy` reads this table
//! and enforces it. Algorithms are crates of their own below `crates/` and know nothing of these
//! modules; ARCHITECTURE.md has the map of both.
//!
//! | module | what lives there |
//! |---|---|
//! | `id` | the id of a row |
//! | `digest` | logical digests of tables, digests of files |
//! | `cause` | what lies under an error: the chain of its sources |
//! | `scratch` | temporary folders, and files that are whole or absent |
//! | `small_file` | small files as a whole, up to a limit |
//! | `visible` | what text from outside may do on a terminal: nothing |
//! | `event` | what happens during a run, for whoever shows it |
//! | `code` | the codes of diagnostics, each with its explanation |
//! | `workflow` | YAML to a raw specification, with positions and diagnostics |
//! | `ratings` | what people answer to questions about data points, in files |
//! | `operator` | the contract of operators, and the registry |
//! | `functions` | algorithms as DataFusion functions |
//! | `store` | the content-addressed store: manifests, blobs, journals, locks |
//! | `session` | DataFusion sessions: scans, encodings, writing Parquet |
//! | `operators` | the operators, and the list that names them all |
//! | `plan` | a specification and a registry to a bound graph of steps |
//! | `report` | events and tables for people and programs |
//! | `trust` | what a workflow may do to the machine, and who agreed to it |
//! | `runner` | the steps of a plan, run or taken from the store |
//! | `sharing` | bundles and data sets, for strangers and from them |
//! | `cluster` | the engine over a Ballista cluster (cargo feature `cluster`) |
//! | `cli` | the verbs of the command line |
//!
//! # Invariants
//!
//! - An operator names no other operator, and neither `store` nor `runner`.
//! - `plan` and `runner` name no operator; they get a registry.
//! - `report` knows neither `runner` nor `plan`; it knows `event`.
//! - Nothing here prints, except through a writer that it was given, and progress bars. What
//!   people read leaves the program through `cli/screen.rs`, which lets no control character out.
//! - A result is stored before the manifest that names it.

pub mod cause;
pub mod cli;
#[cfg(feature = "cluster")]
pub mod cluster;
pub mod code;
pub mod digest;
pub mod event;
pub mod functions;
pub mod id;
pub mod operator;
pub mod operators;
pub mod plan;
pub mod ratings;
pub mod report;
pub mod runner;
pub mod scratch;
pub mod session;
pub mod sharing;
pub mod small_file;
pub mod store;
pub mod trust;
pub mod visible;
pub mod workflow;
