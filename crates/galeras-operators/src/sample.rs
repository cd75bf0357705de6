//! `sample`: a deterministic sample that is stable when the table or the sample grows.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray, UInt64Array};
use arrow::datatypes::{DataType, UInt64Type};
use datafusion::dataframe::DataFrame;
use datafusion::execution::context::SessionContext;
use datafusion::logical_expr::{Expr, JoinType, cast, lit};
use datafusion::prelude::coalesce;
use futures::StreamExt;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use galeras_base::id::ID;
use galeras_operator::columns::require_column;
use galeras_operator::rejects::{reject_table, reject_values};
use galeras_operator::{
    ArgError, BindContext, BoundStep, Descriptor, Effect, Grain, INPUT, InputPorts, Inputs,
    LowerContext, Lowering, MAIN, Operator, Port, Ports, REJECTS, StepError, TableStep, Tell,
    TypedOperator, args_schema, take_input,
};
use galeras_sql::functions::{KeyedHash, RowId, call};
use galeras_sql::projection::{project, text};
use galeras_sql::session::column;
use galeras_workflow::code::Code;

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
    /// Makes the draw independent of those with the same seed and another salt.
    #[serde(default)]
    salt: String,
    /// Columns whose combinations are sampled in proportion to their size.
    #[serde(default)]
    stratify: Vec<String>,
}

struct SampleOperator;

/// The operator.
pub const SAMPLE: &dyn Operator = &SampleOperator;

impl TypedOperator for SampleOperator {
    type Args = Args;

    const DESCRIPTOR: Descriptor = Descriptor {
        name: "sample",
        version: 2,
        grain: Grain::of::<BoundSample, _>(),
        effect: Effect::Seeded,
        inputs: InputPorts::One,
        doc: include_str!("sample.md"),
        args_schema: args_schema::<Args>,
    };

    fn bind(args: Args, cx: &BindContext) -> Result<Box<dyn BoundStep>, Vec<ArgError>> {
        let mut errors = Vec::new();
        match (args.n, args.fraction) {
            (None, None) => {
                let message = "`sample` needs `n` or `fraction`";
                errors.push(ArgError::new("", Code::MissingArgument, message));
            }
            (Some(_), Some(_)) => {
                let message = "give either `n` or `fraction`, not both";
                errors.push(ArgError::new("fraction", Code::ConflictingArguments, message));
            }
            _ => {}
        }
        if args.fraction.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
            let message = "a fraction must be between 0 and 1";
            errors.push(ArgError::new("fraction", Code::OutOfRange, message));
        }
        require_column(cx, "", ID, "an id", |_| true, &mut errors);
        for (at, name) in args.stratify.iter().enumerate() {
            let path = format!("stratify[{at}]");
            require_column(cx, &path, name, "a plain value", |t| !t.is_nested(), &mut errors);
        }
        ArgError::none(errors)?;
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

impl BoundStep for BoundSample {
    fn args(&self) -> Value {
        serde_json::json!(self.args)
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn lowering(&self) -> Lowering<'_> {
        Lowering::Table(self)
    }
}

/// A stratum's priority for the next row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Claim {
    size: u64,
    kept: u64,
    stratum: usize,
}

impl Ord for Claim {
    fn cmp(&self, other: &Self) -> Ordering {
        // size / (2 kept + 1), without the division.
        let weight =
            |one: &Self, divisor: &Self| u128::from(one.size) * (2 * u128::from(divisor.kept) + 1);
        weight(self, other).cmp(&weight(other, self)).then(other.stratum.cmp(&self.stratum))
    }
}

impl PartialOrd for Claim {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Hidden columns: a row's stratum, the strata that keep rows, and the largest number kept.
const STRATUM: &str = "__stratum";
const GIVEN: &str = "__given";
const LAST: &str = "__last";

type Stratum = Vec<u64>;

impl BoundSample {
    fn number(&self) -> Expr {
        let id = cast(column(ID), DataType::Utf8);
        let purpose = match self.args.salt.as_str() {
            "" => "sample".to_string(),
            salt => format!("sample/{salt}"),
        };
        call::<KeyedHash>(vec![lit(self.args.seed), lit(purpose), id])
    }

    /// A text that is unique to each stratum; null counts as a value.
    fn stratum(&self) -> Expr {
        if self.args.stratify.is_empty() {
            return lit("");
        }
        let values = self.args.stratify.iter();
        call::<RowId>(values.flat_map(|name| [column(name).is_null(), column(name)]).collect())
    }

