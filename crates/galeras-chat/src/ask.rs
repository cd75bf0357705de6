//! The body of one request, checked and serialized once for all tries, and how many tokens it may take.
//!
//! Money is held back by an upper bound on the tokens of a prompt; the pace uses an estimate that is
//! learned from answers.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Map, Value};
use tokio_util::bytes::Bytes;

use super::answer::Usage;
use super::error::ChatError;

/// The fields that limit the length of an answer. OpenAI's reasoning models take only the second one,
/// many other servers only the first.
pub(super) const LENGTH_LIMITS: [&str; 2] = ["max_tokens", "max_completion_tokens"];

/// Tokens that a chat template may put around a message.
const PER_MESSAGE: u64 = 16;
/// Tokens that a chat template may put before all messages, such as a built-in system prompt.
const PER_REQUEST: u64 = 256;
/// Ratios are counted in millionths.
const MILLION: u128 = 1_000_000;
/// The margin above the largest ratio so far.
const MARGIN_PERCENT: u128 = 150;
/// The length of an answer that is expected if nothing limits it and none was seen.
const UNKNOWN_ANSWER: u64 = 1_024;
/// The longest credible answer, in tokens: several times the limit of any model.
const MOST_ANSWER: u64 = 1_000_000;

/// One request, ready to be sent.
#[derive(Clone)]
pub struct Ask {
    /// JSON without white space.
    pub(super) body: Bytes,
    pub(super) model: String,
    messages: u64,
    completion_limit: Option<u64>,
}

impl Ask {
    /// Creates a request with this body, as the reference of its protocol defines it: `messages` for
    /// chats, a `prompt` for a text to continue. `stream` is set to false.
    ///
    /// # Errors
    /// [`ChatError::Fatal`] if `model` is missing or not a text, or `messages` and `prompt` are
    /// missing or empty.
    pub fn new(mut body: Map<String, Value>) -> Result<Self, ChatError> {
        let fatal = |text: &str| ChatError::Fatal(text.to_string());
        let model = body.get("model").and_then(Value::as_str).unwrap_or_default().to_string();
        if model.is_empty() {
            return Err(fatal("a request needs a `model`"));
        }
        let messages = body.get("messages").and_then(Value::as_array).map_or(0, Vec::len) as u64;
        let is_text = |name: &str| body.get(name).is_some_and(Value::is_string);
        let (prompt, system) = (is_text("prompt"), is_text("system"));
        if messages == 0 && !prompt {
            return Err(fatal("a request needs `messages` or a `prompt`"));
        }
        let messages = messages + u64::from(prompt) + u64::from(system);
        body.insert("stream".into(), Value::Bool(false));
        // Allowed with `"stream": true` only.
        body.shift_remove("stream_options");
        let number = |name: &str| body.get(name).and_then(Value::as_u64);
        let limit = LENGTH_LIMITS.into_iter().filter_map(number).max();
        // All of them are generated and billed, even if only one is shown.
        let choices = ["n", "best_of"].into_iter().filter_map(number).max().unwrap_or(1).max(1);
        let completion_limit = limit.map(|limit| limit.saturating_mul(choices));
        let written = serde_json::to_vec(&body);
        let body = written.map_err(|e| fatal(&format!("a request cannot be written: {e}")))?;
        Ok(Self { body: body.into(), model, messages, completion_limit })
    }

    /// The most tokens that the prompt may have: one per byte of the request, which no tokenizer
    /// passes that falls back to bytes, and a constant for the template. Images by address are not
    /// covered.
    #[must_use]
    pub fn most_prompt_tokens(&self) -> u64 {
        let around = PER_MESSAGE.saturating_mul(self.messages);
        self.bytes().saturating_add(around).saturating_add(PER_REQUEST)
    }

    /// The most tokens of all answers together, if the request limits them.
    pub fn completion_limit(&self) -> Option<u64> {
        self.completion_limit
    }

    fn bytes(&self) -> u64 {
        self.body.len() as u64
    }
}

/// An estimate of the tokens of requests to one model.
#[derive(Debug, Default)]
pub(super) struct Estimate {
    /// The most tokens per byte of a request, in millionths; 0 if unknown.
    ratio: AtomicU64,
    /// The longest answer, in tokens; 0 if unknown.
    longest: AtomicU64,
}

impl Estimate {
    /// The tokens that the prompt of `ask` has at most, in all likelihood: good enough for the pace,
    /// not for money.
    ///
    /// Before the first count of an answer, the bound. Afterwards the largest ratio of
    /// tokens to bytes so far, half as much again, but never more than the bound. A first prompt in
    /// English and a later one in Chinese may pass it.
    fn prompt(&self, ask: &Ask) -> u64 {
        let worst = ask.most_prompt_tokens();
        match self.ratio.load(Ordering::Relaxed) {
            0 => worst,
            ratio => {
                let likely = u128::from(ask.bytes()) * u128::from(ratio) * MARGIN_PERCENT / 100;
                let likely = u64::try_from(likely.div_ceil(MILLION)).unwrap_or(u64::MAX);
                worst.min(likely.saturating_add(PER_MESSAGE.saturating_mul(ask.messages)))
            }
        }
    }

