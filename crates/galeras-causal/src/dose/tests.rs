//! Curves along a dose against statsmodels on patsy's splines, trends against SciPy.

use super::*;
use crate::Covariance;
use crate::tests::{GeneralisedModels, close, numbers};

#[test]
fn curves_equal_those_of_statsmodels_and_patsy() {
    let reference = GeneralisedModels::read();
    let [dose, y, size] = reference.table.columns(["dose", "y", "size"]);
    let repo = reference.table.codes("repo");
    for row in reference.json["dose"]["curves"].as_array().unwrap() {
        let (knots, grid) = (numbers(&row["knots"]), numbers(&row["grid"]));
        for (name, kind) in
            [("classic", Covariance::Classic), ("HC1", Covariance::Hc1), ("CR1", Covariance::Cr1)]
        {
            let found =
                dose_curve(dose, y, &[size], &knots, 5.0, &grid, kind, Some(&repo)).unwrap();
            for (at, point) in found.points.iter().enumerate() {
                match point.effect {
                    None => assert_eq!(grid[at], 5.0),
                    Some(effect) => {
                        close(effect.value, &row[name]["effects"][at], 1e-8);
                        close(effect.standard_error, &row[name]["errors"][at], 1e-8);
                    }
                }
            }
            if kind == Covariance::Classic {
                close(found.any.f, &row["any"][0], 1e-8);
                close(found.any.p_value, &row["any"][1], 1e-7);
                let nonlinear = found.nonlinear.unwrap();
                close(nonlinear.f, &row["nonlinear"][0], 1e-7);
                close(nonlinear.p_value, &row["nonlinear"][1], 1e-7);
            }
        }
    }
}

#[test]
fn trends_equal_those_of_scipy() {
    let reference = GeneralisedModels::read();
    let (dose, expected) = (reference.table.column("dose"), &reference.json["dose"]);
    let found = cochran_armitage(dose, reference.table.column("passed")).unwrap();
    close(found.z, &expected["cochran_armitage"]["z"], 1e-10);
    close(found.p_value, &expected["cochran_armitage"]["p_value"], 1e-9);
    for name in ["y", "level"] {
        let found = jonckheere_terpstra(dose, reference.table.column(name)).unwrap();
        close(found.p_value, &expected["jonckheere"][name], 1e-9);
    }
}

#[test]
fn jonckheere_follows_its_definition() {
    // Three doses without ties: J counts the pairs of rows whose outcomes are ordered as their
    // doses; its mean is (N² - sum n²) / 4 and its variance
    // (N² (2N + 3) - sum n² (2n + 3)) / 72.
    let dose = [1.0, 1.0, 2.0, 2.0, 2.0, 3.0, 3.0];
    let outcome = [2.0, 5.0, 3.0, 6.0, 1.0, 7.0, 4.0];
    let mut j = 0.0;
    for a in 0..7 {
        for b in 0..7 {
            j += f64::from(u8::from(dose[a] < dose[b] && outcome[a] < outcome[b]));
        }
    }
    let mean = (49.0 - 17.0) / 4.0;
    let variance: f64 = (49.0 * 17.0 - (4.0 * 7.0 * 2.0 + 9.0 * 9.0)) / 72.0;
    let found = jonckheere_terpstra(&dose, &outcome).unwrap();
    assert!((found.z - (j - mean) / variance.sqrt()).abs() < 1e-12, "{found:?}");
}

#[test]
fn knots_lie_at_quantiles_or_at_the_doses() {
    let doses: Vec<f64> = (0..=1000).map(f64::from).collect();
    assert_eq!(natural_knots(&doses, 4).unwrap(), [50.0, 350.0, 650.0, 950.0]);
    assert_eq!(natural_knots(&[3.0, 1.0, 1.0, 2.0], 5).unwrap(), [1.0, 2.0, 3.0]);
    assert!(natural_knots(&[1.0; 9], 3).is_err());
    assert!(natural_knots(&doses, 2).is_err());
    // Nearly all doses are 0: the quantiles coincide.
    let mut lumped = vec![0.0; 1000];
    lumped.extend([1.0, 2.0, 3.0, 4.0, 5.0]);
    assert!(natural_knots(&lumped, 4).unwrap_err().to_string().contains("too few different knots"));
}

#[test]
fn beyond_the_knots_the_curve_is_straight() {
    let dose: Vec<f64> = (0..200).map(|row| f64::from(row % 50)).collect();
    let y: Vec<f64> =
        dose.iter().zip(0..).map(|(d, at)| (d / 9.0).sin() + f64::from(at * at % 7)).collect();
    let grid = [60.0, 70.0, 80.0];
    let knots = [5.0, 20.0, 45.0];
    let found =
        dose_curve(&dose, &y, &[], &knots, 0.0, &grid, Covariance::Hc2, None).unwrap().points;
    let at = |place: usize| found[place].effect.unwrap().value;
    assert!((at(2) - 2.0 * at(1) + at(0)).abs() < 1e-9);
}

#[test]
fn doses_without_a_curve_are_refused() {
    let dose: Vec<f64> = (0..40).map(f64::from).collect();
    let flat = vec![3.0; 40];
    let y: Vec<f64> = dose.iter().map(|d| d * d % 7.0).collect();
    let fit = |dose: &[f64], y: &[f64], knots: &[f64]| {
        dose_curve(dose, y, &[], knots, 0.0, &[1.0], Covariance::Hc2, None).unwrap_err().to_string()
    };
    assert!(fit(&dose, &y, &[3.0, 1.0]).contains("ascending"));
    assert!(fit(&dose, &flat, &[1.0, 9.0]).contains("one value only"));
    assert!(fit(&flat, &y, &[1.0, 9.0]).contains("one value only"));
    assert!(cochran_armitage(&dose, &y).is_err());
    assert!(jonckheere_terpstra(&flat, &y).is_err());
}
