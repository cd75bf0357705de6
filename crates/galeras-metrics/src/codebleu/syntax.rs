//! One walk over a syntax tree: the hashes of its subtrees, and a flat copy for the data flow.
//!
//! Two subtrees are equal if tree-sitter writes the same s-expression for both. It contains the
//! kinds of named nodes and their fields, tokens that the parser inserted (MISSING), and the first
//! character of an ERROR without children (UNEXPECTED), but no anonymous tokens, no text, and not
//! the field of the outermost node. Writing s-expressions is quadratic in depth, so each subtree
//! has a 128-bit hash of the hashes below it.
//!
//! [`CodeBleuMode::Strict`] leaves out comments, line continuations, and statements that are only
//! string literals, such as docstrings (an f-string is evaluated, so it stays). A node with no
//! other content counts as a node without children.

use std::sync::LazyLock;

use tree_sitter::{Language, Node, Tree, TreeCursor};

use super::scorer::CodeBleuMode;
use super::symbols::HashState;
use super::token_text::TokenCutter;
use crate::interner::Interner;

/// The kinds of nodes that the data flow distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Other,
    Identifier,
    /// Its parts are not nodes of the copy.
    String,
    Comma,
    Block,
    Assignment,
    ForIn,
    Default,
    If,
    Elif,
    Else,
    For,
    While,
    Comment,
    Continuation,
    /// A statement that may be a string alone.
    Expression,
}

/// The fields that the data flow uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Other,
    Left,
    Right,
    Name,
    Value,
}

pub(super) const NONE: u32 = u32::MAX;

/// A node of the copy. Nodes are in document order, parents before their children.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlatNode {
    pub class: Class,
    pub field: Field,
    /// The first node after its subtree.
    pub end: u32,
    /// Tokens before this node.
    pub first: u32,
    /// The token of this node, or [`NONE`].
    pub token: u32,
    /// Children of a string, which are not in the copy.
    pub parts: u32,
    /// A child is the `for` of a comprehension.
    pub comprehends: bool,
}

/// A token that may be a variable: a node without children, or a string, whose text differs from
/// the name of its kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub name: u32,
    /// The token that represents this one. Tokens without text differ only in their position; the
    /// last one at a position represents the others.
    pub stands: u32,
}

/// The result of a walk. Keeps its buffers between texts.
#[derive(Debug, Default)]
pub(super) struct FlatTree {
    pub nodes: Vec<FlatNode>,
    pub tokens: Vec<Token>,
    pub names: Interner,
    /// Hashes of the root and of every node with children.
    pub subtrees: Vec<u128>,
    frames: Vec<Frame>,
    /// Tokens without text, and their positions.
    empty: Vec<(u32, u32)>,
    slices: TokenCutter,
}

/// A node whose children are being visited.
#[derive(Debug)]
struct Frame {
    mix: HashState,
    /// Its s-expression does not name it, so its parent also contains its children.
    anonymous: bool,
    field: u16,
    /// Its index in `nodes`, or [`NONE`] inside a string.
    flat: u32,
    children: bool,
    /// Its end in document order.
    end: usize,
}

/// A kind of node.
struct Kind {
    name: &'static str,
    named: bool,
    class: Class,
    /// A token has no children.
    token: bool,
    /// The start of its hash, and the hash of a node of this kind alone.
    mix: HashState,
    plain: u128,
}

impl Kind {
    fn new(id: u16, name: &'static str, named: bool, class: Class, token: bool) -> Self {
        let mix = HashState::new(u64::from(id) << 1);
        let mut plain = mix;
        plain.word(PLAIN);
        Self { name, named, class, token, mix, plain: plain.finish() }
    }
}

struct Grammar {
    kinds: Vec<Kind>,
    /// ERROR nodes are not in the table of kinds.
    error: Kind,
    fields: Vec<Field>,
    string: u16,
    concatenated: u16,
}

