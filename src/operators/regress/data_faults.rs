//! What is wrong with columns although every number could be computed: arms that differ by case or
//! white space only, units in two clusters, integers beyond the precision of a double.
//!
//! Does not live here: rows that decide an estimate (`suspect_rows`).

use std::collections::{BTreeMap, HashMap};

use super::super::prose::{count, four_digits, name_list, thousands};
use super::frame::AnalysisFrame;

/// Integers from here on are not all doubles: 2^53.
const EXACT: f64 = 9_007_199_254_740_992.0;

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

/// Texts as a list with commas and an `and`.
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
    // The first cluster of a unit, and whether there is another one.
    let mut known: HashMap<u32, (u32, bool)> = HashMap::new();
    for row in rows {
        let (unit, cluster) = (units.rows()[*row as usize], clusters.rows()[*row as usize]);
        let entry = known.entry(unit).or_insert((cluster, false));
        entry.1 |= entry.0 != cluster;
    }
    let split = known.values().filter(|(_, split)| *split).count();
    (split > 0).then(|| {
        format!(
            "{} rows in two clusters or more: a unit must lie within one",
            count(split, "unit has", "units have")
        )
    })
}

/// Why the values of a column are not what they are in the file, or tell no rows apart, as doubles.
pub(super) fn lost_in_rounding(
    frame: &AnalysisFrame,
    name: &str,
    rows: &[u32],
    least_range: f64,
) -> Option<String> {
    let column = &frame.numbers[name];
    let values = || rows.iter().map(|row| column[*row as usize]).filter(|x| x.is_finite());
    if frame.integers.contains(name) {
        let beyond = values().filter(|x| x.abs() >= EXACT).count();
        if beyond > 0 {
            return Some(format!(
                "`{name}` has integers of 2^53 or more in {}, which a double does not tell apart: \
                 subtract a constant from the column, or divide it, before",
                count(beyond, "row", "rows")
            ));
        }
    }
    let (low, high) = values()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
    let largest = low.abs().max(high.abs());
    (low < high && high - low <= least_range * largest).then(|| {
        format!(
            "`{name}` varies by {} only, at a size of {}, which is lost in the rounding of \
             doubles: subtract a constant from the column before",
            four_digits(high - low),
            four_digits(largest)
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
}
