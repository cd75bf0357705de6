//! Payments of a step: terms, limits, and forecasts of requests.

use galeras_chat::{Price, Usd};

use super::access::ServerAddress;

/// The model that a step asks, and its limits, as far as the arguments determine them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentTerms {
    /// The model.
    pub model: String,
    /// The server.
    pub server: Option<ServerAddress>,
    /// The price of tokens.
    pub price: Option<Price>,
    /// The maximum that all cells of the step may spend together.
    pub max_usd: Option<Usd>,
    /// The length of answers is limited.
    pub bounded: bool,
}

impl PaymentTerms {
    /// True if it may cost money: unless the server is this machine, or the price is 0.
    pub fn may_cost(&self) -> bool {
        match self.price {
            Some(price) => !price.is_free(),
            None => !self.server.as_ref().is_some_and(ServerAddress::is_loopback),
        }
    }

    /// The missing arguments for a maximum cost per request.
    pub fn lacking(&self) -> Vec<&'static str> {
        let price = self.price.is_none().then_some("price");
        let free = self.price.is_some_and(|price| price.answers_are_free());
        price.into_iter().chain((!self.bounded && !free).then_some("max_tokens")).collect()
    }
}

/// The requests that a step will send for missing answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestForecast {
    /// Requests to send, if each first try succeeds.
    pub requests: u64,
    /// Requests with an earlier answer.
    pub answered: u64,
    /// The maximum number of tokens in the prompts.
    pub prompt_tokens: u64,
    /// The maximum number of tokens in the answers, if limited.
    pub completion_tokens: Option<u64>,
    /// The maximum cost, if known.
    pub usd: Option<Usd>,
}
