//! Compares counts with naive ones.

use std::collections::HashMap;

use super::*;

/// Sequences of tokens below `kinds`.
fn random_tokens(state: &mut u64, count: usize, kinds: u32) -> Vec<u32> {
    let mut next = || {
        *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        if *state >> 60 == 0 { CUT } else { (*state >> 40) as u32 % kinds }
    };
    (0..count).map(|_| next()).chain([CUT]).collect()
}

#[test]
fn counts_are_those_of_counting_naively() {
    for order in 2..=MOST {
        let tokens = random_tokens(&mut 7, 3000, 7);
        let mut trie = Trie::default();
        trie.count(&[3, 3, CUT], 2, |_| 1);
        trie.count(&tokens, order, |_| 1);
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
            let mut state = TrieState::START;
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
    short.count(&tokens, 4, |at| times[at]);
    long.count(&written_out, 4, |_| 1);
    assert_eq!(short.levels, long.levels);
}

#[test]
fn counts_of_many_threads_are_those_of_one() {
    let mut state = 11_u64;
    for order in 2..=MOST {
        let tokens = random_tokens(&mut state, 5000, 9);
        let (mut parallel, mut plain) = (Trie::default(), Trie::default());
        parallel.count_parallel(&[1, 1, CUT], 2, 2);
        parallel.count_parallel(&tokens, order, 9);
        plain.count(&tokens, order, |_| 1);
        assert_eq!(parallel.levels, plain.levels);
    }
    let mut empty = Trie::default();
    empty.count_parallel(&[], 3, 2);
    assert!(empty.followers(&TrieState::START, 0).tokens.is_empty());
}

#[test]
fn an_empty_trie_knows_nothing() {
    let mut trie = Trie::default();
    let mut state = TrieState::START;
    for _ in 0..2 {
        trie.advance(&mut state, 1, 5);
        assert!((0..6).all(|length| trie.followers(&state, length).tokens.is_empty()));
        trie.count(&[], 6, |_| 1);
        state = TrieState::START;
    }
}
