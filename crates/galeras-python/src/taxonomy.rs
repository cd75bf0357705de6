//! Counts the tokens of Python text by the categories of Galeras' token taxonomy.
//!
//! The tokens are Python's, not lizard's (`tokens`), which do not keep their text. No tree is
//! needed, so cut or broken code works. Time is linear in the text, without allocation.
//!
//! # The categories
//! The paper (Rodriguez-Cardenas et al., "Benchmarking Causal Study to Interpret Large Language
//! Models for Source Code", ICSME 2023) names ten categories. Their members are in the function
//! `token_taxonomy` of `notebooks/exploratory_analysis_bpe_distribution.ipynb` in
//! WM-SEMERU/galeras-benchmark (commit fe38790), an adapted list for Java. [`taxonomy`] adapts it
//! to Python and gives each token one category:
//!
//! | category | published, kept | added here |
//! |---|---|---|
//! | `blocks` | `{ } [ ] ( ) :` `return` `pass` | `yield` `with` |
//! | `exceptions` | `try` `except` `finally` `raise` | |
//! | `oop` | `class` | |
//! | `tests` | `assert` | |
//! | `declaration` | `import` `from` `await` `async` | `def` `lambda` `global` `nonlocal` `del` `as` |
//! | `conditional` | `if` `else` `case` | `elif` `match` |
//! | `loops` | `for` `while` `break` `continue` | |
//! | `operators` | `= + - * / % == != >= <= ~ << >> & ^ \|` | `< > ** //` `:=`, augmented assignments, `and or not in is` |
//! | `casting` | `int` `float` `str` | `bool` `bytes` `bytearray` `complex` `list` `tuple` `dict` `set` `frozenset` |
//! | `extra_tokens` | `@` `...` `None` `True` `False` | |
//!
//! - Published in two categories, here in one: `:` (blocks, operators), `import` and `from` (oop,
//!   declarations), `break` (declarations, loops).
//! - Left out: names with a meaning only in Java, such as `this` and `default`; in Python they are
//!   identifiers. `none`, `true`, `false` are spelled as in Python.
//! - In no category: identifiers, numbers, strings, `,` `.` `;` `->`, comments, white space. An
//!   f-string is one string (as in Python's `tokenize` up to 3.11). The published list has line
//!   ends, but they never counted: byte-level BPE spells them `Ċ`.
//! - A token counts by its spelling: the `else` of a loop is a conditional, the `in` of `for` and
//!   the `*` of `*args` are operators, a `@` that multiplies is an extra token. Two exceptions: the
//!   name of a type after a dot is an attribute, as in `frame.str`; `match` and `case` are keywords
//!   only before a statement with a block.
//!
//! # The published lists
//! They were matched against the tokens of a BPE model of 1,024 entries. So keywords counted within
//! comments, strings and prose, with or without a space before them; `async`, listed as `" async"`,
//! never did. [`taxonomy_published`] applies them to Python's tokens.

use super::scan::{string_end, word_end};

/// The categories, in the paper's order, which is also the order of the counts.
pub const CATEGORIES: [&str; 10] = [
    "blocks",
    "exceptions",
    "oop",
    "tests",
    "declaration",
    "conditional",
    "loops",
    "operators",
    "casting",
    "extra_tokens",
];

const BLOCKS: usize = 0;
const EXCEPTIONS: usize = 1;
const OOP: usize = 2;
const TESTS: usize = 3;
const DECLARATION: usize = 4;
const CONDITIONAL: usize = 5;
const LOOPS: usize = 6;
const OPERATORS: usize = 7;
const CASTING: usize = 8;
const EXTRA: usize = 9;

/// The number of tokens of `text` in each of [`CATEGORIES`]. A token counts at most once. Source:
/// `token_taxonomy` of WM-SEMERU/galeras-benchmark, adapted to Python as described at the top of
/// this file.
///
/// `text` need not be complete: an unclosed string ends with its line, a triple-quoted one with the
/// text. Inside an unclosed bracket `match` and `case` count as names.
pub fn taxonomy(text: &str) -> [u64; 10] {
    let mut counts = [0; 10];
    let mut soft = SoftKeyword::default();
    let mut after_dot = false;
    for token in (Scanner { text, at: 0 }) {
        counts[CONDITIONAL] += u64::from(soft.confirmed_by(&token));
        let category = match token {
            Token::Word(word) => {
                category_of_word(word).filter(|&category| category != CASTING || !after_dot)
            }
            Token::Symbol(symbol) => category_of_symbol(symbol),
            Token::Literal | Token::Newline => None,
        };
        if let Some(category) = category {
            counts[category] += 1;
        }
        after_dot = matches!(token, Token::Symbol(b"."));
    }
    counts
}

