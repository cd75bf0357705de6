//! Counts n-grams of numbered tokens and follows a growing history.
//!
//! N-grams are the paths of a trie from the root. A level contains all n-grams of one length in
//! order of their numbers, in three flat arrays. There is no hashing, so counts are exact, and the
//! tokens that follow a context are a sorted slice. A distinct n-gram takes eight or twelve bytes.

use std::ops::Range;

use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use super::tokens::Kind;
use super::vocabulary::CUT;

pub(super) const MOST: usize = 8;

#[derive(Debug, Default, PartialEq)]
struct Level {
    /// The last token of each.
    tokens: Vec<u32>,
    counts: Vec<u32>,
    /// The start of the longer n-grams in the next level, and the end of the last ones.
    first: Vec<u32>,
}

/// The n-grams of some sequences. Reusable: `count` replaces them.
#[derive(Default)]
pub(super) struct Trie {
    levels: [Level; MOST],
    /// Totals of the tokens that followed each kind.
    kinds: [Option<(Vec<u32>, Vec<u32>)>; Kind::COUNT],
    /// A buffer: starts of n-grams, in the order of the n-grams.
    starts: Vec<u64>,
}

/// The tokens that followed something, ascending, and their counts.
#[derive(Clone, Copy, Default)]
pub(super) struct Followers<'a> {
    pub(super) tokens: &'a [u32],
    pub(super) counts: &'a [u32],
}

impl Followers<'_> {
    pub(super) fn within(self, range: &Range<u32>) -> Self {
        let start = self.tokens.partition_point(|&token| token < range.start);
        let end = self.tokens.partition_point(|&token| token < range.end).max(start);
        Self { tokens: &self.tokens[start..end], counts: &self.counts[start..end] }
    }

    pub(super) fn iter(self) -> impl Iterator<Item = (u32, u32)> {
        self.tokens.iter().copied().zip(self.counts.iter().copied())
    }
}

/// The n-grams that end a history: one for each length that the trie knows.
#[derive(Clone, Copy)]
pub(super) struct TrieState([Option<u32>; MOST]);

impl TrieState {
    /// The empty history.
    pub(super) const START: Self = {
        let mut nodes = [None; MOST];
        nodes[0] = Some(0);
        Self(nodes)
    };
}

impl Trie {
    /// Counts all n-grams of 1 to `order` tokens. Each sequence of `tokens` ends with [`CUT`],
    /// including the last, and represents as many equal ones as `times` returns for the place of
    /// each of its tokens. There are fewer than `u32::MAX` tokens, with repetition.
    pub(super) fn count(&mut self, tokens: &[u32], order: usize, times: impl Fn(usize) -> u32) {
        self.clear();
        let starts = (0..tokens.len()).filter(|&start| tokens[start] != CUT);
        self.starts.extend(starts.map(|start| keyed(tokens[start], start as u64)));
        sort(&mut self.starts, tokens, 0, order);
        self.levels[0].first.push(0);
        count_sorted(&self.starts, tokens, order, &mut self.levels, times);
        self.end_levels(order);
    }

    /// As [`Trie::count`] for tokens below `vocabulary`, on all threads of the caller's pool.
    pub(super) fn count_parallel(&mut self, tokens: &[u32], order: usize, vocabulary: u32) {
        self.clear();
        // Group places by their first token.
        let mut ends = vec![0_usize; vocabulary as usize + 1];
        for &token in tokens.iter().filter(|&&token| token != CUT) {
            ends[token as usize + 1] += 1;
        }
        for token in 1..ends.len() {
            ends[token] += ends[token - 1];
        }
        let mut starts = vec![0; ends.last().copied().unwrap_or_default()];
        for (start, &token) in tokens.iter().enumerate().filter(|&(_, &token)| token != CUT) {
            starts[ends[token as usize]] = keyed(token, start as u64);
            ends[token as usize] += 1;
        }
        // Parts of the trie: n-grams are never in two of them, and the parts are in order.
        let wanted = (starts.len() / (4 * rayon::current_num_threads())).max(1);
        let (mut runs, mut rest, mut taken) = (Vec::new(), starts.as_mut_slice(), 0);
        for &end in &ends {
            if end - taken >= wanted {
                let (run, after) = std::mem::take(&mut rest).split_at_mut(end - taken);
                runs.push(run);
                (rest, taken) = (after, end);
            }
        }
        runs.push(rest);
        let counted = |run: &mut [u64]| {
            sort_equal(run, tokens, 0, order);
            let mut levels: [Level; MOST] = Default::default();
            count_sorted(run, tokens, order, &mut levels, |_| 1);
            levels
        };
        let parts: Vec<[Level; MOST]> = runs.into_par_iter().map(counted).collect();
        self.levels[0].first.push(0);
        for part in parts {
            let bases = self.levels.each_ref().map(|level| level.tokens.len() as u32);
            for ((level, of_part), base) in self.levels.iter_mut().zip(part).zip(bases) {
                level.tokens.extend(of_part.tokens);
                level.counts.extend(of_part.counts);
                level.first.extend(of_part.first.into_iter().map(|first| base + first));
            }
        }
        self.end_levels(order);
    }

