//! SQL functions: the description of each, the page of the manual that lists them
//! (`docs/functions.md`), and what a scalar one is.

use std::fmt::Debug;
use std::hash::Hash;
use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

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
    /// An expression with literal arguments; that of an aggregate may have the columns of
    /// [`EXAMPLE_ROWS`], and is its call with columns if it is empty.
    pub example: &'static str,
}

/// The rows of the examples of aggregates.
pub const EXAMPLE_ROWS: &str =
    "(VALUES (1.5, 2.0), (2.5, 3.0), (4.0, 7.25), (NULL, 1.0)) AS t(x, y)";

impl FunctionDoc {
    /// What most row functions have in common.
    pub(crate) const ROW: Self = Self {
        name: "",
        aliases: &[],
        group: FunctionGroup::Row,
        version: 1,
        arguments: &[],
        variadic: false,
        returns: "float",
        summary: "",
        nulls: "",
        example: "",
    };

    /// What most scores have in common.
    pub(super) const SCORE: Self = Self { group: FunctionGroup::Score, ..Self::ROW };

    /// What most aggregates have in common.
    pub(super) const AGGREGATE: Self =
        Self { group: FunctionGroup::Aggregate, arguments: &[("x", "number")], ..Self::ROW };

    /// The name with its arguments and the type of the result, as in `row_id(column any, …) →
    /// text`.
    pub fn signature(&self) -> String {
        let arguments = self.arguments.iter().map(|(name, kind)| format!("{name} {kind}"));
        let more = self.variadic.then(|| "…".to_string());
        let arguments: Vec<String> = arguments.chain(more).collect();
        format!("{}({}) → {}", self.name, arguments.join(", "), self.returns)
    }

    /// The query of the example; that of an aggregate is over [`EXAMPLE_ROWS`].
    pub fn example_query(&self) -> String {
        if !self.example.is_empty() {
            return format!("SELECT {}", self.example);
        }
        let columns: Vec<&str> = self.arguments.iter().map(|(name, _)| *name).collect();
        format!("SELECT {}({})", self.name, columns.join(", "))
    }

    /// The arguments as DataFusion checks them; their number only if one has a type without a name
    /// here.
    pub(super) fn accepts(&self) -> Signature {
        let data_type = |(_, name): &(&str, &str)| match *name {
            "text" => Some(DataType::Utf8),
            "integer" => Some(DataType::Int64),
            "float" => Some(DataType::Float64),
            "boolean" => Some(DataType::Boolean),
            "bytes" => Some(DataType::Binary),
            _ => None,
        };
        let types: Option<Vec<DataType>> = self.arguments.iter().map(data_type).collect();
        match types {
            _ if self.variadic => Signature::variadic_any(Volatility::Immutable),
            Some(types) => Signature::exact(types, Volatility::Immutable),
            None => Signature::any(self.arguments.len(), Volatility::Immutable),
        }
    }
}

/// A scalar function. Its parameters are literal arguments: it has no state, so that a cluster can
/// find it by its name.
pub trait RowFunction: Debug + Eq + Hash + Send + Sync + 'static {
    /// Its description, which gives the types of its arguments.
    const DOC: FunctionDoc;

    /// False if its result is never null.
    const NULLABLE: bool = true;

    /// The type of its result.
    fn return_type() -> DataType;

    /// Checks the literal arguments while a query is planned.
    ///
    /// # Errors
    /// If a query with them would fail.
    fn check(_: &ReturnFieldArgs) -> Result<()> {
        Ok(())
    }

    /// The results for a batch of rows.
    ///
    /// # Errors
    /// If an argument is not as the function needs it.
    fn invoke(args: &ScalarFunctionArgs) -> Result<ArrayRef>;
}

/// A [`RowFunction`] as DataFusion has it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Scalar<F> {
    signature: Signature,
    function: PhantomData<F>,
}

/// The function as DataFusion has it.
pub(super) fn scalar<F: RowFunction>() -> ScalarUDF {
    ScalarUDF::from(Scalar::<F> { signature: F::DOC.accepts(), function: PhantomData })
}

/// The function with its description.
pub(super) fn documented<F: RowFunction>() -> (FunctionDoc, Arc<ScalarUDF>) {
    (F::DOC, Arc::new(scalar::<F>()))
}

impl<F: RowFunction> ScalarUDFImpl for Scalar<F> {
    fn name(&self) -> &str {
        F::DOC.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(F::return_type())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        F::check(&args)?;
        Ok(Arc::new(Field::new(self.name(), F::return_type(), F::NULLABLE)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        F::invoke(&args).map(ColumnarValue::Array)
    }
}

const INTRODUCTION: &str = "\
# SQL functions

Galeras adds these functions to the SQL of \
[DataFusion](https://datafusion.apache.org/user-guide/sql/). Use them in the operator `sql`, in \
filters and in data tests. A new version means that a function gives other results than before. \
This page is generated from the code.
";

const GROUPS: [(FunctionGroup, &str, &str); 3] = [
    (
        FunctionGroup::Row,
        "Row functions",
        "Each gives one value for each row. An argument that is called a literal must be a constant, \
         not a column.",
    ),
    (
        FunctionGroup::Score,
        "Scores",
        "Each compares a prediction with a reference. Single scores are those of the operator \
         `score` with its defaults.",
    ),
    (
        FunctionGroup::Aggregate,
        "Aggregates",
        "They replace DataFusion's functions of the same names. Sums are exact and rounded \
         once, so the order of the rows does not change the result.",
    ),
];

/// The page of functions in `docs`, in Markdown.
pub(super) fn functions_page(docs: &[FunctionDoc]) -> String {
    let mut page = String::from(INTRODUCTION);
    for (group, title, text) in GROUPS {
        page.push_str(&format!("\n## {title}\n\n{text}\n\n"));
        page.push_str("| function | gives | nulls | version |\n|---|---|---|---|\n");
        let members: Vec<&FunctionDoc> = docs.iter().filter(|doc| doc.group == group).collect();
        for doc in &members {
            page.push_str(&row(doc));
        }
        page.push_str("\nExamples");
        if group == FunctionGroup::Aggregate {
            page.push_str(&format!(", over `{EXAMPLE_ROWS}`"));
        }
        page.push_str(":\n\n```sql\n");
        for doc in &members {
            page.push_str(&format!("{};\n", doc.example_query()));
        }
        page.push_str("```\n");
    }
    page
}

fn row(doc: &FunctionDoc) -> String {
    let signature = doc.signature();
    let aliases = match doc.aliases {
        [] => String::new(),
        names => format!(", also called `{}`", names.join("`, `")),
    };
    format!("| `{signature}`{aliases} | {} | {} | {} |\n", doc.summary, doc.nulls, doc.version)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn the_committed_page_is_the_generated_one() {
        let file = Path::new("../../docs/functions.md");
        let generated = crate::functions::functions_page();
        if std::env::var_os("GALERAS_UPDATE").is_some() {
            std::fs::write(file, &generated).unwrap();
        }
        let committed = std::fs::read_to_string(file).unwrap();
        assert!(
            committed == generated,
            "docs/functions.md is stale; run GALERAS_UPDATE=1 cargo test -p galeras-sql --lib committed_page"
        );
    }
}
