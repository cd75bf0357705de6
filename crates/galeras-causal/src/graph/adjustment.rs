//! Backdoor adjustment: sets of observed variables that remove the confounding of an effect.
//!
//! Pearl's backdoor criterion (2009, definition 3.3.1): no member is a descendant of the treatment,
//! and the set blocks every path that enters the treatment, that is, it d-separates the two in the
//! graph without the edges out of the treatment.

use super::dag::CausalGraph;
use super::error::QueryError;
use super::separation::Separation;
use super::separation::reachable;
use super::subsets::VariableSets;
use super::subsets::relevant;
use super::subsets::{MOST_WORK, Meter};

impl CausalGraph {
    /// True if a set of names meets the backdoor criterion (Pearl 2009, definition 3.3.1). A set
    /// with a latent variable, the treatment or the outcome does not.
    ///
    /// # Errors
    /// [`QueryError::UnknownNode`] for a name that the graph does not have, and
    /// [`QueryError::SameNode`] if treatment and outcome are the same.
    pub fn is_valid_backdoor(
        &self,
        treatment: &str,
        outcome: &str,
        set: &[&str],
    ) -> Result<bool, QueryError> {
        let (x, y) = self.ends(treatment, outcome)?;
        let set = self.nodes(set)?;
        Ok(self.blocks_backdoors(x, y, &set, &mut Meter::new(0)))
    }

    /// All minimal sets that meet the backdoor criterion. `[[]]` means that no adjustment is
    /// needed, `[]` that no observed set suffices.
    ///
    /// # Errors
    /// As [`CausalGraph::is_valid_backdoor`].
    pub fn minimal_backdoor(
        &self,
        treatment: &str,
        outcome: &str,
    ) -> Result<VariableSets, QueryError> {
        let (x, y) = self.ends(treatment, outcome)?;
        let (cut, allowed) = (self.mask(&[x]), self.adjustable(x, y));
        let separation = Separation::new(self.without_edges_from(&cut), x, y, &allowed);
        Ok(VariableSets::new(self, separation.all(&mut Meter::new(MOST_WORK))))
    }

    /// The number of sets that meet the backdoor criterion, minimal or not.
    ///
    /// # Errors
    /// As [`CausalGraph::is_valid_backdoor`]; also [`QueryError::TooLarge`] for more sets than can
    /// be tried (about 18 variables on paths between the two, or 2^63 sets).
    pub fn count_backdoor(&self, treatment: &str, outcome: &str) -> Result<u64, QueryError> {
        let (x, y) = self.ends(treatment, outcome)?;
        let (cut, allowed) = (self.mask(&[x]), self.adjustable(x, y));
        let view = self.without_edges_from(&cut);
        if Separation::new(view, x, y, &allowed).first(&mut Meter::new(0)).is_none() {
            return Ok(0);
        }
        // An irrelevant variable doubles the number of sets and need not be tried.
        let matters = relevant(view, &[x, y]);
        let (tried, free): (Vec<usize>, Vec<usize>) =
            (0..self.size()).filter(|&node| allowed[node]).partition(|&node| matters[node]);
        let too_large = QueryError::TooLarge(tried.len());
        let edges: usize = self.parents.iter().map(Vec::len).sum();
        let work = ((self.size() + 2 * edges) as u128) << tried.len().min(64);
        if work > u128::from(4 * MOST_WORK) {
            return Err(too_large);
        }
        let mut meter = Meter::new(0);
        let mut valid = 0u64;
        let mut set = Vec::new();
        for bits in 0..1u64 << tried.len() {
            set.clear();
            set.extend((0..tried.len()).filter(|place| bits >> place & 1 == 1).map(|p| tried[p]));
            valid += u64::from(!reachable(view, &[x], &set, &mut meter)[y]);
        }
        let doubled = 1u64.checked_shl(free.len() as u32);
        doubled.and_then(|times| valid.checked_mul(times)).ok_or(too_large)
    }

    /// The adjustment set with the smallest asymptotic variance: the parents of the nodes on
    /// directed paths from treatment to outcome, without the treatment and the descendants of those
    /// nodes (Henckel, Perkovic and Maathuis 2022).
    ///
    /// `None` without a directed path, and if the set has latent members: then no observed set is
    /// necessarily the best for every distribution (Rotnitzky and Smucler 2020).
    ///
    /// # Errors
    /// As [`CausalGraph::is_valid_backdoor`].
    pub fn optimal_adjustment(
        &self,
        treatment: &str,
        outcome: &str,
    ) -> Result<Option<Vec<String>>, QueryError> {
        let (x, y) = self.ends(treatment, outcome)?;
        let whole = self.whole();
        let (below, above) = (whole.descendants(&[x], &[]), whole.ancestors(&[y]));
        let causal: Vec<usize> =
            (0..self.size()).filter(|&node| node != x && below[node] && above[node]).collect();
        if causal.is_empty() {
            return Ok(None);
        }
        let forbidden = whole.descendants(&causal, &[]);
        let mut set: Vec<usize> = causal
            .iter()
            .flat_map(|&node| self.parents[node].iter().copied())
            .filter(|&node| node != x && !forbidden[node])
            .collect();
        set.sort_unstable();
        set.dedup();
        let valid = self.blocks_backdoors(x, y, &set, &mut Meter::new(0));
        Ok(valid.then(|| self.named(&set)))
    }

    /// The variables that the backdoor criterion allows in a set.
    pub(super) fn adjustable(&self, x: usize, y: usize) -> Vec<bool> {
        let below = self.whole().descendants(&[x], &[]);
        (0..self.size()).map(|node| self.observed(node) && !below[node] && node != y).collect()
    }

    fn blocks_backdoors(&self, x: usize, y: usize, set: &[usize], meter: &mut Meter) -> bool {
        let allowed = self.adjustable(x, y);
        let cut = self.mask(&[x]);
        set.iter().all(|&node| allowed[node])
            && !reachable(self.without_edges_from(&cut), &[x], set, meter)[y]
    }
}
