//! Real methods, cut at random: an answer that repeats the given beginning in another form counts as
//! the one that repeats it to the letter, and a repetition alone counts for nothing.

// Helpers of tests may panic as tests do.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use galeras_metrics::text::{Beginning, GivenCode};
use galeras_python::{cut_points, docstring_end, methods, signature_end, with_parser};

/// The number of methods.
const METHODS: usize = 2_000;

#[test]
fn a_changed_beginning_costs_nothing_and_an_echo_of_it_is_worth_nothing() {
    let mut draws = Draws(42);
    let mut counts = [0_usize; CHANGES.len()];
    let mut checked = 0;
    for code in corpus() {
        let Some(method) = Cut::new(&code, &mut draws) else { continue };
        let code = GivenCode::new(method.given());
        let reference = code.continuation(method.code);
        assert_eq!(reference.rest, method.rest(), "{}", method.code);
        for ((name, change), count) in CHANGES.iter().zip(&mut counts) {
            let Some((echo, whole)) = change(&method) else { continue };
            *count += 1;
            let (wanted, written) = code.compared(&reference, &code.continuation(&whole));
            assert_eq!(wanted.trim(), written.trim(), "{name}:\n{}\n\n{whole}", method.given());
            let (_, written) = code.compared(&reference, &code.continuation(&echo));
            assert_eq!(written.trim(), "", "{name}, an echo:\n{}\n\n{echo}", method.given());
        }
        let continued = code.continuation(method.rest());
        let found = (continued.rest, continued.beginning);
        assert_eq!(found, (method.rest(), Beginning::Other), "{}", method.code);
        checked += 1;
        if checked == METHODS {
            break;
        }
    }
    assert_eq!(checked, METHODS);
    assert!(counts.iter().all(|count| *count > METHODS / 10), "{counts:?}");
}

/// A change of the given beginning: the beginning and the whole method after it.
type Change = fn(&Cut<'_>) -> Option<(String, String)>;

const CHANGES: [(&str, Change); 8] = [
    ("the same", |method| method.with(str::to_owned)),
    ("an import in front", |method| {
        method.with(|text| format!("from typing import List\nimport os\n\n{text}"))
    }),
    ("a code fence", |method| method.with(|text| format!("```python\n{text}\n```\n"))),
    ("blank lines", |method| {
        let is_line = |at: &usize| {
            let before = method.code[..*at].trim_end_matches([' ', '\t']);
            before.ends_with('\n') && !before.ends_with("\\\n")
        };
        let lines: Vec<usize> = method.points.iter().copied().filter(is_line).collect();
        method.edited(lines.into_iter().map(|at| {
            let line = method.code[..at].rfind('\n').map_or(at, |end| end + 1);
            (line, line, "\n\n".to_owned())
        }))
    }),
    ("a docstring added", |method| {
        let body = method.code[method.signature..].strip_prefix('\n')?;
        let indent = &body[..body.len() - body.trim_start().len()];
        let is_new = method.docstring == method.signature && method.at >= method.signature;
        let indent = indent.rsplit('\n').next().unwrap_or_default();
        let docstring = format!("\n{indent}\"\"\"Does what its name says.\"\"\"");
        method.edited(is_new.then_some((method.signature, method.signature, docstring)))
    }),
    ("a docstring removed", |method| {
        let docstring = &method.code[method.signature..method.docstring];
        let text = docstring.trim();
        let quotes = ["\"\"\"", "'''", "\"", "'"];
        let quote = quotes.into_iter().find(|quote| text.starts_with(quote))?;
        let is_one = text.strip_prefix(quote)?.find(quote)? + 2 * quote.len() == text.len();
        if !is_one || !method.code[method.docstring..].starts_with('\n') {
            return None;
        }
        let beginning = &method.code[..method.signature];
        let rest = &method.code[method.docstring..];
        let shown = rest.get(..method.at.saturating_sub(method.docstring))?;
        Some((format!("{beginning}{shown}"), format!("{beginning}{rest}")))
    }),
    ("type hints", |method| {
        let signature = &method.code[..method.signature];
        let open = signature.find('(')? + 1;
        let close = signature.rfind(')')?;
        let names = signature.get(open..close)?;
        // Only plain parameters.
        if !names.chars().all(|c| c.is_alphanumeric() || "_, \n".contains(c)) {
            return None;
        }
        let ends = names.match_indices(',').map(|(at, _)| open + at);
        let has_last = !names.trim().is_empty() && !names.trim_end().ends_with(',');
        let ends = ends.chain(has_last.then_some(close));
        let hints = ends.map(|at| (at, at, ": Optional[Dict[str, int]]".to_owned()));
        // A return type that is there stays.
        let colon = signature.len() - 1;
        let returns = (colon == close + 1).then(|| (colon, colon, " -> List[int]".to_owned()));
        method.edited(hints.chain(returns))
    }),
    ("other quotes", |method| {
        let strings = method.points.iter().filter_map(|start| {
            let text = &method.code[*start..];
            let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
            let content = text[1..].split(quote).next()?;
            let is_plain = !content.is_empty() && !content.contains(['"', '\'', '\\', '\n']);
            let end = start + content.len() + 2;
            let other = if quote == '"' { '\'' } else { '"' };
            (is_plain && end <= method.at)
                .then(|| (*start, end, format!("{other}{content}{other}")))
        });
        method.edited(strings)
    }),
];

/// A method that is cut after a part of its text, and not in its signature.
struct Cut<'a> {
    code: &'a str,
    at: usize,
    signature: usize,
    docstring: usize,
    /// The starts of its tokens.
    points: Vec<usize>,
}

