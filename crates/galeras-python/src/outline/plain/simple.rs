//! Simple statements of plain code, parameters and annotations.

use super::expressions::{Branch, Reader, Shape};
use super::lexer::Token;

impl Reader<'_> {
    /// The parameters of a function, with brackets; returns their levels and adds the places of
    /// their names to `names`.
    pub(super) fn parameters(&mut self, names: &mut Vec<(usize, usize)>) -> Option<u32> {
        self.expect(Token::Open)?;
        self.nodes(1);
        let mut height = 1;
        while self.token != Token::Close {
            // The levels of the name, with a star in front, and of the part after it.
            let (mut name, mut rest) = (1, 0);
            let mut named = true;
            match self.token {
                Token::Slash => {
                    self.next()?;
                    (name, named) = (2, false);
                    self.nodes(1);
                }
                star @ (Token::Star | Token::Stars) => {
                    self.next()?;
                    name = 2;
                    self.nodes(1);
                    named = star == Token::Stars || self.token != Token::Comma;
                }
                _ => {}
            }
            if named {
                let start = self.start;
                self.name()?;
                names.push((start, self.end));
                if self.take(Token::Colon)? {
                    rest = self.annotation()?;
                }
                if name == 1 && self.take(Token::Assign)? {
                    rest = rest.max(self.expression()?.height);
                }
            }
            self.nodes(usize::from(rest > 0));
            height = height.max(name.max(rest) + u32::from(rest > 0));
            if !self.take(Token::Comma)? && self.token != Token::Close {
                return None;
            }
        }
        self.next()?;
        Some(1 + height)
    }

    /// A type: names with dots, types in brackets, strings, `None`, `...`, choices by `|`; returns
    /// its levels.
    pub(super) fn annotation(&mut self) -> Option<u32> {
        let mut height = 2;
        let mut choices = 0;
        loop {
            self.nodes(if choices == 0 { 1 } else { 3 });
            match self.token {
                Token::Text => {
                    height = 1 + self.lexer.height;
                    self.next()?;
                }
                Token::Constant => self.next()?,
                Token::Ellipsis => {
                    self.inexact();
                    self.next()?;
                }
                Token::OpenSquare => {
                    self.inexact();
                    self.annotations()?;
                }
                _ => {
                    self.name()?;
                    while self.take(Token::Dot)? {
                        self.nodes(1);
                        height += 1;
                        self.name()?;
                    }
                    if self.token == Token::OpenSquare {
                        self.inexact();
                        self.nodes(2);
                        self.annotations()?;
                    }
                }
            }
            let lexer = &self.lexer;
            let bar = lexer.text.get(self.start) == Some(&b'|');
            if !(self.token == Token::Binary && bar) {
                return Some(height);
            }
            self.inexact();
            choices += 1;
            self.next()?;
        }
    }

    fn annotations(&mut self) -> Option<()> {
        self.expect(Token::OpenSquare)?;
        self.nodes(1);
        self.deeper()?;
        loop {
            self.nodes(2);
            self.annotation()?;
            if !self.take(Token::Comma)? {
                self.back();
                return self.expect(Token::CloseSquare);
            }
        }
    }

    /// Statements between semicolons, up to the end of the line; returns their levels.
    pub(super) fn simple_statements(&mut self) -> Option<u32> {
        let mut height = 0;
        loop {
            self.nodes(1);
            height = height.max(1 + self.simple_statement()?);
            let more = self.take(Token::Semicolon)?;
            match self.token {
                Token::Newline | Token::End => {
                    // A comment on the same line counts.
                    self.end = self.lexer.end;
                    return Some(height);
                }
                _ if more => {}
                _ => return None,
            }
        }
    }

    fn ends(&self) -> bool {
        matches!(self.token, Token::Newline | Token::End | Token::Semicolon)
    }

    fn simple_statement(&mut self) -> Option<u32> {
        match self.token {
            Token::Pass => self.next().map(|()| 1),
            Token::Return => {
                self.returns += 1;
                self.next()?;
                if self.ends() {
                    return Some(1);
                }
                Some(self.expression_list()?.height)
            }
            Token::Raise => {
                self.next()?;
                let mut height = 1;
                if !self.ends() {
                    height = self.expression_list()?.height;
                    if self.take(Token::From)? {
                        height = height.max(self.expression()?.height);
                    }
                }
                Some(height)
            }
            Token::Assert => {
                self.next()?;
                Some(self.expressions()?.height)
            }
            Token::Del => {
                self.next()?;
                Some(self.expression_list()?.height)
            }
            Token::Global => loop {
                self.next()?;
                self.name()?;
                if self.token != Token::Comma {
                    return Some(1);
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

    /// `print(…)` followed by the end of the statement.
    fn call(&mut self) -> Option<u32> {
        self.next()?;
        self.nodes(1);
        let arguments = self.arguments()?;
        self.ends().then_some(1 + arguments)
    }

    /// `match` or `type` where it can only be a name.
    fn soft(&mut self) -> Option<u32> {
        let rest = self.lexer.text.get(self.lexer.at..)?;
        let rest = rest.strip_prefix(b" ").unwrap_or(rest);
        match rest {
            [b'=', b'=', ..] => None,
            [b'=' | b'.', ..] => self.expression_statement(),
            _ => None,
        }
    }

    /// An expression, an assignment, or a chain of them.
    fn expression_statement(&mut self) -> Option<u32> {
        let listed = self.expressions()?;
        match self.token {
            Token::Augmented => {
                if listed.shape == Shape::Other {
                    return None;
                }
                let target = self.around(listed);
                self.next()?;
                return Some(1 + target.height.max(self.value()?.height));
            }
            Token::Colon => {
                if listed.shape == Shape::Other {
                    return None;
                }
                let target = self.around(listed);
                self.next()?;
                self.nodes(1);
                let mut height = target.height.max(self.annotation()?);
                if self.take(Token::Assign)? {
                    // The assignment is already counted.
                    self.lexer.nodes -= 1;
                    height = height.max(self.value()?.height);
                }
                return self.ends().then_some(1 + height);
            }
            Token::Assign => {}
            _ => return Some(listed.height),
        }
        // Each assignment is nested in the one before.
        let mut branch = self.around(listed);
        let (mut height, mut level) = (0, 0);
        while self.token == Token::Assign {
            if branch.shape == Shape::Other {
                return None;
            }
            level += 1;
            height = height.max(level + branch.height);
            self.next()?;
            branch = self.value()?;
        }
        Some(height.max(level + branch.height))
    }

    /// The assigned value, and the assignment around it.
    fn value(&mut self) -> Option<Branch> {
        self.nodes(1);
        if self.token == Token::Yield {
            return Some(Branch::new(Shape::Other, self.yielded()?));
        }
        self.expression_list()
    }

    fn import_from(&mut self) -> Option<u32> {
        self.next()?;
        let (mut dots, mut height) = (false, 2);
        while matches!(self.token, Token::Dot | Token::Ellipsis) {
            dots = true;
            height = 3;
            // Three dots are three nodes.
            self.nodes(if self.token == Token::Ellipsis { 2 } else { 0 });
            self.next()?;
        }
        self.nodes(if dots { 2 } else { 0 });
        if !dots || self.token != Token::Import {
            let name = self.lexer.text.get(self.start..self.lexer.end);
            if name.is_some_and(|name| name == b"__future__") {
                self.inexact();
            }
            self.dotted_name()?;
        }
        self.expect(Token::Import)?;
        match self.token {
            Token::Star => {
                self.nodes(1);
                self.next()?;
            }
            Token::Open => {
                self.next()?;
                height = height.max(self.imported(true)?);
                self.expect(Token::Close)?;
            }
            _ => height = height.max(self.imported(false)?),
        }
        Some(height)
    }

    fn imported(&mut self, bracketed: bool) -> Option<u32> {
        let mut height = 2;
        loop {
            self.dotted_name()?;
            if self.take(Token::As)? {
                self.nodes(1);
                height = 3;
                self.name()?;
            }
            let more = self.take(Token::Comma)?;
            if !more || (bracketed && self.token == Token::Close) {
                return Some(height);
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
