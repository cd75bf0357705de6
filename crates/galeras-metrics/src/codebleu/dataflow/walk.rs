//! The walk through a program in an order near to that of execution.
//!
//! Here: what each kind of node reads and sets. Not here: the branches of an `if` (`branches`).

use galeras_python::ParseError;

use super::super::mode::CodeBleuMode;
use super::super::syntax::{Class, Field, Flat, NONE, Shape};
use super::state::{ABSENT, COMES_FROM, COMPUTED_FROM, Flow, Item, MAX_WORK, Op, Part, children};

/// Depth down to which the body of a loop is walked twice: 2 to this power is the factor that
/// nested loops cost.
const DOUBLED: u32 = 6;

/// The peers fail here, and have no data flow for the text.
struct Failed;

impl Flow {
    /// The items of a text as hashes, sorted, into `items`.
    ///
    /// # Errors
    /// [`ParseError::TooComplex`] for texts that would take more than [`MAX_WORK`].
    pub(in super::super) fn items(
        &mut self,
        shape: &Shape,
        mode: CodeBleuMode,
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
            // The commas between them are not tokens.
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

struct Sides {
    left: u32,
    right: u32,
    /// Part by part.
    zipped: bool,
}

impl Sides {
    /// Whether the peers take quotes for parts; see the head of the module.
    fn fails(&self, shape: &Shape) -> bool {
        let count = |node: u32| match shape.nodes[node as usize] {
            Flat { class: Class::String, parts, .. } => parts as usize,
            _ => parts(shape, node).count(),
        };
        let string = |node: u32| shape.nodes[node as usize].class == Class::String;
        (string(self.left) || string(self.right)) && count(self.left) == count(self.right)
    }
}

/// The children that are not commas.
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
