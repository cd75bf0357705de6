//! What is measured on the text of one Python method.
//!
//! Here: the columns of operator `ast`, read off one walk over the syntax tree, the text
//! without its docstring, and the size metrics. Not here: parsing and its limits (`parse`),
//! how the size metrics are counted (`lizard`), finding methods in files (`methods`).
//!
//! Source: the published Galeras pipeline; columns equal its numbers on the same text with
//! the same grammar (tree-sitter-python 0.25), see `tests/reference/python_features.py`.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

use tree_sitter::{Node, Tree};

use super::lizard::{CodeSize, size_with};
use super::parse::{ParseError, PythonParser};
use super::scan::is_space;

/// Measures of one method. Counts are plain numbers of things.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// From `def` or `async` up to and including the colon; `None` without a definition.
    pub signature: Option<String>,
    /// See [`DocstringRule`]; without quotes, not dedented, escapes as written.
    pub docstring: Option<String>,
    /// Words of the docstring, separated by white space.
    pub d_n_words: Option<i64>,
    /// The text without the docstring and its quotes; nothing else is removed.
    pub code_no_docstring: String,
    /// Texts of the ERROR nodes in document order, an outer one before those inside it.
    pub ast_errors: Vec<String>,
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
    pub parameters: Vec<String>,
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
pub fn features(parser: &mut PythonParser, code: &str) -> Result<Features, ParseError> {
    features_with(parser, code, DocstringRule::Published)
}

/// The features of a method's text under a docstring rule; otherwise as [`features`].
///
/// # Errors
/// As [`features`].
pub fn features_with(
    parser: &mut PythonParser,
    code: &str,
    rule: DocstringRule,
) -> Result<Features, ParseError> {
    let tree = parser.parse(code)?;
    let walk = Walk::over(&tree, code);
    let mut features = Features {
        n_ast_errors: count(walk.errors.len()),
        ast_levels: if walk.height > 1 { walk.height } else { 0 },
        n_ast_nodes: walk.nodes,
        n_identifiers: count(walk.identifiers.len()),
        n_returns: walk.returns,
        ..Features::default()
    };
    let owned = |range: Range<usize>| code.get(range).unwrap_or_default().to_owned();
    features.ast_errors = walk.errors.into_iter().map(owned).collect();
    if let Some(function) = walk.function {
        features.signature = signature(function, code);
        features.parameters = parameters(function, code);
    }
    let (text, docstring) = match rule {
        DocstringRule::Published => split_published(code),
        DocstringRule::FirstStatement => split_first_statement(walk.function, code),
    };
    features.d_n_words = docstring.as_deref().map(|text| words(text).count()).map(count);
    features.docstring = docstring;
    features.n_whitespaces = count(text.bytes().filter(|&byte| byte == b' ').count());
    let mut vocabulary = HashSet::with_capacity(128);
    for word in words(&text) {
        features.n_words += 1;
        vocabulary.insert(word);
    }
    features.vocab_size = count(vocabulary.len());
    features.code_no_docstring = text;
    let size = size_with(code, &mut parser.buffers).unwrap_or_default();
    CodeSize {
        token_count: features.token_counts,
        nloc: features.nloc,
        complexity: features.complexity,
    } = size;
    Ok(features)
}

/// What one pass over the tree collects.
struct Walk<'t> {
    nodes: i64,
    height: i64,
    errors: Vec<Range<usize>>,
    identifiers: HashSet<&'t str>,
    returns: i64,
    /// The first function of the text.
    function: Option<Node<'t>>,
}

/// Node kinds that the walk asks for, as the grammar's ids.
struct Ids {
    identifier: u16,
    function: u16,
    class: u16,
    lambda: u16,
    returning: u16,
}

/// Looked up once: the grammar finds an id by comparing names.
static IDS: LazyLock<Ids> = LazyLock::new(|| {
    let language = tree_sitter::Language::from(tree_sitter_python::LANGUAGE);
    let id = |kind| language.id_for_node_kind(kind, true);
    Ids {
        identifier: id("identifier"),
        function: id("function_definition"),
        class: id("class_definition"),
        lambda: id("lambda"),
        returning: id("return_statement"),
    }
});

/// The id of ERROR nodes in every grammar (`ts_builtin_sym_error`).
const ERROR: u16 = u16::MAX;

