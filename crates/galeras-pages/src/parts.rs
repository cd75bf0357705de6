//! The state that the parts of a page share: limits, ids, whole texts for copying, and notes about
//! omissions.

use std::collections::BTreeSet;

use crate::number;
use crate::text::{Excerpt, Markup, escape, has_hidden, label};

/// The limits of a page. The rest is left out, and the page notes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageLimits {
    /// The size of the page, in bytes.
    pub bytes: usize,
    /// The rows of a table.
    pub table_rows: usize,
    /// The columns of a table, and of a port.
    pub columns: usize,
    /// The characters of a cell.
    pub cell_chars: usize,
    /// The data points of a section.
    pub points: usize,
    /// The characters of a text: code, an answer, a prompt.
    pub text_chars: usize,
    /// The characters of a line of such a text.
    pub line_chars: usize,
    /// A text that is shown in part is kept whole for copying up to this size, in bytes.
    pub kept_bytes: usize,
    /// The first rows of a port.
    pub first_rows: usize,
    /// The steps whose panels are shown.
    pub panels: usize,
    /// The boxes of a graph of steps, which has all or none of them.
    pub boxes: usize,
    /// A figure, in bytes.
    pub figure_bytes: usize,
    /// All figures together, in bytes.
    pub all_figures_bytes: usize,
    /// The entries of any list: findings, notes, stages, reasons, digests, groups.
    pub entries: usize,
}

impl Default for PageLimits {
    fn default() -> Self {
        Self {
            bytes: 5_000_000,
            table_rows: 500,
            columns: 100,
            cell_chars: 300,
            points: 200,
            text_chars: 20_000,
            line_chars: 2_000,
            kept_bytes: 100_000,
            first_rows: 10,
            panels: 1_000,
            boxes: 1_000,
            figure_bytes: 1_000_000,
            all_figures_bytes: 4_000_000,
            entries: 500,
        }
    }
}

impl PageLimits {
    /// About half as much of everything that is of any number. Nothing is halved to none.
    #[must_use]
    pub fn halved(&self) -> Self {
        let mut next = self.clone();
        for (limit, least) in [
            (&mut next.table_rows, 10),
            (&mut next.columns, 12),
            (&mut next.cell_chars, 40),
            (&mut next.points, 5),
            (&mut next.text_chars, 400),
            (&mut next.line_chars, 200),
            (&mut next.kept_bytes, 1_000),
            (&mut next.first_rows, 2),
            (&mut next.panels, 10),
            (&mut next.boxes, 250),
            (&mut next.figure_bytes, 20_000),
            (&mut next.all_figures_bytes, 20_000),
            (&mut next.entries, 20),
        ] {
            *limit = (*limit / 2).max(least.min(*limit));
        }
        next
    }
}

/// The parts of one page while they are made.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    /// How much is shown.
    pub(crate) limits: PageLimits,
    /// Notes about omissions, in sentences.
    pub(crate) notes: Vec<String>,
    /// The steps that have a panel on the page, to which what comes from them links.
    pub(crate) panels: BTreeSet<String>,
    /// The bytes of the figures so far.
    pub(crate) figures_bytes: usize,
    pub(crate) kept: Vec<(String, String)>,
    pub(crate) ids: usize,
}

impl Parts {
    /// An id that no other element of the page has.
    pub(crate) fn id(&mut self, prefix: &str) -> String {
        self.ids += 1;
        format!("{prefix}-{}", self.ids)
    }

    /// The first `limit` of the items; a note counts the rest.
    pub(crate) fn first<'a, T>(&mut self, items: &'a [T], limit: usize, what: &str) -> &'a [T] {
        let shown = &items[..items.len().min(limit)];
        if shown.len() < items.len() {
            let [part, all] = [shown.len(), items.len()].map(|n| number::count(n as u64));
            self.notes.push(format!("{what}: {part} of {all} are shown."));
        }
        shown
    }

    /// The part of a text that is shown. The id is that under which the page keeps the whole text
    /// for copying, if what is shown is another one.
    pub(crate) fn excerpt(&mut self, text: &str) -> (Excerpt, Option<String>) {
        let excerpt = Excerpt::new(text, self.limits.text_chars, self.limits.line_chars);
        let differs = !excerpt.is_whole() || has_hidden(text);
        if !differs || text.len() > self.limits.kept_bytes {
            return (excerpt, None);
        }
        let id = self.id("whole");
        self.kept.push((id.clone(), text.to_string()));
        (excerpt, Some(id))
    }

    /// A text of a cell or a label, on one line and cut if it is long.
    pub(crate) fn label(&self, text: &str) -> Markup {
        label(text, self.limits.cell_chars)
    }

    /// The name of a step, as a link to its panel if there is one.
    pub(crate) fn step_name(&self, step: &str) -> Markup {
        let name = escape(step);
        Markup(match self.panels.contains(step) {
            true => format!("<a href=\"#{}\">{name}</a>", step_id(step)),
            false => name,
        })
    }

    /// The name of the step that a part comes from, if it has one.
    pub(crate) fn source(&self, step: &str) -> Option<Markup> {
        (!step.is_empty()).then(|| self.step_name(step))
    }

    /// The whole texts as JSON for a `<script>`: without `<`, `>` and `&`, and without characters
    /// that end lines in JavaScript.
    pub(crate) fn kept_json(&self) -> Markup {
        Markup(script_json(&self.kept.iter().cloned().collect()))
    }
}

/// The id of the panel of a step. Different names have different ids.
pub(crate) fn step_id(step: &str) -> String {
    let mut id = String::from("step-");
    for c in step.chars() {
        match c {
            c if c.is_ascii_alphanumeric() || c == '-' || c == '_' => id.push(c),
            c => id.push_str(&format!(".{:x}.", u32::from(c))),
        }
    }
    id
}

/// JSON for a `<script>`.
pub(crate) fn script_json(value: &serde_json::Value) -> String {
    let mut out = String::new();
    for c in value.to_string().chars() {
        match c {
            '<' | '>' | '&' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c if u32::from(c) >= 0x7f && has_hidden(c.encode_utf8(&mut [0; 4])) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => out.push(c),
        }
    }
    out
}
