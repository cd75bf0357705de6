//! The data flow of one text: which variables each token comes from or is computed from.
//!
//! Here: CodeBLEU's data flow of Python (Ren et al. 2020, after GraphCodeBERT), and its items
//! as hashes without names. Not here: what a token is (`syntax`), comparing (`scorer`).
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
//! Differences of [`CodeBleuMode::Strict`](super::mode::CodeBleuMode::Strict) from the peers, besides those of `syntax` and `text`:
//! a string is one part (the peers fail on its quotes and then lose the data flow of the
//! whole text: `self.x = 'abc'` is enough), and the body of a `for` with an `else` is walked.
//!
//! The walk has its own stack and undoes what a branch set instead of copying all names, so
//! its work grows with the text. Loops more than six deep are walked once.

mod branches;
mod hashes;
mod state;
mod walk;

pub(super) use state::Flow;
