//! Heat maps: coloured cells with their numbers.

use super::{one_each, span};
use crate::error::FigureError;
use crate::rows::Row;
use crate::scale::{extent, number};
use crate::sheet::{Dim, Plan, Sheet};
use crate::spec::{Kind, PANELS, Role, Takes, Theme, needs};
use crate::svg::{Anchor, Area, Fill, Stroke};
use crate::text::{LEADING, Label, SMALL};
use crate::theme::{hex, readable_on};

impl Kind {
    /// Heat map: see [`Kind::about`].
    pub const HEATMAP: Kind = Kind {
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
        names: 200,
        marks: 10_000,
        draw,
        ..Kind::BASE
    };
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
        let (low, high) = extent(sheet.table.rows.iter().map(|r| r.value));
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
}

const BAR: f64 = 40.0;

fn draw(sheet: &mut Sheet<'_>) -> Result<(), FigureError> {
    one_each(sheet, |r| (r.facet, r.x_name, r.y_name), &[Role::X, Role::Y, Role::Facet])?;
    let (xs, ys) = (sheet.table.xs.clone(), sheet.table.ys.clone());
    let (columns, rows) = (xs.len() as f64, ys.len() as f64);
    let height = move |w: f64| (rows * (w / columns).clamp(15.0, 34.0)).max(40.0);
    let min_width = (columns * 12.0).max(110.0);
    let plan = Plan {
        x_label: sheet.axis_label(Role::X),
        y_label: sheet.axis_label(Role::Y),
        below: BAR,
        ..Plan::new(Dim::Names(xs), Dim::Names(ys), min_width, height)
    };
    let panels = sheet.panels(&plan)?;
    let colors = Colors::of(sheet);
    let labels = labels(&sheet.table.rows);
    let widest = labels.iter().map(|label| label.width).fold(0.0, f64::max);
    for (i, panel) in panels.iter().enumerate() {
        let (width, height) = (panel.area.width / columns, panel.area.height / rows);
        let written = widest + 3.0 <= width && SMALL * LEADING <= height;
        for (row, label) in sheet.table.rows.iter().zip(&labels).filter(|(r, _)| r.facet == i) {
            let y_name = row.y_name.unwrap_or_default();
            let area = Area {
                x: panel.area.x + width * row.x_name as f64,
                y: panel.area.y + height * y_name as f64,
                width,
                height,
            };
            let color = colors.color(sheet, row.value);
            let (x, y) = (&sheet.table.xs[row.x_name], &sheet.table.ys[y_name]);
            sheet.svg.open_titled("cell", &format!("{x}, {y}: {}", number(row.value)));
            let outline = Stroke::solid(sheet.look.ground, 0.7);
            sheet.svg.rect(area, Fill::solid(&hex(color)), Some(outline));
            if written {
                let color = readable_on(color);
                sheet.svg.label_beside(label, area.middle(), Anchor::Middle, color);
            } else if sheet.look.theme == Theme::Print && colors.centre > Some(row.value) {
                // A printed grey alone does not show that a number is below the centre.
                sheet.look.hatch(&mut sheet.svg, area, true, false);
            }
            sheet.svg.close();
        }
    }
    bar_of_colors(sheet, &colors);
    let holes = sheet.table.xs.len() * sheet.table.ys.len() * panels.len() - sheet.table.rows.len();
    match holes {
        0 => {}
        1 => sheet.notes.push("1 cell has no row and is empty.".to_string()),
        _ => sheet.notes.push(format!("{holes} cells have no row and are empty.")),
    }
    sheet.facts.push(format!("Numbers {}.", span(sheet.table.rows.iter().map(|r| r.value))));
    Ok(())
}

/// The numbers of the cells, with the decimals that the table's numbers need.
fn labels(rows: &[Row]) -> Vec<Label> {
    let most = rows.iter().map(|r| r.value.abs()).fold(0.0, f64::max);
    let whole = rows.iter().all(|r| r.value.fract() == 0.0);
    let text = |value: f64| match (0.02..=10.0).contains(&most) && !whole {
        true => format!("{value:.2}").replace("-0.00", "0.00").replace('-', "−"),
        false => number(value),
    };
    rows.iter().map(|r| Label::small(&text(r.value))).collect()
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
    sheet.svg.label_beside(&label, (left - 9.0, top + 5.0), Anchor::End, sheet.look.ink);
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
    let numbers = [
        (0.0, colors.low, Anchor::Start),
        (1.0, colors.high, Anchor::End),
        (0.5, value(0.5), Anchor::Middle),
    ];
    for (share, value, anchor) in &numbers[..if colors.high > colors.low { 3 } else { 1 }] {
        let x = left + width * share;
        let label = Label::fit(&number(*value), SMALL, width / 3.0, 1);
        sheet.svg.label(&label, (x, top + 12.0), *anchor, sheet.look.soft);
    }
    sheet.svg.close();
}
