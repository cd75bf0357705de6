//! Contours: lines of equal numbers over a grid, and points with their texts.

use std::collections::BTreeMap;

use super::{counted, one_each, points, span, without_room};
use crate::error::FigureError;
use crate::rows::{Row, too_many};
use crate::scale::{Range, extent, number};
use crate::sheet::{Dim, Panel, Plan, Sheet};
use crate::spec::{Kind, PANELS, Role, Scale, Takes, may, needs};
use crate::svg::{Anchor, Area, Fill, Point, Stroke};
use crate::text::{LEADING, Label, SMALL};

impl Kind {
    /// Contours: see [`Kind::about`].
    pub const CONTOUR: Kind = Kind {
        name: "contour",
        title: "Contours",
        about: "Lines of equal numbers over a grid.",
        columns: &[
            needs(Role::X, Takes::Number, "where a place of the grid is"),
            needs(Role::Y, Takes::Number, "how high it is"),
            needs(Role::Color, Takes::Number, "the number that lines are of"),
            may(
                Role::Label,
                Takes::Category,
                "the text of a point; a row without one is a place of the grid",
            ),
            PANELS,
        ],
        options: &["reference", "x_label", "y_label"],
        marks: 50_000,
        draw,
        ..Kind::BASE
    };
}

/// About how many lines there are.
const LEVELS: usize = 9;

/// The most places of a grid. Rows that are not a grid would need a place for each pair.
const PLACES: usize = 250_000;

const RADIUS: f64 = 3.4;

fn draw(sheet: &mut Sheet<'_>) -> Result<(), FigureError> {
    let bits = |value: f64| (value + 0.0).to_bits();
    let place = |r: &Row| (r.facet, r.label.clone(), bits(r.x), bits(r.y));
    one_each(sheet, place, &[Role::X, Role::Y, Role::Facet])?;
    // Lines end where the grid does, and so do the axes, unless a point lies beyond.
    let exact = |of: fn(&Row) -> f64| {
        let (low, high) = extent(sheet.table.rows.iter().map(of));
        Range::of([low, high].into_iter(), &[low, high], Scale::Linear)
    };
    let (x, y) = (Dim::Number(exact(|r| r.x)), Dim::Number(exact(|r| r.y)));
    let plan = Plan {
        x_label: sheet.axis_label(Role::X),
        y_label: sheet.axis_label(Role::Y),
        ..Plan::new(x, y, 170.0, |w| (w * 0.8).clamp(140.0, 380.0))
    };
    let panels = sheet.panels(&plan)?;
    let on_grid = sheet.table.rows.iter().filter(|r| r.label.is_none());
    let (low, high) = extent(on_grid.map(|r| r.value));
    let levels = levels(sheet, low, high);
    let (mut bare, mut holes, mut left_out) = (0, 0, 0);
    for (i, panel) in panels.iter().enumerate() {
        let grid = Grid::of(sheet, i)?;
        holes += grid.values.iter().filter(|value| value.is_none()).count();
        let points: Vec<(Point, &str, &Row)> = sheet
            .table
            .in_panel(i)
            .filter_map(|row| Some((panel.at(row), row.label.as_deref()?, row)))
            .collect();
        let around = |(at, ..): &(Point, &str, &Row)| Area::around(*at, 2.0 * RADIUS, 2.0 * RADIUS);
        let mut taken: Vec<Area> = points.iter().map(around).collect();
        for (level, text) in &levels {
            bare += draw_level(sheet, panel, &grid, (*level, text), &mut taken);
        }
        for (at, label, row) in &points {
            let title = format!("{label}: {}", number(row.value));
            sheet.svg.open_titled("point", &title);
            sheet.look.mark(&mut sheet.svg, *at, RADIUS, 2, 1.0);
            sheet.svg.close();
        }
        for (.., row) in points {
            left_out += usize::from(!points::write_label(sheet, panel, row, RADIUS, &mut taken));
        }
    }
    words(sheet, levels.is_empty(), [bare, holes, left_out]);
    let (xs, ys) = (sheet.table.rows.iter().map(|r| r.x), sheet.table.rows.iter().map(|r| r.y));
    let fact = format!("Horizontally {}, vertically {}.", span(xs), span(ys));
    sheet.facts.push(fact);
    if low <= high {
        sheet.facts.push(format!("Numbers {} to {}.", number(low), number(high)));
    }
    for row in sheet.table.rows.iter().filter(|r| r.label.is_some()).take(40) {
        let label = row.label.as_deref().unwrap_or_default();
        sheet.facts.push(format!("{label}: {}.", number(row.value)));
    }
    Ok(())
}

