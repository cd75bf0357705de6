//! The font of figures: its widths, and the part of it that a picture carries.
//!
//! DejaVu Sans, regular and bold. Text is measured by the font's advances and drawn without kerning,
//! so labels are as wide as measured. A character that the font lacks counts as wide as the widest
//! that replace it.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use subsetter::GlyphRemapper;
use ttf_parser::Face;
use write_fonts::FontBuilder;
use write_fonts::read::{FontRef, TableProvider as _};
use write_fonts::tables::cmap::Cmap;
use write_fonts::types::{GlyphId, Tag};

/// The families that the text of a figure names, in CSS: the one that [`crate::font_css`] defines,
/// and fonts of nearly the same widths where that is not loaded.
pub const FONT_FAMILY: &str = "Galeras Figures, DejaVu Sans, Verdana, sans-serif";

const FAMILY: &str = "Galeras Figures";

// Versions 2.37 and 2.35 without hinting, which would make embedded subsets twice as large:
// `pyftsubset --glyphs='*' --no-hinting --layout-features='*' --no-glyph-names --notdef-outline
// --name-IDs=0,1,2,3,4,5,6,14 --drop-tables+=FFTM`.
static REGULAR: &[u8] = include_bytes!("../fonts/DejaVuSans.ttf");
static BOLD: &[u8] = include_bytes!("../fonts/DejaVuSans-Bold.ttf");

/// The font file, regular or bold.
pub(crate) fn bytes(bold: bool) -> &'static [u8] {
    if bold { BOLD } else { REGULAR }
}

