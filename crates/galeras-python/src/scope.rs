//! The dotted scope of a cursor that walks a tree to find definitions.

use tree_sitter::TreeCursor;

/// The scope of a cursor that walks a tree in document order.
#[derive(Default)]
pub(super) struct Scope {
    /// The names of the open definitions, joined by dots.
    name: String,
    /// For each open definition, the depth of its node and the length of the name around it.
    open: Vec<(u32, usize)>,
    /// The cursor's depth. Counted here, as the cursor takes time that grows with the depth.
    level: u32,
}

impl Scope {
    /// Enters a definition of this name; returns the name with those around it.
    pub(super) fn enter(&mut self, name: &str) -> &str {
        self.open.push((self.level, self.name.len()));
        if !self.name.is_empty() {
            self.name.push('.');
        }
        self.name.push_str(name);
        &self.name
    }

    pub(super) fn descend(&mut self, cursor: &mut TreeCursor<'_>) -> bool {
        let has_child = cursor.goto_first_child();
        self.level += u32::from(has_child);
        has_child
    }

    /// Moves to the next node outside this one, if there is one.
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

/// True if a node of this kind in a tree without errors may contain definitions: statements with a
/// suite. Expressions and simple statements are skipped.
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
