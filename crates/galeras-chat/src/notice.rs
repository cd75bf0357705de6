//! Notices of a client while requests wait.

/// A message for the user while requests wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChatNotice {
    /// The reason of the wait, and its length. All requests that wait for it share one notice.
    Waiting(String),
}

/// Takes the notices of a client.
pub type ChatNotify<'a> = &'a (dyn Fn(ChatNotice) + Send + Sync);
