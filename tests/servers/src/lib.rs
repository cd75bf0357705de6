//! Servers on loopback that answer as the real ones are documented to: Git over HTTP, GitHub's
//! search API, models, static files, Google Cloud Storage, and, with the feature `s3`, S3. Tests of
//! several packages talk to them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

pub mod chat_api;
pub mod gcs_api;
pub mod github_api;
mod http;
pub mod http_git;
pub use http::listen;
#[cfg(feature = "s3")]
pub mod s3_api;
pub mod static_files;
