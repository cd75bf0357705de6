//! Box plots and violins.

use std::collections::BTreeSet;

use super::{Slots, anchors, reference, span};
use crate::error::FigureError;
use crate::kind::{Kind, KindSpec};
use crate::scale::{Range, count, number};
use crate::sheet::{Key, Panel, Sheet};
use crate::spec::{PANELS, Role, Takes, Theme, Use, may, needs};
use crate::stats::{self, Quartiles};
use crate::svg::{Fill, Stroke};
use crate::theme;

const COLUMNS: &[Use] = &[
    needs(Role::Y, Takes::Number, "the number whose distribution is shown"),
    may(Role::X, Takes::Category, "groups side by side"),
    may(Role::Color, Takes::Category, "groups within groups, by colour"),
    PANELS,
];

impl Kind {
    /// Box plot: see [`Kind::about`].
    pub const BOX: Kind = Kind(&KindSpec {
        name: "box",
        title: "Box plot",
        about: "Quartiles, whiskers, and the rows beyond.",
        columns: COLUMNS,
        options: &["reference", "x_label", "y_label", "y_scale"],
        along: Role::Y,
        names: 100,
        groups: theme::GROUPS,
        marks: 100_000_000,
        draw,
        draw_text: None,
    });
}

impl Kind {
    /// Violin plot: see [`Kind::about`].
    pub const VIOLIN: Kind = Kind(&KindSpec {
        name: "violin",
        title: "Violin plot",
        about: "Densities, with the quartiles within.",
        columns: COLUMNS,
        options: &["reference", "x_label", "y_label", "y_scale"],
        along: Role::Y,
        names: 100,
        groups: theme::GROUPS,
        marks: 100_000_000,
        draw,
        draw_text: None,
    });
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
    let range = Range::of(sheet.table.rows.iter().map(|r| r.y), &anchors(sheet), scale);
    // In print, violins differ by their outlines and boxes by their fills.
    let printed = sheet.look.theme == Theme::Print && sheet.spec.kind == Kind::VIOLIN;
    let key = if printed { Key::Line } else { Key::Bar };
    let panels = sheet.panels(&slots.plan(sheet, range, Some(key)))?;
    for panel in &panels {
        if let Some(value) = sheet.spec.reference {
            reference(sheet, panel, value, slots.lying, "4 3");
        }
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
    let mut found = std::collections::BTreeMap::<_, Vec<f64>>::new();
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
        sheet.svg.open("interval");
        sheet.svg.rect(area, Fill::solid(sheet.look.ink), None);
        sheet.svg.close();
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
        sheet.svg.open("whisker");
        sheet.svg.line(slots.point(slot, at(from)), slots.point(slot, at(to)), ink);
        let cap = width * 0.22;
        sheet.svg.line(slots.point(slot - cap, at(to)), slots.point(slot + cap, at(to)), ink);
        sheet.svg.close();
    }
    sheet.svg.open("quartiles");
    let area = slots.area(slot, width, at(q.q1), at(q.q3));
    sheet.svg.rect(area, Fill::solid(sheet.look.ground), None);
    sheet.look.bar(&mut sheet.svg, area, group.group, 0.45);
    sheet.svg.close();
    median(sheet, slots, panel, group, (width * 0.18).clamp(2.5, 5.0));
    sheet.svg.open("median");
    let (a, b) = (
        slots.point(slot - width / 2.0, at(q.median)),
        slots.point(slot + width / 2.0, at(q.median)),
    );
    sheet.svg.line(a, b, Stroke::solid(sheet.look.ink, 2.0));
    sheet.svg.close();
    let beyond = group.sorted.iter().filter(|v| **v < q.whiskers.0 || **v > q.whiskers.1);
    let mut drawn = BTreeSet::new();
    sheet.svg.open("beyond");
    for value in beyond {
        let place = at(*value);
        // Points that cover each other are one.
        if drawn.insert((place * 4.0).round() as i64) {
            let stroke = Stroke::solid(sheet.look.color(group.group), 0.9);
            sheet.svg.circle(slots.point(slot, place), 1.7, Fill::NONE, Some(stroke));
        }
    }
    sheet.svg.close();
    sheet.svg.close();
}

fn draw_violins(sheet: &mut Sheet<'_>, slots: &Slots, panels: &[Panel], groups: &[Group]) {
    let log = sheet.spec.y_scale == Some(crate::spec::Scale::Log);
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
            let color = sheet.look.color(group.group);
            let opacity = if sheet.look.theme == Theme::Print { 0.16 } else { 0.4 };
            let stroke = sheet.look.stroke(group.group, 1.1);
            sheet.svg.open("density");
            sheet.svg.path(&outline, true, Fill { color, opacity }, Some(stroke));
            sheet.svg.close();
        }
        let (low, high) = (at(group.quartiles.q1), at(group.quartiles.q3));
        let stroke = Stroke::solid(sheet.look.ink, 1.2);
        sheet.svg.open("quartiles");
        sheet.svg.line(slots.point(slot, low), slots.point(slot, high), stroke);
        sheet.svg.close();
        median(sheet, slots, panel, group, 4.0);
        let place = slots.point(slot, at(group.quartiles.median));
        sheet.svg.open("median");
        let outline = Stroke::solid(sheet.look.ink, 1.2);
        sheet.svg.circle(place, 2.8, Fill::solid(sheet.look.ground), Some(outline));
        sheet.svg.close();
        sheet.svg.close();
    }
}

fn facts(sheet: &mut Sheet<'_>, groups: &[Group]) {
    sheet.facts.push(format!("Range {}.", span(sheet.table.rows.iter().map(|r| r.y))));
    let each = groups.iter().take(24).map(|g| {
        let names = [
            sheet.table.facets.get(g.panel),
            sheet.table.xs.get(g.name),
            sheet.table.colors.get(g.group),
        ];
        let names: Vec<&str> = names.into_iter().flatten().map(String::as_str).collect();
        let name = if names.is_empty() { "all".to_string() } else { names.join(", ") };
        let q = g.quartiles;
        let (n, median, q1, q3) =
            (count(g.sorted.len()), number(q.median), number(q.q1), number(q.q3));
        format!("{name}: median {median}, quartiles {q1} and {q3}, n = {n}.")
    });
    let each: Vec<String> = each.collect();
    sheet.facts.extend(each);
}
