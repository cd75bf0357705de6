//! The arguments of `mixed`, and their checks.

use std::collections::BTreeMap;

use arrow::datatypes::DataType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::{ArgChecks, five_percent, is_plain};
use galeras_operator::columns::{is_number, is_text};
use galeras_operator::missing_values::MissingValues;
use galeras_operator::{ArgError, BindContext};
use galeras_workflow::code::Code;

/// The name of the intercept in tables, as in R.
pub(super) const INTERCEPT: &str = "(intercept)";
/// The name of the residuals in the table of variances.
pub(super) const RESIDUAL: &str = "(residual)";

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The columns to model, each by a separate model; numbers or true and false.
    #[schemars(length(min = 1))]
    pub(super) outcomes: Vec<String>,
    /// The columns whose effect is estimated: numbers, true and false, or text, whose values are
    /// compared with a base.
    #[serde(default)]
    pub(super) fixed: Vec<String>,
    /// The base of text columns in `fixed`: the value that the others are compared with; the first
    /// in alphabetical order if absent.
    #[serde(default)]
    pub(super) base: BTreeMap<String, String>,
    /// The columns whose groups have separate effects: data point, repository, model.
    #[serde(default)]
    pub(super) random: Vec<String>,
    /// Lists of columns whose combinations have separate effects.
    #[serde(default)]
    pub(super) interactions: Vec<Vec<String>>,
    /// For columns in `random`, the columns in `fixed` whose slopes differ between its groups.
    #[serde(default)]
    pub(super) slopes: BTreeMap<String, Vec<String>>,
    /// The distribution of the outcomes: `normal`, or `binomial` for yes and no (true and false, 0 and
    /// 1), whose log odds are modelled.
    #[serde(default, skip_serializing_if = "Family::is_normal")]
    pub(super) family: Family,
    /// Allows a correlation of the intercept and the slopes of a group.
    #[serde(default = "yes")]
    pub(super) correlated: bool,
    /// Estimates variances by REML instead of maximum likelihood; `binomial` always takes the
    /// latter, by Laplace's approximation.
    #[serde(default = "yes")]
    pub(super) reml: bool,
    /// Intervals cover with probability `1 - alpha`.
    #[serde(default = "five_percent")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub(super) alpha: f64,
    /// The treatment of rows without a value: `refuse` the model, or `drop` and count the rows.
    #[serde(default)]
    pub(super) missing: MissingValues,
}

/// The distribution of an outcome, given the random effects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Family {
    /// Normal, with one variance of residuals.
    #[default]
    Normal,
    /// Yes and no, by the logistic function.
    Binomial,
}

impl Family {
    /// For serde, which hands over a reference.
    pub(super) fn is_normal(&self) -> bool {
        *self == Self::Normal
    }
}

fn yes() -> bool {
    true
}

impl Args {
    /// The grouping columns of each random effect: one, or those of an interaction.
    pub(super) fn groupings(&self) -> Vec<Vec<String>> {
        let single = self.random.iter().map(|name| vec![name.clone()]);
        single.chain(self.interactions.iter().cloned()).collect()
    }

    /// The slopes that differ between the groups of this grouping.
    pub(super) fn slopes_of(&self, grouping: &[String]) -> &[String] {
        match grouping {
            [only] => self.slopes.get(only).map_or(&[], Vec::as_slice),
            _ => &[],
        }
    }
}

/// The name of a grouping in tables and sentences.
pub(super) fn grouping_name(grouping: &[String]) -> String {
    grouping.join(" x ")
}

