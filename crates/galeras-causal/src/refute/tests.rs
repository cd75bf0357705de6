//! Tests of the refuters: the invariants of each draw, and pinned draws.

use super::*;

const REFUTERS: [Refuter; 4] =
    [Refuter::Placebo, Refuter::RandomCommonCause, Refuter::Subset, Refuter::Bootstrap];

/// Rows without units and clusters.
fn plain<'a>(treated: &'a [bool], rows: &'a [u64]) -> RefutationDesign<'a> {
    RefutationDesign { treated, units: None, clusters: None, rows, unit_numbers: None }
}

#[test]
fn the_numbers_behind_the_draws_never_change() {
    let expected = [
        ("placebo", 1, 0x08b4_fda8_c892_b50e, 0x3d41_bf49_5cd3_075f),
        ("random_common_cause", 2, 0xd7cc_9674_ff5f_fa39, 0x46a6_c8e5_6922_a525),
        ("subset", 3, 0xc810_5650_20d0_9481, 0x6baa_7868_1a99_f995),
        ("bootstrap", 4, 0x1e23_85c4_a57e_f30d, 0x8e6a_4e95_86d2_5622),
    ];
    for (refuter, (name, stream, first, eighth)) in REFUTERS.into_iter().zip(expected) {
        assert_eq!((refuter.name(), refuter as u64), (name, stream));
        assert_eq!(draw_key(refuter, 0), first, "{name}");
        assert_eq!(draw_key(refuter, 7), eighth, "{name}");
    }
}

#[test]
fn the_draws_never_change() {
    let treated = [true, false, true, false, true, false, true, false];
    let rows: Vec<u64> = (1..=8).map(mix).collect();
    let design = plain(&treated, &rows);
    let resampler = Resampler::new(design);
    let [placebo, cause, subset, bootstrap] =
        REFUTERS.map(|refuter| resampler.resample(refuter, 0, 0.5));
    let treated = (0..8u32).filter(|row| placebo.treated[*row as usize]);
    assert_eq!(treated.collect::<Vec<_>>(), [1, 2, 4, 6]);
    assert_eq!(subset.rows, [0, 1, 4, 6]);
    assert_eq!(bootstrap.rows, [7, 7, 2, 5, 0, 7, 2, 2]);
    // Logarithm and cosine are the system's, which may differ in the last digit.
    let expected = [0.4542491958310924, -0.8791746740928877, 0.7576980480776736];
    for (noise, expected) in cause.cause.unwrap_or_default().into_iter().zip(expected) {
        assert!((noise - expected).abs() < 1e-12, "{noise} {expected}");
    }
}

#[test]
fn every_draw_depends_on_the_seed() {
    let treated: Vec<bool> = (0..40).map(|row| row % 3 == 0).collect();
    let drawn = |seed: u64, refuter: Refuter| {
        let rows: Vec<u64> = (0..40).map(|row| mix(row ^ seed)).collect();
        let design = plain(&treated, &rows);
        Resampler::new(design).resample(refuter, 0, 0.5)
    };
    for refuter in REFUTERS {
        assert_eq!(drawn(1 << 20, refuter), drawn(1 << 20, refuter), "{refuter:?}");
        assert_ne!(drawn(1 << 20, refuter), drawn(1 << 21, refuter), "{refuter:?}");
    }
}

#[test]
fn placebos_are_counted_by_their_size() {
    assert_eq!(as_large(&[0.5, -2.0, 1.0, -1.0, 0.9], -1.0), 3);
    assert_eq!(as_large(&[], 1.0), 0);
}

