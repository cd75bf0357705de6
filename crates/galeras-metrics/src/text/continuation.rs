//! The part of a text that continues another one.
//!
//! A model that gets the beginning of a method may return only the rest, or the whole method, and it
//! changes the beginning when it repeats it: it adds a docstring or type hints, or removes comments.
//! All of these are the same answer. So the given text is not compared but aligned: of all beginnings
//! of the answer, the one with the smallest edit distance in tokens is left out.

use super::code_tokens::{CodeToken, CodeTokens, TokenKind, content_end};
use crate::interner::Interner;

/// The beginning of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// The given text, byte by byte.
    Verbatim,
    /// The given text in another form.
    Changed,
    /// Another text.
    Other,
}

/// A text split into the given part and its continuation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Continuation<'a> {
    /// The text after the given part.
    pub rest: &'a str,
    /// The beginning of the text.
    pub beginning: Beginning,
    /// The edit distance between the given text and the beginning of the text, in tokens, as a share
    /// of the given ones. `None` if the given text has no tokens.
    pub distance: Option<f64>,
    /// The text with its beginning, if that is a changed one: the given text followed by `rest`
    /// would then be another text.
    pub whole: Option<&'a str>,
    /// The rest begins within the docstring in which the given text ends.
    in_docstring: bool,
}

/// The largest share of the given tokens that a repetition changes: one that has the name of the
/// given function, and one that has not. Of 1,500 methods of Python's standard library that were cut
/// at random, no rest comes nearer than 0.25 to the beginning, and none of these has its name.
const MAX_CHANGED: f64 = 0.5;
const MAX_CHANGED_WITHOUT_NAME: f64 = 0.2;

/// The largest number of pairs of tokens that an alignment compares: less than a second, and enough for
/// a given text of 13,000 tokens.
const MAX_PAIRS: usize = 1 << 28;

/// The largest number of comments that are compared at the end of the given text.
const MAX_COMMENTS: usize = 1_000;

/// The beginning of Python code that a model was shown.
pub struct GivenCode<'a> {
    text: &'a str,
    /// Its tokens without free ones.
    code: Vec<CodeToken<'a>>,
    /// The free tokens after these.
    tail: Vec<CodeToken<'a>>,
    /// The name of its first function.
    function: Option<&'a str>,
}

/// The beginning of a text that is nearest to the given code.
struct Alignment {
    distance: f64,
    /// Its end, unless it is too far away to be a repetition.
    end: Option<AlignedEnd>,
}

struct AlignedEnd {
    at: usize,
    in_docstring: bool,
}

impl<'a> GivenCode<'a> {
    /// Reads the text.
    pub fn new(text: &'a str) -> Self {
        let (mut code, mut tail) = (Vec::new(), Vec::new());
        for token in CodeTokens::new(text) {
            if token.is_free {
                tail.push(token);
            } else {
                tail.clear();
                code.push(token);
            }
        }
        let function = first_function(&code).map(|name| &text[name.start..name.end]);
        Self { text, code, tail, function }
    }

