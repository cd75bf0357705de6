//! Why there is no figure.

use crate::kind::Kind;
use crate::spec::Role;

/// The reason why a figure cannot be drawn. Each message names the column.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FigureError {
    /// Two columns have one name.
    #[error("there are two columns `{column}`")]
    TwoColumns {
        /// The name.
        column: String,
    },
    /// A column is longer or shorter than the others.
    #[error("column `{column}` has {rows} rows where the others have {expected}")]
    Length {
        /// The column.
        column: String,
        /// Its rows.
        rows: usize,
        /// The rows of the first column.
        expected: usize,
    },
    /// The kind needs a column that the spec does not name.
    #[error("{} {kind} needs `{role}`: {meaning}", .kind.article())]
    Needed {
        /// The kind of figure.
        kind: Kind,
        /// The missing role.
        role: Role,
        /// The meaning of that column.
        meaning: &'static str,
    },
    /// The spec names a column for which the kind has no use.
    #[error("{} {kind} does not take `{role}` (here column `{column}`); it takes {takes}", .kind.article())]
    NotTaken {
        /// The kind of figure.
        kind: Kind,
        /// The role that was named.
        role: Role,
        /// The column.
        column: String,
        /// The roles that the kind takes, as a list.
        takes: String,
    },
    /// The spec sets an option for which the kind has no use.
    #[error("{} {kind} does not take `{option}`", .kind.article())]
    NoOption {
        /// The kind of figure.
        kind: Kind,
        /// The option.
        option: &'static str,
    },
    /// `low` without `high`, or the other way round.
    #[error("`{given}` is column `{column}` and `{missing}` is not given: an interval needs both")]
    HalfInterval {
        /// The end that is given.
        given: Role,
        /// Its column.
        column: String,
        /// The end that is not.
        missing: Role,
    },
    /// The data lack a column that the spec names.
    #[error("`{role}` is `{column}`, and there is no such column; there are {columns}")]
    NoColumn {
        /// The role of the column.
        role: Role,
        /// The name.
        column: String,
        /// The columns that are there, as a list.
        columns: String,
    },
    /// A column holds texts where numbers are needed.
    #[error(
        "`{role}` of {} {kind} must be a column of numbers, and `{column}` holds texts",
        .kind.article()
    )]
    NotNumbers {
        /// The kind of figure.
        kind: Kind,
        /// The role of the column.
        role: Role,
        /// The column.
        column: String,
    },
    /// No row can be drawn.
    #[error("there is nothing to draw: {left_out}")]
    NoRows {
        /// The kind of figure.
        kind: Kind,
        /// The rows left out and the reasons, or that there are no rows.
        left_out: String,
    },
    /// More than one picture can show.
    #[error(
        "column `{column}` gives {count} {what}, and {} {kind} shows at most {limit}; filter or group the rows first",
        .kind.article()
    )]
    TooMany {
        /// The kind of figure.
        kind: Kind,
        /// The column that gives them.
        column: String,
        /// Groups, panels, cells or marks.
        what: &'static str,
        /// How many.
        count: usize,
        /// How many there may be.
        limit: usize,
    },
    /// The lower end of an interval is above the upper one.
    #[error("in row {row} `{low}` is {low_value} and above `{high}`, which is {high_value}")]
    LowAboveHigh {
        /// The row, from 1.
        row: usize,
        /// The column of the lower end.
        low: String,
        /// Its number.
        low_value: f64,
        /// The column of the upper end.
        high: String,
        /// Its number.
        high_value: f64,
    },
    /// Two rows claim one place where there is room for one mark.
    #[error(
        "rows {first} and {second} are both {place}; {} {kind} shows one row for each: group the rows first",
        .kind.article()
    )]
    Twice {
        /// The kind of figure.
        kind: Kind,
        /// The place, by its columns and values.
        place: String,
        /// The row that had it, from 1.
        first: usize,
        /// The row that wants it, from 1.
        second: usize,
    },
    /// A size or count below zero.
    #[error(
        "in row {row} column `{column}` is {value}, and {} {kind} cannot show less than 0",
        .kind.article()
    )]
    Negative {
        /// The kind of figure.
        kind: Kind,
        /// The column.
        column: String,
        /// The row, from 1.
        row: usize,
        /// The number.
        value: f64,
    },
    /// An option of the spec is out of its range.
    #[error("`{option}` is {value}; it must be {range}")]
    Range {
        /// The option.
        option: &'static str,
        /// Its value.
        value: f64,
        /// The values that it may have.
        range: &'static str,
    },
    /// The columns hold more than a picture of this size has room for.
    #[error(
        "{width:.1} by {height:.1} cm is too small for {what}: at least {needed} cm of {side} are needed"
    )]
    TooSmall {
        /// The width in cm.
        width: f64,
        /// The height in cm.
        height: f64,
        /// The part that has no room.
        what: String,
        /// How much room it needs, in cm.
        needed: f64,
        /// `width` or `height`.
        side: &'static str,
    },
    /// The kind cannot be drawn with characters.
    #[error("{} {kind} cannot be drawn on a terminal", .kind.article())]
    NoTerminal {
        /// The kind of figure.
        kind: Kind,
    },
    /// An SVG could not be turned into a PNG or a PDF.
    #[error("the SVG cannot be drawn: {detail}")]
    Render {
        /// The renderer's message.
        detail: String,
    },
}
