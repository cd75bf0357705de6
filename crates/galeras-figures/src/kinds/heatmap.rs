//! Heat maps: coloured cells with their numbers.

use super::{one_each, span};
use crate::error::FigureError;
use crate::kind::{Kind, KindSpec};
use crate::rows::Row;
use crate::scale::number;
use crate::sheet::{Dim, Plan, Sheet};
use crate::spec::{PANELS, Role, Takes, Theme, needs};
use crate::svg::{Anchor, Area, Fill, Stroke};
use crate::text::{LEADING, Label, SMALL};
use crate::theme::{self, hex, readable_on};

impl Kind {
    /// Heat map: see [`Kind::about`].
    pub const HEATMAP: Kind = Kind(&KindSpec {
        name: "heatmap",
        title: "Heat map",
        about: "Coloured cells with their numbers.",
        columns: &[
            needs(Role::X, Takes::Category, "the column of the cell"),
            needs(Role::Y, Takes::Category, "the row of the cell"),
            needs(Role::Color, Takes::Number, "the number of the cell"),
            PANELS,
        ],
        options: &["reference", "x_label", "y_label"],
        along: Role::Y,
        names: 200,
        groups: theme::GROUPS,
        marks: 10_000,
        draw,
        draw_text: None,
    });
}

/// How numbers become colours.
struct Colors {
    low: f64,
    high: f64,
    /// Where the two halves of a diverging palette meet.
    centre: Option<f64>,
}

