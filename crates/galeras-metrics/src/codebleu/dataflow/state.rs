//! What is known while a program is walked: which tokens set which names.
//!
//! Here: the state and the operations that every step shares. Not here: the steps themselves
//! (`walk`, `branches`), and how items become hashes (`hashes`).

use super::super::mode::CodeBleuMode;
use super::super::syntax::{Class, Shape};

/// Origins that the items of a text may list, and names that its branches may unite. A text
/// over it is a chain of thousands of assignments in one statement or the like.
pub(super) const MAX_WORK: usize = 1 << 24;

/// What is left to do; the last one comes first.
#[derive(Clone, Copy, Debug)]
pub(super) enum Op {
    Visit(u32),
    /// The children from one node on up to another.
    Children(u32, u32, Part),
    /// The left of an assignment, after its right.
    Bind(u32),
    /// The name of a default parameter, after its value.
    BindDefault(u32),
    /// One more pass through a loop, or its end.
    Loop(u32, u32),
    /// The end of an `if` up to its alternatives; what was set since is on the trail.
    Main(u32, u32),
    /// The alternatives from a node on.
    Alternatives(u32, u32, Branches),
}

/// Which children are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    All,
    /// Those that are, or are not, the `for` of a comprehension.
    ForIn,
    NotForIn,
    /// Those that are not alternatives of an `if`.
    Main,
    /// The body, and the `else`, of a loop.
    Bodies,
}

impl Part {
    pub(super) fn takes(self, class: Class) -> bool {
        match self {
            Self::All => true,
            Self::ForIn => class == Class::ForIn,
            Self::NotForIn => class != Class::ForIn,
            Self::Main => !matches!(class, Class::Elif | Class::Else),
            Self::Bodies => matches!(class, Class::Block | Class::Else),
        }
    }
}

/// The branches of an `if` that are done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Branches {
    pub(super) count: u32,
    /// Where their changes begin.
    pub(super) changes: u32,
    /// Where the trail stood.
    pub(super) trail: u32,
    pub(super) has_else: bool,
    /// Whether an alternative has just been walked.
    pub(super) open: bool,
}

/// What a token comes from.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Item {
    pub(super) relation: u8,
    /// Comes from its own name.
    pub(super) own: bool,
    /// Each origin counts once.
    pub(super) distinct: bool,
    /// Tokens it comes from.
    pub(super) from: u32,
    pub(super) to: u32,
}

pub(super) const ABSENT: u8 = 0;
pub(super) const COMES_FROM: u8 = 1;
pub(super) const COMPUTED_FROM: u8 = 2;

/// Extracts data flow. Reused from text to text.
#[derive(Debug, Default)]
pub(in super::super) struct Flow {
    pub(super) ops: Vec<Op>,
    pub(super) items: Vec<Item>,
    /// How many ranges of origins begin less end at each token.
    pub(super) marks: Vec<i32>,
    /// What set each name: 0 nothing, up to the number of tokens that token (from 1), above
    /// it a list.
    pub(super) state: Vec<u32>,
    /// Names that were set inside of an `if`, with what had set them before.
    pub(super) trail: Vec<(u32, u32)>,
    pub(super) changes: Vec<(u32, u32)>,
    pub(super) lists: Vec<(u32, u32, bool)>,
    pub(super) members: Vec<u32>,
    /// For each name, the last round in which it was met.
    pub(super) met: Vec<u32>,
    pub(super) round: u32,
    pub(super) numbers: Vec<u32>,
    pub(super) ifs: u32,
    pub(super) loops: u32,
    pub(super) work: usize,
    pub(super) peers: bool,
}

impl Flow {
    /// Forgets the last text.
    pub(super) fn start(&mut self, shape: &Shape, mode: CodeBleuMode) {
        fn zero<T: Clone + Default>(vec: &mut Vec<T>, len: usize) {
            vec.clear();
            vec.resize(len, T::default());
        }
        zero(&mut self.items, shape.tokens.len());
        zero(&mut self.marks, shape.tokens.len() + 1);
        zero(&mut self.state, shape.names.len());
        zero(&mut self.met, shape.names.len());
        zero(&mut self.numbers, shape.names.len());
        self.ops.clear();
        self.trail.clear();
        self.changes.clear();
        self.lists.clear();
        self.members.clear();
        (self.round, self.ifs, self.loops, self.work) = (0, 0, 0, 0);
        self.peers = mode != CodeBleuMode::Strict;
    }

    /// Tokens that an item comes from, or that come from another one.
    pub(super) fn mark(&mut self, from: u32, to: u32) {
        self.marks[from as usize] += 1;
        self.marks[to as usize] -= 1;
    }

    /// The list that a setter stands for, if it is not a single token.
    pub(super) fn list_of(&self, setter: u32) -> Option<usize> {
        (setter as usize).checked_sub(self.items.len() + 1)
    }

    /// Notes what sets a name from here on.
    pub(super) fn set(&mut self, name: u32, setter: u32) {
        let slot = &mut self.state[name as usize];
        if self.ifs > 0 {
            self.trail.push((name, *slot));
        }
        *slot = setter;
    }
}

/// The children of a node.
pub(super) fn children(shape: &Shape, at: u32) -> impl Iterator<Item = u32> {
    let end = shape.nodes[at as usize].end;
    let mut next = at + 1;
    std::iter::from_fn(move || {
        let child = next;
        let flat = shape.nodes.get(child as usize).filter(|_| child < end)?;
        next = flat.end;
        Some(child)
    })
}
