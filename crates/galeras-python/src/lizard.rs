//! Token count, lines of code and cyclomatic complexity as lizard 1.24.3 counts them.
//!
//! The counts use the tokens of `tokens`, not a syntax tree, so they also work on broken code.
//!
//! Surprising behaviour that is kept: a nested `def` and its name count in the outer function, its
//! body does not; a continuation line left of the body ends the function, and so does the body
//! itself if the signature continues on its own line after a `)` or within a return annotation; a
//! bare triple-quoted string is not a line of code, and neither is a literal part of a
//! triple-quoted f-string, unless a `return` or an operator precedes it; `case *x` is a keyword,
//! `case (x)` without a colon is a call.
//!
//! Faults of lizard that are not copied:
//! - a function on one line also includes what follows it until the next dedent. Here it ends with
//!   its logical line;
//! - `#lizard forgives` drops a function. Here it is a comment;
//! - `GENERATED CODE` in a comment ends the file. Here it is a comment.

use super::tokens::{Kind, Token, tokenize};

/// The size of one function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodeSize {
    /// Tokens from the name on, without white space and comments.
    pub token_count: i64,
    /// Lines with code: not blank lines, comments and docstrings. May fall below 1 where lizard
    /// subtracts the parts of a triple-quoted f-string.
    pub nloc: i64,
    /// 1 + the branching keywords (McCabe, as approximated by lizard).
    pub complexity: i64,
}

/// The size of the first function of `text` by position; `None` without one.
///
/// A function whose signature or body is cut off counts as far as it goes (lizard does not list
/// it). Counts equal those of lizard 1.24.3 except for the faults at the top of this file.
pub fn size(text: &str) -> Option<CodeSize> {
    let mut counter = Counter {
        functions: vec![Function::default()],
        nesting: vec![IndentLevel::default()],
        current: GLOBAL,
        pending: None,
        first: None,
        state: State::Global,
        brackets: 0,
        lambda_heads: 0,
        new_line: 1,
        last: Kind::Other,
        case_is_keyword: false,
        inline: OneLineState::No,
        inline_depth: 0,
    };
    counter.run(&tokenize(text));
    counter.functions.get(counter.first?).map(|function| function.size)
}

/// Index of the pseudo function for code outside functions.
const GLOBAL: usize = 0;

#[derive(Default)]
struct Function {
    size: CodeSize,
    /// lizard's test for "not in a signature": the last token of name and signature is `)`.
    closed: bool,
}

#[derive(Default)]
struct IndentLevel {
    indent: u32,
    function: Option<usize>,
    around: usize,
}

/// States of lizard's reader of function heads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Global,
    Name,
    TypeParameters,
    Parameters,
    Default,
    Annotation,
    Colon,
    FirstLine,
}

/// The position in a function that may be written on one line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OneLineState {
    No,
    /// Between `)` and the colon of the signature.
    BeforeColon,
    AfterColon,
    /// In a body on the line of the colon.
    Body,
}

struct Counter {
    functions: Vec<Function>,
    nesting: Vec<IndentLevel>,
    current: usize,
    /// A function whose body has not begun.
    pending: Option<usize>,
    first: Option<usize>,
    state: State,
    brackets: i64,
    lambda_heads: i64,
    /// 1 until a token is seen on the line.
    new_line: i64,
    last: Kind,
    case_is_keyword: bool,
    inline: OneLineState,
    inline_depth: i64,
}

impl Counter {
    fn run(&mut self, tokens: &[Token]) {
        let mut leading: Option<u32> = Some(0);
        let mut statement_start = true;
        // Tokens before this index were looked ahead at and do not start a statement.
        let mut seen = 0;
        for (index, token) in tokens.iter().enumerate() {
            if index >= seen {
                match token.kind {
                    Kind::Newline => statement_start = true,
                    Kind::Space => {}
                    Kind::Case | Kind::Match if statement_start => {
                        let (keyword, until) = soft_keyword(tokens, index);
                        if token.kind == Kind::Case {
                            self.case_is_keyword = keyword;
                        }
                        seen = until;
                        statement_start = false;
                    }
                    kind => {
                        if kind == Kind::Case {
                            self.case_is_keyword = false;
                        }
                        statement_start = false;
                    }
                }
            }
            match token.kind {
                Kind::Newline => {
                    leading = Some(0);
                    self.new_line = 1;
                    self.end_of_line();
                }
                Kind::Space => leading = leading.map(|width| width.saturating_add(token.size)),
                Kind::Comment => leading = None,
                _ => {
                    if let Some(indent) = leading.take() {
                        self.indent(indent, token.kind);
                    }
                    self.token(token);
                }
            }
        }
    }

