//! Searching repositories on GitHub, completely: every repository that a query matches, once
//! each, however many there are.
//!
//! A query is cut into slices small enough to be listed (`slice`), which are asked for one
//! after the other (`search`), through a client that minds GitHub's limits (`client`,
//! `limits`, `transport`); what is finished is kept in a journal, from which an interrupted search goes on.
//!
//! Does not live here: fetching what is in a repository, and where tokens come from.

mod client;
mod clock;
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

pub use client::{Client, GITHUB};
pub use clock::{Clock, SystemClock};
pub use error::{GithubError, GithubErrorKind};
pub use query::Query;
pub use repository::Repository;
pub use search::{Search, Sort, search};

/// What the user should see while a search goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Nothing is asked for some time.
    Waiting {
        /// How long, in seconds.
        seconds: u64,
        /// Why, in words: “GitHub's rate limit is used up”.
        reason: String,
    },
    /// A slice is finished, or was found finished in the journal.
    Progress {
        /// Distinct repositories found so far.
        found: u64,
        /// Repositories that match the query, as GitHub told when it was first asked.
        total: u64,
    },
    /// GitHub says that more (or fewer) repositories match than it lists, whatever was tried.
    Incomplete {
        /// The query of the slice.
        query: String,
        /// How many match, as GitHub says.
        expected: u64,
        /// How many it lists.
        found: u64,
    },
}

/// Takes the notices of a search.
pub type Notify<'a> = &'a (dyn Fn(Notice) + Send + Sync);
