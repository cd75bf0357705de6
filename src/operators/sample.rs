//! `sample`: a deterministic sample that is stable when the table or the sample grows.

use std::collections::BTreeMap;

use arrow::array::AsArray;
use arrow::datatypes::{DataType, UInt64Type};
use async_trait::async_trait;
use datafusion::dataframe::DataFrame;
use datafusion::logical_expr::conditional_expressions::CaseBuilder;
use datafusion::logical_expr::{Expr, cast, lit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::support::{project, reject_table, reject_values, require_column, text};
use crate::engine::column;
use crate::functions::{KeyedHash, RowId, call};
use crate::id::ID;
use crate::operator::{
    ArgError, BindContext, Effect, Grain, INPUT, InputPorts, LowerContext, Lowering, MAIN,
    Operator, Port, Ports, REJECTS, Step, StepError, TableStep, args_schema, parse_args,
};

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The number of rows to keep; all of them if the table has fewer.
    #[serde(default)]
    n: Option<u64>,
    /// The share of rows to keep, rounded to the nearest row.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    fraction: Option<f64>,
    /// The seed of the choice.
    seed: i64,
    /// Columns whose combinations are sampled in proportion to their size.
    #[serde(default)]
    stratify: Vec<String>,
}

/// The operator.
pub(super) struct Sample;

const DOC: &str = r#"Draw rows at random, the same ones every time.

## What it does
Gives every row a number from the seed and its `id` and keeps the rows with the smallest ones
(bottom-k sampling). So the sample does not depend on the order of rows, asking for more rows
keeps those drawn before, and rows added to the table displace only as many as they must.

Give either `n` or `fraction`. With `stratify`, every combination of the named columns gets its
share of the rows (largest remainder), drawn in the same way within the combination.

Ports: `out` (the sample) and `rejects` (the other rows, with `step, rule, reason`).

## Example
```yaml
methods:
  op: methods
  with: { corpus: python-stdlib, include: ["json/*.py"] }
sampled:
  op: sample
  from: methods
  with: { n: 20, seed: 42, stratify: [path] }
```

## Cost and reuse
One pass over the ids, one over the rows. Runs as a whole when its input changes.
"#;

#[async_trait]
impl Operator for Sample {
    fn name(&self) -> &'static str {
        "sample"
    }

    fn version(&self) -> u32 {
        1
    }

    fn grain(&self) -> Grain {
        Grain::Table
    }

    fn effect(&self) -> Effect {
        Effect::Seeded
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
        let mut errors = Vec::new();
        match (args.n, args.fraction) {
            (None, None) => {
                let error =
                    ArgError::new("", "missing-argument", "`sample` needs `n` or `fraction`");
                errors.push(error);
            }
            (Some(_), Some(_)) => errors.push(ArgError::new(
                "fraction",
                "conflicting-arguments",
                "give either `n` or `fraction`, not both",
            )),
            _ => {}
        }
        if let Some(share) = args.fraction
            && !(0.0..=1.0).contains(&share)
        {
            errors.push(ArgError::new("fraction", "out-of-range", "a fraction lies in 0 to 1"));
        }
        require_column(cx, "", ID, "an id", |_| true, &mut errors);
        for (at, name) in args.stratify.iter().enumerate() {
            let path = format!("stratify[{at}]");
            require_column(cx, &path, name, "a plain value", |t| !t.is_nested(), &mut errors);
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let input = cx.input();
        let ports = vec![Port::new(MAIN, input.clone()), Port::new(REJECTS, reject_table(&input))];
        Ok(Box::new(BoundSample { args, ports }))
    }
}

#[derive(Debug)]
struct BoundSample {
    args: Args,
    ports: Vec<Port>,
}

impl Step for BoundSample {
    fn args(&self) -> Value {
        serde_json::to_value(&self.args).unwrap_or_default()
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Table(self)
    }
}

/// The numbers of the rows of one stratum.
type Stratum = Vec<u64>;

impl BoundSample {
    fn number(&self) -> Expr {
        let id = cast(column(ID), DataType::Utf8);
        call::<KeyedHash>(vec![lit(self.args.seed), lit("sample"), id])
    }

    /// A text that is the same for the rows of one stratum only; null is a value of its own.
    fn stratum(&self) -> Expr {
        if self.args.stratify.is_empty() {
            return lit("");
        }
        let values = self.args.stratify.iter();
        call::<RowId>(values.flat_map(|name| [column(name).is_null(), column(name)]).collect())
    }

