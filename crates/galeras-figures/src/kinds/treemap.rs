//! Treemaps: areas in proportion to sizes, in groups.
//!
//! Squarified (Bruls, Huizing and van Wijk 2000): rows of areas as near to squares as they can be,
//! the largest first.

use super::span;
use crate::error::FigureError;
use crate::kind::{Kind, KindSpec};
use crate::rows::Row;
use crate::scale::{count, number, percent};
use crate::sheet::{Dim, Panel, Plan, Sheet};
use crate::spec::{PANELS, Role, Takes, Theme, may, needs};
use crate::svg::{Anchor, Area, Fill, Stroke};
use crate::text::{LEADING, Label, SIZE, SMALL, visible};
use crate::theme::{hex, parts, readable_on};

impl Kind {
    /// Treemap: see [`Kind::about`].
    pub const TREEMAP: Kind = Kind(&KindSpec {
        name: "treemap",
        title: "Treemap",
        about: "Areas in proportion to sizes.",
        columns: &[
            needs(Role::X, Takes::Category, "the name of the area"),
            needs(Role::Y, Takes::Number, "its size"),
            may(Role::Color, Takes::Category, "the group that holds the area"),
            PANELS,
        ],
        options: &[],
        along: Role::Y,
        names: 2000,
        groups: 40,
        marks: 1000,
        draw,
        draw_text: None,
    });
}

fn draw(sheet: &mut Sheet<'_>) -> Result<(), FigureError> {
    if let Some(row) = sheet.table.rows.iter().find(|r| r.y < 0.0) {
        let column = visible(sheet.spec.y.as_deref().unwrap_or_default()).into_owned();
        return Err(FigureError::Negative {
            kind: sheet.spec.kind,
            column,
            row: row.at,
            value: row.y,
        });
    }
    // Sums of shares of the largest do not overflow. A size that is a billion times smaller has no
    // area in any picture.
    let largest = sheet.table.rows.iter().map(|r| r.y).fold(0.0, f64::max);
    for row in &mut sheet.table.rows {
        row.value = if row.y / largest > 1e-9 { row.y / largest } else { 0.0 };
    }
    let empty = sheet.table.rows.iter().filter(|r| r.value == 0.0).count();
    let plan = Plan {
        x: Dim::Nothing,
        y: Dim::Nothing,
        x_label: None,
        y_label: None,
        key: None,
        min_width: 200.0,
        panel_height: Box::new(|w| (w * 0.66).clamp(150.0, 420.0)),
        beside: 0.0,
        below: 0.0,
    };
    if largest == 0.0 {
        let left_out = "all sizes are 0".to_string();
        return Err(FigureError::NoRows { kind: sheet.spec.kind, left_out });
    }
    let panels = sheet.panels(&plan)?;
    for (i, panel) in panels.iter().enumerate() {
        let rows: Vec<Row> = sheet.table.in_panel(i).filter(|r| r.value > 0.0).cloned().collect();
        draw_panel(sheet, panel, &rows);
    }
    if empty > 0 {
        let words = if empty == 1 { "row is" } else { "rows are" };
        sheet.notes.push(format!("{} {words} 0 or too small to be seen.", count(empty)));
    }
    let label = sheet.column_label(crate::spec::Role::Y).unwrap_or_default();
    let within = match sheet.table.colors.len() {
        0 => "",
        // The heading of a group takes room from its areas.
        _ => ", in proportion among groups and within each",
    };
    sheet.notes.push(format!("Areas: {}{within}.", visible(&label)));
    sheet.facts.push(format!("Sizes {}.", span(sheet.table.rows.iter().map(|r| r.y))));
    let mut largest: Vec<&Row> = sheet.table.rows.iter().collect();
    largest.sort_by(|a, b| b.y.total_cmp(&a.y));
    let name = |r: &&Row| format!("{}: {}.", sheet.table.xs[r.x_name], number(r.y));
    let each: Vec<String> = largest.iter().take(12).map(name).collect();
    sheet.facts.push("The largest:".to_string());
    sheet.facts.extend(each);
    Ok(())
}

fn draw_panel(sheet: &mut Sheet<'_>, panel: &Panel, rows: &[Row]) {
    let total: f64 = rows.iter().map(|r| r.value).sum();
    if sheet.table.colors.is_empty() {
        tiles(sheet, panel.area, rows, total, 0);
        return;
    }
    let sizes = (0..sheet.table.colors.len())
        .map(|g| rows.iter().filter(|r| r.color == Some(g)).map(|r| r.value).sum::<f64>());
    let mut groups: Vec<(usize, f64)> = sizes.enumerate().filter(|(_, s)| *s > 0.0).collect();
    groups.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let areas = squarify(panel.area, &groups.iter().map(|g| g.1).collect::<Vec<_>>());
    for ((group, size), area) in groups.into_iter().zip(areas) {
        let name = sheet.table.colors[group].clone();
        sheet.svg.open_titled("group", &format!("{name}: {}", percent(size / total)));
        // Areas within a group stay in proportion to each other; the heading takes the same share
        // of each of them.
        let header = SIZE * 1.45;
        let mut inner = area;
        if area.height > header * 2.2 && area.width > 36.0 {
            let label = Label::bold(&name, SIZE, area.width - 8.0, 1);
            let x = area.x + 4.0;
            sheet.svg.label(&label, x, area.y + 1.5, Anchor::Start, sheet.look.ink);
            inner = Area { y: area.y + header, height: area.height - header, ..area };
        }
        let of: Vec<Row> = rows.iter().filter(|r| r.color == Some(group)).cloned().collect();
        tiles(sheet, inner, &of, total, group);
        let outline = Stroke::solid(sheet.look.ink, 1.4);
        sheet.svg.rect(area, Fill::NONE, Some(outline));
        sheet.svg.close();
    }
}

