//! Learning byte-pair merges from words, in a time that does not depend on how long a word is.
//!
//! What is learned is what Hugging Face's `BpeTrainer` learns, merge by merge (the tests compare
//! the two). That one moves the rest of a word at each merge in it, which takes hours for a word
//! of a few megabytes: data in one line, or a run of one letter. Here the symbols of a word are
//! linked, and the places of a pair are remembered, so that a merge touches only what it changes.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

/// Two symbols, one after the other.
type Pair = (u32, u32);

/// No place, and the symbol of a place that has become a part of another one.
const NONE: u32 = u32::MAX;

/// Tokens by their number, and the pairs that become one, in the order in which they do.
pub(super) struct Learned {
    pub(super) tokens: Vec<String>,
    pub(super) merges: Vec<Pair>,
}

/// Learns from words and how often each occurs, until there are `vocab_size` tokens or no pair
/// occurs `least` times. The first tokens are the `alphabet`, which has all characters of the
/// words. `None` if the words have four billion characters or more.
pub(super) fn learn(
    words: &HashMap<String, u64>,
    alphabet: impl IntoIterator<Item = char>,
    vocab_size: usize,
    least: u64,
) -> Option<Learned> {
    let mut alphabet: Vec<char> = alphabet.into_iter().collect();
    alphabet.sort_unstable();
    alphabet.dedup();
    let tokens: Vec<String> = alphabet.iter().map(char::to_string).collect();
    let symbols: HashMap<char, u32> = alphabet.into_iter().zip(0..).collect();
    let text = Text::of(words, &symbols)?;
    let mut pairs = Pairs::of(&text);
    let mut training = Training { text, ids: HashMap::new(), tokens };
    training.ids = training.tokens.iter().cloned().zip(0..).collect();
    let mut merges = Vec::new();
    while training.tokens.len() < vocab_size {
        let Some(mut top) = pairs.queue.pop() else { break };
        let count = pairs.count(top.pair);
        if top.count != count {
            // It was queued before other merges took of it.
            top.count = count;
            pairs.queue.push(top);
            continue;
        }
        if count < least.max(1) {
            break;
        }
        let places = pairs.places_of(&top, &training.text);
        training.merge(top.pair, &places, &mut pairs);
        merges.push(top.pair);
    }
    Some(Learned { tokens: training.tokens, merges })
}

/// All words, symbol by symbol. Links lead from one symbol of a word to the next.
#[derive(Default)]
struct Text {
    symbol: Vec<u32>,
    next: Vec<u32>,
    previous: Vec<u32>,
    /// The word that a place is in.
    word: Vec<u32>,
    /// How often each word occurs.
    times: Vec<u64>,
}

impl Text {
    fn of(words: &HashMap<String, u64>, symbols: &HashMap<char, u32>) -> Option<Self> {
        let mut sorted: Vec<(&String, u64)> =
            words.iter().map(|(word, times)| (word, *times)).collect();
        sorted.sort_unstable();
        let mut text = Self::default();
        for (word, times) in sorted {
            let first = text.symbol.len();
            text.symbol.extend(word.chars().filter_map(|c| symbols.get(&c).copied()));
            let end = text.symbol.len();
            let number = u32::try_from(text.times.len()).ok()?;
            let last = u32::try_from(end).ok().filter(|end| *end < NONE)?;
            text.word.resize(end, number);
            text.times.push(times);
            let places = first as u32..last;
            text.previous.extend(places.clone().map(|at| at.wrapping_sub(1)));
            text.next.extend(places.clone().map(|at| at + 1));
            if !places.is_empty() {
                text.previous[first] = NONE;
                text.next[end - 1] = NONE;
            }
        }
        Some(text)
    }

    /// How often the word at a place occurs.
    fn times(&self, place: u32) -> i64 {
        self.times[self.word[place as usize] as usize] as i64
    }

    /// The place after one, with its symbol.
    fn after(&self, place: u32) -> Option<(u32, u32)> {
        let next = self.next[place as usize];
        (next != NONE).then(|| (next, self.symbol[next as usize]))
    }

    fn before(&self, place: u32) -> Option<(u32, u32)> {
        let previous = self.previous[place as usize];
        (previous != NONE).then(|| (previous, self.symbol[previous as usize]))
    }
}

/// What is known of a pair.
#[derive(Default)]
struct KnownPair {
    /// How often it occurred. Merging the pair itself takes nothing of it, as in the original.
    count: i64,
    /// Where it came to be; it need not be there any more.
    places: Vec<u32>,
}

