//! The list of SQL functions as a page of the manual, `docs/functions.md`.

use super::function_doc::{EXAMPLE_ROWS, FunctionDoc, FunctionGroup};

const INTRODUCTION: &str = "\
# SQL functions

What Galeras adds to the SQL of [DataFusion](https://datafusion.apache.org/user-guide/sql/), \
for the operator `sql`, for filters and for data tests. This page is generated from the \
registration of the functions.
";

const GROUPS: [(FunctionGroup, &str, &str); 3] = [
    (
        FunctionGroup::Row,
        "Row functions",
        "Each gives a value per row. An argument that is called a literal cannot be a column.",
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
         once, so that the result does not depend on the order of the rows.",
    ),
];

/// The page of functions in `docs`, in Markdown.
pub(super) fn render(docs: &[FunctionDoc]) -> String {
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
            "docs/functions.md is stale; run GALERAS_UPDATE=1 cargo test -p galeras-sql --lib functions_page"
        );
    }
}
