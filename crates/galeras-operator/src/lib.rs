//! The contract between operators and the runner: the traits of operators, their tables, ports and
//! errors, and the registry.

mod access;
mod choice;
pub mod columns;
mod contract;
mod descriptor;
mod error;
pub mod event;
pub mod far_numbers;
pub mod missing_values;
mod payment;
mod pins;
pub mod rejects;
pub mod small_table;
mod step;
mod step_error;
mod table;
pub mod table_digest;
pub mod worker_threads;

pub use access::{
    Access, Consent, DataSource, Demand, FullConsent, NoConsent, RedirectCheck, RefusedAccess,
    ServerAddress, redirect_check,
};
pub use choice::{Choice, Entry};
pub use contract::{
    ARGUMENT_LANGUAGE, BindContext, INPUT, Operator, Registry, TypedOperator, args_schema,
    parse_args,
};
pub use descriptor::{Descriptor, Effect, Grain, InputPorts, LoweredBy};
pub use error::ArgError;
pub use payment::{PaymentTerms, RequestForecast};
pub use pins::{
    Fact, Pins, REGISTRATION, RegisteredAnalysis, Registration, SideFile, Snapshot, answer_digest,
    question,
};
pub use step::{
    Answers, BoundStep, FanOutError, FanOutStep, FanOutWork, Inputs, KnownAnswers, LowerContext,
    Lowering, PaidResult, PaidStep, Ports, Reads, RowStep, RunEnv, TableStep, Tell, Versioned,
    take_input,
};
pub use step_error::{StepError, StepErrorKind, plain_message};
pub use table::{
    MAIN, Port, REJECTS, SUMMARY, TableSchema, column_description, column_unit, describe,
    is_virtual, parse_column, stored_type, virtual_step,
};
