//! Answers, and the forms in which servers write them.
//!
//! Sources: OpenAI's references of chat completions and of completions, and Anthropic's reference of
//! `POST /v1/messages`. llama.cpp's server gives the log-probabilities of chats at both of OpenAI's
//! endpoints, Together's those of completions.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Number, Value};

/// The answer to a request: its first choice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The model's text. Empty if it refused, called a tool, or spent all tokens on thinking. Thoughts in
    /// separate fields are left out.
    pub content: String,
    /// The reason of a refusal, if the answer has a field for it.
    pub refusal: Option<String>,
    /// The server's word for why the model stopped: `stop`, `length`, `content_filter`, `tool_calls`,
    /// `end_turn`, `max_tokens`, `refusal`, or another.
    pub finish_reason: Option<String>,
    /// The model as the server calls it, often with a version.
    pub model: Option<String>,
    /// The server's configuration, if it names one.
    pub system_fingerprint: Option<String>,
    /// The tokens of the prompt, those read from a cache included, if the server counts them.
    pub prompt_tokens: Option<u64>,
    /// The tokens of the answer, those of thoughts included, if the server counts them.
    pub completion_tokens: Option<u64>,
    /// The tokens of `content` in order, if the request asks for their log-probabilities and the
    /// server gives them.
    pub logprobs: Option<Vec<TokenLogprob>>,
}

/// A token of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenLogprob {
    /// The text, as the server writes it.
    pub token: String,
    /// The natural logarithm of its probability; none if the server gives no number.
    pub logprob: Option<f64>,
}

/// The server's count of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) prompt_tokens: Option<u64>,
    pub(super) completion_tokens: Option<u64>,
}

/// The content of a response with status 2xx.
pub(super) enum Content {
    /// Without its counts of tokens.
    Answer(Box<Answer>),
    /// There is not a choice.
    NoChoices,
    /// There is an `error` instead of a choice.
    Error,
    /// An error truncated the choice.
    Truncated,
}

