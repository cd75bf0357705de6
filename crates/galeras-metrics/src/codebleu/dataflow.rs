//! CodeBLEU's data flow of a Python text (Ren et al. 2020, after GraphCodeBERT): the variables that
//! each token comes from or is computed from, as hashes that do not depend on names.
//!
//! The program is walked roughly in the order of execution. For every name, the walk knows the
//! tokens that may have set it. A token comes from its own name if that name was set before;
//! otherwise an identifier sets it. In assignments and in the heads of `for` loops and
//! comprehensions, the tokens on the left are computed from those on the right, one to one if both
//! sides have the same number of parts; default parameters come from their values. Branches of an
//! `if` start from the same state and are united; bodies of `for` and `while` are walked twice, so
//! that a loop feeds itself. Tokens without an origin count if another token comes from them.
//!
//! An item is (variable, relation, origins). Variables are numbered in the order of first
//! appearance in the items, which follow the order of their tokens. Origins keep their order and
//! repetitions, except where the peers put several visits of a token into a Python `set` (in loops,
//! and in defaults of several tokens), whose order depends on the process's hash seed; there each
//! origin is kept once, in the order of the text.
//!
//! In addition to the differences listed in `syntax` and `token_text`, [`CodeBleuMode::Strict`]
//! treats a string as one part (the peers fail on its quotes and then lose the data flow of the
//! whole text: `self.x = 'abc'` is enough), and walks the body of a `for` that has an `else`.
//!
//! The walk has an explicit stack and undoes the changes of a branch instead of copying all names,
//! so its work grows with the text. Loops nested more than six deep are walked once.

use galeras_python::ParseError;

use super::scorer::CodeBleuMode;
use super::symbols::HashState;
use super::syntax::{Class, Field, FlatNode, FlatTree, NONE};

/// The most origins that the items of a text may list and names that its branches may unite. Only
/// texts such as a chain of thousands of assignments in one statement exceed it.
const MAX_WORK: usize = 1 << 24;

/// An entry of the stack of pending work.
#[derive(Clone, Copy, Debug)]
enum Op {
    Visit(u32),
    /// The children from one node on up to another.
    Children(u32, u32, Part),
    /// The left side of an assignment, after its right side.
    Bind(u32),
    /// The name of a default parameter, after its value.
    BindDefault(u32),
    /// Another pass through a loop, or its end.
    Loop(u32, u32),
    /// The end of an `if` before its alternatives, with the length of the trail at its start.
    Main(u32, u32),
    /// The alternatives from a node on, up to another.
    Alternatives(u32, u32, Branches),
}

/// The children that are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
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
    fn takes(self, class: Class) -> bool {
        match self {
            Self::All => true,
            Self::ForIn => class == Class::ForIn,
            Self::NotForIn => class != Class::ForIn,
            Self::Main => !matches!(class, Class::Elif | Class::Else),
            Self::Bodies => matches!(class, Class::Block | Class::Else),
        }
    }
}

/// The walked branches of an `if`.
#[derive(Clone, Copy, Debug)]
struct Branches {
    count: u32,
    /// The start of their changes.
    changes: u32,
    /// The length of the trail before the `if`.
    trail: u32,
    has_else: bool,
    /// An alternative has just been walked.
    open: bool,
}

/// The origins of a token.
#[derive(Clone, Copy, Debug, Default)]
struct Item {
    relation: u8,
    /// The token comes from its own name.
    own: bool,
    /// Each origin counts once.
    distinct: bool,
    /// The range of its origins.
    from: u32,
    to: u32,
}

const ABSENT: u8 = 0;
const COMES_FROM: u8 = 1;
const COMPUTED_FROM: u8 = 2;

/// Extracts data flow. Keeps its buffers between texts.
#[derive(Debug, Default)]
pub(super) struct Flow {
    ops: Vec<Op>,
    items: Vec<Item>,
    /// By token: the ranges of origins that begin there, less those that end there.
    marks: Vec<i32>,
    /// By name: 0 if it is not set, n for token n - 1, larger numbers for a list of tokens.
    state: Vec<u32>,
    /// Names that were set inside an `if`, with their previous state.
    trail: Vec<(u32, u32)>,
    changes: Vec<(u32, u32)>,
    lists: Vec<(u32, u32, bool)>,
    members: Vec<u32>,
    /// By name: the last round in which it was seen.
    met: Vec<u32>,
    round: u32,
    numbers: Vec<u32>,
    ifs: u32,
    loops: u32,
    work: usize,
    peers: bool,
}

