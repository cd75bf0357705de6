//! Joins all similar documents to components.
//!
//! A set similarity join with prefix, length and positional filters. Documents are ordered by size
//! and their tokens by rarity. Two similar documents share a token in their prefixes, so only
//! documents that the index lists for the tokens of a prefix are compared. Sources: Bayardo et al.,
//! Scaling Up All Pairs Similarity Search (WWW 2007); Xiao et al., Efficient Similarity Joins for
//! Near Duplicate Detection (WWW 2008).
//!
//! A pair is decided at its first common token, so the comparison starts there. Before it, 128 bits
//! that summarise the tokens reject most pairs (Sandes et al., Bitmap Filter: Speeding up Exact Set
//! Similarity Joins, ICDE 2020).
//!
//! A document that already belongs to a component skips its other members, whole runs of postings
//! at a time, so large clusters do not take quadratic time. One quadratic cost remains: a look of
//! some nanoseconds at each pair of documents whose prefixes share a frequent token but which are
//! in different components or interrupted runs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::bounds::{Bounds, DocumentView, Intersection, common};
use super::components::Components;
use super::corpus::Documents;
use super::index::{Block, DocumentSummary, Index, blocks, ranked};
use super::stoppable::{Ticker, check, in_threads};
use super::{PairProgress, SimilarityError, SimilarityLimits, StopFlag};

const BATCH: usize = 64;

/// Joins the components of all pairs of similar documents.
pub(super) fn join(
    documents: &Documents,
    bounds: &Bounds,
    components: &Components,
    limits: &SimilarityLimits,
    (stop, progress): (StopFlag<'_>, PairProgress<'_>),
) -> Result<(), SimilarityError> {
    let threads = limits.threads();
    let free = limits.memory.saturating_sub(documents.store.held());
    let blocks = blocks(documents, bounds, free / 2, threads);
    let all = blocks.iter().map(|block| block.probing.len() as u64).sum();
    let done = AtomicU64::new(0);
    let mut buffer = Vec::new();
    for block in &blocks {
        check(stop)?;
        let data = documents.load(block.indexed.clone(), &mut buffer)?;
        let mut ticker = Ticker::new(stop);
        let index = Index::new(documents, block.indexed.clone(), data, bounds, &mut ticker)?;
        let batches = Batches {
            documents,
            next: Mutex::new(block.probing.start),
            end: block.probing.end,
            bytes: (free / 8 / threads) as u64,
        };
        in_threads((0..threads).collect(), |_| {
            let mut ticker = Ticker::new(stop);
            let mut probe = Probe {
                documents,
                bounds,
                components,
                block,
                data,
                index: &index,
                last: vec![0; block.indexed.len()],
                work: 0,
            };
            let mut buffer = Vec::new();
            while let Some(batch) = batches.take() {
                let first = batch.start;
                let length = batch.len() as u64;
                let data = documents.load(batch.clone(), &mut buffer)?;
                for document in batch {
                    probe.document(document, &documents.view(document, data, first));
                    ticker.work(16 + std::mem::take(&mut probe.work))?;
                }
                progress(done.fetch_add(length, Ordering::Relaxed) + length, all);
            }
            Ok(())
        })?;
    }
    Ok(())
}

struct Batches<'a> {
    documents: &'a Documents,
    next: Mutex<usize>,
    end: usize,
    /// Upper bound of token data in a batch of several documents.
    bytes: u64,
}

impl Batches<'_> {
    fn take(&self) -> Option<std::ops::Range<usize>> {
        let mut next = self.next.lock().ok()?;
        let start = *next;
        let most = self.end.min(start + BATCH);
        let fits = |&document: &usize| self.documents.bytes(start..document + 1) <= self.bytes;
        *next = start + (start..most).take_while(fits).count().max(1).min(most - start);
        (start < *next).then_some(start..*next)
    }
}

struct Probe<'a> {
    documents: &'a Documents,
    bounds: &'a Bounds,
    components: &'a Components,
    block: &'a Block,
    data: &'a [u32],
    index: &'a Index,
    /// For each document of the block, the last document that met it, plus one.
    last: Vec<u32>,
    work: usize,
}

impl Probe<'_> {
    fn document(&mut self, x: usize, view: &DocumentView<'_>) {
        if view.total < self.bounds.min_tokens {
            return;
        }
        let start = self.block.indexed.start;
        let end = self.block.indexed.end.min(x) as u32;
        let least = self.bounds.least_size(view.size);
        let near = &self.documents.sizes[self.block.indexed.clone()];
        let least = (start + near.partition_point(|&size| size < least)) as u32;
        let x = x as u32;
        let summary = DocumentSummary::new(view);
        // A document alone in its component, or the first of it, has little to skip.
        let root_of_x = || Some(self.components.root(x)).filter(|&root| root != x);
        let mut root = root_of_x();
        // Documents are sorted by size, so the same bound applies to many in a row.
        let (mut size, mut required) = (0, 0);
        let prefix = ranked(view, self.bounds.probe_prefix(view.size));
        for (i, &rank) in view.tokens[..prefix].iter().enumerate() {
            let mut postings = self.index.from(rank, least);
            while postings.start < postings.end {
                self.work += 1;
                if let Some(root) = root {
                    let joined = |document| self.components.root(document) == root;
                    let (next, steps) = self.index.skip(postings.clone(), joined);
                    self.work += steps;
                    if next == postings.end {
                        break;
                    }
                    postings.start = next;
                }
                let posting = self.index.postings[postings.start];
                postings.start += 1;
                let y = posting.document;
                if y >= end {
                    break;
                }
                let last = &mut self.last[y as usize - start];
                if *last == x + 1 {
                    continue;
                }
                *last = x + 1;
                let other = &self.index.summaries[y as usize - start];
                if other.size != size {
                    size = other.size;
                    required = self.bounds.required(view.size, size);
                }
                if summary.most_common(other) < required
                    || !self.bounds.totals_allow(view.total, other.total)
                {
                    continue;
                }
                self.pair((x, view, i), (y, posting.position as usize), required);
                root = root_of_x();
            }
        }
    }

    /// Decides about two documents by their first common token.
    fn pair(
        &mut self,
        (x, view, i): (u32, &DocumentView<'_>, usize),
        (y, j): (u32, usize),
        required: u32,
    ) {
        let other = self.documents.view(y as usize, self.data, self.block.indexed.start);
        let rest = (view.tokens.len() - i).min(other.tokens.len() - j);
        if rest < required as usize || self.components.are_joined(y, x) {
            return;
        }
        self.work += rest;
        let minima = u64::from(view.counts[i].min(other.counts[j]));
        let so_far = Intersection { tokens: 1, minima };
        let overlap = common((view, i + 1), (&other, j + 1), so_far, required);
        if overlap.and_then(|overlap| self.bounds.decide(overlap, view, &other)).is_some() {
            self.components.join(y, x);
        }
    }
}
