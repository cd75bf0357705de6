//! Histograms and empirical distribution functions.

use std::fmt::Write as _;

use super::{own_reference, span};
use crate::error::FigureError;
use crate::rows::Row;
use crate::scale::{Range, count, number};
use crate::sheet::{Dim, Key, Plan, Sheet};
use crate::spec::{GROUPS, Kind, PANELS, Role, Scale, Takes, Theme, needs};
use crate::stats;
use crate::svg::{Area, Fill, Point, Short, Stroke};
use crate::terminal;

impl Kind {
    /// Histogram: see [`Kind::about`].
    pub const HISTOGRAM: Kind = Kind {
        name: "histogram",
        title: "Histogram",
        about: "Counts of a number in bins.",
        columns: &[needs(Role::X, Takes::Number, "the number that is counted"), GROUPS, PANELS],
        options: &["bins", "reference", "x_label", "y_label", "x_scale"],
        along: Role::X,
        draw: histogram,
        draw_text: Some(terminal::histogram),
        ..Kind::BASE
    };

    /// Empirical cumulative distribution function: see [`Kind::about`].
    pub const ECDF: Kind = Kind {
        name: "ecdf",
        title: "Empirical cumulative distribution function",
        about: "Cumulative distributions.",
        columns: &[needs(Role::X, Takes::Number, "the number that is accumulated"), GROUPS, PANELS],
        options: &["reference", "x_label", "y_label", "x_scale"],
        along: Role::X,
        draw: ecdf,
        ..Kind::BASE
    };
}

