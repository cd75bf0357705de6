//! The input port `against`, another table that the input is compared with: its arguments, and the
//! values of the ports for rows near to it. `near` finds them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Float64Array, RecordBatch, StringArray, new_null_array};
use arrow::compute::concat;
use arrow::datatypes::DataType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Args;
use super::decide::{AgainstCounts, DUPLICATE, DUPLICATE_OF, JACCARD, MULTISET_JACCARD, REASON};
use galeras_base::id::ID;
use galeras_operator::columns::is_text;
use galeras_operator::table_digest::type_name;
use galeras_operator::{ArgError, BindContext, StepError};
use galeras_similarity::{NearRow, NearThresholds, Thresholds};
use galeras_workflow::code::Code;

pub(super) const AGAINST: &str = "against";

/// Hidden columns in addition to those of [`decide`](super::decide).
pub(super) const RULE: &str = "__rule";
pub(super) const NEAR_TO: &str = "__near_to";
pub(super) const NEAR_TO_SOURCE: &str = "__near_to_source";
pub(super) const CONTAINMENT: [&str; 2] = ["__containment_8", "__containment_13"];

pub(super) const DUPLICATE_RULE: &str = "duplicate";
const NEAR_RULE: &str = "near";

/// The default share of a row's 8-grams, from PaLM.
const CONTAINMENT_8: f64 = 0.7;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum AgainstIds {
    /// Rows with any id.
    Any,
    /// Only if it has another id: the tables are versions of each other.
    Other,
    /// Only if it has the same id: other texts of the same rows.
    Same,
}

/// The settings of the comparison with `against`.
#[derive(Clone, Debug)]
pub(super) struct Against {
    pub(super) column: String,
    pub(super) id: String,
    /// The column with the name of a row's table.
    pub(super) source: Option<String>,
    /// The rows to compare a row with, by their ids.
    pub(super) ids: AgainstIds,
    pub(super) thresholds: NearThresholds,
}

