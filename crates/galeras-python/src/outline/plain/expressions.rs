//! Expressions of plain code, by recursive descent.
//!
//! Here: what Python and tree-sitter's grammar both take for an expression, without the corners in
//! which they differ. Not here: statements, tokens. Precedence does not matter: nothing is built.
//! Every rule counts the nodes that the tree has for it, beside those of its tokens.

use super::lexer::{Lexer, Token};

/// Expressions in one another; deeper ones are not plain.
const DEPTH: usize = 40;

/// What an expression can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A name.
    Word,
    /// Something else that can be assigned to.
    Pattern,
    Other,
}

impl Shape {
    fn assignable(self) -> bool {
        self != Self::Other
    }
}

/// Reads tokens with one token of look-ahead.
pub(super) struct Reader<'a> {
    pub(super) lexer: Lexer<'a>,
    /// The token that comes next, and where it starts.
    pub(super) token: Token,
    pub(super) start: usize,
    /// Where the token or comment before it ended.
    pub(super) end: usize,
    depth: usize,
}

/// The nodes of a text that is an expression and nothing else; `None` if it is not plain.
fn nodes_of_expression(text: &[u8]) -> Option<usize> {
    let mut reader = Reader::new(text);
    reader.next()?;
    reader.expression()?;
    (reader.token == Token::End).then_some(reader.lexer.nodes)
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        let lexer = Lexer::new(text, nodes_of_expression);
        Self { lexer, token: Token::Newline, start: 0, end: 0, depth: 0 }
    }

    pub(super) fn next(&mut self) -> Option<()> {
        self.end = self.lexer.end;
        (self.token, self.start) = self.lexer.token()?;
        Some(())
    }

    pub(super) fn nodes(&mut self, more: usize) {
        self.lexer.nodes += more;
    }

    /// Takes the token if it is of this kind; says so.
    pub(super) fn take(&mut self, token: Token) -> Option<bool> {
        let is = self.token == token;
        if is {
            self.next()?;
        }
        Some(is)
    }

    pub(super) fn expect(&mut self, token: Token) -> Option<()> {
        if self.token == token { self.next() } else { None }
    }

    /// A name that is no keyword in any reading.
    pub(super) fn name(&mut self) -> Option<()> {
        match self.token {
            Token::Name | Token::Soft => self.next(),
            _ => None,
        }
    }

    /// An expression without `:=`, which is not plain.
    pub(super) fn expression(&mut self) -> Option<Shape> {
        self.depth += 1;
        if self.depth > DEPTH {
            return None;
        }
        let shape = if self.token == Token::Lambda {
            self.lambda()?;
            Shape::Other
        } else {
            let shape = self.disjunction()?;
            if self.take(Token::If)? {
                self.nodes(1);
                self.disjunction()?;
                self.expect(Token::Else)?;
                self.expression()?;
                Shape::Other
            } else {
                shape
            }
        };
        self.depth -= 1;
        Some(shape)
    }

    fn lambda(&mut self) -> Option<()> {
        self.expect(Token::Lambda)?;
        self.nodes(2);
        while self.token != Token::Colon {
            match self.token {
                Token::Star | Token::Stars => {
                    self.nodes(1);
                    self.next()?;
                    self.name()?;
                }
                _ => {
                    self.name()?;
                    if self.take(Token::Assign)? {
                        self.nodes(1);
                        self.expression()?;
                    }
                }
            }
            if !self.take(Token::Comma)? && self.token != Token::Colon {
                return None;
            }
        }
        self.next()?;
        self.expression()?;
        Some(())
    }

    /// Anything but a lambda and a choice by `if`.
    pub(super) fn disjunction(&mut self) -> Option<Shape> {
        let mut shape = self.inversion()?;
        while matches!(self.token, Token::Or | Token::And) {
            self.next()?;
            self.nodes(1);
            self.inversion()?;
            shape = Shape::Other;
        }
        Some(shape)
    }

    fn inversion(&mut self) -> Option<Shape> {
        let mut shape = None;
        while self.take(Token::Not)? {
            self.nodes(1);
            shape = Some(Shape::Other);
        }
        let inner = self.operand()?;
        let mut shape = shape.unwrap_or(inner);
        let mut first = true;
        loop {
            match self.token {
                Token::Compare | Token::In => self.next()?,
                Token::Is => {
                    self.next()?;
                    if self.take(Token::Not)? {
                        self.nodes(1);
                    }
                }
                Token::Not => {
                    self.next()?;
                    self.expect(Token::In)?;
                    self.nodes(1);
                }
                _ => return Some(shape),
            }
            self.nodes(usize::from(std::mem::take(&mut first)));
            self.operand()?;
            shape = Shape::Other;
        }
    }

    /// Operands of comparisons: sums, products and the like.
    pub(super) fn operand(&mut self) -> Option<Shape> {
        let mut shape = self.signed()?;
        loop {
            match self.token {
                Token::Binary
                | Token::Sign
                | Token::At
                | Token::Star
                | Token::Stars
                | Token::Slash => self.next()?,
                _ => return Some(shape),
            }
            self.nodes(1);
            self.signed()?;
            shape = Shape::Other;
        }
    }

    fn signed(&mut self) -> Option<Shape> {
        let mut signed = false;
        while matches!(self.token, Token::Sign | Token::Tilde) {
            self.next()?;
            self.nodes(1);
            signed = true;
        }
        let shape = self.primary()?;
        Some(if signed { Shape::Other } else { shape })
    }

    fn primary(&mut self) -> Option<Shape> {
        if self.take(Token::Await)? {
            self.nodes(1);
            self.primary()?;
            return Some(Shape::Other);
        }
        let mut shape = self.atom()?;
        loop {
            match self.token {
                Token::Dot => {
                    self.next()?;
                    self.nodes(1);
                    match self.token {
                        Token::Name | Token::Soft | Token::Print | Token::Exec => self.next()?,
                        _ => return None,
                    }
                    shape = Shape::Pattern;
                }
                Token::Open => {
                    self.arguments()?;
                    self.nodes(1);
                    shape = Shape::Other;
                }
                Token::OpenSquare => {
                    self.subscript()?;
                    shape = Shape::Pattern;
                }
                _ => return Some(shape),
            }
        }
    }

    fn atom(&mut self) -> Option<Shape> {
        match self.token {
            Token::Name | Token::Soft => {
                self.next()?;
                Some(Shape::Word)
            }
            Token::Number | Token::Constant | Token::Ellipsis => {
                self.next()?;
                Some(Shape::Other)
            }
            Token::Text => {
                self.next()?;
                if self.token == Token::Text {
                    self.nodes(1);
                }
                while self.take(Token::Text)? {}
                Some(Shape::Other)
            }
            Token::Open => self.elements(Token::Close),
            Token::OpenSquare => self.elements(Token::CloseSquare),
            Token::OpenBrace => self.braces(),
            _ => None,
        }
    }

    /// A tuple, a list, a comprehension, or an expression in brackets.
    fn elements(&mut self, close: Token) -> Option<Shape> {
        self.next()?;
        self.nodes(1);
        if close == Token::Close && self.token == Token::Yield {
            self.yielded()?;
            self.expect(close)?;
            return Some(Shape::Other);
        }
        let (mut patterns, mut count, mut stars, mut comma) = (true, 0, false, false);
        while self.token != close {
            stars |= self.token == Token::Star;
            let shape = self.element()?;
            patterns &= shape.assignable();
            count += 1;
            if count == 1 && !stars && matches!(self.token, Token::For | Token::Async) {
                self.comprehension()?;
                self.expect(close)?;
                return Some(Shape::Other);
            }
            comma = self.take(Token::Comma)?;
            if !comma && self.token != close {
                return None;
            }
        }
        if close == Token::Close && stars && !comma && count == 1 {
            return None;
        }
        self.next()?;
        Some(if patterns && count > 0 { Shape::Pattern } else { Shape::Other })
    }

    /// An expression, or one with a star.
    fn element(&mut self) -> Option<Shape> {
        if !self.take(Token::Star)? {
            return self.expression();
        }
        self.nodes(1);
        self.operand()
    }

    /// A dictionary or a set, or the comprehension of one.
    fn braces(&mut self) -> Option<Shape> {
        self.next()?;
        self.nodes(1);
        let mut pairs = None;
        while self.token != Token::CloseBrace {
            let pair = if self.take(Token::Stars)? {
                self.nodes(1);
                self.operand()?;
                true
            } else {
                self.expression()?;
                let pair = self.take(Token::Colon)?;
                if pair {
                    self.nodes(1);
                    self.expression()?;
                }
                if pairs.is_none() && matches!(self.token, Token::For | Token::Async) {
                    self.comprehension()?;
                    break;
                }
                pair
            };
            if *pairs.get_or_insert(pair) != pair {
                return None;
            }
            if !self.take(Token::Comma)? && self.token != Token::CloseBrace {
                return None;
            }
        }
        self.expect(Token::CloseBrace)?;
        Some(Shape::Other)
    }

    fn comprehension(&mut self) -> Option<()> {
        loop {
            match self.token {
                Token::For | Token::Async => {
                    self.take(Token::Async)?;
                    self.expect(Token::For)?;
                    self.nodes(1);
                    self.targets()?;
                    self.expect(Token::In)?;
                    self.disjunction()?;
                }
                Token::If => {
                    self.next()?;
                    self.nodes(1);
                    self.disjunction()?;
                }
                _ => return Some(()),
            }
        }
    }

    /// What a `for` assigns to.
    pub(super) fn targets(&mut self) -> Option<()> {
        self.nodes(1);
        loop {
            if self.take(Token::Star)? {
                self.nodes(1);
            }
            // Not an operand: `in` would be taken for an operator.
            if !self.primary()?.assignable() {
                return None;
            }
            if !self.take(Token::Comma)? || self.token == Token::In {
                return Some(());
            }
        }
    }

    /// The arguments of a call, of a class or of a decorator, in their brackets.
    pub(super) fn arguments(&mut self) -> Option<()> {
        self.expect(Token::Open)?;
        self.nodes(1);
        let mut count = 0;
        while self.token != Token::Close {
            match self.token {
                Token::Star | Token::Stars => {
                    self.next()?;
                    self.nodes(1);
                    self.expression()?;
                }
                _ => {
                    let shape = self.expression()?;
                    if self.token == Token::Assign && shape == Shape::Word {
                        self.next()?;
                        self.nodes(1);
                        self.expression()?;
                    } else if count == 0 && matches!(self.token, Token::For | Token::Async) {
                        self.comprehension()?;
                        break;
                    }
                }
            }
            count += 1;
            if !self.take(Token::Comma)? && self.token != Token::Close {
                return None;
            }
        }
        self.expect(Token::Close)
    }

    fn subscript(&mut self) -> Option<()> {
        self.expect(Token::OpenSquare)?;
        self.nodes(1);
        if self.token == Token::CloseSquare {
            return None;
        }
        while self.token != Token::CloseSquare {
            let ends = |token| matches!(token, Token::Colon | Token::Comma | Token::CloseSquare);
            if !ends(self.token) {
                self.expression()?;
            } else if self.token != Token::Colon {
                return None;
            }
            let mut colons = 0;
            while self.take(Token::Colon)? {
                colons += 1;
                self.nodes(usize::from(colons == 1));
                if !ends(self.token) {
                    self.expression()?;
                }
            }
            if colons > 2 || (!self.take(Token::Comma)? && self.token != Token::CloseSquare) {
                return None;
            }
        }
        self.next()
    }

    /// Expressions between commas; the last one has none after it, as that may go on, but before an
    /// assignment.
    pub(super) fn expressions(&mut self) -> Option<Shape> {
        let shape = self.expression()?;
        if self.token != Token::Comma {
            return Some(shape);
        }
        self.nodes(1);
        let mut patterns = shape.assignable();
        while self.take(Token::Comma)? {
            if patterns && self.token == Token::Assign {
                break;
            }
            patterns &= self.expression()?.assignable();
        }
        Some(if patterns { Shape::Pattern } else { Shape::Other })
    }

    pub(super) fn yielded(&mut self) -> Option<()> {
        self.expect(Token::Yield)?;
        self.nodes(1);
        if self.take(Token::From)? {
            self.expression()?;
        } else if !matches!(
            self.token,
            Token::Newline | Token::End | Token::Semicolon | Token::Close
        ) {
            self.expressions()?;
        }
        Some(())
    }
}
