//! Weighs the possible next tokens: chooses the context and mixes the counts of model and prompt.

use std::ops::Range;

use super::cache::{self, Lexicon};
use super::model::NgramModel;
use super::tokens::{Kind, joins};
use super::trie::{Followers, Trie, TrieState};
use super::vocabulary::BEGIN;

/// An n-gram of the prompt counts like this many of the training texts.
const PROMPT: u64 = 4;
/// A factor for names that the prompt mentions.
const NAME: u64 = 4;
pub(super) struct Counts<'a> {
    pub(super) model: &'a NgramModel,
    pub(super) lexicon: &'a Lexicon<'a>,
    pub(super) own: &'a mut Trie,
    pub(super) prompt: &'a mut cache::Buffers,
}

/// The text so far, as far as it affects the next token.
pub(super) struct History<'a> {
    model: TrieState,
    own: TrieState,
    prompt: TrieState,
    last: &'a str,
}

impl<'a> History<'a> {
    /// Nothing is written or known yet.
    pub(super) const START: Self =
        Self { model: TrieState::START, own: TrieState::START, prompt: TrieState::START, last: "" };

    pub(super) fn push(&mut self, counts: &Counts<'_>, token: u32, text: &'a str) {
        let longest = counts.model.order - 1;
        counts.model.trie.advance(&mut self.model, token, longest);
        counts.own.advance(&mut self.own, token, longest);
        counts.prompt.trie.advance(&mut self.prompt, token, longest);
        self.last = text;
    }
}

impl Counts<'_> {
    /// Fills `candidates` with the possible next tokens and their weights, ordered by text.
    /// `within` restricts them to [those of the model, of the prompt].
    pub(super) fn gather(
        &mut self,
        history: &History<'_>,
        within: Option<&[Range<u32>; 2]>,
        candidates: &mut Vec<(u32, u64)>,
    ) {
        for length in (1..self.model.order).rev() {
            let model = self.model.trie.followers(&history.model, length);
            let own = self.own.followers(&history.own, length);
            let prompt = self.prompt.trie.followers(&history.prompt, length);
            self.mix(model, own, prompt, within, candidates, |_| true);
            if !candidates.is_empty() {
                return;
            }
        }
        let kind = Kind::of(history.last);
        if kind != Kind::Begin {
            self.own.sum_kind(kind, |token| self.lexicon.kind(token));
            self.prompt.trie.sum_kind(kind, |token| self.lexicon.kind(token));
            let model = self.model.trie.followers_of(kind);
            let own = self.own.followers_of(kind);
            let prompt = self.prompt.trie.followers_of(kind);
            self.mix(model, own, prompt, within, candidates, |_| true);
            if !candidates.is_empty() {
                return;
            }
        }
        let model = self.model.trie.followers(&TrieState::START, 0);
        let own = self.own.followers(&TrieState::START, 0);
        let prompt = self.prompt.trie.followers(&TrieState::START, 0);
        self.mix(model, own, prompt, within, candidates, |token| {
            token != BEGIN && !joins(history.last, self.lexicon.text(token))
        });
    }

    fn mix(
        &self,
        model: Followers<'_>,
        own: Followers<'_>,
        prompt: Followers<'_>,
        within: Option<&[Range<u32>; 2]>,
        candidates: &mut Vec<(u32, u64)>,
        allowed: impl Fn(u32) -> bool,
    ) {
        candidates.clear();
        let everything = [0..self.model.vocabulary.len(), self.model.vocabulary.len()..u32::MAX];
        let [known, added] = within.unwrap_or(&everything);
        let model = if within.is_some() { model.within(known) } else { model };
        let mut own = own.iter().peekable();
        let mut known_of_prompt = prompt.within(known).iter().peekable();
        let mut add = |token, count: u64| {
            if count > 0 && allowed(token) {
                let named = self.prompt.mentions(token);
                candidates.push((token, if named { count * NAME } else { count }));
            }
        };
        for (token, count) in model.iter() {
            while let Some((token, count)) = known_of_prompt.next_if(|&(other, _)| other < token) {
                add(token, u64::from(count) * PROMPT);
            }
            while own.next_if(|&(other, _)| other < token).is_some() {}
            let taken = own.next_if(|&(other, _)| other == token).map_or(0, |(_, count)| count);
            let cached = known_of_prompt.next_if(|&(other, _)| other == token);
            let cached = cached.map_or(0, |(_, count)| u64::from(count) * PROMPT);
            add(token, u64::from(count.saturating_sub(taken)) + cached);
        }
        for (token, count) in known_of_prompt.chain(prompt.within(added).iter()) {
            add(token, u64::from(count) * PROMPT);
        }
        if candidates.last().is_some_and(|&(token, _)| self.lexicon.place(token).is_some()) {
            candidates.sort_unstable_by(|a, b| self.lexicon.order(a.0, b.0));
        }
    }
}
