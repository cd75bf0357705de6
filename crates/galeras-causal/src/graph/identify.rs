//! Chooses a way to estimate an effect, and explains why there is none.

use super::dag::{CausalGraph, QueryError, SHOWN};
use super::separation::open_path;

/// A way to estimate the effect of a treatment on an outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identification {
    /// Adjusting for observed variables suffices.
    Backdoor {
        /// The set to adjust for: the smallest minimal one, ties broken by name.
        adjustment: Vec<String>,
    },
    /// The effect runs through observed mediators that are not confounded.
    Frontdoor {
        /// The smallest minimal set of mediators.
        mediators: Vec<String>,
    },
    /// A variable affects the treatment and nothing else. This identifies an effect that is linear
    /// and the same for all units; the criteria above need neither.
    Instrument {
        /// The name of the instrument.
        instrument: String,
        /// The variables to adjust for with it.
        given: Vec<String>,
    },
    /// No criterion identifies the effect.
    NotIdentified {
        /// The path that stays open, by name.
        reason: String,
    },
}

/// The result of [`identify`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentificationReport {
    /// The way to estimate it.
    pub by: Identification,
    /// A directed path leads from treatment to outcome; without one the effect is zero.
    pub directed_path: bool,
    /// Remarks for the reader, in sentences.
    pub notes: Vec<String>,
}

/// Identifies the total effect of `treatment` on `outcome` by backdoor adjustment, else by
/// frontdoor adjustment, else by an instrument in a linear model. Effects that only a general
/// algorithm (Shpitser and Pearl 2006) identifies count as not identified. Errors are those of
/// [`CausalGraph::is_valid_backdoor`].
pub fn identify(
    graph: &CausalGraph,
    treatment: &str,
    outcome: &str,
) -> Result<IdentificationReport, QueryError> {
    let (x, y) = graph.ends(treatment, outcome)?;
    let whole = graph.whole();
    let directed_path = whole.descendants(&[x], &[])[y];
    let mut notes = Vec::new();
    if !directed_path {
        notes.push(format!(
            "no directed path leads from `{treatment}` to `{outcome}`: the graph says that the \
             effect is zero, and an estimate tests that"
        ));
    }
    if whole.descendants(&[y], &[])[x] {
        notes.push(format!("`{outcome}` is a cause of `{treatment}` in this graph"));
    }
    for (node, role) in [(x, "treatment"), (y, "outcome")] {
        if graph.latent[node] {
            let reason = format!("the {role} `{}` is latent", graph.names[node]);
            let by = Identification::NotIdentified { reason };
            return Ok(IdentificationReport { by, directed_path, notes });
        }
    }
    let mut note_incomplete = |what: &str, complete: bool| {
        if !complete {
            notes.push(format!("not all {what} are listed: the graph has too many"));
        }
    };
    let backdoor = graph.minimal_backdoor(treatment, outcome)?;
    if let Some(adjustment) = backdoor.smallest().cloned() {
        note_incomplete("minimal adjustment sets", backdoor.complete);
        let by = Identification::Backdoor { adjustment };
        return Ok(IdentificationReport { by, directed_path, notes });
    }
    let frontdoor = graph.minimal_frontdoor(treatment, outcome)?;
    if let Some(mediators) = frontdoor.smallest().cloned() {
        note_incomplete("minimal frontdoor sets", frontdoor.complete);
        let by = Identification::Frontdoor { mediators };
        return Ok(IdentificationReport { by, directed_path, notes });
    }
    let instruments = graph.instruments(treatment, outcome)?;
    let by = match instruments.list.into_iter().min_by_key(|instrument| instrument.given.len()) {
        Some(best) => {
            note_incomplete("instruments", instruments.complete);
            notes.push("an instrument identifies the effect in a linear model only".to_owned());
            Identification::Instrument { instrument: best.name, given: best.given }
        }
        None => {
            let search = match instruments.complete {
                true => "no observed variable is an instrument",
                false => "no instrument was found in the time given",
            };
            let open = graph.why_open(x, y);
            let reason =
                format!("{open}; no observed variables meet the frontdoor criterion, and {search}");
            Identification::NotIdentified { reason }
        }
    };
    Ok(IdentificationReport { by, directed_path, notes })
}

impl CausalGraph {
    /// Names a backdoor path that no set of observed variables blocks; one must exist.
    fn why_open(&self, x: usize, y: usize) -> String {
        let allowed = self.adjustable(x, y);
        let cut = self.mask(&[x]);
        let view = self.without_edges_from(&cut);
        // A path without any adjustable variable explains most.
        if let Some(path) = open_path(view, x, y, &allowed, true) {
            let shown = self.path_text(&path);
            let inner = path.get(1..path.len() - 1).unwrap_or_default();
            if inner.is_empty() {
                return format!("`{shown}` cannot be blocked: the outcome causes the treatment");
            }
            let mut causes: Vec<String> = Vec::new();
            for &node in inner.iter().take(SHOWN) {
                causes.push(match self.names.get(node) {
                    None => "`<->` is a latent common cause".to_owned(),
                    Some(name) if self.latent[node] => format!("`{name}` is latent"),
                    Some(name) => format!("`{name}` is a descendant of the treatment"),
                });
            }
            causes.dedup();
            return format!("`{shown}` cannot be blocked: {}", join_names(&causes));
        }
        // Otherwise adjusting for variables on one path opens another.
        let above = view.ancestors(&[x, y]);
        let given: Vec<bool> = (0..self.size()).map(|node| allowed[node] && above[node]).collect();
        let Some(path) = open_path(view, x, y, &given, false) else {
            return "no observed variables block every backdoor path".to_owned();
        };
        let below_collider: Vec<String> = path
            .windows(3)
            .filter(|three| {
                self.children[three[0]].binary_search(&three[1]).is_ok()
                    && self.children[three[2]].binary_search(&three[1]).is_ok()
            })
            .filter_map(|three| self.names.get(three[1]).map(|name| format!("`{name}`")))
            .take(SHOWN)
            .collect();
        format!(
            "`{}` is opened by adjusting for {} or a descendant, and without that another \
             backdoor path stays open",
            self.path_text(&path),
            join_names(&below_collider)
        )
    }

    /// A path as `X <- U -> Y`; an unnamed common cause as `X <-> Y`.
    fn path_text(&self, path: &[usize]) -> String {
        let mut text = String::new();
        let mut previous: Option<usize> = None;
        for (place, &node) in path.iter().enumerate() {
            if place == SHOWN {
                text.push_str(" … ");
                if let Some(name) = path.last().and_then(|&last| self.names.get(last)) {
                    text.push_str(name);
                }
                return text;
            }
            let Some(name) = self.names.get(node) else {
                previous = None;
                continue;
            };
            if place > 0 {
                text.push_str(match previous {
                    None => " <-> ",
                    Some(before) if self.children[before].binary_search(&node).is_ok() => " -> ",
                    Some(_) => " <- ",
                });
            }
            text.push_str(name);
            previous = Some(node);
        }
        text
    }
}

fn join_names(parts: &[String]) -> String {
    match parts {
        [] => "a collider".to_owned(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
