//! Byte-level byte-pair encoding: a model is learned from texts, and texts become token ids.
//!
//! Models are those of Hugging Face's `tokenizers`, and so is the training. A model is the content of
//! a `tokenizer.json`, so that Python loads it, and one from Python works here.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tokenizers::models::ModelWrapper;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{
    OffsetReferential, OffsetType, PostProcessorWrapper, PreTokenizedString, PreTokenizer,
    Result as TokenizersResult, Tokenizer, Trainer as _,
};

/// The bytes, each of which is a token: no vocabulary is smaller.
pub const MIN_VOCAB: usize = 256;

/// Ids are places in a table, so that a model with larger ones is refused.
const MAX_VOCAB: usize = 16 << 20;

/// A pair of tokens that occurs once is not worth a token (the default of
/// `ByteLevelBPETokenizer.train`).
const MIN_FREQUENCY: u64 = 2;

/// Longer texts are read in pieces of at most so many bytes, as each byte of a text takes hundreds of
/// bytes while it is read. `mine` gives no longer files.
const PIECE: usize = 4 << 20;

/// Longer words are learned in parts of so many characters: the trainer moves the rest of a word at
/// each merge in it, which takes hours for a word of a few megabytes.
const LONGEST_WORD: usize = 1_000;

/// The longest word that WordPiece may look into, in characters, by default 100: it takes the cube of
/// that in time.
const WORD_PIECE: usize = 256;

/// Why a model cannot be trained, read or used.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BpeError(String);

impl From<tokenizers::Error> for BpeError {
    fn from(error: tokenizers::Error) -> Self {
        Self(error.to_string())
    }
}

/// Learns a byte-level BPE of at most `vocab_size` tokens, without special tokens.
///
/// Equal texts give the same model in any order and on any number of threads: pairs are merged
/// by their number, and of equally frequent ones the pair of the older tokens first.
///
/// A word of more than 1,000 characters is learned in parts: no token is learned across them.
///
/// # Errors
/// [`BpeError`] if the texts cannot be split, or if the model has more ids than are allowed.
pub fn train(
    texts: impl Iterator<Item = String> + Send,
    vocab_size: usize,
) -> Result<Bpe, BpeError> {
    let splitter = ByteLevel::default().add_prefix_space(false);
    let mut trainer = BpeTrainer::builder()
        .show_progress(false)
        .vocab_size(vocab_size)
        .min_frequency(MIN_FREQUENCY)
        .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
        .build();
    let mut bpe = BPE::default();
    trainer.feed(texts, |text| words_of(&splitter, text)).and_then(|()| trainer.train(&mut bpe))?;
    let mut tokenizer = Tokenizer::new(bpe);
    tokenizer.with_pre_tokenizer(Some(splitter)).with_decoder(Some(ByteLevel::default()));
    Bpe::new(tokenizer)
}

/// The words of a text, in the letters that represent bytes.
fn words_of(splitter: &ByteLevel, text: &str) -> TokenizersResult<Vec<String>> {
    let mut words = Vec::new();
    for piece in pieces(text, PIECE) {
        let mut split = PreTokenizedString::from(piece);
        splitter.pre_tokenize(&mut split)?;
        for (word, _, _) in split.get_splits(OffsetReferential::Original, OffsetType::Byte) {
            // A letter has at most two bytes.
            if word.len() <= LONGEST_WORD {
                words.push(word.to_string());
                continue;
            }
            let letters: Vec<char> = word.chars().collect();
            words.extend(letters.chunks(LONGEST_WORD).map(|part| part.iter().collect::<String>()));
        }
    }
    Ok(words)
}

/// A text in pieces of at most `most` bytes. A cut is before the last line break that does not follow
/// white space, where words end; without one, it is at the end of the piece.
fn pieces(text: &str, most: usize) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        if text.len() <= most {
            return Some(text);
        }
        let end = text.floor_char_boundary(most);
        let (piece, _) = text.split_at(end);
        let follows_a_word = |at: &usize| piece[..*at].ends_with(|c: char| !c.is_whitespace());
        let breaks = piece.rmatch_indices('\n').map(|(at, _)| at);
        let cut = breaks.take_while(|at| *at > 0).find(follows_a_word).unwrap_or(end);
        let (piece, after) = text.split_at(cut);
        rest = Some(after);
        Some(piece)
    })
}

/// A model.
#[derive(Clone, Debug)]
pub struct Bpe {
    tokenizer: Tokenizer,
    /// By token id: whether it is (part of) a word.
    words: Vec<bool>,
}

