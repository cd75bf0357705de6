//! The body of one request, checked and serialized once for all tries.

use std::fmt;

use serde_json::{Map, Value};
use tokio_util::bytes::Bytes;

use super::error::ChatError;

/// The field of a request that limits the length of its answer.
///
/// OpenAI's reasoning models take only the second name, many other servers only the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LimitName {
    /// `max_tokens`.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`.
    MaxCompletionTokens,
}

impl LimitName {
    /// The field of the request.
    pub fn field(self) -> &'static str {
        match self {
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
        }
    }
}

/// One request, ready to be sent.
#[derive(Clone)]
pub struct Ask {
    body: Bytes,
    model: String,
    messages: usize,
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
        let messages = body.get("messages").and_then(Value::as_array).map_or(0, Vec::len);
        let texts = ["prompt", "system"].map(|name| body.get(name).is_some_and(Value::is_string));
        if messages == 0 && !texts[0] {
            return Err(fatal("a request needs `messages` or a `prompt`"));
        }
        let messages = messages + texts.into_iter().filter(|there| *there).count();
        body.insert("stream".into(), Value::Bool(false));
        // Allowed with `"stream": true` only.
        body.shift_remove("stream_options");
        let number = |name: &str| body.get(name).and_then(Value::as_u64);
        let limits = [LimitName::MaxTokens, LimitName::MaxCompletionTokens];
        let limit = limits.into_iter().filter_map(|name| number(name.field())).max();
        // All of them are generated and billed, even if only one is shown.
        let choices = ["n", "best_of"].into_iter().filter_map(number).max().unwrap_or(1).max(1);
        let completion_limit = limit.map(|limit| limit.saturating_mul(choices));
        let written = serde_json::to_vec(&body);
        let body = written.map_err(|e| fatal(&format!("a request cannot be written: {e}")))?;
        Ok(Self { body: body.into(), model, messages, completion_limit })
    }

    /// The model that is asked.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The most tokens of all answers together, if the request limits them.
    pub fn completion_limit(&self) -> Option<u64> {
        self.completion_limit
    }

    /// The request as it is sent: JSON without white space.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    pub(super) fn shared_body(&self) -> Bytes {
        self.body.clone()
    }

    pub(super) fn bytes(&self) -> usize {
        self.body.len()
    }

    pub(super) fn messages(&self) -> usize {
        self.messages
    }
}

impl fmt::Debug for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ask({}, {} messages, {} bytes)", self.model, self.messages, self.body.len())
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
        let ask = ask(body).unwrap();
        assert_eq!(ask.body(), br#"{"model":"m","stream":false,"messages":[{}],"seed":1}"#);
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
            assert_eq!(ask(body).unwrap().completion_limit(), limit);
        }
    }

    #[test]
    fn a_model_and_something_to_answer_are_needed() {
        assert!(ask(json!({"messages": [{}]})).is_err());
        assert!(ask(json!({"model": "m"})).is_err());
        assert!(ask(json!({"model": "m", "messages": []})).is_err());
        assert!(ask(json!({"model": "m", "prompt": 5})).is_err());
        assert_eq!(ask(json!({"model": "m", "prompt": ""})).unwrap().messages(), 1);
        let system = json!({"model": "m", "messages": [{}], "system": "s"});
        assert_eq!(ask(system).unwrap().messages(), 2);
    }
}
