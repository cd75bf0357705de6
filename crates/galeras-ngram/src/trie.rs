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
    work: Work,
}

/// Buffers of counting.
#[derive(Default)]
struct Work {
    /// Where the n-grams of the current length start, those of one n-gram side by side.
    starts: Vec<u32>,
    next: Vec<u32>,
    /// Where each n-gram's part of `starts` ends.
    ends: Vec<usize>,
    next_ends: Vec<usize>,
    /// Token and start of each occurrence of one n-gram.
    keys: Vec<u64>,
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
        self.count_sequences(tokens, order, |starts| starts.len() as u32);
    }

    /// The same where each sequence stands for several equal ones: for as many as `times` says
    /// at the place of each of its tokens. There are fewer than `u32::MAX` tokens in all of them.
    pub(super) fn count_repeated(&mut self, tokens: &[u32], times: &[u32], order: usize) {
        let times = |start: &u64| times.get(*start as u32 as usize).copied().unwrap_or_default();
        self.count_sequences(tokens, order, |starts| starts.iter().map(times).sum());
    }

    /// Counts n-grams. `occurrences` takes the keys of one n-gram, whose lower halves are the
    /// places where it starts.
    fn count_sequences(
        &mut self,
        tokens: &[u32],
        order: usize,
        occurrences: impl Fn(&[u64]) -> u32,
    ) {
        let work = &mut self.work;
        work.starts.clear();
        work.starts.extend(0..tokens.len() as u32);
        work.ends.clear();
        work.ends.push(tokens.len());
        self.kinds = Default::default();
        for (depth, level) in self.levels.iter_mut().enumerate() {
            level.tokens.clear();
            level.counts.clear();
            level.first.clear();
            work.next.clear();
            work.next_ends.clear();
            if depth < order {
                let mut from = 0;
                for &end in &work.ends {
                    level.first.push(level.tokens.len() as u32);
                    let keys = work.starts[from..end].iter().filter_map(|&start| {
                        let token = tokens[start as usize + depth];
                        (token != CUT).then_some(u64::from(token) << 32 | u64::from(start))
                    });
                    work.keys.clear();
                    work.keys.extend(keys);
                    work.keys.sort_unstable();
                    for group in work.keys.chunk_by(|a, b| a >> 32 == b >> 32) {
                        level.tokens.push((group[0] >> 32) as u32);
                        level.counts.push(occurrences(group));
                        work.next.extend(group.iter().map(|&key| key as u32));
                        work.next_ends.push(work.next.len());
                    }
                    from = end;
                }
                level.first.push(level.tokens.len() as u32);
            }
            std::mem::swap(&mut work.starts, &mut work.next);
            std::mem::swap(&mut work.ends, &mut work.next_ends);
        }
    }

    /// Gives up the buffers of counting and the slack of the arrays.
    pub(super) fn shrink(&mut self) {
        self.work = Work::default();
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
