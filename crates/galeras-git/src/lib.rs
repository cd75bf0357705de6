//! Git repositories: fetching what a time window needs, and the methods that its commits
//! changed.
//!
//! `location` tells folders from servers and `net` brings objects from the latter; `layout` finds
//! the places that a folder leads to, before anything there is read; `repository`, `commit`,
//! `history`, `tree` and `changes` read objects, within `limits`; `renames`, `lines`, `sources` and
//! `miner` find changed methods, of the commits that `planned` lists and cuts into pieces. Nothing
//! here knows of tables.

mod changes;
mod commit;
mod error;
mod history;
mod layout;
mod likeness;
mod limits;
mod lines;
mod location;
mod miner;
mod net;
mod planned;
mod renames;
mod repository;
mod sources;
#[cfg(test)]
mod tests;
mod threads;
mod tree;

pub use error::{GitError, GitErrorKind};
pub use gix::ObjectId;
pub use history::Window;
pub use layout::{Judge, places};
pub use location::{GitServer, RepositoryLocation, shown_url};
pub use miner::{ChangedMethod, CommitFacts, Mining, Sink};
pub use net::{Activity, Fetcher, Head, Network, Received, remote_head};
pub use planned::{MineOptions, MinePlan, plan, trees};
pub use repository::Repository;
pub use threads::guarded;
