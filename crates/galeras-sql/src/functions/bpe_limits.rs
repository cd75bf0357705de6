//! Tokenizers from outside, whose steps cannot make a text longer than is allowed.
//!
//! A `tokenizer.json` names steps that rewrite a text before it is split (normalizers) and while
//! it is (pre-tokenizers). Forty of them that double it fit into 5 KB. So each step is asked how
//! long the text becomes before it is done, and what it would make too long is an error.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use tokenizers::utils::SysRegex;
use tokenizers::{
    DecoderWrapper, Encoding, Error, ModelWrapper, NormalizedString, Normalizer, NormalizerWrapper,
    OffsetReferential, OffsetType, PostProcessor, PostProcessorWrapper, PreTokenizedString,
    PreTokenizer, PreTokenizerWrapper, Result, TokenizerImpl,
};

/// A tokenizer whose steps are bounded.
pub(super) type BoundedTokenizer =
    TokenizerImpl<ModelWrapper, Normalizers, Splitters, LeftOut, DecoderWrapper>;

/// The longest text that steps may make of one that is read, in bytes: four times the longest
/// piece. What the model needs for each byte of it takes hundreds of bytes.
const LONGEST: usize = 16 << 20;
/// No text may become longer than so many times its bytes. NFKC makes 33 bytes of 3, and a
/// byte-level step two of one.
const TIMES: usize = 64;
/// Short texts may always become so long: a step may put words before them.
const SHORT: usize = 64 << 10;
/// The most steps of a kind. A tokenizer has about five.
const MOST_STEPS: usize = 1_000;
/// The longest word that WordPiece may look into, in characters, by default 100: its time is
/// the cube of it.
const WORD_PIECE: usize = 256;
/// Texts are measured in pieces of so many bytes.
const CHUNK: usize = 64 << 10;

thread_local! {
    /// How many bytes the text that is read on this thread may become.
    static MOST: Cell<usize> = const { Cell::new(LONGEST) };
    /// What is left of that to normalizers. `tokenizers` drops their errors, and gives them one part
    /// of a text after the other.
    static LEFT: Cell<usize> = const { Cell::new(LONGEST) };
    static TOO_LONG: Cell<bool> = const { Cell::new(false) };
}

/// What `work` on a text of `bytes` gives, or on the tokens that a file of `bytes` adds.
///
/// # Errors
/// Those of `work`; if a step makes the text too long; if the tokenizer is so damaged that
/// `tokenizers` panics.
pub(super) fn bounded<T>(
    bytes: usize,
    work: impl FnOnce() -> Result<T>,
) -> std::result::Result<T, String> {
    MOST.set(bytes.saturating_mul(TIMES).saturating_add(SHORT).min(LONGEST));
    LEFT.set(MOST.get());
    TOO_LONG.set(false);
    let done = catch_unwind(AssertUnwindSafe(work));
    if TOO_LONG.get() {
        return Err(too_long().to_string());
    }
    match done {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(_) => Err("the tokenizer is damaged: whatever reads it panicked".into()),
    }
}

fn too_long() -> Error {
    LEFT.set(0);
    TOO_LONG.set(true);
    format!(
        "the tokenizer makes the text more than {TIMES} times as long, or of more than {} MiB",
        LONGEST >> 20
    )
    .into()
}

/// Checks what does not depend on texts.
pub(super) fn check(tokenizer: &BoundedTokenizer) -> std::result::Result<(), String> {
    match tokenizer.get_model() {
        ModelWrapper::WordPiece(model) if model.max_input_chars_per_word > WORD_PIECE => {
            let most = model.max_input_chars_per_word;
            Err(format!("`max_input_chars_per_word` is {most}; {WORD_PIECE} are allowed"))
        }
        _ => Ok(()),
    }
}

/// The normalizers of a tokenizer, in their order.
#[derive(Clone, Debug)]
pub(super) struct Normalizers {
    whole: NormalizerWrapper,
    steps: Arc<[Step]>,
}

