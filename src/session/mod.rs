//! The engine under the operators: DataFusion sessions, the reading and writing of artifacts,
//! and the checks that keep plans deterministic.
//!
//! Does not live here: what is computed (`operators`, `functions`) or when (`exec`).

mod determinism;
mod encode;
mod expr;
mod scan;
mod session;
mod write;

pub use determinism::{Keys, check_deterministic};
pub(crate) use encode::encode;
pub use expr::{RowExpr, explain, parse_row_expr};
pub use scan::{empty_table, scan, scan_files};
pub use session::{bounded_session, ordered_session, session};
pub use write::{Hints, Stored, column, store_table};
