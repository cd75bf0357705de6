//! Finds the user's mistake in a file that is not YAML, and how to fix it; the parser reports only
//! where it gave up and what it expected.
//!
//! It looks for expressions without quotes between brackets, tabs, no-break spaces, colons that are
//! missing or touch the value, lines in a column where none can begin, quotes and brackets that are
//! not closed or closed twice, and values that begin with a special character of YAML. For that it
//! reads the file roughly ([`Lines`]): it knows only enough YAML to skip comments, quotes and block
//! scalars.

use std::sync::Arc;

use super::diagnostic::{Diagnostic, quote};
use super::expr::{CLOSE, OPEN};
use super::source::{Source, Span};
use crate::code::Code;

/// The mistake behind the parser's `complaint` at byte `at`; `None` if it is not a known one.
pub(super) fn find(source: &Arc<Source>, at: usize, complaint: &str) -> Option<Diagnostic> {
    let text = source.text();
    let search = Search { source, text, at, complaint, lines: Lines::read(text, at) };
    if let Some(open) = search.lines.expression {
        return Some(search.bare_expression(open));
    }
    let found = search
        .tab()
        .or_else(|| search.no_break_space())
        .or_else(|| search.quotes())
        .or_else(|| search.brackets());
    let found = found.or_else(|| search.sign());
    found.or_else(|| search.lines.brackets.is_empty().then(|| search.block())?)
}

const NO_BREAK_SPACE: char = '\u{a0}';

/// A file, and the place and words of the parser's complaint.
struct Search<'a> {
    source: &'a Arc<Source>,
    text: &'a str,
    at: usize,
    complaint: &'a str,
    lines: Lines<'a>,
}

