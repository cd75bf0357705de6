//! Keeps text from outside from controlling a terminal: characters that move the cursor, change
//! colours, ring, hide or reorder text are made visible.
//!
//! Names of files and columns, cells, params, and answers of models and servers are such text. The
//! hidden characters are those of pages (`galeras_pages::is_hidden`). Joined emoji are unchanged,
//! except in texts that the user consents to: see [`escape_all`].
//!
//! [`escape`] is for a value within a line, [`escape_lines`] for several lines, [`escape_json`] for
//! JSON, [`shell_word`] for a word of a command. All output of the program goes through a
//! [`VisibleWriter`], which escapes what a message did not.

use std::borrow::Cow;
use std::io::{self, Write};

pub use galeras_pages::is_hidden;
use galeras_pages::{Seen, is_joiner};

/// `text` on one line, with every hidden character written as `\n`, `\t`, `\r` or `\u{1b}`.
pub fn escape(text: &str) -> String {
    escape_with(text, "\\n")
}

/// As [`escape`], but also escapes characters that join emoji: for texts that the user consents to
/// word for word.
pub fn escape_all(text: &str) -> String {
    let text = escape(text);
    if !text.contains(is_hidden) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_hidden(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    out
}

/// As [`escape`], with `newline` for each line end (`\n` or `\r\n`).
pub fn escape_with(text: &str, newline: &str) -> String {
    escaped(text, newline, "\\t", &mut Seen::default())
}

/// As [`escape`], but line ends and tabs stay.
pub fn escape_lines(text: &str) -> Cow<'_, str> {
    match text.contains(|c: char| is_hidden(c) && !matches!(c, '\n' | '\t')) {
        true => Cow::Owned(escaped(text, "\n", "\t", &mut Seen::default())),
        false => Cow::Borrowed(text),
    }
}

