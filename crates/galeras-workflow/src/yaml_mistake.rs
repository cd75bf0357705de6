//! Finds the user's mistake in a file that is not YAML, and how to fix it; the parser reports only
//! where it gave up and what it expected.
//!
//! It looks for expressions without quotes between brackets, tabs, colons that are missing or touch
//! the value, lines in a column where none can begin, quotes and brackets that are not closed or
//! closed twice, and values that begin with a special character of YAML.

use std::sync::Arc;

use super::diagnostic::quote;
use super::expr::{CLOSE, OPEN};
use super::source::{Source, Span};
use super::yaml_lines::{Bracket, Lines, key_of};

#[derive(Debug, PartialEq, Eq)]
pub(super) struct YamlMistake {
    pub(super) message: String,
    pub(super) span: Span,
    pub(super) help: String,
    pub(super) related: Option<(Span, &'static str)>,
}

impl YamlMistake {
    fn new(message: impl Into<String>, span: Span, help: impl Into<String>) -> Self {
        Self { message: message.into(), span, help: help.into(), related: None }
    }
}

/// The mistake behind the parser's `complaint` at byte `at`; `None` if it is not a known one.
pub(super) fn find(source: &Arc<Source>, at: usize, complaint: &str) -> Option<YamlMistake> {
    let text = source.text();
    let lines = Lines::read(text, at);
    if let Some(open) = lines.expression {
        return Some(bare_expression(text, open));
    }
    if let Some(found) = tab(source, at, complaint) {
        return Some(found);
    }
    if let Some(found) = quotes(text, at, complaint) {
        return Some(found);
    }
    if let Some(found) = brackets(source, at, complaint, &lines) {
        return Some(found);
    }
    if let Some(found) = sign(text, at, complaint) {
        return Some(found);
    }
    if lines.brackets.is_empty() {
        return block(source, at, complaint, &lines);
    }
    None
}

fn bare_expression(text: &str, open: usize) -> YamlMistake {
    let rest = &text[open..];
    let line = rest.lines().next().unwrap_or(rest);
    let length = line.find(CLOSE).map_or(OPEN.len(), |end| end + CLOSE.len());
    let written = &line[..length];
    let written = if written.ends_with(CLOSE) { written } else { "${{ params.name }}" };
    YamlMistake::new(
        "an expression between brackets needs quotes around it",
        Span::new(open, open + length),
        format!("write \"{written}\": without quotes, YAML takes its braces for a mapping"),
    )
}

/// A tab where YAML wants spaces. The parser names the token before or after it.
fn tab(source: &Source, at: usize, complaint: &str) -> Option<YamlMistake> {
    let line = source.line_span(source.position(at).line)?;
    let written = source.slice(line);
    let blank = &written[..written.len() - written.trim_start().len()];
    let tab = match (blank.find('\t'), complaint.contains("tab")) {
        (Some(tab), _) => line.start + tab,
        // After the scalar that the parser names, perhaps at the beginning of the next line.
        (None, true) => at + source.text().get(at..)?.find('\t')?,
        (None, false) => return None,
    };
    let tabs = source.text()[tab..].bytes().take_while(|b| *b == b'\t').count();
    Some(YamlMistake::new(
        "a tab cannot indent a line",
        Span::new(tab, tab + tabs),
        "YAML is indented with spaces, never with tabs: most editors can be told to write spaces \
         for the Tab key",
    ))
}

fn quotes(text: &str, at: usize, complaint: &str) -> Option<YamlMistake> {
    let mark = text.get(at..)?.chars().next();
    if complaint.contains("unclosed quote") {
        let mark = mark.filter(|c| matches!(c, '"' | '\''))?;
        return Some(YamlMistake::new(
            "this quote is never closed",
            Span::new(at, at + 1),
            format!("write another {mark} where the text ends"),
        ));
    }
    let doubled = match complaint {
        c if c.contains("after single-quoted") => "two for one (''), or put the text in \"…\"",
        c if c.contains("after double-quoted") => "\\\", or put the text in '…'",
        _ => return None,
    };
    let width = mark.map_or(0, char::len_utf8);
    Some(YamlMistake::new(
        "the quotes were closed before this",
        Span::new(at, at + width),
        format!("within such quotes, write {doubled}; long texts are easiest in a block after `|`"),
    ))
}

fn brackets(source: &Source, at: usize, complaint: &str, lines: &Lines<'_>) -> Option<YamlMistake> {
    let text = source.text();
    if complaint.contains("misplaced bracket") {
        let bracket = text.get(at..)?.chars().next().filter(|c| matches!(c, ']' | '}'))?;
        return Some(YamlMistake::new(
            "this bracket closes nothing",
            Span::new(at, at + 1),
            format!("remove it, or write `{}` where it should begin", opening(bracket)),
        ));
    }
    // The parser may name the place of the unclosed bracket.
    let opens = text.get(at..)?.chars().next().filter(|c| matches!(c, '[' | '{'));
    if let Some(sign) = opens.filter(|_| complaint.contains("mismatched bracket")) {
        let close = if sign == '{' { '}' } else { ']' };
        let end = at + text[at..].find([']', '}'])?;
        let other = text[end..].chars().next().filter(|other| *other != close)?;
        return Some(wrongly_closed((at, sign), (end, other)));
    }
    let Bracket { at: open, sign } = *lines.brackets.last()?;
    let here = source.position(at).line;
    let first = source.position(open).line;
    let close = if sign == '{' { '}' } else { ']' };
    let closing = |c: char| matches!(c, ']' | '}');
    let next = text.get(at..).unwrap_or("").trim_start().chars().next();
    if let Some(other) = next.filter(|c| closing(*c) && *c != close) {
        let at = at + text[at..].find(other)?;
        return Some(wrongly_closed((open, sign), (at, other)));
    }
    if next.is_none() || here > first {
        return Some(YamlMistake::new(
            format!("this `{sign}` is never closed"),
            Span::new(open, open + 1),
            format!("write `{close}` behind the last entry"),
        ));
    }
    let wanted = ["did not find expected ','", "expected ','", "mapping values"];
    if wanted.iter().any(|words| complaint.contains(words)) {
        return Some(YamlMistake::new(
            format!("entries between `{sign}` and `{close}` are separated by commas"),
            Span::new(at, at + text[at..].chars().next().map_or(0, char::len_utf8)),
            "write a comma before it, or put the value in quotes if this is a part of it",
        ));
    }
    None
}

/// A bracket and the wrong closing one, with their places.
fn wrongly_closed((open, sign): (usize, char), (at, other): (usize, char)) -> YamlMistake {
    let close = if sign == '{' { '}' } else { ']' };
    let mut found = YamlMistake::new(
        format!("`{sign}` is closed by `{close}`, not by `{other}`"),
        Span::new(at, at + 1),
        format!("write `{close}`"),
    );
    found.related = Some((Span::new(open, open + 1), "opened here"));
    found
}

fn opening(bracket: char) -> char {
    if bracket == '}' { '{' } else { '[' }
}

/// A value that begins with a character that YAML reserves.
fn sign(text: &str, at: usize, complaint: &str) -> Option<YamlMistake> {
    let c = text.get(at..)?.chars().next()?;
    let reserved = matches!(c, '`' | '@' | '%' | '*' | '&' | '!');
    let said = ["unexpected character", "anchor or alias", "cannot start any token", "tag", "%"];
    if !reserved || !said.iter().any(|words| complaint.contains(words)) {
        return None;
    }
    let what = if c == '`' { "a backtick".to_owned() } else { quote(&c.to_string()) };
    Some(YamlMistake::new(
        format!("a value cannot begin with {what}"),
        Span::new(at, at + 1),
        "put the value in quotes: this sign has a special meaning in YAML",
    ))
}

/// Mistakes in lines of the form `key: value`.
fn block(source: &Source, at: usize, complaint: &str, lines: &Lines<'_>) -> Option<YamlMistake> {
    let place = source.position(at);
    let line = source.line_span(place.line)?;
    let written = source.slice(line);
    let indent = written.len() - written.trim_start().len();
    let content = written.trim_start();
    let above = lines.above(place.line);
    if complaint.contains("mapping values") {
        // A line without a colon takes the next line as its continuation.
        if let Some(found) = above.and_then(|above| colon(above.start, above.text)) {
            return Some(found);
        }
        if let Some(found) = colon(line.start + indent, content) {
            return Some(found);
        }
        let before = &written[..at.saturating_sub(line.start).min(written.len())];
        if let Some(key) = key_of(before.trim_start().trim_start_matches("- ")) {
            let value = before.find(": ").map_or(line.start, |colon| {
                let gap = before[colon + 1..].len() - before[colon + 1..].trim_start().len();
                line.start + colon + 1 + gap
            });
            return Some(YamlMistake::new(
                format!("the value of {} has a second colon in it", quote(key)),
                Span::new(at, at + 1),
                format!(
                    "put the value in quotes: {key}: \"{}\"",
                    short(source.text()[value..line.end].trim_end())
                ),
            ));
        }
        let above = above?;
        if above.indent < indent {
            return Some(indentation(line.start, indent, place.line, lines, Some(above.key)));
        }
        return None;
    }
    if complaint.contains("expected ':'") {
        return colon(line.start + indent, content);
    }
    let stray = ["did not find expected key", "expected <block end>", "block collection"];
    if stray.iter().any(|words| complaint.contains(words)) {
        return Some(indentation(line.start, indent, place.line, lines, None));
    }
    None
}

fn short(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// The mistake in a line that should have a key and a colon, if it has none.
fn colon(start: usize, content: &str) -> Option<YamlMistake> {
    let bare = content.trim_start_matches("- ");
    let start = start + (content.len() - bare.len());
    let code = bare.split_once(" #").map_or(bare, |(code, _)| code).trim_end();
    let word = code.split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | '.')).next();
    let word = word.filter(|word| !word.is_empty())?;
    let rest = &code[word.len()..];
    let at = Span::new(start, start + word.len());
    let help = |value: &str| match value {
        "" => format!("write `{word}:`"),
        _ => format!("write `{word}: {}`", short(value)),
    };
    if let Some(value) = rest.strip_prefix(':') {
        let touching = !value.is_empty() && !value.starts_with(char::is_whitespace);
        return touching.then(|| {
            let colon = Span::new(start + word.len(), start + word.len() + 1);
            YamlMistake::new("a colon needs a space behind it", colon, help(value))
        });
    }
    let value = rest.trim_start();
    // A later colon belongs to another mistake, unless it is between brackets.
    let flow = value.starts_with(['{', '[']);
    if !flow && (value.contains(": ") || value.ends_with(':')) {
        return None;
    }
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then(|| {
        YamlMistake::new(format!("there is no colon after {}", quote(word)), at, help(value))
    })
}

