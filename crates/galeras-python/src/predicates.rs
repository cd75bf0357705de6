//! Checks where a query has its predicates: after a node, inside its brackets or a group's.
//!
//! tree-sitter accepts one anywhere and attaches a field name, quantifier or capture to the missing
//! node, which aborts the process by an assertion.

/// The byte of the first predicate in the position of a node.
pub(crate) fn misplaced_predicate(query: &str) -> Option<usize> {
    let (mut open, mut before) = (Vec::new(), ' ');
    let mut rest = query;
    loop {
        rest = skip_space(rest);
        let c = rest.chars().next()?;
        let at = query.len() - rest.len();
        rest = rest.get(c.len_utf8()..)?;
        match c {
            '"' => rest = behind_string(rest),
            '(' => {
                let predicate = skip_space(rest).starts_with(['#', '.']);
                if predicate && (matches!(before, ':' | '(') || open.last() == Some(&'[')) {
                    return Some(at);
                }
                open.push(c);
            }
            '[' => open.push(c),
            ')' | ']' => drop(open.pop()),
            _ => {}
        }
        before = c;
    }
}

/// The rest after white space and comments.
pub(crate) fn skip_space(text: &str) -> &str {
    let text = text.trim_start();
    match text.strip_prefix(';') {
        Some(comment) => skip_lines(comment),
        None => text,
    }
}

/// The rest after a comment and any that follow.
fn skip_lines(mut comment: &str) -> &str {
    while let Some((_, rest)) = comment.split_once('\n') {
        let rest = rest.trim_start();
        match rest.strip_prefix(';') {
            Some(more) => comment = more,
            None => return rest,
        }
    }
    ""
}

/// The rest after a string whose first quote was read.
pub(crate) fn behind_string(text: &str) -> &str {
    let mut escaped = false;
    let end = text.find(|c| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    end.and_then(|end| text.get(end + 1..)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_predicate_in_the_place_of_a_node_is_found() {
        for (query, at) in [
            (r#"(call function: (#eq? @f "x"))"#, Some(16)),
            ("(call function: ; a\n ( #eq? @f))", Some(21)),
            ("((#eq? @f @f)) @x", Some(1)),
            ("(call body: ((.eq? @f @f))?)", Some(13)),
            ("[(#eq? @f @f)]*", Some(1)),
            ("[(call) (#eq? @f @f)] @x", Some(8)),
            (r#"(call) @f (#eq? @f "(call x: (#eq?")"#, None),
            (
                r#"((call) @f ; x: (#eq? @f)
                (#eq? @f "\"x: (#"))"#,
                None,
            ),
            ("(call function: (_) @f (#eq? @f @f))", None),
            ("", None),
            ("(call \"", None),
            ("; x", None),
        ] {
            assert_eq!(misplaced_predicate(query), at, "{query}");
        }
    }
}
