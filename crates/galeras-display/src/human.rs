//! Events for people, on a terminal or in a log.

use std::collections::HashMap;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::bars::Bars;
use super::lines::{ReportLines, RunPosition, StepProgress};
use galeras_operator::event::{EventSink, RunEvent, StepStatus, StepSummary};

/// The current columns of the terminal; `None` if lines have no limit, as in a file or a pipe.
pub type LineWidth = dyn Fn() -> Option<u16> + Send + Sync;

/// The interval of lines in a log in which no step ends.
const QUIET: Duration = Duration::from_secs(10);

/// Shows a run to people: a line per finished step, warnings, outputs and a summary.
///
/// On a terminal with a movable cursor, running steps have bars on stderr below the lines.
/// Elsewhere there are only lines, with one about long steps every ten seconds. Failed writes are
/// ignored: the reader is gone, and the run continues.
pub struct HumanReporter {
    state: Mutex<RunDisplay>,
}

struct RunDisplay {
    err: Box<dyn Write + Send>,
    width: Arc<LineWidth>,
    lines: ReportLines,
    bars: Option<Bars>,
    running: HashMap<String, Running>,
    /// The progress of the run, once it computes something.
    run: Option<RunPosition>,
    started: Instant,
    last_line: Instant,
    /// Failed assertions, which the failed step repeats.
    assertions: HashMap<String, Vec<String>>,
    quiet: Duration,
}

struct Running {
    since: Instant,
    last_line: Instant,
    total: Option<u64>,
    /// The start of the counting, to compute the speed.
    counted_since: Instant,
}

impl HumanReporter {
    /// A reporter that writes lines of at most `width` columns to `err`, which is stderr if
    /// `terminal` is true. Without `color` it writes no escape codes, and therefore no bars.
    pub fn new(
        err: Box<dyn Write + Send>,
        terminal: bool,
        color: bool,
        width: impl Fn() -> Option<u16> + Send + Sync + 'static,
    ) -> Self {
        let width: Arc<LineWidth> = Arc::new(width);
        let lines = ReportLines::new(width().map(usize::from), color);
        let bars = (terminal && color).then(|| {
            let width = Arc::clone(&width);
            let width = Arc::new(move || width().map_or(80, usize::from));
            Bars::new(width)
        });
        let now = Instant::now();
        let state = RunDisplay {
            err,
            width,
            lines,
            bars,
            running: HashMap::new(),
            run: None,
            started: now,
            last_line: now,
            assertions: HashMap::new(),
            quiet: QUIET,
        };
        Self { state: Mutex::new(state) }
    }
}

impl EventSink for HumanReporter {
    fn send(&self, event: RunEvent) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).take(event);
    }
}

impl Drop for HumanReporter {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(bars) = &mut state.bars {
            bars.clear();
        }
    }
}

