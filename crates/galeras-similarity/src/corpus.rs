//! All documents of a run, and the queries on them.

use super::bounds::{Bounds, Intersection, common};
use super::components::Components;
use super::join::join;
use super::merge::{Documents, Members, merge};
use super::reader::CorpusReader;
use super::stoppable::check;
use super::{
    CorpusCounts, PairProgress, PairSearch, SimilarityError, SimilarityLimits, StopFlag,
    Thresholds, minhash,
};

/// All documents of a run. Immutable; every method may be called repeatedly.
pub struct Corpus {
    documents: Documents,
    /// Every row that is a document and the number of its document, ascending.
    members: Members,
    counts: CorpusCounts,
    limits: SimilarityLimits,
}

impl Corpus {
    /// Joins the documents of all readers. The result does not depend on the distribution of rows
    /// over readers.
    ///
    /// # Errors
    /// - [`SimilarityError::Stopped`] if `stop` returned true;
    /// - [`SimilarityError::Vocabulary`] if the common vocabulary exceeds the memory limit;
    /// - [`SimilarityError::TooMany`] for more readers or distinct tokens than can be numbered;
    /// - [`SimilarityError::Scratch`] if token data cannot be written or read.
    pub fn new(
        readers: Vec<CorpusReader>,
        limits: SimilarityLimits,
        stop: StopFlag<'_>,
    ) -> Result<Self, SimilarityError> {
        let (documents, members, counts) = merge(readers, &limits, stop)?;
        Ok(Self { documents, members, counts, limits })
    }

    /// Counts of the input rows.
    pub fn counts(&self) -> CorpusCounts {
        self.counts
    }

    /// The rows that are similar to another one, directly or through others, ascending, each with
    /// the smallest row of its component.
    ///
    /// # Errors
    /// - [`SimilarityError::Stopped`] if `stop` returned true;
    /// - [`SimilarityError::Threshold`] if a threshold is out of range;
    /// - [`SimilarityError::Scratch`] if token data cannot be written or read;
    /// - [`SimilarityError::Worker`] if a thread panicked.
    pub fn components(
        &self,
        thresholds: &Thresholds,
        method: PairSearch,
        stop: StopFlag<'_>,
        progress: PairProgress<'_>,
    ) -> Result<Vec<(u32, u32)>, SimilarityError> {
        let bounds = Bounds::new(thresholds)?;
        check(stop)?;
        let (documents, limits) = (&self.documents, &self.limits);
        let components = Components::new(documents.len());
        let controls = (stop, progress);
        match method {
            PairSearch::Exact => join(documents, &bounds, &components, limits, controls)?,
            PairSearch::MinHash => {
                minhash::search(
                    documents,
                    (thresholds.set, &bounds),
                    &components,
                    limits,
                    controls,
                )?;
            }
        }
        check(stop)?;
        // For each root: the smallest row and the number of rows.
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
        let connected = rows.filter_map(|&(row, document)| {
            let (first, count) = roots[components.root(document) as usize];
            (count > 1).then_some((row, first))
        });
        Ok(connected.collect())
    }

    /// Set and multiset similarity of pairs of rows in their order, regardless of thresholds. (0,
    /// 0) if one of the rows is not a document.
    ///
    /// # Errors
    /// [`SimilarityError::Scratch`] if token data cannot be read.
    pub fn similarities(&self, pairs: &[(u32, u32)]) -> Result<Vec<(f64, f64)>, SimilarityError> {
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
            let overlap = common((&x, 0), (&y, 0), Intersection::default(), 0).unwrap_or_default();
            Ok(overlap.similarities(&x, &y))
        };
        pairs.iter().map(&mut similarity).collect()
    }

    fn document(&self, row: u32) -> Option<usize> {
        let at = self.members.binary_search_by_key(&row, |&(row, _)| row).ok()?;
        Some(self.members[at].1 as usize)
    }
}