    /// Removes the given text, verbatim or changed, from the beginning of another, as often as it
    /// occurs there, so that `given + x` and `x` have the same rest for every `x`.
    ///
    /// Comments, docstrings, annotations, imports before all other code, white space and the style
    /// of quotes cost nothing in the alignment. A code fence around the text is left out.
    pub fn continuation<'b>(&self, text: &'b str) -> Continuation<'b> {
        let in_docstring = self.open_docstring().is_some();
        let mut found = Continuation {
            rest: text,
            beginning: Beginning::Other,
            distance: None,
            whole: None,
            in_docstring,
        };
        if self.text.is_empty() {
            found.beginning = Beginning::Verbatim;
            return found;
        }
        let mut is_first = true;
        loop {
            if let Some(rest) = found.rest.strip_prefix(self.text) {
                if is_first {
                    (found.beginning, found.distance) = (Beginning::Verbatim, Some(0.0));
                }
                found = Continuation { rest, whole: None, in_docstring, ..found };
            } else if let Some(code) = without_fence(found.rest) {
                found.rest = code;
                continue;
            } else {
                let Some(alignment) = self.align(found.rest) else { return found };
                if is_first {
                    found.distance = Some(alignment.distance);
                }
                let Some(end) = alignment.end else { return found };
                if is_first {
                    found.beginning = Beginning::Changed;
                }
                found = Continuation {
                    rest: self.without_white_space(&found.rest[end.at..]),
                    whole: Some(found.rest),
                    in_docstring: end.in_docstring,
                    ..found
                };
            }
            is_first = false;
        }
    }

    /// The rests of the reference and of a text as they are compared: without the docstring at the
    /// head of the function's body if only one of them has one.
    pub fn compared<'b>(
        &self,
        reference: &Continuation<'b>,
        text: &Continuation<'b>,
    ) -> (&'b str, &'b str) {
        let (wanted, written) = (reference.rest, text.rest);
        let at_body = self.code.last().is_some_and(|last| last.kind == TokenKind::SignatureEnd);
        if !at_body || written.trim().is_empty() {
            return (wanted, written);
        }
        let part = |of: &Continuation<'_>| match self.open_docstring() {
            Some(quote) if of.in_docstring => {
                let (end, is_closed) = content_end(of.rest, 0, quote);
                Some(if is_closed { end + quote.len() } else { end })
            }
            _ => docstring_end(of.rest),
        };
        match (part(reference), part(text)) {
            (Some(end), None) => (&wanted[end..], written),
            (None, Some(end)) => (wanted, &written[end..]),
            _ => (wanted, written),
        }
    }

    /// The quote of the docstring in which the text ends.
    fn open_docstring(&self) -> Option<&'static str> {
        match self.tail.last()?.kind {
            TokenKind::String { quote, is_closed: false, is_statement: true, .. } => Some(quote),
            _ => None,
        }
    }

    /// Returns true if the text may end within this token.
    fn is_open(&self, token: &CodeToken<'_>) -> bool {
        let behind = &self.text[token.end..];
        behind.is_empty() || token.kind == TokenKind::Comment && !behind.contains('\n')
    }

    /// The end of what `own`, a token of the given text, matches in a token of another.
    fn matched(&self, own: &CodeToken<'_>, other: &CodeToken<'_>, text: &str) -> Option<usize> {
        match self.is_open(own) {
            true => own.end_in(other, (self.text, text)),
            false => (own.key == other.key).then_some(other.end),
        }
    }

    /// `rest` without the white space, and joins of lines, that the given text ends with.
    fn without_white_space<'b>(&self, rest: &'b str) -> &'b str {
        let last = self.tail.last().or(self.code.last());
        let white_space = &self.text[last.map_or(0, |token| token.end)..];
        if let Some(rest) = rest.strip_prefix(white_space) {
            return rest;
        }
        let mut rest = rest.trim_start();
        while let Some(line) = rest.strip_prefix("\\\n").or(rest.strip_prefix("\\\r\n")) {
            rest = line.trim_start();
        }
        rest
    }

    /// `None` if the given text has no tokens, or too many.
    fn align(&self, text: &str) -> Option<Alignment> {
        let last = self.code.last()?;
        let size = self.code.len();
        // A beginning with more tokens is further away than a repetition may be.
        let limit = size + (size as f64 * MAX_CHANGED) as usize;
        let mut tokens: Vec<CodeToken<'_>> = Vec::new();
        // The places of the tokens that are not free.
        let mut code = Vec::new();
        for token in CodeTokens::new(text) {
            if !token.is_free {
                code.push(tokens.len());
            }
            tokens.push(token);
            if code.len() > limit {
                break;
            }
        }
        let mut numbers = Interner::default();
        let given: Vec<u32> = self.code.iter().map(|t| numbers.id(t.key.as_bytes())).collect();
        let others: Vec<u32> =
            code.iter().map(|at| numbers.id(tokens[*at].key.as_bytes())).collect();
        let ends: Vec<Option<usize>> =
            code.iter().map(|at| self.matched(last, &tokens[*at], text)).collect();
        let (cost, length) = nearest_beginning(&given, &others, |at| ends[at].is_some())?;
        let distance = cost as f64 / size as f64;
        let Some(final_token) = length.checked_sub(1) else {
            return Some(Alignment { distance, end: None });
        };
        let beginning: Vec<&CodeToken<'_>> = code[..length].iter().map(|at| &tokens[*at]).collect();
        let names = beginning.windows(2).find(|pair| pair[0].key == "def").map(|pair| &pair[1].key);
        let has_name = self.function.is_some() && names.map(|name| &**name) == self.function;
        let most = if has_name { MAX_CHANGED } else { MAX_CHANGED_WITHOUT_NAME };
        if distance > most {
            return Some(Alignment { distance, end: None });
        }
        let place = code[final_token];
        let end = match ends[final_token] {
            Some(at) if self.tail.is_empty() => AlignedEnd { at, in_docstring: false },
            _ => self.end_of_tail(tokens[place].end, &tokens[place + 1..], text),
        };
        Some(Alignment { distance, end: Some(end) })
    }

    /// The end of the free tokens that the given text ends with, where they are repeated after the
    /// code that ends at `at`.
    fn end_of_tail(&self, at: usize, behind: &[CodeToken<'_>], text: &str) -> AlignedEnd {
        let free = behind.iter().take_while(|token| token.is_free).count();
        // A string in which the given text ends may go on as another statement.
        let is_string = |token: &CodeToken<'_>| matches!(token.kind, TokenKind::String { .. });
        let more = usize::from(behind.get(free).is_some_and(is_string));
        let mut behind = &behind[..(free + more).min(MAX_COMMENTS)];
        let mut end = AlignedEnd { at, in_docstring: false };
        for own in &self.tail[self.tail.len().saturating_sub(MAX_COMMENTS)..] {
            let mut found = behind.iter().enumerate();
            let found = found.find_map(|(place, other)| {
                Some((place, other.kind, self.matched(own, other, text)?))
            });
            if let Some((place, kind, at)) = found {
                let in_docstring = self.is_open(own) && kind.is_docstring();
                end = AlignedEnd { at, in_docstring };
                behind = &behind[place + 1..];
            }
        }
        end
    }
}

