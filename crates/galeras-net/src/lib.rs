//! What clients of servers share.
//!
//! `secret` holds a key so that no text shows it.

mod secret;

pub use secret::{InvalidSecret, Secret};
