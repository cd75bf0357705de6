//! A TrueType font with some of its characters: what a picture needs to look the same everywhere.
//!
//! After ISO/IEC 14496-22 (OpenType): glyphs get new numbers, instructions for hinting are left
//! out together with the programs they call, and the tables for joining and kerning too.

use std::collections::{BTreeMap, BTreeSet};

use ttf_parser::{Face, Tag};

/// The font file, or nothing if the font is not one of TrueType outlines.
pub(super) fn subset(face: &Face<'_>, chars: &BTreeSet<char>) -> Option<Vec<u8>> {
    let table = |name: &[u8; 4]| face.raw_face().table(Tag::from_bytes(name));
    let (glyf, loca) = (table(b"glyf")?, table(b"loca")?);
    let long = u16_at(table(b"head")?, 50)? == 1;
    let outline = |glyph: u16| -> Option<&[u8]> {
        let at = usize::from(glyph);
        let (from, to) = match long {
            true => (u32_at(loca, at * 4)? as usize, u32_at(loca, at * 4 + 4)? as usize),
            false => {
                (usize::from(u16_at(loca, at * 2)?) * 2, usize::from(u16_at(loca, at * 2 + 2)?) * 2)
            }
        };
        glyf.get(from..to)
    };

    let mut wanted: BTreeSet<u16> = BTreeSet::from([0]);
    let mut open: Vec<u16> =
        chars.iter().filter_map(|c| face.glyph_index(*c)).map(|g| g.0).collect();
    while let Some(glyph) = open.pop() {
        if wanted.insert(glyph) {
            open.extend(components(outline(glyph)?).into_iter().map(|(_, part)| part));
        }
    }
    let number: BTreeMap<u16, u16> = (0..).zip(&wanted).map(|(new, old)| (*old, new)).collect();

    let (mut outlines, mut places, mut metrics) = (Vec::new(), Vec::new(), Vec::new());
    for glyph in &wanted {
        places.extend((outlines.len() as u32).to_be_bytes());
        outlines.extend(without_hints(outline(*glyph)?, &number)?);
        outlines.resize(outlines.len().next_multiple_of(4), 0);
        let id = ttf_parser::GlyphId(*glyph);
        metrics.extend(face.glyph_hor_advance(id)?.to_be_bytes());
        metrics.extend(face.glyph_hor_side_bearing(id)?.to_be_bytes());
    }
    places.extend((outlines.len() as u32).to_be_bytes());

    let count = (wanted.len() as u16).to_be_bytes();
    let mut head = table(b"head")?.to_vec();
    head.get_mut(8..12)?.fill(0);
    head.get_mut(50..52)?.copy_from_slice(&1_u16.to_be_bytes());
    let mut hhea = table(b"hhea")?.to_vec();
    hhea.get_mut(34..36)?.copy_from_slice(&count);
    let mut maxp = table(b"maxp")?.to_vec();
    maxp.get_mut(4..6)?.copy_from_slice(&count);
    let mut post = table(b"post")?.get(..32)?.to_vec();
    post[..4].copy_from_slice(&0x0003_0000_u32.to_be_bytes());
    let places_of = chars.iter().filter_map(|c| Some((*c, number[&face.glyph_index(*c)?.0])));
    Some(file(vec![
        (b"OS/2", table(b"OS/2")?.to_vec()),
        (b"cmap", cmap(&places_of.collect::<Vec<_>>())),
        (b"glyf", outlines),
        (b"head", head),
        (b"hhea", hhea),
        (b"hmtx", metrics),
        (b"loca", places),
        (b"maxp", maxp),
        (b"name", names(table(b"name")?)?),
        (b"post", post),
    ]))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

const WORDS: u16 = 0x0001;
const SCALE: u16 = 0x0008;
const MORE: u16 = 0x0020;
const TWO_SCALES: u16 = 0x0040;
const MATRIX: u16 = 0x0080;
const INSTRUCTIONS: u16 = 0x0100;

/// The glyphs that a composite glyph consists of: where in its bytes they are named, and which.
fn components(outline: &[u8]) -> Vec<(usize, u16)> {
    let mut found = Vec::new();
    if u16_at(outline, 0).is_none_or(|contours| contours < 0x8000) {
        return found;
    }
    let mut at = 10;
    while let (Some(flags), Some(glyph)) = (u16_at(outline, at), u16_at(outline, at + 2)) {
        found.push((at, glyph));
        at += 4 + if flags & WORDS != 0 { 4 } else { 2 };
        at += match flags {
            f if f & SCALE != 0 => 2,
            f if f & TWO_SCALES != 0 => 4,
            f if f & MATRIX != 0 => 8,
            _ => 0,
        };
        if flags & MORE == 0 {
            break;
        }
    }
    found
}

/// The bytes of a glyph without its instructions, its parts by their new numbers.
fn without_hints(outline: &[u8], number: &BTreeMap<u16, u16>) -> Option<Vec<u8>> {
    if outline.is_empty() {
        return Some(Vec::new());
    }
    let contours = u16_at(outline, 0)?;
    if contours < 0x8000 {
        let ends = 10 + usize::from(contours) * 2;
        let skip = usize::from(u16_at(outline, ends)?);
        let mut bytes = outline.get(..ends)?.to_vec();
        bytes.extend([0, 0]);
        bytes.extend(outline.get(ends + 2 + skip..)?);
        return Some(bytes);
    }
    let mut bytes = outline.to_vec();
    for (at, part) in components(outline) {
        let flags = u16_at(outline, at)? & !INSTRUCTIONS;
        bytes[at..at + 2].copy_from_slice(&flags.to_be_bytes());
        bytes[at + 2..at + 4].copy_from_slice(&number.get(&part)?.to_be_bytes());
    }
    Some(bytes)
}

/// A table of characters, format 12.
fn cmap(chars: &[(char, u16)]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 1, 0, 3, 0, 10, 0, 0, 0, 12, 0, 12, 0, 0];
    let groups = chars.len() as u32;
    for word in [16 + 12 * groups, 0, groups] {
        bytes.extend(word.to_be_bytes());
    }
    for (c, glyph) in chars {
        for word in [u32::from(*c), u32::from(*c), u32::from(*glyph)] {
            bytes.extend(word.to_be_bytes());
        }
    }
    bytes
}

