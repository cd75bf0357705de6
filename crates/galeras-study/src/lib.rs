//! Studies: workflows with their stored results. Compares runs, writes reports, serves pages, and
//! shares studies with others.

pub mod diff_tables;
pub mod hint;
pub mod report;
pub mod runs;
pub mod sharing;
mod step_graph;
mod surveyed;
pub mod view;

pub use step_graph::step_graph;
pub use surveyed::{Surveyed, TableError, columns_for_people, table_name};
