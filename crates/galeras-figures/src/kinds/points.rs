//! Lines with bands, and points with intervals.

use super::{one_each, own_reference, span, without_room};
use crate::error::FigureError;
use crate::rows::Row;
use crate::scale::{Range, number};
use crate::sheet::{Dim, Key, Panel, Plan, Sheet};
use crate::spec::{GROUPS, HIGH, Kind, LOW, PANELS, Role, Takes, Theme, may, needs};
use crate::svg::{Anchor, Area, Fill, Stroke};
use crate::text::{LEADING, Label, SMALL};

impl Kind {
    /// Line chart: see [`Kind::about`].
    pub const LINE: Kind = Kind {
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
        marks: 200_000,
        draw: line,
        ..Kind::BASE
    };

    /// Scatter plot: see [`Kind::about`].
    pub const SCATTER: Kind = Kind {
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
        marks: 50_000,
        draw: scatter,
        ..Kind::BASE
    };
}

fn panels(sheet: &mut Sheet<'_>, key: Key) -> Result<Vec<Panel>, FigureError> {
    let [x_scale, y_scale] =
        [sheet.spec.x_scale, sheet.spec.y_scale].map(Option::unwrap_or_default);
    let rows = || sheet.table.rows.iter();
    let ends = rows().flat_map(|r| r.with_interval(r.y));
    let x = Dim::Number(Range::of(rows().map(|r| r.x), &[], x_scale));
    let y = Dim::Number(Range::of(ends, sheet.spec.reference.as_slice(), y_scale));
    let plan = Plan {
        x_label: sheet.axis_label(Role::X),
        y_label: sheet.axis_label(Role::Y),
        key: Some(key),
        ..Plan::new(x, y, 130.0, |w| (w * 0.62).clamp(120.0, 330.0))
    };
    let (x, y) = (span(rows().map(|r| r.x)), span(rows().map(|r| r.y)));
    let panels = sheet.panels(&plan)?;
    panels.iter().for_each(|panel| own_reference(sheet, panel, false));
    sheet.facts.push(format!("Horizontally {x}, vertically {y}."));
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
            let mut rows: Vec<&Row> = rows.collect();
            rows.sort_by(|a, b| a.x.total_cmp(&b.x));
            let (look, color) = (sheet.look, sheet.look.color(group));
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
                let opacity = if look.theme == Theme::Print { 0.14 } else { 0.2 };
                let stroke = alone.then(|| Stroke::solid(color, 1.2));
                let fill = Fill { color, opacity };
                sheet.svg.group("band", |svg| svg.path(&around, true, fill, stroke));
            }
            let points: Vec<_> = rows.iter().map(|r| panel.at(r)).collect();
            sheet.svg.group("line", |svg| {
                if points.len() > 1 {
                    svg.path(&points, false, Fill::NONE, Some(look.stroke(group, 1.7)));
                }
                // Marks show the group; very many of them would hide the line.
                if points.len() <= 40 {
                    points.iter().for_each(|at| look.mark(svg, *at, 2.8, group, 1.0));
                }
            });
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
        let rows: Vec<&Row> = sheet.table.in_panel(i).collect();
        let mut taken: Vec<Area> = Vec::new();
        for row in &rows {
            let (x, y) = panel.at(row);
            taken.push(Area::around((x, y), 2.0 * radius, 2.0 * radius));
            if let Some((low, high)) = row.interval {
                let stroke = Stroke::solid(sheet.look.color(row.color.unwrap_or(0)), 1.0);
                let (low, high) = (panel.y(low), panel.y(high));
                sheet.svg.group("interval", |svg| svg.line((x, low), (x, high), stroke));
                if rows.len() <= 500 {
                    taken.push(Area::between((x - 1.0, low), (x + 1.0, high)));
                }
            }
        }
        sheet.svg.open("points");
        for row in &rows {
            if let Some(label) = &row.label {
                let title = format!("{label}: {}, {}", number(row.x), number(row.y));
                sheet.svg.open_titled("point", &title);
            }
            let group = row.color.unwrap_or(0);
            sheet.look.mark(&mut sheet.svg, panel.at(row), radius, group, opacity);
            if row.label.is_some() {
                sheet.svg.close();
            }
        }
        sheet.svg.close();
        for row in rows.into_iter().filter(|r| r.label.is_some()) {
            left_out += usize::from(!write_label(sheet, panel, row, radius, &mut taken));
        }
    }
    if sheet.table.intervals {
        sheet.notes.push("Lines through points: intervals.".to_string());
    }
    sheet.notes.extend(without_room(left_out));
    Ok(())
}

/// Writes a point's label where nothing else is. Returns false if there is no such place.
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
    let ((x, y), gap) = (panel.at(row), radius + 3.0);
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
    let mut areas = places.into_iter().map(|(x, y)| Area { x, y, width, height });
    let free = areas.find(|area| panel.area.has_room_for(area, taken));
    let Some(area) = free else { return false };
    let ink = sheet.look.ink;
    sheet.svg.group("beside", |svg| svg.label(&label, (area.x, area.y), Anchor::Start, ink));
    taken.push(area);
    true
}
