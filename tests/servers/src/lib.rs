//! Servers on loopback that answer as the real ones are documented to: Git over HTTP, GitHub's
//! search API, models, static files. Tests of several packages talk to them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

pub mod chat_api;
pub mod github_api;
pub mod http_git;
pub mod static_files;
