//! Removes comments and docstrings before parsing, with the side effects of the peers.
//! [`CodeBleuMode::Strict`](super::CodeBleuMode::Strict) leaves out nodes of the tree instead (see
//! `syntax`).
//!
//! - `codebleu` 0.7.0 runs Python's `tokenize` (3.11) and joins the tokens: white space becomes one
//!   space per character, so tabs no longer line up; a backslash at the end of a line joins lines;
//!   every string that begins a statement is dropped, even that of `"".join(x)`; blank lines are
//!   dropped, also in strings. If the tokenizer raises, the text stays unchanged.
//! - CodeXGLUE calls its function for Java: `//` to the end of the line and `/*...*/` become a
//!   space unless they are in quotes, where a triple quote counts as three; blank lines are
//!   dropped.
//!
//! Both take linear time.

use galeras_python::is_space;

/// Replaces `out` with the lines of `text` that are not blank.
fn drop_blank_lines(text: &str, out: &mut String) {
    out.clear();
    for line in text.split('\n').filter(|line| !line.chars().all(is_space)) {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(line);
    }
}

/// Removes the comments of Java; `work` is a buffer.
pub(super) fn java(text: &str, work: &mut String, out: &mut String) {
    let bytes = text.as_bytes();
    work.clear();
    let (mut at, mut kept) = (0, 0);
    // After an unclosed quote or `/*`, no later one is closed.
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

/// The end of a string whose content begins at `at`.
fn close(bytes: &[u8], mut at: usize, quote: u8) -> Option<usize> {
    loop {
        let byte = *bytes.get(at)?;
        at += 1;
        if byte == quote {
            return Some(at);
        }
        if byte == b'\\' {
            // A backslash escapes a whole character, none of whose bytes is a quote.
            bytes.get(at)?;
            at += 1;
        }
    }
}

/// The joined tokens.
struct Output<'a> {
    out: &'a mut String,
    /// The kind of the last token; at the start of the text as after indentation.
    last: Token,
    line: usize,
    column: usize,
}

impl Output<'_> {
    /// Appends a token with its start and end as line and column.
    fn token(&mut self, text: &str, start: (usize, usize), end: (usize, usize), kind: Token) {
        if start.0 > self.line {
            self.column = 0;
        }
        for _ in self.column..start.1 {
            self.out.push(' ');
        }
        let kept = match kind {
            Token::Comment => false,
            Token::String => start.1 > 0 && !matches!(self.last, Token::Indent | Token::Newline),
            _ => true,
        };
        if kept {
            self.out.push_str(text);
        }
        self.last = kind;
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

/// A string of several lines.
struct OpenString {
    quote: u8,
    triple: bool,
    /// Its start: byte of the text, line and column.
    start: usize,
    place: (usize, usize),
}

/// Removes comments and docstrings as `tokenize` does; the text stays unchanged if `tokenize` would
/// raise. `work` is a buffer.
pub(super) fn python(text: &str, work: &mut String, out: &mut String) {
    work.clear();
    let output = Output { out: work, last: Token::Indent, line: 0, column: 0 };
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
    let mut continued: Option<OpenString> = None;
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
                Scan::Token(length, kind) => (length, kind),
                Scan::Join => {
                    joined = true;
                    break;
                }
                Scan::Open { quote, triple } => {
                    let place = (number, start);
                    continued =
                        Some(OpenString { quote, triple, start: start_of_line + start, place });
                    break;
                }
                Scan::Nothing => {
                    // An error token, like each white space before it.
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
    // The end of the text inside a string, brackets or a joined line raises.
    (continued.is_none() && depth == 0 && !joined).then_some(())
}

/// The column after the white space at the start of a line, and its length.
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

/// The token at a position of a line.
enum Scan {
    Token(usize, Token),
    /// A backslash before the end of the line.
    Join,
    /// A string that does not end in this line.
    Open {
        quote: u8,
        triple: bool,
    },
    Nothing,
}

/// The token at `start`. `unclosed` records for either quote that an earlier one in this line was
/// not closed, so later ones are not either.
fn token(line: &str, start: usize, unclosed: &mut [bool; 2]) -> Scan {
    let bytes = line.as_bytes();
    let rest = &bytes[start..];
    match rest[0] {
        b'\n' => return Scan::Token(1, Token::Newline),
        b'\r' if rest.get(1) == Some(&b'\n') => return Scan::Token(2, Token::Newline),
        b'#' => {
            let length = rest.iter().position(|b| matches!(b, b'\r' | b'\n'));
            return Scan::Token(length.unwrap_or(rest.len()), Token::Comment);
        }
        b'\\' => {
            let join = rest.starts_with(b"\\\n") || rest.starts_with(b"\\\r\n");
            return if join { Scan::Join } else { Scan::Nothing };
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
                return Scan::Token(end - start, Token::String);
            }
            *unclosed = true;
        }
        if triple || escaped_line_end(&bytes[inside..]) {
            return Scan::Open { quote, triple };
        }
        if prefix == 0 {
            return Scan::Nothing;
        }
        // The prefix alone is a name.
        return Scan::Token(prefix, Token::Other);
    }
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let length = line[start..].find(|c| !word(c)).unwrap_or(rest.len());
    match rest[0] {
        _ if length > 0 => Scan::Token(length, Token::Other),
        b'!' if rest.get(1) != Some(&b'=') => Scan::Nothing,
        b'$' | b'?' | b'`' | 0..=b' ' | 0x7f.. => Scan::Nothing,
        _ => Scan::Token(1, Token::Other),
    }
}

/// The length of a string's prefix, if a quote follows it.
fn string_prefix(rest: &[u8]) -> usize {
    let length = rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).take(3).count();
    let letters = [0, 1].map(|i| rest.get(i).map_or(0, u8::to_ascii_lowercase));
    match (length, letters) {
        (1, [b'b' | b'r' | b'u' | b'f', _]) => 1,
        (2, [b'b' | b'f', b'r'] | [b'r', b'b' | b'f']) => 2,
        _ => 0,
    }
}

/// True if an unclosed string of one line ends in a backslash that escapes the line feed.
fn escaped_line_end(inside: &[u8]) -> bool {
    let Some(line) = inside.strip_suffix(b"\n") else { return false };
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    line.iter().rev().take_while(|&&byte| byte == b'\\').count() % 2 == 1
}

/// The end of a string in this line, whose content begins or continues at `at`.
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
