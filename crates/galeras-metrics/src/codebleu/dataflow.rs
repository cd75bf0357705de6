//! The data flow of one text: which variables each token comes from or is computed from.
//!
//! Here: CodeBLEU's data flow of Python (Ren et al. 2020, after GraphCodeBERT), and its items
//! as hashes without names. Not here: what a token is (`syntax`), comparing (`mod`).
//!
//! What is extracted. The program is walked in an order near to that of execution, with, for
//! every name, the tokens that may have set it. A token that is reached comes from its own
//! name if that name was set before; an identifier that was not sets it. In assignments, the
//! heads of `for` loops and comprehensions, the tokens on the left are computed from those on
//! the right, one to one if both sides have as many parts; in default parameters they come
//! from them. Branches of an `if` start alike and are united; `for` and `while` are walked
//! twice, so that a loop feeds itself. Nothing else branches. Tokens without an origin count
//! if another one comes from them.
//!
//! An item is (variable, relation, variables that it comes from), with the variables of the
//! text numbered in the order of first appearance in its items, which are in the order of
//! their tokens. The origins keep their order and repetitions, except where the peers unite
//! several sightings of a token (in loops, and in defaults of several tokens): they use
//! Python's `set`, whose order depends on the hash seed of the process; here each origin is
//! kept once, in the order of the text.
//!
//! Differences of [`Mode::Correct`] from the peers, besides those of `syntax` and `text`:
//! a string is one part (the peers fail on its quotes and then lose the data flow of the
//! whole text: `self.x = 'abc'` is enough), and the body of a `for` with an `else` is walked.
//!
//! The walk has its own stack and undoes what a branch set instead of copying all names, so
//! its work grows with the text. Loops more than [`DOUBLED`] deep are walked once.

mod branches;
mod items;

use super::Mode;
use super::syntax::{Class, Field, Flat, NONE, Shape};
use galeras_python::ParseError;

/// Depth down to which the body of a loop is walked twice: 2 to this power is the factor that
/// nested loops cost.
const DOUBLED: u32 = 6;

/// Origins that the items of a text may list, and names that its branches may unite. A text
/// over it is a chain of thousands of assignments in one statement or the like.
const MAX_WORK: usize = 1 << 24;

/// What is left to do; the last one comes first.
#[derive(Clone, Copy, Debug)]
enum Op {
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
enum Part {
    All,
    /// Those that are, or are not, the `for` of a comprehension.
    ForIn,
    NotForIn,
    /// Those that are no alternatives of an `if`.
    Main,
    /// The body, and the `else`, of a loop.
    Bodies,
}

/// The branches of an `if` that are done.
#[derive(Clone, Copy, Debug)]
struct Branches {
    count: u32,
    /// Where their changes begin.
    changes: u32,
    /// Where the trail stood.
    trail: u32,
    has_else: bool,
    /// Whether an alternative has just been walked.
    open: bool,
}

/// What a token comes from.
#[derive(Clone, Copy, Debug, Default)]
struct Item {
    relation: u8,
    /// Comes from its own name.
    own: bool,
    /// Each origin counts once.
    distinct: bool,
    /// Tokens it comes from.
    from: u32,
    to: u32,
}

const ABSENT: u8 = 0;
const COMES_FROM: u8 = 1;
const COMPUTED_FROM: u8 = 2;

/// The peers fail here, and have no data flow for the text.
struct Failed;

/// Extracts data flow. Reused from text to text.
#[derive(Debug, Default)]
pub(super) struct Flow {
    ops: Vec<Op>,
    items: Vec<Item>,
    /// How many ranges of origins begin less end at each token.
    marks: Vec<i32>,
    /// What set each name: 0 nothing, up to the number of tokens that token (from 1), above
    /// it a list.
    state: Vec<u32>,
    /// Names that were set inside of an `if`, with what had set them before.
    trail: Vec<(u32, u32)>,
    changes: Vec<(u32, u32)>,
    lists: Vec<(u32, u32, bool)>,
    members: Vec<u32>,
    /// For each name, the last round in which it was met.
    met: Vec<u32>,
    round: u32,
    numbers: Vec<u32>,
    ifs: u32,
    loops: u32,
    work: usize,
    peers: bool,
}

impl Flow {
    /// The items of a text as hashes, sorted, into `items`.
    ///
    /// # Errors
    /// [`ParseError::TooComplex`] for texts that would take more than [`MAX_WORK`].
    pub(super) fn items(
        &mut self,
        shape: &Shape,
        mode: Mode,
        items: &mut Vec<u128>,
    ) -> Result<(), ParseError> {
        items.clear();
        self.start(shape, mode);
        if self.walk(shape).is_err() {
            return Ok(());
        }
        if self.work <= MAX_WORK {
            self.write(shape, items);
        }
        if self.work > MAX_WORK {
            return Err(ParseError::TooComplex);
        }
        items.sort_unstable();
        Ok(())
    }

