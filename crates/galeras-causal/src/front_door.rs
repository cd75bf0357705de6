//! The effect of a treatment through observed mediators, by the front door.

mod leave_out;

use super::column::check_column;
use super::{ColumnRef, Estimate, LinearFit, Refusal};
use leave_out::{cluster_count, jackknife};

/// Fewer rows in an arm are refused, and fewer clusters.
const FEWEST: usize = 10;
/// With fewer rows, intervals by a mediator of two values cover less than they say
/// (docs/coverage.md).
const FEWEST_ROWS: usize = 30;

/// What the front door gives.
#[derive(Clone, Debug, PartialEq)]
pub struct FrontDoor {
    /// The effect: the sum over mediators of what the treatment does to them times what they do to
    /// the outcome, with the jackknife's standard error, which leaves out each row or cluster, and
    /// Student's t with n less the coefficients, or clusters less one.
    pub estimate: Estimate,
    /// For each mediator, by how much the treatment changes it.
    pub on_mediators: Vec<f64>,
    /// For each mediator, by how much a unit of it changes the outcome, averaged over the arms.
    pub on_outcome: Vec<f64>,
}

/// The effect of `treated` on `outcome` where all of it runs through `mediators` and the
/// confounders of treatment and outcome touch none of these: Pearl's front-door formula,
/// Σ_m [P(m | 1) - P(m | 0)] Σ_t E[Y | m, t] P(t) (Pearl 2009, theorem 3.3.4), with E[Y | m, t] a
/// linear function of the mediators in each arm. With one mediator of two values that is no
/// assumption, and the estimate is the formula with shares counted; with other mediators their
/// effects on the outcome are taken as linear and additive.
///
/// `treated`, `outcome`, `clusters` (as codes) and each of `mediators` have one entry for each
/// row. Units: those of the outcome.
///
/// # Errors
///
/// [`Refusal::TooFew`] with fewer than 10 rows of an arm, than 30 rows without clusters, or than 10
/// clusters; [`Refusal::Constant`] and [`Refusal::Collinear`] with [`ColumnRef::Covariate`] for the
/// position of a mediator that does not vary within an arm, or depends on others;
/// [`Refusal::Leverage`] for a row and [`Refusal::Other`] for a cluster without which there is no
/// estimate, and if the arms determine the mediators and these the outcome, so that there is no
/// standard error.
pub fn front_door(
    treated: &[bool],
    mediators: &[&[f64]],
    outcome: &[f64],
    clusters: Option<&[u32]>,
) -> Result<FrontDoor, Refusal> {
    let rows = outcome.len();
    if treated.len() != rows || clusters.is_some_and(|codes| codes.len() != rows) {
        return Err(Refusal::Other("the columns differ in length".into()));
    }
    if mediators.is_empty() {
        return Err(Refusal::Other("the front door needs a mediator".into()));
    }
    check_column(outcome, ColumnRef::Outcome, rows)?;
    for (at, mediator) in mediators.iter().enumerate() {
        check_column(mediator, ColumnRef::Covariate(at), rows)?;
    }
    let arms = [false, true].map(|arm| Arm::new(arm, treated, mediators, outcome));
    let [control, treatment] = arms;
    let (control, treatment) = (control?, treatment?);
    let n = rows as f64;
    let share = treatment.rows as f64 / n;
    let width = mediators.len();
    let on_mediators: Vec<f64> =
        (0..width).map(|at| treatment.means[at] - control.means[at]).collect();
    let on_outcome: Vec<f64> = (0..width)
        .map(|at| share * treatment.slopes[at] + (1.0 - share) * control.slopes[at])
        .collect();
    let value = on_mediators.iter().zip(&on_outcome).map(|(a, b)| a * b).sum();
    let coefficients = 2.0 * (width as f64 + 1.0);
    let degrees = match clusters {
        None if rows < FEWEST_ROWS => {
            return Err(Refusal::TooFew { what: "rows", found: rows, needed: FEWEST_ROWS });
        }
        None => n - coefficients,
        Some(codes) => {
            let found = cluster_count(codes);
            if found < FEWEST {
                return Err(Refusal::TooFew { what: "clusters", found, needed: FEWEST });
            }
            found as f64 - 1.0
        }
    };
    let standard_error = jackknife(treated, mediators, outcome, clusters)?;
    if !(standard_error > 0.0 && standard_error.is_finite()) {
        return Err(Refusal::Other("there is no variance to judge the estimate by".into()));
    }
    let estimate = Estimate { value, standard_error, degrees };
    Ok(FrontDoor { estimate, on_mediators, on_outcome })
}

/// One arm: the means of the mediators, and the regression of the outcome on them.
struct Arm {
    rows: usize,
    means: Vec<f64>,
    slopes: Vec<f64>,
}

