//! The lines about a run for people: one event in, aligned and wrapped lines out.

use std::fmt;

use super::text;
use super::units::{count, counted, per_second, roughly, seconds, whole_seconds};
use galeras_operator::event::{Reason, RunStatus, StepStatus, StepSummary};

const STATUS: usize = 7;
const ROWS: usize = 16;
const SECONDS: usize = 11;
const INDENT: &str = "    ";
/// Narrower lines have no columns.
const ALIGNED: usize = 64;
/// The columns of lines that are not wrapped, as in a log.
const UNWRAPPED: usize = 1 << 20;
/// Longer names of steps are not aligned.
const LONGEST_NAME: usize = 48;
/// Longer errors lose their middle.
const LONGEST: usize = 40;
const MOST_CHARS: usize = 16 * 1024;

/// A colour or weight on a terminal.
#[derive(Clone, Copy)]
pub(super) enum Paint {
    Bold,
    Dim,
    Green,
    Yellow,
    Red,
}

/// The width and colours of lines.
pub(super) struct ReportLines {
    /// The columns of the terminal, or [`UNWRAPPED`].
    pub(super) width: usize,
    /// Escape codes are allowed.
    color: bool,
    /// The columns for the steps' names.
    pub(super) name: usize,
    /// The columns of the longest name.
    pub(super) longest: usize,
}

impl ReportLines {
    pub(super) fn new(width: Option<usize>, color: bool) -> Self {
        let mut lines = Self { width: 0, color, name: 0, longest: 10 };
        lines.fit(width);
        lines
    }

    /// Sets the width; `None` is unlimited.
    pub(super) fn fit(&mut self, width: Option<usize>) {
        self.width = width.unwrap_or(UNWRAPPED).max(20);
        self.name = name_columns(self.longest, self.width);
    }

    pub(super) fn fit_names(&mut self, steps: &[String]) {
        self.longest = steps.iter().map(|s| text::width(&text::escape(s))).max().unwrap_or(0);
        self.name = name_columns(self.longest, self.width);
    }

    pub(super) fn paint(&self, paint: Paint, text: &str) -> String {
        let code = match paint {
            Paint::Bold => "1",
            Paint::Dim => "2",
            Paint::Green => "32",
            Paint::Yellow => "33",
            Paint::Red => "1;31",
        };
        match self.color && !text.is_empty() {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_string(),
        }
    }

    /// `random-cut: 6 steps, run …`
    pub(super) fn started(&self, workflow: &str, run: &str, steps: usize) -> Vec<String> {
        let workflow = bounded(workflow);
        let line = format!("{workflow}: {}, run {}", counted(steps as u64, "steps"), bounded(run));
        self.paint_all(Paint::Bold, text::wrap(&line, self.width))
    }

    pub(super) fn step_started(
        &self,
        step: &str,
        reason: Reason,
        run: Option<&RunPosition>,
    ) -> Vec<String> {
        let place = run.map(RunPosition::place).unwrap_or_default();
        self.columns(step, "started", &place, "", reason.code(), None)
    }