impl Flow {
    /// Resets the state for a new text.
    fn start(&mut self, shape: &FlatTree, mode: CodeBleuMode) {
        fn zero<T: Clone + Default>(vec: &mut Vec<T>, len: usize) {
            vec.clear();
            vec.resize(len, T::default());
        }
        zero(&mut self.items, shape.tokens.len());
        zero(&mut self.marks, shape.tokens.len() + 1);
        zero(&mut self.state, shape.names.count());
        zero(&mut self.met, shape.names.count());
        zero(&mut self.numbers, shape.names.count());
        self.ops.clear();
        self.trail.clear();
        self.changes.clear();
        self.lists.clear();
        self.members.clear();
        (self.round, self.ifs, self.loops, self.work) = (0, 0, 0, 0);
        self.peers = mode != CodeBleuMode::Strict;
    }

    /// Marks tokens that are origins or have origins.
    fn mark(&mut self, from: u32, to: u32) {
        self.marks[from as usize] += 1;
        self.marks[to as usize] -= 1;
    }

    /// The list that a setter refers to, unless it is a single token.
    fn list_of(&self, setter: u32) -> Option<usize> {
        (setter as usize).checked_sub(self.items.len() + 1)
    }

    /// Records that `setter` sets a name.
    fn set(&mut self, name: u32, setter: u32) {
        let slot = &mut self.state[name as usize];
        if self.ifs > 0 {
            self.trail.push((name, *slot));
        }
        *slot = setter;
    }
}

fn children(shape: &FlatTree, at: u32) -> impl Iterator<Item = u32> {
    let end = shape.nodes[at as usize].end;
    let mut next = at + 1;
    std::iter::from_fn(move || {
        let child = next;
        let flat = shape.nodes.get(child as usize).filter(|_| child < end)?;
        next = flat.end;
        Some(child)
    })
}

/// The depth down to which the body of a loop is walked twice: nested loops cost up to 2 to this
/// power.
const DOUBLED: u32 = 6;

/// The peers raise an error here, and have no data flow for the text.
struct PeerFailure;

impl Flow {
    /// The items of a text, as sorted hashes.
    ///
    /// # Errors
    /// [`ParseError::TooComplex`] for texts that would take more than [`MAX_WORK`].
    pub(super) fn items(
        &mut self,
        shape: &FlatTree,
        mode: CodeBleuMode,
    ) -> Result<Vec<u128>, ParseError> {
        self.start(shape, mode);
        let mut items = Vec::new();
        if self.walk(shape).is_err() {
            return Ok(items);
        }
        if self.work <= MAX_WORK {
            self.write(shape, &mut items);
        }
        if self.work > MAX_WORK {
            return Err(ParseError::TooComplex);
        }
        items.sort_unstable();
        Ok(items)
    }

    fn walk(&mut self, shape: &FlatTree) -> Result<(), PeerFailure> {
        self.ops.push(Op::Visit(0));
        while let Some(op) = self.ops.pop() {
            match op {
                Op::Visit(node) => self.visit(shape, node)?,
                Op::Children(at, end, part) => {
                    let Some(flat) = shape.nodes.get(at as usize).filter(|_| at < end) else {
                        continue;
                    };
                    self.ops.push(Op::Children(flat.end, end, part));
                    if part.takes(flat.class) {
                        self.visit(shape, at)?;
                    }
                }
                Op::Bind(node) => self.bind(shape, node)?,
                Op::BindDefault(node) => self.bind_default(shape, node),
                Op::Loop(node, passes) => self.pass(shape, node, passes)?,
                Op::Main(node, trail) => self.end_main_branch(shape, node, trail),
                Op::Alternatives(at, end, branches) => self.alternative(shape, at, end, branches),
            }
            if self.work > MAX_WORK {
                break;
            }
        }
        Ok(())
    }

    fn visit(&mut self, shape: &FlatTree, at: u32) -> Result<(), PeerFailure> {
        let node = shape.nodes[at as usize];
        if node.token != NONE {
            self.reach(shape, node);
            return Ok(());
        }
        if node.end == at + 1 {
            return Ok(());
        }
        let (first, end) = (at + 1, node.end);
        match node.class {
            Class::Default => {
                if let Some(value) = child(shape, at, Field::Value) {
                    self.ops.push(Op::BindDefault(at));
                    self.ops.push(Op::Visit(value));
                } else if let Some(name) = child(shape, at, Field::Name) {
                    for token in tokens(shape, name) {
                        self.items[token as usize].relation = COMES_FROM;
                        self.set(shape.tokens[token as usize].name, token + 1);
                    }
                }
            }
            Class::Assignment if child(shape, at, Field::Right).is_none() => {}
            Class::Assignment | Class::ForIn => {
                self.ops.push(Op::Bind(at));
                self.sources(shape, at)?;
            }
            Class::If => {
                self.ops.push(Op::Main(at, self.trail.len() as u32));
                self.ifs += 1;
                self.ops.push(Op::Children(first, end, Part::Main));
            }
            Class::For | Class::While => {
                self.loops += 1;
                let passes = if self.loops <= DOUBLED { 2 } else { 1 };
                self.ops.push(Op::Loop(at, passes));
            }
            _ if node.comprehends => {
                self.ops.push(Op::Children(first, end, Part::NotForIn));
                self.ops.push(Op::Children(first, end, Part::ForIn));
            }
            _ => self.ops.push(Op::Children(first, end, Part::All)),
        }
        Ok(())
    }

