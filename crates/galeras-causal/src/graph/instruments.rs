//! Instruments, for linear models: what moves the treatment, and the outcome through it only.
//!
//! Z is a conditional instrument given W (Brito and Pearl 2002; van der Zander, Textor and
//! Liskiewicz 2015), here for the total effect, if with the edges out of the treatment removed
//! Z and the outcome are d-separated by W, and Z and the treatment are not. Z and W are observed;
//! none is the treatment, the outcome or a descendant of either. Without the last condition a
//! descendant of the treatment, which its confounders reach through it, could seem to be an
//! instrument, and a mediator in W would take away a part of the effect.
//!
//! Z need not be a cause of the treatment. W may hold descendants of Z, and may even be what
//! connects Z with the treatment: a common effect that is given (such as X4 between X1 and X2).
//! Listed is each W of which no proper subset does as well for the same Z.

use super::dag::CausalGraph;
use super::error::QueryError;
use super::separation::Separation;
use super::separation::reachable;
use super::subsets::{MOST_WORK, Meter};
use super::subsets::{minimal_subsets, relevant};

/// An instrument and the variables that have to be adjusted for with it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instrument {
    /// The name of the instrument.
    pub name: String,
    /// The conditioning set, sorted. No proper subset of it makes `name` an instrument.
    pub given: Vec<String>,
}

/// Instruments, sorted by name and then by conditioning set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruments {
    /// Each instrument with each of its minimal conditioning sets.
    pub list: Vec<Instrument>,
    /// Whether these are all: whether a variable is an instrument given some set cannot be decided
    /// fast in general (NP-hard, van der Zander et al. 2015). When the search ends early, the
    /// conditioning sets that are minimal separators are still listed.
    pub complete: bool,
}

impl CausalGraph {
    /// Whether a variable is an instrument given a set, minimal or not: without the edges that
    /// leave the treatment, the set separates it from the outcome and not from the treatment.
    ///
    /// # Errors
    /// [`QueryError::UnknownNode`] for a name that the graph does not have, and
    /// [`QueryError::SameNode`] if treatment and outcome are one.
    pub fn is_valid_instrument(
        &self,
        instrument: &str,
        treatment: &str,
        outcome: &str,
        given: &[&str],
    ) -> Result<bool, QueryError> {
        let (x, y) = self.ends(treatment, outcome)?;
        let (instrument, given) = (self.nodes(&[instrument])?, self.nodes(given)?);
        let below = self.whole().descendants(&[x, y], &[]);
        let allowed = |node: &usize| self.observed(*node) && !below[*node];
        if !instrument.iter().chain(&given).all(allowed) || given.contains(&instrument[0]) {
            return Ok(false);
        }
        let cut = self.mask(&[x]);
        let view = self.without_edges_from(&cut);
        let reached = reachable(view, &instrument, &given, &mut Meter::new(0));
        Ok(reached[x] && !reached[y])
    }

    /// All instruments with all their minimal conditioning sets.
    ///
    /// # Errors
    /// [`QueryError::UnknownNode`] for a name that the graph does not have, and
    /// [`QueryError::SameNode`] if treatment and outcome are one.
    pub fn instruments(&self, treatment: &str, outcome: &str) -> Result<Instruments, QueryError> {
        let (x, y) = self.ends(treatment, outcome)?;
        let below = self.whole().descendants(&[x, y], &[]);
        let cut = self.mask(&[x]);
        let view = self.without_edges_from(&cut);
        let mut allowed: Vec<bool> =
            (0..self.size()).map(|node| self.observed(node) && !below[node]).collect();
        let possible: Vec<usize> = (0..self.size()).filter(|&node| allowed[node]).collect();
        let (mut search, mut cheap) = (Meter::new(MOST_WORK), Meter::new(MOST_WORK));
        let mut list = Vec::new();
        let mut complete = true;
        for &z in &possible {
            if cheap.is_empty() {
                complete = false;
                break;
            }
            allowed[z] = false;
            let separation = Separation::new(view, z, y, &allowed);
            if separation.first(&mut cheap).is_some() {
                let matters = relevant(view, &[x, y, z]);
                let candidates: Vec<usize> =
                    possible.iter().copied().filter(|&v| v != z && matters[v]).collect();
                let (mut sets, all) = minimal_subsets(&candidates, &mut search, |set, meter| {
                    let reached = reachable(view, &[z], set, meter);
                    reached[x] && !reached[y]
                });
                if !all {
                    complete = false;
                    // A minimal separator has no proper subset that separates.
                    let (separators, _) = separation.all(&mut cheap);
                    sets.extend(separators.into_iter().filter(|set| {
                        let reached = reachable(view, &[z], set, &mut cheap);
                        reached[x]
                    }));
                    sets.sort_unstable();
                    sets.dedup();
                }
                let name = &self.names[z];
                list.extend(
                    sets.iter()
                        .map(|set| Instrument { name: name.clone(), given: self.named(set) }),
                );
            }
            allowed[z] = true;
        }
        Ok(Instruments { list, complete })
    }
}
