//! Answers, independent of the protocol.

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

/// The body of a response with status 2xx.
pub(super) struct ParsedBody {
    pub(super) usage: Usage,
    pub(super) read: Read,
}

/// The content of a body.
pub(super) enum Read {
    Answer(Box<Answer>),
    /// There is not a choice.
    NoChoices,
    /// There is an `error` instead of a choice.
    Error,
    /// An error truncated the choice.
    BrokenOff,
}
