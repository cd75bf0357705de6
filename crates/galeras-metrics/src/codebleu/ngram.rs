//! The exact table of a reference's n-grams of orders 1 to 4 over tokens separated by white space,
//! and the matches of a hypothesis.
//!
//! An n-gram is a number, found in one table by the number of its first n - 1 tokens and its last
//! token. So no hash is approximate, and one pass over a hypothesis counts all orders.

use super::counts::CodeBleuCounts;
use super::scorer::CodeBleuMode;
use super::symbols::{Names, fold};
use galeras_python::words;

/// True for the tokens in CodeXGLUE's list of Python keywords.
fn is_keyword(token: &str) -> bool {
    matches!(
        token,
        "False"
            | "None"
            | "True"
            | "and"
            | "as"
            | "assert"
            | "async"
            | "await"
            | "break"
            | "class"
            | "continue"
            | "def"
            | "del"
            | "elif"
            | "else"
            | "except"
            | "finally"
            | "for"
            | "from"
            | "global"
            | "if"
            | "import"
            | "in"
            | "is"
            | "lambda"
            | "nonlocal"
            | "not"
            | "or"
            | "pass"
            | "raise"
            | "return"
            | "try"
            | "while"
            | "with"
            | "yield"
    )
}

/// Soft keywords, which the other modes also count.
fn is_soft_keyword(token: &str) -> bool {
    matches!(token, "match" | "case" | "type")
}

/// The n-grams of one reference.
#[derive(Clone, Debug)]
pub(super) struct Grams {
    /// Tokens; their numbers are those of the unigrams.
    names: Names,
    /// Longer n-grams as (number of the n-gram's prefix, last token) in one word; their numbers
    /// follow those of the tokens.
    longer: Vec<u64>,
    /// Index + 1 in `longer`, 0 if free; open addressing over a power of two.
    table: Vec<u32>,
    /// The occurrences of each n-gram.
    counts: Vec<u32>,
    keyword: Vec<bool>,
    len: usize,
    fifths: u64,
}

fn key(before: u32, token: u32) -> u64 {
    (u64::from(before) << 32) | u64::from(token)
}

impl Grams {
    /// Reads a reference; `numbers` is a buffer.
    pub(super) fn of(text: &str, mode: CodeBleuMode, numbers: &mut Vec<u32>) -> Self {
        let mut grams = Self {
            names: Names::default(),
            longer: Vec::new(),
            table: Vec::new(),
            counts: Vec::new(),
            keyword: Vec::new(),
            len: 0,
            fifths: 0,
        };
        numbers.clear();
        for token in words(text) {
            let number = grams.names.intern(token.as_bytes());
            if number as usize == grams.keyword.len() {
                let soft = mode != CodeBleuMode::CodeXGlue && is_soft_keyword(token);
                grams.keyword.push(soft || is_keyword(token));
                grams.counts.push(0);
            }
            grams.counts[number as usize] += 1;
            grams.fifths += if grams.keyword[number as usize] { 5 } else { 1 };
            numbers.push(number);
        }
        grams.len = numbers.len();
        grams.longer.reserve(grams.len * 3);
        grams.counts.reserve(grams.len * 3);
        grams.table.resize((grams.len * 6).next_power_of_two(), 0);
        let mut before = [None; 3];
        for &token in &*numbers {
            let mut now = [Some(token), None, None];
            for (order, shorter) in before.into_iter().enumerate() {
                let Some(shorter) = shorter else { break };
                let number = grams.insert(key(shorter, token));
                if let Some(next) = now.get_mut(order + 1) {
                    *next = Some(number);
                }
            }
            before = now;
        }
        grams
    }

    /// The slot of an n-gram or of its insertion, and its number.
    fn find(&self, key: u64) -> (usize, Option<u32>) {
        let mask = self.table.len() - 1;
        let mut slot = fold(key ^ 0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9) as usize & mask;
        loop {
            let place = self.table[slot];
            if place == 0 {
                return (slot, None);
            }
            if self.longer[place as usize - 1] == key {
                return (slot, Some(self.keyword.len() as u32 + place - 1));
            }
            slot = (slot + 1) & mask;
        }
    }

    fn insert(&mut self, key: u64) -> u32 {
        let (slot, known) = self.find(key);
        let number = known.unwrap_or_else(|| {
            self.longer.push(key);
            self.table[slot] = self.longer.len() as u32;
            self.counts.push(0);
            self.counts.len() as u32 - 1
        });
        self.counts[number as usize] += 1;
        number
    }

