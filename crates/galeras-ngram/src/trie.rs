//! How often each n-gram occurs.
//!
//! Here: counting n-grams of numbered tokens, looking them up, following a growing history.
//! Not here: what the numbers mean (`vocabulary`), mixing counts (`candidates`).
//!
//! N-grams are the paths of a trie from the root. A level holds all n-grams of one length in
//! order of their numbers, in three flat arrays: no hashing, so counts are exact, and
//! the tokens that follow a context are a sorted slice. Eight or twelve bytes for each
//! distinct n-gram.

use std::ops::Range;

use super::tokens::Kind;
use super::vocabulary::CUT;

/// The longest n-gram that can be counted.
pub(super) const MOST: usize = 8;

/// N-grams of one length.
#[derive(Default)]
struct Level {
    /// The last token of each.
    tokens: Vec<u32>,
    counts: Vec<u32>,
    /// Where the longer n-grams start in the next level, and the end of the last ones.
    first: Vec<u32>,
}

/// The n-grams of some sequences. Reusable: `count` replaces what there was.
#[derive(Default)]
pub(super) struct Trie {
    levels: [Level; MOST],
    /// What followed each kind of token, added up.
    kinds: [Option<(Vec<u32>, Vec<u32>)>; Kind::COUNT],
    /// The places where n-grams start, in the order of the n-grams: a buffer of counting.
    starts: Vec<u64>,
}

/// The tokens that followed something, ascending, and how often.
#[derive(Clone, Copy, Default)]
pub(super) struct Followers<'a> {
    pub(super) tokens: &'a [u32],
    pub(super) counts: &'a [u32],
}

impl Followers<'_> {
    /// Those whose number is in the range.
    pub(super) fn within(self, range: &Range<u32>) -> Self {
        let start = self.tokens.partition_point(|&token| token < range.start);
        let end = self.tokens.partition_point(|&token| token < range.end).max(start);
        Self { tokens: &self.tokens[start..end], counts: &self.counts[start..end] }
    }

    pub(super) fn iter(self) -> impl Iterator<Item = (u32, u32)> {
        self.tokens.iter().copied().zip(self.counts.iter().copied())
    }
}

/// The n-grams that a history ends in: one for each length that the trie knows.
#[derive(Clone, Copy)]
pub(super) struct State([Option<u32>; MOST]);

impl State {
    /// The empty history.
    pub(super) const START: Self = {
        let mut nodes = [None; MOST];
        nodes[0] = Some(0);
        Self(nodes)
    };
}

impl Trie {
    /// Counts all n-grams of 1 to `order` tokens. Each sequence of `tokens` ends with
    /// [`CUT`], as does the last. There are fewer than `u32::MAX` tokens.
    pub(super) fn count(&mut self, tokens: &[u32], order: usize) {
        self.count_sequences(tokens, order, |_| 1);
    }

    /// The same where each sequence stands for several equal ones: for as many as `times` says
    /// at the place of each of its tokens. There are fewer than `u32::MAX` tokens in all of them.
    pub(super) fn count_repeated(&mut self, tokens: &[u32], times: &[u32], order: usize) {
        self.count_sequences(tokens, order, |start| times.get(start).copied().unwrap_or_default());
    }

    /// Counts n-grams, those that start at a place as often as `times` says of it.
    fn count_sequences(&mut self, tokens: &[u32], order: usize, times: impl Fn(usize) -> u32) {
        self.kinds = Default::default();
        for level in &mut self.levels {
            level.tokens.clear();
            level.counts.clear();
            level.first.clear();
        }
        self.starts.clear();
        let starts = (0..tokens.len()).filter(|&start| tokens[start] != CUT);
        self.starts.extend(starts.map(|start| keyed(tokens[start], start as u64)));
        sort(&mut self.starts, tokens, 0, order);
        self.levels[0].first.push(0);
        let mut last: &[u32] = &[];
        for &key in &self.starts {
            let start = key as u32 as usize;
            let end = tokens.len().min(start + order);
            let ngram = &tokens[start..end];
            let known = last.iter().zip(ngram).take_while(|(a, b)| a == b).count();
            let times = times(start);
            for (depth, &token) in ngram.iter().enumerate().take_while(|(_, token)| **token != CUT)
            {
                let level = &mut self.levels[depth];
                if depth < known
                    && let Some(count) = level.counts.last_mut()
                {
                    *count += times;
                    continue;
                }
                level.tokens.push(token);
                level.counts.push(times);
                if depth + 1 < order {
                    let longer = &mut self.levels[depth + 1];
                    longer.first.push(longer.tokens.len() as u32);
                }
            }
            last = ngram;
        }
        for level in self.levels.iter_mut().take(order) {
            level.first.push(level.tokens.len() as u32);
        }
    }

    /// Gives up the buffers of counting and the slack of the arrays.
    pub(super) fn shrink(&mut self) {
        self.starts = Vec::new();
        for level in &mut self.levels {
            level.tokens.shrink_to_fit();
            level.counts.shrink_to_fit();
            level.first.shrink_to_fit();
        }
    }

    /// Goes from a history to the one that is a token longer, of which `longest` tokens
    /// are looked at.
    pub(super) fn advance(&self, state: &mut State, token: u32, longest: usize) {
        for depth in (0..longest.min(MOST - 1)).rev() {
            state.0[depth + 1] = state.0[depth].and_then(|node| {
                let range = self.children(depth, node);
                let tokens = &self.levels[depth].tokens[range.clone()];
                // A trie of all texts has all tokens at the start, each at its number.
                if depth == 0 && tokens.get(token as usize) == Some(&token) {
                    return Some(token);
                }
                tokens.binary_search(&token).ok().map(|at| (range.start + at) as u32)
            });
        }
    }

