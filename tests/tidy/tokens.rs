//! Rust text without what is no code, and cut into the tokens that paths are made of.

/// A token, with the number of its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) line: usize,
}

/// The identifiers, `::` and single signs of a text without comments.
pub(crate) fn tokens(code: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    for (at, line) in code.lines().enumerate() {
        let mut rest = line;
        while let Some(first) = rest.chars().next() {
            let length = if first.is_alphanumeric() || first == '_' {
                rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            if !first.is_whitespace() {
                tokens.push(Token { text: rest[..length].to_string(), line: at + 1 });
            }
            rest = &rest[length..];
        }
    }
    tokens
}

/// The text with blanks for comments, for the content of strings and characters, and for the items
/// behind `#[cfg(test)]`; every line keeps its number.
pub(crate) fn without_comments_and_tests(text: &str) -> String {
    blank_tests(&without_comments(text))
}

/// The modules that a text declares as `#[cfg(test)] mod name;`.
pub(crate) fn test_modules(text: &str) -> Vec<String> {
    let code = without_comments(text);
    let mut names = Vec::new();
    for (start, _) in code.match_indices(CFG_TEST) {
        let item = code[start + CFG_TEST.len()..].split(';').next().unwrap_or_default();
        let words: Vec<&str> = item.split_whitespace().collect();
        if let [.., "mod", name] = words[..] {
            names.push(name.to_string());
        }
    }
    names
}

const CFG_TEST: &str = "#[cfg(test)]";

fn without_comments(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = end_of_gap(&chars, at);
        if end > at {
            out.extend(chars[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
            at = end;
        } else {
            out.push(chars[at]);
            at += 1;
        }
    }
    out
}

/// Where a comment, string or character ends that begins at `at`; `at` if none does.
fn end_of_gap(chars: &[char], at: usize) -> usize {
    let begins = |from: usize, word: &str| {
        word.chars().enumerate().all(|(i, c)| chars.get(from + i) == Some(&c))
    };
    let find = |from: usize, word: &str| {
        let end = (from..chars.len()).find(|i| begins(*i, word));
        end.map_or(chars.len(), |end| end + word.chars().count())
    };
    if begins(at, "//") {
        return find(at, "\n").max(at + 1) - 1;
    }
    if begins(at, "/*") {
        return find(at + 2, "*/");
    }
    let in_word = at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_');
    if chars[at] == 'r' && !in_word {
        let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
        if chars.get(at + 1 + hashes) == Some(&'"') {
            return find(at + 2 + hashes, &format!("\"{}", "#".repeat(hashes)));
        }
    }
    match chars[at] {
        '"' => end_of_quotes(chars, at, '"'),
        // A character, not a lifetime.
        '\'' if chars.get(at + 1) == Some(&'\\') || chars.get(at + 2) == Some(&'\'') => {
            end_of_quotes(chars, at, '\'')
        }
        _ => at,
    }
}

fn end_of_quotes(chars: &[char], start: usize, quote: char) -> usize {
    let mut at = start + 1;
    while at < chars.len() && chars[at] != quote {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

fn blank_tests(code: &str) -> String {
    let mut out = code.to_string();
    while let Some(start) = out.find(CFG_TEST) {
        let end = end_of_item(&out, start + CFG_TEST.len());
        let blank: String =
            out[start..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
        out.replace_range(start..end, &blank);
    }
    out
}

/// Where the item behind an attribute ends: at its `;`, or at the brace that closes it.
fn end_of_item(code: &str, start: usize) -> usize {
    let import = code[start..].trim_start().starts_with("use ");
    let mut depth = 0;
    for (at, sign) in code[start..].char_indices() {
        match sign {
            '{' => depth += 1,
            '}' => depth -= 1,
            ';' if depth == 0 => return start + at + 1,
            _ => {}
        }
        if sign == '}' && depth == 0 && !import {
            return start + at + 1;
        }
    }
    code.len()
}

#[test]
fn comments_strings_and_tests_are_no_code() {
    let code = without_comments_and_tests(
        "use a::b; // c::d\nlet x = \"e::f\\\" g::h\";\nlet y = r#\"i::\"j\"#; let q = 'q';\n\
         fn f<'a>(s: &'a str) {}\n#[cfg(test)]\nmod tests {\n    use k::l;\n}\nuse m::n;\n\
         #[cfg(test)]\nuse o::{p, q};\nuse r::s;\n",
    );
    let paths: Vec<&str> = code.split_whitespace().filter(|word| word.contains("::")).collect();
    assert_eq!(paths, ["a::b;", "m::n;", "r::s;"]);
    assert!(code.contains("f<'a>(s: &'a str)"), "{code}");
    assert_eq!(test_modules("#[cfg(test)]\nmod tests;\nmod b;\n"), ["tests"]);
}
