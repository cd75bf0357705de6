//! What a text adds to another one that was given.
//!
//! A model that is shown the beginning of a method may go on where it ends, or give the whole
//! method back. Both said the same; scores of the whole would mostly measure what was given.

use std::iter::Peekable;
use std::str::CharIndices;

/// The part of a text that is not given, and the whole that both make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Continuation<'a> {
    /// What comes after the given text: a suffix of the text.
    pub rest: &'a str,
    /// Whether the text begins with what was given.
    pub repeats: bool,
    /// The text whose beginning stands for the given text in another layout, if it does: it is a
    /// whole by itself, which the given text and the rest would not make.
    pub whole: Option<&'a str>,
}

/// Takes the given text off the beginning of another, as often as it is there.
///
/// The text begins with it if it does so byte by byte, or if both are equal but for white space
/// and Python's comments, which models change when they repeat. As often as it is there: so
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

/// What follows the given text in another layout; `None` if the text begins otherwise or the
/// given text is nothing but layout.
fn strip_layout<'a>(given: &str, text: &'a str) -> Option<&'a str> {
    let (mut of_given, mut of_text) = (Significant::new(given), Significant::new(text));
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
    // Comments at the end of the given text, if the other one has them as well.
    if let Some(rest) = strip_characters(&given[end_of_given..], rest) {
        return Some(rest);
    }
    // Or but for some of them, the one within which the given text ends.
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

/// What follows these characters in a text whose beginning has them, whatever white space is
/// between them.
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
struct Significant<'a> {
    chars: Peekable<CharIndices<'a>>,
    text: &'a str,
    /// The quote that ends the string that this is in.
    string: Option<&'static str>,
    /// Where the next character may begin a token: behind a quote of three.
    resume: usize,
    /// Where the comment begins that the text ends in, once that is reached.
    comment: Option<usize>,
}

impl<'a> Significant<'a> {
    fn new(text: &'a str) -> Self {
        Self { chars: text.char_indices().peekable(), text, string: None, resume: 0, comment: None }
    }

    /// Follows strings, in which `#` begins no comment.
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
            // The character behind a backslash ends nothing.
            Some(_) if char == '\\' => {
                self.resume = at + 1 + here[1..].chars().next().map_or(0, char::len_utf8);
            }
            Some(quote) if here.starts_with(quote) => {
                self.resume = at + quote.len();
                self.string = None;
            }
            // A line's end ends a string of one line, closed or not.
            Some(quote) if char == '\n' && quote.len() == 1 => self.string = None,
            Some(_) => {}
        }
    }
}

impl Iterator for Significant<'_> {
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
    fn a_repeated_beginning_is_taken_off() {
        assert_eq!(rest(GIVEN, &format!("{GIVEN}rn a + b")), "rn a + b");
        assert_eq!(rest(GIVEN, "rn a + b"), "rn a + b");
        assert_eq!(rest(GIVEN, GIVEN), "");
        assert_eq!(rest(GIVEN, &GIVEN.repeat(2)), "");
        assert_eq!(rest("", "x"), "x");
        assert_eq!(rest(" ", "   x"), "x");
    }

    #[test]
    fn layout_and_comments_do_not_matter() {
        let shown = "def f(a,b):\n  x = '#'\n\n  return a + b # done";
        let found = continuation(GIVEN, shown);
        assert_eq!(
            found,
            Continuation { rest: "rn a + b # done", repeats: true, whole: Some(shown) }
        );
        // A comment that goes on is one; one that was left out is none.
        assert_eq!(rest("x = 1 # the so", "x=1 # the source\ny"), "urce\ny");
        assert_eq!(rest("x = 1 # a\n# the so", "x=1\n# b\n # the source\ny"), "urce\ny");
        assert_eq!(rest("x = 1\n# at\n", "x=1 # at\ny"), "\ny");
        assert_eq!(rest("x = 1 # at\n# a", "x=1 # at\n# all\ny"), "ll\ny");
        assert_eq!(rest("x = 1 # the so", "x=1\ny"), "\ny");
        // Within a string, `#` is no comment.
        assert_eq!(rest("x = '#a'\n", "x = '#b'\ny"), "x = '#b'\ny");
        assert_eq!(rest("x = '''\n#a\n'''", "x = '''#a'''; y"), "; y");
        assert_eq!(rest(r"x = '\'#a'", r"x='\'#a' + y"), " + y");
    }

    #[test]
    fn another_beginning_is_all_rest() {
        let found = continuation(GIVEN, "def g(a, b): return a");
        assert_eq!((found.rest, found.repeats), ("def g(a, b): return a", false));
        assert!(!continuation(GIVEN, "def f(a").repeats);
        assert!(!continuation("# only this", "x").repeats);
    }

    proptest! {
        /// What a model answers counts the same with what it was given and without.
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
