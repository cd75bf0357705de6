//! The error of everything that asks a chat endpoint.
//!
//! What ends a step, what ends one request, and the words for the latter.

/// Why a request got no answer. Displayed as one sentence without a full stop; never quotes a
/// key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChatError {
    /// The caller cancelled.
    #[error("the request was interrupted")]
    Interrupted,
    /// No request will be answered, whatever it asks; says what to do. From then on the client
    /// sends nothing and gives this error to everyone who asks.
    #[error("{0}")]
    Fatal(String),
    /// The next request might pass a limit of what may be spent; says which, and how much of it is
    /// left. From then on nothing is sent that the limit is for.
    #[error("{0}")]
    OverBudget(String),
    /// This request failed; others may succeed.
    #[error("{reason}")]
    Failed {
        /// A stable word for the kind of failure, one of [`rules`].
        rule: &'static str,
        /// What happened, in one sentence.
        reason: String,
        /// Whether another run may fare better: the failure says nothing about the request.
        passing: bool,
    },
}

/// The words for failures of one request.
pub mod rules {
    /// No answer in time.
    pub const TIME_OUT: &str = "time_out";
    /// The server said that it failed.
    pub const SERVER_ERROR: &str = "server_error";
    /// The connection ended before the answer did.
    pub const CUT_CONNECTION: &str = "cut_connection";
    /// The answer is not what the protocol says.
    pub const MALFORMED_ANSWER: &str = "malformed_answer";
    /// The answer holds no choice, or no content.
    pub const NO_CHOICES: &str = "no_choices";
    /// The answer is longer than the client reads.
    pub const TOO_LARGE: &str = "too_large";
    /// The server does not take this request, such as one that is longer than its context.
    pub const REFUSED: &str = "refused";
    /// A filter of the server stopped the prompt.
    pub const CONTENT_FILTER: &str = "content_filter";
}
