//! The lines that people read about a run: one event in, aligned and wrapped lines out.

use super::text;
use super::units::{count, seconds};
use crate::event::{Reason, RunStatus, StepStatus, StepSummary};

const STATUS: usize = 7;
const ROWS: usize = 16;
const SECONDS: usize = 11;
const INDENT: &str = "    ";
/// Below this width the columns are given up.
const ALIGNED: usize = 64;
/// More lines of an error than this lose their middle.
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

/// How wide lines are and whether they are coloured.
pub(super) struct ReportLines {
    /// The columns of the terminal.
    pub(super) width: usize,
    /// Whether escape codes may be written.
    pub(super) color: bool,
    /// The columns of the steps' names.
    pub(super) name: usize,
}

impl ReportLines {
    pub(super) fn new(width: usize, color: bool) -> Self {
        Self { width: width.max(20), color, name: 10 }
    }

    /// Makes room for the names of these steps.
    pub(super) fn fit_names(&mut self, steps: &[String]) {
        let longest = steps.iter().map(|s| text::width(&text::escape(s))).max().unwrap_or(0);
        self.name = longest.clamp(6, (self.width / 4 + 4).max(6));
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
        let line = format!("{workflow}: {}, run {}", plural(steps as u64, "step"), bounded(run));
        self.paint_all(Paint::Bold, text::wrap(&line, self.width))
    }

    pub(super) fn step_started(&self, step: &str, reason: Reason) -> Vec<String> {
        self.columns(step, "started", "", "", reason.code(), None)
    }

