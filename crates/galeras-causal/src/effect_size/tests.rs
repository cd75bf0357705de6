//! Tests of effect sizes: peers, brute force, coverage, degenerate columns.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::OneSided;
use crate::tests::{Draw, json, near};

const ALPHA: f64 = 0.05;

fn peer(part: &str) -> Value {
    json("effect_sizes.json")[part].clone()
}

struct Table {
    treated: Vec<bool>,
    outcome: Vec<f64>,
    clusters: Vec<u32>,
}

impl Table {
    fn of(peer: &Value) -> Self {
        let rows = peer["rows"].as_array().unwrap();
        Self {
            treated: rows.iter().map(|row| row[0].as_bool().unwrap()).collect(),
            outcome: rows.iter().map(|row| row[1].as_f64().unwrap()).collect(),
            clusters: rows.iter().map(|row| row[2].as_u64().unwrap() as u32).collect(),
        }
    }

    /// Rows come in pairs: treated, control.
    fn differences(&self) -> (Vec<f64>, Vec<u32>) {
        let differences = self.outcome.chunks(2).map(|pair| pair[0] - pair[1]).collect();
        (differences, self.clusters.iter().step_by(2).copied().collect())
    }
}

#[track_caller]
fn close(found: f64, expected: &Value, tolerance: f64) {
    near(found, expected, tolerance, 1.0);
}

#[track_caller]
fn same_dominance(found: &Dominance, expected: &Value) {
    close(found.delta, &expected["delta"], 1e-12);
    close(found.standard_error, &expected["se"], 1e-12);
    close(found.degrees, &expected["df"], 1e-10);
    let (low, high) = found.interval(ALPHA);
    close(low, &expected["interval"][0], 1e-10);
    close(high, &expected["interval"][1], 1e-10);
    let (a, (low12, high12)) = (found.a12(), found.a12_interval(ALPHA));
    assert!((2.0 * a - 1.0 - found.delta).abs() < 1e-15);
    assert!((2.0 * low12 - 1.0 - low).abs() < 1e-15 && (2.0 * high12 - 1.0 - high).abs() < 1e-15);
}

#[track_caller]
fn same_standardised(found: &Standardised, expected: &Value, tolerance: f64) {
    close(found.value, &expected["d"], 1e-10);
    close(found.degrees(), &expected["df"], 0.0);
    let (low, high) = found.interval(ALPHA);
    close(low, &expected["interval"][0], tolerance);
    close(high, &expected["interval"][1], tolerance);
    if let Some(error) = found.standard_error() {
        close(error, &expected["se"], tolerance);
    }
    assert_eq!(found.standard_error().is_none(), expected["se"].is_null());
}

/// Brunner and Munzel's with independent rows, Obuchowski's with clusters, means of signs in pairs.
#[test]
fn dominance_equals_the_peers() {
    for (part, name) in [
        ("between", "independent"),
        ("between", "clustered"),
        ("within", "clustered"),
        ("within", "pairs"),
    ] {
        let peer = peer(part);
        let table = Table::of(&peer);
        let pairs: Vec<u32> = (0..table.treated.len() as u32).map(|row| row / 2).collect();
        let clusters = match name {
            "independent" => None,
            "pairs" => Some(&pairs),
            _ => Some(&table.clusters),
        };
        let clusters = clusters.map(Vec::as_slice);
        same_dominance(&dominance(&table.treated, &table.outcome, clusters).unwrap(), &peer[name]);
    }
    let peer = peer("within");
    let (differences, clusters) = Table::of(&peer).differences();
    for (name, clusters) in [("within", None), ("within_clustered", Some(clusters.as_slice()))] {
        same_dominance(&dominance_within(&differences, clusters).unwrap(), &peer[name]);
    }
}

#[test]
fn standardised_effects_invert_the_noncentral_t_or_are_a_sandwich() {
    let (between, within) = (peer("between"), peer("within"));
    let table = Table::of(&between);
    let found = standardised_difference(&table.treated, &table.outcome, None).unwrap();
    same_standardised(&found, &between["d"], 1e-9);
    close(found.hedges_correction().unwrap(), &between["d"]["correction"], 1e-12);
    let found =
        standardised_difference(&table.treated, &table.outcome, Some(&table.clusters)).unwrap();
    same_standardised(&found, &between["clustered_d"], 1e-7);
    let (differences, clusters) = Table::of(&within).differences();
    same_standardised(&standardised_pairs(&differences, None).unwrap(), &within["dz"], 1e-9);
    let found = standardised_pairs(&differences, Some(&clusters)).unwrap();
    same_standardised(&found, &within["clustered_dz"], 1e-7);
}

