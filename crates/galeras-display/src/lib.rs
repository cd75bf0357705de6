//! Output for people and programs: events as progress lines or JSON, tables, pictures of graphs.
//!
//! Everything is written to the caller's writer. Only the bars of [`HumanReporter`] always go to
//! stderr, because they redraw the screen.

mod bars;
mod cell;
mod column_stats;
mod diagram;
mod human;
mod json;
mod lines;
mod paper;
mod spending;
mod stream;
mod table;
mod table_diff;
mod text;
mod units;

pub use cell::float as number;
pub use column_stats::{ColumnSummary, DistinctCount, Measured, Quartiles, TableSummary};
pub use diagram::{GraphEdge, GraphFormat, GraphNode, NodeState, StepGraph, render_graph};
pub use human::{HumanReporter, LineWidth};
pub use json::JsonReporter;
pub use paper::{Best, PaperMarkup, PaperTable, Pivot, write_paper_table};
pub use spending::{limit_text, requests_text};
pub use stream::{TableFormat, TableWriter};
pub use table::{TableStyle, write_records, write_table};
pub use table_diff::{ChangedRow, TableDiff, compare_tables};
pub use units::{bytes, count, seconds};
