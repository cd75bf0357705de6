//! Tokenizes plain code as tree-sitter's lexer and its Python scanner do; `None` where the text is
//! not plain or the two could differ.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    End,
    /// The end of a line outside brackets.
    Newline,
    Name,
    /// `match`, `type`: names, and the first words of statements.
    Soft,
    /// `print`: a name, and a statement of Python 2.
    Print,
    /// `exec`: as `print`.
    Exec,
    Number,
    Text,
    /// `True`, `False`, `None`.
    Constant,
    Ellipsis,
    And,
    As,
    Assert,
    Async,
    Await,
    Class,
    Def,
    Del,
    Elif,
    Else,
    Except,
    Finally,
    For,
    From,
    Global,
    If,
    Import,
    In,
    Is,
    Lambda,
    Not,
    Or,
    Pass,
    Raise,
    Return,
    Try,
    While,
    With,
    Yield,
    /// A binary operator: `/`, `//`, `%`, `@`, `|`, `&`, `^`, `<<`, `>>`.
    Binary,
    /// `+`, `-`.
    Sign,
    Tilde,
    At,
    Star,
    Stars,
    Slash,
    Compare,
    Assign,
    Augmented,
    Arrow,
    Comma,
    Colon,
    Semicolon,
    Dot,
    Open,
    Close,
    OpenSquare,
    CloseSquare,
    OpenBrace,
    CloseBrace,
}

pub(super) struct Lexer<'a> {
    pub(super) text: &'a [u8],
    pub(super) at: usize,
    depth: usize,
    /// The indent of the block. A line within brackets left of it is not plain: the scanner may
    /// take it for the end of the block.
    pub(super) indent: usize,
    /// Nodes of the tree so far, or slightly more.
    pub(super) nodes: usize,
    /// Levels of the last token's node; those of a string vary.
    pub(super) height: u32,
    /// Nodes and levels equal those of the tree.
    pub(super) exact: bool,
    /// Places of the tree's identifiers.
    pub(super) identifiers: Vec<(u32, u32)>,
    pub(super) end: usize,
    /// Counts the nodes of a text that is an expression.
    expression: fn(&[u8]) -> Option<usize>,
}