/// The numbers that lines are of, with their texts: round ones, and that of reference.
fn levels(sheet: &Sheet<'_>, low: f64, high: f64) -> Vec<(f64, String)> {
    if low >= high {
        return Vec::new();
    }
    let mut levels = Range { low, high, log: false }.ticks(LEVELS);
    if let Some(reference) = sheet.spec.reference.filter(|r| (low..=high).contains(r)) {
        levels.retain(|(level, _)| *level != reference);
        levels.push((reference, number(reference)));
    }
    levels
}

/// The part of the caption about lines and points.
fn words(sheet: &mut Sheet<'_>, is_flat: bool, [bare, holes, left_out]: [usize; 3]) {
    let label = sheet.column_label(Role::Color).unwrap_or_default();
    match is_flat {
        true => sheet.notes.push("The numbers do not differ, so there are no lines.".to_string()),
        false => sheet.notes.push(format!("Lines: where {} is the same.", label)),
    }
    if let Some(reference) = sheet.spec.reference.filter(|_| !is_flat) {
        sheet.notes.push(format!("Dashed: where it is {}.", number(reference)));
    }
    if sheet.table.rows.iter().any(|r| r.label.is_some()) {
        sheet.notes.push("Points: rows with a text, which are not part of the grid.".to_string());
    }
    let said = [
        counted(holes, "place of the grid has no row", "places of the grid have no row"),
        counted(bare, "line has no room for its number", "lines have no room for their numbers"),
        without_room(left_out),
    ];
    sheet.notes.extend(said.into_iter().flatten());
}

/// Numbers in columns and rows.
struct Grid {
    xs: Vec<f64>,
    ys: Vec<f64>,
    /// Row by row.
    values: Vec<Option<f64>>,
}

/// A side of a cell, by its end with the smaller places: whether it goes along the rows.
type Side = (usize, usize, bool);

impl Grid {
    fn of(sheet: &Sheet<'_>, panel: usize) -> Result<Grid, FigureError> {
        let rows: Vec<&Row> = sheet.table.in_panel(panel).filter(|r| r.label.is_none()).collect();
        let places = |of: fn(&Row) -> f64| {
            let mut places: Vec<f64> = rows.iter().map(|r| of(r) + 0.0).collect();
            places.sort_by(f64::total_cmp);
            places.dedup();
            places
        };
        let (xs, ys) = (places(|r| r.x), places(|r| r.y));
        let places = xs.len().saturating_mul(ys.len());
        if places > PLACES {
            let what = "places in the grid";
            return Err(too_many(sheet.spec, Role::X, places, what, PLACES));
        }
        let mut values = vec![None; places];
        let find = |places: &[f64], value: f64| places.partition_point(|p| *p < value);
        for row in rows {
            values[find(&ys, row.y) * xs.len() + find(&xs, row.x)] = Some(row.value);
        }
        Ok(Grid { xs, ys, values })
    }

    fn value(&self, x: usize, y: usize) -> Option<f64> {
        self.values[y * self.xs.len() + x]
    }

    /// Where a line of a level crosses a side: between its ends as their numbers are.
    fn crossing(&self, (x, y, along): Side, level: f64) -> Option<Point> {
        let (x2, y2) = if along { (x + 1, y) } else { (x, y + 1) };
        let (a, b) = (self.value(x, y)?, self.value(x2, y2)?);
        let share = match (b - a).is_finite() {
            true => (level - a) / (b - a),
            // Halves do not overflow where the whole does.
            false => (level / 2.0 - a / 2.0) / (b / 2.0 - a / 2.0),
        };
        let between = |from: f64, to: f64| from * (1.0 - share) + to * share;
        Some((between(self.xs[x], self.xs[x2]), between(self.ys[y], self.ys[y2])))
    }