    /// Counts the n-grams of a hypothesis; `left` is a buffer.
    pub(super) fn count(&self, hypothesis: &str, left: &mut Vec<u32>, counts: &mut CodeBleuCounts) {
        left.clear();
        left.extend_from_slice(&self.counts);
        let mut take = |number: u32| {
            let left = &mut left[number as usize];
            let taken = u32::from(*left > 0);
            *left -= taken;
            u64::from(taken)
        };
        let mut len = 0;
        let mut before = [None; 3];
        for token in words(hypothesis) {
            len += 1;
            let Some(token) = self.names.get(token.as_bytes()) else {
                before = [None; 3];
                continue;
            };
            let taken = take(token);
            counts.matched[0] += taken;
            counts.matched_fifths += if self.keyword[token as usize] { 5 * taken } else { taken };
            let mut now = [Some(token), None, None];
            for (order, shorter) in before.into_iter().enumerate() {
                let Some(shorter) = shorter else { break };
                let (_, Some(number)) = self.find(key(shorter, token)) else { break };
                counts.matched[order + 1] += take(number);
                if let Some(next) = now.get_mut(order + 1) {
                    *next = Some(number);
                }
            }
            before = now;
        }
        let ngrams = |len: usize, n: usize| (len + 1).saturating_sub(n).max(1) as u64;
        counts.hypothesis_tokens += len as u64;
        counts.reference_tokens += self.len as u64;
        for n in 1..=4 {
            counts.hypothesis_ngrams[n - 1] += ngrams(len, n);
        }
        for n in 2..=4 {
            counts.reference_ngrams[n - 2] += ngrams(self.len, n);
        }
        counts.reference_fifths += self.fifths.max(5);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn counted(reference: &str, hypothesis: &str) -> CodeBleuCounts {
        let mut counts = CodeBleuCounts::default();
        Grams::of(reference, CodeBleuMode::Strict, &mut Vec::new()).count(
            hypothesis,
            &mut Vec::new(),
            &mut counts,
        );
        counts
    }

    /// Clipped matches of one order by the definition.
    fn clipped(reference: &str, hypothesis: &str, n: usize) -> u64 {
        let bag = |text: &str| {
            let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            let mut bag = HashMap::<Vec<String>, u64>::new();
            words.windows(n).for_each(|gram| *bag.entry(gram.to_vec()).or_default() += 1);
            bag
        };
        let reference = bag(reference);
        bag(hypothesis).iter().map(|(g, n)| *n.min(reference.get(g).unwrap_or(&0))).sum()
    }

    #[test]
    fn matches_are_clipped_in_every_order() {
        let texts =
            ["a b a b a b", "a b c a b", "b a", "", "a a a a a a", "c d a b a b c", "x y z"];
        for reference in texts {
            for hypothesis in texts {
                let counts = counted(reference, hypothesis);
                for n in 1..=4 {
                    let expected = clipped(reference, hypothesis, n);
                    assert_eq!(counts.matched[n - 1], expected, "{reference:?} {hypothesis:?}");
                }
            }
        }
    }

    #[test]
    fn keywords_weigh_five_fifths() {
        let counts = counted("if x : return y", "return x");
        assert_eq!((counts.matched_fifths, counts.reference_fifths), (6, 13));
        assert_eq!(counts.hypothesis_ngrams, [2, 1, 1, 1]);
        assert_eq!(counts.reference_ngrams, [4, 3, 2]);
    }

    #[test]
    fn an_empty_side_has_one_ngram_of_each_order() {
        let counts = counted("", "");
        assert_eq!((counts.reference_fifths, counts.reference_ngrams), (5, [1; 3]));
        assert_eq!((counts.hypothesis_ngrams, counts.matched), ([1; 4], [0; 4]));
    }

    #[test]
    fn white_space_is_pythons() {
        assert_eq!(words("a\u{1c}b\u{a0}c\u{2003}d\u{feff}e\u{200b}f").count(), 4);
    }

    #[test]
    fn soft_keywords_are_none_for_codexglue() {
        let fifths = |mode| Grams::of("match case type x", mode, &mut Vec::new()).fifths;
        assert_eq!(fifths(CodeBleuMode::CodeXGlue), 4);
        assert_eq!(fifths(CodeBleuMode::Published), 16);
    }
}
