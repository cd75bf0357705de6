//! The methods of a Python file, assembled from pieces that were parsed before.
//!
//! [`Pieces`] returns the same list as `methods`, without the code, as an [`Outline`]. From one
//! version of a file to the next nearly all statements stay the same. So a file is cut
//! (`outline::cut`) into runs of top-level statements, and large classes into a header and runs of
//! members. Each piece is parsed alone and once (`outline::piece`). This is exact because:
//!
//! - A piece that parses alone without an error ends with a whole statement. It begins at the first
//!   column (a member: at the column of the members), after a line that does not end in a
//!   backslash, with a letter, `_` or `@`. So the scanner of indents sees the same end whether the
//!   next piece follows or nothing: all blocks in the piece are closed. The parser reaches the next
//!   piece in the same state as the start of a text (or class body), where it takes the same tokens
//!   in the same way. If all pieces are free of errors, the tree of the file is the sequence of
//!   their trees.
//! - tree-sitter follows several readings at a time. A reading that does not end with the piece is
//!   lost unless it takes a word next, as after a comma (`a,` `b = 1` on two lines reads as one
//!   assignment). No cut is made there. `piece` rejects the remaining cases, and all tokens that
//!   could look for their end beyond the piece.
//! - The limits of `parse` are far away.
//!
//! Otherwise the file is parsed as a whole, so the choice of cuts affects only speed. Most pieces
//! need no parser at all (`outline::plain`).

use std::collections::HashMap;
use std::sync::Arc;

use self::cut::Cuts;
pub use self::memo::Pieces;
use self::piece::{Context, MethodEntry, Piece, Verdict};
pub(super) use self::plain::PlainCode;
use super::methods::methods;
use super::parse::{BASE_OPS, OPS_PER_BYTE, ParseError, PythonParser};

mod cut;
mod memo;
mod piece;
mod plain;
#[cfg(test)]
mod tests;

/// Longest text that is assembled, in bytes. For longer ones `parse` has a limit that does not grow
/// with the text.
const MAX_BYTES: usize = 1 << 20;

/// Parser operations per node of a tree without errors. Usual are 2.9; lists of names need up to 7.
const OPS_PER_NODE: usize = 8;

/// Parser operations for a piece within its file per operation alone. Only those that join the
/// statements of the pieces into one list are extra: less than one per statement.
const OPS_IN_FILE: usize = 2;

/// Half of `BASE_READ` and less than half of `READ_PER_BYTE` of `parse`; a text without long
/// comments needs up to 6 per byte.
const BASE_REREAD: usize = 2 << 20;
const REREAD_PER_BYTE: usize = 24;

/// The methods of a file in the order of their first byte. Cheap to keep: files that contain the
/// same piece share its names and places.
#[derive(Clone, Debug)]
pub struct Outline {
    parts: Box<[PlacedPiece]>,
    /// Positions in the list and ordinals of the methods that are not the first of their name.
    ordinals: Box<[(u32, u32)]>,
    nested: bool,
}

#[derive(Clone, Debug)]
struct PlacedPiece {
    piece: Arc<Piece>,
    byte: u32,
    line: u32,
}

/// A method of an [`Outline`]: as [`PythonMethod`](crate::PythonMethod), without the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutlineMethod<'a> {
    /// The name after `def`.
    pub fun_name: &'a str,
    /// Names of the enclosing classes and functions and its own name, joined by dots.
    pub qualified_name: &'a str,
    /// Position among the methods of the same qualified name in this file, from 0.
    pub ordinal: u32,
    /// First line of the definition, counted from 1.
    pub start_line: u32,
    /// Last line of the definition, counted from 1, inclusive.
    pub end_line: u32,
    /// Offset of the first byte in the source.
    pub start_byte: u32,
    /// Offset after the last byte in the source.
    pub end_byte: u32,
}

impl Pieces {
    /// The methods of `source`, the same as `methods` lists.
    ///
    /// # Errors
    /// As [`methods`](crate::methods()): [`ParseError::TooLarge`] or [`ParseError::TooComplex`] if
    /// the source exceeds the parser's limits.
    pub fn outline(
        &self,
        parser: &mut PythonParser,
        source: &str,
        nested: bool,
    ) -> Result<Outline, ParseError> {
        if source.len() <= MAX_BYTES
            && let Some(outline) = self.assemble(parser, source, nested)
        {
            return Ok(outline);
        }
        let methods = methods(parser, source, nested)?;
        let piece = Piece::whole(source, methods, |name| self.name(name));
        let piece = Arc::new(piece.ok_or(ParseError::TooComplex)?);
        Ok(Outline::of(vec![PlacedPiece { piece, byte: 0, line: 0 }], true))
    }

    /// The outline of `source` from its pieces, if all are sound.
    fn assemble(&self, parser: &mut PythonParser, source: &str, nested: bool) -> Option<Outline> {
        let mut sum = PieceTotals::default();
        let cuts = Cuts::of(source.as_bytes());
        let mut run = Assembly { pieces: self, parser, source };
        for span in &cuts.spans {
            let members = cuts.members.get(span.members.clone())?;
            if members.is_empty() || !run.class(span.start, span.end, members, &mut sum)? {
                let context = if span.start == 0 { Context::First } else { Context::Top };
                let piece = run.find(context, span.start, span.end);
                if piece.verdict != Verdict::Sound {
                    return None;
                }
                sum.add(piece, span.start);
            }
        }
        let PieceTotals { parts, ops, reread, .. } = sum;
        within_limits(ops, reread, source).then(|| Outline::of(parts, nested))
    }
}

