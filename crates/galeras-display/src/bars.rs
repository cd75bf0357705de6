//! The bars of running steps on a terminal, with the progress of the run below them. Every drawing
//! measures the terminal, which may be resized at any time.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::lines::name_columns;
use super::text;
use super::units::{count, counted, per_second, seconds};

const TICK: Duration = Duration::from_millis(120);

/// Narrower activities are not shown.
const LEAST_ACTIVITY: usize = 12;

/// The spinner and a space before a step's name.
const BEFORE: usize = 2;

/// The current columns of the terminal.
pub(super) type TerminalWidth = dyn Fn() -> usize + Send + Sync;

/// A text that is redrawn often and changes in between.
type SharedText = Arc<Mutex<String>>;

/// One bar per running step, at the foot of stderr's terminal.
pub(super) struct Bars {
    multi: MultiProgress,
    running: HashMap<String, Bar>,
    /// The progress of the run: the last line while steps are running.
    run: Option<ProgressBar>,
    about: SharedText,
    width: Arc<TerminalWidth>,
    /// The columns of the longest name.
    pub(super) longest: usize,
}

struct Bar {
    bar: ProgressBar,
    /// The current activity of the step, shown where there is room.
    activity: SharedText,
}

impl Bars {
    /// Bars on stderr, which has `width` columns.
    pub(super) fn new(width: Arc<TerminalWidth>) -> Self {
        Self::drawn_on(ProgressDrawTarget::stderr(), width)
    }

    fn drawn_on(target: ProgressDrawTarget, width: Arc<TerminalWidth>) -> Self {
        let multi = MultiProgress::with_draw_target(target);
        let (running, about) = (HashMap::new(), SharedText::default());
        Self { multi, running, run: None, about, width, longest: 0 }
    }

    /// A spinner, which becomes a bar when the total is known. The name is escaped.
    pub(super) fn start(&mut self, step: &str, name: String, unit: &'static str) {
        let run = self.run.get_or_insert_with(|| {
            let bar = self.multi.add(ProgressBar::no_length());
            let (about, width) = (Arc::clone(&self.about), Arc::clone(&self.width));
            bar.set_style(style("{line}", move |_, out| {
                let about = about.lock().unwrap_or_else(PoisonError::into_inner);
                let _ = out.write_str(&text::crop(&about, width().saturating_sub(1)));
            }));
            bar.enable_steady_tick(TICK);
            bar
        });
        let bar = self.multi.insert_before(run, ProgressBar::no_length());
        let activity = SharedText::default();
        let (shown, width, longest) =
            (Arc::clone(&activity), Arc::clone(&self.width), self.longest);
        bar.set_style(style("{spinner:.cyan} {line}", move |state, out| {
            let activity = shown.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = out.write_str(&line(state, &name, longest, unit, &activity, width()));
        }));
        bar.enable_steady_tick(TICK);
        if let Some(old) = self.running.insert(step.to_string(), Bar { bar, activity }) {
            old.bar.finish_and_clear();
        }
    }

    pub(super) fn total(&self, step: &str, total: u64) {
        if let Some(Bar { bar, .. }) = self.running.get(step) {
            bar.set_length(total);
        }
    }

    pub(super) fn position(&self, step: &str, done: u64) {
        if let Some(Bar { bar, .. }) = self.running.get(step) {
            bar.set_position(done);
        }
    }

    pub(super) fn activity(&self, step: &str, text: String) {
        if let Some(Bar { activity, .. }) = self.running.get(step) {
            *activity.lock().unwrap_or_else(PoisonError::into_inner) = text;
        }
    }

    pub(super) fn run(&self, text: String) {
        *self.about.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    pub(super) fn end(&mut self, step: &str) {
        if let Some(Bar { bar, .. }) = self.running.remove(step) {
            self.remove(&bar);
        }
        if self.running.is_empty()
            && let Some(run) = self.run.take()
        {
            self.remove(&run);
        }
    }

    fn remove(&self, bar: &ProgressBar) {
        bar.finish_and_clear();
        self.multi.remove(bar);
    }

    pub(super) fn clear(&mut self) {
        let steps: Vec<String> = self.running.keys().cloned().collect();
        steps.iter().for_each(|step| self.end(step));
    }

    /// Hides the bars while `write` writes above them.
    pub(super) fn above(&self, write: impl FnOnce()) {
        self.multi.suspend(write);
    }
}

fn style(
    template: &str,
    line: impl Fn(&ProgressState, &mut dyn Write) + Clone + Send + Sync + 'static,
) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .tick_chars("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ ")
        .with_key("line", line)
}

/// The line of a running step; one column of the terminal stays free.
fn line(
    state: &ProgressState,
    name: &str,
    longest: usize,
    unit: &str,
    activity: &str,
    width: usize,
) -> String {
    let columns = name_columns(longest, width).min(width.saturating_sub(BEFORE + 1));
    let mut shown = text::left(&text::crop_middle(name, columns), columns);
    let mut room = width.saturating_sub(BEFORE + columns + 2 + 1);
    let bar = match width {
        _ if state.len().is_none() => 0,
        72.. => 16,
        40.. => 8,
        _ => 0,
    };
    if bar > 0 {
        shown.push_str("  ");
        shown.push_str(&drawn_bar(state.fraction(), bar));
        room = room.saturating_sub(bar + 2);
    }
    let info = info(state, unit, room);
    if info.is_empty() {
        return shown;
    }
    let left = room.saturating_sub(text::width(&info) + 2);
    shown.push_str("  ");
    shown.push_str(&info);
    if !activity.is_empty() && left >= LEAST_ACTIVITY {
        shown.push_str("  ");
        shown.push_str(&text::crop(&text::escape(activity), left));
    }
    shown
}