impl Bpe {
    /// The model in the content of a `tokenizer.json`, of any kind that `tokenizers` knows, without
    /// truncation, padding, post-processor and dropout, which is random.
    ///
    /// # Errors
    /// [`BpeError`] if the text is not a model, or if its ids or words are larger than allowed.
    pub fn from_json(json: &str) -> Result<Self, BpeError> {
        let mut tokenizer: Tokenizer = unwound(|| json.parse())?;
        if let ModelWrapper::WordPiece(model) = tokenizer.get_model()
            && model.max_input_chars_per_word > WORD_PIECE
        {
            let most = model.max_input_chars_per_word;
            let message = format!("`max_input_chars_per_word` is {most}; {WORD_PIECE} are allowed");
            return Err(BpeError(message));
        }
        tokenizer.with_post_processor(None::<PostProcessorWrapper>);
        if let ModelWrapper::BPE(model) = tokenizer.get_model()
            && model.dropout.is_some()
        {
            let mut certain = model.clone();
            certain.dropout = None;
            tokenizer.with_model(ModelWrapper::BPE(certain));
        }
        tokenizer.with_padding(None).with_truncation(None)?;
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
        Ok(self.tokenizer.to_string(true)?)
    }

    /// The number of tokens.
    pub fn vocab_size(&self) -> usize {
        self.words.len()
    }

    /// The ids of the tokens of `text` into `ids`, which is cleared; with `words_only` those that
    /// are (parts of) words.
    ///
    /// Such a token starts with a Latin letter or an underscore, after white space. (`dpu_utils`
    /// looks at the token as it is written, `Ġself`, and so loses every word that follows a space.)
    ///
    /// A text of more than 4 MiB is read in pieces, cut before line breaks. That changes no
    /// token of a model that splits there, as byte-level ones do; a line of more than 4 MiB is
    /// cut where it has to be, so that a word there is two.
    ///
    /// # Errors
    /// [`BpeError`] if the model cannot split the text, or if its steps make it too long.
    pub fn encode(&self, text: &str, words_only: bool, ids: &mut Vec<u32>) -> Result<(), BpeError> {
        ids.clear();
        let wanted = |id: &&u32| !words_only || self.words.get(**id as usize) == Some(&true);
        for piece in pieces(text, PIECE) {
            let encoding = unwound(|| self.tokenizer.encode_fast(piece, false))?;
            ids.extend(encoding.get_ids().iter().filter(wanted));
        }
        Ok(())
    }

    /// The tokens of `text` as the model writes them: a byte-level one writes a space as `Ġ`.
    ///
    /// # Errors
    /// As [`Bpe::encode`].
    pub fn tokens(&self, text: &str) -> Result<Vec<String>, BpeError> {
        let mut ids = Vec::new();
        self.encode(text, false, &mut ids)?;
        Ok(ids.iter().filter_map(|id| self.tokenizer.id_to_token(*id)).collect())
    }
}

/// The result of `work`; on some damaged files `tokenizers` panics.
fn unwound<T>(work: impl FnOnce() -> TokenizersResult<T>) -> Result<T, BpeError> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => Ok(done?),
        Err(_) => Err(BpeError("the tokenizer is damaged: `tokenizers` panicked".into())),
    }
}