    /// The pieces of the line of a level within the cells, each from a side to a side (marching
    /// squares; in a saddle the mean of the corners decides which of them hang together).
    fn pieces(&self, level: f64) -> Vec<(Side, Side)> {
        let mut pieces = Vec::new();
        for y in 1..self.ys.len() {
            for x in 1..self.xs.len() {
                let (left, low) = (x - 1, y - 1);
                let corners = [(left, low), (x, low), (x, y), (left, y)];
                let values: Vec<f64> =
                    corners.iter().filter_map(|(x, y)| self.value(*x, *y)).collect();
                let [a, b, c, d] = values[..] else { continue };
                let above = [a, b, c, d].map(|value| value >= level);
                let bottom: Side = (left, low, true);
                let (right, top, west) = ((x, low, false), (left, y, true), (left, low, false));
                let sides = [bottom, right, top, west];
                let crossed: Vec<usize> =
                    (0..4).filter(|side| above[*side] != above[(side + 1) % 4]).collect();
                match crossed[..] {
                    [one, other] => pieces.push((sides[one], sides[other])),
                    [_, _, _, _] => {
                        let centre = a / 4.0 + b / 4.0 + c / 4.0 + d / 4.0 >= level;
                        match centre == above[0] {
                            true => pieces.extend([(bottom, right), (top, west)]),
                            false => pieces.extend([(west, bottom), (right, top)]),
                        }
                    }
                    _ => {}
                }
            }
        }
        pieces
    }

    /// The lines of a level.
    fn lines(&self, level: f64) -> Vec<Vec<Point>> {
        let pieces = self.pieces(level);
        let mut at: BTreeMap<Side, Vec<usize>> = BTreeMap::new();
        for (piece, (one, other)) in pieces.iter().enumerate() {
            at.entry(*one).or_default().push(piece);
            at.entry(*other).or_default().push(piece);
        }
        // Lines with ends begin at one; the others are closed.
        let ends = at.iter().filter(|(_, pieces)| pieces.len() == 1).map(|(side, _)| *side);
        let begins: Vec<Side> = ends.chain(at.keys().copied()).collect();
        let mut drawn = vec![false; pieces.len()];
        let mut lines = Vec::new();
        for begin in begins {
            let (mut side, mut line) = (begin, Vec::from_iter(self.crossing(begin, level)));
            while let Some(piece) = at[&side].iter().copied().find(|piece| !drawn[*piece]) {
                drawn[piece] = true;
                let (one, other) = pieces[piece];
                side = if one == side { other } else { one };
                line.extend(self.crossing(side, level));
            }
            if line.len() > 1 {
                lines.push(line);
            }
        }
        lines
    }
}

/// Draws the lines of a level, with its number on each; how many have no room for it.
fn draw_level(
    sheet: &mut Sheet<'_>,
    panel: &Panel,
    grid: &Grid,
    (level, text): (f64, &str),
    taken: &mut Vec<Area>,
) -> usize {
    let is_reference = sheet.spec.reference == Some(level);
    let stroke = match is_reference {
        true => Stroke { color: sheet.look.color(1), width: 2.0, dash: "6 3" },
        false => Stroke::solid(sheet.look.color(0), 1.1),
    };
    let label = Label::small(text);
    let mut bare = 0;
    for line in grid.lines(level) {
        let line: Vec<Point> = line.into_iter().map(|(x, y)| (panel.x(x), panel.y(y))).collect();
        sheet.svg.open_titled("contour", text);
        sheet.svg.path(&line, false, Fill::NONE, Some(stroke));
        sheet.svg.close();
        let Some(place) = room(panel, &line, &label, taken) else {
            bare += 1;
            continue;
        };
        let color = if is_reference { sheet.look.ink } else { sheet.look.soft };
        let ground = Fill { color: sheet.look.ground, opacity: 0.9 };
        sheet.svg.group("on-line", |svg| {
            svg.rect(place, ground, None);
            svg.label_beside(&label, place.middle(), Anchor::Middle, color);
        });
        taken.push(place);
    }
    bare
}

/// A free place for a number on a line: near its middle, or else nearer to its ends.
fn room(panel: &Panel, line: &[Point], label: &Label, taken: &[Area]) -> Option<Area> {
    let last = line.len() - 1;
    let mut places: Vec<usize> = (0..=last).collect();
    places.sort_by_key(|at| (2 * at).abs_diff(last));
    let area = |at| Area::around(line[at], label.width + 4.0, SMALL * LEADING);
    places.into_iter().map(area).find(|area| panel.area.has_room_for(area, taken))
}
