//! Labels: what may be seen of a text, and how it is broken into lines that fit.

use std::borrow::Cow;

use crate::font;

/// The size of labels in pixels, 8 points.
pub(crate) const SIZE: f64 = 10.67;
/// The size of small print: ticks and numbers within marks, 7 points.
pub(crate) const SMALL: f64 = 9.33;
/// The size of the heading, 10 points.
pub(crate) const LARGE: f64 = 13.33;
/// From line to line, in parts of the size.
pub(crate) const LEADING: f64 = 1.22;

/// A text on one line in which every hidden character is written out: line ends and tabs as `\n`
/// and `\t`, control characters, marks of direction and the like as `\u{1b}`.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
                | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}'
                | '\u{fffe}' | '\u{ffff}')
    };
    if !text.contains(hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if hidden(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// A text as it is drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Label {
    /// The lines, at least one.
    pub(crate) lines: Vec<String>,
    /// The whole text if the lines do not have all of it.
    pub(crate) whole: Option<String>,
    /// The width of the widest line in pixels.
    pub(crate) width: f64,
    /// The size of the letters in pixels.
    pub(crate) size: f64,
    pub(crate) bold: bool,
    /// True if a word is broken without a sign to break at.
    pub(crate) broken: bool,
}

impl Label {
    /// A text in at most `lines` lines of at most `width` pixels; what does not fit is cropped.
    pub(crate) fn fit(text: &str, size: f64, width: f64, lines: usize) -> Label {
        Label::new(text, size, width, lines, false)
    }

    /// Small print on one line, however wide.
    pub(crate) fn small(text: &str) -> Label {
        Label::fit(text, SMALL, f64::INFINITY, 1)
    }

    /// A text on one line of at most `width` pixels. A longer one keeps its two ends.
    pub(crate) fn without_middle(text: &str, size: f64, width: f64, bold: bool) -> Label {
        let text = visible(text);
        let text = text.trim();
        let mut line = text.to_string();
        if font::width(text, size, bold) > width {
            let room = (width - font::width("…", size, bold)) / 2.0;
            let (mut sum, mut start) = (0.0, text.len());
            for (at, c) in text.char_indices().rev() {
                let advance = font::advance(c, bold) * size;
                sum += advance;
                if sum > room {
                    break;
                }
                // The tail does not start with a mark that combines with a letter before it.
                start = if advance > 0.0 { at } else { start };
            }
            line = format!("{}…{}", &text[..prefix(text, size, room, bold)], &text[start..]);
        }
        let width = font::width(&line, size, bold);
        Label { lines: vec![line], width, size, bold, ..Label::default() }
    }

    /// As [`Label::fit`], in bold or not.
    pub(crate) fn new(text: &str, size: f64, width: f64, lines: usize, bold: bool) -> Label {
        let text = visible(text);
        let mut rest = text.trim();
        let mut label = Label { size, bold, ..Label::default() };
        while label.lines.len() + 1 < lines.max(1) && font::width(rest, size, bold) > width {
            let end = break_at(rest, size, width, bold);
            if end == 0 {
                break;
            }
            label.broken |= !rest[end..].starts_with(' ') && !rest[..end].ends_with(SIGNS);
            label.lines.push(rest[..end].trim_end().to_string());
            rest = rest[end..].trim_start();
        }
        if font::width(rest, size, bold) > width {
            label.whole = Some(text.trim().to_string());
            let room = width - font::width("…", size, bold);
            let end = prefix(rest, size, room, bold);
            label.lines.push(format!("{}…", rest[..end].trim_end()));
        } else {
            label.lines.push(rest.to_string());
        }
        let widths = label.lines.iter().map(|l| font::width(l, size, bold));
        label.width = widths.fold(0.0, f64::max);
        label
    }

    /// The height of the lines in pixels.
    pub(crate) fn height(&self) -> f64 {
        self.lines.len() as f64 * self.size * LEADING
    }
}

/// How many bytes of a text fit: whole characters, with the marks that combine with them.
fn prefix(text: &str, size: f64, width: f64, bold: bool) -> usize {
    let (mut sum, mut end) = (0.0, 0);
    for (at, c) in text.char_indices() {
        let advance = font::advance(c, bold) * size;
        if sum + advance > width {
            // A letter keeps the marks that combine with it.
            return if advance == 0.0 { at } else { end.max(at) };
        }
        sum += advance;
        end = at + c.len_utf8();
    }
    text.len()
}

/// The signs that a line may end with.
const SIGNS: [char; 11] = [' ', '-', '_', '/', '.', ',', ':', ';', '+', '=', '|'];

/// Where a line ends: behind the last space, or the last sign between words, or else anywhere.
fn break_at(text: &str, size: f64, width: f64, bold: bool) -> usize {
    let most = prefix(text, size, width, bold);
    let line = &text[..most];
    if text[most..].starts_with(' ') {
        return most;
    }
    let space = line.rfind(' ').map(|at| at + 1);
    let sign = line.rfind(SIGNS).map(|at| at + 1);
    // A sign far to the left is worse than a word that is broken.
    space.or(sign).filter(|at| *at * 3 > most).unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_all_words_and_no_line_is_too_wide() {
        let text = "the number of tokens that both answers have in common";
        let label = Label::fit(text, 10.0, 90.0, 9);
        assert_eq!((label.lines.join(" ").as_str(), label.whole), (text, None));
        assert!(label.lines.len() > 2 && label.width <= 90.0);
    }

    #[test]
    fn what_does_not_fit_is_cropped_and_kept_whole() {
        for text in ["x".repeat(200), "漢字".repeat(100), "e\u{301}".repeat(200)] {
            let label = Label::fit(&text, 10.0, 70.0, 2);
            assert_eq!(label.lines.len(), 2);
            assert!(label.width <= 70.0, "{}", label.width);
            assert!(label.lines[1].ends_with('…'));
            assert_eq!(label.whole.as_deref(), Some(text.as_str()));
        }
    }

    #[test]
    fn the_ends_of_a_line_without_its_middle_are_kept() {
        assert_eq!(Label::without_middle(" a b ", 10.0, 70.0, false).lines, ["a b"]);
        let cropped = Label::without_middle(&"e\u{301}".repeat(90), 10.0, 70.0, false);
        let end = "…e\u{301}e\u{301}e\u{301}e\u{301}";
        assert!(cropped.width <= 70.0 && cropped.lines[0].ends_with(end), "{cropped:?}");
    }

    #[test]
    fn there_is_a_label_however_little_room_and_hidden_characters_are_seen() {
        assert_eq!(Label::fit("abc", 10.0, 0.0, 3).lines.len(), 1);
        assert_eq!(Label::fit("", 10.0, 50.0, 3).lines, [""]);
        assert_eq!(visible("a\u{1b}[31mb\u{202e}c\n"), "a\\u{1b}[31mb\\u{202e}c\\n");
        assert_eq!(visible("سلام 漢"), "سلام 漢");
    }
}
