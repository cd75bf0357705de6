//! The access that reading a repository needs: a folder with the places that it leads to, or a
//! server. Reading is done on threads that may block.

use std::path::Path;

use galeras_git::{GitError, GitErrorKind, Repository, RepositoryLocation, places};

use galeras_operator::worker_threads::on_thread;
use galeras_operator::{Access, Consent, ServerAddress, StepErrorKind};

/// The access that the repository's address implies; `None` if it does not name a server.
fn access_of(location: &RepositoryLocation) -> Option<Access> {
    match location {
        RepositoryLocation::Folder(path) => Some(Access::Read { path: path.clone() }),
        RepositoryLocation::Remote(url) => ServerAddress::of(url).map(|to| Access::Host { to }),
    }
}

/// All access that reading the repository needs. Problems with it are found when it is opened.
pub(super) fn accesses_of(location: &RepositoryLocation) -> Vec<Access> {
    let mut accesses: Vec<Access> = access_of(location).into_iter().collect();
    if let RepositoryLocation::Folder(folder) = location {
        let mut note = |place: &Path| {
            accesses.push(Access::Read { path: place.to_path_buf() });
            Ok(())
        };
        places(folder, &mut note).ok();
    }
    accesses
}

/// Refuses a repository that the user did not agree to read. Addresses also come from tables and
/// servers, so this is only known when a step runs. The next run tries again.
///
/// Places that a folder leads to are checked when it is opened: see [`open`] and [`check_places`].
pub(super) fn check_consent(
    location: &RepositoryLocation,
    consent: &dyn Consent,
) -> Result<(), GitError> {
    let Some(access) = access_of(location) else {
        return Err(GitError::new(GitErrorKind::Other, "the address names no host"));
    };
    check(&access, "this", consent)
}

/// Refuses a folder that leads to a place that the user did not agree to read.
pub(super) fn check_places(
    location: &RepositoryLocation,
    consent: &dyn Consent,
) -> Result<(), GitError> {
    match location {
        RepositoryLocation::Folder(folder) => places(folder, &mut |place| judge(place, consent)),
        RepositoryLocation::Remote(_) => Ok(()),
    }
}

/// Opens the repository in a folder, if the user agreed to all places that it leads to.
pub(super) fn open(folder: &Path, consent: &dyn Consent) -> Result<Repository, GitError> {
    Repository::open_judged(folder, &mut |place| judge(place, consent))
}

fn judge(place: &Path, consent: &dyn Consent) -> Result<(), GitError> {
    check(&Access::Read { path: place.to_path_buf() }, "it leads elsewhere: this", consent)
}

fn check(access: &Access, who: &str, consent: &dyn Consent) -> Result<(), GitError> {
    match consent.refusal(access) {
        None => Ok(()),
        Some(refused) => {
            let message = format!("{who} {}; {}", refused.message, refused.help);
            Err(GitError::new(GitErrorKind::Transient, message))
        }
    }
}

/// Runs `work`, which may wait for a disk, a network, or the receiver of its rows.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, GitError> + Send + 'static,
) -> Result<T, GitError> {
    on_thread(move || Ok(work())).await.unwrap_or_else(|error| {
        let kind = match error.kind() {
            // The system started no thread, which may pass.
            StepErrorKind::Io => GitErrorKind::Transient,
            _ => GitErrorKind::Other,
        };
        Err(GitError::new(kind, error))
    })
}
