//! How many tokens a request may take, before it is sent.
//!
//! Money is held back by an upper bound on the tokens of a prompt; the pace uses an estimate that is
//! learned from answers.

use std::sync::atomic::{AtomicU64, Ordering};

use super::answer::Usage;
use super::ask::Ask;

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

impl Ask {
    /// The most tokens that the prompt may have: one per byte of the request, which no tokenizer
    /// passes that falls back to bytes, and a constant for the template. Images by address are not
    /// covered.
    #[must_use]
    pub fn most_prompt_tokens(&self) -> u64 {
        let around = PER_MESSAGE.saturating_mul(self.messages() as u64);
        (self.bytes() as u64).saturating_add(around).saturating_add(PER_REQUEST)
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
    pub(super) fn prompt(&self, ask: &Ask) -> u64 {
        let (bytes, messages) = (ask.bytes() as u64, ask.messages() as u64);
        let around = PER_MESSAGE.saturating_mul(messages);
        let worst = ask.most_prompt_tokens();
        match self.ratio.load(Ordering::Relaxed) {
            0 => worst,
            ratio => {
                let likely = u128::from(bytes) * u128::from(ratio) * MARGIN_PERCENT / 100;
                let likely = u64::try_from(likely.div_ceil(MILLION)).unwrap_or(u64::MAX);
                worst.min(likely.saturating_add(around))
            }
        }
    }

    /// The tokens that `ask` is counted with until its answer has a count.
    pub(super) fn total(&self, ask: &Ask) -> u64 {
        let answer =
            ask.completion_limit().unwrap_or_else(|| match self.longest.load(Ordering::Relaxed) {
                0 => UNKNOWN_ANSWER,
                longest => longest,
            });
        self.prompt(ask).saturating_add(answer)
    }

    /// Learns from the count in an answer to `ask`.
    pub(super) fn learn(&self, ask: &Ask, usage: &Usage) {
        if let Some(tokens) = usage.prompt_tokens.filter(|tokens| *tokens > 0) {
            let bytes = u128::from(ask.bytes().max(1) as u64);
            let ratio = (u128::from(tokens) * MILLION).div_ceil(bytes);
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

    fn ask(text: &str) -> Ask {
        let body = json!({"model": "m", "messages": [{"role": "user", "content": text}]});
        Ask::new(body.as_object().unwrap().clone()).unwrap()
    }

    #[test]
    fn a_prompt_has_at_most_a_token_per_byte_until_an_answer_tells() {
        let estimate = Estimate::default();
        let ask = ask(&"word ".repeat(1_000));
        assert_eq!(estimate.prompt(&ask), ask.bytes() as u64 + 16 + 256);
        assert_eq!(estimate.total(&ask), estimate.prompt(&ask) + 1_024);
        let usage = Usage { prompt_tokens: Some(1_010), completion_tokens: Some(50) };
        estimate.learn(&ask, &usage);
        let bound = estimate.prompt(&ask);
        assert!((1_515..1_540).contains(&bound), "{bound}");
        assert_eq!(estimate.total(&ask), bound + 50);
        let dense = Usage { prompt_tokens: Some(1_000_000), completion_tokens: None };
        estimate.learn(&ask, &dense);
        assert_eq!(estimate.prompt(&ask), ask.bytes() as u64 + 16 + 256, "no more than before");
    }

    #[test]
    fn an_answer_without_numbers_or_with_absurd_ones_teaches_nothing() {
        let estimate = Estimate::default();
        let ask = ask("hello");
        let before = estimate.total(&ask);
        estimate.learn(&ask, &Usage::default());
        estimate.learn(&ask, &Usage { prompt_tokens: Some(0), completion_tokens: Some(0) });
        let absurd = Usage { prompt_tokens: None, completion_tokens: Some(u64::MAX) };
        estimate.learn(&ask, &absurd);
        assert_eq!(estimate.total(&ask), before);
    }
}
