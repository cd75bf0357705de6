//! The registration of estimates: the columns `registered` and `deviation`, and a remark in
//! sentences.
//!
//! An estimate is registered if one registration that was made before there were results names its
//! outcome, contrast and estimator, everything else that decides its number is unchanged (the other
//! arguments, the steps before), and nothing registered is left out. More estimates, refuters,
//! modifiers and ranges for bounds may be added.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use serde_json::{Map, Value};

use super::args::{Args, Contrasts};
use galeras_base::prose::name_list;
use galeras_operator::Entry;
use galeras_operator::small_table::{
    TableColumn, TableRow, flag, optional_text, record_batch, table_schema,
};
use galeras_operator::{RegisteredAnalysis, Registration, StepError, TableSchema};

/// Arguments that list estimates: a registration may name more or fewer.
const LISTS: &[&str] = &["outcomes", "estimators", "treatments", "contrasts"];
/// Arguments that change no estimate.
const ADDITIONS: &[&str] = &["refuters", "simulations", "subset_fraction", "modifiers", "ranges"];

const SENTENCE: &str = "sentence";

/// The registrations of an analysis, compared with its arguments.
#[derive(Debug)]
pub(super) struct RegisteredEstimates {
    analyses: Vec<ComparedAnalysis>,
    /// The primary estimator: tables without a column `estimator` are of it.
    primary: &'static str,
}

#[derive(Debug)]
struct ComparedAnalysis {
    day: String,
    args: Option<Args>,
    /// Why it covers no estimate.
    deviation: Option<String>,
}

/// The day of the registration that covers an estimate, or why none does.
struct Coverage(Result<String, String>);

impl TableRow for Coverage {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        flag(
            "registered",
            "whether the estimate was registered before there were results, as it is",
            |row| row.0.is_ok(),
        ),
        optional_text("deviation", "why it is not as registered", |row| {
            row.0.as_ref().err().map(String::as_str)
        }),
    ];
}

impl RegisteredEstimates {
    /// Compares a registration with the arguments of the step; `resolved` are the same as data.
    pub(super) fn new(registration: &Registration, args: &Args, resolved: &Value) -> Self {
        let compared = |analysis: &RegisteredAnalysis| {
            let known: Option<Args> = serde_json::from_value(analysis.args.clone()).ok();
            let steps = || {
                let changed = &analysis.changed_steps;
                (!changed.is_empty()).then(|| changed.join(", "))
            };
            let deviation = match &known {
                _ if !analysis.before_results => {
                    Some("registered when there were results".to_string())
                }
                None => Some("registered by another version of galeras".to_string()),
                Some(known) => changed_arguments(&analysis.args, resolved)
                    .or_else(steps)
                    .or_else(|| left_out(known, args)),
            };
            let day = analysis.at.split('T').next().unwrap_or_default().to_string();
            ComparedAnalysis { day, args: known, deviation }
        };
        Self {
            analyses: registration.analyses.iter().map(compared).collect(),
            primary: args.estimators().first().map_or("", |estimator| estimator.name()),
        }
    }

    /// The reason is that of the last registration.
    fn coverage(&self, outcome: &str, treatment: &str, control: &str, estimator: &str) -> Coverage {
        let mut deviation = "not registered: `galeras lock` registers it".to_string();
        for analysis in &self.analyses {
            match analysis.gap(outcome, treatment, control, estimator) {
                None => return Coverage(Ok(analysis.day.clone())),
                Some(gap) => deviation = gap,
            }
        }
        Coverage(Err(deviation))
    }

