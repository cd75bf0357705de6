//! The contract between operators and the runner.
//!
//! Lives here: the traits an operator implements, the tables and ports it speaks of, the
//! errors it reports, the registry that finds it by name. Does not live here: any operator
//! (`operators`), how a step is run (`runner`) or checked (`plan`).

mod args;
mod contract;
mod error;
mod pins;
mod registry;
mod step_error;
mod table;
mod types;

pub use args::{args_schema, parse_args};
pub use contract::INPUT;
pub use contract::{
    Answers, BindContext, Effect, FanOutContext, FanOutError, FanOutStep, Grain, InputPorts,
    LowerContext, Lowering, Operator, PaidResult, PaidStep, Ports, Reads, RowStep, SideFile, Step,
    TableStep, Tell, Versioned,
};
pub use error::ArgError;
pub use pins::{Fact, Pins, Snapshot, answer_digest, question};
pub use registry::Registry;
pub use step_error::{StepError, StepErrorKind, plain_message};
pub use table::{
    MAIN, Port, REJECTS, SUMMARY, TableSchema, describe, is_virtual, stored_type, virtual_step,
};
pub use types::parse_column;