impl Search<'_> {
    fn mistake(&self, what: impl Into<String>, span: Span, help: impl Into<String>) -> Diagnostic {
        Diagnostic::error(Code::YamlSyntax, what, self.source, span).with_help(help)
    }

    fn complains(&self, words: &[&str]) -> bool {
        words.iter().any(|words| self.complaint.contains(words))
    }

    /// The character at which the parser gave up.
    fn character(&self) -> Option<char> {
        self.text.get(self.at..)?.chars().next()
    }

    fn bare_expression(&self, open: usize) -> Diagnostic {
        let line = self.text[open..].lines().next().unwrap_or_default();
        let (length, written) = match line.find(CLOSE) {
            Some(end) => (end + CLOSE.len(), &line[..end + CLOSE.len()]),
            None => (OPEN.len(), "${{ params.name }}"),
        };
        self.mistake(
            "an expression between brackets needs quotes around it",
            Span::new(open, open + length),
            format!("write \"{written}\": without quotes, YAML takes its braces for a mapping"),
        )
    }

    /// A tab where YAML wants spaces. The parser names the token before or after it.
    fn tab(&self) -> Option<Diagnostic> {
        let line = self.source.line_span(self.source.position(self.at).line)?;
        let written = self.source.slice(line);
        let blank = &written[..written.len() - written.trim_start().len()];
        let tab = match (blank.find('\t'), self.complaint.contains("tab")) {
            (Some(tab), _) => line.start + tab,
            // After the scalar that the parser names, perhaps at the beginning of the next line.
            (None, true) => self.at + self.text.get(self.at..)?.find('\t')?,
            (None, false) => return None,
        };
        let tabs = self.text[tab..].bytes().take_while(|b| *b == b'\t').count();
        Some(self.mistake(
            "a tab cannot indent a line",
            Span::new(tab, tab + tabs),
            "YAML is indented with spaces, never with tabs: most editors can be told to write \
             spaces for the Tab key",
        ))
    }

    /// A no-break space, which is part of a key or a value. The parser gives up in that line or the
    /// next one.
    fn no_break_space(&self) -> Option<Diagnostic> {
        let here = self.source.position(self.at).line;
        let at = [here, here.saturating_sub(1)].into_iter().find_map(|line| {
            let line = self.source.line_span(line)?;
            let written = self.source.slice(line);
            let blank = &written[..written.len() - written.trim_start().len()];
            Some(line.start + blank.find(NO_BREAK_SPACE)?)
        })?;
        Some(self.mistake(
            "a no-break space cannot indent a line",
            Span::new(at, at + NO_BREAK_SPACE.len_utf8()),
            "write ordinary spaces; a text copied from a page or a document may have others",
        ))
    }

    fn quotes(&self) -> Option<Diagnostic> {
        let mark = self.character();
        if self.complaint.contains("unclosed quote") {
            let mark = mark.filter(|c| matches!(c, '"' | '\''))?;
            return Some(self.mistake(
                "this quote is never closed",
                Span::new(self.at, self.at + 1),
                format!("write another {mark} where the text ends"),
            ));
        }
        let doubled = match self.complaint {
            c if c.contains("after single-quoted") => "two for one (''), or put the text in \"…\"",
            c if c.contains("after double-quoted") => "\\\", or put the text in '…'",
            _ => return None,
        };
        Some(self.mistake(
            "the quotes were closed before this",
            Span::new(self.at, self.at + mark.map_or(0, char::len_utf8)),
            format!(
                "within such quotes, write {doubled}; long texts are easiest in a block after `|`"
            ),
        ))
    }

    fn brackets(&self) -> Option<Diagnostic> {
        let (text, at) = (self.text, self.at);
        let closing = |c: &char| matches!(c, ']' | '}');
        if self.complaint.contains("misplaced bracket") {
            let open = if self.character().filter(closing)? == '}' { '{' } else { '[' };
            return Some(self.mistake(
                "this bracket closes nothing",
                Span::new(at, at + 1),
                format!("remove it, or write `{open}` where it should begin"),
            ));
        }
        // The parser may name the place of the unclosed bracket.
        let opens = self.character().filter(|c| matches!(c, '[' | '{'));
        if let Some(sign) = opens.filter(|_| self.complaint.contains("mismatched bracket")) {
            let end = at + text[at..].find([']', '}'])?;
            let other = text[end..].chars().next().filter(|other| *other != closed_by(sign))?;
            return Some(self.wrongly_closed((at, sign), (end, other)));
        }
        let (open, sign) = *self.lines.brackets.last()?;
        let close = closed_by(sign);
        let next = text.get(at..).unwrap_or("").trim_start().chars().next();
        if let Some(other) = next.filter(|c| closing(c) && *c != close) {
            let at = at + text[at..].find(other)?;
            return Some(self.wrongly_closed((open, sign), (at, other)));
        }
        if next.is_none() || self.source.position(at).line > self.source.position(open).line {
            return Some(self.mistake(
                format!("this `{sign}` is never closed"),
                Span::new(open, open + 1),
                format!("write `{close}` behind the last entry"),
            ));
        }
        let wanted = ["did not find expected ','", "expected ','", "mapping values"];
        self.complains(&wanted).then(|| {
            self.mistake(
                format!("entries between `{sign}` and `{close}` are separated by commas"),
                Span::new(at, at + self.character().map_or(0, char::len_utf8)),
                "write a comma before it, or put the value in quotes if this is a part of it",
            )
        })
    }

    /// A bracket and the wrong closing one, with their places.
    fn wrongly_closed(&self, open: (usize, char), (at, other): (usize, char)) -> Diagnostic {
        let (open, sign) = open;
        let close = closed_by(sign);
        let message = format!("`{sign}` is closed by `{close}`, not by `{other}`");
        self.mistake(message, Span::new(at, at + 1), format!("write `{close}`")).with_related(
            self.source,
            Span::new(open, open + 1),
            "opened here",
        )
    }

    /// A value that begins with a character that YAML reserves.
    fn sign(&self) -> Option<Diagnostic> {
        let c = self.character().filter(|c| matches!(c, '`' | '@' | '%' | '*' | '&' | '!'))?;
        let words =
            ["unexpected character", "anchor or alias", "cannot start any token", "tag", "%"];
        let what = if c == '`' { "a backtick".to_owned() } else { quote(&c.to_string()) };
        self.complains(&words).then(|| {
            self.mistake(
                format!("a value cannot begin with {what}"),
                Span::new(self.at, self.at + 1),
                "put the value in quotes: this sign has a special meaning in YAML",
            )
        })
    }

    /// Mistakes in lines of the form `key: value`.
    fn block(&self) -> Option<Diagnostic> {
        let number = self.source.position(self.at).line;
        let line = self.source.line_span(number)?;
        let written = self.source.slice(line);
        let content = written.trim_start();
        let indent = written.len() - content.len();
        if let Some(found) = self.text_behind_brackets(line.start + indent, content) {
            return Some(found);
        }
        if self.complaint.contains("mapping values") {
            let above = self.lines.above(number);
            // A line without a colon takes the next line as its continuation.
            if let Some(found) = above.and_then(|above| self.colon(above.start, above.text)) {
                return Some(found);
            }
            if let Some(found) = self.colon(line.start + indent, content) {
                return Some(found);
            }
            let before = &written[..self.at.saturating_sub(line.start).min(written.len())];
            if let Some(key) = key_of(before.trim_start().trim_start_matches("- ")) {
                let value = before.find(": ").map(|colon| written[colon + 1..].trim_start());
                let value = value.unwrap_or(written).trim_end();
                return Some(self.mistake(
                    format!("the value of {} has a second colon in it", quote(key)),
                    Span::new(self.at, self.at + 1),
                    format!("put the value in quotes: {key}: \"{}\"", short(value)),
                ));
            }
            let above = above.filter(|above| above.indent < indent)?;
            return Some(self.indentation(line.start, indent, number, Some(above.key)));
        }
        if self.complaint.contains("expected ':'") {
            return self.colon(line.start + indent, content);
        }
        let stray = ["did not find expected key", "expected <block end>", "block collection"];
        self.complains(&stray).then(|| self.indentation(line.start, indent, number, None))
    }

    /// A text that begins with brackets, such as a template, where YAML reads a mapping or a list.
    fn text_behind_brackets(&self, start: usize, content: &str) -> Option<Diagnostic> {
        let is_open = |text: &&str| text.starts_with(['{', '[']);
        let content = content.split(" #").next()?;
        let item = content.strip_prefix("- ").map(str::trim).filter(is_open);
        let value = item.or_else(|| Some(content.split_once(": ")?.1.trim())).filter(is_open)?;
        let mut depth = 0_i32;
        let (end, _) = value.char_indices().find(|(_, c)| {
            depth += i32::from(matches!(c, '{' | '['));
            depth -= i32::from(matches!(c, '}' | ']'));
            depth == 0
        })?;
        if value[end + 1..].trim().is_empty() {
            return None;
        }
        let start = start + content.find(value)?;
        Some(self.mistake(
            "there is text after the closing bracket",
            Span::new(start, start + value.len()),
            format!("put it in quotes: \"{}\"", short(value)),
        ))
    }

    /// The mistake in a line that should have a key and a colon, if it has none.
    fn colon(&self, start: usize, content: &str) -> Option<Diagnostic> {
        let bare = content.trim_start_matches("- ");
        let start = start + (content.len() - bare.len());
        let code = bare.split_once(" #").map_or(bare, |(code, _)| code).trim_end();
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        let (word, rest) = code.split_at(code.find(|c: char| !is_part(c)).unwrap_or(code.len()));
        if word.is_empty() {
            return None;
        }
        let end = start + word.len();
        let help = |value: &str| match value {
            "" => format!("write `{word}:`"),
            _ => format!("write `{word}: {}`", short(value)),
        };
        if let Some(value) = rest.strip_prefix(':') {
            let touching = !value.is_empty() && !value.starts_with(char::is_whitespace);
            let colon = Span::new(end, end + 1);
            let message = "a colon needs a space behind it";
            return touching.then(|| self.mistake(message, colon, help(value)));
        }
        let value = rest.trim_start();
        // A later colon belongs to another mistake, unless it is between brackets.
        let flow = value.starts_with(['{', '[']);
        if !flow && (value.contains(": ") || value.ends_with(':')) {
            return None;
        }
        (rest.is_empty() || rest.starts_with(char::is_whitespace)).then(|| {
            let message = format!("there is no colon after {}", quote(word));
            self.mistake(message, Span::new(start, end), help(value))
        })
    }

    /// A line that begins in a column where none of the lines above continues.
    fn indentation(
        &self,
        start: usize,
        indent: usize,
        number: usize,
        under: Option<&str>,
    ) -> Diagnostic {
        let spaces = |n: usize| match n {
            0 => "without spaces".to_owned(),
            1 => "by 1 space".to_owned(),
            n => format!("by {n} spaces"),
        };
        let indented = format!("this line is indented {}", spaces(indent));
        let message = match under.map(quote) {
            Some(key) => {
                format!("{indented}, as if it were part of {key}, which has a value already")
            }
            None => format!("{indented}, but no line above it is"),
        };
        // The nearest columns first.
        let mut levels = self.lines.levels(number);
        levels.sort_by_key(|level| (level.0.abs_diff(indent), level.0));
        let choices: Vec<String> = levels
            .iter()
            .take(2)
            .map(|(column, key)| format!("{} to put it below {}", spaces(*column), quote(key)))
            .collect();
        let help = match choices.is_empty() {
            true => "keys of one mapping begin in the same column".to_owned(),
            false => format!("indent it {}", choices.join(", or ")),
        };
        self.mistake(message, Span::new(start, start + indent.max(1)), help)
    }
}

