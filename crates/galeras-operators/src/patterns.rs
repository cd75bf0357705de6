//! Glob patterns in arguments: parses them, and describes what they exclude.

use std::collections::BTreeMap;

use globset::{Glob, GlobSet, GlobSetBuilder};

use galeras_base::terminal_escape::escape;
use galeras_operator::ArgError;
use galeras_workflow::code::Code;
use galeras_workflow::quote;

/// The most bytes of a pattern, alternatives (`{a,b}`) in one, and patterns of an argument. The
/// conversion to regular expressions recurses for each nested alternative.
const MOST_BYTES: usize = 4096;
const MOST_ALTERNATIVES: usize = 32;
const MOST_PATTERNS: usize = 1000;

/// The default of an argument with patterns.
pub(super) fn python_files() -> Vec<String> {
    vec!["**/*.py".into()]
}

/// The glob patterns of an argument that is a list.
pub(super) fn glob_set(argument: &str, patterns: &[String]) -> Result<GlobSet, ArgError> {
    check_sizes(argument, patterns)?;
    let bad = |path: String| {
        move |error: globset::Error| ArgError::new(path, Code::BadPattern, error.to_string())
    };
    let mut set = GlobSetBuilder::new();
    for (at, pattern) in patterns.iter().enumerate() {
        set.add(Glob::new(pattern).map_err(bad(format!("{argument}[{at}]")))?);
    }
    set.build().map_err(bad(argument.to_string()))
}

/// Refuses oversized patterns before anything else parses them.
fn check_sizes(argument: &str, patterns: &[String]) -> Result<(), ArgError> {
    let bad = |path: String, message| Err(ArgError::new(path, Code::BadPattern, message));
    if patterns.len() > MOST_PATTERNS {
        let message = format!("{} patterns; there may be {MOST_PATTERNS}", patterns.len());
        return bad(argument.to_string(), message);
    }
    for (at, pattern) in patterns.iter().enumerate() {
        // Escaped braces count as well: only the parser recognizes them.
        let braces = pattern.bytes().filter(|byte| *byte == b'{').count();
        let message = if pattern.len() > MOST_BYTES {
            format!("the pattern has {} bytes; it may have {MOST_BYTES}", pattern.len())
        } else if braces > MOST_ALTERNATIVES {
            format!("the pattern has {braces} `{{`; it may have {MOST_ALTERNATIVES}")
        } else {
            continue;
        };
        return bad(format!("{argument}[{at}]"), message);
    }
    Ok(())
}

/// Languages other than Python, and the suffixes of files that contain only them.
const LANGUAGES: [(&str, &str); 32] = [
    ("Java", "java"),
    ("JavaScript", "js mjs cjs jsx"),
    ("TypeScript", "ts tsx"),
    ("C", "c h"),
    ("C++", "cc cpp cxx hpp"),
    ("C#", "cs"),
    ("Go", "go"),
    ("Rust", "rs"),
    ("Ruby", "rb"),
    ("PHP", "php"),
    ("Swift", "swift"),
    ("Kotlin", "kt kts"),
    ("Scala", "scala"),
    ("Objective-C", "m"),
    ("R", "r"),
    ("Julia", "jl"),
    ("Lua", "lua"),
    ("Perl", "pl"),
    ("shell", "sh bash"),
    ("Haskell", "hs"),
    ("OCaml", "ml"),
    ("Clojure", "clj"),
    ("Dart", "dart"),
    ("Elixir", "ex exs"),
    ("Erlang", "erl"),
    ("Fortran", "f90"),
    ("SQL", "sql"),
    ("HTML", "html"),
    ("CSS", "css"),
    ("Markdown", "md"),
    ("notebook", "ipynb"),
    ("JSON", "json"),
];

/// The patterns of an argument that only match non-Python files, which `operator` cannot use.
pub(super) fn other_languages(
    argument: &str,
    patterns: &[String],
    operator: &str,
) -> Vec<ArgError> {
    let found = patterns.iter().enumerate().filter_map(|(at, pattern)| {
        let language = only_language(pattern)?;
        let message = format!(
            "{} can only match {language} files, and `{operator}` reads Python",
            quote(pattern)
        );
        let error = ArgError::new(format!("{argument}[{at}]"), Code::OtherLanguage, message);
        Some(error.help("write `**/*.py`, or leave this pattern out"))
    });
    found.collect()
}

