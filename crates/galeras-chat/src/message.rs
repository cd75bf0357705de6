//! The answers of Anthropic's messages API.
//!
//! Source: Anthropic's reference of `POST /v1/messages`: blocks of content of several types, of
//! which those of text are the answer; `stop_reason`; the usage, in which tokens read from a cache
//! and written to it are not among the `input_tokens`.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::answer::{Answer, ParsedBody, Read, Usage};
use super::lenient::{Count, Text};

/// The body of a good answer. Fields that are not named are skipped without being kept.
#[derive(Deserialize)]
pub(super) struct MessageBody {
    #[serde(default)]
    model: Text,
    #[serde(default)]
    content: Text,
    #[serde(default)]
    stop_reason: Text,
    #[serde(default)]
    usage: Option<RawUsage>,
    #[serde(default)]
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct RawUsage {
    #[serde(default)]
    input_tokens: Count,
    #[serde(default)]
    cache_creation_input_tokens: Count,
    #[serde(default)]
    cache_read_input_tokens: Count,
    #[serde(default)]
    output_tokens: Count,
}

impl MessageBody {
    pub(super) fn parsed(self) -> ParsedBody {
        let usage = self.usage.as_ref().map_or_else(Usage::default, |usage| {
            let cached = [usage.cache_creation_input_tokens, usage.cache_read_input_tokens];
            let cached =
                cached.iter().fold(0, |sum: u64, Count(n)| sum.saturating_add(n.unwrap_or(0)));
            Usage {
                prompt_tokens: usage.input_tokens.0.map(|tokens| tokens.saturating_add(cached)),
                completion_tokens: usage.output_tokens.0,
            }
        });
        let read = match (self.content.0, self.error) {
            (_, Some(_)) => Read::Error,
            (None, None) => Read::NoChoices,
            (Some(content), None) => Read::Answer(Box::new(Answer {
                content,
                finish_reason: self.stop_reason.0,
                model: self.model.0,
                prompt_tokens: usage.prompt_tokens,
                completion_tokens: usage.completion_tokens,
                ..Answer::default()
            })),
        };
        ParsedBody { usage, read }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> ParsedBody {
        serde_json::from_str::<MessageBody>(text).unwrap().parsed()
    }

    #[test]
    fn a_full_answer() {
        let text = r#"{"id": "msg_1", "type": "message", "role": "assistant", "model": "m-2",
            "content": [{"type": "thinking", "thinking": "hm", "signature": "x"},
                {"type": "redacted_thinking", "data": "y"},
                {"type": "text", "text": "a", "citations": null},
                {"type": "tool_use", "id": "t", "name": "f", "input": {"text": "no"}},
                {"type": "text", "text": "b"}],
            "stop_reason": "end_turn", "stop_sequence": null, "container": null,
            "usage": {"input_tokens": 10, "cache_creation_input_tokens": 200,
                "cache_read_input_tokens": 3000, "output_tokens": 7, "service_tier": "standard"}}"#;
        let ParsedBody { usage, read: Read::Answer(answer) } = parsed(text) else {
            panic!("not an answer")
        };
        assert_eq!((usage.prompt_tokens, usage.completion_tokens), (Some(3_210), Some(7)));
        let expected = Answer {
            content: "ab".into(),
            finish_reason: Some("end_turn".into()),
            model: Some("m-2".into()),
            prompt_tokens: Some(3_210),
            completion_tokens: Some(7),
            ..Answer::default()
        };
        assert_eq!(*answer, expected);
    }

    #[test]
    fn what_is_said_and_what_is_not() {
        let silent = parsed(r#"{"content": [], "stop_reason": "end_turn"}"#);
        assert_eq!(silent.usage, Usage::default());
        assert!(matches!(silent.read, Read::Answer(answer) if answer.content.is_empty()));
        for text in ["{}", r#"{"content": null}"#, r#"{"choices": [{"text": "x"}]}"#] {
            assert!(matches!(parsed(text).read, Read::NoChoices), "{text}");
        }
        let error = r#"{"type": "error", "error": {"type": "overloaded_error", "message": "M"}}"#;
        assert!(matches!(parsed(error).read, Read::Error));
        for text in ["3", r#"{"content": 3}"#, r#"{"content": [[3]]}"#] {
            assert!(serde_json::from_str::<MessageBody>(text).is_err(), "{text}");
        }
    }
}
