//! The input port `against`, another table that the input is compared with: its arguments. `near`
//! finds the rows near to it.

use arrow::datatypes::DataType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Args, check_share};
use galeras_base::id::ID;
use galeras_operator::columns::is_text;
use galeras_operator::table_digest::type_name;
use galeras_operator::{ArgError, BindContext};
use galeras_similarity::{NearThresholds, Thresholds};
use galeras_workflow::code::Code;

pub(super) const AGAINST: &str = "against";

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

/// The argument of this name is about the port.
fn is_about_port(name: &str) -> bool {
    name.starts_with("against_") || name.starts_with("containment_")
}

impl Against {
    /// The arguments for the port `against`; `None` without it.
    pub(super) fn bind(args: &Args, cx: &BindContext, errors: &mut Vec<ArgError>) -> Option<Self> {
        let Some(table) = cx.inputs.get(AGAINST) else {
            let all = json!(args);
            let given = all.as_object().into_iter().flatten();
            for (name, _) in given.filter(|(name, value)| is_about_port(name) && !value.is_null()) {
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
        let NearThresholds { similar, containment } = against.thresholds;
        check_share("against_multiset_threshold", similar.multiset, false, errors);
        check_share("containment_8", containment[0], false, errors);
        check_share("containment_13", containment[1], false, errors);
        check_share("against_threshold", similar.set, true, errors);
        Some(against)
    }

    pub(super) fn resolve(against: Option<&Self>, args: &mut Value) {
        let Some(args) = args.as_object_mut() else { return };
        let Some(against) = against else {
            // Arguments of an absent port change nothing, nor does the permission for it to be
            // absent.
            args.retain(|name, _| !is_about_port(name));
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
