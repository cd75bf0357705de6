//! The signals that end a run early.

use std::future::pending;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::context::{Exit, note};
use super::store_places::remove_scratch;

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
