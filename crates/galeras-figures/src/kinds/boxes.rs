//! Box plots and violins.

use std::collections::{BTreeMap, BTreeSet};

use super::{Slots, joined, own_reference, span};
use crate::error::FigureError;
use crate::scale::{Range, count, number};
use crate::sheet::{Key, Panel, Sheet};
use crate::spec::{Kind, PANELS, Role, Scale, Takes, Theme, may, needs};
use crate::stats::{self, Quartiles};
use crate::svg::{Fill, Stroke};

impl Kind {
    /// Box plot: see [`Kind::about`].
    pub const BOX: Kind = Kind {
        name: "box",
        title: "Box plot",
        about: "Quartiles, whiskers, and the rows beyond.",
        columns: &[
            needs(Role::Y, Takes::Number, "the number whose distribution is shown"),
            may(Role::X, Takes::Category, "groups side by side"),
            may(Role::Color, Takes::Category, "groups within groups, by colour"),
            PANELS,
        ],
        options: &["reference", "x_label", "y_label", "y_scale"],
        names: 100,
        draw,
        ..Kind::BASE
    };

    /// Violin plot: see [`Kind::about`].
    pub const VIOLIN: Kind = Kind {
        name: "violin",
        title: "Violin plot",
        about: "Densities, with the quartiles within.",
        ..Kind::BOX
    };
}

struct Group {
    panel: usize,
    name: usize,
    group: usize,
    sorted: Vec<f64>,
    quartiles: Quartiles,
}

fn draw(sheet: &mut Sheet<'_>) -> Result<(), FigureError> {
    let slots = Slots::of(sheet);
    let groups = groups(sheet);
    let scale = sheet.spec.y_scale.unwrap_or_default();
    let range =
        Range::of(sheet.table.rows.iter().map(|r| r.y), sheet.spec.reference.as_slice(), scale);
    // In print, violins differ by their outlines and boxes by their fills.
    let printed = sheet.look.theme == Theme::Print && sheet.spec.kind == Kind::VIOLIN;
    let key = if printed { Key::Line } else { Key::Bar };
    let panels = sheet.panels(&slots.plan(sheet, range, key))?;
    for panel in &panels {
        own_reference(sheet, panel, slots.lying);
    }
    if sheet.spec.kind == Kind::BOX {
        groups.iter().for_each(|g| draw_box(sheet, &slots, &panels[g.panel], g));
        sheet.notes.push(
            "Boxes: quartiles; whiskers: the outermost rows within 1.5 interquartile ranges; \
             points: rows beyond; thick bars: 95 % intervals of the medians, from six rows on."
                .to_string(),
        );
    } else {
        draw_violins(sheet, &slots, &panels, &groups);
        sheet.notes.push(
            "Violins: Gaussian kernel densities of equal area (Scott’s bandwidth), cut off at the \
             least and the greatest row; points: medians; thick bars: their 95 % intervals, from \
             six rows on; thin bars: quartiles."
                .to_string(),
        );
    }
    facts(sheet, &groups);
    Ok(())
}

fn groups(sheet: &Sheet<'_>) -> Vec<Group> {
    let mut found = BTreeMap::<_, Vec<f64>>::new();
    for row in &sheet.table.rows {
        found.entry((row.facet, row.x_name, row.color.unwrap_or(0))).or_default().push(row.y);
    }
    let group = |((panel, name, group), mut sorted): ((usize, usize, usize), Vec<f64>)| {
        sorted.sort_by(f64::total_cmp);
        let quartiles = Quartiles::of(&sorted);
        Group { panel, name, group, sorted, quartiles }
    };
    found.into_iter().map(group).collect()
}

/// The interval of the median and the median itself; the others' lines are beneath.
fn median(sheet: &mut Sheet<'_>, slots: &Slots, panel: &Panel, group: &Group, width: f64) {
    let (slot, _) = slots.slot(panel, group.name, group.group);
    if let Some((low, high)) = group.quartiles.interval {
        let (low, high) = (slots.value(panel, low), slots.value(panel, high));
        let area = slots.area(slot, width, low, high);
        let ink = Fill::solid(sheet.look.ink);
        sheet.svg.group("interval", |svg| svg.rect(area, ink, None));
    }
}

