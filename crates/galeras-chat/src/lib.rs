//! Answers of language models behind servers: OpenAI's chat completions and completions (vLLM,
//! llama.cpp, Ollama, gateways, OpenAI), Anthropic's messages.
//!
//! [`Protocol`] has the differences between the protocols. A request ([`Ask`]) goes to an [`Endpoint`]
//! through a [`ChatClient`], which all requests to it share: it holds the possible cost back (`budget`,
//! `money`), waits for its turn (`pace`), sends the request (`transport`),
//! reads the answer (`answer`) or the error (`error_body`), judges it (`verdict`), and tries again
//! after a wait (`waits`).
//!
//! The caller decides how many requests run in parallel. The key is the only secret here; no text shows
//! a part of it that could be used.
//!
//! # Retries
//!
//! “All” ends every request of the client ([`ChatError::Fatal`]), “one” this one
//! ([`ChatError::Failed`], with the rule). The cost of a try counts for the budget: “worst” is the
//! worst case, as the real cost is unknown. Between tries are 1, 2, 4, 8 … 30 seconds, less up to half.
//!
//! | event | tries | then ends | cost of a try |
//! |---|---|---|---|
//! | 401, 403, 405, 407, 410, 501; 404 of address or model | 1 | all | none |
//! | 402; 429 with `insufficient_quota` and the like | 1 | all | none |
//! | 400, 422: no such model, no money left, unsupported parameter | 1 | all | none |
//! | 3xx | 1 | all | none |
//! | TLS fails, the key or address cannot be sent | 1 | all | none |
//! | 2xx as an event stream, or compressed | 1 | all | worst |
//! | 2xx as a web page before any good answer | 1 | all | none |
//! | unreachable before the server's first answer | 1 | all | none |
//! | unreachable later; 503 “loading model” | for `patience` | all | none |
//! | 429; 503, 529 with `retry-after` | 10 in a row without a good answer | all | none |
//! | … but others are answered | 20 of one request | one: `refused` | none |
//! | … asks for more than an hour | 1 | all | none |
//! | 429 “request too large”, other 4xx; 500 “context size” | 1 | one: `refused` | none |
//! | 400 `content_filter`, 403 “flagged” | 1 | one: `content_filter` | none |
//! | 408, 409, 425, 5xx, an error in a 2xx | `tries` | one: `server_error` | none; worst for 408, 504, 524, 2xx |
//! | … with `x-should-retry: false` | 1 | one: `server_error` | the same |
//! | the connection ends before the answer | `tries` | one: `cut_connection` | worst |
//! | no answer in time | 2 | one: `time_out` | worst |
//! | 2xx that breaks the protocol, or is empty | 2 | one: `malformed_answer` | worst |
//! | 2xx without a choice, or without content | 2 | one: `no_choices` | by the server's count, or worst |
//! | 2xx longer than allowed | 1 | one: `too_large` | worst |
//! | the budget does not allow another try | – | all: `OverBudget` | – |
//!
//! After 429, or 503 and 529 with `retry-after`, nothing is sent for as long as the server asked
//! (`retry-after-ms`, `retry-after`, `x-ratelimit-reset-*`), or for 1, 2, 4 … 60 seconds; then
//! requests are sent 0.1 seconds apart until `concurrency` of them were sent. These
//! waits use up no tries.

mod answer;
mod ask;
mod budget;
mod client;
mod endpoint;
mod error;
mod error_body;
mod lenient_json;
mod money;
mod pace;
mod protocol;
#[cfg(test)]
mod tests;
mod transport;
mod verdict;
mod waits;

pub use answer::{Answer, TokenLogprob};
pub use ask::Ask;
pub use budget::{
    Accounts, Budget, Expense, Expenses, Reservation, SpendingLimit, SpendingLog, Tally,
};
pub use client::{ChatClient, ChatNotice, ChatNotify, ChatSettings};
pub use endpoint::Endpoint;
pub use error::{ChatError, rules};
pub use money::{Price, Usd};
pub use protocol::Protocol;
