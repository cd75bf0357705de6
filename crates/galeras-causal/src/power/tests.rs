//! Tests of the minimum detectable effect, and of power before a study: peers, simulated studies.

use proptest::prelude::*;

use super::*;
use crate::tests::{Draw, close, json};
use crate::{Estimate, OneSided, paired};

#[test]
fn the_effect_is_a_multiple_of_the_standard_error() {
    // z(0.975) + z(0.8), and other pairs, of scipy.stats.norm.ppf.
    close(minimum_detectable(1.0, 0.05, 0.8).unwrap(), 2.8015852181129683, 1e-9);
    close(minimum_detectable(1.0, 0.01, 0.9).unwrap(), 3.8573808690935004, 1e-9);
    close(minimum_detectable(1.0, 1e-20, 0.5).unwrap(), 9.33604484923406, 1e-9);
}

#[test]
fn pairing_gain_is_the_saved_variance() {
    let found = paired_gain(9.019937131794562, 15.12666278257588, 0.05, 0.8).unwrap();
    close(found.paired, 25.27012253674393, 1e-9);
    close(found.unpaired, 42.37863485104417, 1e-9);
    close(found.variance_ratio, 2.812413859869527, 1e-9);
}

#[test]
fn impossible_tests_are_refused() {
    for (error, alpha, power) in [
        (0.0, 0.05, 0.8),
        (-1.0, 0.05, 0.8),
        (f64::NAN, 0.05, 0.8),
        (f64::INFINITY, 0.05, 0.8),
        (1.0, 0.0, 0.8),
        (1.0, f64::NAN, 0.8),
        (1.0, 0.05, 1.0),
        (1.0, 0.05, 0.05),
        (1.0, 0.05, f64::NAN),
        (f64::MAX, 0.05, 0.8),
    ] {
        assert!(minimum_detectable(error, alpha, power).is_err(), "{error} {alpha} {power}");
    }
    assert!(paired_gain(1e-200, 1e200, 0.05, 0.8).is_err());
    assert!(paired_gain(0.0, 1.0, 0.05, 0.8).is_err());
}

proptest! {
    #[test]
    fn more_demands_need_larger_effects(
        error in 1e-6..1e6, alpha in 0.001..0.2, power in 0.3..0.98,
    ) {
        let found = minimum_detectable(error, alpha, power).unwrap();
        prop_assert!(found > 0.0);
        prop_assert!(minimum_detectable(error * 1.1, alpha, power).unwrap() > found);
        prop_assert!(minimum_detectable(error, alpha / 1.1, power).unwrap() > found);
        prop_assert!(minimum_detectable(error, alpha, power + 0.01).unwrap() > found);
    }

    #[test]
    fn nothing_panics(error in any::<f64>(), alpha in any::<f64>(), power in any::<f64>()) {
        let _ = paired_gain(error, power, alpha, power);
    }
}

fn design(units: f64, paired: bool) -> StudyDesign {
    StudyDesign { units, samples: 1.0, paired, cluster_size: None }
}

const ONE: VarianceComponents = VarianceComponents { unit: 1.0, cluster: 0.0, sample: 0.0 };

#[test]
fn power_and_sizes_equal_those_of_statsmodels() {
    for case in json("effect_sizes.json")["power"].as_array().unwrap() {
        let of = |name: &str| case[name].as_f64().unwrap();
        let (effect, n, alpha) = (of("effect"), of("n"), of("alpha"));
        let pairs = design(n, true);
        close(pairs.power(&ONE, effect, alpha), &case["paired"], 1e-9);
        close(design(n, false).power(&ONE, effect, alpha), &case["independent"], 1e-9);
        close(pairs.detectable(&ONE, alpha, 0.8).unwrap(), &case["detectable"], 1e-6);
        let needed = pairs.units_needed(&ONE, effect, alpha, 0.8).unwrap();
        assert_eq!(needed, of("needed").ceil());
        let needed = design(2.0, false).units_needed(&ONE, effect, alpha, 0.8).unwrap();
        assert_eq!(needed, 2.0 * of("needed_per_arm").ceil());
        let found = equivalence_power(0.1, 0.3 * n.sqrt(), n - 1.0, alpha);
        assert!((found - of("equivalence")).abs() < 1e-9, "{case}: {found}");
    }
}

#[test]
fn a_pilot_has_the_components_of_its_mean_squares() {
    let peer = &json("effect_sizes.json")["pilot"];
    let rows = peer["rows"].as_array().unwrap();
    let treated: Vec<bool> = rows.iter().map(|row| row[0].as_bool().unwrap()).collect();
    let outcome: Vec<f64> = rows.iter().map(|row| row[1].as_f64().unwrap()).collect();
    let units: Vec<u32> = rows.iter().map(|row| row[2].as_u64().unwrap() as u32).collect();
    let found = pilot(&treated, &outcome, Some(&units), None).unwrap();
    close(found.effect, &peer["effect"], 1e-12);
    close(found.components.sample, &peer["sample"], 1e-10);
    close(found.components.unit, &peer["unit"], 1e-10);
    assert_eq!((found.units, found.clusters), (12, None));
    assert!((found.samples - 3.0).abs() < 1e-12);
    let clusters: Vec<u32> = units.iter().map(|unit| 100 + unit / 3).collect();
    let found = pilot(&treated, &outcome, Some(&units), Some(&clusters)).unwrap();
    close(found.components.unit, &peer["unit_in_cluster"], 1e-10);
    close(found.components.cluster, &peer["cluster"], 1e-10);
    assert_eq!(found.clusters, Some(4));
    let mixed: Vec<u32> = (0..rows.len() as u32).collect();
    assert!(pilot(&treated, &outcome, Some(&units), Some(&mixed)).is_err());
    let all = vec![0; rows.len()];
    assert!(pilot(&treated, &outcome, Some(&units), Some(&all)).is_err());
    assert!(pilot(&treated, &outcome, Some(&all), None).is_err());
    assert!(pilot(&treated, &outcome[1..], None, None).is_err());
    assert!(pilot(&[true, false], &[1.0, 2.0], None, None).is_err());
}

