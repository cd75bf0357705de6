//! Forest plots and love plots: an estimate and its interval on each line.

use super::{groups_abreast, one_each, reference, span};
use crate::error::FigureError;
use crate::kind::{Kind, KindSpec};
use crate::rows::Row;
use crate::scale::{Range, number};
use crate::sheet::{Dim, Key, Panel, Plan, Sheet};
use crate::spec::{GROUPS, HIGH, LOW, PANELS, Role, Scale, Takes, may, needs};
use crate::svg::{Anchor, Fill, Stroke};
use crate::terminal;
use crate::text::{Label, SMALL};
use crate::theme;

impl Kind {
    /// Forest plot: see [`Kind::about`].
    pub const FOREST: Kind = Kind(&KindSpec {
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
        groups: theme::GROUPS,
        marks: 2000,
        draw,
        draw_text: Some(terminal::forest),
    });
}

impl Kind {
    /// Love plot: see [`Kind::about`].
    pub const LOVE: Kind = Kind(&KindSpec {
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
        along: Role::X,
        names: 200,
        groups: theme::GROUPS,
        marks: 2000,
        draw,
        draw_text: Some(terminal::forest),
    });
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
    let ends = |r: &Row| {
        let (low, high) = r.interval.unwrap_or((r.x, r.x));
        [r.x, low, high]
    };
    // Lines of reference need air around them as rows do.
    let values = sheet.table.rows.iter().flat_map(ends).chain(references(sheet));
    Range::of(values, &[], sheet.spec.x_scale.unwrap_or_default())
}

/// An estimate with its interval, as text.
pub(crate) fn words(row: &Row) -> String {
    match row.interval {
        Some((low, high)) => format!("{} [{}, {}]", number(row.x), number(low), number(high)),
        None => number(row.x),
    }
}

fn draw(sheet: &mut Sheet<'_>) -> Result<(), FigureError> {
    one_each(sheet, |r| (r.facet, r.y_name, r.color), &[Role::Y, Role::Color, Role::Facet])?;
    let love = sheet.spec.kind == Kind::LOVE;
    let groups = if love { 1 } else { groups_abreast(sheet, |r| r.y_name.unwrap_or_default()) };
    let names = sheet.table.ys.len();
    let pitch = (groups as f64 * 13.0 + 5.0).max(19.0).max(sheet.name_height(&sheet.table.ys));
    // Numbers next to the lines, if the picture is wide enough for both.
    let widths = sheet.table.rows.iter().map(|r| Label::fit(&words(r), SMALL, 1e9, 1).width);
    let widest = widths.fold(0.0, f64::max);
    let roomy = sheet.spec.height.is_none_or(|h| h * 30.0 / (names * groups) as f64 > 13.0);
    let written = !love
        && sheet.table.panels() == 1
        && roomy
        && widest < sheet.width * 0.28
        && sheet.width > 380.0;
    let plan = Plan {
        x: Dim::Number(range(sheet)),
        y: Dim::Names(sheet.table.ys.clone()),
        x_label: sheet.axis_label(Role::X),
        y_label: sheet.spec.y_label.clone(),
        key: Some(Key::Mark),
        min_width: 110.0,
        panel_height: Box::new(move |_| names as f64 * pitch + 8.0),
        beside: if written { widest + 10.0 } else { 0.0 },
        below: 0.0,
    };
    let panels = sheet.panels(&plan)?;
    for (i, panel) in panels.iter().enumerate() {
        for (at, line) in references(sheet).into_iter().enumerate() {
            reference(sheet, panel, line, true, if love && at > 0 { "4 3" } else { "" });
        }
        let rows: Vec<Row> = sheet.table.in_panel(i).cloned().collect();
        if love {
            join(sheet, panel, &rows, names);
        }
        for row in &rows {
            estimate(sheet, panel, row, names, groups, written);
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
    let each: Vec<String> = sheet
        .table
        .rows
        .iter()
        .take(40)
        .map(|r| format!("{}: {}.", name(sheet, r), words(r)))
        .collect();
    sheet.facts.extend(each);
    Ok(())
}

fn name(sheet: &Sheet<'_>, row: &Row) -> String {
    let table = &sheet.table;
    let names = [
        table.facets.get(row.facet),
        row.y_name.and_then(|y| table.ys.get(y)),
        row.color.and_then(|c| table.colors.get(c)),
    ];
    let names: Vec<&str> = names.into_iter().flatten().map(String::as_str).collect();
    names.join(", ")
}

/// The height of a row's line.
fn place(panel: &Panel, row: &Row, names: usize, groups: usize) -> f64 {
    let pitch = panel.area.height / names as f64;
    let group = if groups > 1 { row.color.unwrap_or(0) as f64 } else { 0.0 };
    let within = (group + 0.5) / groups as f64 * 0.84 + 0.08;
    panel.area.y + pitch * (row.y_name.unwrap_or(0) as f64 + within)
}

/// In a love plot, a line from before to after.
fn join(sheet: &mut Sheet<'_>, panel: &Panel, rows: &[Row], names: usize) {
    for name in 0..names {
        let of: Vec<&Row> = rows.iter().filter(|r| r.y_name == Some(name)).collect();
        let xs = || of.iter().map(|r| panel.x(r.x));
        if let (Some(row), true) = (of.first(), of.len() > 1) {
            let y = place(panel, row, names, 1);
            let (from, to) =
                (xs().fold(f64::INFINITY, f64::min), xs().fold(f64::NEG_INFINITY, f64::max));
            sheet.svg.open("join");
            sheet.svg.line((from, y), (to, y), Stroke::solid(sheet.look.grid, 2.0));
            sheet.svg.close();
        }
    }
}

fn estimate(
    sheet: &mut Sheet<'_>,
    panel: &Panel,
    row: &Row,
    names: usize,
    groups: usize,
    written: bool,
) {
    let group = row.color.unwrap_or(0);
    let y = place(panel, row, names, groups);
    let x = panel.x(row.x);
    let title = format!("{}: {}", name(sheet, row), words(row));
    sheet.svg.open_titled("estimate", &title);
    if let Some((low, high)) = row.interval {
        let (low, high) = (panel.x(low), panel.x(high));
        let stroke = Stroke::solid(sheet.look.color(group), 1.6);
        sheet.svg.open("interval");
        sheet.svg.line((low, y), (high, y), stroke);
        for end in [low, high] {
            sheet.svg.line((end, y - 2.8), (end, y + 2.8), stroke);
        }
        sheet.svg.close();
    }
    if row.interval.is_some() || sheet.spec.kind == Kind::LOVE {
        sheet.look.mark(&mut sheet.svg, (x, y), 3.6, group, 1.0);
    } else {
        let outline = Stroke::solid(sheet.look.color(group), 1.5);
        sheet.svg.circle((x, y), 3.6, Fill::solid(sheet.look.ground), Some(outline));
    }
    if written {
        let label = Label::fit(&words(row), SMALL, 1e9, 1);
        let right = sheet.width - 9.0;
        sheet.svg.label_beside(&label, right, y, Anchor::End, sheet.look.soft);
    }
    sheet.svg.close();
}