#[derive(Debug)]
struct Step {
    normalizer: NormalizerWrapper,
    /// What a `Replace` looks for.
    pattern: Option<Pattern>,
}

#[derive(Debug)]
enum Pattern {
    Text(String),
    Regex(SysRegex),
}

impl Normalizers {
    fn new(whole: NormalizerWrapper) -> Result<Self> {
        let mut steps = Vec::new();
        flatten(&whole, &mut steps)?;
        Ok(Self { whole, steps: steps.into() })
    }
}

fn flatten(normalizer: &NormalizerWrapper, steps: &mut Vec<Step>) -> Result<()> {
    if let NormalizerWrapper::Sequence(sequence) = normalizer {
        return sequence.as_ref().iter().try_for_each(|step| flatten(step, steps));
    }
    if steps.len() == MOST_STEPS {
        return Err(format!("there are more than {MOST_STEPS} normalizers").into());
    }
    let pattern = match normalizer {
        // The pattern has no accessor.
        NormalizerWrapper::Replace(replace) => {
            let value = serde_json::to_value(replace)?;
            let text = |kind: &str| value.pointer(kind).and_then(Value::as_str);
            Some(match (text("/pattern/Regex"), text("/pattern/String")) {
                (Some(regex), _) => Pattern::Regex(SysRegex::new(regex)?),
                (None, Some(text)) => Pattern::Text(text.to_string()),
                (None, None) => return Err("a `Replace` has no pattern".into()),
            })
        }
        _ => None,
    };
    steps.push(Step { normalizer: normalizer.clone(), pattern });
    Ok(())
}

impl Step {
    /// A length in bytes that the text does not exceed after the step, as close as is needed to
    /// compare it with `left`.
    fn longest(&self, text: &str, left: usize) -> usize {
        let length = text.len();
        match (&self.normalizer, &self.pattern) {
            (NormalizerWrapper::Prepend(prepend), _) => {
                length.saturating_add(prepend.prepend.len())
            }
            (NormalizerWrapper::Replace(replace), Some(pattern)) => {
                let by = replace.content.len();
                // A pattern may match nothing, at each place and at the end.
                let most = by.saturating_mul(length + 1).saturating_add(length);
                if most <= left { most } else { replaced(text, pattern, by, left) }
            }
            (NormalizerWrapper::Precompiled(table), _) => {
                let mut longest = 0_usize;
                for (at, letter) in text.char_indices() {
                    // The table is asked for graphemes of at most five bytes, and letters; it
                    // gives what it has for the shortest beginning.
                    let end = text.floor_char_boundary(length.min(at + 5));
                    let new = table.transform(text.get(at..end).unwrap_or_default());
                    let old = letter.len_utf8();
                    longest += new.map_or(old, |new| new.len().max(old));
                    if longest > left {
                        break;
                    }
                }
                longest
            }
            (other, _) => {
                let most = length.saturating_mul(times(other));
                if most <= left { most } else { self.measured(text, left) }
            }
        }
    }

    /// The length after the step, of a step that looks at a few letters at a time.
    fn measured(&self, text: &str, left: usize) -> usize {
        let (mut rest, mut longest) = (text, 0);
        while !rest.is_empty() && longest <= left {
            let (chunk, after) = rest.split_at(rest.floor_char_boundary(CHUNK));
            let mut chunk = NormalizedString::from(chunk);
            if self.normalizer.normalize(&mut chunk).is_err() {
                return usize::MAX;
            }
            longest += chunk.len();
            rest = after;
        }
        longest
    }
}

