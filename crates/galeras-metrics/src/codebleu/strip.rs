//! Comments and docstrings taken out of a text before it is parsed, as the peers do it.
//!
//! Here: the two ways of the peers, with their side effects on the rest of the text. Not
//! here: [`CodeBleuMode::Strict`](super::CodeBleuMode::Strict), which leaves nodes out of the tree instead
//! (`syntax`).
//!
//! - `codebleu` 0.7.0 runs Python's `tokenize` (3.11) and puts the tokens together again:
//!   white space becomes spaces, one per character, so that tabs no longer line up; a
//!   backslash at the end of a line joins lines; every string that begins a statement is
//!   dropped, also that of `"".join(x)`; blank lines go, also in strings. If the tokenizer
//!   raises, the text stays as it was.
//! - CodeXGLUE calls its function for Java: `//` to the end of the line and `/*...*/` become
//!   a space wherever they are not in quotes, a triple quote counts as three; blank lines go.
//!
//! Both read the text once, in time that grows with its length.

use galeras_python::is_space;

/// Appends the lines of `text` that are not blank, from `from` on in `out`.
fn drop_blank_lines(text: &str, out: &mut String) {
    out.clear();
    for line in text.split('\n').filter(|line| !line.chars().all(is_space)) {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(line);
    }
}

/// The text without what is a comment in Java; `work` is memory to work in.
pub(super) fn java(text: &str, work: &mut String, out: &mut String) {
    let bytes = text.as_bytes();
    work.clear();
    let (mut at, mut kept) = (0, 0);
    // Once a quote or `/*` is not closed, no later one is.
    let mut open = [false; 3];
    while let Some(offset) = bytes[at..].iter().position(|b| matches!(b, b'/' | b'\'' | b'"')) {
        let start = at + offset;
        at = start + 1;
        match (bytes[start], bytes.get(at)) {
            (b'/', Some(b'/')) => {
                let rest = &bytes[start..];
                at = rest.iter().position(|&b| b == b'\n').map_or(bytes.len(), |n| start + n);
            }
            (b'/', Some(b'*')) if !open[0] => match text[start + 2..].find("*/") {
                Some(length) => at = start + 2 + length + 2,
                None => open[0] = true,
            },
            (b'/', _) => {}
            (quote, _) => {
                let open = &mut open[if quote == b'"' { 1 } else { 2 }];
                if !*open {
                    match close(bytes, at, quote) {
                        Some(end) => at = end,
                        None => *open = true,
                    }
                }
            }
        }
        if bytes[start] == b'/' && at > start + 1 {
            work.push_str(&text[kept..start]);
            work.push(' ');
            kept = at;
        }
    }
    work.push_str(&text[kept..]);
    drop_blank_lines(work, out);
}

/// Where a string ends whose inside begins at `at`.
fn close(bytes: &[u8], mut at: usize, quote: u8) -> Option<usize> {
    loop {
        let byte = *bytes.get(at)?;
        at += 1;
        if byte == quote {
            return Some(at);
        }
        if byte == b'\\' {
            // A backslash takes a whole character with it; none of its bytes is a quote.
            bytes.get(at)?;
            at += 1;
        }
    }
}

/// What kind of token came last, as far as it matters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// An indentation, or nothing yet.
    Indent,
    Newline,
    Other,
}

/// Tokens put together again.
struct Output<'a> {
    out: &'a mut String,
    last: Last,
    line: usize,
    column: usize,
}

