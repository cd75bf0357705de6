//! `ExactFunction`: a DataFusion aggregate that computes from exact sums under the name of a
//! builtin.
//!
//! Here: everything a function takes over from the builtin (name, aliases, documentation,
//! types, nullability) and the choice between the exact path and the builtin's. Not here:
//! the formulas, which each family's file passes in as a [`Finish`].

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::types::{NativeType, logical_float64, logical_int64, logical_uint64};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Coercion, Documentation, Expr, GroupsAccumulator,
    Operator, ReversedUDAF, SetMonotonicity, Signature, StatisticsArgs, TypeSignature,
    TypeSignatureClass, Volatility,
};

use super::accumulator::{DistinctAccumulator, ExactAccumulator, ExactGroups, Finish};
use super::wide;

/// An aggregate with the builtin's name, exact where the builtin would add floats.
///
/// Whole numbers are added by `wide`. Decimals, durations and intervals stay with the builtin:
/// their sums wrap or are exact, so order does not matter.
#[derive(Debug)]
pub(super) struct ExactFunction<const N: usize> {
    builtin: Arc<AggregateUDF>,
    signature: Signature,
    finish: Finish<N>,
}

impl<const N: usize> ExactFunction<N> {
    /// An exact aggregate in place of `builtin`, with the same signature.
    pub(super) fn udaf(builtin: Arc<AggregateUDF>, finish: Finish<N>) -> Arc<AggregateUDF> {
        let signature = builtin.signature().clone();
        Arc::new(AggregateUDF::new_from_impl(Self { builtin, signature, finish }))
    }

    /// The same for a builtin that casts each of its `arguments` to doubles, which rounds
    /// integers above 2^53: here it gets those of 64 bits as they are.
    pub(super) fn udaf_of_integers(
        builtin: Arc<AggregateUDF>,
        arguments: usize,
        finish: Finish<N>,
    ) -> Arc<AggregateUDF> {
        let signed = Coercion::new_exact(TypeSignatureClass::Native(logical_int64()));
        let unsigned = Coercion::new_exact(TypeSignatureClass::Native(logical_uint64()));
        let double = Coercion::new_implicit(
            TypeSignatureClass::Native(logical_float64()),
            vec![TypeSignatureClass::Numeric],
            NativeType::Float64,
        );
        // Every combination but that of doubles alone, which is the builtin's.
        let mut combinations: Vec<Vec<Coercion>> = vec![Vec::new()];
        for _ in 0..arguments {
            let longer = combinations.iter().flat_map(|first| {
                [&signed, &unsigned, &double]
                    .map(|next| [&first[..], std::slice::from_ref(next)].concat())
            });
            combinations = longer.collect();
        }
        combinations.pop();
        let others = match &builtin.signature().type_signature {
            TypeSignature::OneOf(alternatives) => alternatives.clone(),
            other => vec![other.clone()],
        };
        let integers = combinations.into_iter().map(TypeSignature::Coercible);
        let signature = Signature::one_of(integers.chain(others).collect(), Volatility::Immutable);
        Arc::new(AggregateUDF::new_from_impl(Self { builtin, signature, finish }))
    }

    /// Returns true if it adds, and does not count.
    fn adds(&self) -> bool {
        matches!(self.finish, Finish::Float(_))
    }

    /// Returns true if a result of this type is computed from exact sums.
    fn is_exact(&self, return_type: &DataType) -> bool {
        match self.finish {
            Finish::Float(_) => *return_type == DataType::Float64,
            Finish::Count => true,
        }
    }
}

impl<const N: usize> PartialEq for ExactFunction<N> {
    /// There is one exact function per builtin.
    fn eq(&self, other: &Self) -> bool {
        self.builtin == other.builtin
    }
}

impl<const N: usize> Eq for ExactFunction<N> {}

impl<const N: usize> Hash for ExactFunction<N> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.builtin.hash(state);
    }
}

impl<const N: usize> AggregateUDFImpl for ExactFunction<N> {
    fn name(&self) -> &str {
        self.builtin.name()
    }

    fn aliases(&self) -> &[String] {
        self.builtin.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.builtin.return_type(arg_types)
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

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if wide::is_wide(args.return_type()) && self.adds() {
            return wide::state_fields(&self.builtin, args);
        }
        if !self.is_exact(args.return_type()) {
            return self.builtin.state_fields(args);
        }
        let name = format_state_name(args.name, "exact");
        Ok(vec![Arc::new(Field::new(name, DataType::Binary, true))])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if wide::is_wide(args.return_type()) && self.adds() {
            return wide::accumulator(&self.builtin, args);
        }
        if !self.is_exact(args.return_type()) {
            return self.builtin.accumulator(args);
        }
        Ok(if args.is_distinct {
            Box::new(DistinctAccumulator::new(self.finish))
        } else {
            Box::new(ExactAccumulator::new(self.finish))
        })
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if self.is_exact(args.return_type()) {
            self.accumulator(args)
        } else if wide::is_wide(args.return_type()) && self.adds() && !args.is_distinct {
            wide::sliding(&self.builtin, args)
        } else {
            self.builtin.create_sliding_accumulator(args)
        }
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        if self.is_exact(args.return_type()) {
            !args.is_distinct
        } else {
            self.builtin.groups_accumulator_supported(args)
        }
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        if self.is_exact(args.return_type()) {
            Ok(Box::new(ExactGroups::new(self.finish)))
        } else if wide::is_wide(args.return_type()) && self.adds() {
            wide::groups(&self.builtin, args)
        } else {
            self.builtin.create_groups_accumulator(args)
        }
    }

    /// The builtin rewrites `sum(x + 1)` to `sum(x) + 1 * count(x)`: right for integers, but
    /// another rounding for floats, and only in queries with two such sums.
    fn simplify_expr_op_literal(
        &self,
        agg_function: &AggregateFunction,
        arg: &Expr,
        op: Operator,
        lit: &Expr,
        arg_is_left: bool,
    ) -> Result<Option<Expr>> {
        match lit {
            Expr::Literal(value, _) if value.data_type().is_integer() => {
                self.builtin.simplify_expr_op_literal(agg_function, arg, op, lit, arg_is_left)
            }
            _ => Ok(None),
        }
    }

    /// A sum of floats from a file's statistics was rounded in an unknown order.
    fn value_from_stats(&self, args: &StatisticsArgs) -> Option<ScalarValue> {
        if self.is_exact(args.return_type) { None } else { self.builtin.value_from_stats(args) }
    }
}
