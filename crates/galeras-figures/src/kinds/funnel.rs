//! Funnels: how many are left after each stage.

use super::{check_not_negative, one_each};
use crate::error::FigureError;
use crate::rows::{Row, Table};
use crate::scale::{Range, count, number, percent};
use crate::sheet::{Dim, Plan, Sheet};
use crate::spec::{Kind, PANELS, Role, Takes, may, needs};
use crate::svg::{Anchor, Area, Fill};
use crate::text::{LEADING, Label, SMALL};

impl Kind {
    /// Funnel: see [`Kind::about`].
    pub const FUNNEL: Kind = Kind {
        name: "funnel",
        title: "Funnel",
        about: "How many are left after each stage.",
        columns: &[
            needs(Role::X, Takes::Category, "the stage, in the order of the rows"),
            needs(Role::Y, Takes::Number, "how many are left after it"),
            may(Role::Label, Takes::Category, "why the others are not"),
            PANELS,
        ],
        names: 100,
        marks: 400,
        draw,
        ..Kind::BASE
    };
}

/// A stage: how many, of the first, of the one before.
struct Stage<'a> {
    row: &'a Row,
    first: Option<f64>,
    before: Option<f64>,
    lost: Option<f64>,
}

fn draw(sheet: &mut Sheet<'_>) -> Result<(), FigureError> {
    one_each(sheet, |r| (r.facet, r.x_name), &[Role::X, Role::Facet])?;
    check_not_negative(sheet)?;
    let names = sheet.table.xs.len() as f64;
    let reasons = sheet.table.rows.iter().any(|r| r.label.is_some());
    let pitch = if reasons { 44.0 } else { 30.0 };
    let widest = sheet.table.rows.iter().map(|r| Label::small(&whole(r.y)).width);
    // A narrow picture has no room for the shares of the stages before: only its texts have them.
    let shares = if sheet.width / sheet.table.panels().min(2) as f64 > 380.0 { 2.0 } else { 1.0 };
    let beside = widest.fold(0.0, f64::max) + 12.0 + shares * share_width();
    let (y, height) = (Dim::Names(sheet.table.xs.clone()), names * pitch + SMALL * 1.6);
    let plan = Plan { beside, ..Plan::new(Dim::Nothing, y, 110.0, move |_| height) };
    let panels = sheet.panels(&plan)?;
    let most = sheet.table.rows.iter().map(|r| r.y).fold(0.0, f64::max);
    let mut every = 1;
    for (i, panel) in panels.iter().enumerate() {
        let range = Range { low: 0.0, high: if most > 0.0 { most } else { 1.0 }, log: false };
        let axis = range.axis(panel.area.x, panel.area.right());
        let pitch = panel.area.height / names;
        // Of stages that are lower than a line of text, one in so many has its numbers.
        every = (SMALL * LEADING / pitch).ceil().max(1.0) as usize;
        for stage in stages(sheet.table, i) {
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
            if stage.row.x_name % every == 0 {
                numbers(sheet, &stage, right + beside, middle, shares > 1.0);
            }
            let gone = stage.lost.filter(|l| *l > 0.0).map(|l| format!("−{}", whole(l)));
            let lost = match (gone, &stage.row.label) {
                (Some(gone), Some(why)) => Some(format!("{gone} {why}")),
                (None, Some(why)) => Some(why.clone()),
                _ => None,
            };
            if let (Some(lost), true) = (lost, pitch - thick > 2.4 * SMALL) {
                let label = Label::fit(&lost, SMALL, panel.area.width + beside, 1);
                let y = middle - thick / 2.0 - SMALL * LEADING;
                sheet.svg.label(&label, (panel.area.x, y), Anchor::Start, sheet.look.soft);
            }
            sheet.svg.close();
        }
    }
    let note = "Next to the counts: the share of the first stage, and of the stage before.";
    sheet.notes.push(note.to_string());
    if every > 1 {
        sheet.notes.push(format!("Counts: one in {every} is written."));
    }
    for stage in (0..panels.len()).flat_map(|i| stages(sheet.table, i)) {
        sheet.facts.push(format!("{}.", words(sheet, &stage)));
    }
    Ok(())
}

/// The width of a column of shares.
fn share_width() -> f64 {
    Label::small("< 0.1 %").width + 9.0
}

fn whole(value: f64) -> String {
    if value.fract() == 0.0 && value < 1e15 { count(value as usize) } else { number(value) }
}

fn stages(table: &Table, panel: usize) -> Vec<Stage<'_>> {
    let first = table.in_panel(panel).next();
    let mut before: Option<&Row> = None;
    let mut stages = Vec::new();
    for row in table.in_panel(panel) {
        let share = |of: Option<&Row>| of.filter(|of| of.y > 0.0).map(|of| row.y / of.y);
        let lost = before.map(|before| before.y - row.y);
        stages.push(Stage { row, first: share(first), before: share(before), lost });
        before = Some(row);
    }
    stages
}

/// The count and the shares, in columns that end at `right`.
fn numbers(sheet: &mut Sheet<'_>, stage: &Stage<'_>, right: f64, y: f64, both: bool) {
    let shares = [stage.first, stage.before].map(|s| s.map(percent).unwrap_or_default());
    let shares = if both { &shares[..] } else { &shares[..1] };
    let columns = shares.len() as f64;
    let texts = std::iter::once(whole(stage.row.y)).chain(shares.iter().cloned());
    for (i, text) in texts.enumerate() {
        let color = if i == 0 { sheet.look.ink } else { sheet.look.soft };
        let x = right - (columns - i as f64) * share_width();
        sheet.svg.label_beside(&Label::small(&text), (x, y), Anchor::End, color);
    }
}

fn words(sheet: &Sheet<'_>, stage: &Stage<'_>) -> String {
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
