//! The accumulator against exact fractions, and its independence of order.

use proptest::prelude::*;

use super::super::dyadic::Dyadic;
use super::super::exact::ExactSum;
use super::expected::SUMS;

fn sum_of(values: &[f64]) -> ExactSum {
    let mut sum = ExactSum::new();
    sum.add_slice(values);
    sum
}

fn bytes_of(sum: &ExactSum) -> Vec<u8> {
    let mut bytes = Vec::new();
    sum.write_bytes(&mut bytes);
    bytes
}

#[test]
fn hard_sums_equal_the_rounded_exact_fraction() {
    let signed = |n: i32| if n % 2 == 0 { -1.0 } else { 1.0 };
    let harmonic: Vec<f64> = (1..=50).map(|n| signed(n) / f64::from(n)).collect();
    let harmonic = ("harmonic", &harmonic[..], 0x3fe5_dd29_2638_450d);
    for (name, values, bits) in SUMS.iter().copied().chain([harmonic]) {
        assert_eq!(sum_of(values).value().to_bits(), bits, "{name}");
        let negated: Vec<f64> = values.iter().map(|v| -v).collect();
        let expected = -f64::from_bits(bits);
        assert_eq!(sum_of(&negated).value(), expected, "{name}, negated");
    }
}

#[test]
fn nan_and_infinities_follow_ieee_and_can_be_removed() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    assert_eq!(sum_of(&[1.0, inf]).value(), inf);
    assert_eq!(sum_of(&[-inf, 1e308]).value(), -inf);
    assert!(sum_of(&[inf, -inf]).value().is_nan());
    assert!(sum_of(&[nan, 1.0]).value().is_nan());
    let mut sum = sum_of(&[1.5, inf, nan, -inf]);
    sum.change(nan, true);
    assert!(sum.value().is_nan());
    sum.change(-inf, true);
    assert_eq!(sum.value(), inf);
    sum.change(inf, true);
    assert_eq!(sum.value(), 1.5);
    assert_eq!(bytes_of(&sum), bytes_of(&sum_of(&[1.5])));
}

#[test]
fn products_are_exact_beyond_the_range_of_doubles() {
    let mut sum = ExactSum::new();
    sum.change_product(1e308, 1e308, false);
    assert_eq!(sum.value(), f64::INFINITY);
    sum.change_product(5e-324, 5e-324, false);
    sum.change_product(-1e308, 1e308, false);
    assert_eq!(sum.value(), 0.0, "2^-2148 rounds to zero");
    assert!(!sum.to_dyadic().unwrap().is_zero(), "but is not lost");
    sum.change_product(5e-324, 5e-324, true);
    assert_eq!(bytes_of(&sum), bytes_of(&ExactSum::new()));
    sum.change_product(0.1, 0.1, false);
    sum.change_product(-0.1, 0.1 * 0.5, false);
    sum.change_product(0.0, 7.0, false);
    // Fraction(0.1)**2 - Fraction(0.1) * Fraction(0.05), and the rest after rounding it.
    assert_eq!(sum.value(), 0.005000000000000001);
    sum.change(0.005000000000000001, true);
    assert_eq!(sum.value(), -4.163336342344337e-19);
    sum.change_product(0.0, f64::INFINITY, false);
    assert!(sum.value().is_nan());
}

#[test]
fn many_terms_of_one_sign_do_not_overflow_a_limb() {
    let value = f64::from_bits(0x433f_ffff_ffff_ffff); // 2^53 - 1
    for value in [value, -value] {
        let mut slice = ExactSum::new();
        slice.add_slice(&vec![value; 100_000]);
        let mut single = ExactSum::new();
        (0..100_000).for_each(|_| single.add(value));
        let expected = (value as i128 * 100_000) as f64;
        assert_eq!(slice.value(), expected);
        assert_eq!(bytes_of(&single), bytes_of(&slice));
        let mut squares = ExactSum::new();
        squares.add_products(&vec![value; 100_000], &vec![value; 100_000]);
        assert_eq!(squares.value(), ((1u128 << 106) - (1 << 54) + 1) as f64 * 1e5);
    }
}

