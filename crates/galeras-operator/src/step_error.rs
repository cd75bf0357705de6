//! The error of a running step: a kind, a message for people, advice, and the cause.

use std::error::Error;
use std::io;
use std::sync::Arc;

use datafusion::error::DataFusionError;
use tokio::task::JoinError;

use galeras_base::error_chain;

/// The kind of a [`StepError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepErrorKind {
    /// The operator could not do its work.
    Failed,
    /// The table that it computed breaks a rule for all stored tables.
    Refused,
    /// The run was interrupted.
    Interrupted,
    /// A disk, or the user's quota, is full.
    DiskFull,
    /// A file system is read-only.
    ReadOnlyDisk,
    /// Any other failure of a file or a network.
    Io,
    /// A plan failed in DataFusion, Arrow or Parquet.
    DataFusion,
    /// The store failed.
    Store,
}

/// The error that stopped a running step.
///
/// It is displayed as one message for people. [`Error::source`] leads to its cause, down to the
/// error of the operating system.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct StepError {
    kind: StepErrorKind,
    message: String,
    help: Option<String>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl StepError {
    /// An error with the operator's own message.
    pub fn new(message: impl Into<String>) -> Self {
        Self { kind: StepErrorKind::Failed, message: message.into(), help: None, source: None }
    }

    /// The step computed a table that may not be stored.
    pub fn refused(message: impl Into<String>) -> Self {
        Self { kind: StepErrorKind::Refused, ..Self::new(message) }
    }

    /// The step ended early because the run was interrupted.
    pub fn interrupted() -> Self {
        Self { kind: StepErrorKind::Interrupted, ..Self::new("interrupted") }
    }

    /// An error of this kind with the message of its cause.
    pub fn of(kind: StepErrorKind, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let source = source.into();
        Self { kind, ..Self::new(source.to_string()) }.because(source)
    }

    /// Sets the cause, which also decides the kind if a disk or a file failed.
    pub fn because(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let source = source.into();
        let io = error_chain::io_cause(source.as_ref()).map(io::Error::kind);
        self.kind = match io {
            Some(kind) if error_chain::is_full(kind) => StepErrorKind::DiskFull,
            Some(io::ErrorKind::ReadOnlyFilesystem) => StepErrorKind::ReadOnlyDisk,
            Some(_) if self.kind == StepErrorKind::Failed => StepErrorKind::Io,
            _ => self.kind,
        };
        self.source = Some(source);
        self
    }

    /// Adds advice.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds the action that failed: `cannot read …`.
    pub fn while_doing(mut self, what: &str) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// The kind of failure.
    pub fn kind(&self) -> StepErrorKind {
        self.kind
    }

    /// The advice for the user.
    pub fn advice(&self) -> Option<&str> {
        self.help.as_deref()
    }
}

impl From<DataFusionError> for StepError {
    fn from(error: DataFusionError) -> Self {
        let message = plain_message(&error);
        Self { kind: StepErrorKind::DataFusion, ..Self::new(message) }.because(error)
    }
}

impl From<arrow::error::ArrowError> for StepError {
    fn from(error: arrow::error::ArrowError) -> Self {
        Self::of(StepErrorKind::DataFusion, error)
    }
}

impl From<parquet::errors::ParquetError> for StepError {
    fn from(error: parquet::errors::ParquetError) -> Self {
        Self::of(StepErrorKind::DataFusion, error)
    }
}

impl From<object_store::Error> for StepError {
    fn from(error: object_store::Error) -> Self {
        Self::of(StepErrorKind::Io, error)
    }
}

impl From<io::Error> for StepError {
    fn from(error: io::Error) -> Self {
        Self::of(StepErrorKind::Io, error)
    }
}

/// DataFusion's message without its wrappers, back traces and layer names.
pub fn plain_message(error: &DataFusionError) -> String {
    if let Some(task) = error_chain::chain(error).find_map(panicked_task) {
        // `task 7 panicked with message "…"`
        let text = task.to_string();
        let said = text.split_once('"').map(|(_, said)| said.trim_end_matches('"'));
        return format!("a library gave up: {}", said.unwrap_or(&text));
    }
    let text = error.find_root().strip_backtrace();
    let text = text.strip_prefix("Error during planning: ").unwrap_or(&text);
    let text = text.strip_prefix("Schema error: ").unwrap_or(text);
    let text = text.strip_prefix("Execution error: ").unwrap_or(text);
    let text = text.strip_prefix("External error: ").unwrap_or(text).trim();
    reworded(text).unwrap_or_else(|| text.to_string())
}

