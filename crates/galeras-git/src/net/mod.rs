//! Git objects over the network.
//!
//! Lives here: which commit the branches of a server are at (`remote`), and how its objects
//! get into a bare folder on this machine (`fetch`, `folder`), over HTTP (`http`), TCP and ssh
//! (`link`). Does not live here: what is done with the objects.
//!
//! Everything here blocks: call it from `spawn_blocking`.

mod answer;
mod explain;
mod fetch;
mod folder;
mod http;
mod link;
mod meter;
mod remote;
mod request;
mod wire;

pub use fetch::{Fetcher, Received};
pub use http::http_client;
pub use remote::{Activity, Head, Network, remote_head};

#[cfg(test)]
mod tests;