    fn function(&mut self) -> &mut Function {
        // `current` always comes from a push; the global function is never removed.
        let index = self.current.min(self.functions.len().saturating_sub(1));
        &mut self.functions[index]
    }

    /// The first token of a line is `indent` columns to the right.
    fn indent(&mut self, indent: u32, kind: Kind) {
        if self.inline == OneLineState::Body || (self.current != GLOBAL && !self.function().closed)
        {
            return;
        }
        while kind != Kind::CloseParen
            && self.nesting.last().is_some_and(|nest| nest.indent > indent)
        {
            self.pending = None;
            if self.nesting.pop().is_some_and(|nest| nest.function.is_some()) {
                self.current = self.enclosing();
            }
        }
        if self.nesting.last().is_some_and(|nest| nest.indent < indent) {
            let function = self.pending.take();
            let around = function.unwrap_or_else(|| self.enclosing());
            self.nesting.push(IndentLevel { indent, function, around });
        }
    }

    fn enclosing(&self) -> usize {
        self.nesting.last().map_or(GLOBAL, |nest| nest.around)
    }

    fn end_of_line(&mut self) {
        match self.inline {
            OneLineState::AfterColon => self.inline = OneLineState::No,
            OneLineState::Body if self.inline_depth <= 0 => {
                self.inline = OneLineState::No;
                self.pending = None;
                self.current = self.enclosing();
                self.state = State::Global;
            }
            _ => {}
        }
    }

    fn token(&mut self, token: &Token) {
        let lines = i64::from(token.size) + self.new_line;
        self.new_line = 0;
        let case = token.kind == Kind::Case && self.case_is_keyword;
        let size = &mut self.function().size;
        size.nloc += lines;
        size.token_count += 1;
        size.complexity += i64::from(token.kind == Kind::Condition) + i64::from(case);
        if token.kind == Kind::Triple
            && self.state != State::FirstLine
            && !matches!(
                self.last,
                Kind::Assign
                    | Kind::Arithmetic
                    | Kind::OpenParen
                    | Kind::OpenBracket
                    | Kind::Comma
                    | Kind::Return
            )
        {
            self.function().size.nloc -= i64::from(token.size) + 1;
        }
        self.last = token.kind;
        self.follow_inline(token);
        self.step(token);
    }

    fn follow_inline(&mut self, token: &Token) {
        if token.interpolated {
            return;
        }
        if self.inline == OneLineState::AfterColon {
            self.inline = OneLineState::Body;
            self.inline_depth = 0;
        }
        match token.kind {
            Kind::OpenParen | Kind::OpenBracket | Kind::OpenBrace => self.inline_depth += 1,
            Kind::CloseParen | Kind::CloseBracket | Kind::CloseBrace => self.inline_depth -= 1,
            Kind::Colon if self.inline == OneLineState::BeforeColon && self.inline_depth == 0 => {
                self.inline = OneLineState::AfterColon;
            }
            _ => {}
        }
    }

    fn step(&mut self, token: &Token) {
        let kind = token.kind;
        match self.state {
            State::Global => self.global(kind),
            State::Name => match kind {
                Kind::OpenBracket => {
                    self.state = State::TypeParameters;
                    self.brackets = 0;
                    self.type_parameter(kind);
                }
                Kind::OpenParen => {
                    self.function().closed = false;
                    self.state = State::Parameters;
                }
                _ => self.start_function(kind),
            },
            State::TypeParameters => self.type_parameter(kind),
            State::Parameters => self.parameter(token),
            State::Default => {
                self.function().closed = kind == Kind::CloseParen;
                if !token.interpolated {
                    self.default_value(kind);
                }
            }
            State::Annotation => {
                self.function().closed = kind == Kind::CloseParen;
                if !token.interpolated {
                    self.brackets += square(kind);
                    if self.brackets == 0 {
                        self.state = State::Parameters;
                    }
                }
            }
            State::Colon => {
                self.state = match kind {
                    Kind::Colon => State::FirstLine,
                    _ => State::Global,
                };
            }
            State::FirstLine => {
                if kind == Kind::Triple {
                    self.function().size.nloc -= i64::from(token.size) + 1;
                }
                self.global(kind);
            }
        }
    }

