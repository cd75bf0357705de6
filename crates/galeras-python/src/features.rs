//! The columns of operator `ast`: measurements of one Python method.
//!
//! They come from one walk over the syntax tree, or from the text alone where it is plain
//! (`outline::plain`). Source: the published Galeras pipeline, with the same grammar
//! (tree-sitter-python 0.25); `tests/reference/python_features.py` compares the numbers.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use tree_sitter::{Language, Node, Tree};

use super::distinct::Distinct;
use super::docstring::{split_first_statement, split_published};
use super::lizard::{CodeSize, size_with};
use super::outline::{PlainCode, read_plain};
use super::parse::{ParseError, PythonParser};
use super::scan::is_space;

/// Measurements of one method.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Features<'t> {
    /// From `def` or `async` up to and including the colon; `None` without a definition.
    pub signature: Option<&'t str>,
    /// Follows the [`DocstringRule`]; without quotes, not dedented, escapes as written.
    pub docstring: Option<Cow<'t, str>>,
    /// Words of the docstring, separated by white space.
    pub d_n_words: Option<i64>,
    /// The text without the docstring and its quotes.
    pub code_no_docstring: Cow<'t, str>,
    /// Texts of the ERROR nodes in document order, outer before inner.
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

/// The rule that decides which text is the docstring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DocstringRule {
    /// As published: split the text at every `"""` and `'''`; every second part is docstring. This
    /// has two faults: a triple-quoted string that is assigned, passed or returned counts as
    /// docstring, and a docstring in single quotes does not.
    #[default]
    Published,
    /// As Python: the string that is the first statement of the first function.
    FirstStatement,
}

/// The features of a method's text by [`DocstringRule::Published`].
///
/// `code` is usually a method from [`methods`](crate::methods), but any text works. Time is linear
/// in the nodes of the tree.
///
/// # Errors
/// [`ParseError::TooLarge`] and [`ParseError::TooComplex`] if the text exceeds the limits of
/// [`PythonParser::parse`]. Syntax errors are counted, not returned.
pub fn features<'t>(parser: &mut PythonParser, code: &'t str) -> Result<Features<'t>, ParseError> {
    features_with(parser, code, DocstringRule::Published)
}

/// The features of a method's text by a given docstring rule; otherwise as [`features`].
///
/// # Errors
/// As [`features`].
pub fn features_with<'t>(
    parser: &mut PythonParser,
    code: &'t str,
    rule: DocstringRule,
) -> Result<Features<'t>, ParseError> {
    let mut features = Features::default();
    // The other rule needs the docstring's node.
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
    /// Fills in the same fields as [`walk`], without a parser and four times as fast.
    fn read(&mut self, plain: &PlainCode, code: &'t str, identifiers: &mut Distinct) {
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

/// Kinds and fields as the grammar's numbers; a search by name compares all names.
struct GrammarIds {
    /// Indexed by the number of a kind.
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

static GRAMMAR: LazyLock<GrammarIds> = LazyLock::new(|| {
    let language = Language::from(tree_sitter_python::LANGUAGE);
    let id = |kind| language.id_for_node_kind(kind, true);
    // No field has the number 0.
    let field = |name| language.field_id_for_name(name).map_or(0, u16::from);
    // A grammar lists its tokens first, then its start symbol and the other rules.
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
    GrammarIds {
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

/// Walks the tree once, fills in the features and returns the first function.
fn walk<'n, 't>(
    tree: &'n Tree,
    code: &'t str,
    identifiers: &mut Distinct,
    features: &mut Features<'t>,
) -> Option<Node<'n>> {
    let grammar = &*GRAMMAR;
    identifiers.start();
    let mut function: Option<Node<'n>> = None;
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

/// The words of a text in order, as Python's `str.split()` returns them: maximal runs of characters
/// that are not white space. U+001C to U+001F also separate.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    word_places(text).filter_map(|place| text.get(place))
}

/// As [`words`], but returns ranges.
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
                ByteClass::Space => at += 1,
                ByteClass::Word => break,
                ByteClass::BeyondAscii => match beyond_ascii(at) {
                    (length, true) => at += length,
                    (_, false) => break,
                },
            }
        }
        let start = at;
        while let Some(&byte) = bytes.get(at) {
            match CLASSES[usize::from(byte)] {
                ByteClass::Word => at += 1,
                ByteClass::Space => break,
                ByteClass::BeyondAscii => match beyond_ascii(at) {
                    (length, false) => at += length,
                    (_, true) => break,
                },
            }
        }
        (start < at).then_some(start..at)
    })
}

#[derive(Clone, Copy)]
enum ByteClass {
    Word,
    Space,
    /// The whole character must be decoded.
    BeyondAscii,
}

const CLASSES: [ByteClass; 256] = {
    let mut classes = [ByteClass::Word; 256];
    let mut byte = 0;
    while byte < 256 {
        if matches!(byte, 0x09..=0x0d | 0x1c..=0x20) {
            classes[byte] = ByteClass::Space;
        } else if byte >= 0x80 {
            classes[byte] = ByteClass::BeyondAscii;
        }
        byte += 1;
    }
    classes
};

/// Selects the children of a node that are, or contain, parameter names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NamePart {
    Named,
    /// The first named child only.
    FirstNamed,
    /// The first child in the field `name` only.
    Name,
    None,
}

impl GrammarIds {
    /// The part of a parameter's node that contains its names. Names come first; defaults and types
    /// follow in fields.
    fn part_of(&self, kind: u16) -> NamePart {
        if kind == self.default_parameter || kind == self.typed_default_parameter {
            NamePart::Name
        } else if kind == self.typed_parameter {
            NamePart::FirstNamed
        } else if [self.list_splat, self.dictionary_splat, self.tuple].contains(&kind) {
            NamePart::Named
        } else {
            NamePart::None
        }
    }
}

fn parameters<'t>(function: Node<'_>, code: &'t str, names: &mut Vec<&'t str>) {
    let grammar = &*GRAMMAR;
    let Some(list) = function.child_by_field_id(grammar.parameters_field) else { return };
    let mut cursor = list.walk();
    if !cursor.goto_first_child() {
        return;
    }
    // One for the list, and one for each open node in it.
    let mut parts = vec![NamePart::Named];
    while let Some(part) = parts.last_mut() {
        let node = cursor.node();
        let taken = match part {
            NamePart::Named | NamePart::FirstNamed => node.is_named(),
            NamePart::Name => cursor.field_id().map_or(0, u16::from) == grammar.name_field,
            NamePart::None => false,
        };
        if taken {
            if *part != NamePart::Named {
                *part = NamePart::None;
            }
            let kind = node.kind_id();
            if kind == grammar.identifier {
                names.extend(code.get(node.byte_range()));
            }
            let inside = grammar.part_of(kind);
            if inside != NamePart::None && cursor.goto_first_child() {
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