impl Colors {
    fn of(sheet: &Sheet<'_>) -> Colors {
        let values = || sheet.table.rows.iter().map(|r| r.value);
        let (low, high) =
            (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
        let centre = sheet.spec.reference.or((low < 0.0).then_some(0.0));
        match centre {
            // Numbers from -1 to 1 with negative ones are correlations or the like: all of their
            // figures get the same colours.
            Some(0.0) if low >= -1.0 && high <= 1.0 && low < 0.0 => {
                Colors { low: -1.0, high: 1.0, centre }
            }
            Some(c) => {
                let reach = (high - c).max(c - low);
                Colors { low: c - reach, high: c + reach, centre }
            }
            None => Colors { low, high, centre },
        }
    }

    fn share(&self, value: f64) -> f64 {
        match self.high > self.low {
            true => (value / 2.0 - self.low / 2.0) / (self.high / 2.0 - self.low / 2.0),
            false => 0.5,
        }
    }

    fn color(&self, sheet: &Sheet<'_>, value: f64) -> [u8; 3] {
        match self.centre {
            Some(_) => sheet.look.diverging(self.share(value) * 2.0 - 1.0),
            None => sheet.look.sequential(self.share(value)),
        }
    }

    /// True if a number is below the centre, which a printed grey alone does not show.
    fn below(&self, value: f64) -> bool {
        self.centre.is_some_and(|c| value < c)
    }
}

const BAR: f64 = 40.0;

fn draw(sheet: &mut Sheet<'_>) -> Result<(), FigureError> {
    one_each(sheet, |r| (r.facet, r.x_name, r.y_name), &[Role::X, Role::Y, Role::Facet])?;
    let (xs, ys) = (sheet.table.xs.clone(), sheet.table.ys.clone());
    let (columns, rows) = (xs.len() as f64, ys.len() as f64);
    let plan = Plan {
        x: Dim::Names(xs),
        y: Dim::Names(ys),
        x_label: sheet.axis_label(Role::X),
        y_label: sheet.axis_label(Role::Y),
        key: None,
        min_width: (columns * 12.0).max(110.0),
        panel_height: Box::new(move |w| (rows * (w / columns).clamp(15.0, 34.0)).max(40.0)),
        beside: 0.0,
        below: BAR,
    };
    let panels = sheet.panels(&plan)?;
    let colors = Colors::of(sheet);
    let texts: Vec<String> =
        sheet.table.rows.iter().map(|r| cell_text(&sheet.table.rows, r.value)).collect();
    let widest = texts.iter().map(|t| Label::fit(t, SMALL, 1e9, 1).width).fold(0.0, f64::max);
    for (i, panel) in panels.iter().enumerate() {
        let (width, height) = (panel.area.width / columns, panel.area.height / rows);
        let written = widest + 3.0 <= width && SMALL * LEADING <= height;
        let cells: Vec<(Row, String)> = sheet
            .table
            .rows
            .iter()
            .zip(&texts)
            .filter(|(r, _)| r.facet == i)
            .map(|(r, t)| (r.clone(), t.clone()))
            .collect();
        for (row, text) in cells {
            let y_name = row.y_name.unwrap_or_default();
            let area = Area {
                x: panel.area.x + width * row.x_name as f64,
                y: panel.area.y + height * y_name as f64,
                width,
                height,
            };
            let color = colors.color(sheet, row.value);
            let title = format!(
                "{}, {}: {}",
                sheet.table.xs[row.x_name],
                sheet.table.ys[y_name],
                number(row.value)
            );
            sheet.svg.open_titled("cell", &title);
            let outline = Stroke::solid(sheet.look.ground, 0.7);
            sheet.svg.rect(area, Fill::solid(&hex(color)), Some(outline));
            let printed = sheet.look.theme == Theme::Print && colors.below(row.value);
            if printed && !written {
                sheet.look.hatch(&mut sheet.svg, area, true, false);
            }
            if written {
                let label = Label::fit(&text, SMALL, 1e9, 1);
                let (x, y) = (area.x + width / 2.0, area.y + height / 2.0);
                sheet.svg.label_beside(&label, x, y, Anchor::Middle, readable_on(color));
            }
            sheet.svg.close();
        }
    }
    bar_of_colors(sheet, &colors);
    let holes = sheet.table.xs.len() * sheet.table.ys.len() * panels.len() - sheet.table.rows.len();
    if holes > 0 {
        let words = if holes == 1 { "cell has" } else { "cells have" };
        sheet.notes.push(format!(
            "{holes} {words} no row and {} empty.",
            if holes == 1 { "is" } else { "are" }
        ));
    }
    sheet.facts.push(format!("Numbers {}.", span(sheet.table.rows.iter().map(|r| r.value))));
    Ok(())
}

/// The number of a cell, with the decimals that the table's numbers need.
fn cell_text(rows: &[Row], value: f64) -> String {
    let most = rows.iter().map(|r| r.value.abs()).fold(0.0, f64::max);
    let whole = rows.iter().all(|r| r.value.fract() == 0.0);
    match (0.02..=10.0).contains(&most) && !whole {
        true => {
            let text = format!("{value:.2}");
            if text == "-0.00" { "0.00".to_string() } else { text.replace('-', "−") }
        }
        false => number(value),
    }
}

/// The scale of colours at the foot of the picture.
fn bar_of_colors(sheet: &mut Sheet<'_>, colors: &Colors) {
    const STEPS: usize = 48;
    let width = (sheet.width * 0.4).min(220.0);
    let left = sheet.width - 9.0 - width;
    let top = sheet.height - 9.0 - BAR + 10.0;
    let label = sheet.column_label(Role::Color).unwrap_or_default();
    let label = Label::fit(&label, SMALL, left - 24.0, 1);
    sheet.svg.open("scale");
    sheet.svg.label_beside(&label, left - 9.0, top + 5.0, Anchor::End, sheet.look.ink);
    let step = width / STEPS as f64;
    let value = |share: f64| colors.low * (1.0 - share) + colors.high * share;
    for i in 0..STEPS {
        let color = hex(colors.color(sheet, value((i as f64 + 0.5) / STEPS as f64)));
        // Each reaches under the next, so that no gap is seen between them.
        let area = Area {
            x: left + step * i as f64,
            y: top,
            width: step * if i + 1 < STEPS { 1.5 } else { 1.0 },
            height: 10.0,
        };
        sheet.svg.rect(area, Fill::solid(&color), None);
    }
    let area = Area { x: left, y: top, width, height: 10.0 };
    sheet.svg.rect(area, Fill::NONE, Some(Stroke::solid(sheet.look.soft, 0.6)));
    let middle = (colors.high > colors.low).then_some((0.5, value(0.5)));
    let ends = [(0.0, colors.low), (1.0, colors.high)];
    for (share, value) in ends.into_iter().take(if middle.is_some() { 2 } else { 1 }).chain(middle)
    {
        let x = left + width * share;
        let label = Label::fit(&number(value), SMALL, width / 3.0, 1);
        let anchor = match share {
            0.0 => Anchor::Start,
            1.0 => Anchor::End,
            _ => Anchor::Middle,
        };
        sheet.svg.label(&label, x, top + 12.0, anchor, sheet.look.soft);
    }
    sheet.svg.close();
}
