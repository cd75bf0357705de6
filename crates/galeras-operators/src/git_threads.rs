//! Runs work on Git repositories on threads that may block.

use galeras_git::{GitError, GitErrorKind};

/// Runs `work`, which may wait for a disk or a network.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, GitError> + Send + 'static,
) -> Result<T, GitError> {
    let panicked = |_| GitError::new(GitErrorKind::Other, "a defect: the thread panicked");
    tokio::task::spawn_blocking(work).await.map_err(panicked)?
}