/// The body of an answer of OpenAI's protocols. Fields that are not named are skipped.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ChoicesBody {
    model: Text,
    system_fingerprint: Text,
    usage: Option<ChoicesUsage>,
    choices: Option<Vec<Choice>>,
    /// Some gateways answer 200 and put an error here.
    error: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ChoicesUsage {
    prompt_tokens: Count,
    completion_tokens: Count,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Choice {
    /// The field of chats, also of Mistral's endpoint for filling in the middle.
    message: Option<Message>,
    /// The field of completions.
    text: Text,
    finish_reason: Text,
    logprobs: Logprobs,
    error: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Message {
    content: Text,
    refusal: Text,
}

/// Reads the body of a chat completion or a completion.
pub(super) fn parse_choices(body: &[u8]) -> serde_json::Result<(Usage, Content)> {
    let ChoicesBody { model, system_fingerprint, usage, choices, error } =
        serde_json::from_slice(body)?;
    let usage = usage.unwrap_or_default();
    let usage = Usage {
        prompt_tokens: usage.prompt_tokens.0,
        completion_tokens: usage.completion_tokens.0,
    };
    let Some(choice) = choices.and_then(|choices| choices.into_iter().next()) else {
        let content = if error.is_some() { Content::Error } else { Content::NoChoices };
        return Ok((usage, content));
    };
    if choice.error.is_some() || choice.finish_reason.0.as_deref() == Some("error") {
        return Ok((usage, Content::Truncated));
    }
    let (content, refusal) = match (choice.message, choice.text.0) {
        (Some(message), _) => (message.content.0, message.refusal.0),
        (None, Some(text)) => (Some(text), None),
        (None, None) => return Ok((usage, Content::NoChoices)),
    };
    let answer = Answer {
        content: content.unwrap_or_default(),
        refusal: refusal.filter(|refusal| !refusal.is_empty()),
        finish_reason: choice.finish_reason.0,
        model: model.0,
        system_fingerprint: system_fingerprint.0,
        logprobs: choice.logprobs.0,
        ..Answer::default()
    };
    Ok((usage, Content::Answer(Box::new(answer))))
}

/// The body of an answer of Anthropic's messages API, whose blocks of text are the answer.
#[derive(Default, Deserialize)]
#[serde(default)]
struct MessageBody {
    model: Text,
    content: Text,
    stop_reason: Text,
    usage: Option<MessageUsage>,
    error: Option<IgnoredAny>,
}

/// Tokens read from a cache and written to it are not among the `input_tokens`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct MessageUsage {
    input_tokens: Count,
    cache_creation_input_tokens: Count,
    cache_read_input_tokens: Count,
    output_tokens: Count,
}

/// Reads the body of an answer of the messages API.
pub(super) fn parse_message(body: &[u8]) -> serde_json::Result<(Usage, Content)> {
    let MessageBody { model, content, stop_reason, usage, error } = serde_json::from_slice(body)?;
    let usage = usage.unwrap_or_default();
    let cached = [usage.cache_creation_input_tokens.0, usage.cache_read_input_tokens.0];
    let cached = cached.into_iter().flatten().fold(0, u64::saturating_add);
    let usage = Usage {
        prompt_tokens: usage.input_tokens.0.map(|tokens| tokens.saturating_add(cached)),
        completion_tokens: usage.output_tokens.0,
    };
    let (finish_reason, model) = (stop_reason.0, model.0);
    let content = match (content.0, error) {
        (_, Some(_)) => Content::Error,
        (None, None) => Content::NoChoices,
        (Some(content), None) => {
            let answer = Answer { content, finish_reason, model, ..Answer::default() };
            Content::Answer(Box::new(answer))
        }
    };
    Ok((usage, content))
}

/// A text, null, or a list of parts: `{"type": "text", "text": "…"}` or texts themselves. Parts of
/// another type do not count. A value of any other kind makes the answer malformed.
#[derive(Default, Deserialize)]
#[serde(try_from = "Value")]
struct Text(Option<String>);

impl TryFrom<Value> for Text {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        Ok(Self(match value {
            Value::Null => None,
            Value::String(text) => Some(text),
            Value::Array(parts) => {
                let mut whole = String::new();
                for part in parts {
                    whole.push_str(&Self::try_from(part)?.0.unwrap_or_default());
                }
                Some(whole)
            }
            Value::Object(mut part) => {
                let mut field = |name: &str| Self::try_from(part.remove(name).unwrap_or_default());
                let (kind, text) = (field("type")?.0, field("text")?.0);
                text.filter(|_| matches!(kind.as_deref(), None | Some("text" | "output_text")))
            }
            Value::Bool(_) | Value::Number(_) => return Err("expected a text"),
        }))
    }
}

/// A number of tokens; none if it is null or not a whole number.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(from = "Option<Number>")]
struct Count(Option<u64>);

impl From<Option<Number>> for Count {
    fn from(number: Option<Number>) -> Self {
        // Whole and far below 2^53.
        let whole = |n: f64| (n.fract() == 0.0 && (0.0..1e15).contains(&n)).then_some(n as u64);
        Self(number.and_then(|n| n.as_u64().or_else(|| n.as_f64().and_then(whole))))
    }
}

/// The tokens of an answer with their log-probabilities: `{"content": [{"token", "logprob", …}],
/// "refusal": …}` of chats, or `{"tokens": […], "token_logprobs": […], …}` of completions. Any
/// other form is treated as none: the answer was paid, and is good without.
#[derive(Default, Deserialize)]
#[serde(from = "Value")]
struct Logprobs(Option<Vec<TokenLogprob>>);