    fn start(&mut self, shape: &Shape, mode: Mode) {
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
        self.peers = mode != Mode::Correct;
    }

    fn walk(&mut self, shape: &Shape) -> Result<(), Failed> {
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
                Op::Main(node, trail) => self.main_done(shape, node, trail),
                Op::Alternatives(at, end, branches) => self.alternative(shape, at, end, branches),
            }
            if self.work > MAX_WORK {
                break;
            }
        }
        Ok(())
    }

    fn visit(&mut self, shape: &Shape, at: u32) -> Result<(), Failed> {
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

    /// A token that is read, or named for the first time.
    fn reach(&mut self, shape: &Shape, node: Flat) {
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

    /// Tokens that an item comes from, or that come from another one.
    fn mark(&mut self, from: u32, to: u32) {
        self.marks[from as usize] += 1;
        self.marks[to as usize] -= 1;
    }

    fn list_of(&self, setter: u32) -> Option<usize> {
        (setter as usize).checked_sub(self.items.len() + 1)
    }

    fn set(&mut self, name: u32, setter: u32) {
        let slot = &mut self.state[name as usize];
        if self.ifs > 0 {
            self.trail.push((name, *slot));
        }
        *slot = setter;
    }

    /// Left and right of an assignment or of the head of a loop.
    fn sides(&self, shape: &Shape, at: u32) -> Result<Sides, Failed> {
        let left = child(shape, at, Field::Left).ok_or(Failed)?;
        let right = if shape.nodes[at as usize].class == Class::ForIn {
            children(shape, at).last()
        } else {
            child(shape, at, Field::Right)
        };
        let right = right.ok_or(Failed)?;
        let zipped = shape.nodes[at as usize].class != Class::ForIn && {
            let count = parts(shape, left).count();
            count > 0 && count == parts(shape, right).count()
        };
        Ok(Sides { left, right, zipped })
    }

    /// Visits what an assignment computes from.
    fn sources(&mut self, shape: &Shape, at: u32) -> Result<(), Failed> {
        let sides = self.sides(shape, at)?;
        let parallel = shape.nodes[at as usize].class != Class::ForIn;
        if self.peers && parallel && sides.fails(shape) {
            return Err(Failed);
        }
        if sides.zipped {
            // The commas between them are no tokens.
            let node = shape.nodes[sides.right as usize];
            self.ops.push(Op::Children(sides.right + 1, node.end, Part::All));
        } else {
            self.ops.push(Op::Visit(sides.right));
        }
        Ok(())
    }

    fn bind(&mut self, shape: &Shape, at: u32) -> Result<(), Failed> {
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

    fn compute(&mut self, shape: &Shape, left: u32, right: u32) {
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

    fn bind_default(&mut self, shape: &Shape, at: u32) {
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

    fn pass(&mut self, shape: &Shape, at: u32, passes: u32) -> Result<(), Failed> {
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

struct Sides {
    left: u32,
    right: u32,
    /// Part by part.
    zipped: bool,
}

impl Sides {
    /// Whether the peers take quotes for parts; see the head of this file.
    fn fails(&self, shape: &Shape) -> bool {
        let count = |node: u32| match shape.nodes[node as usize] {
            Flat { class: Class::String, parts, .. } => parts as usize,
            _ => parts(shape, node).count(),
        };
        let string = |node: u32| shape.nodes[node as usize].class == Class::String;
        (string(self.left) || string(self.right)) && count(self.left) == count(self.right)
    }
}

fn children(shape: &Shape, at: u32) -> impl Iterator<Item = u32> {
    let end = shape.nodes[at as usize].end;
    let mut next = at + 1;
    std::iter::from_fn(move || {
        let child = next;
        let flat = shape.nodes.get(child as usize).filter(|_| child < end)?;
        next = flat.end;
        Some(child)
    })
}

/// The children that are no commas.
fn parts(shape: &Shape, at: u32) -> impl Iterator<Item = u32> {
    children(shape, at).filter(|child| shape.nodes[*child as usize].class != Class::Comma)
}

fn child(shape: &Shape, at: u32, field: Field) -> Option<u32> {
    children(shape, at).find(|child| shape.nodes[*child as usize].field == field)
}

/// The tokens in a node, from one up to another.
fn range(shape: &Shape, at: u32) -> (u32, u32) {
    let node = shape.nodes[at as usize];
    let end = shape.nodes.get(node.end as usize).map_or(shape.tokens.len() as u32, |n| n.first);
    (node.first, end)
}

/// The tokens in a node, each as the one that stands for it.
fn tokens(shape: &Shape, at: u32) -> impl Iterator<Item = u32> {
    let (from, to) = range(shape, at);
    (from..to).map(|token| shape.tokens[token as usize].stands)
}
