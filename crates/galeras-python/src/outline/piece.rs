//! Finds the methods in one piece of a file by parsing it alone, and rejects unsound pieces.

use tree_sitter::{Node, Tree};

use super::super::methods::{MAX_COPIES, PythonMethod, each_function};
use super::super::parse::PythonParser;
use super::plain;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Context<'a> {
    First,
    Top,
    /// The beginning of a class, with decorators and comments, up to its first member.
    Header,
    /// Members of the class of this name in the module.
    Member(&'a str),
}

impl<'a> Context<'a> {
    pub(super) fn parts(self) -> (u8, &'a str) {
        match self {
            Self::First => (0, ""),
            Self::Top => (1, ""),
            Self::Header => (2, ""),
            Self::Member(name) => (3, name),
        }
    }

    /// The text that is parsed before a piece in place of the statements there, and the text that
    /// completes it.
    fn around(self) -> (String, &'static str) {
        match self {
            Self::First => (String::new(), ""),
            Self::Top => ("pass\n".to_owned(), ""),
            Self::Header => (String::new(), " pass\n"),
            Self::Member(name) => (format!("class {name}:\n"), ""),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The piece has the same meaning alone as in its file.
    Sound,
    /// It may have another meaning, or it is not a piece of this kind.
    Unfit,
    /// It has a syntax error.
    Broken,
}

#[derive(Debug)]
pub(super) struct Piece {
    pub(super) verdict: Verdict,
    /// The names of the methods, or that of the class whose header this is.
    pub(super) names: Box<str>,
    pub(super) methods: Box<[MethodEntry]>,
    pub(super) lines: u32,
    pub(super) nodes: u32,
    /// Upper bound of parser operations; 0 if it was not parsed.
    pub(super) ops: u32,
    /// Bytes that the scanner may read more often than usual.
    pub(super) reread: u32,
}

/// A method; places count from the start of the piece, lines from 1.
#[derive(Debug)]
pub(super) struct MethodEntry {
    pub(super) hash: u64,
    /// Range of the qualified name in the names of the piece; it ends with the name.
    name: (u32, u32),
    fun_name: u32,
    pub(super) start_line: u32,
    pub(super) end_line: u32,
    pub(super) start_byte: u32,
    pub(super) end_byte: u32,
    /// Inside of a function.
    pub(super) nested: bool,
}

/// All numbers are at most 64 times the longest text, 256 MB.
fn number(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl Piece {
    fn empty(verdict: Verdict) -> Self {
        let (names, methods) = (Box::default(), Box::default());
        Self { verdict, names, methods, lines: 0, nodes: 0, ops: 0, reread: 0 }
    }

    /// The methods of a text that was parsed as a whole.
    pub(super) fn whole(
        text: &str,
        methods: Vec<PythonMethod>,
        hash: impl Fn(&str) -> u64,
    ) -> Option<Self> {
        let mut list = Methods::of(text, &hash);
        for m in methods {
            let (names, range) = ((&*m.fun_name, &*m.qualified_name), (m.start_byte, m.end_byte));
            list.add(names, range, m.start_line, false)?;
        }
        Some(list.piece(0))
    }

    pub(super) fn qualified_name(&self, entry: &MethodEntry) -> &str {
        self.names.get(entry.name.0 as usize..entry.name.1 as usize).unwrap_or_default()
    }

    pub(super) fn fun_name(&self, entry: &MethodEntry) -> &str {
        self.names.get(entry.fun_name as usize..entry.name.1 as usize).unwrap_or_default()
    }

    pub(super) fn bytes(&self) -> usize {
        self.names.len() + size_of_val::<[MethodEntry]>(&self.methods)
    }
}

/// The contents of `text`; `hash` hashes a name.
pub(super) fn find(
    parser: &mut PythonParser,
    context: Context<'_>,
    text: &str,
    hash: impl Fn(&str) -> u64,
) -> Piece {
    if reaches_out(text) {
        return Piece::empty(Verdict::Broken);
    }
    match plain_piece(context, text, &hash) {
        // The word starts lines only in strings or brackets.
        Some(piece) => piece,
        None if two_ways(text) => Piece::empty(Verdict::Broken),
        None => {
            let piece = parsed_piece(parser, context, text, &hash);
            Piece { ops: number(parser.ops), ..piece }
        }
    }
}

/// True if the text has a token that may extend beyond it, or a byte that may end it early.
pub(super) fn reaches_out(text: &str) -> bool {
    let open = match text.rfind("\\N{") {
        // This token of strings ends at its brace, which may be anywhere.
        Some(at) => !text.get(at..).unwrap_or_default().contains('}'),
        None => false,
    };
    open || text.contains('\0')
}

fn parsed_piece(
    parser: &mut PythonParser,
    context: Context<'_>,
    text: &str,
    hash: &impl Fn(&str) -> u64,
) -> Piece {
    let (before, after) = context.around();
    let tree = match parser.parse_anew(&[&before, text, after].concat()) {
        Ok(tree) if !tree.root_node().has_error() => tree,
        _ => return Piece::empty(Verdict::Broken),
    };
    let class = match context {
        Context::First | Context::Top => "",
        Context::Header => {
            let Some(name) = header_name(&tree, text) else {
                return Piece::empty(Verdict::Unfit);
            };
            let nodes = tree.root_node().descendant_count();
            return Piece { names: name.into(), ..sizes(nodes, text) };
        }
        Context::Member(_) if only_statement(&tree).is_none() => {
            return Piece::empty(Verdict::Unfit);
        }
        Context::Member(name) => name,
    };
    let before = before.len();
    let mut methods = Methods::of(text, hash);
    let name_of = |node: Node<'_>| {
        let range = node.child_by_field_name("name")?.byte_range();
        // The class around the text comes first.
        let Some(from) = range.start.checked_sub(before) else { return Some(class) };
        text.get(from..range.end - before)
    };
    let mut function_end = 0;
    let complete = each_function(&tree, true, name_of, |node, name, qualified| {
        let nested = node.end_byte() <= function_end;
        function_end = function_end.max(node.end_byte());
        let range = (node.start_byte().checked_sub(before)?, node.end_byte() - before);
        let line = node.start_position().row + 1 - usize::from(before > 0);
        methods.add((name, qualified), range, line, nested)
    });
    match complete {
        Some(()) => methods.piece(tree.root_node().descendant_count()),
        None => Piece::empty(Verdict::Broken),
    }
}

fn plain_piece(context: Context<'_>, text: &str, hash: &impl Fn(&str) -> u64) -> Option<Piece> {
    let class = match context {
        Context::First | Context::Top => None,
        Context::Member(name) => Some(name),
        Context::Header => return None,
    };
    let plain::PlainCode { definitions, nodes, .. } = plain::read(text, class.is_some())?;
    let mut methods = Methods::of(text, hash);
    let mut scope: Vec<&str> = class.into_iter().collect();
    let mut qualified = String::new();
    let (mut function_end, mut line, mut counted) = (0, 1, 0);
    for definition in definitions {
        let plain::Definition { is_function, name, start, end, depth, .. } = definition;
        let name = text.get(name.0..name.1)?;
        scope.truncate(depth);
        scope.push(name);
        if is_function {
            line += newlines(text.get(counted..start)?);
            counted = start;
            qualified.clear();
            for (at, part) in scope.iter().enumerate() {
                qualified.push_str(if at > 0 { "." } else { "" });
                qualified.push_str(part);
            }
            let nested = end <= function_end;
            methods.add((name, &qualified), (start, end), line, nested)?;
            function_end = function_end.max(end);
        }
    }
    Some(methods.piece(nodes + AROUND))
}

const AROUND: usize = 10;

/// True if a line may start both a `match` statement and an expression with the name `match`. The
/// two readings may end in different lines and blocks: `match [x]:` before a string further left is
/// an empty statement or an annotation, and only the whole file decides. In `match['x'] = y` the
/// first reading ends at the `=`, which follows no subject.
fn two_ways(text: &str) -> bool {
    text.match_indices("match").any(|(at, word)| {
        let (before, after) = text.split_at(at);
        let starts =
            before.bytes().rev().find(|b| !matches!(b, b' ' | b'\t' | b'\r' | 0x0c | 0x80..));
        let next = after.get(word.len()..).unwrap_or_default().trim_start_matches([' ', '\t']);
        let (first, second) = (next.bytes().next(), next.as_bytes().get(1));
        matches!(starts, None | Some(b'\n'))
            && match first {
                Some(b'+' | b'-' | b'*') => second != Some(&b'='),
                Some(b'[') if assigned_item(next) => false,
                Some(b'(' | b'[' | b'\\' | b'\r' | 0x0c | b'`' | 0x80..) => true,
                _ => next.starts_with("not"),
            }
    })
}

/// True if a text starts with `[`, a word or quoted word, `]` and `=`.
fn assigned_item(text: &str) -> bool {
    let item = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let Some((item, rest)) = item else { return false };
    let quoted = |quote| item.strip_prefix(quote).and_then(|item| item.strip_suffix(quote));
    let word = quoted('\'').or_else(|| quoted('"')).unwrap_or(item);
    let is_word = !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let mut rest = rest.trim_start_matches([' ', '\t']).bytes();
    is_word && rest.next() == Some(b'=') && rest.next() != Some(b'=')
}

fn sizes(nodes: usize, text: &str) -> Piece {
    Piece {
        lines: number(newlines(text)),
        nodes: number(nodes),
        reread: reread(text),
        ..Piece::empty(Verdict::Sound)
    }
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|&byte| byte == b'\n').count()
}

/// The scanner reads ahead over blank lines and comments to the next code, again from each of them.
/// If they all fit into the lexer's current chunk, it takes no new one; else it takes at most two
/// more, going back and forth.
pub(super) fn reread(text: &str) -> u32 {
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
    number(sum)
}

/// The only statement of a text, apart from comments.
fn only_statement(tree: &Tree) -> Option<Node<'_>> {
    let root = tree.root_node();
    let mut cursor = root.walk();
    let mut statements = root.children(&mut cursor).filter(|node| node.kind() != "comment");
    let statement = statements.next()?;
    statements.next().is_none().then_some(statement)
}

