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
pub(crate) use forest::{range, references};

use crate::data::Data;
use crate::error::FigureError;
use crate::rows::{Row, Table};
use crate::scale::{Range, count, extent, number};
use crate::sheet::{Dim, Key, Panel, Plan, Sheet, level};
use crate::spec::{Kind, Picture, Role, Spec};
use crate::svg::{Area, Point, Stroke};
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

/// Draws a figure.
///
/// # Errors
/// A column that the kind needs is not named or not there or of the wrong type, there is nothing
/// to draw, or more than fits a picture: see [`FigureError`].
pub fn draw(spec: &Spec, data: &Data) -> Result<Picture, FigureError> {
    let mut table = Table::read(spec, data)?;
    table.write_columns_as_words(spec);
    let mut sheet = Sheet::new(spec, data, &table);
    // The first words of the text for screen readers.
    let mut words = spec.kind.title.to_string();
    if let Some(title) = &spec.title {
        words.push_str(&format!(", “{title}”"));
    }
    let roles = [(Role::X, "x"), (Role::Y, "y"), (Role::Color, "colour"), (Role::Facet, "panels")];
    for (role, meaning) in roles {
        if let Some(column) = spec.column(role).and_then(|c| data.column(c)) {
            let label = sheet.column_label(role).unwrap_or_default();
            words.push_str(&format!("; {meaning}: {label}"));
            if let Some(description) = &column.description {
                words.push_str(&format!(", {}", description.trim_end_matches('.')));
            }
        }
    }
    words.push_str(&format!("; {} rows.", count(table.rows.len())));
    sheet.facts.push(words);
    (spec.kind.draw)(&mut sheet)?;
    Ok(sheet.finish())
}

/// The least and the greatest of numbers, as words.
fn span(values: impl Iterator<Item = f64>) -> String {
    let (low, high) = extent(values);
    format!("{} to {}", number(low), number(high))
}

/// The names that are there, as a list.
pub(crate) fn joined<const N: usize>(names: [Option<&String>; N]) -> String {
    names.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// The names of a row and a number of it with its interval.
fn words(table: &Table, row: &Row, value: f64) -> String {
    let names = joined([
        table.facets.get(row.facet),
        table.xs.get(row.x_name),
        row.y_name.and_then(|y| table.ys.get(y)),
        row.color.and_then(|c| table.colors.get(c)),
    ]);
    format!("{names}: {}", row.words(value))
}

/// A sentence about so many things, unless there are none.
fn counted(n: usize, one: &str, more: &str) -> Option<String> {
    (n > 0).then(|| format!("{} {}.", count(n), if n == 1 { one } else { more }))
}

/// A sentence about labels that are not drawn.
fn without_room(labels: usize) -> Option<String> {
    counted(labels, "label has no room", "labels have no room")
}

/// Refuses numbers below 0 in the column `y`.
fn check_not_negative(sheet: &Sheet<'_>) -> Result<(), FigureError> {
    let Some(row) = sheet.table.rows.iter().find(|r| r.y < 0.0) else { return Ok(()) };
    let (column, a_kind) = (sheet.spec.shown(Role::Y), sheet.spec.kind.with_article());
    Err(FigureError::Data(format!(
        "in row {} column `{column}` is {}, and {a_kind} cannot show less than 0",
        row.at, row.y
    )))
}

/// The error for two rows in one place.
fn twice(sheet: &Sheet<'_>, first: &Row, second: &Row, roles: &[Role]) -> FigureError {
    let table = sheet.table;
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
    FigureError::Data(format!(
        "rows {} and {} are both {}; {} shows one row for each: group the rows first",
        first.at,
        second.at,
        place.join(", "),
        sheet.spec.kind.with_article()
    ))
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

    fn plan(&self, sheet: &Sheet<'_>, range: Range, key: Key) -> Plan {
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
        let height = move |w: f64| if lying { thick } else { (w * 0.62).clamp(120.0, 300.0) };
        Plan { x_label, y_label, key: Some(key), ..Plan::new(x, y, min_width, height) }
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

    fn value(&self, panel: &Panel, value: f64) -> f64 {
        if self.lying { panel.x(value) } else { panel.y(value) }
    }

    /// A point from its places along the axis of categories and that of numbers.
    fn point(&self, slot: f64, value: f64) -> Point {
        if self.lying { (value, slot) } else { (slot, value) }
    }

    /// A rectangle around a slot's middle between two places on the axis of numbers.
    fn area(&self, slot: f64, width: f64, from: f64, to: f64) -> Area {
        Area::between(self.point(slot - width / 2.0, from), self.point(slot + width / 2.0, to))
    }
}

/// A line of reference across the axis of numbers.
fn reference(sheet: &mut Sheet<'_>, panel: &Panel, value: f64, vertical: bool, dash: &'static str) {
    let axis = if vertical { panel.x } else { panel.y };
    let within = |range: Range| value >= range.low && value <= range.high;
    let Some(axis) = axis.filter(|axis| within(axis.range)) else { return };
    let (place, area) = (axis.at(value), panel.area);
    let stroke = Stroke { color: sheet.look.soft, width: 1.0, dash };
    sheet.svg.group("reference", |svg| match vertical {
        true => svg.line((place, area.y), (place, area.bottom()), stroke),
        false => svg.line((area.x, place), (area.right(), place), stroke),
    });
}

/// The line of reference of the spec, if there is one.
fn own_reference(sheet: &mut Sheet<'_>, panel: &Panel, vertical: bool) {
    if let Some(value) = sheet.spec.reference {
        reference(sheet, panel, value, vertical, "4 3");
    }
}
