//! Python highlighted by tree-sitter. Broken code is fine: what the grammar makes of it counts.

use std::ops::Range;
use std::sync::LazyLock;

use tree_sitter::{Language, Parser, Query, QueryCursor, StreamingIterator as _};

/// The grammar, the query of highlights, and the class of each capture of the query.
static PYTHON: LazyLock<Option<(Language, Query, Vec<&'static str>)>> = LazyLock::new(|| {
    let language = Language::from(tree_sitter_python::LANGUAGE);
    let query = Query::new(&language, tree_sitter_python::HIGHLIGHTS_QUERY).ok()?;
    let classes = query.capture_names().iter().map(|name| class(name)).collect();
    Some((language, query, classes))
});

/// The class of a capture in the style sheet; empty for plain text.
fn class(capture: &str) -> &'static str {
    match capture {
        "comment" => "hl-comment",
        "string" => "hl-string",
        "escape" => "hl-escape",
        "number" => "hl-number",
        "constant" | "constant.builtin" => "hl-constant",
        "keyword" => "hl-keyword",
        "operator" | "punctuation.special" => "hl-operator",
        "function" | "function.method" => "hl-function",
        "function.builtin" => "hl-builtin",
        "type" | "constructor" => "hl-type",
        "property" => "hl-property",
        _ => "",
    }
}

/// The ranges of bytes of `code` that have a class, in order and apart.
pub(crate) fn python(code: &str) -> Vec<(Range<usize>, &'static str)> {
    let Some((language, query, classes)) = PYTHON.as_ref() else { return Vec::new() };
    let mut parser = Parser::new();
    if parser.set_language(language).is_err() {
        return Vec::new();
    }
    let Some(tree) = parser.parse(code, None) else { return Vec::new() };

    // Of several captures the innermost counts, of the same node the last one of the query.
    let mut captures: Vec<(usize, usize, usize, &'static str)> = Vec::new();
    let mut cursor = QueryCursor::new();
    let mut matches = cursor.matches(query, tree.root_node(), code.as_bytes());
    while let Some(found) = matches.next() {
        for capture in found.captures {
            let range = capture.node.byte_range();
            let class = classes.get(capture.index as usize).copied().unwrap_or_default();
            captures.push((range.start, range.end, found.pattern_index, class));
        }
    }
    captures.sort_by_key(|&(start, end, pattern, _)| (start, usize::MAX - end, pattern));
    let mut painted = vec![""; code.len()];
    for (start, end, _, class) in captures {
        if let Some(bytes) = painted.get_mut(start..end) {
            bytes.fill(class);
        }
    }

    let mut ranges: Vec<(Range<usize>, &'static str)> = Vec::new();
    let mut start = 0;
    for run in painted.chunk_by(|a, b| a == b) {
        let end = start + run.len();
        if !run[0].is_empty() {
            ranges.push((start..end, run[0]));
        }
        start = end;
    }
    ranges
}
