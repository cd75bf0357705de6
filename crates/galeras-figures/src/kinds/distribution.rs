//! Histograms and empirical distribution functions.

use super::{anchors, reference, span};
use crate::error::FigureError;
use crate::kind::{Kind, KindSpec};
use crate::scale::{Range, count, number};
use crate::sheet::{Dim, Key, Plan, Sheet};
use crate::spec::{GROUPS, PANELS, Role, Scale, Takes, Theme, needs};
use crate::stats;
use crate::svg::{Area, Fill, Short, Stroke};
use crate::terminal;
use crate::theme;

impl Kind {
    /// Histogram: see [`Kind::about`].
    pub const HISTOGRAM: Kind = Kind(&KindSpec {
        name: "histogram",
        title: "Histogram",
        about: "Counts of a number in bins.",
        columns: &[needs(Role::X, Takes::Number, "the number that is counted"), GROUPS, PANELS],
        options: &["bins", "reference", "x_label", "y_label", "x_scale"],
        along: Role::X,
        names: 0,
        groups: theme::GROUPS,
        marks: 100_000_000,
        draw: histogram,
        draw_text: Some(terminal::histogram),
    });
}

impl Kind {
    /// Empirical cumulative distribution function: see [`Kind::about`].
    pub const ECDF: Kind = Kind(&KindSpec {
        name: "ecdf",
        title: "Empirical cumulative distribution function",
        about: "Cumulative distributions.",
        columns: &[needs(Role::X, Takes::Number, "the number that is accumulated"), GROUPS, PANELS],
        options: &["reference", "x_label", "y_label", "x_scale"],
        along: Role::X,
        names: 0,
        groups: theme::GROUPS,
        marks: 100_000_000,
        draw: ecdf,
        draw_text: None,
    });
}

/// The sorted numbers of a panel's group.
fn sorted(sheet: &Sheet<'_>, panel: usize, group: usize) -> Vec<f64> {
    let rows = sheet.table.in_panel(panel).filter(|r| r.color.unwrap_or(0) == group);
    let mut values: Vec<f64> = rows.map(|r| r.x).collect();
    values.sort_by(f64::total_cmp);
    values
}

fn plan(sheet: &Sheet<'_>, x: Range, y: Range, y_label: &str, key: Key) -> Plan {
    Plan {
        x: Dim::Number(x),
        y: Dim::Number(y),
        x_label: sheet.axis_label(Role::X),
        y_label: Some(sheet.spec.y_label.clone().unwrap_or_else(|| y_label.to_string())),
        key: Some(key),
        min_width: 130.0,
        panel_height: Box::new(|w| (w * 0.6).clamp(110.0, 290.0)),
        beside: 0.0,
        below: 0.0,
    }
}

/// The range of the numbers of each group, for who does not see them.
fn facts(sheet: &mut Sheet<'_>) {
    let mut words = format!("Range {}", span(sheet.table.rows.iter().map(|r| r.x)));
    for (group, name) in sheet.table.colors.iter().enumerate() {
        let mut values: Vec<f64> =
            sheet.table.rows.iter().filter(|r| r.color == Some(group)).map(|r| r.x).collect();
        values.sort_by(f64::total_cmp);
        words.push_str(&format!("; median of {name}: {}", number(stats::quantile(&values, 0.5))));
    }
    if sheet.table.colors.is_empty() {
        let values = {
            let mut all: Vec<f64> = sheet.table.rows.iter().map(|r| r.x).collect();
            all.sort_by(f64::total_cmp);
            all
        };
        words.push_str(&format!("; median {}", number(stats::quantile(&values, 0.5))));
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
    let mut all: Vec<f64> = sheet.table.rows.iter().map(|r| on_scale(r.x)).collect();
    all.sort_by(f64::total_cmp);
    let edges = stats::edges(&all, sheet.spec.bins);
    let count = |panel, group| {
        let values: Vec<f64> = sorted(sheet, panel, group).into_iter().map(on_scale).collect();
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
    let x = Range::of(edges.iter().copied(), &anchors(sheet), scale);
    let y = Range::of([most].into_iter(), &[0.0], Scale::Linear);
    let panels = sheet.panels(&plan(sheet, x, y, "rows", Key::Line))?;
    let many = !sheet.table.colors.is_empty();
    for (panel, groups) in panels.iter().zip(&counts) {
        for (group, bins) in groups.iter().enumerate() {
            sheet.svg.open("bins");
            match many {
                false => {
                    for (pair, n) in edges.windows(2).zip(bins).filter(|(_, n)| **n > 0) {
                        let (left, right) = (panel.x(pair[0]), panel.x(pair[1]));
                        let area = Area::between(left, panel.y(*n as f64), right, panel.y(0.0));
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
                true => {
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
        if let Some(value) = sheet.spec.reference {
            reference(sheet, panel, value, true, "4 3");
        }
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
    let x = Range::of(sheet.table.rows.iter().map(|r| r.x), &anchors(sheet), scale);
    let y = Range::of([0.0, 1.0].into_iter(), &[0.0, 1.0], Scale::Linear);
    let panels = sheet.panels(&plan(sheet, x, y, "share of rows", Key::Line))?;
    for (i, panel) in panels.iter().enumerate() {
        for group in 0..sheet.table.groups() {
            let values = sorted(sheet, i, group);
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
            sheet.svg.open("band");
            // Of many bands none may hide the others.
            let opacity = 0.13_f64.min(0.4 / sheet.table.groups() as f64);
            let fill = Fill { color: sheet.look.color(group), opacity };
            sheet.svg.raw_path(&orthogonal(&around, true), fill, None);
            sheet.svg.close();
            sheet.svg.open("steps");
            let stroke = sheet.look.stroke(group, 1.5);
            sheet.svg.raw_path(&orthogonal(&line(0.0), false), Fill::NONE, Some(stroke));
            sheet.svg.close();
        }
        if let Some(value) = sheet.spec.reference {
            reference(sheet, panel, value, true, "4 3");
        }
    }
    sheet
        .notes
        .push("Bands: 95 %, for the whole function (Dvoretzky–Kiefer–Wolfowitz).".to_string());
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
fn orthogonal(points: &[(f64, f64)], closed: bool) -> String {
    use std::fmt::Write as _;
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
