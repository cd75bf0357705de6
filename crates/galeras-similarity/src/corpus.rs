//! All documents of a run, and the queries on them.
//!
//! The readers' results are merged: one vocabulary, one document for rows with equal tokens, ranks
//! by rarity, documents in the order of the join.

use std::ops::Range;

use super::bounds::{Bounds, DocumentView, Intersection, common};
use super::components::Components;
use super::join::join;
use super::reader::{CorpusReader, Document, decode};
use super::stoppable::{Ticker, check, in_threads, sort};
use super::store::Store;
use super::vocabulary::{Vocabulary, rank};
use super::{
    CorpusCounts, PairProgress, PairSearch, SimilarityError, SimilarityLimits, StopFlag,
    Thresholds, minhash,
};

/// The rank of tokens that occur in only one document.
const RARE: u32 = u32::MAX;

/// Words of documents that a thread writes at a time.
const PORTION: Range<usize> = 1 << 14..1 << 18;

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
        mut readers: Vec<CorpusReader>,
        limits: SimilarityLimits,
        stop: StopFlag<'_>,
    ) -> Result<Self, SimilarityError> {
        if readers.len() >= 1 << 16 {
            return Err(SimilarityError::TooMany("readers"));
        }
        let mut counts = CorpusCounts::default();
        let mut merged =
            Vec::with_capacity(readers.iter().map(|reader| reader.documents.len()).sum());
        for (number, reader) in readers.iter_mut().enumerate() {
            counts.rows += reader.counts.rows;
            counts.documents += reader.counts.documents;
            counts.too_short += reader.counts.too_short;
            counts.nulls += reader.counts.nulls;
            let documents = std::mem::take(&mut reader.documents);
            merged.extend(documents.into_iter().map(|mut document| {
                document.set_reader(number);
                document
            }));
        }
        let (mut merged, members) = distinct(merged, stop)?;
        counts.distinct = merged.len() as u64;
        let (vocabulary, mut maps) = number(&mut readers, &limits, stop)?;
        let stores: Vec<Store> = readers.into_iter().map(|reader| reader.store).collect();
        sort(&mut merged, Document::place, stop)?;
        let frequencies = frequencies(&merged, &stores, &maps, vocabulary.len(), &limits, stop)?;
        // Tokens of only one document get no rank.
        let tokens = vocabulary.iter().map(|(key, id)| (frequencies[id as usize], key, id));
        let several: Vec<_> = tokens.filter(|&(documents, _, _)| documents > 1).collect();
        drop(vocabulary);
        let (ranked, mut ranks) = (several.len(), frequencies);
        ranks.fill(RARE);
        rank(several, &mut ranks, stop)?;
        for id in maps.iter_mut().flatten() {
            *id = ranks.get(*id as usize).copied().unwrap_or(RARE);
        }
        drop(ranks);
        sort(&mut merged, |document| (document.size, document.row), stop)?;
        let documents = write(&merged, &stores, &maps, ranked, &limits, stop)?;
        let members = by_document(members, &merged, stop)?;
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

/// All distinct documents, ordered by (size, row).
pub(super) struct Documents {
    pub(super) sizes: Vec<u32>,
    pub(super) totals: Vec<u32>,
    pub(super) rows: Vec<u32>,
    /// The start of each in `store`, and the end of the last: first its tokens, then their counts.
    pub(super) starts: Vec<u64>,
    pub(super) store: Store,
    pub(super) ranks: usize,
}

impl Documents {
    pub(super) fn len(&self) -> usize {
        self.sizes.len()
    }

    pub(super) fn bytes(&self, range: Range<usize>) -> u64 {
        (self.starts[range.end] - self.starts[range.start]) * 4
    }

    pub(super) fn load<'a>(
        &'a self,
        range: Range<usize>,
        buffer: &'a mut Vec<u32>,
    ) -> Result<&'a [u32], SimilarityError> {
        self.store.get(self.starts[range.start], self.starts[range.end], buffer)
    }

    /// A document in token data that starts with document `first`.
    #[inline]
    pub(super) fn view<'a>(
        &self,
        document: usize,
        data: &'a [u32],
        first: usize,
    ) -> DocumentView<'a> {
        let start = (self.starts[document] - self.starts[first]) as usize;
        let length = (self.starts[document + 1] - self.starts[document]) as usize / 2;
        DocumentView {
            size: self.sizes[document],
            total: self.totals[document],
            tokens: &data[start..start + length],
            counts: &data[start + length..start + 2 * length],
        }
    }
}

/// Rows, each with a number: of its document, or the smallest row of its document.
type Members = Vec<(u32, u32)>;

/// Keeps one document, that of the smallest row, of those with equal tokens. Also returns all rows
/// with the smallest row of their document.
fn distinct(
    mut merged: Vec<Document>,
    stop: StopFlag<'_>,
) -> Result<(Vec<Document>, Members), SimilarityError> {
    let same = |document: &Document| (document.key, document.size, document.total);
    sort(&mut merged, |document| (same(document), document.row), stop)?;
    let mut members = Vec::with_capacity(merged.len());
    let mut first: Option<Document> = None;
    merged.retain(|document| {
        let repeated = first.filter(|first| same(first) == same(document));
        members.push((document.row, repeated.unwrap_or(*document).row));
        first = repeated.or(Some(*document));
        repeated.is_none()
    });
    Ok((merged, members))
}