impl<'a> Lexer<'a> {
    /// Reads `text`; `expression` counts the nodes of a text that is a plain expression.
    pub(super) fn new(text: &'a [u8], expression: fn(&[u8]) -> Option<usize>) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
            indent: 0,
            nodes: 0,
            height: 1,
            exact: true,
            identifiers: Vec::new(),
            end: 0,
            expression,
        }
    }

    fn byte(&self, at: usize) -> u8 {
        // No text contains this byte: `read_plain` rejects it.
        self.text.get(at).copied().unwrap_or(0)
    }

    pub(super) fn token(&mut self) -> Option<(Token, usize)> {
        loop {
            match self.byte(self.at) {
                b' ' | b'\t' => self.at += 1,
                b'\n' if self.depth == 0 => {
                    self.at += 1;
                    return Some((Token::Newline, self.at - 1));
                }
                b'\n' => {
                    self.at += 1;
                    self.continued()?;
                }
                b'#' => self.comment()?,
                b'\\' if self.byte(self.at + 1) == b'\n' => {
                    self.at += 2;
                    // Without a string before it there is no node for it.
                    self.nodes += 1;
                    self.exact = false;
                    let rest = self.text.get(self.at..)?;
                    let first = rest.iter().find(|byte| !matches!(byte, b' ' | b'\t'))?;
                    if matches!(first, b'\n' | b'#' | b'\\') {
                        return None;
                    }
                }
                0 if self.at == self.text.len() => {
                    return (self.depth == 0).then_some((Token::End, self.at));
                }
                _ => break,
            }
        }
        let start = self.at;
        self.height = 1;
        let token = self.code(start)?;
        self.nodes += 1;
        self.end = self.at;
        if matches!(token, Token::Name | Token::Soft | Token::Print | Token::Exec) {
            self.identifiers.push((start as u32, self.at as u32));
        }
        Some((token, start))
    }

    fn continued(&self) -> Option<()> {
        let (width, first) = indent(self.text, self.at);
        (self.byte(first) == b'\n' || width >= self.indent).then_some(())
    }

    pub(super) fn comment(&mut self) -> Option<()> {
        let rest = self.text.get(self.at..)?;
        let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        if rest.get(..length)?.contains(&b'\r') {
            return None;
        }
        self.at += length;
        self.end = self.at;
        self.nodes += 1;
        Some(())
    }

    fn code(&mut self, start: usize) -> Option<Token> {
        let first = self.byte(start);
        match first {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.word(start),
            b'0'..=b'9' => self.number(start),
            b'.' if self.byte(start + 1).is_ascii_digit() => self.number(start),
            b'"' | b'\'' => self.string(start, false, false),
            _ => {
                let (token, length) = self.sign(start, first)?;
                self.at = start + length;
                match token {
                    Token::Open | Token::OpenSquare | Token::OpenBrace => self.depth += 1,
                    Token::Close | Token::CloseSquare | Token::CloseBrace => {
                        self.depth = self.depth.checked_sub(1)?;
                    }
                    _ => {}
                }
                Some(token)
            }
        }
    }

    fn sign(&self, start: usize, first: u8) -> Option<(Token, usize)> {
        let (second, third) = (self.byte(start + 1), self.byte(start + 2));
        let assigns = |token, length| match self.byte(start + length) {
            b'=' => (Token::Augmented, length + 1),
            _ => (token, length),
        };
        Some(match first {
            b'(' => (Token::Open, 1),
            b')' => (Token::Close, 1),
            b'[' => (Token::OpenSquare, 1),
            b']' => (Token::CloseSquare, 1),
            b'{' => (Token::OpenBrace, 1),
            b'}' => (Token::CloseBrace, 1),
            b',' => (Token::Comma, 1),
            b':' if second != b'=' => (Token::Colon, 1),
            b';' => (Token::Semicolon, 1),
            b'.' if (second, third) == (b'.', b'.') => (Token::Ellipsis, 3),
            b'.' => (Token::Dot, 1),
            b'~' => (Token::Tilde, 1),
            b'=' if second == b'=' => (Token::Compare, 2),
            b'=' => (Token::Assign, 1),
            b'!' if second == b'=' => (Token::Compare, 2),
            b'<' | b'>' if second == first => assigns(Token::Binary, 2),
            b'<' if second == b'>' => return None,
            b'<' | b'>' if second == b'=' => (Token::Compare, 2),
            b'<' | b'>' => (Token::Compare, 1),
            b'-' if second == b'>' => (Token::Arrow, 2),
            b'+' | b'-' => assigns(Token::Sign, 1),
            b'*' if second == b'*' => assigns(Token::Stars, 2),
            b'*' => assigns(Token::Star, 1),
            b'/' if second == b'/' => assigns(Token::Binary, 2),
            b'/' => assigns(Token::Slash, 1),
            b'@' => assigns(Token::At, 1),
            b'%' | b'|' | b'&' | b'^' => assigns(Token::Binary, 1),
            _ => return None,
        })
    }

    fn word(&mut self, start: usize) -> Option<Token> {
        let rest = self.text.get(start..)?;
        let name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let length = rest.iter().position(|byte| !name(byte)).unwrap_or(rest.len());
        let word = rest.get(..length)?;
        match rest.get(length) {
            Some(b'"' | b'\'') => {
                let (mut raw, mut format) = (false, false);
                for letter in word {
                    match letter {
                        b'r' | b'R' => raw = true,
                        b'f' | b'F' => format = true,
                        b'b' | b'B' | b'u' | b'U' => {}
                        _ => return None,
                    }
                }
                return self.string(start + length, raw, format);
            }
            // A non-ASCII letter.
            Some(0x80..) => return None,
            _ => {}
        }
        self.at = start + length;
        Some(keyword(word))
    }

    fn number(&mut self, start: usize) -> Option<Token> {
        let digits = |mut at: usize| {
            while self.byte(at).is_ascii_digit() {
                at += 1;
            }
            at
        };
        let mut at = start;
        let radix: Option<fn(u8) -> bool> = match (self.byte(at), self.byte(at + 1)) {
            (b'0', b'x' | b'X') => Some(|digit| digit.is_ascii_hexdigit()),
            (b'0', b'o') => Some(|digit| matches!(digit, b'0'..=b'7')),
            (b'0', b'b') => Some(|digit| matches!(digit, b'0' | b'1')),
            _ => None,
        };
        if let Some(is_digit) = radix {
            at += 2;
            while is_digit(self.byte(at)) {
                at += 1;
            }
            if at == start + 2 {
                return None;
            }
        } else {
            at = digits(at);
            let whole = at;
            if self.byte(at) == b'.' {
                at = digits(at + 1);
            }
            if matches!(self.byte(at), b'e' | b'E') {
                at += 1 + usize::from(matches!(self.byte(at + 1), b'+' | b'-'));
                if !self.byte(at).is_ascii_digit() {
                    return None;
                }
                at = digits(at);
            }
            let suffix = self.byte(at);
            let long = at == whole && matches!(suffix, b'l' | b'L');
            if long || matches!(suffix, b'j' | b'J') {
                at += 1;
            }
        }
        let next = self.byte(at);
        if next.is_ascii_alphanumeric() || matches!(next, b'_' | b'.' | b'"' | b'\'' | 0x80..) {
            return None;
        }
        self.at = at;
        Some(Token::Number)
    }

    fn string(&mut self, mut at: usize, raw: bool, format: bool) -> Option<Token> {
        let quote = self.byte(at);
        let triple = self.byte(at + 1) == quote && self.byte(at + 2) == quote;
        at += if triple { 3 } else { 1 };
        // The ends of the string; the string itself is counted with the token.
        self.nodes += 2;
        self.height = 2;
        let inside = at;
        loop {
            let rest = self.text.get(at..)?;
            let stops =
                |byte: &u8| *byte == quote || matches!(byte, b'\\' | b'\n' | b'\r' | b'{' | b'}');
            at += rest.iter().position(stops)?;
            match self.byte(at) {
                b'\\' => {
                    let next = self.byte(at + 1);
                    // The token of a name may reach beyond the string.
                    if matches!(next, b'\r' | 0x80..) || (next == b'N' && !raw) {
                        return None;
                    }
                    if format && matches!(next, b'{' | b'}') {
                        return None;
                    }
                    if raw {
                        // A string with only these has no content node.
                        self.exact = false;
                    } else {
                        self.nodes += 1;
                        self.height = 3;
                        // Only text strings have escapes by name.
                        self.exact &= !matches!(next, b'u' | b'U');
                    }
                    at += 2;
                }
                b'\r' => return None,
                b'\n' if !triple => return None,
                brace @ (b'{' | b'}') if format => {
                    // The text after it is a separate content node.
                    self.nodes += 2;
                    self.exact = false;
                    if self.byte(at + 1) == brace {
                        at += 2;
                    } else {
                        at = self.interpolation(at)?;
                    }
                }
                byte if byte != quote => at += 1,
                _ if !triple => {
                    self.nodes += usize::from(at > inside);
                    break at += 1;
                }
                _ if self.byte(at + 1) == quote && self.byte(at + 2) == quote => {
                    self.nodes += usize::from(at > inside);
                    break at += 3;
                }
                _ => at += 1,
            }
        }
        self.at = at;
        Some(Token::Text)
    }

    /// The place after an f-string expression in braces that starts at `open`. Expressions that
    /// contain quotes are not plain.
    fn interpolation(&mut self, open: usize) -> Option<usize> {
        if self.byte(open) != b'{' {
            return None;
        }
        let rest = self.text.get(open + 1..)?;
        let inside = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.,()[]+-*/% ".contains(byte);
        let length = rest.iter().position(|byte| !inside(byte))?;
        self.nodes += 2 + (self.expression)(rest.get(..length)?)?;
        let mut at = open + 1 + length;
        if self.byte(at) == b'!' {
            if !self.byte(at + 1).is_ascii_lowercase() {
                return None;
            }
            self.nodes += 1;
            at += 2;
        }
        if self.byte(at) == b':' {
            let spec = self.text.get(at + 1..)?;
            let inside = |byte: &u8| byte.is_ascii_alphanumeric() || b".<>^+-,%_".contains(byte);
            let length = spec.iter().position(|byte| !inside(byte))?;
            self.nodes += 3;
            at += 1 + length;
        }
        (self.byte(at) == b'}').then_some(at + 1)
    }
}

