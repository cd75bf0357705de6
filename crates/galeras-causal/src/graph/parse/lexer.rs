//! Splits DOT and dagitty text into tokens with their byte positions.

use std::fmt;

use super::super::error::GraphError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrow {
    Right,
    Left,
    Both,
    Undirected,
}

/// A name, a number, or a quoted or HTML string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) text: String,
    /// Unquoted, so that it can be a keyword.
    bare: bool,
    /// An unquoted negative number, which cannot name a node.
    pub(super) negative: bool,
}

impl Name {
    /// Compares case-insensitively with a keyword.
    pub(super) fn is_keyword(&self, word: &str) -> bool {
        self.bare && self.text.eq_ignore_ascii_case(word)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Name(Name),
    Arrow(Arrow),
    OpenBrace,
    CloseBrace,
    OpenBracket,
    CloseBracket,
    Semicolon,
    Comma,
    Equals,
    Colon,
    End,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Token::Name(name) => {
                // A name can be as long as the text.
                let shown: String = name.text.chars().take(40).collect();
                let more = if shown.len() < name.text.len() { "…" } else { "" };
                return write!(f, "`{}{more}`", shown.escape_debug());
            }
            Token::Arrow(Arrow::Right) => "`->`",
            Token::Arrow(Arrow::Left) => "`<-`",
            Token::Arrow(Arrow::Both) => "`<->`",
            Token::Arrow(Arrow::Undirected) => "an edge without a direction",
            Token::OpenBrace => "`{`",
            Token::CloseBrace => "`}`",
            Token::OpenBracket => "`[`",
            Token::CloseBracket => "`]`",
            Token::Semicolon => "`;`",
            Token::Comma => "`,`",
            Token::Equals => "`=`",
            Token::Colon => "`:`",
            Token::End => "the end of the text",
        };
        f.write_str(text)
    }
}

/// The tokens of a text, with one token of lookahead.
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    peeked: Option<(Token, usize)>,
    /// The last token was `=`: only then can an HTML string follow.
    after_equals: bool,
}

