//! Expressions of plain code, by recursive descent.
//!
//! Accepts what both Python and tree-sitter's grammar accept. No tree is built: every rule counts
//! the nodes of its tree, without those of its tokens, and returns its levels.

use super::lexer::{Lexer, Token};

/// Depth of expressions and types; deeper ones are not plain.
const DEPTH: usize = 40;

/// The same for operands: `a ** b ** c` is right-associative.
const OPERANDS: usize = 400;

/// The shape of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A name.
    Word,
    /// Something else that can be assigned to.
    Pattern,
    Other,
}

impl Shape {
    pub(super) fn assignable(self) -> bool {
        self != Self::Other
    }
}

/// The node of an expression.
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

/// Expressions between commas.
#[derive(Clone, Copy)]
pub(super) struct Listed {
    pub(super) shape: Shape,
    /// The levels of the highest.
    pub(super) height: u32,
    /// There is a comma.
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
            if !self.take(Token::Comma)? && self.token != Token::Colon {
                return None;
            }
        }
        self.next()?;
        let body = self.expression()?;
        Some(Branch::new(Shape::Other, 1 + height.max(body.height)))
    }

    /// Any expression except a lambda and a conditional.
    pub(super) fn disjunction(&mut self) -> Option<Branch> {
        let mut branch = self.conjunction()?;
        while self.take(Token::Or)? {
            self.nodes(1);
            branch = branch.with(self.conjunction()?);
        }
        Some(branch)
    }

    fn conjunction(&mut self) -> Option<Branch> {
        let mut branch = self.inversion()?;
        while self.take(Token::And)? {
            self.nodes(1);
            branch = branch.with(self.inversion()?);
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
    pub(super) fn expressions(&mut self) -> Option<Listed> {
        let Branch { shape, mut height } = self.expression()?;
        if self.token != Token::Comma {
            return Some(Listed { shape, height, many: false });
        }
        let mut patterns = shape.assignable();
        while self.take(Token::Comma)? {
            if patterns && self.token == Token::Assign {
                break;
            }
            let next = self.expression()?;
            patterns &= next.shape.assignable();
            height = height.max(next.height);
        }
        let shape = if patterns { Shape::Pattern } else { Shape::Other };
        Some(Listed { shape, height, many: true })
    }

    /// The same, with a node around several.
    pub(super) fn expression_list(&mut self) -> Option<Branch> {
        let listed = self.expressions()?;
        Some(self.around(listed))
    }

    /// Counts the node around several expressions.
    pub(super) fn around(&mut self, listed: Listed) -> Branch {
        self.nodes(usize::from(listed.many));
        Branch::new(listed.shape, listed.height + u32::from(listed.many))
    }

    /// The levels of a `yield`.
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
