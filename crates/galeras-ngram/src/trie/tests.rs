//! Compares counts with naive ones and links with searches.

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
fn linked_tries_are_those_of_one_thread_and_links_leave_the_first_token_out() {
    let mut state = 11_u64;
    for order in 2..=MOST {
        let tokens = random_tokens(&mut state, 5000, 9);
        let (mut linked, mut plain) = (Trie::default(), Trie::default());
        linked.count_linked(&[1, 1, CUT], 2, 2);
        linked.count_linked(&tokens, order, 9);
        plain.count(&tokens, order, |_| 1);
        assert_eq!(linked.levels, plain.levels);
        assert_eq!(linked.links.len(), linked.levels[order - 1].tokens.len());
        // Histories of known and of unknown tokens.
        let (mut path, mut searched) = (TriePath::START, TrieState::START);
        let mut lengths = [0; MOST];
        for (at, &token) in tokens.iter().enumerate() {
            let token = if at % 97 == 0 { 1000 } else { token };
            linked.follow(&mut path, token, order - 1);
            plain.advance(&mut searched, token, order - 1);
            // Not all lengths are requested after each token.
            for length in (if at % 3 == 0 { 0 } else { order - 1 }..order).rev() {
                let followers = linked.followers_on(&mut path, length, order);
                let wanted = plain.followers(&searched, length);
                assert_eq!(followers.tokens, wanted.tokens, "{order} {at} {length}");
                assert_eq!(followers.counts, wanted.counts);
                lengths[length] += wanted.tokens.len();
            }
        }
        assert!(lengths[..order].iter().all(|&followers| followers > 0), "{lengths:?}");
    }
    let mut empty = Trie::default();
    empty.count_linked(&[], 3, 2);
    let mut path = TriePath::START;
    assert!(empty.followers_on(&mut path, 0, 3).tokens.is_empty());
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