/// Looked up once: the grammar finds ids by comparing names.
static GRAMMAR: LazyLock<Grammar> = LazyLock::new(|| {
    let language = Language::from(tree_sitter_python::LANGUAGE);
    // The tokens of a grammar come first, then its start symbol and the other rules.
    let start = language.id_for_node_kind("module", true);
    let kind = |id: u16| {
        let name = language.node_kind_for_id(id).unwrap_or_default();
        let named = language.node_kind_is_named(id);
        let class = match (name, named) {
            ("identifier", true) => Class::Identifier,
            ("string", true) => Class::String,
            (",", false) => Class::Comma,
            ("block", true) => Class::Block,
            ("assignment" | "augmented_assignment", true) => Class::Assignment,
            ("for_in_clause", true) => Class::ForIn,
            ("default_parameter", true) => Class::Default,
            ("if_statement", true) => Class::If,
            ("elif_clause", true) => Class::Elif,
            ("else_clause", true) => Class::Else,
            ("for_statement", true) => Class::For,
            ("while_statement", true) => Class::While,
            ("comment", true) => Class::Comment,
            ("line_continuation", true) => Class::Continuation,
            ("expression_statement", true) => Class::Expression,
            _ => Class::Other,
        };
        Kind::new(id, name, named, class, id < start)
    };
    let kinds = (0..language.node_kind_count() as u16).map(kind).collect();
    let error = Kind::new(u16::MAX, "ERROR", true, Class::Other, false);
    let mut fields = vec![Field::Other; language.field_count() + 1];
    for (name, field) in [
        ("left", Field::Left),
        ("right", Field::Right),
        ("name", Field::Name),
        ("value", Field::Value),
    ] {
        let id = language.field_id_for_name(name).map_or(0, u16::from);
        if let Some(slot) = fields.get_mut(usize::from(id)) {
            *slot = field;
        }
    }
    let id = |name| language.id_for_node_kind(name, true);
    let (string, concatenated) = (id("string"), id("concatenated_string"));
    Grammar { kinds, error, fields, string, concatenated }
});

/// Roles of leaves in a hash, in addition to their kinds.
const PLAIN: u64 = 0;
const MISSING: u64 = 1;
const UNEXPECTED: u64 = 2;

impl FlatTree {
    /// Walks over the tree of `text`.
    pub(super) fn walk(&mut self, tree: &Tree, text: &str, mode: CodeBleuMode) {
        let grammar = &*GRAMMAR;
        self.nodes.clear();
        self.tokens.clear();
        self.names.clear();
        self.subtrees.clear();
        self.frames.clear();
        self.empty.clear();
        self.slices.start(text, mode);
        let strict = mode == CodeBleuMode::Strict;
        // The number of nodes passed. The ends of open nodes are known by it, so the cursor is not
        // asked for a sibling after each last child, which is its slowest operation.
        let mut place = 0;
        let mut cursor = tree.walk();
        loop {
            let node = cursor.node();
            let id = node.kind_id();
            let kind = grammar.kinds.get(usize::from(id)).unwrap_or(&grammar.error);
            if strict && ignored(grammar, kind.class, &mut cursor, text) {
                place += node.descendant_count();
            } else {
                place += 1;
                // The field must be read before the cursor moves.
                let field = if kind.named { field(&cursor) } else { 0 };
                let down = !kind.token && cursor.goto_first_child();
                let inside = match self.frames.last_mut() {
                    Some(parent) => {
                        parent.children = true;
                        parent.flat == NONE
                    }
                    None => false,
                };
                if down {
                    let mut flat = NONE;
                    if !inside {
                        flat = self.copy(grammar, kind, field);
                        if kind.class == Class::String {
                            self.nodes[flat as usize].parts = node.child_count() as u32;
                            self.token(kind, text, node.start_byte(), node.end_byte(), strict);
                            flat = NONE;
                        }
                    }
                    self.frames.push(Frame {
                        mix: kind.mix,
                        anonymous: !kind.named,
                        field,
                        flat,
                        children: false,
                        end: place - 1 + node.descendant_count(),
                    });
                    continue;
                }
                let (start, end) = (node.start_byte(), node.end_byte());
                let field = if start == end { self::field(&cursor) } else { field };
                if !inside {
                    self.copy(grammar, kind, field);
                    if kind.class != Class::Comment {
                        self.token(kind, text, start, end, strict);
                    }
                }
                self.leaf(&node, id, kind, field, start == end);
            }
            loop {
                let more = self.frames.last().is_some_and(|frame| place < frame.end);
                if more && cursor.goto_next_sibling() {
                    break;
                }
                if self.frames.len() <= 1 || !cursor.goto_parent() {
                    self.finish();
                    return;
                }
                self.leave();
            }
        }
    }

    /// Adds a node to the copy and returns its index.
    fn copy(&mut self, grammar: &Grammar, kind: &Kind, field: u16) -> u32 {
        let flat = self.nodes.len() as u32;
        self.nodes.push(FlatNode {
            class: kind.class,
            field: grammar.fields.get(usize::from(field)).map_or(Field::Other, |f| *f),
            end: flat + 1,
            first: self.tokens.len() as u32,
            token: NONE,
            parts: 0,
            comprehends: false,
        });
        if kind.class == Class::ForIn
            && let Some(parent) = self.frames.last()
        {
            self.nodes[parent.flat as usize].comprehends = true;
        }
        flat
    }

