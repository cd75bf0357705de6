//! Answers, and the forms in which servers write them.
//!
//! Sources: OpenAI's references of chat completions and of completions, and Anthropic's reference of
//! `POST /v1/messages`. llama.cpp's server gives the log-probabilities of chats at both of OpenAI's
//! endpoints, Together's those of completions.

use serde::de::Error as _;
use serde_json::{Error, Value};

use super::lenient_json;

/// The answer to a request: its first choice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The model's text. Empty if it refused, called a tool, or spent all tokens on thinking.
    pub content: String,
    /// The model's thoughts, if the answer has a field or a block for them.
    pub reasoning: Option<String>,
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

/// Reads the body of a chat completion or a completion.
///
/// # Errors
/// If it is not JSON, or what would be the answer is no text. The rest may have any form.
pub(super) fn parse_choices(body: &[u8]) -> serde_json::Result<(Usage, Content)> {
    let body = body_of(body)?;
    let usage = &body["usage"];
    let usage = Usage {
        prompt_tokens: count(&usage["prompt_tokens"]),
        completion_tokens: count(&usage["completion_tokens"]),
    };
    let choice = match &body["choices"] {
        Value::Null => None,
        Value::Array(choices) => choices.first(),
        _ => return Err(Error::custom("`choices` is not a list")),
    };
    let Some(choice) = choice else {
        // Some gateways answer 200 and put an error here.
        let error = !body["error"].is_null();
        return Ok((usage, if error { Content::Error } else { Content::NoChoices }));
    };
    let finish_reason = label(&choice["finish_reason"]);
    if !choice["error"].is_null() || finish_reason.as_deref() == Some("error") {
        return Ok((usage, Content::Truncated));
    }
    // The field of chats, also of Mistral's endpoint for filling in the middle; or of completions.
    let (message, content) = match (&choice["message"], &choice["text"]) {
        (Value::Null, Value::Null) => return Ok((usage, Content::NoChoices)),
        (Value::Null, text) => (&Value::Null, text),
        (message, _) => (message, &message["content"]),
    };
    let answer = Answer {
        content: text(content)?.unwrap_or_default(),
        reasoning: reasoning(message, content),
        refusal: message["refusal"].as_str().filter(|text| !text.is_empty()).map(str::to_owned),
        finish_reason,
        model: label(&body["model"]),
        system_fingerprint: label(&body["system_fingerprint"]),
        logprobs: logprobs(&choice["logprobs"]),
        ..Answer::default()
    };
    Ok((usage, Content::Answer(Box::new(answer))))
}

/// Reads the body of an answer of Anthropic's messages API, whose blocks of text are the answer.
///
/// # Errors
/// Those of [`parse_choices`].
pub(super) fn parse_message(body: &[u8]) -> serde_json::Result<(Usage, Content)> {
    let body = body_of(body)?;
    let tokens = |name: &str| count(&body["usage"][name]);
    // Tokens read from a cache and written to it are not among the `input_tokens`.
    let cached = ["cache_creation_input_tokens", "cache_read_input_tokens"];
    let cached = cached.into_iter().filter_map(tokens).fold(0, u64::saturating_add);
    let usage = Usage {
        prompt_tokens: tokens("input_tokens").map(|tokens| tokens.saturating_add(cached)),
        completion_tokens: tokens("output_tokens"),
    };
    if !body["error"].is_null() {
        return Ok((usage, Content::Error));
    }
    let content = match text(&body["content"])? {
        None => Content::NoChoices,
        Some(content) => Content::Answer(Box::new(Answer {
            content,
            reasoning: reasoning(&Value::Null, &body["content"]),
            finish_reason: label(&body["stop_reason"]),
            model: label(&body["model"]),
            ..Answer::default()
        })),
    };
    Ok((usage, content))
}

fn body_of(body: &[u8]) -> serde_json::Result<Value> {
    let value = lenient_json::read(body)?;
    if value.is_object() || value.is_array() {
        return Ok(value);
    }
    Err(Error::custom("expected an object"))
}

/// A text, null, or a list of parts: `{"type": "text", "text": "…"}` or texts themselves. Parts of
/// another type do not count.
fn text(value: &Value) -> serde_json::Result<Option<String>> {
    Ok(match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            let mut whole = String::new();
            for part in parts {
                whole.push_str(&text(part)?.unwrap_or_default());
            }
            Some(whole)
        }
        Value::Object(part) => match part.get("type").and_then(Value::as_str) {
            None | Some("text" | "output_text") => text(&value["text"])?,
            Some(_) => None,
        },
        Value::Bool(_) | Value::Number(_) => return Err(Error::custom("expected a text")),
    })
}

/// The fields of a message with thoughts: of DeepSeek, vLLM, SGLang and llama.cpp; of OpenRouter,
/// Ollama, Groq and newer versions of vLLM.
const REASONING: [&str; 2] = ["reasoning_content", "reasoning"];

