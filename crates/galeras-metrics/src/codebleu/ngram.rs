//! n-grams of orders 1 to 4 over tokens separated by white space: those of a reference, and the
//! matches of a hypothesis.

use galeras_python::words;

use super::counts::CodeBleuCounts;
use super::scorer::CodeBleuMode;
use crate::grams::Grams;
use crate::interner::Interner;

/// True for the tokens in CodeXGLUE's list of Python keywords and, in the other modes, for soft
/// keywords.
fn is_keyword(token: &str, mode: CodeBleuMode) -> bool {
    match token {
        "False" | "None" | "True" | "and" | "as" | "assert" | "async" | "await" | "break"
        | "class" | "continue" | "def" | "del" | "elif" | "else" | "except" | "finally" | "for"
        | "from" | "global" | "if" | "import" | "in" | "is" | "lambda" | "nonlocal" | "not"
        | "or" | "pass" | "raise" | "return" | "try" | "while" | "with" | "yield" => true,
        "match" | "case" | "type" => mode != CodeBleuMode::CodeXGlue,
        _ => false,
    }
}

/// The tokens of one reference.
#[derive(Clone, Debug)]
pub(super) struct ReferenceTokens {
    mode: CodeBleuMode,
    names: Interner,
    tokens: Vec<u32>,
    /// By number: the token is a keyword.
    is_keyword: Vec<bool>,
    /// Those of the tokens that are keywords.
    keywords: Vec<u32>,
}

/// Buffers for counting.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    grams: Grams,
    tokens: Vec<u32>,
    keywords: Vec<u32>,
}

impl ReferenceTokens {
    pub(super) fn new(text: &str, mode: CodeBleuMode) -> Self {
        let (mut names, mut is_keyword) = (Interner::default(), Vec::new());
        let number = |token: &str| {
            let number = names.id(token.as_bytes());
            if number as usize == is_keyword.len() {
                is_keyword.push(self::is_keyword(token, mode));
            }
            number
        };
        let tokens: Vec<u32> = words(text).map(number).collect();
        let keywords = tokens.iter().copied().filter(|&token| is_keyword[token as usize]).collect();
        Self { mode, names, tokens, is_keyword, keywords }
    }

    /// Adds the n-grams of a hypothesis, and those of this reference, to `counts`.
    pub(super) fn count(&self, text: &str, buffers: &mut Buffers, counts: &mut CodeBleuCounts) {
        let Buffers { grams, tokens, keywords } = buffers;
        tokens.clear();
        tokens.extend(words(text).map(|token| self.names.find(token.as_bytes())));
        let is_keyword = |token: &u32| self.is_keyword.get(*token as usize) == Some(&true);
        keywords.clear();
        keywords.extend(tokens.iter().copied().filter(is_keyword));
        let matched: [u64; 4] = grams.matches(&self.tokens, tokens, self.names.count());
        let [of_keywords] = grams.matches(&self.keywords, keywords, self.names.count());
        // The hypothesis may have keywords that the reference lacks.
        let own_keywords = words(text).filter(|token| self::is_keyword(token, self.mode)).count();
        let ngrams = |tokens: &[u32], n: usize| tokens.len().saturating_sub(n).max(1) as u64;
        for (n, matched) in matched.into_iter().enumerate() {
            counts.matched[n] += matched;
            counts.hypothesis_ngrams[n] += ngrams(tokens, n);
        }
        for n in 1..4 {
            counts.reference_ngrams[n - 1] += ngrams(&self.tokens, n);
        }
        counts.hypothesis_tokens += tokens.len() as u64;
        counts.reference_tokens += self.tokens.len() as u64;
        counts.matched_fifths += matched[0] + 4 * of_keywords;
        counts.hypothesis_fifths += (tokens.len() + 4 * own_keywords).max(1) as u64;
        counts.reference_fifths += self.fifths();
    }

    /// The weight of the tokens, at least that of one keyword.
    fn fifths(&self) -> u64 {
        (self.tokens.len() + 4 * self.keywords.len()).max(5) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(reference: &str, hypothesis: &str) -> CodeBleuCounts {
        let mut counts = CodeBleuCounts::default();
        let reference = ReferenceTokens::new(reference, CodeBleuMode::Strict);
        reference.count(hypothesis, &mut Buffers::default(), &mut counts);
        counts
    }

    #[test]
    fn keywords_weigh_five_fifths() {
        let counts = counted("if x : return y", "return x");
        assert_eq!((counts.matched_fifths, counts.reference_fifths), (6, 13));
        assert_eq!(counts.hypothesis_fifths, 6);
        // The reference has neither `for` nor `in`.
        assert_eq!(counted("if x : return y", "for x in y").hypothesis_fifths, 12);
        assert_eq!((counts.hypothesis_tokens, counts.reference_tokens), (2, 5));
        let counts_of_repeats = counted("a b a b a b", "a b c a b a").matched;
        assert_eq!(counts_of_repeats, [5, 3, 1, 0]);
        assert_eq!(counts.hypothesis_ngrams, [2, 1, 1, 1]);
        assert_eq!(counts.reference_ngrams, [4, 3, 2]);
    }

    #[test]
    fn an_empty_side_has_one_ngram_of_each_order() {
        let counts = counted("", "");
        assert_eq!((counts.reference_fifths, counts.reference_ngrams), (5, [1; 3]));
        assert_eq!(counts.hypothesis_fifths, 1);
        assert_eq!((counts.hypothesis_ngrams, counts.matched), ([1; 4], [0; 4]));
    }

    #[test]
    fn white_space_is_pythons() {
        assert_eq!(words("a\u{1c}b\u{a0}c\u{2003}d\u{feff}e\u{200b}f").count(), 4);
    }

    #[test]
    fn soft_keywords_are_none_for_codexglue() {
        let fifths = |mode| ReferenceTokens::new("match case type x y z", mode).fifths();
        assert_eq!(fifths(CodeBleuMode::CodeXGlue), 6);
        assert_eq!(fifths(CodeBleuMode::Published), 18);
    }
}
