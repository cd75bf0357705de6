//! The trained model: training, and texts to leave out of a completion.

use std::ops::Range;

use hashbrown::HashMap;
use rayon::prelude::{
    IntoParallelIterator, IntoParallelRefIterator, ParallelIterator, ParallelSlice,
};

use super::tokens::{Kind, split, unspaced};
use super::trie::{MOST, Trie};
use super::vocabulary::{BEGIN, CUT, END, UNKNOWN, Vocabulary};

/// A token n-gram model of some texts. Use does not change it, so threads may share it.
///
/// Texts are a multiset: a text that occurs twice counts twice.
pub struct NgramModel {
    pub(super) order: usize,
    pub(super) vocabulary: Vocabulary,
    pub(super) trie: Trie,
    pub(super) kinds: Vec<Kind>,
    /// For each token, its form with or without the single space before it; [`UNKNOWN`] if there is
    /// none.
    pub(super) counterparts: Vec<u32>,
    /// The texts, ascending by digest.
    texts: Vec<TrainingText>,
    /// Their tokens: [`BEGIN`], the tokens of the text, [`END`], [`CUT`].
    tokens: Vec<u32>,
    count: u64,
}

/// A training text.
struct TrainingText {
    digest: Digest,
    times: u32,
    /// The range of its tokens.
    place: Range<u32>,
}

/// Half of BLAKE3: enough to avoid accidental collisions.
type Digest = [u8; 16];

/// There are 2^32 - 1 tokens or more, with three marks for each text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the training texts have more than four billion tokens")]
pub struct TooLong;

impl NgramModel {
    /// Six tokens: longer n-grams rarely occur twice except in copied code.
    pub const DEFAULT_ORDER: usize = 6;

    /// Counts the n-grams of up to `order` tokens; the order is clamped to 2..=8.
    ///
    /// The model does not depend on the order of the texts or the number of threads, which are
    /// those of the caller's rayon pool. Time and memory are linear in the tokens times the order.
    ///
    /// # Errors
    /// [`TooLong`] if the texts have 2^32 - 1 tokens or more, including three marks per text.
    pub fn train(order: usize, texts: &[&str]) -> Result<Self, TooLong> {
        let order = order.clamp(2, MOST);
        let shares = texts.par_chunks(texts.len().div_ceil(rayon::current_num_threads()).max(1));
        let shares = shares.map(SplitTexts::of).collect::<Result<Vec<_>, TooLong>>()?;
        let mut words: Vec<&str> =
            shares.iter().flat_map(|share| share.words.iter().copied()).collect();
        words.sort_unstable();
        words.dedup();
        let vocabulary = Vocabulary::new(&words);
        let mut tokens = Vec::new();
        let mut places = Vec::with_capacity(texts.len());
        for share in &shares {
            let numbers: Vec<u32> =
                share.words.iter().map(|word| vocabulary.find(word).unwrap_or(CUT)).collect();
            let number = |&token: &u32| match token {
                BEGIN | END | CUT => token,
                _ => numbers.get((token - END - 1) as usize).copied().unwrap_or(CUT),
            };
            if tokens.len() + share.tokens.len() >= CUT as usize {
                return Err(TooLong);
            }
            let mut start = tokens.len() as u32;
            tokens.extend(share.tokens.iter().map(number));
            places.extend(share.lengths.iter().map(|length| {
                let place = start..start + length;
                start = place.end;
                place
            }));
        }
        drop(shares);
        let mut trie = Trie::default();
        trie.count_parallel(&tokens, order, vocabulary.len());
        trie.shrink();
        let kinds: Vec<Kind> =
            (0..vocabulary.len()).map(|token| Kind::of(vocabulary.text(token))).collect();
        for kind in [Kind::Line, Kind::Space, Kind::Word, Kind::Number, Kind::Sign] {
            trie.sum_kind(kind, |token| kinds.get(token as usize).copied().unwrap_or(Kind::Begin));
        }
        let counterparts = counterparts(&vocabulary);
        let digests = texts.par_iter().map(|text| digest(text)).collect::<Vec<_>>();
        let mut digests: Vec<(Digest, Range<u32>)> = digests.into_iter().zip(places).collect();
        digests.sort_unstable_by_key(|(digest, place)| (*digest, place.start));
        let known = digests.chunk_by(|a, b| a.0 == b.0).map(|same| TrainingText {
            digest: same[0].0,
            times: same.len() as u32,
            place: same[0].1.clone(),
        });
        let texts = known.collect();
        let count = digests.len() as u64;
        Ok(Self { order, vocabulary, trie, kinds, counterparts, texts, tokens, count })
    }