/// Returns true for a token that is (part of) a word. Byte-level models write a space as `Ġ`, a line feed as
/// `Ċ`, a carriage return as `č` and a tab as `ĉ`; SentencePiece writes a space as `▁`.
fn is_word(token: &str) -> bool {
    let rest = token.trim_start_matches(['Ġ', 'Ċ', 'č', 'ĉ', '▁', ' ', '\t', '\n', '\r']);
    rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokenizers::models::TrainerWrapper;

    use super::*;

    /// The model that `Tokenizer::train` learns.
    fn trained_by_peer(texts: &[String], vocab_size: usize) -> String {
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
        tokenizer.train(&mut trainer, texts.iter()).unwrap();
        tokenizer.to_string(true).unwrap()
    }

    #[test]
    fn what_is_learned_is_what_the_peer_learns() {
        let mut state = 5_u64;
        let mut below = |n: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        for round in 0..60 {
            // Few letters, so that tokens come about in several ways; and runs of one.
            let letters: Vec<char> = "ab cdé\n0_(".chars().take(2 + round % 9).collect();
            let texts: Vec<String> = (0..1 + below(30))
                .map(|_| {
                    let letter = |at: u64| letters[at as usize];
                    let run = |at: u64, length: u64| letter(at).to_string().repeat(length as usize);
                    let count = below(60);
                    (0..count)
                        .map(|_| run(below(letters.len() as u64), 1 + below(5) * below(2)))
                        .collect()
                })
                .collect();
            let vocab_size = 256 + below(120) as usize;
            let here = train(texts.iter().cloned(), vocab_size).unwrap().to_json().unwrap();
            assert_eq!(here, trained_by_peer(&texts, vocab_size), "{texts:?}");
        }
        let code = include_str!("bpe.rs").lines().map(str::to_string).collect::<Vec<_>>();
        for vocab_size in [256, 300, 1500] {
            let here = train(code.iter().cloned(), vocab_size).unwrap().to_json().unwrap();
            assert_eq!(here, trained_by_peer(&code, vocab_size));
        }
    }

    #[test]
    fn long_words_are_learned_and_read_in_a_time_that_fits_their_length() {
        let letters = |n: u32| char::from(b'a' + (n.wrapping_mul(2_654_435_761) >> 20) as u8 % 26);
        for text in [
            "x".repeat(1 << 19),
            (0..1 << 18).map(letters).collect(),
            " ".repeat(1 << 18) + "\n" + &"=".repeat(1 << 18),
        ] {
            let bpe = train([text.clone()].into_iter(), 400).unwrap();
            let mut ids = Vec::new();
            bpe.encode(&text, false, &mut ids).unwrap();
            assert!(ids.len() < text.len());
            assert_eq!(bpe.tokenizer.decode(&ids, false).unwrap(), text);
        }
    }

    #[test]
    fn pieces_are_cut_where_words_end_if_they_can_be() {
        let cut = |text, most| pieces(text, most).collect::<Vec<_>>();
        assert_eq!(cut("", 4), [""]);
        assert_eq!(cut("abcd", 4), ["abcd"]);
        assert_eq!(cut("ab\n\ncd\nef", 7), ["ab\n\ncd", "\nef"]);
        assert_eq!(cut("ab\n\n\n\n\ncd", 5), ["ab", "\n\n\n\n\n", "cd"]);
        assert_eq!(cut("\nabcdé", 4), ["\nabc", "dé"]);
        assert_eq!(cut("éé", 3), ["é", "é"]);
        let code: String = include_str!("bpe.rs").repeat(3);
        let bpe = train(texts().into_iter(), 300).unwrap();
        let (mut whole, mut ids) = (Vec::new(), Vec::new());
        bpe.encode(&code, false, &mut whole).unwrap();
        let mut in_pieces = Vec::new();
        for piece in pieces(&code, 1000) {
            bpe.encode(piece, false, &mut ids).unwrap();
            in_pieces.extend_from_slice(&ids);
        }
        assert_eq!(in_pieces, whole);
    }

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

    /// A learned model with other steps.
    fn with(steps: Value) -> (String, Result<Bpe, BpeError>) {
        let json = train(texts().into_iter(), 300).unwrap().to_json().unwrap();
        let mut json: Value = serde_json::from_str(&json).unwrap();
        json.as_object_mut().unwrap().extend(steps.as_object().unwrap().clone());
        let json = json.to_string();
        let bpe = Bpe::from_json(&json);
        (json, bpe)
    }

    #[test]
    fn panics_of_the_library_and_endless_work_are_errors() {
        let steps = |steps| with(steps).1.unwrap_err().to_string();
        let words = json!({ "model": { "type": "WordPiece", "vocab": { "[UNK]": 0 }, "unk_token":
            "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 1_000_000 } });
        assert!(steps(words).contains("256 are allowed"));
        // A table without an entry: the library panics when it looks something up.
        let empty = json!({ "normalizer": { "type": "Precompiled",
            "precompiled_charsmap": "AAAAAA==" } });
        let none = json!({ "pre_tokenizer": { "type": "FixedLength", "length": 0 } });
        for damaged in [empty, none] {
            let (_, bpe) = with(damaged);
            let error = bpe.unwrap().encode("a", false, &mut Vec::new()).unwrap_err();
            assert!(error.to_string().contains("is damaged"), "{error}");
        }
    }

    #[test]
    fn words_beyond_the_limit_are_learned_in_parts() {
        let learned = |length: usize| {
            let texts = ["y".repeat(length), "y".repeat(length)];
            let model = train(texts.into_iter(), 400).unwrap().to_json().unwrap();
            let model: Value = serde_json::from_str(&model).unwrap();
            let tokens = model["model"]["vocab"].as_object().unwrap();
            tokens.keys().map(String::len).max().unwrap()
        };
        assert_eq!(learned(LONGEST_WORD), LONGEST_WORD);
        assert_eq!(learned(3 * LONGEST_WORD), LONGEST_WORD);
    }

    #[test]
    fn what_a_post_processor_adds_is_left_out() {
        let again = json!([{ "Sequence": { "id": "A", "type_id": 0 } }, { "Sequence": { "id": "A",
            "type_id": 0 } }]);
        let again = json!({ "type": "TemplateProcessing", "single": again, "pair": again,
            "special_tokens": {} });
        let again = json!({ "type": "Sequence", "processors": vec![again; 40] });
        let (_, bpe) = with(json!({ "post_processor": again }));
        let (mut ids, bpe) = (Vec::new(), bpe.unwrap());
        bpe.encode("self", false, &mut ids).unwrap();
        assert_eq!(bpe.tokenizer.decode(&ids, false).unwrap(), "self");
    }

    #[test]
    fn no_text_at_all_gives_the_bytes() {
        assert_eq!(train(std::iter::empty(), 1024).unwrap().vocab_size(), MIN_VOCAB);
    }
}
