//! The tokenizers of BLEU.
//!
//! sacrebleu 2.6.0 defines `13a` and `intl` by a sequence of regular expressions that insert
//! spaces. Their effect depends only on a run of points (`.` and `,`; with `intl` all punctuation)
//! and the characters around it, so one pass suffices and tokens are slices of the text.

use std::borrow::Cow;

use galeras_python::is_space;
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

/// A tokenizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BleuTokenizer {
    /// sacrebleu's default, made for WMT (`mteval-v13a.pl`): ASCII punctuation marks are separate
    /// tokens, except for apostrophes, dashes that do not follow a digit, and `.` and `,` between
    /// two digits. `<skipped>` and a dash before a line feed together with the line feed are
    /// removed; `&quot;`, `&amp;`, `&lt;` and `&gt;` are decoded.
    #[default]
    Tok13a,
    /// Splits at white space like Python's `str.split()`: nltk's usual tokens, sacrebleu's `none`.
    Whitespace,
    /// sacrebleu's `intl` (`mteval-v14.pl`): Unicode symbols are separate tokens, and so is
    /// punctuation unless it is between two numbers or after a number at the end of the text.
    Intl,
    /// Every code point except white space: sacrebleu's `char`.
    Char,
}

impl BleuTokenizer {
    /// Calls `token` with every token of `text`, in order, as sacrebleu 2.6.0 splits it.
    pub fn each(self, text: &str, token: impl FnMut(&[u8])) {
        let letter = |c: char| space_or(c, Kind::Letter);
        match self {
            Self::Tok13a => scan(&cleaned(text), &BYTES_13A, letter, Ends::AsOther, token),
            Self::Whitespace => scan(text, &BYTES_SPACE, letter, Ends::AsOther, token),
            Self::Intl => {
                let kind = |c: char| match c.general_category_group() {
                    GeneralCategoryGroup::Number => Kind::Digit,
                    GeneralCategoryGroup::Punctuation => Kind::Point,
                    GeneralCategoryGroup::Symbol => Kind::Alone,
                    _ => letter(c),
                };
                scan(text, &BYTES_INTL, kind, Ends::AsNumber, token);
            }
            Self::Char => {
                scan(text, &BYTES_CHAR, |c| space_or(c, Kind::Alone), Ends::AsOther, token);
            }
        }
    }
}

/// The text after the replacements of `13a`, one after the other: a later one may match the result
/// of an earlier one.
fn cleaned(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    if text.contains('&') || text.contains("-\n") || text.contains("<skipped>") {
        for (from, to) in [
            ("<skipped>", ""),
            ("-\n", ""),
            ("&quot;", "\""),
            ("&amp;", "&"),
            ("&lt;", "<"),
            ("&gt;", ">"),
        ] {
            if text.contains(from) {
                text = text.replace(from, to).into();
            }
        }
    }
    text
}

/// The class of a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Space,
    /// Joins its neighbours.
    Letter,
    /// Like a letter; points next to it may join it.
    Digit,
    /// A separate token.
    Alone,
    /// A separate token, unless it is between numbers.
    Point,
    /// A separate token after a digit, otherwise a letter.
    Dash,
    /// A byte of a non-ASCII character; never the class of a character.
    Wide,
    /// The position before the first or after the last character.
    End,
}

/// How the ends of a text act on a run of points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// Like white space.
    AsOther,
    /// Like a number: a point does not separate from it.
    AsNumber,
}

fn space_or(c: char, other: Kind) -> Kind {
    if is_space(c) { Kind::Space } else { other }
}

const fn kinds(own: &[(&[u8], Kind)], other: Kind) -> [Kind; 256] {
    let mut kinds = [other; 256];
    let mut at = 0;
    while at < own.len() {
        let (bytes, kind) = own[at];
        let mut i = 0;
        while i < bytes.len() {
            kinds[bytes[i] as usize] = kind;
            i += 1;
        }
        at += 1;
    }
    let mut byte = 0;
    while byte < 256 {
        match byte as u8 {
            b'\t'..=b'\r' | b'\x1c'..=b' ' => kinds[byte] = Kind::Space,
            128.. => kinds[byte] = Kind::Wide,
            _ => {}
        }
        byte += 1;
    }
    kinds
}

const DIGITS: &[u8] = b"0123456789";

static BYTES_13A: [Kind; 256] = kinds(
    &[
        (b"!\"#$%&()*+/:;<=>?@[\\]^_`{|}~", Kind::Alone),
        (b".,", Kind::Point),
        (b"-", Kind::Dash),
        (DIGITS, Kind::Digit),
    ],
    Kind::Letter,
);
static BYTES_SPACE: [Kind; 256] = kinds(&[], Kind::Letter);
static BYTES_INTL: [Kind; 256] = kinds(
    &[
        (b"$+<=>^`|~", Kind::Alone),
        (b"!\"#%&'()*,-./:;?@[\\]_{}", Kind::Point),
        (DIGITS, Kind::Digit),
    ],
    Kind::Letter,
);
static BYTES_CHAR: [Kind; 256] = kinds(&[], Kind::Alone);

