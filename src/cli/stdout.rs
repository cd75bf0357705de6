//! Standard output. Every byte for it goes through here, and the first failed write is remembered,
//! so that no verb can end as if everything had been printed.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use galeras_base::error_chain::copy_of;

/// The error of the first failed write.
static FAILURE: Mutex<Option<io::Error>> = Mutex::new(None);

/// Standard output as a writer. After a failed write, all others fail for the same reason: nothing
/// may follow truncated output.
pub(super) struct StandardOutput;

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        guarded(|| io::stdout().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        guarded(|| io::stdout().flush())
    }
}

/// Writes to standard output, unless that has failed before.
pub(super) fn guarded<T>(act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let mut failure = FAILURE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = failure.as_ref() {
        return Err(copy_of(error));
    }
    act().inspect_err(|error| {
        if error.kind() != io::ErrorKind::Interrupted {
            *failure = Some(copy_of(error));
        }
    })
}

/// The error that kept some output from arriving, if any. A closed pipe (`| head`) does not count.
pub(super) fn failure() -> Option<io::Error> {
    // The standard library would silently drop the rest of its buffer.
    StandardOutput.flush().err().filter(|error| error.kind() != io::ErrorKind::BrokenPipe)
}

/// A write has failed.
pub(super) fn has_failed() -> bool {
    FAILURE.lock().unwrap_or_else(PoisonError::into_inner).is_some()
}
