//! The root of a monotone function.

/// The root of the ascending function `of`. The search begins at `start`, doubles steps of `step`
/// (whose sign only matters for speed), then narrows the bracket by the Illinois rule. NaN without
/// a change of sign within 200 doublings.
pub(super) fn crossing(start: f64, step: f64, of: impl Fn(f64) -> f64) -> f64 {
    let value = of(start);
    if value == 0.0 {
        return start;
    }
    // Towards the side on which the sign differs.
    let step = step.abs() * -value.signum();
    let (mut near, mut far, mut reach) = ((start, value), (start + step, of(start + step)), step);
    for _ in 0..200 {
        if far.1 == 0.0 {
            return far.0;
        }
        if (far.1 < 0.0) != (value < 0.0) || far.1.is_nan() {
            break;
        }
        reach *= 2.0;
        near = far;
        far = (far.0 + reach, of(far.0 + reach));
    }
    if far.1.is_nan() || (far.1 < 0.0) == (value < 0.0) {
        return f64::NAN;
    }
    for _ in 0..200 {
        let width = (far.0 - near.0).abs();
        if width <= 4.0 * f64::EPSILON * far.0.abs().max(near.0.abs()) || width < 1e-300 {
            break;
        }
        let secant = (near.0 * far.1 - far.0 * near.1) / (far.1 - near.1);
        let (low, high) = (near.0.min(far.0), near.0.max(far.0));
        let at = if secant > low && secant < high { secant } else { low.midpoint(high) };
        let next = (at, of(at));
        if next.1 == 0.0 {
            return at;
        }
        if (next.1 < 0.0) == (far.1 < 0.0) {
            // The other end stays: half its weight makes it move the next time.
            near.1 *= 0.5;
        } else {
            near = far;
        }
        if (at - far.0).abs() <= 2.0 * f64::EPSILON * at.abs() {
            return at;
        }
        far = next;
    }
    far.0
}

/// The root of a function that falls from `low` to `high`; an end if no sign changes.
pub(super) fn falling_root(mut low: f64, mut high: f64, function: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if function(middle) > 0.0 { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crossing_is_found_from_either_side() {
        for (start, step) in [(0.0, 1.0), (0.0, -1.0), (100.0, 0.01), (-1e6, 3.0)] {
            let found = crossing(start, step, |x| x * x * x - 2.0);
            assert!((found - 2f64.cbrt()).abs() < 1e-14, "{found} from {start}");
        }
        assert!(crossing(0.0, 1.0, |_| 1.0).is_nan());
        assert_eq!(crossing(3.0, 1.0, |x| x - 3.0), 3.0);
    }

    #[test]
    fn a_flat_function_with_a_steep_part_is_crossed() {
        let found = crossing(0.0, 0.1, |x: f64| ((x - 50.0) * 4.0).tanh());
        assert!((found - 50.0).abs() < 1e-10, "{found}");
    }
}