fn closed_by(bracket: char) -> char {
    if bracket == '{' { '}' } else { ']' }
}

pub(super) fn short(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// A line that begins a key or an item.
#[derive(Clone, Copy, Debug)]
struct Line<'a> {
    number: usize,
    /// The spaces before it.
    indent: usize,
    /// Its first non-blank byte.
    start: usize,
    /// The text from there to its end.
    text: &'a str,
    key: &'a str,
}

/// The lines before the place at which a parser gave up.
#[derive(Debug, Default)]
struct Lines<'a> {
    lines: Vec<Line<'a>>,
    /// The open brackets, with their places.
    brackets: Vec<(usize, char)>,
    /// The start of an unquoted expression between brackets.
    expression: Option<usize>,
}

impl<'a> Lines<'a> {
    /// Reads the text up to byte `limit`, and to the end of its line.
    fn read(text: &'a str, limit: usize) -> Self {
        let mut out = Self::default();
        let mut at = 0;
        // The column of the key to which a block scalar belongs, and an open quote.
        let mut block: Option<usize> = None;
        let mut quote: Option<char> = None;
        for (number, line) in text.split_inclusive('\n').enumerate() {
            let start = at;
            at += line.len();
            if start > limit {
                break;
            }
            let line = line.trim_end_matches(['\n', '\r']);
            let content = line.trim_start_matches(' ');
            let indent = line.len() - content.len();
            if content.trim().is_empty() {
                continue;
            }
            if block.is_some_and(|column| indent > column) {
                continue;
            }
            block = None;
            if quote.is_none() && content.starts_with('#') {
                continue;
            }
            if quote.is_none() && out.brackets.is_empty() {
                let item = content.trim_start_matches("- ");
                let key = key_of(item).unwrap_or_else(|| first_word(item));
                let start = start + indent;
                out.lines.push(Line { number: number + 1, indent, start, text: content, key });
            }
            let last = limit.saturating_sub(start).min(line.len());
            block = out.characters(line, start, last, &mut quote).then_some(indent);
        }
        out
    }