    /// The end of a step. `shown` is true if its failure was already shown as an assertion.
    pub(super) fn step_finished(&self, s: &StepSummary, shown: bool) -> Vec<String> {
        let ended = matches!(s.status, StepStatus::Hit | StepStatus::Ran);
        let rows = if ended { rows(s.rows) } else { String::new() };
        let timed = matches!(s.status, StepStatus::Ran | StepStatus::Failed);
        let time = if timed { seconds(s.seconds) } else { String::new() };
        let (status, paint) = match s.status {
            StepStatus::Hit if s.remote => ("hit (remote)", None),
            StepStatus::Hit => ("hit", None),
            StepStatus::Ran => ("ran", Some(Paint::Green)),
            StepStatus::Failed => ("failed", Some(Paint::Red)),
            StepStatus::Skipped => ("skipped", None),
        };
        let mut tail = match s.status {
            StepStatus::Ran => s.reason.map_or("", Reason::code).to_string(),
            StepStatus::Failed if shown => "assertion failed".to_string(),
            _ => String::new(),
        };
        let mut below = Vec::new();
        if s.status == StepStatus::Failed && !shown {
            below = self.message(s.detail.as_deref().unwrap_or("for no known reason"));
        } else if s.status == StepStatus::Ran {
            let mut notes = Vec::new();
            if s.computed_rows > 0 && s.reused_rows > 0 {
                let computed = counted(s.computed_rows, &s.unit);
                notes.push(format!("{computed} computed, {} reused", count(s.reused_rows)));
            }
            notes.extend(s.detail.as_deref().map(|d| self.detail(d)));
            let room = self.width.saturating_sub(self.before_tail() + text::width(&tail) + 2);
            let joined = notes.join("  ");
            if joined.is_empty() || tail.is_empty() || text::width(&joined) > room {
                below = notes.iter().flat_map(|n| self.indented(n)).collect();
            } else {
                tail = format!("{tail}  {joined}");
            }
        }
        let mut lines = self.columns(s.step.as_str(), status, &rows, &time, &tail, paint);
        if matches!(s.status, StepStatus::Hit | StepStatus::Skipped) {
            lines = self.paint_all(Paint::Dim, lines);
        }
        lines.extend(below);
        lines
    }

    pub(super) fn fetched(&self, remote: &str, files: u64, bytes: u64) -> Vec<String> {
        let tables = counted(files, "tables");
        let (size, from) = (super::units::bytes(bytes), text::escape(&bounded(remote)));
        text::wrap(&format!("fetched {tables} ({size}) from {from}"), self.width)
    }

    /// The progress of a step, for a log.
    pub(super) fn progress(
        &self,
        step: &str,
        at: &StepProgress,
        run: Option<&RunPosition>,
    ) -> Vec<String> {
        let done = match at.total {
            Some(total) => format!("{} of {}", count(at.done), counted(total, at.unit)),
            None => counted(at.done, at.unit),
        };
        let percent = at.total.filter(|t| *t > 0).map(|t| {
            let percent = at.done.min(t) as f64 / t as f64 * 100.0;
            format!("{percent:.0}%")
        });
        let mut tail = vec![done];
        tail.extend(percent);
        if at.done > 0 && at.seconds > 0.0 {
            let rate = at.done as f64 / at.seconds;
            tail.push(per_second(rate, at.unit));
            if let Some(left) = at.total.and_then(|t| t.checked_sub(at.done)).filter(|l| *l > 0) {
                tail.push(format!("{} left", seconds(left as f64 / rate)));
            }
        }
        self.running(step, tail, run)
    }

    /// The activity of a long step, for a log.
    pub(super) fn activity(
        &self,
        step: &str,
        text: &str,
        run: Option<&RunPosition>,
    ) -> Vec<String> {
        self.running(step, vec![text::escape(text)], run)
    }

    /// A line about a step without events, for a log.
    pub(super) fn still_running(&self, step: &str, s: f64, run: &RunPosition) -> Vec<String> {
        self.running(step, vec![format!("running for {}", whole_seconds(s))], Some(run))
    }

    fn running(&self, step: &str, about: Vec<String>, run: Option<&RunPosition>) -> Vec<String> {
        let mut pieces = vec![format!("  {}", text::left(&self.short(step), self.name))];
        pieces.extend(about);
        pieces.extend(run.map(|run| format!("({run})")));
        text::flow(&pieces, self.width, INDENT)
    }

    /// A `warning:` or `error:` line.
    pub(super) fn problem(&self, error: bool, step: Option<&str>, message: &str) -> Vec<String> {
        let (word, paint) =
            if error { ("error:", Paint::Red) } else { ("warning:", Paint::Yellow) };
        let step = step.map(|s| format!("{}: ", text::escape(&bounded(s)))).unwrap_or_default();
        let room = self.width - INDENT.len();
        let mut parts = text::wrap(&format!("{word} {step}{}", bounded(message)), room);
        shorten(&mut parts);
        self.paint_start(&mut parts, word, paint);
        parts.iter_mut().skip(1).for_each(|part| part.insert_str(0, INDENT));
        parts
    }

