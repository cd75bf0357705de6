//! DataFusion sessions, the reading and writing of stored tables, and the checks that keep
//! plans deterministic.

mod calendar;
mod determinism;
mod encode;
mod expr;
mod figure_data;
mod guard;
mod open;
mod optimizer_faults;
mod parquet_metadata;
mod published_shape;
mod recursion;
mod scan;
mod small_table;
mod sql_depth;
mod sql_ignored;
mod sql_mistake;
mod stored_range;
mod stored_rows;
mod subqueries;
mod text_search;
mod unnested_groups;
mod write;

pub use calendar::check_times;
pub use determinism::{KeyColumns, check_deterministic};
pub use encode::{BlobEncoding, StoredBlob};
pub use expr::{RowExpr, parse_row_expr};
pub use figure_data::{FigureColumn, figure_data};
pub use guard::guarded;
pub use open::{
    bounded_session, forget_tables, ordered_session, planning_session, session, spilling_session,
};
pub use parquet_metadata::{copy_with_metadata, key_values, read_metadata, read_table_digest};
pub use published_shape::{OutputShape, ShapeError};
pub use scan::{empty_table, empty_view, scan, scan_files, scan_stored};
pub use sql_depth::MAX_SQL_DEPTH;
pub use sql_ignored::check_query;
pub use sql_mistake::{SqlText, explain};
pub use stored_range::scan_range;
pub use stored_rows::{stored_matches, stored_order, stored_rows};
pub use subqueries::has_unplanned_subquery;
pub use text_search::contains_ascii;
pub use unnested_groups::dropped_group_columns;
pub use write::{EncodedTable, OpenTable, StoreTableError, column, open_table, sorted_by_key};

pub use galeras_store::{
    MAX_COLUMN_DEPTH, MAX_COLUMNS, check_footer, check_parquet, too_many_columns, two_columns,
};