    /// The tokens that `ask` is counted with until its answer has a count.
    pub(super) fn total(&self, ask: &Ask) -> u64 {
        let longest = match self.longest.load(Ordering::Relaxed) {
            0 => UNKNOWN_ANSWER,
            longest => longest,
        };
        self.prompt(ask).saturating_add(ask.completion_limit.unwrap_or(longest))
    }

    /// Learns from the count in an answer to `ask`.
    pub(super) fn learn(&self, ask: &Ask, usage: &Usage) {
        if let Some(tokens) = usage.prompt_tokens.filter(|tokens| *tokens > 0) {
            let ratio = (u128::from(tokens) * MILLION).div_ceil(u128::from(ask.bytes().max(1)));
            self.ratio.fetch_max(u64::try_from(ratio).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
        // One absurd number must not slow down all requests that follow.
        if let Some(tokens) = usage.completion_tokens.filter(|tokens| *tokens <= MOST_ANSWER) {
            self.longest.fetch_max(tokens, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ask(body: Value) -> Result<Ask, ChatError> {
        Ask::new(body.as_object().unwrap().clone())
    }

    #[test]
    fn nothing_is_ever_streamed() {
        let body = json!({
            "model": "m", "stream": true, "messages": [{}], "stream_options": {}, "seed": 1,
        });
        let sent = br#"{"model":"m","stream":false,"messages":[{}],"seed":1}"#;
        assert_eq!(&ask(body).unwrap().body[..], sent);
    }

    #[test]
    fn the_longest_answer_is_known_under_both_names() {
        for (more, limit) in [
            (json!({}), None),
            (json!({"max_tokens": 5}), Some(5)),
            (json!({"max_completion_tokens": 7}), Some(7)),
            (json!({"max_tokens": 5, "n": 3}), Some(15)),
            (json!({"max_tokens": 5, "best_of": 4, "n": 2}), Some(20)),
            (json!({"max_tokens": -1}), None),
        ] {
            let mut body = json!({"model": "m", "messages": [{}]});
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            assert_eq!(ask(body).unwrap().completion_limit, limit, "{more}");
        }
    }

    #[test]
    fn a_model_and_something_to_answer_are_needed() {
        for (body, messages) in [
            (json!({"messages": [{}]}), None),
            (json!({"model": "m"}), None),
            (json!({"model": "m", "messages": []}), None),
            (json!({"model": "m", "prompt": 5}), None),
            (json!({"model": "m", "prompt": ""}), Some(1)),
            (json!({"model": "m", "messages": [{}], "system": "s"}), Some(2)),
        ] {
            assert_eq!(ask(body.clone()).ok().map(|ask| ask.messages), messages, "{body}");
        }
    }

    fn chat(text: &str) -> Ask {
        ask(json!({"model": "m", "messages": [{"role": "user", "content": text}]})).unwrap()
    }

    #[test]
    fn a_prompt_has_at_most_a_token_per_byte_until_an_answer_has_a_count() {
        let estimate = Estimate::default();
        let ask = chat(&"word ".repeat(1_000));
        assert_eq!(estimate.prompt(&ask), ask.bytes() + 16 + 256);
        assert_eq!(estimate.total(&ask), estimate.prompt(&ask) + 1_024);
        let usage = Usage { prompt_tokens: Some(1_010), completion_tokens: Some(50) };
        estimate.learn(&ask, &usage);
        let bound = estimate.prompt(&ask);
        assert!((1_515..1_540).contains(&bound), "{bound}");
        assert_eq!(estimate.total(&ask), bound + 50);
        let dense = Usage { prompt_tokens: Some(1_000_000), completion_tokens: None };
        estimate.learn(&ask, &dense);
        assert_eq!(estimate.prompt(&ask), ask.bytes() + 16 + 256, "no more than before");
    }

    #[test]
    fn an_answer_without_numbers_or_with_absurd_ones_teaches_nothing() {
        let (estimate, ask) = (Estimate::default(), chat("hello"));
        let before = estimate.total(&ask);
        for (prompt_tokens, completion_tokens) in
            [(None, None), (Some(0), Some(0)), (None, Some(u64::MAX))]
        {
            estimate.learn(&ask, &Usage { prompt_tokens, completion_tokens });
            assert_eq!(estimate.total(&ask), before, "{prompt_tokens:?} {completion_tokens:?}");
        }
    }
}