/// A line that begins in a column where none of the lines above continues.
fn indentation(
    start: usize,
    indent: usize,
    number: usize,
    lines: &Lines<'_>,
    under: Option<&str>,
) -> YamlMistake {
    let spaces = |n: usize| match n {
        0 => "without spaces".to_owned(),
        1 => "by 1 space".to_owned(),
        n => format!("by {n} spaces"),
    };
    let message = match under {
        Some(key) => format!(
            "this line is indented {}, as if it were part of {}, which has a value already",
            spaces(indent),
            quote(key)
        ),
        None => format!("this line is indented {}, but no line above it is", spaces(indent)),
    };
    // The nearest columns first.
    let mut levels = lines.levels(number);
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
    YamlMistake::new(message, Span::new(start, start + indent.max(1)), help)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
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
    fn expressions_between_brackets() {
        for rest in [
            "    with: { n: 5, seed: ${{ params.seed }} }\n",
            "    with: { seed: ${{ params.seed }}, n: 5 }\n",
            "    with: { a: [ ${{ params.seed }} ] }\n",
            "    with: {\n      n: 1,\n      seed: ${{ params.seed }}\n    }\n",
        ] {
            let (message, marked, _) = told(rest);
            assert!(message.contains("needs quotes"), "{message}");
            assert_eq!(marked, "${{ params.seed }}");
        }
    }

    #[test]
    fn colons() {
        for (rest, marked, line) in [
            ("  s:\n    op sample\n    from: m\n", "op", 6),
            ("  s\n    op: sample\n", "s", 5),
            ("  s:\n    op:sample\n    from: m\n", ":", 6),
            ("  s:\n    op: sample\n    with { n: 1, seed: 1 }\n", "with", 7),
            ("    with:\n      n: 1\n      seed 1\n  t:\n    op: x\n", "seed", 7),
            ("    with:\n      n 1\n      seed: 1\n", "n", 6),
            ("    description: it does: all\n", ":", 5),
        ] {
            let (message, found, at) = told(rest);
            assert!(message.contains("colon"), "{rest}: {message}");
            assert_eq!((found.as_str(), at), (marked, line), "{rest}: {message}");
        }
    }

    #[test]
    fn columns() {
        for (rest, line) in [
            ("     from: m\n", 5),
            ("   from: m\n", 5),
            (" s:\n    op: x\n", 5),
            ("  s:\n      op: x\n    from: m\n", 7),
        ] {
            let (message, _, at) = told(rest);
            assert!(message.contains("indented"), "{rest}: {message}");
            assert_eq!(at, line, "{rest}: {message}");
        }
    }

    #[test]
    fn tabs_quotes_and_brackets() {
        for (rest, words, marked, line) in [
            ("\tfrom: m\n", "a tab", "\t", 5),
            ("    with:\n    \tn: 1\n", "a tab", "\t", 6),
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