    /// Visits a token that is read, or named for the first time.
    fn reach(&mut self, shape: &FlatTree, node: FlatNode) {
        let token = shape.tokens[node.token as usize].stands;
        let name = shape.tokens[token as usize].name;
        let item = &mut self.items[token as usize];
        if item.relation == ABSENT {
            item.relation = COMES_FROM;
        }
        let setter = self.state[name as usize];
        if setter == 0 {
            if node.class == Class::Identifier {
                self.set(name, token + 1);
            }
            return;
        }
        item.own = true;
        self.mark(token, token + 1);
        if let Some(list) = self.list_of(setter) {
            if !std::mem::replace(&mut self.lists[list].2, true) {
                for member in self.lists[list].0..self.lists[list].1 {
                    let token = self.members[member as usize];
                    self.mark(token, token + 1);
                }
            }
        } else {
            self.mark(setter - 1, setter);
        }
    }

    /// The left and right sides of an assignment or of the head of a loop.
    fn sides(&self, shape: &FlatTree, at: u32) -> Result<Sides, PeerFailure> {
        let left = child(shape, at, Field::Left).ok_or(PeerFailure)?;
        let right = if shape.nodes[at as usize].class == Class::ForIn {
            children(shape, at).last()
        } else {
            child(shape, at, Field::Right)
        };
        let right = right.ok_or(PeerFailure)?;
        let zipped = shape.nodes[at as usize].class != Class::ForIn && {
            let count = parts(shape, left).count();
            count > 0 && count == parts(shape, right).count()
        };
        Ok(Sides { left, right, zipped })
    }

    /// Visits the right side of an assignment.
    fn sources(&mut self, shape: &FlatTree, at: u32) -> Result<(), PeerFailure> {
        let sides = self.sides(shape, at)?;
        let parallel = shape.nodes[at as usize].class != Class::ForIn;
        if self.peers && parallel && sides.fails(shape) {
            return Err(PeerFailure);
        }
        if sides.zipped {
            // Commas between parts are not tokens.
            let node = shape.nodes[sides.right as usize];
            self.ops.push(Op::Children(sides.right + 1, node.end, Part::All));
        } else {
            self.ops.push(Op::Visit(sides.right));
        }
        Ok(())
    }

    fn bind(&mut self, shape: &FlatTree, at: u32) -> Result<(), PeerFailure> {
        let sides = self.sides(shape, at)?;
        if sides.zipped {
            let pairs = parts(shape, sides.left).zip(parts(shape, sides.right));
            for (left, right) in pairs {
                self.compute(shape, left, right);
            }
        } else {
            self.compute(shape, sides.left, sides.right);
        }
        Ok(())
    }

    fn compute(&mut self, shape: &FlatTree, left: u32, right: u32) {
        let (from, to) = range(shape, right);
        let distinct = self.loops > 0;
        let mut any = false;
        for token in tokens(shape, left) {
            any = true;
            self.items[token as usize] =
                Item { relation: COMPUTED_FROM, own: false, distinct, from, to };
            if from < to {
                self.mark(token, token + 1);
            }
            self.set(shape.tokens[token as usize].name, token + 1);
        }
        if any && from < to {
            self.mark(from, to);
        }
    }

    fn bind_default(&mut self, shape: &FlatTree, at: u32) {
        let (Some(name), Some(value)) =
            (child(shape, at, Field::Name), child(shape, at, Field::Value))
        else {
            return;
        };
        let (from, to) = range(shape, value);
        for token in tokens(shape, name) {
            if from < to {
                self.items[token as usize] =
                    Item { relation: COMES_FROM, own: false, distinct: true, from, to };
                self.mark(token, token + 1);
                self.mark(from, to);
            }
            self.set(shape.tokens[token as usize].name, token + 1);
        }
    }

    fn pass(&mut self, shape: &FlatTree, at: u32, passes: u32) -> Result<(), PeerFailure> {
        if passes == 0 {
            self.loops -= 1;
            return Ok(());
        }
        let node = shape.nodes[at as usize];
        self.ops.push(Op::Loop(at, passes - 1));
        if node.class == Class::While {
            self.ops.push(Op::Children(at + 1, node.end, Part::All));
            return Ok(());
        }
        if !self.peers {
            self.ops.push(Op::Children(at + 1, node.end, Part::Bodies));
        } else if let Some(last) = children(shape, at).last()
            && shape.nodes[last as usize].class == Class::Block
        {
            self.ops.push(Op::Visit(last));
        }
        self.ops.push(Op::Bind(at));
        self.sources(shape, at)
    }
}

