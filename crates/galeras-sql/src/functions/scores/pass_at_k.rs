//! `pass_at_k(n, c, k)` and `pass_hat_k(n, c, k)`: the chance that one of `k` answers is right, or all
//! of them, if `c` of `n` are.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::error::Result;
use datafusion::logical_expr::ScalarFunctionArgs;

use crate::functions::function_doc::{FunctionDoc, RowFunction};
use galeras_metrics::text::{pass_at_k, pass_hat_k};

/// The unbiased estimator of Chen et al. 2021; null where a number is null or there is no such
/// chance (`c > n`, `k > n`, `k < 1`).
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct PassAtK;

impl RowFunction for PassAtK {
    const DOC: FunctionDoc = FunctionDoc {
        name: "pass_at_k",
        arguments: &[("n", "integer"), ("c", "integer"), ("k", "integer")],
        returns: "float",
        summary: "the chance that one of `k` answers is right if `c` of `n` are (Chen et al. 2021)",
        nulls: "null if a number is null or negative, and for `c > n`, `k > n` or `k < 1`",
        example: "pass_at_k(10, 3, 5)",
        ..FunctionDoc::SCORE
    };

    fn return_type() -> DataType {
        DataType::Float64
    }

    fn invoke(args: &ScalarFunctionArgs) -> Result<ArrayRef> {
        estimates(args, pass_at_k)
    }
}

/// The unbiased estimator of τ-bench (Yao et al. 2024); null as [`PassAtK`] is.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct PassHatK;

impl RowFunction for PassHatK {
    const DOC: FunctionDoc = FunctionDoc {
        name: "pass_hat_k",
        summary: "the chance that all of `k` answers are right if `c` of `n` are (Yao et al. 2024)",
        example: "pass_hat_k(10, 3, 2)",
        ..PassAtK::DOC
    };

    fn return_type() -> DataType {
        DataType::Float64
    }

    fn invoke(args: &ScalarFunctionArgs) -> Result<ArrayRef> {
        estimates(args, pass_hat_k)
    }
}

/// The estimates for a batch of rows; null where a number is null or negative.
fn estimates(
    args: &ScalarFunctionArgs,
    estimate: fn(u64, u64, u64) -> Option<f64>,
) -> Result<ArrayRef> {
    let columns =
        args.args.iter().map(|arg| arg.to_array(args.number_rows)).collect::<Result<Vec<_>>>()?;
    let number = |column: usize, row: usize| {
        let column = columns[column].as_primitive::<Int64Type>();
        column.is_valid(row).then(|| u64::try_from(column.value(row)).ok()).flatten()
    };
    let chance = |row| estimate(number(0, row)?, number(1, row)?, number(2, row)?);
    let chances: Float64Array = (0..args.number_rows).map(chance).collect();
    Ok(Arc::new(chances))
}
