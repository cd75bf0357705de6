//! The chain of sources of an error, including those that wrappers hide.
//!
//! A full disk reaches a step as an I/O error inside a Parquet, Arrow, DataFusion or object store
//! error. It is recognised by its kind, never by its text.

use std::error::Error;
use std::io;

/// The error and its causes, outermost first.
///
/// An [`io::Error`] that wraps another error leads to that error, which its own `source` skips.
pub fn chain<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |outer| {
        let error: &'a (dyn Error + 'static) = *outer;
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        match wrapped {
            Some(wrapped) => Some(wrapped as &(dyn Error + 'static)),
            None => error.source(),
        }
    })
}

/// The innermost I/O error of the chain: the operating system's report, if any.
pub fn io_cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    chain(error).filter_map(|cause| cause.downcast_ref()).last()
}

/// True if the disk, or the user's quota, is full.
pub fn is_full(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// The same I/O error for a second reader ([`io::Error`] cannot be cloned).
pub fn copy_of(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(number) => io::Error::from_raw_os_error(number),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

/// The text of an I/O error without its number, which does not help people.
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match (error.raw_os_error(), text.find(" (os error")) {
        (Some(_), Some(end)) => text[..end].to_string(),
        _ => text,
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use arrow::error::ArrowError;
    use datafusion::error::DataFusionError;
    use parquet::errors::ParquetError;

    use super::*;

    fn full() -> io::Error {
        io::Error::from_raw_os_error(28)
    }

    #[track_caller]
    fn is_found(error: &(dyn Error + 'static)) {
        let kind = io_cause(error).map(io::Error::kind);
        assert!(kind.is_some_and(is_full), "{error:?}");
    }

    #[test]
    fn a_full_disk_is_found_under_every_wrapper() {
        is_found(&full());
        is_found(&io::Error::other(full()));
        is_found(&io::Error::other(ParquetError::from(full())));
        is_found(&ParquetError::from(full()));
        is_found(&ArrowError::from(full()));
        is_found(&ArrowError::ExternalError(Box::new(ParquetError::from(full()))));
        is_found(&DataFusionError::from(full()));
        is_found(&DataFusionError::from(ArrowError::from(full())));
        is_found(&DataFusionError::from(ParquetError::from(full())).context("while spilling"));
        is_found(&DataFusionError::Shared(std::sync::Arc::new(DataFusionError::from(full()))));
        let object =
            object_store::Error::Generic { store: "LocalFileSystem", source: Box::new(full()) };
        is_found(&DataFusionError::from(object));
    }

    #[test]
    fn the_words_of_a_message_are_no_cause() {
        let quoted = io::Error::other("No space left on device (os error 28)");
        assert!(!io_cause(&quoted).map(io::Error::kind).is_some_and(is_full));
    }
}
