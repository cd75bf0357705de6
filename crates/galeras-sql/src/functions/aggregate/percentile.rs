//! `percentile_cont` as the SQL standard interpolates: DataFusion 55 cuts the weight of the upper value
//! to six digits, so that the place 2.5e-7 of 0, 1 and 2 is 0 (apache/datafusion 25266).
//!
//! DataFusion's accumulators keep the values; here is the interpolation between two of them.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef, Float64Type, Schema};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::functions_aggregate::all_default_aggregate_functions;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ColumnarValue, Documentation, Signature,
};
use datafusion::physical_expr::PhysicalExpr;

use super::function::Documented;
use crate::functions::function_doc::FunctionDoc;

const NAME: &str = "percentile_cont";

/// The functions of this file.
pub(super) fn all() -> Vec<Documented> {
    let doc = FunctionDoc {
        name: NAME,
        aliases: &["quantile_cont"],
        arguments: &[("x", "number"), ("share", "literal number")],
        returns: "number",
        summary: "the value below which this share of the values lies, interpolated",
        nulls: "rows with a null do not count; null if there are none",
        example: "percentile_cont(0.3333333) WITHIN GROUP (ORDER BY x)",
        ..FunctionDoc::AGGREGATE
    };
    let builtins = all_default_aggregate_functions();
    let builtin = builtins.into_iter().find(|builtin| builtin.name() == NAME);
    let function = |builtin| Arc::new(AggregateUDF::new_from_impl(PercentileCont { builtin }));
    vec![builtin.map(|builtin| (doc, function(builtin)))]
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct PercentileCont {
    builtin: Arc<AggregateUDF>,
}

impl AggregateUDFImpl for PercentileCont {
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

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.builtin.state_fields(args)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let share = args.exprs.get(1).map(literal).transpose()?.flatten();
        let descending = args.order_bys.first().is_some_and(|order| order.options.descending);
        let distinct = args.is_distinct;
        let values = self.builtin.accumulator(args)?;
        let Some(share) = share else { return exec_err!("{NAME}() needs a literal share") };
        Ok(Box::new(Percentile { values, share, descending, distinct }))
    }

    fn supports_within_group_clause(&self) -> bool {
        true
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.builtin.documentation()
    }
}

/// The number that an expression without columns is.
fn literal(expr: &Arc<dyn PhysicalExpr>) -> Result<Option<f64>> {
    match expr.evaluate(&RecordBatch::new_empty(Arc::new(Schema::empty())))? {
        ColumnarValue::Scalar(value) => match value.cast_to(&DataType::Float64)? {
            ScalarValue::Float64(number) => Ok(number),
            _ => Ok(None),
        },
        ColumnarValue::Array(_) => Ok(None),
    }
}

/// DataFusion's accumulator of the values, and their place that is asked for.
#[derive(Debug)]
struct Percentile {
    values: Box<dyn Accumulator>,
    share: f64,
    descending: bool,
    distinct: bool,
}

impl Accumulator for Percentile {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.values.update_batch(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let state = self.values.state()?;
        let [ScalarValue::List(list)] = state.as_slice() else { return self.values.evaluate() };
        if !self.distinct {
            // The state has taken the values, which a window still needs.
            self.values.merge_batch(&[Arc::clone(list) as ArrayRef])?;
        }
        let values = list.value(0);
        let doubles = cast(&values, &DataType::Float64)?;
        let mut doubles: Vec<f64> =
            doubles.as_primitive::<Float64Type>().iter().flatten().collect();
        let value = interpolated(&mut doubles, self.share, self.descending);
        ScalarValue::Float64(value).cast_to(values.data_type())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.values.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.values.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.values.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.values.supports_retract_batch()
    }
}

/// The value at `share · (n - 1)` in the order, between its neighbours.
fn interpolated(values: &mut [f64], share: f64, descending: bool) -> Option<f64> {
    let order = |one: &f64, other: &f64| match descending {
        true => other.total_cmp(one),
        false => one.total_cmp(other),
    };
    let place = share * values.len().checked_sub(1)? as f64;
    let weight = place.fract();
    let (_, low, above) = values.select_nth_unstable_by(place as usize, order);
    let low = *low;
    if weight <= 0.0 {
        return Some(low);
    }
    let high = above.iter().copied().min_by(order).unwrap_or(low);
    let span = high - low;
    // Of infinite values, and of finite ones that are too far apart.
    let weighted = || low * (1.0 - weight) + high * weight;
    Some(if span.is_finite() { low + span * weight } else { weighted() })
}
