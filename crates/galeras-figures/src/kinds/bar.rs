//! Bars from zero, with intervals.

use super::{Slots, one_each, own_reference, span, words};
use crate::error::FigureError;
use crate::scale::Range;
use crate::sheet::{Key, Sheet};
use crate::spec::{GROUPS, HIGH, Kind, LOW, PANELS, Role, Scale, Takes, needs};
use crate::svg::Stroke;

impl Kind {
    /// Bar chart: see [`Kind::about`].
    pub const BAR: Kind = Kind {
        name: "bar",
        title: "Bar chart",
        about: "Bars, with intervals.",
        columns: &[
            needs(Role::X, Takes::Category, "one bar for each, or one for each and colour"),
            needs(Role::Y, Takes::Number, "the length of the bar"),
            LOW,
            HIGH,
            GROUPS,
            PANELS,
        ],
        options: &["reference", "x_label", "y_label"],
        names: 200,
        marks: 2000,
        draw,
        ..Kind::BASE
    };
}

fn draw(sheet: &mut Sheet<'_>) -> Result<(), FigureError> {
    one_each(sheet, |r| (r.facet, r.x_name, r.color), &[Role::X, Role::Color, Role::Facet])?;
    let slots = Slots::of(sheet);
    let fixed: Vec<f64> = sheet.spec.reference.into_iter().chain([0.0]).collect();
    let ends = sheet.table.rows.iter().flat_map(|r| r.with_interval(r.y));
    let range = Range::of(ends, &fixed, Scale::Linear);
    let panels = sheet.panels(&slots.plan(sheet, range, Key::Bar))?;
    for (i, panel) in panels.iter().enumerate() {
        let zero = slots.value(panel, 0.0);
        for row in sheet.table.in_panel(i) {
            let group = row.color.unwrap_or(0);
            let (slot, width) = slots.slot(panel, row.x_name, group);
            let width = (width * 0.92).min(60.0);
            let area = slots.area(slot, width, zero, slots.value(panel, row.y));
            sheet.svg.open_titled("bar", &words(sheet.table, row, row.y));
            sheet.look.bar(&mut sheet.svg, area, group, 0.8);
            if let Some((low, high)) = row.interval {
                let (low, high) = (slots.value(panel, low), slots.value(panel, high));
                let ink = Stroke::solid(sheet.look.ink, 1.3);
                let cap = (width * 0.2).min(5.0);
                sheet.svg.group("interval", |svg| {
                    svg.line(slots.point(slot, low), slots.point(slot, high), ink);
                    for end in [low, high] {
                        let (a, b) = (slots.point(slot - cap, end), slots.point(slot + cap, end));
                        svg.line(a, b, ink);
                    }
                });
            }
            sheet.svg.close();
        }
        let stroke = Stroke::solid(sheet.look.ink, 0.9);
        let (start, length) = match slots.lying {
            true => (panel.area.y, panel.area.height),
            false => (panel.area.x, panel.area.width),
        };
        sheet.svg.line(slots.point(start, zero), slots.point(start + length, zero), stroke);
        own_reference(sheet, panel, slots.lying);
    }
    if sheet.table.intervals {
        sheet.notes.push("Lines on bars: intervals.".to_string());
    }
    sheet.facts.push(format!("Range {}.", span(sheet.table.rows.iter().map(|r| r.y))));
    for row in sheet.table.rows.iter().take(24) {
        sheet.facts.push(format!("{}.", words(sheet.table, row, row.y)));
    }
    Ok(())
}
