//! The description of a SQL function: its signature, its result, its version.

use std::sync::Arc;

use datafusion::logical_expr::{ScalarUDF, ScalarUDFImpl};

/// The table of the manual that lists a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionGroup {
    /// From the values of a row to a value.
    Row,
    /// From a reference and a prediction to a score.
    Score,
    /// From the rows of a group to a value.
    Aggregate,
}

/// The description of a SQL function. The manual's list of functions is generated from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionDoc {
    /// The name, as registered.
    pub name: &'static str,
    /// Other names of the same function.
    pub aliases: &'static [&'static str],
    /// The part of the manual's list.
    pub group: FunctionGroup,
    /// Raised when the same arguments give another result than before: keys of stored
    /// results contain it.
    pub version: u32,
    /// The name and the SQL type of each argument.
    pub arguments: &'static [(&'static str, &'static str)],
    /// More arguments like the last one may follow.
    pub variadic: bool,
    /// The SQL type of the result.
    pub returns: &'static str,
    /// The result, as one sentence without its full stop.
    pub summary: &'static str,
    /// The treatment of nulls, in the same form.
    pub nulls: &'static str,
    /// An expression with literal arguments; for an aggregate, with the columns of
    /// [`EXAMPLE_ROWS`].
    pub example: &'static str,
}

/// The rows of the examples of aggregates.
pub const EXAMPLE_ROWS: &str =
    "(VALUES (1.5, 2.0), (2.5, 3.0), (4.0, 7.25), (NULL, 1.0)) AS t(x, y)";

/// The argument of most aggregates.
pub(super) const ONE_NUMBER: &[(&str, &str)] = &[("x", "number")];

/// The arguments of aggregates of pairs, the dependent variable first.
pub(super) const TWO_NUMBERS: &[(&str, &str)] = &[("y", "number"), ("x", "number")];

/// A function that is described.
pub(super) trait Documented {
    /// Its description.
    const DOC: FunctionDoc;
}

/// A function with its description.
pub(super) fn documented<F>() -> (FunctionDoc, Arc<ScalarUDF>)
where
    F: Documented + ScalarUDFImpl + Default + 'static,
{
    (F::DOC, Arc::new(ScalarUDF::from(F::default())))
}

impl FunctionDoc {
    /// An exact aggregate of numbers, in its first version.
    pub(super) const fn aggregate(
        name: &'static str,
        aliases: &'static [&'static str],
        arguments: &'static [(&'static str, &'static str)],
        summary: &'static str,
        nulls: &'static str,
        example: &'static str,
    ) -> Self {
        Self {
            name,
            aliases,
            group: FunctionGroup::Aggregate,
            version: 1,
            arguments,
            variadic: false,
            returns: "float",
            summary,
            nulls,
            example,
        }
    }

    /// The name with its arguments and the type of the result, as in `row_id(column any, …) →
    /// text`.
    pub fn signature(&self) -> String {
        let arguments = self.arguments.iter().map(|(name, kind)| format!("{name} {kind}"));
        let more = self.variadic.then(|| "…".to_string());
        let arguments: Vec<String> = arguments.chain(more).collect();
        format!("{}({}) → {}", self.name, arguments.join(", "), self.returns)
    }

    /// The query of the example.
    pub fn example_query(&self) -> String {
        match self.group {
            FunctionGroup::Row | FunctionGroup::Score => format!("SELECT {}", self.example),
            FunctionGroup::Aggregate => format!("SELECT {} FROM {EXAMPLE_ROWS}", self.example),
        }
    }
}
