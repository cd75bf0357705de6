//! Finds queries, or parts of them, that match the empty sequence.
//!
//! tree-sitter never finishes compiling a repetition of such a part (`(call)?+`, `((call)*
//! (string)?)+`). A whole query of this kind matches at every node.

use super::predicates::{behind_string, skip_space};

/// The byte of the first part that wrongly matches the empty sequence, and the problem.
pub(crate) fn misplaced_quantifier(query: &str) -> Option<(usize, &'static str)> {
    let mut open = vec![Open::new(Kind::Query, 0)];
    let mut rest = query;
    loop {
        rest = skip_space(rest);
        let at = query.len() - rest.len();
        let Some(c) = rest.chars().next() else { break };
        let before = rest;
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        if matches!(c, ')' | ']') && open.len() > 1 {
            let closed = open.pop().and_then(Open::closed);
            if let (Some((nothing, begun)), Some(outer)) = (closed, open.last_mut()) {
                outer.next(nothing, begun);
            }
        } else if let Some(inner) = open.last_mut() {
            match c {
                '(' => open.push(Open::new(Kind::of(rest), at)),
                '[' => open.push(Open::new(Kind::Choice, at)),
                '"' => {
                    rest = behind_string(rest);
                    inner.next(false, at);
                }
                '?' | '*' => inner.may_be_missing(),
                '+' if inner.last_matches_nothing() => {
                    return Some((at, "what is repeated may match nothing, again and again"));
                }
                '@' | '!' => rest = behind_word(rest),
                _ if is_of_word(c) => {
                    rest = behind_word(before);
                    if !skip_space(rest).starts_with(':') {
                        inner.next(false, at);
                    }
                }
                _ => {}
            }
        }
        if let Some(at) = open.first().and_then(|query| query.nothing_at) {
            return Some((at, NOWHERE));
        }
    }
    let whole = open.into_iter().next()?;
    whole.ended().nothing_at.map(|at| (at, NOWHERE))
}

const NOWHERE: &str = "it matches nothing, too, which is everywhere";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
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

impl Kind {
    /// The kind of a round bracket, by the text after it.
    fn of(rest: &str) -> Self {
        match skip_space(rest).chars().next() {
            Some('(' | '[' | '"') => Self::Group,
            Some('#' | '.') => Self::Predicate,
            _ => Self::Node,
        }
    }
}

/// The parts of an open pair of brackets.
struct Open {
    kind: Kind,
    begun: usize,
    /// Is every part so far optional, and is any of them?
    all: bool,
    any: bool,
    /// Is the last part optional, and where does it begin?
    last: Option<(bool, usize)>,
    /// The first optional part.
    nothing_at: Option<usize>,
}

impl Open {
    fn new(kind: Kind, begun: usize) -> Self {
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
        self.kind != Kind::Predicate && self.last.is_some_and(|(nothing, _)| nothing)
    }

    fn ended(mut self) -> Self {
        self.end_part();
        self
    }

    /// Returns whether the whole may match nothing, and its start; `None` if it is not a part.
    fn closed(self) -> Option<(bool, usize)> {
        let whole = self.ended();
        let nothing = match whole.kind {
            Kind::Node | Kind::Query => false,
            Kind::Group => whole.all,
            Kind::Choice => whole.any,
            Kind::Predicate => return None,
        };
        Some((nothing, whole.begun))
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-')
}

fn behind_word(text: &str) -> &str {
    text.trim_start_matches(|c| is_of_word(c) || c == '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_may_match_nothing_are_found_where_they_must_not_be() {
        for (query, at) in [
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
            assert_eq!(misplaced_quantifier(query).map(|(at, _)| at), at, "{query}");
        }
    }
}
