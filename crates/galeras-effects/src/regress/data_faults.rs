//! Faults of data with which every number could be computed: arms that differ by case or white
//! space only, units in two clusters, numbers beyond the precision of a double, and rows that decide
//! an estimate. The latter make remarks; the estimate is given all the same.

use std::collections::{BTreeMap, HashMap};

use super::comparison::{Comparison, RowSet, differing_units};
use super::frame::{AnalysisFrame, REPOSITORY, gather};
use galeras_base::prose::{count, four_digits, name_list, thousands};
use galeras_causal::tail;
use galeras_operator::far_numbers::lost_digits;

/// Warnings about arms that are the same but for case or white space.
pub(super) fn similar_arms(treatment: &str, arms: &[String]) -> Vec<String> {
    let mut alike: BTreeMap<String, Vec<&String>> = BTreeMap::new();
    for arm in arms {
        let words: Vec<&str> = arm.split_whitespace().collect();
        alike.entry(words.join(" ").to_lowercase()).or_default().push(arm);
    }
    alike
        .into_values()
        .filter(|arms| arms.len() > 1)
        .map(|mut arms| {
            arms.sort();
            let arms: Vec<String> = arms.into_iter().map(|arm| format!("{arm:?}")).collect();
            format!(
                "`{treatment}` has the arms {}, which differ by case or white space only: each is \
                 an arm of its own",
                listed(&arms)
            )
        })
        .collect()
}

