//! Searching repositories on GitHub, completely: every repository that a query matches, once
//! each, however many there are.
//!
//! A query is cut into slices small enough to be listed (`slice`), which are asked for one
//! after the other (`search`), through a client that minds GitHub's limits (`client`,
//! `limits`, `transport`); what is finished is kept in a journal, from which an interrupted search
//! goes on.
//!
//! Does not live here: fetching what is in a repository, and where tokens come from.

mod client;
mod error;
mod journal;
mod limits;
mod notice;
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
pub use notice::{SearchNotice, SearchNotify};
pub use query::Query;
pub use repository::GithubRepository;
pub use search::{Search, Sort, search};