fn draw_box(sheet: &mut Sheet<'_>, slots: &Slots, panel: &Panel, group: &Group) {
    let q = group.quartiles;
    let (slot, width) = slots.slot(panel, group.name, group.group);
    let width = (width * 0.82).min(46.0);
    let at = |v: f64| slots.value(panel, v);
    let ink = Stroke::solid(sheet.look.ink, 1.0);
    let title = format!(
        "n = {}; median {}, quartiles {} and {}",
        count(group.sorted.len()),
        number(q.median),
        number(q.q1),
        number(q.q3)
    );
    sheet.svg.open_titled("box", &title);
    for (from, to) in [(q.q1, q.whiskers.0), (q.q3, q.whiskers.1)] {
        let (cap, to) = (width * 0.22, at(to));
        sheet.svg.group("whisker", |svg| {
            svg.line(slots.point(slot, at(from)), slots.point(slot, to), ink);
            svg.line(slots.point(slot - cap, to), slots.point(slot + cap, to), ink);
        });
    }
    let (look, area) = (sheet.look, slots.area(slot, width, at(q.q1), at(q.q3)));
    sheet.svg.group("quartiles", |svg| {
        svg.rect(area, Fill::solid(look.ground), None);
        look.bar(svg, area, group.group, 0.45);
    });
    median(sheet, slots, panel, group, (width * 0.18).clamp(2.5, 5.0));
    let [a, b] = [-0.5, 0.5].map(|side| slots.point(slot + side * width, at(q.median)));
    sheet.svg.group("median", |svg| svg.line(a, b, Stroke::solid(look.ink, 2.0)));
    let beyond = group.sorted.iter().filter(|v| **v < q.whiskers.0 || **v > q.whiskers.1);
    let mut drawn = BTreeSet::new();
    sheet.svg.open("beyond");
    for value in beyond {
        let place = at(*value);
        // Points that cover each other are one.
        if drawn.insert((place * 4.0).round() as i64) {
            let stroke = Stroke::solid(look.color(group.group), 0.9);
            sheet.svg.circle(slots.point(slot, place), 1.7, Fill::NONE, stroke);
        }
    }
    sheet.svg.close();
    sheet.svg.close();
}

fn draw_violins(sheet: &mut Sheet<'_>, slots: &Slots, panels: &[Panel], groups: &[Group]) {
    let log = sheet.spec.y_scale == Some(Scale::Log);
    let on_scale = |v: &f64| if log { v.ln() } else { *v };
    let back = |v: f64| if log { v.exp() } else { v };
    let density = |g: &Group| {
        let values: Vec<f64> = g.sorted.iter().map(on_scale).collect();
        stats::density(&values)
    };
    let densities: Vec<Option<Vec<(f64, f64)>>> = groups.iter().map(density).collect();
    let most = densities.iter().flatten().flatten().map(|(_, d)| *d).fold(0.0, f64::max);
    for (group, density) in groups.iter().zip(&densities) {
        let panel = &panels[group.panel];
        let (slot, width) = slots.slot(panel, group.name, group.group);
        let at = |v: f64| slots.value(panel, v);
        let title =
            format!("n = {}; median {}", count(group.sorted.len()), number(group.quartiles.median));
        sheet.svg.open_titled("violin", &title);
        if let Some(curve) = density {
            let side = |sign: f64| {
                curve.iter().map(move |(v, d)| {
                    slots.point(slot + sign * width * 0.48 * d / most, at(back(*v)))
                })
            };
            let right: Vec<_> = side(1.0).collect();
            let outline: Vec<_> = side(-1.0).chain(right.into_iter().rev()).collect();
            let opacity = if sheet.look.theme == Theme::Print { 0.16 } else { 0.4 };
            let fill = Fill { color: sheet.look.color(group.group), opacity };
            let stroke = Some(sheet.look.stroke(group.group, 1.1));
            sheet.svg.group("density", |svg| svg.path(&outline, true, fill, stroke));
        }
        let q = group.quartiles;
        let [low, middle, high] = [q.q1, q.median, q.q3].map(|v| slots.point(slot, at(v)));
        let (ink, ground) = (Stroke::solid(sheet.look.ink, 1.2), Fill::solid(sheet.look.ground));
        sheet.svg.group("quartiles", |svg| svg.line(low, high, ink));
        median(sheet, slots, panel, group, 4.0);
        sheet.svg.group("median", |svg| svg.circle(middle, 2.8, ground, ink));
        sheet.svg.close();
    }
}

fn facts(sheet: &mut Sheet<'_>, groups: &[Group]) {
    sheet.facts.push(format!("Range {}.", span(sheet.table.rows.iter().map(|r| r.y))));
    let table = sheet.table;
    for g in groups.iter().take(24) {
        let names = [table.facets.get(g.panel), table.xs.get(g.name), table.colors.get(g.group)];
        let name = if names == [None; 3] { "all".to_string() } else { joined(names) };
        let [median, q1, q3] = [g.quartiles.median, g.quartiles.q1, g.quartiles.q3].map(number);
        let n = count(g.sorted.len());
        sheet.facts.push(format!("{name}: median {median}, quartiles {q1} and {q3}, n = {n}."));
    }
}