/// As [`taxonomy`], with the lists exactly as published: Java's names count, `import`, `from`,
/// `break` and `:` count twice, and unlisted tokens (`elif`, `def`, `and`, `<`, `None`, ...) do not
/// count.
///
/// This does not reproduce the paper's numbers, which count pieces of a BPE model: see
/// [`taxonomy_of_tokens`].
pub fn taxonomy_published(text: &str) -> [u64; 10] {
    let mut counts = [0; 10];
    for token in (Scanner { text, at: 0 }) {
        let categories: &[usize] = match token {
            Token::Word(word) => published_word(word),
            Token::Symbol(symbol) => published_symbol(symbol),
            Token::Literal | Token::Newline => &[],
        };
        for &category in categories {
            counts[category] += 1;
        }
    }
    counts
}

/// As [`taxonomy`] or, if `published`, [`taxonomy_published`], of the tokens of a tokenizer, with or
/// without a space before them. Such a token counts if it is a member of a list as a whole, within
/// comments and strings as well: this is how the paper counted. `match` and `case` are mostly names
/// there, and count only as published.
pub fn taxonomy_of_tokens<'t>(
    tokens: impl IntoIterator<Item = &'t str>,
    published: bool,
) -> [u64; 10] {
    let mut counts = [0; 10];
    for token in tokens {
        let token = token.trim_start_matches(['Ġ', '▁', ' ']);
        let bytes = token.as_bytes();
        let Some(first) = bytes.first() else { continue };
        let is_word = first.is_ascii_alphanumeric() || *first == b'_' || !first.is_ascii();
        if !is_word && symbol_len(bytes) != bytes.len() {
            continue;
        }
        if !published {
            let category =
                if is_word { category_of_word(bytes) } else { category_of_symbol(bytes) };
            category.into_iter().for_each(|category| counts[category] += 1);
            continue;
        }
        // Listed as `" async"`, which no tokenizer writes.
        let categories: &[usize] = match is_word {
            true if bytes == b"async" => &[],
            true => published_word(bytes),
            false => published_symbol(bytes),
        };
        categories.iter().for_each(|category| counts[*category] += 1);
    }
    counts
}

fn category_of_word(word: &[u8]) -> Option<usize> {
    Some(match word {
        b"return" | b"pass" | b"yield" | b"with" => BLOCKS,
        b"try" | b"except" | b"finally" | b"raise" => EXCEPTIONS,
        b"class" => OOP,
        b"assert" => TESTS,
        b"import" | b"from" | b"await" | b"async" | b"def" | b"lambda" | b"global"
        | b"nonlocal" | b"del" | b"as" => DECLARATION,
        b"if" | b"else" | b"elif" => CONDITIONAL,
        b"for" | b"while" | b"break" | b"continue" => LOOPS,
        b"and" | b"or" | b"not" | b"in" | b"is" => OPERATORS,
        b"int" | b"float" | b"str" | b"bool" | b"bytes" | b"bytearray" | b"complex" | b"list"
        | b"tuple" | b"dict" | b"set" | b"frozenset" => CASTING,
        b"None" | b"True" | b"False" => EXTRA,
        _ => return None,
    })
}

fn category_of_symbol(symbol: &[u8]) -> Option<usize> {
    match symbol {
        b"{" | b"}" | b"[" | b"]" | b"(" | b")" | b":" => Some(BLOCKS),
        b"@" | b"..." => Some(EXTRA),
        b"," | b"." | b";" | b"->" => None,
        // `!`, `$`, `?` and other characters that are not tokens of Python.
        [byte] if !b"=+-*/%~&^|<>".contains(byte) => None,
        _ => Some(OPERATORS),
    }
}

