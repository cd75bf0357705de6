//! Text from outside does nothing on a page: it is escaped, and characters that hide, reorder or
//! end text are shown by their names.

use std::ops::Range;

use crate::hidden::seen;
use crate::number::count;

/// HTML that is whole and safe: it is from templates and parts of this crate, and all else in it is
/// escaped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Markup(pub(crate) String);

impl Markup {
    /// Any text, escaped.
    pub(crate) fn from_text(text: &str) -> Self {
        Self(escape(text))
    }

    /// A message: escaped, with text between backquotes as code.
    pub(crate) fn from_message(text: &str) -> Self {
        let parts: Vec<&str> = text.split('`').collect();
        if parts.len().is_multiple_of(2) {
            return Self::from_text(text);
        }
        let mut out = escape(parts[0]);
        for pair in parts[1..].chunks(2) {
            out.push_str("<code>");
            push_code(&mut out, pair[0]);
            out.push_str("</code>");
            out.push_str(&escape(pair[1]));
        }
        Self(out)
    }

    /// Puts `other` after this.
    pub(crate) fn push(&mut self, other: &Self) {
        self.0.push_str(&other.0);
    }
}

impl From<Markup> for minijinja::Value {
    fn from(markup: Markup) -> Self {
        Self::from_safe_string(markup.0)
    }
}

/// `text` for the content of an element and for a quoted attribute. Characters that are not seen
/// as themselves are named: `⟨ESC⟩`, `⟨RLO⟩`, `⟨U+0085⟩`. Line ends and tabs stay.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    push_escaped(&mut out, text, |c| format!("⟨{}⟩", hidden_name(c)));
    out
}

/// `text` with its hidden characters named as in [`escape`], but not escaped: for a writer that
/// escapes it.
pub(crate) fn named(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (c, hidden) in seen(text) {
        match c {
            '\n' | '\t' => out.push(c),
            c if hidden => out.push_str(&format!("⟨{}⟩", hidden_name(c))),
            c => out.push(c),
        }
    }
    out
}

/// `text` for the content of an element that shows code: as [`escape`], but the names of hidden
/// characters are boxes with their code points.
pub(crate) fn push_code(out: &mut String, text: &str) {
    push_escaped(out, text, |c| {
        let (code, name) = (u32::from(c), hidden_name(c));
        format!("<span class=\"hidden-char\" title=\"U+{code:04X}\">{name}</span>")
    });
}

/// True if [`escape`] names a character of `text`.
pub(crate) fn has_hidden(text: &str) -> bool {
    seen(text).any(|(c, hidden)| hidden && c != '\n' && c != '\t')
}

fn push_escaped(out: &mut String, text: &str, name: impl Fn(char) -> String) {
    let mut chars = seen(text).peekable();
    while let Some((c, hidden)) = chars.next() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            '\r' if chars.peek().is_some_and(|(c, _)| *c == '\n') => {}
            c if hidden => out.push_str(&name(c)),
            c => out.push(c),
        }
    }
}

/// The names of control characters from NUL on.
const CONTROLS: &str = "NUL SOH STX ETX EOT ENQ ACK BEL BS HT LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK \
    SYN ETB CAN EM SUB ESC FS GS RS US";

const NAMES: &str = "\u{7f}DEL \u{ad}SHY \u{61c}ALM \u{200b}ZWSP \u{200c}ZWNJ \u{200d}ZWJ \u{200e}LRM \
    \u{200f}RLM \u{2028}LS \u{2029}PS \u{202a}LRE \u{202b}RLE \u{202c}PDF \u{202d}LRO \u{202e}RLO \
    \u{2060}WJ \u{2066}LRI \u{2067}RLI \u{2068}FSI \u{2069}PDI \u{feff}BOM";

fn hidden_name(c: char) -> String {
    let other = || NAMES.split(' ').find_map(|name| name.strip_prefix(c));
    let name = CONTROLS.split(' ').nth(c as usize).or_else(other);
    name.map_or_else(|| format!("U+{:04X}", u32::from(c)), str::to_string)
}

