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
//!
//! With another version of the file at hand, only the text between the lines that both begin and
//! end with is cut and looked up; the other pieces are taken from that version.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use self::cut::Cuts;
pub use self::memo::Pieces;
use self::piece::{Context, MethodEntry, Piece, Verdict};
pub(super) use self::plain::PlainCode;
use super::ends::Ends;
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
    /// The file was parsed as a whole: then there is one part, which is not a piece.
    whole: bool,
}

#[derive(Clone, Debug)]
struct PlacedPiece {
    piece: Arc<Piece>,
    byte: u32,
    line: u32,
    /// Not a member of a class whose header comes before it.
    top: bool,
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
        self.outline_of(parser, source, nested, None)
    }

    /// As [`Pieces::outline`] of the second of two texts, given the outline of the first: faster
    /// the more they have in common.
    ///
    /// # Errors
    /// As [`Pieces::outline`].
    pub fn outline_beside(
        &self,
        parser: &mut PythonParser,
        ends: &Ends<'_>,
        outline: &Outline,
        nested: bool,
    ) -> Result<Outline, ParseError> {
        let usable = !outline.whole && outline.nested == nested;
        let near = usable.then_some(OtherVersion { ends, outline });
        self.outline_of(parser, ends.texts[1], nested, near)
    }

    fn outline_of(
        &self,
        parser: &mut PythonParser,
        source: &str,
        nested: bool,
        near: Option<OtherVersion<'_>>,
    ) -> Result<Outline, ParseError> {
        if source.len() <= MAX_BYTES
            && let Some(outline) = self.assemble(parser, source, nested, near)
        {
            return Ok(outline);
        }
        let methods = methods(parser, source, nested)?;
        let piece = Piece::whole(source, methods, |name| self.name(name));
        let piece = Arc::new(piece.ok_or(ParseError::TooComplex)?);
        let parts = vec![PlacedPiece { piece, byte: 0, line: 0, top: true }];
        Ok(Outline { whole: true, ..Outline::of(parts, true, 0..1) })
    }

    /// The outline of `source` from its pieces, if all are sound.
    fn assemble(
        &self,
        parser: &mut PythonParser,
        source: &str,
        nested: bool,
        near: Option<OtherVersion<'_>>,
    ) -> Option<Outline> {
        let mut sum = PieceTotals::default();
        let mut from = 0;
        if let Some(near) = &near {
            let (head, start) = near.head();
            sum.take(head, 0);
            from = start;
        }
        let fresh = sum.parts.len();
        let known = |at| near.as_ref().and_then(|near| near.tail(source.len(), at));
        let (cuts, end) = Cuts::between(source.as_bytes(), from, |at| known(at).is_some());
        let mut run = Assembly { pieces: self, parser, source };
        for span in &cuts.spans {
            let members = cuts.members.get(span.members.clone())?;
            if members.is_empty() || !run.class(span.start, span.end, members, &mut sum)? {
                let context = if span.start == 0 { Context::First } else { Context::Top };
                let piece = run.find(context, span.start, span.end);
                if piece.verdict != Verdict::Sound {
                    return None;
                }
                sum.add(piece, span.start, true);
            }
        }
        let fresh = fresh..sum.parts.len();
        if let Some(tail) = known(end) {
            sum.take(tail, end);
        }
        let PieceTotals { parts, ops, reread, .. } = sum;
        if !within_limits(ops, reread, source) {
            return None;
        }
        let distinct = near.is_some_and(|near| near.outline.ordinals.is_empty());
        let fresh = if distinct { fresh } else { 0..parts.len() };
        Some(Outline::of(parts, nested, fresh))
    }
}

#[derive(Clone, Copy)]
struct OtherVersion<'a> {
    ends: &'a Ends<'a>,
    outline: &'a Outline,
}

impl<'a> OtherVersion<'a> {
    /// The pieces before the first difference, and the start of the next one. The line in which
    /// that one starts is also the same, because the cut before it is.
    fn head(&self) -> (&'a [PlacedPiece], usize) {
        let parts = &self.outline.parts;
        let same = parts.partition_point(|part| (part.byte as usize) < self.ends.head);
        let next = parts.iter().take(same).rposition(|part| part.top).unwrap_or(0);
        let start = parts.get(next).map_or(0, |part| part.byte as usize);
        (parts.get(..next).unwrap_or_default(), start)
    }

