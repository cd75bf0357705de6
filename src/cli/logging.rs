//! `GALERAS_LOG`: logs a run's decisions to standard error. Off unless it is set.

use tracing_subscriber::filter::{EnvFilter, FilterExt, LevelFilter, filter_fn};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use super::screen::log_stderr;

/// The variable with the log filter, for example `galeras=debug`.
const VARIABLE: &str = "GALERAS_LOG";

/// The prefix of this program's crates and log targets.
const OURS: &str = "galeras";

/// Log lines are written between those of the progress.
pub(super) fn is_on() -> bool {
    LevelFilter::current() != LevelFilter::OFF
}

/// Starts to log if the variable asks for it.
///
/// Logs only this program's own messages, even if the variable names others: a library for HTTP may
/// log the headers of a request, which contain a key.
pub(super) fn start() -> Result<(), String> {
    let directives = std::env::var(VARIABLE).unwrap_or_default();
    if directives.trim().is_empty() {
        return Ok(());
    }
    let filter = EnvFilter::try_new(&directives)
        .map_err(|error| format!("${VARIABLE} is not a filter such as `galeras=debug`: {error}"))?;
    let ours = filter_fn(|event| event.target().starts_with(OURS));
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(log_stderr);
    // An existing subscriber stays, as in a test.
    let _ = tracing_subscriber::registry().with(lines.with_filter(filter.and(ours))).try_init();
    Ok(())
}
