//! How much work a question about a graph may take: what bounds every list of sets.

/// The most sets of one kind that are listed.
pub(super) const MOST_SETS: usize = 1_000;

/// The work that one question may take, in nodes and edges visited.
pub(super) const MOST_WORK: u64 = 20_000_000;

/// What is left of the work that a question may take.
pub(super) struct Meter {
    pub(super) left: u64,
}

impl Meter {
    pub(super) fn new(work: u64) -> Meter {
        Meter { left: work }
    }

    pub(super) fn spend(&mut self, work: usize) {
        self.left = self.left.saturating_sub(work as u64);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.left == 0
    }
}
