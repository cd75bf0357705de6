//! The tokenizer behind `lizard`: the token stream of lizard 1.24.3, reduced to the needs of its
//! metrics.
//!
//! It follows lizard's regular expression, which is shared between languages and is not a Python
//! tokenizer, on valid and broken text alike. So `*=` is two tokens and `//=` one, `1.5` is three,
//! a string prefix is a separate token, `/* */` is a comment-like token, and an unmatched quote is
//! a token. f-strings are split into their literal parts and the tokens of their interpolations.
//! Known difference: the digit separator `'` of C++ is recognised only between ASCII digits.
//!
//! White space is a token only at the start of a line, where it can be indentation. Time is linear
//! in the text: a quote without a partner is searched for once.

use super::scan::{
    count_newlines, find_newline, find_pair, generic_end, interpolation_end, separated, single_end,
    triple_end, triple_end_last, word_end,
};

/// The meaning of a token to the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Newline,
    /// White space without line feeds before everything else in a line.
    Space,
    /// `#` to the end of the line.
    Comment,
    Def,
    Class,
    Case,
    Match,
    Return,
    Lambda,
    /// `if elif for while except finally and or`.
    Condition,
    OpenParen,
    CloseParen,
    OpenBracket,
    CloseBracket,
    OpenBrace,
    CloseBrace,
    Colon,
    Comma,
    Dot,
    /// `:=`.
    Walrus,
    /// `=` and the augmented assignments that are one token.
    Assign,
    /// `+ - * / // %`.
    Arithmetic,
    /// A triple-quoted string, or a literal part of one.
    Triple,
    Other,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    /// Inside an interpolation of an f-string.
    pub(crate) interpolated: bool,
    /// Line feeds inside the token; for [`Kind::Space`] its width, a tab being 8.
    pub(crate) size: u32,
}

/// Interpolations nested deeper than this stay one string token. Quotes run out long
/// before in valid Python.
const MAX_FSTRING_DEPTH: usize = 32;

/// A range of text that is being tokenized.
enum Frame {
    Code(Code),
    FString(FString),
}

struct Code {
    at: usize,
    end: usize,
    interpolated: bool,
    missing: AbsentMarks,
}

/// Closing marks known to be absent from the rest of the range.
#[derive(Default)]
struct AbsentMarks {
    double: bool,
    single: bool,
    triple_double: bool,
    triple_single: bool,
    block_comment: bool,
}

struct FString {
    /// The whole string token, used if nothing was split off.
    whole: Token,
    at: usize,
    end: usize,
    literal: Option<u32>,
    before: usize,
}

struct TokenStream {
    tokens: Vec<Token>,
    /// The number of tokens so far, including omitted white space.
    met: usize,
    /// Only white space so far in this line.
    fresh: bool,
}

impl TokenStream {
    fn push(&mut self, token: Token) {
        self.met += 1;
        match token.kind {
            Kind::Space if !self.fresh => return,
            Kind::Space => {}
            kind => self.fresh = kind == Kind::Newline,
        }
        self.tokens.push(token);
    }
}

/// The tokens of `text`.
pub(crate) fn tokenize(text: &str) -> Vec<Token> {
    let mut tokens =
        TokenStream { tokens: Vec::with_capacity(text.len() / 4), met: 0, fresh: true };
    let mut frames = vec![Frame::Code(Code::new(0, text.len(), false))];
    while let Some(frame) = frames.last_mut() {
        let inner = match frame {
            Frame::Code(code) => code.run(text, &mut tokens),
            Frame::FString(string) => string.run(text, &mut tokens),
        };
        match inner {
            Some(Frame::FString(string)) if frames.len() >= 2 * MAX_FSTRING_DEPTH => {
                tokens.push(string.whole);
            }
            Some(inner) => frames.push(inner),
            None => {
                frames.pop();
            }
        }
    }
    tokens.tokens
}

impl Code {
    fn new(at: usize, end: usize, interpolated: bool) -> Self {
        Self { at, end, interpolated, missing: AbsentMarks::default() }
    }

