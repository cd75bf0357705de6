//! Parses Python modules as Python 3.13 does, with ruff's parser.
//!
//! ruff decides if a text is Python (`parses`) and where its definitions are (`methods`, `outline`);
//! tree-sitter gives the features of a syntax tree. Only ruff follows Python's own rules for line
//! ends in brackets, indents, soft keywords and formatted strings.
//!
//! ruff grows the stack where it recurses, but its tree is dropped by recursion without that. So
//! the depth of a text is first counted in its tokens, which takes no recursion.

use std::borrow::Cow;

use ruff_python_ast::token::TokenKind;
use ruff_python_ast::{ModModule, PythonVersion};
use ruff_python_parser::lexer::lex;
use ruff_python_parser::{Mode, ParseOptions, Parsed, parse_unchecked};

use super::parse::{MAX_BYTES, ParseError};

/// The version of Python whose grammar decides. The next one would accept `except A, e:` again,
/// with another meaning than that of Python 2.
const VERSION: PythonVersion = PythonVersion::PY313;

/// Limits of CPython's tokenizer: brackets, formatted strings and indents within each other.
const MAX_BRACKETS: usize = 200;
const MAX_STRINGS: usize = 149;
const MAX_INDENTS: usize = 99;

/// Operators within each other. CPython runs out of memory or recursion at 3,000 to 10,000 of them.
const MAX_OPERATORS: usize = 10_000;

/// Stack that dropping and walking one level of the tree takes at most, without optimisation.
const STACK_PER_LEVEL: usize = 1 << 10;

/// Levels of the tree for one bracket or formatted string, and for one block.
const LEVELS_PER_BRACKET: usize = 8;
const LEVELS_PER_BLOCK: usize = 4;

/// How deep a text nests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Nesting {
    brackets: usize,
    strings: usize,
    indents: usize,
    /// Bound of the operators and keywords within each other.
    operators: usize,
}

/// An open bracket or formatted string.
struct Opening {
    is_string: bool,
    /// Operators and keywords around and before it, and those that a comma does not end.
    before: usize,
    kept: usize,
}

impl Nesting {
    /// How deep `text` nests.
    ///
    /// # Errors
    /// [`ParseError::TooLarge`] if the text is longer than a parser accepts.
    pub(super) fn of(text: &str) -> Result<Self, ParseError> {
        if text.len() > MAX_BYTES {
            return Err(ParseError::TooLarge { bytes: text.len(), limit: MAX_BYTES });
        }
        let text = without_nul(text);
        let mut lexer = lex(&text, Mode::Module);
        let tokens = std::iter::from_fn(|| {
            let token = lexer.next_token();
            (token != TokenKind::EndOfFile).then_some(token)
        });
        Ok(Self::of_tokens(tokens))
    }

    fn of_tokens(tokens: impl Iterator<Item = TokenKind>) -> Self {
        use TokenKind as T;
        let mut most = Self::default();
        let (mut open, mut brackets, mut indents) = (Vec::<Opening>::new(), 0, 0_usize);
        // Of the innermost bracket: see `Opening`.
        let (mut operators, mut kept) = (0, 0);
        for token in tokens {
            match token {
                // A statement begins: brackets that are left open end.
                _ if token == T::Newline || begins_statement(token) => {
                    open.clear();
                    (brackets, operators, kept) = (0, 0, 0);
                }
                T::Indent => indents += 1,
                T::Dedent => indents = indents.saturating_sub(1),
                T::Lpar | T::Lsqb | T::Lbrace | T::FStringStart | T::TStringStart => {
                    let is_string = matches!(token, T::FStringStart | T::TStringStart);
                    brackets += usize::from(!is_string);
                    // Calls and subscripts follow each other like operators.
                    operators += 1;
                    open.push(Opening { is_string, before: operators, kept });
                    kept = operators;
                }
                T::Rpar | T::Rsqb | T::Rbrace | T::FStringEnd | T::TStringEnd => {
                    if let Some(opening) = open.pop() {
                        brackets -= usize::from(!opening.is_string);
                        (operators, kept) = (opening.before, opening.kept);
                    }
                }
                T::Comma | T::Semi => operators = kept,
                // Commas may belong to its parameters or values.
                T::Lambda | T::Yield => (operators, kept) = (operators + 1, kept + 1),
                // Side by side, or without anything below.
                T::Name | T::Int | T::Float | T::Complex | T::String | T::FStringMiddle => {}
                T::TStringMiddle | T::Comment | T::NonLogicalNewline | T::And | T::Or => {}
                T::True | T::False | T::None | T::Ellipsis | T::Unknown | T::EndOfFile => {}
                _ => operators += 1,
            }
            most.brackets = most.brackets.max(brackets);
            most.strings = most.strings.max(open.len() - brackets);
            most.indents = most.indents.max(indents);
            most.operators = most.operators.max(operators);
        }
        most
    }

