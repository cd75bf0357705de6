//! DataFusion sessions and the SQL functions of Galeras.

pub mod functions;
pub mod group_columns;
pub mod projection;
pub mod session;