/// The name after the first `def`.
fn first_function<'t, 'a>(code: &'t [CodeToken<'a>]) -> Option<&'t CodeToken<'a>> {
    code.windows(2).find(|pair| pair[0].key == "def").map(|pair| &pair[1])
}

/// The edit distance between `given` and the nearest beginning of `text`, and the length of that one;
/// of several the one that has most of the given tokens, then the shortest. `is_last` decides which
/// tokens of `text` equal the last one of `given`. `None` for more than [`MAX_PAIRS`] pairs.
fn nearest_beginning(
    given: &[u32],
    text: &[u32],
    is_last: impl Fn(usize) -> bool,
) -> Option<(u64, usize)> {
    let equal = given.iter().zip(text).take_while(|(a, b)| a == b).count();
    let equal = equal.min(given.len().saturating_sub(1));
    let (given, rest) = (&given[equal..], &text[equal..]);
    if given.len().saturating_mul(rest.len()) > MAX_PAIRS {
        return None;
    }
    // A distance counts as much as more equal tokens than there are.
    const EDIT: i64 = 1 << 32;
    let mut row: Vec<i64> = (0..=rest.len() as i64).map(|length| length * EDIT).collect();
    for (at, token) in given.iter().enumerate() {
        let is_last_row = at + 1 == given.len();
        let mut diagonal = row[0];
        row[0] += EDIT;
        for (place, other) in rest.iter().enumerate() {
            let is_equal = match is_last_row {
                true => is_last(equal + place),
                false => token == other,
            };
            let replaced = diagonal + if is_equal { -1 } else { EDIT };
            diagonal = row[place + 1];
            row[place + 1] = replaced.min(diagonal + EDIT).min(row[place] + EDIT);
        }
    }
    let (length, nearest) = row.iter().enumerate().min_by_key(|(_, value)| **value)?;
    // The equal tokens were subtracted.
    let cost = (nearest + EDIT - 1).div_euclid(EDIT);
    Some((cost.unsigned_abs(), equal + length))
}

/// The code in the fence that the text begins with.
fn without_fence(text: &str) -> Option<&str> {
    let (first, code) = text.trim_start().split_once('\n')?;
    let mark = ["```", "~~~"].into_iter().find(|mark| first.starts_with(mark))?;
    let end = code.match_indices(mark).find(|(at, _)| {
        let is_line_start =
            code[..*at].rsplit('\n').next().is_some_and(|line| line.trim().is_empty());
        let line = code[*at..].split('\n').next().unwrap_or_default();
        is_line_start && line.trim().chars().all(|c| mark.starts_with(c))
    });
    Some(end.map_or(code, |(at, _)| &code[..at]))
}