/// True if a text without errors stays far from the limits of `parse`.
fn within_limits(ops: usize, reread: usize, source: &str) -> bool {
    let budget = BASE_OPS + OPS_PER_BYTE * source.len();
    ops <= budget && reread <= BASE_REREAD + REREAD_PER_BYTE * source.len()
}

/// The contents of `source` if it is plain: then [`PythonParser::parse`] returns a tree without
/// errors and with these definitions.
pub(super) fn read_plain(source: &str) -> Option<PlainCode> {
    if source.len() > MAX_BYTES || piece::reaches_out(source) {
        return None;
    }
    let plain = plain::read(source, false)?;
    let reread = piece::reread(source) as usize;
    within_limits(plain.nodes * OPS_PER_NODE, reread, source).then_some(plain)
}

#[derive(Default)]
struct PieceTotals {
    parts: Vec<PlacedPiece>,
    line: u32,
    ops: usize,
    reread: usize,
}

impl PieceTotals {
    fn add(&mut self, piece: Arc<Piece>, start: usize) {
        let line = self.line;
        self.line += piece.lines;
        let by_nodes = piece.nodes as usize * OPS_PER_NODE;
        self.ops += match piece.ops as usize {
            0 => by_nodes,
            ops => by_nodes.min(ops * OPS_IN_FILE),
        };
        self.reread += piece.reread as usize;
        // No text is longer than `MAX_BYTES`.
        self.parts.push(PlacedPiece { piece, byte: start as u32, line });
    }
}

struct Assembly<'a> {
    pieces: &'a Pieces,
    parser: &'a mut PythonParser,
    source: &'a str,
}

impl Assembly<'_> {
    fn find(&mut self, context: Context<'_>, start: usize, end: usize) -> Arc<Piece> {
        let text = self.source.get(start..end).unwrap_or_default();
        let hash = self.pieces.hash(context, text);
        if let Some(piece) = self.pieces.get(hash, context, text) {
            return piece;
        }
        let piece =
            Arc::new(piece::find(self.parser, context, text, |name| self.pieces.name(name)));
        self.pieces.put(hash, context, text, &piece);
        piece
    }

    /// Adds the pieces of a class; `Some(false)` if it cannot be split, `None` if it has an error.
    fn class(
        &mut self,
        start: usize,
        end: usize,
        members: &[usize],
        sum: &mut PieceTotals,
    ) -> Option<bool> {
        let first = members.first().copied().unwrap_or(end);
        let header = self.find(Context::Header, start, first);
        let mut found = vec![(Arc::clone(&header), start)];
        let ends = members.iter().skip(1).copied().chain([end]);
        for (&from, to) in members.iter().zip(ends) {
            if found.last()?.0.verdict == Verdict::Sound {
                found.push((self.find(Context::Member(&header.names), from, to), from));
            }
        }
        match found.last()?.0.verdict {
            Verdict::Broken => return None,
            Verdict::Unfit => return Some(false),
            Verdict::Sound => {}
        }
        for (piece, from) in found {
            sum.add(piece, from);
        }
        Some(true)
    }
}

impl Outline {
    fn of(parts: Vec<PlacedPiece>, nested: bool) -> Self {
        let mut outline = Self { parts: parts.into(), ordinals: [].into(), nested };
        let mut hashes: Vec<u64> = outline.entries().map(|(_, entry)| entry.hash).collect();
        hashes.sort_unstable();
        // In most files each name is there once.
        if hashes.windows(2).any(|pair| pair.first() == pair.last()) {
            let mut next: HashMap<&str, u32> = HashMap::new();
            let mut ordinals = Vec::new();
            for (index, (part, entry)) in (0..).zip(outline.entries()) {
                let next = next.entry(part.piece.qualified_name(entry)).or_default();
                if *next > 0 {
                    ordinals.push((index, *next));
                }
                *next += 1;
            }
            outline.ordinals = ordinals.into();
        }
        outline
    }

    fn entries(&self) -> impl Iterator<Item = (&PlacedPiece, &MethodEntry)> {
        self.parts.iter().flat_map(|part| {
            let listed = part.piece.methods.iter().filter(|entry| self.nested || !entry.nested);
            listed.map(move |entry| (part, entry))
        })
    }

    /// The methods in the order of their first byte.
    pub fn methods(&self) -> impl Iterator<Item = OutlineMethod<'_>> {
        let mut ordinals = self.ordinals.iter().copied().peekable();
        (0..).zip(self.entries()).map(move |(index, (part, entry))| OutlineMethod {
            fun_name: part.piece.fun_name(entry),
            qualified_name: part.piece.qualified_name(entry),
            ordinal: ordinals.next_if(|&(at, _)| at == index).map_or(0, |(_, ordinal)| ordinal),
            start_line: part.line + entry.start_line,
            end_line: part.line + entry.end_line,
            start_byte: part.byte + entry.start_byte,
            end_byte: part.byte + entry.end_byte,
        })
    }

    /// The number of methods.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries().count()
    }

    /// True if the file has no methods.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries().next().is_none()
    }
}
