//! What was read of texts, while they may come again.
//!
//! Here: keeping it within bounds, for all threads. Not here: how it is read (`syntax`,
//! `dataflow`).
//!
//! In a table of scores texts come again: the reference under every treatment, the version of a
//! method that one commit made and the next one changed, equal answers. Two generations are kept;
//! what is used again goes over to the younger one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::mode::CodeBleuMode;
use super::symbols::hash;

/// Bytes of text in a generation; what is kept of a text takes about ten times as many.
const KEPT_BYTES: usize = 2 << 20;

/// Longer texts are not kept.
const LONGEST: usize = 64 << 10;

/// Subtrees and data flow of a text.
#[derive(Debug)]
pub(super) struct Reading {
    text: Box<str>,
    pub(super) subtrees: Box<[u128]>,
    pub(super) flow: Box<[u128]>,
}

impl Reading {
    pub(super) fn new(text: &str, subtrees: &[u128], flow: &[u128]) -> Self {
        Self { text: text.into(), subtrees: subtrees.into(), flow: flow.into() }
    }
}

/// What scorers of one mode have read of texts that may come again, within some tens of megabytes.
/// Clones share it: give one to the scorer of each thread.
#[derive(Clone, Debug, Default)]
pub struct CodeBleuReadings {
    pub(super) mode: CodeBleuMode,
    kept: Arc<Mutex<Readings>>,
}

impl CodeBleuReadings {
    /// Nothing yet.
    #[must_use]
    pub fn new(mode: CodeBleuMode) -> Self {
        Self { mode, kept: Arc::default() }
    }

    /// The reading of a text, if it is still there.
    pub(super) fn get(&self, text: &str) -> Option<Arc<Reading>> {
        let key = hash(text.as_bytes());
        let (known, forgotten) = {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.get(key, text)
        };
        // What goes is freed while other threads go on.
        drop(forgotten);
        known
    }

    /// Keeps a reading, and gives it back.
    pub(super) fn keep(&self, reading: Reading) -> Arc<Reading> {
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

type Generation = HashMap<u64, Arc<Reading>>;

/// Readings by the hashes of their texts.
#[derive(Debug, Default)]
struct Readings {
    younger: Generation,
    older: Generation,
    /// Bytes of the younger texts.
    bytes: usize,
}

impl Readings {
    /// The reading of a text, and what is forgotten for it.
    fn get(&mut self, key: u64, text: &str) -> (Option<Arc<Reading>>, Generation) {
        // Hashes find a text, and do not tell it from others.
        let known = self.younger.get(&key).filter(|known| *known.text == *text);
        if known.is_some() {
            return (known.cloned(), Generation::new());
        }
        let known = self.older.remove(&key).filter(|known| *known.text == *text);
        let forgotten = known.iter().map(|known| self.insert(key, Arc::clone(known))).next();
        (known, forgotten.unwrap_or_default())
    }

    /// Adds a reading; returns what is forgotten for it.
    fn insert(&mut self, key: u64, reading: Arc<Reading>) -> Generation {
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

    fn reading(text: &str) -> Reading {
        Reading::new(text, &[text.len() as u128], &[])
    }

    #[test]
    fn what_is_used_stays_and_the_rest_goes_within_two_generations() {
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