/// The thoughts in the fields of a message, else in blocks of its content. They are not needed, so
/// any other form is treated as none.
fn reasoning(message: &Value, content: &Value) -> Option<String> {
    let block = |block: &Value| match block["type"].as_str() {
        Some("thinking") => text(&block["thinking"]).ok().flatten(),
        Some("reasoning") => text(&block["text"]).ok().flatten(),
        _ => None,
    };
    let blocks = || {
        let blocks = content.as_array()?.iter().filter_map(block);
        Some(blocks.collect::<Vec<_>>().join("\n\n"))
    };
    let fields = REASONING.iter().filter_map(|name| message[*name].as_str().map(str::to_owned));
    fields.chain(blocks()).find(|thoughts| !thoughts.trim().is_empty())
}

/// A word or a number that describes the answer; none in any other form.
fn label(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A number of tokens, also within a text; none if it is not a whole number.
fn count(value: &Value) -> Option<u64> {
    // Whole and far below 2^53.
    let whole = |n: f64| (n.fract() == 0.0 && (0.0..1e15).contains(&n)).then_some(n as u64);
    match value {
        Value::String(text) => text.trim().parse().ok(),
        _ => value.as_u64().or_else(|| value.as_f64().and_then(whole)),
    }
}

/// The tokens of an answer with their log-probabilities: `{"content": [{"token", "logprob", …}],
/// "refusal": …}` of chats, or `{"tokens": […], "token_logprobs": […], …}` of completions. Any
/// other form is treated as none: the answer was paid, and is good without.
fn logprobs(value: &Value) -> Option<Vec<TokenLogprob>> {
    let list = |name| value.get(name).and_then(Value::as_array);
    let token = |token: &Value, logprob: Option<&Value>| {
        let logprob = logprob.and_then(Value::as_f64);
        Some(TokenLogprob { token: token.as_str()?.to_string(), logprob })
    };
    if let Some(listed) = list("content").or_else(|| list("refusal")) {
        let one = |item: &Value| token(item.get("token")?, item.get("logprob"));
        return listed.iter().map(one).collect();
    }
    let (tokens, logprobs) = list("tokens").zip(list("token_logprobs"))?;
    if tokens.len() != logprobs.len() {
        return None;
    }
    tokens.iter().zip(logprobs).map(|(text, number)| token(text, Some(number))).collect()
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
            reasoning: Some("hm".into()),
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
    fn thoughts_in_every_dialect() {
        let blocks = r#"{"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "a"}]},
            {"type": "thinking", "thinking": "b"}, {"type": "text", "text": "x"}]}"#;
        for (message, thoughts) in [
            (r#"{"content": "x"}"#, None),
            (r#"{"content": "x", "reasoning_content": "a"}"#, Some("a")),
            (r#"{"content": null, "reasoning": "a"}"#, Some("a")),
            (r#"{"content": "x", "reasoning_content": "", "reasoning": "a"}"#, Some("a")),
            (r#"{"content": "x", "reasoning_content": null, "reasoning": {"effort": 1}}"#, None),
            (r#"{"content": "x", "reasoning": "\n "}"#, None),
            (blocks, Some("a\n\nb")),
            (r#"{"content": [{"text": "a", "type": "reasoning"}, "x"]}"#, Some("a")),
            (r#"{"content": [{"type": "thinking", "thinking": 1}, "x"]}"#, None),
        ] {
            let text = format!(r#"{{"choices": [{{"message": {message}}}]}}"#);
            assert_eq!(answer(choices(&text)).reasoning.as_deref(), thoughts, "{message}");
        }
    }

    #[test]
    fn only_numbers_of_tokens_count() {
        for (number, tokens) in [
            ("5", Some(5)),
            ("5.0", Some(5)),
            ("\"5\"", Some(5)),
            ("null", None),
            ("-1", None),
            ("0.5", None),
        ] {
            let text = format!(r#"{{"choices": [], "usage": {{"prompt_tokens": {number}}}}}"#);
            assert_eq!(choices(&text).0.prompt_tokens, tokens, "{number}");
        }
        for usage in ["null", "\"\"", "[]", "7"] {
            let odd = format!(r#"{{"choices": [{{"message": {{}}}}], "usage": {usage}}}"#);
            assert_eq!(answer(choices(&odd)).prompt_tokens, None, "{usage}");
        }
    }

    /// Nothing that was paid for is lost over a field that is only a description.
    #[test]
    fn odd_descriptions_do_not_count() {
        for (odd, finish_reason) in [
            (r#""finish_reason": 1"#, Some("1")),
            (r#""finish_reason": true"#, None),
            (r#""finish_reason": "stop", "index": "x", "index": []"#, Some("stop")),
        ] {
            let text = format!(
                r#": OPENROUTER PROCESSING
                {{"model": 7, "model": "m", "system_fingerprint": 12, "timings": {{"x": NaN}},
                "choices": [{{"message": {{"content": "a\ud83d", "refusal": false}}, {odd}}}]}}"#
            );
            let found = answer(choices(&text));
            assert_eq!((&*found.content, found.refusal), ("a\u{fffd}", None), "{odd}");
            assert_eq!(found.finish_reason.as_deref(), finish_reason, "{odd}");
            assert_eq!(found.model.as_deref(), Some("m"));
            assert_eq!(found.system_fingerprint.as_deref(), Some("12"));
        }
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
            reasoning: Some("hm".into()),
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
        let tokens = super::logprobs(&serde_json::from_str(text).unwrap());
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
