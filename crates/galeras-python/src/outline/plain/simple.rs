//! Simple statements of plain code, parameters and annotations.

use super::expressions::{Reader, Shape};
use super::lexer::Token;

impl Reader<'_> {
    /// The parameters of a function, in their brackets.
    pub(super) fn parameters(&mut self) -> Option<()> {
        self.expect(Token::Open)?;
        self.nodes(1);
        while self.token != Token::Close {
            self.nodes(1);
            match self.token {
                Token::Slash => self.next()?,
                star @ (Token::Star | Token::Stars) => {
                    self.next()?;
                    if star == Token::Stars || self.token != Token::Comma {
                        self.name()?;
                        if self.take(Token::Colon)? {
                            self.annotation()?;
                        }
                    }
                }
                _ => {
                    self.name()?;
                    if self.take(Token::Colon)? {
                        self.annotation()?;
                    }
                    if self.take(Token::Assign)? {
                        self.expression()?;
                    }
                }
            }
            if !self.take(Token::Comma)? && self.token != Token::Close {
                return None;
            }
        }
        self.next()
    }

    /// A type: names with dots and types in brackets, strings, `None`, `...`, choices by `|`.
    pub(super) fn annotation(&mut self) -> Option<()> {
        loop {
            self.nodes(3);
            match self.token {
                Token::Text => {
                    self.next()?;
                }
                Token::Constant | Token::Ellipsis => self.next()?,
                Token::OpenSquare => self.annotations()?,
                _ => {
                    self.name()?;
                    while self.take(Token::Dot)? {
                        self.nodes(1);
                        self.name()?;
                    }
                    if self.token == Token::OpenSquare {
                        self.annotations()?;
                    }
                }
            }
            let lexer = &self.lexer;
            let bar = lexer.text.get(self.start) == Some(&b'|');
            if !(self.token == Token::Binary && bar) {
                return Some(());
            }
            self.next()?;
        }
    }

    fn annotations(&mut self) -> Option<()> {
        self.expect(Token::OpenSquare)?;
        self.nodes(1);
        loop {
            self.annotation()?;
            if !self.take(Token::Comma)? {
                return self.expect(Token::CloseSquare);
            }
        }
    }

    /// Statements between semicolons, up to the end of the line.
    pub(super) fn simple_statements(&mut self) -> Option<()> {
        loop {
            self.nodes(1);
            self.simple_statement()?;
            let more = self.take(Token::Semicolon)?;
            match self.token {
                Token::Newline | Token::End => {
                    // A comment in the same line counts.
                    self.end = self.lexer.end;
                    return Some(());
                }
                _ if more => {}
                _ => return None,
            }
        }
    }

    fn ends(&self) -> bool {
        matches!(self.token, Token::Newline | Token::End | Token::Semicolon)
    }

    fn simple_statement(&mut self) -> Option<()> {
        match self.token {
            Token::Pass => self.next(),
            Token::Return => {
                self.next()?;
                if !self.ends() {
                    self.expressions()?;
                }
                Some(())
            }
            Token::Raise => {
                self.next()?;
                if !self.ends() {
                    self.expressions()?;
                    if self.take(Token::From)? {
                        self.expression()?;
                    }
                }
                Some(())
            }
            Token::Assert => {
                self.next()?;
                self.expressions().map(|_| ())
            }
            Token::Del => {
                self.next()?;
                self.expressions().map(|_| ())
            }
            Token::Global => loop {
                self.next()?;
                self.name()?;
                if self.token != Token::Comma {
                    return Some(());
                }
            },
            Token::Import => {
                self.next()?;
                self.imported(false)
            }
            Token::From => self.import_from(),
            Token::Yield => self.yielded(),
            Token::Print => self.call(),
            Token::Soft => self.soft(),
            _ => self.expression_statement(),
        }
    }

    /// `print(…)` with nothing after it.
    fn call(&mut self) -> Option<()> {
        self.next()?;
        self.nodes(3);
        self.arguments()?;
        self.ends().then_some(())
    }

    /// `match` or `type` where it can only be a name.
    fn soft(&mut self) -> Option<()> {
        let rest = self.lexer.text.get(self.lexer.at..)?;
        let rest = rest.strip_prefix(b" ").unwrap_or(rest);
        match rest {
            [b'=', b'=', ..] => None,
            [b'=' | b'.', ..] => self.expression_statement(),
            _ => None,
        }
    }

    /// An expression, an assignment, or a chain of them.
    fn expression_statement(&mut self) -> Option<()> {
        let mut shape = self.expressions()?;
        match self.token {
            Token::Augmented => {
                if shape == Shape::Other {
                    return None;
                }
                self.next()?;
                return self.value().map(|_| ());
            }
            Token::Colon => {
                if shape == Shape::Other {
                    return None;
                }
                self.next()?;
                self.nodes(1);
                self.annotation()?;
                if self.take(Token::Assign)? {
                    self.value()?;
                }
                return self.ends().then_some(());
            }
            _ => {}
        }
        while self.token == Token::Assign {
            if shape == Shape::Other {
                return None;
            }
            self.next()?;
            shape = self.value()?;
        }
        Some(())
    }

    fn value(&mut self) -> Option<Shape> {
        self.nodes(1);
        if self.token == Token::Yield {
            self.yielded()?;
            return Some(Shape::Other);
        }
        self.expressions()
    }

    fn import_from(&mut self) -> Option<()> {
        self.next()?;
        self.nodes(2);
        let mut dots = false;
        while matches!(self.token, Token::Dot | Token::Ellipsis) {
            dots = true;
            self.nodes(3);
            self.next()?;
        }
        if !dots || self.token != Token::Import {
            self.dotted_name()?;
        }
        self.expect(Token::Import)?;
        match self.token {
            Token::Star => {
                self.nodes(1);
                self.next()
            }
            Token::Open => {
                self.next()?;
                self.imported(true)?;
                self.expect(Token::Close)
            }
            _ => self.imported(false),
        }
    }

    fn imported(&mut self, bracketed: bool) -> Option<()> {
        loop {
            self.dotted_name()?;
            if self.take(Token::As)? {
                self.nodes(1);
                self.name()?;
            }
            let more = self.take(Token::Comma)?;
            if !more || (bracketed && self.token == Token::Close) {
                return Some(());
            }
        }
    }

    fn dotted_name(&mut self) -> Option<()> {
        self.nodes(1);
        self.name()?;
        while self.take(Token::Dot)? {
            self.name()?;
        }
        Some(())
    }
}
