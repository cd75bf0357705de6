//! DataFusion's accumulators over [`Moments`]: one group, many groups, and DISTINCT. The state of a
//! partial aggregation is always one `Binary` column.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryBuilder, BooleanArray, Float64Array, UInt64Array,
};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};

use super::moments::{Moments, Row, Rows};

/// How a result is computed from the sums.
#[derive(Clone, Copy, Debug)]
pub(super) enum Finish<const N: usize> {
    /// A double, or null.
    Float(fn(&Moments<N>) -> Option<f64>),
    /// The number of rows.
    Count,
}

impl<const N: usize> Finish<N> {
    fn scalar(self, moments: &Moments<N>) -> ScalarValue {
        match self {
            Self::Float(f) => ScalarValue::Float64(f(moments)),
            Self::Count => ScalarValue::UInt64(Some(moments.count)),
        }
    }

    fn array(self, groups: &[Moments<N>]) -> ArrayRef {
        match self {
            Self::Float(f) => Arc::new(groups.iter().map(f).collect::<Float64Array>()),
            Self::Count => {
                Arc::new(UInt64Array::from_iter_values(groups.iter().map(|group| group.count)))
            }
        }
    }
}

/// The non-null states of a partial aggregation, with their positions.
fn states(columns: &[ArrayRef]) -> Result<impl Iterator<Item = (usize, &[u8])>> {
    let Some(states) = columns.first().and_then(|column| column.as_binary_opt::<i32>()) else {
        return exec_err!("the state of an exact aggregate must be one Binary column");
    };
    Ok(states.iter().enumerate().filter_map(|(i, bytes)| Some((i, bytes?))))
}

/// Accumulates the rows of one group or one window frame.
#[derive(Debug)]
pub(super) struct ExactAccumulator<const N: usize> {
    moments: Moments<N>,
    finish: Finish<N>,
}

impl<const N: usize> ExactAccumulator<N> {
    pub(super) fn new(finish: Finish<N>) -> Self {
        Self { moments: Moments::default(), finish }
    }
}

impl<const N: usize> Accumulator for ExactAccumulator<N> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.moments.add_rows(&Rows::new(values)?);
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        Rows::new(values)?.for_each(|row| self.moments.remove(row));
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        states(columns)?.try_for_each(|(_, bytes)| self.moments.merge_bytes(bytes))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let mut bytes = Vec::new();
        self.moments.write_bytes(&mut bytes);
        Ok(vec![ScalarValue::Binary(Some(bytes))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.finish.scalar(&self.moments))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.moments.heap_size()
    }
}

/// Accumulates the distinct rows of one group or one window frame.
///
/// Both zeros are one value, as in DataFusion's `GROUP BY`, and all NaN are one.
#[derive(Debug)]
pub(super) struct DistinctAccumulator<const N: usize> {
    /// How often a row is in the frame; a row counts once in `moments`.
    rows: HashMap<[u64; 4], u64>,
    moments: Moments<N>,
    finish: Finish<N>,
}

/// The identity of a row: adding zero turns `-0.0` into `0.0`.
fn identity(Row { x: [x, x_low], y: [y, y_low] }: Row) -> [u64; 4] {
    [x, x_low, y, y_low].map(|v| if v.is_nan() { f64::NAN } else { v + 0.0 }.to_bits())
}

impl<const N: usize> DistinctAccumulator<N> {
    pub(super) fn new(finish: Finish<N>) -> Self {
        Self { rows: HashMap::new(), moments: Moments::default(), finish }
    }

    fn add(&mut self, row: Row) {
        let times = self.rows.entry(identity(row)).or_insert(0);
        *times += 1;
        if *times == 1 {
            self.moments.add(row);
        }
    }
}

impl<const N: usize> Accumulator for DistinctAccumulator<N> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        Rows::new(values)?.for_each(|row| self.add(row));
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        Rows::new(values)?.for_each(|row| {
            let key = identity(row);
            if let Some(times) = self.rows.get_mut(&key) {
                *times -= 1;
                if *times == 0 {
                    self.rows.remove(&key);
                    self.moments.remove(row);
                }
            }
        });
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        for (_, bytes) in states(columns)? {
            let (rows, tail) = bytes.as_chunks::<32>();
            if !tail.is_empty() {
                return exec_err!("malformed state of an exact DISTINCT aggregate");
            }
            for row in rows {
                let (parts, _) = row.as_chunks::<8>();
                if let &[x, x_low, y, y_low] = parts {
                    let number = |parts: [[u8; 8]; 2]| {
                        parts.map(|part| f64::from_bits(u64::from_le_bytes(part)))
                    };
                    self.add(Row { x: number([x, x_low]), y: number([y, y_low]) });
                }
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let mut rows: Vec<_> = self.rows.keys().copied().collect();
        rows.sort_unstable();
        let bytes = rows.iter().flatten().flat_map(|v| v.to_le_bytes()).collect();
        Ok(vec![ScalarValue::Binary(Some(bytes))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.finish.scalar(&self.moments))
    }

    fn size(&self) -> usize {
        let entry = size_of::<([u64; 4], u64)>() + 1;
        size_of_val(self) + self.rows.capacity() * entry + self.moments.heap_size()
    }
}

/// Accumulates many groups at once.
#[derive(Debug)]
pub(super) struct ExactGroups<const N: usize> {
    groups: Vec<Moments<N>>,
    finish: Finish<N>,
}

impl<const N: usize> ExactGroups<N> {
    pub(super) fn new(finish: Finish<N>) -> Self {
        Self { groups: Vec::new(), finish }
    }
}

/// The states of groups.
fn state_column<const N: usize>(groups: impl ExactSizeIterator<Item = Moments<N>>) -> ArrayRef {
    let mut column = BinaryBuilder::with_capacity(groups.len(), groups.len() * 32 * N);
    let mut bytes = Vec::new();
    for moments in groups {
        bytes.clear();
        moments.write_bytes(&mut bytes);
        column.append_value(&bytes);
    }
    Arc::new(column.finish())
}

/// Returns true if the `FILTER` clause keeps row `i`.
fn kept(filter: Option<&BooleanArray>, i: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(i) && filter.value(i))
}

impl<const N: usize> GroupsAccumulator for ExactGroups<N> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.groups.resize_with(total_num_groups, Moments::default);
        let rows = Rows::new(values)?;
        for (i, &index) in group_indices.iter().enumerate() {
            if let Some(row) = rows.get(i)
                && kept(opt_filter, i)
            {
                self.groups[index].add(row);
            }
        }
        Ok(())
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.groups.resize_with(total_num_groups, Moments::default);
        for (i, bytes) in states(values)? {
            if let Some(&index) = group_indices.get(i) {
                self.groups[index].merge_bytes(bytes)?;
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        Ok(self.finish.array(&emit_to.take_needed(&mut self.groups)))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let groups = emit_to.take_needed(&mut self.groups);
        Ok(vec![state_column(groups.into_iter())])
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let rows = Rows::new(values)?;
        let of_row = |i| {
            let mut moments = Moments::<N>::default();
            if let Some(row) = rows.get(i)
                && kept(opt_filter, i)
            {
                moments.add(row);
            }
            moments
        };
        Ok(vec![state_column((0..rows.len()).map(of_row))])
    }

    /// An estimate: each sum of each group with the limbs of values within ten decimal
    /// orders of magnitude. An exact size would visit every group after every batch.
    fn size(&self) -> usize {
        const LIMBS_PER_SUM: usize = 48;
        size_of_val(self)
            + self.groups.capacity() * size_of::<Moments<N>>()
            + self.groups.len() * N * LIMBS_PER_SUM
    }
}
