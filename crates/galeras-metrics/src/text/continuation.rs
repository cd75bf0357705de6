//! The part of a text that continues another one.
//!
//! A model that gets the beginning of a method may return only the rest, or the whole method. Both
//! are the same answer, and scores of the whole would mostly measure the given part.

use std::iter::Peekable;
use std::str::CharIndices;

/// A text split into the given part and its continuation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Continuation<'a> {
    /// The text after the given part: a suffix of the text.
    pub rest: &'a str,
    /// The text begins with the given part.
    pub repeats: bool,
    /// The whole text, if it begins with the given part in another layout: the given text followed
    /// by `rest` would then be another text.
    pub whole: Option<&'a str>,
}

/// Removes the given text from the beginning of another, as often as it occurs there.
///
/// The text begins with it if it does so byte by byte, or if both are equal except for white space
/// and Python comments, which models change when they repeat code. It is removed repeatedly so that
/// `continuation(given, given + x)` and `continuation(given, x)` have the same `rest` for every
/// `x`. Time and memory are linear.
pub fn continuation<'a>(given: &str, text: &'a str) -> Continuation<'a> {
    let mut found = Continuation { rest: text, repeats: false, whole: None };
    if given.is_empty() {
        found.repeats = true;
        return found;
    }
    loop {
        if let Some(rest) = found.rest.strip_prefix(given) {
            found = Continuation { rest, repeats: true, whole: None };
        } else if let Some(rest) = strip_layout(given, found.rest) {
            found = Continuation { rest, repeats: true, whole: Some(found.rest) };
        } else {
            return found;
        }
    }
}

/// The text after the given text in another layout. `None` if the text begins differently or the
/// given text has only white space and comments.
fn strip_layout<'a>(given: &str, text: &'a str) -> Option<&'a str> {
    let (mut of_given, mut of_text) = (CodeChars::new(given), CodeChars::new(text));
    let mut ends = None;
    for (place, wanted) in of_given.by_ref() {
        match of_text.next() {
            Some((at, char)) if char == wanted => {
                ends = Some((place + char.len_utf8(), at + char.len_utf8()));
            }
            _ => return None,
        }
    }
    let (end_of_given, end) = ends?;
    let rest = text.get(end..)?;
    // Comments at the end of the given text may be repeated.
    if let Some(rest) = strip_characters(&given[end_of_given..], rest) {
        return Some(rest);
    }
    // Only the comment that the given text ends in may be repeated.
    let comment = of_given.comment.map_or("", |at| &given[at..]);
    let mut follows = rest.trim_start();
    while !comment.is_empty() && follows.starts_with('#') {
        if let Some(rest) = strip_characters(comment, follows) {
            return Some(rest);
        }
        follows = follows.split_once('\n').map_or("", |(_, below)| below.trim_start());
    }
    Some(rest)
}

/// The text after these characters, ignoring white space between them.
fn strip_characters<'a>(wanted: &str, text: &'a str) -> Option<&'a str> {
    let mut chars = text.char_indices().filter(|(_, char)| !char.is_whitespace());
    let mut end = 0;
    for wanted in wanted.chars().filter(|char| !char.is_whitespace()) {
        let (at, _) = chars.next().filter(|(_, char)| *char == wanted)?;
        end = at + wanted.len_utf8();
    }
    text.get(end..)
}

/// The characters of a Python text with their places, without white space and comments.
struct CodeChars<'a> {
    chars: Peekable<CharIndices<'a>>,
    text: &'a str,
    /// The quote that ends the current string.
    string: Option<&'static str>,
    /// The next position that may begin a token, after a triple quote.
    resume: usize,
    /// The start of the comment at the end of the text.
    comment: Option<usize>,
}

impl<'a> CodeChars<'a> {
    fn new(text: &'a str) -> Self {
        Self { chars: text.char_indices().peekable(), text, string: None, resume: 0, comment: None }
    }