    /// The number of rows that each stratum keeps, by the method of Sainte-Laguë (Webster): one row
    /// after the other goes to the stratum with the largest `size / (2 kept + 1)` (ties: the
    /// smaller digest). Shares are as proportional as possible, and a larger sample never takes a
    /// row from a stratum, unlike with largest remainders.
    fn allocate(&self, strata: &BTreeMap<String, Stratum>) -> Vec<u64> {
        let sizes: Vec<u64> = strata.values().map(|s| s.len() as u64).collect();
        let total: u64 = sizes.iter().sum();
        let wanted = match (self.args.n, self.args.fraction) {
            (Some(n), _) => n.min(total),
            (None, share) => (share.unwrap_or(0.0) * total as f64).round() as u64,
        };
        let mut kept = vec![0; sizes.len()];
        if let [all] = kept.as_mut_slice() {
            *all = wanted;
            return kept;
        }
        let claims = sizes.iter().enumerate();
        let mut claims: BinaryHeap<Claim> =
            claims.map(|(stratum, size)| Claim { size: *size, kept: 0, stratum }).collect();
        for _ in 0..wanted {
            let Some(mut claim) = claims.pop() else { break };
            claim.kept += 1;
            kept[claim.stratum] = claim.kept;
            if claim.kept < claim.size {
                claims.push(claim);
            }
        }
        kept
    }

    /// The rows with the largest number kept in their stratum, null if none is. The small table is
    /// joined from the left, so that the rows keep their order.
    fn with_thresholds(
        &self,
        session: &SessionContext,
        input: DataFrame,
        thresholds: &[(String, u64)],
    ) -> Result<DataFrame, StepError> {
        let digests: StringArray = thresholds.iter().map(|(digest, _)| Some(digest)).collect();
        let last: UInt64Array = thresholds.iter().map(|(_, last)| Some(*last)).collect();
        let small: [(&str, ArrayRef); 2] = [(GIVEN, Arc::new(digests)), (LAST, Arc::new(last))];
        let small = session.read_batch(RecordBatch::try_from_iter(small)?)?;
        let input = input.with_column(STRATUM, self.stratum())?;
        Ok(small.join(input, JoinType::Right, &[GIVEN], &[STRATUM], None)?)
    }

    /// The largest number kept in each stratum; strata that keep nothing are absent.
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

impl TableStep for BoundSample {
    fn bounded(&self) -> bool {
        true
    }

    fn lower<'a>(
        &'a self,
        cx: &'a LowerContext,
        mut inputs: Inputs,
    ) -> BoxFuture<'a, Result<Ports, StepError>> {
        Box::pin(async move {
            let input = take_input(&mut inputs, INPUT)?;
            let mut numbers = input
                .clone()
                .select(vec![self.stratum().alias("stratum"), self.number().alias("number")])?
                .execute_stream()
                .await?;
            let mut strata: BTreeMap<String, Stratum> = BTreeMap::new();
            while let Some(batch) = numbers.next().await {
                let batch = batch?;
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
            if let Some(n) = self.args.n.filter(|n| *n > total as u64) {
                let message = format!(
                    "the table has {total} rows, fewer than `n: {n}`: all of them are kept"
                );
                (cx.tell)(Tell::Warning(message));
            }
            let thresholds = self.thresholds(strata);
            let (input, chosen) = match thresholds.as_slice() {
                [] => (input, lit(false)),
                [(_, last)] if self.args.stratify.is_empty() => {
                    (input, self.number().lt_eq(lit(*last)))
                }
                many => (self.with_thresholds(&cx.session, input, many)?, {
                    coalesce(vec![self.number().lt_eq(column(LAST)), lit(false)])
                }),
            };
            let reason = format!("not among the drawn rows of {total} (seed {})", self.args.seed);
            let kept =
                project(input.clone().filter(chosen.clone())?, &self.ports[0].table, Vec::new())?;
            let others = input.filter(datafusion::logical_expr::not(chosen))?;
            let rejected =
                project(others, &self.ports[1].table, reject_values(text("sample"), lit(reason)))?;
            Ok(vec![(MAIN, kept), (REJECTS, rejected)])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(n: u64) -> BoundSample {
        let args = Args {
            n: Some(n),
            fraction: None,
            seed: 1,
            salt: String::new(),
            stratify: vec!["x".into()],
        };
        BoundSample { args, ports: Vec::new() }
    }

    fn strata(sizes: &[(&str, u64)]) -> BTreeMap<String, Stratum> {
        sizes.iter().map(|(digest, rows)| (digest.to_string(), (0..*rows).collect())).collect()
    }

    #[test]
    fn strata_get_their_share_and_the_sum_is_exact() {
        let strata = strata(&[("a", 50), ("b", 30), ("c", 1)]);
        for n in [0, 1, 7, 40, 81, 1000] {
            let kept = sample(n).allocate(&strata);
            assert_eq!(kept.iter().sum::<u64>(), n.min(81), "{n}");
            assert!(kept[0] <= 50 && kept[1] <= 30 && kept[2] <= 1);
        }
        assert_eq!(sample(8).allocate(&strata), [5, 3, 0]);
    }

    #[test]
    fn a_larger_sample_takes_no_row_from_a_stratum() {
        // With largest remainders the last stratum has 2 of 10 rows and 1 of 11.
        let strata = strata(&[("a", 600), ("b", 600), ("c", 200)]);
        let mut before = sample(0).allocate(&strata);
        for n in 1..=1400 {
            let now = sample(n).allocate(&strata);
            assert!(before.iter().zip(&now).all(|(b, n)| b <= n), "{n}: {before:?} {now:?}");
            before = now;
        }
    }
}
