//! An inner product in eight running sums, which a processor adds at once and which rounds less
//! than one sum.

/// The parts of an inner product. Callers add them up in an order of their own, which decides the
/// last digit and so is part of their results.
pub(super) struct LaneSums {
    /// The sum of lanes 0, 4, 1 and 5.
    pub(super) first: f64,
    /// The sum of lanes 2, 6, 3 and 7.
    pub(super) second: f64,
    /// The sum over the last elements, fewer than eight.
    pub(super) rest: f64,
}

/// The inner product of two columns of the same length, in parts.
#[inline]
pub(super) fn lane_sums(left: &[f64], right: &[f64]) -> LaneSums {
    let (left, right) = (left.chunks_exact(8), right.chunks_exact(8));
    let rest = left.remainder().iter().zip(right.remainder()).map(|(a, b)| a * b).sum();
    let mut sums = [0.0; 8];
    for (a, b) in left.zip(right) {
        for lane in 0..8 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    LaneSums {
        first: (sums[0] + sums[4]) + (sums[1] + sums[5]),
        second: (sums[2] + sums[6]) + (sums[3] + sums[7]),
        rest,
    }
}