    /// Pushes tokens until the range ends (`None`) or an f-string must be split.
    fn run(&mut self, text: &str, tokens: &mut TokenStream) -> Option<Frame> {
        let bytes = &text.as_bytes()[..self.end];
        while let Some(&first) = bytes.get(self.at) {
            let start = self.at;
            let (kind, end) = match first {
                b'\n' => (Kind::Newline, start + 1),
                b'#' => (Kind::Comment, find_newline(bytes, start)),
                b'"' | b'\'' => self.string(bytes, start),
                b'_' | b'a'..=b'z' | b'A'..=b'Z' => {
                    let end = word_end(text, start, self.end);
                    let word = &bytes[start..end];
                    if end - start <= 2
                        && is_fstring_prefix(word)
                        && matches!(bytes.get(end), Some(b'"' | b'\''))
                    {
                        self.push(tokens, Kind::Other, 0);
                        return Some(self.fstring(bytes, end, tokens.met));
                    }
                    (word_kind(word), end)
                }
                b'0'..=b'9' => (Kind::Other, self.number(text, start)),
                b' ' | b'\t' | b'\r' | 0x0b | 0x0c | 0x1c..=0x1f => {
                    self.space(text, start, tokens);
                    continue;
                }
                0x80.. => {
                    let c = text[start..self.end].chars().next()?;
                    if c.is_whitespace() {
                        self.space(text, start, tokens);
                        continue;
                    }
                    if c.is_alphanumeric() {
                        (Kind::Other, word_end(text, start, self.end))
                    } else {
                        (Kind::Other, start + c.len_utf8())
                    }
                }
                _ => self.symbol(text, bytes, start),
            };
            let lines = match kind {
                Kind::Triple | Kind::Other if first != b'_' && !first.is_ascii_alphanumeric() => {
                    count_newlines(&bytes[start..end])
                }
                _ => 0,
            };
            self.push(tokens, kind, lines);
            self.at = end;
        }
        None
    }

    fn push(&self, tokens: &mut TokenStream, kind: Kind, size: u32) {
        tokens.push(Token { kind, interpolated: self.interpolated, size });
    }

    fn space(&mut self, text: &str, start: usize, tokens: &mut TokenStream) {
        let bytes = &text.as_bytes()[..self.end];
        let mut width: u32 = 0;
        let mut at = start;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b' ' | b'\r' | 0x0b | 0x0c | 0x1c..=0x1f => (width, at) = (width + 1, at + 1),
                b'\t' => (width, at) = (width + 8, at + 1),
                0x80.. => match text[at..self.end].chars().next() {
                    Some(c) if c.is_whitespace() => (width, at) = (width + 1, at + c.len_utf8()),
                    _ => break,
                },
                _ => break,
            }
        }
        self.at = at;
        self.push(tokens, Kind::Space, width);
    }

    /// The frame that splits the f-string whose quote is at `start`.
    fn fstring(&mut self, bytes: &[u8], start: usize, before: usize) -> Frame {
        let (kind, end) = self.string(bytes, start);
        self.at = end;
        let quote = if kind == Kind::Triple { 3 } else { 1 };
        Frame::FString(FString {
            whole: Token {
                kind,
                interpolated: self.interpolated,
                size: count_newlines(&bytes[start..end]),
            },
            at: start + quote,
            end: end.saturating_sub(quote),
            literal: None,
            before,
        })
    }

    fn string(&mut self, bytes: &[u8], start: usize) -> (Kind, usize) {
        let quote = bytes[start];
        let triple = bytes.len() >= start + 3 && bytes[start..start + 3] == [quote; 3];
        let (missing, missing_triple) = if quote == b'"' {
            (&mut self.missing.double, &mut self.missing.triple_double)
        } else {
            (&mut self.missing.single, &mut self.missing.triple_single)
        };
        if triple && !*missing_triple {
            let close = triple_end(bytes, start + 3, quote).or_else(|| {
                *missing_triple = true;
                triple_end_last(bytes, start + 3, quote)
            });
            if let Some(end) = close {
                return (Kind::Triple, end);
            }
        }
        if !*missing {
            if let Some(end) = single_end(bytes, start + 1, quote) {
                return (Kind::Other, end);
            }
            *missing = true;
        }
        (Kind::Other, start + 1)
    }

    fn number(&self, text: &str, start: usize) -> usize {
        let bytes = &text.as_bytes()[..self.end];
        separated(bytes, start, u8::is_ascii_digit)
            .or_else(|| match bytes.get(start..start + 2) {
                Some(b"0x") => separated(bytes, start + 2, u8::is_ascii_hexdigit),
                Some(b"0b") => separated(bytes, start + 2, |b| matches!(b, b'0' | b'1')),
                _ => None,
            })
            .unwrap_or_else(|| word_end(text, start, self.end))
    }

    fn symbol(&mut self, text: &str, bytes: &[u8], start: usize) -> (Kind, usize) {
        let second = bytes.get(start + 1).copied().unwrap_or(0);
        let third = bytes.get(start + 2).copied().unwrap_or(0);
        let (kind, length) = match (bytes[start], second, third) {
            (b'/', b'*', _) if !self.missing.block_comment => match find_pair(bytes, start + 2) {
                Some(end) => (Kind::Other, end - start),
                None => {
                    self.missing.block_comment = true;
                    (Kind::Arithmetic, 1)
                }
            },
            (b'/', b'/', b'=') => (Kind::Assign, 3),
            (b'/', b'/', _) => (Kind::Arithmetic, 2),
            (b':', b'=', _) => (Kind::Walrus, 2),
            (b':', b':', _) | (b'*', b'*', _) => (Kind::Other, 2),
            (b'<', b'<', b'=') | (b'>', b'>', b'=') => (Kind::Assign, 3),
            (b'=', b'=', b'=') | (b'!', b'=', b'=') | (b'.', b'.', b'.') => (Kind::Other, 3),
            (b'<', _, _) if let Some(end) = generic_end(&text[..self.end], start) => {
                (Kind::Other, end - start)
            }
            (b'|', b'|', _)
            | (b'&', b'&', _)
            | (b'=' | b'!' | b'<' | b'>', b'=', _)
            | (b'-' | b'=', b'>', _)
            | (b'+', b'+', _)
            | (b'-', b'-', _)
            | (b'\\', b'\n', _) => (Kind::Other, 2),
            (b'+' | b'-' | b'^' | b'&' | b'|', b'=', _) => (Kind::Assign, 2),
            (b'+' | b'-' | b'*' | b'/' | b'%', _, _) => (Kind::Arithmetic, 1),
            (b'=', _, _) => (Kind::Assign, 1),
            (b'(', _, _) => (Kind::OpenParen, 1),
            (b')', _, _) => (Kind::CloseParen, 1),
            (b'[', _, _) => (Kind::OpenBracket, 1),
            (b']', _, _) => (Kind::CloseBracket, 1),
            (b'{', _, _) => (Kind::OpenBrace, 1),
            (b'}', _, _) => (Kind::CloseBrace, 1),
            (b':', _, _) => (Kind::Colon, 1),
            (b',', _, _) => (Kind::Comma, 1),
            (b'.', _, _) => (Kind::Dot, 1),
            _ => (Kind::Other, 1),
        };
        (kind, start + length)
    }
}