impl<'a> Cut<'a> {
    fn new(code: &'a str, draws: &mut Draws) -> Option<Self> {
        let share = 0.4 + 0.25 * draws.next();
        let (signature, docstring, points) = with_parser(|parser| {
            let signature = signature_end(parser, code).ok()??;
            let docstring = docstring_end(parser, code).ok()??;
            Some((signature, docstring, cut_points(parser, code).ok()?))
        })
        .unwrap()?;
        let space = |from: usize| code[from..].find(' ').map(|at| from + at);
        let wanted = code.floor_char_boundary((share * code.len() as f64) as usize);
        let at = code[..wanted].rfind(' ').filter(|at| *at >= signature);
        let at = at.or_else(|| space(signature))?;
        (!code[at..].trim().is_empty()).then_some(Self { code, at, signature, docstring, points })
    }

    fn given(&self) -> &'a str {
        &self.code[..self.at]
    }

    fn rest(&self) -> &'a str {
        &self.code[self.at..]
    }

    fn with(&self, change: impl Fn(&str) -> String) -> Option<(String, String)> {
        Some((change(self.given()), change(self.code)))
    }

    /// Replaces ranges of the given text, in ascending order; `None` if there are none.
    fn edited(
        &self,
        edits: impl IntoIterator<Item = (usize, usize, String)>,
    ) -> Option<(String, String)> {
        let (mut given, mut last) = (String::new(), 0);
        for (start, end, text) in edits.into_iter().filter(|edit| edit.1 <= self.at) {
            given += &self.code[last..start];
            given += &text;
            last = end;
        }
        if given.is_empty() {
            return None;
        }
        given += &self.code[last..self.at];
        let whole = format!("{given}{}", self.rest());
        Some((given, whole))
    }
}

/// The methods of Python's standard library, without its tests, in random order.
fn corpus() -> Vec<String> {
    let mut folders = vec![PathBuf::from(rustpython_pylib::LIB_PATH)];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("test") {
                folders.push(path);
            } else if path.extension().is_some_and(|suffix| suffix == "py") {
                files.push(path);
            }
        }
    }
    files.sort();
    let mut draws = Draws(7);
    let mut all = Vec::new();
    for file in files {
        let Ok(source) = std::fs::read_to_string(&file) else { continue };
        for method in methods(&source, false).into_iter().flatten() {
            if method.code.len() > 100 {
                all.push((draws.next(), method.code));
            }
        }
    }
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all.into_iter().map(|(_, code)| code).collect()
}

/// Numbers from 0 to 1: a linear congruential generator (Knuth's MMIX).
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}
