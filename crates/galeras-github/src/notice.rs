//! Notices of a search while it goes on.

/// What the user should see while a search goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchNotice {
    /// No request is sent for some time.
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
        /// Repositories that match the query, as GitHub said when it was first asked.
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
pub type SearchNotify<'a> = &'a (dyn Fn(SearchNotice) + Send + Sync);
