//! Characters that are not seen as themselves: the one list, for pages and for terminals.

/// True for a character that a reader does not see: control characters, marks of direction,
/// characters without width or shape (joiners, fillers, variation selectors, tags), separators of
/// lines and paragraphs. Line ends and tabs are among them.
///
/// Some of them are part of the correct spelling of a text; [`Seen`] knows where.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}'
            | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// True if [`Seen::hides`] has to know the character that follows.
pub fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

/// Tells hidden characters from those that shape what is before them, one character of a text after
/// the other.
///
/// A joiner between two emoji makes one of them, and between two letters of Arabic or an Indic
/// script it chooses their shapes; a selector after an emoji gives it its colours. There is room
/// for one such character at a time, so that nothing can be written with them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seen(Before);

/// The last character.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Before {
    #[default]
    Other,
    Emoji,
    /// An emoji with its selector.
    Selected,
    Letter,
}

impl Seen {
    /// True if `c`, which `next` follows, must be shown by another name.
    pub fn hides(&mut self, c: char, next: Option<char>) -> bool {
        let next = next.map_or(Before::Other, kind);
        let (hides, before) = match (c, self.0) {
            ('\u{fe0e}' | '\u{fe0f}', Before::Emoji) => (false, Before::Selected),
            ('\u{200d}', Before::Emoji | Before::Selected) => {
                (next != Before::Emoji, Before::Other)
            }
            ('\u{200c}' | '\u{200d}', Before::Letter) => (next != Before::Letter, Before::Other),
            _ => (is_hidden(c), kind(c)),
        };
        self.0 = before;
        hides
    }
}

fn kind(c: char) -> Before {
    let is_emoji = matches!(c, '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}'
        | '\u{2194}'..='\u{21aa}' | '\u{231a}'..='\u{23ff}' | '\u{24c2}' | '\u{25aa}'..='\u{25fe}'
        | '\u{2600}'..='\u{27bf}' | '\u{2934}' | '\u{2935}' | '\u{2b05}'..='\u{2b55}' | '\u{3030}'
        | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}');
    // Arabic and Syriac, the scripts of India, Myanmar and Khmer, Mongolian.
    let is_letter = matches!(c, '\u{620}'..='\u{72f}' | '\u{750}'..='\u{77f}' | '\u{8a0}'..='\u{dff}'
        | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17b3}' | '\u{17b6}'..='\u{17d3}'
        | '\u{1820}'..='\u{1878}');
    match (is_emoji, is_letter) {
        (true, _) => Before::Emoji,
        (_, true) => Before::Letter,
        _ => Before::Other,
    }
}

/// The characters of `text`, and whether each is to be shown by another name.
pub(crate) fn seen(text: &str) -> impl Iterator<Item = (char, bool)> {
    let (mut chars, mut before) = (text.chars().peekable(), Seen::default());
    std::iter::from_fn(move || {
        let c = chars.next()?;
        Some((c, before.hides(c, chars.peek().copied())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(text: &str) -> String {
        seen(text).filter(|(_, hidden)| *hidden).map(|(c, _)| c).collect()
    }

    #[test]
    fn what_has_no_shape_is_hidden() {
        for c in "\0\n\u{7f}\u{9b}\u{ad}\u{34f}\u{61c}\u{115f}\u{1160}\u{17b4}\u{180e}\u{180f}\u{200b}\
                  \u{200c}\u{200d}\u{200f}\u{2028}\u{202e}\u{2060}\u{2064}\u{206f}\u{3164}\u{fe00}\
                  \u{fe0f}\u{feff}\u{ffa0}\u{fff9}\u{fffb}\u{1d173}\u{e0001}\u{e007f}\u{e0100}\u{e01ef}"
            .chars()
        {
            assert!(is_hidden(c), "{c:?}");
            assert_eq!(hidden(&format!("a{c}b")), c.to_string());
        }
        for c in " ~é\u{301}世→👩\u{a0}\u{fffd}".chars() {
            assert!(!is_hidden(c), "{c:?}");
        }
    }

    #[test]
    fn what_shapes_an_emoji_or_a_letter_is_not_hidden_there() {
        for text in
            ["👩\u{200d}💻", "❤\u{fe0f}\u{200d}🔥", "👩🏽\u{200d}🚀", "می\u{200c}خواهم", "क\u{200d}ष"]
        {
            assert_eq!(hidden(text), "", "{text:?}");
        }
        for (text, found) in [
            ("👩\u{200d}", "\u{200d}"),
            ("\u{200d}👩", "\u{200d}"),
            ("👩\u{200d}\u{200d}💻", "\u{200d}\u{200d}"),
            ("❤\u{fe0f}\u{fe0f}\u{fe0e}", "\u{fe0f}\u{fe0e}"),
            ("a\u{fe0f}", "\u{fe0f}"),
            ("ab\u{200c}cd", "\u{200c}"),
            ("م\u{200c}\u{200c}خ", "\u{200c}\u{200c}"),
            ("👩\u{e0061}", "\u{e0061}"),
        ] {
            assert_eq!(hidden(text), found, "{text:?}");
        }
    }
}