    /// Adds the two columns to a table of estimates, and a remark to its sentences.
    pub(super) fn added_to(&self, table: &RecordBatch) -> Result<RecordBatch, StepError> {
        let texts = |name: &str| table.column_by_name(name).and_then(|c| c.as_string_opt::<i32>());
        let defect = || StepError::new("a defect: a table of estimates lacks a column");
        let (Some(outcomes), Some(treatments), Some(controls)) =
            (texts("outcome"), texts("treatment"), texts("control"))
        else {
            return Err(defect());
        };
        let estimators = texts("estimator");
        let coverage: Vec<Coverage> = (0..table.num_rows())
            .map(|row| {
                let estimator = estimators.map_or(self.primary, |names| names.value(row));
                let (treatment, control) = (treatments.value(row), controls.value(row));
                self.coverage(outcomes.value(row), treatment, control, estimator)
            })
            .collect();
        let mut columns: Vec<ArrayRef> = table.columns().to_vec();
        if let Ok(at) = table.schema().index_of(SENTENCE) {
            let sentences = columns[at].as_string_opt::<i32>().ok_or_else(defect)?;
            let said = sentences.iter().zip(&coverage).map(|(sentence, coverage)| {
                sentence.map(|sentence| match &coverage.0 {
                    Ok(day) => {
                        format!("{sentence} (Registered on {day}, before there were results.)")
                    }
                    Err(why) => format!("{sentence} (Exploratory: {why}.)"),
                })
            });
            columns[at] = Arc::new(said.collect::<StringArray>());
        }
        columns.extend_from_slice(record_batch(&coverage)?.columns());
        let schema = TableSchema { schema: table.schema(), ..TableSchema::default() };
        Ok(RecordBatch::try_new(with_registration(&schema).schema, columns)?)
    }
}

impl ComparedAnalysis {
    /// Why the registration does not cover an estimate.
    fn gap(
        &self,
        outcome: &str,
        treatment: &str,
        control: &str,
        estimator: &str,
    ) -> Option<String> {
        let Some(args) = &self.args else { return self.deviation.clone() };
        if self.deviation.is_some() {
            return self.deviation.clone();
        }
        if !args.outcomes.iter().any(|name| name == outcome) {
            return Some(format!("the outcome `{outcome}` is not registered"));
        }
        if !args.estimators().iter().any(|one| one.name() == estimator) {
            return Some(format!("the estimator `{estimator}` is not registered"));
        }
        let arms = |arm: &str| {
            arm == args.control
                || args.treatments.as_ref().is_none_or(|arms| arms.iter().any(|one| one == arm))
        };
        let contrast = control == args.control || args.contrasts == Contrasts::All;
        if !(arms(treatment) && arms(control) && contrast) {
            return Some(format!("`{treatment}` against `{control}` is not registered"));
        }
        None
    }
}

/// The changed arguments that decide numbers, in words.
fn changed_arguments(registered: &Value, resolved: &Value) -> Option<String> {
    let none = Map::new();
    let registered = registered.as_object().unwrap_or(&none);
    let resolved = resolved.as_object().unwrap_or(&none);
    let mut keys: Vec<&String> = registered.keys().chain(resolved.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    let free = |key: &str| LISTS.contains(&key) || ADDITIONS.contains(&key);
    let changed: Vec<&String> = keys
        .into_iter()
        .filter(|key| !free(key) && registered.get(*key) != resolved.get(*key))
        .collect();
    (!changed.is_empty()).then(|| format!("another {} was registered", name_list(&changed)))
}

/// A registered estimate that is left out, in words. Without it, the others would be adjusted for
/// fewer tests, and only a selection would be shown.
fn left_out(registered: &Args, args: &Args) -> Option<String> {
    let outcome = registered.outcomes.iter().find(|name| !args.outcomes.contains(name));
    if let Some(outcome) = outcome {
        return Some(format!("the registered outcome `{outcome}` is left out"));
    }
    let now = args.estimators();
    if let Some(estimator) = registered.estimators().iter().find(|one| !now.contains(one)) {
        return Some(format!("the registered estimator `{}` is left out", estimator.name()));
    }
    let arm = match (&registered.treatments, &args.treatments) {
        (_, None) => None,
        (None, Some(_)) => return Some("all arms were registered, and some are left out".into()),
        (Some(then), Some(now)) => then.iter().find(|arm| !now.contains(arm)),
    };
    if let Some(arm) = arm {
        return Some(format!("the registered treatment `{arm}` is left out"));
    }
    let narrower = registered.contrasts == Contrasts::All && args.contrasts == Contrasts::Control;
    narrower.then(|| "registered contrasts are left out".into())
}

pub(super) fn is_column(name: &str) -> bool {
    Coverage::COLUMNS.iter().any(|column| column.name() == name)
}

pub(super) fn with_registration(table: &TableSchema) -> TableSchema {
    table.with(table_schema::<Coverage>().schema.fields())
}