impl RunDisplay {
    fn take(&mut self, event: RunEvent) {
        self.lines.fit((self.width)().map(usize::from));
        let lines = match event {
            RunEvent::Started { workflow, run, steps } => {
                self.lines.fit_names(&steps);
                if let Some(bars) = &mut self.bars {
                    bars.longest = self.lines.longest;
                }
                self.lines.started(&workflow, &run, steps.len())
            }
            RunEvent::StepStarted { step, reason, unit, .. } => {
                let now = Instant::now();
                let running =
                    Running { since: now, last_line: now, total: None, counted_since: now };
                self.running.insert(step.clone(), running);
                match &mut self.bars {
                    Some(bars) => {
                        bars.start(&step, self.lines.escaped(&step), unit);
                        Vec::new()
                    }
                    None => self.lines.step_started(&step, reason, self.run.as_ref()),
                }
            }
            RunEvent::StepTotal { step, total, .. } => {
                if let Some(running) = self.running.get_mut(&step) {
                    running.total = Some(total);
                    running.counted_since = Instant::now();
                }
                if let Some(bars) = &self.bars {
                    bars.total(&step, total);
                }
                Vec::new()
            }
            RunEvent::Progress { step, unit, done } => self.progress(&step, unit, done),
            RunEvent::RunProgress { begun, steps, seconds_left } => {
                self.run_progress(RunPosition { begun, steps, seconds_left })
            }
            RunEvent::Activity { step, text, waiting } => self.activity(&step, text, waiting),
            RunEvent::StepFinished(summary) => self.step_finished(&summary),
            RunEvent::Assertion { step, severity, message } => {
                let error = severity == "error";
                let lines = self.lines.problem(error, Some(&step), &message);
                if error {
                    self.assertions.entry(step).or_default().push(message);
                }
                lines
            }
            RunEvent::Warning { step, message } => {
                self.lines.problem(false, step.as_deref(), &message)
            }
            RunEvent::Requests { steps, limits } => self.lines.requests(&steps, &limits),
            RunEvent::Fetched { remote, files, bytes } => self.lines.fetched(&remote, files, bytes),
            RunEvent::Spent { steps } => self.lines.spent(&steps),
            RunEvent::NoRows { outputs, message, .. } => {
                self.lines.problem(!outputs.is_empty(), None, &message)
            }
            RunEvent::Output { path, rows, written, .. } => self.lines.output(&path, rows, written),
            RunEvent::Finished { status, steps, seconds } => {
                if let Some(bars) = &mut self.bars {
                    bars.clear();
                }
                self.running.clear();
                self.lines.finished(status, &steps, seconds)
            }
        };
        self.write(&lines);
    }

    fn progress(&mut self, step: &str, unit: &'static str, done: u64) -> Vec<String> {
        if let Some(bars) = &self.bars {
            bars.position(step, done);
            return Vec::new();
        }
        let Some(running) = self.due(step, false) else { return Vec::new() };
        let seconds = running.counted_since.elapsed().as_secs_f64();
        let at = StepProgress { unit, done, total: running.total, seconds };
        self.lines.progress(step, &at, self.run.as_ref())
    }

    /// A running step if it is time for a line about it, or if there always is.
    fn due(&mut self, step: &str, always: bool) -> Option<&mut Running> {
        let quiet = self.quiet;
        let running = self.running.get_mut(step)?;
        if !always && running.last_line.elapsed() < quiet {
            return None;
        }
        running.last_line = Instant::now();
        Some(running)
    }

    fn activity(&mut self, step: &str, text: String, waiting: bool) -> Vec<String> {
        if let Some(bars) = &self.bars {
            bars.activity(step, text);
            return Vec::new();
        }
        match self.due(step, waiting).is_some() {
            true => self.lines.activity(step, &text, self.run.as_ref()),
            false => Vec::new(),
        }
    }

    /// In a log, only after a time without a line: reports the step that has run longest.
    fn run_progress(&mut self, run: RunPosition) -> Vec<String> {
        self.run = Some(run);
        let now = Instant::now();
        if let Some(bars) = &self.bars {
            let busy = now.duration_since(self.started).as_secs_f64();
            bars.run(format!("  {}", run.after(busy)));
            return Vec::new();
        }
        if now.duration_since(self.last_line) < self.quiet {
            return Vec::new();
        }
        let Some((step, longest)) = self.running.iter_mut().min_by_key(|(_, step)| step.since)
        else {
            return Vec::new();
        };
        longest.last_line = now;
        let seconds = now.duration_since(longest.since).as_secs_f64();
        self.lines.still_running(step, seconds, &run)
    }

    fn step_finished(&mut self, summary: &StepSummary) -> Vec<String> {
        if let Some(bars) = &mut self.bars {
            bars.end(&summary.step);
        }
        self.running.remove(&summary.step);
        let shown = summary.status == StepStatus::Failed
            && self.assertions.remove(&summary.step).is_some_and(|messages| {
                let detail = summary.detail.as_deref().unwrap_or_default();
                messages.iter().any(|m| detail.ends_with(m.as_str()))
            });
        self.lines.step_finished(summary, shown)
    }