impl From<Value> for Logprobs {
    fn from(value: Value) -> Self {
        let list = |name| value.get(name).and_then(Value::as_array);
        let token = |token: &Value, logprob: Option<&Value>| {
            let logprob = logprob.and_then(Value::as_f64);
            Some(TokenLogprob { token: token.as_str()?.to_string(), logprob })
        };
        if let Some(listed) = list("content").or_else(|| list("refusal")) {
            let one = |item: &Value| token(item.get("token")?, item.get("logprob"));
            return Self(listed.iter().map(one).collect());
        }
        Self(list("tokens").zip(list("token_logprobs")).and_then(|(tokens, logprobs)| {
            let all = tokens.iter().zip(logprobs).map(|(text, number)| token(text, Some(number)));
            if tokens.len() == logprobs.len() { all.collect() } else { None }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices(text: &str) -> (Usage, Content) {
        parse_choices(text.as_bytes()).unwrap()
    }

    fn message(text: &str) -> (Usage, Content) {
        parse_message(text.as_bytes()).unwrap()
    }

    /// The answer with the counts of its body.
    #[track_caller]
    fn answer((usage, content): (Usage, Content)) -> Answer {
        let Usage { prompt_tokens, completion_tokens } = usage;
        match content {
            Content::Answer(answer) => Answer { prompt_tokens, completion_tokens, ..*answer },
            _ => panic!("not an answer"),
        }
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
        assert_eq!(answer(choices(text)), expected);
    }

    #[test]
    fn a_completion() {
        let text = r#"{"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "m-2",
            "choices": [{"index": 0, "text": "\n    return a", "finish_reason": "length",
                "stop_reason": null, "prompt_logprobs": null,
                "logprobs": {"text_offset": [0, 1], "token_logprobs": [-0.5, null],
                    "tokens": ["\n", "    return a"], "top_logprobs": [{"\n": -0.5}, null]}}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}}"#;
        let found = answer(choices(text));
        assert_eq!((found.content.as_str(), found.refusal.as_ref()), ("\n    return a", None));
        assert_eq!(found.finish_reason.as_deref(), Some("length"));
        assert_eq!((found.prompt_tokens, found.completion_tokens), (Some(3), Some(2)));
        let logprobs = found.logprobs.unwrap();
        assert_eq!(
            (logprobs.len(), logprobs[0].logprob, logprobs[1].logprob),
            (2, Some(-0.5), None)
        );
        assert_eq!(answer(choices(r#"{"choices": [{"text": ""}]}"#)).content, "");
        let odd = answer(choices(r#"{"choices": [{"text": "x", "logprobs": [1, "y"]}]}"#));
        assert_eq!((odd.content.as_str(), odd.logprobs), ("x", None));
    }

    #[test]
    fn content_in_every_dialect() {
        let parts =
            r#"{"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}"#;
        let thinking =
            r#"{"content": [{"type": "thinking", "thinking": [{"text": "x"}]}, {"text": "a"}]}"#;
        for (message, content, refusal) in [
            (r#"{"content": null}"#, "", None),
            (r"{}", "", None),
            (r#"{"content": []}"#, "", None),
            (parts, "ab", None),
            (thinking, "a", None),
            (r#"{"content": [{"text": "x", "type": "reasoning"}, "a", null]}"#, "a", None),
            (r#"{"content": "\u0000\n"}"#, "\0\n", None),
            (r#"{"content": null, "refusal": "I cannot"}"#, "", Some("I cannot")),
            (r#"{"content": "a", "refusal": ""}"#, "a", None),
        ] {
            let text = format!(r#"{{"choices": [{{"message": {message}}}]}}"#);
            let found = answer(choices(&text));
            assert_eq!(
                (&*found.content, found.refusal.as_deref()),
                (content, refusal),
                "{message}"
            );
        }
    }

    #[test]
    fn only_numbers_of_tokens_count() {
        for (number, tokens) in
            [("5", Some(5)), ("5.0", Some(5)), ("null", None), ("-1", None), ("0.5", None)]
        {
            let text = format!(r#"{{"choices": [], "usage": {{"prompt_tokens": {number}}}}}"#);
            assert_eq!(choices(&text).0.prompt_tokens, tokens, "{number}");
        }
        let null = r#"{"choices": [{"message": {}}], "usage": null}"#;
        assert_eq!(answer(choices(null)).prompt_tokens, None);
    }

    #[test]
    fn what_is_not_an_answer() {
        let error = r#"{"type": "error", "error": {"type": "overloaded_error", "message": "M"}}"#;
        for (parse, text, expected) in [
            (choices as fn(&str) -> (Usage, Content), "{}", "NoChoices"),
            (choices, "[]", "NoChoices"),
            (choices, r#"{"choices": []}"#, "NoChoices"),
            (choices, r#"{"choices": null}"#, "NoChoices"),
            (choices, r#"{"choices": [{}]}"#, "NoChoices"),
            (choices, r#"{"choices": [{"message": null}]}"#, "NoChoices"),
            (choices, r#"{"choices": [{"text": null}]}"#, "NoChoices"),
            (choices, r#"{"error": {"code": 502}}"#, "Error"),
            (choices, r#"{"choices": [{"error": {}}]}"#, "Truncated"),
            (choices, r#"{"choices": [{"finish_reason": "error"}]}"#, "Truncated"),
            (message, "{}", "NoChoices"),
            (message, r#"{"content": null}"#, "NoChoices"),
            (message, r#"{"choices": [{"text": "x"}]}"#, "NoChoices"),
            (message, error, "Error"),
        ] {
            let found = match parse(text).1 {
                Content::Answer(_) => "Answer",
                Content::NoChoices => "NoChoices",
                Content::Error => "Error",
                Content::Truncated => "Truncated",
            };
            assert_eq!(found, expected, "{text}");
        }
        for text in ["3", r#"{"choices": 3}"#, r#"{"choices": [{"message": {"content": 3}}]}"#] {
            assert!(parse_choices(text.as_bytes()).is_err(), "{text}");
        }
        for text in ["3", r#"{"content": 3}"#, r#"{"content": [[3]]}"#] {
            assert!(parse_message(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn a_full_message() {
        let text = r#"{"id": "msg_1", "type": "message", "role": "assistant", "model": "m-2",
            "content": [{"type": "thinking", "thinking": "hm", "signature": "x"},
                {"type": "redacted_thinking", "data": "y"},
                {"type": "text", "text": "a", "citations": null},
                {"type": "tool_use", "id": "t", "name": "f", "input": {"text": "no"}},
                {"type": "text", "text": "b"}],
            "stop_reason": "end_turn", "stop_sequence": null, "container": null,
            "usage": {"input_tokens": 10, "cache_creation_input_tokens": 200,
                "cache_read_input_tokens": 3000, "output_tokens": 7, "service_tier": "standard"}}"#;
        let expected = Answer {
            content: "ab".into(),
            finish_reason: Some("end_turn".into()),
            model: Some("m-2".into()),
            prompt_tokens: Some(3_210),
            completion_tokens: Some(7),
            ..Answer::default()
        };
        assert_eq!(answer(message(text)), expected);
        let silent = message(r#"{"content": [], "stop_reason": "end_turn"}"#);
        assert_eq!(silent.0, Usage::default());
        assert_eq!(answer(silent).content, "");
    }

    fn logprobs(text: &str) -> Option<Vec<(String, Option<f64>)>> {
        let Logprobs(tokens) = serde_json::from_str(text).unwrap();
        Some(tokens?.into_iter().map(|token| (token.token, token.logprob)).collect())
    }

    #[test]
    fn both_forms_of_logprobs_are_read() {
        let both = Some(vec![("a".to_string(), Some(-0.25)), (" b".to_string(), Some(-3.0))]);
        for text in [
            r#"{"content": [{"token": "a", "logprob": -0.25, "bytes": [97], "top_logprobs": []},
                {"logprob": -3, "token": " b", "id": 7}], "refusal": null}"#,
            r#"{"content": null, "refusal": [{"token": "a", "logprob": -0.25},
                {"token": " b", "logprob": -3.0}]}"#,
            r#"{"text_offset": [0, 1], "token_logprobs": [-0.25, -3], "tokens": ["a", " b"],
                "top_logprobs": [{"a": -0.25}, {" b": -3.0}]}"#,
        ] {
            assert_eq!(logprobs(text), both, "{text}");
        }
        let none = Some(vec![("a".to_string(), None)]);
        assert_eq!(logprobs(r#"{"tokens": ["a"], "token_logprobs": [null]}"#), none);
        assert_eq!(logprobs(r#"{"content": [{"token": "a", "logprob": "low"}]}"#), none);
        assert_eq!(logprobs(r#"{"content": []}"#), Some(vec![]));
    }

    #[test]
    fn logprobs_in_neither_form_are_none() {
        for text in [
            "null",
            "true",
            "3",
            "-2.5",
            r#""x""#,
            "[]",
            "[[1, {}], null]",
            "{}",
            r#"{"content": null}"#,
            r#"{"content": 5, "tokens": {}}"#,
            r#"{"content": [null]}"#,
            r#"{"content": [{"logprob": -1}]}"#,
            r#"{"tokens": ["a"]}"#,
            r#"{"tokens": ["a", "b"], "token_logprobs": [-1]}"#,
            r#"{"tokens": [1], "token_logprobs": [-1]}"#,
        ] {
            assert_eq!(logprobs(text), None, "{text}");
        }
    }
}
