//! Instruments for linear models: variables that affect the outcome through the treatment only.
//!
//! Z is a conditional instrument given W (Brito and Pearl 2002; van der Zander, Textor and
//! Liskiewicz 2015), here for the total effect, if, without the edges out of the treatment, W
//! d-separates Z from the outcome but not from the treatment. Z and W are observed, and none is the
//! treatment, the outcome or a descendant of either. Otherwise a descendant of the treatment, which
//! its confounders reach through it, could seem to be an instrument, and a mediator in W would
//! remove a part of the effect.
//!
//! Z need not be a cause of the treatment. W may contain descendants of Z, and may even connect Z
//! with the treatment by a common effect that is given (such as X4 between X1 and X2). Each W is
//! listed of which no proper subset suffices for the same Z.

use super::dag::CausalGraph;
use super::error::QueryError;
use super::separation::Separation;
use super::separation::reachable;
use super::subsets::{MOST_WORK, Meter};
use super::subsets::{minimal_subsets, relevant};

/// An instrument with a conditioning set.
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
    /// The list is complete. Deciding if a variable is an instrument given some set is NP-hard (van
    /// der Zander et al. 2015). If the search ends early, the conditioning sets that are minimal
    /// separators are still listed.
    pub complete: bool,
}

impl CausalGraph {
    /// True if a variable is an instrument given a set, minimal or not: without the edges that
    /// leave the treatment, the set separates it from the outcome and not from the treatment.
    ///
    /// # Errors
    /// [`QueryError::UnknownNode`] for a name that the graph does not have, and
    /// [`QueryError::SameNode`] if treatment and outcome are the same.
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
    /// As [`CausalGraph::is_valid_instrument`].
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
                    // A minimal separator has no separating proper subset.
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
