//! Finds mistakes in queries that tree-sitter mishandles.
//!
//! A predicate belongs after a node, inside its brackets or a group's. tree-sitter accepts one
//! anywhere and attaches a field name, quantifier or capture to the missing node, which aborts the
//! process by an assertion. It also never finishes compiling a repetition of a part that matches
//! the empty sequence (`(call)?+`, `((call)* (string)?)+`). A whole query of this kind matches at
//! every node.

/// The rest after white space and comments.
fn skip_space(text: &str) -> &str {
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
fn after_string(text: &str) -> &str {
    let mut escaped = false;
    let end = text.find(|c| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    end.and_then(|end| text.get(end + 1..)).unwrap_or_default()
}

/// The byte of the first mistake, and its description.
pub(crate) fn mistake(query: &str) -> Option<(usize, &'static str)> {
    let mut open = vec![OpenBracket::new(BracketKind::Query, 0)];
    let mut rest = query;
    let mut last = ' ';
    loop {
        rest = skip_space(rest);
        let at = query.len() - rest.len();
        let Some(c) = rest.chars().next() else { break };
        let (before, last) = (rest, std::mem::replace(&mut last, c));
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        if matches!(c, ')' | ']') && open.len() > 1 {
            let closed = open.pop().and_then(OpenBracket::closed);
            if let (Some((nothing, begun)), Some(outer)) = (closed, open.last_mut()) {
                outer.next(nothing, begun);
            }
        } else if let Some(inner) = open.last_mut() {
            match c {
                '(' => {
                    let kind = BracketKind::of(rest);
                    let in_choice = inner.kind == BracketKind::Choice;
                    if kind == BracketKind::Predicate && (matches!(last, ':' | '(') || in_choice) {
                        return Some((at, "a predicate is in the place of a node"));
                    }
                    open.push(OpenBracket::new(kind, at));
                }
                '[' => open.push(OpenBracket::new(BracketKind::Choice, at)),
                '"' => {
                    rest = after_string(rest);
                    inner.next(false, at);
                }
                '?' | '*' => inner.may_be_missing(),
                '+' if inner.last_matches_nothing() => {
                    return Some((at, "the repeated part may match nothing"));
                }
                '@' | '!' => rest = after_word(rest),
                _ if is_word_char(c) => {
                    rest = after_word(before);
                    if !skip_space(rest).starts_with(':') {
                        inner.next(false, at);
                    }
                }
                _ => {}
            }
        }
        if let Some(at) = open.first().and_then(|query| query.nothing_at) {
            return Some((at, MATCHES_NOTHING));
        }
    }
    let whole = open.into_iter().next()?;
    whole.ended().nothing_at.map(|at| (at, MATCHES_NOTHING))
}

const MATCHES_NOTHING: &str = "it also matches nothing, which is found everywhere";

#[derive(Clone, Copy, PartialEq, Eq)]
enum BracketKind {
    Query,
    /// `(call …)`, which matches a node.
    Node,
    /// `((call) (string))`, a sequence.
    Group,
    /// `[(call) (string)]`, alternatives.
    Choice,
    /// `(#eq? …)`, which is not a part.
    Predicate,
}

impl BracketKind {
    /// The kind of a round bracket, by the text after it.
    fn of(rest: &str) -> Self {
        match skip_space(rest).chars().next() {
            Some('(' | '[' | '"') => Self::Group,
            Some('#' | '.') => Self::Predicate,
            _ => Self::Node,
        }
    }
}

struct OpenBracket {
    kind: BracketKind,
    begun: usize,
    /// Is every part so far optional, and is any of them?
    all: bool,
    any: bool,
    /// Is the last part optional, and where does it begin?
    last: Option<(bool, usize)>,
    nothing_at: Option<usize>,
}

impl OpenBracket {
    fn new(kind: BracketKind, begun: usize) -> Self {
        Self { kind, begun, all: true, any: false, last: None, nothing_at: None }
    }

    fn end_part(&mut self) {
        let Some((nothing, begun)) = self.last.take() else { return };
        self.all &= nothing;
        self.any |= nothing;
        if nothing && self.nothing_at.is_none() {
            self.nothing_at = Some(begun);
        }
    }

    fn next(&mut self, nothing: bool, begun: usize) {
        self.end_part();
        self.last = Some((nothing, begun));
    }

    fn may_be_missing(&mut self) {
        if let Some((nothing, _)) = &mut self.last {
            *nothing = true;
        }
    }

    fn last_matches_nothing(&self) -> bool {
        self.kind != BracketKind::Predicate && self.last.is_some_and(|(nothing, _)| nothing)
    }

    fn ended(mut self) -> Self {
        self.end_part();
        self
    }

    /// Returns whether the whole may match nothing, and its start; `None` if it is not a part.
    fn closed(self) -> Option<(bool, usize)> {
        let whole = self.ended();
        let nothing = match whole.kind {
            BracketKind::Node | BracketKind::Query => false,
            BracketKind::Group => whole.all,
            BracketKind::Choice => whole.any,
            BracketKind::Predicate => return None,
        };
        Some((nothing, whole.begun))
    }
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-')
}

fn after_word(text: &str) -> &str {
    text.trim_start_matches(|c| is_word_char(c) || c == '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_found_where_they_are() {
        for (query, at) in [
            // Predicates in the position of a node.
            (r#"(call function: (#eq? @f "x"))"#, Some(16)),
            ("(call function: ; a\n ( #eq? @f))", Some(21)),
            ("((#eq? @f @f)) @x", Some(1)),
            ("(call body: ((.eq? @f @f))?)", Some(13)),
            ("[(#eq? @f @f)]*", Some(1)),
            ("[(call) (#eq? @f @f)] @x", Some(8)),
            (r#"(call) @f (#eq? @f "(call x: (#eq?")"#, None),
            ("((call) @f ; x: (#eq? @f)\n (#eq? @f \"\\\"x: (#\"))", None),
            ("(call function: (_) @f (#eq? @f @f))", None),
            ("(call \"", None),
            ("; x", None),
            // Parts that may match nothing.
            ("(call)?", Some(0)),
            ("(call) (call)*", Some(7)),
            ("(call) @a *", Some(0)),
            ("((call)? (string)*)", Some(0)),
            ("[(call) (string)?]", Some(0)),
            ("\"if\"?", Some(0)),
            ("_*", Some(0)),
            ("(call)?+", Some(7)),
            ("(call)* ; again\n +", Some(17)),
            ("((call)?)+", Some(9)),
            ("(_ (_)?+)", Some(7)),
            ("(_ ((_)* (string)? (#eq? @a \"+\"))+)", Some(33)),
            ("(_ [(call) (string)?] @a+)", Some(24)),
            ("(call)", None),
            ("(call)+", None),
            ("(_ (_)* (_)?)", None),
            ("(_ ((_)*)*)", None),
            ("((call)? (string))+", None),
            ("((call)? \"if\")+", None),
            ("((call)? _)+", None),
            ("(call function: (_)? @f)+", None),
            ("(call !function (string)?) @x.y+", None),
            ("((comment)* @doc . (call) (#eq? @doc \"?+\"))", None),
            ("((call) @f (#any-of? @f \"x\" \"y\"))", None),
            ("[(call) (string)]", None),
            ("(call)) ?", Some(0)),
            ("(call", None),
            ("?", None),
            ("+", None),
            ("", None),
        ] {
            assert_eq!(mistake(query).map(|(at, _)| at), at, "{query}");
        }
    }
}