/// A text of a cell or a label, on one line and cut if it has more characters.
pub(crate) fn label(text: &str, chars: usize) -> Markup {
    let mut rest = text.chars();
    let shown: String = rest.by_ref().take(chars).collect();
    let shown = escape(&shown.replace('\n', "⏎").replace('\t', " "));
    Markup(match rest.count() {
        0 => shown,
        more => shown + &gap(more),
    })
}

fn gap(characters: usize) -> String {
    let count = count(characters as u64);
    format!("<span class=\"gap\">… {count} more characters</span>")
}

/// A text as far as a page shows it: its beginning, with long lines cut.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Excerpt {
    /// The visible part.
    pub(crate) text: String,
    /// Where something is left out: a position in `text`, in bytes, and the number of characters.
    pub(crate) gaps: Vec<(usize, usize)>,
    /// The characters of the whole text.
    pub(crate) characters: usize,
}

impl Excerpt {
    /// At most about `limit` characters of `text`, and `line_limit` of each line.
    pub(crate) fn new(text: &str, limit: usize, line_limit: usize) -> Self {
        let characters = text.chars().count();
        let mut excerpt = Self { characters, ..Self::default() };
        let (mut shown, mut seen) = (0, 0);
        for line in text.split_inclusive('\n') {
            if shown >= limit {
                break;
            }
            let length = line.chars().count();
            let room = line_limit.min(limit - shown);
            seen += length;
            if length <= room {
                excerpt.text.push_str(line);
                shown += length;
                continue;
            }
            excerpt.text.extend(line.chars().take(room));
            let end = if line.ends_with('\n') { "\n" } else { "" };
            excerpt.gaps.push((excerpt.text.len(), length - room - end.len()));
            excerpt.text.push_str(end);
            shown += room + end.len();
        }
        if seen < characters {
            excerpt.gaps.push((excerpt.text.len(), characters - seen));
        }
        excerpt.gaps.retain(|gap| gap.1 > 0);
        excerpt
    }

    /// True if this is the whole text.
    pub(crate) fn is_whole(&self) -> bool {
        self.gaps.is_empty()
    }

    /// The excerpt on a page, with styles and changes. Both are ranges of bytes of `text`, in
    /// order and apart.
    pub(crate) fn to_markup(&self, styles: &[(Range<usize>, &str)], changes: &Changes) -> Markup {
        let mut edges: Vec<usize> = vec![0, self.text.len()];
        edges.extend(styles.iter().flat_map(|(range, _)| [range.start, range.end]));
        edges.extend(changes.ranges.iter().flat_map(|range| [range.start, range.end]));
        edges.extend(self.gaps.iter().map(|gap| gap.0));
        edges.retain(|at| self.text.is_char_boundary(*at));
        edges.sort_unstable();
        edges.dedup();

        let mut out = String::with_capacity(self.text.len() * 2);
        let (mut style, mut change, mut gaps) = (0, 0, 0);
        let mut is_open = false;
        for (i, &start) in edges.iter().enumerate() {
            while styles.get(style).is_some_and(|(range, _)| range.end <= start) {
                style += 1;
            }
            while changes.ranges.get(change).is_some_and(|range| range.end <= start) {
                change += 1;
            }
            let changed = changes.ranges.get(change).is_some_and(|range| range.start <= start);
            if changed != is_open {
                let slash = if changed { "" } else { "/" };
                out.push_str(&format!("<{slash}{}>", changes.element));
                is_open = changed;
            }
            while let Some(&(at, characters)) = self.gaps.get(gaps).filter(|gap| gap.0 <= start) {
                debug_assert_eq!(at, start);
                out.push_str(&gap(characters));
                gaps += 1;
            }
            let Some(&end) = edges.get(i + 1) else { break };
            let text = &self.text[start..end];
            match styles.get(style).filter(|(range, _)| range.start <= start) {
                Some((_, class)) => {
                    out.push_str(&format!("<span class=\"{class}\">"));
                    push_code(&mut out, text);
                    out.push_str("</span>");
                }
                None => push_code(&mut out, text),
            }
        }
        if is_open {
            out.push_str(&format!("</{}>", changes.element));
        }
        Markup(out)
    }
}

/// Parts of a text that the other text lacks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// The element that they are shown in: `del` or `ins`.
    pub(crate) element: &'static str,
    /// Where they are, in bytes.
    pub(crate) ranges: Vec<Range<usize>>,
}
