//! Splits code into tokens without losing a byte.
//!
//! This is not a lexer of Python: texts may be cut anywhere, and prompts are prose. Tokens are
//! coarse, so that five of them carry meaning: a single space belongs to the token after it, and a
//! line break, the blank lines after it and the indentation are one token.

/// Operators of several characters, and triple quotes, longest first.
const SIGNS: [&str; 27] = [
    "\"\"\"", "'''", "**=", "//=", ">>=", "<<=", "...", "**", "//", ">>", "<<", "==", "!=", "<=",
    ">=", "->", ":=", "+=", "-=", "*=", "/=", "%=", "@=", "&=", "|=", "^=", "<>",
];

/// The kind of a token, by its first character after a single space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The mark before a text.
    Begin,
    /// White space with a line break.
    Line,
    /// Other white space.
    Space,
    Word,
    Number,
    /// Operators, brackets, quotes, and all other characters.
    Sign,
}

impl Kind {
    pub(super) const COUNT: usize = 6;

    /// The kind of a token; an empty text is a mark.
    pub(super) fn of(token: &str) -> Self {
        match unspaced(token).chars().next() {
            None => Self::Begin,
            Some(c) if is_space(c) && token.contains(['\n', '\r']) => Self::Line,
            Some(c) if is_space(c) => Self::Space,
            Some(c) if c.is_ascii_digit() => Self::Number,
            Some(c) if is_word(c) => Self::Word,
            Some(_) => Self::Sign,
        }
    }
}

/// The number of tokens in a text: the unit of
/// [`CompletionSettings::max_tokens`](super::CompletionSettings). Time is linear in the text.
pub fn count_tokens(text: &str) -> u64 {
    split(text).map(|_| 1).sum()
}

/// The tokens of a text, in order. Joined they are the text.
pub(super) fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (token, after) = rest.split_at(length(rest));
        rest = after;
        (!token.is_empty()).then_some(token)
    })
}

/// A token without the single space before it; white space is unchanged.
pub(super) fn unspaced(token: &str) -> &str {
    match token.strip_prefix(' ') {
        Some(rest) if !rest.is_empty() && !rest.starts_with(is_space) => rest,
        _ => token,
    }
}

/// True if `token` might not end here when `next` follows: word after word, white space after white
/// space.
pub(super) fn joins(token: &str, next: &str) -> bool {
    match (token.chars().next_back(), next.chars().next()) {
        (Some(last), Some(first)) => {
            is_word(last) && is_word(first) || is_space(last) && is_space(first)
        }
        _ => false,
    }
}

/// The length in bytes of the first token.
fn length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let blank =
        bytes.iter().take_while(|byte| CLASSES[usize::from(**byte)] == ByteClass::Space).count();
    if blank == text.len() || blank > 1 || (blank == 1 && bytes[0] != b' ') {
        return blank;
    }
    solid_end(text, blank)
}

/// The end of the token that begins at `start` with no white space.
fn solid_end(text: &str, start: usize) -> usize {
    let rest = text.as_bytes().get(start..).unwrap_or_default();
    let end = word_end(text, start);
    if end > start {
        let word = &rest[..end - start];
        let decimal = word[0].is_ascii_digit()
            && rest.get(word.len()) == Some(&b'.')
            && rest.get(word.len() + 1).is_some_and(u8::is_ascii_digit)
            && word.iter().all(|byte| byte.is_ascii_digit() || *byte == b'_');
        return if decimal { word_end(text, end + 1) } else { end };
    }
    let [first, second] = [0, 1].map(|at| rest.get(at).copied().unwrap_or_default());
    // No longer sign begins with a bracket, a comma or another of these.
    if second.is_ascii_punctuation()
        && !matches!(first, b'(' | b')' | b'[' | b']' | b'{' | b'}' | b',')
        && let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(sign.as_bytes()))
    {
        return start + sign.len();
    }
    let first = text.get(start..).and_then(|rest| rest.chars().next());
    start + first.map_or(0, char::len_utf8)
}

/// The end of the word characters at `start`.
fn word_end(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = start;
    while let Some(&byte) = bytes.get(at) {
        match CLASSES[usize::from(byte)] {
            ByteClass::Word => at += 1,
            ByteClass::Space | ByteClass::Sign => break,
            ByteClass::BeyondAscii => match text.get(at..).and_then(|rest| rest.chars().next()) {
                Some(c) if is_word(c) => at += c.len_utf8(),
                _ => break,
            },
        }
    }
    at
}

/// The class of a byte in the search for tokens.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ByteClass {
    Space,
    Word,
    Sign,
    /// The whole character must be decoded.
    BeyondAscii,
}

const CLASSES: [ByteClass; 256] = {
    let mut classes = [ByteClass::BeyondAscii; 256];
    let mut byte: u8 = 0;
    while byte < 0x80 {
        classes[byte as usize] = match byte {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => ByteClass::Space,
            b'_' => ByteClass::Word,
            _ if byte.is_ascii_alphanumeric() => ByteClass::Word,
            _ => ByteClass::Sign,
        };
        byte += 1;
    }
    classes
};

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii() && c.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<&str> {
        let tokens: Vec<&str> = split(text).collect();
        assert_eq!(tokens.concat(), text);
        assert!(tokens.iter().all(|token| !token.is_empty()));
        tokens
    }

    #[test]
    fn spaces_belong_to_what_follows_and_indentation_to_the_line_break() {
        assert_eq!(
            tokens("def f(x=1.5):\n\n    return x ** 2  # two"),
            [
                "def", " f", "(", "x", "=", "1.5", ")", ":", "\n\n    ", "return", " x", " **",
                " 2", "  ", "#", " two"
            ]
        );
        assert_eq!(tokens("f\"\"\"a\"\"\"!=''"), ["f", "\"\"\"", "a", "\"\"\"", "!=", "'", "'"]);
        assert_eq!(
            tokens("a.b1.2 1.x 1_0.5e-3"),
            ["a", ".", "b1", ".", "2", " 1", ".", "x", " 1_0.5e", "-", "3"]
        );
    }

    #[test]
    fn any_text_is_the_concatenation_of_its_tokens() {
        let long = "x".repeat(1 << 20);
        for text in [
            "",
            " ",
            "  ",
            "\n",
            "a \r\n\tb",
            "\0\0 \0",
            "𝒳𝒴 = '💥'  ",
            "é\u{301}x",
            "\u{a0}\u{3000}a",
            "...",
            "....",
            "== =",
            "\u{feff}def",
            "١٢٣ ２",
            &long,
            &" ".repeat(1 << 20),
        ] {
            tokens(text);
        }
        assert_eq!(count_tokens(&long), 1);
        assert_eq!(count_tokens(""), 0);
        assert_eq!(tokens("a \r\n\tb"), ["a", " \r\n\t", "b"]);
    }

    #[test]
    fn kinds_look_behind_a_single_space() {
        for (token, kind) in [
            ("", Kind::Begin),
            (" ", Kind::Space),
            ("\t \n", Kind::Line),
            (" 1", Kind::Number),
            (" x", Kind::Word),
            ("ñ", Kind::Word),
            (" =", Kind::Sign),
            ("💥", Kind::Sign),
        ] {
            assert_eq!(Kind::of(token), kind, "{token:?}");
        }
        assert!(joins("a", "b") && joins(" a", "1") && joins("\n ", " x"));
        assert!(!joins("a", " b") && !joins("(", "b") && !joins("", "b"));
    }
}