    /// Reads a line up to `last`; returns whether a block scalar begins at its end.
    fn characters(
        &mut self,
        line: &str,
        start: usize,
        last: usize,
        quote: &mut Option<char>,
    ) -> bool {
        // True where a value may begin; within a plain scalar, brackets and quotes are text.
        let mut fresh = true;
        let mut skip = 0;
        for (i, c) in line.char_indices() {
            if i < skip {
                continue;
            }
            let rest = &line[i..];
            if let Some(mark) = *quote {
                match c {
                    '\\' if mark == '"' => skip = i + 2,
                    '\'' if mark == '\'' && rest.starts_with("''") => skip = i + 2,
                    _ if c == mark => *quote = None,
                    _ => {}
                }
                continue;
            }
            let flow = !self.brackets.is_empty();
            match c {
                ' ' | '\t' => continue,
                '#' if i == 0 || line[..i].ends_with([' ', '\t']) => return false,
                _ if flow && rest.starts_with(OPEN) => {
                    if start + i <= start + last && self.expression.is_none() {
                        self.expression = Some(start + i);
                    }
                    skip = i + rest.find(CLOSE).map_or(OPEN.len(), |end| end + CLOSE.len());
                    fresh = false;
                    continue;
                }
                '"' | '\'' if fresh => *quote = Some(c),
                '[' | '{' if (fresh || flow) && i < last => {
                    self.brackets.push((start + i, c));
                    fresh = true;
                    continue;
                }
                ']' | '}' if flow && i < last => {
                    self.brackets.pop();
                    fresh = false;
                    continue;
                }
                '|' | '>' if fresh && !flow => {
                    let header = rest[1..].split(" #").next().unwrap_or("").trim_end();
                    if header.chars().all(|c| matches!(c, '+' | '-') || c.is_ascii_digit()) {
                        return true;
                    }
                }
                ',' if flow => {
                    fresh = true;
                    continue;
                }
                ':' | '-' if rest[1..].is_empty() || rest[1..].starts_with([' ', '\t']) => {
                    fresh = true;
                    continue;
                }
                _ => {}
            }
            fresh = false;
        }
        false
    }

