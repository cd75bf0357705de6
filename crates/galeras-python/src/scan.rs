//! Byte scanners for `tokens`: the end of each piece that needs more than one byte of look-ahead.
//! Each follows one alternative of lizard's expression.

use memchr::{memchr, memchr2};

pub(super) fn count_newlines(bytes: &[u8]) -> u32 {
    let count = bytes.iter().filter(|&&byte| byte == b'\n').count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

pub(super) fn find_newline(bytes: &[u8], from: usize) -> usize {
    memchr(b'\n', &bytes[from..]).map_or(bytes.len(), |offset| from + offset)
}

pub(super) fn find_pair(bytes: &[u8], from: usize) -> Option<usize> {
    let offset = bytes.get(from..)?.windows(2).position(|two| two == b"*/")?;
    Some(from + offset + 2)
}

/// Bytes that are part of words.
const WORD: [bool; 256] = {
    let mut word = [false; 256];
    let mut byte: u8 = 0;
    while byte < 0x80 {
        word[byte as usize] = byte == b'_' || byte.is_ascii_alphanumeric();
        byte += 1;
    }
    word
};

pub(super) fn word_end(text: &str, start: usize, end: usize) -> usize {
    let bytes = &text.as_bytes()[..end];
    let mut at = start;
    while let Some(&byte) = bytes.get(at) {
        if WORD[usize::from(byte)] {
            at += 1;
        } else if byte >= 0x80 {
            match text[at..end].chars().next() {
                Some(c) if c.is_alphanumeric() => at += c.len_utf8(),
                _ => break,
            }
        } else {
            break;
        }
    }
    at
}

/// Digits in groups separated by `'` (C++), at least two groups.
pub(super) fn separated(bytes: &[u8], digits: usize, is: fn(&u8) -> bool) -> Option<usize> {
    let run = |at: usize| bytes.get(at..).unwrap_or_default().iter().take_while(|b| is(b)).count();
    let mut at = digits + run(digits);
    let mut last = None;
    while at > digits && bytes.get(at) == Some(&b'\'') {
        match run(at + 1) {
            0 => break,
            count => at += 1 + count,
        }
        last = Some(at);
    }
    last
}

/// The end of a string of one quote, possibly in another line, whose content starts at `from`.
pub(super) fn single_end(bytes: &[u8], from: usize, quote: u8) -> Option<usize> {
    let mut at = from;
    while let Some(&byte) = bytes.get(at) {
        if byte == quote {
            return Some(at + 1);
        }
        at += if byte == b'\\' { 2 } else { 1 };
    }
    None
}

/// The end of a triple-quoted string whose content starts at `from`.
pub(super) fn triple_end(bytes: &[u8], from: usize, quote: u8) -> Option<usize> {
    let mut at = from;
    loop {
        at += memchr2(quote, b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'\\' {
            at += 2;
        } else if bytes[at..].starts_with(&[quote; 3]) {
            return Some(at + 3);
        } else {
            at += 1;
        }
    }
}

/// The end of the string whose first quote is at `start`; an error with the end of the line, or of
/// the text, if it is not closed there.
pub(super) fn string_end(bytes: &[u8], start: usize) -> Result<usize, usize> {
    let quote = bytes[start];
    if bytes[start..].starts_with(&[quote; 3]) {
        return triple_end(bytes, start + 3, quote).ok_or(bytes.len());
    }
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' if bytes[at..].starts_with(b"\\\r\n") => at += 3,
            b'\\' => at += 2,
            b'\n' | b'\r' => return Err(at),
            byte if byte == quote => return Ok(at + 1),
            _ => at += 1,
        }
    }
    // An escape may extend beyond the text, or into a character.
    Err(bytes.len())
}

/// As [`triple_end`] when there is no unescaped end: a backslash may then be literal, as the
/// backtracking of lizard's expression allows; the last such end wins.
pub(super) fn triple_end_last(bytes: &[u8], from: usize, quote: u8) -> Option<usize> {
    // next[k]: the end of a string whose content continues k + 1 bytes after `at`.
    let mut next = [None; 2];
    for at in (from..bytes.len()).rev() {
        let mut here = match bytes[at] {
            b'\\' if at + 1 < bytes.len() => next[1].or(next[0]),
            byte if byte != quote => next[0],
            _ if bytes.get(at + 1) != Some(&quote) || bytes.get(at + 2) != Some(&quote) => next[0],
            _ => None,
        };
        if here.is_none() && bytes.get(at..at + 3) == Some(&[quote; 3]) {
            here = Some(at + 3);
        }
        next = [here, next[0]];
    }
    next[0]
}

/// The end of `<A, B?>`: word characters, white space, `,`, `.` and at least one `?`.
pub(super) fn generic_end(text: &str, start: usize) -> Option<usize> {
    let mut optional = false;
    for (offset, c) in text[start + 1..].char_indices() {
        match c {
            '?' => optional = true,
            '>' => return optional.then_some(start + 1 + offset + 1),
            ',' | '.' | '_' => {}
            c if c.is_alphanumeric() || is_space(c) => {}
            _ => return None,
        }
    }
    None
}

/// True if Python's `str.split()` splits at `c`: Unicode white space and U+001C to U+001F.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// The position after the `}` that closes the `{` at `open`, or the end of the text.
pub(super) fn interpolation_end(bytes: &[u8], open: usize) -> usize {
    let mut depth = 1;
    let mut at = open + 1;
    while depth > 0 && at < bytes.len() {
        match bytes[at] {
            b'"' | b'\'' => {
                let (quote, triple) = (bytes[at], bytes[at..].starts_with(&[bytes[at]; 3]));
                let end = match triple {
                    true => triple_end(bytes, at + 3, quote),
                    false => single_end(bytes, at + 1, quote),
                };
                at = end.unwrap_or(bytes.len());
                continue;
            }
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    at.min(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_is_pythons() {
        let spaces = ('\0'..=char::MAX).filter(|&c| is_space(c)).map(u32::from);
        let expected = [0x9..=0xd, 0x1c..=0x20, 0x85..=0x85, 0xa0..=0xa0, 0x1680..=0x1680]
            .into_iter()
            .chain([0x2000..=0x200a, 0x2028..=0x2029, 0x202f..=0x202f, 0x205f..=0x205f])
            .chain([0x3000..=0x3000]);
        assert!(spaces.eq(expected.flatten()));
    }
}
