//! Treemaps: areas in proportion to sizes, in groups.
//!
//! Squarified (Bruls, Huizing and van Wijk 2000): rows of areas as near to squares as they can be,
//! the largest first.

use super::{check_not_negative, counted, span};
use crate::error::FigureError;
use crate::rows::Row;
use crate::scale::{number, percent};
use crate::sheet::{Dim, Panel, Plan, Sheet};
use crate::spec::{Kind, PANELS, Role, Takes, Theme, may, needs};
use crate::svg::{Anchor, Area, Fill, Stroke};
use crate::text::{LEADING, Label, SIZE, SMALL, visible};
use crate::theme::{hex, parts, readable_on};

impl Kind {
    /// Treemap: see [`Kind::about`].
    pub const TREEMAP: Kind = Kind {
        name: "treemap",
        title: "Treemap",
        about: "Areas in proportion to sizes.",
        columns: &[
            needs(Role::X, Takes::Category, "the name of the area"),
            needs(Role::Y, Takes::Number, "its size"),
            may(Role::Color, Takes::Category, "the group that holds the area"),
            PANELS,
        ],
        names: 2000,
        groups: 40,
        marks: 1000,
        draw,
        ..Kind::BASE
    };
}

fn draw(sheet: &mut Sheet<'_>) -> Result<(), FigureError> {
    check_not_negative(sheet)?;
    let largest = sheet.table.rows.iter().map(|r| r.y).fold(0.0, f64::max);
    if largest == 0.0 {
        return Err(FigureError::NoRows("all sizes are 0".to_string()));
    }
    let plan = Plan::new(Dim::Nothing, Dim::Nothing, 200.0, |w| (w * 0.66).clamp(150.0, 420.0));
    let panels = sheet.panels(&plan)?;
    let mut empty = 0;
    for (i, panel) in panels.iter().enumerate() {
        // Sums of shares of the largest do not overflow. A size that is a billion times smaller has
        // no area in any picture.
        let shares = sheet.table.in_panel(i).map(|row| (row, row.y / largest));
        let (tiles, small): (Vec<Tile<'_>>, Vec<_>) = shares.partition(|(_, share)| *share > 1e-9);
        empty += small.len();
        draw_panel(sheet, panel, &tiles);
    }
    let (one, more) = ("row is 0 or too small to be seen", "rows are 0 or too small to be seen");
    sheet.notes.extend(counted(empty, one, more));
    let label = sheet.column_label(Role::Y).unwrap_or_default();
    let within = match sheet.table.colors.len() {
        0 => "",
        // The heading of a group takes room from its areas.
        _ => ", in proportion among groups and within each",
    };
    sheet.notes.push(format!("Areas: {}{within}.", visible(&label)));
    sheet.facts.push(format!("Sizes {}.", span(sheet.table.rows.iter().map(|r| r.y))));
    let table = sheet.table;
    let mut largest: Vec<&Row> = table.rows.iter().collect();
    largest.sort_by(|a, b| b.y.total_cmp(&a.y));
    let name = |r: &Row| format!("{}: {}.", table.xs[r.x_name], number(r.y));
    sheet.facts.push("The largest:".to_string());
    sheet.facts.extend(largest.into_iter().take(12).map(name));
    Ok(())
}

/// A row and its size, as a share of the largest.
type Tile<'a> = (&'a Row, f64);

fn draw_panel(sheet: &mut Sheet<'_>, panel: &Panel, rows: &[Tile<'_>]) {
    let total: f64 = rows.iter().map(|(_, size)| size).sum();
    if sheet.table.colors.is_empty() {
        tiles(sheet, panel.area, rows.to_vec(), total, 0);
        return;
    }
    let of = |group| rows.iter().copied().filter(move |(row, _)| row.color == Some(group));
    let sizes = (0..sheet.table.colors.len()).map(|g| of(g).map(|(_, size)| size).sum::<f64>());
    let mut groups: Vec<(usize, f64)> = sizes.enumerate().filter(|(_, s)| *s > 0.0).collect();
    groups.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let areas = squarify(panel.area, &groups.iter().map(|g| g.1).collect::<Vec<_>>());
    for ((group, size), area) in groups.into_iter().zip(areas) {
        let name = &sheet.table.colors[group];
        sheet.svg.open_titled("group", &format!("{name}: {}", percent(size / total)));
        // Areas within a group stay in proportion to each other; the heading takes the same share
        // of each of them.
        let header = SIZE * 1.45;
        let mut inner = area;
        if area.height > header * 2.2 && area.width > 36.0 {
            let label = Label::new(name, SIZE, area.width - 8.0, 1, true);
            let at = (area.x + 4.0, area.y + 1.5);
            sheet.svg.label(&label, at, Anchor::Start, sheet.look.ink);
            inner = Area { y: area.y + header, height: area.height - header, ..area };
        }
        tiles(sheet, inner, of(group).collect(), total, group);
        let outline = Stroke::solid(sheet.look.ink, 1.4);
        sheet.svg.rect(area, Fill::NONE, Some(outline));
        sheet.svg.close();
    }
}

fn tiles(sheet: &mut Sheet<'_>, area: Area, mut rows: Vec<Tile<'_>>, total: f64, group: usize) {
    rows.sort_by(|(a, _), (b, _)| b.y.total_cmp(&a.y).then(a.at.cmp(&b.at)));
    let areas = squarify(area, &rows.iter().map(|(_, size)| *size).collect::<Vec<_>>());
    let color = tint(sheet, group);
    for ((row, share), area) in rows.into_iter().zip(areas) {
        let (name, size) = (&sheet.table.xs[row.x_name], number(row.y));
        sheet.svg.open_titled("tile", &format!("{name}: {size}, {}", percent(share / total)));
        // Between greys as light as those of print white lines would not be seen.
        let printed = sheet.look.theme == Theme::Print;
        let line = if printed { sheet.look.soft } else { sheet.look.ground };
        let outline = Stroke::solid(line, if printed { 0.6 } else { 1.0 });
        sheet.svg.rect(area, Fill::solid(&hex(color)), Some(outline));
        write_name(sheet, name, &size, area, readable_on(color));
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
    let (x, y) = (area.x + 3.0, area.y + 2.0);
    sheet.svg.label(&label, (x, y), Anchor::Start, color);
    let below = Label::fit(size, SMALL, width, 1);
    if below.whole.is_none() && label.height() + line <= height {
        sheet.svg.label(&below, (x, y + label.height()), Anchor::Start, color);
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
            let inner = Area::around(a.middle(), a.width - 2e-9, a.height - 2e-9);
            assert!(!areas[i + 1..].iter().any(|b| inner.meets(b)));
        }
    }
}
