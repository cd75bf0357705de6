//! Studies: workflows with their stored results. Compares runs, writes reports, serves pages, and
//! shares studies with others.

pub mod diff_tables;
pub mod hint;
pub mod report;
pub mod runs;
pub mod sharing;
mod surveyed;
pub mod view;

pub use surveyed::{
    Surveyed, TableError, by_importance, columns_for_people, step_graph, table_name,
};
