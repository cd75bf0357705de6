//! Finds the documents of an index that are near to a row of another table, and measures them
//! exactly.
//!
//! Similar documents have a common token in their prefixes, as in `join`; the index of n-grams
//! finds those whose n-grams the row has.

use std::sync::Arc;

use super::bounds::{DocumentView, Intersection, common};
use super::index::{DocumentSummary, ranked};
use super::near_index::{NearIndex, sort_small};
use super::nearness::{NGRAMS, Nearness};
use super::ngrams::{GramSet, UNKNOWN};
use super::stoppable::Ticker;
use super::token_rows::TokenRows;
use super::vocabulary::BATCH;
use super::{SimilarityError, StopFlag};

/// States of a document for the current row.
const BY_TOKEN: u32 = 1;
const NEAR: u32 = 2;
const BY_GRAM: u32 = 3;
const STATES: u32 = 4;

/// One thread that finds the near documents of one row after another.
pub struct NearProbe {
    index: Arc<NearIndex>,
    /// For each document, its last state and the row of it.
    last: Vec<u32>,
    /// The number of the row, times [`STATES`].
    current: u32,
    row: ProbeRow,
    /// Documents found by an n-gram.
    named: Vec<u32>,
    /// A buffer for hashes of n-grams.
    hashes: Vec<u64>,
}

#[derive(Default)]
struct ProbeRow {
    /// Ranks of its tokens in order, [`UNKNOWN`] for those without.
    sequence: Vec<u32>,
    /// The ranks alone, and the tokens without one; sorted by `count`.
    ranks: Vec<u32>,
    unknown: Vec<u128>,
    /// Distinct ranks, ascending, and their counts.
    tokens: Vec<u32>,
    counts: Vec<u32>,
    /// Distinct tokens, including those without a rank.
    size: u32,
    /// The tokens of this row have been counted.
    counted: bool,
    sets: [GramSet; 2],
    /// The sets contain this row's n-grams.
    filled: bool,
}

impl NearProbe {
    /// Creates a probe of the index.
    pub fn new(index: &Arc<NearIndex>) -> Self {
        Self {
            last: vec![0; index.documents()],
            index: Arc::clone(index),
            current: 0,
            row: ProbeRow { sets: NGRAMS.map(GramSet::new), ..ProbeRow::default() },
            named: Vec::new(),
            hashes: Vec::new(),
        }
    }

    /// True if a row has enough tokens to be near to anything; `None` for a null.
    pub fn is_long(&self, rows: &TokenRows, row: usize) -> Option<bool> {
        rows.row(row).map(|keys| self.index.is_long(keys))
    }

    /// Calls `found` once with every document that is near to a row. `wants` may reject a document
    /// before it is measured.
    ///
    /// # Errors
    /// [`SimilarityError::Stopped`] if `stop` returned true; [`SimilarityError::TooMany`] if the
    /// tokens of the row do not fit in 32 bits.
    pub fn row(
        &mut self,
        rows: &TokenRows,
        row: usize,
        wants: impl Fn(u32) -> bool,
        mut found: impl FnMut(u32, Nearness),
        stop: StopFlag<'_>,
    ) -> Result<(), SimilarityError> {
        let index = Arc::clone(&self.index);
        if !self.row.read(&index, rows.row(row), stop)? {
            return Ok(());
        }
        self.current = match self.current.checked_add(STATES) {
            Some(next) if next < u32::MAX - STATES => next,
            _ => {
                self.last.fill(0);
                STATES
            }
        };
        let mut ticker = Ticker::new(stop);
        // At most the tokens with a rank are common to both.
        let (total, ranked) = (self.row.sequence.len() as u32, self.row.ranks.len() as u32);
        if index.bounds.totals_allow(total, ranked) {
            self.row.count(stop)?;
            self.by_tokens(&index, &wants, &mut found, (&mut ticker, stop))?;
        }
        self.by_grams(&index, &wants, &mut found, (&mut ticker, stop))
    }

    /// The nearness of a document to a row, if it is near.
    ///
    /// # Errors
    /// As [`Self::row`].
    pub fn pair(
        &mut self,
        rows: &TokenRows,
        row: usize,
        document: u32,
        stop: StopFlag<'_>,
    ) -> Result<Option<Nearness>, SimilarityError> {
        let index = Arc::clone(&self.index);
        if !self.row.read(&index, rows.row(row), stop)? {
            return Ok(None);
        }
        let nearness = self.row.measure(&index, document, None, stop)?;
        let reached = |(share, least): (Option<f64>, f64)| {
            least > 0.0 && share.is_some_and(|share| share >= least)
        };
        let by_gram = nearness.containment.into_iter().zip(index.thresholds.containment);
        let near = nearness.similar || by_gram.into_iter().any(reached);
        Ok(near.then_some(nearness))
    }