    /// Turns the last node of the copy into a token, if its text differs from the name of its kind.
    fn token(&mut self, kind: &Kind, text: &str, start: usize, end: usize, strict: bool) {
        // The peers count tokens without text.
        if start == end && strict {
            return;
        }
        let slice = self.slices.slice(text, start, end);
        if slice == kind.name.as_bytes() {
            return;
        }
        let name = self.names.id(slice);
        let stands = self.tokens.len() as u32;
        if let Some(node) = self.nodes.last_mut() {
            node.token = stands;
        }
        self.tokens.push(Token { name, stands });
        if start == end {
            self.empty.push((stands, start as u32));
        }
    }

    fn leaf(&mut self, node: &Node<'_>, id: u16, kind: &Kind, field: u16, empty: bool) {
        let mut hash = kind.plain;
        if empty && node.is_missing() {
            let mut mix = kind.mix;
            mix.word(MISSING);
            hash = mix.finish();
        } else if !kind.named {
            // Anonymous nodes are in the s-expression only at the root.
            if self.frames.is_empty() {
                self.subtrees.push(kind.mix.finish());
            }
            return;
        } else if id == u16::MAX && !empty {
            // Only the s-expression contains the character, and shows whether the node has hidden
            // tokens instead.
            let written = node.to_sexp();
            let mut mix = kind.mix;
            mix.word(UNEXPECTED);
            for &byte in written.as_bytes() {
                mix.word(u64::from(byte));
            }
            hash = mix.finish();
        }
        self.absorb(hash, field);
        if self.frames.is_empty() {
            self.subtrees.push(hash);
        }
    }

    /// Adds the hash of a node to the nodes whose s-expressions contain it.
    fn absorb(&mut self, hash: u128, field: u16) {
        for frame in self.frames.iter_mut().rev() {
            frame.mix.add(hash, u64::from(field) << 2 | 2);
            if !frame.anonymous {
                break;
            }
        }
    }

    fn leave(&mut self) {
        let Some(frame) = self.frames.pop() else { return };
        if frame.flat != NONE {
            self.nodes[frame.flat as usize].end = self.nodes.len() as u32;
        }
        let mut mix = frame.mix;
        if !frame.children {
            mix.word(PLAIN);
        }
        let hash = mix.finish();
        if frame.children || self.frames.is_empty() {
            self.subtrees.push(hash);
        }
        if !frame.anonymous {
            self.absorb(hash, frame.field);
        }
    }

    fn finish(&mut self) {
        while !self.frames.is_empty() {
            self.leave();
        }
        for pair in (1..self.empty.len()).rev() {
            let ((before, at), (after, next)) = (self.empty[pair - 1], self.empty[pair]);
            if at == next {
                self.tokens[before as usize].stands = self.tokens[after as usize].stands;
            }
        }
    }
}

fn field(cursor: &TreeCursor<'_>) -> u16 {
    cursor.field_id().map_or(0, u16::from)
}

/// True if [`CodeBleuMode::Strict`] leaves out the node under the cursor.
fn ignored(grammar: &Grammar, class: Class, cursor: &mut TreeCursor<'_>, text: &str) -> bool {
    match class {
        Class::Comment | Class::Continuation => true,
        Class::Expression if cursor.goto_first_child() => {
            let first = cursor.node();
            let alone = !cursor.goto_next_sibling();
            cursor.goto_parent();
            let id = first.kind_id();
            if !alone || (id != grammar.string && id != grammar.concatenated) {
                return false;
            }
            // Comments between the parts of a string are also children.
            let mut parts = first.walk();
            let mut parts =
                first.children(&mut parts).filter(|part| part.kind_id() == grammar.string);
            if id == grammar.string {
                literal(&first, text)
            } else {
                parts.all(|part| literal(&part, text))
            }
        }
        _ => false,
    }
}

/// True for a string that is not evaluated: neither an f-string nor a newer kind.
fn literal(string: &Node<'_>, text: &str) -> bool {
    let bytes = text.as_bytes().get(string.byte_range()).unwrap_or_default();
    let prefix = bytes.iter().take_while(|byte| byte.is_ascii_alphabetic());
    !prefix.into_iter().any(|byte| matches!(byte, b'f' | b'F' | b't' | b'T'))
}
