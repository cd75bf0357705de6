//! The numbered tokens of a model.
//!
//! Numbers ascend with the text (as bytes). So they do not depend on the order of the training
//! texts, and tokens with a common prefix are neighbours.

use std::hash::BuildHasher as _;
use std::ops::Range;

use hashbrown::{DefaultHashBuilder, HashTable};

/// The mark before every text. It is only context and never drawn.
pub(super) const BEGIN: u32 = 0;
pub(super) const END: u32 = 1;
/// Ends a sequence of tokens; not a token.
pub(super) const CUT: u32 = u32::MAX;
pub(super) const UNKNOWN: u32 = CUT - 1;

/// Both marks have the empty text; they come first.
pub(super) struct Vocabulary {
    text: String,
    /// The end of each token in `text`.
    ends: Vec<usize>,
    /// The number of each token, by the hash of its text.
    numbers: HashTable<u32>,
    hash: DefaultHashBuilder,
}

impl Vocabulary {
    /// Numbers distinct tokens in ascending order.
    pub(super) fn new(sorted: &[&str]) -> Self {
        let ends = sorted.iter().scan(0, |end, token| {
            *end += token.len();
            Some(*end)
        });
        let hash = DefaultHashBuilder::default();
        let mut numbers = HashTable::with_capacity(sorted.len());
        for (number, token) in (END + 1..).zip(sorted) {
            let hash_of = |number: &u32| hash.hash_one(sorted[(number - END - 1) as usize]);
            numbers.insert_unique(hash.hash_one(token), number, hash_of);
        }
        Self {
            text: sorted.concat(),
            ends: [0, 0].into_iter().chain(ends).collect(),
            numbers,
            hash,
        }
    }

    pub(super) fn len(&self) -> u32 {
        self.ends.len() as u32
    }

    pub(super) fn find(&self, token: &str) -> Option<u32> {
        let same = |number: &u32| self.text(*number) == token;
        self.numbers.find(self.hash.hash_one(token), same).copied()
    }

    /// The text of a token; empty for marks and unknown numbers.
    pub(super) fn text(&self, number: u32) -> &str {
        let end = |at: usize| self.ends.get(at).copied().unwrap_or_default();
        let start = (number as usize).checked_sub(1).map_or(0, end);
        self.text.get(start..end(number as usize)).unwrap_or_default()
    }

    /// The first number whose token is not before `text`.
    pub(super) fn point(&self, text: &str) -> u32 {
        self.first(|token| token >= text)
    }

    /// The numbers of the tokens that start with `prefix`.
    pub(super) fn with_prefix(&self, prefix: &str) -> Range<u32> {
        self.point(prefix)..self.first(|token| token >= prefix && !token.starts_with(prefix))
    }

    /// The first number of a token (except marks) from which on `holds` is true.
    fn first(&self, holds: impl Fn(&str) -> bool) -> u32 {
        let (mut low, mut high) = (END + 1, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if holds(self.text(middle)) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_text_and_prefixes_are_ranges() {
        let vocabulary = Vocabulary::new(&["a", "ab", "ac", "b", "é"]);
        let numbers = ["b", "ab", "a", "ac", "é"].map(|token| vocabulary.find(token));
        assert_eq!(numbers, [5, 3, 2, 4, 6].map(Some));
        let texts: Vec<&str> = (0..vocabulary.len()).map(|n| vocabulary.text(n)).collect();
        assert_eq!(texts, ["", "", "a", "ab", "ac", "b", "é"]);
        assert_eq!(vocabulary.with_prefix("a"), 2..5);
        assert_eq!(vocabulary.with_prefix("ab"), 3..4);
        assert!(vocabulary.with_prefix("aa").is_empty() && vocabulary.with_prefix("z").is_empty());
        assert_eq!(vocabulary.point("aa"), 3);
        assert_eq!((vocabulary.find("b"), vocabulary.find("c")), (Some(5), None));
        assert_eq!(vocabulary.find(""), None);
    }
}
