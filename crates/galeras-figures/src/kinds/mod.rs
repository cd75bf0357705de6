//! The kinds of figures, one file for each family, and their shared parts.

mod bar;
mod boxes;
mod contour;
mod distribution;
mod forest;
mod funnel;
mod graph;
mod heatmap;
mod points;
mod treemap;

pub(crate) use distribution::bins;
pub(crate) use forest::{
    range as forest_range, references as forest_references, words as forest_words,
};

use crate::data::Data;
use crate::error::FigureError;
use crate::kind::Kind;
use crate::rows::{Row, Table};
use crate::scale::{Range, count, number};
use crate::sheet::{Dim, Panel, Plan, Sheet, level};
use crate::spec::{Picture, Role, Spec};
use crate::svg::{Area, Stroke};
use crate::text::visible;

/// All kinds of figures, each in a file of this folder.
pub(crate) const KINDS: &[Kind] = &[
    Kind::HISTOGRAM,
    Kind::ECDF,
    Kind::BOX,
    Kind::VIOLIN,
    Kind::BAR,
    Kind::LINE,
    Kind::SCATTER,
    Kind::HEATMAP,
    Kind::CONTOUR,
    Kind::FOREST,
    Kind::LOVE,
    Kind::TREEMAP,
    Kind::GRAPH,
    Kind::FUNNEL,
];

/// Draws the figure of a spec.
pub(crate) fn draw(spec: &Spec, data: &Data) -> Result<Picture, FigureError> {
    let mut sheet = Sheet::new(spec, data, Table::read(spec, data)?);
    begin_facts(&mut sheet);
    (spec.kind.0.draw)(&mut sheet)?;
    Ok(sheet.finish())
}

/// The first words of the text for screen readers.
fn begin_facts(sheet: &mut Sheet<'_>) {
    let mut words = sheet.spec.kind.0.title.to_string();
    if let Some(title) = &sheet.spec.title {
        words.push_str(&format!(", “{title}”"));
    }
    let roles = [(Role::X, "x"), (Role::Y, "y"), (Role::Color, "colour"), (Role::Facet, "panels")];
    for (role, meaning) in roles {
        if let Some(column) = sheet.spec.column(role).and_then(|c| sheet.data.column(c)) {
            let label = sheet.column_label(role).unwrap_or_default();
            words.push_str(&format!("; {meaning}: {label}"));
            if let Some(description) = &column.description {
                words.push_str(&format!(", {}", description.trim_end_matches('.')));
            }
        }
    }
    words.push_str(&format!("; {} rows.", count(sheet.table.rows.len())));
    sheet.facts.push(words);
}

/// The least and the greatest of numbers, as words.
fn span(values: impl Iterator<Item = f64>) -> String {
    let (low, high) =
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
    format!("{} to {}", number(low), number(high))
}

/// The error for two rows in one place.
fn twice(sheet: &Sheet<'_>, first: &Row, second: &Row, roles: &[Role]) -> FigureError {
    let table = &sheet.table;
    let value = |role: &Role| {
        let column = visible(sheet.spec.column(*role)?);
        let name = match role {
            Role::X if table.xs.is_empty() => number(second.x),
            Role::X => table.xs[second.x_name].clone(),
            Role::Y => table.ys[second.y_name?].clone(),
            Role::Color => table.colors.get(second.color?)?.clone(),
            _ => table.facets[second.facet].clone(),
        };
        Some(format!("`{column}` = {}", visible(&name)))
    };
    let place: Vec<String> = roles.iter().filter_map(value).collect();
    FigureError::Twice {
        kind: sheet.spec.kind,
        place: place.join(", "),
        first: first.at,
        second: second.at,
    }
}

/// Rows by place, each place taken by one.
fn one_each<K: Ord>(
    sheet: &Sheet<'_>,
    place: impl Fn(&Row) -> K,
    roles: &[Role],
) -> Result<(), FigureError> {
    let mut seen = std::collections::BTreeMap::new();
    for row in &sheet.table.rows {
        if let Some(first) = seen.insert(place(row), row) {
            return Err(twice(sheet, first, row, roles));
        }
    }
    Ok(())
}

/// The number of groups that need separate places at each name: one if every name has rows of one
/// group only, as models of families have.
fn groups_abreast(sheet: &Sheet<'_>, name: impl Fn(&Row) -> usize) -> usize {
    let mut seen = std::collections::BTreeMap::new();
    let alone = |r: &Row| *seen.entry(name(r)).or_insert(r.color) == r.color;
    // Without names the groups are side by side.
    let named = sheet.spec.kind.usage(Role::X).is_none_or(|u| u.needed) || sheet.spec.x.is_some();
    if named && sheet.table.rows.iter().all(alone) { 1 } else { sheet.table.groups() }
}

