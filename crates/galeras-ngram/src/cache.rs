//! The words of a prompt as an addition to a model: numbers for new tokens, n-grams, and mentioned
//! names.

use std::cmp::Ordering;
use std::ops::Range;

use super::model::NgramModel;
use super::tokens::{Kind, split, unspaced};
use super::trie::Trie;
use super::vocabulary::{CUT, UNKNOWN};

/// Only this many bytes at the end of a conversation are read: the rest helps little, and a
/// completion must not take seconds.
const READ: usize = 1 << 20;

#[derive(Default)]
pub(super) struct Buffers {
    pub(super) trie: Trie,
    tokens: Vec<u32>,
    /// A bit for each token of the model and then of the prompt: does the prompt mention it as a
    /// name? So few bytes stay in the processor's cache.
    mentions: Vec<u64>,
}

pub(super) struct Lexicon<'a> {
    model: &'a NgramModel,
    /// Tokens that only the prompt has, ascending; their numbers follow those of the model.
    added: Vec<&'a str>,
    /// For each of them, the first token of the model that is greater.
    points: Vec<u32>,
}

impl Buffers {
    /// Reads a conversation. `half` is the end of `code` that may be half a token. Where the
    /// conversation contains the code and then ends, breaks off or closes a Markdown fence, this is
    /// not evidence that the token ends there.
    pub(super) fn read<'a>(
        &mut self,
        model: &'a NgramModel,
        context: &'a str,
        code: &str,
        half: &str,
    ) -> Lexicon<'a> {
        let start = context.ceil_char_boundary(context.len().saturating_sub(READ));
        let recent = context.get(start..).unwrap_or_default();
        let ends = |&(at, _): &(usize, &str)| {
            let after = recent.get(at + code.len()..).unwrap_or_default();
            after.chars().next().is_none_or(|c| c.is_whitespace() || c == '`')
        };
        let place = recent.rmatch_indices(code).find(ends).filter(|_| !half.is_empty());
        let end = place.map(|(at, _)| at + code.len());
        let parts = match end {
            Some(end) => [recent.get(..end - half.len()), recent.get(end..)],
            None => [Some(recent), None],
        };
        // Each token is split off and looked up once. Parts end with a mark.
        let mut found: Vec<(&str, Option<u32>)> = Vec::with_capacity(recent.len() / 3);
        for part in parts.into_iter().flatten() {
            found.extend(split(part).map(|token| (token, model.vocabulary.find(token))));
            found.push(("", Some(CUT)));
        }
        let mut lexicon = Lexicon { model, added: Vec::new(), points: Vec::new() };
        let unknown = found.iter().filter(|(_, number)| number.is_none());
        lexicon.added.extend(unknown.map(|(token, _)| *token));
        lexicon.added.sort_unstable();
        lexicon.added.dedup();
        lexicon.points.extend(lexicon.added.iter().map(|token| model.vocabulary.point(token)));

        let bits = model.vocabulary.len() as usize + lexicon.added.len();
        self.mentions.clear();
        self.mentions.resize(bits.div_ceil(64), 0);
        self.tokens.clear();
        let mut spaced = String::new();
        for (token, known) in found {
            let number = known.or_else(|| lexicon.find_added(token)).unwrap_or(UNKNOWN);
            self.tokens.push(number);
            let name = unspaced(token);
            if known.is_some() && self.mentions(number) || !is_name(name) {
                continue;
            }
            self.mention(number);
            match known {
                Some(known) => self.mention(model.counterparts[known as usize]),
                // The model may have the other form of the token.
                None => {
                    spaced.clear();
                    spaced.extend([" ", name]);
                    for form in [name, &spaced] {
                        self.mention(model.vocabulary.find(form).unwrap_or(UNKNOWN));
                    }
                }
            }
        }
        self.trie.count(&self.tokens, model.order, |_| 1);
        lexicon
    }

    /// True if the prompt mentions a token as a name.
    pub(super) fn mentions(&self, token: u32) -> bool {
        let word = self.mentions.get(token as usize / 64);
        word.is_some_and(|word| word >> (token % 64) & 1 == 1)
    }

    /// Records a mention; ignores [`UNKNOWN`].
    fn mention(&mut self, token: u32) {
        if let Some(word) = self.mentions.get_mut(token as usize / 64) {
            *word |= 1 << (token % 64);
        }
    }
}

impl<'a> Lexicon<'a> {
    pub(super) fn find(&self, token: &str) -> u32 {
        self.model.vocabulary.find(token).or_else(|| self.find_added(token)).unwrap_or(UNKNOWN)
    }

    /// The number of a token that only the prompt has.
    fn find_added(&self, token: &str) -> Option<u32> {
        let at = self.added.binary_search(&token).ok()?;
        Some(self.model.vocabulary.len() + at as u32)
    }

    pub(super) fn text(&self, token: u32) -> &'a str {
        match self.place(token) {
            Some(at) => self.added.get(at).copied().unwrap_or_default(),
            None => self.model.vocabulary.text(token),
        }
    }

    pub(super) fn kind(&self, token: u32) -> Kind {
        let known = self.model.kinds.get(token as usize).copied();
        known.unwrap_or_else(|| Kind::of(self.text(token)))
    }

    /// The order of two tokens by their text; marks come first.
    pub(super) fn order(&self, a: u32, b: u32) -> Ordering {
        let point = |at: usize| self.points.get(at).copied().unwrap_or(UNKNOWN);
        match (self.place(a), self.place(b)) {
            (None, Some(b)) if a < point(b) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), None) if b < point(a) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            _ => a.cmp(&b),
        }
    }

    /// The tokens that start with `prefix`: of the model, and only of the prompt.
    pub(super) fn with_prefix(&self, prefix: &str) -> [Range<u32>; 2] {
        let known = self.model.vocabulary.len();
        let start = self.added.partition_point(|token| *token < prefix);
        let rest = self.added.get(start..).unwrap_or_default();
        let length = rest.partition_point(|token| token.starts_with(prefix));
        let added = known + start as u32..known + (start + length) as u32;
        [self.model.vocabulary.with_prefix(prefix), added]
    }

    /// The place of a token that only the prompt has among these.
    pub(super) fn place(&self, token: u32) -> Option<usize> {
        token.checked_sub(self.model.vocabulary.len()).map(|at| at as usize)
    }
}

fn is_name(word: &str) -> bool {
    Kind::of(word) == Kind::Word && KEYWORDS.binary_search(&word).is_err()
}

/// Words that carry no topic, ascending.
const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];