/// The escaped text, as a continuation of `seen`.
fn escaped(text: &str, newline: &str, tab: &str, seen: &mut Seen) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let hidden = seen.hides(c, chars.peek().copied());
        match c {
            '\r' if chars.peek() == Some(&'\n') => {}
            '\n' => out.push_str(newline),
            '\t' => out.push_str(tab),
            '\r' => out.push_str("\\r"),
            c if hidden => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

/// The same JSON without hidden characters in its strings: they are written as `\u009b`. JSON
/// itself requires that only for the C0 controls.
pub fn escape_json(json: String) -> String {
    // Outside strings there are only line ends and spaces.
    let unseen = |c: char| is_hidden(c) && c != '\n';
    if !json.contains(unseen) {
        return json;
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if unseen(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// The text as one word of a shell. Hidden characters are written for bash, zsh and ksh, so that
/// the word can be seen and pasted: `$'a\nb'`.
pub fn shell_word(text: &str) -> String {
    if text.contains(is_hidden) {
        let letter = |c: char| match c {
            '\'' | '\\' => format!("\\{c}"),
            '\n' => "\\n".to_string(),
            c if is_hidden(c) && c.is_ascii() => format!("\\x{:02x}", u32::from(c)),
            c if is_hidden(c) && u32::from(c) > 0xffff => format!("\\U{:08x}", u32::from(c)),
            c if is_hidden(c) => format!("\\u{:04x}", u32::from(c)),
            c => c.to_string(),
        };
        return format!("$'{}'", text.chars().map(letter).collect::<String>());
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./:=@%+,-".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_string();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The longest code for a colour or weight that is accepted, in bytes.
const LONGEST_STYLE: usize = 24;

/// A writer for people: it passes only text, line ends and tabs, and, if styled, the codes for
/// colours and weights (`ESC [ … m`). Everything else is escaped. Invalid UTF-8 becomes U+FFFD.
///
/// Escape values with hidden characters before painting them; the writer cannot know whose colours
/// it sees.
#[derive(Debug)]
pub struct VisibleWriter<W: Write> {
    out: W,
    styled: bool,
    /// An unfinished character or code.
    pending: Vec<u8>,
    seen: Seen,
}

impl<W: Write> VisibleWriter<W> {
    /// A writer to `out`; with `styled`, colours and weights pass.
    pub fn new(out: W, styled: bool) -> Self {
        Self { out, styled, pending: Vec::new(), seen: Seen::default() }
    }

    fn put(&mut self, bytes: &[u8], last: bool) -> io::Result<()> {
        if self.pending.is_empty() && bytes.iter().all(|b| matches!(b, b' '..=b'~' | b'\n' | b'\t'))
        {
            self.seen = Seen::default();
            return self.out.write_all(bytes);
        }
        let mut all = std::mem::take(&mut self.pending);
        all.extend_from_slice(bytes);
        let (mut text, tail) = decoded(&all, last);
        let tail = tail.to_vec();
        if self.styled && !last {
            let open = text.rfind('\x1b').filter(|at| is_open_style(&text[*at..]));
            if let Some(at) = open {
                self.pending = text.split_off(at).into_bytes();
            }
        }
        // The character after a joiner decides if it is visible.
        if !last && text.ends_with(is_joiner) {
            self.pending = text.pop().map(String::from).unwrap_or_default().into_bytes();
        }
        self.pending.extend(tail);
        let shown = match self.styled {
            true => with_styles(&text, &mut self.seen),
            false => escaped(&text, "\n", "\t", &mut self.seen),
        };
        self.out.write_all(shown.as_bytes())
    }
}

impl<W: Write> Write for VisibleWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.put(bytes, false).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.pending.is_empty() {
            self.put(&[], true)?;
        }
        self.out.flush()
    }
}

/// The bytes as text, and an unfinished character at their end, unless they are the last.
fn decoded(bytes: &[u8], last: bool) -> (String, &[u8]) {
    let mut text = String::with_capacity(bytes.len());
    let mut rest = bytes;
    loop {
        match std::str::from_utf8(rest) {
            Ok(valid) => {
                text.push_str(valid);
                return (text, &[]);
            }
            Err(error) => {
                let (valid, broken) = rest.split_at(error.valid_up_to());
                text.push_str(&String::from_utf8_lossy(valid));
                let length = match error.error_len() {
                    Some(length) => length,
                    None if last => broken.len(),
                    None => return (text, broken),
                };
                text.push(char::REPLACEMENT_CHARACTER);
                rest = &broken[length..];
            }
        }
    }
}

/// The length of the code for a colour or weight that `text` begins with.
fn style_length(text: &str) -> Option<usize> {
    let inside = text.strip_prefix("\x1b[")?;
    let end = inside.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    (inside[end..].starts_with('m') && end + 3 <= LONGEST_STYLE).then_some(end + 3)
}

/// True if `text`, which begins with ESC, may become such a code.
fn is_open_style(text: &str) -> bool {
    let inside = text[1..].strip_prefix('[').unwrap_or(&text[1..]);
    let plain = |c: char| c.is_ascii_digit() || c == ';';
    text.len() < LONGEST_STYLE
        && (text.len() == 1 || text[1..].starts_with('['))
        && inside.chars().all(plain)
}

fn with_styles(text: &str, seen: &mut Seen) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\x1b') {
        let length = style_length(&rest[at..]);
        out.push_str(&escaped(&rest[..at], "\n", "\t", seen));
        *seen = Seen::default();
        match length {
            Some(length) => out.push_str(&rest[at..at + length]),
            None => out.push_str(&escape("\x1b")),
        }
        rest = &rest[at + length.unwrap_or(1)..];
    }
    out.push_str(&escaped(rest, "\n", "\t", seen));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_shell_can_be_seen_and_pasted() {
        assert_eq!(shell_word("exec,env:A=b"), "exec,env:A=b");
        assert_eq!(shell_word("read:/it's"), r"'read:/it'\''s'");
        let text = "a'\\\n\x1b[2Jb\u{202e}é";
        assert_eq!(shell_word(text), r"$'a\'\\\n\x1b[2Jb\u202eé'");
    }

    #[test]
    fn what_moves_the_cursor_or_reorders_text_is_made_visible() {
        assert_eq!(escape("a\x1b[31mb\u{202e}c\0"), "a\\u{1b}[31mb\\u{202e}c\\u{0}");
        assert_eq!(escape("a\r\nb\tc\rd\u{9b}\u{7f}"), "a\\nb\\tc\\rd\\u{9b}\\u{7f}");
        assert_eq!(escape("größe → 測試 👩‍💻"), "größe → 測試 👩‍💻");
    }

    #[test]
    fn what_somebody_agrees_to_hides_nothing() {
        let text = "a\u{ad}b\u{2060}c\u{e0041}d\u{fe0f}\n";
        assert_eq!(escape(text), "a\\u{ad}b\\u{2060}c\\u{e0041}d\\u{fe0f}\\n");
        assert_eq!(escape_all(text), escape(text));
        assert_eq!(escape("👩\u{200d}💻❤\u{fe0f}"), "👩\u{200d}💻❤\u{fe0f}");
        assert_eq!(escape_all("👩\u{200d}💻❤\u{fe0f}"), "👩\\u{200d}💻❤\\u{fe0f}");
        assert_eq!(shell_word("\u{e0041}"), r"$'\U000e0041'");
    }

    #[test]
    fn a_text_keeps_its_lines_and_tabs() {
        assert_eq!(escape_lines("a\n\tb\r\nc\rd\x07"), "a\n\tb\nc\\rd\\u{7}");
        assert!(matches!(escape_lines("a\n\tb"), Cow::Borrowed(_)));
        assert!(matches!(escape_lines(""), Cow::Borrowed("")));
    }

    #[test]
    fn escaped_json_has_the_same_value() {
        let value =
            serde_json::json!({"a\u{202e}": ["\x1b]0;x\x07", "\u{9b}\u{7f}\u{feff}\u{e0041}é\n"]});
        let text = escape_json(value.to_string());
        assert!(!text.contains(is_hidden), "{text:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escape_json(pretty)).unwrap(), value);
    }

    /// The output, which does not depend on the pieces in which the bytes are written.
    #[track_caller]
    fn written(bytes: &[u8], styled: bool) -> String {
        let whole = pieces(bytes, bytes.len().max(1), styled);
        for size in 1..bytes.len() {
            assert_eq!(pieces(bytes, size, styled), whole, "pieces of {size}");
        }
        whole
    }

    fn pieces(bytes: &[u8], size: usize, styled: bool) -> String {
        let mut writer = VisibleWriter::new(Vec::new(), styled);
        bytes.chunks(size).for_each(|piece| writer.write_all(piece).unwrap());
        writer.flush().unwrap();
        String::from_utf8(writer.out).unwrap()
    }

    #[test]
    fn a_plain_writer_lets_no_code_through() {
        assert_eq!(
            written("\x1b[31mred\x1b[0m\n\té\u{9b}".as_bytes(), false),
            "\\u{1b}[31mred\\u{1b}[0m\n\té\\u{9b}"
        );
        assert_eq!(written(b"\x1b", false), "\\u{1b}");
    }

    #[test]
    fn a_styled_writer_lets_colours_through_and_nothing_else() {
        assert_eq!(written("a\x1b[1;31mé\x1b[0m\n".as_bytes(), true), "a\x1b[1;31mé\x1b[0m\n");
        assert_eq!(
            written(b"\x1b]0;title\x07\x1b[2J\x1b[3", true),
            "\\u{1b}]0;title\\u{7}\\u{1b}[2J\\u{1b}[3"
        );
        let long = format!("\x1b[{}m", "1;".repeat(40));
        assert_eq!(pieces(long.as_bytes(), 200, true), long.replace('\x1b', "\\u{1b}"));
        assert_eq!(written(b"\x1b\x1b[1mx", true), "\\u{1b}\x1b[1mx");
    }

    #[test]
    fn what_is_no_text_does_not_get_through() {
        assert_eq!(written(b"a\xff\x9bb\xc3", false), "a\u{fffd}\u{fffd}b\u{fffd}");
        assert_eq!(written("→測".as_bytes(), true), "→測");
        let joined = "👩\u{200d}💻 ❤\u{fe0f} \u{200d}a";
        for styled in [true, false] {
            let shown = joined.replace(" \u{200d}a", " \\u{200d}a");
            assert_eq!(written(joined.as_bytes(), styled), shown);
        }
        assert_eq!(written("👩\u{200d}".as_bytes(), false), "👩\\u{200d}");
    }
}
