//! The branches of an `if` statement, and what they leave behind.
//!
//! Here: taking back what a branch set, and uniting the branches. Not here: visiting what is
//! in them.

use super::super::syntax::{Class, Shape};
use super::state::{Branches, Flow, Op, children};

impl Flow {
    /// Sets aside what the branch up to the alternatives changed.
    pub(super) fn main_done(&mut self, shape: &Shape, at: u32, trail: u32) {
        let mut children = children(shape, at);
        let has_else = children.any(|child| shape.nodes[child as usize].class == Class::Else);
        let changes = self.changes.len() as u32;
        self.undo(trail);
        let end = shape.nodes[at as usize].end;
        let branches = Branches { count: 1, changes, trail, has_else, open: false };
        self.ops.push(Op::Alternatives(at + 1, end, branches));
    }

    /// Takes back what was set since, into `changes`.
    fn undo(&mut self, trail: u32) {
        self.round += 1;
        let since = trail as usize..self.trail.len();
        self.work += since.len();
        // The newest entry of a name is met first, while its state is what the branch left.
        for entry in since.rev() {
            let (name, before) = self.trail[entry];
            let slot = &mut self.state[name as usize];
            let met = &mut self.met[name as usize];
            if *met != self.round {
                *met = self.round;
                self.changes.push((name, *slot));
            }
            *slot = before;
        }
        self.trail.truncate(trail as usize);
    }

    pub(super) fn alternative(&mut self, shape: &Shape, at: u32, end: u32, mut branches: Branches) {
        if branches.open {
            branches.open = false;
            branches.count += 1;
            self.undo(branches.trail);
        }
        let mut at = at;
        while at < end {
            let node = shape.nodes[at as usize];
            if matches!(node.class, Class::Elif | Class::Else) {
                branches.open = true;
                self.ops.push(Op::Alternatives(node.end, end, branches));
                self.ops.push(Op::Visit(at));
                return;
            }
            at = node.end;
        }
        self.unite(branches);
    }

    /// The end of an `if`: a name was set by what any branch set it to.
    fn unite(&mut self, branches: Branches) {
        self.ifs -= 1;
        let changes = branches.changes as usize..self.changes.len();
        self.work += changes.len();
        self.changes[changes.clone()].sort_unstable();
        let mut at = changes.start;
        while at < changes.end {
            let name = self.changes[at].0;
            let first = self.members.len();
            let mut count = 0;
            while at < changes.end && self.changes[at].0 == name {
                let (_, setter) = self.changes[at];
                self.add_members(setter);
                count += 1;
                at += 1;
            }
            // A branch that did not set it leaves it as it was; so does having no `else`.
            if count < branches.count || !branches.has_else {
                self.add_members(self.state[name as usize]);
            }
            self.members[first..].sort_unstable();
            let mut last = first;
            for i in first + 1..self.members.len() {
                if self.members[i] != self.members[last] {
                    last += 1;
                    self.members[last] = self.members[i];
                }
            }
            self.members.truncate(last + 1);
            let setter = if last == first {
                let single = self.members[first] + 1;
                self.members.truncate(first);
                single
            } else {
                self.lists.push((first as u32, self.members.len() as u32, false));
                (self.items.len() + self.lists.len()) as u32
            };
            self.set(name, setter);
        }
        self.changes.truncate(changes.start);
    }

    fn add_members(&mut self, setter: u32) {
        if let Some(list) = self.list_of(setter) {
            let (from, to, _) = self.lists[list];
            self.work += (to - from) as usize;
            self.members.extend_from_within(from as usize..to as usize);
        } else if setter > 0 {
            self.members.push(setter - 1);
        }
    }
}