/// The tests of a standardised difference against a bound agree with its interval.
#[test]
fn bounds_of_the_interval_have_half_of_alpha() {
    let (between, within) = (peer("between"), peer("within"));
    let (table, (differences, clusters)) = (Table::of(&between), Table::of(&within).differences());
    for found in [
        standardised_difference(&table.treated, &table.outcome, None).unwrap(),
        standardised_difference(&table.treated, &table.outcome, Some(&table.clusters)).unwrap(),
        standardised_pairs(&differences, None).unwrap(),
        standardised_pairs(&differences, Some(&clusters)).unwrap(),
    ] {
        let (low, high) = found.interval(ALPHA);
        assert!((found.p_above(low) - 0.5 * ALPHA).abs() < 1e-10, "{found:?}");
        assert!((found.p_below(high) - 0.5 * ALPHA).abs() < 1e-10, "{found:?}");
    }
}

#[test]
fn arms_that_do_not_overlap_have_the_interval_of_wilson() {
    let treated: Vec<bool> = (0..30).map(|row| row < 12).collect();
    let outcome: Vec<f64> =
        (0..30).map(|row| if row < 12 { 100.0 } else { f64::from(row) }).collect();
    let found = dominance(&treated, &outcome, None).unwrap();
    assert_eq!((found.delta, found.a12(), found.standard_error), (1.0, 1.0, 0.0));
    let (low, high) = found.interval(ALPHA);
    // Wilson's lower end for 12 of 12: 1 / (1 + z^2 / 12) = 0.757 505 993.
    assert_eq!(high, 1.0);
    assert!((0.5 * (low + 1.0) - 0.757505993).abs() < 1e-8, "{low}");
    let turned: Vec<bool> = treated.iter().map(|treated| !treated).collect();
    assert_eq!(dominance(&turned, &outcome, None).unwrap().interval(ALPHA), (-high, -low));
}

#[test]
fn impossible_effect_sizes_are_refused() {
    let treated = [true, true, false, false];
    assert!(dominance(&treated, &[1.0; 3], None).is_err());
    assert!(dominance(&treated, &[1.0, f64::NAN, 0.0, 2.0], None).is_err());
    assert!(dominance(&[true; 4], &[1.0; 4], None).is_err());
    assert!(dominance(&treated, &[1.0; 4], None).is_err(), "all ties");
    assert!(dominance(&treated, &[1.0, 2.0, 3.0, 4.0], Some(&[0, 0, 1, 2])).is_err());
    assert!(dominance_within(&[0.0; 9], None).is_err());
    assert!(dominance_within(&[1.0, -1.0], Some(&[0, 0])).is_err());
    assert!(dominance_within(&[], None).is_err());
    assert!(standardised_pairs(&[3.0; 5], None).is_err());
    assert!(standardised_pairs(&[3.0], None).is_err());
    assert!(standardised_difference(&treated, &[1.0, 1.0, 2.0, 2.0], None).is_err());
    assert!(standardised_difference(&treated, &[1.0, 2.0, 3.0, 5.0], Some(&[0, 0, 1, 2])).is_err());
}

