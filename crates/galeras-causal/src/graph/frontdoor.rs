//! Frontdoor adjustment: observed mediators that carry the whole effect and are not confounded.
//!
//! Pearl's frontdoor criterion (2009, definition 3.3.3), for a set M: it intercepts every directed
//! path from treatment to outcome; no backdoor path from the treatment to a member is open; and the
//! treatment blocks every backdoor path from M to the outcome. The last condition is read for the
//! whole set, as in Jeong, Tian and Bareinboim (2022) and Wienobst, van der Zander and Liskiewicz
//! (2024): the treatment d-separates M and the outcome in the graph without the edges out of M.

use super::dag::CausalGraph;
use super::error::QueryError;
use super::separation::reachable;
use super::subsets::VariableSets;
use super::subsets::minimal_subsets;
use super::subsets::{MOST_WORK, Meter};

impl CausalGraph {
    /// All minimal sets that meet the frontdoor criterion; none if no directed path leads from
    /// treatment to outcome.
    ///
    /// # Errors
    /// [`QueryError::UnknownNode`] for a name that the graph does not have, and
    /// [`QueryError::SameNode`] if treatment and outcome are the same.
    pub fn minimal_frontdoor(
        &self,
        treatment: &str,
        outcome: &str,
    ) -> Result<VariableSets, QueryError> {
        let (x, y) = self.ends(treatment, outcome)?;
        let whole = self.whole();
        if !whole.descendants(&[x], &[])[y] {
            return Ok(VariableSets { sets: Vec::new(), complete: true });
        }
        let mut meter = Meter::new(MOST_WORK);
        let greatest = self.greatest_frontdoor(x, y);
        if !self.intercepts(x, y, &greatest) {
            return Ok(VariableSets { sets: Vec::new(), complete: true });
        }
        let (mut sets, complete) = minimal_subsets(&greatest, &mut meter, |set, meter| {
            meter.spend(self.size());
            self.intercepts(x, y, set) && self.blocks_backdoors_of_set(x, y, set, meter)
        });
        if sets.is_empty() {
            sets.push(self.shrink(x, y, greatest));
        }
        Ok(VariableSets::new(self, (sets, complete)))
    }

    /// The union of the sets that meet the last two conditions, which meets them because they are
    /// closed under union (Jeong, Tian and Bareinboim 2022). Only ancestors of the outcome are
    /// considered, since minimal sets have no other members.
    fn greatest_frontdoor(&self, x: usize, y: usize) -> Vec<usize> {
        let mut meter = Meter::new(0);
        let cut = self.mask(&[x]);
        let confounded = reachable(self.without_edges_from(&cut), &[x], &[], &mut meter);
        let above = self.whole().ancestors(&[y]);
        let mut set: Vec<usize> = (0..self.size())
            .filter(|&node| self.observed(node) && node != x && node != y)
            .filter(|&node| above[node] && !confounded[node])
            .collect();
        loop {
            // d-connection is symmetric, so the search starts at the outcome.
            let cut = self.mask(&set);
            let reached = reachable(self.without_edges_from(&cut), &[y], &[x], &mut meter);
            let before = set.len();
            set.retain(|&node| !reached[node]);
            if set.len() == before {
                return set;
            }
        }
    }

    fn intercepts(&self, x: usize, y: usize, set: &[usize]) -> bool {
        !self.whole().descendants(&[x], &self.mask(set))[y]
    }

    fn blocks_backdoors_of_set(
        &self,
        x: usize,
        y: usize,
        set: &[usize],
        meter: &mut Meter,
    ) -> bool {
        let cut = self.mask(set);
        let reached = reachable(self.without_edges_from(&cut), &[y], &[x], meter);
        !set.iter().any(|&node| reached[node])
    }

    /// Drops members as long as the set stays valid: one set if there was no time to find all.
    /// Afterwards no single member can be dropped.
    fn shrink(&self, x: usize, y: usize, mut set: Vec<usize>) -> Vec<usize> {
        let mut meter = Meter::new(MOST_WORK);
        let mut place = 0;
        while place < set.len() && !meter.is_empty() {
            let mut smaller = set.clone();
            smaller.remove(place);
            meter.spend(self.size());
            if self.intercepts(x, y, &smaller)
                && self.blocks_backdoors_of_set(x, y, &smaller, &mut meter)
            {
                set = smaller;
                place = 0;
            } else {
                place += 1;
            }
        }
        set
    }
}
