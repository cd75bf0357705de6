//! The Parquet files of stored tables, of which some leave columns to the files of other tables.
//!
//! A step that adds columns to a table, or keeps some of its rows, would store again what is stored
//! already. Its file says instead where that is: for each row group, which columns are to be read
//! from which other file, and from which rows of it (`Layers`, in the footer). Such a column is in
//! the own file under another name, so that nobody who reads the file alone takes it for empty. Files
//! are referred to by the digests of their bytes, and never through a third one.
//!
//! Lives here: what a footer says, which rows of which files make a range of rows, and reading that
//! from files on this disk; whether a file, which may be anybody's, can be handed to the library that
//! reads Parquet (`parquet_file`). Does not live here: finding out what is stored already, and reading for
//! plans (`session`); which files a result needs (`store`).

mod file;
mod layers;
mod layout;
mod parquet_decoded;
mod parquet_file;
mod parquet_pages;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod parquet_pages_tests;
mod parquet_runs;
mod positioned;
mod selection;
mod thrift;
mod zip;

pub use file::{FileSource, TableFile, TableRows};
pub use layers::{Elsewhere, LAYERS, Layers, Rows, elsewhere_name, is_reserved, positions_name};
pub use layout::{Layout, group_rows};
pub use parquet_decoded::ROWS_AT_ONCE;
pub use parquet_file::{
    MAX_COLUMN_DEPTH, MAX_COLUMNS, check_footer, check_parquet, check_rows, too_many_columns,
    two_columns,
};
pub use parquet_file::{check_foreign_table, footer_range};
pub use selection::row_selection;
pub use zip::{Zip, gather};
