//! The columns of the ports, and their rows.

use arrow::datatypes::{DataType, FieldRef, SchemaRef};
use serde::Serialize;

use super::against::Against;
use galeras_base::id::ID;
use galeras_operator::columns::text_field;
use galeras_operator::rejects::reject_columns;
use galeras_operator::{TableSchema, describe};
use galeras_similarity::NearRow;

fn similarities() -> [FieldRef; 2] {
    let share = |name: &str, about: &str| describe(name, DataType::Float64, false, about, None);
    [
        share("jaccard", "Jaccard similarity of the sets"),
        share("multiset_jaccard", "Jaccard similarity of the multisets"),
    ]
}

/// The columns that `rejects` adds to those of the input.
fn reject_fields(against: Option<&Against>) -> Vec<FieldRef> {
    let mut fields = reject_columns();
    let duplicate_of = "the kept row of the cluster";
    let Some(against) = against else {
        fields.push(text_field("duplicate_of", duplicate_of));
        fields.extend(similarities());
        return fields;
    };
    let text = |name: &str, about: &str| describe(name, DataType::Utf8, true, about, None);
    let share = |name: &str, about: &str| describe(name, DataType::Float64, true, about, None);
    fields.push(text("duplicate_of", &format!("{duplicate_of}; null if `near_to` says why")));
    fields.push(text("near_to", "the row of `against` that it is nearest to"));
    if against.source.is_some() {
        fields.push(text("near_to_source", "which table that row is from"));
    }
    fields.extend(similarities());
    fields.push(share("containment_8", "share of its 8-grams of tokens that `near_to` has"));
    fields.push(share("containment_13", "share of its 13-grams of tokens that `near_to` has"));
    fields
}

pub(super) fn rejects(input: &TableSchema, against: Option<&Against>) -> TableSchema {
    input.with(&reject_fields(against))
}

/// The columns of [`RejectedRow`].
pub(super) fn rejected_schema(against: Option<&Against>) -> SchemaRef {
    let id = text_field(ID, "the rejected row");
    TableSchema::default().with(&[id]).with(&reject_fields(against)).stored()
}

/// A rejected row: the values that `rejects` adds to it.
#[derive(Debug, Serialize)]
pub(super) struct RejectedRow {
    pub(super) id: String,
    pub(super) rule: &'static str,
    pub(super) reason: String,
    pub(super) duplicate_of: Option<String>,
    pub(super) jaccard: f64,
    pub(super) multiset_jaccard: f64,
    #[serde(flatten)]
    pub(super) near: Option<NearTo>,
}

/// The row of `against` that a rejected row is near to.
#[derive(Debug, Serialize)]
pub(super) struct NearTo {
    near_to: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    near_to_source: Option<String>,
    containment_8: Option<f64>,
    containment_13: Option<f64>,
}

impl RejectedRow {
    pub(super) fn near(id: &str, near: &NearRow) -> Self {
        let NearRow { id: near_to, source, nearness } = near;
        let which = match source {
            Some(source) => format!("{near_to} of {source}"),
            None => near_to.clone(),
        };
        let mut values = vec![
            format!("set Jaccard {:.3}", nearness.jaccard),
            format!("multiset Jaccard {:.3}", nearness.multiset),
        ];
        let shares = nearness.containment.iter().zip(galeras_similarity::NGRAMS);
        values
            .extend(shares.filter_map(|(share, n)| {
                share.map(|share| format!("{share:.3} of its {n}-grams"))
            }));
        let how = if nearness.similar { "similar to" } else { "contained in" };
        let [containment_8, containment_13] = nearness.containment;
        Self {
            id: id.to_owned(),
            rule: "near",
            reason: format!("{how} {which} ({})", values.join(", ")),
            duplicate_of: None,
            jaccard: nearness.jaccard,
            multiset_jaccard: nearness.multiset,
            near: Some(NearTo {
                near_to: near_to.clone(),
                near_to_source: source.clone(),
                containment_8,
                containment_13,
            }),
        }
    }
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

/// A row of the port `clusters`.
#[derive(Serialize)]
pub(super) struct ClusterRow<'a> {
    pub(super) id: &'a str,
    pub(super) cluster: &'a str,
    pub(super) size: i64,
    pub(super) kept: bool,
    pub(super) jaccard: f64,
    pub(super) multiset_jaccard: f64,
}

pub(super) fn summary(against: Option<&Against>) -> TableSchema {
    let count =
        |name: &str, about: &str| describe(name, DataType::Int64, false, about, Some("rows"));
    let percent =
        |name: &str, about: &str| describe(name, DataType::Float64, false, about, Some("percent"));
    let recall = "probability that a pair just at the threshold is found";
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
        describe("expected_recall", DataType::Float64, false, recall, None),
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