    /// The pieces from the one that starts at byte `at` of the text of `bytes`, if everything from
    /// there on is the same.
    fn tail(&self, bytes: usize, at: usize) -> Option<&'a [PlacedPiece]> {
        let rest = bytes.checked_sub(at).filter(|rest| *rest <= self.ends.tail)?;
        let start = self.ends.texts[0].len().checked_sub(rest).filter(|start| *start > 0)?;
        let parts = &self.outline.parts;
        let found = parts.binary_search_by_key(&start, |part| part.byte as usize).ok()?;
        parts.get(found..).filter(|parts| parts.first().is_some_and(|part| part.top))
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
    fn add(&mut self, piece: Arc<Piece>, start: usize, top: bool) {
        let line = self.line;
        self.line += piece.lines;
        let by_nodes = piece.nodes as usize * OPS_PER_NODE;
        self.ops += match piece.ops as usize {
            0 => by_nodes,
            ops => by_nodes.min(ops * OPS_IN_FILE),
        };
        self.reread += piece.reread as usize;
        // No text is longer than `MAX_BYTES`.
        self.parts.push(PlacedPiece { piece, byte: start as u32, line, top });
    }

    fn take(&mut self, parts: &[PlacedPiece], start: usize) {
        let first = parts.first().map_or(0, |part| part.byte as usize);
        self.parts.reserve(parts.len());
        for part in parts {
            self.add(Arc::clone(&part.piece), start + (part.byte as usize - first), part.top);
        }
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
                found.push((self.find(Context::Member(header.class_name()), from, to), from));
            }
        }
        match found.last()?.0.verdict {
            Verdict::Broken => return None,
            Verdict::Unfit => return Some(false),
            Verdict::Sound => {}
        }
        for (piece, from) in found {
            sum.add(piece, from, from == start);
        }
        Some(true)
    }
}

impl Outline {
    /// The outline of these pieces. Two methods with one name are in the same piece outside
    /// `fresh`, or one of them is in a fresh piece.
    fn of(parts: Vec<PlacedPiece>, nested: bool, fresh: Range<usize>) -> Self {
        let mut outline = Self { parts: parts.into(), ordinals: [].into(), nested, whole: false };
        if outline.repeats(fresh) {
            let mut next: HashMap<&str, u32> = HashMap::new();
            let mut ordinals = Vec::new();
            for (index, (part, entry)) in (0..).zip(outline.entries(0..outline.parts.len())) {
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

    /// True if two names may be equal, one of them in a fresh piece.
    fn repeats(&self, fresh: Range<usize>) -> bool {
        const FEW: usize = 8;
        let hashes = |range: Range<usize>| self.entries(range).map(|(_, entry)| entry.hash);
        let all = 0..self.parts.len();
        let mut new: Vec<u64> = hashes(fresh).collect();
        if new.len() > FEW {
            new = hashes(all).collect();
            new.sort_unstable();
            return new.windows(2).any(|pair| pair.first() == pair.last());
        }
        let mut found = 0;
        for hash in hashes(all) {
            found += new.iter().filter(|new| **new == hash).count();
        }
        found > new.len()
    }

    fn entries(&self, range: Range<usize>) -> impl Iterator<Item = (&PlacedPiece, &MethodEntry)> {
        self.parts.get(range).unwrap_or_default().iter().flat_map(|part| {
            let listed = part.piece.methods.iter().filter(|entry| self.nested || !entry.nested);
            listed.map(move |entry| (part, entry))
        })
    }

    /// The methods in the order of their first byte.
    pub fn methods(&self) -> impl Iterator<Item = OutlineMethod<'_>> {
        let mut ordinals = self.ordinals.iter().copied().peekable();
        (0..).zip(self.entries(0..self.parts.len())).map(move |(index, (part, entry))| {
            OutlineMethod {
                fun_name: part.piece.fun_name(entry),
                qualified_name: part.piece.qualified_name(entry),
                ordinal: ordinals.next_if(|&(at, _)| at == index).map_or(0, |(_, ordinal)| ordinal),
                start_line: part.line + entry.start_line,
                end_line: part.line + entry.end_line,
                start_byte: part.byte + entry.start_byte,
                end_byte: part.byte + entry.end_byte,
            }
        })
    }

    /// The number of methods.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries(0..self.parts.len()).count()
    }

    /// True if the file has no methods.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries(0..self.parts.len()).next().is_none()
    }
}