    /// What followed the last `length` tokens of a history.
    pub(super) fn followers(&self, state: &State, length: usize) -> Followers<'_> {
        let Some(node) = state.0[length] else { return Followers::default() };
        let range = self.children(length, node);
        let level = &self.levels[length];
        Followers { tokens: &level.tokens[range.clone()], counts: &level.counts[range] }
    }

    /// What followed tokens of a kind, if [`Trie::sum_kind`] was called for it.
    pub(super) fn followers_of(&self, kind: Kind) -> Followers<'_> {
        let sums = self.kinds[kind as usize].as_ref();
        sums.map_or(Followers::default(), |(tokens, counts)| Followers { tokens, counts })
    }

    /// Adds up what followed the tokens of a kind.
    pub(super) fn sum_kind(&mut self, kind: Kind, kind_of: impl Fn(u32) -> Kind) {
        if self.kinds[kind as usize].is_some() {
            return;
        }
        let mut all: Vec<(u32, u32)> = Vec::new();
        for (node, &token) in self.levels[0].tokens.iter().enumerate() {
            if kind_of(token) == kind {
                let range = self.children(1, node as u32);
                let tokens = self.levels[1].tokens[range.clone()].iter().copied();
                all.extend(tokens.zip(self.levels[1].counts[range].iter().copied()));
            }
        }
        all.sort_unstable();
        let sums = all.chunk_by(|a, b| a.0 == b.0);
        self.kinds[kind as usize] =
            Some(sums.map(|of| (of[0].0, of.iter().map(|(_, count)| count).sum::<u32>())).unzip());
    }

    /// The place of the n-grams that are a token longer, in level `depth`.
    fn children(&self, depth: usize, node: u32) -> Range<usize> {
        // Level `depth` records where the children of each of its parents start.
        let bound = |at: usize| self.levels[depth].first.get(at).map_or(0, |&at| at as usize);
        bound(node as usize)..bound(node as usize + 1)
    }
}

/// A place with a token to sort it by.
fn keyed(token: u32, start: u64) -> u64 {
    u64::from(token) << 32 | start
}

/// Sorts places by the tokens that stand there, of which `order` count. The first `depth` are
/// equal, and the places are keyed by the next one.
fn sort(starts: &mut [u64], tokens: &[u32], depth: usize, order: usize) {
    starts.sort_unstable();
    if depth + 1 >= order {
        return;
    }
    for equal in starts.chunk_by_mut(|a, b| a >> 32 == b >> 32) {
        // Most n-grams are rare: what is alone is in its place, whatever follows.
        if equal.len() > 1 && equal[0] >> 32 != u64::from(CUT) {
            for key in &mut *equal {
                let start = u64::from(*key as u32);
                *key = keyed(tokens[start as usize + depth + 1], start);
            }
            sort(equal, tokens, depth + 1, order);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn counts_are_those_of_counting_naively() {
        for order in 2..=MOST {
            let mut state = 7_u64;
            let mut tokens = Vec::new();
            for _ in 0..3000 {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                tokens.push(if state >> 60 == 0 { CUT } else { (state >> 40) as u32 % 7 });
            }
            tokens.push(CUT);
            let mut trie = Trie::default();
            trie.count(&[3, 3, CUT], 2);
            trie.count(&tokens, order);
            let mut naive: HashMap<Vec<u32>, HashMap<u32, u32>> = HashMap::new();
            for sequence in tokens.split(|&token| token == CUT) {
                for length in 1..=order {
                    for gram in sequence.windows(length) {
                        let next = naive.entry(gram[..length - 1].to_vec()).or_default();
                        *next.entry(gram[length - 1]).or_default() += 1;
                    }
                }
            }
            for (context, next) in &naive {
                let mut state = State::START;
                for &token in context {
                    trie.advance(&mut state, token, order - 1);
                }
                let followers = trie.followers(&state, context.len());
                assert!(followers.tokens.is_sorted());
                assert_eq!(&followers.iter().collect::<HashMap<_, _>>(), next);
            }
        }
    }

    #[test]
    fn repeated_sequences_count_as_often_as_they_are_repeated() {
        let sequences: [(&[u32], u32); 4] =
            [(&[1, 2, 1, 2, 1], 3), (&[2, 1], 1), (&[], 5), (&[1, 1, 1, 2], 40_000)];
        let (mut tokens, mut times, mut written_out) = (Vec::new(), Vec::new(), Vec::new());
        for (sequence, repeated) in sequences {
            let whole = [sequence, &[CUT]].concat();
            times.resize(times.len() + whole.len(), repeated);
            tokens.extend_from_slice(&whole);
            written_out.extend(whole.repeat(repeated as usize));
        }
        let (mut short, mut long) = (Trie::default(), Trie::default());
        short.count_repeated(&tokens, &times, 4);
        long.count(&written_out, 4);
        for (one, other) in short.levels.iter().zip(&long.levels) {
            assert_eq!(one.tokens, other.tokens);
            assert_eq!(one.counts, other.counts);
            assert_eq!(one.first, other.first);
        }
    }

    #[test]
    fn an_empty_trie_knows_nothing() {
        let mut trie = Trie::default();
        let mut state = State::START;
        for _ in 0..2 {
            trie.advance(&mut state, 1, 5);
            assert!((0..6).all(|length| trie.followers(&state, length).tokens.is_empty()));
            trie.count(&[], 6);
            state = State::START;
        }
    }
}
