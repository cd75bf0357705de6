//! `validate`: rules over single rows; rows that fail are set aside with the reason.

mod named;

use std::collections::BTreeSet;

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::dataframe::DataFrame;
use datafusion::functions::core::expr_fn::{get_field, named_struct};
use datafusion::functions::string::expr_fn::concat;
use datafusion::functions_nested::make_array::make_array;
use datafusion::logical_expr::{Expr, cast, lit, when};
use datafusion::prelude::coalesce;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use self::named::NamedCheck;
use galeras_operator::columns::is_number;
use galeras_operator::rejects::{reject_table, reject_values};
use galeras_operator::table_digest::type_name;
use galeras_operator::{
    ArgError, BindContext, BoundStep, Descriptor, Effect, Entry, Grain, InputPorts, Lowering, MAIN,
    Operator, Port, Ports, REJECTS, RowStep, SUMMARY, StepError, TableSchema, TypedOperator,
    args_schema, describe,
};
use galeras_sql::functions::{RaiseIf, call};
use galeras_sql::projection::{keep_hidden, project};
use galeras_sql::session::{RowExpr, column, parse_row_expr};
use galeras_workflow::code::Code;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The rules, in the order in which a row has to pass them.
    #[schemars(length(min = 1))]
    rules: Vec<Rule>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Rule {
    /// The rule's name, as `rejects` and `summary` show it; by default that of the named check.
    #[serde(default)]
    name: Option<String>,
    /// A condition in SQL over the row's columns. A row for which it is false or null fails.
    #[serde(default)]
    #[schemars(extend("x-language" = "sql"))]
    check: Option<String>,
    /// A named check instead of a condition.
    #[serde(default, rename = "use")]
    named: Option<NamedCheck>,
    /// The arguments of the named check.
    #[serde(default)]
    with: Option<Map<String, Value>>,
    /// The action for a row that fails.
    #[serde(default)]
    on_fail: OnFail,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum OnFail {
    /// The row goes to `rejects`.
    #[default]
    Drop,
    /// The row is kept; a boolean column named after the rule has the verdict.
    Flag,
    /// The step fails.
    Fail,
}

struct ValidateOperator;

/// The operator.
pub const VALIDATE: &dyn Operator = &ValidateOperator;

impl TypedOperator for ValidateOperator {
    type Args = Args;

    const DESCRIPTOR: Descriptor = Descriptor {
        name: "validate",
        version: 3,
        grain: Grain::of::<BoundValidate, _>(),
        effect: Effect::Pure,
        inputs: InputPorts::One,
        doc: include_str!("doc.md"),
        args_schema: args_schema::<Args>,
    };

    fn bind(args: Args, cx: &BindContext) -> Result<Box<dyn BoundStep>, Vec<ArgError>> {
        let input = cx.input();
        let mut errors = Vec::new();
        let mut rules = Vec::new();
        let mut names = BTreeSet::new();
        for (at, rule) in args.rules.iter().enumerate() {
            let rule = match condition(rule, at, &input) {
                Ok(rule) => rule,
                Err(error) => {
                    errors.push(error);
                    continue;
                }
            };
            let path = format!("rules[{at}].name");
            if !names.insert(rule.name.clone()) {
                let message = format!("the rule `{}` is defined twice", rule.name);
                errors.push(ArgError::new(&path, Code::DuplicateRule, message));
            }
            if rule.on_fail == OnFail::Flag && input.field(&rule.name).is_some() {
                let message = format!("the input already has a column `{}`", rule.name);
                let help = "a flag rule adds a column of its name; choose another name";
                errors.push(ArgError::new(path, Code::DuplicateColumn, message).help(help));
            }
            let written = if args.rules[at].named.is_some() { "use" } else { "check" };
            let path = format!("rules[{at}].{written}");
            match parse_row_expr(&cx.session, &input.schema, &rule.check, &path) {
                Ok(checked) if checked.data_type == DataType::Boolean => {
                    rules.push(BoundRule { rule, checked });
                }
                Ok(checked) => {
                    let found = type_name(&checked.data_type);
                    let message =
                        format!("a check is true or false, but this one has type {found}");
                    let help = "compare the value, as in `nloc > 1`";
                    errors.push(ArgError::new(path, Code::WrongType, message).help(help));
                }
                // The SQL of a named check is ours and is not in the user's file.
                Err(error) if written == "use" => {
                    errors.push(ArgError { word: None, instead: None, ..error });
                }
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() && rules.iter().all(|rule| rule.checked.columns.is_empty()) {
            let message = "no rule reads a column: all rows would pass, or none";
            errors.push(ArgError::new("rules", Code::ConstantRules, message));
        }
        ArgError::none(errors)?;
        let flags: Vec<_> = rules
            .iter()
            .map(|bound: &BoundRule| &bound.rule)
            .filter(|rule| rule.on_fail == OnFail::Flag)
            .map(|rule| describe(&rule.name, DataType::Boolean, true, &rule.check, None))
            .collect();
        let ports = vec![
            Port::new(MAIN, input.with(&flags)),
            Port::new(REJECTS, reject_table(&input)),
            Port::new(SUMMARY, summary_table()),
        ];
        Ok(Box::new(BoundValidate { rules, input, ports }))
    }
}

/// A resolved rule: a named check is replaced by its condition.
#[derive(Clone, Debug, Serialize)]
struct Condition {
    name: String,
    check: String,
    on_fail: OnFail,
}

/// The condition of the rule at that position of the list.
fn condition(rule: &Rule, at: usize, input: &TableSchema) -> Result<Condition, ArgError> {
    let on_fail = rule.on_fail;
    match (&rule.check, &rule.named) {
        (Some(check), None) => {
            if rule.with.is_some() {
                let message = "`with` belongs to `use`; a condition has no arguments";
                let path = format!("rules[{at}].with");
                return Err(ArgError::new(path, Code::ConflictingArguments, message));
            }
            let missing = || {
                let message = "a rule with a condition needs a `name`";
                ArgError::new(format!("rules[{at}]"), Code::MissingArgument, message)
                    .help("`rejects` and `summary` show it")
            };
            let name = rule.name.clone().ok_or_else(missing)?;
            Ok(Condition { name, check: check.clone(), on_fail })
        }
        (None, Some(check)) => {
            let path = format!("rules[{at}].with");
            let with = rule.with.clone().unwrap_or_default();
            let name = rule.name.clone().unwrap_or_else(|| check.name().to_string());
            Ok(Condition { name, check: check.condition(&with, &path, input)?, on_fail })
        }
        (None, None) => {
            let message = "a rule needs `check`, a condition, or `use`, a named check";
            Err(ArgError::new(format!("rules[{at}]"), Code::MissingArgument, message))
        }
        (Some(_), Some(_)) => {
            let message = "give either `check` or `use`, not both";
            Err(ArgError::new(format!("rules[{at}].use"), Code::ConflictingArguments, message))
        }
    }
}

fn summary_table() -> TableSchema {
    TableSchema::default()
        .with(&[
            describe("place", DataType::Int64, false, "the rule's place in the list, from 1", None),
            describe("rule", DataType::Utf8, false, "the rule", None),
            describe("checked", DataType::Int64, false, "rows that reached the rule", Some("rows")),
            describe("passed", DataType::Int64, false, "rows that passed it", Some("rows")),
            describe("failed", DataType::Int64, false, "rows that failed it", Some("rows")),
        ])
        .keyed(&["place"])
}

#[derive(Clone, Debug)]
struct BoundRule {
    rule: Condition,
    checked: RowExpr,
}

#[derive(Debug)]
struct BoundValidate {
    rules: Vec<BoundRule>,
    input: TableSchema,
    ports: Vec<Port>,
}

/// The position of the first dropping rule that a row fails; null for kept rows.
const FAILED: &str = "__failed";
const REASON: &str = "__reason";

impl BoundStep for BoundValidate {
    fn args(&self) -> Value {
        let rules: Vec<&Condition> = self.rules.iter().map(|bound| &bound.rule).collect();
        serde_json::json!({ "rules": rules })
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Row(self)
    }
}

impl BoundValidate {
    /// True if a row passes the rule: null counts as false.
    fn passes(rule: &BoundRule) -> Expr {
        coalesce(vec![rule.checked.expr.clone(), lit(false)])
    }

    /// The condition and the short values it used: `nloc > 1 is false (nloc = 1)`.
    fn reason(&self, rule: &BoundRule) -> Expr {
        let mut parts = vec![lit(format!("{} is not true", rule.rule.check))];
        let mut before = " (";
        for name in &rule.checked.columns {
            if self.input.field(name).is_some_and(|field| is_number(field.data_type())) {
                let value = cast(column(name), DataType::Utf8);
                parts.push(lit(format!("{before}{name} = ")));
                parts.push(coalesce(vec![value, lit("null")]));
                before = ", ";
            }
        }
        if parts.len() > 1 {
            parts.push(lit(")"));
        }
        concat(parts)
    }
}

impl RowStep for BoundValidate {
    fn is_light(&self) -> bool {
        true
    }

    fn reads(&self) -> Vec<String> {
        let names: BTreeSet<String> =
            self.rules.iter().flat_map(|r| r.checked.columns.iter().cloned()).collect();
        names.into_iter().collect()
    }

    fn evaluate(&self, rows: DataFrame) -> Result<DataFrame, StepError> {
        let (rows, rules) = share_calls(rows, &self.rules)?;
        // The first failing rule that is not a flag.
        let failing = || {
            let rules = rules.iter().filter(|rule| rule.rule.on_fail != OnFail::Flag);
            rules.map(|rule| Self::passes(rule).is_false())
        };
        let dropping = rules.iter().enumerate().filter(|(_, r)| r.rule.on_fail != OnFail::Flag);
        let (positions, reasons): (Vec<Expr>, Vec<Expr>) =
            dropping.map(|(at, rule)| (lit(at as i64), self.reason(rule))).unzip();
        let failed = first_of(failing().zip(positions), lit(ScalarValue::Null))?;
        let reason = first_of(failing().zip(reasons), lit(ScalarValue::Null))?;
        let mut produced = vec![
            cast(failed, DataType::Int64).alias(FAILED),
            cast(reason, DataType::Utf8).alias(REASON),
        ];
        for rule in rules.iter().filter(|r| r.rule.on_fail == OnFail::Flag) {
            produced.push(Self::passes(rule).alias(&rule.rule.name));
        }
        keep_hidden(rows, produced)
    }

    fn ports(&self, rows: DataFrame) -> Result<Ports, StepError> {
        let count = |condition: Expr| -> Result<Expr, StepError> {
            let one = when(condition, lit(1i64)).end()?;
            Ok(datafusion::functions_aggregate::expr_fn::count(one))
        };
        let (mut names, mut fail_rules) = (Vec::new(), Vec::new());
        let (mut counts, mut summary) = (Vec::new(), Vec::new());
        for (at, BoundRule { rule, .. }) in self.rules.iter().enumerate() {
            let position = || lit(at as i64);
            let is_first = || column(FAILED).eq(position());
            let reached = column(FAILED).is_null().or(column(FAILED).gt_eq(position()));
            let failed = match rule.on_fail {
                OnFail::Flag => reached.clone().and(column(&rule.name).is_false()),
                OnFail::Drop | OnFail::Fail => is_first(),
            };
            if rule.on_fail != OnFail::Flag {
                names.push((is_first(), lit(&*rule.name)));
            }
            if rule.on_fail == OnFail::Fail {
                fail_rules.push(position());
            }
            counts.push(count(reached)?.alias(format!("checked{at}")));
            counts.push(count(failed)?.alias(format!("failed{at}")));
            let (checked, failed) =
                (column(&format!("checked{at}")), column(&format!("failed{at}")));
            summary.push(named_struct(vec![
                lit("place"),
                lit(at as i64 + 1),
                lit("rule"),
                lit(&*rule.name),
                lit("checked"),
                checked.clone(),
                lit("passed"),
                checked - failed.clone(),
                lit("failed"),
                failed,
            ]));
        }
        let rule = first_of(names, lit(""))?;
        let kept = rows.clone().filter(column(FAILED).is_null())?;
        let rejected = rows.clone().filter(column(FAILED).is_not_null())?;
        let flags = self
            .rules
            .iter()
            .filter(|r| r.rule.on_fail == OnFail::Flag)
            .map(|r| (r.rule.name.as_str(), column(&r.rule.name)))
            .collect();
        let reason = if fail_rules.is_empty() {
            column(REASON)
        } else {
            call::<RaiseIf>(vec![column(FAILED).in_list(fail_rules, false), column(REASON)])
        };
        let summary = rows
            .aggregate(vec![], counts)?
            .select(vec![make_array(summary).alias("rules")])?
            .unnest_columns(&["rules"])?
            .select(
                ["place", "rule", "checked", "passed", "failed"]
                    .map(|name| get_field(column("rules"), name).alias(name)),
            )?;
        Ok(vec![
            (MAIN, project(kept, &self.ports[0].table, flags)?),
            (REJECTS, project(rejected, &self.ports[1].table, reject_values(rule, reason))?),
            (SUMMARY, summary),
        ])
    }
}

/// The value of the first pair whose condition is true; `otherwise` if there are no pairs.
fn first_of(
    cases: impl IntoIterator<Item = (Expr, Expr)>,
    otherwise: Expr,
) -> Result<Expr, StepError> {
    let mut cases = cases.into_iter();
    let Some((condition, value)) = cases.next() else { return Ok(otherwise) };
    let first = when(condition, value);
    Ok(cases.fold(first, |mut cases, (condition, value)| cases.when(condition, value)).end()?)
}

/// The prefix of functions that parse a method.
const EXPENSIVE: &str = "python_";

/// The rows with a hidden column per distinct call of an expensive function, and the rules with
/// these columns instead of the calls: rules are checked within a CASE, from which the optimiser
/// does not extract calls, so each mention would parse a method again.
fn share_calls(
    mut rows: DataFrame,
    rules: &[BoundRule],
) -> Result<(DataFrame, Vec<BoundRule>), StepError> {
    let mut calls: Vec<Expr> = Vec::new();
    let mut shared = Vec::with_capacity(rules.len());
    for rule in rules {
        let mut rule = rule.clone();
        let replaced = rule.checked.expr.transform_down(|expr| {
            let expensive = matches!(&expr, Expr::ScalarFunction(call)
                if call.func.name().starts_with(EXPENSIVE));
            if !expensive {
                return Ok(Transformed::no(expr));
            }
            let at = calls.iter().position(|known| *known == expr).unwrap_or(calls.len());
            if at == calls.len() {
                calls.push(expr);
            }
            Ok(Transformed::yes(column(&format!("__call_{at}"))))
        })?;
        rule.checked.expr = replaced.data;
        shared.push(rule);
    }
    for (at, call) in calls.into_iter().enumerate() {
        rows = rows.with_column(&format!("__call_{at}"), call)?;
    }
    Ok((rows, shared))
}
