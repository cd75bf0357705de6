//! Git repositories: fetching what a time window needs, and the methods that its commits
//! changed.
//!
//! `location` reads addresses of folders and servers, `remote` fetches from servers, and `layout` finds
//! the places that a folder leads to, before anything there is read; `repository`, `history`,
//! `tree` and `changes` read objects, within `limits`; `renames`, `lines`, `sources` and
//! `miner` find changed methods, of the commits that `plan` lists and cuts into pieces; `snapshot` reads
//! all files of a commit. Nothing here knows of tables.

mod changes;
mod error;
mod history;
mod layout;
mod limits;
mod lines;
mod location;
mod miner;
mod plan;
mod remote;
mod renames;
mod repository;
mod snapshot;
mod sources;
#[cfg(test)]
mod tests;
mod tree;

pub use error::{GitError, GitErrorKind};
pub use gix::ObjectId;
pub use history::Window;
pub use layout::{Judge, places};
pub use location::{GitServer, RepositoryLocation, shown_url};
pub use miner::{ChangedMethod, CommitFacts, Mining, Sink};
pub use plan::{MineOptions, MinePlan, plan, trees};
pub use remote::{Activity, FetchSize, Fetcher, Head, Network, remote_head};
pub use repository::{Repository, guarded};
pub use snapshot::{CommitFile, commit_files, fetch_commit};