impl FString {
    /// Pushes literal parts until an interpolation must be tokenized, or the string ends.
    fn run(&mut self, text: &str, tokens: &mut TokenStream) -> Option<Frame> {
        let bytes = text.as_bytes().get(..self.end).unwrap_or_default();
        while let Some(&byte) = bytes.get(self.at) {
            let doubled = bytes.get(self.at + 1) == Some(&byte);
            match byte {
                b'{' | b'}' if doubled => {
                    self.literal.get_or_insert(0);
                    self.at += 2;
                }
                b'{' => {
                    let open = self.at;
                    let close = interpolation_end(bytes, open);
                    self.push_literal(tokens);
                    self.at = close;
                    // An interpolation without its brace loses its last character.
                    let mut end = close.saturating_sub(1).max(open + 1);
                    while !text.is_char_boundary(end) {
                        end -= 1;
                    }
                    return Some(Frame::Code(Code::new(open + 1, end, true)));
                }
                _ => {
                    *self.literal.get_or_insert(0) += u32::from(byte == b'\n');
                    self.at += 1;
                }
            }
        }
        if tokens.met == self.before {
            tokens.push(self.whole);
        } else {
            self.push_literal(tokens);
        }
        None
    }

    fn push_literal(&mut self, tokens: &mut TokenStream) {
        if let Some(size) = self.literal.take() {
            tokens.push(Token { size, ..self.whole });
        }
    }
}

fn is_fstring_prefix(word: &[u8]) -> bool {
    match word {
        [f] => f.eq_ignore_ascii_case(&b'f'),
        [a, b] => {
            let pair = [a.to_ascii_lowercase(), b.to_ascii_lowercase()];
            matches!(&pair, b"rf" | b"fr" | b"bf" | b"fb")
        }
        _ => false,
    }
}

fn word_kind(word: &[u8]) -> Kind {
    match word {
        b"if" | b"elif" | b"for" | b"while" | b"except" | b"finally" | b"and" | b"or" => {
            Kind::Condition
        }
        b"def" => Kind::Def,
        b"class" => Kind::Class,
        b"case" => Kind::Case,
        b"match" => Kind::Match,
        b"return" => Kind::Return,
        b"lambda" => Kind::Lambda,
        _ => Kind::Other,
    }
}