    /// Tracks strings, in which `#` does not begin a comment.
    fn follow(&mut self, at: usize, char: char) {
        if at < self.resume {
            return;
        }
        let here = &self.text[at..];
        match self.string {
            None => {
                let quotes = ["\"\"\"", "'''", "\"", "'"];
                self.string = quotes.into_iter().find(|quote| here.starts_with(quote));
                self.resume = at + self.string.map_or(0, str::len);
            }
            // A backslash escapes the next character.
            Some(_) if char == '\\' => {
                self.resume = at + 1 + here[1..].chars().next().map_or(0, char::len_utf8);
            }
            Some(quote) if here.starts_with(quote) => {
                self.resume = at + quote.len();
                self.string = None;
            }
            // A line end also ends an unclosed string of one line.
            Some(quote) if char == '\n' && quote.len() == 1 => self.string = None,
            Some(_) => {}
        }
    }
}

impl Iterator for CodeChars<'_> {
    type Item = (usize, char);

    fn next(&mut self) -> Option<Self::Item> {
        while let Some((at, char)) = self.chars.next() {
            if char == '#' && self.string.is_none() {
                while self.chars.next_if(|(_, char)| *char != '\n').is_some() {}
                self.comment = self.chars.peek().is_none().then_some(at);
                continue;
            }
            self.follow(at, char);
            if !char.is_whitespace() {
                return Some((at, char));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GIVEN: &str = "def f(a, b):  # adds\n    x = '#'\n    retu";

    fn rest<'a>(given: &str, text: &'a str) -> &'a str {
        continuation(given, text).rest
    }

    #[test]
    fn a_repeated_beginning_is_taken_off_in_any_layout() {
        for (given, text, expected) in [
            (GIVEN, &*format!("{GIVEN}rn a + b"), "rn a + b"),
            (GIVEN, "rn a + b", "rn a + b"),
            (GIVEN, GIVEN, ""),
            (GIVEN, &*GIVEN.repeat(2), ""),
            ("", "x", "x"),
            (" ", "   x", "x"),
            // A truncated comment continues; a comment may also be missing.
            ("x = 1 # the so", "x=1 # the source\ny", "urce\ny"),
            ("x = 1 # a\n# the so", "x=1\n# b\n # the source\ny", "urce\ny"),
            ("x = 1\n# at\n", "x=1 # at\ny", "\ny"),
            ("x = 1 # at\n# a", "x=1 # at\n# all\ny", "ll\ny"),
            ("x = 1 # the so", "x=1\ny", "\ny"),
            // In a string, `#` does not begin a comment.
            ("x = '#a'\n", "x = '#b'\ny", "x = '#b'\ny"),
            ("x = '''\n#a\n'''", "x = '''#a'''; y", "; y"),
            (r"x = '\'#a'", r"x='\'#a' + y", " + y"),
        ] {
            assert_eq!(rest(given, text), expected, "{given:?} {text:?}");
        }
        let shown = "def f(a,b):\n  x = '#'\n\n  return a + b # done";
        let (rest, whole) = ("rn a + b # done", Some(shown));
        assert_eq!(continuation(GIVEN, shown), Continuation { rest, repeats: true, whole });
    }

    #[test]
    fn another_beginning_is_all_rest() {
        let other = "def g(a, b): return a";
        for (given, text) in [(GIVEN, other), (GIVEN, "def f(a"), ("# only this", "x")] {
            let found = continuation(given, text);
            assert_eq!((found.rest, found.repeats), (text, false), "{given:?}");
        }
    }

    proptest! {
        /// An answer counts the same with and without the given text.
        #[test]
        fn given_and_continuation_are_the_continuation(
            given in "[a #'\n\"\\\\]{0,12}|\\PC{0,20}", text in "[a #'\n\"\\\\]{0,24}|\\PC{0,30}",
        ) {
            let whole = format!("{given}{text}");
            prop_assert_eq!(rest(&given, &whole), rest(&given, &text));
            prop_assert!(text.ends_with(rest(&given, &text)));
            prop_assert_eq!(rest(&given, rest(&given, &text)), rest(&given, &text));
        }
    }
}
