//! What a server answers, in the dialects of many.
//!
//! Reading a good answer.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The answer to a request: its first choice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// What the model said; empty if it said nothing, as when it refused, called a tool, or spent
    /// all tokens on thinking. Thoughts in fields of their own are left out.
    pub content: String,
    /// Why the model refused, if the answer has a field for that.
    pub refusal: Option<String>,
    /// Why it stopped: `stop`, `length`, `content_filter`, `tool_calls`, or another word.
    pub finish_reason: Option<String>,
    /// The model as the server calls it, often with a version.
    pub model: Option<String>,
    /// The server's configuration, if it names one.
    pub system_fingerprint: Option<String>,
    /// The tokens of the prompt, if the server counts them.
    pub prompt_tokens: Option<u64>,
    /// The tokens of the answer, those of thoughts included, if the server counts them.
    pub completion_tokens: Option<u64>,
}

/// What a server says that a request took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) prompt_tokens: Option<u64>,
    pub(super) completion_tokens: Option<u64>,
}

/// The body of a good answer. Fields that are not named are skipped without being kept.
#[derive(Deserialize)]
pub(super) struct Body {
    #[serde(default)]
    model: Text,
    #[serde(default)]
    system_fingerprint: Text,
    #[serde(default)]
    usage: Option<RawUsage>,
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    /// Some gateways answer 200 and say here what failed.
    #[serde(default)]
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct RawUsage {
    #[serde(default)]
    prompt_tokens: Count,
    #[serde(default)]
    completion_tokens: Count,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    message: Option<Message>,
    #[serde(default)]
    finish_reason: Text,
    #[serde(default)]
    error: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
struct Message {
    #[serde(default)]
    content: Text,
    #[serde(default)]
    refusal: Text,
}

/// What a body turned out to be.
pub(super) enum Read {
    Answer(Box<Answer>),
    /// It holds no choice.
    NoChoices,
    /// It says what failed, in `error`.
    Error,
    /// The choice was broken off by an error.
    BrokenOff,
}

impl Body {
    pub(super) fn usage(&self) -> Usage {
        self.usage.as_ref().map_or_else(Usage::default, |usage| Usage {
            prompt_tokens: usage.prompt_tokens.0,
            completion_tokens: usage.completion_tokens.0,
        })
    }

    pub(super) fn read(self) -> Read {
        let usage = self.usage();
        let Some(choice) = self.choices.and_then(|choices| choices.into_iter().next()) else {
            return if self.error.is_some() { Read::Error } else { Read::NoChoices };
        };
        if choice.error.is_some() || choice.finish_reason.0.as_deref() == Some("error") {
            return Read::BrokenOff;
        }
        let Some(message) = choice.message else { return Read::NoChoices };
        Read::Answer(Box::new(Answer {
            content: message.content.0.unwrap_or_default(),
            refusal: message.refusal.0.filter(|refusal| !refusal.is_empty()),
            finish_reason: choice.finish_reason.0,
            model: self.model.0,
            system_fingerprint: self.system_fingerprint.0,
            prompt_tokens: usage.prompt_tokens,
            completion_tokens: usage.completion_tokens,
        }))
    }
}

/// A text, null, or a list of parts, `{"type": "text", "text": "…"}` or texts themselves, of which
/// those of another type do not count.
#[derive(Default)]
struct Text(Option<String>);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor).map(Self)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(text.to_string()))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<Self::Value, E> {
        Ok(Some(text))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
        let mut whole = String::new();
        while let Some(Text(part)) = parts.next_element()? {
            whole.push_str(part.as_deref().unwrap_or_default());
        }
        Ok(Some(whole))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut part: A) -> Result<Self::Value, A::Error> {
        let (mut kind, mut text) = (None, None);
        while let Some(key) = part.next_key::<String>()? {
            match key.as_str() {
                "type" => kind = part.next_value::<Text>()?.0,
                "text" => text = part.next_value::<Text>()?.0,
                _ => drop(part.next_value::<IgnoredAny>()?),
            }
        }
        let is_text = kind.is_none_or(|kind| kind == "text" || kind == "output_text");
        Ok(text.filter(|_| is_text))
    }
}