    /// The end of a step. `shown` says that its failure was already shown as an assertion.
    pub(super) fn step_finished(&self, s: &StepSummary, shown: bool) -> Vec<String> {
        let ended = matches!(s.status, StepStatus::Hit | StepStatus::Ran);
        let rows = if ended { rows(s.rows) } else { String::new() };
        let timed = matches!(s.status, StepStatus::Ran | StepStatus::Failed);
        let time = if timed { seconds(s.seconds) } else { String::new() };
        let (status, paint) = match s.status {
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
                let (computed, reused) = (count(s.computed_rows), count(s.reused_rows));
                notes.push(format!("{computed} computed, {reused} reused"));
            }
            notes.extend(s.detail.as_deref().map(|d| self.detail(d)));
            let room = self.width.saturating_sub(self.before_tail() + text::width(&tail) + 2);
            match notes.as_slice() {
                [note] if text::width(note) <= room && !tail.is_empty() => {
                    tail = format!("{tail}  {note}");
                }
                _ => below = notes.iter().flat_map(|n| self.indented(n)).collect(),
            }
        }
        let mut lines = self.columns(s.step.as_str(), status, &rows, &time, &tail, paint);
        if matches!(s.status, StepStatus::Hit | StepStatus::Skipped) {
            lines = self.paint_all(Paint::Dim, lines);
        }
        lines.extend(below);
        lines
    }

    /// Rows done so far, for a log.
    pub(super) fn progress(&self, step: &str, at: &StepProgress) -> Vec<String> {
        let done = match at.total {
            Some(total) => format!("{} of {}", count(at.rows), rows(total)),
            None => rows(at.rows),
        };
        let percent = at.total.filter(|t| *t > 0).map(|t| {
            let percent = at.rows.min(t) as f64 / t as f64 * 100.0;
            format!("{percent:.0}%")
        });
        let mut tail = vec![done];
        tail.extend(percent);
        if at.rows > 0 && at.seconds > 0.0 {
            let rate = at.rows as f64 / at.seconds;
            tail.push(per_second(rate));
            if let Some(left) = at.total.and_then(|t| t.checked_sub(at.rows)).filter(|l| *l > 0) {
                tail.push(format!("{} left", seconds(left as f64 / rate)));
            }
        }
        let mut pieces = vec![format!("  {}", text::left(&self.short(step), self.name))];
        pieces.extend(tail);
        text::flow(&pieces, self.width, INDENT)
    }

    /// What a long step is busy with, for a log.
    pub(super) fn activity(&self, step: &str, text: &str) -> Vec<String> {
        let name = format!("  {}", text::left(&self.short(step), self.name));
        text::flow(&[name, text::escape(text)], self.width, INDENT)
    }

    /// A `warning:` or `error:` line.
    pub(super) fn problem(&self, error: bool, step: Option<&str>, message: &str) -> Vec<String> {
        let (word, paint) =
            if error { ("error:", Paint::Red) } else { ("warning:", Paint::Yellow) };
        let step = step.map(|s| format!("{}: ", text::escape(&bounded(s)))).unwrap_or_default();
        let room = self.width - INDENT.len();
        let mut parts = text::wrap(&format!("{word} {step}{}", bounded(message)), room);
        shorten(&mut parts);
        let first = parts.first_mut();
        if let Some(first) = first
            && let Some(rest) = first.strip_prefix(word)
        {
            *first = format!("{}{rest}", self.paint(paint, word));
        }
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

    /// The last lines of a run.
    pub(super) fn finished(&self, status: RunStatus, steps: &[StepSummary], s: f64) -> Vec<String> {
        let (word, paint) = match status {
            RunStatus::Ok => ("ok:", Paint::Green),
            RunStatus::Failed => ("failed:", Paint::Red),
            RunStatus::AssertFailed => ("assertion failed:", Paint::Red),
            RunStatus::CacheFailed => ("cache failed:", Paint::Red),
            RunStatus::Interrupted => ("interrupted:", Paint::Yellow),
        };
        let of = |status| steps.iter().filter(move |s| s.status == status);
        let sum = |rows: fn(&StepSummary) -> u64| {
            of(StepStatus::Ran).map(rows).fold(0, u64::saturating_add)
        };
        let (computed, reused) = (sum(|s| s.computed_rows), sum(|s| s.reused_rows));
        let mut line = format!("{word} {}", plural(steps.len() as u64, "step"));
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
        if computed > 0 || reused > 0 {
            line.push_str(&format!(" ({} computed", rows(computed).trim_end()));
            if reused > 0 {
                line.push_str(&format!(", {} reused", count(reused)));
            }
            line.push(')');
        }
        line.push_str(&format!(" in {}", seconds(s)));
        let mut lines = text::wrap(&line, self.width);
        if let Some(first) = lines.first_mut()
            && let Some(rest) = first.strip_prefix(word)
        {
            *first = format!("{}{rest}", self.paint(paint, word));
        }
        lines
    }

    /// A step's name cropped to its column.
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
        if text::width(&name) > self.name {
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

    /// What changed, with long values cropped, never more than a few lines.
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

    /// Why a step failed: its lines as they are, wrapped.
    fn message(&self, message: &str) -> Vec<String> {
        let mut parts = text::wrap(&bounded(message), self.width - INDENT.len());
        shorten(&mut parts);
        parts.iter().map(|part| format!("{INDENT}{part}").trim_end().to_string()).collect()
    }

    fn paint_all(&self, paint: Paint, lines: Vec<String>) -> Vec<String> {
        lines.iter().map(|line| self.paint(paint, line)).collect()
    }
}

/// Where a running step is.
pub(super) struct StepProgress {
    pub(super) rows: u64,
    pub(super) total: Option<u64>,
    pub(super) seconds: f64,
}

/// `1 row `, `17,102 rows`: as wide for one as for many.
pub(super) fn rows(n: u64) -> String {
    format!("{} {}", count(n), if n == 1 { "row " } else { "rows" })
}

/// `1,203 rows/s`
pub(super) fn per_second(rate: f64) -> String {
    match rate {
        r if r >= 10.0 => format!("{} rows/s", count(r.round() as u64)),
        r => format!("{r:.1} rows/s"),
    }
}

fn plural(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(n), if n == 1 { "" } else { "s" })
}

/// A message may quote an answer of 100 MB, far too long to read on a terminal.
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
