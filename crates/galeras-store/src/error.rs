//! The error of the store: what failed, where and why, sorted into the few kinds that a caller
//! treats differently. A result that is missing or damaged is a miss, not an error.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::Path;

use super::answer::ServerFailure;
use galeras_base::error_chain;
use galeras_operator::{StepError, StepErrorKind};

/// What sort of failure a [`StoreError`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// The disk, or the user's share of it, is full.
    Full,
    /// The store may not be written to.
    ReadOnly,
    /// The server of a bucket refuses it to whoever asks, or nobody has said who that is.
    Denied,
    /// Any other failure of a disk or a network.
    Io,
    /// Something in the store is not what it has to be, and the operation cannot go on.
    Corrupt,
    /// This build, or this kind of store, cannot do that.
    Unsupported,
    /// Another process holds the store.
    Busy,
    /// A folder of the store is a link, which may lead to the user's files.
    Linked,
}

/// A failure of the store: the operation, the place and the cause.
///
/// Displayed in one line, `cannot write /data/cache: No space left on device`.
pub struct StoreError(Box<StoreFailure>);

struct StoreFailure {
    kind: StoreErrorKind,
    operation: String,
    place: String,
    cause: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl StoreError {
    pub(super) fn new(
        kind: StoreErrorKind,
        operation: impl Into<String>,
        place: impl fmt::Display,
        cause: impl Into<String>,
    ) -> Self {
        let (operation, place, cause) = (operation.into(), place.to_string(), cause.into());
        Self(Box::new(StoreFailure { kind, operation, place, cause, source: None }))
    }

    /// The error of `operation` (a verb: “write”) on a place of the store, caused by `source`,
    /// which may wrap the real cause (a Parquet writer wraps the disk's error).
    pub fn of(
        operation: &str,
        place: impl fmt::Display,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        let source = source.into();
        let answer = error_chain::chain(source.as_ref()).find_map(|error| error.downcast_ref());
        let (kind, cause) = match (answer, error_chain::io_cause(source.as_ref())) {
            (Some(failure), _) => (failure_kind(failure), failure.to_string()),
            (None, Some(io)) => (io_kind(io), error_chain::plain(io)),
            (None, None) => (StoreErrorKind::Io, source.to_string()),
        };
        let mut error = Self::new(kind, operation, place, cause);
        error.0.source = Some(source);
        error
    }

    pub(super) fn at(operation: &str, path: &Path, source: io::Error) -> Self {
        Self::of(operation, path.display(), source)
    }

    /// What sort of failure it is.
    pub fn kind(&self) -> StoreErrorKind {
        self.0.kind
    }

    /// Returns true if it may not be done, by anybody or by whoever asks.
    pub fn is_forbidden(&self) -> bool {
        matches!(self.0.kind, StoreErrorKind::ReadOnly | StoreErrorKind::Denied)
    }

    /// What the user can do about it.
    pub fn help(&self) -> Option<&str> {
        match self.0.kind {
            StoreErrorKind::Full => Some(
                "free some space, remove old results with `galeras cache gc`, or choose \
                 another store with --cache; nothing that was finished is lost",
            ),
            StoreErrorKind::ReadOnly => Some(
                "check who may write there, or choose a store of your own with --cache or \
                 GALERAS_CACHE",
            ),
            StoreErrorKind::Denied => Some(
                "check the credentials in the environment (AWS_ACCESS_KEY_ID and \
                 AWS_SECRET_ACCESS_KEY, or GOOGLE_APPLICATION_CREDENTIALS), and what their owner \
                 may do with the bucket",
            ),
            StoreErrorKind::Corrupt => {
                Some("`galeras cache verify --repair` removes what is damaged")
            }
            StoreErrorKind::Busy => Some("wait until the other process is done, then try again"),
            StoreErrorKind::Linked => Some(
                "delete the link, or name the folder it leads to with --cache if that is your \
                 store; a cloned repository can bring links, so they are not followed",
            ),
            StoreErrorKind::Unsupported => Some("a store is a folder, file://, s3:// or gs://"),
            StoreErrorKind::Io => None,
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StoreFailure { operation, place, cause, .. } = self.0.as_ref();
        write!(f, "cannot {operation} {place}: {cause}")
    }
}

impl fmt::Debug for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreError({:?}: {self})", self.0.kind)
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

impl From<StoreError> for StepError {
    fn from(error: StoreError) -> Self {
        Self::of(StepErrorKind::Store, error)
    }
}

fn failure_kind(failure: &ServerFailure) -> StoreErrorKind {
    match failure.io() {
        _ if failure.is_denial() => StoreErrorKind::Denied,
        Some(io) => io_kind(io),
        None => StoreErrorKind::Io,
    }
}

fn io_kind(error: &io::Error) -> StoreErrorKind {
    match error.kind() {
        kind if error_chain::is_full(kind) => StoreErrorKind::Full,
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            StoreErrorKind::ReadOnly
        }
        io::ErrorKind::Unsupported => StoreErrorKind::Unsupported,
        _ => StoreErrorKind::Io,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn error_numbers_become_kinds_and_plain_words() {
        let error = |number| {
            StoreError::at("write", Path::new("/x/cache"), io::Error::from_raw_os_error(number))
        };
        assert_eq!(error(28).to_string(), "cannot write /x/cache: No space left on device");
        assert_eq!(error(28).kind(), StoreErrorKind::Full);
        assert_eq!(error(122).kind(), StoreErrorKind::Full, "EDQUOT");
        assert_eq!(error(30).kind(), StoreErrorKind::ReadOnly, "EROFS");
        assert_eq!(error(13).kind(), StoreErrorKind::ReadOnly, "EACCES");
        assert_eq!(error(1).kind(), StoreErrorKind::ReadOnly, "EPERM");
        assert_eq!(error(5).kind(), StoreErrorKind::Io, "EIO");
        assert!(error(28).help().is_some_and(|help| help.contains("cache gc")));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_cause_is_found_inside_a_parquet_error() {
        let full = || io::Error::from_raw_os_error(28);
        let wrapped = parquet::errors::ParquetError::from(full());
        assert_eq!(StoreError::of("write", "x", wrapped).kind(), StoreErrorKind::Full);
        let wrapped = io::Error::other(full());
        assert_eq!(StoreError::of("write", "x", wrapped).kind(), StoreErrorKind::Full);
    }
}
