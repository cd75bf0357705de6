//! Cells of matrix steps: their keys and values, and how cells of several steps combine.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use galeras_workflow::AxisPoint;

/// The place of a cell in its matrices, the outermost first.
pub type Cell = Vec<AxisPoint>;

fn is_scalar(value: &Value) -> bool {
    !matches!(value, Value::Array(_) | Value::Object(_))
}

/// A cell as written after a step's name: `[model=a,seed=1]`, or nothing.
pub fn cell_suffix(cell: &Cell) -> String {
    if cell.is_empty() {
        return String::new();
    }
    let keys = cell.iter().map(|AxisPoint { key, value, .. }| format!("{key}={}", plain(value)));
    format!("[{}]", keys.collect::<Vec<_>>().join(","))
}

/// The scalar under a name in a cell: the value of a key, or one that belongs to it.
pub(super) fn lookup<'a>(cell: &'a Cell, name: &str) -> Option<&'a Value> {
    cell.iter().find_map(|key| match key.key == name {
        true => Some(&key.value),
        false => {
            let mut values = key.values.iter();
            values.find(|(n, value)| n == name && is_scalar(value)).map(|(_, value)| value)
        }
    })
}

pub(super) fn key_value<'a>(cell: &'a Cell, key: &str) -> Option<&'a Value> {
    cell.iter().find(|k| k.key == key).map(|k| &k.value)
}

pub(super) fn has_name(cell: &Cell, name: &str) -> bool {
    cell.iter().any(|k| k.key == name || k.values.iter().any(|(n, _)| n == name))
}

/// The values of `${{ matrix.NAME }}` in a cell.
pub(super) fn matrix_values(cell: &Cell) -> Map<String, Value> {
    let mut values = Map::new();
    for key in cell {
        values.insert(key.key.clone(), key.value.clone());
        // A mapping replaces the scalar that names it.
        values.extend(key.values.iter().cloned());
    }
    values
}

/// The columns of a cell in a united table: its keys, and the scalars that belong to them.
pub fn cell_columns(cell: &Cell) -> impl Iterator<Item = (&str, &Value)> {
    cell.iter().flat_map(|key| {
        let scalars = key.values.iter().filter(|(_, value)| is_scalar(value));
        std::iter::once((key.key.as_str(), &key.value))
            .chain(scalars.map(|(name, value)| (name.as_str(), value)))
    })
}

/// The keys of the cells that a selection fixes, with their values as written: those that it names,
/// and those for which it leaves only one value.
pub(super) fn fixed_keys(
    chosen: &[&Cell],
    selection: &[(String, String)],
) -> HashMap<String, String> {
    let named = |name: &str| selection.iter().any(|(n, _)| n == name);
    let mut fixed: HashMap<String, String> = HashMap::new();
    let mut several: HashSet<&str> = HashSet::new();
    for key in chosen.iter().copied().flatten() {
        if !named(&key.key) && !key.values.iter().any(|(name, _)| named(name)) {
            continue;
        }
        let value = plain(&key.value);
        match fixed.get(&key.key) {
            Some(known) if *known != value => {
                several.insert(&key.key);
            }
            Some(_) => {}
            None => {
                fixed.insert(key.key.clone(), value);
            }
        }
    }
    fixed.retain(|key, _| !several.contains(key.as_str()));
    fixed
}

/// True if a cell has all values of a selection whose names it knows.
pub(super) fn is_selected(cell: &Cell, selection: &[(String, String)]) -> bool {
    selection.iter().all(|(k, v)| lookup(cell, k).is_none_or(|value| plain(value) == *v))
}

/// Joins every cell with every other one that agrees with it, without the keys that are fixed in
/// the others, each combination once; `None` if there are more than `most`.
pub(super) fn join(
    cells: &[Cell],
    others: &[&Cell],
    fixed: &HashMap<String, String>,
    most: usize,
) -> Option<Vec<Cell>> {
    // Group the others by the keys that all cells of both sides have: only these groups can agree.
    let everywhere = |key: &str| {
        cells.iter().all(|c| key_value(c, key).is_some())
            && others.iter().all(|c| key_value(c, key).is_some())
    };
    let keys = others.first().map_or(&[][..], |cell| cell.as_slice()).iter().map(|k| &k.key);
    let shared: Vec<&String> =
        keys.filter(|key| !fixed.contains_key(*key) && everywhere(key)).collect();
    let values = |cell: &Cell| -> Vec<Option<String>> {
        shared.iter().map(|key| key_value(cell, key).map(identity)).collect()
    };
    let mut places: HashMap<Vec<Option<String>>, Vec<&Cell>> = HashMap::new();
    for other in others {
        places.entry(values(other)).or_default().push(other);
    }
    let mut joined: Vec<Cell> = Vec::new();
    let mut seen: HashSet<Vec<(String, String)>> = HashSet::new();
    for cell in cells {
        for other in places.get(&values(cell)).into_iter().flatten() {
            let Some(merged) = merge(cell, other, fixed) else { continue };
            if seen.insert(merged.iter().map(|k| (k.key.clone(), identity(&k.value))).collect()) {
                joined.push(merged);
            }
            if joined.len() > most {
                return None;
            }
        }
    }
    Some(joined)
}

