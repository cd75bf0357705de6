//! Failures that no verb expects: panics, which are always defects of the program, and a clock that
//! it cannot work with.

use std::any::Any;
use std::panic::PanicHookInfo;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::context::{Failure, failed};

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
pub(super) fn report(payload: &(dyn Any + Send)) -> Failure {
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
