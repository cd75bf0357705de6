//! A picture in the making: heading, legend, panels with their axes, and the words below.

use crate::data::Data;
use crate::error::FigureError;
use crate::rows::{Row, Table};
use crate::scale::{Axis, Range, count};
use crate::spec::{Picture, Role, Spec, Takes};
use crate::svg::{Anchor, Area, CM, Fill, Point, Stroke, Svg};
use crate::text::{LARGE, LEADING, Label, SIZE, SMALL, visible};
use crate::theme::Look;

pub(crate) const MARGIN: f64 = 9.0;
/// Between panels.
const GAP: f64 = 16.0;

/// The values of an axis.
pub(crate) enum Dim {
    Number(Range),
    /// Names, left to right or top to bottom.
    Names(Vec<String>),
    /// There is none.
    Nothing,
}

/// How a legend shows a group.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Bar,
    Line,
    Mark,
    /// A mark on a line.
    Marked,
}

/// The needs of the panels.
pub(crate) struct Plan {
    pub(crate) x: Dim,
    pub(crate) y: Dim,
    pub(crate) x_label: Option<String>,
    pub(crate) y_label: Option<String>,
    /// How groups are shown in a legend, if there is to be one.
    pub(crate) key: Option<Key>,
    /// The least width of a panel in pixels.
    pub(crate) min_width: f64,
    /// The height of a panel in pixels, of its width.
    pub(crate) panel_height: Box<dyn Fn(f64) -> f64>,
    /// Room at the right of each panel for numbers.
    pub(crate) beside: f64,
    /// Room at the bottom of the picture, for a scale of colours.
    pub(crate) below: f64,
}

impl Plan {
    /// Panels without labels, a legend and further room.
    pub(crate) fn new(
        x: Dim,
        y: Dim,
        min_width: f64,
        panel_height: impl Fn(f64) -> f64 + 'static,
    ) -> Plan {
        Plan {
            x,
            y,
            x_label: None,
            y_label: None,
            key: None,
            min_width,
            panel_height: Box::new(panel_height),
            beside: 0.0,
            below: 0.0,
        }
    }
}

/// A panel: where marks go.
pub(crate) struct Panel {
    pub(crate) area: Area,
    pub(crate) x: Option<Axis>,
    pub(crate) y: Option<Axis>,
}

impl Panel {
    /// The place of a number on the horizontal axis.
    pub(crate) fn x(&self, value: f64) -> f64 {
        self.x.map_or(self.area.x, |a| a.at(value))
    }

    /// The place of a number on the vertical axis.
    pub(crate) fn y(&self, value: f64) -> f64 {
        self.y.map_or(self.area.y, |a| a.at(value))
    }

    pub(crate) fn at(&self, row: &Row) -> Point {
        (self.x(row.x), self.y(row.y))
    }
}

/// The picture as far as it is drawn.
pub(crate) struct Sheet<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) data: &'a Data,
    pub(crate) table: &'a Table,
    pub(crate) look: &'static Look,
    pub(crate) svg: Svg,
    /// The size in pixels; the height is known once there are panels.
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// Sentences of the caption about the marks.
    pub(crate) notes: Vec<String>,
    /// Sentences for who does not see the picture.
    pub(crate) facts: Vec<String>,
}

