//! What is measured on the text of one Python method.
//!
//! Here: the columns of operator `ast`, read off one walk over the syntax tree, or off the text where
//! it is plain and the tree is known without parsing. Not here: parsing and its limits (`parse`),
//! plain code (`outline::plain`), how the size metrics are counted (`lizard`), the text without its
//! docstring (`docstring`), finding methods in files (`methods`).
//!
//! Source: the published Galeras pipeline; columns equal its numbers on the same text with
//! the same grammar (tree-sitter-python 0.25), see `tests/reference/python_features.py`.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use tree_sitter::{Language, Node, Tree};

use super::distinct::Distinct;
use super::docstring::{split_first_statement, split_published};
use super::lizard::{CodeSize, size_with};
use super::outline::{Plain, read_plain};
use super::parse::{ParseError, PythonParser};
use super::scan::is_space;

/// Measures of one method. Counts are plain numbers of things.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Features<'t> {
    /// From `def` or `async` up to and including the colon; `None` without a definition.
    pub signature: Option<&'t str>,
    /// See [`DocstringRule`]; without quotes, not dedented, escapes as written.
    pub docstring: Option<Cow<'t, str>>,
    /// Words of the docstring, separated by white space.
    pub d_n_words: Option<i64>,
    /// The text without the docstring and its quotes; nothing else is removed.
    pub code_no_docstring: Cow<'t, str>,
    /// Texts of the ERROR nodes in document order, an outer one before those inside it.
    pub ast_errors: Vec<&'t str>,
    /// ERROR nodes; tokens that the parser supposed (MISSING) do not count.
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
    /// Spaces (U+0020) of `code_no_docstring`; tabs and line feeds do not count.
    pub n_whitespaces: i64,
    /// `return` statements of the first function itself: those of functions, lambdas and
    /// classes inside of it do not count.
    pub n_returns: i64,
    /// Parameter names of the first function in order, without the separators `/` and `*`;
    /// `*args` is `args`, `**kw` is `kw`; the names of a Python 2 tuple parameter follow
    /// one another.
    pub parameters: Vec<&'t str>,
}

/// What counts as the docstring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DocstringRule {
    /// As published: the text is split at every `"""` and `'''`, whichever it is, and every
    /// second part is docstring. Two faults come with it: a triple-quoted string that is
    /// assigned, passed or returned is taken for docstring and cut out of the code, and a
    /// docstring in single quotes is none.
    #[default]
    Published,
    /// As Python: the string that is the first statement of the first function.
    FirstStatement,
}

/// The features of a method's text, with [`DocstringRule::Published`].
///
/// `code` is the text of one method, as [`methods`](crate::methods) gives it; any other text is
/// measured too. The result equals that of the published Galeras pipeline. Time is linear in
/// the nodes of the tree.
///
/// # Errors
/// [`ParseError::TooLarge`] and [`ParseError::TooComplex`] if the text is over the bounds of
/// [`PythonParser::parse`]. A syntax error is counted, not returned.
pub fn features<'t>(parser: &mut PythonParser, code: &'t str) -> Result<Features<'t>, ParseError> {
    features_with(parser, code, DocstringRule::Published)
}

/// The features of a method's text under a docstring rule; otherwise as [`features`].
///
/// # Errors
/// As [`features`].
pub fn features_with<'t>(
    parser: &mut PythonParser,
    code: &'t str,
    rule: DocstringRule,
) -> Result<Features<'t>, ParseError> {
    let mut features = Features::default();
    // The docstring of the other rule is a node.
    let plain = match rule {
        DocstringRule::Published => read_plain(code).filter(|plain| plain.exact),
        DocstringRule::FirstStatement => None,
    };
    let (text, docstring) = match plain {
        Some(plain) => {
            features.read(&plain, code, &mut parser.buffers.distinct);
            split_published(code)
        }
        None => {
            let tree = parser.parse_anew(code)?;
            let function = walk(&tree, code, &mut parser.buffers.distinct, &mut features);
            match rule {
                DocstringRule::Published => split_published(code),
                DocstringRule::FirstStatement => split_first_statement(function, code),
            }
        }
    };
    let distinct = &mut parser.buffers.distinct;
    features.d_n_words = docstring.as_deref().map(|text| count(word_places(text).count()));
    features.docstring = docstring;
    features.n_whitespaces = count(text.bytes().filter(|&byte| byte == b' ').count());
    distinct.start();
    for word in word_places(&text) {
        features.n_words += 1;
        distinct.add(text.as_bytes(), word.start, word.end);
    }
    features.vocab_size = count(distinct.len());
    features.code_no_docstring = text;
    let size = size_with(code, &mut parser.buffers).unwrap_or_default();
    CodeSize {
        token_count: features.token_counts,
        nloc: features.nloc,
        complexity: features.complexity,
    } = size;
    Ok(features)
}