    /// The last line before that of this number.
    fn above(&self, number: usize) -> Option<Line<'a>> {
        self.lines.iter().rev().find(|line| line.number < number).copied()
    }

    /// The columns in which a line of this number may begin, each with the key in it.
    fn levels(&self, number: usize) -> Vec<(usize, &'a str)> {
        let mut levels: Vec<(usize, &'a str)> = Vec::new();
        for line in self.lines.iter().filter(|line| line.number < number) {
            let item = line.text.len() - line.text.trim_start_matches("- ").len();
            levels.retain(|level| level.0 < line.indent);
            if item > 0 {
                levels.push((line.indent, "- "));
            }
            levels.push((line.indent + item, line.key));
        }
        levels.retain(|level| level.1 != "- ");
        levels
    }
}

/// The key of a line `key: value` or `key:`.
fn key_of(content: &str) -> Option<&str> {
    let end = content.find(": ").or_else(|| content.trim_end().strip_suffix(':').map(str::len))?;
    let key = content[..end].trim_matches(['"', '\'']);
    (!key.is_empty() && !key.contains(['{', '['])).then_some(key)
}

fn first_word(content: &str) -> &str {
    content.split_whitespace().next().unwrap_or(content)
}

#[cfg(test)]
mod tests {
    use crate::{Diagnostics, Source, load};

    const HEAD: &str = "galeras: 1\nsteps:\n  m:\n    op: methods\n";

    /// The message, the marked text and its line.
    fn told(rest: &str) -> (String, String, usize) {
        let source = Source::new("f", format!("{HEAD}{rest}"));
        let mut all = Diagnostics::new();
        assert!(load(&source, &mut all).is_none(), "{rest}");
        assert_eq!(all.len(), 1);
        let found = all.into_sorted().remove(0);
        assert!(found.help.is_some(), "{rest}: {found:?}");
        let span = crate::Span::new(found.span.start, found.span.end());
        let marked = source.slice(span).to_owned();
        (found.message, marked, source.position(span.start).line)
    }

    #[test]
    fn mistakes_are_found_where_they_were_made() {
        let expression = "${{ params.seed }}";
        let over_lines = "    with: {\n      n: 1,\n      seed: ${{ params.seed }}\n    }\n";
        for (rest, words, marked, line) in [
            ("    with: { n: 5, seed: ${{ params.seed }} }\n", "needs quotes", expression, 5),
            ("    with: { seed: ${{ params.seed }}, n: 5 }\n", "needs quotes", expression, 5),
            ("    with: { a: [ ${{ params.seed }} ] }\n", "needs quotes", expression, 5),
            (over_lines, "needs quotes", expression, 7),
            ("  s:\n    op sample\n    from: m\n", "colon", "op", 6),
            ("  s\n    op: sample\n", "colon", "s", 5),
            ("  s:\n    op:sample\n    from: m\n", "colon", ":", 6),
            ("  s:\n    op: sample\n    with { n: 1, seed: 1 }\n", "colon", "with", 7),
            ("    with:\n      n: 1\n      seed 1\n  t:\n    op: x\n", "colon", "seed", 7),
            ("    with:\n      n 1\n      seed: 1\n", "colon", "n", 6),
            ("    description: it does: all\n", "colon", ":", 5),
            ("    with:\n      a: {{ b }} c # d\n", "after the closing", "{{ b }} c", 6),
            ("    with:\n      a:\n        - [x] y\n", "after the closing", "[x] y", 7),
            ("     from: m\n", "indented", "     ", 5),
            ("   from: m\n", "indented", "   ", 5),
            (" s:\n    op: x\n", "indented", " ", 5),
            ("  s:\n      op: x\n    from: m\n", "indented", "    ", 7),
            ("\tfrom: m\n", "a tab", "\t", 5),
            ("    with:\n    \tn: 1\n", "a tab", "\t", 6),
            ("  s:\n\u{a0}\u{a0}op: x\n    from: m\n", "no-break space", "\u{a0}", 6),
            ("    with: { q: 'a 'b' c' }\n", "closed before", "b", 5),
            ("    with: { q: \"a }\n  t:\n    op: x\n", "never closed", "\"", 5),
            ("    with: { n: 1\n  t:\n    op: x\n", "never closed", "{", 5),
            ("    with: { n: 1 }}\n", "closes nothing", "}", 5),
            ("    with: { n: [1 }\n", "not by", "}", 5),
            ("    with:\n      q: `a` > 1\n", "a backtick", "`", 6),
            ("    with:\n      q: *\n", "cannot begin with `*`", "*", 6),
        ] {
            let (message, found, at) = told(rest);
            assert!(message.contains(words), "{rest}: {message}");
            assert_eq!((found.as_str(), at), (marked, line), "{rest}: {message}");
        }
    }
}
