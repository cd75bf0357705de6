//! `GALERAS_LOG`: what a run decides, logged to standard error. Off unless it is set.

use tracing_subscriber::filter::{EnvFilter, FilterExt, LevelFilter, filter_fn};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use super::screen::log_stderr;

/// The variable that says what is logged, as in `galeras=debug`.
const VARIABLE: &str = "GALERAS_LOG";

/// What the crates of this program are called, and their targets.
const OURS: &str = "galeras";

/// What is logged, or nothing if the variable is absent or empty.
fn directives() -> Option<String> {
    std::env::var(VARIABLE).ok().filter(|text| !text.trim().is_empty())
}

/// Whether log lines are written between those of the progress.
pub(super) fn is_on() -> bool {
    LevelFilter::current() != LevelFilter::OFF
}

/// Starts to log if the variable asks for it.
///
/// Only what this program says itself is logged, whatever the variable names: a library for HTTP
/// may log the headers of a request, and a key is in one.
///
/// # Errors
/// If the variable is set to something that is not a filter.
pub(super) fn start() -> Result<(), String> {
    let Some(directives) = directives() else { return Ok(()) };
    let filter = EnvFilter::try_new(&directives)
        .map_err(|error| format!("${VARIABLE} is not a filter such as `galeras=debug`: {error}"))?;
    let ours = filter_fn(|event| event.target().starts_with(OURS));
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(log_stderr);
    // Where another subscriber is installed, as in a test, that one stays.
    let _ = tracing_subscriber::registry().with(lines.with_filter(filter.and(ours))).try_init();
    Ok(())
}
