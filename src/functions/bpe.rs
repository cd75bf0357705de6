//! Byte-level byte-pair encoding: a model is learned from texts, and texts become token ids.
//!
//! Models and training are those of Hugging Face's `tokenizers`; a model is the content of a
//! `tokenizer.json`, so that Python loads it, and one from Python works here. What tokens are
//! used for is the caller's.

use tokenizers::Tokenizer;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::models::{ModelWrapper, TrainerWrapper};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;

/// The bytes, each of which is a token: no vocabulary is smaller.
pub const MIN_VOCAB: usize = 256;

/// Ids are places in a table, so that a model with larger ones is refused.
const MAX_VOCAB: usize = 16 << 20;

/// A pair of tokens that occurs once is not worth a token of its own (the default of
/// `ByteLevelBPETokenizer.train`).
const MIN_FREQUENCY: u64 = 2;

/// Why a model cannot be trained, read or used.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BpeError(String);

impl BpeError {
    fn new(error: &dyn std::fmt::Display) -> Self {
        Self(error.to_string())
    }
}

/// Learns a byte-level BPE of at most `vocab_size` tokens, without special tokens.
///
/// Equal texts give the same model in any order and on any number of threads: pairs are merged
/// by their number, and of equally frequent ones the pair of the older tokens first.
///
/// # Errors
/// [`BpeError`] if the trainer fails, or if the model has more ids than are allowed.
pub fn train(
    texts: impl Iterator<Item = String> + Send,
    vocab_size: usize,
) -> Result<Bpe, BpeError> {
    let mut trainer: TrainerWrapper = BpeTrainer::builder()
        .show_progress(false)
        .vocab_size(vocab_size)
        .min_frequency(MIN_FREQUENCY)
        .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
        .build()
        .into();
    let mut tokenizer = Tokenizer::new(BPE::default());
    tokenizer
        .with_pre_tokenizer(Some(ByteLevel::default().add_prefix_space(false)))
        .with_decoder(Some(ByteLevel::default()));
    tokenizer.train(&mut trainer, texts).map_err(|e| BpeError::new(&e))?;
    Bpe::new(tokenizer)
}

/// A model.
#[derive(Clone, Debug)]
pub struct Bpe {
    tokenizer: Tokenizer,
    /// By token id: whether it is (part of) a word.
    words: Vec<bool>,
}

impl Bpe {
    /// The model in the content of a `tokenizer.json`, of any kind that `tokenizers` knows.
    /// Truncation, padding and dropout, which is random, are left out.
    ///
    /// # Errors
    /// [`BpeError`] if the text is not a model, or if its ids are larger than allowed.
    pub fn from_json(json: &str) -> Result<Self, BpeError> {
        let mut tokenizer: Tokenizer = json.parse().map_err(|e| BpeError::new(&e))?;
        if let ModelWrapper::BPE(model) = tokenizer.get_model()
            && model.dropout.is_some()
        {
            let mut certain = model.clone();
            certain.dropout = None;
            tokenizer.with_model(certain);
        }
        tokenizer.with_padding(None).with_truncation(None).map_err(|e| BpeError::new(&e))?;
        Self::new(tokenizer)
    }

    fn new(tokenizer: Tokenizer) -> Result<Self, BpeError> {
        let vocabulary = tokenizer.get_vocab(true);
        let size = vocabulary.values().max().map_or(0, |last| *last as usize + 1);
        if size > MAX_VOCAB {
            return Err(BpeError(format!("token ids go up to {size}; {MAX_VOCAB} are allowed")));
        }
        let mut words = vec![false; size];
        for (token, id) in vocabulary {
            words[id as usize] = is_word(&token);
        }
        Ok(Self { tokenizer, words })
    }

    /// The content of the `tokenizer.json`.
    ///
    /// # Errors
    /// [`BpeError`] if the model cannot be written as JSON.
    pub fn to_json(&self) -> Result<String, BpeError> {
        self.tokenizer.to_string(true).map_err(|e| BpeError::new(&e))
    }

    /// The number of tokens.
    pub fn vocab_size(&self) -> usize {
        self.words.len()
    }

    /// The ids of the tokens of `text` into `ids`, which is cleared; with `words_only` those that
    /// are (parts of) words.
    ///
    /// A token is one if it starts with a Latin letter or an underscore, white space in front
    /// aside. (`dpu_utils` looks at the token as it is written, `Ġself`, and so loses every word
    /// that follows a space.)
    ///
    /// # Errors
    /// [`BpeError`] if the model cannot split the text.
    pub fn encode(&self, text: &str, words_only: bool, ids: &mut Vec<u32>) -> Result<(), BpeError> {
        ids.clear();
        let encoding = self.tokenizer.encode_fast(text, false).map_err(|e| BpeError::new(&e))?;
        let wanted = |id: &&u32| !words_only || self.words.get(**id as usize) == Some(&true);
        ids.extend(encoding.get_ids().iter().filter(wanted));
        Ok(())
    }
}

/// Whether a token is (part of) a word. Byte-level models write a space as `Ġ`, a line feed as
/// `Ċ`, a carriage return as `č` and a tab as `ĉ`; SentencePiece writes a space as `▁`.
fn is_word(token: &str) -> bool {
    let rest = token.trim_start_matches(['Ġ', 'Ċ', 'č', 'ĉ', '▁', ' ', '\t', '\n', '\r']);
    rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts() -> Vec<String> {
        (0..200).map(|i| format!("def name_{i}(self):\n\treturn self.value + {i}\n")).collect()
    }

    #[test]
    fn the_order_of_texts_does_not_matter() {
        let one = train(texts().into_iter(), 300).unwrap().to_json().unwrap();
        let other = train(texts().into_iter().rev(), 300).unwrap().to_json().unwrap();
        assert_eq!(one, other);
        let read = Bpe::from_json(&one).unwrap();
        assert_eq!(read.vocab_size(), 300);
        assert_eq!(read.to_json().unwrap(), one);
    }

    #[test]
    fn tokens_give_the_text_back_and_words_are_told_from_the_rest() {
        let bpe = train(texts().into_iter(), 300).unwrap();
        let text = "def ñ(self):\r\n\treturn 世界";
        let mut ids = Vec::new();
        bpe.encode(text, false, &mut ids).unwrap();
        assert_eq!(bpe.tokenizer.decode(&ids, false).unwrap(), text);
        bpe.encode(" self", true, &mut ids).unwrap();
        assert_eq!(ids.len(), 1, "`Ġself` is a word");
        bpe.encode("(): 12 \u{f1}", true, &mut ids).unwrap();
        assert_eq!(ids, [] as [u32; 0]);
    }

    #[test]
    fn dropout_is_left_out() {
        let json = train(texts().into_iter(), 300).unwrap().to_json().unwrap();
        let random = json.replace("\"dropout\": null", "\"dropout\": 0.9");
        assert_ne!(random, json);
        assert_eq!(Bpe::from_json(&random).unwrap().to_json().unwrap(), json);
    }

    #[test]
    fn no_text_at_all_gives_the_bytes() {
        assert_eq!(train(std::iter::empty(), 1024).unwrap().vocab_size(), MIN_VOCAB);
    }
}
