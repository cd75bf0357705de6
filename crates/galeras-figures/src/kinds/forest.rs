//! Forest plots and love plots: an estimate and its interval on each line.

use super::{groups_abreast, one_each, reference, span, words};
use crate::error::FigureError;
use crate::rows::Row;
use crate::scale::{Range, extent, number};
use crate::sheet::{Dim, Key, Panel, Plan, Sheet};
use crate::spec::{GROUPS, HIGH, Kind, LOW, PANELS, Role, Scale, Takes, may, needs};
use crate::svg::{Anchor, Fill, Stroke};
use crate::terminal;
use crate::text::Label;

impl Kind {
    /// Forest plot: see [`Kind::about`].
    pub const FOREST: Kind = Kind {
        name: "forest",
        title: "Forest plot",
        about: "Estimates with intervals, beside a line of no effect.",
        columns: &[
            needs(Role::Y, Takes::Category, "what is estimated, one line for each"),
            needs(Role::X, Takes::Number, "the estimate"),
            LOW,
            HIGH,
            GROUPS,
            PANELS,
        ],
        options: &["reference", "x_label", "y_label", "x_scale"],
        along: Role::X,
        names: 200,
        marks: 2000,
        rows: Some(("estimate", "estimates")),
        draw,
        draw_text: Some(terminal::forest),
        ..Kind::BASE
    };

    /// Love plot: see [`Kind::about`].
    pub const LOVE: Kind = Kind {
        name: "love",
        title: "Love plot",
        about: "Standardised mean differences of covariates.",
        columns: &[
            needs(Role::Y, Takes::Category, "the covariate"),
            needs(Role::X, Takes::Number, "its standardised mean difference"),
            LOW,
            HIGH,
            may(Role::Color, Takes::Category, "before and after adjustment"),
            PANELS,
        ],
        options: &["reference", "x_label", "y_label"],
        rows: Some(("difference", "differences")),
        ..Kind::FOREST
    };
}

/// The threshold of balance that most of the field goes by (Austin 2009).
const BALANCED: f64 = 0.1;

/// The lines of reference of a spec.
pub(crate) fn references(sheet: &Sheet<'_>) -> Vec<f64> {
    let log = sheet.spec.x_scale == Some(Scale::Log);
    match sheet.spec.kind == Kind::LOVE {
        true => {
            let reach = sheet.spec.reference.unwrap_or(BALANCED).abs();
            vec![0.0, -reach, reach]
        }
        false => vec![sheet.spec.reference.unwrap_or(if log { 1.0 } else { 0.0 })],
    }
}

/// The range that holds every estimate, interval and line of reference.
pub(crate) fn range(sheet: &Sheet<'_>) -> Range {
    let ends = sheet.table.rows.iter().flat_map(|r| r.with_interval(r.x));
    // Lines of reference need air around them as rows do.
    Range::of(ends.chain(references(sheet)), &[], sheet.spec.x_scale.unwrap_or_default())
}