    fn write(&mut self, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        self.last_line = Instant::now();
        let mut text = lines.join("\n");
        text.push('\n');
        let err = &mut self.err;
        let mut write = || {
            let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
        };
        match &self.bars {
            Some(bars) => bars.above(write),
            None => write(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::text;
    use super::*;
    use galeras_operator::event::{ROWS, Reason, RunStatus};

    #[derive(Clone, Default)]
    struct Screen(Arc<Mutex<Vec<u8>>>);

    impl Write for Screen {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn summary(step: &str, status: StepStatus, rows: u64, seconds: f64) -> StepSummary {
        StepSummary {
            reason: (status == StepStatus::Ran).then_some(Reason::New),
            rows,
            computed_rows: if status == StepStatus::Ran { rows } else { 0 },
            seconds,
            ..StepSummary::new(step, status, ROWS)
        }
    }

    fn shown(events: Vec<RunEvent>, color: bool, width: Option<u16>) -> String {
        let screen = Screen::default();
        let reporter = HumanReporter::new(Box::new(screen.clone()), false, color, move || width);
        events.into_iter().for_each(|event| reporter.send(event));
        let bytes = screen.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    fn run() -> Vec<RunEvent> {
        let mut valid = summary("valid", StepStatus::Ran, 14_020, 0.2);
        valid.reason = Some(Reason::ArgChanged);
        valid.detail = Some("with.rules[0].check: \"a\" → \"b\" (file.yaml:12:16)".into());
        valid.reused_rows = 3_000;
        let mut testbed = summary("testbed", StepStatus::Failed, 0, 0.02);
        testbed.detail = Some(
            "cannot cut:\n  a line\x1b[2J and quite some words more about what went wrong there"
                .into(),
        );
        let mut methods = summary("methods", StepStatus::Ran, 17_102, 0.614);
        (methods.unit, methods.computed_rows) = ("files".into(), 718);
        let steps = vec![
            methods,
            summary("features", StepStatus::Hit, 17_102, 0.0),
            valid,
            testbed,
            summary("prompts", StepStatus::Skipped, 0, 0.0),
        ];
        let names = steps.iter().map(|s| s.step.clone()).collect();
        let mut events = vec![
            RunEvent::Started { workflow: "random-cut".into(), run: "r1".into(), steps: names },
            RunEvent::RunProgress { begun: 1, steps: 5, seconds_left: None },
            RunEvent::StepStarted {
                step: "methods".into(),
                reason: Reason::New,
                detail: None,
                unit: "files",
            },
            RunEvent::Progress { step: "methods".into(), unit: "files", done: 7 },
        ];
        events.extend(steps.iter().cloned().map(RunEvent::StepFinished));
        events.push(RunEvent::Warning { step: None, message: "the store is read-only".into() });
        events.push(RunEvent::Output {
            output: "testbed".into(),
            path: "quickstart/testbed.parquet".into(),
            rows: 3000,
            written: true,
        });
        events.push(RunEvent::Finished { status: RunStatus::Failed, steps, seconds: 0.93 });
        events
    }

    #[test]
    fn a_run_is_shown_in_aligned_lines() {
        let expected = "\
random-cut: 5 steps, run r1
  methods   started      step 1 of 5              NEW
  methods   ran          17,102 rows      0.61 s  NEW
  features  hit          17,102 rows
  valid     ran          14,020 rows      0.20 s  ARG_CHANGED
    14,020 rows computed, 3,000 reused
    with.rules[0].check: \"a\" → \"b\" (file.yaml:12:16)
  testbed   failed                        0.02 s
    cannot cut:
      a line\\u{1b}[2J and quite some words more about what went wrong there
  prompts   skipped
warning: the store is read-only
wrote quickstart/testbed.parquet (3,000 rows)
failed: 5 steps, 1 hit, 2 ran, 1 failed, 1 skipped (718 files and 14,020 rows
computed, 3,000 rows reused) in 0.93 s
";
        assert_eq!(shown(run(), false, Some(80)), expected);
    }

    #[test]
    fn every_event_is_one_line_where_there_is_no_terminal() {
        let long = "a".repeat(70);
        let mut events = run();
        let detail = format!("with.model: \"{long}\" → \"b\" (file.yaml:1:2)");
        for step in [long.as_str(), "short"] {
            let mut changed = summary(step, StepStatus::Ran, 3, 0.5);
            changed.detail = Some(detail.clone());
            events.push(RunEvent::StepFinished(changed));
        }
        events.push(RunEvent::Warning { step: Some(long.clone()), message: "word ".repeat(80) });
        let text = shown(events, false, None);
        let count = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
        // The failed step gives the reason in the lines of its message.
        assert_eq!((count("    "), text.lines().count()), (2, 15), "{text}");
        let total = "(718 files and 14,020 rows computed, 3,000 rows reused) in 0.93 s";
        assert!(text.contains(total), "{text}");
        assert!(text.contains(&format!("  {long}  ran")), "{text}");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in 24..100 {
            let text = shown(run(), false, Some(width));
            assert!(text.lines().all(|l| text::width(l) <= width.into()), "{width}\n{text}");
        }
    }

    #[test]
    fn only_color_brings_escape_codes() {
        assert!(shown(run(), true, Some(80)).contains("\x1b[2m  features"));
        assert!(!shown(run(), false, Some(80)).contains('\x1b'));
        let screen = Screen::default();
        let reporter = HumanReporter::new(Box::new(screen.clone()), true, false, || Some(80));
        run().into_iter().for_each(|event| reporter.send(event));
        assert!(!screen.0.lock().unwrap().contains(&0x1b));
    }

    #[test]
    fn a_failed_assertion_is_shown_once() {
        let message = "unique: 3 rows share id (file.yaml:3:9)";
        let mut failed = summary("valid", StepStatus::Failed, 0, 0.1);
        failed.detail = Some(format!("assertion failed: {message}"));
        let text = shown(
            vec![
                RunEvent::Assertion {
                    step: "valid".into(),
                    severity: "error".into(),
                    message: message.into(),
                },
                RunEvent::StepFinished(failed),
            ],
            false,
            Some(80),
        );
        assert_eq!(text.matches("unique").count(), 1, "{text}");
        assert!(text.starts_with("error: valid: unique"), "{text}");
        assert!(text.ends_with("assertion failed\n"), "{text}");
    }

    #[test]
    fn a_log_gets_a_line_about_a_long_step_now_and_then() {
        let screen = Screen::default();
        let reporter = HumanReporter::new(Box::new(screen.clone()), false, false, || None);
        reporter.state.lock().unwrap().quiet = Duration::from_millis(30);
        let step = || "ast".to_string();
        reporter.send(RunEvent::StepStarted {
            step: step(),
            reason: Reason::New,
            detail: None,
            unit: "files",
        });
        reporter.send(RunEvent::StepTotal { step: step(), unit: "files", total: 400, reused: 0 });
        let progress = |done| RunEvent::Progress { step: step(), unit: "files", done };
        (0..100).for_each(|done| reporter.send(progress(done)));
        let run = |begun, seconds_left| RunEvent::RunProgress { begun, steps: 12, seconds_left };
        reporter.send(run(3, Some(130.0)));
        std::thread::sleep(Duration::from_millis(40));
        (100..200).for_each(|done| reporter.send(progress(done)));
        // A silent step is also reported, once.
        std::thread::sleep(Duration::from_millis(40));
        (0..9).for_each(|_| reporter.send(run(4, None)));
        let bytes = screen.0.lock().unwrap().clone();
        let text = String::from_utf8(bytes).unwrap();
        let progress: Vec<&str> = text.lines().filter(|l| l.contains(" of ")).collect();
        assert!(
            matches!(progress.as_slice(), [one, _] if one.contains("100 of 400 files  25%")
                && one.ends_with("(step 3 of 12, about 2 min left in all)")),
            "{text}"
        );
        assert!(progress[1].ends_with("running for 0 s  (step 4 of 12)"), "{text}");
    }

    #[test]
    fn a_message_of_any_length_takes_a_few_lines() {
        let mut failed = summary("gen", StepStatus::Failed, 0, 0.1);
        failed.detail = Some("word\n".repeat(100_000));
        let text = shown(vec![RunEvent::StepFinished(failed)], false, Some(80));
        assert!(text.lines().count() < 50, "{}", text.lines().count());
        assert!(text.contains("more lines"));
    }
}
