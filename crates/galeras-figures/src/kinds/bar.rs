//! Bars from zero, with intervals.

use super::{Slots, anchors, one_each, reference, span};
use crate::error::FigureError;
use crate::kind::{Kind, KindSpec};
use crate::scale::{Range, number};
use crate::sheet::{Key, Sheet};
use crate::spec::{GROUPS, HIGH, LOW, PANELS, Role, Scale, Takes, needs};
use crate::svg::Stroke;
use crate::theme;

impl Kind {
    /// Bar chart: see [`Kind::about`].
    pub const BAR: Kind = Kind(&KindSpec {
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
        along: Role::Y,
        names: 200,
        groups: theme::GROUPS,
        marks: 2000,
        draw,
        draw_text: None,
    });
}

fn draw(sheet: &mut Sheet<'_>) -> Result<(), FigureError> {
    one_each(sheet, |r| (r.facet, r.x_name, r.color), &[Role::X, Role::Color, Role::Facet])?;
    let slots = Slots::of(sheet);
    let ends = |r: &crate::rows::Row| {
        let (low, high) = r.interval.unwrap_or((r.y, r.y));
        [r.y, low, high]
    };
    let mut fixed = anchors(sheet);
    fixed.push(0.0);
    let range = Range::of(sheet.table.rows.iter().flat_map(ends), &fixed, Scale::Linear);
    let panels = sheet.panels(&slots.plan(sheet, range, Some(Key::Bar)))?;
    for (i, panel) in panels.iter().enumerate() {
        let rows: Vec<_> = sheet.table.in_panel(i).cloned().collect();
        let zero = slots.value(panel, 0.0);
        for row in rows {
            let group = row.color.unwrap_or(0);
            let (slot, width) = slots.slot(panel, row.x_name, group);
            let width = (width * 0.92).min(60.0);
            let area = slots.area(slot, width, zero, slots.value(panel, row.y));
            sheet.svg.open_titled("bar", &words(sheet, &row));
            sheet.look.bar(&mut sheet.svg, area, group, 0.8);
            if let Some((low, high)) = row.interval {
                let (low, high) = (slots.value(panel, low), slots.value(panel, high));
                let ink = Stroke::solid(sheet.look.ink, 1.3);
                let cap = (width * 0.2).min(5.0);
                sheet.svg.open("interval");
                sheet.svg.line(slots.point(slot, low), slots.point(slot, high), ink);
                for end in [low, high] {
                    let (a, b) = (slots.point(slot - cap, end), slots.point(slot + cap, end));
                    sheet.svg.line(a, b, ink);
                }
                sheet.svg.close();
            }
            sheet.svg.close();
        }
        let stroke = Stroke::solid(sheet.look.ink, 0.9);
        let (start, length) = match slots.lying {
            true => (panel.area.y, panel.area.height),
            false => (panel.area.x, panel.area.width),
        };
        sheet.svg.line(slots.point(start, zero), slots.point(start + length, zero), stroke);
        if let Some(value) = sheet.spec.reference {
            reference(sheet, panel, value, slots.lying, "4 3");
        }
    }
    if sheet.table.intervals {
        sheet.notes.push("Lines on bars: intervals.".to_string());
    }
    sheet.facts.push(format!("Range {}.", span(sheet.table.rows.iter().map(|r| r.y))));
    let each: Vec<String> =
        sheet.table.rows.iter().take(24).map(|r| format!("{}.", words(sheet, r))).collect();
    sheet.facts.extend(each);
    Ok(())
}

fn words(sheet: &Sheet<'_>, row: &crate::rows::Row) -> String {
    let table = &sheet.table;
    let names = [
        table.facets.get(row.facet),
        table.xs.get(row.x_name),
        row.color.and_then(|c| table.colors.get(c)),
    ];
    let names: Vec<&str> = names.into_iter().flatten().map(String::as_str).collect();
    let interval = row
        .interval
        .map(|(low, high)| format!(" [{}, {}]", number(low), number(high)))
        .unwrap_or_default();
    format!("{}: {}{interval}", names.join(", "), number(row.y))
}
