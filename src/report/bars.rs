//! The bars of running steps on a terminal.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::lines::per_second;
use super::text;
use super::units::{count, seconds};

const TICK: Duration = Duration::from_millis(120);

/// Columns below which an activity is not shown.
const LEAST_ACTIVITY: usize = 12;

/// One bar per running step, at the foot of stderr's terminal.
pub(super) struct Bars {
    multi: MultiProgress,
    running: HashMap<String, Bar>,
    width: usize,
}

struct Bar {
    bar: ProgressBar,
    /// What the step is busy with, shown where there is room.
    activity: ActivityText,
}

type ActivityText = Arc<Mutex<String>>;

impl Bars {
    pub(super) fn new(width: usize) -> Self {
        let multi = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        Self { multi, running: HashMap::new(), width }
    }

    /// A spinner, or a bar if the total is known, with the name already cropped and padded.
    pub(super) fn start(&mut self, step: &str, name: String, total: Option<u64>) {
        let bar = self.multi.add(ProgressBar::no_length());
        let activity = ActivityText::default();
        bar.set_style(style(total.is_some(), text::width(&name), self.width, &activity));
        bar.set_prefix(name);
        if let Some(total) = total {
            bar.set_length(total);
        }
        bar.enable_steady_tick(TICK);
        if let Some(old) = self.running.insert(step.to_string(), Bar { bar, activity }) {
            old.bar.finish_and_clear();
        }
    }

    pub(super) fn total(&self, step: &str, total: u64) {
        if let Some(Bar { bar, activity }) = self.running.get(step) {
            bar.set_style(style(true, text::width(&bar.prefix()), self.width, activity));
            bar.set_length(total);
        }
    }

    pub(super) fn position(&self, step: &str, rows: u64) {
        if let Some(Bar { bar, .. }) = self.running.get(step) {
            bar.set_position(rows);
        }
    }

    pub(super) fn activity(&self, step: &str, text: String) {
        if let Some(Bar { activity, .. }) = self.running.get(step) {
            *activity.lock().unwrap_or_else(PoisonError::into_inner) = text;
        }
    }

    pub(super) fn end(&mut self, step: &str) {
        if let Some(Bar { bar, .. }) = self.running.remove(step) {
            bar.finish_and_clear();
            self.multi.remove(&bar);
        }
    }

    pub(super) fn clear(&mut self) {
        let steps: Vec<String> = self.running.keys().cloned().collect();
        steps.iter().for_each(|step| self.end(step));
    }

    /// Takes the bars off the screen while `write` writes above them.
    pub(super) fn above(&self, write: impl FnOnce()) {
        self.multi.suspend(write);
    }
}

fn style(total: bool, name: usize, width: usize, activity: &ActivityText) -> ProgressStyle {
    let activity = Arc::clone(activity);
    let bar = match width {
        _ if !total => 0,
        72.. => 16,
        40.. => 8,
        _ => 0,
    };
    // The spinner and a space, the name, the bar, two spaces before each, one column free.
    let room = width.saturating_sub(2 + name + 2 + if bar > 0 { bar + 2 } else { 0 } + 1);
    let template = match bar {
        0 => "{spinner:.cyan} {prefix}  {info}".to_string(),
        bar => format!("{{spinner:.cyan}} {{prefix}}  {{bar:{bar}.cyan/dim}}  {{info}}"),
    };
    ProgressStyle::with_template(&template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("━╸─")
        .tick_chars("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ ")
        .with_key("info", move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            let mut shown = info(state, total, room);
            let activity = activity.lock().unwrap_or_else(PoisonError::into_inner);
            let left = room.saturating_sub(text::width(&shown) + 2);
            if !activity.is_empty() && left >= LEAST_ACTIVITY {
                shown.push_str("  ");
                shown.push_str(&text::crop(&text::escape(&activity), left));
            }
            let _ = out.write_str(&shown);
        })
}

/// Rows done, rows per second and the time left, as far as there is room.
fn info(state: &ProgressState, total: bool, room: usize) -> String {
    let rate = (state.pos() > 0).then(|| per_second(state.per_sec()));
    let (done, percent, time) = match state.len().filter(|_| total) {
        Some(len) => {
            let left = (state.pos() > 0 && state.pos() < len)
                .then(|| format!("{} left", seconds(state.eta().as_secs_f64())));
            let done = format!("{}/{}", count(state.pos()), count(len));
            (done, Some(format!("{:.0}%", state.fraction() * 100.0)), left)
        }
        None if state.pos() > 0 => {
            let done = format!("{} rows", count(state.pos()));
            (done, None, Some(seconds(state.elapsed().as_secs_f64())))
        }
        None => (seconds(state.elapsed().as_secs_f64()), None, None),
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
