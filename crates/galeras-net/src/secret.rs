//! A key or token that cannot be shown by accident.
//!
//! It keeps the name of its variable, and removes the key from texts of a server.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// The replacement of a key.
const MASK: &str = "***";

/// A piece of the key with at least so many characters is always removed.
const TELLING: usize = 8;

/// So many invisible characters or spaces may stand between two characters of the key.
const GAP: usize = 16;

/// A piece with at least so many characters is removed next to a server's own mask.
const TELLING_BESIDE_MASK: usize = 3;

/// Keys shorter than this (`EMPTY`, `ollama`) are not secrets: many servers take any word. They
/// are removed from messages, but not from answers, which may hold such words for other reasons.
const SERIOUS: usize = 16;

/// The reason why a text is not a key. Names the variable, never its value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidSecret(String);

/// The key of a server. Its `Debug` shows the name of its variable only; it has no `Display`.
#[derive(Clone)]
pub struct Secret {
    variable: String,
    key: String,
}

impl Secret {
    /// The key that the environment variable `variable` holds; white space around it is dropped.
    ///
    /// # Errors
    /// [`InvalidSecret`] if `key` is empty, or holds anything but letters, digits and punctuation
    /// of ASCII.
    pub fn new(variable: impl Into<String>, key: &str) -> Result<Self, InvalidSecret> {
        let (variable, key) = (variable.into(), key.trim().to_string());
        if key.is_empty() {
            return Err(InvalidSecret(format!("${variable} is empty; set it to the key")));
        }
        // Anything else cannot be sent in a header.
        if !key.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(InvalidSecret(format!(
                "${variable} holds characters that cannot be part of a key"
            )));
        }
        Ok(Self { variable, key })
    }

    /// The variable that held the key, without `$`.
    pub fn variable(&self) -> &str {
        &self.variable
    }

    /// The key itself, for the header that sends it and nothing else.
    pub fn expose(&self) -> &str {
        &self.key
    }

    /// `text` without the key and without long pieces of it, if they occur there: plain,
    /// percent-encoded, as escapes of JSON, in base64 or as hexadecimal digits, with spaces or
    /// invisible characters in between, cut short, or with a mask in the middle.
    ///
    /// Takes time in proportion to `text` times the key: use it for messages, not for answers.
    pub fn scrub(&self, text: &str) -> String {
        let units = units(text);
        let key = self.key.as_bytes();
        let forms = forms(key);
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        while let Some(unit) = units.get(at) {
            let found = forms.iter().filter_map(|form| {
                let piece = longest(&units[at..], &form.text);
                (piece.letters >= form.telling).then_some(piece.length)
            });
            let found = found.max().or_else(|| {
                let Piece { letters, length } = longest(&units[at..], key);
                let telling = letters >= TELLING_BESIDE_MASK;
                (telling && beside_mask(&units, at, length, key)).then_some(length)
            });
            if let Some(length) = found {
                if !out.ends_with(MASK) {
                    out.push_str(MASK);
                }
                at += length;
            } else {
                out.push_str(unit.written);
                at += 1;
            }
        }
        out
    }

    /// `text`, part of an answer, without the key as it is.
    pub fn scrub_answer(&self, text: String) -> String {
        if self.key.len() >= SERIOUS && text.contains(&self.key) {
            return text.replace(&self.key, MASK);
        }
        text
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret(${})", self.variable)
    }
}

/// The key in one way to write it.
struct Form {
    text: Vec<u8>,
    /// A piece with at least so many characters is removed.
    telling: usize,
}

/// The key as it is, in base64 at each of its places within three bytes, and in hexadecimal digits.
fn forms(key: &[u8]) -> Vec<Form> {
    let mut forms = vec![Form { text: key.to_vec(), telling: TELLING.min(key.len()) }];
    if key.len() < TELLING {
        return forms;
    }
    for alphabet in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
        for before in 0..3 {
            let mut bytes = vec![0; before];
            bytes.extend(key);
            let text = alphabet.encode(&bytes).into_bytes();
            // The characters that only depend on the key: each has six bits.
            let text = text[(before * 8).div_ceil(6)..bytes.len() * 8 / 6].to_vec();
            forms.push(Form { text, telling: TELLING * 8 / 6 });
        }
    }
    let lower: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    for text in [lower.to_uppercase(), lower] {
        forms.push(Form { text: text.into_bytes(), telling: TELLING * 2 });
    }
    forms
}

/// One character, and how it was written.
struct Unit<'a> {
    meant: char,
    written: &'a str,
}

/// The characters of `text`, with `%2D` and `\u002d` decoded.
fn units(text: &str) -> Vec<Unit<'_>> {
    let mut units = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (meant, length) = escaped(rest).unwrap_or((first, first.len_utf8()));
        let (written, after) = rest.split_at(length);
        units.push(Unit { meant, written });
        rest = after;
    }
    units
}

/// The character of an escape at the beginning of `text`, and the length of the escape. A percent
/// sign may itself be escaped, once for each time that the text was encoded; a byte that is not ASCII
/// is a part of some character that no key has.
fn escaped(text: &str) -> Option<(char, usize)> {
    let hex = |from: usize, to: usize| {
        let digits = text.get(from..to)?;
        let right = digits.bytes().all(|b| b.is_ascii_hexdigit());
        right.then(|| u32::from_str_radix(digits, 16).ok())?
    };
    if text.starts_with("\\u") {
        return Some((char::from_u32(hex(2, 6)?)?, 6));
    }
    let mut from = 1;
    text.strip_prefix('%')?;
    while text.get(from..from + 2) == Some("25") && hex(from + 2, from + 4).is_some() {
        from += 2;
    }
    let byte = char::from_u32(hex(from, from + 2)?).filter(char::is_ascii);
    Some((byte.unwrap_or(char::REPLACEMENT_CHARACTER), from + 2))
}

