//! Lines with bands, and points with intervals.

use super::{anchors, one_each, reference, span};
use crate::error::FigureError;
use crate::kind::{Kind, KindSpec};
use crate::rows::Row;
use crate::scale::{Range, count, number};
use crate::sheet::{Dim, Key, Panel, Plan, Sheet};
use crate::spec::{GROUPS, HIGH, LOW, PANELS, Role, Takes, Theme, may, needs};
use crate::svg::{Anchor, Area, Fill, Stroke};
use crate::text::{LEADING, Label, SMALL};
use crate::theme;

impl Kind {
    /// Line chart: see [`Kind::about`].
    pub const LINE: Kind = Kind(&KindSpec {
        name: "line",
        title: "Line chart",
        about: "Lines, with bands.",
        columns: &[
            needs(Role::X, Takes::Number, "where a point of the line is"),
            needs(Role::Y, Takes::Number, "how high it is"),
            LOW,
            HIGH,
            GROUPS,
            PANELS,
        ],
        options: &["reference", "x_label", "y_label", "x_scale", "y_scale"],
        along: Role::Y,
        names: 0,
        groups: theme::GROUPS,
        marks: 200_000,
        draw: line,
        draw_text: None,
    });
}

impl Kind {
    /// Scatter plot: see [`Kind::about`].
    pub const SCATTER: Kind = Kind(&KindSpec {
        name: "scatter",
        title: "Scatter plot",
        about: "Points, with intervals.",
        columns: &[
            needs(Role::X, Takes::Number, "where a point is"),
            needs(Role::Y, Takes::Number, "how high it is"),
            LOW,
            HIGH,
            GROUPS,
            PANELS,
            may(Role::Label, Takes::Category, "a text next to the point, if there is room"),
        ],
        options: &["reference", "x_label", "y_label", "x_scale", "y_scale"],
        along: Role::Y,
        names: 0,
        groups: theme::GROUPS,
        marks: 50_000,
        draw: scatter,
        draw_text: None,
    });
}

fn panels(sheet: &mut Sheet<'_>, key: Key) -> Result<Vec<Panel>, FigureError> {
    let ends = |r: &Row| {
        let (low, high) = r.interval.unwrap_or((r.y, r.y));
        [r.y, low, high]
    };
    let (x_scale, y_scale) =
        (sheet.spec.x_scale.unwrap_or_default(), sheet.spec.y_scale.unwrap_or_default());
    let x = Range::of(sheet.table.rows.iter().map(|r| r.x), &[], x_scale);
    let y = Range::of(sheet.table.rows.iter().flat_map(ends), &anchors(sheet), y_scale);
    let plan = Plan {
        x: Dim::Number(x),
        y: Dim::Number(y),
        x_label: sheet.axis_label(Role::X),
        y_label: sheet.axis_label(Role::Y),
        key: Some(key),
        min_width: 130.0,
        panel_height: Box::new(|w| (w * 0.62).clamp(120.0, 330.0)),
        beside: 0.0,
        below: 0.0,
    };
    let panels = sheet.panels(&plan)?;
    if let Some(value) = sheet.spec.reference {
        panels.iter().for_each(|p| reference(sheet, p, value, false, "4 3"));
    }
    let (x, y) = (sheet.table.rows.iter().map(|r| r.x), sheet.table.rows.iter().map(|r| r.y));
    let fact = format!("Horizontally {}, vertically {}.", span(x), span(y));
    sheet.facts.push(fact);
    Ok(panels)
}

fn line(sheet: &mut Sheet<'_>) -> Result<(), FigureError> {
    // Two points of a line may not be above each other; numbers are compared by their bits.
    let place = |r: &Row| (r.facet, r.color, (r.x + 0.0).to_bits());
    one_each(sheet, place, &[Role::X, Role::Color, Role::Facet])?;
    let panels = panels(sheet, Key::Marked)?;
    for (i, panel) in panels.iter().enumerate() {
        for group in 0..sheet.table.groups() {
            let rows = sheet.table.in_panel(i).filter(|r| r.color.unwrap_or(0) == group);
            let mut rows: Vec<Row> = rows.cloned().collect();
            rows.sort_by(|a, b| a.x.total_cmp(&b.x));
            let color = sheet.look.color(group);
            // A band ends where a row has no interval.
            for part in rows.split(|r| r.interval.is_none()) {
                let end = |high: bool| {
                    part.iter().filter_map(move |r| {
                        r.interval.map(|(a, b)| (panel.x(r.x), panel.y(if high { b } else { a })))
                    })
                };
                let mut around: Vec<_> = end(true).collect();
                if around.is_empty() {
                    continue;
                }
                let alone = around.len() == 1;
                around.extend(end(false).collect::<Vec<_>>().into_iter().rev());
                sheet.svg.open("band");
                let opacity = if sheet.look.theme == Theme::Print { 0.14 } else { 0.2 };
                let stroke = alone.then(|| Stroke::solid(color, 1.2));
                sheet.svg.path(&around, true, Fill { color, opacity }, stroke);
                sheet.svg.close();
            }
            let points: Vec<_> = rows.iter().map(|r| (panel.x(r.x), panel.y(r.y))).collect();
            sheet.svg.open("line");
            if points.len() > 1 {
                sheet.svg.path(&points, false, Fill::NONE, Some(sheet.look.stroke(group, 1.7)));
            }
            // Marks show the group; very many of them would hide the line.
            if points.len() <= 40 {
                points.iter().for_each(|at| sheet.look.mark(&mut sheet.svg, *at, 2.8, group, 1.0));
            }
            sheet.svg.close();
        }
    }
    if sheet.table.intervals {
        sheet.notes.push("Bands: intervals.".to_string());
    }
    Ok(())
}

