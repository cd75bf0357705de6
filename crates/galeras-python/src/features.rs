//! The columns of operator `ast`: measurements of one Python method.
//!
//! They come from one walk over the syntax tree, or from the text alone where it is plain
//! (`plain`). Source: the published Galeras pipeline, with the same grammar
//! (tree-sitter-python 0.25); `tests/reference/python_features.py` compares the numbers.

use std::borrow::Cow;
use std::sync::LazyLock;

use hashbrown::HashSet;
use tree_sitter::{Node, Tree};

use super::language::{for_kinds, kind_id};
use super::lizard::{CodeSize, size};
use super::parse::{ParseError, PythonParser, named_children};
use super::parses::parses;
use super::plain::{PlainCode, read_plain};
use super::scan::is_space;

/// Measurements of one method.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Features<'t> {
    /// From `def` or `async` up to and including the colon; `None` without a definition.
    pub signature: Option<&'t str>,
    /// As published: the text is split at every `"""` and `'''`, and every second part is
    /// docstring. This has two faults: a triple-quoted string that is assigned, passed or returned
    /// counts as docstring, and a docstring in single quotes does not. Not dedented, escapes as
    /// written.
    pub docstring: Option<Cow<'t, str>>,
    /// Words of the docstring, separated by white space.
    pub d_n_words: Option<i64>,
    /// The text without the docstring and its quotes.
    pub code_no_docstring: Cow<'t, str>,
    /// Texts of the ERROR nodes in document order, outer before inner. None in valid Python, which
    /// tree-sitter's grammar misreads in places: see [`parses`].
    pub ast_errors: Vec<&'t str>,
    /// ERROR nodes, without tokens that the parser inserted (MISSING).
    pub n_ast_errors: i64,
    /// Height of the tree in nodes; 0 if the root has no child.
    pub ast_levels: i64,
    /// Nodes below the root, named and anonymous.
    pub n_ast_nodes: i64,
    /// Distinct texts of `identifier` nodes.
    pub n_identifiers: i64,
    /// See [`CodeSize::complexity`]; of the first function of the text, 0 without one.
    pub complexity: i64,
    /// See [`CodeSize::nloc`]; of the first function of the text, 0 without one.
    pub nloc: i64,
    /// See [`CodeSize::token_count`]; of the first function of the text, 0 without one.
    pub token_counts: i64,
    /// Words of `code_no_docstring`, separated by white space.
    pub n_words: i64,
    /// Distinct words of `code_no_docstring`.
    pub vocab_size: i64,
    /// Spaces (U+0020) of `code_no_docstring`, without tabs and line feeds.
    pub n_whitespaces: i64,
    /// `return` statements of the first function, without those of functions, lambdas and classes
    /// inside it.
    pub n_returns: i64,
    /// Parameter names of the first function in order, without the separators `/` and `*`. `*args`
    /// is `args`, `**kw` is `kw`; a Python 2 tuple parameter adds each of its names.
    pub parameters: Vec<&'t str>,
}

/// The features of a method's text.
///
/// `code` is usually a method from [`methods`](crate::methods), but any text works. Time is linear
/// in the nodes of the tree.
///
/// # Errors
/// [`ParseError::TooLarge`] and [`ParseError::TooComplex`] if the text exceeds the limits of
/// [`PythonParser::parse`]. Syntax errors are counted, not returned.
pub fn features<'t>(parser: &mut PythonParser, code: &'t str) -> Result<Features<'t>, ParseError> {
    let mut features = Features::default();
    match read_plain(code).filter(|plain| plain.exact) {
        Some(plain) => features.read(&plain, code),
        None => {
            features.walk(&parser.parse_anew(code)?, code);
            if features.n_ast_errors > 0 && parses(code) == Ok(true) {
                (features.ast_errors, features.n_ast_errors) = (Vec::new(), 0);
            }
        }
    }
    let (text, docstring) = split_docstring(code);
    features.d_n_words = docstring.as_deref().map(|text| count(words(text).count()));
    features.docstring = docstring;
    features.n_whitespaces = count(text.bytes().filter(|&byte| byte == b' ').count());
    let mut distinct = HashSet::with_capacity(text.len() / 16);
    for word in words(&text) {
        features.n_words += 1;
        distinct.insert(word);
    }
    features.vocab_size = count(distinct.len());
    drop(distinct);
    features.code_no_docstring = text;
    let CodeSize { token_count, nloc, complexity } = size(code).unwrap_or_default();
    Ok(Features { token_counts: token_count, nloc, complexity, ..features })
}

/// The role of a node kind in the walk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// A leaf that is not counted.
    Token,
    /// An inner node that is not counted.
    Inner,
    Identifier,
    Colon,
    Returning,
    Function,
    /// A class or a lambda: returns inside it are not the function's.
    Scope,
}

/// The role of every node kind.
static ROLES: LazyLock<Vec<Role>> = LazyLock::new(|| {
    // A grammar lists its tokens first, then its start symbol and the other rules.
    let start = kind_id("module");
    for_kinds(|id, name, _| match (name, id < start) {
        ("identifier", true) => Role::Identifier,
        (":", true) => Role::Colon,
        (_, true) => Role::Token,
        ("return_statement", _) => Role::Returning,
        ("function_definition", _) => Role::Function,
        ("class_definition" | "lambda", _) => Role::Scope,
        _ => Role::Inner,
    })
});

