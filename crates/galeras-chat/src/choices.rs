//! The answers of OpenAI's chat completions and completions, in the dialects of many servers.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::answer::{Answer, ParsedBody, Read, Usage};
use super::lenient::{Count, Text};
use super::logprobs::Logprobs;

/// The body of a good answer. Fields that are not named are skipped without being kept.
#[derive(Deserialize)]
pub(super) struct ChoicesBody {
    #[serde(default)]
    model: Text,
    #[serde(default)]
    system_fingerprint: Text,
    #[serde(default)]
    usage: Option<RawUsage>,
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    /// Some gateways answer 200 and put an error here.
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
    /// The field of chats, also of Mistral's endpoint for filling in the middle.
    #[serde(default)]
    message: Option<Message>,
    /// The field of completions.
    #[serde(default)]
    text: Text,
    #[serde(default)]
    finish_reason: Text,
    #[serde(default)]
    logprobs: Logprobs,
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

impl ChoicesBody {
    pub(super) fn parsed(self) -> ParsedBody {
        let usage = self.usage.as_ref().map_or_else(Usage::default, |usage| Usage {
            prompt_tokens: usage.prompt_tokens.0,
            completion_tokens: usage.completion_tokens.0,
        });
        ParsedBody { usage, read: self.read(usage) }
    }

    fn read(self, usage: Usage) -> Read {
        let Some(choice) = self.choices.and_then(|choices| choices.into_iter().next()) else {
            return if self.error.is_some() { Read::Error } else { Read::NoChoices };
        };
        if choice.error.is_some() || choice.finish_reason.0.as_deref() == Some("error") {
            return Read::BrokenOff;
        }
        let (content, refusal) = match (choice.message, choice.text.0) {
            (Some(message), _) => (message.content.0, message.refusal.0),
            (None, Some(text)) => (Some(text), None),
            (None, None) => return Read::NoChoices,
        };
        Read::Answer(Box::new(Answer {
            content: content.unwrap_or_default(),
            refusal: refusal.filter(|refusal| !refusal.is_empty()),
            finish_reason: choice.finish_reason.0,
            model: self.model.0,
            system_fingerprint: self.system_fingerprint.0,
            prompt_tokens: usage.prompt_tokens,
            completion_tokens: usage.completion_tokens,
            logprobs: choice.logprobs.0,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Read {
        serde_json::from_str::<ChoicesBody>(text).unwrap().parsed().read
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
            logprobs: None,
        };
        assert_eq!(answer(text), expected);
    }

    #[test]
    fn a_completion() {
        let text = r#"{"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "m-2",
            "choices": [{"index": 0, "text": "\n    return a", "finish_reason": "length",
                "stop_reason": null, "prompt_logprobs": null,
                "logprobs": {"text_offset": [0, 1], "token_logprobs": [-0.5, null],
                    "tokens": ["\n", "    return a"], "top_logprobs": [{"\n": -0.5}, null]}}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}}"#;
        let found = answer(text);
        assert_eq!((found.content.as_str(), found.refusal.as_ref()), ("\n    return a", None));
        assert_eq!(found.finish_reason.as_deref(), Some("length"));
        assert_eq!((found.prompt_tokens, found.completion_tokens), (Some(3), Some(2)));
        let logprobs = found.logprobs.unwrap();
        assert_eq!(
            (logprobs.len(), logprobs[0].logprob, logprobs[1].logprob),
            (2, Some(-0.5), None)
        );
        assert_eq!(answer(r#"{"choices": [{"text": ""}]}"#).content, "");
        let odd = answer(r#"{"choices": [{"text": "x", "logprobs": [1, "y"]}]}"#);
        assert_eq!((odd.content.as_str(), odd.logprobs), ("x", None));
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
            let body: ChoicesBody = serde_json::from_str(&text).unwrap();
            assert_eq!(body.parsed().usage.prompt_tokens, tokens, "{number}");
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
            r#"{"choices": [{"text": null}]}"#,
        ] {
            assert!(matches!(read(text), Read::NoChoices), "{text}");
        }
        assert!(matches!(read(r#"{"error": {"code": 502}}"#), Read::Error));
        assert!(matches!(read(r#"{"choices": [{"error": {}}]}"#), Read::BrokenOff));
        assert!(matches!(read(r#"{"choices": [{"finish_reason": "error"}]}"#), Read::BrokenOff));
        for text in ["3", r#"{"choices": 3}"#, r#"{"choices": [{"message": {"content": 3}}]}"#] {
            assert!(serde_json::from_str::<ChoicesBody>(text).is_err(), "{text}");
        }
    }
}