/// The name of the class whose header is `text`, if the text after it has become its body.
fn header_name<'a>(tree: &Tree, text: &'a str) -> Option<&'a str> {
    let mut class = only_statement(tree)?;
    if class.kind() == "decorated_definition" {
        class = class.child_by_field_name("definition")?;
    }
    if class.kind() != "class_definition" {
        return None;
    }
    let body = class.child_by_field_name("body")?;
    let mut cursor = body.walk();
    let mut members = body.children(&mut cursor).filter(|node| node.kind() != "comment");
    let pass = members.next().filter(|node| node.start_byte() > text.len())?;
    if pass.kind() != "pass_statement" || members.next().is_some() {
        return None;
    }
    text.get(class.child_by_field_name("name")?.byte_range())
}

struct Methods<'a, H> {
    text: &'a str,
    hash: &'a H,
    names: String,
    entries: Vec<MethodEntry>,
    copied: usize,
}

impl<'a, H: Fn(&str) -> u64> Methods<'a, H> {
    fn of(text: &'a str, hash: &'a H) -> Self {
        Self { text, hash, names: String::new(), entries: Vec::new(), copied: 0 }
    }

    /// Adds a method: its name, alone and qualified, its place, its first line from 1. `None` if
    /// the names and texts of nested functions become too large.
    fn add(
        &mut self,
        (name, qualified): (&str, &str),
        (start, end): (usize, usize),
        start_line: usize,
        nested: bool,
    ) -> Option<()> {
        let code = self.text.get(start..end)?;
        self.copied += code.len() + qualified.len();
        if self.copied > MAX_COPIES.saturating_mul(self.text.len()) {
            return None;
        }
        let from = self.names.len();
        self.names.push_str(qualified);
        let to = self.names.len();
        self.entries.push(MethodEntry {
            hash: (self.hash)(qualified),
            name: (number(from), number(to)),
            fun_name: number(to - name.len()),
            start_line: number(start_line),
            end_line: number(start_line + newlines(code.trim_end_matches('\n'))),
            start_byte: number(start),
            end_byte: number(end),
            nested,
        });
        Some(())
    }

    fn piece(self, nodes: usize) -> Piece {
        let (names, methods) = (self.names.into(), self.entries.into());
        Piece { names, methods, ..sizes(nodes, self.text) }
    }
}

#[cfg(test)]
mod tests;
