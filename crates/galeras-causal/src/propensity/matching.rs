//! Nearest-neighbour matching on the score, with the variance of Abadie & Imbens.
//!
//! Units of one arm with the same score form a group, so ties cost nothing, and both arms are
//! walked once by ascending score. There is no bootstrap, which is not valid for matching (Abadie &
//! Imbens 2008).

use std::cmp::Ordering;

use super::logistic::constant;
use super::rows::{Rows, ascending, estimate, finite, same_length};
use crate::column::{UNITS, arm_sizes};
use crate::refusal::at_least;
use crate::{ColumnRef, Estimate, Refusal};

/// The result of matching.
#[derive(Clone, Debug, PartialEq)]
pub struct Matching {
    /// The average effect over all units.
    pub ate: Estimate,
    /// The average effect over the treated.
    pub att: Estimate,
    /// The average effect over the controls.
    pub atc: Estimate,
}

/// Matches each unit to the nearest of the other arm by score, one to one and with replacement;
/// units at the same distance share the match equally.
///
/// The standard errors are those of Abadie & Imbens (2006) with the weights for ties of Abadie,
/// Drukker, Herr & Imbens (2004); the variance of an outcome given the score comes from the unit
/// and its nearest neighbours within its arm. They take the scores as known, which makes them
/// conservative for the effect over all units (Abadie & Imbens 2016).
/// [`Refusal::ConstantPropensity`] if all scores are equal within 1e-8; a standard error of zero.
pub fn matching(scores: &[f64], treated: &[bool], outcome: &[f64]) -> Result<Matching, Refusal> {
    same_length("scores", scores.len(), treated.len())?;
    finite(ColumnRef::Score, scores)?;
    arm_sizes(treated, UNITS, 1)?;
    if let Some(score) = constant(scores) {
        return Err(Refusal::ConstantPropensity { score });
    }
    let rows = Rows::new(treated, outcome, None)?;
    let mut arms = [Arm::new(scores, &rows, false), Arm::new(scores, &rows, true)];
    for arm in &arms {
        at_least("units in an arm", arm.units, 2)?;
    }
    let [control, one] = &mut arms;
    let effects = [control.match_to(one, -1.0), one.match_to(control, 1.0)];
    let [on_control, on_treated] = &effects;
    let [control, one] = &arms;
    let sums = [control.variances(), one.variances()];
    let n = on_control.size + on_treated.size;
    let share = on_treated.size / n;
    let apart = on_treated.mean - on_control.mean;
    let spread = on_control.squares
        + on_treated.squares
        + apart * apart * on_control.size * on_treated.size / n;
    let all = (spread + sums[0].both + sums[1].both) / (n * n);
    let treated_only = (on_treated.squares + sums[0].one) / (on_treated.size * on_treated.size);
    let control_only = (on_control.squares + sums[1].one) / (on_control.size * on_control.size);
    Ok(Matching {
        ate: estimate(on_control.mean + share * apart, all, outcome)?,
        att: estimate(on_treated.mean, treated_only, outcome)?,
        atc: estimate(on_control.mean, control_only, outcome)?,
    })
}

/// The effects of one arm's units, each against its match.
struct Effects {
    size: f64,
    mean: f64,
    /// The sum of squares about the mean.
    squares: f64,
}

struct Group {
    score: f64,
    size: f64,
    mean: f64,
    squares: f64,
    /// The number of times each unit is a match: the sum of its shares, K.
    matches: f64,
    /// The sum of its squared shares, K'.
    shares: f64,
}

/// The sums over an arm of outcome variances, times factors of the matching.
struct Variances {
    /// For the effect over all units: K² + 2K - K'.
    both: f64,
    /// For the effect over the units of the other arm: K² - K'.
    one: f64,
}

struct Arm {
    groups: Vec<Group>,
    units: usize,
}

impl Arm {
    fn new(scores: &[f64], rows: &Rows<'_>, treated: bool) -> Self {
        let order = ascending(scores, |row| rows.treated[row] == treated);
        let groups = order
            .chunk_by(|a, b| a.0 == b.0)
            .map(|members| {
                let size = members.len() as f64;
                let outcomes = || members.iter().map(|(_, row)| rows.outcome[*row]);
                let mean = outcomes().sum::<f64>() / size;
                let squares = outcomes().map(|y| (y - mean) * (y - mean)).sum::<f64>();
                let score = members.first().map_or(0.0, |member| member.0);
                Group { score, size, mean, squares, matches: 0.0, shares: 0.0 }
            })
            .collect();
        Self { groups, units: order.len() }
    }

    /// Matches each unit to the nearest of the other arm, which count their uses; an effect is
    /// `sign` times the unit's outcome minus that of its match.
    fn match_to(&self, other: &mut Self, sign: f64) -> Effects {
        let last = other.groups.len() - 1;
        let mut above = 0;
        let mut differences = Vec::with_capacity(self.groups.len());
        for group in &self.groups {
            // Both arms ascend, so the position of the next score is never before this one.
            while above <= last && other.groups[above].score < group.score {
                above += 1;
            }
            let (low, high) = (above.saturating_sub(1), above.min(last));
            let below = (group.score - other.groups[low].score).abs();
            let beyond = (other.groups[high].score - group.score).abs();
            let (low, high) = match below.total_cmp(&beyond) {
                Ordering::Less => (low, low),
                Ordering::Equal => (low, high),
                Ordering::Greater => (high, high),
            };
            let nearest = &mut other.groups[low..=high];
            let size: f64 = nearest.iter().map(|group| group.size).sum();
            let mean: f64 = nearest.iter().map(|group| group.size / size * group.mean).sum();
            for matched in nearest {
                matched.matches += group.size / size;
                matched.shares += group.size / (size * size);
            }
            differences.push(sign * (group.mean - mean));
        }
        let size = self.units as f64;
        let pairs = || self.groups.iter().zip(&differences);
        let mean = pairs().map(|(group, d)| group.size * d).sum::<f64>() / size;
        let square = |group: &Group, d: f64| group.squares + group.size * (d - mean) * (d - mean);
        Effects { size, mean, squares: pairs().map(|(group, d)| square(group, *d)).sum() }
    }

    fn variances(&self) -> Variances {
        let mut sums = Variances { both: 0.0, one: 0.0 };
        for (position, group) in self.groups.iter().enumerate() {
            let (matches, shares) = (group.matches, group.shares);
            let total = group.size * self.variance(position);
            sums.both += total * (matches * matches + 2.0 * matches - shares);
            sums.one += total * (matches * matches - shares);
        }
        sums
    }

    /// A group's mean variance of the outcome, from each unit and its neighbours within the arm.
    fn variance(&self, position: usize) -> f64 {
        let group = &self.groups[position];
        if group.size > 1.0 {
            return group.squares / (group.size - 1.0);
        }
        let distance = |other: &Group| (other.score - group.score).abs();
        let before = position.checked_sub(1).and_then(|place| self.groups.get(place));
        let after = self.groups.get(position + 1);
        let neighbours = match (before, after) {
            (Some(a), Some(b)) if distance(a) == distance(b) => [before, after],
            (Some(a), Some(b)) if distance(a) > distance(b) => [None, after],
            (Some(_), _) => [before, None],
            (None, _) => [None, after],
        };
        let (mut size, mut mean, mut squares) = (1.0, group.mean, 0.0);
        for other in neighbours.into_iter().flatten() {
            let apart = other.mean - mean;
            let whole = size + other.size;
            squares += other.squares + apart * apart * size * other.size / whole;
            mean += apart * other.size / whole;
            size = whole;
        }
        squares / (size - 1.0)
    }
}
