//! Tests of the propensity estimators against the reference files, and helpers for the files below.

mod cases;
mod properties;
mod reference;
mod sandwich;
mod small_samples;

use crate::tests::Number;

/// Asserts a relative difference; absolute differences below the tolerance also pass.
#[track_caller]
fn close(what: &str, found: f64, expected: impl Number, tolerance: f64) {
    let expected = expected.number();
    let bound = tolerance * expected.abs().max(1e-3);
    assert!((found - expected).abs() <= bound, "{what}: {found} instead of {expected}");
}
