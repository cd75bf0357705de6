//! The contract between operators and the engine.
//!
//! Lives here: the traits an operator implements, the tables and ports it speaks of, the
//! errors it reports, the registry that finds it by name. Does not live here: any operator
//! (`operators`), how a step is run (`exec`) or checked (`plan`).

mod args;
mod contract;
mod error;
mod pins;
mod registry;
mod table;
mod types;

pub use args::{args_schema, parse_args};
pub use contract::INPUT;
pub use contract::{
    Answers, AskStep, Asked, BindContext, EachContext, EachError, EachStep, Effect, Grain,
    InputPorts, LowerContext, Lowering, Operator, Ports, Reads, RowStep, SideFile, Step, TableStep,
    Tell, Versioned,
};
pub use error::{ArgError, StepError, plain_message};
pub use pins::{Fact, Pins, Snapshot, answer_digest, question};
pub use registry::Registry;
pub use table::{
    MAIN, Port, REJECTS, SUMMARY, TableSchema, describe, is_virtual, stored_type, virtual_step,
};
pub use types::parse_column;
