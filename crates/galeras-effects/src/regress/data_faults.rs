//! What is wrong with columns although every number could be computed: arms that differ by case or
//! white space only, units in two clusters, numbers beyond the precision of a double.
//!
//! Does not live here: rows that decide an estimate (`suspect_rows`), what that precision is
//! (`far_numbers`).

use std::collections::{BTreeMap, HashMap};

use super::frame::AnalysisFrame;
use galeras_base::prose::{count, name_list, thousands};
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

/// Why the values of a column in these rows are not what they are in the file, or tell no rows apart,
/// as doubles.
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