fn published_word(word: &[u8]) -> &'static [usize] {
    match word {
        b"return" | b"pass" => &[BLOCKS],
        b"except" | b"try" | b"finally" | b"raise" => &[EXCEPTIONS],
        b"class" | b"instanceof" | b"interface" | b"abstract" | b"extends" | b"this" => &[OOP],
        b"import" | b"from" => &[OOP, DECLARATION],
        b"assert" => &[TESTS],
        b"synchronized" | b"await" | b"volatile" | b"final" | b"enum" | b"async" => &[DECLARATION],
        b"break" => &[DECLARATION, LOOPS],
        b"else" | b"if" | b"switch" | b"case" | b"default" => &[CONDITIONAL],
        b"do" | b"for" | b"while" | b"continue" => &[LOOPS],
        b"byte" | b"char" | b"float" | b"boolean" | b"double" | b"int" | b"str" | b"long"
        | b"short" | b"strictfp" => &[CASTING],
        b"null" | b"none" | b"true" | b"false" => &[EXTRA],
        _ => &[],
    }
}

fn published_symbol(symbol: &[u8]) -> &'static [usize] {
    match symbol {
        b"{" | b"}" | b"[" | b"]" | b"(" | b")" => &[BLOCKS],
        b":" => &[BLOCKS, OPERATORS],
        b"=" | b"+" | b"-" | b"*" | b"/" | b"%" | b"!" | b"==" | b"!=" | b">=" | b"<=" | b"?"
        | b"~" | b"<<" | b">>" | b"&" | b"^" | b"|" => &[OPERATORS],
        b"@" | b"..." => &[EXTRA],
        _ => &[],
    }
}

/// Distinguishes the keywords `match` and `case` from names.
///
/// A keyword is first in its line and is followed, in the same logical line, by a colon outside
/// brackets that is not the next token: so not `match = x`, `match(x)`, `match: T = x`. An
/// annotation as in `match[x]: T` is mistaken for a keyword.
#[derive(Default)]
struct SoftKeyword {
    depth: usize,
    state: Line,
}

#[derive(Default, PartialEq, Eq)]
enum Line {
    /// Nothing of the line was read.
    #[default]
    Start,
    /// Only `match` or `case` was read.
    Word,
    /// A possible subject follows it.
    Subject,
    /// The line does not begin with such a keyword.
    Other,
}

impl SoftKeyword {
    /// Takes the next token; returns whether it proves that the line began with a keyword.
    fn confirmed_by(&mut self, token: &Token<'_>) -> bool {
        let &Token::Symbol(symbol) = token else {
            self.word_or_line(token);
            return false;
        };
        let outside = self.depth == 0;
        match symbol {
            b"(" | b"[" | b"{" => self.depth += 1,
            b")" | b"]" | b"}" => self.depth = self.depth.saturating_sub(1),
            b":" if outside && self.state == Line::Subject => {
                self.state = Line::Other;
                return true;
            }
            // A statement ends at `;`; in `case x: a = 1` the colon comes first.
            b"=" | b";" | b"->" if outside => self.state = Line::Other,
            _ => {}
        }
        self.state = match self.state {
            Line::Word if matches!(symbol, b"(" | b"[" | b"{" | b"-" | b"~" | b"+" | b"*") => {
                Line::Subject
            }
            Line::Word if symbol == b"..." => Line::Subject,
            Line::Subject => Line::Subject,
            _ => Line::Other,
        };
        false
    }

    fn word_or_line(&mut self, token: &Token<'_>) {
        match token {
            Token::Newline if self.depth == 0 => self.state = Line::Start,
            Token::Newline => {}
            Token::Word(b"match" | b"case") if self.state == Line::Start => self.state = Line::Word,
            // `match in x` begins with a name, `match not x` with a keyword.
            Token::Word(b"in" | b"is" | b"and" | b"or" | b"if") if self.state == Line::Word => {
                self.state = Line::Other;
            }
            _ if self.state == Line::Word => self.state = Line::Subject,
            _ if self.state == Line::Start => self.state = Line::Other,
            _ => {}
        }
    }
}

