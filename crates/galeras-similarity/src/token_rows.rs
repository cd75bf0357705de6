//! The tokens of rows as keys, in their order.

use super::keys;
use super::stoppable::Ticker;
use super::word_splitter::{KEYWORDS, each_word};
use super::{SimilarityError, StopFlag};

/// A batch of rows as tokens. May be refilled.
pub struct TokenRows {
    keys: Vec<u128>,
    /// The end of each row's tokens; `None` for a null.
    ends: Vec<Option<usize>>,
    /// Keys that are left out, ascending.
    dropped: Vec<u128>,
}

impl TokenRows {
    /// Creates an empty batch. `drop_keywords` leaves out Python's keywords of the texts to come.
    pub fn new(drop_keywords: bool) -> Self {
        let keywords: &[&str] = if drop_keywords { &KEYWORDS } else { &[] };
        let key = |word: &&str| keys::of_word(word.as_bytes(), 0, word.len());
        let mut dropped: Vec<u128> = keywords.iter().map(key).collect();
        dropped.sort_unstable();
        Self { keys: Vec::new(), ends: Vec::new(), dropped }
    }

    /// Forgets the rows.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.ends.clear();
    }

    /// Adds a row of text; `None` is null. Words are those of
    /// [`CorpusReader::words`](super::CorpusReader::words).
    ///
    /// # Errors
    /// [`SimilarityError::Stopped`] if `stop` returned true.
    pub fn push_text(
        &mut self,
        text: Option<&str>,
        stop: StopFlag<'_>,
    ) -> Result<(), SimilarityError> {
        let Some(text) = text else {
            self.ends.push(None);
            return Ok(());
        };
        each_word(text, &mut Ticker::new(stop), |key| {
            if self.dropped.is_empty() || self.dropped.binary_search(&key).is_err() {
                self.keys.push(key);
            }
            Ok(())
        })?;
        self.ends.push(Some(self.keys.len()));
        Ok(())
    }

    /// Adds a row of token ids; `None` is null.
    pub fn push_ids(&mut self, ids: Option<&[u32]>) {
        self.keys.extend(ids.unwrap_or_default().iter().map(|&id| keys::of_id(id)));
        self.ends.push(ids.map(|_| self.keys.len()));
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The keys of the tokens of each row, in their order; `None` for a null.
    pub fn iter(&self) -> impl Iterator<Item = Option<&[u128]>> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let row = start..(*end)?;
            start = row.end;
            Some(&self.keys[row])
        })
    }

    /// The tokens of a row; `None` for a null, or if there is no such row.
    pub(super) fn row(&self, row: usize) -> Option<&[u128]> {
        let end = (*self.ends.get(row)?)?;
        let start = self.ends[..row].iter().rev().find_map(|end| *end).unwrap_or(0);
        Some(&self.keys[start..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_with_their_nulls_and_without_keywords() {
        let mut rows = TokenRows::new(true);
        for text in [Some("def f(x): return x"), None, Some(""), None, Some("a if True else a")] {
            rows.push_text(text, &|| false).unwrap();
        }
        let lengths: Vec<_> = rows.iter().map(|row| row.map(<[u128]>::len)).collect();
        assert_eq!(lengths, [Some(3), None, Some(0), None, Some(3)]);
        for (at, row) in rows.iter().enumerate() {
            assert_eq!(rows.row(at), row, "{at}");
        }
        assert_eq!(rows.row(5), None);
        rows.clear();
        rows.push_ids(Some(&[7, 7]));
        rows.push_ids(None);
        assert_eq!(rows.iter().collect::<Vec<_>>(), [Some(&[8_u128, 8][..]), None]);
    }
}
