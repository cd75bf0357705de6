//! Changes of inputs without a fuzzer: the same ones in every run, for `cargo test`.

/// Changes inputs at random, from its seed.
#[derive(Clone, Debug)]
pub struct Mutator(u64);

/// No input gets longer.
const LONGEST: usize = 4096;

/// Bytes at which formats change their mind.
const TELLING: [u8; 16] =
    [0, 1, 0x7f, 0x80, 0xff, b'\n', b'\r', b' ', b'"', b'\'', b'\\', b'{', b'}', b'-', b'0', b':'];

impl Mutator {
    /// A mutator that makes the same changes as every other one of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// An input made of one of `corpus`, with up to eight changes; `words` are put into some.
    pub fn next_input(&mut self, corpus: &[&[u8]], words: &[Vec<u8>]) -> Vec<u8> {
        let mut input = match corpus {
            [] => Vec::new(),
            files => files[self.below(files.len())].to_vec(),
        };
        for _ in 0..=self.below(8) {
            self.change(&mut input, corpus, words);
        }
        input.truncate(LONGEST);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, corpus: &[&[u8]], words: &[Vec<u8>]) {
        let at = self.below(input.len() + 1);
        let most = 1 + self.below(32);
        let length = 1 + self.below(most);
        let end = (at + length).min(input.len());
        match self.below(10) {
            0 if at < input.len() => input[at] ^= 1 << self.below(8),
            1 if at < input.len() => input[at] = self.bits() as u8,
            2 if at < input.len() => input[at] = TELLING[self.below(TELLING.len())],
            3 => drop(input.drain(at..end)),
            4 => {
                let piece = input[at..end].to_vec();
                let to = self.below(input.len() + 1);
                drop(input.splice(to..to, piece));
            }
            5 => input.insert(at, TELLING[self.below(TELLING.len())]),
            6 => input.truncate(at),
            7 if !corpus.is_empty() => {
                let other = corpus[self.below(corpus.len())];
                let from = self.below(other.len() + 1);
                let to = (from + 4 * length).min(other.len());
                drop(input.splice(at..at, other[from..to].iter().copied()));
            }
            8 if at < input.len() => {
                // A number one higher, lower, or far off.
                let byte = [input[at].wrapping_add(1), input[at].wrapping_sub(1), b'9'];
                input[at] = byte[self.below(3)];
            }
            _ if !words.is_empty() => {
                let word = &words[self.below(words.len())];
                drop(input.splice(at..at, word.iter().copied()));
            }
            _ => input.push(self.bits() as u8),
        }
    }

    fn below(&mut self, limit: usize) -> usize {
        ((self.bits() >> 33) as usize) % limit.max(1)
    }

    /// Xorshift (Marsaglia 2003), times an odd number.
    fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}