/// Calls `token` with the tokens of `text`.
///
/// Every point of a run is a token, except that the last one may join its surroundings. The first
/// expression takes points in pairs with the character before them: the last point is left over if
/// the run is odd and follows a number, or is even and follows another character. The second
/// expression separates it unless a number follows.
fn scan(
    text: &str,
    bytes: &[Kind; 256],
    wide: impl Fn(char) -> Kind,
    ends: Ends,
    mut token: impl FnMut(&[u8]),
) {
    let all = text.as_bytes();
    let kind = |at: usize| match all.get(at).map(|&byte| bytes[usize::from(byte)]) {
        None => (Kind::End, 0),
        Some(Kind::Wide) => {
            let character = text.get(at..).and_then(|rest| rest.chars().next());
            character.map_or((Kind::Letter, 1), |c| (wide(c), c.len_utf8()))
        }
        Some(kind) => (kind, 1),
    };
    let mut send = |start: usize, end: usize| {
        if let Some(slice) = all.get(start..end).filter(|slice| !slice.is_empty()) {
            token(slice);
        }
    };
    // The current token begins at `start`; it is empty if `start` equals `at`.
    let (mut start, mut at, mut before) = (0, 0, Kind::End);
    loop {
        let (current, length) = kind(at);
        match current {
            Kind::Letter | Kind::Digit | Kind::Wide => at += length,
            Kind::Dash if before != Kind::Digit => at += length,
            Kind::Space => {
                send(start, at);
                at += length;
                start = at;
            }
            Kind::Alone | Kind::Dash => {
                send(start, at);
                send(at, at + length);
                at += length;
                start = at;
            }
            Kind::Point => {
                let (mut points, mut last, mut behind) = (1, at, at + length);
                let after = loop {
                    match kind(behind) {
                        (Kind::Point, length) => {
                            points += 1;
                            last = behind;
                            behind += length;
                        }
                        (other, _) => break other,
                    }
                };
                let is_number = |k| k == Kind::Digit || (k == Kind::End && ends == Ends::AsNumber);
                let left_over = (points % 2 == 1) == is_number(before);
                let stays = left_over && is_number(after);
                if points > 1 || !stays {
                    send(start, at);
                    let until = if stays { last } else { behind };
                    while at < until {
                        let (_, length) = kind(at);
                        send(at, at + length);
                        at += length;
                    }
                    start = at;
                }
                at = behind;
            }
            Kind::End => return send(start, at),
        }
        before = current;
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ALL, text};
    use super::*;

    /// The tokens separated by spaces, as sacrebleu prints them.
    fn joined(tokenizer: BleuTokenizer, text: &str) -> String {
        let mut tokens = Vec::new();
        tokenizer.each(text, |token| tokens.push(String::from_utf8(token.to_vec()).unwrap()));
        tokens.join(" ")
    }

    #[test]
    fn categories_are_the_peers() {
        for (letter, wanted) in [
            ("N", GeneralCategoryGroup::Number),
            ("P", GeneralCategoryGroup::Punctuation),
            ("S", GeneralCategoryGroup::Symbol),
            ("M", GeneralCategoryGroup::Mark),
        ] {
            let codes: Vec<u64> = ('\0'..=char::MAX)
                .filter(|c| c.general_category_group() == wanted)
                .map(u64::from)
                .collect();
            let found = [codes.len() as u64, codes.iter().sum()];
            let expected = [0, 1].map(|at| ALL["classes"][letter][at].as_u64().unwrap());
            assert_eq!(found, expected, "{letter}");
        }
    }

    #[test]
    fn tokens_are_those_of_the_golden_examples() {
        let examples = [
            ("", ""),
            ("def f(a,b): return a+b", "def f ( a , b ) : return a + b"),
            ("x = a//b  # c", "x = a / / b # c"),
            ("s = 'é→世界'", "s = 'é→世界'"),
            ("a\nb", "a b"),
            ("&lt;x&gt; y.z 3.14 a-b 1-2", "< x > y . z 3.14 a-b 1 - 2"),
        ];
        for (text, expected) in examples {
            assert_eq!(joined(BleuTokenizer::Tok13a, text), expected);
        }
    }

    #[test]
    fn tokens_are_the_peers() {
        let peers = [BleuTokenizer::Tok13a, BleuTokenizer::Intl, BleuTokenizer::Whitespace];
        for row in ALL["tokens"].as_array().unwrap() {
            for (column, tokenizer) in peers.iter().enumerate() {
                let words = row[column + 1].as_array().unwrap();
                let expected: Vec<String> = words.iter().map(text).collect();
                assert_eq!(joined(*tokenizer, &text(&row[0])), expected.join(" "), "{}", row[0]);
            }
        }
    }

    #[test]
    fn characters_are_tokens_but_for_white_space() {
        assert_eq!(joined(BleuTokenizer::Char, " añ\u{a0}e\u{301}🎉.\n"), "a ñ e \u{301} 🎉 .");
    }

    #[test]
    fn results_of_a_replacement_are_replaced_by_later_ones_only() {
        let tokens = |text| joined(BleuTokenizer::Tok13a, text);
        assert_eq!(tokens("&amp;lt;"), "<");
        assert_eq!(tokens("&amp;quot;"), "& quot ;");
        assert_eq!(tokens("<skip<skipped>ped>"), "< skipped >");
        assert_eq!(tokens("a-<skipped>\nb"), "ab");
    }
}
