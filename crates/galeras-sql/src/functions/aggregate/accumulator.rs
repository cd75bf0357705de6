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
    /// How often a row is in the frame, if each counts once. Both zeros are one value, as in
    /// DataFusion's `GROUP BY`, and all NaN are one.
    distinct: Option<HashMap<[u64; 4], u64>>,
}

/// The identity of a row: adding zero turns `-0.0` into `0.0`.
fn identity(Row { x: [x, x_low], y: [y, y_low] }: Row) -> [u64; 4] {
    [x, x_low, y, y_low].map(|v| if v.is_nan() { f64::NAN } else { v + 0.0 }.to_bits())
}

impl<const N: usize> ExactAccumulator<N> {
    pub(super) fn new(finish: Finish<N>, is_distinct: bool) -> Self {
        let distinct = is_distinct.then(HashMap::new);
        Self { moments: Moments::default(), finish, distinct }
    }

    fn add(&mut self, row: Row) {
        if let Some(rows) = &mut self.distinct {
            let times = rows.entry(identity(row)).or_insert(0);
            *times += 1;
            if *times > 1 {
                return;
            }
        }
        self.moments.add(row);
    }

    fn remove(&mut self, row: Row) {
        if let Some(rows) = &mut self.distinct {
            let key = identity(row);
            let Some(times) = rows.get_mut(&key) else { return };
            *times -= 1;
            if *times > 0 {
                return;
            }
            rows.remove(&key);
        }
        self.moments.remove(row);
    }

    /// Adds the distinct rows of a state.
    fn merge_rows(&mut self, bytes: &[u8]) -> Result<()> {
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
        Ok(())
    }
}

impl<const N: usize> Accumulator for ExactAccumulator<N> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let rows = Rows::new(values)?;
        match self.distinct.is_some() {
            true => rows.for_each(|row| self.add(row)),
            false => self.moments.add_rows(&rows),
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        Rows::new(values)?.for_each(|row| self.remove(row));
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        states(columns)?.try_for_each(|(_, bytes)| match self.distinct.is_some() {
            true => self.merge_rows(bytes),
            false => self.moments.merge_bytes(bytes),
        })
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let mut bytes = Vec::new();
        match &self.distinct {
            None => self.moments.write_bytes(&mut bytes),
            Some(rows) => {
                let mut rows: Vec<_> = rows.keys().copied().collect();
                rows.sort_unstable();
                bytes.extend(rows.iter().flatten().flat_map(|v| v.to_le_bytes()));
            }
        }
        Ok(vec![ScalarValue::Binary(Some(bytes))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.finish.scalar(&self.moments))
    }

    fn size(&self) -> usize {
        let entry = size_of::<([u64; 4], u64)>() + 1;
        let rows = self.distinct.as_ref().map_or(0, HashMap::capacity);
        size_of_val(self) + rows * entry + self.moments.heap_size()
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