/// A pair that waits for its turn, with the part of its places that it was queued for.
#[derive(PartialEq, Eq)]
struct Candidate {
    count: u64,
    pair: Pair,
    from: usize,
    to: usize,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // The most frequent first, and of those the pair of the older tokens.
        let key = |one: &Self| (one.count, Reverse((one.pair, one.from)));
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

struct Pairs {
    known: HashMap<Pair, KnownPair>,
    queue: BinaryHeap<Candidate>,
}

impl Pairs {
    fn of(text: &Text) -> Self {
        let mut known: HashMap<Pair, KnownPair> = HashMap::new();
        for place in 0..text.symbol.len() as u32 {
            if let Some((_, symbol)) = text.after(place) {
                let pair = known.entry((text.symbol[place as usize], symbol)).or_default();
                pair.count += text.times(place);
                pair.places.push(place);
            }
        }
        let mut pairs = Self { known, queue: BinaryHeap::new() };
        let all: Vec<Pair> = pairs.known.keys().copied().collect();
        all.into_iter().for_each(|pair| pairs.enqueue(pair, 0));
        pairs
    }

    fn count(&self, pair: Pair) -> u64 {
        let count = self.known.get(&pair).map_or(0, |known| known.count);
        u64::try_from(count).unwrap_or_default()
    }

    /// Queues the places of a pair from `from` on.
    fn enqueue(&mut self, pair: Pair, from: usize) {
        let count = self.count(pair);
        let to = self.known.get(&pair).map_or(0, |known| known.places.len());
        if count > 0 {
            self.queue.push(Candidate { count, pair, from, to });
        }
    }

    /// The places at which a pair is merged, from left to right: all those in words that it was
    /// queued for. Two ways to one token, such as `a` `bc` and `ab` `c`, queue a pair twice.
    fn places_of(&mut self, candidate: &Candidate, text: &Text) -> Vec<u32> {
        let Some(known) = self.known.get_mut(&candidate.pair) else { return Vec::new() };
        let mut places = if (candidate.from, candidate.to) == (0, known.places.len()) {
            std::mem::take(&mut known.places)
        } else {
            let word = |place: &u32| text.word[*place as usize];
            let part = known.places.get(candidate.from..candidate.to).unwrap_or_default();
            let words: HashSet<u32> = part.iter().map(word).collect();
            let places = known.places.iter().copied();
            places.filter(|place| words.contains(&word(place))).collect()
        };
        places.sort_unstable();
        places.dedup();
        places
    }
}

/// The state between two merges.
struct Training {
    text: Text,
    tokens: Vec<String>,
    ids: HashMap<String, u32>,
}

impl Training {
    /// Makes one token of a pair at those of the places where it still is.
    fn merge(&mut self, pair: Pair, places: &[u32], pairs: &mut Pairs) {
        let merged = self.token(pair);
        let text = &mut self.text;
        let mut formed: HashMap<Pair, Vec<u32>> = HashMap::new();
        let mut lose = |lost: Pair, times: i64| pairs.known.entry(lost).or_default().count -= times;
        let mut gained: HashMap<Pair, i64> = HashMap::new();
        for &place in places {
            if text.symbol[place as usize] != pair.0 {
                continue;
            }
            let Some((second, _)) = text.after(place).filter(|(_, symbol)| *symbol == pair.1)
            else {
                continue;
            };
            let times = text.times(place);
            if let Some((before, symbol)) = text.before(place) {
                lose((symbol, pair.0), times);
                *gained.entry((symbol, merged)).or_default() += times;
                formed.entry((symbol, merged)).or_default().push(before);
            }
            let after = text.after(second);
            text.symbol[place as usize] = merged;
            text.symbol[second as usize] = NONE;
            text.next[place as usize] = after.map_or(NONE, |(after, _)| after);
            if let Some((after, symbol)) = after {
                text.previous[after as usize] = place;
                lose((pair.1, symbol), times);
                *gained.entry((merged, symbol)).or_default() += times;
                formed.entry((merged, symbol)).or_default().push(place);
            }
        }
        for (pair, times) in gained {
            pairs.known.entry(pair).or_default().count += times;
        }
        for (pair, places) in formed {
            let known = pairs.known.entry(pair).or_default();
            let from = known.places.len();
            known.places.extend(places);
            pairs.enqueue(pair, from);
        }
    }

    /// The number of the token that a pair becomes. Two pairs may become the same one.
    fn token(&mut self, (first, second): Pair) -> u32 {
        let text = [self.tokens[first as usize].as_str(), &self.tokens[second as usize]].concat();
        let next = self.tokens.len() as u32;
        *self.ids.entry(text).or_insert_with_key(|text| {
            self.tokens.push(text.clone());
            next
        })
    }
}
