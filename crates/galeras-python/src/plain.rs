//! Reads plain code without tree-sitter, ten times as fast.
//!
//! A recogniser for the unambiguous part of Python, which is most code. It returns what `features`
//! and `cut_points` need of the tree, or `None`; then tree-sitter parses the text.
//!
//! It must return `None` where tree-sitter finds an error, and otherwise must equal its tree. So it
//! leaves out everything that the two could read in different ways: words that are both names and
//! statements (`match`, `type`, `exec`, and `print` except in calls), `:=`, lines that end with a
//! comma, lines within brackets left of their block, f-strings with more than simple expressions,
//! `\N{…}`, non-ASCII letters outside strings, white space other than blanks, tabs and `\n`, and
//! deep nesting. Its nodes and levels equal those of the tree unless `exact` is false: with
//! expressions in f-strings, backslashes at the ends of lines or in raw strings, and types in
//! brackets. The tests compare it with tree-sitter on generated and adversarial programs, and on
//! every file of the standard library.

mod expressions;
mod lexer;

use self::expressions::{Branch, Reader, Shape};
use self::lexer::{Token, indent};
use super::parse::{BASE_OPS, OPS_PER_BYTE};

/// Longest text that is read, in bytes. For longer ones `parse` has a limit that does not grow with
/// the text.
const MAX_BYTES: usize = 1 << 20;

/// Wider indents are not plain; the parser counts them in 16 bits.
const MAX_INDENT: usize = 1000;

/// Depth of blocks; deeper ones are not plain.
const BLOCKS: usize = 40;

/// Parser operations per node of a tree without errors. Usual are 2.9; lists of names need up to 7.
const OPS_PER_NODE: usize = 8;

/// Half of `BASE_READ` and less than half of `READ_PER_BYTE` of `parse`; a text without long
/// comments needs up to 6 per byte.
const BASE_REREAD: usize = 2 << 20;
const REREAD_PER_BYTE: usize = 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Definition {
    pub(super) is_function: bool,
    pub(super) start: usize,
    /// After the colon of its signature.
    pub(super) colon: usize,
    /// Return statements, without those of nested definitions.
    pub(super) returns: usize,
}

pub(super) struct PlainCode {
    pub(super) definitions: Vec<Definition>,
    /// Upper bound of the nodes below the root.
    pub(super) nodes: usize,
    pub(super) height: u32,
    /// The tree has exactly this many nodes and levels.
    pub(super) exact: bool,
    pub(super) identifiers: Vec<(u32, u32)>,
    pub(super) parameters: Vec<(usize, usize)>,
}

/// The contents of a text if it is plain: then [`parse`](super::parse::PythonParser::parse) returns
/// a tree without errors and with these definitions.
pub(super) fn read_plain(text: &str) -> Option<PlainCode> {
    if text.len() > MAX_BYTES || text.contains('\0') || has_open_name(text) {
        return None;
    }
    let plain = read(text)?;
    // Far from the limits of `parse`.
    let within = plain.nodes * OPS_PER_NODE <= BASE_OPS + OPS_PER_BYTE * text.len()
        && reread(text) <= BASE_REREAD + REREAD_PER_BYTE * text.len();
    within.then_some(plain)
}

/// True if a text ends within the name of a character. The token ends at its brace, wherever that
/// is.
fn has_open_name(text: &str) -> bool {
    text.rfind("\\N{").is_some_and(|at| !text.get(at..).unwrap_or_default().contains('}'))
}

/// Bytes that the scanner may read more often than usual. It reads ahead over blank lines and
/// comments to the next code, again from each of them. If they all fit into the lexer's current
/// chunk, it takes no new one; else it takes at most two more, going back and forth.
fn reread(text: &str) -> usize {
    const AT_HAND: usize = 4000;
    const CHUNK: usize = 4096;
    let (mut sum, mut at) = (0, 0);
    let mut gap: Vec<usize> = Vec::new();
    for line in text.split_inclusive('\n').chain(["."]) {
        let first = line.bytes().find(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x0c));
        if matches!(first, None | Some(b'#' | b'\\')) {
            gap.push(at);
        } else {
            let far = gap.drain(..).map(|start| at - start).filter(|&bytes| bytes > AT_HAND);
            sum += far.map(|bytes| 2 * (bytes + 2 * CHUNK)).sum::<usize>();
        }
        at += line.len();
    }
    sum
}

fn read(text: &str) -> Option<PlainCode> {
    let statements = Statements {
        reader: Reader::new(text.as_bytes()),
        indent: 0,
        at_line: false,
        blocks: 0,
        definitions: Vec::new(),
        parameters: None,
    };
    statements.run()
}