fn drawn_bar(fraction: f32, columns: usize) -> String {
    let filled = (f64::from(fraction.clamp(0.0, 1.0)) * columns as f64) as usize;
    let (done, left) = match columns - filled {
        0 => ("━".repeat(columns), String::new()),
        left => (format!("{}╸", "━".repeat(filled)), "─".repeat(left - 1)),
    };
    format!("\x1b[36m{done}\x1b[0m\x1b[2m{left}\x1b[0m")
}

/// The work done, the speed and the time left, if there is room.
fn info(state: &ProgressState, unit: &str, room: usize) -> String {
    let (done, busy) = (state.pos(), state.elapsed().as_secs_f64());
    let rate = (done > 0).then(|| per_second(state.per_sec(), unit));
    let (done, percent, time) = match state.len() {
        Some(len) => {
            let left = (done > 0 && done < len)
                .then(|| format!("{} left", seconds(state.eta().as_secs_f64())));
            let done = format!("{}/{}", count(done), counted(len, unit));
            (done, Some(format!("{:.0}%", state.fraction() * 100.0)), left)
        }
        None if done > 0 => (counted(done, unit), None, Some(seconds(busy))),
        None => (seconds(busy), None, None),
    };
    let joined = |parts: &[&Option<String>]| {
        let parts: Vec<&str> = parts.iter().filter_map(|p| p.as_deref()).collect();
        parts.join("  ")
    };
    let done = Some(done);
    let choices: [&[&Option<String>]; 4] =
        [&[&done, &rate, &time], &[&done, &time], &[&done], &[&percent]];
    let fitting = choices.iter().map(|parts| joined(parts)).find(|t| text::width(t) <= room);
    fitting.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use indicatif::TermLike;

    use super::*;

    /// A terminal that records what is written to it, and its width at that time.
    #[derive(Clone, Debug, Default)]
    struct Terminal {
        width: Arc<AtomicUsize>,
        written: Arc<Mutex<Vec<(usize, String)>>>,
    }

    impl TermLike for Terminal {
        fn width(&self) -> u16 {
            self.width.load(Ordering::Relaxed) as u16
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            let entry = (self.width.load(Ordering::Relaxed), text.to_string());
            self.written.lock().unwrap().push(entry);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The columns of a text with colour codes.
    fn columns(text: &str) -> usize {
        let mut parts = text.split('\x1b');
        let plain = parts.next().map_or(0, text::width);
        plain
            + parts.map(|part| text::width(part.split_once('m').map_or("", |p| p.1))).sum::<usize>()
    }

    #[test]
    fn no_bar_is_wider_than_the_terminal_whatever_becomes_of_it() {
        let terminal = Terminal::default();
        let width = Arc::clone(&terminal.width);
        width.store(80, Ordering::Relaxed);
        let shared = Arc::clone(&width);
        let shared: Arc<TerminalWidth> = Arc::new(move || shared.load(Ordering::Relaxed));
        let target = ProgressDrawTarget::term_like(Box::new(terminal.clone()));
        let mut bars = Bars::drawn_on(target, shared);
        let names = ["short".to_string(), "測試".repeat(20), "n".repeat(70)];
        bars.longest = 80;
        bars.run("  step 3 of 12, 41 s so far, about 2 min left in all".into());
        for name in &names {
            bars.start(name, name.clone(), "repositories");
        }
        // Otherwise the width could change within a drawing.
        let drawn = bars.running.values().map(|bar| &bar.bar).chain(&bars.run);
        drawn.for_each(ProgressBar::disable_steady_tick);
        bars.total("short", 1_234_567);
        let mut written = Vec::new();
        for (at, columns) in [80, 200, 64, 40, 39, 24, 12, 3].into_iter().enumerate() {
            width.store(columns, Ordering::Relaxed);
            bars.position("short", 1000 * (at as u64 + 1));
            bars.activity("short", format!("測 {} \x1b[2J", "busy ".repeat(columns)));
            let draw = || {
                bars.running.values().for_each(|bar| bar.bar.tick());
                bars.run.iter().for_each(ProgressBar::tick);
            };
            // Each drawing shows the other bars as last drawn, at the width of that time.
            draw();
            terminal.written.lock().unwrap().clear();
            draw();
            written.append(&mut terminal.written.lock().unwrap());
        }
        bars.clear();
        let lines: Vec<_> = written.iter().filter(|(_, text)| !text.trim().is_empty()).collect();
        assert!(lines.iter().any(|(_, text)| text.contains("1,000/1,234,567 repositories")));
        assert!(lines.iter().any(|(width, text)| *width == 200 && text.contains("busy")));
        assert!(lines.iter().any(|(_, text)| text.contains("about 2 min left in all")));
        for (width, text) in lines {
            assert!(columns(text) <= *width, "{width}: {text:?}");
            assert!(!text.contains("\x1b[2J"), "{text:?}");
        }
    }
}
