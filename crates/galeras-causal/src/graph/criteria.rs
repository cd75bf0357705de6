//! Sets of observed variables that identify an effect, and implications that data can contradict.
//!
//! Backdoor (Pearl 2009, definition 3.3.1): no member is a descendant of the treatment, and the set
//! d-separates treatment and outcome in the graph without the edges out of the treatment.
//!
//! Frontdoor (definition 3.3.3), for a set M: it intercepts every directed path from treatment to
//! outcome; no backdoor path from the treatment to a member is open; and the treatment blocks every
//! backdoor path from M to the outcome. The last condition is read for the whole set, as in Jeong,
//! Tian and Bareinboim (2022) and Wienobst, van der Zander and Liskiewicz (2024): the treatment
//! d-separates M and the outcome in the graph without the edges out of M.
//!
//! Z is a conditional instrument given W (Brito and Pearl 2002; van der Zander, Textor and
//! Liskiewicz 2015), here for the total effect, if, without the edges out of the treatment, W
//! d-separates Z from the outcome but not from the treatment. Z and W are observed, and none is the
//! treatment, the outcome or a descendant of either: a descendant of the treatment could seem to be
//! an instrument, and a mediator in W would remove a part of the effect. Z need not be a cause of
//! the treatment. Each W is listed of which no proper subset suffices for the same Z.

use super::dag::{CausalGraph, QueryError};
use super::separation::{
    MOST_WORK, Meter, Separation, VariableSets, minimal_subsets, reachable, relevant,
};

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

/// A pair of observed variables that are independent given certain sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Independence {
    /// The first of the two names.
    pub a: String,
    /// The second of the two names.
    pub b: String,
    /// All minimal sets of observed variables that d-separate the two, sorted.
    pub given: Vec<Vec<String>>,
}

/// The testable implications of a graph, sorted by pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Independencies {
    /// Each pair that some set of observed variables separates.
    pub list: Vec<Independence>,
    /// The list has all pairs with all their minimal sets.
    pub complete: bool,
}

impl CausalGraph {
    /// True if a set of names meets the backdoor criterion (Pearl 2009, definition 3.3.1). A set
    /// with a latent variable, the treatment or the outcome does not. Errors are a name that the
    /// graph does not have, and ends that are the same.
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

    /// The adjustment set with the smallest asymptotic variance: the parents of the nodes on
    /// directed paths from treatment to outcome, without the treatment and the descendants of those
    /// nodes (Henckel, Perkovic and Maathuis 2022). `None` without a directed path, and if the set
    /// has latent members: then no observed set need be the best for every distribution (Rotnitzky
    /// and Smucler 2020).
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

    /// All minimal sets that meet the frontdoor criterion; none without a directed path.
    pub fn minimal_frontdoor(
        &self,
        treatment: &str,
        outcome: &str,
    ) -> Result<VariableSets, QueryError> {
        let (x, y) = self.ends(treatment, outcome)?;
        let mut meter = Meter::new(MOST_WORK);
        let greatest = self.greatest_frontdoor(x, y);
        if !self.whole().descendants(&[x], &[])[y] || !self.intercepts(x, y, &greatest) {
            return Ok(VariableSets { sets: Vec::new(), complete: true });
        }
        let (mut sets, complete) = minimal_subsets(&greatest, &mut meter, |set, meter| {
            self.is_frontdoor(x, y, set, meter)
        });
        if sets.is_empty() {
            sets.push(self.shrink(x, y, greatest));
        }
        Ok(VariableSets::new(self, (sets, complete)))
    }

    /// The union of the sets that meet the last two conditions, which are closed under union
    /// (Jeong, Tian and Bareinboim 2022); of ancestors of the outcome, since minimal sets have no
    /// other members.
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

    /// True if a set that meets the second condition meets the others.
    fn is_frontdoor(&self, x: usize, y: usize, set: &[usize], meter: &mut Meter) -> bool {
        meter.spend(self.size());
        if !self.intercepts(x, y, set) {
            return false;
        }
        let cut = self.mask(set);
        let reached = reachable(self.without_edges_from(&cut), &[y], &[x], meter);
        !set.iter().any(|&node| reached[node])
    }

    /// Drops members as long as the set stays valid: afterwards no single one can be dropped.
    fn shrink(&self, x: usize, y: usize, mut set: Vec<usize>) -> Vec<usize> {
        let mut meter = Meter::new(MOST_WORK);
        let mut place = 0;
        while place < set.len() && !meter.is_empty() {
            let mut smaller = set.clone();
            smaller.remove(place);
            if self.is_frontdoor(x, y, &smaller, &mut meter) {
                set = smaller;
                place = 0;
            } else {
                place += 1;
            }
        }
        set
    }

    /// True if a variable is an instrument given a set, minimal or not.
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
                let instrument =
                    |set: &Vec<usize>| Instrument { name: name.clone(), given: self.named(set) };
                list.extend(sets.iter().map(instrument));
            }
            allowed[z] = true;
        }
        Ok(Instruments { list, complete })
    }

    /// For each pair of observed variables that some set separates, the sets of other observed
    /// variables that d-separate it and have no proper subset that does (Pearl 2009, section
    /// 1.2.3).
    pub fn implied_independencies(&self) -> Independencies {
        let mut allowed: Vec<bool> = (0..self.size()).map(|node| self.observed(node)).collect();
        let observed: Vec<usize> = (0..self.size()).filter(|&node| allowed[node]).collect();
        let mut list = Vec::new();
        let mut complete = true;
        let mut total = Meter::new(4 * MOST_WORK);
        let mut pairs = (observed.len() as u64).saturating_mul(observed.len() as u64) / 2 + 1;
        for (place, &a) in observed.iter().enumerate() {
            for &b in &observed[place + 1..] {
                if total.is_empty() {
                    return Independencies { list, complete: false };
                }
                // Each pair gets a share of the remaining work: one with very many sets must not
                // take all.
                let share = total.left / pairs;
                pairs = pairs.saturating_sub(1).max(1);
                // Visiting a pair is work as well: there can be very many pairs.
                total.spend(8);
                if self.adjacent(a, b) {
                    continue;
                }
                (allowed[a], allowed[b]) = (false, false);
                let mut meter = Meter::new(share.min(total.left));
                let before = meter.left;
                let (sets, all) = Separation::new(self.whole(), a, b, &allowed).all(&mut meter);
                (allowed[a], allowed[b]) = (true, true);
                total.left -= before - meter.left;
                total.spend(8 * self.size());
                complete &= all;
                if !sets.is_empty() {
                    list.push(Independence {
                        a: self.names[a].clone(),
                        b: self.names[b].clone(),
                        given: sets.iter().map(|set| self.named(set)).collect(),
                    });
                }
            }
        }
        Independencies { list, complete }
    }
}