    fn global(&mut self, kind: Kind) {
        self.state = match kind {
            Kind::Def => State::Name,
            _ => State::Global,
        };
    }

    fn start_function(&mut self, name: Kind) {
        let index = self.functions.len();
        // `def a b(`: lizard starts over at every name, so the last one is the function.
        if self.first.is_none() || self.first == self.pending {
            self.first = Some(index);
        }
        self.functions.push(Function {
            size: CodeSize { token_count: 1, nloc: 1, complexity: 1 },
            closed: name == Kind::CloseParen,
        });
        self.current = index;
        self.pending = Some(index);
    }

    fn type_parameter(&mut self, kind: Kind) {
        if matches!(kind, Kind::Def | Kind::Class) {
            self.brackets = 0;
            self.global(kind);
            return;
        }
        self.function().closed = kind == Kind::CloseParen;
        self.brackets += square(kind);
        if self.brackets == 0 {
            self.state = State::Name;
        }
    }

    fn parameter(&mut self, token: &Token) {
        let kind = token.kind;
        self.function().closed = kind == Kind::CloseParen;
        if token.interpolated {
            return;
        }
        match kind {
            Kind::CloseParen => {
                self.state = State::Colon;
                self.inline = OneLineState::BeforeColon;
                self.inline_depth = 0;
            }
            Kind::OpenBracket => {
                self.brackets = 1;
                self.state = State::Annotation;
            }
            Kind::OpenParen | Kind::OpenBrace | Kind::Lambda => {
                self.brackets = 0;
                self.lambda_heads = 0;
                self.state = State::Default;
                self.default_value(kind);
            }
            _ => {}
        }
    }

    fn default_value(&mut self, kind: Kind) {
        match kind {
            Kind::OpenParen | Kind::OpenBracket | Kind::OpenBrace => self.brackets += 1,
            Kind::CloseParen | Kind::CloseBracket | Kind::CloseBrace => self.brackets -= 1,
            Kind::Lambda if self.brackets == 0 => self.lambda_heads += 1,
            Kind::Colon if self.brackets == 0 && self.lambda_heads > 0 => self.lambda_heads -= 1,
            _ => {}
        }
        if self.brackets < 0 || (self.brackets == 0 && self.lambda_heads == 0) {
            self.state = State::Parameters;
        }
    }
}

fn square(kind: Kind) -> i64 {
    match kind {
        Kind::OpenBracket => 1,
        Kind::CloseBracket => -1,
        _ => 0,
    }
}

/// Returns whether the `case` or `match` at `index` is a keyword, and the index after the last token
/// that the decision used.
fn soft_keyword(tokens: &[Token], index: usize) -> (bool, usize) {
    let mut rest = tokens.iter().enumerate().skip(index + 1);
    let next = rest.find(|(_, token)| !matches!(token.kind, Kind::Newline | Kind::Space));
    let Some((at, next)) = next else {
        return (true, tokens.len());
    };
    match next.kind {
        Kind::Assign | Kind::Dot | Kind::Colon | Kind::Comma | Kind::Walrus => (false, at + 1),
        Kind::OpenParen | Kind::OpenBracket => {
            let mut depth = 1;
            for (at, token) in rest {
                match token.kind {
                    Kind::OpenParen | Kind::OpenBracket | Kind::OpenBrace => depth += 1,
                    Kind::CloseParen | Kind::CloseBracket | Kind::CloseBrace => depth -= 1,
                    Kind::Colon if depth == 0 => return (true, at + 1),
                    Kind::Newline if depth == 0 => return (false, at + 1),
                    _ => {}
                }
            }
            (false, tokens.len())
        }
        _ => (true, at + 1),
    }
}