impl<'t> Features<'t> {
    /// What [`walk`] fills in, of a text whose tree is known without the parser: four times as fast.
    fn read(&mut self, plain: &Plain, code: &'t str, identifiers: &mut Distinct) {
        identifiers.start();
        for &(start, end) in &plain.identifiers {
            identifiers.add(code.as_bytes(), start as usize, end as usize);
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
}

/// What a kind of node is to the walk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Nothing, and without children.
    Token,
    /// Nothing itself.
    Inner,
    Identifier,
    Colon,
    Returning,
    Function,
    /// A class or a lambda, whose returns are its own.
    Scope,
}

/// What the grammar calls what is asked for, as numbers: it finds names by comparing them all.
struct Grammar {
    /// By the number of a kind.
    roles: Vec<Role>,
    identifier: u16,
    default_parameter: u16,
    typed_default_parameter: u16,
    typed_parameter: u16,
    list_splat: u16,
    dictionary_splat: u16,
    tuple: u16,
    parameters_field: u16,
    name_field: u16,
}

static GRAMMAR: LazyLock<Grammar> = LazyLock::new(|| {
    let language = Language::from(tree_sitter_python::LANGUAGE);
    let id = |kind| language.id_for_node_kind(kind, true);
    // No field has the number 0.
    let field = |name| language.field_id_for_name(name).map_or(0, u16::from);
    // The tokens of a grammar come first, then its start symbol and the other rules.
    let start = id("module");
    let role = |kind: u16| match (language.node_kind_for_id(kind), kind < start) {
        (Some("identifier"), true) => Role::Identifier,
        (Some(":"), true) => Role::Colon,
        (_, true) => Role::Token,
        (Some("return_statement"), _) => Role::Returning,
        (Some("function_definition"), _) => Role::Function,
        (Some("class_definition" | "lambda"), _) => Role::Scope,
        _ => Role::Inner,
    };
    let kinds = u16::try_from(language.node_kind_count()).unwrap_or(u16::MAX);
    Grammar {
        roles: (0..kinds).map(role).collect(),
        identifier: id("identifier"),
        default_parameter: id("default_parameter"),
        typed_default_parameter: id("typed_default_parameter"),
        typed_parameter: id("typed_parameter"),
        list_splat: id("list_splat_pattern"),
        dictionary_splat: id("dictionary_splat_pattern"),
        tuple: id("tuple_pattern"),
        parameters_field: field("parameters"),
        name_field: field("name"),
    }
});

/// The one walk over the tree: fills in what it shows, and gives the first function of the text.
fn walk<'n, 't>(
    tree: &'n Tree,
    code: &'t str,
    identifiers: &mut Distinct,
    features: &mut Features<'t>,
) -> Option<Node<'n>> {
    let grammar = &*GRAMMAR;
    identifiers.start();
    let mut function: Option<Node<'n>> = None;
    // Levels of the first function and of the outermost definition inside of it, while the
    // walk is in them; no node stands at level 0.
    let (mut first, mut inner) = (0, 0);
    let mut colon: Option<usize> = None;
    // Nodes before the one after this in document order, and where those that are open end: so
    // that the cursor is not asked for a sibling of each last child, which costs it most.
    let mut place = 0;
    let mut ends: Vec<usize> = Vec::with_capacity(32);
    let mut height = 1;
    let mut cursor = tree.walk();
    'walk: loop {
        let node = cursor.node();
        let level = ends.len() + 1;
        place += 1;
        let mut may_have_children = true;
        // ERROR nodes have a number outside of the table.
        match grammar.roles.get(usize::from(node.kind_id())) {
            Some(Role::Inner) => {}
            Some(Role::Token) => may_have_children = false,
            Some(Role::Identifier) => {
                identifiers.add(code.as_bytes(), node.start_byte(), node.end_byte());
                may_have_children = false;
            }
            Some(Role::Colon) => {
                if first > 0 && level == first + 1 && colon.is_none() {
                    colon = Some(node.end_byte());
                }
                may_have_children = false;
            }
            Some(Role::Returning) => features.n_returns += i64::from(first > 0 && inner == 0),
            Some(Role::Function) if function.is_none() => {
                function = Some(node);
                first = level;
            }
            Some(Role::Function | Role::Scope) => {
                if first > 0 && inner == 0 {
                    inner = level;
                }
            }
            None => features.ast_errors.push(code.get(node.byte_range()).unwrap_or_default()),
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
    // The root is not counted.
    features.n_ast_nodes = count(tree.root_node().descendant_count()) - 1;
    features.ast_levels = if height > 1 { count(height) } else { 0 };
    features.n_ast_errors = count(features.ast_errors.len());
    features.n_identifiers = count(identifiers.len());
    if let Some(function) = function {
        features.signature = colon.and_then(|end| code.get(function.start_byte()..end));
        parameters(function, code, &mut features.parameters);
    }
    function
}

fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// The words of a text in order, as Python's `str.split()` gives them: maximal runs of
/// characters that are not white space. U+001C to U+001F separate too.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    word_places(text).filter_map(|place| text.get(place))
}