/// Whose font it is and under which licence: the names of Windows, in English.
fn names(table: &[u8]) -> Option<Vec<u8>> {
    let (count, texts) = (u16_at(table, 2)?, usize::from(u16_at(table, 4)?));
    let (mut records, mut strings) = (Vec::new(), Vec::<u8>::new());
    for at in (0..usize::from(count)).map(|i| 6 + i * 12) {
        let field = |i: usize| u16_at(table, at + i * 2);
        // Copyright, family, style, identifier, full name, PostScript name; a licence by its URL.
        if field(0)? == 3 && field(2)? == 0x409 && matches!(field(3)?, 0..=6 | 14) {
            let (length, from) = (usize::from(field(4)?), texts + usize::from(field(5)?));
            records.push((field(3)?, field(1)?, strings.len() as u16, length as u16));
            strings.extend(table.get(from..from + length)?);
        }
    }
    let mut bytes = Vec::new();
    let count = records.len() as u16;
    [0, count, 6 + 12 * count].iter().for_each(|w| bytes.extend(w.to_be_bytes()));
    for (name, encoding, from, length) in records {
        for word in [3, encoding, 0x409, name, length, from] {
            bytes.extend(word.to_be_bytes());
        }
    }
    bytes.extend(strings);
    Some(bytes)
}

/// A font file of these tables, which are in the order of their names.
fn file(tables: Vec<(&[u8; 4], Vec<u8>)>) -> Vec<u8> {
    let count = tables.len() as u16;
    let power = count.ilog2() as u16;
    let mut out = 0x0001_0000_u32.to_be_bytes().to_vec();
    for word in [count, 16 << power, power, count * 16 - (16 << power)] {
        out.extend(word.to_be_bytes());
    }
    let mut from = 12 + 16 * tables.len();
    let mut head = 0;
    for (name, bytes) in &tables {
        if *name == b"head" {
            head = from;
        }
        out.extend(*name);
        for word in [sum(bytes), from as u32, bytes.len() as u32] {
            out.extend(word.to_be_bytes());
        }
        from = (from + bytes.len()).next_multiple_of(4);
    }
    for (_, bytes) in tables {
        out.extend(bytes);
        out.resize(out.len().next_multiple_of(4), 0);
    }
    let adjustment = 0xb1b0_afba_u32.wrapping_sub(sum(&out));
    out[head + 8..head + 12].copy_from_slice(&adjustment.to_be_bytes());
    out
}

fn sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks(4).map(|chunk| {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        u32::from_be_bytes(word)
    });
    words.fold(0, u32::wrapping_add)
}