fn draw(seed: u64) -> Draw {
    // Seeds are far apart, so that no stream is a shifted copy of another.
    let state = (seed + 1).wrapping_mul(0xD6E8_FEB8_6659_FD93).rotate_left(32);
    Draw((state ^ (state >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9))
}

/// The share of 2,000 data sets whose interval holds the truth, in percent: 93 to 97 pass (four
/// standard errors of a share of 95 %).
#[track_caller]
fn covers(mut interval: impl FnMut(u64) -> (f64, f64), truth: f64, about: &str) {
    let held = (0..2000).filter(|seed| {
        let (low, high) = interval(*seed);
        low <= truth && truth <= high
    });
    let share = held.count() as f64 / 20.0;
    assert!((93.0..=97.0).contains(&share), "{about}: {share} %");
}

/// Rows of 30 units (or 15 clusters of two units) with effects that differ between them.
fn simulated(seed: u64, clustered: bool) -> Table {
    let mut draw = draw(seed + 1);
    let mut table = Table { treated: vec![], outcome: vec![], clusters: vec![] };
    for unit in 0..40u32 {
        let level = draw.normal();
        let pairs = if clustered { 2 } else { 1 };
        for _ in 0..pairs {
            let own = level + 0.5 * draw.normal();
            for treated in [true, false] {
                table.treated.push(treated);
                let shift = if treated { 0.4 } else { 0.0 };
                table.outcome.push(own + shift + 0.6 * draw.normal());
                table.clusters.push(unit);
            }
        }
    }
    table
}

#[test]
fn intervals_of_paired_and_clustered_dominance_cover_the_truth() {
    // Outcomes are normal with variance 1 + 0.25 + 0.36 in both arms; rows that are compared lie in
    // different units but for one in n, whose chance is that of the pair.
    let spread = (2.0f64 * (1.0 + 0.25 + 0.36)).sqrt();
    let between = 1.0 - 2.0 * crate::tail::normal_upper(0.4 / spread);
    for clustered in [false, true] {
        let about = if clustered { "clusters" } else { "pairs" };
        let of = |seed| {
            let table = simulated(seed, clustered);
            dominance(&table.treated, &table.outcome, Some(&table.clusters))
                .unwrap()
                .interval(ALPHA)
        };
        covers(of, between, about);
    }
}

#[test]
fn intervals_of_clustered_standardised_effects_cover_the_truth() {
    let of = |seed| {
        let (differences, clusters) = simulated(seed, true).differences();
        standardised_pairs(&differences, Some(&clusters)).unwrap().interval(ALPHA)
    };
    covers(of, 0.4 / (0.6 * 2f64.sqrt()), "d_z");
    let of = |seed| {
        let table = simulated(seed, true);
        let found = standardised_difference(&table.treated, &table.outcome, Some(&table.clusters));
        found.unwrap().interval(ALPHA)
    };
    covers(of, 0.4 / (1.0f64 + 0.25 + 0.36).sqrt(), "d");
}

proptest! {
    #[test]
    fn ranks_equal_the_comparison_of_all_pairs(
        rows in prop::collection::vec((any::<bool>(), 0..6i32, 0..5u32), 8..40),
    ) {
        let treated: Vec<bool> = rows.iter().map(|row| row.0).collect();
        let outcome: Vec<f64> = rows.iter().map(|row| f64::from(row.1)).collect();
        let clusters: Vec<u32> = rows.iter().map(|row| row.2 * 7).collect();
        for clusters in [None, Some(clusters.as_slice())] {
            let Ok(found) = dominance(&treated, &outcome, clusters) else { continue };
            let (mut wins, mut all) = (0, 0);
            for (_, one, _) in rows.iter().filter(|row| row.0) {
                for (_, zero, _) in rows.iter().filter(|row| !row.0) {
                    wins += (one - zero).signum();
                    all += 1;
                }
            }
            prop_assert_eq!(found.delta, f64::from(wins) / f64::from(all));
            let (low, high) = found.interval(ALPHA);
            prop_assert!(-1.0 <= low && low <= found.delta + 1e-12);
            prop_assert!(found.delta - 1e-12 <= high && high <= 1.0);
            // Only the order counts, and the arms may change places.
            let squeezed: Vec<f64> = outcome.iter().map(|y| (y - 9.0).exp()).collect();
            prop_assert_eq!(dominance(&treated, &squeezed, clusters), Ok(found));
            let turned: Vec<bool> = treated.iter().map(|treated| !treated).collect();
            let other = dominance(&turned, &outcome, clusters).unwrap();
            prop_assert!((other.delta + found.delta).abs() < 1e-14);
            prop_assert!((other.standard_error - found.standard_error).abs() < 1e-12);
        }
    }

    #[test]
    fn a_unit_of_measurement_changes_no_standardised_effect(
        rows in prop::collection::vec((-5.0..5.0f64, -5.0..5.0f64), 4..20), scale in 1e-6..1e6,
    ) {
        let differences: Vec<f64> = rows.iter().map(|(one, zero)| one - zero).collect();
        let scaled: Vec<f64> = differences.iter().map(|difference| difference * scale).collect();
        let (one, other) = (standardised_pairs(&differences, None), standardised_pairs(&scaled, None));
        let (Ok(one), Ok(other)) = (one, other) else { return Ok(()) };
        prop_assert!((one.value - other.value).abs() < 1e-9 * (1.0 + one.value.abs()));
        let (low, high) = one.interval(ALPHA);
        prop_assert!(low < one.value && one.value < high);
    }
}