fn replaced(text: &str, pattern: &Pattern, by: usize, left: usize) -> usize {
    let mut length = text.len();
    let mut replace = |matched: usize| {
        length = length.saturating_sub(matched).saturating_add(by);
        // What is left of the text cannot make it shorter than that again.
        length <= left.saturating_add(text.len())
    };
    // Both go on until one is refused.
    let _ = match pattern {
        Pattern::Text(what) => text.matches(what.as_str()).all(|part| replace(part.len())),
        Pattern::Regex(what) => what.find_iter(text).all(|(start, end)| replace(end - start)),
    };
    length
}

/// How many times as long a text becomes at most, in bytes.
fn times(normalizer: &NormalizerWrapper) -> usize {
    match normalizer {
        NormalizerWrapper::StripNormalizer(_)
        | NormalizerWrapper::StripAccents(_)
        | NormalizerWrapper::Nmt(_) => 1,
        NormalizerWrapper::Lowercase(_) | NormalizerWrapper::ByteLevel(_) => 2,
        NormalizerWrapper::NFC(_) | NormalizerWrapper::NFD(_) => 4,
        NormalizerWrapper::NFKC(_) | NormalizerWrapper::NFKD(_) => 12,
        // Spaces around Chinese letters, NFD, lower case.
        _ => 16,
    }
}

impl Normalizer for Normalizers {
    fn normalize(&self, text: &mut NormalizedString) -> Result<()> {
        let left = LEFT.get();
        for step in self.steps.iter() {
            if step.longest(text.get(), left) > left {
                return Err(too_long());
            }
            step.normalizer.normalize(text)?;
        }
        let Some(left) = left.checked_sub(text.len()) else { return Err(too_long()) };
        LEFT.set(left);
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Normalizers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        if !tables_are_whole(&value) {
            return Err(D::Error::custom("`precompiled_charsmap` is cut off"));
        }
        let whole = NormalizerWrapper::deserialize(value).map_err(D::Error::custom)?;
        Self::new(whole).map_err(D::Error::custom)
    }
}

impl Serialize for Normalizers {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.whole.serialize(serializer)
    }
}

/// Whether each table in base64 is as long as its first four bytes say: `tokenizers` takes the
/// memory for it before it looks, up to 8 GiB.
fn tables_are_whole(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.iter().all(|(name, value)| match value {
            Value::String(table) if name == "precompiled_charsmap" => {
                first_number(table).is_some_and(|bytes| bytes <= table.len())
            }
            _ => tables_are_whole(value),
        }),
        Value::Array(items) => items.iter().all(tables_are_whole),
        _ => true,
    }
}

/// The little-endian number in the first 32 bits of base64.
fn first_number(base64: &str) -> Option<usize> {
    let bits = base64.bytes().take(6).try_fold(0_u64, |bits, letter| {
        let six = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        Some(bits << 6 | u64::from(six))
    })?;
    let bytes = u32::try_from(bits >> 4).ok().filter(|_| base64.len() >= 6)?;
    usize::try_from(bytes.swap_bytes()).ok()
}

/// The pre-tokenizers of a tokenizer, in their order.
#[derive(Clone, Debug)]
pub(super) struct Splitters {
    whole: PreTokenizerWrapper,
    steps: Arc<[PreTokenizerWrapper]>,
}

impl Splitters {
    fn new(whole: PreTokenizerWrapper) -> Result<Self> {
        let mut steps = Vec::new();
        flatten_splitters(&whole, &mut steps)?;
        Ok(Self { whole, steps: steps.into() })
    }
}

fn flatten_splitters(
    splitter: &PreTokenizerWrapper,
    steps: &mut Vec<PreTokenizerWrapper>,
) -> Result<()> {
    match splitter {
        PreTokenizerWrapper::Sequence(sequence) => {
            return sequence.as_ref().iter().try_for_each(|step| flatten_splitters(step, steps));
        }
        PreTokenizerWrapper::FixedLength(fixed) if fixed.length == 0 => {
            return Err("the `length` of a `FixedLength` is 0".into());
        }
        _ if steps.len() == MOST_STEPS => {
            return Err(format!("there are more than {MOST_STEPS} pre-tokenizers").into());
        }
        other => steps.push(other.clone()),
    }
    Ok(())
}

