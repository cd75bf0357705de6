//! Tests of bounds: sums by hand, the peer's numbers, and degenerate input.

use super::*;
use crate::tests::{Number, json, near};

#[track_caller]
fn close(found: f64, expected: impl Number) {
    near(found, expected, 1e-9, 1e-3);
}

fn arm(outcomes: &[f64], absent: usize) -> ObservedArm<'_> {
    ObservedArm { outcomes, absent }
}

#[test]
fn worst_cases_fill_up_with_the_ends_of_the_range() {
    // Treated 1, 1, 0 and one absent: 2/4 to 3/4. Control 0, 1 and two absent: 1/4 to 3/4.
    let bounds = worst_case(arm(&[1.0, 1.0, 0.0], 1), arm(&[0.0, 1.0], 2), (0.0, 1.0)).unwrap();
    close(bounds.low, 0.5 - 0.75);
    close(bounds.high, 0.75 - 0.25);
    // As wide as the shares that are absent, each times the range.
    close(bounds.high - bounds.low, 0.25 + 0.5);
    // Filled up for the lower end: 1, 1, 0, 0 and 0, 1, 1, 1, of variances 1/3 and 1/4 over 4.
    close(bounds.errors.unwrap().0, (1.0_f64 / 12.0 + 1.0 / 16.0).sqrt());
}

#[test]
fn without_attrition_bounds_are_the_estimate_and_walds_interval() {
    let (t, c) = ([0.5, 0.75, 0.25, 1.0], [0.0, 0.5, 0.25, 0.5]);
    let bounds = worst_case(arm(&t, 0), arm(&c, 0), (0.0, 1.0)).unwrap();
    assert_eq!((bounds.low, bounds.high), (0.3125, 0.3125));
    let half = 1.959963984540054 * bounds.errors.unwrap().0;
    let (low, high) = bounds.interval(0.05).unwrap();
    close(low, 0.3125 - half);
    close(high, 0.3125 + half);
    let lee = lee_bounds(arm(&t, 0), arm(&c, 0)).unwrap();
    assert_eq!((lee.low, lee.high, lee.interval(0.05)), (0.3125, 0.3125, None));
    let pairs: Vec<_> = t.iter().zip(&c).map(|(t, c)| (Some(*t), Some(*c))).collect();
    assert_eq!(worst_case_pairs(&pairs, (0.0, 1.0)).unwrap().low, 0.3125);
}

#[test]
fn trimming_leaves_out_a_part_of_a_row() {
    // Shares 4/4 and 2/3: of the treated 4 * 2/3 = 2.667 rows are kept.
    // Lowest: (1 + 2 + 2/3 * 3) / 2.667 = 1.875; highest: (4 + 3 + 2/3 * 2) / 2.667 = 3.125.
    let bounds = lee_bounds(arm(&[4.0, 1.0, 3.0, 2.0], 0), arm(&[1.0, 2.0], 1)).unwrap();
    close(bounds.low, 1.875 - 1.5);
    close(bounds.high, 3.125 - 1.5);
    // The arms exchanged: the signs, and the ends.
    let bounds = lee_bounds(arm(&[1.0, 2.0], 1), arm(&[4.0, 1.0, 3.0, 2.0], 0)).unwrap();
    close(bounds.low, 1.5 - 3.125);
    close(bounds.high, 1.5 - 1.875);
}

#[test]
fn sixty_units_of_which_ten_lack_the_treatment() {
    let peer = &json("regress_referee.json")["attrition"];
    let mut units = vec![(None, None); 60];
    for line in peer["csv"].as_str().unwrap().lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let unit: &mut (Option<f64>, Option<f64>) =
            &mut units[cells[0][1..].parse::<usize>().unwrap()];
        let value = Some(cells[2].parse().unwrap());
        if cells[1] == "t" { unit.0 = value } else { unit.1 = value }
    }
    let bounds = worst_case_pairs(&units, (0.0, 1.0)).unwrap();
    close(bounds.low, &peer["manski"][0]);
    close(bounds.high, &peer["manski"][1]);
    let (low, high) = bounds.interval(0.05).unwrap();
    close(low, &peer["manski_ci"][0]);
    close(high, &peer["manski_ci"][1]);
    let treated: Vec<f64> = units.iter().filter_map(|unit| unit.0).collect();
    let control: Vec<f64> = units.iter().filter_map(|unit| unit.1).collect();
    let lee = lee_bounds(arm(&treated, 10), arm(&control, 0)).unwrap();
    close(lee.low, &peer["lee"][0]);
    close(lee.high, &peer["lee"][1]);
}

#[test]
fn impossible_ranges_are_refused() {
    let values = [0.0, 2.0];
    for range in [(1.0, 1.0), (2.0, 0.0), (0.0, f64::NAN), (f64::NEG_INFINITY, 3.0), (0.0, 1.5)] {
        assert!(worst_case(arm(&values, 1), arm(&values, 0), range).is_err(), "{range:?}");
        let pairs = [(Some(0.0), None), (Some(2.0), Some(1.0))];
        assert!(worst_case_pairs(&pairs, range).is_err(), "{range:?}");
    }
    assert!(worst_case(arm(&[1.0], 1), arm(&values, 0), (0.0, 2.0)).is_err());
    assert!(lee_bounds(arm(&[], 1), arm(&values, 0)).is_err());
    assert!(lee_bounds(arm(&[f64::NAN], 1), arm(&values, 0)).is_err());
}
