//! Events as JSON lines, for programs.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use galeras_base::terminal_escape::escape_json;
use galeras_operator::event::{EventSink, RunEvent};

/// Writes each event as one JSON object on one line, and flushes it at once.
///
/// After a failed write (a closed pipe), later events are dropped, so that nothing follows a truncated
/// line, and the run continues.
pub struct JsonReporter<W: Write + Send> {
    /// The writer; true once it has failed.
    out: Mutex<(W, bool)>,
}

impl<W: Write + Send> JsonReporter<W> {
    /// A reporter that writes to `out`.
    pub fn new(out: W) -> Self {
        Self { out: Mutex::new((out, false)) }
    }
}

impl<W: Write + Send> EventSink for JsonReporter<W> {
    fn send(&self, event: RunEvent) {
        let (out, failed) = &mut *self.out.lock().unwrap_or_else(PoisonError::into_inner);
        *failed = *failed || write_line(out, &event).is_err();
    }
}

fn write_line(out: &mut dyn Write, event: &RunEvent) -> io::Result<()> {
    let mut line = escape_json(serde_json::to_string(event)?);
    line.push('\n');
    out.write_all(line.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use galeras_operator::event::RunStatus;

    fn warning(message: &str) -> RunEvent {
        RunEvent::Warning { step: None, message: message.into() }
    }

    #[test]
    fn every_event_is_one_line_and_the_last_is_finished() {
        let reporter = JsonReporter::new(Vec::new());
        reporter.send(warning("two\nlines"));
        reporter.send(RunEvent::Finished { status: RunStatus::Ok, steps: vec![], seconds: 0.5 });
        let text = String::from_utf8(reporter.out.into_inner().unwrap().0).unwrap();
        let lines: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        assert_eq!(lines[0], json!({"event": "warning", "step": null, "message": "two\nlines"}));
        assert_eq!(
            lines[1],
            json!({"event": "finished", "status": "ok", "steps": [], "seconds": 0.5})
        );
    }

    struct Closed(usize);

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            self.0 += 1;
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_closed_pipe_is_not_written_to_again() {
        let reporter = JsonReporter::new(Closed(0));
        reporter.send(warning("a"));
        reporter.send(warning("b"));
        let (Closed(writes), failed) = reporter.out.into_inner().unwrap();
        assert_eq!((writes, failed), (1, true));
    }
}
