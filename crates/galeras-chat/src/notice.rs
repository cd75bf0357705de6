//! What a client tells while requests wait.
//!
//! Does not live here: when it tells (`pace`, `client`), and how that is shown.

/// What the user should see while requests wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// For whom or what is waited, and how long. Told once for all who wait for it.
    Waiting(String),
}

/// Takes the notices of a client.
pub type NoticeFn<'a> = &'a (dyn Fn(Notice) + Send + Sync);