impl Output<'_> {
    /// A token at a line and column, and where it ends.
    fn token(&mut self, text: &str, start: (usize, usize), end: (usize, usize), kind: Token) {
        if start.0 > self.line {
            self.column = 0;
        }
        for _ in self.column..start.1 {
            self.out.push(' ');
        }
        let kept = match kind {
            Token::Comment => false,
            Token::String => self.last == Last::Other && start.1 > 0,
            _ => true,
        };
        if kept {
            self.out.push_str(text);
        }
        self.last = match kind {
            Token::Indent => Last::Indent,
            Token::Newline => Last::Newline,
            _ => Last::Other,
        };
        (self.line, self.column) = end;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Token {
    Comment,
    String,
    Indent,
    Newline,
    Other,
}

/// A string that goes on from line to line.
struct Continued {
    quote: u8,
    triple: bool,
    /// Where it starts: byte of the text, line, column.
    start: usize,
    place: (usize, usize),
}

/// The text as `tokenize` would give it without comments and docstrings; the text itself if
/// `tokenize` would raise. `work` is memory to work in.
pub(super) fn python(text: &str, work: &mut String, out: &mut String) {
    work.clear();
    let output = Output { out: work, last: Last::Indent, line: 0, column: 0 };
    if retokenized(text, output).is_some() {
        drop_blank_lines(work, out);
    } else {
        out.clear();
        out.push_str(text);
    }
}

fn retokenized(text: &str, mut output: Output<'_>) -> Option<()> {
    let bytes = text.as_bytes();
    let mut indents = vec![0];
    let mut depth = 0_i64;
    let mut joined = false;
    let mut continued: Option<Continued> = None;
    let (mut begin, mut number) = (0, 0);
    while begin < bytes.len() {
        number += 1;
        let feed = bytes[begin..].iter().position(|&byte| byte == b'\n');
        let end = feed.map_or(bytes.len(), |n| begin + n + 1);
        let line = &bytes[begin..end];
        let source = &text[begin..end];
        let start_of_line = begin;
        begin = end;
        let mut at = 0;
        if let Some(string) = &continued {
            let body = closed(line, 0, string.quote, string.triple);
            let unfinished = string.triple || line.ends_with(b"\\\n") || line.ends_with(b"\\\r\n");
            if body.is_none() && unfinished {
                continue;
            }
            let kind = if body.is_some() { Token::String } else { Token::Other };
            at = body.unwrap_or(line.len());
            let whole = &text[string.start..start_of_line + at];
            output.token(whole, string.place, (number, at), kind);
            continued = None;
        } else if depth == 0 && !joined {
            let (column, width) = indentation(line);
            at = width;
            if at == line.len() {
                break;
            }
            if matches!(line[at], b'#' | b'\r' | b'\n') {
                let text = source[at..].trim_end_matches(['\r', '\n']);
                if line[at] == b'#' {
                    output.token("", (number, at), (number, at + text.len()), Token::Comment);
                    at += text.len();
                }
                output.token(&source[at..], (number, at), (number, line.len()), Token::Other);
                continue;
            }
            if column > *indents.last()? {
                indents.push(column);
                output.token(&source[..at], (number, 0), (number, at), Token::Indent);
            }
            while column < *indents.last()? {
                if !indents.contains(&column) {
                    return None;
                }
                indents.pop();
                output.token("", (number, at), (number, at), Token::Other);
            }
        } else {
            joined = false;
        }
        let mut unclosed = [false; 2];
        while at < line.len() {
            let space = line[at..].iter().position(|b| !matches!(b, b' ' | b'\t' | b'\x0c'));
            let Some(start) = space.map(|n| at + n) else { break };
            let (length, kind) = match token(source, start, &mut unclosed) {
                Found::Token(length, kind) => (length, kind),
                Found::Join => {
                    joined = true;
                    break;
                }
                Found::Open { quote, triple } => {
                    let place = (number, start);
                    continued =
                        Some(Continued { quote, triple, start: start_of_line + start, place });
                    break;
                }
                Found::Nothing => {
                    // An error token, and so is each white space before it.
                    let length = source[start..].chars().next().map_or(1, char::len_utf8);
                    let end = start + length;
                    output.token(&source[at..end], (number, at), (number, end), Token::Other);
                    at = end;
                    continue;
                }
            };
            at = start + length;
            match line[start] {
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => depth -= 1,
                _ => {}
            }
            let kind = if kind == Token::Newline && depth > 0 { Token::Other } else { kind };
            output.token(&source[start..at], (number, start), (number, at), kind);
        }
    }
    // The end of the text inside of a string, brackets or a joined line raises.
    (continued.is_none() && depth == 0 && !joined).then_some(())
}

/// Column after the white space that begins a line, and its length.
fn indentation(line: &[u8]) -> (usize, usize) {
    let mut column = 0;
    for (at, byte) in line.iter().enumerate() {
        match byte {
            b' ' => column += 1,
            b'\t' => column = (column / 8 + 1) * 8,
            b'\x0c' => column = 0,
            _ => return (column, at),
        }
    }
    (column, line.len())
}

/// What begins at a place in a line.
enum Found {
    Token(usize, Token),
    /// A backslash before the end of the line.
    Join,
    /// A string that is not closed in this line.
    Open {
        quote: u8,
        triple: bool,
    },
    Nothing,
}

/// What begins at `start`; `unclosed` says of either quote that one was not closed before in
/// this line, so that no later one is.
fn token(line: &str, start: usize, unclosed: &mut [bool; 2]) -> Found {
    let bytes = line.as_bytes();
    let rest = &bytes[start..];
    match rest[0] {
        b'\n' => return Found::Token(1, Token::Newline),
        b'\r' if rest.get(1) == Some(&b'\n') => return Found::Token(2, Token::Newline),
        b'#' => {
            let length = rest.iter().position(|b| matches!(b, b'\r' | b'\n'));
            return Found::Token(length.unwrap_or(rest.len()), Token::Comment);
        }
        b'\\' => {
            let join = rest.starts_with(b"\\\n") || rest.starts_with(b"\\\r\n");
            return if join { Found::Join } else { Found::Nothing };
        }
        _ => {}
    }
    let prefix = string_prefix(rest);
    if let Some(&quote) = rest.get(prefix).filter(|byte| matches!(byte, b'\'' | b'"')) {
        let triple = rest[prefix..].starts_with(&[quote; 3]);
        let inside = start + prefix + if triple { 3 } else { 1 };
        let unclosed = &mut unclosed[usize::from(quote == b'"')];
        if triple || !*unclosed {
            if let Some(end) = closed(bytes, inside, quote, triple) {
                return Found::Token(end - start, Token::String);
            }
            *unclosed = true;
        }
        let goes_on = triple || escaped_line_end(&bytes[inside..]);
        if goes_on {
            return Found::Open { quote, triple };
        }
        if prefix == 0 {
            return Found::Nothing;
        }
        // The prefix alone is a name.
        return Found::Token(prefix, Token::Other);
    }
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let length = line[start..].find(|c| !word(c)).unwrap_or(rest.len());
    match rest[0] {
        _ if length > 0 => Found::Token(length, Token::Other),
        b'!' if rest.get(1) != Some(&b'=') => Found::Nothing,
        b'$' | b'?' | b'`' | 0..=b' ' | 0x7f.. => Found::Nothing,
        _ => Found::Token(1, Token::Other),
    }
}

/// Length of a string's prefix, if what follows is a quote.
fn string_prefix(rest: &[u8]) -> usize {
    let length = rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).take(3).count();
    let letters = [0, 1].map(|i| rest.get(i).map_or(0, u8::to_ascii_lowercase));
    match (length, letters) {
        (1, [b'b' | b'r' | b'u' | b'f', _]) => 1,
        (2, [b'b' | b'f', b'r'] | [b'r', b'b' | b'f']) => 2,
        _ => 0,
    }
}

/// Whether an unclosed string of one line ends in a backslash that escapes the line feed.
fn escaped_line_end(inside: &[u8]) -> bool {
    let Some(line) = inside.strip_suffix(b"\n") else { return false };
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    line.iter().rev().take_while(|&&byte| byte == b'\\').count() % 2 == 1
}

/// Where a string ends in this line whose inside begins, or goes on, at `at`.
fn closed(line: &[u8], mut at: usize, quote: u8, triple: bool) -> Option<usize> {
    loop {
        let offset = line[at..].iter().position(|&byte| byte == quote || byte == b'\\')?;
        at += offset;
        if line[at] == b'\\' {
            // `.` of the tokenizer's pattern does not match a line feed.
            if line.get(at + 1).is_none_or(|&byte| byte == b'\n') {
                return None;
            }
            at += 2;
        } else if !triple {
            return Some(at + 1);
        } else if line[at..].starts_with(&[quote; 3]) {
            return Some(at + 3);
        } else {
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests;
