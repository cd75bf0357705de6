//! How numbers read.

use crate::number::{bytes, count, estimate, number, p_value, seconds};

#[test]
fn numbers_have_four_digits_that_say_something() {
    let cases = [
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (-2.5, "−2.5"),
        (0.012_345_6, "0.01235"),
        (12.345_6, "12.35"),
        (123.456, "123.5"),
        (1234.5, "1234.5"),
        (9_999.6, "10,000"),
        (1_234_567.8, "1,234,568"),
        (1.234_56e-9, "1.235e−9"),
        (-3e200, "−3e200"),
        (0.000_1, "0.0001"),
        (f64::NAN, "NaN"),
        (f64::INFINITY, "∞"),
        (f64::NEG_INFINITY, "−∞"),
    ];
    for (value, text) in cases {
        assert_eq!(number(value), text, "{value}");
    }
}

#[test]
fn estimates_p_values_counts_times_and_sizes_read_as_in_a_paper() {
    assert_eq!([estimate(-0.0421), estimate(1.21), estimate(1e-7)], ["−0.042", "1.210", "1e−7"]);
    assert_eq!([p_value(1e-9), p_value(0.0321), p_value(0.41)], ["< 0.001", "= 0.032", "= 0.41"]);
    assert_eq!(
        [count(0), count(999), count(1000), count(12_345_678)],
        ["0", "999", "1,000", "12,345,678"]
    );
    assert_eq!(
        [seconds(0.04), seconds(0.42), seconds(12.4), seconds(192.0), seconds(7500.0)],
        ["40 ms", "0.4 s", "12 s", "3 min 12 s", "2 h 05 min"]
    );
    assert_eq!([bytes(12), bytes(1500), bytes(5_000_000)], ["12 bytes", "2 kB", "5.0 MB"]);
}
