//! The process as a whole: panics, which are always defects of the program, a clock that it cannot
//! work with, signals that end a run early, and the log.

use std::any::Any;
use std::future::pending;
use std::panic::PanicHookInfo;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::filter::{EnvFilter, FilterExt, LevelFilter, filter_fn};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use super::context::{Exit, Failure, failed, note};
use super::screen::log_stderr;
use super::store_places::remove_scratch;

static PLACE: Mutex<Option<String>> = Mutex::new(None);

/// Panics print nothing from now on: the code that catches them reports them.
/// `GALERAS_LOG=galeras=debug` logs them where they happen.
pub(super) fn keep_quiet() {
    std::panic::set_hook(Box::new(|info: &PanicHookInfo<'_>| {
        let place = info.location().map(ToString::to_string);
        let message = message(info.payload());
        tracing::debug!(place = place.as_deref(), "panic: {message}");
        *PLACE.lock().unwrap_or_else(PoisonError::into_inner) = place;
    }));
}

/// Reports a panic that reached the top.
pub(super) fn report_panic(payload: &(dyn Any + Send)) -> Failure {
    let place = PLACE.lock().unwrap_or_else(PoisonError::into_inner).take();
    let place = place.map(|place| format!(" ({place})")).unwrap_or_default();
    let message = format!(
        "a defect in galeras: {}{place}\nhelp: nothing wrong was stored; please report it, with the \
         workflow and the file at hand",
        message(payload)
    );
    failed(message)
}

fn message(payload: &dyn Any) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// The problem with a clock before 1970, where DataFusion and others panic.
pub(super) fn clock_problem(now: SystemTime) -> Option<String> {
    let before = now.duration_since(UNIX_EPOCH).err()?.duration();
    let years = before.as_secs() / (365 * DAY.as_secs()) + 1;
    Some(format!(
        "the clock of this machine stands before 1970 (by less than {years} years)\nhelp: set the \
         clock, then try again"
    ))
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The variable with the log filter, for example `galeras=debug`.
const LOG_VARIABLE: &str = "GALERAS_LOG";

/// The prefix of this program's crates and log targets.
const OURS: &str = "galeras";

/// Log lines are written between those of the progress.
pub(super) fn is_logging() -> bool {
    LevelFilter::current() != LevelFilter::OFF
}

/// Starts to log if the variable asks for it.
///
/// Logs only this program's own messages, even if the variable names others: a library for HTTP may
/// log the headers of a request, which contain a key.
pub(super) fn start_log() -> Result<(), String> {
    let directives = std::env::var(LOG_VARIABLE).unwrap_or_default();
    if directives.trim().is_empty() {
        return Ok(());
    }
    let filter = EnvFilter::try_new(&directives).map_err(|error| {
        format!("${LOG_VARIABLE} is not a filter such as `galeras=debug`: {error}")
    })?;
    let ours = filter_fn(|event| event.target().starts_with(OURS));
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(log_stderr);
    // An existing subscriber stays, as in a test.
    let _ = tracing_subscriber::registry().with(lines.with_filter(filter.and(ours))).try_init();
    Ok(())
}

/// From now on, a write beyond the largest size of files (`ulimit -f`) is an error, and no longer the
/// end of the process. Programs that this one starts do not inherit a handler, unlike an ignored
/// signal.
pub(super) fn survive_file_limit() {
    let limit = SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
    // The handler stays when the receiver is dropped.
    if let Err(error) = signal(limit) {
        tracing::debug!("SIGXFSZ cannot be handled: {error}");
    }
}

/// From now on, the first Ctrl-C, termination or loss of the terminal cancels the run, and the
/// second ends it at once. Signals are watched once this returns, even if no thread is free.
pub(super) fn watch_signals(cancel: CancellationToken) {
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        note("error: signals cannot be watched; Ctrl-C ends the run at once");
        return;
    };
    // `nohup` keeps the run alive without its terminal.
    let mut hangup = if ignores_hangup() { None } else { signal(SignalKind::hangup()).ok() };
    tokio::spawn(async move {
        for _ in 0..2 {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                () = received(hangup.as_mut()) => {}
            }
            if cancel.is_cancelled() {
                remove_scratch();
                std::process::exit(i32::from(Exit::Interrupted.code()));
            }
            cancel.cancel();
        }
    });
}

async fn received(signal: Option<&mut Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => pending().await,
    }
}

/// The program was started with SIGHUP ignored, as far as the system reports it.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // The first signal has the lowest bit, and SIGHUP is the first.
    mask.is_some_and(|mask| mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_before_1970_is_refused_and_any_other_is_not() {
        assert_eq!(clock_problem(SystemTime::now()), None);
        assert_eq!(clock_problem(UNIX_EPOCH), None);
        let problem = clock_problem(UNIX_EPOCH - 400 * DAY);
        assert!(problem.is_some_and(|text| text.contains("less than 2 years")));
    }

    #[test]
    fn a_panic_has_a_message_whatever_its_payload() {
        assert_eq!(message(&"text"), "text");
        assert_eq!(message(&String::from("text")), "text");
        assert_eq!(message(&1), "no message");
    }
}