/// The language of all files that a pattern can match, if it is not Python.
fn only_language(pattern: &str) -> Option<&'static str> {
    let name = pattern.rsplit('/').next().unwrap_or(pattern);
    let (_, suffix) = name.rsplit_once('.')?;
    let suffixes = match suffix.strip_prefix('{').and_then(|list| list.strip_suffix('}')) {
        Some(list) => list.split(',').collect(),
        None => vec![suffix],
    };
    let language = |suffix: &str| {
        let is_known = |known: &str| known.split(' ').any(|one| suffix.eq_ignore_ascii_case(one));
        LANGUAGES.iter().find(|(_, known)| is_known(known)).map(|(language, _)| *language)
    };
    let languages: Option<Vec<_>> = suffixes.into_iter().map(language).collect();
    languages?.first().copied()
}

/// The suffix of a path with its dot; empty for a name without one.
pub(super) fn suffix_of(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rfind('.').filter(|at| *at > 0).map_or("", |at| &name[at..])
}

/// Numbers of files by suffix in words, the most frequent first: `12 .py, 3 .md and 1 other`.
pub(super) fn suffixes(files: &BTreeMap<Box<str>, u64>) -> String {
    const SHOWN: usize = 4;
    let mut order: Vec<_> = files.iter().collect();
    order.sort_by_key(|(suffix, count)| (std::cmp::Reverse(**count), suffix.to_string()));
    let name = |suffix: &str| match suffix {
        "" => "without a suffix".to_string(),
        _ => escape(suffix),
    };
    let shown = order.iter().take(SHOWN).map(|(suffix, count)| format!("{count} {}", name(suffix)));
    let mut parts: Vec<String> = shown.collect();
    let others: u64 = order.iter().skip(SHOWN).map(|(_, count)| **count).sum();
    if others > 0 {
        parts.push(format!("{others} with other suffixes"));
    }
    parts.join(", ")
}

/// Patterns of an argument as written.
pub(super) fn listed(patterns: &[String]) -> String {
    patterns.iter().map(|pattern| quote(pattern)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_nobody_writes_are_refused() {
        let refused = |patterns: &[String]| {
            let error = glob_set("include", patterns).unwrap_err();
            assert_eq!(error.code, Code::BadPattern);
            (error.path, error.message)
        };
        let nested = |depth: usize| format!("{}a{}", "{".repeat(depth), "}".repeat(depth));
        assert!(glob_set("include", &[nested(MOST_ALTERNATIVES)]).is_ok());
        for depth in [MOST_ALTERNATIVES + 1, 2000] {
            let (path, message) = refused(&["*.py".into(), nested(depth)]);
            assert_eq!(path, "include[1]");
            assert!(message.contains(&format!("has {depth} `{{`")), "{message}");
        }
        // Escaped closing braces do not reduce the count.
        refused(&["{[}]".repeat(MOST_ALTERNATIVES + 1)]);
        let (_, message) = refused(&[nested(1_000_000)]);
        assert!(message.contains("2000001 bytes"), "{message}");
        assert!(glob_set("include", &["a".repeat(MOST_BYTES)]).is_ok());
        let (path, message) = refused(&vec!["*.py".to_string(); MOST_PATTERNS + 1]);
        assert!(path == "include" && message.contains("1001 patterns"), "{message}");
    }

    #[test]
    fn a_pattern_is_of_another_language_only_if_nothing_else_can_match() {
        for (pattern, language) in [
            ("**/*.java", Some("Java")),
            ("src/*.JS", Some("JavaScript")),
            ("**/*.{ts,tsx}", Some("TypeScript")),
            ("**/*.{java,py}", None),
            ("**/*.py", None),
            ("**/*.pyi", None),
            ("**/*", None),
            ("java/**", None),
            ("a.java/*", None),
            ("**/*.j*", None),
            ("**/*.[ch]", None),
            ("**/*.unheard", None),
        ] {
            assert_eq!(only_language(pattern), language, "{pattern}");
        }
    }

    #[test]
    fn suffixes_are_counted_in_words() {
        assert_eq!(
            (suffix_of("a/b.py"), suffix_of("a.b/c"), suffix_of(".bashrc")),
            (".py", "", "")
        );
        let files = [(".py", 3), ("", 1), (".md", 9), (".a", 1), (".b", 1), (".c", 2)];
        let files = files.into_iter().map(|(suffix, count)| (suffix.into(), count)).collect();
        let words = "9 .md, 3 .py, 2 .c, 1 without a suffix, 2 with other suffixes";
        assert_eq!(suffixes(&files), words);
    }
}
