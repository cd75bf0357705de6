//! The columns of the ports.

use arrow::datatypes::{DataType, FieldRef};

use super::against::Against;
use galeras_base::id::ID;
use galeras_operator::{TableSchema, describe};

use galeras_operator::columns::text_field;
use galeras_operator::rejects::reject_table;

fn similarities() -> [FieldRef; 2] {
    let share = |name: &str, about: &str| describe(name, DataType::Float64, false, about, None);
    [
        share("jaccard", "Jaccard similarity of the sets"),
        share("multiset_jaccard", "Jaccard similarity of the multisets"),
    ]
}

pub(super) fn rejects(input: &TableSchema, against: Option<&Against>) -> TableSchema {
    let table = reject_table(input);
    let duplicate_of = "the kept row of the cluster";
    let Some(against) = against else {
        return table.with(&[text_field("duplicate_of", duplicate_of)]).with(&similarities());
    };
    let text = |name: &str, about: &str| describe(name, DataType::Utf8, true, about, None);
    let share = |name: &str, about: &str| describe(name, DataType::Float64, true, about, None);
    let mut added = vec![
        text("duplicate_of", &format!("{duplicate_of}; null if `near_to` says why")),
        text("near_to", "the row of `against` that it is nearest to"),
    ];
    if against.source.is_some() {
        added.push(text("near_to_source", "which table that row is from"));
    }
    added.extend(similarities());
    added.push(share("containment_8", "share of its 8-grams of tokens that `near_to` has"));
    added.push(share("containment_13", "share of its 13-grams of tokens that `near_to` has"));
    table.with(&added)
}

pub(super) fn clusters() -> TableSchema {
    TableSchema::default()
        .with(&[
            text_field(ID, "a row of a cluster"),
            text_field("cluster", "the kept row of its cluster"),
            describe("size", DataType::Int64, false, "rows of the cluster", Some("rows")),
            describe("kept", DataType::Boolean, false, "whether this is the kept row", None),
        ])
        .with(&similarities())
        .keyed(&[ID])
}

pub(super) fn summary(against: Option<&Against>) -> TableSchema {
    let count =
        |name: &str, about: &str| describe(name, DataType::Int64, false, about, Some("rows"));
    let percent =
        |name: &str, about: &str| describe(name, DataType::Float64, false, about, Some("percent"));
    let mut table = TableSchema::default().with(&[
        count("rows", "rows of the input"),
        count("duplicates", "rows set aside"),
        percent("percent", "share of duplicates"),
        count("kept", "rows kept"),
        describe("clusters", DataType::Int64, false, "clusters of two rows and more", None),
        count("largest_cluster", "rows of the largest cluster; 0 without one"),
        count("compared", "rows with enough tokens"),
        count("too_short", "rows with fewer tokens than `min_tokens`"),
        count("nulls", "rows without a text"),
        describe(
            "expected_recall",
            DataType::Float64,
            false,
            "probability that a pair just at the threshold is found",
            None,
        ),
    ]);
    if against.is_some() {
        table = table.with(&[
            count("duplicates", "rows set aside as duplicates of others of the input"),
            count("near", "rows set aside as near to a row of `against`"),
            percent("near_percent", "share of rows near to a row of `against`"),
            count("near_similar", "those that are similar to it; the others are contained in it"),
            count("against_rows", "rows of `against`"),
            count("against_compared", "rows of `against` with enough tokens"),
            count("against_too_short", "rows of `against` with fewer tokens than `min_tokens`"),
            count("against_nulls", "rows of `against` without a text"),
        ]);
    }
    table.keyed(&["rows"])
}