/// The indent of the line that starts at `at`, as the scanner counts it, and its end.
pub(super) fn indent(text: &[u8], at: usize) -> (usize, usize) {
    let (mut width, mut end) = (0, at);
    loop {
        match text.get(end) {
            Some(b' ') => width += 1,
            Some(b'\t') => width += 8,
            _ => return (width, end),
        }
        end += 1;
    }
}

fn keyword(word: &[u8]) -> Token {
    match word {
        b"and" => Token::And,
        b"as" => Token::As,
        b"assert" => Token::Assert,
        b"async" => Token::Async,
        b"await" => Token::Await,
        b"break" | b"continue" | b"pass" => Token::Pass,
        b"class" => Token::Class,
        b"def" => Token::Def,
        b"del" => Token::Del,
        b"elif" => Token::Elif,
        b"else" => Token::Else,
        b"except" => Token::Except,
        b"exec" => Token::Exec,
        b"False" | b"None" | b"True" => Token::Constant,
        b"finally" => Token::Finally,
        b"for" => Token::For,
        b"from" => Token::From,
        b"global" | b"nonlocal" => Token::Global,
        b"if" => Token::If,
        b"import" => Token::Import,
        b"in" => Token::In,
        b"is" => Token::Is,
        b"lambda" => Token::Lambda,
        b"match" | b"type" => Token::Soft,
        b"not" => Token::Not,
        b"or" => Token::Or,
        b"print" => Token::Print,
        b"raise" => Token::Raise,
        b"return" => Token::Return,
        b"try" => Token::Try,
        b"while" => Token::While,
        b"with" => Token::With,
        b"yield" => Token::Yield,
        _ => Token::Name,
    }
}