fn tiles(sheet: &mut Sheet<'_>, area: Area, rows: &[Row], total: f64, group: usize) {
    let mut rows: Vec<&Row> = rows.iter().collect();
    rows.sort_by(|a, b| b.y.total_cmp(&a.y).then(a.at.cmp(&b.at)));
    let areas = squarify(area, &rows.iter().map(|r| r.value).collect::<Vec<_>>());
    let color = tint(sheet, group);
    for (row, area) in rows.into_iter().zip(areas) {
        let name = sheet.table.xs[row.x_name].clone();
        let size = number(row.y);
        sheet.svg.open_titled("tile", &format!("{name}: {size}, {}", percent(row.value / total)));
        // Between greys as light as those of print white lines would not be seen.
        let printed = sheet.look.theme == Theme::Print;
        let line = if printed { sheet.look.soft } else { sheet.look.ground };
        let outline = Stroke::solid(line, if printed { 0.6 } else { 1.0 });
        sheet.svg.rect(area, Fill::solid(&hex(color)), Some(outline));
        write_name(sheet, &name, &size, area, readable_on(color));
        sheet.svg.close();
    }
}

/// The name and the size within an area, as much as has room.
fn write_name(sheet: &mut Sheet<'_>, name: &str, size: &str, area: Area, color: &str) {
    let line = SMALL * LEADING;
    let (width, height) = (area.width - 6.0, area.height - 4.0);
    let lines = (height / line).floor() as usize;
    if lines == 0 || width < 16.0 {
        return;
    }
    let label = Label::fit(name, SMALL, width, if lines > 1 { (lines - 1).min(3) } else { 1 });
    // A word that is broken is harder to read than one that is cropped.
    let label = if label.broken { Label::fit(name, SMALL, width, 1) } else { label };
    // A letter and three dots would not help a reader.
    if label.whole.is_some() && label.lines.concat().chars().count() < 5 {
        return;
    }
    sheet.svg.label(&label, area.x + 3.0, area.y + 2.0, Anchor::Start, color);
    let below = Label::fit(size, SMALL, width, 1);
    if below.whole.is_none() && label.height() + line <= height {
        sheet.svg.label(&below, area.x + 3.0, area.y + 2.0 + label.height(), Anchor::Start, color);
    }
}

/// The colour of a group's areas: its own, lighter; in print white to grey.
fn tint(sheet: &Sheet<'_>, group: usize) -> [u8; 3] {
    if sheet.look.theme == Theme::Print {
        let grey = [235, 210, 250, 190][group % 4];
        return [grey; 3];
    }
    let (own, ground) = (parts(sheet.look.color(group)), parts(sheet.look.ground));
    let share = if sheet.look.theme == Theme::Dark { 0.5 } else { 0.45 };
    let mix = |i: usize| (f64::from(own[i]) * share + f64::from(ground[i]) * (1.0 - share)) as u8;
    [mix(0), mix(1), mix(2)]
}

/// Rectangles of these sizes, which descend, that fill an area.
fn squarify(mut area: Area, sizes: &[f64]) -> Vec<Area> {
    let mut found = Vec::with_capacity(sizes.len());
    let mut rest = sizes;
    while !rest.is_empty() {
        let total: f64 = rest.iter().sum();
        let scale = area.width * area.height / total;
        let side = area.width.min(area.height);
        let worst = |row: &[f64]| {
            let sum = row.iter().sum::<f64>() * scale;
            let (most, least) = (row[0] * scale, row[row.len() - 1] * scale);
            (side * side * most / (sum * sum)).max(sum * sum / (side * side * least))
        };
        let mut end = 1;
        while end < rest.len() && worst(&rest[..=end]) <= worst(&rest[..end]) {
            end += 1;
        }
        let (row, others) = rest.split_at(end);
        let sum: f64 = row.iter().sum();
        let upright = area.width >= area.height;
        let thick = if others.is_empty() {
            if upright { area.width } else { area.height }
        } else {
            sum * scale / side
        };
        let mut along = 0.0;
        for size in row {
            let length = side * size / sum;
            found.push(match upright {
                true => Area { x: area.x, y: area.y + along, width: thick, height: length },
                false => Area { x: area.x + along, y: area.y, width: length, height: thick },
            });
            along += length;
        }
        match upright {
            true => (area.x, area.width) = (area.x + thick, (area.width - thick).max(0.0)),
            false => (area.y, area.height) = (area.y + thick, (area.height - thick).max(0.0)),
        }
        rest = others;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_are_in_proportion_and_fill_the_whole_without_overlap() {
        let sizes = [6.0, 6.0, 4.0, 3.0, 2.0, 2.0, 1.0];
        let whole = Area { x: 5.0, y: 7.0, width: 600.0, height: 400.0 };
        let areas = squarify(whole, &sizes);
        for (area, size) in areas.iter().zip(sizes) {
            assert!((area.width * area.height - size * 10_000.0).abs() < 1e-6);
            assert!(area.width.max(area.height) / area.width.min(area.height) < 3.0);
            assert!(area.right() <= whole.right() + 1e-9 && area.bottom() <= whole.bottom() + 1e-9);
        }
        for (i, a) in areas.iter().enumerate() {
            for b in &areas[i + 1..] {
                let meet = a.x + 1e-9 < b.right()
                    && b.x + 1e-9 < a.right()
                    && a.y + 1e-9 < b.bottom()
                    && b.y + 1e-9 < a.bottom();
                assert!(!meet);
            }
        }
    }
}
