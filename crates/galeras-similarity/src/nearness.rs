//! Measures of nearness between rows, their thresholds and order, and the nearest of several rows.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::Thresholds;

/// The lengths of the n-grams whose containment is measured.
pub const NGRAMS: [usize; 2] = [8, 13];

/// The conditions for a row to be near to another one, of which one must hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NearThresholds {
    /// Both are similar. Its `min_tokens` applies to every condition.
    pub similar: Thresholds,
    /// The least containment for each of [`NGRAMS`], inclusive, in [0, 1]; 0 disables the
    /// condition.
    pub containment: [f64; 2],
}

/// The nearness of a row to another one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nearness {
    /// Both Jaccard similarities reach their thresholds.
    pub similar: bool,
    /// Jaccard similarity of the sets of tokens, in [0, 1].
    pub jaccard: f64,
    /// Jaccard similarity of the multisets of tokens, in [0, 1].
    pub multiset: f64,
    /// For each of [`NGRAMS`], the share of the row's distinct n-grams that the other one has, in
    /// [0, 1]; `None` if it has fewer than n tokens. Broder's containment (On the resemblance and
    /// containment of documents, 1997) with n-grams as shingles.
    pub containment: [Option<f64>; 2],
}

impl Nearness {
    /// The values to compare, most important first.
    fn order(&self) -> [f64; 5] {
        let [eight, thirteen] = self.containment.map(|share| share.unwrap_or(-1.0));
        if self.similar {
            [1.0, self.jaccard, self.multiset, eight, thirteen]
        } else {
            [0.0, eight, thirteen, self.jaccard, self.multiset]
        }
    }

    /// `Greater` if this one is nearer. Similar rows come first, by the similarities of their sets,
    /// their multisets, and then by containment; then the others, by containment and then by
    /// similarity.
    pub fn compare(&self, other: &Self) -> Ordering {
        let pairs = self.order().into_iter().zip(other.order());
        pairs.map(|(a, b)| a.total_cmp(&b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// True if nothing can be nearer.
    pub fn is_full(&self) -> bool {
        self.similar
            && self.jaccard == 1.0
            && self.multiset == 1.0
            && self.containment.iter().all(|share| share.is_none_or(|share| share == 1.0))
    }
}

/// A row of another table, and the nearness of something to it.
#[derive(Clone, Debug, PartialEq)]
pub struct NearRow {
    /// The nearness to it.
    pub nearness: Nearness,
    /// Its id.
    pub id: String,
    /// Its table, if that is recorded.
    pub source: Option<String>,
}

impl NearRow {
    /// `Less` if this one is preferred: the nearer one, then the one with the smaller id, then with
    /// the smaller source.
    fn order(&self, nearness: &Nearness, id: &str, source: Option<&str>) -> Ordering {
        let near = self.nearness.compare(nearness).reverse();
        near.then_with(|| self.id.as_str().cmp(id))
            .then_with(|| self.source.as_deref().cmp(&source))
    }
}

/// For each of some numbered things the nearest row, and the nearest row with another id.
#[derive(Debug, Default)]
pub struct Nearest(HashMap<u32, (NearRow, Option<NearRow>)>);

impl Nearest {
    /// True if a row with this id may still become the nearest of a thing.
    pub fn wants(&self, thing: u32, id: &str) -> bool {
        let settled = |row: &NearRow| row.nearness.is_full() && row.id.as_str() < id;
        let known = self.0.get(&thing);
        !known.is_some_and(|(one, other)| settled(one) && other.as_ref().is_some_and(settled))
    }

    /// Notes a row that a thing is near to.
    pub fn note(&mut self, thing: u32, nearness: Nearness, id: &str, source: Option<&str>) {
        let row = || NearRow { nearness, id: id.to_owned(), source: source.map(str::to_owned) };
        let Some((one, other)) = self.0.get_mut(&thing) else {
            self.0.insert(thing, (row(), None));
            return;
        };
        if one.order(&nearness, id, source).is_gt() {
            let before = std::mem::replace(one, row());
            if before.id != id {
                *other = Some(before);
            }
        } else if one.id != id
            && other.as_ref().is_none_or(|other| other.order(&nearness, id, source).is_gt())
        {
            *other = Some(row());
        }
    }

    /// Adds the rows of another collection.
    pub fn merge(&mut self, others: Self) {
        for (thing, (one, other)) in others.0 {
            for row in [Some(one), other].into_iter().flatten() {
                self.note(thing, row.nearness, &row.id, row.source.as_deref());
            }
        }
    }

    /// The nearest row of a thing.
    pub fn of(&self, thing: u32) -> Option<&NearRow> {
        self.0.get(&thing).map(|(one, _)| one)
    }

    /// The nearest row of a thing with another id.
    pub fn other_than(&self, thing: u32, id: &str) -> Option<&NearRow> {
        let (one, other) = self.0.get(&thing)?;
        if one.id == id { other.as_ref() } else { Some(one) }
    }
}
