//! The exponential of a non-positive number, in a form that compilers vectorise.
//!
//! The fit of a propensity score is mostly exponentials. This one computes several at once, and its
//! last digit is the same on every machine, which a system's mathematical library does not promise.

/// Below the negative of this, the exponential is subnormal.
const LARGEST: f64 = 708.0;
/// Adding 1.5 times 2^52 rounds to an integer, which the lowest bits then hold.
const ROUND: f64 = 6_755_399_441_055_744.0;
/// The logarithm of two in two parts; the first ends in zeros, so its multiple by an exponent is
/// exact.
const LN2_HIGH: f64 = f64::from_bits(0x3FE6_2E42_FEE0_0000);
const LN2_LOW: f64 = f64::from_bits(0x3DEA_39EF_3579_3C76);

/// Inverse factorials from 1/2! up to 1/13!: the Taylor series of the exponential, whose next term
/// is below 5e-18 on half the logarithm of two.
const TERMS: [f64; 12] = [
    1.0 / 2.0,
    1.0 / 6.0,
    1.0 / 24.0,
    1.0 / 120.0,
    1.0 / 720.0,
    1.0 / 5_040.0,
    1.0 / 40_320.0,
    1.0 / 362_880.0,
    1.0 / 3_628_800.0,
    1.0 / 39_916_800.0,
    1.0 / 479_001_600.0,
    1.0 / 6_227_020_800.0,
];

/// The exponential of `-|x|`, to about one unit in the last place; beyond 708 that of 708.
#[inline]
pub(super) fn exp_of_minus_abs(x: f64) -> f64 {
    let x = -x.abs().min(LARGEST);
    let shifted = x * std::f64::consts::LOG2_E + ROUND;
    let power = shifted - ROUND;
    let rest = (x - power * LN2_HIGH) - power * LN2_LOW;
    // Estrin's scheme: terms in pairs, so that few operations wait for each other.
    let square = rest * rest;
    let pair = |first: usize| TERMS[first] + TERMS[first + 1] * rest;
    let four = |first: usize| pair(first) + pair(first + 2) * square;
    let fourth = square * square;
    let series = four(0) + (four(4) + four(8) * fourth) * fourth;
    // One is added last, because it is the largest term.
    let fraction = 1.0 + (rest + square * series);
    // The power of two, by shifting its exponent into place.
    let scale = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    fraction * scale
}
