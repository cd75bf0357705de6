//! ROUGE-L (Lin 2004): F1 of the longest common subsequence of the words of two texts.
//!
//! As in rouge_score 0.1.2 with its default tokenizer: precision is the length over the words of
//! the hypothesis, recall over those of the reference. ROUGE-N, ROUGE-Lsum and stemming are not
//! included.

use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

use super::without_common_ends;
use crate::interner::{Interner, UNKNOWN};

/// The characters of words, in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RougeWords {
    /// `[a-z0-9]+`, as in rouge_score: all other characters separate words, including `ñ`.
    #[default]
    Ascii,
    /// Letters, numbers and combining marks of every script. Equals `Ascii` for ASCII texts.
    /// Canonically equivalent spellings are different words.
    Unicode,
}

impl RougeWords {
    fn has(self, c: char) -> bool {
        match self {
            Self::Ascii => c.is_ascii_alphanumeric(),
            Self::Unicode => {
                use GeneralCategoryGroup::{Mark, Number};
                c.is_alphanumeric() || matches!(c.general_category_group(), Mark | Number)
            }
        }
    }

    /// Calls `word` with every word of `text` in lower case, in order.
    fn each(self, text: &str, buffer: &mut Vec<u8>, mut word: impl FnMut(&[u8])) {
        buffer.clear();
        let mut end = |buffer: &mut Vec<u8>| {
            if !buffer.is_empty() {
                word(buffer);
                buffer.clear();
            }
        };
        let mut rest = text;
        loop {
            let wide = rest.bytes().position(|byte| byte >= 128).unwrap_or(rest.len());
            let (ascii, others) = rest.split_at(wide);
            for byte in ascii.bytes() {
                if byte.is_ascii_alphanumeric() {
                    buffer.push(byte.to_ascii_lowercase());
                } else {
                    end(buffer);
                }
            }
            let mut others = others.chars();
            let Some(wide) = others.next() else { break };
            rest = others.as_str();
            // Some characters become ASCII letters, such as the Kelvin sign.
            for c in wide.to_lowercase() {
                // Lower-case sigma has two forms, which depend on its position.
                let c = if c == 'ς' { 'σ' } else { c };
                if self.has(c) {
                    buffer.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                } else {
                    end(buffer);
                }
            }
        }
        end(buffer);
    }
}

/// Computes ROUGE-L; keeps its buffers between calls.
#[derive(Debug, Default)]
pub struct RougeL {
    words: RougeWords,
    interner: Interner,
    word: Vec<u8>,
    reference: Vec<u32>,
    hypothesis: Vec<u32>,
    subsequence: Subsequence,
}

impl RougeL {
    /// A scorer that splits texts into these words.
    pub fn new(words: RougeWords) -> Self {
        Self { words, ..Self::default() }
    }

    /// F1 of the longest common subsequence of words (Lin 2004, as in rouge_score 0.1.2), between 0
    /// and 1. 0 if a text has no words.
    ///
    /// For m and n words after removing the common prefix and suffix, time is O(m n / 64), memory
    /// O(m + n).
    pub fn score(&mut self, reference: &str, hypothesis: &str) -> f64 {
        self.score_within(reference, hypothesis, u64::MAX).unwrap_or(0.0)
    }

    /// As [`RougeL::score`], or `None` if that takes more than `steps` steps, each of a word of one
    /// text and 64 of the other. [`MAX_STEPS`](super::MAX_STEPS) takes minutes.
    pub fn score_within(&mut self, reference: &str, hypothesis: &str, steps: u64) -> Option<f64> {
        let Self { words, interner, word, reference: r, hypothesis: h, subsequence } = self;
        interner.clear();
        r.clear();
        h.clear();
        words.each(reference, word, |word| r.push(interner.id(word)));
        words.each(hypothesis, word, |word| h.push(interner.find(word)));
        let common = subsequence.length(r, h, interner.count(), steps)?;
        if common == 0 {
            return Some(0.0);
        }
        let precision = common as f64 / h.len() as f64;
        let recall = common as f64 / r.len() as f64;
        Some(2.0 * precision * recall / (precision + recall))
    }
}

/// Rows in a machine word.
const WORD: usize = 64;

/// Computes lengths of longest common subsequences.
#[derive(Debug, Default)]
struct Subsequence {
    /// Item -> the rows of the current stripe in which `a` has it; zeros between calls.
    rows: Vec<u64>,
    /// By column, 64 in a word: a bit is set if the length rises there in the last computed row.
    borders: Vec<u64>,
}