/// Categories along one axis and numbers along the other: upright, or with the categories below
/// each other where their names need the room.
struct Slots {
    names: usize,
    groups: usize,
    lying: bool,
}

impl Slots {
    fn of(sheet: &Sheet<'_>) -> Slots {
        let names = sheet.table.xs.len().max(1);
        let groups = groups_abreast(sheet, |r| r.x_name);
        let width = sheet.width - 75.0;
        let columns = ((width + 16.0) / (Slots::min_width(names, groups) + 16.0)).floor();
        let columns = columns.clamp(1.0, sheet.table.panels() as f64);
        let pitch = ((width + 16.0) / columns - 16.0) / names as f64;
        let lying = level(&sheet.table.xs, pitch).is_none() || pitch / (groups as f64) < 9.0;
        Slots { names, groups, lying }
    }

    fn min_width(names: usize, groups: usize) -> f64 {
        (names * groups) as f64 * 14.0_f64.max(120.0 / (names * groups) as f64)
    }

    fn plan(&self, sheet: &Sheet<'_>, range: Range, key: Option<crate::sheet::Key>) -> Plan {
        let mut names = sheet.table.xs.clone();
        if names.is_empty() {
            names.push(String::new());
        }
        let (x_label, y_label) = (sheet.axis_label(Role::X), sheet.axis_label(Role::Y));
        let pitch = (self.groups as f64 * 14.0 + 8.0).max(24.0).max(sheet.name_height(&names));
        let thick = self.names as f64 * pitch + 12.0;
        let min_width = if self.lying { 120.0 } else { Slots::min_width(self.names, self.groups) };
        let (x, y, x_label, y_label) = match self.lying {
            true => (Dim::Number(range), Dim::Names(names), y_label, x_label),
            false => (Dim::Names(names), Dim::Number(range), x_label, y_label),
        };
        let lying = self.lying;
        Plan {
            x,
            y,
            x_label,
            y_label,
            key,
            min_width,
            panel_height: Box::new(
                move |w| if lying { thick } else { (w * 0.62).clamp(120.0, 300.0) },
            ),
            beside: 0.0,
            below: 0.0,
        }
    }

    /// The middle and the width of the place of a category and group along their axis.
    fn slot(&self, panel: &Panel, name: usize, group: usize) -> (f64, f64) {
        let (from, length) = match self.lying {
            true => (panel.area.y, panel.area.height),
            false => (panel.area.x, panel.area.width),
        };
        let pitch = length / self.names as f64;
        let width = pitch * 0.8 / self.groups as f64;
        let begin = from + pitch * (name as f64 + 0.1);
        let group = if self.groups > 1 { group } else { 0 };
        (begin + width * (group as f64 + 0.5), width)
    }

    /// The place of a number on its axis.
    fn value(&self, panel: &Panel, value: f64) -> f64 {
        if self.lying { panel.x(value) } else { panel.y(value) }
    }

    /// A point from its places along the axis of categories and that of numbers.
    fn point(&self, slot: f64, value: f64) -> (f64, f64) {
        if self.lying { (value, slot) } else { (slot, value) }
    }

    /// A rectangle around a slot's middle between two places on the axis of numbers.
    fn area(&self, slot: f64, width: f64, from: f64, to: f64) -> Area {
        let (x1, y1) = self.point(slot - width / 2.0, from);
        let (x2, y2) = self.point(slot + width / 2.0, to);
        Area::between(x1, y1, x2, y2)
    }
}

/// A line of reference across the axis of numbers.
fn reference(sheet: &mut Sheet<'_>, panel: &Panel, value: f64, vertical: bool, dash: &'static str) {
    let axis = if vertical { panel.x } else { panel.y };
    let Some(axis) = axis.filter(|a| value >= a.low && value <= a.high) else { return };
    let (place, area) = (axis.at(value), panel.area);
    let stroke = Stroke { color: sheet.look.soft, width: 1.0, dash };
    sheet.svg.open("reference");
    match vertical {
        true => sheet.svg.line((place, area.y), (place, area.bottom()), stroke),
        false => sheet.svg.line((area.x, place), (area.right(), place), stroke),
    }
    sheet.svg.close();
}

/// The anchors that a line of reference is for a range.
fn anchors(sheet: &Sheet<'_>) -> Vec<f64> {
    sheet.spec.reference.into_iter().collect()
}
