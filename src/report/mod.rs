//! What people and programs see: events as progress lines or JSON, tables, pictures of graphs.
//!
//! Everything is written to a writer that the caller hands in; only the bars of
//! [`HumanReporter`] go to stderr by themselves, because they redraw what is on the screen.
//!
//! Does not live here: when events are sent (`runner`), what is in a table (`operators`), which
//! verb shows what (`cli`).

mod bars;
mod cell;
mod diagram;
mod format;
mod graph;
mod human;
mod json;
mod layout;
mod lines;
mod stream;
mod svg;
mod table;
mod text;
mod units;

pub use diagram::render_graph;
pub use format::TableFormat;
pub use graph::{GraphEdge, GraphFormat, GraphNode, StepGraph};
pub use human::HumanReporter;
pub use json::JsonReporter;
pub use stream::TableWriter;
pub use table::{TableRoom, write_table};
pub use units::{bytes, count, seconds};