/// The names of the port's arguments, with a flag for those that are given.
fn given(args: &Args) -> [(&'static str, bool); 8] {
    [
        ("against_column", args.against_column.is_some()),
        ("against_id", args.against_id.is_some()),
        ("against_source", args.against_source.is_some()),
        ("against_ids", args.against_ids.is_some()),
        ("against_threshold", args.against_threshold.is_some()),
        ("against_multiset_threshold", args.against_multiset_threshold.is_some()),
        ("containment_8", args.containment_8.is_some()),
        ("containment_13", args.containment_13.is_some()),
    ]
}

impl Against {
    /// The arguments for the port `against`; `None` without it.
    pub(super) fn bind(args: &Args, cx: &BindContext, errors: &mut Vec<ArgError>) -> Option<Self> {
        let Some(table) = cx.inputs.get(AGAINST) else {
            for (name, _) in given(args).into_iter().filter(|(_, given)| *given) {
                let message = format!("`{name}` needs the input `{AGAINST}`");
                let error = ArgError::new(name, Code::ConflictingArguments, message);
                errors.push(error.help("write `from: { input: <step>, against: <other step> }`"));
            }
            return None;
        };
        let against = Self {
            column: args.against_column.clone().unwrap_or_else(|| args.column.clone()),
            id: args.against_id.clone().unwrap_or_else(|| ID.to_string()),
            source: args.against_source.clone(),
            ids: args.against_ids.unwrap_or(AgainstIds::Any),
            thresholds: NearThresholds {
                similar: Thresholds {
                    set: args.against_threshold.unwrap_or(args.threshold),
                    multiset: args.against_multiset_threshold.unwrap_or(args.multiset_threshold),
                    min_tokens: args.min_tokens,
                },
                containment: [
                    args.containment_8.unwrap_or(CONTAINMENT_8),
                    args.containment_13.unwrap_or(0.0),
                ],
            },
        };
        let plain: fn(&DataType) -> bool = |data_type| !data_type.is_nested();
        let text: fn(&DataType) -> bool = is_text;
        let mut need = |argument: &str,
                        name: &str,
                        given: bool,
                        wanted: &str,
                        fits: fn(&DataType) -> bool| {
            let error = |code, message: String| match given {
                true => ArgError::new(argument, code, message),
                false => ArgError::at_port(AGAINST, code, message)
                    .help(format!("name another column in `{argument}`")),
            };
            match table.field(name) {
                None if table.open => {}
                None if given => {
                    errors.push(ArgError::unknown_column(argument, name, table.names()));
                }
                None => {
                    let message = format!("the input `{AGAINST}` has no column `{name}`");
                    errors.push(error(Code::UnknownColumn, message));
                }
                Some(field) if *field.data_type() == DataType::Null || fits(field.data_type()) => {}
                Some(field) => {
                    let found = type_name(field.data_type());
                    let message = format!(
                        "column `{name}` of `{AGAINST}` has type {found}, but {wanted} is needed"
                    );
                    errors.push(error(Code::WrongType, message));
                }
            }
        };
        need("against_column", &against.column, args.against_column.is_some(), "text", text);
        need("against_id", &against.id, args.against_id.is_some(), "a plain value", plain);
        if let Some(source) = &against.source {
            need("against_source", source, true, "a plain value", plain);
        }
        against.check_thresholds(errors);
        Some(against)
    }

    fn check_thresholds(&self, errors: &mut Vec<ArgError>) {
        let NearThresholds { similar, containment } = self.thresholds;
        let mut check = |name: &str, value: f64| {
            if !(0.0..=1.0).contains(&value) {
                let message = format!("`{name}` must be between 0 and 1");
                errors.push(ArgError::new(name, Code::OutOfRange, message));
            }
        };
        check("against_multiset_threshold", similar.multiset);
        check("containment_8", containment[0]);
        check("containment_13", containment[1]);
        // Another check covers a `threshold` that is not about this port.
        if !(similar.set > 0.0 && similar.set <= 1.0) {
            let message = "`against_threshold` must be above 0 and at most 1";
            errors.push(ArgError::new("against_threshold", Code::OutOfRange, message));
        }
    }

    pub(super) fn resolve(against: Option<&Self>, args: &mut Value) {
        let Some(args) = args.as_object_mut() else { return };
        let Some(against) = against else {
            // Arguments of an absent port change nothing, nor does the permission for it to be
            // absent.
            args.retain(|name, _| {
                !name.starts_with("against_") && !name.starts_with("containment_")
            });
            return;
        };
        let NearThresholds { similar, containment } = against.thresholds;
        args.extend([
            ("against_column".into(), json!(against.column)),
            ("against_id".into(), json!(against.id)),
            ("against_source".into(), json!(against.source)),
            ("against_ids".into(), json!(against.ids)),
            ("against_threshold".into(), json!(similar.set)),
            ("against_multiset_threshold".into(), json!(similar.multiset)),
            ("containment_8".into(), json!(containment[0])),
            ("containment_13".into(), json!(containment[1])),
        ]);
    }

    pub(super) fn reads(&self) -> Vec<String> {
        let mut columns: Vec<String> = Vec::with_capacity(3);
        for name in [Some(&self.id), Some(&self.column), self.source.as_ref()].into_iter().flatten()
        {
            if !columns.contains(name) {
                columns.push(name.clone());
            }
        }
        columns
    }
}

/// Rows of the input that are near to a row of `against`.
#[derive(Debug, Default)]
pub(super) struct NearRows {
    /// The id of each row, and the row nearest to it.
    pub(super) rows: Vec<(String, NearRow)>,
    pub(super) counts: AgainstCounts,
}

impl NearRows {
    pub(super) fn ids(&self) -> Result<RecordBatch, StepError> {
        let ids: StringArray = self.rows.iter().map(|(id, _)| Some(id.as_str())).collect();
        let ids: ArrayRef = Arc::new(ids);
        Ok(RecordBatch::try_from_iter_with_nullable([(DUPLICATE, ids, false)])?)
    }

    /// All rejected rows: `duplicates` and these.
    pub(super) fn with_duplicates(
        &self,
        duplicates: &RecordBatch,
    ) -> Result<RecordBatch, StepError> {
        let (before, here) = (duplicates.num_rows(), self.rows.len());
        let nothing = |data_type: &DataType, rows| new_null_array(data_type, rows);
        let texts = |text: &dyn Fn(&(String, NearRow)) -> Option<String>| -> ArrayRef {
            Arc::new(self.rows.iter().map(text).collect::<StringArray>())
        };
        let shares = |share: &dyn Fn(&NearRow) -> Option<f64>| -> ArrayRef {
            Arc::new(self.rows.iter().map(|(_, near)| share(near)).collect::<Float64Array>())
        };
        let rules: ArrayRef = Arc::new(
            std::iter::repeat_n(Some(DUPLICATE_RULE), before)
                .chain(std::iter::repeat_n(Some(NEAR_RULE), here))
                .collect::<StringArray>(),
        );
        let after = |name: &str, own: ArrayRef| -> Result<ArrayRef, StepError> {
            let of_duplicates = match duplicates.column_by_name(name) {
                Some(column) => Arc::clone(column),
                None => nothing(own.data_type(), before),
            };
            Ok(concat(&[&of_duplicates as &dyn Array, &own])?)
        };
        let share_8 = shares(&|near| near.nearness.containment[0]);
        let share_13 = shares(&|near| near.nearness.containment[1]);
        let columns: Vec<(&str, ArrayRef)> = vec![
            (DUPLICATE, texts(&|(id, _)| Some(id.clone()))),
            (REASON, texts(&|(_, near)| Some(reason(near)))),
            (DUPLICATE_OF, nothing(&DataType::Utf8, here)),
            (NEAR_TO, texts(&|(_, near)| Some(near.id.clone()))),
            (NEAR_TO_SOURCE, texts(&|(_, near)| near.source.clone())),
            (JACCARD, shares(&|near| Some(near.nearness.jaccard))),
            (MULTISET_JACCARD, shares(&|near| Some(near.nearness.multiset))),
            (CONTAINMENT[0], share_8),
            (CONTAINMENT[1], share_13),
        ];
        let mut all = vec![(RULE, rules, false)];
        for (name, own) in columns {
            let nullable = !matches!(name, DUPLICATE | REASON | JACCARD | MULTISET_JACCARD);
            all.push((name, after(name, own)?, nullable));
        }
        Ok(RecordBatch::try_from_iter_with_nullable(all)?)
    }
}

/// The reason for rejecting a row, as a sentence.
fn reason(near: &NearRow) -> String {
    let nearness = &near.nearness;
    let which = match &near.source {
        Some(source) => format!("{} of {source}", near.id),
        None => near.id.clone(),
    };
    let shares = nearness.containment.iter().zip(galeras_similarity::NGRAMS);
    let shares: Vec<String> = shares
        .filter_map(|(share, n)| share.map(|share| format!("{share:.3} of its {n}-grams")))
        .collect();
    let mut values = vec![
        format!("set Jaccard {:.3}", nearness.jaccard),
        format!("multiset Jaccard {:.3}", nearness.multiset),
    ];
    values.extend(shares);
    let how = if nearness.similar { "similar to" } else { "contained in" };
    format!("{how} {which} ({})", values.join(", "))
}
