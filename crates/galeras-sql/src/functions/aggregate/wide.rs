//! Sums of whole numbers with room to spare: DataFusion adds them in 64 bits and wraps around, so
//! that a sum that is too large is another number. Here they are added as decimals of 38 digits by
//! DataFusion, and a sum beyond 64 bits is an error in any order of the rows.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, BooleanArray, Int64Array, UInt64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, exec_datafusion_err, internal_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, EmitTo, GroupsAccumulator};

/// Digits of a sum on the way.
const DIGITS: u8 = 38;

fn decimal() -> DataType {
    DataType::Decimal128(DIGITS, 0)
}

fn decimals(name: &str) -> FieldRef {
    Arc::new(Field::new(name, decimal(), true))
}

/// Returns true if results of this type are added here.
pub(super) fn is_wide(return_type: &DataType) -> bool {
    matches!(return_type, DataType::Int64 | DataType::UInt64)
}

/// The states of `sum`, whose result is a whole number.
pub(super) fn state_fields(sum: &AggregateUDF, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
    let return_field = decimals(args.return_field.name());
    sum.state_fields(StateFieldsArgs { return_field, ..args })
}

/// `sum` of one group.
pub(super) fn accumulator(
    sum: &AggregateUDF,
    args: AccumulatorArgs,
) -> Result<Box<dyn Accumulator>> {
    let (wide, args) = widened(args);
    Ok(Box::new(WideSum { sum: sum.accumulator(args)?, wide }))
}

/// `sum` of a frame that moves.
pub(super) fn sliding(sum: &AggregateUDF, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
    let (wide, args) = widened(args);
    Ok(Box::new(WideSum { sum: sum.create_sliding_accumulator(args)?, wide }))
}

/// `sum` of many groups.
pub(super) fn groups(
    sum: &AggregateUDF,
    args: AccumulatorArgs,
) -> Result<Box<dyn GroupsAccumulator>> {
    let (wide, args) = widened(args);
    Ok(Box::new(WideGroups { sum: sum.create_groups_accumulator(args)?, wide }))
}

/// The arguments of a sum of decimals.
fn widened(args: AccumulatorArgs<'_>) -> (Wide, AccumulatorArgs<'_>) {
    let unsigned = *args.return_field.data_type() == DataType::UInt64;
    let wide = Wide { name: args.name.to_string(), unsigned };
    let return_field = decimals(args.return_field.name());
    (wide, AccumulatorArgs { return_field, ..args })
}

/// From whole numbers to decimals, and back.
#[derive(Debug)]
struct Wide {
    /// The call, as it is shown.
    name: String,
    unsigned: bool,
}

impl Wide {
    fn cast(values: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
        values.iter().map(|array| Ok(cast(array, &decimal())?)).collect()
    }

    fn narrowed<T: TryFrom<i128>>(&self, sum: Option<i128>) -> Result<Option<T>> {
        let too_large = |sum: i128| {
            exec_datafusion_err!(
                "{} is {sum}, which is more than 64 bits hold; sum it as a float, as in \
                 `sum(CAST(x AS DOUBLE))`",
                self.name
            )
        };
        sum.map(|sum| T::try_from(sum).map_err(|_| too_large(sum))).transpose()
    }
}

#[derive(Debug)]
struct WideSum {
    sum: Box<dyn Accumulator>,
    wide: Wide,
}

impl Accumulator for WideSum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.sum.update_batch(&Wide::cast(values)?)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = match self.sum.evaluate()? {
            ScalarValue::Decimal128(sum, _, _) => sum,
            other => return internal_err!("a sum of decimals is {}", other.data_type()),
        };
        Ok(match self.wide.unsigned {
            true => ScalarValue::UInt64(self.wide.narrowed(sum)?),
            false => ScalarValue::Int64(self.wide.narrowed(sum)?),
        })
    }

    fn size(&self) -> usize {
        size_of::<Wide>() + self.sum.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.sum.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.sum.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.sum.retract_batch(&Wide::cast(values)?)
    }

    fn supports_retract_batch(&self) -> bool {
        self.sum.supports_retract_batch()
    }
}

struct WideGroups {
    sum: Box<dyn GroupsAccumulator>,
    wide: Wide,
}

impl GroupsAccumulator for WideGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.sum.update_batch(&Wide::cast(values)?, groups, filter, total)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let sums = self.sum.evaluate(emit_to)?;
        let sums = sums.as_primitive::<Decimal128Type>().iter();
        Ok(match self.wide.unsigned {
            true => {
                let sums = sums.map(|sum| self.wide.narrowed::<u64>(sum));
                Arc::new(sums.collect::<Result<UInt64Array>>()?)
            }
            false => {
                let sums = sums.map(|sum| self.wide.narrowed::<i64>(sum));
                Arc::new(sums.collect::<Result<Int64Array>>()?)
            }
        })
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.sum.state(emit_to)
    }

    fn merge_batch(&mut self, values: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.sum.merge_batch(values, groups, total)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        self.sum.convert_to_state(&Wide::cast(values)?, filter)
    }

    fn size(&self) -> usize {
        size_of::<Wide>() + self.sum.size()
    }
}
