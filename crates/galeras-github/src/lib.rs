//! Searching repositories on GitHub, completely: every repository that a query matches, once
//! each, however many there are.
//!
//! A query is cut into slices that are small enough to be listed (`slice`). They are requested one after
//! the other (`search`), through a client that respects GitHub's limits (`client`, `limits`,
//! `transport`). A journal has the finished slices, so that an interrupted search can continue.

mod client;
mod error;
mod journal;
mod limits;
mod query;
mod repository;
mod search;
mod slice;
#[cfg(test)]
mod tests;
mod time;
mod transport;

pub use client::{GITHUB, GithubClient};
pub use error::{GithubError, GithubErrorKind};
pub use query::Query;
pub use repository::GithubRepository;
pub use search::{Search, SearchNotice, SearchNotify, Sort, search};