impl From<tokenizers::pre_tokenizers::byte_level::ByteLevel> for Splitters {
    fn from(bytes: tokenizers::pre_tokenizers::byte_level::ByteLevel) -> Self {
        let whole = PreTokenizerWrapper::ByteLevel(bytes);
        Self { steps: [whole.clone()].into(), whole }
    }
}

impl PreTokenizer for Splitters {
    fn pre_tokenize(&self, text: &mut PreTokenizedString) -> Result<()> {
        for step in self.steps.iter() {
            if TOO_LONG.get() {
                return Err(too_long());
            }
            step.pre_tokenize(text)?;
            // The others split without writing; these make at most eight bytes of one.
            if matches!(step, PreTokenizerWrapper::ByteLevel(_) | PreTokenizerWrapper::Metaspace(_))
            {
                let splits = text.get_splits(OffsetReferential::Normalized, OffsetType::None);
                if splits.iter().map(|(text, ..)| text.len()).sum::<usize>() > MOST.get() {
                    return Err(too_long());
                }
            }
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Splitters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        Self::new(PreTokenizerWrapper::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl Serialize for Splitters {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.whole.serialize(serializer)
    }
}

/// A post-processor, which is kept but left out: it adds special tokens, which nobody asks for.
/// Templates could repeat a text as often as they like.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(transparent)]
pub(super) struct LeftOut(PostProcessorWrapper);

impl PostProcessor for LeftOut {
    fn added_tokens(&self, _is_pair: bool) -> usize {
        0
    }

    fn process_encodings(
        &self,
        encodings: Vec<Encoding>,
        _add_special_tokens: bool,
    ) -> Result<Vec<Encoding>> {
        Ok(encodings)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_step_is_never_said_to_give_less_than_it_does() {
        let replace = |pattern: Value, content: &str| json!({ "type": "Replace", "pattern": pattern, "content": content });
        let steps = json!({ "type": "Sequence", "normalizers": [
            { "type": "NFC" }, { "type": "NFD" }, { "type": "NFKC" }, { "type": "NFKD" },
            { "type": "Lowercase" }, { "type": "Nmt" }, { "type": "StripAccents" },
            { "type": "Strip", "strip_left": true, "strip_right": true },
            { "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
              "strip_accents": null, "lowercase": true },
            { "type": "Prepend", "prepend": "abc" }, { "type": "ByteLevel" },
            replace(json!({ "String": "a" }), "bcd"), replace(json!({ "String": "" }), "xy"),
            replace(json!({ "Regex": "[a-c]*" }), "é"), replace(json!({ "Regex": "a{3}" }), "b"),
        ]});
        let steps: Normalizers = serde_json::from_value(steps).unwrap();
        assert_eq!(steps.steps.len(), 15);
        // The last one is measured in pieces.
        for text in ["", "a", "aabcÑ İȺ\u{fdfa}\u{390}世\u{1d160}  ", &"aaaé 世".repeat(7_000)]
        {
            for step in steps.steps.iter() {
                let mut done = NormalizedString::from(text);
                step.normalizer.normalize(&mut done).unwrap();
                let done = done.len();
                for left in [0, done / 2, done, usize::MAX] {
                    let longest = step.longest(text, left);
                    assert!(longest >= done || longest > left, "{step:?} {longest} {done}");
                }
                // What fits is let through.
                let room = if text.is_empty() { 3 } else { done };
                assert!(step.longest(text, room) <= room, "{step:?} {text:?}");
            }
        }
    }

    #[test]
    fn the_length_of_a_table_is_its_first_number() {
        assert_eq!(first_number("AQAAAA=="), Some(1));
        assert_eq!(first_number("////Pw=="), Some(0x3fff_ffff));
        assert_eq!(first_number("AAEC"), None);
    }
}
