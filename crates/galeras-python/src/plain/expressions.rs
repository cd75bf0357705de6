//! Expressions of plain code, by recursive descent.
//!
//! Accepts what both Python and tree-sitter's grammar accept. No tree is built: every rule counts
//! the nodes of its tree, without those of its tokens, and returns its levels.

use super::lexer::{Lexer, Token};

/// Depth of expressions and types; deeper ones are not plain.
const DEPTH: usize = 40;

/// The same for operands: `a ** b ** c` is right-associative.
const OPERANDS: usize = 400;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Word,
    /// Something else that can be assigned to.
    Pattern,
    Other,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Branch {
    pub(super) shape: Shape,
    pub(super) height: u32,
}

impl Branch {
    pub(super) fn new(shape: Shape, height: u32) -> Self {
        Self { shape, height }
    }

    /// A node around this one and another.
    fn with(self, other: Self) -> Self {
        Self::new(Shape::Other, 1 + self.height.max(other.height))
    }
}

#[derive(Clone, Copy)]
pub(super) struct ExpressionList {
    pub(super) shape: Shape,
    pub(super) height: u32,
    pub(super) many: bool,
}

/// Reads tokens with one token of look-ahead.
pub(super) struct Reader<'a> {
    pub(super) lexer: Lexer<'a>,
    /// The next token and its start.
    pub(super) token: Token,
    pub(super) start: usize,
    /// The end of the token or comment before it.
    pub(super) end: usize,
    /// Return statements of the innermost definition.
    pub(super) returns: usize,
    depth: usize,
    operands: usize,
}

/// The nodes of a text that is a single expression; `None` if it is not plain.
fn nodes_of_expression(text: &[u8]) -> Option<usize> {
    let mut reader = Reader::new(text);
    reader.next()?;
    reader.expression()?;
    (reader.token == Token::End).then_some(reader.lexer.nodes)
}