fn scatter(sheet: &mut Sheet<'_>) -> Result<(), FigureError> {
    let panels = panels(sheet, Key::Mark)?;
    let (radius, opacity) = match sheet.table.rows.len() {
        0..200 => (3.2, 0.75),
        200..2000 => (2.4, 0.5),
        _ => (1.6, 0.35),
    };
    let mut left_out = 0;
    for (i, panel) in panels.iter().enumerate() {
        let rows: Vec<Row> = sheet.table.in_panel(i).cloned().collect();
        let mut taken: Vec<Area> = Vec::new();
        for row in &rows {
            let (x, group) = (panel.x(row.x), row.color.unwrap_or(0));
            taken.push(around(x, panel.y(row.y), radius));
            if let Some((low, high)) = row.interval {
                let stroke = Stroke::solid(sheet.look.color(group), 1.0);
                let (low, high) = (panel.y(low), panel.y(high));
                sheet.svg.open("interval");
                sheet.svg.line((x, low), (x, high), stroke);
                sheet.svg.close();
                if rows.len() <= 500 {
                    taken.push(Area::between(x - 1.0, low, x + 1.0, high));
                }
            }
        }
        sheet.svg.open("points");
        for row in &rows {
            let (at, group) = ((panel.x(row.x), panel.y(row.y)), row.color.unwrap_or(0));
            match &row.label {
                Some(label) => {
                    let title = format!("{label}: {}, {}", number(row.x), number(row.y));
                    sheet.svg.open_titled("point", &title);
                    sheet.look.mark(&mut sheet.svg, at, radius, group, opacity);
                    sheet.svg.close();
                }
                None => sheet.look.mark(&mut sheet.svg, at, radius, group, opacity),
            }
        }
        sheet.svg.close();
        for row in rows.iter().filter(|r| r.label.is_some()) {
            left_out += usize::from(!write_label(sheet, panel, row, radius, &mut taken));
        }
    }
    if sheet.table.intervals {
        sheet.notes.push("Lines through points: intervals.".to_string());
    }
    if left_out > 0 {
        let words = if left_out == 1 { "label has" } else { "labels have" };
        sheet.notes.push(format!("{} {words} no room.", count(left_out)));
    }
    Ok(())
}

pub(super) fn around(x: f64, y: f64, radius: f64) -> Area {
    Area { x: x - radius, y: y - radius, width: 2.0 * radius, height: 2.0 * radius }
}

/// Writes a point's label where nothing else is; whether there was such a place.
pub(super) fn write_label(
    sheet: &mut Sheet<'_>,
    panel: &Panel,
    row: &Row,
    radius: f64,
    taken: &mut Vec<Area>,
) -> bool {
    // With very many labels the search would be slow, and most would find no room.
    if taken.len() > 3000 {
        return false;
    }
    let text = row.label.as_deref().unwrap_or_default();
    let label = Label::fit(text, SMALL, (panel.area.width * 0.4).min(130.0), 1);
    let (x, y, gap) = (panel.x(row.x), panel.y(row.y), radius + 3.0);
    let (width, height) = (label.width, SMALL * LEADING);
    // Beyond the ends of an interval, moved inwards at the sides of the panel.
    let (low, high) = row.interval.map_or((y, y), |(a, b)| (panel.y(a), panel.y(b)));
    let inwards =
        (x - width / 2.0).clamp(panel.area.x, (panel.area.right() - width).max(panel.area.x));
    let places = [
        (x + gap, y - height / 2.0),
        (x - gap - width, y - height / 2.0),
        (x - width / 2.0, y - gap - height),
        (x - width / 2.0, y + gap),
        (x + gap * 0.7, y - gap - height * 0.8),
        (x + gap * 0.7, y + gap - height * 0.2),
        (x - gap * 0.7 - width, y - gap - height * 0.8),
        (x - gap * 0.7 - width, y + gap - height * 0.2),
        (inwards, y.min(high) - 2.0 - height),
        (inwards, y.max(low) + 2.0),
    ];
    let free = |(left, top): &(f64, f64)| {
        let area = Area { x: *left, y: *top, width, height };
        let inside = area.x >= panel.area.x
            && area.right() <= panel.area.right()
            && area.y >= panel.area.y
            && area.bottom() <= panel.area.bottom();
        inside && taken.iter().all(|t| !meet(t, &area))
    };
    let Some((left, top)) = places.into_iter().find(free) else { return false };
    sheet.svg.open("beside");
    sheet.svg.label(&label, left, top, Anchor::Start, sheet.look.ink);
    sheet.svg.close();
    taken.push(Area { x: left, y: top, width, height });
    true
}

pub(super) fn meet(a: &Area, b: &Area) -> bool {
    a.x < b.right() && b.x < a.right() && a.y < b.bottom() && b.y < a.bottom()
}
