//! What looking at a repository does to the machine: a folder is read, a server is asked.

use galeras_git::{GitError, GitErrorKind, RepositoryLocation};

use crate::operator::{Access, Consent, ServerAddress};

/// What is done in order to look at the repository; `None` if its address names no server.
pub(super) fn access_of(location: &RepositoryLocation) -> Option<Access> {
    match location {
        RepositoryLocation::Folder(path) => Some(Access::Read { path: path.clone() }),
        RepositoryLocation::Remote(url) => ServerAddress::of(url).map(|to| Access::Host { to }),
    }
}

/// Refuses a repository that the user did not agree to look at. Addresses come from tables and
/// servers, too, so that this cannot be known before a step runs. The next run tries again.
pub(super) fn check_consent(
    location: &RepositoryLocation,
    consent: &dyn Consent,
) -> Result<(), GitError> {
    let Some(access) = access_of(location) else {
        return Err(GitError::new(GitErrorKind::Other, "the address names no host"));
    };
    match consent.refusal(&access) {
        None => Ok(()),
        Some(refused) => {
            let message = format!("this {}; {}", refused.message, refused.help);
            Err(GitError::new(GitErrorKind::Transient, message))
        }
    }
}
