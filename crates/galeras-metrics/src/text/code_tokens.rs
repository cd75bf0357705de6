//! Tokens of Python text that may be cut anywhere, for `continuation`.
//!
//! Beginnings and ends of methods are no programs, and a parser recovers from that in ways that
//! depend on the rest of the text. These tokens depend only on the text before them, and on the end
//! of their line.

use std::borrow::Cow;
use std::iter;

use galeras_python::is_space;

/// A token.
#[derive(Clone, Debug)]
pub(super) struct CodeToken<'a> {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Equal for tokens that mean the same: without the quotes of a string, and without white space
    /// in strings and comments.
    pub(super) key: Cow<'a, str>,
    pub(super) kind: TokenKind,
    /// A comment, a docstring, an annotation, or part of an import before all other code: a method is
    /// the same without it.
    pub(super) is_free: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    Word,
    Punctuation,
    /// The colon after the signature of a function.
    SignatureEnd,
    Comment,
    String {
        /// The bytes of the text between its quotes.
        content: (usize, usize),
        quote: &'static str,
        is_closed: bool,
        /// It is a statement, as a docstring is.
        is_statement: bool,
    },
}

impl TokenKind {
    pub(super) fn is_docstring(self) -> bool {
        matches!(self, Self::String { is_statement: true, .. })
    }
}

impl CodeToken<'_> {
    /// The end of the part of `other` that this token, which is unfinished, begins.
    pub(super) fn end_in(&self, other: &CodeToken<'_>, (own, text): (&str, &str)) -> Option<usize> {
        let is_beginning = other.key.starts_with(&*self.key);
        match (self.kind, other.kind) {
            (TokenKind::String { is_closed: true, .. }, _) => {
                (self.key == other.key).then_some(other.end)
            }
            (
                TokenKind::String { content: (start, end), .. },
                TokenKind::String { content: (from, to), .. },
            ) => is_beginning.then(|| from + covered(&own[start..end], &text[from..to])),
            (TokenKind::Comment, TokenKind::Comment) => is_beginning.then(|| {
                let from = other.start + 1;
                from + covered(&own[self.start + 1..self.end], &text[from..other.end])
            }),
            (TokenKind::String { .. } | TokenKind::Comment, _) => None,
            _ => {
                let part = &own[self.start..self.end];
                text[other.start..other.end].starts_with(part).then(|| other.start + part.len())
            }
        }
    }
}

/// The bytes of a comment or of a string's content that its key has, with their places.
fn key_bytes(content: &str) -> impl Iterator<Item = (usize, u8)> {
    let bytes = content.as_bytes();
    let escapes = move |at: usize| matches!(bytes.get(at + 1), Some(b'"' | b'\''));
    let left_out =
        move |at: usize, byte: u8| byte.is_ascii_whitespace() || byte == b'\\' && escapes(at);
    bytes.iter().copied().enumerate().filter(move |(at, byte)| !left_out(*at, *byte))
}

/// The length of the beginning of a content that has the key of `own`, with as much white space
/// behind it as `own` ends with.
fn covered(own: &str, content: &str) -> usize {
    let last = key_bytes(own).count().checked_sub(1).and_then(|at| key_bytes(content).nth(at));
    let end = last.map_or(0, |(at, _)| at + 1);
    let spaces =
        |bytes: &mut dyn Iterator<Item = u8>| bytes.take_while(u8::is_ascii_whitespace).count();
    end + spaces(&mut own.bytes().rev()).min(spaces(&mut content[end..].bytes()))
}

/// `mark` and the content of a token. Only ASCII is left out, so it stays text.
fn key(mark: char, content: &str) -> Cow<'static, str> {
    let bytes = iter::once(mark as u8).chain(key_bytes(content).map(|(_, byte)| byte));
    let bytes: Vec<u8> = bytes.collect();
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

/// Where the next token is in its statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Statement {
    Start,
    /// After a name, or names with dots between them, which may be annotated.
    Name,
    /// After a dot between such names.
    Dot,
    Inside,
}

/// Where the next token is in the signature of a function.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Signature {
    No,
    /// After `def`.
    Name,
    Parameter,
    Default,
    /// After the parameters.
    Return,
}

/// The tokens of a text, in linear time.
pub(super) struct CodeTokens<'a> {
    text: &'a str,
    at: usize,
    /// The open brackets.
    depth: usize,
    statement: Statement,
    signature: Signature,
    in_annotation: bool,
    in_import: bool,
    /// Only free tokens came before.
    is_first: bool,
}