fn in_name(c: char) -> bool {
    c == '_'
        || c == '.'
        || c.is_alphanumeric()
        || (!c.is_ascii() && !c.is_whitespace() && !c.is_control())
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, at: 0, peeked: None, after_equals: false }
    }

    pub(super) fn next(&mut self) -> Result<(Token, usize), GraphError> {
        match self.peeked.take() {
            Some(token) => Ok(token),
            None => self.read(),
        }
    }

    fn peek(&mut self) -> Result<&Token, GraphError> {
        let token = match self.peeked.take() {
            Some(token) => token,
            None => self.read()?,
        };
        Ok(&self.peeked.insert(token).0)
    }

    pub(super) fn peek_is(&mut self, wanted: &Token) -> Result<bool, GraphError> {
        Ok(self.peek()? == wanted)
    }

    /// True if the next token uses the operand before it.
    pub(super) fn peek_starts_use(&mut self) -> Result<bool, GraphError> {
        Ok(matches!(self.peek()?, Token::Arrow(_) | Token::OpenBracket))
    }

    /// The value of attribute or keyword `what`.
    pub(super) fn value(&mut self, what: &str) -> Result<String, GraphError> {
        match self.next()? {
            (Token::Name(name), _) => Ok(name.text),
            (other, offset) => Err(GraphError::new(
                format!("expected a value after {what}, found {other}"),
                offset,
            )),
        }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// True if only blanks precede this position in its line.
    fn at_line_start(&self) -> bool {
        let before = self.text.get(..self.at).unwrap_or_default();
        let before = before.trim_end_matches([' ', '\t', '\u{feff}']);
        before.is_empty() || before.ends_with(['\n', '\r'])
    }

    /// Skips blanks and comments (`// ...`, `/* ... */`, and lines that begin with `#`).
    fn skip(&mut self) -> Result<(), GraphError> {
        loop {
            let rest = self.rest();
            let blank = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
            self.at += rest.len() - blank.len();
            if blank.starts_with("//") || (blank.starts_with('#') && self.at_line_start()) {
                self.at += blank.find(['\n', '\r']).unwrap_or(blank.len());
            } else if let Some(inside) = blank.strip_prefix("/*") {
                let Some(end) = inside.find("*/") else {
                    return Err(GraphError::new("this comment is not closed", self.at)
                        .help("a comment ends with `*/`"));
                };
                self.at += end + 4;
            } else {
                return Ok(());
            }
        }
    }

    fn read(&mut self) -> Result<(Token, usize), GraphError> {
        self.skip()?;
        let offset = self.at;
        let html = std::mem::replace(&mut self.after_equals, false);
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok((Token::End, offset)) };
        // Longer arrows come first.
        for (text, arrow) in [
            ("<->", Arrow::Both),
            ("<-@", Arrow::Undirected),
            ("<-", Arrow::Left),
            ("->", Arrow::Right),
            ("--", Arrow::Undirected),
            ("@-@", Arrow::Undirected),
            ("@->", Arrow::Undirected),
        ] {
            if !html && rest.starts_with(text) {
                self.at += text.len();
                return Ok((Token::Arrow(arrow), offset));
            }
        }
        let single = match first {
            '{' => Some(Token::OpenBrace),
            '}' => Some(Token::CloseBrace),
            '[' => Some(Token::OpenBracket),
            ']' => Some(Token::CloseBracket),
            ';' => Some(Token::Semicolon),
            ',' => Some(Token::Comma),
            ':' => Some(Token::Colon),
            '=' => Some(Token::Equals),
            _ => None,
        };
        if let Some(token) = single {
            self.at += 1;
            self.after_equals = token == Token::Equals;
            return Ok((token, offset));
        }
        match first {
            '"' => self.quoted(offset),
            '<' if html => self.html(offset),
            '-' if rest[1..].starts_with(|c: char| c.is_ascii_digit() || c == '.') => {
                Ok(self.bare(offset, 1))
            }
            c if in_name(c) => Ok(self.bare(offset, 0)),
            c => {
                let error =
                    GraphError::new(format!("unexpected character `{}`", c.escape_debug()), offset);
                Err(error.help(
                    "a name with other characters than letters, digits, `_` and `.` must stand in \
                     double quotes",
                ))
            }
        }
    }

    fn bare(&mut self, offset: usize, sign: usize) -> (Token, usize) {
        let rest = self.rest();
        let length = rest[sign..].find(|c: char| !in_name(c)).unwrap_or(rest.len() - sign) + sign;
        self.at += length;
        let text = rest[..length].to_owned();
        (Token::Name(Name { text, bare: true, negative: sign > 0 }), offset)
    }

    fn quoted(&mut self, offset: usize) -> Result<(Token, usize), GraphError> {
        let mut text = String::new();
        let mut escaped = false;
        for (place, c) in self.rest().char_indices().skip(1) {
            match c {
                '\0' => {
                    return Err(GraphError::new("a name holds a NUL character", offset + place));
                }
                // DOT has `\"` and the line continuation; every other backslash is a character.
                '"' if escaped => {
                    text.pop();
                    text.push('"');
                    escaped = false;
                }
                '"' => {
                    self.at = offset + place + 1;
                    return Ok((Token::Name(Name { text, bare: false, negative: false }), offset));
                }
                '\n' if escaped => {
                    text.pop();
                    escaped = false;
                }
                c => {
                    text.push(c);
                    escaped = c == '\\' && !escaped;
                }
            }
        }
        Err(GraphError::new("this quote is not closed", offset).help("add a `\"`"))
    }

    fn html(&mut self, offset: usize) -> Result<(Token, usize), GraphError> {
        let mut depth = 0usize;
        for (place, c) in self.rest().char_indices() {
            match c {
                '<' => depth += 1,
                '>' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                let text = self.rest()[..=place].to_owned();
                self.at += place + 1;
                return Ok((Token::Name(Name { text, bare: false, negative: false }), offset));
            }
        }
        Err(GraphError::new("this `<` is not closed", offset))
    }
}