/// A number of tokens; none if it is null or not a whole number.
#[derive(Default)]
struct Count(Option<u64>);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = Option::<serde_json::Number>::deserialize(deserializer)?;
        Ok(Self(number.and_then(|number| {
            let float = || number.as_f64().filter(|n| n.fract() == 0.0 && (0.0..1e15).contains(n));
            // Whole and far below 2^53.
            number.as_u64().or_else(|| float().map(|n| n as u64))
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Read {
        serde_json::from_str::<Body>(text).unwrap().read()
    }

    fn answer(text: &str) -> Answer {
        match read(text) {
            Read::Answer(answer) => *answer,
            _ => panic!("not an answer: {text}"),
        }
    }

    fn said(message: &str) -> Answer {
        answer(&format!(r#"{{"choices": [{{"message": {message}}}]}}"#))
    }

    #[test]
    fn a_full_answer() {
        let text = r#"{"id": "x", "object": "chat.completion", "created": 1, "model": "m-2",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi \ud83d\ude00",
                "reasoning_content": "hm", "reasoning": "hm", "tool_calls": [], "annotations": []},
                "logprobs": null, "finish_reason": "stop", "stop_reason": 151645}],
            "usage": {"prompt_tokens": 13, "completion_tokens": 5, "total_tokens": 18,
                "completion_tokens_details": {"reasoning_tokens": 3}},
            "system_fingerprint": "fp_ollama", "timings": {"prompt_ms": 1.5}}"#;
        let expected = Answer {
            content: "hi 😀".into(),
            refusal: None,
            finish_reason: Some("stop".into()),
            model: Some("m-2".into()),
            system_fingerprint: Some("fp_ollama".into()),
            prompt_tokens: Some(13),
            completion_tokens: Some(5),
        };
        assert_eq!(answer(text), expected);
    }

    #[test]
    fn content_in_every_dialect() {
        for (message, content) in [
            (r#"{"content": null}"#, ""),
            (r"{}", ""),
            (r#"{"content": []}"#, ""),
            (
                r#"{"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}"#,
                "ab",
            ),
            (
                r#"{"content": [{"type": "thinking", "thinking": [{"text": "x"}]}, {"text": "a"}]}"#,
                "a",
            ),
            (r#"{"content": [{"text": "x", "type": "reasoning"}, "a", null]}"#, "a"),
            (r#"{"content": "\u0000\n"}"#, "\0\n"),
        ] {
            assert_eq!(said(message).content, content, "{message}");
        }
        let refused = said(r#"{"content": null, "refusal": "I cannot"}"#);
        assert_eq!((refused.content.as_str(), refused.refusal.as_deref()), ("", Some("I cannot")));
        assert_eq!(said(r#"{"content": "a", "refusal": ""}"#).refusal, None);
    }

    #[test]
    fn only_numbers_of_tokens_count() {
        for (number, tokens) in
            [("5", Some(5)), ("5.0", Some(5)), ("null", None), ("-1", None), ("0.5", None)]
        {
            let text = format!(r#"{{"choices": [], "usage": {{"prompt_tokens": {number}}}}}"#);
            let body: Body = serde_json::from_str(&text).unwrap();
            assert_eq!(body.usage().prompt_tokens, tokens, "{number}");
        }
        assert_eq!(answer(r#"{"choices": [{"message": {}}], "usage": null}"#).prompt_tokens, None);
    }

    #[test]
    fn what_is_not_an_answer() {
        for text in [
            "{}",
            "[]",
            r#"{"choices": []}"#,
            r#"{"choices": null}"#,
            r#"{"choices": [{}]}"#,
            r#"{"choices": [{"message": null}]}"#,
        ] {
            assert!(matches!(read(text), Read::NoChoices), "{text}");
        }
        assert!(matches!(read(r#"{"error": {"code": 502}}"#), Read::Error));
        assert!(matches!(read(r#"{"choices": [{"error": {}}]}"#), Read::BrokenOff));
        assert!(matches!(read(r#"{"choices": [{"finish_reason": "error"}]}"#), Read::BrokenOff));
        for text in ["3", r#"{"choices": 3}"#, r#"{"choices": [{"message": {"content": 3}}]}"#] {
            assert!(serde_json::from_str::<Body>(text).is_err(), "{text}");
        }
    }
}
