//! A repository, and a page of them, as GitHub sends them and as the journal keeps them.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

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
    #[serde(rename = "stargazers_count")]
    pub stars: u64,
    /// The number of forks.
    #[serde(default, rename = "forks_count")]
    pub forks: u64,
    /// The size on GitHub's disks, in units of about 1,000 bytes.
    #[serde(rename = "size")]
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
    #[serde(default)]
    pub archived: bool,
    /// The main language.
    pub language: Option<String>,
    /// The SPDX id of the licence that GitHub recognised; `NOASSERTION` for an unknown one.
    #[serde(default, deserialize_with = "spdx_id")]
    pub license: Option<String>,
}

/// Reads GitHub's object of a licence, or its id alone.
fn spdx_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let license = Value::deserialize(deserializer)?;
    Ok(license.as_str().or_else(|| license.get("spdx_id")?.as_str()).map(str::to_string))
}

/// A page of results.
#[derive(Debug, Deserialize)]
pub(super) struct Page {
    pub(super) total_count: u64,
    pub(super) incomplete_results: bool,
    pub(super) items: Vec<GithubRepository>,
}