fn face(bold: bool) -> Option<&'static Face<'static>> {
    static FACES: OnceLock<[Option<Face<'static>>; 2]> = OnceLock::new();
    let faces = FACES.get_or_init(|| [false, true].map(|b| Face::parse(bytes(b), 0).ok()));
    faces[usize::from(bold)].as_ref()
}

/// True if the font has a glyph for this character.
pub(crate) fn has(c: char) -> bool {
    face(false).is_some_and(|f| f.glyph_index(c).is_some())
}

/// The advance of a character in parts of the font's size.
pub(crate) fn advance(c: char, bold: bool) -> f64 {
    let known = face(bold).and_then(|f| {
        let glyph = f.glyph_index(c)?;
        Some(f64::from(f.glyph_hor_advance(glyph)?) / f64::from(f.units_per_em()))
    });
    known.unwrap_or(match c {
        '\u{200d}' | '\u{fe00}'..='\u{fe0f}' => 0.0,
        '\u{1f000}'.. => 1.4,
        _ => 1.0,
    })
}

/// The width of a text in pixels.
pub(crate) fn width(text: &str, size: f64, bold: bool) -> f64 {
    text.chars().map(|c| advance(c, bold)).sum::<f64>() * size
}

/// CSS that defines the font of figures, with the characters of these SVGs and no others: what a
/// page carries once for all its figures. About 150 bytes a character.
pub fn font_css(svgs: &[&str]) -> String {
    let mut chars = [BTreeSet::new(), BTreeSet::new()];
    svgs.iter().for_each(|svg| collect(svg, &mut chars));
    let mut css = String::new();
    for (bold, chars) in [false, true].into_iter().zip(&chars) {
        let simple: BTreeSet<char> = chars.iter().copied().filter(|c| stands_alone(*c)).collect();
        if simple.is_empty() {
            continue;
        }
        if let Some(file) = subset(bold, &simple) {
            let weight = if bold { "bold" } else { "normal" };
            let data = STANDARD.encode(file);
            css.push_str(&format!(
                "@font-face{{font-family:'{FAMILY}';font-weight:{weight};\
                 src:url(data:font/ttf;base64,{data}) format('truetype')}}"
            ));
        }
    }
    css
}

/// The font with these characters alone. The crate `subsetter` leaves out the tables that PDF does
/// without and browsers need: the characters of the glyphs, and the metrics of Windows.
fn subset(bold: bool, chars: &BTreeSet<char>) -> Option<Vec<u8>> {
    let face = face(bold)?;
    let mut remapper = GlyphRemapper::new();
    let mut glyph = |c: &char| {
        let glyph = remapper.remap(face.glyph_index(*c)?.0);
        Some((*c, GlyphId::from(glyph)))
    };
    let cmap = Cmap::from_mappings(chars.iter().filter_map(&mut glyph)).ok()?;
    let glyphs = subsetter::subset(bytes(bold), 0, &remapper).ok()?;
    let mut font = FontBuilder::new();
    font.add_table(&cmap).ok()?;
    let os2 = Tag::new(b"OS/2");
    font.add_raw(os2, FontRef::new(bytes(bold)).ok()?.data_for_tag(os2)?.as_bytes());
    font.copy_missing_tables(FontRef::new(&glyphs).ok()?);
    Some(font.build())
}

/// The SVG of a [`crate::Picture`] with its font, so that it looks the same on every machine. An
/// SVG that has a font already is returned unchanged.
pub fn embed(svg: &str) -> String {
    let css = font_css(&[svg]);
    if svg.contains("@font-face") { svg.to_string() } else { with_style(svg, &css) }
}

/// The SVG with a style sheet within.
pub(crate) fn with_style(svg: &str, css: &str) -> String {
    match svg.split_once('>') {
        Some((tag, rest)) if !css.is_empty() => format!("{tag}><style>{css}</style>{rest}"),
        _ => svg.to_string(),
    }
}

/// True for characters that are drawn correctly without their neighbours. Scripts that join or
/// reorder letters need tables that a subset lacks; the reader's fonts draw these.
fn stands_alone(c: char) -> bool {
    matches!(c, ' '..='\u{2ff}' | '\u{370}'..='\u{58f}' | '\u{1e00}'..='\u{200a}'
        | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}' | '\u{2070}'..='\u{2fff}' | '\u{fffd}')
}

/// The characters of the texts of an SVG of ours: regular, bold.
fn collect(svg: &str, chars: &mut [BTreeSet<char>; 2]) {
    for text in svg.split("<text ").skip(1) {
        let Some((tag, rest)) = text.split_once('>') else { continue };
        let bold = usize::from(tag.contains("font-weight=\"bold\""));
        let content = &rest[..rest.find("</text>").unwrap_or(0)];
        // A title within is seen too, but in the font of the system.
        let content = content.rsplit("</title>").next().unwrap_or(content);
        let plain = content.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
        chars[bold].extend(plain.replace("&amp;", "&").chars());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_those_of_the_font() {
        // DejaVu Sans: 2048 units to the em; `A` 1401, `i` 569, `0` to `9` 1303.
        assert!((width("A", 2048.0, false) - 1401.0).abs() < 1e-9);
        assert!((width("i0", 2048.0, false) - 1872.0).abs() < 1e-9);
        assert!(width("A", 10.0, true) > width("A", 10.0, false));
        assert!((width("漢", 10.0, false) - 10.0).abs() < 1e-9);
    }

    #[test]
    fn a_subset_is_a_font_with_the_widths_of_the_whole() {
        let chars: BTreeSet<char> = "Ärger éffizient 0.5 ±−≤ñΩ<&>".chars().collect();
        let file = subset(false, &chars).unwrap();
        assert!(file.len() < 16_000, "{}", file.len());
        let small = Face::parse(&file, 0).unwrap();
        for c in chars {
            let glyph = small.glyph_index(c).unwrap();
            let advance = f64::from(small.glyph_hor_advance(glyph).unwrap());
            assert!((advance / 2048.0 - width(&c.to_string(), 1.0, false)).abs() < 1e-9, "{c}");
            let whole = face(false).unwrap();
            let same = whole.glyph_bounding_box(whole.glyph_index(c).unwrap());
            assert_eq!(small.glyph_bounding_box(glyph), same, "{c}");
            struct Count(usize);
            impl ttf_parser::OutlineBuilder for Count {
                fn move_to(&mut self, _: f32, _: f32) {
                    self.0 += 1;
                }
                fn line_to(&mut self, _: f32, _: f32) {
                    self.0 += 1;
                }
                fn quad_to(&mut self, _: f32, _: f32, _: f32, _: f32) {
                    self.0 += 1;
                }
                fn curve_to(&mut self, _: f32, _: f32, _: f32, _: f32, _: f32, _: f32) {
                    self.0 += 1;
                }
                fn close(&mut self) {}
            }
            let (mut a, mut b) = (Count(0), Count(0));
            small.outline_glyph(glyph, &mut a);
            whole.outline_glyph(whole.glyph_index(c).unwrap(), &mut b);
            assert_eq!(a.0, b.0, "{c}");
        }
        assert!(small.glyph_index('Z').is_none());
    }

    #[test]
    fn letters_that_join_are_left_to_the_reader() {
        let css = font_css(&["<svg><text x=\"1\">\u{633}\u{644}\u{627}\u{645}</text></svg>"]);
        assert_eq!(css, "");
        assert!(font_css(&["<svg><text x=\"1\">a &lt; b</text></svg>"]).len() < 6000);
    }
}