impl Arm {
    fn new(
        arm: bool,
        treated: &[bool],
        mediators: &[&[f64]],
        outcome: &[f64],
    ) -> Result<Self, Refusal> {
        let rows: Vec<usize> = (0..treated.len()).filter(|row| treated[*row] == arm).collect();
        if rows.len() < FEWEST {
            let what = if arm { "treated rows" } else { "control rows" };
            return Err(Refusal::TooFew { what, found: rows.len(), needed: FEWEST });
        }
        let gather = |column: &[f64]| -> Vec<f64> { rows.iter().map(|row| column[*row]).collect() };
        let columns: Vec<Vec<f64>> = mediators.iter().map(|column| gather(column)).collect();
        let slices: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let means = columns.iter().map(|column| super::compensated::mean(column)).collect();
        let fit = LinearFit::fit(&slices, &gather(outcome))?;
        let leverage = |row: &[f64]| row.iter().map(|value| value * value).sum::<f64>();
        let leverages: Vec<f64> = fit.basis.chunks_exact(fit.width).map(leverage).collect();
        if let Some(row) = leverages.iter().position(|leverage| *leverage > 1.0 - 1e-9) {
            return Err(Refusal::Leverage { row: rows[row], leverage: leverages[row] });
        }
        Ok(Self { means, slopes: fit.coefficients()[1..].to_vec(), rows: rows.len() })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::column::indicator;

    /// Random numbers: SplitMix64.
    struct Draw(u64);

    impl Draw {
        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
        }

        fn normal(&mut self) -> f64 {
            let (u, v) = (1.0 - self.uniform(), self.uniform());
            (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
        }
    }

    /// Rows in which a latent variable causes treatment and outcome; the effect is 0.5 times 2 of
    /// a mediator that is a number, or has two values whose shares differ by 0.5.
    fn rows(draw: &mut Draw, n: usize, binary: bool) -> (Vec<bool>, Vec<f64>, Vec<f64>) {
        let (mut treated, mut mediator, mut outcome) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..n {
            let latent = draw.normal();
            let arm = latent + draw.normal() > 0.3;
            let of_arm = 0.5 * f64::from(u8::from(arm));
            let value = if binary {
                f64::from(u8::from(draw.uniform() < 0.2 + of_arm))
            } else {
                of_arm + draw.normal()
            };
            treated.push(arm);
            mediator.push(value);
            outcome.push(2.0 * value + 1.5 * latent + draw.normal());
        }
        (treated, mediator, outcome)
    }

    #[test]
    fn with_a_mediator_of_two_values_it_is_pearls_formula_with_shares_counted() {
        let (treated, mediator, outcome) = rows(&mut Draw(1), 400, true);
        let found = front_door(&treated, &[&mediator], &outcome, None).unwrap();
        let of = |arm: bool, value: f64| -> Vec<f64> {
            (0..400)
                .filter(|row| treated[*row] == arm && mediator[*row] == value)
                .map(|row| outcome[row])
                .collect()
        };
        let size = |arm| of(arm, 0.0).len() + of(arm, 1.0).len();
        let mean = |cell: Vec<f64>| cell.iter().sum::<f64>() / cell.len() as f64;
        let mut expected = 0.0;
        for value in [0.0, 1.0] {
            let share = |arm| of(arm, value).len() as f64 / size(arm) as f64;
            let averaged = [true, false]
                .map(|arm| mean(of(arm, value)) * size(arm) as f64 / 400.0)
                .iter()
                .sum::<f64>();
            expected += (share(true) - share(false)) * averaged;
        }
        assert!((found.estimate.value - expected).abs() < 1e-12, "{found:?} {expected}");
    }

    #[test]
    fn its_standard_error_is_that_of_leaving_out_row_by_row_or_cluster_by_cluster() {
        let mut draw = Draw(2);
        for (n, binary, clustered) in
            [(40, true, false), (300, false, false), (60, true, true), (300, false, true)]
        {
            let (treated, mediator, outcome) = rows(&mut draw, n, binary);
            // Far apart between the arms: what is left within them still counts.
            let second: Vec<f64> = (0..n)
                .map(|row| mediator[row] * 0.3 + draw.normal())
                .map(|value| 1e-3 * value)
                .zip(&treated)
                .map(|(value, arm)| if *arm { value + 5.0 } else { value })
                .collect();
            let codes: Vec<u32> = (0..n as u32).map(|row| row % 12).collect();
            let clusters = clustered.then_some(codes.as_slice());
            let found =
                front_door(&treated, &[&mediator, &second], &outcome, clusters).unwrap().estimate;
            let without = |left: usize| {
                let group = |row: usize| if clustered { codes[row] as usize } else { row };
                let kept: Vec<usize> = (0..n).filter(|row| group(*row) != left).collect();
                let of =
                    |column: &[f64]| -> Vec<f64> { kept.iter().map(|row| column[*row]).collect() };
                let arms: Vec<bool> = kept.iter().map(|row| treated[*row]).collect();
                let columns = [of(&mediator), of(&second)];
                let found = front_door(&arms, &[&columns[0], &columns[1]], &of(&outcome), None);
                found.unwrap().estimate.value
            };
            let groups = if clustered { 12 } else { n };
            let square: f64 = (0..groups).map(|left| (without(left) - found.value).powi(2)).sum();
            let jackknife = (square * (groups as f64 - 1.0) / groups as f64).sqrt();
            let ratio = found.standard_error / jackknife;
            assert!((ratio - 1.0).abs() < 1e-8, "{ratio}");
        }
    }

    #[test]
    fn intervals_cover_the_effect_though_a_regression_is_biased() {
        let mut draw = Draw(3);
        for (n, binary) in [(60, false), (60, true), (300, false)] {
            let (mut covered, mut sum, mut refused) = (0, 0.0, 0);
            for _ in 0..600 {
                // A mediator's value that one row of an arm has leaves that row without a variance.
                let found = loop {
                    let (treated, mediator, outcome) = rows(&mut draw, n, binary);
                    match front_door(&treated, &[&mediator], &outcome, None) {
                        Ok(found) => break found.estimate,
                        Err(Refusal::Leverage { .. }) => refused += 1,
                        Err(other) => panic!("{other}"),
                    }
                };
                let (low, high) = found.interval(0.05);
                covered += usize::from((low..=high).contains(&1.0));
                sum += found.value / 600.0;
            }
            // 600 intervals of 95 % hold 0.95 give or take 0.009.
            assert!((555..=588).contains(&covered), "{n} {binary}: {covered}");
            assert!(refused < 30, "{n} {binary}: {refused}");
            assert!((sum - 1.0).abs() < 0.08, "{n} {binary}: {sum}");
        }
        let (treated, _, outcome) = rows(&mut draw, 300, false);
        let naive = crate::difference_in_means(&treated, &outcome).unwrap().estimate;
        assert!(naive.interval(0.05).0 > 1.5, "{naive:?}");
    }

    #[test]
    fn rows_of_one_cluster_count_once() {
        let (treated, mediator, outcome) = rows(&mut Draw(4), 200, false);
        let twice = |column: &[f64]| [column, column].concat();
        let alone = front_door(&treated, &[&mediator], &outcome, None).unwrap().estimate;
        let arms = [treated.clone(), treated].concat();
        let clusters: Vec<u32> = (0..200).chain(0..200).collect();
        let columns = (twice(&mediator), twice(&outcome));
        let both = front_door(&arms, &[&columns.0], &columns.1, Some(&clusters)).unwrap().estimate;
        assert!((both.value - alone.value).abs() < 1e-12);
        assert!((both.standard_error / alone.standard_error - 1.0).abs() < 1e-9);
        let few: Vec<u32> = (0..400).map(|row| row % 9).collect();
        let refused = front_door(&arms, &[&columns.0], &columns.1, Some(&few)).unwrap_err();
        assert_eq!(refused.to_string(), "too few clusters: 9, at least 10 are needed");
    }

    #[test]
    fn what_the_front_door_cannot_tell_is_refused() {
        let (treated, mediator, outcome) = rows(&mut Draw(5), 60, false);
        let arm = indicator(&treated);
        let refused = |mediators: &[&[f64]]| {
            front_door(&treated, mediators, &outcome, None).unwrap_err().to_string()
        };
        assert_eq!(refused(&[&arm]), "`#0` has one value only");
        assert!(refused(&[]).contains("needs a mediator"));
        let copy = mediator.clone();
        assert!(refused(&[&mediator, &copy]).contains("`#1` is a linear combination"));
        let short = front_door(&treated[..29], &[&mediator[..29]], &outcome[..29], None);
        assert_eq!(short.unwrap_err().to_string(), "too few rows: 29, at least 30 are needed");
        // One cluster holds all of an arm.
        let codes: Vec<u32> =
            (0..60).map(|row| if treated[row] { 0 } else { 1 + row as u32 % 11 }).collect();
        let one = front_door(&treated, &[&mediator], &outcome, Some(&codes)).unwrap_err();
        assert!(
            one.to_string().starts_with("without one cluster an arm has too few rows"),
            "{one}"
        );
        let few = front_door(&[true; 60], &[&mediator], &outcome, None).unwrap_err();
        assert!(few.to_string().contains("control rows"), "{few}");
    }
}