/// A study as it would be run: rows of units under both arms, their means, their differences.
fn study(
    draw: &mut Draw,
    design: &StudyDesign,
    parts: &VarianceComponents,
    effect: f64,
) -> Estimate {
    let size = design.cluster_size.unwrap_or(1.0);
    let (samples, mut arms) = (design.samples as usize, (Vec::new(), Vec::new()));
    let clusters = (design.units / size) as usize;
    let mut of_clusters = Vec::new();
    for _ in 0..clusters {
        let shared = parts.cluster * draw.normal();
        let (mut sum, mut n) = (0.0, 0.0);
        for _ in 0..size as usize {
            let (level, own) = (3.0 * draw.normal(), parts.unit * draw.normal());
            let mut mean = |shift: f64| {
                let answers = (0..samples).map(|_| shift + parts.sample * draw.normal());
                answers.sum::<f64>() / samples as f64
            };
            let (one, zero) = (mean(level + effect + shared + own), mean(level));
            arms.0.push(one);
            arms.1.push(zero);
            sum += one - zero;
            n += 1.0;
        }
        of_clusters.push(sum / n);
    }
    if design.cluster_size.is_some() {
        // Clusters of one size: the means of clusters are all there is to know.
        return paired(&of_clusters, &vec![0.0; clusters]).unwrap();
    }
    paired(&arms.0, &arms.1).unwrap()
}

/// The share of 4,000 simulated studies that find the effect is the power: within four standard
/// errors of a share.
#[test]
fn simulated_studies_find_the_effect_with_the_power() {
    let parts = VarianceComponents { unit: 0.8, cluster: 0.5, sample: 1.2 };
    let plain = VarianceComponents { cluster: 0.0, ..parts };
    for (design, parts, effect) in [
        (StudyDesign { units: 30.0, samples: 1.0, paired: true, cluster_size: None }, plain, 0.9),
        (StudyDesign { units: 30.0, samples: 5.0, paired: true, cluster_size: None }, plain, 0.5),
        (
            StudyDesign { units: 60.0, samples: 2.0, paired: true, cluster_size: Some(5.0) },
            parts,
            0.6,
        ),
    ] {
        let (mut draw, mut found, mut equal) = (Draw(7), 0, 0);
        let margin = 2.0 * effect;
        for _ in 0..4000 {
            let estimate = study(&mut draw, &design, &parts, effect);
            found += usize::from(estimate.p_value() < 0.05);
            let p = estimate.p_above(-margin).max(estimate.p_below(margin));
            equal += usize::from(p < 0.05);
        }
        for (count, power) in [
            (found, design.power(&parts, effect, 0.05)),
            (equal, design.equivalence_power(&parts, effect, margin, 0.05)),
        ] {
            let share = f64::from(count as u32) / 4000.0;
            let error = (power * (1.0 - power) / 4000.0).sqrt();
            assert!((0.2..0.98).contains(&power), "not a useful case: {power}");
            assert!((share - power).abs() < 4.0 * error, "{design:?}: {share}, not {power}");
        }
    }
}

#[test]
fn an_unpaired_study_splits_its_units() {
    let parts = VarianceComponents { unit: 2.0, cluster: 0.0, sample: 3.0 };
    let design = StudyDesign { units: 40.0, samples: 9.0, paired: false, cluster_size: None };
    // Two means of 20 units, each with variance 4 + 9 / 9.
    assert!((design.standard_error(&parts) - (2.0 * 5.0 / 20.0f64).sqrt()).abs() < 1e-15);
    assert_eq!(design.degrees(), 38.0);
}

#[test]
fn impossible_studies_are_refused() {
    let pairs = design(20.0, true);
    assert!(pairs.detectable(&ONE, 0.05, 0.05).is_err());
    assert!(pairs.detectable(&VarianceComponents::default(), 0.05, 0.8).is_err());
    assert!(design(1.0, true).detectable(&ONE, 0.05, 0.8).is_err());
    assert!(pairs.units_needed(&ONE, 0.0, 0.05, 0.8).is_err());
    assert!(pairs.units_needed(&ONE, 1e-9, 0.05, 0.8).is_err(), "too many");
    assert!(pairs.units_for_equivalence(&ONE, 0.3, 0.3, 0.05, 0.8).is_err());
    assert!(pairs.units_for_equivalence(&ONE, 0.0, 0.3, 0.05, f64::NAN).is_err());
    assert!(design(1.0, true).power(&ONE, 1.0, 0.05).is_nan());
    let needed = pairs.units_for_equivalence(&ONE, 0.0, 0.3, 0.05, 0.8).unwrap();
    let with = |units: f64| design(units, true).equivalence_power(&ONE, 0.0, 0.3, 0.05);
    assert!(with(needed) >= 0.8 && with(needed - 1.0) < 0.8, "{needed}");
}
