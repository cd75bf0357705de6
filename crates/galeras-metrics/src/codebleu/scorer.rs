//! A reference, a hypothesis, a score.
//!
//! Here: what is kept of a reference, and how the counts of a pair come about.
//! Not here: the four components themselves (`ngram`, `syntax`, `dataflow`) and their
//! arithmetic (`counts`).

use std::sync::Arc;

use super::counts::{CodeBleuCounts, CodeBleuScores};
use super::dataflow::Flow;
use super::mode::CodeBleuMode;
use super::ngram::Grams;
use super::readings::{CodeBleuReadings, Reading};
use super::strip;
use super::symbols::Bag;
use super::syntax::Shape;
use galeras_python::{ParseError, PythonParser, is_space};

/// What is computed once of a reference and shared by its many hypotheses.
#[derive(Clone, Debug)]
pub struct CodeBleuReference {
    grams: Grams,
    subtrees: Bag,
    flow: Bag,
}

/// Scores hypotheses against references; holds the memory to work in, so one per thread.
#[derive(Debug, Default)]
pub struct CodeBleu {
    mode: CodeBleuMode,
    weights: [f64; 4],
    /// What was read of texts that may come again: the versions of a method, equal answers.
    readings: CodeBleuReadings,
    shape: Shape,
    flow: Flow,
    items: Vec<u128>,
    numbers: Vec<u32>,
    work: String,
    stripped: String,
}

impl CodeBleu {
    /// A scorer. `weights` are those of n-grams, weighted n-grams, syntax and data flow, not
    /// negative and not all zero; see [`EQUAL_WEIGHTS`](super::EQUAL_WEIGHTS).
    pub fn new(mode: CodeBleuMode, weights: [f64; 4]) -> Self {
        Self::sharing(&CodeBleuReadings::new(mode), weights)
    }

    /// A scorer as [`CodeBleu::new`] makes it, that reads no text again which another one with these
    /// readings has just read. Scores do not depend on it.
    pub fn sharing(readings: &CodeBleuReadings, weights: [f64; 4]) -> Self {
        Self { mode: readings.mode, weights, readings: readings.clone(), ..Self::default() }
    }

    /// Reads a reference once for all its hypotheses. White space around it is left out in all
    /// modes. Memory is some hundred bytes per byte of the text.
    ///
    /// # Errors
    /// [`ParseError::TooLarge`] and [`ParseError::TooComplex`] if the text is over the bounds of
    /// [`PythonParser::parse`]; [`ParseError::TooComplex`] also if its data flow has more than
    /// 2^24 origins. A syntax error is not an error.
    pub fn reference(
        &mut self,
        parser: &mut PythonParser,
        text: &str,
    ) -> Result<CodeBleuReference, ParseError> {
        let text = text.trim_matches(is_space);
        let reading = self.read(parser, text)?;
        Ok(CodeBleuReference {
            grams: Grams::of(text, self.mode, &mut self.numbers),
            subtrees: Bag::of(&reading.subtrees),
            flow: Bag::of(&reading.flow),
        })
    }

    /// The score of a hypothesis with its four components, each between 0 and 1, and its counts
    /// for the score of a corpus.
    ///
    /// # Errors
    /// As [`CodeBleu::reference`], for the text of the hypothesis.
    pub fn score(
        &mut self,
        parser: &mut PythonParser,
        reference: &CodeBleuReference,
        hypothesis: &str,
    ) -> Result<(CodeBleuScores, CodeBleuCounts), ParseError> {
        let text = hypothesis.trim_matches(is_space);
        let reading = self.read(parser, text)?;
        let mut counts = CodeBleuCounts { pairs: 1, ..CodeBleuCounts::default() };
        reference.grams.count(text, &mut self.numbers, &mut counts);
        counts.reference_subtrees = reference.subtrees.len() as u64;
        counts.matched_subtrees = reference.subtrees.covered(&reading.subtrees, &mut self.numbers);
        counts.reference_flow = reference.flow.len() as u64;
        counts.matched_flow = reference.flow.shared(&reading.flow, &mut self.numbers);
        Ok((counts.scores(self.mode, &self.weights), counts))
    }

    /// Subtrees and data flow of a text.
    fn read(&mut self, parser: &mut PythonParser, text: &str) -> Result<Arc<Reading>, ParseError> {
        if let Some(known) = self.readings.get(text) {
            return Ok(known);
        }
        let stripped = match self.mode {
            CodeBleuMode::Strict => text,
            CodeBleuMode::Published => {
                strip::python(text, &mut self.work, &mut self.stripped);
                &self.stripped
            }
            CodeBleuMode::CodeXGlue => {
                strip::java(text, &mut self.work, &mut self.stripped);
                &self.stripped
            }
        };
        let tree = parser.parse(stripped)?;
        self.shape.walk(&tree, stripped, self.mode);
        self.flow.items(&self.shape, self.mode, &mut self.items)?;
        let reading = Reading::new(text, &self.shape.subtrees, &self.items);
        Ok(self.readings.keep(reading))
    }
}

#[cfg(test)]
mod tests;
