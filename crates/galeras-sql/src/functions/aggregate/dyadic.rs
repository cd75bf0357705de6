//! Dyadic rationals `m * 2^e` and the correctly rounded quotient, and root of a quotient, of two of
//! them: the arithmetic by which a statistic is computed from exact sums with one rounding only.

use num_bigint::{BigInt, Sign};

/// An exact number `mantissa * 2^exponent`.
#[derive(Clone, Debug)]
pub struct Dyadic {
    mantissa: BigInt,
    exponent: i64,
}

impl Dyadic {
    /// From digits in base 2^32, lowest first.
    pub fn from_digits(negative: bool, digits: Vec<u32>, exponent: i64) -> Self {
        let sign = if negative { Sign::Minus } else { Sign::Plus };
        Self { mantissa: BigInt::new(sign, digits), exponent }
    }

    /// An integer.
    pub fn integer(value: u128) -> Self {
        Self { mantissa: BigInt::from(value), exponent: 0 }
    }

    pub fn is_zero(&self) -> bool {
        self.mantissa.sign() == Sign::NoSign
    }

    pub fn is_negative(&self) -> bool {
        self.mantissa.sign() == Sign::Minus
    }

    /// `self * other`.
    pub fn times(&self, other: &Self) -> Self {
        Self {
            mantissa: &self.mantissa * &other.mantissa,
            exponent: self.exponent + other.exponent,
        }
    }

    /// `self * n`.
    pub fn scaled(&self, n: u64) -> Self {
        Self { mantissa: &self.mantissa * n, exponent: self.exponent }
    }

    /// `self - other`.
    pub fn minus(&self, other: &Self) -> Self {
        if other.is_zero() {
            return self.clone();
        }
        let exponent = self.exponent.min(other.exponent);
        let aligned = |d: &Self| &d.mantissa << (d.exponent - exponent).unsigned_abs();
        Self { mantissa: aligned(self) - aligned(other), exponent }
    }

    /// `self / other` as the nearest double, ties to even. `other` must not be zero; if it
    /// is, the result is NaN.
    pub fn quotient(&self, other: &Self) -> f64 {
        let negative = self.is_negative() != other.is_negative();
        match leading_bits(self, other) {
            Some(q) => round_to_f64(negative, q.bits, q.sticky, q.exponent),
            None => f64::NAN,
        }
    }

    /// `sqrt(|self / other|)` as the nearest double, ties to even. `other` must not be zero;
    /// if it is, the result is NaN.
    pub fn root_of_quotient(&self, other: &Self) -> f64 {
        let Some(mut q) = leading_bits(self, other) else {
            return f64::NAN;
        };
        if q.exponent % 2 != 0 {
            q.sticky |= q.bits & 1 != 0;
            q.bits >>= 1;
            q.exponent += 1;
        }
        let root = q.bits.isqrt();
        let sticky = q.sticky || root * root != q.bits;
        round_to_f64(false, root, sticky, q.exponent / 2)
    }
}

/// The leading bits of a positive real: `(bits + r) * 2^exponent`, where `0 < r < 1` if
/// `sticky`, else `r = 0`.
struct Leading {
    bits: u128,
    sticky: bool,
    exponent: i64,
}

/// The leading 126 or 127 bits of `|a / b|`, or `None` if `b` is zero.
fn leading_bits(a: &Dyadic, b: &Dyadic) -> Option<Leading> {
    const WANTED: u64 = 126;
    if b.is_zero() {
        return None;
    }
    let mut exponent = a.exponent - b.exponent;
    let (a, b) = (a.mantissa.magnitude(), b.mantissa.magnitude());
    let up = (WANTED + b.bits()).saturating_sub(a.bits());
    exponent -= up as i64;
    let dividend = a << up;
    let mut quotient = &dividend / b;
    let mut sticky = dividend != &quotient * b;
    let down = quotient.bits().saturating_sub(WANTED + 1);
    if down > 0 {
        sticky |= quotient.trailing_zeros().is_some_and(|zeros| zeros < down);
        quotient >>= down;
        exponent += down as i64;
    }
    // It has at most 127 bits.
    let bits = u128::try_from(&quotient).unwrap_or(u128::MAX);
    Some(Leading { bits, sticky, exponent })
}

/// The double nearest to `±(mantissa + r) * 2^exponent`, ties to even, where `0 < r < 1` if
/// `sticky`, else `r = 0`. With `sticky`, the mantissa must have at least 55 bits.
///
/// One rounding, also for denormal results; beyond the largest double the result is
/// infinite; a zero is `+0.0`.
pub(super) fn round_to_f64(negative: bool, mantissa: u128, sticky: bool, exponent: i64) -> f64 {
    if mantissa == 0 {
        return 0.0;
    }
    let top = exponent + i64::from(mantissa.ilog2());
    if top > 1023 {
        return if negative { f64::NEG_INFINITY } else { f64::INFINITY };
    }
    // Exponent of the last place of the result.
    let last = (top - 52).max(-1074);
    let drop = last - exponent;
    let rounded = if drop <= 0 {
        // Exact: the mantissa has at most 53 bits here, so nothing is shifted out.
        mantissa << drop.unsigned_abs()
    } else if drop > 127 {
        // Below half of the smallest denormal (2^128 units are a tie at most when drop is
        // 128 and the mantissa is not more than 2^127).
        u128::from(drop == 128 && (mantissa > 1 << 127 || (mantissa == 1 << 127 && sticky)))
    } else {
        let kept = mantissa >> drop;
        let half = 1u128 << (drop - 1);
        let below = mantissa & ((half << 1) - 1);
        let up = below > half || (below == half && (sticky || kept & 1 == 1));
        kept + u128::from(up)
    };
    // A carry out of the 53 bits lands in the exponent field, which is what it should do:
    // up to the next power of two, from denormal to normal, from the largest to infinity.
    let biased = (last + 1074) as u64;
    let bits = (biased << 52) + rounded as u64;
    f64::from_bits(bits | (u64::from(negative) << 63))
}
