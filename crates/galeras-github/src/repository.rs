//! A repository as a search finds it, and a page of them as GitHub sends it.
//!
//! What is kept of GitHub's answer.

use serde::{Deserialize, Serialize};

/// A repository on GitHub, as it was when it was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GithubRepository {
    /// GitHub's number for it, which stays when it is renamed.
    pub id: u64,
    /// `owner/name`.
    pub full_name: String,
    /// Where to clone it from, over HTTPS.
    pub clone_url: String,
    /// The branch that `HEAD` names.
    pub default_branch: String,
    /// How many users have starred it.
    pub stars: u64,
    /// How many forks it has.
    pub forks: u64,
    /// Its size on GitHub's disks, in units of 1,000 bytes or thereabouts.
    pub size_kb: u64,
    /// When it was created, RFC 3339 in UTC.
    pub created_at: String,
    /// The last change of the repository itself (RFC 3339, UTC).
    pub updated_at: Option<String>,
    /// The last push to any branch (RFC 3339, UTC); none if it is empty.
    pub pushed_at: Option<String>,
    /// Whether it is a fork.
    pub fork: bool,
    /// Whether its owner has made it read-only.
    pub archived: bool,
    /// The language that most of it is written in.
    pub language: Option<String>,
    /// The SPDX id of its licence as GitHub recognised it; `NOASSERTION` if it has one that
    /// GitHub does not know.
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