    /// True if CPython's tokenizer rejects a text that nests so deep.
    pub(super) fn is_refused(&self) -> bool {
        self.brackets > MAX_BRACKETS || self.strings > MAX_STRINGS || self.indents > MAX_INDENTS
    }

    /// Bytes of stack that the tree of a text of `bytes` bytes may take. Blocks within each other are
    /// bounded by the text: each takes a line whose indent is longer than that of the one before.
    fn stack(&self, bytes: usize) -> usize {
        let blocks = (2 * bytes).isqrt();
        let levels = self.operators
            + LEVELS_PER_BRACKET * (self.brackets + self.strings)
            + LEVELS_PER_BLOCK * blocks;
        (64 << 10) + STACK_PER_LEVEL * levels
    }
}

fn without_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', " ").into() } else { text.into() }
}

/// True for words that are only at the beginning of statements.
fn begins_statement(token: TokenKind) -> bool {
    use TokenKind as T;
    matches!(
        token,
        T::Assert
            | T::Break
            | T::Class
            | T::Continue
            | T::Def
            | T::Del
            | T::Global
            | T::Import
            | T::Nonlocal
            | T::Pass
            | T::Raise
            | T::Return
            | T::Try
            | T::While
            | T::With
    )
}

/// The result of `read` for the module that `text` is, with its syntax errors. `nesting` is that of
/// the text. NUL, which ends tokens for the parser, is read as a blank.
///
/// # Errors
/// [`ParseError::TooComplex`] if the text nests too deep.
pub(super) fn with_module<R>(
    text: &str,
    nesting: Nesting,
    read: impl FnOnce(&Parsed<ModModule>) -> R,
) -> Result<R, ParseError> {
    if nesting.is_refused() || nesting.operators > MAX_OPERATORS {
        return Err(ParseError::TooComplex);
    }
    let text = without_nul(text);
    let options = ParseOptions::from(Mode::Module).with_target_version(VERSION);
    let parsed = parse_unchecked(&text, options);
    // After an error the parser may have split the text into other tokens.
    let nesting = Nesting::of_tokens(parsed.tokens().iter().map(|token| token.kind()));
    let stack = nesting.stack(text.len());
    stacker::maybe_grow(stack, stack, move || {
        let module = parsed.try_into_module().ok_or(ParseError::NoTree)?;
        Ok(read(&module))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nesting(text: &str) -> [usize; 4] {
        let Nesting { brackets, strings, indents, operators } = Nesting::of(text).unwrap();
        [brackets, strings, indents, operators]
    }

    #[test]
    fn nesting_is_counted_in_tokens() {
        assert_eq!(nesting("x"), [0, 0, 0, 0]);
        assert_eq!(nesting("f(g(x), [y])\nh(z)\n"), [2, 0, 0, 2]);
        assert_eq!(nesting("[-a, -b, -c]\n"), [1, 0, 0, 2]);
        assert_eq!(nesting("f'{a:{b}}'\n"), [2, 1, 0, 4]);
        assert_eq!(nesting("if x:\n  if y:\n    pass\n  z\n"), [0, 0, 2, 2]);
        assert_eq!(nesting("a.b.c()()\n"), [1, 0, 0, 4]);
        // What is left open ends with the next statement.
        assert_eq!(nesting("f([{\ndef g(): pass\n")[0], 3);
        assert_eq!(nesting(&"f(\ndef g(x): pass\n".repeat(1_000))[0], 1);
        // The parameters of a lambda do not end those around it.
        assert!(nesting(&format!("{}0\n", "lambda x, y: ".repeat(500)))[3] >= 500);
    }

    #[test]
    fn depth_takes_no_stack() {
        let deep = |open: &str| {
            let text = format!("x = {}1\n", open.repeat(9_000));
            Nesting::of(&text).and_then(|nesting| with_module(&text, nesting, |_| ()))
        };
        std::thread::Builder::new()
            .stack_size(256 << 10)
            .spawn(move || {
                for open in
                    ["-", "not ", "1 + ", "a.", "lambda: ", "1 if a else ", "2 ** ", "f()()."]
                {
                    let ended = deep(open);
                    assert!(matches!(ended, Ok(()) | Err(ParseError::TooComplex)), "{open}");
                }
                for open in ["(", "[", "{", "f(", "a[", "f'{"] {
                    assert_eq!(deep(open), Err(ParseError::TooComplex), "{open}");
                }
                // Blocks below an open bracket, which the tokens alone do not show.
                let blocks: String =
                    (0..1_500).map(|depth| format!("{}if x:\n", " ".repeat(depth))).collect();
                for text in [blocks.clone(), format!("f(\n{blocks}"), format!("def f(\n{blocks}")] {
                    let nesting = Nesting::of(&text).unwrap();
                    let _ = with_module(&text, nesting, |module| module.errors().len());
                }
            })
            .unwrap()
            .join()
            .unwrap();
    }
}