/// Binding strength of operators, as in Python, except that the grammar binds `^` tighter than `&`.
const UNARY: u8 = 7;
const POWER: u8 = 8;

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        let lexer = Lexer::new(text, nodes_of_expression);
        Self { lexer, token: Token::Newline, start: 0, end: 0, returns: 0, depth: 0, operands: 0 }
    }

    pub(super) fn next(&mut self) -> Option<()> {
        self.end = self.lexer.end;
        (self.token, self.start) = self.lexer.token()?;
        Some(())
    }

    pub(super) fn nodes(&mut self, more: usize) {
        self.lexer.nodes += more;
    }

    /// Records that the tree may have fewer nodes than counted.
    pub(super) fn inexact(&mut self) {
        self.lexer.exact = false;
    }

    /// Takes the token if it is of this kind; returns whether it did.
    pub(super) fn take(&mut self, token: Token) -> Option<bool> {
        let is = self.token == token;
        if is {
            self.next()?;
        }
        Some(is)
    }

    /// Takes a comma, which may be missing before `end`; returns whether it did.
    pub(super) fn comma_or(&mut self, end: Token) -> Option<bool> {
        let comma = self.take(Token::Comma)?;
        (comma || self.token == end).then_some(comma)
    }

    pub(super) fn expect(&mut self, token: Token) -> Option<()> {
        if self.token == token { self.next() } else { None }
    }

    /// A name that is not a keyword in any reading.
    pub(super) fn name(&mut self) -> Option<()> {
        match self.token {
            Token::Name | Token::Soft => self.next(),
            _ => None,
        }
    }

    /// An expression without `:=`, which is not plain.
    pub(super) fn expression(&mut self) -> Option<Branch> {
        self.deeper()?;
        let branch = if self.token == Token::Lambda {
            self.lambda()?
        } else {
            let branch = self.disjunction()?;
            if self.take(Token::If)? {
                self.nodes(1);
                let condition = self.disjunction()?;
                self.expect(Token::Else)?;
                let otherwise = self.expression()?;
                let height = branch.height.max(condition.height).max(otherwise.height);
                Branch::new(Shape::Other, 1 + height)
            } else {
                branch
            }
        };
        self.back();
        Some(branch)
    }

    /// Enters a recursive rule, unless it is too deep.
    pub(super) fn deeper(&mut self) -> Option<()> {
        self.depth += 1;
        (self.depth <= DEPTH).then_some(())
    }

    pub(super) fn back(&mut self) {
        self.depth -= 1;
    }

    fn lambda(&mut self) -> Option<Branch> {
        self.expect(Token::Lambda)?;
        self.nodes(1);
        let mut height = 1;
        if self.token != Token::Colon {
            self.nodes(1);
            height = 2;
        }
        while self.token != Token::Colon {
            match self.token {
                Token::Star | Token::Stars => {
                    self.nodes(1);
                    self.next()?;
                    self.name()?;
                    height = height.max(3);
                }
                _ => {
                    self.name()?;
                    if self.take(Token::Assign)? {
                        self.nodes(1);
                        height = height.max(2 + self.expression()?.height);
                    }
                }
            }
            self.comma_or(Token::Colon)?;
        }
        self.next()?;
        let body = self.expression()?;
        Some(Branch::new(Shape::Other, 1 + height.max(body.height)))
    }

    /// Any expression except a lambda and a conditional.
    pub(super) fn disjunction(&mut self) -> Option<Branch> {
        self.joined(Token::Or, |reader| reader.joined(Token::And, Self::inversion))
    }

    /// Parts with this word between them.
    fn joined(
        &mut self,
        word: Token,
        part: impl Fn(&mut Self) -> Option<Branch>,
    ) -> Option<Branch> {
        let mut branch = part(self)?;
        while self.take(word)? {
            self.nodes(1);
            branch = branch.with(part(self)?);
        }
        Some(branch)
    }

    fn inversion(&mut self) -> Option<Branch> {
        let mut inversions = 0;
        while self.take(Token::Not)? {
            self.nodes(1);
            inversions += 1;
        }
        let mut branch = self.comparison()?;
        if inversions > 0 {
            branch = Branch::new(Shape::Other, inversions + branch.height);
        }
        Some(branch)
    }

    fn comparison(&mut self) -> Option<Branch> {
        let first = self.operand()?;
        let (mut height, mut compared) = (first.height, false);
        loop {
            match self.token {
                Token::Compare | Token::In => self.next()?,
                Token::Is => {
                    self.next()?;
                    if self.take(Token::Not)? {
                        self.nodes(1);
                        height = height.max(2);
                    }
                }
                Token::Not => {
                    self.next()?;
                    self.expect(Token::In)?;
                    self.nodes(1);
                    height = height.max(2);
                }
                _ if compared => return Some(Branch::new(Shape::Other, 1 + height)),
                _ => return Some(first),
            }
            self.nodes(usize::from(!compared));
            compared = true;
            height = height.max(self.operand()?.height);
        }
    }

    /// Operands of comparisons: sums, products and the like.
    pub(super) fn operand(&mut self) -> Option<Branch> {
        self.tied(0)
    }

    /// Operands whose operators bind at least this tightly.
    fn tied(&mut self, least: u8) -> Option<Branch> {
        self.operands += 1;
        if self.operands > OPERANDS {
            return None;
        }
        let mut branch = self.signed()?;
        while let Some(tie) = self.tie().filter(|tie| *tie >= least) {
            self.next()?;
            self.nodes(1);
            // Powers are right-associative.
            let right = self.tied(if tie == POWER { tie } else { tie + 1 })?;
            branch = branch.with(right);
        }
        self.operands -= 1;
        Some(branch)
    }

    /// Binding strength of the next token, if it is a binary operator.
    fn tie(&self) -> Option<u8> {
        let byte = |at: usize| self.lexer.text.get(at).copied().unwrap_or_default();
        Some(match self.token {
            Token::Binary => match byte(self.start) {
                b'|' => 1,
                b'&' => 2,
                b'^' => 3,
                b'<' | b'>' => 4,
                _ => 6,
            },
            Token::Sign => 5,
            Token::At | Token::Star | Token::Slash => 6,
            Token::Stars => POWER,
            _ => return None,
        })
    }

    fn signed(&mut self) -> Option<Branch> {
        let mut signs = 0;
        while matches!(self.token, Token::Sign | Token::Tilde) {
            self.next()?;
            self.nodes(1);
            signs += 1;
        }
        if signs == 0 {
            return self.primary();
        }
        // After the sign; its operand has no sign.
        let operand = self.tied(UNARY + 1)?;
        Some(Branch::new(Shape::Other, signs + operand.height))
    }

    pub(super) fn primary(&mut self) -> Option<Branch> {
        if self.take(Token::Await)? {
            self.nodes(1);
            self.deeper()?;
            let awaited = self.primary()?;
            self.back();
            if self.token == Token::Stars {
                self.inexact();
            }
            return Some(Branch::new(Shape::Other, 1 + awaited.height));
        }
        let mut branch = self.atom()?;
        loop {
            match self.token {
                Token::Dot => {
                    self.next()?;
                    self.nodes(1);
                    match self.token {
                        Token::Name | Token::Soft | Token::Print | Token::Exec => self.next()?,
                        _ => return None,
                    }
                    branch = Branch::new(Shape::Pattern, 1 + branch.height);
                }
                Token::Open => {
                    let arguments = self.arguments()?;
                    self.nodes(1);
                    branch = Branch::new(Shape::Other, 1 + branch.height.max(arguments));
                }
                Token::OpenSquare => {
                    let subscripts = self.subscript()?;
                    branch = Branch::new(Shape::Pattern, 1 + branch.height.max(subscripts));
                }
                _ => return Some(branch),
            }
        }
    }

    /// Expressions between commas. A trailing comma is accepted only before an assignment, as the
    /// list may continue.
    pub(super) fn expressions(&mut self) -> Option<ExpressionList> {
        let Branch { shape, mut height } = self.expression()?;
        if self.token != Token::Comma {
            return Some(ExpressionList { shape, height, many: false });
        }
        let mut patterns = shape != Shape::Other;
        while self.take(Token::Comma)? {
            if patterns && self.token == Token::Assign {
                break;
            }
            let next = self.expression()?;
            patterns &= next.shape != Shape::Other;
            height = height.max(next.height);
        }
        let shape = if patterns { Shape::Pattern } else { Shape::Other };
        Some(ExpressionList { shape, height, many: true })
    }

    /// The same, with a node around several.
    pub(super) fn expression_list(&mut self) -> Option<Branch> {
        let listed = self.expressions()?;
        Some(self.around(listed))
    }

    /// Counts the node around several expressions.
    pub(super) fn around(&mut self, listed: ExpressionList) -> Branch {
        self.nodes(usize::from(listed.many));
        Branch::new(listed.shape, listed.height + u32::from(listed.many))
    }

    pub(super) fn yielded(&mut self) -> Option<u32> {
        self.expect(Token::Yield)?;
        self.nodes(1);
        let height = if self.take(Token::From)? {
            self.expression()?.height
        } else if matches!(
            self.token,
            Token::Newline | Token::End | Token::Semicolon | Token::Close
        ) {
            1
        } else {
            self.expression_list()?.height
        };
        Some(1 + height)
    }
}

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
            patterns &= element.shape != Shape::Other;
            count += 1;
            if count == 1 && !stars && matches!(self.token, Token::For | Token::Async) {
                height = height.max(self.comprehension()?);
                self.expect(close)?;
                return Some(Branch::new(Shape::Other, 1 + height));
            }
            comma = self.comma_or(close)?;
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
            self.comma_or(Token::CloseBrace)?;
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
            if target.shape == Shape::Other {
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
            self.comma_or(Token::Close)?;
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