impl<'a> Sheet<'a> {
    pub(crate) fn new(spec: &'a Spec, data: &'a Data, table: &'a Table) -> Sheet<'a> {
        Sheet {
            spec,
            data,
            table,
            look: Look::of(spec.theme),
            svg: Svg::default(),
            width: spec.width.unwrap_or(16.0) * CM,
            height: 0.0,
            notes: Vec::new(),
            facts: Vec::new(),
        }
    }

    /// The label of an axis: as the spec has it, or the column's name and unit.
    pub(crate) fn axis_label(&self, role: Role) -> Option<String> {
        let given = if role == Role::X { &self.spec.x_label } else { &self.spec.y_label };
        given.clone().or_else(|| self.column_label(role))
    }

    /// The name of the column of a role as words, and its unit.
    pub(crate) fn column_label(&self, role: Role) -> Option<String> {
        let column = self.data.column(self.spec.column(role)?)?;
        let name = column.name.replace('_', " ");
        Some(match &column.unit {
            Some(unit) => format!("{name} ({unit})"),
            None => name,
        })
    }

    /// Draws the heading and the legend; returns where the rest begins.
    pub(crate) fn head(&mut self, key: Option<Key>) -> f64 {
        let mut top = MARGIN;
        let room = self.width - 2.0 * MARGIN;
        if let Some(title) = &self.spec.title {
            let label = Label::new(title, LARGE, room, 3, true);
            let ink = self.look.ink;
            self.svg.group("title", |s| s.label(&label, (MARGIN, top), Anchor::Start, ink));
            top += label.height() + 5.0;
        }
        match key.filter(|_| !self.table.colors.is_empty()) {
            Some(key) => self.legend(key, top) + 7.0,
            None => top + 1.0,
        }
    }

    fn legend(&mut self, key: Key, top: f64) -> f64 {
        const SWATCH: f64 = 20.0;
        let line = SIZE * 1.5;
        let most = ((self.width - MARGIN - MARGIN) * 0.48 - SWATCH - 5.0).min(240.0);
        let mut x = MARGIN;
        self.svg.open("legend");
        if let Some(name) = self.spec.column(Role::Color) {
            let label = Label::fit(&name.replace('_', " "), SIZE, most, 1);
            let at = (x, top + line / 2.0);
            self.svg.label_beside(&label, at, Anchor::Start, self.look.soft);
            x += label.width + 12.0;
        }
        let look = self.look;
        let y = self.keys((x, top), line, most, [25.0, 25.0], |svg, (x, middle), group| {
            if key == Key::Bar {
                let area = Area { x: x + 3.0, y: middle - 4.5, width: 14.0, height: 9.0 };
                look.bar(svg, area, group, 0.85);
            }
            if matches!(key, Key::Line | Key::Marked) {
                svg.line((x, middle), (x + SWATCH, middle), look.stroke(group, 1.8));
            }
            if matches!(key, Key::Mark | Key::Marked) {
                look.mark(svg, (x + SWATCH / 2.0, middle), 3.5, group, 1.0);
            }
        });
        self.svg.close();
        y
    }

    /// Draws the names of the groups, each after a swatch, in lines of this height; returns where
    /// the rest begins. A name starts at the first of the `gaps` and takes the second with it.
    pub(crate) fn keys(
        &mut self,
        (mut x, mut y): Point,
        line: f64,
        most: f64,
        gaps: [f64; 2],
        swatch: impl Fn(&mut Svg, Point, usize),
    ) -> f64 {
        for (group, name) in self.table.colors.iter().enumerate() {
            let label = Label::fit(name, SIZE, most, 1);
            let width = gaps[1] + label.width;
            if x + width > self.width - MARGIN && x > MARGIN {
                (x, y) = (MARGIN, y + line);
            }
            let middle = y + line / 2.0;
            self.svg.group("key", |svg| {
                swatch(svg, (x, middle), group);
                svg.label_beside(&label, (x + gaps[0], middle), Anchor::Start, self.look.ink);
            });
            x += width + 14.0;
        }
        y + line
    }

    /// Draws heading, legend and axes; returns the panels, one for each facet.
    pub(crate) fn panels(&mut self, plan: &Plan) -> Result<Vec<Panel>, FigureError> {
        let top = self.head(plan.key);
        let count = self.table.panels();
        let upright = SIZE * LEADING + 4.0;
        let left = MARGIN + if plan.y_label.is_some() { upright } else { 0.0 };
        let ticks_width = match &plan.y {
            Dim::Number(range) => {
                // How many there will be is known once the height is.
                let ticks = (2..=8).flat_map(|most| range.ticks(most));
                ticks.map(|(_, t)| Label::small(&t).width).fold(0.0, f64::max) + 6.0
            }
            Dim::Names(names) => self.names_width(names) + 8.0,
            Dim::Nothing => 0.0,
        };
        let first = left + ticks_width;
        let room = self.width - MARGIN - first;
        let fits = ((room + GAP) / (plan.min_width + plan.beside + GAP)).floor().max(1.0) as usize;
        let rows = count.div_ceil(fits.min(count));
        let columns = count.div_ceil(rows);
        let cell = (room - GAP * (columns - 1) as f64) / columns as f64;
        let panel_width = cell - plan.beside;
        if panel_width < 20.0 {
            return Err(self.too_small(self.width + 20.0 - panel_width, "width", "the panels"));
        }
        let ticks = XTicks::of(&plan.x, panel_width, self.width);
        let header = if self.table.facets.is_empty() { 0.0 } else { SIZE * 1.7 };
        let x_label =
            plan.x_label.as_ref().map(|l| Label::fit(l, SIZE, self.width - 2.0 * MARGIN, 2));
        let bottom = x_label.as_ref().map_or(0.0, |l| l.height() + 3.0) + plan.below + MARGIN;
        let fixed =
            top + ticks.height + bottom + (header * rows as f64) + GAP * 0.75 * (rows - 1) as f64;
        let panel_height = match self.spec.height {
            Some(cm) => {
                let height = (cm * CM - fixed) / rows as f64;
                let least = match &plan.y {
                    Dim::Names(names) => (names.len() as f64 * 3.0).max(24.0),
                    _ => 24.0,
                };
                if height < least {
                    let needed = fixed + least * rows as f64;
                    return Err(self.too_small(needed, "height", "the panels and their labels"));
                }
                height
            }
            None => (plan.panel_height)(panel_width),
        };
        self.height = fixed + panel_height * rows as f64;
        let mut panels = Vec::new();
        for i in 0..count {
            let (row, column) = (i / columns, i % columns);
            let area = Area {
                x: first + column as f64 * (cell + GAP),
                y: top + header + row as f64 * (panel_height + header + GAP * 0.75),
                width: panel_width,
                height: panel_height,
            };
            let lowest = i + columns >= count;
            self.svg.open("axes");
            if let Some(name) = self.table.facets.get(i) {
                let band = Area { y: area.y - header, width: cell, height: header - 3.0, ..area };
                self.svg.rect(band, Fill::solid(self.look.panel), None);
                let label = Label::new(name, SIZE, cell - 8.0, 1, true);
                self.svg.label_beside(&label, band.middle(), Anchor::Middle, self.look.ink);
            }
            let panel = self.axes(plan, &ticks, area, column == 0, lowest);
            self.svg.close();
            panels.push(panel);
        }
        let (ink, panels_bottom) = (self.look.ink, self.height - bottom);
        if let Some(label) = x_label {
            let half = label.width / 2.0;
            let (from, to) = (MARGIN + half, (self.width - MARGIN - half).max(MARGIN + half));
            let at = ((first + room / 2.0).clamp(from, to), panels_bottom + 3.0);
            self.svg.group("x-label", |svg| svg.label(&label, at, Anchor::Middle, ink));
        }
        if let Some(text) = &plan.y_label {
            let (from, to) = (top + header, panels_bottom - ticks.height);
            let label = Label::fit(text, SIZE, to - from, 1);
            let at = (MARGIN + SIZE * LEADING / 2.0, (from + to) / 2.0);
            self.svg.group("y-label", |svg| svg.label_upwards(&label, at, Anchor::Middle, ink));
        }
        Ok(panels)
    }

    fn axes(
        &mut self,
        plan: &Plan,
        ticks: &XTicks,
        area: Area,
        first: bool,
        lowest: bool,
    ) -> Panel {
        let (grid, soft) = (Stroke::solid(self.look.grid, 0.8), self.look.soft);
        let mut panel = Panel { area, x: None, y: None };
        if let Dim::Number(range) = &plan.y {
            let axis = range.axis(area.bottom(), area.y);
            for (value, text) in range.ticks(((area.height / (SMALL * 2.6)) as usize).clamp(2, 8)) {
                let y = axis.at(value);
                self.svg.open("tick y");
                self.svg.line((area.x, y), (area.right(), y), grid);
                if first {
                    let label = Label::small(&text);
                    self.svg.label_beside(&label, (area.x - 5.0, y), Anchor::End, soft);
                }
                self.svg.close();
            }
            panel.y = Some(axis);
        }
        if let (Dim::Names(names), true) = (&plan.y, first) {
            self.names_beside(names, area);
        }
        if let Dim::Number(range) = &plan.x {
            let axis = range.axis(area.x, area.right());
            for (value, text) in &ticks.numbers {
                let x = axis.at(*value);
                self.svg.open("tick x");
                self.svg.line((x, area.y), (x, area.bottom()), grid);
                if lowest {
                    let label = Label::small(text);
                    let place = area.x + inwards(x - area.x, label.width, area.width);
                    let at = (place, area.bottom() + 3.0);
                    self.svg.label(&label, at, Anchor::Middle, soft);
                }
                self.svg.close();
            }
            panel.x = Some(axis);
        }
        if let (Dim::Names(names), true) = (&plan.x, lowest) {
            let pitch = area.width / names.len() as f64;
            for (i, label) in ticks.names.iter().enumerate().step_by(ticks.every) {
                let (x, bottom) = (area.x + pitch * (i as f64 + 0.5), area.bottom());
                self.svg.group("name x", |svg| match ticks.upwards {
                    true => svg.label_upwards(label, (x, bottom + 4.0), Anchor::End, soft),
                    false => svg.label(label, (x, bottom + 3.0), Anchor::Middle, soft),
                });
            }
            if ticks.every > 1 && self.notes.iter().all(|n| !n.starts_with("Names")) {
                self.notes.push(format!("Names: one in {} is written.", ticks.every));
            }
        }
        if !matches!((&plan.x, &plan.y), (Dim::Nothing, _) | (_, Dim::Nothing)) {
            let stroke = Stroke::solid(soft, 0.8);
            self.svg.line((area.x, area.bottom()), (area.right(), area.bottom()), stroke);
        }
        panel
    }

    /// The least height of each name at the vertical axis: two lines if one is too short.
    pub(crate) fn name_height(&self, names: &[String]) -> f64 {
        let cropped = |n: &String| Label::fit(n, SIZE, self.width * 0.36, 1).whole.is_some();
        if names.iter().any(cropped) { 2.0 * SIZE * LEADING + 4.0 } else { 0.0 }
    }

    /// The width of the names at the vertical axis; the longest are cropped.
    fn names_width(&self, names: &[String]) -> f64 {
        let widths = names.iter().map(|n| Label::fit(n, SIZE, self.width * 0.36, 1).width);
        // A little more than the widest needs, so that it fits after rounding.
        widths.fold(0.0, f64::max) + 0.01
    }

    fn names_beside(&mut self, names: &[String], area: Area) {
        let pitch = area.height / names.len() as f64;
        let line = SIZE * LEADING;
        let every = (line / pitch).ceil().max(1.0) as usize;
        let lines = ((pitch / line).floor() as usize).clamp(1, 3);
        let widest = self.names_width(names);
        for (i, name) in names.iter().enumerate().step_by(every) {
            let label = Label::fit(name, SIZE, widest, lines);
            let (at, ink) = ((area.x - 7.0, area.y + pitch * (i as f64 + 0.5)), self.look.ink);
            self.svg.group("name y", |svg| svg.label_beside(&label, at, Anchor::End, ink));
        }
        if every > 1 {
            self.notes.push(format!("Names: one in {every} is written."));
        }
    }

    /// The error for a picture that is too small, by how many pixels are needed.
    pub(crate) fn too_small(&self, needed: f64, side: &str, what: &str) -> FigureError {
        let (width, height) = (self.width / CM, self.spec.height.unwrap_or(self.height / CM));
        let needed = (needed / CM * 10.0).ceil() / 10.0;
        FigureError::TooSmall(format!(
            "{width:.1} by {height:.1} cm is too small for {what}: at least {needed} cm of {side} \
             are needed"
        ))
    }

    pub(crate) fn finish(self) -> Picture {
        let mut caption: Vec<String> = Vec::new();
        if let Some(words) = &self.spec.caption {
            let words = visible(words.trim());
            let end = if words.ends_with(['.', '!', '?']) { "" } else { "." };
            caption.push(format!("{words}{end}"));
        }
        let mut groups = String::new();
        let usage = self.spec.kind.usage(Role::Color);
        if self.table.colors.len() > 1 && usage.is_some_and(|u| u.takes == Takes::Category) {
            let of = |(i, name): (usize, &String)| {
                let rows = self.table.rows.iter().filter(|r| r.color == Some(i)).count();
                format!("{}: {}", visible(name), count(rows))
            };
            let each: Vec<String> = self.table.colors.iter().enumerate().map(of).collect();
            groups = format!(" ({})", each.join(", "));
        }
        caption.push(format!("{}.", self.table.counted(self.spec.kind, &groups)));
        if self.table.half > 0 {
            let (rows, have, are) = match self.table.half {
                1 => ("row", "has", "is"),
                _ => ("rows", "have", "are"),
            };
            let half = count(self.table.half);
            caption.push(format!("{half} {rows} {have} no interval and {are} drawn without."));
        }
        caption.extend(self.notes);
        let alt = visible(&self.facts.join(" ")).into_owned();
        let svg = self.svg.finish(self.width, self.height, self.look.ground, &alt);
        Picture { svg, caption: caption.join(" "), alt }
    }
}

/// The ticks and names below the panels.
#[derive(Default)]
struct XTicks {
    numbers: Vec<(f64, String)>,
    names: Vec<Label>,
    upwards: bool,
    /// Only one name in so many is written.
    every: usize,
    height: f64,
}

impl XTicks {
    fn of(dim: &Dim, width: f64, picture: f64) -> XTicks {
        let mut ticks = XTicks { every: 1, ..XTicks::default() };
        match dim {
            Dim::Number(range) => {
                let axis = range.axis(0.0, width);
                let ends = |(value, text): &(f64, String)| {
                    let wide = Label::small(text).width;
                    let place = inwards(axis.at(*value), wide, width);
                    (place - wide / 2.0, place + wide / 2.0)
                };
                let clear = |found: &[(f64, String)]| {
                    found.windows(2).all(|pair| ends(&pair[0]).1 + 4.0 <= ends(&pair[1]).0)
                };
                let found = (2..=9).rev().map(|most| range.ticks(most)).find(|found| clear(found));
                ticks.numbers =
                    found.unwrap_or_else(|| range.ticks(2).into_iter().take(1).collect());
                ticks.height = SMALL * LEADING + 4.0;
            }
            Dim::Names(names) => {
                let pitch = width / names.len() as f64;
                match level(names, pitch) {
                    Some(labels) => ticks.names = labels,
                    None => {
                        let room = (picture * 0.3).min(130.0);
                        ticks.names = names.iter().map(|n| Label::fit(n, SMALL, room, 1)).collect();
                        ticks.upwards = true;
                        ticks.every = (SMALL * LEADING / pitch).ceil().max(1.0) as usize;
                    }
                }
                let size = |l: &Label| if ticks.upwards { l.width } else { l.height() };
                ticks.height = ticks.names.iter().map(size).fold(0.0, f64::max) + 6.0;
            }
            Dim::Nothing => {}
        }
        ticks
    }
}

/// The middle of a number below a panel of this width: at its tick, but not far beyond the panel's
/// ends, and at the left not as far as the numbers of the vertical axis.
fn inwards(tick: f64, wide: f64, panel: f64) -> f64 {
    let (from, to) = (wide / 2.0 - 4.0, panel + GAP / 2.0 - 1.0 - wide / 2.0);
    if from < to { tick.clamp(from, to) } else { tick }
}

/// Names below an axis in at most three level lines each, if all fit whole.
pub(crate) fn level(names: &[String], pitch: f64) -> Option<Vec<Label>> {
    let labels: Vec<Label> = names.iter().map(|n| Label::fit(n, SMALL, pitch - 5.0, 3)).collect();
    labels.iter().all(|l| l.whole.is_none() && !l.broken).then_some(labels)
}
