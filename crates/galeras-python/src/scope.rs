//! The walk over a tree that finds definitions: which scope the cursor is in.
//!
//! Here: the dotted name of the scope, and moving on. Not here: what is done with a
//! definition (`methods`, `outline::piece`).

use tree_sitter::TreeCursor;

/// The scope of a cursor that goes through a tree in document order.
#[derive(Default)]
pub(super) struct Scope {
    /// The names of the open definitions, joined by dots.
    name: String,
    /// For each open definition the depth of its node and the length of the name around it.
    open: Vec<(u32, usize)>,
    /// The cursor's depth. Counted here: its own takes time that grows with the depth.
    level: u32,
}

impl Scope {
    /// The cursor stands at a definition of this name; gives the name with those around it.
    pub(super) fn enter(&mut self, name: &str) -> &str {
        self.open.push((self.level, self.name.len()));
        if !self.name.is_empty() {
            self.name.push('.');
        }
        self.name.push_str(name);
        &self.name
    }

    /// Goes to the first child, if there is one.
    pub(super) fn descend(&mut self, cursor: &mut TreeCursor<'_>) -> bool {
        let has_child = cursor.goto_first_child();
        self.level += u32::from(has_child);
        has_child
    }

    /// Goes to the next node that is not inside of this one, if there is one.
    pub(super) fn pass(&mut self, cursor: &mut TreeCursor<'_>) -> bool {
        loop {
            if let Some(&(depth, length)) = self.open.last()
                && depth == self.level
            {
                self.name.truncate(length);
                self.open.pop();
            }
            if cursor.goto_next_sibling() {
                return true;
            }
            if !cursor.goto_parent() {
                return false;
            }
            self.level -= 1;
        }
    }
}

/// Whether a definition can stand below a node of this kind in a tree without errors:
/// statements with a suite. Valid expressions and simple statements are passed over.
pub(super) fn holds_definitions(kind: &str) -> bool {
    matches!(
        kind,
        "module"
            | "block"
            | "if_statement"
            | "for_statement"
            | "while_statement"
            | "try_statement"
            | "with_statement"
            | "match_statement"
    ) || kind.ends_with("_definition")
        || kind.ends_with("_clause")
}
