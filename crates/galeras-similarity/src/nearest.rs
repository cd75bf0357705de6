//! The nearest of several rows, independent of their order.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::nearness::Nearness;

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