/// Calls `check` with 200 units of one row in each of two arms; every ten are a cluster.
fn each(check: impl Fn(&Resampler<'_>, &[u32])) {
    let n = 200u32;
    let treated: Vec<bool> = (0..2 * n).map(|row| row >= n).collect();
    let units: Vec<u32> = (0..2 * n).map(|row| row % n).collect();
    let clusters: Vec<u32> = units.iter().map(|unit| unit / 10).collect();
    let rows: Vec<u64> = (0..2 * u64::from(n)).map(|row| mix(row ^ 77)).collect();
    let unit_numbers: Vec<u64> = units.iter().map(|unit| mix(u64::from(*unit) ^ 5)).collect();
    let design = RefutationDesign {
        treated: &treated,
        units: Some(&units),
        clusters: Some(&clusters),
        rows: &rows,
        unit_numbers: Some(&unit_numbers),
    };
    check(&Resampler::new(design), &units);
}

#[test]
fn a_placebo_treats_one_row_of_each_pair() {
    each(|resampler, units| {
        let resample = resampler.resample(Refuter::Placebo, 0, 0.9);
        let mut arms = vec![0; 200];
        for (row, treated) in resample.treated.iter().enumerate() {
            arms[units[row] as usize] += u32::from(*treated);
        }
        assert!(arms.iter().all(|treated| *treated == 1));
        let flipped = (0..200).filter(|row| resample.treated[*row]).count();
        assert!((60..140).contains(&flipped), "{flipped}");
        assert_ne!(resample.treated, resampler.resample(Refuter::Placebo, 1, 0.9).treated);
    });
}

#[test]
fn a_placebo_of_clusters_moves_them_whole() {
    let clusters: Vec<u32> = (0..200).map(|row| row / 10).collect();
    let treated: Vec<bool> = clusters.iter().map(|cluster| cluster % 4 == 0).collect();
    let rows: Vec<u64> = (0..200).map(|row| mix(row ^ 77)).collect();
    let design = RefutationDesign { clusters: Some(&clusters), ..plain(&treated, &rows) };
    let resampler = Resampler::new(design);
    let permuted = resampler.resample(Refuter::Placebo, 0, 0.9).treated;
    assert_eq!(permuted.iter().filter(|treated| **treated).count(), 50);
    assert!(permuted.chunks(10).all(|cluster| cluster.iter().all(|arm| *arm == cluster[0])));
    assert_ne!(permuted, resampler.resample(Refuter::Placebo, 1, 0.9).treated);
    // One row of another arm, and rows are permuted.
    let mut mixed = treated.clone();
    mixed[0] = !mixed[0];
    let resampler = Resampler::new(RefutationDesign { treated: &mixed, ..design });
    let permuted = resampler.resample(Refuter::Placebo, 0, 0.9).treated;
    assert!(permuted.chunks(10).any(|cluster| cluster.iter().any(|arm| *arm != cluster[0])));
}

#[test]
fn a_subset_keeps_whole_units() {
    each(|resampler, units| {
        let resample = resampler.resample(Refuter::Subset, 3, 0.9);
        assert_eq!(resample.rows.len(), 360);
        let kept: Vec<u32> = resample.rows.iter().map(|row| units[*row as usize]).collect();
        let mut count = vec![0; 200];
        kept.iter().for_each(|unit| count[*unit as usize] += 1);
        assert!(count.iter().all(|rows| *rows == 0 || *rows == 2));
        assert_eq!(resample.units.as_ref().map(|u| u.iter().max().copied()), Some(Some(179)));
    });
}

#[test]
fn a_bootstrap_draws_clusters_and_their_copies_get_new_units() {
    each(|resampler, _| {
        let resample = resampler.resample(Refuter::Bootstrap, 3, 0.9);
        assert_eq!(resample.rows.len(), 400);
        let mut distinct = resample.rows.clone();
        distinct.sort_unstable();
        distinct.dedup();
        // About 1 - 1/e of 20 clusters.
        assert!((160..360).contains(&distinct.len()), "{}", distinct.len());
        let units = resample.units.unwrap_or_default();
        let mut count = vec![0; 200];
        units.iter().for_each(|unit| count[*unit as usize] += 1);
        assert!(count.iter().all(|rows| *rows == 2));
    });
}

#[test]
fn noise_is_standard_normal() {
    let draws: Vec<f64> = (0..100_000).map(|row| normal(mix(row))).collect();
    let mean = draws.iter().sum::<f64>() / 1e5;
    let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 1e5;
    assert!(mean.abs() < 0.015 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
    let tail = draws.iter().filter(|x| x.abs() > 1.959963984540054).count();
    assert!((4_700..5_300).contains(&tail), "{tail}");
}

#[test]
fn rows_in_another_order_draw_the_same() {
    let treated = [true, false, true, false, false];
    let rows = [mix(1), mix(2), mix(3), mix(4), mix(5)];
    let order = [3, 1, 4, 0, 2];
    let moved: Vec<bool> = order.iter().map(|row| treated[*row]).collect();
    let moved_rows: Vec<u64> = order.iter().map(|row| rows[*row]).collect();
    for simulation in 0..20 {
        let resample = |treated, rows| {
            Resampler::new(plain(treated, rows)).resample(Refuter::Placebo, simulation, 0.9)
        };
        let (here, there) = (resample(&treated, &rows), resample(&moved, &moved_rows));
        let back: Vec<bool> = order.iter().map(|row| here.treated[*row]).collect();
        assert_eq!(back, there.treated);
    }
}

#[test]
fn a_refutation_is_the_t_test_of_its_mean() {
    // t = 0.7746 and 3.8730 with 3 degrees of freedom, for which the tail has a closed form.
    let p = |theta| refutation_p(&[1.0, 2.0, 3.0, 4.0], theta);
    assert_eq!(p(2.5), 1.0);
    assert!((p(2.0) - 0.49502534605971094).abs() < 1e-9, "{}", p(2.0));
    assert!((p(0.0) - 0.030466291662170963).abs() < 1e-9, "{}", p(0.0));
    assert_eq!(refutation_p(&[5.0, 5.0], 5.0), 1.0);
    assert_eq!(refutation_p(&[5.0, 5.0], 4.0), 0.0);
    assert_eq!(refutation_p(&[5.0], 4.0), 1.0);
    assert_eq!(refutation_p(&[], 2.0), 1.0);
}