impl<'t> Features<'t> {
    /// Fills in the same fields as [`Features::walk`], without a parser and four times as fast.
    fn read(&mut self, plain: &PlainCode, code: &'t str) {
        let mut identifiers = HashSet::with_capacity(plain.identifiers.len());
        for &(start, end) in &plain.identifiers {
            identifiers.insert(code.as_bytes().get(start as usize..end as usize));
        }
        self.n_identifiers = count(identifiers.len());
        self.n_ast_nodes = count(plain.nodes);
        self.ast_levels = if plain.nodes > 0 { i64::from(plain.height) } else { 0 };
        if let Some(function) = plain.definitions.iter().find(|found| found.is_function) {
            self.signature = code.get(function.start..function.colon);
            self.n_returns = count(function.returns);
            let names = plain.parameters.iter();
            self.parameters = names.filter_map(|&(start, end)| code.get(start..end)).collect();
        }
    }

    /// Walks the tree once and fills in the features.
    fn walk(&mut self, tree: &Tree, code: &'t str) {
        let roles = &*ROLES;
        let mut identifiers = HashSet::new();
        let mut function: Option<Node<'_>> = None;
        // Levels of the first function and of the outermost definition inside it during the walk; 0
        // outside.
        let (mut first, mut inner) = (0, 0);
        let mut colon: Option<usize> = None;
        // The place after the current node in document order, and the ends of the open nodes: asking
        // the cursor for the sibling of each last child would be the largest cost.
        let mut place = 0;
        let mut ends: Vec<usize> = Vec::with_capacity(32);
        let mut height = 1;
        let mut cursor = tree.walk();
        'walk: loop {
            let node = cursor.node();
            let level = ends.len() + 1;
            place += 1;
            let mut may_have_children = true;
            // ERROR nodes have a number outside the table.
            match roles.get(usize::from(node.kind_id())) {
                Some(Role::Inner) => {}
                Some(Role::Token) => may_have_children = false,
                Some(Role::Identifier) => {
                    identifiers.insert(code.as_bytes().get(node.byte_range()));
                    may_have_children = false;
                }
                Some(Role::Colon) => {
                    if first > 0 && level == first + 1 && colon.is_none() {
                        colon = Some(node.end_byte());
                    }
                    may_have_children = false;
                }
                Some(Role::Returning) => self.n_returns += i64::from(first > 0 && inner == 0),
                Some(Role::Function) if function.is_none() => {
                    function = Some(node);
                    first = level;
                }
                Some(Role::Function | Role::Scope) => {
                    if first > 0 && inner == 0 {
                        inner = level;
                    }
                }
                None => self.ast_errors.push(code.get(node.byte_range()).unwrap_or_default()),
            }
            if may_have_children && cursor.goto_first_child() {
                ends.push(place - 1 + node.descendant_count());
                height = height.max(ends.len() + 1);
                continue;
            }
            loop {
                if inner > ends.len() {
                    inner = 0;
                }
                if first > ends.len() {
                    first = 0;
                }
                let Some(&end) = ends.last() else { break 'walk };
                if place < end && cursor.goto_next_sibling() {
                    break;
                }
                ends.pop();
                if ends.is_empty() || !cursor.goto_parent() {
                    break 'walk;
                }
            }
        }
        self.n_ast_nodes = count(tree.root_node().descendant_count()) - 1;
        self.ast_levels = if height > 1 { count(height) } else { 0 };
        self.n_ast_errors = count(self.ast_errors.len());
        self.n_identifiers = count(identifiers.len());
        if let Some(function) = function {
            self.signature = colon.and_then(|end| code.get(function.start_byte()..end));
            self.parameters = parameters(function, code);
        }
    }
}

fn triple_quote(bytes: &[u8], mut from: usize) -> Option<usize> {
    loop {
        let rest = bytes.get(from..)?;
        from += rest.iter().position(|byte| matches!(byte, b'"' | b'\''))?;
        if bytes[from..].starts_with(&[bytes[from]; 3]) {
            return Some(from);
        }
        from += 1;
    }
}

/// The text without its docstring and quotes, and the docstring.
fn split_docstring(code: &str) -> (Cow<'_, str>, Option<Cow<'_, str>>) {
    let bytes = code.as_bytes();
    let Some(open) = triple_quote(bytes, 0) else {
        return (code.into(), None);
    };
    let mut text = String::with_capacity(code.len());
    text.push_str(&code[..open]);
    // Nearly all methods have one docstring, which can be borrowed.
    let mut docstring = Cow::Borrowed("");
    let (mut start, mut kept) = (open + 3, false);
    loop {
        let end = triple_quote(bytes, start);
        let part = &code[start..end.unwrap_or(code.len())];
        if kept {
            text.push_str(part);
        } else if docstring.is_empty() {
            docstring = part.into();
        } else {
            docstring.to_mut().push_str(part);
        }
        let Some(end) = end else { break };
        (start, kept) = (end + 3, !kept);
    }
    (text.into(), Some(docstring))
}

pub(super) fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// The words of a text in order, as Python's `str.split()` returns them: maximal runs of characters
/// that are not white space. U+001C to U+001F also separate.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_space).filter(|word| !word.is_empty())
}

/// The parameter names of a function in order.
fn parameters<'t>(function: Node<'_>, code: &'t str) -> Vec<&'t str> {
    let mut names = Vec::new();
    let mut open: Vec<_> = function.child_by_field_name("parameters").into_iter().collect();
    while let Some(node) = open.pop() {
        // Names come first; defaults and types follow.
        let inside = match node.kind() {
            "identifier" => {
                names.extend(code.get(node.byte_range()));
                continue;
            }
            "parameters" | "list_splat_pattern" | "dictionary_splat_pattern" | "tuple_pattern" => {
                named_children(node)
            }
            "typed_parameter" => node.named_child(0).into_iter().collect(),
            "default_parameter" | "typed_default_parameter" => {
                node.child_by_field_name("name").into_iter().collect()
            }
            _ => continue,
        };
        open.extend(inside.into_iter().rev());
    }
    names
}

#[cfg(test)]
mod tests;
