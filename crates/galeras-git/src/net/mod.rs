//! Git objects over the network.
//!
//! Which commit the branches of a server are at (`remote`), and how its objects get into a bare
//! folder on this machine (`fetch`, `folder`), over HTTP (`http`), ssh (`ssh`) and TCP (`link`).
//! From the bottom up: `network` and `ssh_words`, `wire`, then `answer`, `explain`, `folder` and
//! `meter`, `symref`, `http` and `ssh`, `link`, `request`, and `remote` and `fetch`.
//!
//! Does not live here: what is done with the objects.
//!
//! Everything here blocks: call it from `spawn_blocking`.

mod answer;
mod explain;
mod fetch;
mod folder;
mod http;
mod link;
mod meter;
mod network;
mod remote;
mod request;
mod ssh;
mod ssh_words;
mod symref;
mod wire;

pub use fetch::{Fetcher, Received};
pub use network::{Activity, Network};
pub use remote::{Head, remote_head};

#[cfg(test)]
mod tests;