    fn by_tokens(
        &mut self,
        index: &NearIndex,
        wants: &impl Fn(u32) -> bool,
        found: &mut impl FnMut(u32, Nearness),
        (ticker, stop): (&mut Ticker<'_>, StopFlag<'_>),
    ) -> Result<(), SimilarityError> {
        let view = self.row.view();
        let prefix = ranked(&view, index.bounds.probe_prefix(view.size));
        if prefix == 0 {
            return Ok(());
        }
        let summary = DocumentSummary::new(&view);
        let mut near = Vec::new();
        for &rank in &view.tokens[..prefix] {
            let documents = index.with(rank);
            ticker.work(4 + documents.len())?;
            for &document in documents {
                let last = &mut self.last[document as usize];
                if *last >= self.current {
                    continue;
                }
                *last = self.current + BY_TOKEN;
                let other = &index.summaries[document as usize];
                let required = index.bounds.required(view.size, other.size);
                if summary.most_common(other) < required
                    || view.size.min(other.size) < required
                    || !index.bounds.totals_allow(view.total, other.total)
                    || !wants(document)
                {
                    continue;
                }
                ticker.work(view.tokens.len())?;
                let other = index.view(document as usize);
                if let Some(similarities) = index.bounds.compare(&view, &other) {
                    *last = self.current + NEAR;
                    near.push((document, similarities));
                }
            }
        }
        for (document, similarities) in near {
            ticker.work(4 * self.row.sequence.len())?;
            found(document, self.row.measure(index, document, Some(similarities), stop)?);
        }
        Ok(())
    }

    fn by_grams(
        &mut self,
        index: &NearIndex,
        wants: &impl Fn(u32) -> bool,
        found: &mut impl FnMut(u32, Nearness),
        (ticker, stop): (&mut Ticker<'_>, StopFlag<'_>),
    ) -> Result<(), SimilarityError> {
        for (at, grams) in index.grams.iter().enumerate() {
            let (last, current) = (&mut self.last, self.current);
            let named = &mut self.named;
            named.clear();
            let steps = grams.each(&self.row.sequence, &mut self.hashes, |document| {
                let last = &mut last[document as usize];
                // Already measured, or already found for this n.
                if *last < current + NEAR {
                    *last = current + BY_GRAM;
                    named.push(document);
                }
            });
            ticker.work(steps)?;
            for position in 0..self.named.len() {
                let document = self.named[position];
                // The other n may also find it.
                self.last[document as usize] = self.current + BY_TOKEN;
                if !wants(document) {
                    continue;
                }
                ticker.work(4 * index.sequence(document as usize).len())?;
                let share = self.row.containment(index, document, at);
                if share.is_some_and(|share| share >= index.thresholds.containment[at]) {
                    self.last[document as usize] = self.current + NEAR;
                    found(document, self.row.measure(index, document, None, stop)?);
                }
            }
        }
        Ok(())
    }
}

impl ProbeRow {
    /// Replaces the row by these tokens; returns false if there are too few, or the index has none
    /// of them.
    fn read(
        &mut self,
        index: &NearIndex,
        keys: Option<&[u128]>,
        stop: StopFlag<'_>,
    ) -> Result<bool, SimilarityError> {
        let Some(keys) = keys.filter(|keys| index.is_long(keys)) else { return Ok(false) };
        u32::try_from(keys.len()).map_err(|_| SimilarityError::TooMany("tokens in a document"))?;
        let mut ticker = Ticker::new(stop);
        (self.counted, self.filled) = (false, false);
        self.sequence.clear();
        self.ranks.clear();
        self.unknown.clear();
        for batch in keys.chunks(BATCH) {
            index.vocabulary.warm(batch);
            for &key in batch {
                let rank = index.vocabulary.get(key);
                self.sequence.push(rank.unwrap_or(UNKNOWN));
                match rank {
                    Some(rank) => self.ranks.push(rank),
                    None => self.unknown.push(key),
                }
            }
            ticker.work(2 * BATCH)?;
        }
        Ok(!self.ranks.is_empty())
    }

    /// Counts its tokens, which few rows need.
    fn count(&mut self, stop: StopFlag<'_>) -> Result<(), SimilarityError> {
        if self.counted {
            return Ok(());
        }
        sort_small(&mut self.ranks, stop)?;
        self.tokens.clear();
        self.counts.clear();
        for run in self.ranks.chunk_by(|a, b| a == b) {
            self.tokens.push(run[0]);
            self.counts.push(run.len() as u32);
        }
        self.unknown.sort_unstable();
        self.unknown.dedup();
        self.size = (self.tokens.len() + self.unknown.len()) as u32;
        self.counted = true;
        Ok(())
    }

    fn view(&self) -> DocumentView<'_> {
        DocumentView {
            size: self.size,
            total: self.sequence.len() as u32,
            tokens: &self.tokens,
            counts: &self.counts,
        }
    }

    /// The share of a document's n-grams that the row has; `at` is the place of n in `NGRAMS`.
    fn containment(&mut self, index: &NearIndex, document: u32, at: usize) -> Option<f64> {
        if !self.filled {
            for set in &mut self.sets {
                set.fill(&self.sequence, |_| ());
            }
            self.filled = true;
        }
        let document = document as usize;
        let all = index.gram_counts[at][document];
        let common = || self.sets[at].common(&self.sequence, index.sequence(document));
        (all > 0).then(common).map(|common| f64::from(common) / f64::from(all))
    }

    /// The nearness of a document, given its similarities if they are known and reach the
    /// thresholds.
    fn measure(
        &mut self,
        index: &NearIndex,
        document: u32,
        similar: Option<(f64, f64)>,
        stop: StopFlag<'_>,
    ) -> Result<Nearness, SimilarityError> {
        self.count(stop)?;
        let (x, y) = (index.view(document as usize), self.view());
        let (similar, (jaccard, multiset)) = match similar.or_else(|| index.bounds.compare(&x, &y))
        {
            Some(similarities) => (true, similarities),
            None => {
                let overlap =
                    common((&x, 0), (&y, 0), Intersection::default(), 0).unwrap_or_default();
                (false, overlap.similarities(&x, &y))
            }
        };
        let containment = [0, 1].map(|at| self.containment(index, document, at));
        Ok(Nearness { similar, jaccard, multiset, containment })
    }
}
