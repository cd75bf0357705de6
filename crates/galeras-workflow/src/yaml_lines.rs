//! A rough reading of a file that is not valid YAML: its lines with columns and keys, the open
//! brackets, and the first expression between brackets without quotes.
//!
//! It knows only enough YAML to skip comments, quotes and block scalars.

use super::expr::{CLOSE, OPEN};

#[derive(Clone, Copy, Debug)]
pub(super) struct Bracket {
    pub(super) at: usize,
    pub(super) sign: char,
}

/// A line that begins a key or an item.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    number: usize,
    /// The spaces before it.
    pub(super) indent: usize,
    /// Its first non-blank byte.
    pub(super) start: usize,
    /// The text from there to its end.
    pub(super) text: &'a str,
    pub(super) key: &'a str,
}

/// The lines before the place at which a parser gave up.
#[derive(Debug, Default)]
pub(super) struct Lines<'a> {
    lines: Vec<Line<'a>>,
    pub(super) brackets: Vec<Bracket>,
    /// The start of an unquoted expression between brackets.
    pub(super) expression: Option<usize>,
}

impl<'a> Lines<'a> {
    /// Reads the text up to byte `limit`, and to the end of its line.
    pub(super) fn read(text: &'a str, limit: usize) -> Self {
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
            if let Some(column) = block {
                if indent > column {
                    continue;
                }
                block = None;
            }
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
            if out.characters(line, start, last, &mut quote) {
                block = Some(indent);
            }
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
                    self.brackets.push(Bracket { at: start + i, sign: c });
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
    pub(super) fn above(&self, number: usize) -> Option<Line<'a>> {
        self.lines.iter().rev().find(|line| line.number < number).copied()
    }

    /// The columns in which a line of this number may begin, each with the key in it.
    pub(super) fn levels(&self, number: usize) -> Vec<(usize, &'a str)> {
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
pub(super) fn key_of(content: &str) -> Option<&str> {
    let end = content.find(": ").or_else(|| content.trim_end().strip_suffix(':').map(str::len))?;
    let key = content[..end].trim_matches(['"', '\'']);
    (!key.is_empty() && !key.contains(['{', '['])).then_some(key)
}

fn first_word(content: &str) -> &str {
    content.split_whitespace().next().unwrap_or(content)
}
