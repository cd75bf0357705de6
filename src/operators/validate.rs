//! `validate`: rules over single rows; rows that fail are set aside with the reason.

use std::collections::BTreeSet;

use arrow::datatypes::DataType;
use async_trait::async_trait;
use datafusion::dataframe::DataFrame;
use datafusion::functions::core::expr_fn::named_struct;
use datafusion::functions::string::expr_fn::concat;
use datafusion::functions_nested::make_array::make_array;
use datafusion::logical_expr::conditional_expressions::CaseBuilder;
use datafusion::logical_expr::{Expr, cast, lit, when};
use datafusion::prelude::coalesce;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::support::{keep_hidden, project, reject_table, reject_values};
use crate::engine::{RowExpr, column, parse_row_expr};
use crate::operator::{
    ArgError, BindContext, Effect, Grain, InputPorts, Lowering, MAIN, Operator, Port, Ports,
    REJECTS, RowStep, SUMMARY, Step, StepError, TableSchema, args_schema, describe, parse_args,
};

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
    /// The rule's name, as `rejects` and `summary` show it.
    name: String,
    /// A condition in SQL over the row's columns. A row for which it is false or null fails.
    check: String,
    /// What happens to a row that fails.
    #[serde(default)]
    on_fail: OnFail,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum OnFail {
    /// The row goes to `rejects`.
    #[default]
    Drop,
    /// The row is kept; a boolean column named after the rule says whether it passed.
    Flag,
    /// The step fails.
    Fail,
}

/// The operator.
pub(super) struct Validate;

const DOC: &str = r#"Keep the rows that pass every rule, and say of every other row why not.

## What it does
Checks the rules in order. A rule is a condition in SQL over the columns of one row. A row
fails a rule for which the condition is false or null. With `on_fail: drop` (the default) the
row goes to the port `rejects` with the columns `step`, `rule` (the first rule it failed) and
`reason` (the condition and the values that it saw). With `flag` it is kept, and a boolean
column named after the rule says whether it passed. With `fail` the step fails and shows a row.

Ports: `out` (kept rows), `rejects`, and `summary` with `rule, checked, passed, failed`, where
`checked` counts the rows that earlier rules let through: kept and rejected rows add up.

## Example
```yaml
methods:
  op: methods
  with: { corpus: python-stdlib, include: ["json/*.py"] }
features:
  op: ast
  from: methods
valid:
  op: validate
  from: features
  with:
    rules:
      - { name: parses, check: "n_ast_errors = 0" }
      - { name: long_enough, check: "token_counts > 10 OR char_length(code) > 100" }
      - { name: documented, check: "docstring IS NOT NULL", on_fail: flag }
```

## Cost and reuse
Row by row: a row whose columns named by the rules are unchanged is not checked again.
"#;