/// The sorted numbers of rows.
fn sorted<'a>(rows: impl Iterator<Item = &'a Row>) -> Vec<f64> {
    let mut values: Vec<f64> = rows.map(|r| r.x).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The sorted numbers of a panel's group.
fn of_group(sheet: &Sheet<'_>, panel: usize, group: usize) -> Vec<f64> {
    sorted(sheet.table.in_panel(panel).filter(|r| r.color.unwrap_or(0) == group))
}

fn plan(sheet: &Sheet<'_>, x: Range, y: Range, y_label: &str) -> Plan {
    let height = |w: f64| (w * 0.6).clamp(110.0, 290.0);
    Plan {
        x_label: sheet.axis_label(Role::X),
        y_label: Some(sheet.spec.y_label.clone().unwrap_or_else(|| y_label.to_string())),
        key: Some(Key::Line),
        ..Plan::new(Dim::Number(x), Dim::Number(y), 130.0, height)
    }
}

/// The range of the numbers of each group, for who does not see them.
fn facts(sheet: &mut Sheet<'_>) {
    let rows = || sheet.table.rows.iter();
    let median = |values: Vec<f64>| number(stats::quantile(&values, 0.5));
    let mut words = format!("Range {}", span(rows().map(|r| r.x)));
    for (group, name) in sheet.table.colors.iter().enumerate() {
        let values = sorted(rows().filter(|r| r.color == Some(group)));
        words.push_str(&format!("; median of {name}: {}", median(values)));
    }
    if sheet.table.colors.is_empty() {
        words.push_str(&format!("; median {}", median(sorted(rows()))));
    }
    sheet.facts.push(format!("{words}."));
}

/// Counts in the bins of [`bins`].
pub(crate) struct Bins {
    /// The edges, on the scale of the numbers.
    pub(crate) edges: Vec<f64>,
    /// By panel, then by group, then by bin.
    pub(crate) counts: Vec<Vec<Vec<usize>>>,
}

/// The bins that all panels share, and the counts of each panel and group in them. On a logarithmic
/// axis the bins have equal widths there.
pub(crate) fn bins(sheet: &Sheet<'_>) -> Bins {
    let log = sheet.spec.x_scale == Some(Scale::Log);
    let on_scale = |v: f64| if log { v.ln() } else { v };
    let all: Vec<f64> = sorted(sheet.table.rows.iter()).into_iter().map(on_scale).collect();
    let edges = stats::edges(&all, sheet.spec.bins);
    let count = |panel, group| {
        let values: Vec<f64> = of_group(sheet, panel, group).into_iter().map(on_scale).collect();
        stats::counts(&values, &edges)
    };
    let groups = sheet.table.groups();
    let counts =
        (0..sheet.table.panels()).map(|p| (0..groups).map(|g| count(p, g)).collect()).collect();
    let edges = edges.iter().map(|e| if log { e.exp() } else { *e }).collect();
    Bins { edges, counts }
}

fn histogram(sheet: &mut Sheet<'_>) -> Result<(), FigureError> {
    let Bins { edges, counts } = bins(sheet);
    let most = counts.iter().flatten().flatten().copied().max().unwrap_or(0) as f64;
    let scale = sheet.spec.x_scale.unwrap_or_default();
    let x = Range::of(edges.iter().copied(), sheet.spec.reference.as_slice(), scale);
    let y = Range::of([most].into_iter(), &[0.0], Scale::Linear);
    let panels = sheet.panels(&plan(sheet, x, y, "rows"))?;
    for (panel, groups) in panels.iter().zip(&counts) {
        for (group, bins) in groups.iter().enumerate() {
            sheet.svg.open("bins");
            match sheet.table.colors.is_empty() {
                true => {
                    for (pair, n) in edges.windows(2).zip(bins).filter(|(_, n)| **n > 0) {
                        let upper_left = (panel.x(pair[0]), panel.y(*n as f64));
                        let area = Area::between(upper_left, (panel.x(pair[1]), panel.y(0.0)));
                        let title =
                            format!("{} to {}: {}", number(pair[0]), number(pair[1]), count(*n));
                        sheet.svg.open_titled("bin", &title);
                        if sheet.look.theme == Theme::Print {
                            sheet.look.bar(&mut sheet.svg, area, 0, 1.0);
                        } else {
                            let fill = Fill { color: sheet.look.color(0), opacity: 0.8 };
                            let outline = Stroke::solid(sheet.look.ground, 0.6);
                            sheet.svg.rect(area, fill, Some(outline));
                        }
                        sheet.svg.close();
                    }
                }
                false => {
                    let mut points = vec![(panel.x(edges[0]), panel.y(0.0))];
                    for (pair, n) in edges.windows(2).zip(bins) {
                        let y = panel.y(*n as f64);
                        points.extend([(panel.x(pair[0]), y), (panel.x(pair[1]), y)]);
                    }
                    points.push((panel.x(edges[bins.len()]), panel.y(0.0)));
                    let opacity = if sheet.look.theme == Theme::Print { 0.08 } else { 0.2 };
                    let fill = Fill { color: sheet.look.color(group), opacity };
                    let stroke = sheet.look.stroke(group, 1.4);
                    sheet.svg.path(&points, true, fill, Some(stroke));
                }
            }
            sheet.svg.close();
        }
        own_reference(sheet, panel, true);
    }
    let width = match scale {
        Scale::Linear => format!("of width {}", number(edges[1] - edges[0])),
        Scale::Log => {
            format!("each {} times as high as the one before", number(edges[1] / edges[0]))
        }
    };
    let bins = edges.len() - 1;
    sheet.notes.push(format!("{bins} {} {width}.", if bins == 1 { "bin" } else { "bins" }));
    facts(sheet);
    Ok(())
}

fn ecdf(sheet: &mut Sheet<'_>) -> Result<(), FigureError> {
    let scale = sheet.spec.x_scale.unwrap_or_default();
    let x = Range::of(sheet.table.rows.iter().map(|r| r.x), sheet.spec.reference.as_slice(), scale);
    let y = Range::of([0.0, 1.0].into_iter(), &[0.0, 1.0], Scale::Linear);
    let panels = sheet.panels(&plan(sheet, x, y, "share of rows"))?;
    for (i, panel) in panels.iter().enumerate() {
        for group in 0..sheet.table.groups() {
            let values = of_group(sheet, i, group);
            if values.is_empty() {
                continue;
            }
            let steps = steps(&values, |v| panel.x(v));
            let band = stats::ecdf_band(values.len());
            let (left, right) = (panel.area.x, panel.area.right());
            let line = |shift: f64| {
                let y = |share: f64| panel.y((share + shift).clamp(0.0, 1.0));
                let mut points = vec![(left, y(0.0))];
                let mut before = 0.0;
                for (place, share) in &steps {
                    points.extend([(*place, y(before)), (*place, y(*share))]);
                    before = *share;
                }
                points.push((right, y(1.0)));
                points
            };
            let mut around = line(band);
            around.extend(line(-band).into_iter().rev());
            // Of many bands none may hide the others.
            let opacity = 0.13_f64.min(0.4 / sheet.table.groups() as f64);
            let fill = Fill { color: sheet.look.color(group), opacity };
            let stroke = Some(sheet.look.stroke(group, 1.5));
            let (band, steps) = (orthogonal(&around, true), orthogonal(&line(0.0), false));
            sheet.svg.group("band", |svg| svg.raw_path(&band, fill, None));
            sheet.svg.group("steps", |svg| svg.raw_path(&steps, Fill::NONE, stroke));
        }
        own_reference(sheet, panel, true);
    }
    let note = "Bands: 95 %, for the whole function (Dvoretzky–Kiefer–Wolfowitz).";
    sheet.notes.push(note.to_string());
    facts(sheet);
    Ok(())
}

/// The steps of a distribution function: places and the share up to each. Steps that lie within a
/// third of a pixel are one.
fn steps(sorted: &[f64], place: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    let n = sorted.len() as f64;
    let mut steps: Vec<(f64, f64)> = Vec::new();
    for (i, value) in sorted.iter().enumerate() {
        let (at, share) = (place(*value), (i + 1) as f64 / n);
        match steps.last_mut() {
            Some(last) if at - last.0 < 0.33 => last.1 = share,
            _ => steps.push((at, share)),
        }
    }
    steps
}

/// A path of lines that are level or upright: half the bytes of others.
fn orthogonal(points: &[Point], closed: bool) -> String {
    let mut d = String::new();
    let mut last = (f64::NAN, f64::NAN);
    for (x, y) in points {
        let _ = match (*x == last.0, *y == last.1) {
            (true, true) => Ok(()),
            (true, false) => write!(d, "V{}", Short(*y)),
            (false, true) => write!(d, "H{}", Short(*x)),
            (false, false) => {
                let letter = if d.is_empty() { 'M' } else { 'L' };
                write!(d, "{letter}{} {}", Short(*x), Short(*y))
            }
        };
        last = (*x, *y);
    }
    if closed {
        d.push('Z');
    }
    d
}
