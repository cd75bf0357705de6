//! The entry points of CodeBLEU: modes, references, and scores of hypotheses.

use galeras_python::{ParseError, PythonParser, is_space};

use super::counts::{CodeBleuCounts, CodeBleuScores};
use super::dataflow::Flow;
use super::ngram::{Buffers, ReferenceTokens};
use super::strip;
use super::symbols::common;
use super::syntax::FlatTree;

/// A reference that was read once for its many hypotheses.
#[derive(Clone, Debug)]
pub struct CodeBleuReference {
    tokens: ReferenceTokens,
    parsed: ParsedText,
}

/// Scores hypotheses against references. Has its own buffers, so use one per thread.
#[derive(Debug, Default)]
pub struct CodeBleu {
    mode: CodeBleuMode,
    weights: [f64; 4],
    shape: FlatTree,
    flow: Flow,
    ngrams: Buffers,
    work: String,
    stripped: String,
}

impl CodeBleu {
    /// A scorer. `weights` are those of n-grams, weighted n-grams, syntax and data flow, not
    /// negative and not all zero; see [`EQUAL_WEIGHTS`](super::EQUAL_WEIGHTS).
    pub fn new(mode: CodeBleuMode, weights: [f64; 4]) -> Self {
        Self { mode, weights, ..Self::default() }
    }

    /// Reads a reference once for all its hypotheses. White space around it is ignored in all
    /// modes. Memory is some hundred bytes per byte of the text.
    ///
    /// # Errors
    /// [`ParseError::TooLarge`] and [`ParseError::TooComplex`] if the text is over the limits of
    /// [`PythonParser::parse`]; [`ParseError::TooComplex`] also if its data flow has more than 2^24
    /// origins. Syntax errors are accepted.
    pub fn reference(
        &mut self,
        parser: &mut PythonParser,
        text: &str,
    ) -> Result<CodeBleuReference, ParseError> {
        let text = text.trim_matches(is_space);
        let parsed = self.read(parser, text)?;
        Ok(CodeBleuReference { tokens: ReferenceTokens::new(text, self.mode), parsed })
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
        let parsed = self.read(parser, text)?;
        let mut counts = CodeBleuCounts { pairs: 1, ..CodeBleuCounts::default() };
        reference.tokens.count(text, &mut self.ngrams, &mut counts);
        let of = &reference.parsed;
        counts.reference_subtrees = of.subtrees.len() as u64;
        let (all, paired) = common(&of.subtrees, &parsed.subtrees);
        counts.matched_subtrees = match self.mode {
            CodeBleuMode::Strict => paired,
            // The peers look up each subtree of the reference, also when its partners are used up.
            CodeBleuMode::Published | CodeBleuMode::CodeXGlue => all,
        };
        counts.reference_flow = of.flow.len() as u64;
        counts.matched_flow = common(&of.flow, &parsed.flow).1;
        Ok((counts.scores(self.mode, &self.weights), counts))
    }

    /// Subtrees and data flow of a text.
    fn read(&mut self, parser: &mut PythonParser, text: &str) -> Result<ParsedText, ParseError> {
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
        let flow = self.flow.items(&self.shape, self.mode)?.into();
        self.shape.subtrees.sort_unstable();
        let subtrees = self.shape.subtrees.as_slice().into();
        Ok(ParsedText { subtrees, flow })
    }
}

/// The definition of CodeBLEU: ours, or that of a published program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CodeBleuMode {
    /// The formulas of the paper (see `counts`): the weighted n-grams are a precision and matched
    /// subtrees are clipped. Comments and docstrings are ignored in syntax and data flow, a data
    /// flow without a match is 0, and the data flow is left out if the reference has none.
    #[default]
    Strict,
    /// The numbers of papers, those of PyPI's `codebleu` 0.7.0 (k4black): comments and docstrings
    /// are removed by Python's tokenizer before parsing, and a data flow of 0 counts as 1.
    Published,
    /// The numbers of CodeXGLUE: comments of Java are removed before parsing.
    CodeXGlue,
}

/// Subtrees and data flow of a text, as sorted hashes.
#[derive(Clone, Debug)]
struct ParsedText {
    subtrees: Box<[u128]>,
    flow: Box<[u128]>,
}

#[cfg(test)]
mod tests;
