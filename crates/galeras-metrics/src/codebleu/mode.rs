//! Whose numbers CodeBLEU gives: ours, or those of one of the two published programs.

/// Whose numbers are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CodeBleuMode {
    /// Ours, with the faults of the published programs mended: comments and docstrings take no part in syntax and data flow, a data flow
    /// without a match is 0, and one that the reference does not have is left out.
    #[default]
    Strict,
    /// The numbers of papers, those of PyPI's `codebleu` 0.7.0 (k4black): comments and docstrings are cut out by
    /// Python's tokenizer before parsing, and a data flow of 0 counts as 1.
    Published,
    /// Those of CodeXGLUE: comments of Java are cut out before parsing.
    CodeXGlue,
}
