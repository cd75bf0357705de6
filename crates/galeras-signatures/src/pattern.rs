//! Lists of patterns as OpenSSH's configuration files have them (PATTERNS of ssh_config(5)): `*` is any
//! text, `?` any one character, and a pattern after `!` excludes what it matches.

/// A list of patterns between commas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PatternList(Vec<(bool, String)>);

impl PatternList {
    /// The list in a text; `None` if one of the patterns is empty.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let pattern = |part: &str| match part.strip_prefix('!') {
            Some(rest) => (!rest.is_empty()).then(|| (false, rest.to_string())),
            None => (!part.is_empty()).then(|| (true, part.to_string())),
        };
        text.split(',').map(pattern).collect::<Option<_>>().map(Self)
    }

    /// Whether one of the patterns matches, and none that excludes.
    pub(super) fn matches(&self, text: &str) -> bool {
        let mut found = false;
        for (includes, pattern) in &self.0 {
            if is_match(pattern.as_bytes(), text.as_bytes()) {
                if !includes {
                    return false;
                }
                found = true;
            }
        }
        found
    }
}

/// Goes back to the last star only, so that the time is at most the product of both lengths.
fn is_match(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(byte) if *byte == b'?' || *byte == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    (p, t) = (at + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn stars_match_any_text_and_question_marks_one_character() {
        for (list, text, expected) in [
            ("git", "git", true),
            ("git", "gits", false),
            ("*", "", true),
            ("g*t", "gt", true),
            ("g*t", "git-at", true),
            ("g*t", "git-a", false),
            ("?", "", false),
            ("??", "ab", true),
            ("a*b*c", "aXbYbZc", true),
            ("file,galeras-*", "galeras-manifest", true),
            ("*,!galeras-*", "galeras-manifest", false),
            ("!galeras-*", "git", false),
        ] {
            assert_eq!(PatternList::parse(list).unwrap().matches(text), expected, "{list} {text}");
        }
        for wrong in ["", ",", "a,", "!"] {
            assert_eq!(PatternList::parse(wrong), None, "{wrong}");
        }
        let stars = "*a".repeat(2000);
        assert!(!PatternList::parse(&stars).unwrap().matches(&"a".repeat(1999)));
    }
}