    /// How many rows each stratum keeps: its exact share rounded down, and the rows that are
    /// left over to the largest remainders (ties: to the stratum with the smaller digest).
    fn allocate(&self, strata: &BTreeMap<String, Stratum>) -> Vec<u64> {
        let total: u64 = strata.values().map(|s| s.len() as u64).sum();
        let wanted = match (self.args.n, self.args.fraction) {
            (Some(n), _) => n.min(total),
            (None, share) => (share.unwrap_or(0.0) * total as f64).round() as u64,
        };
        let exact = |rows: u64| u128::from(rows) * u128::from(wanted);
        let divisor = u128::from(total.max(1));
        let sizes: Vec<u64> = strata.values().map(|s| s.len() as u64).collect();
        let mut kept: Vec<u64> = sizes.iter().map(|n| (exact(*n) / divisor) as u64).collect();
        let mut order: Vec<usize> = (0..sizes.len()).collect();
        order.sort_by_key(|i| std::cmp::Reverse(exact(sizes[*i]) % divisor));
        let mut left = wanted.saturating_sub(kept.iter().sum());
        for i in order {
            if left > 0 && kept[i] < sizes[i] {
                kept[i] += 1;
                left -= 1;
            }
        }
        kept
    }

    /// The largest number that is kept in each stratum; strata that keep nothing are absent.
    fn thresholds(&self, mut strata: BTreeMap<String, Stratum>) -> Vec<(String, u64)> {
        let kept = self.allocate(&strata);
        strata
            .iter_mut()
            .zip(kept)
            .filter(|(_, kept)| *kept > 0)
            .map(|((digest, numbers), kept)| {
                let (_, last, _) = numbers.select_nth_unstable(kept as usize - 1);
                (digest.clone(), *last)
            })
            .collect()
    }
}

#[async_trait]
impl TableStep for BoundSample {
    async fn lower(
        &self,
        _: &LowerContext,
        mut inputs: BTreeMap<String, DataFrame>,
    ) -> Result<Ports, StepError> {
        let input =
            inputs.remove(INPUT).ok_or_else(|| StepError::new("`sample` needs an input table"))?;
        let numbers = input
            .clone()
            .select(vec![self.stratum().alias("stratum"), self.number().alias("number")])?
            .collect()
            .await?;
        let mut strata: BTreeMap<String, Stratum> = BTreeMap::new();
        for batch in &numbers {
            let digests = batch.column(0).as_string::<i32>();
            let numbers = batch.column(1).as_primitive::<UInt64Type>();
            for (digest, number) in digests.iter().zip(numbers.iter()) {
                let (Some(digest), Some(number)) = (digest, number) else {
                    return Err(StepError::new("`id` is null in some rows"));
                };
                match strata.get_mut(digest) {
                    Some(stratum) => stratum.push(number),
                    None => {
                        strata.insert(digest.to_string(), vec![number]);
                    }
                }
            }
        }
        let total: usize = strata.values().map(Vec::len).sum();
        let thresholds = self.thresholds(strata);
        let chosen = match thresholds.as_slice() {
            [] => lit(false),
            [(_, last)] if self.args.stratify.is_empty() => self.number().lt_eq(lit(*last)),
            many => {
                let mut cases: Option<CaseBuilder> = None;
                for (digest, last) in many {
                    let (key, last) = (lit(digest.as_str()), lit(*last));
                    cases = Some(match cases {
                        None => datafusion::logical_expr::case(self.stratum()).when(key, last),
                        Some(mut builder) => builder.when(key, last),
                    });
                }
                let last = match cases {
                    Some(builder) => builder.end()?,
                    None => lit(0u64),
                };
                datafusion::prelude::coalesce(vec![self.number().lt_eq(last), lit(false)])
            }
        };
        let reason = format!("not among the drawn rows of {total} (seed {})", self.args.seed);
        let kept = input.clone().filter(chosen.clone())?;
        let others = input.filter(datafusion::logical_expr::not(chosen))?;
        let rejected =
            project(others, &self.ports[1].table, reject_values(text("sample"), lit(reason)))?;
        Ok(vec![(MAIN, kept), (REJECTS, rejected)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(n: u64) -> BoundSample {
        let args = Args { n: Some(n), fraction: None, seed: 1, stratify: vec!["x".into()] };
        BoundSample { args, ports: Vec::new() }
    }

    #[test]
    fn strata_get_their_share_and_the_sum_is_exact() {
        let strata: BTreeMap<String, Stratum> = [("a", 50), ("b", 30), ("c", 1)]
            .map(|(digest, rows)| (digest.to_string(), (0..rows).collect()))
            .into();
        for n in [0, 1, 7, 40, 81, 1000] {
            let kept = sample(n).allocate(&strata);
            assert_eq!(kept.iter().sum::<u64>(), n.min(81), "{n}");
            assert!(kept[0] <= 50 && kept[1] <= 30 && kept[2] <= 1);
        }
    }
}