#[async_trait]
impl Operator for Validate {
    fn name(&self) -> &'static str {
        "validate"
    }

    fn version(&self) -> u32 {
        1
    }

    fn grain(&self) -> Grain {
        Grain::Row
    }

    fn effect(&self) -> Effect {
        Effect::Pure
    }

    fn inputs(&self) -> InputPorts {
        InputPorts::One
    }

    fn doc(&self) -> &'static str {
        DOC
    }

    fn args_schema(&self) -> Value {
        args_schema::<Args>()
    }

    async fn bind(&self, args: &Value, cx: &BindContext) -> Result<Box<dyn Step>, Vec<ArgError>> {
        let args: Args = parse_args(args)?;
        let input = cx.input();
        let mut errors = Vec::new();
        let mut rules = Vec::new();
        let mut names = BTreeSet::new();
        for (at, rule) in args.rules.iter().enumerate() {
            if !names.insert(rule.name.as_str()) {
                errors.push(ArgError::new(
                    format!("rules[{at}].name"),
                    "duplicate-rule",
                    format!("there is another rule `{}` above", rule.name),
                ));
            }
            if rule.on_fail == OnFail::Flag && input.field(&rule.name).is_some() {
                errors.push(
                    ArgError::new(
                        format!("rules[{at}].name"),
                        "duplicate-column",
                        format!("the input already has a column `{}`", rule.name),
                    )
                    .help("a flag rule adds a column of its name; choose another name"),
                );
            }
            let path = format!("rules[{at}].check");
            match parse_row_expr(&cx.session, &input.schema, &rule.check, &path) {
                Ok(checked) if checked.data_type == DataType::Boolean => {
                    rules.push(BoundRule { rule: rule.clone(), checked });
                }
                Ok(checked) => errors.push(
                    ArgError::new(
                        path,
                        "wrong-type",
                        format!(
                            "a check is true or false, but this one has type {}",
                            crate::digest::type_name(&checked.data_type)
                        ),
                    )
                    .help("compare the value, as in `nloc > 1`"),
                ),
                Err(error) => errors.push(error),
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let flags: Vec<_> = args
            .rules
            .iter()
            .filter(|r| r.on_fail == OnFail::Flag)
            .map(|r| describe(&r.name, DataType::Boolean, true, &r.check, None))
            .collect();
        let ports = vec![
            Port::new(MAIN, input.with(&flags)),
            Port::new(REJECTS, reject_table(&input)),
            Port::new(SUMMARY, summary_table()),
        ];
        Ok(Box::new(BoundValidate { args, rules, input, ports }))
    }
}

fn summary_table() -> TableSchema {
    TableSchema::default()
        .with(&[
            describe("rule", DataType::Utf8, false, "the rule", None),
            describe("checked", DataType::Int64, false, "rows that reached the rule", Some("rows")),
            describe("passed", DataType::Int64, false, "rows that passed it", Some("rows")),
            describe("failed", DataType::Int64, false, "rows that failed it", Some("rows")),
        ])
        .keyed(&["rule"])
}

#[derive(Debug)]
struct BoundRule {
    rule: Rule,
    checked: RowExpr,
}

#[derive(Debug)]
struct BoundValidate {
    args: Args,
    rules: Vec<BoundRule>,
    input: TableSchema,
    ports: Vec<Port>,
}

/// The position of the first dropping rule that a row fails; null for kept rows.
const FAILED: &str = "__failed";
/// The reason of a rejected row.
const REASON: &str = "__reason";

impl Step for BoundValidate {
    fn args(&self) -> Value {
        serde_json::to_value(&self.args).unwrap_or_default()
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Row(self)
    }
}

impl BoundValidate {
    /// Whether a row passes the rule: null counts as false.
    fn passes(rule: &BoundRule) -> Expr {
        coalesce(vec![rule.checked.expr.clone(), lit(false)])
    }

    /// The first failing rule that is not a flag, as `value(position, rule)`.
    fn first_failure(
        &self,
        value: impl Fn(usize, &BoundRule) -> Result<Expr, StepError>,
    ) -> Result<Expr, StepError> {
        let mut cases: Option<CaseBuilder> = None;
        for (at, rule) in self.rules.iter().enumerate() {
            if rule.rule.on_fail == OnFail::Flag {
                continue;
            }
            let fails = Self::passes(rule).is_false();
            let result = value(at, rule)?;
            cases = Some(match cases {
                None => when(fails, result),
                Some(mut builder) => builder.when(fails, result),
            });
        }
        match cases {
            Some(cases) => Ok(cases.end()?),
            None => Ok(lit(datafusion::common::ScalarValue::Null)),
        }
    }

    /// The condition and the short values that it saw: `nloc > 1 is false (nloc = 1)`.
    fn reason(&self, rule: &BoundRule) -> Expr {
        let mut parts = vec![lit(format!("{} is not true", rule.rule.check))];
        let mut before = " (";
        for name in &rule.checked.columns {
            let Some(field) = self.input.field(name) else { continue };
            let short = field.data_type().is_numeric() || *field.data_type() == DataType::Boolean;
            if short {
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
    fn reads(&self) -> Vec<String> {
        let names: BTreeSet<String> =
            self.rules.iter().flat_map(|r| r.checked.columns.iter().cloned()).collect();
        names.into_iter().collect()
    }

    fn evaluate(&self, rows: DataFrame) -> Result<DataFrame, StepError> {
        let failed = self.first_failure(|at, _| Ok(lit(at as i64)))?;
        let reason = self.first_failure(|_, rule| Ok(self.reason(rule)))?;
        let mut produced = vec![
            cast(failed, DataType::Int64).alias(FAILED),
            cast(reason, DataType::Utf8).alias(REASON),
        ];
        for rule in self.rules.iter().filter(|r| r.rule.on_fail == OnFail::Flag) {
            produced.push(Self::passes(rule).alias(&rule.rule.name));
        }
        keep_hidden(rows, produced)
    }

    fn ports(&self, rows: DataFrame) -> Result<Ports, StepError> {
        let mut rule: Option<CaseBuilder> = None;
        let mut counts = Vec::new();
        let mut summary = Vec::new();
        let fail_rules =
            self.rules.iter().enumerate().filter(|(_, r)| r.rule.on_fail == OnFail::Fail);
        let fail_rules: Vec<Expr> = fail_rules.map(|(at, _)| lit(at as i64)).collect();
        for (at, bound) in self.rules.iter().enumerate() {
            let position = lit(at as i64);
            let reached = || column(FAILED).is_null().or(column(FAILED).gt_eq(position.clone()));
            let failed = match bound.rule.on_fail {
                OnFail::Flag => reached().and(column(&bound.rule.name).is_false()),
                _ => {
                    rule = Some(match rule {
                        None => when(column(FAILED).eq(position.clone()), lit(&*bound.rule.name)),
                        Some(mut builder) => builder
                            .when(column(FAILED).eq(position.clone()), lit(&*bound.rule.name)),
                    });
                    column(FAILED).eq(position.clone())
                }
            };
            let count = |condition: Expr| -> Result<Expr, StepError> {
                let one = when(condition, lit(1i64)).end()?;
                Ok(datafusion::functions_aggregate::expr_fn::count(one))
            };
            counts.push(count(reached())?.alias(format!("checked{at}")));
            counts.push(count(failed)?.alias(format!("failed{at}")));
            let (checked, failed) =
                (column(&format!("checked{at}")), column(&format!("failed{at}")));
            summary.push(named_struct(vec![
                lit("rule"),
                lit(&*bound.rule.name),
                lit("checked"),
                checked.clone(),
                lit("passed"),
                checked - failed.clone(),
                lit("failed"),
                failed,
            ]));
        }
        let rule = match rule {
            Some(cases) => cases.end()?,
            None => lit(""),
        };
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
            crate::functions::call::<crate::functions::RaiseIf>(vec![
                column(FAILED).in_list(fail_rules, false),
                column(REASON),
            ])
        };
        let summary = rows
            .aggregate(vec![], counts)?
            .select(vec![make_array(summary).alias("rules")])?
            .unnest_columns(&["rules"])?
            .select(["rule", "checked", "passed", "failed"].map(|name| {
                datafusion::functions::core::expr_fn::get_field(column("rules"), name).alias(name)
            }))?;
        Ok(vec![
            (MAIN, project(kept, &self.ports[0].table, flags)?),
            (REJECTS, project(rejected, &self.ports[1].table, reject_values(rule, reason))?),
            (SUMMARY, summary),
        ])
    }
}
