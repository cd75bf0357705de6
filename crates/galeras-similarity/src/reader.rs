//! Reads documents: counts the tokens of each row and leaves out rows that cannot be duplicates.

use super::keys::{self, DocumentKey};
use super::stoppable::{Ticker, check};
use super::store::Store;
use super::vocabulary::{BATCH, DROPPED, Vocabulary};
use super::word_splitter::{KEYWORDS, each_word};
use super::{CorpusCounts, SimilarityError, SimilarityLimits, StopFlag};

/// Marks a token that is followed by its count; without it the token occurs once.
const REPEATED: u32 = 1 << 31;

/// A document's properties apart from its tokens. 40 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Document {
    pub(super) key: DocumentKey,
    /// Its reader (highest 16 bits), and the start of its tokens in the store of that reader.
    place: u64,
    pub(super) size: u32,
    /// Tokens, counted with repetition.
    pub(super) total: u32,
    pub(super) row: u32,
    /// Words in the store.
    words: u32,
}

impl Document {
    /// Sets its reader; fewer than 65,536.
    pub(super) fn set_reader(&mut self, reader: usize) {
        self.place |= (reader as u64) << 48;
    }

    pub(super) fn reader(&self) -> usize {
        (self.place >> 48) as usize
    }

    /// A number that grows with reader and place: the order to read documents in.
    pub(super) fn place(&self) -> u64 {
        self.place
    }

    /// Start and end in the store of its reader.
    pub(super) fn range(&self) -> (u64, u64) {
        let start = self.place & ((1 << 48) - 1);
        (start, start + u64::from(self.words))
    }
}

/// The tokens of a document with their counts, in order of appearance.
pub(super) fn decode(words: &[u32]) -> impl Iterator<Item = (u32, u32)> {
    let mut words = words.iter();
    std::iter::from_fn(move || {
        let &id = words.next()?;
        let count = if id & REPEATED == 0 { 1 } else { *words.next()? };
        Some((id & !REPEATED, count))
    })
}

/// A token of the current document.
struct DocumentToken {
    key: u128,
    id: u32,
    count: u32,
}

/// Collects documents. One per thread, at most `threads` of the
/// [`SimilarityLimits`](crate::SimilarityLimits). The distribution of rows over readers and their
/// order do not affect results.
pub struct CorpusReader {
    pub(super) vocabulary: Vocabulary,
    pub(super) store: Store,
    pub(super) documents: Vec<Document>,
    pub(super) counts: CorpusCounts,
    min_tokens: u32,
    /// The number of the current row, from 1.
    current: u32,
    terms: Vec<DocumentToken>,
    /// Keys of tokens that are not counted yet.
    keys: Vec<u128>,
    encoded: Vec<u32>,
}

impl CorpusReader {
    /// Creates a reader of texts. `drop_keywords` leaves out Python's keywords; rows with fewer
    /// than `min_tokens` remaining words, counted with repetition, or none, are not documents.
    ///
    /// A word is a run of letters, digits and `_` that starts with `_` or an ASCII letter, as in
    /// `DuplicateDetector` of dpu_utils 0.6.1.
    ///
    /// # Errors
    /// [`SimilarityError::Vocabulary`] if the limit is too small for the keywords.
    pub fn words(
        limits: &SimilarityLimits,
        drop_keywords: bool,
        min_tokens: u32,
    ) -> Result<Self, SimilarityError> {
        let mut reader = Self::ids(limits, min_tokens);
        if drop_keywords {
            for word in KEYWORDS {
                let key = keys::of_word(word.as_bytes(), 0, word.len());
                reader.vocabulary.entry(key)?.id = DROPPED;
            }
        }
        Ok(reader)
    }

    /// Creates a reader of token ids, with the same rule for short rows.
    pub fn ids(limits: &SimilarityLimits, min_tokens: u32) -> Self {
        Self {
            vocabulary: Vocabulary::new(limits.memory),
            store: Store::new(limits.memory / 2 / limits.threads(), &limits.scratch),
            documents: Vec::new(),
            counts: CorpusCounts::default(),
            min_tokens: min_tokens.max(1),
            current: 0,
            terms: Vec::new(),
            keys: Vec::with_capacity(BATCH),
            encoded: Vec::new(),
        }
    }