/// Replaces each smallest row by the number of its document.
fn by_document(
    mut members: Members,
    merged: &[Document],
    stop: StopFlag<'_>,
) -> Result<Members, SimilarityError> {
    let rows = merged.iter().map(|document| document.row as usize + 1).max().unwrap_or(0);
    let mut numbers = vec![0; rows];
    for (document, number) in merged.iter().zip(0..) {
        numbers[document.row as usize] = number;
    }
    for (_, first) in &mut members {
        *first = numbers[*first as usize];
    }
    sort(&mut members, |&pair| pair, stop)?;
    Ok(members)
}

/// Builds one vocabulary, and for each reader a map from its numbers to the common ones.
fn number(
    readers: &mut [CorpusReader],
    limits: &SimilarityLimits,
    stop: StopFlag<'_>,
) -> Result<(Vocabulary, Vec<Vec<u32>>), SimilarityError> {
    let mut ticker = Ticker::new(stop);
    let take =
        |reader: &mut CorpusReader| std::mem::replace(&mut reader.vocabulary, Vocabulary::new(0));
    let mut vocabularies = readers.iter_mut().map(take);
    // The common vocabulary starts as the first reader's, whose numbers stay.
    let mut all = vocabularies.next().unwrap_or_else(|| Vocabulary::new(limits.memory));
    let mut maps: Vec<Vec<u32>> = vec![(0..all.len() as u32).collect()];
    for own in vocabularies {
        let mut map = vec![0; own.len()];
        for (key, id) in own.iter() {
            map[id as usize] = all.entry(key)?.id;
            ticker.work(16)?;
        }
        maps.push(map);
    }
    Ok((all, maps))
}

fn frequencies(
    merged: &[Document],
    stores: &[Store],
    maps: &[Vec<u32>],
    tokens: usize,
    limits: &SimilarityLimits,
    stop: StopFlag<'_>,
) -> Result<Vec<u32>, SimilarityError> {
    let share = merged.len().div_ceil(limits.threads()).max(1);
    let counted = in_threads(merged.chunks(share).collect(), |documents: &[Document]| {
        let mut ticker = Ticker::new(stop);
        let mut counts = vec![0_u32; tokens];
        let mut buffer = Vec::new();
        for document in documents {
            let (start, end) = document.range();
            let map = &maps[document.reader()];
            for (id, _) in decode(stores[document.reader()].get(start, end, &mut buffer)?) {
                counts[map[id as usize] as usize] += 1;
            }
            ticker.work(64 + 2 * document.size as usize)?;
        }
        Ok(counts)
    })?;
    let mut counted = counted.into_iter();
    let mut sum = counted.next().unwrap_or_else(|| vec![0; tokens]);
    for counts in counted {
        check(stop)?;
        sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    Ok(sum)
}

fn write(
    merged: &[Document],
    stores: &[Store],
    maps: &[Vec<u32>],
    ranks: usize,
    limits: &SimilarityLimits,
    stop: StopFlag<'_>,
) -> Result<Documents, SimilarityError> {
    let threads = limits.threads();
    let portion = (limits.memory / 128 / threads).clamp(PORTION.start, PORTION.end);
    let mut documents = Documents {
        sizes: merged.iter().map(|document| document.size).collect(),
        totals: merged.iter().map(|document| document.total).collect(),
        rows: merged.iter().map(|document| document.row).collect(),
        starts: Vec::with_capacity(merged.len() + 1),
        store: Store::new(limits.memory / 2, &limits.scratch),
        ranks,
    };
    documents.starts.push(0);
    let mut rest = merged;
    while !rest.is_empty() {
        let mut parts = Vec::with_capacity(threads);
        while parts.len() < threads && !rest.is_empty() {
            let mut words = 0;
            let fits = |document: &&Document| {
                words += 2 * document.size as usize;
                words <= portion
            };
            let (part, others) = rest.split_at(rest.iter().take_while(fits).count().max(1));
            parts.push(part);
            rest = others;
        }
        let encoded = in_threads(parts, |part| encode(part, stores, maps, stop))?;
        for (words, lengths) in encoded {
            let mut words = words.as_slice();
            for length in lengths {
                let (document, others) = words.split_at(length as usize);
                documents.store.append(document)?;
                documents.starts.push(documents.store.len());
                words = others;
            }
        }
    }
    documents.store.seal()?;
    Ok(documents)
}

fn encode(
    part: &[Document],
    stores: &[Store],
    maps: &[Vec<u32>],
    stop: StopFlag<'_>,
) -> Result<(Vec<u32>, Vec<u32>), SimilarityError> {
    let mut ticker = Ticker::new(stop);
    let (mut words, mut lengths) = (Vec::new(), Vec::with_capacity(part.len()));
    let (mut terms, mut buffer) = (Vec::new(), Vec::new());
    for document in part {
        let (start, end) = document.range();
        let map = &maps[document.reader()];
        let read = decode(stores[document.reader()].get(start, end, &mut buffer)?);
        terms.clear();
        terms.extend(read.filter_map(|(id, count)| {
            let rank = map[id as usize];
            (rank != RARE).then_some(u64::from(rank) << 32 | u64::from(count))
        }));
        sort(&mut terms, |&term| term, stop)?;
        words.extend(terms.iter().map(|term| (term >> 32) as u32));
        words.extend(terms.iter().map(|&term| term as u32));
        lengths.push(2 * terms.len() as u32);
        ticker.work(64 + 8 * document.size as usize)?;
    }
    Ok((words, lengths))
}