impl<'t> Walk<'t> {
    fn over(tree: &'t Tree, code: &'t str) -> Self {
        let ids = &*IDS;
        let mut walk = Self {
            nodes: -1,
            height: 0,
            errors: Vec::new(),
            identifiers: HashSet::with_capacity(64),
            returns: 0,
            function: None,
        };
        // Level of the first function, and of the outermost definition inside of it.
        let mut first: Option<i64> = None;
        let mut inner: Option<i64> = None;
        let mut level = 1;
        let mut cursor = tree.walk();
        loop {
            let node = cursor.node();
            walk.nodes += 1;
            walk.height = walk.height.max(level);
            let kind = node.kind_id();
            if kind == ids.identifier {
                walk.identifiers.extend(code.get(node.byte_range()));
            } else if kind == ids.returning {
                walk.returns += i64::from(first.is_some() && inner.is_none());
            } else if kind == ids.function && walk.function.is_none() {
                walk.function = Some(node);
                first = Some(level);
            } else if kind == ids.function || kind == ids.class || kind == ids.lambda {
                if first.is_some() && inner.is_none() {
                    inner = Some(level);
                }
            } else if kind == ERROR {
                walk.errors.push(node.byte_range());
            }
            if cursor.goto_first_child() {
                level += 1;
                continue;
            }
            loop {
                if inner == Some(level) {
                    inner = None;
                }
                if first == Some(level) {
                    first = None;
                }
                if cursor.goto_next_sibling() {
                    break;
                }
                if !cursor.goto_parent() {
                    return walk;
                }
                level -= 1;
            }
        }
    }
}

fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// The words of a text in order, as Python's `str.split()` gives them: maximal runs of
/// characters that are not white space. U+001C to U+001F separate too.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_space).filter(|word| !word.is_empty())
}

fn signature(function: Node<'_>, code: &str) -> Option<String> {
    let mut cursor = function.walk();
    let colon = function.children(&mut cursor).find(|child| child.kind() == ":")?;
    code.get(function.start_byte()..colon.end_byte()).map(str::to_owned)
}

fn parameters(function: Node<'_>, code: &str) -> Vec<String> {
    let mut names = Vec::new();
    let Some(list) = function.child_by_field_name("parameters") else {
        return names;
    };
    // Names stand at the front of a parameter; defaults and types follow in fields.
    let mut open: Vec<Node<'_>> = named_children(list);
    open.reverse();
    while let Some(node) = open.pop() {
        match node.kind() {
            "identifier" => names.extend(code.get(node.byte_range()).map(str::to_owned)),
            "default_parameter" | "typed_default_parameter" => {
                open.extend(node.child_by_field_name("name"));
            }
            "typed_parameter" => open.extend(node.named_child(0)),
            "list_splat_pattern" | "dictionary_splat_pattern" | "tuple_pattern" => {
                open.extend(named_children(node).into_iter().rev());
            }
            _ => {}
        }
    }
    names
}

fn named_children(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).collect()
}

/// Code and docstring after [`DocstringRule::Published`].
fn split_published(code: &str) -> (String, Option<String>) {
    let mark = |from: usize| {
        let bytes = code.as_bytes().get(from..)?;
        let quote = bytes.windows(3).position(|three| three == b"\"\"\"" || three == b"'''")?;
        Some(from + quote)
    };
    let Some(mut end) = mark(0) else {
        return (code.to_owned(), None);
    };
    let mut parts = [String::with_capacity(code.len()), String::new()];
    let (mut start, mut side) = (0, 0);
    loop {
        parts[side].push_str(&code[start..end]);
        start = end + 3;
        side = 1 - side;
        match mark(start) {
            Some(next) => end = next,
            None => break,
        }
    }
    parts[side].push_str(&code[start..]);
    let [text, docstring] = parts;
    (text, Some(docstring))
}

/// Code and docstring after [`DocstringRule::FirstStatement`].
fn split_first_statement(function: Option<Node<'_>>, code: &str) -> (String, Option<String>) {
    let none = || (code.to_owned(), None);
    let statement = function
        .and_then(|function| function.child_by_field_name("body"))
        .and_then(|body| named_children(body).into_iter().find(|node| node.kind() != "comment"))
        .filter(|node| node.kind() == "expression_statement" && node.named_child_count() == 1);
    let Some(string) = statement.and_then(|node| node.named_child(0)) else {
        return none();
    };
    let strings = match string.kind() {
        "string" => vec![string],
        "concatenated_string" => named_children(string),
        _ => return none(),
    };
    let mut docstring = String::new();
    for part in strings.iter().filter(|part| part.kind() == "string") {
        let (Some(open), Some(close)) = (part.child(0), part.child(part.child_count().max(1) - 1))
        else {
            return none();
        };
        let prefix = code.get(open.byte_range()).unwrap_or_default();
        if prefix.contains(['f', 'F', 'b', 'B']) {
            return none();
        }
        docstring.push_str(code.get(open.end_byte()..close.start_byte()).unwrap_or_default());
    }
    let mut text = String::with_capacity(code.len());
    text.push_str(&code[..string.start_byte()]);
    text.push_str(&code[string.end_byte()..]);
    (text, Some(docstring))
}

#[cfg(test)]
mod tests;