    pub(super) fn output(&self, path: &str, n: u64, written: bool) -> Vec<String> {
        let path = text::escape(&bounded(path));
        if written {
            text::wrap(&format!("wrote {path} ({})", rows(n).trim_end()), self.width)
        } else {
            let line = format!("up to date {path} ({})", rows(n).trim_end());
            self.paint_all(Paint::Dim, text::wrap(&line, self.width))
        }
    }

    pub(super) fn finished(&self, status: RunStatus, steps: &[StepSummary], s: f64) -> Vec<String> {
        let (word, paint) = match status {
            RunStatus::Ok => ("ok:", Paint::Green),
            RunStatus::Failed => ("failed:", Paint::Red),
            RunStatus::AssertFailed => ("assertion failed:", Paint::Red),
            RunStatus::CacheFailed => ("store or disk failed:", Paint::Red),
            RunStatus::Interrupted => ("interrupted:", Paint::Yellow),
        };
        let of = |status| steps.iter().filter(move |s| s.status == status);
        let mut line = format!("{word} {}", counted(steps.len() as u64, "steps"));
        for (status, name) in [
            (StepStatus::Hit, "hit"),
            (StepStatus::Ran, "ran"),
            (StepStatus::Failed, "failed"),
            (StepStatus::Skipped, "skipped"),
        ] {
            let n = of(status).count() as u64;
            if n > 0 {
                line.push_str(&format!(", {} {name}", count(n)));
            }
        }
        let computed = sums(steps, |step| step.computed_rows);
        let reused = sums(steps, |step| step.reused_rows);
        let computed = computed.map(|computed| format!("{computed} computed"));
        let reused = reused.map(|reused| format!("{reused} reused"));
        let work: Vec<String> = computed.into_iter().chain(reused).collect();
        if !work.is_empty() {
            line.push_str(&format!(" ({})", work.join(", ")));
        }
        line.push_str(&format!(" in {}", seconds(s)));
        let mut lines = text::wrap(&line, self.width);
        self.paint_start(&mut lines, word, paint);
        lines
    }

    /// Paints the word that lines begin with.
    fn paint_start(&self, lines: &mut [String], word: &str, paint: Paint) {
        if let Some(first) = lines.first_mut()
            && let Some(rest) = first.strip_prefix(word)
        {
            *first = format!("{}{rest}", self.paint(paint, word));
        }
    }

    /// A step's name, escaped for the terminal.
    pub(super) fn escaped(&self, step: &str) -> String {
        text::escape(&bounded(step))
    }

    pub(super) fn short(&self, step: &str) -> String {
        text::crop_middle(&text::escape(&bounded(step)), self.name)
    }

    fn before_tail(&self) -> usize {
        2 + self.name + 2 + STATUS + 1 + ROWS + 1 + SECONDS + 2
    }

    fn columns(
        &self,
        step: &str,
        status: &str,
        rows: &str,
        time: &str,
        tail: &str,
        paint: Option<Paint>,
    ) -> Vec<String> {
        let step = text::escape(&bounded(step));
        let painted = |status: &str| match paint {
            Some(paint) => self.paint(paint, status),
            None => status.to_string(),
        };
        if self.width < ALIGNED {
            let name = format!("  {}", text::left(&step, self.name));
            let pieces = [name, status.into(), rows.trim().into(), time.into(), tail.into()];
            return text::flow(&pieces, self.width, INDENT);
        }
        let mut lines = Vec::new();
        let mut name = step;
        if text::width(&name) > self.name && self.width < UNWRAPPED {
            lines.extend(text::wrap(&format!("  {name}"), self.width));
            name = String::new();
        }
        let name = text::left(&name, self.name);
        let gap = " ".repeat(STATUS.saturating_sub(text::width(status)));
        let rows = text::right(rows, ROWS);
        let time = text::right(time, SECONDS);
        let line = format!("  {name}  {}{gap} {rows} {time}  {tail}", painted(status));
        lines.push(line.trim_end().to_string());
        lines
    }

