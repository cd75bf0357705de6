//! Notices of a client while requests wait.

/// What the user should see while requests wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChatNotice {
    /// What is waited for, and how long. One notice for all requests that wait for it.
    Waiting(String),
}

/// Takes the notices of a client.
pub type ChatNotify<'a> = &'a (dyn Fn(ChatNotice) + Send + Sync);