/// Checks the arguments against the input.
pub(super) fn check(args: &Args, cx: &BindContext) -> Result<(), Vec<ArgError>> {
    let mut checks = ArgChecks::new(cx);
    checks.columns("outcomes", &args.outcomes, "a number", is_number);
    let number_or_text = |data_type: &DataType| is_number(data_type) || is_text(data_type);
    checks.columns("fixed", &args.fixed, "a number or text", number_or_text);
    let outcome = |name: &String| args.outcomes.contains(name).then_some("an outcome");
    checks.role("fixed", &args.fixed, Code::ConflictingArguments, outcome);
    if let Some(at) = args.fixed.iter().position(|name| name == INTERCEPT) {
        let message = format!("`{INTERCEPT}` is what the intercept is called");
        let error = ArgError::new(format!("fixed[{at}]"), Code::DuplicateColumn, message);
        checks.errors.push(error.help("rename the column in a `sql` step"));
    }
    if args.random.is_empty() && args.interactions.is_empty() {
        let message = "a mixed model needs a random effect";
        let help = "name the columns of data points, repositories or models in `random`; without \
                    any, `regress` is the operator";
        checks.conflict("random", message, help);
    }
    let interactions = args.interactions.iter().enumerate();
    let interactions = interactions.map(|(at, names)| (format!("interactions[{at}]"), names));
    for (list, names) in std::iter::once(("random".to_owned(), &args.random)).chain(interactions) {
        checks.columns(&list, names, "a plain value", is_plain);
        checks.role(&list, names, Code::ConflictingArguments, outcome);
    }
    for (at, grouping) in args.interactions.iter().enumerate() {
        let path = &format!("interactions[{at}]");
        if grouping.len() < 2 {
            let message = "an interaction has at least two columns";
            checks.conflict(path, message, "one column alone belongs in `random`");
        }
        let same = |other: &Vec<String>| {
            other.len() == grouping.len() && other.iter().all(|name| grouping.contains(name))
        };
        if args.interactions[..at].iter().any(same) {
            checks.error(path, Code::DuplicateColumn, "the interaction is listed twice");
        }
    }
    // `a x b` may be a column as well as a combination of two.
    let names: Vec<String> = args.groupings().iter().map(|one| grouping_name(one)).collect();
    for (at, name) in names.iter().enumerate().skip(args.random.len()) {
        if names[..at].contains(name) && checks.errors.is_empty() {
            let message = format!("two groupings are called `{name}`");
            let path = format!("interactions[{}]", at - args.random.len());
            checks.error(&path, Code::DuplicateColumn, message);
        }
    }
    bases(args, &mut checks);
    slopes(args, &mut checks);
    checks.alpha(args.alpha);
    if checks.errors.is_empty() { Ok(()) } else { Err(checks.errors) }
}

/// A base is that of a text column among the fixed ones.
fn bases(args: &Args, checks: &mut ArgChecks<'_>) {
    let input = checks.cx.input();
    for name in args.base.keys() {
        let path = format!("base.{name}");
        if !args.fixed.contains(name) {
            let message = format!("`{name}` is not one of `fixed`");
            checks.conflict(&path, message, "`base` names values of text columns in `fixed`");
        } else if input.field(name).is_some_and(|field| !is_text(field.data_type())) {
            let message = format!("column `{name}` is not text, and so it has no base");
            let help = "to compare its values, make it text in a `sql` step";
            checks.conflict(&path, message, help);
        }
    }
}

/// Slopes are of numbers that are fixed effects, between groups that are random effects.
fn slopes(args: &Args, checks: &mut ArgChecks<'_>) {
    let input = checks.cx.input();
    for (grouping, names) in &args.slopes {
        if !args.random.contains(grouping) {
            let message = format!("`{grouping}` is not one of `random`");
            checks.conflict(&format!("slopes.{grouping}"), message, "add it to `random`");
        }
        for (at, name) in names.iter().enumerate() {
            let path = &format!("slopes.{grouping}[{at}]");
            if names[..at].contains(name) {
                let message = format!("column `{name}` is named twice");
                checks.conflict(path, message, "remove one of them");
            } else if !args.fixed.contains(name) {
                let message = format!("`{name}` is not one of `fixed`");
                let help = "slopes differ around a mean: add the column to `fixed`";
                checks.conflict(path, message, help);
            } else if input.field(name).is_some_and(|field| !is_number(field.data_type())) {
                let message = format!("column `{name}` is not a number");
                let help = "make it a column of 0 and 1 in a `sql` step, for one of its values";
                checks.conflict(path, message, help);
            }
        }
    }
    if args.family == Family::Binomial && args.slopes.values().any(|names| !names.is_empty()) {
        let message = "`family: binomial` has intercepts of groups, and no slopes";
        checks.conflict("slopes", message, "remove `slopes`");
    }
    if !args.correlated && args.slopes.values().all(Vec::is_empty) {
        let message = "`correlated` is about slopes, and there are none";
        checks.conflict("correlated", message, "add `slopes`, or remove it");
    }
}
