//! The methods of a Python file, assembled from pieces that were parsed before.
//!
//! [`Pieces`] returns the same list as `methods`, without the code, as an [`Outline`]. From one
//! version of a file to the next nearly all statements stay the same. So a file is cut
//! (`outline::cut`) into runs of top-level statements, and large classes into a header and runs of
//! members. Each piece is parsed alone and once (`outline::piece`). This is exact because:
//!
//! - A piece that parses alone without an error ends with a whole statement. It begins at the first
//!   column (a member: with the indent of the members), after a line that does not end in a
//!   backslash, with a letter, `_` or `@`. So all brackets, strings and blocks in the piece are closed
//!   where the next one begins, and Python reads the next one as at the start of a text or class
//!   body. If all pieces are free of errors, the tree of the file is the sequence of their trees.
//! - No piece begins with a word that continues a statement, as `else` does.
//!
//! Otherwise the file is parsed as a whole, so the choice of cuts affects only speed.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use self::cut::Cuts;
pub use self::memo::Pieces;
use self::piece::{Context, MethodEntry, Piece, Verdict};
use super::methods::methods;
use super::parse::{MAX_BYTES, ParseError};

mod cut;
mod memo;
mod piece;
#[cfg(test)]
mod tests;

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
    /// As [`methods`](crate::methods()).
    pub fn outline(&self, source: &str, nested: bool) -> Result<Outline, ParseError> {
        if source.len() <= MAX_BYTES
            && let Some(outline) = self.assemble(source, nested)
        {
            return Ok(outline);
        }
        let methods = methods(source, nested)?;
        let piece = Piece::whole(source, methods, |name| self.name(name));
        let piece = Arc::new(piece.ok_or(ParseError::TooComplex)?);
        Ok(Outline::of(vec![PlacedPiece { piece, byte: 0, line: 0 }], true))
    }

    /// The outline of `source` from its pieces, if all are sound.
    fn assemble(&self, source: &str, nested: bool) -> Option<Outline> {
        let mut placed = PlacedPieces::default();
        let cuts = Cuts::of(source.as_bytes());
        for span in &cuts.spans {
            let members = cuts.members.get(span.members.clone())?;
            if members.is_empty()
                || !self.add_class(source, span.start..span.end, members, &mut placed)?
            {
                let piece = self.find(Context::Top, source.get(span.start..span.end)?);
                if piece.verdict != Verdict::Sound {
                    return None;
                }
                placed.add(piece, span.start);
            }
        }
        Some(Outline::of(placed.parts, nested))
    }

    fn find(&self, context: Context<'_>, text: &str) -> Arc<Piece> {
        let hash = self.hash(context, text);
        if let Some(piece) = self.get(hash, context, text) {
            return piece;
        }
        let piece = Arc::new(piece::find(context, text, |name| self.name(name)));
        self.put(hash, context, text, &piece);
        piece
    }

    /// Adds the pieces of a class; `Some(false)` if it cannot be split, `None` if it has an error.
    fn add_class(
        &self,
        source: &str,
        place: Range<usize>,
        members: &[usize],
        placed: &mut PlacedPieces,
    ) -> Option<bool> {
        let first = members.first().copied().unwrap_or(place.end);
        let header = self.find(Context::Header, source.get(place.start..first)?);
        let mut found = vec![(Arc::clone(&header), place.start)];
        let ends = members.iter().skip(1).copied().chain([place.end]);
        for (&from, to) in members.iter().zip(ends) {
            if found.last()?.0.verdict == Verdict::Sound {
                let member = Context::Member(&header.names);
                found.push((self.find(member, source.get(from..to)?), from));
            }
        }
        match found.last()?.0.verdict {
            Verdict::Broken => return None,
            Verdict::Unfit => return Some(false),
            Verdict::Sound => {}
        }
        for (piece, from) in found {
            placed.add(piece, from);
        }
        Some(true)
    }
}

#[derive(Default)]
struct PlacedPieces {
    parts: Vec<PlacedPiece>,
    line: u32,
}

impl PlacedPieces {
    fn add(&mut self, piece: Arc<Piece>, start: usize) {
        let line = self.line;
        self.line += piece.lines;
        // No text is longer than `MAX_BYTES`.
        self.parts.push(PlacedPiece { piece, byte: start as u32, line });
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
