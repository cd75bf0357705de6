//! What an answer is, whatever the protocol.

/// The answer to a request: its first choice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// What the model said; empty if it said nothing, as when it refused, called a tool, or spent
    /// all tokens on thinking. Thoughts in fields of their own are left out.
    pub content: String,
    /// Why the model refused, if the answer has a field for that.
    pub refusal: Option<String>,
    /// Why it stopped, in the server's word: `stop`, `length`, `content_filter`, `tool_calls`,
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
    /// Its text, as the server writes it.
    pub token: String,
    /// The natural logarithm of its probability; none if the server gives no number.
    pub logprob: Option<f64>,
}

/// What a server says that a request took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) prompt_tokens: Option<u64>,
    pub(super) completion_tokens: Option<u64>,
}

/// The body of a good answer: what it took, and what it turned out to be.
pub(super) struct ParsedBody {
    pub(super) usage: Usage,
    pub(super) read: Read,
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