fn listed(texts: &[String]) -> String {
    match texts {
        [] => String::new(),
        [only] => only.clone(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

/// Names as a list that stays short however many there are.
pub(super) fn short_list(names: &[String]) -> String {
    const SHOWN: usize = 8;
    if names.len() <= SHOWN + 1 {
        return name_list(names);
    }
    let shown: Vec<String> = names[..SHOWN].iter().map(|name| format!("`{name}`")).collect();
    format!("{} and {} others", shown.join(", "), thousands(names.len() - SHOWN))
}

/// Why units and clusters do not go together, if some of the rows' units lie in two clusters.
pub(super) fn split_units(frame: &AnalysisFrame, rows: &[u32]) -> Option<String> {
    let (units, clusters) = (frame.units.as_ref()?, frame.clusters.as_ref()?);
    let split = differing_units(&gather(&units.rows, rows), &gather(&clusters.numbers(), rows));
    (split > 0).then(|| {
        format!(
            "{} rows in two clusters or more: a unit must lie within one",
            count(split, "unit has", "units have")
        )
    })
}

/// Why the units are not those of the data, if ids repeat over repositories: rows of different data
/// points would be averaged.
pub(super) fn repeated_ids(frame: &AnalysisFrame, unit: &str, rows: &[u32]) -> Option<String> {
    let (units, repositories) = (frame.units.as_ref()?, frame.origins.as_ref()?);
    let codes = gather(&repositories.numbers(), rows);
    let split = differing_units(&gather(&units.rows, rows), &codes);
    (split > 0).then(|| {
        format!(
            "{} rows of several repositories (`{REPOSITORY}`): ids that repeat are not one data \
             point (make them unique in a `sql` step, or confirm them by `cluster: {unit}`)",
            count(split, "unit has", "units have")
        )
    })
}

/// Why doubles do not represent a column in these rows, or do not distinguish its values.
pub(super) fn lost_in_rounding(
    frame: &AnalysisFrame,
    name: &str,
    rows: impl Iterator<Item = u32> + Clone,
    least_range: f64,
) -> Option<String> {
    let column = &frame.numbers[name];
    let values = rows.map(|row| column[row as usize]);
    lost_digits(name, frame.integers.contains(name), values, least_range)
}

/// A row that carries more of the variance than this decides the standard error.
const LARGE_SHARE: f64 = 0.2;
/// The chance of a flag in normal data.
const FALSE_ALARM: f64 = 0.001;
/// With fewer rows off the most frequent value, an interval of t does not hold.
const FEW_OTHERS: usize = 10;

/// Sentences on suspect rows behind an estimate.
pub(super) fn remarks(set: &RowSet, comparison: &Comparison) -> Vec<String> {
    if comparison.refused.is_some() {
        return Vec::new();
    }
    let mut remarks = Vec::new();
    match few_others(&comparison.values) {
        Some((value, others)) => remarks.push(format!(
            "`{}` is {} in all but {}: so few decide the estimate that its interval may not hold.",
            comparison.outcome,
            four_digits(value),
            count(others, "row", "rows")
        )),
        None => remarks.extend(heavy_tail(set, comparison)),
    }
    remarks.extend(copies(set, comparison));
    remarks
}

/// The most frequent value and how many rows have another one, if these are too few.
fn few_others(values: &[f64]) -> Option<(f64, usize)> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let runs = sorted.chunk_by(|a, b| a == b);
    let longest = runs.max_by_key(|run| run.len())?;
    let others = values.len() - longest.len();
    let few = others < FEW_OTHERS / 2 || (others < FEW_OTHERS && 20 * others < values.len());
    (few && others > 0).then_some((longest[0], others))
}

/// One row (or pair) that carries much of the variance: more than one in a thousand samples of
/// normal numbers has (Grubbs 1969), and a fifth at least.
fn heavy_tail(set: &RowSet, comparison: &Comparison) -> Option<String> {
    let (deviations, what) = match set.pairs(comparison.near_zero()) {
        Some(pairs) => (centred(&pairs.differences(), |_| 0), "pair"),
        None => (centred(comparison.near_zero(), |row| usize::from(set.treated[row])), "row"),
    };
    let n = deviations.len() as f64;
    let largest = deviations.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    if n < 5.0 || largest <= 0.0 || !largest.is_finite() {
        return None;
    }
    let sum: f64 = deviations.iter().map(|x| (x / largest).powi(2)).sum();
    let t = tail::t_quantile(1.0 - FALSE_ALARM / (2.0 * n), n - 2.0).powi(2);
    let normal = (n - 1.0) / n * t / (n - 2.0 + t);
    let share = sum.recip();
    (share > normal.max(LARGE_SHARE)).then(|| {
        format!(
            "`{}` has a heavy tail: one {what} of {} carries {} % of the variance, so that the \
             interval may not hold; look at the robust locations in `sensitivity`.",
            comparison.outcome,
            thousands(deviations.len()),
            (100.0 * share).round()
        )
    })
}

/// Distances from the mean of the group that a value belongs to.
fn centred(values: &[f64], group: impl Fn(usize) -> usize) -> Vec<f64> {
    let mut sums = [(0.0, 0.0); 2];
    for (at, value) in values.iter().enumerate() {
        let (sum, n) = &mut sums[group(at)];
        *sum += value;
        *n += 1.0;
    }
    let mean = |at: usize| sums[group(at)].0 / sums[group(at)].1;
    values.iter().enumerate().map(|(at, value)| value - mean(at)).collect()
}

/// Rows of a cross-section that are copies of others, where that is not chance: some column has
/// nearly as many values as there are different rows.
fn copies(set: &RowSet, comparison: &Comparison) -> Option<String> {
    if set.units.is_some() || set.clusters.is_some() {
        return None;
    }
    let columns: Vec<&[f64]> =
        set.covariates.iter().chain([&comparison.values]).map(Vec::as_slice).collect();
    let n = set.rows.len();
    let mut seen: HashMap<Vec<u64>, usize> = HashMap::with_capacity(n);
    for row in 0..n {
        let mut key = vec![u64::from(set.treated[row])];
        key.extend(columns.iter().map(|column| (column[row] + 0.0).to_bits()));
        *seen.entry(key).or_default() += 1;
    }
    let copied: usize = seen.values().filter(|times| **times > 1).sum();
    if 4 * copied < n {
        return None;
    }
    let distinct = |column: &&[f64]| {
        let mut values: Vec<u64> = column.iter().map(|value| (value + 0.0).to_bits()).collect();
        values.sort_unstable();
        values.dedup();
        values.len()
    };
    let finest = columns.iter().map(distinct).max().unwrap_or_default();
    (10 * finest > 9 * seen.len() && seen.len() > 10).then(|| {
        format!(
            "{} of {} rows are copies of others in arm, outcome and covariates: if they are not \
             separate observations, the interval is too narrow; remove them, or name what they \
             share as `unit` or `cluster`.",
            thousands(copied),
            thousands(n)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn arms_that_differ_by_case_or_space_are_named() {
        let warnings = similar_arms("arm", &texts(&["c", "t", "T", "t ", "C D", "c  d"]));
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings[0].contains(r#""C D" and "c  d""#), "{warnings:?}");
        assert!(warnings[1].contains(r#""T", "t" and "t ""#), "{warnings:?}");
        assert!(similar_arms("arm", &texts(&["a", "b"])).is_empty());
    }

    #[test]
    fn a_list_of_names_stays_short() {
        let names: Vec<String> = (0..4000).map(|name| name.to_string()).collect();
        let list = short_list(&names);
        assert!(list.ends_with("`7` and 3,992 others") && list.len() < 100, "{list}");
        assert_eq!(short_list(&names[..2]), name_list(&names[..2]));
    }

    #[test]
    fn few_values_beside_the_most_frequent_are_flagged() {
        let mut values = vec![0.0; 200];
        assert_eq!(few_others(&values), None);
        values[7] = 3.0;
        assert_eq!(few_others(&values), Some((0.0, 1)));
        values[..9].fill(3.0);
        assert_eq!(few_others(&values), Some((0.0, 9)));
        values[..10].fill(3.0);
        assert_eq!(few_others(&values), None);
        let fine: Vec<f64> = (0..200).map(f64::from).collect();
        assert_eq!(few_others(&fine), None);
    }
}
