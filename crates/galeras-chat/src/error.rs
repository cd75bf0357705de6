//! The error of this crate. Some errors end a step, and some one request, for which there are stable words.

/// Why a request got no answer. Displayed as one sentence without a full stop; never quotes a
/// key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChatError {
    /// The caller cancelled.
    #[error("the request was interrupted")]
    Interrupted,
    /// No request can succeed; the text has advice for the user. From then on the client sends nothing
    /// and returns this error to every caller.
    #[error("{0}")]
    Fatal(String),
    /// The next request might exceed a limit of spending. The text names the limit and the rest of it. From
    /// then on no request under that limit is sent.
    #[error("{0}")]
    OverBudget(String),
    /// This request failed; others may succeed.
    #[error("{reason}")]
    Failed {
        /// A stable word for the kind of failure, one of [`rules`].
        rule: &'static str,
        /// The reason, in one sentence.
        reason: String,
        /// Another run may succeed: the request is not the cause of the failure.
        passing: bool,
        /// The body of the last response in which no answer was found, without the key. It may hold
        /// one, which was paid.
        unread: Option<Box<str>>,
    },
}

/// The words for failures of one request.
pub mod rules {
    /// No answer in time.
    pub const TIME_OUT: &str = "time_out";
    /// The server reported a failure.
    pub const SERVER_ERROR: &str = "server_error";
    /// The connection ended before the answer.
    pub const CUT_CONNECTION: &str = "cut_connection";
    /// The answer does not follow the protocol.
    pub const MALFORMED_ANSWER: &str = "malformed_answer";
    /// The answer has no choice, or no content.
    pub const NO_CHOICES: &str = "no_choices";
    /// The answer is longer than the client reads.
    pub const TOO_LARGE: &str = "too_large";
    /// The server refuses this request, such as one that is longer than its context.
    pub const REFUSED: &str = "refused";
    /// A filter of the server stopped the prompt.
    pub const CONTENT_FILTER: &str = "content_filter";
}