    /// The length of the longest n-grams in tokens, from 2 to 8.
    pub fn order(&self) -> usize {
        self.order
    }

    /// The number of training texts; a text that occurs twice counts twice.
    pub fn texts(&self) -> u64 {
        self.count
    }

    /// Counts the n-grams of those texts of `own` that are in the model: each as often as it is to
    /// be left out, but not more often than it is in the model. Returns the number of remaining
    /// texts.
    ///
    /// A text is read once, however often it is left out.
    pub(super) fn count_own(&self, own: &[(&str, u32)], left_out: &mut ExcludedTexts) -> u64 {
        let ExcludedTexts { tokens, times, trie } = left_out;
        tokens.clear();
        times.clear();
        // The number of each text; `own` lists few texts, or each of them once.
        let mut taken: HashMap<usize, u32> = HashMap::new();
        let mut remaining = self.count;
        for (text, wanted) in own {
            let digest = digest(text);
            let Ok(at) = self.texts.binary_search_by_key(&digest, |known| known.digest) else {
                continue;
            };
            let known = &self.texts[at];
            let taken = taken.entry(at).or_default();
            let more = (*wanted).min(known.times - *taken);
            if more == 0 {
                continue;
            }
            *taken += more;
            remaining -= u64::from(more);
            tokens.extend_from_slice(
                &self.tokens[known.place.start as usize..known.place.end as usize],
            );
            times.resize(tokens.len(), more);
        }
        trie.count(tokens, self.order, |at| times[at]);
        remaining
    }
}

/// The n-grams of the texts to leave out, and buffers for counting them.
#[derive(Default)]
pub(super) struct ExcludedTexts {
    tokens: Vec<u32>,
    /// For each token, the number of equal texts that it represents.
    times: Vec<u32>,
    pub(super) trie: Trie,
}

/// The texts that one thread splits.
struct SplitTexts<'a> {
    /// The tokens of the texts, numbered from `END + 1` on in the order of `words`, with marks.
    tokens: Vec<u32>,
    /// The lengths of the texts, with marks.
    lengths: Vec<u32>,
    words: Vec<&'a str>,
}

impl<'a> SplitTexts<'a> {
    fn of(texts: &[&'a str]) -> Result<Self, TooLong> {
        let mut numbers = HashMap::new();
        let (mut tokens, mut lengths, mut words) = (Vec::new(), Vec::new(), Vec::new());
        for text in texts {
            let before = tokens.len();
            tokens.push(BEGIN);
            for token in split(text) {
                let number = *numbers.entry(token).or_insert_with(|| {
                    words.push(token);
                    END + words.len() as u32
                });
                tokens.push(number);
            }
            tokens.extend([END, CUT]);
            if tokens.len() >= CUT as usize {
                return Err(TooLong);
            }
            lengths.push((tokens.len() - before) as u32);
        }
        Ok(Self { tokens, lengths, words })
    }
}

/// For each token, its form with or without the single space before it.
fn counterparts(vocabulary: &Vocabulary) -> Vec<u32> {
    let counterpart = |number| {
        let token = vocabulary.text(number);
        let name = unspaced(token);
        let other = match name.len() == token.len() {
            true => vocabulary.find(&[" ", name].concat()),
            false => vocabulary.find(name),
        };
        other.unwrap_or(UNKNOWN)
    };
    (0..vocabulary.len()).into_par_iter().map(counterpart).collect()
}

fn digest(text: &str) -> Digest {
    let mut digest = Digest::default();
    digest.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..16]);
    digest
}
