//! Causal graphs in DOT and dagitty: what is read, and answers that must hold by definition.

use galeras_causal::{CausalGraph, Identification, identify};

/// Larger graphs are read only: all their sets would take long to check.
const MOST_NAMES: usize = 9;

/// Reads a graph and asks about it.
pub(crate) fn questions(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let graph = match CausalGraph::parse(&text) {
        Ok(graph) => graph,
        Err(error) => {
            assert!(text.is_char_boundary(error.offset), "{error:?}");
            assert!(!error.message.is_empty());
            return;
        }
    };
    let names: Vec<&str> = graph.names().iter().map(String::as_str).collect();
    assert!(names.is_sorted_by(|a, b| a < b));
    if names.len() > MOST_NAMES {
        return;
    }
    for x in &names {
        for y in &names {
            if x == y {
                assert!(identify(&graph, x, y).is_err());
            } else {
                pair(&graph, x, y);
            }
        }
    }
    for independence in graph.implied_independencies().list {
        let (a, b) = (independence.a.as_str(), independence.b.as_str());
        for set in &independence.given {
            let set = borrowed(set);
            assert!(graph.d_separated(&[a], &[b], &set).unwrap(), "{a} {b} | {set:?}");
            assert!(graph.d_separated(&[b], &[a], &set).unwrap(), "{b} {a} | {set:?}");
            without_one(&set, |smaller| {
                assert!(!graph.d_separated(&[a], &[b], smaller).unwrap(), "{a} {b} | {smaller:?}");
            });
        }
    }
}

fn pair(graph: &CausalGraph, x: &str, y: &str) {
    let report = identify(graph, x, y).unwrap();
    assert_eq!(report.directed_path, graph.has_directed_path(x, y).unwrap());
    let backdoor = graph.minimal_backdoor(x, y).unwrap();
    for set in &backdoor.sets {
        let set = borrowed(set);
        assert!(graph.is_valid_backdoor(x, y, &set).unwrap(), "{x} -> {y}: {set:?}");
        without_one(&set, |smaller| {
            assert!(!graph.is_valid_backdoor(x, y, smaller).unwrap(), "{x} -> {y}: {smaller:?}");
        });
    }
    for instrument in graph.instruments(x, y).unwrap().list {
        let given = borrowed(&instrument.given);
        assert!(graph.is_valid_instrument(&instrument.name, x, y, &given).unwrap());
    }
    let _ = graph.minimal_frontdoor(x, y).unwrap();
    match report.by {
        Identification::Backdoor { adjustment } => {
            assert!(backdoor.sets.contains(&adjustment));
            if let Some(set) = &graph.optimal_adjustment(x, y).unwrap() {
                assert!(graph.is_valid_backdoor(x, y, &borrowed(set)).unwrap(), "{set:?}");
            }
        }
        Identification::Frontdoor { .. }
        | Identification::Instrument { .. }
        | Identification::NotIdentified { .. } => {
            assert!(backdoor.sets.is_empty() || graph.is_latent(x) || graph.is_latent(y));
        }
    }
}

fn borrowed(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

/// Calls `check` with the set without each of its members.
fn without_one(set: &[&str], check: impl Fn(&[&str])) {
    for left_out in 0..set.len() {
        let mut smaller = set.to_vec();
        smaller.remove(left_out);
        check(&smaller);
    }
}
