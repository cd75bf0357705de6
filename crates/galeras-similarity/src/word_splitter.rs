//! Splits a text into words.
//!
//! A word is a maximal run of letters, digits (of any script) and `_`. It is kept if it starts with
//! `_` or an ASCII letter: `re.match('[_a-zA-Z][_a-zA-Z0-9]*', token)` checks only the start of a
//! token (dpu_utils 0.6.1).

use super::SimilarityError;
use super::keys;
use super::stoppable::Ticker;

/// The hard keywords of Python 3 except `True` and `False`: the list of dpu_utils 0.6.1.
pub(super) const KEYWORDS: [&str; 33] = [
    "None", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
    "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is",
    "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// Bytes that end a word.
const OTHER: u8 = 0;
/// Bytes that a word may contain but not start with.
const DIGIT: u8 = 1;
/// Bytes that start a kept word.
const LETTER: u8 = 2;
/// Bytes of characters that must be decoded.
const WIDE: u8 = 3;

const CLASSES: [u8; 256] = {
    let mut classes = [OTHER; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'0'..=b'9' => DIGIT,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => LETTER,
            128.. => WIDE,
            _ => OTHER,
        };
        byte += 1;
    }
    classes
};

/// Calls `word` with the key of every kept word, in order.
pub(super) fn each_word(
    text: &str,
    ticker: &mut Ticker<'_>,
    mut word: impl FnMut(u128) -> Result<(), SimilarityError>,
) -> Result<(), SimilarityError> {
    let bytes = text.as_bytes();
    let mut seen = 0;
    let class = |at: usize| bytes.get(at).map(|&byte| CLASSES[usize::from(byte)]);
    let mut at = 0;
    loop {
        let first = loop {
            match class(at) {
                None => return ticker.work(bytes.len() - seen),
                Some(OTHER) => at = after_indentation(bytes, at + 1),
                Some(WIDE) => match wide(text, at) {
                    (_, true) => break WIDE,
                    (length, false) => at += length,
                },
                Some(other) => break other,
            }
        };
        let start = at;
        loop {
            match class(at) {
                Some(DIGIT | LETTER) => at += 1,
                Some(WIDE) => match wide(text, at) {
                    (length, true) => at += length,
                    (_, false) => break,
                },
                _ => break,
            }
        }
        if first == LETTER {
            word(keys::of_word(bytes, start, at))?;
            // Up to the end of the word, so that text between words also counts.
            ticker.work(at - seen)?;
            seen = at;
        }
    }
}

/// `at`, or the place after the blocks of eight spaces there: a third of Python code is
/// indentation.
#[inline]
fn after_indentation(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at..at + 8).is_some_and(|next| next == b"        ") {
        at += 8;
    }
    at
}

/// Length in bytes of the character at `at`; true if it belongs to a word.
#[cold]
fn wide(text: &str, at: usize) -> (usize, bool) {
    let character = text.get(at..).and_then(|rest| rest.chars().next());
    character.map_or((1, false), |c| (c.len_utf8(), c.is_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kept words, which are their own keys: they are short.
    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        each_word(text, &mut Ticker::new(&|| false), |key| {
            let bytes = key.to_le_bytes().into_iter().filter(|byte| *byte != 0).collect();
            words.push(String::from_utf8(bytes).unwrap());
            Ok(())
        })
        .unwrap();
        words
    }

    #[test]
    fn words_are_maximal_runs_of_identifier_characters() {
        assert_eq!(
            words("def f(x_1, *a):\n  return x_1+2"),
            ["def", "f", "x_1", "a", "return", "x_1"]
        );
        assert_eq!(words("__a__.b"), ["__a__", "b"]);
        assert!(words("").is_empty());
    }

    #[test]
    fn runs_that_do_not_start_with_an_ascii_letter_are_ignored_whole() {
        assert!(words("12ab 0x1F ñ ñn 3_a").is_empty());
        assert_eq!(words("nñ ñ a€b «c»"), ["nñ", "a", "b", "c"]);
        assert_eq!(words("ä→b"), ["b"]);
    }
}
