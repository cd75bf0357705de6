//! All documents of a run, and the questions that they answer.
//!
//! Here: the surface over the parts of this module. Not here: any of the work.

use super::bounds::{Bounds, Common, common};
use super::components::Components;
use super::join::{self, Sink};
use super::merge::{Documents, Members, merge};
use super::polled::check;
use super::reader::Reader;
use super::{Counts, Error, Limits, Method, PairSink, Progress, Stop, Thresholds, minhash};

/// All documents of a run. Immutable; every method may be called repeatedly.
pub struct Corpus {
    documents: Documents,
    /// Every row that is a document and the number of its document, ascending.
    members: Members,
    counts: Counts,
    limits: Limits,
}

/// Translates numbers of documents to rows.
struct Rows<'a> {
    rows: &'a [u32],
    sink: &'a dyn PairSink,
}

impl Rows<'_> {
    fn of(&self, a: u32, b: u32) -> (u32, u32) {
        let (a, b) = (self.rows[a as usize], self.rows[b as usize]);
        (a.min(b), a.max(b))
    }
}

impl Sink for Rows<'_> {
    fn wants(&self, a: u32, b: u32) -> bool {
        let (a, b) = self.of(a, b);
        self.sink.wants(a, b)
    }

    fn found(&self, a: u32, b: u32, set: f64, multiset: f64) {
        let (a, b) = self.of(a, b);
        self.sink.found(a, b, set, multiset);
    }

    fn class(&self, _: u32) -> Option<u32> {
        None
    }
}

impl Corpus {
    /// Joins what readers collected.
    ///
    /// # Errors
    /// [`Error::Stopped`]; [`Error::Vocabulary`] if the common vocabulary exceeds the limit;
    /// [`Error::TooMany`] readers or distinct tokens; [`Error::Scratch`].
    pub fn new(readers: Vec<Reader>, limits: Limits, stop: Stop<'_>) -> Result<Self, Error> {
        let (documents, members, counts) = merge(readers, &limits, stop)?;
        Ok(Self { documents, members, counts, limits })
    }

    /// What was read.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Every row that is a document, ascending, with the smallest row whose tokens are the
    /// same: that row stands for it in [`Self::pairs`].
    pub fn groups(&self) -> impl Iterator<Item = (u32, u32)> {
        let first = |document: u32| self.documents.rows[document as usize];
        self.members.iter().map(move |&(row, document)| (row, first(document)))
    }

    /// The rows that are similar to another one, directly or by way of others, ascending,
    /// each with the smallest row that it is connected to so (or itself).
    ///
    /// # Errors
    /// [`Error::Stopped`]; [`Error::Threshold`]; [`Error::Scratch`].
    pub fn components(
        &self,
        thresholds: &Thresholds,
        method: Method,
        stop: Stop<'_>,
        progress: Progress<'_>,
    ) -> Result<Vec<(u32, u32)>, Error> {
        let components = Components::new(self.documents.len());
        self.search(thresholds, method, &components, (stop, progress))?;
        check(stop)?;
        // Of each root: the smallest row and the number of rows.
        let mut roots = vec![(u32::MAX, 0_u32); self.documents.len()];
        let long =
            |document: u32| self.documents.totals[document as usize] >= thresholds.min_tokens;
        let rows = self.members.iter().filter(|(_, document)| long(*document));
        for &(row, document) in rows.clone() {
            let (first, count) = &mut roots[components.root(document) as usize];
            *first = row.min(*first);
            *count += 1;
        }
        check(stop)?;
        let found = rows.filter_map(|&(row, document)| {
            let (first, count) = roots[components.root(document) as usize];
            (count > 1).then_some((row, first))
        });
        Ok(found.collect())
    }

    /// Passes the similar pairs to `sink`, which see.
    ///
    /// # Errors
    /// As [`Self::components`].
    pub fn pairs(
        &self,
        thresholds: &Thresholds,
        method: Method,
        sink: &dyn PairSink,
        stop: Stop<'_>,
        progress: Progress<'_>,
    ) -> Result<(), Error> {
        let sink = Rows { rows: &self.documents.rows, sink };
        self.search(thresholds, method, &sink, (stop, progress))
    }

    fn search(
        &self,
        thresholds: &Thresholds,
        method: Method,
        sink: &impl Sink,
        told: (Stop<'_>, Progress<'_>),
    ) -> Result<(), Error> {
        let bounds = Bounds::new(thresholds)?;
        check(told.0)?;
        match method {
            Method::Exact => join::join(&self.documents, &bounds, sink, &self.limits, told),
            Method::MinHash => {
                let set = (thresholds.set, &bounds);
                minhash::search(&self.documents, set, sink, &self.limits, told)
            }
        }
    }

    /// Set and multiset similarity of pairs of rows, in their order, whatever the
    /// thresholds. (0, 0) if one of the rows is no document.
    ///
    /// # Errors
    /// [`Error::Scratch`].
    pub fn similarities(&self, pairs: &[(u32, u32)]) -> Result<Vec<(f64, f64)>, Error> {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let mut similarity = |&(a, b): &(u32, u32)| {
            let (Some(a), Some(b)) = (self.document(a), self.document(b)) else {
                return Ok((0.0, 0.0));
            };
            if a == b {
                return Ok((1.0, 1.0));
            }
            let x = self.documents.view(a, self.documents.load(a..a + 1, &mut left)?, a);
            let y = self.documents.view(b, self.documents.load(b..b + 1, &mut right)?, b);
            let it = common((&x, 0), (&y, 0), Common::default(), 0).unwrap_or_default();
            Ok(it.similarities(&x, &y))
        };
        pairs.iter().map(&mut similarity).collect()
    }

    fn document(&self, row: u32) -> Option<usize> {
        let at = self.members.binary_search_by_key(&row, |&(row, _)| row).ok()?;
        Some(self.members[at].1 as usize)
    }
}