enum Token<'t> {
    Word(&'t [u8]),
    /// An operator, a delimiter, or an unknown character.
    Symbol(&'t [u8]),
    Literal,
    /// The end of a line, in brackets also.
    Newline,
}

/// Yields the tokens of Python without white space and comments; continues after errors.
struct Scanner<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Iterator for Scanner<'t> {
    type Item = Token<'t>;

    fn next(&mut self) -> Option<Token<'t>> {
        let bytes = self.text.as_bytes();
        loop {
            let start = self.at;
            let first = *bytes.get(start)?;
            self.at = start + 1;
            return Some(match first {
                b'\n' => Token::Newline,
                b'\r' => {
                    self.at += usize::from(bytes.get(self.at) == Some(&b'\n'));
                    Token::Newline
                }
                b'#' => {
                    self.at = line_end(bytes, start);
                    continue;
                }
                b'\\' => {
                    // Joins two lines, or is misplaced.
                    let rest = bytes.get(self.at..).unwrap_or_default();
                    self.at += match rest {
                        [b'\r', b'\n', ..] => 2,
                        [b'\r' | b'\n', ..] => 1,
                        _ => 0,
                    };
                    continue;
                }
                b'"' | b'\'' => {
                    self.at = string_end(bytes, start).unwrap_or_else(|end| end);
                    Token::Literal
                }
                b'0'..=b'9' => {
                    self.at = number_end(bytes, start);
                    Token::Literal
                }
                b'.' if bytes.get(self.at).is_some_and(u8::is_ascii_digit) => {
                    self.at = number_end(bytes, start);
                    Token::Literal
                }
                b'_' | b'a'..=b'z' | b'A'..=b'Z' => self.word(start),
                0x80.. => {
                    let c = self.text.get(start..).and_then(|rest| rest.chars().next())?;
                    self.at = start + c.len_utf8();
                    if !c.is_alphanumeric() {
                        continue;
                    }
                    self.word(start)
                }
                0..=b' ' | 0x7f => continue,
                _ => {
                    self.at = start + symbol_len(&bytes[start..]);
                    Token::Symbol(&bytes[start..self.at])
                }
            });
        }
    }
}

impl<'t> Scanner<'t> {
    /// A word, or the string whose prefix it is.
    fn word(&mut self, start: usize) -> Token<'t> {
        let bytes = self.text.as_bytes();
        self.at = word_end(self.text, start, bytes.len());
        let word = &bytes[start..self.at];
        if is_string_prefix(word) && matches!(bytes.get(self.at), Some(b'"' | b'\'')) {
            self.at = string_end(bytes, self.at).unwrap_or_else(|end| end);
            return Token::Literal;
        }
        Token::Word(word)
    }
}

fn is_string_prefix(word: &[u8]) -> bool {
    match word {
        [a] => b"rbuft".contains(&a.to_ascii_lowercase()),
        [a, b] => {
            let (a, b) = (a.to_ascii_lowercase(), b.to_ascii_lowercase());
            (a == b'r' && b"bft".contains(&b)) || (b == b'r' && b"bftu".contains(&a))
        }
        _ => false,
    }
}

fn line_end(bytes: &[u8], from: usize) -> usize {
    let rest = bytes[from..].iter().position(|byte| matches!(byte, b'\n' | b'\r'));
    rest.map_or(bytes.len(), |offset| from + offset)
}

/// The end of the number at `start`, which is a digit or a point before one.
fn number_end(bytes: &[u8], start: usize) -> usize {
    let digits = |mut at: usize, is: fn(&u8) -> bool| {
        while bytes.get(at).is_some_and(|byte| is(byte) || *byte == b'_') {
            at += 1;
        }
        at
    };
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let radix = match bytes.get(start..start + 2) {
        Some(b"0x" | b"0X") => Some(u8::is_ascii_hexdigit as fn(&u8) -> bool),
        Some(b"0o" | b"0O" | b"0b" | b"0B") => Some(u8::is_ascii_digit as fn(&u8) -> bool),
        _ => None,
    };
    if let Some(is) = radix
        && bytes.get(start + 2).is_some_and(|byte| is(byte) || *byte == b'_')
    {
        return digits(start + 2, is);
    }
    let mut at = digits(start, u8::is_ascii_digit);
    if bytes.get(at) == Some(&b'.') {
        at = digits(at + 1, u8::is_ascii_digit);
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        if is_digit(at + 1 + sign) {
            at = digits(at + 1 + sign, u8::is_ascii_digit);
        }
    }
    at + usize::from(matches!(bytes.get(at), Some(b'j' | b'J')))
}

/// The length of the longest operator or delimiter that `rest` begins with.
fn symbol_len(rest: &[u8]) -> usize {
    match rest {
        [b'*', b'*', b'=', ..]
        | [b'/', b'/', b'=', ..]
        | [b'<', b'<', b'=', ..]
        | [b'>', b'>', b'=', ..]
        | [b'.', b'.', b'.', ..] => 3,
        [b'*', b'*', ..] | [b'/', b'/', ..] | [b'<', b'<', ..] | [b'>', b'>', ..] => 2,
        [b'-', b'>', ..] => 2,
        [first, b'=', ..] if b"=!<>+-*/%&|^@:".contains(first) => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests;
