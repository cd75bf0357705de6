//! The committed inputs of a target, its words, and changes of inputs without a fuzzer, the same
//! ones in every run.

use std::fs;
use std::path::{Path, PathBuf};

/// A committed input.
#[derive(Clone, Debug)]
pub struct CorpusFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// The committed inputs of a target, in the order of their names; `root` is the folder `fuzz`.
///
/// # Errors
/// If the folder or a file cannot be read.
pub fn corpus(root: &Path, target: &str) -> std::io::Result<Vec<CorpusFile>> {
    let mut paths = fs::read_dir(root.join("corpus").join(target))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<Vec<PathBuf>>>()?;
    paths.sort();
    paths.into_iter().map(|path| fs::read(&path).map(|bytes| CorpusFile { path, bytes })).collect()
}

/// The words that inputs of a target are made of, from its dictionary in libFuzzer's form: a
/// quoted text per line, with `\\`, `\"` and `\xAB`. None without a file.
pub fn dictionary(root: &Path, target: &str) -> Vec<Vec<u8>> {
    let path = root.join("dictionaries").join(format!("{target}.dict"));
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(word).collect()
}

fn word(line: &str) -> Option<Vec<u8>> {
    let quoted = line.trim().strip_prefix('"')?.strip_suffix('"')?;
    let mut bytes = Vec::new();
    let mut rest = quoted.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'\\' => match rest.next()? {
                b'x' => {
                    let digits = [rest.next()?, rest.next()?];
                    u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
                }
                escaped => escaped,
            },
            byte => byte,
        });
    }
    Some(bytes)
}

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
