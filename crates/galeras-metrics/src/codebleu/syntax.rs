//! One walk over a syntax tree: its subtrees as hashes, and a copy for the data flow.
//!
//! Here: which nodes take part, the hash of every subtree, the tokens that may be variables.
//! Not here: comparing (`mod`), what flows where (`dataflow`), text that is stripped before
//! parsing (`strip`).
//!
//! Two subtrees are equal where tree-sitter writes the same s-expression for both: it names
//! the kinds of named nodes and the fields they stand in, tokens that the parser supposed
//! (MISSING), and the character at which an ERROR without children begins (UNEXPECTED). It
//! leaves out anonymous tokens, all text, and the field of the outermost node. Writing them
//! out is quadratic in depth; a hash of 128 bits is made of the hashes below it instead.
//!
//! [`CodeBleuMode::Strict`] leaves out of both, with all that is in them: comments, line
//! continuations, and statements that are nothing but string literals, docstrings among
//! them (an f-string is evaluated, so it stays). A node of which nothing else remains counts
//! as a node without children.

use std::sync::LazyLock;

use tree_sitter::{Language, Node, Tree, TreeCursor};

use super::mode::CodeBleuMode;
use super::symbols::{Mix, Names};
use super::token_text::Slices;

/// What the data flow knows of the kind of a node.
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
    /// A statement that may be nothing but a string.
    Expression,
}

/// The fields that the data flow asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Other,
    Left,
    Right,
    Name,
    Value,
}

/// No token.
pub(super) const NONE: u32 = u32::MAX;

/// A node of the copy. Nodes are in document order, an outer one before what is in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flat {
    pub class: Class,
    pub field: Field,
    /// The first node that is not in this one.
    pub end: u32,
    /// Tokens before this node.
    pub first: u32,
    /// The token that this node is, or [`NONE`].
    pub token: u32,
    /// Children of a string, which are not in the copy.
    pub parts: u32,
    /// Whether a child is the `for` of a comprehension.
    pub comprehends: bool,
}

/// A token that may be a variable: a node without children, or a string, whose text is not
/// the name of its kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub name: u32,
    /// The token that counts in place of this one: tokens without text are told apart by
    /// their place only, and the last one stands for all.
    pub stands: u32,
}

/// What one walk collects. Reused from text to text.
#[derive(Debug, Default)]
pub(super) struct Shape {
    pub nodes: Vec<Flat>,
    pub tokens: Vec<Token>,
    pub names: Names,
    /// Hashes of the root and of every node with children.
    pub subtrees: Vec<u128>,
    frames: Vec<Frame>,
    /// Tokens without text, and where they are.
    empty: Vec<(u32, u32)>,
    slices: Slices,
}

/// A node whose children are being visited.
#[derive(Debug)]
struct Frame {
    mix: Mix,
    /// Its s-expression does not name it: what is in it belongs to its parent too.
    anonymous: bool,
    field: u16,
    /// Place in `nodes`, or [`NONE`] inside of a string.
    flat: u32,
    children: bool,
    /// The first place in document order that is not in it.
    end: usize,
}

/// What is known of a kind of node before any is seen.
struct Kind {
    name: &'static str,
    named: bool,
    class: Class,
    /// A token, which has no children.
    token: bool,
    /// What a hash of it begins with, and the hash of it alone.
    mix: Mix,
    plain: u128,
}

impl Kind {
    fn new(id: u16, name: &'static str, named: bool, class: Class, token: bool) -> Self {
        let mix = Mix::new(u64::from(id) << 1);
        let mut plain = mix;
        plain.word(PLAIN);
        Self { name, named, class, token, mix, plain: plain.finish() }
    }
}

struct Grammar {
    kinds: Vec<Kind>,
    /// ERROR nodes have no place in the table of kinds.
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

/// What a leaf is absorbed as, apart from its kind.
const PLAIN: u64 = 0;
const MISSING: u64 = 1;
const UNEXPECTED: u64 = 2;

impl Shape {
    /// Walks over the tree of `text`, forgetting what was walked before.
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
        // Nodes that were passed. Where the open ones end is known by it, so that the cursor is not
        // asked for a sibling of each last child, which costs it most.
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
                // Asked for before the cursor moves.
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

    /// Adds a node to the copy; gives its place.
    fn copy(&mut self, grammar: &Grammar, kind: &Kind, field: u16) -> u32 {
        let flat = self.nodes.len() as u32;
        self.nodes.push(Flat {
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

    /// Makes the last node of the copy a token, if its text is not the name of its kind.
    fn token(&mut self, kind: &Kind, text: &str, start: usize, end: usize, strict: bool) {
        // What has no text is a token to the peers, not to us.
        if start == end && strict {
            return;
        }
        let slice = self.slices.slice(text, start, end);
        if slice == kind.name.as_bytes() {
            return;
        }
        let name = self.names.intern(slice);
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
            // Not in the s-expression, unless it is all there is.
            if self.frames.is_empty() {
                self.subtrees.push(kind.mix.finish());
            }
            return;
        } else if id == u16::MAX && !empty {
            // Only the s-expression tells the character, and whether there are hidden
            // tokens in the node instead.
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

    /// Hands what a node contributes to the nodes whose s-expressions show it.
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

/// Whether the node under the cursor does not take part under [`CodeBleuMode::Strict`].
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
            // Comments between the parts of a string are children too.
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

/// Whether a string is not an f-string, nor one of the newer kinds that are evaluated.
fn literal(string: &Node<'_>, text: &str) -> bool {
    let bytes = text.as_bytes().get(string.byte_range()).unwrap_or_default();
    let prefix = bytes.iter().take_while(|byte| byte.is_ascii_alphabetic());
    !prefix.into_iter().any(|byte| matches!(byte, b'f' | b'F' | b't' | b'T'))
}