fn draw(sheet: &mut Sheet<'_>) -> Result<(), FigureError> {
    one_each(sheet, |r| (r.facet, r.y_name, r.color), &[Role::Y, Role::Color, Role::Facet])?;
    let love = sheet.spec.kind == Kind::LOVE;
    let groups = if love { 1 } else { groups_abreast(sheet, |r| r.y_name.unwrap_or_default()) };
    let names = sheet.table.ys.len();
    let pitch = (groups as f64 * 13.0 + 5.0).max(19.0).max(sheet.name_height(&sheet.table.ys));
    // Numbers next to the lines, if the picture is wide enough for both.
    let widths = sheet.table.rows.iter().map(|r| Label::small(&r.words(r.x)).width);
    let widest = widths.fold(0.0, f64::max);
    let roomy = sheet.spec.height.is_none_or(|h| h * 30.0 / (names * groups) as f64 > 13.0);
    let written = !love
        && sheet.table.panels() == 1
        && roomy
        && widest < sheet.width * 0.28
        && sheet.width > 380.0;
    let (x, y) = (Dim::Number(range(sheet)), Dim::Names(sheet.table.ys.clone()));
    let plan = Plan {
        x_label: sheet.axis_label(Role::X),
        y_label: sheet.spec.y_label.clone(),
        key: Some(Key::Mark),
        beside: if written { widest + 10.0 } else { 0.0 },
        ..Plan::new(x, y, 110.0, move |_| names as f64 * pitch + 8.0)
    };
    let panels = sheet.panels(&plan)?;
    for (i, panel) in panels.iter().enumerate() {
        for (at, line) in references(sheet).into_iter().enumerate() {
            reference(sheet, panel, line, true, if love && at > 0 { "4 3" } else { "" });
        }
        for name in (0..names).filter(|_| love) {
            // A line from before to after.
            let rows = || sheet.table.in_panel(i).filter(|r| r.y_name == Some(name));
            let (from, to) = extent(rows().map(|r| panel.x(r.x)));
            let Some(row) = rows().next().filter(|_| rows().count() > 1) else { continue };
            let (y, stroke) = (place(panel, row, names, 1), Stroke::solid(sheet.look.grid, 2.0));
            sheet.svg.group("join", |svg| svg.line((from, y), (to, y), stroke));
        }
        for row in sheet.table.in_panel(i) {
            let y = place(panel, row, names, groups);
            estimate(sheet, panel, row, y, written);
        }
    }
    if sheet.table.intervals {
        sheet.notes.push("Lines: intervals.".to_string());
    }
    if sheet.table.half > 0 || !sheet.table.intervals && !love {
        sheet.notes.push("Hollow marks: estimates without an interval.".to_string());
    }
    let at = references(sheet);
    sheet.notes.push(match love {
        true => format!("Dashed lines: ±{}.", number(at[2])),
        false => format!("Upright line: {}.", number(at[0])),
    });
    sheet.facts.push(format!("Estimates {}.", span(sheet.table.rows.iter().map(|r| r.x))));
    for row in sheet.table.rows.iter().take(40) {
        sheet.facts.push(format!("{}.", words(sheet.table, row, row.x)));
    }
    Ok(())
}

/// The height of a row's line.
fn place(panel: &Panel, row: &Row, names: usize, groups: usize) -> f64 {
    let pitch = panel.area.height / names as f64;
    let group = if groups > 1 { row.color.unwrap_or(0) as f64 } else { 0.0 };
    let within = (group + 0.5) / groups as f64 * 0.84 + 0.08;
    panel.area.y + pitch * (row.y_name.unwrap_or(0) as f64 + within)
}

fn estimate(sheet: &mut Sheet<'_>, panel: &Panel, row: &Row, y: f64, written: bool) {
    let (group, at) = (row.color.unwrap_or(0), (panel.x(row.x), y));
    sheet.svg.open_titled("estimate", &words(sheet.table, row, row.x));
    if let Some((low, high)) = row.interval {
        let (low, high) = (panel.x(low), panel.x(high));
        let stroke = Stroke::solid(sheet.look.color(group), 1.6);
        sheet.svg.group("interval", |svg| {
            svg.line((low, y), (high, y), stroke);
            for end in [low, high] {
                svg.line((end, y - 2.8), (end, y + 2.8), stroke);
            }
        });
    }
    if row.interval.is_some() || sheet.spec.kind == Kind::LOVE {
        sheet.look.mark(&mut sheet.svg, at, 3.6, group, 1.0);
    } else {
        let outline = Stroke::solid(sheet.look.color(group), 1.5);
        sheet.svg.circle(at, 3.6, Fill::solid(sheet.look.ground), outline);
    }
    if written {
        let (label, at) = (Label::small(&row.words(row.x)), (sheet.width - 9.0, y));
        sheet.svg.label_beside(&label, at, Anchor::End, sheet.look.soft);
    }
    sheet.svg.close();
}