    /// Adds the rows from `first_row` on; `None` is null. No row may be added twice.
    ///
    /// # Errors
    /// - [`SimilarityError::Stopped`] if `stop` returned true;
    /// - [`SimilarityError::Vocabulary`] if the distinct tokens exceed the memory limit;
    /// - [`SimilarityError::TooMany`] if a row's number or its tokens do not fit in 32 bits;
    /// - [`SimilarityError::Scratch`] if token data cannot be written.
    pub fn read_texts<'a>(
        &mut self,
        first_row: u32,
        texts: impl Iterator<Item = Option<&'a str>>,
        stop: StopFlag<'_>,
    ) -> Result<(), SimilarityError> {
        check(stop)?;
        let mut ticker = Ticker::new(stop);
        let mut row = Some(first_row);
        for text in texts {
            let number = row.ok_or(SimilarityError::TooMany("rows"))?;
            row = number.checked_add(1);
            let Some(text) = text else {
                self.null();
                continue;
            };
            self.begin()?;
            each_word(text, &mut ticker, |key| self.count(key))?;
            self.finish(number)?;
            ticker.work(64)?;
        }
        Ok(())
    }

    /// Adds a row of token ids; `None` is null. No row may be added twice.
    ///
    /// # Errors
    /// As [`Self::read_texts`].
    pub fn read_ids(
        &mut self,
        row: u32,
        ids: Option<&[u32]>,
        stop: StopFlag<'_>,
    ) -> Result<(), SimilarityError> {
        let Some(ids) = ids else {
            self.null();
            return Ok(());
        };
        self.begin()?;
        let mut ticker = Ticker::new(stop);
        for &id in ids {
            self.count(keys::of_id(id))?;
            ticker.work(8)?;
        }
        self.finish(row)?;
        // Rows are usually short: a poll at each of them would cost more than reading it.
        if self.current.is_multiple_of(1024) { check(stop) } else { Ok(()) }
    }

    fn null(&mut self) {
        self.counts.rows += 1;
        self.counts.nulls += 1;
    }

    fn begin(&mut self) -> Result<(), SimilarityError> {
        self.current = self.current.checked_add(1).ok_or(SimilarityError::TooMany("rows"))?;
        self.terms.clear();
        self.keys.clear();
        Ok(())
    }

    #[inline]
    fn count(&mut self, key: u128) -> Result<(), SimilarityError> {
        self.keys.push(key);
        if self.keys.len() < BATCH { Ok(()) } else { self.count_batch() }
    }

    fn count_batch(&mut self) -> Result<(), SimilarityError> {
        self.vocabulary.warm(&self.keys);
        for &key in &self.keys {
            let entry = self.vocabulary.entry(key)?;
            if entry.document == self.current {
                self.terms[entry.place as usize].count += 1;
            } else if entry.id != DROPPED {
                entry.document = self.current;
                entry.place = self.terms.len() as u32;
                self.terms.push(DocumentToken { key, id: entry.id, count: 1 });
            }
        }
        self.keys.clear();
        Ok(())
    }

    fn finish(&mut self, row: u32) -> Result<(), SimilarityError> {
        self.count_batch()?;
        self.counts.rows += 1;
        let total: u64 = self.terms.iter().map(|term| u64::from(term.count)).sum();
        let total =
            u32::try_from(total).map_err(|_| SimilarityError::TooMany("tokens in a document"))?;
        if total < self.min_tokens {
            self.counts.too_short += 1;
            return Ok(());
        }
        let mut key = DocumentKey::default();
        self.encoded.clear();
        for term in &self.terms {
            key.add(term.key, term.count);
            if term.count == 1 {
                self.encoded.push(term.id);
            } else {
                self.encoded.extend([term.id | REPEATED, term.count]);
            }
        }
        self.store.append(&self.encoded)?;
        let (size, words) = (self.terms.len() as u32, self.encoded.len() as u32);
        let place = self.store.len() - u64::from(words);
        self.documents.push(Document { key, place, size, total, row, words });
        self.counts.documents += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{GO, limits};

    #[test]
    fn rows_that_cannot_be_duplicates_are_counted_by_reason() {
        let mut reader = CorpusReader::words(&limits(1 << 20, 1), true, 2).unwrap();
        let texts = [Some("a b"), None, Some("a"), Some("def return"), Some("a a")];
        reader.read_texts(7, texts.into_iter(), GO).unwrap();
        let counts = CorpusCounts { rows: 5, documents: 2, too_short: 2, nulls: 1, distinct: 0 };
        assert_eq!(reader.counts, counts);
        let known: Vec<_> = reader.documents.iter().map(|d| (d.row, d.size, d.total)).collect();
        assert_eq!(known, [(7, 2, 2), (11, 1, 2)]);
    }

    #[test]
    fn a_row_without_tokens_is_too_short_whatever_is_asked_for() {
        let mut reader = CorpusReader::ids(&limits(1 << 20, 1), 0);
        reader.read_ids(0, Some(&[]), GO).unwrap();
        reader.read_ids(1, Some(&[5]), GO).unwrap();
        assert_eq!((reader.counts.too_short, reader.counts.documents), (1, 1));
    }

    #[test]
    fn reading_a_long_text_stops_when_asked() {
        let mut reader = CorpusReader::words(&limits(1 << 20, 1), false, 1).unwrap();
        let asked = std::sync::atomic::AtomicU32::new(0);
        let stop = || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 0;
        let text = "ab ".repeat(1_000_000);
        let result = reader.read_texts(0, [Some(text.as_str())].into_iter(), &stop);
        assert!(matches!(result, Err(SimilarityError::Stopped)));
    }
}
