//! Collects rows that are compared with rows of other tables.

use std::collections::HashMap;

use super::keys::mix;
use super::nearness::{NGRAMS, NearThresholds};
use super::stoppable::Ticker;
use super::token_rows::TokenRows;
use super::vocabulary::{BATCH, Vocabulary};
use super::{CorpusCounts, SimilarityError, SimilarityLimits, StopFlag};

/// Marks a row that is not a document.
pub(super) const NONE: u32 = u32::MAX;

/// Bytes of a document apart from its tokens: sizes, starts, summary, bits of each thread, its hash
/// table entry.
const DOCUMENT: usize = 160;

/// Rows to be compared, as many as memory can index. Rows with the same tokens in the same order
/// are one document.
pub struct Targets {
    pub(super) thresholds: NearThresholds,
    pub(super) limits: SimilarityLimits,
    pub(super) vocabulary: Vocabulary,
    /// The tokens of the documents, one after another, in the order of the text.
    pub(super) sequences: Vec<u32>,
    /// The end of each document's tokens.
    pub(super) ends: Vec<u64>,
    pub(super) sizes: Vec<u32>,
    /// The first document with a sequence of this hash.
    known: HashMap<(u64, u64), u32>,
    pub(super) rows: Vec<u32>,
    counts: CorpusCounts,
    bytes: usize,
}

impl Targets {
    /// Creates an empty collection.
    pub fn new(thresholds: NearThresholds, limits: &SimilarityLimits) -> Self {
        Self {
            thresholds,
            limits: limits.clone(),
            vocabulary: Vocabulary::new(limits.memory),
            sequences: Vec::new(),
            ends: Vec::new(),
            sizes: Vec::new(),
            known: HashMap::new(),
            rows: Vec::new(),
            counts: CorpusCounts::default(),
            bytes: 0,
        }
    }

    /// Adds rows, which are numbered in their order.
    ///
    /// # Errors
    /// - [`SimilarityError::Stopped`] if `stop` returned true;
    /// - [`SimilarityError::Vocabulary`] if the distinct tokens exceed the memory limit;
    /// - [`SimilarityError::TooMany`] if the rows or their tokens cannot be numbered.
    pub fn push(&mut self, rows: &TokenRows, stop: StopFlag<'_>) -> Result<(), SimilarityError> {
        let mut ticker = Ticker::new(stop);
        for row in rows.iter() {
            ticker.work(16 + 8 * row.map_or(0, <[u128]>::len))?;
            self.counts.rows += 1;
            let document = match row {
                None => {
                    self.counts.nulls += 1;
                    NONE
                }
                Some(keys) if keys.len() < self.thresholds.similar.min_tokens.max(1) as usize => {
                    self.counts.too_short += 1;
                    NONE
                }
                Some(keys) => {
                    self.counts.documents += 1;
                    self.document(keys)?
                }
            };
            self.rows.push(document);
        }
        Ok(())
    }

    /// The document with these tokens.
    fn document(&mut self, keys: &[u128]) -> Result<u32, SimilarityError> {
        let number = self.ends.len();
        // The vocabulary numbers documents from 1; `NONE` is not one.
        let current = u32::try_from(number + 1).map_err(|_| SimilarityError::TooMany("rows"))?;
        u32::try_from(keys.len()).map_err(|_| SimilarityError::TooMany("tokens in a document"))?;
        let start = self.sequences.len();
        let mut size = 0_u32;
        let mut hash = (0x2D35_8DCC_AA6C_78A5_u64, 0x8BB8_4B93_962E_ACC9_u64);
        for batch in keys.chunks(BATCH) {
            self.vocabulary.warm(batch);
            for &key in batch {
                let entry = self.vocabulary.entry(key)?;
                if entry.document != current {
                    entry.document = current;
                    size += 1;
                }
                let id = u64::from(entry.id);
                self.sequences.push(entry.id);
                hash.0 = mix(hash.0 ^ id);
                hash.1 = mix(hash.1.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(id));
            }
        }
        if let Some(&known) = self.known.get(&hash)
            && self.sequence(known as usize) == &self.sequences[start..]
        {
            self.sequences.truncate(start);
            // `current` is not a document yet; the next one reuses its number.
            for &key in keys {
                self.vocabulary.entry(key)?.document = 0;
            }
            return Ok(known);
        }
        let number = number as u32;
        self.known.entry(hash).or_insert(number);
        self.ends.push(self.sequences.len() as u64);
        self.sizes.push(size);
        self.bytes += self.document_bytes(keys.len(), size as usize);
        Ok(number)
    }

    fn sequence(&self, document: usize) -> &[u32] {
        let start = document.checked_sub(1).map_or(0, |before| self.ends[before]) as usize;
        &self.sequences[start..self.ends[document] as usize]
    }

    /// Upper bound of the memory that a document takes while the index is built.
    fn document_bytes(&self, total: usize, size: usize) -> usize {
        let set = self.thresholds.similar.set;
        let grams = NGRAMS.iter().zip(self.thresholds.containment).map(|(n, least)| {
            let prefix = (1.0 - least) * (total as f64) + 1.0;
            if least > 0.0 && total >= *n { 20 * prefix as usize + total } else { 0 }
        });
        let prefix = (1.0 - set) * (size as f64) + 1.0;
        let threads = self.limits.threads();
        DOCUMENT + 16 * threads + 4 * total + 8 * size + 4 * prefix as usize + grams.sum::<usize>()
    }

    /// Counts of the rows so far.
    pub fn counts(&self) -> CorpusCounts {
        CorpusCounts { distinct: self.ends.len() as u64, ..self.counts }
    }

    /// True if an index of more rows would exceed the memory limit.
    pub fn is_full(&self) -> bool {
        // Vectors and the table grow by doubling.
        let held = self.bytes + 2 * self.vocabulary.held() + 16 * self.vocabulary.len();
        held > self.limits.memory
    }
}
