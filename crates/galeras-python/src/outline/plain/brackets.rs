//! Brackets in plain code: lists, tuples, dictionaries, comprehensions, arguments, subscripts.

use super::expressions::{Branch, Reader, Shape};
use super::lexer::Token;

impl Reader<'_> {
    pub(super) fn atom(&mut self) -> Option<Branch> {
        match self.token {
            Token::Name | Token::Soft => {
                self.next()?;
                Some(Branch::new(Shape::Word, 1))
            }
            Token::Number | Token::Constant | Token::Ellipsis => {
                self.next()?;
                Some(Branch::new(Shape::Other, 1))
            }
            Token::Text => {
                let mut height = self.lexer.height;
                self.next()?;
                let several = self.token == Token::Text;
                self.nodes(usize::from(several));
                while self.token == Token::Text {
                    height = height.max(self.lexer.height);
                    self.next()?;
                }
                Some(Branch::new(Shape::Other, height + u32::from(several)))
            }
            Token::Open => self.elements(Token::Close),
            Token::OpenSquare => self.elements(Token::CloseSquare),
            Token::OpenBrace => self.braces(),
            _ => None,
        }
    }

    fn elements(&mut self, close: Token) -> Option<Branch> {
        self.next()?;
        self.nodes(1);
        if close == Token::Close && self.token == Token::Yield {
            let height = self.yielded()?;
            self.expect(close)?;
            return Some(Branch::new(Shape::Other, 1 + height));
        }
        let (mut patterns, mut count, mut stars, mut comma) = (true, 0, false, false);
        let mut height = 1;
        while self.token != close {
            stars |= self.token == Token::Star;
            let element = self.element()?;
            height = height.max(element.height);
            patterns &= element.shape.assignable();
            count += 1;
            if count == 1 && !stars && matches!(self.token, Token::For | Token::Async) {
                height = height.max(self.comprehension()?);
                self.expect(close)?;
                return Some(Branch::new(Shape::Other, 1 + height));
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
        let shape = if patterns && count > 0 { Shape::Pattern } else { Shape::Other };
        Some(Branch::new(shape, 1 + height))
    }

    /// An expression, or one with a star.
    fn element(&mut self) -> Option<Branch> {
        if !self.take(Token::Star)? {
            return self.expression();
        }
        self.nodes(1);
        let Branch { shape, height } = self.operand()?;
        Some(Branch::new(shape, 1 + height))
    }

    fn braces(&mut self) -> Option<Branch> {
        self.next()?;
        self.nodes(1);
        let (mut pairs, mut height) = (None, 1);
        while self.token != Token::CloseBrace {
            let pair = if self.take(Token::Stars)? {
                self.nodes(1);
                height = height.max(1 + self.operand()?.height);
                true
            } else {
                let key = self.expression()?.height;
                height = height.max(key);
                let pair = self.take(Token::Colon)?;
                if pair {
                    self.nodes(1);
                    height = height.max(1 + key.max(self.expression()?.height));
                }
                if pairs.is_none() && matches!(self.token, Token::For | Token::Async) {
                    height = height.max(self.comprehension()?);
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
        Some(Branch::new(Shape::Other, 1 + height))
    }

    /// The levels of the clauses of a comprehension.
    fn comprehension(&mut self) -> Option<u32> {
        let mut height = 0;
        loop {
            match self.token {
                Token::For | Token::Async => {
                    self.take(Token::Async)?;
                    self.expect(Token::For)?;
                    self.nodes(1);
                    let targets = self.targets()?;
                    self.expect(Token::In)?;
                    height = height.max(1 + targets.max(self.disjunction()?.height));
                }
                Token::If => {
                    self.next()?;
                    self.nodes(1);
                    height = height.max(1 + self.disjunction()?.height);
                }
                _ => return Some(height),
            }
        }
    }

    /// The targets of a `for`; returns their levels.
    pub(super) fn targets(&mut self) -> Option<u32> {
        let (mut height, mut many) = (1, false);
        loop {
            let starred = self.take(Token::Star)?;
            self.nodes(usize::from(starred));
            // Not an operand: `in` would be read as an operator.
            let target = self.primary()?;
            if !target.shape.assignable() {
                return None;
            }
            height = height.max(target.height + u32::from(starred));
            if self.token == Token::Comma && !many {
                self.nodes(1);
                many = true;
            }
            if !self.take(Token::Comma)? || self.token == Token::In {
                return Some(height + u32::from(many));
            }
        }
    }

    /// The arguments of a call, a class or a decorator, with brackets; returns their levels.
    pub(super) fn arguments(&mut self) -> Option<u32> {
        self.expect(Token::Open)?;
        self.nodes(1);
        let (mut count, mut height) = (0, 1);
        while self.token != Token::Close {
            match self.token {
                Token::Star | Token::Stars => {
                    self.next()?;
                    self.nodes(1);
                    height = height.max(1 + self.expression()?.height);
                }
                _ => {
                    let argument = self.expression()?;
                    height = height.max(argument.height);
                    if self.token == Token::Assign && argument.shape == Shape::Word {
                        self.next()?;
                        self.nodes(1);
                        height = height.max(1 + self.expression()?.height);
                    } else if count == 0 && matches!(self.token, Token::For | Token::Async) {
                        height = height.max(self.comprehension()?);
                        break;
                    }
                }
            }
            count += 1;
            if !self.take(Token::Comma)? && self.token != Token::Close {
                return None;
            }
        }
        self.expect(Token::Close)?;
        Some(1 + height)
    }

    /// A subscript with brackets; returns the levels of its contents.
    pub(super) fn subscript(&mut self) -> Option<u32> {
        self.expect(Token::OpenSquare)?;
        self.nodes(1);
        if self.token == Token::CloseSquare {
            return None;
        }
        let mut highest = 1;
        while self.token != Token::CloseSquare {
            let ends = |token| matches!(token, Token::Colon | Token::Comma | Token::CloseSquare);
            let mut height = 1;
            if !ends(self.token) {
                height = self.expression()?.height;
            } else if self.token != Token::Colon {
                return None;
            }
            let mut colons = 0;
            while self.take(Token::Colon)? {
                colons += 1;
                self.nodes(usize::from(colons == 1));
                if !ends(self.token) {
                    height = height.max(self.expression()?.height);
                }
            }
            highest = highest.max(height + u32::from(colons > 0));
            if colons > 2 || (!self.take(Token::Comma)? && self.token != Token::CloseSquare) {
                return None;
            }
        }
        self.next()?;
        Some(highest)
    }
}
