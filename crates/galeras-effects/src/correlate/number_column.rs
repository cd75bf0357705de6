//! A column of numbers that keeps whole numbers of 64 bits as they are.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float64Type, Int64Type, UInt64Type};

use galeras_operator::StepError;
use galeras_sql::functions::aggregate::whole_in_parts;

/// Each number is the sum of two doubles, exactly; a missing one is NaN.
#[derive(Clone, Debug, Default)]
pub(super) struct NumberColumn {
    /// The double nearest to the number.
    nearest: Vec<f64>,
    /// The remainder of a whole number beyond 2^53; zero behind the end.
    rest: Vec<f64>,
}

impl NumberColumn {
    /// The values of an array of doubles or of integers of 64 bits.
    pub(super) fn of(array: &ArrayRef) -> Result<Self, StepError> {
        let mut column = Self::default();
        let missing = [f64::NAN, 0.0];
        match array.data_type() {
            DataType::Int64 => array
                .as_primitive::<Int64Type>()
                .iter()
                .for_each(|v| column.push(v.map_or(missing, |v| whole_in_parts(v.into())))),
            DataType::UInt64 => array
                .as_primitive::<UInt64Type>()
                .iter()
                .for_each(|v| column.push(v.map_or(missing, |v| whole_in_parts(v.into())))),
            DataType::Float64 => array
                .as_primitive::<Float64Type>()
                .iter()
                .for_each(|v| column.push(v.map_or(missing, |v| [v, 0.0]))),
            other => return Err(StepError::new(format!("a defect: numbers of type {other}"))),
        }
        Ok(column)
    }

    pub(super) fn push(&mut self, [nearest, rest]: [f64; 2]) {
        if rest != 0.0 {
            self.rest.resize(self.nearest.len(), 0.0);
            self.rest.push(rest);
        }
        self.nearest.push(nearest);
    }

    pub(super) fn get(&self, row: usize) -> [f64; 2] {
        [self.nearest[row], self.rest.get(row).copied().unwrap_or(0.0)]
    }

    pub(super) fn len(&self) -> usize {
        self.nearest.len()
    }

    pub(super) fn has(&self, row: usize) -> bool {
        !self.nearest[row].is_nan()
    }

    /// Doubles that correlate as the numbers of these rows do.
    ///
    /// They are the numbers themselves if these are doubles. Else a constant is subtracted, which
    /// changes no correlation: the least of the numbers. Where they then are doubles still not,
    /// ranks are computed from places in the order of the numbers; Pearson's r is not sensitive
    /// to the 2^-53 of their range that is rounded away.
    pub(super) fn comparable(&self, rows: &[usize], by_rank: bool) -> Vec<f64> {
        if rows.iter().all(|row| self.get(*row)[1] == 0.0) {
            return rows.iter().map(|row| self.nearest[*row]).collect();
        }
        let whole = |row: &usize| self.get(*row).into_iter().map(|part| part as i128).sum();
        let whole: Vec<i128> = rows.iter().map(whole).collect();
        let mut order = whole.clone();
        order.sort_unstable();
        order.dedup();
        let least = order.first().copied().unwrap_or(0);
        let number = |whole: &i128| match by_rank {
            true => order.partition_point(|other| other < whole) as f64,
            false => (whole - least) as f64,
        };
        whole.iter().map(number).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Float64Array, Int64Array, UInt64Array};

    use super::*;

    #[test]
    fn whole_numbers_beyond_2_to_53_keep_their_distances() {
        let (from, all) = (1_i64 << 60, [0, 1, 2, 3]);
        let signed = Int64Array::from(vec![Some(from + 1), None, Some(from), Some(from + 38)]);
        let signed = NumberColumn::of(&(Arc::new(signed) as ArrayRef)).unwrap();
        assert!(!signed.has(1));
        assert_eq!(signed.comparable(&[0, 2, 3], false), [1.0, 0.0, 38.0]);
        assert_eq!(signed.comparable(&[0, 2, 3], true), [1.0, 0.0, 2.0]);
        // A double stays as it is.
        assert_eq!(signed.comparable(&[2], false), [from as f64]);
        let unsigned = UInt64Array::from(vec![u64::MAX, 0, u64::MAX - 1, 7]);
        let unsigned = NumberColumn::of(&(Arc::new(unsigned) as ArrayRef)).unwrap();
        assert_eq!(unsigned.comparable(&all, true), [3.0, 0.0, 2.0, 1.0]);
        let doubles = Float64Array::from(vec![1e300, -0.5, 0.1, f64::INFINITY]);
        let column = NumberColumn::of(&(Arc::new(doubles.clone()) as ArrayRef)).unwrap();
        assert_eq!(column.comparable(&all, true), &doubles.values()[..]);
    }
}