/// A message that names neither the mistake in words of SQL nor the way out, in better words.
fn reworded(text: &str) -> Option<String> {
    let text = text.strip_prefix("Arrow error: ").unwrap_or(text);
    let text = text.strip_prefix("This feature is not implemented: ").unwrap_or(text);
    let parts = |before: &str, after: &str| {
        let (value, kind) = text.strip_prefix(before)?.split_once(after)?;
        Some((value.to_string(), kind.trim_end_matches(" type").to_string()))
    };
    if let Some((value, kind)) = parts("Cast error: Cannot cast string '", "' to value of ") {
        return Some(format!(
            "the text '{value}' is not a value of the type {kind}: compare a column of texts with a \
             text, as in `x = '3'`, or convert it with try_cast"
        ));
    }
    if let Some((_, kind)) =
        parts("Cannot create filter with non-boolean predicate ", " returning ")
    {
        return Some(format!(
            "the condition is neither true nor false, its type is {kind}: compare it, as in `x > 3`"
        ));
    }
    if let Some((_, kinds)) = parts("Cannot coerce ", " expression ") {
        let kinds = kinds.trim_end_matches(" to valid types");
        return Some(format!(
            "{kinds} has types that do not fit: convert a column, as in `try_cast(x AS DOUBLE)`"
        ));
    }
    let words = match text {
        "Divide by zero error" => "a number is divided by 0; `x / nullif(y, 0)` gives null instead",
        "Unsupported binary operator: PGOverlap" => "SQL has no `&&`; write AND",
        "TOP" => "there is no TOP; write LIMIT and the number at the end of the query",
        "No SQL statements were provided in the query string" => "the query is empty",
        "The context currently only supports a single SQL statement" => {
            "there are several queries; write one, without `;` inside"
        }
        _ => return None,
    };
    Some(words.to_string())
}

/// The task that panicked, if this error reports one. Repartitioning shares it among its readers.
fn panicked_task<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a JoinError> {
    let shared = || cause.downcast_ref::<Arc<JoinError>>().map(Arc::as_ref);
    cause.downcast_ref().or_else(shared).filter(|task: &&JoinError| task.is_panic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_libraries_name_the_way_out() {
        for (text, told) in [
            (
                "Cast error: Cannot cast string 'r14' to value of Int64 type",
                "convert it with try_cast",
            ),
            ("Divide by zero error", "nullif(y, 0)"),
        ] {
            assert!(reworded(&format!("Arrow error: {text}")).unwrap().contains(told), "{text}");
        }
        let filter = "Cannot create filter with non-boolean predicate 'size' returning Int64";
        assert!(reworded(filter).unwrap().contains("its type is Int64: compare it"));
        let sum = "Cannot coerce arithmetic expression Utf8 + Int64 to valid types";
        assert!(reworded(sum).unwrap().starts_with("Utf8 + Int64 has types that do not fit"));
        assert_eq!(reworded("there is no column"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_kind_comes_from_the_bottom_of_the_chain() {
        let io = io::Error::from_raw_os_error;
        assert_eq!(StepError::from(io(28)).kind(), StepErrorKind::DiskFull);
        assert_eq!(StepError::from(io(30)).kind(), StepErrorKind::ReadOnlyDisk);
        assert_eq!(StepError::from(io(5)).kind(), StepErrorKind::Io);
        let parquet = parquet::errors::ParquetError::from(io(28));
        let error = StepError::from(DataFusionError::from(parquet).context("while writing"));
        assert_eq!(error.kind(), StepErrorKind::DiskFull);
        let named = StepError::new("cannot write the model").because(io(28));
        assert_eq!(named.kind(), StepErrorKind::DiskFull);
        assert_eq!(named.to_string(), "cannot write the model");
        let bottom = error_chain::chain(&named).last().map(ToString::to_string);
        assert_eq!(bottom.as_deref(), Some("No space left on device (os error 28)"));
    }

    #[tokio::test]
    async fn a_task_that_panics_is_a_library_that_gave_up() {
        let panicked = || async {
            tokio::spawn(async { [1, 2][..std::hint::black_box(9)].len() }).await.unwrap_err()
        };
        let join = DataFusionError::ExecutionJoin(Box::new(panicked().await));
        let shared = DataFusionError::External(Box::new(Arc::new(panicked().await)));
        let parquet = parquet::errors::ParquetError::External(Box::new(panicked().await));
        for error in [join, shared, parquet.into()] {
            let message = plain_message(&error.context("reading"));
            assert!(message.starts_with("a library gave up: range end"), "{message}");
        }
    }

    #[test]
    fn words_alone_have_no_cause() {
        let error = StepError::new("No space left on device (os error 28)");
        assert_eq!(error.kind(), StepErrorKind::Failed);
        assert!(error.source().is_none());
    }
}