/// The end of the docstring that a body begins with.
fn docstring_end(body: &str) -> Option<usize> {
    let first = CodeTokens::new(body).find(|token| token.kind != TokenKind::Comment)?;
    first.kind.is_docstring().then_some(first.end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GIVEN: &str = "def f(a, b):  # adds\n    x = '#'\n    retu";

    fn continuation<'a>(given: &str, text: &'a str) -> Continuation<'a> {
        GivenCode::new(given).continuation(text)
    }

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
            ("x = 1\n# at\n", "x=1 # at\ny", "y"),
            ("x = 1 # at\n# a", "x=1 # at\n# all\ny", "ll\ny"),
            ("x = 1 # the so", "x=1\ny", "\ny"),
            // In a string, `#` does not begin a comment.
            ("x = '#a'\n", "x = '#b'\ny", "x = '#b'\ny"),
            ("x = '''\n#a\n'''", "x = '''#a'''; y", "; y"),
            (r"x = '\'#a'", r"x='\'#a' + y", " + y"),
            // A truncated string may have other quotes.
            (r"x = f('it\'s ", r#"x = f("it's here")"#, r#"here")"#),
            ("x = f('utf-8", "import os\nx = f(\"utf-8\")", "\")"),
        ] {
            assert_eq!(rest(given, text), expected, "{given:?} {text:?}");
        }
        let shown = "def f(a,b):\n  x = '#'\n\n  return a + b # done";
        let found = continuation(GIVEN, shown);
        assert_eq!((found.rest, found.whole), ("rn a + b # done", Some(shown)));
        assert_eq!((found.beginning, found.distance), (Beginning::Changed, Some(0.0)));
    }

    #[test]
    fn a_changed_beginning_is_aligned() {
        for (text, distance) in [
            ("import os\nfrom a import (b,\n c)\n\ndef f(a, b):\n    x = '#'\n    return 1", 0.0),
            ("def f(a: Dict[str, int], b: int) -> \"X\":\n    x = \"#\"\n    return 1", 0.0),
            ("def f(a, b):\n    '''Adds.'''\n\n    x: str = '#'\n    return 1", 0.0),
            ("```python\ndef f(a, b):\n    x = '#'\n    return 1\n```\nThis adds.", 0.0),
            ("class A:\n    def f(a, b):\n        x = '#'\n        return 1", 0.25),
            ("def f(c, d):\n    x = ''\n    return 1", 0.25),
        ] {
            let found = continuation(GIVEN, text);
            assert_eq!((found.rest.trim_end(), found.distance), ("rn 1", Some(distance)), "{text}");
            assert_eq!(found.beginning, Beginning::Changed);
        }
        // The last token is missing, or another one.
        assert_eq!(rest(GIVEN, "def f(a,b):\n    x = '#'\n"), "\n");
        assert_eq!(rest(GIVEN, "def f(a,b):\n    x = '#'\n    y = x"), "\n    y = x");
        // The given text ends in a joined line.
        assert_eq!(rest("x = a +  \\\n ", "x = a + \\\n  b"), "b");
    }

    #[test]
    fn another_beginning_is_all_rest() {
        let other = "def g(a, b): return a";
        for (given, text) in [
            (GIVEN, other),
            (GIVEN, "def f(a"),
            ("# only this", "x"),
            // A function in the function.
            ("def f(function):\n", "    def g(argument):\n        return 1\n    return g"),
        ] {
            let found = continuation(given, text);
            assert_eq!((found.rest, found.beginning), (text, Beginning::Other), "{given:?}");
        }
    }

    #[test]
    fn a_docstring_that_only_one_text_has_is_not_compared() {
        let (given, open) = ("def f():\n", "def f():\n    '''Says");
        let (body, doc) = ("    return 1", "    '''Says 1.'''\n");
        let with = format!("{given}{doc}{body}");
        let without = format!("{given}{body}");
        for (given, reference, text, expected) in [
            (given, &without, &with, ("return 1", "return 1")),
            (given, &with, &without, ("return 1", "return 1")),
            (open, &with, &without, ("return 1", "return 1")),
            (given, &with, &with, ("'''Says 1.'''\n    return 1", "'''Says 1.'''\n    return 1")),
            (open, &with, &with, ("1.'''\n    return 1", "1.'''\n    return 1")),
            (given, &with, &given.to_owned(), ("'''Says 1.'''\n    return 1", "")),
        ] {
            let code = GivenCode::new(given);
            let texts = (code.continuation(reference), code.continuation(text));
            let (wanted, written) = code.compared(&texts.0, &texts.1);
            assert_eq!((wanted.trim(), written.trim()), expected, "{given:?} {text:?}");
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