/// A text that is the same for equal values only.
fn identity(value: &Value) -> String {
    match value.as_f64() {
        // -0.0 equals 0.0.
        Some(0.0) if value.is_f64() => "0.0".to_string(),
        _ => value.to_string(),
    }
}

/// Merges two cells, without the keys that are fixed in the second; `None` if they disagree. The
/// first decides the values that belong to a shared key.
fn merge(cell: &Cell, other: &Cell, fixed: &HashMap<String, String>) -> Option<Cell> {
    let mut merged = cell.clone();
    for key in other {
        if fixed.contains_key(&key.key) {
            continue;
        }
        match merged.iter_mut().find(|k| k.key == key.key) {
            Some(known) if known.value != key.value => return None,
            Some(known) => {
                for (name, value) in &key.values {
                    if !known.values.iter().any(|(n, _)| n == name) {
                        known.values.push((name.clone(), value.clone()));
                    }
                }
            }
            None => merged.push(key.clone()),
        }
    }
    Some(merged)
}

/// A scalar without quotes.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(s) => s.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(key: &str, value: Value, values: &[(&str, Value)]) -> AxisPoint {
        let values = values.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
        AxisPoint { key: key.into(), value, values }
    }

    fn selection(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect()
    }

    #[test]
    fn expressions_get_the_mapping_and_names_the_scalar() {
        let whole = json!({"name": "a", "base_url": "x"});
        let cell = vec![
            key("seed", json!(1), &[]),
            key("model", json!("a"), &[("model", whole.clone())]),
            key("kind", json!("k"), &[("least", json!(2)), ("words", json!(["w"]))]),
        ];
        assert_eq!(cell_suffix(&cell), "[seed=1,model=a,kind=k]");
        let values = matrix_values(&cell);
        assert_eq!(values["model"], whole);
        assert_eq!((&values["least"], &values["words"]), (&json!(2), &json!(["w"])));
        let columns: Vec<&str> = cell_columns(&cell).map(|(name, _)| name).collect();
        assert_eq!(columns, ["seed", "model", "kind", "least"]);
        assert_eq!(lookup(&cell, "model"), Some(&json!("a")));
        assert!(lookup(&cell, "words").is_none() && has_name(&cell, "words"));
    }

    #[test]
    fn a_selection_fixes_a_key_by_what_comes_with_it_if_one_value_is_left() {
        let cell = |model: &str, provider: &str| {
            vec![key("model", json!(model), &[("provider", json!(provider))])]
        };
        let all = [cell("a", "p"), cell("b", "p"), cell("c", "q")];
        let fixed = |provider: &str| {
            let selection = selection(&[("provider", provider)]);
            let chosen: Vec<&Cell> = all.iter().filter(|c| is_selected(c, &selection)).collect();
            fixed_keys(&chosen, &selection)
        };
        assert_eq!(fixed("q"), HashMap::from([("model".into(), "c".into())]));
        assert!(fixed("p").is_empty());
    }

    #[test]
    fn cells_with_one_key_agree_and_keep_what_comes_with_it() {
        let plain = [vec![key("model", json!("a"), &[])], vec![key("model", json!("b"), &[])]];
        let rich = [
            vec![key("model", json!("b"), &[("url", json!("y"))])],
            vec![key("model", json!("c"), &[("url", json!("z"))])],
        ];
        let joined = join(&plain, &rich.iter().collect::<Vec<_>>(), &HashMap::new(), 10).unwrap();
        assert_eq!(joined, [rich[0].clone()]);
        let other = [vec![key("seed", json!(1), &[])], vec![key("seed", json!(2), &[])]];
        let product = join(&plain, &other.iter().collect::<Vec<_>>(), &HashMap::new(), 10).unwrap();
        assert_eq!(product.len(), 4);
        assert!(join(&plain, &other.iter().collect::<Vec<_>>(), &HashMap::new(), 3).is_none());
    }
}
