//! Repositories on servers, reached through the user's `git` program.
//!
//! `network` holds the settings, `git` runs the program and watches it, `messages` reads its
//! standard error, `folder` keeps what was fetched, and `fetch` decides what to ask for. Credential
//! helpers, proxies, `insteadOf`, SSH configuration and certificates are the user's own, because it
//! is the user's git. The code here blocks: call it from `spawn_blocking`.

mod fetch;
mod folder;
mod git;
mod messages;
mod network;
#[cfg(test)]
mod tests;

pub use fetch::{FetchSize, Fetcher, Head, remote_head};
pub use network::{Activity, Network};
