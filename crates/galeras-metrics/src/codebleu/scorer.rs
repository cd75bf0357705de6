//! A reference, a hypothesis, a score.
//!
//! Here: the modes, what is kept of a reference, and how the counts of a pair come about.
//! Not here: the four components themselves (`ngram`, `syntax`, `dataflow`) and their
//! arithmetic (`counts`).

use super::counts::{Counts, Scores};
use super::dataflow::Flow;
use super::ngram::Grams;
use super::strip;
use super::syntax::Shape;
use galeras_python::{ParseError, PythonParser, is_space};

/// Whose numbers are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Ours: comments and docstrings take no part in syntax and data flow, a data flow
    /// without a match is 0, and one that the reference does not have is left out.
    #[default]
    Correct,
    /// Those of PyPI's `codebleu` 0.7.0 (k4black): comments and docstrings are cut out by
    /// Python's tokenizer before parsing, and a data flow of 0 counts as 1.
    Compat,
    /// Those of CodeXGLUE: comments of Java are cut out before parsing.
    CodeXGlue,
}

/// What is computed once of a reference and shared by its many hypotheses.
#[derive(Clone, Debug)]
pub struct Reference {
    grams: Grams,
    /// Sorted.
    subtrees: Vec<u128>,
    /// Sorted.
    flow: Vec<u128>,
}

/// Scores hypotheses against references; holds the memory to work in, so one per thread.
#[derive(Debug, Default)]
pub struct CodeBleu {
    mode: Mode,
    weights: [f64; 4],
    shape: Shape,
    flow: Flow,
    /// Data flow of the hypothesis.
    items: Vec<u128>,
    left: Vec<u32>,
    work: String,
    stripped: String,
}

impl CodeBleu {
    /// A scorer. `weights` are those of n-grams, weighted n-grams, syntax and data flow, not
    /// negative and not all zero; see [`EQUAL_WEIGHTS`](super::EQUAL_WEIGHTS).
    pub fn new(mode: Mode, weights: [f64; 4]) -> Self {
        Self { mode, weights, ..Self::default() }
    }

    /// What is to be known of a reference. White space around it is left out in all modes.
    ///
    /// # Errors
    /// As [`PythonParser::parse`], and [`ParseError::TooComplex`] if the data flow is hostile.
    pub fn reference(
        &mut self,
        parser: &mut PythonParser,
        text: &str,
    ) -> Result<Reference, ParseError> {
        let text = text.trim_matches(is_space);
        self.read(parser, text)?;
        Ok(Reference {
            grams: Grams::of(text, self.mode),
            subtrees: self.shape.subtrees.clone(),
            flow: self.items.clone(),
        })
    }

    /// The score of a hypothesis, and its counts for the score of a corpus.
    ///
    /// # Errors
    /// As [`CodeBleu::reference`].
    pub fn score(
        &mut self,
        parser: &mut PythonParser,
        reference: &Reference,
        hypothesis: &str,
    ) -> Result<(Scores, Counts), ParseError> {
        let text = hypothesis.trim_matches(is_space);
        self.read(parser, text)?;
        let mut counts = Counts { pairs: 1, ..Counts::default() };
        reference.grams.count(text, &mut self.left, &mut counts);
        counts.reference_subtrees = reference.subtrees.len() as u64;
        counts.matched_subtrees = matches(&reference.subtrees, &self.shape.subtrees, false);
        counts.reference_flow = reference.flow.len() as u64;
        counts.matched_flow = matches(&reference.flow, &self.items, true);
        Ok((counts.scores(self.mode, &self.weights), counts))
    }

    /// Subtrees and data flow of a text, both sorted.
    fn read(&mut self, parser: &mut PythonParser, text: &str) -> Result<(), ParseError> {
        let text = match self.mode {
            Mode::Correct => text,
            Mode::Compat => {
                strip::python(text, &mut self.work, &mut self.stripped);
                &self.stripped
            }
            Mode::CodeXGlue => {
                strip::java(text, &mut self.work, &mut self.stripped);
                &self.stripped
            }
        };
        let tree = parser.parse(text)?;
        self.shape.walk(&tree, text, self.mode);
        self.shape.subtrees.sort_unstable();
        self.flow.items(&self.shape, self.mode, &mut self.items)
    }
}

/// How many of the reference's are in the hypothesis; each of the hypothesis's can be used
/// up by one, or serve them all. Both are sorted.
fn matches(reference: &[u128], hypothesis: &[u128], used_up: bool) -> u64 {
    let mut matched = 0;
    let mut at = 0;
    for one in reference {
        while hypothesis.get(at).is_some_and(|other| other < one) {
            at += 1;
        }
        if hypothesis.get(at) == Some(one) {
            matched += 1;
            at += usize::from(used_up);
        }
    }
    matched
}

#[cfg(test)]
mod tests;