/// As [`words`], by their places.
fn word_places(text: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    // The length of the character at a place, and whether it is white space.
    let beyond_ascii = |at: usize| {
        let c = text.get(at..).and_then(|rest| rest.chars().next());
        c.map_or((1, true), |c| (c.len_utf8(), is_space(c)))
    };
    let mut at = 0;
    std::iter::from_fn(move || {
        while let Some(&byte) = bytes.get(at) {
            match CLASSES[usize::from(byte)] {
                Class::Space => at += 1,
                Class::Word => break,
                Class::BeyondAscii => match beyond_ascii(at) {
                    (length, true) => at += length,
                    (_, false) => break,
                },
            }
        }
        let start = at;
        while let Some(&byte) = bytes.get(at) {
            match CLASSES[usize::from(byte)] {
                Class::Word => at += 1,
                Class::Space => break,
                Class::BeyondAscii => match beyond_ascii(at) {
                    (length, false) => at += length,
                    (_, true) => break,
                },
            }
        }
        (start < at).then_some(start..at)
    })
}

/// What a byte is to words.
#[derive(Clone, Copy)]
enum Class {
    Word,
    Space,
    /// The character decides.
    BeyondAscii,
}

const CLASSES: [Class; 256] = {
    let mut classes = [Class::Word; 256];
    let mut byte = 0;
    while byte < 256 {
        if matches!(byte, 0x09..=0x0d | 0x1c..=0x20) {
            classes[byte] = Class::Space;
        } else if byte >= 0x80 {
            classes[byte] = Class::BeyondAscii;
        }
        byte += 1;
    }
    classes
};

/// Which of the children of a node are names of parameters, or hold some.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Named,
    /// The first that is named; then none.
    FirstNamed,
    /// The first in the field `name`; then none.
    Name,
    None,
}

impl Grammar {
    /// What is looked at inside of a node that stands where a parameter does. Names stand at the
    /// front; defaults and types follow in fields.
    fn part_of(&self, kind: u16) -> Part {
        if kind == self.default_parameter || kind == self.typed_default_parameter {
            Part::Name
        } else if kind == self.typed_parameter {
            Part::FirstNamed
        } else if [self.list_splat, self.dictionary_splat, self.tuple].contains(&kind) {
            Part::Named
        } else {
            Part::None
        }
    }
}

/// The names of a function's parameters, in order.
fn parameters<'t>(function: Node<'_>, code: &'t str, names: &mut Vec<&'t str>) {
    let grammar = &*GRAMMAR;
    let Some(list) = function.child_by_field_id(grammar.parameters_field) else { return };
    let mut cursor = list.walk();
    if !cursor.goto_first_child() {
        return;
    }
    // For the list, and for each of the nodes that are open in it.
    let mut parts = vec![Part::Named];
    while let Some(part) = parts.last_mut() {
        let node = cursor.node();
        let taken = match part {
            Part::Named | Part::FirstNamed => node.is_named(),
            Part::Name => cursor.field_id().map_or(0, u16::from) == grammar.name_field,
            Part::None => false,
        };
        if taken {
            if *part != Part::Named {
                *part = Part::None;
            }
            let kind = node.kind_id();
            if kind == grammar.identifier {
                names.extend(code.get(node.byte_range()));
            }
            let inside = grammar.part_of(kind);
            if inside != Part::None && cursor.goto_first_child() {
                parts.push(inside);
                continue;
            }
        }
        while !cursor.goto_next_sibling() {
            parts.pop();
            if parts.is_empty() || !cursor.goto_parent() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