impl Subsequence {
    /// The length for `a`, whose items are below `items`, and `b`, unless it takes more than
    /// `steps`.
    ///
    /// Stripes of 64 rows are computed one after the other; a bit of the state is set if the length
    /// does not rise in this row (Hyyrö 2004: "Bit-parallel LCS-length computation revisited").
    fn length(&mut self, a: &[u32], b: &[u32], items: usize, steps: u64) -> Option<usize> {
        let (a, b, mut length) = without_common_ends(a, b);
        if (a.len().div_ceil(WORD) as u64).saturating_mul(b.len() as u64) > steps {
            return None;
        }
        if self.rows.len() < items {
            self.rows.resize(items, 0);
        }
        self.borders.clear();
        self.borders.resize(b.len().div_ceil(WORD), 0);
        for pattern in a.chunks(WORD) {
            for (row, &item) in pattern.iter().enumerate() {
                if let Some(bits) = self.rows.get_mut(item as usize) {
                    *bits |= 1 << row;
                }
            }
            let mut state = !0u64;
            for (columns, border) in b.chunks(WORD).zip(&mut self.borders) {
                let mut below = 0;
                for (column, &item) in columns.iter().enumerate() {
                    let equal = match item {
                        UNKNOWN => 0,
                        item => self.rows.get(item as usize).copied().unwrap_or(0),
                    };
                    let reached = state & equal;
                    let (sum, carried) = state.carrying_add(reached, *border >> column & 1 == 1);
                    state = sum | (state - reached);
                    below |= u64::from(carried) << column;
                }
                *border = below;
            }
            length += (!state).count_ones() as usize;
            for &item in pattern {
                if let Some(bits) = self.rows.get_mut(item as usize) {
                    *bits = 0;
                }
            }
        }
        Some(length)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{self, ALL, Numbers, assert_close, text};
    use super::*;

    fn words(words: RougeWords, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        words.each(text, &mut Vec::new(), |word| {
            found.push(String::from_utf8(word.to_vec()).unwrap());
        });
        found
    }

    #[test]
    fn scores_are_the_peers() {
        let mut rouge = RougeL::default();
        for pair in tests::pairs() {
            let ours = rouge.score(&pair.reference, &pair.hypothesis);
            assert_close(ours, pair.value("rouge_l"), &pair);
        }
    }

    #[test]
    fn ascii_words_are_the_peers() {
        for row in ALL["tokens"].as_array().unwrap() {
            let expected: Vec<String> = row[4].as_array().unwrap().iter().map(text).collect();
            let found = words(RougeWords::Ascii, row[0].as_str().unwrap());
            assert_eq!(found, expected, "{}", row[0]);
            if row[0].as_str().unwrap().is_ascii() {
                assert_eq!(words(RougeWords::Unicode, row[0].as_str().unwrap()), expected);
            }
        }
    }

    #[test]
    fn unicode_words_keep_letters_of_all_scripts() {
        let found = |text| words(RougeWords::Unicode, text);
        assert_eq!(found("Año_x1 ÉTÉ"), ["año", "x1", "été"]);
        assert_eq!(found("n\u{303}a E\u{301}"), ["n\u{303}a", "e\u{301}"]);
        assert_eq!(found("世界 ½ ²x «Ω»"), ["世界", "½", "²x", "ω"]);
        assert_eq!(found("ΟΔΟΣ οδος"), ["οδοσ", "οδοσ"]);
        let mut unicode = RougeL::new(RougeWords::Unicode);
        assert_eq!(RougeL::default().score("señal", "se al"), 1.0);
        assert_eq!(unicode.score("señal", "se al"), 0.0);
        assert_eq!(unicode.score("SEÑAL", "señal"), 1.0);
    }

    #[test]
    fn a_score_that_takes_too_many_steps_is_none() {
        let mut rouge = RougeL::default();
        let (a, b) = ("a b ".repeat(500), "b c ".repeat(300));
        // 16 words of 64 rows, 600 columns.
        assert_eq!(rouge.score_within(&a, &b, 9_599), None);
        assert_eq!(rouge.score_within(&a, &b, 9_600), Some(rouge.score(&a, &b)));
        assert_eq!(rouge.score_within(&a, &a, 0), Some(1.0));
    }

    fn by_table(a: &[u32], b: &[u32]) -> usize {
        let mut row = vec![0; b.len() + 1];
        for x in a {
            let mut diagonal = 0;
            for (j, y) in b.iter().enumerate() {
                let longer = if x == y { diagonal + 1 } else { row[j].max(row[j + 1]) };
                diagonal = std::mem::replace(&mut row[j + 1], longer);
            }
        }
        row[b.len()]
    }

    #[test]
    fn lengths_around_the_word_size_are_as_by_the_table() {
        let (mut subsequence, mut numbers) = (Subsequence::default(), Numbers::new(6));
        let lengths = [0, 1, 2, 62, 63, 64, 65, 66, 127, 128, 129, 130, 192, 300];
        for items in [1, 2, 4, 30] {
            let all: Vec<u32> = (0..items).chain([UNKNOWN]).collect();
            for m in lengths {
                for n in lengths {
                    let a = numbers.some(&all[..items as usize], m);
                    let b = numbers.some(&all, n);
                    let found = subsequence.length(&a, &b, items as usize, u64::MAX).unwrap();
                    assert_eq!(found, by_table(&a, &b), "{a:?} {b:?}");
                    let edited = numbers.edited(&a, &all, n / 4);
                    let found = subsequence.length(&a, &edited, items as usize, u64::MAX).unwrap();
                    assert_eq!(found, by_table(&a, &edited), "{a:?} {edited:?}");
                }
            }
        }
    }
}
