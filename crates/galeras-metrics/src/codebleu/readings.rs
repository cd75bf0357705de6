//! A cache of parsed texts within a memory limit, shared by threads.
//!
//! In a table of scores, texts repeat: the reference under every treatment, the version of a method
//! that is the result of one commit and the start of the next, equal answers. Two generations are
//! kept; a used entry moves to the younger one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::scorer::CodeBleuMode;
use super::symbols::hash;

/// The bytes of text in a generation; an entry takes about ten times as many.
const KEPT_BYTES: usize = 2 << 20;

/// Longer texts are not kept.
const LONGEST: usize = 64 << 10;

/// Subtrees and data flow of a text.
#[derive(Debug)]
pub(super) struct ParsedText {
    text: Box<str>,
    pub(super) subtrees: Box<[u128]>,
    pub(super) flow: Box<[u128]>,
}

impl ParsedText {
    pub(super) fn new(text: &str, subtrees: &[u128], flow: &[u128]) -> Self {
        Self { text: text.into(), subtrees: subtrees.into(), flow: flow.into() }
    }
}

/// A cache of parsed texts for scorers of one mode, of some tens of megabytes. Clones share it:
/// pass one to the scorer of each thread.
#[derive(Clone, Debug, Default)]
pub struct CodeBleuReadings {
    pub(super) mode: CodeBleuMode,
    kept: Arc<Mutex<ParseCache>>,
}

impl CodeBleuReadings {
    /// An empty cache.
    #[must_use]
    pub fn new(mode: CodeBleuMode) -> Self {
        Self { mode, kept: Arc::default() }
    }

    /// The cached reading of a text.
    pub(super) fn get(&self, text: &str) -> Option<Arc<ParsedText>> {
        let key = hash(text.as_bytes());
        let (known, forgotten) = {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.get(key, text)
        };
        // The old generation is freed outside the lock.
        drop(forgotten);
        known
    }

    /// Adds a reading and returns it.
    pub(super) fn keep(&self, reading: ParsedText) -> Arc<ParsedText> {
        let reading = Arc::new(reading);
        if reading.text.len() <= LONGEST {
            let key = hash(reading.text.as_bytes());
            let forgotten = {
                let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.insert(key, Arc::clone(&reading))
            };
            drop(forgotten);
        }
        reading
    }
}

type Generation = HashMap<u64, Arc<ParsedText>>;

/// Two generations of readings by the hashes of their texts.
#[derive(Debug, Default)]
struct ParseCache {
    younger: Generation,
    older: Generation,
    /// Bytes of the younger texts.
    bytes: usize,
}

impl ParseCache {
    /// The reading of a text, and the generation to free.
    fn get(&mut self, key: u64, text: &str) -> (Option<Arc<ParsedText>>, Generation) {
        // Hashes may collide, so the texts are compared.
        let known = self.younger.get(&key).filter(|known| *known.text == *text);
        if known.is_some() {
            return (known.cloned(), Generation::new());
        }
        let known = self.older.remove(&key).filter(|known| *known.text == *text);
        let forgotten = known.iter().map(|known| self.insert(key, Arc::clone(known))).next();
        (known, forgotten.unwrap_or_default())
    }

    /// Adds a reading; returns the generation to free.
    fn insert(&mut self, key: u64, reading: Arc<ParsedText>) -> Generation {
        self.bytes += reading.text.len();
        let mut forgotten = Generation::new();
        if self.bytes > KEPT_BYTES {
            forgotten = std::mem::replace(&mut self.older, std::mem::take(&mut self.younger));
            self.bytes = reading.text.len();
        }
        self.younger.insert(key, reading);
        forgotten
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(text: &str) -> ParsedText {
        ParsedText::new(text, &[text.len() as u128], &[])
    }

    #[test]
    fn used_entries_stay_and_others_leave_within_two_generations() {
        let readings = CodeBleuReadings::default();
        readings.keep(reading("used"));
        readings.keep(reading("unused"));
        let filler = "x".repeat(LONGEST);
        for n in 0..3 * KEPT_BYTES / LONGEST {
            readings.keep(reading(&format!("{n}{}", &filler[..LONGEST - 4])));
            let used = readings.get("used").map(|known| known.subtrees[0]);
            assert_eq!(used, Some(4), "{n}");
            assert!(readings.kept.lock().unwrap().bytes <= KEPT_BYTES);
        }
        assert!(readings.get("unused").is_none());
        let readings = readings.kept.lock().unwrap();
        let kept = readings.younger.values().chain(readings.older.values());
        assert!(kept.map(|known| known.text.len()).sum::<usize>() <= 2 * KEPT_BYTES);
    }

    #[test]
    fn long_texts_are_given_back_and_not_kept() {
        let readings = CodeBleuReadings::default();
        let long = "y".repeat(LONGEST + 1);
        assert_eq!(readings.keep(reading(&long)).subtrees[0], long.len() as u128);
        assert!(readings.get(&long).is_none());
    }
}