    fn clear(&mut self) {
        self.kinds = Default::default();
        for level in &mut self.levels {
            level.tokens.clear();
            level.counts.clear();
            level.first.clear();
        }
        self.starts.clear();
    }

    /// Records the starts of the n-grams after the last ones.
    fn end_levels(&mut self, order: usize) {
        for level in self.levels.iter_mut().take(order) {
            level.first.push(level.tokens.len() as u32);
        }
    }

    /// Frees the counting buffers and the slack of the arrays.
    pub(super) fn shrink(&mut self) {
        self.starts = Vec::new();
        for level in &mut self.levels {
            level.tokens.shrink_to_fit();
            level.counts.shrink_to_fit();
            level.first.shrink_to_fit();
        }
    }

    /// Adds a token to a history of which the last `longest` tokens matter.
    pub(super) fn advance(&self, state: &mut TrieState, token: u32, longest: usize) {
        for depth in (0..longest.min(MOST - 1)).rev() {
            state.0[depth + 1] = state.0[depth].and_then(|node| {
                let range = self.children(depth, node);
                let tokens = &self.levels[depth].tokens[range.clone()];
                // The trie of a model has every token in its first level, each at its number.
                if depth == 0 && tokens.get(token as usize) == Some(&token) {
                    return Some(token);
                }
                tokens.binary_search(&token).ok().map(|at| (range.start + at) as u32)
            });
        }
    }

    /// The followers of the last `length` tokens of a history.
    pub(super) fn followers(&self, state: &TrieState, length: usize) -> Followers<'_> {
        let Some(node) = state.0[length] else { return Followers::default() };
        let range = self.children(length, node);
        let level = &self.levels[length];
        Followers { tokens: &level.tokens[range.clone()], counts: &level.counts[range] }
    }

    /// The followers of tokens of a kind, after [`Trie::sum_kind`] for it.
    pub(super) fn followers_of(&self, kind: Kind) -> Followers<'_> {
        let sums = self.kinds[kind as usize].as_ref();
        sums.map_or(Followers::default(), |(tokens, counts)| Followers { tokens, counts })
    }

    /// Adds up the followers of a kind's tokens.
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

    /// The places of the n-grams that are a token longer, in level `depth`.
    fn children(&self, depth: usize, node: u32) -> Range<usize> {
        // Level `depth` records the start of each parent's children.
        let bound = |at: usize| self.levels[depth].first.get(at).map_or(0, |&at| at as usize);
        bound(node as usize)..bound(node as usize + 1)
    }
}

/// Adds the n-grams at sorted places to levels; `times` is the number of occurrences at a place.
fn count_sorted(
    starts: &[u64],
    tokens: &[u32],
    order: usize,
    levels: &mut [Level; MOST],
    times: impl Fn(usize) -> u32,
) {
    let mut last: &[u32] = &[];
    for &key in starts {
        let start = key as u32 as usize;
        let end = tokens.len().min(start + order);
        let ngram = &tokens[start..end];
        let known = last.iter().zip(ngram).take_while(|(a, b)| a == b).count();
        let times = times(start);
        for (depth, &token) in ngram.iter().enumerate().take_while(|(_, token)| **token != CUT) {
            let level = &mut levels[depth];
            if depth < known
                && let Some(count) = level.counts.last_mut()
            {
                *count += times;
                continue;
            }
            level.tokens.push(token);
            level.counts.push(times);
            if depth + 1 < order {
                let longer = &mut levels[depth + 1];
                longer.first.push(longer.tokens.len() as u32);
            }
        }
        last = ngram;
    }
}

/// A place with a token to sort it by.
fn keyed(token: u32, start: u64) -> u64 {
    u64::from(token) << 32 | start
}

/// Sorts places by the next `order` tokens. The first `depth` are equal, and the places are keyed
/// by the next one.
fn sort(starts: &mut [u64], tokens: &[u32], depth: usize, order: usize) {
    starts.sort_unstable();
    sort_equal(starts, tokens, depth, order);
}

/// The same for places that are already sorted by the next token.
fn sort_equal(starts: &mut [u64], tokens: &[u32], depth: usize, order: usize) {
    if depth + 1 >= order {
        return;
    }
    for equal in starts.chunk_by_mut(|a, b| a >> 32 == b >> 32) {
        // Most n-grams are rare: a single one is already sorted.
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
mod tests;
