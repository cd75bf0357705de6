//! Connected components of similar documents: a union-find that threads write to without locks.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A forest over documents; the root of a tree is its smallest number.
pub(super) struct Components {
    parents: Vec<AtomicU32>,
}

impl Components {
    pub(super) fn new(documents: usize) -> Self {
        Self { parents: (0..documents as u32).map(AtomicU32::new).collect() }
    }

    /// The root of a document's tree. Halves the path on the way; a lost update costs only that
    /// shortcut, because a parent always remains an ancestor.
    #[inline]
    pub(super) fn root(&self, mut document: u32) -> u32 {
        loop {
            let parent = self.parents[document as usize].load(Relaxed);
            if parent == document {
                return document;
            }
            let grandparent = self.parents[parent as usize].load(Relaxed);
            if grandparent == parent {
                return parent;
            }
            self.parents[document as usize].store(grandparent, Relaxed);
            document = grandparent;
        }
    }

    /// True if both documents are in one component.
    #[inline]
    pub(super) fn are_joined(&self, a: u32, b: u32) -> bool {
        self.root(a) == self.root(b)
    }

    pub(super) fn join(&self, a: u32, b: u32) {
        loop {
            let (a, b) = (self.root(a), self.root(b));
            if a == b {
                return;
            }
            let (below, above) = (a.max(b), a.min(b));
            // Only roots get a smaller parent; if it is no longer a root, look again.
            let link =
                self.parents[below as usize].compare_exchange(below, above, Relaxed, Relaxed);
            if link.is_ok() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_join_at_the_same_time_agree() {
        let components = Components::new(10_000);
        std::thread::scope(|scope| {
            for start in 0..4_u32 {
                let components = &components;
                scope.spawn(move || {
                    for n in (start..9_990).step_by(4) {
                        components.join(n + 10, n);
                    }
                });
            }
        });
        assert!((0..10_000).all(|n| components.root(n) == n % 10));
        assert!(components.are_joined(3, 13) && !components.are_joined(3, 4));
    }
}