#[test]
fn bytes_that_are_not_canonical_are_refused() {
    let reads = |bytes: &[u8]| ExactSum::new().merge_bytes(bytes).is_ok_and(<[u8]>::is_empty);
    let bytes = bytes_of(&sum_of(&[1.5, -1e300, f64::NAN]));
    assert!(reads(&bytes));
    for end in 0..bytes.len() {
        assert!(!reads(&bytes[..end]), "{end} bytes");
    }
    assert!(!reads(&[bytes.clone(), vec![0]].concat()));
    for malformed in
        [&[1, 0, 0][..], &[0, 3, 0], &[0, 60, 1, 0, 0, 0, 0], &[4, 0, 0], &[0, 255, 1, 1, 0, 0, 0]]
    {
        assert!(!reads(malformed), "{malformed:?}");
    }
}

#[test]
fn quotients_and_roots_are_rounded_once() {
    let int = Dyadic::integer;
    assert_eq!(int(1).quotient(&int(3)), 1.0 / 3.0);
    assert_eq!(int(2).root_of_quotient(&int(1)), 2f64.sqrt());
    assert_eq!(int(9).root_of_quotient(&int(4)), 1.5);
    assert_eq!(int(0).quotient(&int(3)), 0.0);
    assert_eq!(int(0).root_of_quotient(&int(3)), 0.0);
    assert!(int(1).quotient(&int(0)).is_nan());
    let tiny = sum_of(&[5e-324]).to_dyadic().unwrap();
    assert_eq!(tiny.quotient(&int(2)), 0.0, "a tie goes to the even zero");
    assert_eq!(tiny.scaled(3).quotient(&int(4)), 5e-324);
    assert_eq!(tiny.times(&tiny).root_of_quotient(&int(1)), 5e-324);
}

/// Doubles of all kinds: any bits, close to one another, and exact opposites.
fn doubles() -> impl Strategy<Value = Vec<f64>> {
    let any = any::<u64>().prop_map(f64::from_bits);
    let near = (-1000i32..1000).prop_map(|v| f64::from(v) * 0.1);
    let finite = any.prop_map(|v: f64| if v.is_finite() { v } else { 1.0 });
    prop::collection::vec(prop_oneof![finite, near], 0..60).prop_map(|mut values| {
        let opposites: Vec<f64> = values.iter().step_by(3).map(|v| -v).collect();
        values.extend(opposites);
        values
    })
}

proptest! {
    #[test]
    fn any_order_and_partition_gives_the_same_bytes(
        (values, shuffled) in doubles().prop_flat_map(|v| (Just(v.clone()), Just(v).prop_shuffle())),
        parts in 1usize..8,
    ) {
        let whole = sum_of(&values);
        let mut merged = ExactSum::new();
        for part in shuffled.chunks(shuffled.len().div_ceil(parts).max(1)).rev() {
            let mut partial = ExactSum::new();
            part.iter().for_each(|&v| partial.add(v));
            prop_assert!(merged.merge_bytes(&bytes_of(&partial)).unwrap().is_empty());
        }
        prop_assert_eq!(bytes_of(&merged), bytes_of(&whole));
        prop_assert_eq!(merged.value().to_bits(), whole.value().to_bits());
    }

    #[test]
    fn products_in_any_order_give_the_same_bytes(
        (values, shuffled) in doubles().prop_flat_map(|v| (Just(v.clone()), Just(v).prop_shuffle())),
    ) {
        let mut whole = ExactSum::new();
        whole.add_products(&values, &values);
        let mut single = ExactSum::new();
        shuffled.iter().for_each(|&v| single.change_product(-v, -v, false));
        prop_assert_eq!(bytes_of(&single), bytes_of(&whole));
    }

    #[test]
    fn removal_restores_the_bytes(values in doubles(), extra in doubles()) {
        let before = sum_of(&values);
        let mut sum = before.clone();
        sum.add_slice(&extra);
        extra.iter().for_each(|&v| { sum.change_product(v, 3.7, false); sum.change(v, true) });
        extra.iter().rev().for_each(|&v| sum.change_product(v, 3.7, true));
        prop_assert_eq!(bytes_of(&sum), bytes_of(&before));
    }

    #[test]
    fn the_value_is_the_nearest_double(a in any::<f64>(), b in any::<f64>()) {
        // A sum of two is what the hardware rounds correctly.
        let sum = sum_of(&[a, b]).value();
        prop_assert!(sum == a + b || (sum.is_nan() && (a + b).is_nan()));
        let mut product = ExactSum::new();
        product.change_product(a, b, false);
        let product = product.value();
        prop_assert!(product == a * b || (product.is_nan() && (a * b).is_nan()));
    }
}
