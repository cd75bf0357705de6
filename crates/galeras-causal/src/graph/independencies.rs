//! Conditional independencies among observed variables that a graph implies, and data can
//! contradict.

use super::dag::CausalGraph;
use super::separation::Separation;
use super::subsets::{MOST_WORK, Meter};

/// A pair of observed variables that are independent given certain sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Independence {
    /// The first of the two names.
    pub a: String,
    /// The second of the two names.
    pub b: String,
    /// The smallest sets of observed variables that d-separate the two: all of that size, sorted.
    /// These are the implications worth testing.
    pub given: Vec<Vec<String>>,
    /// The other minimal sets, sorted: larger, but without a separating subset.
    pub larger: Vec<Vec<String>>,
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
    /// For each pair of observed variables, the sets of other observed variables that d-separate it
    /// and have no proper subset that does (Pearl 2009, section 1.2.3). Pairs that no set separates
    /// are left out.
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
                // Each pair gets a share of the remaining work, so that one with very many sets
                // does not take it all.
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
                    let least = sets.iter().map(Vec::len).min().unwrap_or_default();
                    let (given, larger): (Vec<_>, Vec<_>) =
                        sets.into_iter().partition(|set| set.len() == least);
                    let named =
                        |sets: Vec<Vec<usize>>| sets.iter().map(|set| self.named(set)).collect();
                    list.push(Independence {
                        a: self.names[a].clone(),
                        b: self.names[b].clone(),
                        given: named(given),
                        larger: named(larger),
                    });
                }
            }
        }
        Independencies { list, complete }
    }
}
