//! The pages of a study, served on loopback: steps, tables, runs, and the review of data points by
//! people.

mod answer;
mod guard;
mod indexes;
mod ratings;
mod report;
mod review;
mod row;
mod runs;
mod server;
mod steps;
mod study;
mod table;
mod table_filter;
mod table_rows;

pub use guard::Guard;
pub use server::serve;
pub use study::{PlanAgain, Study};
// For `fuzz/targets`: the text typed on a page.
#[doc(hidden)]
pub use table_filter::condition as table_condition;
