//! `min` and `max` of floats under the total order of IEEE 754.
//!
//! DataFusion 55's grouped `min` and `max` compare floats with `partial_cmp`: a NaN replaces the
//! value before it and is replaced by the next one, `-0.0` and `0.0` tie, and the largest finite
//! double replaces infinity. So their value depends on arrival order. Its ungrouped accumulators
//! use the total order (-NaN < -inf < -0.0 < 0.0 < inf < NaN).
//!
//! This file uses the ungrouped accumulators for floats everywhere. Other types stay with the
//! builtin.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, GroupsAccumulator, ReversedUDAF,
    SetMonotonicity, Signature, StatisticsArgs,
};

use crate::functions::function_doc::FunctionDoc;

/// The functions of this file.
pub(super) fn all() -> Vec<(FunctionDoc, Arc<AggregateUDF>)> {
    vec![
        (
            FunctionDoc {
                returns: "the type of x",
                ..FunctionDoc::aggregate(
                    "min",
                    &[],
                    &[("x", "any")],
                    "the least value; floats are in the total order of IEEE 754",
                    "rows with a null do not count; null if there are none",
                    "min(x)",
                )
            },
            min(),
        ),
        (
            FunctionDoc {
                returns: "the type of x",
                ..FunctionDoc::aggregate(
                    "max",
                    &[],
                    &[("x", "any")],
                    "the greatest value; floats are in the total order of IEEE 754",
                    "rows with a null do not count; null if there are none",
                    "max(x)",
                )
            },
            max(),
        ),
    ]
}

/// `min(x)`: the least value in total order; null if there is none.
fn min() -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::new_from_impl(Extreme { builtin: min_udaf() }))
}

/// `max(x)`: the greatest value in total order; null if there is none.
fn max() -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::new_from_impl(Extreme { builtin: max_udaf() }))
}

/// The builtin, without its shortcuts for floats.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Extreme {
    builtin: Arc<AggregateUDF>,
}

impl AggregateUDFImpl for Extreme {
    fn name(&self) -> &str {
        self.builtin.name()
    }

    fn aliases(&self) -> &[String] {
        self.builtin.aliases()
    }

    fn signature(&self) -> &Signature {
        self.builtin.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.builtin.return_type(arg_types)
    }

    fn return_field(&self, arg_fields: &[FieldRef]) -> Result<FieldRef> {
        self.builtin.return_field(arg_fields)
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.builtin.coerce_types(arg_types)
    }

    fn is_nullable(&self) -> bool {
        self.builtin.is_nullable()
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        self.builtin.default_value(data_type)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.builtin.documentation()
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.builtin.inner().set_monotonicity(data_type)
    }

    fn is_descending(&self) -> Option<bool> {
        self.builtin.is_descending()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.builtin.state_fields(args)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.builtin.accumulator(args)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.builtin.create_sliding_accumulator(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !args.return_type().is_floating() && self.builtin.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        self.builtin.create_groups_accumulator(args)
    }

    /// File statistics leave NaN out and take `-0.0` and `0.0` for equal.
    fn value_from_stats(&self, args: &StatisticsArgs) -> Option<ScalarValue> {
        if args.return_type.is_floating() { None } else { self.builtin.value_from_stats(args) }
    }
}
