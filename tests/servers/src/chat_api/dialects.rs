//! Good answers and errors in each of the protocols: OpenAI's chat completions and completions,
//! Anthropic's messages.

use serde_json::{Value, json};

/// The protocol of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Chat,
    Completions,
    Messages,
}

impl Dialect {
    /// The one of `POST /v1/…`.
    pub fn of(path: &str) -> Option<Self> {
        match path {
            "POST /v1/chat/completions" => Some(Self::Chat),
            "POST /v1/completions" => Some(Self::Completions),
            "POST /v1/messages" => Some(Self::Messages),
            _ => None,
        }
    }

    /// The good answer to `body`, the `number`th, of a model that calls itself `model`.
    pub fn good(
        self,
        body: &Value,
        number: usize,
        model: Option<&str>,
        (prompt, answer): (u64, u64),
    ) -> Value {
        if self == Self::Messages {
            return json!({
                "id": format!("msg_{number}"),
                "type": "message",
                "role": "assistant",
                "model": model,
                "content": [{"type": "text", "text": content(body)}],
                "stop_reason": "end_turn",
                "stop_sequence": null,
                "usage": {
                    "input_tokens": prompt,
                    "cache_creation_input_tokens": 0,
                    "cache_read_input_tokens": 0,
                    "output_tokens": answer,
                },
            });
        }
        let message = json!({"role": "assistant", "content": content(body)});
        let mut choice = match self {
            Self::Completions => json!({"index": 0, "text": goes_on(body)}),
            _ => json!({"index": 0, "message": message}),
        };
        choice["logprobs"] = self.logprobs(body);
        choice["finish_reason"] = json!("stop");
        let (id, object) = match self {
            Self::Completions => ("cmpl", "text_completion"),
            _ => ("chatcmpl", "chat.completion"),
        };
        json!({
            "id": format!("{id}-{number}"),
            "object": object,
            "created": 1_795_262_011,
            "model": model,
            "choices": [choice],
            "usage": {
                "prompt_tokens": prompt,
                "completion_tokens": answer,
                "total_tokens": prompt + answer,
            },
        })
    }

    /// The log-probabilities of the good answer, if they are asked for.
    fn logprobs(self, body: &Value) -> Value {
        match (self, &body["logprobs"]) {
            (Self::Chat, Value::Bool(true)) => {
                let token = |(token, logprob): (String, f64)| {
                    json!({"token": token, "logprob": logprob, "bytes": token.as_bytes(),
                        "top_logprobs": []})
                };
                let tokens: Vec<Value> = tokens(&content(body)).into_iter().map(token).collect();
                json!({"content": tokens, "refusal": null})
            }
            (Self::Completions, Value::Number(_)) => {
                let (tokens, logprobs): (Vec<String>, Vec<f64>) =
                    tokens(&goes_on(body)).into_iter().unzip();
                let top: Vec<Value> =
                    tokens.iter().zip(&logprobs).map(|(token, p)| json!({token: p})).collect();
                json!({"tokens": tokens, "token_logprobs": logprobs, "top_logprobs": top,
                    "text_offset": (0..tokens.len()).map(|at| 4 * at).collect::<Vec<_>>()})
            }
            _ => Value::Null,
        }
    }

    /// The fields of an answer of just this message, `{"content": …}` and what else there is.
    pub fn message(self, message: Value) -> Value {
        let mut choice = match self {
            Self::Messages => return json!({"content": message["content"]}),
            Self::Completions => json!({"index": 0, "text": message["content"]}),
            Self::Chat => json!({"index": 0, "message": message}),
        };
        choice["finish_reason"] = json!("stop");
        json!({ "choices": [choice] })
    }

    /// The fields of an answer that answers nothing.
    pub fn nothing(self) -> Value {
        match self {
            Self::Messages => json!({"content": null}),
            _ => json!({"choices": []}),
        }
    }

    /// An error with its code and message.
    pub fn error(self, code: &str, message: &str) -> String {
        match self {
            Self::Messages => {
                let error = json!({"type": code, "message": message});
                json!({"type": "error", "error": error, "request_id": "req_1"}).to_string()
            }
            _ => error(code, message),
        }
    }
}

/// The code that answers a request, as it is in the answer: a function of what is asked, the seed
/// and nothing else.
pub fn code(body: &Value) -> String {
    let mut told = json!([body["messages"], body["seed"]]);
    for name in ["prompt", "suffix", "system"] {
        if let (Some(value), Some(told)) = (body.get(name), told.as_array_mut()) {
            told.push(value.clone());
        }
    }
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = told.to_string().as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, mix);
    format!("def f_{hash:016x}(a):\n    return a + {}", hash % 1_000)
}

/// The text that answers a chat.
pub fn content(body: &Value) -> String {
    format!("Here it is:\n\n```python\n{}\n```\nThat is all.", code(body))
}

/// The text with which a prompt goes on.
pub fn goes_on(body: &Value) -> String {
    format!("\n{}\n\n", code(body))
}

/// A text in pieces of four characters, with numbers that have no short binary form.
pub fn tokens(text: &str) -> Vec<(String, f64)> {
    let chars: Vec<char> = text.chars().collect();
    let pieces = chars.chunks(4).map(|piece| piece.iter().collect::<String>()).enumerate();
    pieces.map(|(at, piece)| (piece, -0.1 * (at % 7) as f64 - 0.003)).collect()
}

/// An error as OpenAI and llama.cpp's server word it.
pub fn error(code: &str, message: &str) -> String {
    json!({"error": {"message": message, "type": "error", "param": null, "code": code}}).to_string()
}
