//! The error of the store: what failed, where and why, and a kind for callers. A result that is
//! missing or damaged is a miss, not an error.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::Path;

use super::server_error::ServerError;
use galeras_base::error_chain;
use galeras_operator::{StepError, StepErrorKind};

/// The kind of a [`StoreError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// The disk, or the user's quota, is full.
    Full,
    /// The store may not be written to.
    ReadOnly,
    /// The server of a bucket rejects the credentials, or there are none.
    Denied,
    /// Any other failure of a disk or a network.
    Io,
    /// Something in the store is damaged, and the operation cannot continue.
    Corrupt,
    /// This build, or this kind of store, cannot do that.
    Unsupported,
    /// Another process holds the store.
    Busy,
    /// A folder of the store is a link, which may lead to the user's files.
    Linked,
}

/// A result of an operation of the store.
pub(super) type Result<T, E = StoreError> = std::result::Result<T, E>;

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
        operation: &str,
        place: impl fmt::Display,
        cause: impl Into<String>,
    ) -> Self {
        let (operation, place) = (operation.to_string(), place.to_string());
        Self(Box::new(StoreFailure { kind, operation, place, cause: cause.into(), source: None }))
    }

    /// The error of `operation` (a verb: “write”) on a place of the store, caused by `source`,
    /// which may wrap the real cause (a Parquet writer wraps the disk's error).
    pub fn of(
        operation: &str,
        place: impl fmt::Display,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        let source = source.into();
        let server = error_chain::chain(source.as_ref()).find_map(|error| error.downcast_ref());
        let (kind, cause) = match (server, error_chain::io_cause(source.as_ref())) {
            (Some(error @ ServerError { kind, .. }), _) => (*kind, error.to_string()),
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

    /// The kind of failure.
    pub fn kind(&self) -> StoreErrorKind {
        self.0.kind
    }

    /// Returns true if the operation is not permitted.
    pub fn is_forbidden(&self) -> bool {
        matches!(self.0.kind, StoreErrorKind::ReadOnly | StoreErrorKind::Denied)
    }

    /// A hint for the user.
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

pub(super) fn io_kind(error: &io::Error) -> StoreErrorKind {
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
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn error_numbers_become_kinds_and_plain_words() {
        let error = |number| {
            StoreError::at("write", Path::new("/x/cache"), io::Error::from_raw_os_error(number))
        };
        assert_eq!(error(28).to_string(), "cannot write /x/cache: No space left on device");
        assert!(error(28).help().is_some_and(|help| help.contains("cache gc")));
        for (name, number, kind) in [
            ("ENOSPC", 28, StoreErrorKind::Full),
            ("EDQUOT", 122, StoreErrorKind::Full),
            ("EROFS", 30, StoreErrorKind::ReadOnly),
            ("EACCES", 13, StoreErrorKind::ReadOnly),
            ("EPERM", 1, StoreErrorKind::ReadOnly),
            ("EIO", 5, StoreErrorKind::Io),
        ] {
            assert_eq!(error(number).kind(), kind, "{name}");
        }
        let full = || io::Error::from_raw_os_error(28);
        let wrapped = parquet::errors::ParquetError::from(full());
        assert_eq!(StoreError::of("write", "x", wrapped).kind(), StoreErrorKind::Full);
        let wrapped = io::Error::other(full());
        assert_eq!(StoreError::of("write", "x", wrapped).kind(), StoreErrorKind::Full);
    }
}