impl<'a> CodeTokens<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
            statement: Statement::Start,
            signature: Signature::No,
            in_annotation: false,
            in_import: false,
            is_first: true,
        }
    }

    fn end_statement(&mut self) {
        self.statement = Statement::Start;
        self.signature = Signature::No;
        self.in_annotation = false;
        self.in_import = false;
    }

    /// Moves to the next token and returns its first character.
    fn skip_white_space(&mut self) -> Option<char> {
        loop {
            let rest = &self.text[self.at..];
            let c = rest.chars().next()?;
            let joined = ["\\\n", "\\\r\n"].into_iter().find(|end| rest.starts_with(end));
            if let Some(end) = joined {
                self.at += end.len();
                continue;
            }
            if c == '\n' && self.depth == 0 {
                self.end_statement();
            } else if !is_space(c) {
                return Some(c);
            }
            self.at += c.len_utf8();
        }
    }

    fn comment(&self) -> CodeToken<'a> {
        let rest = &self.text[self.at..];
        let line = rest.split('\n').next().unwrap_or(rest);
        CodeToken {
            start: self.at,
            end: self.at + line.len(),
            key: key('#', &line[1..]),
            kind: TokenKind::Comment,
            is_free: true,
        }
    }

    /// The string that begins here, if one does.
    fn string(&self) -> Option<CodeToken<'a>> {
        let rest = &self.text[self.at..];
        let letters = rest.bytes().take_while(|byte| b"rbfutRBFUT".contains(byte)).count();
        let quotes = ["\"\"\"", "'''", "\"", "'"];
        let quote = quotes.into_iter().find(|quote| rest[letters..].starts_with(quote))?;
        if letters > 2 {
            return None;
        }
        let from = self.at + letters + quote.len();
        let (to, is_closed) = content_end(self.text, from, quote);
        let end = if is_closed { to + quote.len() } else { to };
        let behind = self.text[end..].trim_start_matches([' ', '\t']);
        let is_alone = is_line_end(behind) || behind.is_empty() || behind.starts_with('#');
        let is_statement = self.depth == 0 && self.statement == Statement::Start && is_alone;
        Some(CodeToken {
            start: self.at,
            end,
            key: key('\'', &self.text[from..to]),
            kind: TokenKind::String { content: (from, to), quote, is_closed, is_statement },
            is_free: is_statement || self.in_annotation || self.in_import,
        })
    }

    fn word(&mut self) -> CodeToken<'a> {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        let word = &rest[..end];
        let is_start = self.statement == Statement::Start;
        if self.depth == 0 && word == "def" {
            self.signature = Signature::Name;
        }
        if self.depth == 0 && is_start && self.is_first && matches!(word, "import" | "from") {
            self.in_import = true;
        }
        // A colon after these words is no annotation's.
        let may_be_annotated = is_start && !matches!(word, "else" | "try" | "finally");
        self.statement = match may_be_annotated || self.statement == Statement::Dot {
            true => Statement::Name,
            false => Statement::Inside,
        };
        CodeToken {
            start: self.at,
            end: self.at + end,
            key: Cow::Borrowed(word),
            kind: TokenKind::Word,
            is_free: self.in_annotation || self.in_import,
        }
    }

    fn punctuation(&mut self, c: char) -> CodeToken<'a> {
        let end = self.at + c.len_utf8();
        let before = self.statement;
        let is_named = before == Statement::Name && self.depth == 0;
        self.statement = match c {
            '.' if before == Statement::Name => Statement::Dot,
            _ => Statement::Inside,
        };
        let mut kind = TokenKind::Punctuation;
        let in_parameters = matches!(self.signature, Signature::Parameter | Signature::Default);
        match c {
            '(' | '[' | '{' => {
                self.depth += 1;
                if c == '(' && self.depth == 1 && self.signature == Signature::Name {
                    self.signature = Signature::Parameter;
                }
            }
            ')' | ']' | '}' => {
                if in_parameters && self.depth == 1 {
                    self.signature = Signature::Return;
                    self.in_annotation = false;
                }
                self.depth = self.depth.saturating_sub(1);
            }
            ':' if self.signature == Signature::Parameter && self.depth == 1 => {
                self.in_annotation = true;
            }
            '=' if in_parameters && self.depth == 1 => {
                self.signature = Signature::Default;
                self.in_annotation = false;
            }
            ',' if in_parameters && self.depth == 1 => {
                self.signature = Signature::Parameter;
                self.in_annotation = false;
            }
            '-' if self.signature == Signature::Return && self.text[end..].starts_with('>') => {
                self.in_annotation = true;
            }
            ':' if self.signature == Signature::Return && self.depth == 0 => {
                self.end_statement();
                kind = TokenKind::SignatureEnd;
            }
            ':' if self.signature == Signature::No && is_named => self.in_annotation = true,
            '=' if self.depth == 0 => self.in_annotation = false,
            ';' if self.depth == 0 => self.end_statement(),
            _ => {}
        }
        CodeToken {
            start: self.at,
            end,
            key: Cow::Borrowed(&self.text[self.at..end]),
            kind,
            is_free: self.in_annotation || self.in_import,
        }
    }
}

impl<'a> Iterator for CodeTokens<'a> {
    type Item = CodeToken<'a>;

    fn next(&mut self) -> Option<CodeToken<'a>> {
        let first = self.skip_white_space()?;
        let token = if first == '#' {
            self.comment()
        } else if let Some(string) = self.string() {
            self.statement = Statement::Inside;
            string
        } else if is_word(first) {
            self.word()
        } else {
            self.punctuation(first)
        };
        self.is_first &= token.is_free;
        self.at = token.end;
        Some(token)
    }
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn is_line_end(text: &str) -> bool {
    text.starts_with('\n') || text.starts_with("\r\n")
}

/// The end of the content of a string, and whether a quote follows. One line's end also ends a string
/// of one line.
pub(super) fn content_end(text: &str, from: usize, quote: &str) -> (usize, bool) {
    let bytes = text.as_bytes();
    let mut at = from;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'\n' if quote.len() == 1 => return (at, false),
            _ if bytes[at..].starts_with(quote.as_bytes()) => return (at, true),
            _ => at += 1,
        }
    }
    (text.len(), false)
}