/// A part of a text that is also in the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Piece {
    /// The characters of the key.
    letters: usize,
    /// The units, with those in between that no key has.
    length: usize,
}

/// The longest piece of the key at the beginning of `units`.
fn longest(units: &[Unit<'_>], key: &[u8]) -> Piece {
    let common = |key: &[u8]| {
        let (mut piece, mut gap) = (Piece::default(), 0);
        for (at, unit) in units.iter().enumerate() {
            if key.get(piece.letters).is_some_and(|byte| unit.meant == char::from(*byte)) {
                piece = Piece { letters: piece.letters + 1, length: at + 1 };
                gap = 0;
            } else if piece.letters > 0 && gap < GAP && !unit.meant.is_ascii_graphic() {
                gap += 1;
            } else {
                break;
            }
        }
        piece
    };
    (0..key.len()).map(|from| common(&key[from..])).max().unwrap_or_default()
}

/// Returns true if the piece is the beginning or the end of the key, next to a mask.
fn beside_mask(units: &[Unit<'_>], at: usize, length: usize, key: &[u8]) -> bool {
    let letters = units[at..at + length].iter().map(|unit| unit.meant);
    let piece: String = letters.filter(char::is_ascii_graphic).collect();
    let masks = |unit: &Unit<'_>| matches!(unit.meant, '*' | '.' | '•' | '…' | 'x' | 'X' | '#');
    let before = at.checked_sub(1).and_then(|i| units.get(i)).is_some_and(masks);
    let after = units.get(at + length).is_some_and(masks);
    (after && key.starts_with(piece.as_bytes())) || (before && key.ends_with(piece.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-proj-AbCdEf0123456789/+=ZyXw";

    fn key() -> Secret {
        Secret::new("KEY", KEY).unwrap()
    }

    #[test]
    fn the_key_is_taken_out_however_it_is_written() {
        let percent: String = KEY.bytes().map(|b| format!("%{b:02X}")).collect();
        let twice = percent.replace('%', "%25");
        let json: String = KEY.bytes().map(|b| format!("\\u{b:04x}")).collect();
        let form = KEY.replace('/', "%2f").replace('+', "%2B").replace('=', "%3d");
        let between = |gap: &str| KEY.chars().map(|c| c.to_string()).collect::<Vec<_>>().join(gap);
        let gaps = [" ", "\n", "\u{200b}", "\u{ad}\u{2060}", "\\u200b", "%E2%80%8B", "%20"];
        let spaced = gaps.map(between);
        let lower: String = KEY.bytes().map(|b| format!("{b:02x}")).collect();
        let written = [KEY.to_string(), percent, twice, json, form, format!("{KEY}{KEY}")];
        let digits = [lower.to_uppercase(), lower];
        for written in written.into_iter().chain(spaced).chain(digits) {
            assert_eq!(key().scrub(&format!("bad key: {written}!")), "bad key: ***!", "{written}");
        }
    }

    #[test]
    fn the_key_is_taken_out_of_base64_wherever_it_begins() {
        for before in ["", "u", "me", "me:", "Bearer "] {
            for after in ["", "!", "\n", ", and more"] {
                for alphabet in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
                    let written = alphabet.encode(format!("{before}{KEY}{after}"));
                    let found = key().scrub(&written);
                    // At most a character at each end also has bits of its neighbour.
                    let ends = written.split_at((before.len() * 8).div_ceil(6));
                    assert!(found.starts_with(&format!("{}***", ends.0)), "{written}: {found}");
                    let left = found.split_once("***").unwrap().1;
                    assert!(left.len() <= (after.len() * 8).div_ceil(6) + 1, "{written}: {found}");
                }
            }
        }
        assert_eq!(key().scrub("c2stcHJv"), "c2stcHJv", "six characters of the key");
    }

    #[test]
    fn pieces_that_a_server_left_are_taken_out() {
        for (text, scrubbed) in [
            ("key sk-proj-****=ZyXw is", "key ******* is"),
            ("key AbCdEf01… is", "key ***… is"),
            ("key ...=ZyXw.", "key ...***."),
            ("key sk-…yXw", "key ***…***"),
            ("ends in 6789/+=ZyXw", "ends in ***"),
        ] {
            let found = key().scrub(text);
            for length in 4..=KEY.len() {
                for from in 0..=KEY.len() - length {
                    let piece = &KEY[from..from + length];
                    assert!(!found.contains(piece), "{text}: {found} holds {piece}");
                }
            }
            assert_eq!(found, scrubbed);
        }
    }

    #[test]
    fn other_texts_stay_as_they_are() {
        for text in ["", "100 %", "50%2", "\\u00", "é%C3%A9", "a sky, project", "…", "%2", "%25"]
        {
            assert_eq!(key().scrub(text), text);
        }
        assert_eq!(Secret::new("K", "EMPTY").unwrap().scrub("key EMPTY, EMP"), "key ***, EMP");
    }

    #[test]
    fn answers_lose_only_what_is_a_secret() {
        assert_eq!(key().scrub_answer(format!("a {KEY} b")), "a *** b");
        assert_eq!(Secret::new("K", "x").unwrap().scrub_answer("x = 1".into()), "x = 1");
    }

    #[test]
    fn nothing_shows_the_key() {
        assert_eq!(format!("{:?}", key()), "Secret($KEY)");
        for bad in ["", "  ", "two words", "ключ", "a\nb"] {
            let error = Secret::new("KEY", bad).unwrap_err();
            assert!(error.to_string().starts_with("$KEY "), "{error}");
        }
    }
}