    /// The change, on a few lines with long values cropped.
    fn detail(&self, detail: &str) -> String {
        let room = self.width - INDENT.len();
        let cropped = text::crop_values(&text::escape(&bounded(detail)), (self.width / 2).min(60));
        text::crop_middle(&cropped, room * 5)
    }

    fn indented(&self, text: &str) -> Vec<String> {
        let parts = text::wrap(text, self.width - INDENT.len());
        let parts = parts.iter().map(|part| format!("{INDENT}{part}")).collect();
        self.paint_all(Paint::Dim, parts)
    }

    /// The reason why a step failed, wrapped.
    fn message(&self, message: &str) -> Vec<String> {
        let mut parts = text::wrap(&bounded(message), self.width - INDENT.len());
        shorten(&mut parts);
        parts.iter().map(|part| format!("{INDENT}{part}").trim_end().to_string()).collect()
    }

    fn paint_all(&self, paint: Paint, lines: Vec<String>) -> Vec<String> {
        lines.iter().map(|line| self.paint(paint, line)).collect()
    }
}

/// The columns for step names on a line of `width`, if the longest takes `longest`.
pub(super) fn name_columns(longest: usize, width: usize) -> usize {
    longest.clamp(6, (width / 4 + 4).clamp(6, LONGEST_NAME))
}

/// The work of the steps that ran, by unit: `718 files and 30,404 rows`.
fn sums(steps: &[StepSummary], of: fn(&StepSummary) -> u64) -> Option<String> {
    let mut sums: Vec<(&str, u64)> = Vec::new();
    for step in steps.iter().filter(|step| step.status == StepStatus::Ran && of(step) > 0) {
        match sums.iter_mut().find(|(unit, _)| *unit == step.unit) {
            Some((_, sum)) => *sum = sum.saturating_add(of(step)),
            None => sums.push((&step.unit, of(step))),
        }
    }
    let words: Vec<String> = sums.iter().map(|(unit, sum)| counted(*sum, unit)).collect();
    let (last, others) = words.split_last()?;
    Some(if others.is_empty() { last.clone() } else { format!("{} and {last}", others.join(", ")) })
}

pub(super) struct StepProgress {
    pub(super) unit: &'static str,
    pub(super) done: u64,
    pub(super) total: Option<u64>,
    pub(super) seconds: f64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RunPosition {
    /// Steps that ended or are being computed.
    pub(super) begun: usize,
    pub(super) steps: usize,
    pub(super) seconds_left: Option<f64>,
}

impl RunPosition {
    /// `step 3 of 12`
    fn place(&self) -> String {
        format!("step {} of {}", count(self.begun as u64), count(self.steps as u64))
    }

    /// `step 3 of 12, 41 s so far, about 2 min left in all`
    pub(super) fn after(&self, s: f64) -> String {
        let (place, left) = (self.place(), self.left());
        format!("{place}, {} so far{left}", whole_seconds(s))
    }

    fn left(&self) -> String {
        let left = |seconds| format!(", about {} left in all", roughly(seconds));
        self.seconds_left.map(left).unwrap_or_default()
    }
}

/// `step 3 of 12, about 2 min left in all`
impl fmt::Display for RunPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.place(), self.left())
    }
}

/// `1 row `, `17,102 rows`: both as wide.
pub(super) fn rows(n: u64) -> String {
    format!("{} {}", count(n), if n == 1 { "row " } else { "rows" })
}

/// A message may quote an answer of 100 MB.
fn bounded(text: &str) -> String {
    match text::prefix(text, MOST_CHARS) {
        (text, true) => text.to_string(),
        (start, false) => format!("{start}…"),
    }
}

fn shorten(lines: &mut Vec<String>) {
    if lines.len() > LONGEST {
        let left_out = lines.len() - LONGEST + 1;
        let tail = lines.split_off(lines.len() - 10);
        lines.truncate(LONGEST - 11);
        lines.push(format!("… {left_out} more lines"));
        lines.extend(tail);
    }
}
