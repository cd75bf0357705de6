//! A repository, and a page of them as GitHub sends it.

use serde::{Deserialize, Serialize};

/// A repository on GitHub, as it was when it was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GithubRepository {
    /// GitHub's number, which a rename does not change.
    pub id: u64,
    /// `owner/name`.
    pub full_name: String,
    /// The address for clones over HTTPS.
    pub clone_url: String,
    /// The branch that `HEAD` names.
    pub default_branch: String,
    /// The number of stars.
    pub stars: u64,
    /// The number of forks.
    pub forks: u64,
    /// The size on GitHub's disks, in units of about 1,000 bytes.
    pub size_kb: u64,
    /// The time of its creation, RFC 3339 in UTC.
    pub created_at: String,
    /// The last change of the repository itself (RFC 3339, UTC).
    pub updated_at: Option<String>,
    /// The last push to any branch (RFC 3339, UTC); none if it is empty.
    pub pushed_at: Option<String>,
    /// It is a fork.
    pub fork: bool,
    /// Its owner has made it read-only.
    pub archived: bool,
    /// The main language.
    pub language: Option<String>,
    /// The SPDX id of the licence that GitHub recognised; `NOASSERTION` for an unknown one.
    pub license: Option<String>,
}

/// A page of results.
#[derive(Debug, Deserialize)]
pub(super) struct Page {
    pub(super) total_count: u64,
    pub(super) incomplete_results: bool,
    items: Vec<Item>,
}

impl Page {
    pub(super) fn repositories(self) -> impl Iterator<Item = GithubRepository> {
        self.items.into_iter().map(GithubRepository::from)
    }
}

#[derive(Debug, Deserialize)]
struct Item {
    id: u64,
    full_name: String,
    clone_url: String,
    default_branch: String,
    stargazers_count: u64,
    #[serde(default)]
    forks_count: u64,
    size: u64,
    created_at: String,
    updated_at: Option<String>,
    pushed_at: Option<String>,
    fork: bool,
    #[serde(default)]
    archived: bool,
    language: Option<String>,
    license: Option<License>,
}

#[derive(Debug, Deserialize)]
struct License {
    spdx_id: Option<String>,
}

impl From<Item> for GithubRepository {
    fn from(item: Item) -> Self {
        Self {
            id: item.id,
            full_name: item.full_name,
            clone_url: item.clone_url,
            default_branch: item.default_branch,
            stars: item.stargazers_count,
            forks: item.forks_count,
            size_kb: item.size,
            created_at: item.created_at,
            updated_at: item.updated_at,
            pushed_at: item.pushed_at,
            fork: item.fork,
            archived: item.archived,
            language: item.language,
            license: item.license.and_then(|license| license.spdx_id),
        }
    }
}
