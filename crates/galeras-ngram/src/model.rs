//! The trained model.
//!
//! Here: training, and which training texts are left out for a completion. Not here: n-gram
//! counts themselves (`trie`), writing completions (`complete`).

use std::collections::HashMap;

use super::text_hash::TextHash;
use super::tokens::{Kind, split};
use super::trie::{MOST, Trie};
use super::vocabulary::{BEGIN, CUT, END, Vocabulary};

/// A token n-gram model of some texts. It is not changed by use, so threads may share it.
///
/// Texts are a multiset: a text that occurs twice counts twice.
pub struct NgramModel {
    pub(super) order: usize,
    pub(super) vocabulary: Vocabulary,
    pub(super) trie: Trie,
    /// The kind of each numbered token.
    pub(super) kinds: Vec<Kind>,
    /// How often each text occurs, by its digest. Ascending.
    texts: Vec<(Digest, u32)>,
    count: u64,
}

/// Half of BLAKE3: enough that two texts never have the same by chance.
type Digest = [u8; 16];

/// There are 2^32 - 1 tokens or more, with three marks for each text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

impl std::fmt::Display for TooLong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the training texts have more than four billion tokens")
    }
}

impl std::error::Error for TooLong {}

impl NgramModel {
    /// Six tokens: longer n-grams hardly occur twice outside of copied code.
    pub const DEFAULT_ORDER: usize = 6;

    /// Counts the n-grams of up to `order` tokens; an order outside of 2..=8 is taken as the
    /// nearest one inside.
    ///
    /// The model is the same for the texts in any order. Time and memory are linear in their
    /// tokens times the order.
    ///
    /// # Errors
    /// [`TooLong`] if the texts have 2^32 - 1 tokens or more, three marks per text included.
    pub fn train(order: usize, texts: &[&str]) -> Result<Self, TooLong> {
        let order = order.clamp(2, MOST);
        let mut seen: HashMap<&str, u32, TextHash> = HashMap::with_hasher(TextHash::new());
        let mut tokens = Vec::new();
        for text in texts {
            tokens.push(BEGIN);
            for token in split(text) {
                let next = END + 1 + seen.len() as u32;
                tokens.push(*seen.entry(token).or_insert(next));
            }
            tokens.extend([END, CUT]);
            if tokens.len() >= CUT as usize {
                return Err(TooLong);
            }
        }
        let (vocabulary, numbers) = Vocabulary::new(seen);
        for token in &mut tokens {
            *token = numbers.get(*token as usize).copied().unwrap_or(CUT);
        }
        let mut trie = Trie::default();
        trie.count(&tokens, order);
        trie.shrink();
        let kinds: Vec<Kind> =
            (0..vocabulary.len()).map(|token| Kind::of(vocabulary.text(token))).collect();
        for kind in [Kind::Line, Kind::Space, Kind::Word, Kind::Number, Kind::Sign] {
            trie.sum_kind(kind, |token| kinds.get(token as usize).copied().unwrap_or(Kind::Begin));
        }
        let mut digests: Vec<Digest> = texts.iter().map(|text| digest(text)).collect();
        digests.sort_unstable();
        let texts = digests.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u32));
        Ok(Self {
            order,
            vocabulary,
            trie,
            kinds,
            texts: texts.collect(),
            count: digests.len() as u64,
        })
    }

    /// The length of the longest n-grams in tokens, from 2 to 8.
    pub fn order(&self) -> usize {
        self.order
    }

    /// How many texts the model was trained on; a text that occurs twice counts twice.
    pub fn texts(&self) -> u64 {
        self.count
    }

    /// Counts the n-grams of those texts of `own` that are in the model: each as often as it
    /// is to be left out, at most as often as it is in the model. Returns how many texts remain.
    ///
    /// However often a text is left out, it is read once.
    pub(super) fn count_own(&self, own: &[(&str, u32)], left_out: &mut LeftOut) -> u64 {
        let LeftOut { tokens, times, trie } = left_out;
        tokens.clear();
        times.clear();
        let mut taken: HashMap<Digest, u32> = HashMap::new();
        let mut remaining = self.count;
        for (text, wanted) in own {
            let digest = digest(text);
            let Ok(at) = self.texts.binary_search_by_key(&digest, |&(digest, _)| digest) else {
                continue;
            };
            let taken = taken.entry(digest).or_default();
            let more = (*wanted).min(self.texts[at].1 - *taken);
            if more == 0 {
                continue;
            }
            *taken += more;
            remaining -= u64::from(more);
            tokens.push(BEGIN);
            tokens.extend(split(text).filter_map(|token| self.vocabulary.find(token)));
            tokens.extend([END, CUT]);
            times.resize(tokens.len(), more);
        }
        trie.count_repeated(tokens, times, self.order);
        remaining
    }
}

/// The n-grams of texts that are left out, and the buffers of counting them.
#[derive(Default)]
pub(super) struct LeftOut {
    tokens: Vec<u32>,
    /// For each token, how many equal texts it stands for.
    times: Vec<u32>,
    pub(super) trie: Trie,
}

fn digest(text: &str) -> Digest {
    let mut digest = Digest::default();
    digest.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..16]);
    digest
}
