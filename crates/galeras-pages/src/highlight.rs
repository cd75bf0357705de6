//! Python highlighted by tree-sitter. Broken code is fine: what the grammar makes of it counts.

use std::ops::Range;
use std::sync::LazyLock;

use tree_sitter::{Language, Parser, Query, QueryCursor, StreamingIterator as _};

/// The classes of the style sheet. The first is that of plain text.
const CLASSES: &[&str] = &[
    "",
    "hl-comment",
    "hl-string",
    "hl-escape",
    "hl-number",
    "hl-constant",
    "hl-keyword",
    "hl-operator",
    "hl-function",
    "hl-builtin",
    "hl-type",
    "hl-property",
];

struct Grammar {
    language: Language,
    query: Query,
    /// The class of each capture, as a position in [`CLASSES`].
    classes: Vec<u8>,
}

static PYTHON: LazyLock<Option<Grammar>> = LazyLock::new(|| {
    let language = Language::from(tree_sitter_python::LANGUAGE);
    let query = Query::new(&language, tree_sitter_python::HIGHLIGHTS_QUERY).ok()?;
    let classes = query.capture_names().iter().map(|name| class(name)).collect();
    Some(Grammar { language, query, classes })
});

fn class(capture: &str) -> u8 {
    match capture {
        "comment" => 1,
        "string" => 2,
        "escape" => 3,
        "number" => 4,
        "constant" | "constant.builtin" => 5,
        "keyword" => 6,
        "operator" | "punctuation.special" => 7,
        "function" | "function.method" => 8,
        "function.builtin" => 9,
        "type" | "constructor" => 10,
        "property" => 11,
        _ => 0,
    }
}

/// The ranges of bytes of `code` that have a class, in order and apart.
pub(crate) fn python(code: &str) -> Vec<(Range<usize>, &'static str)> {
    let Some(grammar) = PYTHON.as_ref() else { return Vec::new() };
    let mut parser = Parser::new();
    if parser.set_language(&grammar.language).is_err() {
        return Vec::new();
    }
    let Some(tree) = parser.parse(code, None) else { return Vec::new() };

    // Of several captures the innermost counts, of the same node the last one of the query.
    let mut captures: Vec<(usize, usize, usize, u8)> = Vec::new();
    let mut cursor = QueryCursor::new();
    let mut matches = cursor.matches(&grammar.query, tree.root_node(), code.as_bytes());
    while let Some(found) = matches.next() {
        for capture in found.captures {
            let range = capture.node.byte_range();
            let class = grammar.classes.get(capture.index as usize).copied().unwrap_or(0);
            captures.push((range.start, range.end, found.pattern_index, class));
        }
    }
    captures.sort_by_key(|&(start, end, pattern, _)| (start, usize::MAX - end, pattern));
    let mut painted = vec![0_u8; code.len()];
    for (start, end, _, class) in captures {
        if let Some(bytes) = painted.get_mut(start..end) {
            bytes.fill(class);
        }
    }

    let mut ranges: Vec<(Range<usize>, &'static str)> = Vec::new();
    let mut start = 0;
    for run in painted.chunk_by(|a, b| a == b) {
        let end = start + run.len();
        let class = CLASSES.get(usize::from(run[0])).copied().unwrap_or("");
        if !class.is_empty() {
            ranges.push((start..end, class));
        }
        start = end;
    }
    ranges
}
