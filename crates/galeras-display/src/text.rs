//! The width and the line breaks of text on a terminal. `galeras_base::terminal_escape` escapes it.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

pub(super) use galeras_base::terminal_escape::{escape, escape_lines, escape_with};

/// The columns that `text` takes.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

fn char_width(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// The first `chars` characters of `text`; true if that is the whole text.
pub(super) fn prefix(text: &str, chars: usize) -> (&str, bool) {
    match text.char_indices().nth(chars) {
        Some((end, _)) => (&text[..end], false),
        None => (text, true),
    }
}

/// `text` cropped at its end to `columns`, including an ellipsis.
pub(super) fn crop(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_string();
    }
    let mut out = head(text, columns.saturating_sub(1)).to_string();
    if columns > 0 {
        out.push('…');
    }
    out
}

/// `text` cropped in its middle to `columns`.
pub(super) fn crop_middle(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_string();
    }
    if columns == 0 {
        return String::new();
    }
    let left = head(text, columns / 2);
    let mut room = columns - 1 - columns / 2;
    let mut start = text.len();
    for (i, c) in text.char_indices().rev() {
        if char_width(c) > room {
            break;
        }
        room -= char_width(c);
        start = i;
    }
    format!("{left}…{}", &text[start..])
}

fn head(text: &str, columns: usize) -> &str {
    let mut used = 0;
    for (i, c) in text.char_indices() {
        used += char_width(c);
        if used > columns {
            return &text[..i];
        }
    }
    text
}

pub(super) fn left(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

pub(super) fn right(text: &str, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(width(text))))
}

/// The lines of `text`, at most `columns` wide: broken at spaces, or inside a word that is too long
/// for a line. Lines keep the indentation of the line that they come from.
pub(super) fn wrap(text: &str, columns: usize) -> Vec<String> {
    text.lines().flat_map(|line| wrap_line(line, columns.max(8))).collect()
}

fn wrap_line(line: &str, columns: usize) -> Vec<String> {
    let escaped = escape(&line.replace('\t', "    "));
    let line = escaped.trim_end();
    if width(line) <= columns {
        return vec![line.to_string()];
    }
    let words = line.trim_start_matches(' ');
    let indent = " ".repeat((line.len() - words.len()).min(columns / 2));
    let mut out = Vec::new();
    let mut current = indent.clone();
    for word in words.split(' ') {
        let mut word = word;
        let gap = usize::from(current.len() > indent.len());
        if width(&current) + gap + width(word) <= columns {
            current.push_str(&" ".repeat(gap));
            current.push_str(word);
            continue;
        }
        if gap > 0 {
            out.push(std::mem::replace(&mut current, indent.clone()));
        }
        // A word may have megabytes: only as much of it is measured as a line holds.
        while head(word, columns.saturating_sub(width(&current))).len() < word.len() {
            // At least one character, as a wide one on a narrow line would never end.
            let one = word.chars().next().map_or(0, char::len_utf8);
            let part = head(word, columns.saturating_sub(width(&current))).len().max(one);
            current.push_str(&word[..part]);
            word = &word[part..];
            out.push(std::mem::replace(&mut current, indent.clone()));
        }
        current.push_str(word);
    }
    if current.len() > indent.len() {
        out.push(current);
    }
    out
}

/// `pieces` in lines of at most `columns`, with two spaces between them; later lines start with
/// `indent`.
pub(super) fn flow(pieces: &[String], columns: usize, indent: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for piece in pieces.iter().filter(|p| !p.is_empty()) {
        match out.last_mut() {
            Some(line) if width(line) + 2 + width(piece) <= columns => {
                line.push_str("  ");
                line.push_str(piece);
            }
            Some(_) => {
                let room = columns.saturating_sub(indent.len());
                out.extend(wrap(piece, room).iter().map(|part| format!("{indent}{part}")));
            }
            None => out.push(crop_middle(piece, columns)),
        }
    }
    out
}

/// `text` with every quoted value longer than `columns` cropped in its middle.
pub(super) fn crop_values(text: &str, columns: usize) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('"') {
        let inner = &rest[start + 1..];
        let Some(end) = closing_quote(inner) else { break };
        out.push_str(&rest[..=start]);
        out.push_str(&crop_middle(&inner[..end], columns));
        out.push('"');
        rest = &inner[end + 1..];
    }
    out.push_str(rest);
    out
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (i, c) in text.char_indices() {
        match c {
            '"' if !escaped => return Some(i),
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cropping_counts_wide_characters_twice() {
        assert_eq!(crop("測試測試", 8), "測試測試");
        assert_eq!(crop("測試測試", 6), "測試…");
        assert_eq!(crop_middle("abcdefghij", 7), "abc…hij");
        assert_eq!(crop_middle("測試測試測試", 7), "測…試");
        assert_eq!(crop("abc", 0), "");
    }

    #[test]
    fn lines_break_at_spaces_and_keep_their_indentation() {
        assert_eq!(wrap("one two three", 9), ["one two", "three"]);
        assert_eq!(wrap("  one two three", 9), ["  one two", "  three"]);
        assert_eq!(wrap("abcdefghijklmno pq", 8), ["abcdefgh", "ijklmno", "pq"]);
        assert_eq!(wrap("a\n\nb", 9), ["a", "", "b"]);
    }

    #[test]
    fn no_wrapped_line_is_too_wide() {
        for text in ["測試".repeat(30), "x y".repeat(40), format!("{}測", " ".repeat(90))] {
            for columns in 8..30 {
                assert!(wrap(&text, columns).iter().all(|l| width(l) <= columns));
            }
        }
    }

    #[test]
    fn long_values_lose_their_middle_and_nothing_else() {
        let text = r#"check: "abcdefghijkl" → "m\"n" (f.yaml:1:2)"#;
        assert_eq!(crop_values(text, 7), r#"check: "abc…jkl" → "m\"n" (f.yaml:1:2)"#);
        assert_eq!(crop_values("an \"open quote", 3), "an \"open quote");
    }
}
