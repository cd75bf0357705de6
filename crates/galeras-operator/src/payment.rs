//! What a step pays for: whom it asks, what may be spent, and what it is going to ask.

use galeras_chat::{Price, Usd};

use super::access::ServerAddress;

/// Whom a step asks, and what may be spent, as far as its arguments tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentTerms {
    /// The model.
    pub model: String,
    /// The server.
    pub server: Option<ServerAddress>,
    /// What tokens cost.
    pub price: Option<Price>,
    /// The most that all cells of the step may spend together.
    pub max_usd: Option<Usd>,
    /// Whether the length of answers is limited.
    pub bounded: bool,
}

impl PaymentTerms {
    /// Whether it may cost something: unless the server is this machine, or the price is 0.
    pub fn may_cost(&self) -> bool {
        match self.price {
            Some(price) => !price.is_free(),
            None => !self.server.as_ref().is_some_and(ServerAddress::is_loopback),
        }
    }

    /// The arguments without which the most that a request may cost is not known.
    pub fn lacking(&self) -> Vec<&'static str> {
        let price = self.price.is_none().then_some("price");
        let free = self.price.is_some_and(|price| price.answers_are_free());
        price.into_iter().chain((!self.bounded && !free).then_some("max_tokens")).collect()
    }
}

/// What a step is going to ask, as far as answers are not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestForecast {
    /// Requests to send, if each is answered at its first try.
    pub requests: u64,
    /// Requests that were answered before.
    pub answered: u64,
    /// The most tokens that they may read.
    pub prompt_tokens: u64,
    /// The most that may be written, if that is limited.
    pub completion_tokens: Option<u64>,
    /// The most that they may cost, if that is known.
    pub usd: Option<Usd>,
}
