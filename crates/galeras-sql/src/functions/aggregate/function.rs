//! `ExactFunction`: a DataFusion aggregate that computes from exact sums under the name of a
//! builtin. It takes over all else from the builtin: aliases, types, nullability, documentation.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::types::{NativeType, logical_float64, logical_int64, logical_uint64};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::all_default_aggregate_functions;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Coercion, Documentation, Expr, GroupsAccumulator,
    Operator, ReversedUDAF, SetMonotonicity, Signature, StatisticsArgs, TypeSignature,
    TypeSignatureClass, Volatility,
};

use super::accumulator::{ExactAccumulator, ExactGroups, Finish};
use super::wide;
use crate::functions::function_doc::FunctionDoc;

/// The arguments of aggregates of pairs, the dependent variable first.
pub(super) const PAIR: &[(&str, &str)] = &[("y", "number"), ("x", "number")];

/// A function with its description; nothing if DataFusion has none of its name, which a test rules
/// out.
pub(super) type Documented = Option<(FunctionDoc, Arc<AggregateUDF>)>;

/// An aggregate with the builtin's name, exact where the builtin would add floats.
///
/// Whole numbers are added by `wide`. Decimals, durations and intervals stay with the builtin:
/// their sums wrap or are exact, so order does not matter.
#[derive(Debug)]
struct ExactFunction<const N: usize> {
    builtin: Arc<AggregateUDF>,
    signature: Signature,
    /// Absent if DataFusion's accumulator of single groups is exact, as it is for `min` and `max`.
    finish: Option<Finish<N>>,
}

/// The replacement for DataFusion's aggregate of the described name.
pub(super) fn documented<const N: usize>(
    doc: FunctionDoc,
    finish: Option<Finish<N>>,
) -> Documented {
    let builtins = all_default_aggregate_functions();
    let builtin = builtins.into_iter().find(|builtin| builtin.name() == doc.name)?;
    let signature = match doc.name {
        "min" | "max" | "sum" => builtin.signature().clone(),
        _ => with_integers(&builtin.signature().type_signature, doc.arguments.len()),
    };
    let function = ExactFunction { builtin, signature, finish };
    Some((doc, Arc::new(AggregateUDF::new_from_impl(function))))
}

/// The signature of a builtin that casts each of its arguments to doubles, which rounds integers
/// above 2^53: here it gets those of 64 bits as they are.
fn with_integers(builtin: &TypeSignature, arguments: usize) -> Signature {
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
    let others = match builtin {
        TypeSignature::OneOf(alternatives) => alternatives.clone(),
        other => vec![other.clone()],
    };
    let integers = combinations.into_iter().map(TypeSignature::Coercible);
    Signature::one_of(integers.chain(others).collect(), Volatility::Immutable)
}

impl<const N: usize> ExactFunction<N> {
    /// How a result of this type is computed from exact sums; `None` if it is not.
    fn finish(&self, return_type: &DataType) -> Option<Finish<N>> {
        self.finish.filter(|finish| match finish {
            Finish::Float(_) => *return_type == DataType::Float64,
            Finish::Count => true,
        })
    }

    /// Returns true if it adds whole numbers.
    fn is_wide(&self, return_type: &DataType) -> bool {
        wide::is_wide(return_type) && matches!(self.finish, Some(Finish::Float(_)))
    }

    /// Returns true if a result of this type could depend on the order of the rows if DataFusion
    /// took its shortcuts.
    fn is_exact(&self, return_type: &DataType) -> bool {
        match self.finish {
            Some(_) => self.finish(return_type).is_some(),
            None => return_type.is_floating(),
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

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.builtin.coerce_types(arg_types)
    }

    fn is_nullable(&self) -> bool {
        self.builtin.is_nullable()
    }

    fn is_descending(&self) -> Option<bool> {
        self.builtin.is_descending()
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
        if self.is_wide(args.return_type()) {
            return wide::state_fields(&self.builtin, args);
        }
        if self.finish(args.return_type()).is_none() {
            return self.builtin.state_fields(args);
        }
        let name = format_state_name(args.name, "exact");
        Ok(vec![Arc::new(Field::new(name, DataType::Binary, true))])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match self.finish(args.return_type()) {
            Some(finish) => Ok(Box::new(ExactAccumulator::new(finish, args.is_distinct))),
            None if self.is_wide(args.return_type()) => wide::accumulator(&self.builtin, args),
            None => self.builtin.accumulator(args),
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if self.finish(args.return_type()).is_some() {
            self.accumulator(args)
        } else if self.is_wide(args.return_type()) && !args.is_distinct {
            wide::sliding(&self.builtin, args)
        } else {
            self.builtin.create_sliding_accumulator(args)
        }
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        match self.is_exact(args.return_type()) {
            true => self.finish.is_some() && !args.is_distinct,
            false => self.builtin.groups_accumulator_supported(args),
        }
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        match self.finish(args.return_type()) {
            Some(finish) => Ok(Box::new(ExactGroups::new(finish))),
            None if self.is_wide(args.return_type()) => wide::groups(&self.builtin, args),
            None => self.builtin.create_groups_accumulator(args),
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

    /// A sum of floats from a file's statistics was rounded in an unknown order, and extremes leave
    /// NaN out and take `-0.0` and `0.0` for equal.
    fn value_from_stats(&self, args: &StatisticsArgs) -> Option<ScalarValue> {
        if self.is_exact(args.return_type) { None } else { self.builtin.value_from_stats(args) }
    }
}