struct Sides {
    left: u32,
    right: u32,
    /// The sides match part by part.
    zipped: bool,
}

impl Sides {
    /// True if the peers count quotes as parts, see the head of the module.
    fn fails(&self, shape: &FlatTree) -> bool {
        let count = |node: u32| match shape.nodes[node as usize] {
            FlatNode { class: Class::String, parts, .. } => parts as usize,
            _ => parts(shape, node).count(),
        };
        let string = |node: u32| shape.nodes[node as usize].class == Class::String;
        (string(self.left) || string(self.right)) && count(self.left) == count(self.right)
    }
}

/// The children that are not commas.
fn parts(shape: &FlatTree, at: u32) -> impl Iterator<Item = u32> {
    children(shape, at).filter(|child| shape.nodes[*child as usize].class != Class::Comma)
}

fn child(shape: &FlatTree, at: u32, field: Field) -> Option<u32> {
    children(shape, at).find(|child| shape.nodes[*child as usize].field == field)
}

/// The range of the tokens in a node.
fn range(shape: &FlatTree, at: u32) -> (u32, u32) {
    let node = shape.nodes[at as usize];
    let end = shape.nodes.get(node.end as usize).map_or(shape.tokens.len() as u32, |n| n.first);
    (node.first, end)
}

/// The tokens in a node, each replaced by its representative.
fn tokens(shape: &FlatTree, at: u32) -> impl Iterator<Item = u32> {
    let (from, to) = range(shape, at);
    (from..to).map(|token| shape.tokens[token as usize].stands)
}

impl Flow {
    /// Undoes the changes of the main branch before the alternatives are walked.
    fn end_main_branch(&mut self, shape: &FlatTree, at: u32, trail: u32) {
        let mut children = children(shape, at);
        let has_else = children.any(|child| shape.nodes[child as usize].class == Class::Else);
        let changes = self.changes.len() as u32;
        self.undo(trail);
        let end = shape.nodes[at as usize].end;
        let branches = Branches { count: 1, changes, trail, has_else, open: false };
        self.ops.push(Op::Alternatives(at + 1, end, branches));
    }

    /// Restores the names set since `trail`, and appends what the branch had set to `changes`.
    fn undo(&mut self, trail: u32) {
        self.round += 1;
        let since = trail as usize..self.trail.len();
        self.work += since.len();
        // The newest entry of a name comes first, while the state is still the one at the branch's
        // end.
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

    fn alternative(&mut self, shape: &FlatTree, at: u32, end: u32, mut branches: Branches) {
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

    /// Unites the branches at the end of an `if`: any of the branches' setters may have set a name.
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
            // A branch that does not set the name keeps its earlier state, and so does a missing
            // `else`.
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

impl Flow {
    /// Writes the items, with numbers for names.
    fn write(&mut self, shape: &FlatTree, items: &mut Vec<u128>) {
        let mut numbered = 0;
        let mut depth = 0;
        let mut last = None;
        for (token, item) in self.items.iter().enumerate() {
            depth += self.marks[token];
            if item.relation == ABSENT || depth == 0 {
                continue;
            }
            let mut number = |name: u32| {
                let number = &mut self.numbers[name as usize];
                if *number == 0 {
                    numbered += 1;
                    *number = numbered;
                }
                u64::from(*number)
            };
            let name = shape.tokens[token].name;
            let origins = match last {
                // Tokens on the left of one assignment have the same origins, which are already
                // numbered.
                Some((from, to, distinct, hash))
                    if (from, to, distinct) == (item.from, item.to, item.distinct)
                        && from < to
                        && !item.own =>
                {
                    hash
                }
                _ => {
                    let mut mix = HashState::new(0);
                    if item.own {
                        mix.word(number(name));
                    } else {
                        self.work += (item.to - item.from) as usize;
                        if self.work > MAX_WORK {
                            return;
                        }
                        self.round += 1;
                        for origin in item.from..item.to {
                            let name = shape.tokens[origin as usize].name;
                            let met = &mut self.met[name as usize];
                            if !item.distinct || *met != self.round {
                                *met = self.round;
                                mix.word(number(name));
                            }
                        }
                    }
                    mix.finish()
                }
            };
            last = Some((item.from, item.to, item.distinct, origins)).filter(|_| !item.own);
            let mut mix = HashState::new(u64::from(item.relation));
            mix.add(origins, 2);
            mix.word(number(name));
            items.push(mix.finish());
        }
    }
}
