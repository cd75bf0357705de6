//! The contract between operators and the runner: the traits of operators, their tables, ports and
//! errors, and the registry.

mod access;
mod args;
mod choice;
pub mod columns;
mod contract;
mod descriptor;
mod error;
pub mod event;
pub mod far_numbers;
mod grain;
pub mod missing_values;
mod payment;
mod pins;
mod registration;
mod registry;
pub mod rejects;
mod side_file;
pub mod small_table;
mod step;
mod step_error;
mod table;
pub mod table_digest;
mod types;
pub mod worker_threads;

pub use access::{
    Access, Consent, Demand, FullConsent, NoConsent, RedirectCheck, RefusedAccess, ServerAddress,
    redirect_check,
};
pub use args::{ARGUMENT_LANGUAGE, args_schema, parse_args};
pub use choice::{Choice, Entry};
pub use contract::{BindContext, INPUT, Operator, TypedOperator};
pub use descriptor::{Descriptor, Effect, InputPorts};
pub use error::ArgError;
pub use grain::{Grain, LoweredBy};
pub use payment::{PaymentTerms, RequestForecast};
pub use pins::{Fact, Pins, Snapshot, answer_digest, question};
pub use registration::{REGISTRATION, RegisteredAnalysis, Registration};
pub use registry::Registry;
pub use side_file::SideFile;
pub use step::{
    Answers, BoundStep, FanOutError, FanOutStep, FanOutWork, Inputs, KnownAnswers, LowerContext,
    Lowering, PaidResult, PaidStep, Ports, Reads, RowStep, RunEnv, TableStep, Tell, Versioned,
    take_input,
};
pub use step_error::{StepError, StepErrorKind, plain_message};
pub use table::{
    MAIN, Port, REJECTS, SUMMARY, TableSchema, column_description, column_unit, describe,
    is_virtual, stored_type, virtual_step,
};
pub use types::parse_column;