struct Statements<'a> {
    reader: Reader<'a>,
    /// The indent of the next line of code; 0 at the end of the text.
    indent: usize,
    /// The next line of code is known, and its first token is the next one.
    at_line: bool,
    blocks: usize,
    definitions: Vec<Definition>,
    parameters: Option<Vec<(usize, usize)>>,
}

impl Statements<'_> {
    fn run(mut self) -> Option<PlainCode> {
        let height = self.block(0)?;
        let ended = self.reader.token == Token::End && !self.below(0)?;
        let lexer = self.reader.lexer;
        ended.then_some(PlainCode {
            definitions: self.definitions,
            nodes: lexer.nodes,
            // There may be only comments.
            height: 1 + height.max(u32::from(lexer.nodes > 0)),
            exact: lexer.exact,
            identifiers: lexer.identifiers,
            parameters: self.parameters.unwrap_or_default(),
        })
    }

    fn find_line(&mut self) -> Option<()> {
        if self.at_line {
            return Some(());
        }
        let lexer = &mut self.reader.lexer;
        let ended = lexer.end;
        loop {
            let (width, first) = indent(lexer.text, lexer.at);
            match lexer.text.get(first) {
                None => {
                    self.indent = 0;
                    lexer.at = first;
                    break;
                }
                Some(b'\n') => lexer.at = first + 1,
                Some(b'#') => {
                    lexer.at = first;
                    lexer.comment()?;
                    lexer.at = lexer.text.len().min(lexer.at + 1);
                }
                Some(_) if width > MAX_INDENT => return None,
                Some(b'\\') => return None,
                Some(_) => {
                    self.indent = width;
                    lexer.at = first;
                    break;
                }
            }
        }
        lexer.end = ended;
        let (token, start) = self.reader.lexer.token()?;
        self.reader.end = ended;
        (self.reader.token, self.reader.start) = (token, start);
        self.at_line = true;
        Some(())
    }

    /// True if the next line of code is outside the block with this indent.
    fn below(&mut self, indent: usize) -> Option<bool> {
        self.find_line()?;
        let below = self.indent < indent;
        (below || self.indent == indent).then_some(below)
    }

    /// The statements of a block; returns the levels of the highest.
    fn block(&mut self, indent: usize) -> Option<u32> {
        self.blocks += 1;
        if self.blocks > BLOCKS {
            return None;
        }
        let mut height = 0;
        while !self.below(indent)? && self.reader.token != Token::End {
            self.reader.lexer.indent = indent;
            height = height.max(self.statement(indent)?);
        }
        self.blocks -= 1;
        Some(height)
    }

    /// A colon and its block; returns its levels.
    fn suite(&mut self, indent: usize) -> Option<u32> {
        self.reader.expect(Token::Colon)?;
        self.reader.nodes(1);
        if self.reader.token != Token::Newline {
            return Some(1 + self.reader.simple_statements()?);
        }
        self.at_line = false;
        self.find_line()?;
        let inner = self.indent;
        if inner <= indent || self.reader.token == Token::End {
            return None;
        }
        Some(1 + self.block(inner)?)
    }

    /// True if the next line of the block with this indent starts with `word`.
    fn clause(&mut self, indent: usize, word: Token) -> Option<bool> {
        if self.below(indent)? || self.reader.token != word {
            return Some(false);
        }
        self.reader.lexer.indent = indent;
        self.at_line = false;
        self.reader.nodes(1);
        self.reader.next()?;
        Some(true)
    }

    fn statement(&mut self, indent: usize) -> Option<u32> {
        self.at_line = false;
        let start = self.reader.start;
        let height = match self.reader.token {
            Token::If => {
                self.reader.next()?;
                let mut height = self.reader.expression()?.height;
                height = height.max(self.suite(indent)?);
                while self.clause(indent, Token::Elif)? {
                    height = height.max(1 + self.reader.expression()?.height);
                    height = height.max(1 + self.suite(indent)?);
                }
                height.max(self.otherwise(indent)?)
            }
            Token::While => {
                self.reader.next()?;
                let height = self.reader.expression()?.height;
                height.max(self.suite(indent)?).max(self.otherwise(indent)?)
            }
            Token::For => self.for_loop(indent)?,
            Token::With => self.with(indent)?,
            Token::Try => self.attempt(indent)?,
            Token::At => self.decorated(indent)?,
            Token::Async => {
                self.reader.next()?;
                match self.reader.token {
                    Token::Def => self.definition(indent, start)?,
                    Token::For => self.for_loop(indent)?,
                    Token::With => self.with(indent)?,
                    _ => return None,
                }
            }
            Token::Def | Token::Class => self.definition(indent, start)?,
            _ => return self.reader.simple_statements(),
        };
        self.reader.nodes(1);
        Some(1 + height)
    }

    /// The levels of an `else`, 0 without one.
    fn otherwise(&mut self, indent: usize) -> Option<u32> {
        if self.clause(indent, Token::Else)? {
            return Some(1 + self.suite(indent)?);
        }
        Some(0)
    }

    fn for_loop(&mut self, indent: usize) -> Option<u32> {
        self.reader.expect(Token::For)?;
        let targets = self.reader.targets()?;
        self.reader.expect(Token::In)?;
        let height = targets.max(self.reader.expression_list()?.height);
        Some(height.max(self.suite(indent)?).max(self.otherwise(indent)?))
    }

    fn with(&mut self, indent: usize) -> Option<u32> {
        self.reader.expect(Token::With)?;
        self.reader.nodes(1);
        if self.reader.token == Token::Open {
            // The brackets may belong to the expression or to the statement.
            return None;
        }
        let mut height = 0;
        loop {
            self.reader.nodes(1);
            let mut item = self.reader.expression()?.height;
            if self.reader.take(Token::As)? {
                self.reader.nodes(2);
                let target = self.reader.expression()?;
                if target.shape == Shape::Other {
                    return None;
                }
                item = 1 + item.max(1 + target.height);
            }
            // The item, and the clause around all items.
            height = height.max(2 + item);
            if !self.reader.take(Token::Comma)? {
                return Some(height.max(self.suite(indent)?));
            }
        }
    }

    fn attempt(&mut self, indent: usize) -> Option<u32> {
        self.reader.expect(Token::Try)?;
        let mut height = self.suite(indent)?;
        let mut caught = false;
        while self.clause(indent, Token::Except)? {
            caught = true;
            if self.reader.token != Token::Colon {
                let mut value = self.reader.expression()?.height;
                if self.reader.take(Token::As)? {
                    self.reader.nodes(2);
                    self.reader.name()?;
                    value = 1 + value.max(2);
                } else if self.reader.take(Token::Comma)? {
                    self.reader.inexact();
                    self.reader.name()?;
                }
                height = height.max(1 + value);
            }
            height = height.max(1 + self.suite(indent)?);
        }
        if caught {
            height = height.max(self.otherwise(indent)?);
        }
        if self.clause(indent, Token::Finally)? {
            height = height.max(1 + self.suite(indent)?);
        } else if !caught {
            return None;
        }
        Some(height)
    }

    fn decorated(&mut self, indent: usize) -> Option<u32> {
        let mut height = 0;
        while self.reader.take(Token::At)? {
            self.reader.nodes(1);
            height = height.max(1 + self.reader.expression()?.height);
            if self.reader.token != Token::Newline {
                return None;
            }
            self.at_line = false;
            if self.below(indent)? {
                return None;
            }
            self.at_line = false;
        }
        let start = self.reader.start;
        if self.reader.token == Token::Async {
            self.reader.next()?;
            if self.reader.token != Token::Def {
                return None;
            }
        }
        match self.reader.token {
            Token::Def | Token::Class => {
                self.reader.nodes(1);
                Some(height.max(1 + self.definition(indent, start)?))
            }
            _ => None,
        }
    }

    fn definition(&mut self, indent: usize, start: usize) -> Option<u32> {
        let is_function = self.reader.token == Token::Def;
        self.reader.next()?;
        self.reader.name()?;
        let place = self.definitions.len();
        // The end of the signature and the returns are set later.
        let definition = Definition { is_function, start, colon: start, returns: 0 };
        self.definitions.push(definition);
        let mut height = 1;
        if is_function {
            let mut names = Vec::new();
            height = self.reader.parameters(&mut names)?;
            self.parameters.get_or_insert(names);
            if self.reader.take(Token::Arrow)? {
                height = height.max(self.reader.annotation()?);
            }
        } else if self.reader.token == Token::Open {
            height = self.reader.arguments()?;
        }
        if self.reader.token == Token::Colon {
            self.definitions.get_mut(place)?.colon = self.reader.lexer.end;
        }
        let outer = std::mem::take(&mut self.reader.returns);
        height = height.max(self.suite(indent)?);
        self.definitions.get_mut(place)?.returns =
            std::mem::replace(&mut self.reader.returns, outer);
        Some(height)
    }
}

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
            self.comma_or(Token::Close)?;
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
                Token::Newline | Token::End => return Some(height),
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

#[cfg(test)]
mod tests;
