//! Funnels: how many are left after each stage.

use super::one_each;
use crate::error::FigureError;
use crate::kind::{Kind, KindSpec};
use crate::rows::Row;
use crate::scale::{Range, count, number, percent};
use crate::sheet::{Dim, Plan, Sheet};
use crate::spec::{PANELS, Role, Takes, may, needs};
use crate::svg::{Anchor, Area, Fill};
use crate::text::{LEADING, Label, SMALL};
use crate::theme;

impl Kind {
    /// Funnel: see [`Kind::about`].
    pub const FUNNEL: Kind = Kind(&KindSpec {
        name: "funnel",
        title: "Funnel",
        about: "How many are left after each stage.",
        columns: &[
            needs(Role::X, Takes::Category, "the stage, in the order of the rows"),
            needs(Role::Y, Takes::Number, "how many are left after it"),
            may(Role::Label, Takes::Category, "why the others are not"),
            PANELS,
        ],
        options: &[],
        along: Role::Y,
        names: 100,
        groups: theme::GROUPS,
        marks: 400,
        draw,
        draw_text: None,
    });
}

/// A stage: how many, of the first, of the one before.
struct Stage {
    row: Row,
    first: Option<f64>,
    before: Option<f64>,
    lost: Option<f64>,
}

fn draw(sheet: &mut Sheet<'_>) -> Result<(), FigureError> {
    one_each(sheet, |r| (r.facet, r.x_name), &[Role::X, Role::Facet])?;
    if let Some(row) = sheet.table.rows.iter().find(|r| r.y < 0.0) {
        let column = crate::text::visible(sheet.spec.y.as_deref().unwrap_or_default()).into_owned();
        return Err(FigureError::Negative {
            kind: sheet.spec.kind,
            column,
            row: row.at,
            value: row.y,
        });
    }
    let names = sheet.table.xs.len() as f64;
    let reasons = sheet.table.rows.iter().any(|r| r.label.is_some());
    let pitch = if reasons { 44.0 } else { 30.0 };
    let widest = sheet.table.rows.iter().map(|r| Label::fit(&whole(r.y), SMALL, 1e9, 1).width);
    // A narrow picture has no room for the shares of the stages before: only its texts have them.
    let shares = if sheet.width / sheet.table.panels().min(2) as f64 > 380.0 { 2.0 } else { 1.0 };
    let beside = widest.fold(0.0, f64::max) + 12.0 + shares * share_width();
    let plan = Plan {
        x: Dim::Nothing,
        y: Dim::Names(sheet.table.xs.clone()),
        x_label: None,
        y_label: None,
        key: None,
        min_width: 110.0,
        panel_height: Box::new(move |_| names * pitch + SMALL * 1.6),
        beside,
        below: 0.0,
    };
    let panels = sheet.panels(&plan)?;
    let most = sheet.table.rows.iter().map(|r| r.y).fold(0.0, f64::max);
    for (i, panel) in panels.iter().enumerate() {
        let range = Range { low: 0.0, high: if most > 0.0 { most } else { 1.0 }, log: false };
        let axis = range.axis(panel.area.x, panel.area.right());
        let pitch = panel.area.height / names;
        for stage in stages(sheet, i) {
            let top = panel.area.y + pitch * stage.row.x_name as f64;
            let thick = (pitch * if reasons { 0.46 } else { 0.66 }).min(24.0);
            let middle = top + pitch / 2.0;
            let mut area = Area {
                x: panel.area.x,
                y: middle - thick / 2.0,
                width: axis.at(stage.row.y) - panel.area.x,
                height: thick,
            };
            sheet.svg.open_titled("stage", &words(sheet, &stage));
            sheet.look.bar(&mut sheet.svg, area, 0, 0.8);
            area.x = area.right();
            let right = panel.area.right();
            if right > area.x {
                let rest = Area { width: right - area.x, ..area };
                sheet.svg.rect(rest, Fill::solid(sheet.look.panel), None);
            }
            numbers(sheet, &stage, right + beside, middle, shares > 1.0);
            let gone = stage.lost.filter(|l| *l > 0.0).map(|l| format!("−{}", whole(l)));
            let lost = match (gone, &stage.row.label) {
                (Some(gone), Some(why)) => Some(format!("{gone} {why}")),
                (None, Some(why)) => Some(why.clone()),
                _ => None,
            };
            if let (Some(lost), true) = (lost, pitch - thick > 2.4 * SMALL) {
                let label = Label::fit(&lost, SMALL, panel.area.width + beside, 1);
                let y = middle - thick / 2.0 - SMALL * LEADING;
                sheet.svg.label(&label, panel.area.x, y, Anchor::Start, sheet.look.soft);
            }
            sheet.svg.close();
        }
    }
    sheet.notes.push(
        "Next to the counts: the share of the first stage, and of the stage before.".to_string(),
    );
    for i in 0..panels.len() {
        let each: Vec<String> =
            stages(sheet, i).iter().map(|s| format!("{}.", words(sheet, s))).collect();
        sheet.facts.extend(each);
    }
    Ok(())
}

/// The width of a column of shares.
fn share_width() -> f64 {
    Label::fit("< 0.1 %", SMALL, 1e9, 1).width + 9.0
}

fn whole(value: f64) -> String {
    if value.fract() == 0.0 && value < 1e15 { count(value as usize) } else { number(value) }
}

fn stages(sheet: &Sheet<'_>, panel: usize) -> Vec<Stage> {
    let rows: Vec<Row> = sheet.table.in_panel(panel).cloned().collect();
    let first = rows.first().map(|r| r.y).filter(|y| *y > 0.0);
    let mut before: Option<f64> = None;
    let stage = |row: Row| {
        let share = before.filter(|b| *b > 0.0).map(|b| row.y / b);
        let lost = before.map(|b| b - row.y);
        before = Some(row.y);
        Stage { first: first.map(|f| row.y / f), before: share, lost, row }
    };
    rows.into_iter().map(stage).collect()
}

/// The count and the shares, in columns that end at `right`.
fn numbers(sheet: &mut Sheet<'_>, stage: &Stage, right: f64, y: f64, both: bool) {
    let shares = [stage.first, stage.before].map(|s| s.map(percent).unwrap_or_default());
    let shares = if both { &shares[..] } else { &shares[..1] };
    let columns = shares.len() as f64;
    let texts = std::iter::once(whole(stage.row.y)).chain(shares.iter().cloned());
    for (i, text) in texts.enumerate() {
        let color = if i == 0 { sheet.look.ink } else { sheet.look.soft };
        let x = right - (columns - i as f64) * share_width();
        sheet.svg.label_beside(&Label::fit(&text, SMALL, 1e9, 1), x, y, Anchor::End, color);
    }
}

fn words(sheet: &Sheet<'_>, stage: &Stage) -> String {
    let mut words = String::new();
    if let Some(facet) = sheet.table.facets.get(stage.row.facet) {
        words.push_str(&format!("{facet}, "));
    }
    words.push_str(&format!("{}: {}", sheet.table.xs[stage.row.x_name], whole(stage.row.y)));
    if let Some(share) = stage.first {
        words.push_str(&format!(", {} of the first", percent(share)));
    }
    if let Some(share) = stage.before {
        words.push_str(&format!(", {} of the one before", percent(share)));
    }
    if let Some(why) = &stage.row.label {
        words.push_str(&format!("; lost: {why}"));
    }
    words
}
