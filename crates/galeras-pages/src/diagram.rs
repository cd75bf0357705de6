//! The graph of the steps as a picture whose boxes lead to panels, and the panels.

use minijinja::{Value, context};

use crate::error::PageError;
use crate::markdown::markdown;
use crate::model::{AssertionOutcome, PortPanel, StepBox, StepCondition, StepDiagram};
use crate::number;
use crate::parts::{Parts, step_id};
use crate::statistics;
use crate::table::table;
use crate::templates::render;
use crate::text::Markup;

/// The width of a character of a label, in the unit of the diagram, at 13 and 11 pixels.
const NAME_CHAR: f64 = 7.4;
const SMALL_CHAR: f64 = 6.2;

/// The picture with a panel for each step. Call [`announce`] before what links to panels is made.
///
/// # Errors
/// The template does not fit, which is a mistake of this crate.
pub fn diagram(parts: &mut Parts, of: &StepDiagram) -> Result<Markup, PageError> {
    announce(parts, of);
    let limit = parts.limits.panels;
    let shown = parts.first(&of.steps, limit, "Panels of steps");
    let mut panels = Vec::new();
    for step in shown {
        panels.push(Value::from(panel(parts, step)?));
    }
    let boxes: Vec<Value> = of.steps.iter().map(|step| step_box(parts, step)).collect();
    let arrows: Vec<Value> = of
        .arrows
        .iter()
        .filter_map(|arrow| {
            let path = path(&arrow.points)?;
            Some(context! { path => path, from => step_id(&arrow.from), to => step_id(&arrow.to), port => &arrow.port })
        })
        .collect();
    render(
        "diagram.html",
        context! {
            id => parts.id("diagram"),
            width => place(of.width.max(1.0)),
            height => place(of.height.max(1.0)),
            boxes => boxes,
            arrows => arrows,
            panels => panels,
            count => of.steps.len(),
        },
    )
}

/// Lets names of these steps be links to their panels.
pub(crate) fn announce(parts: &mut Parts, of: &StepDiagram) {
    let limit = parts.limits.panels;
    parts.panels.extend(of.steps.iter().take(limit).map(|step| step.name.clone()));
}

fn step_box(parts: &Parts, step: &StepBox) -> Value {
    let width = step.width;
    let rows = step.rows.map(|rows| format!(" · {} rows", number::count(rows)));
    let below = format!("{}{}", step.operator, rows.unwrap_or_default());
    context! {
        id => step_id(&step.name),
        has_panel => parts.panels.contains(&step.name),
        x => place(step.x),
        y => place(step.y),
        width => place(width),
        height => place(step.height),
        text_x => place(step.x + 12.0),
        name_y => place(step.y + step.height / 2.0 - 3.0),
        small_y => place(step.y + step.height / 2.0 + 13.0),
        name => &step.name,
        short => fitting(&step.name, (width - 22.0) / NAME_CHAR),
        below => fitting(&below, (width - 22.0) / SMALL_CHAR),
        condition => condition(step.state),
        class => class(step.state),
    }
}

fn panel(parts: &mut Parts, step: &StepBox) -> Result<Markup, PageError> {
    let mut ports = Vec::new();
    for item in &step.ports {
        ports.push(port(parts, item)?);
    }
    let tests: Vec<Value> = step.assertions.iter().map(test).collect();
    render(
        "step.html",
        context! {
            id => step_id(&step.name),
            name => &step.name,
            operator => &step.operator,
            description => Value::from(markdown(&step.description, 3)),
            arguments => &step.arguments,
            arguments_id => parts.id("arguments"),
            condition => condition(step.state),
            class => class(step.state),
            reason => &step.reason,
            seconds => step.seconds.map(number::seconds),
            rows => step.rows.map(number::count),
            digest => &step.digest,
            ports => ports,
            tests => tests,
        },
    )
}

fn port(parts: &mut Parts, port: &PortPanel) -> Result<Value, PageError> {
    let limit = parts.limits.columns;
    let columns: Vec<Value> =
        port.columns.iter().take(limit).map(|column| statistics::column(parts, column)).collect();
    let first_rows = match &port.first_rows {
        Some(block) if !block.rows.is_empty() => {
            let before = parts.limits.table_rows;
            parts.limits.table_rows = parts.limits.first_rows;
            let html = table(parts, block);
            parts.limits.table_rows = before;
            Some(Value::from(html?))
        }
        _ => None,
    };
    Ok(context! {
        name => &port.name,
        rows => port.rows.map(number::count),
        digest => &port.digest,
        more_columns => port.columns.len() - columns.len(),
        has_statistics => port.columns.iter().any(|column| column.statistics.is_some()),
        columns => columns,
        first_rows => first_rows,
    })
}

fn test(outcome: &AssertionOutcome) -> Value {
    let (class, word) = match (outcome.passed, outcome.warns) {
        (Some(true), _) => ("passed", "passed"),
        (Some(false), true) => ("warned", "failed, as a warning"),
        (Some(false), false) => ("failed", "failed"),
        (None, _) => ("waiting", "not run"),
    };
    context! { test => &outcome.test, class => class, word => word, detail => &outcome.detail }
}

fn condition(state: StepCondition) -> &'static str {
    match state {
        StepCondition::Stored => "computed",
        StepCondition::Running => "running",
        StepCondition::Failed => "failed",
        StepCondition::Skipped => "skipped",
        StepCondition::Missing => "not computed yet",
    }
}

fn class(state: StepCondition) -> &'static str {
    match state {
        StepCondition::Stored => "stored",
        StepCondition::Running => "running",
        StepCondition::Failed => "failed",
        StepCondition::Skipped => "skipped",
        StepCondition::Missing => "missing",
    }
}

/// A position for SVG. What is not finite is 0.
fn place(value: f64) -> String {
    if value.is_finite() { format!("{value:.1}") } else { "0".to_string() }
}

/// A line through the points, with corners rounded by curves through their middles.
fn path(points: &[[f64; 2]]) -> Option<String> {
    if points.len() < 2 || points.iter().flatten().any(|value| !value.is_finite()) {
        return None;
    }
    let point = |[x, y]: [f64; 2]| format!("{x:.1} {y:.1}");
    let middle = |a: [f64; 2], b: [f64; 2]| [(a[0] + b[0]) / 2.0, (a[1] + b[1]) / 2.0];
    let mut out = format!("M{}", point(points[0]));
    if let [from, to] = points {
        // A gentle curve that leaves and enters along the longer side.
        let across = (to[0] - from[0]).abs() > (to[1] - from[1]).abs();
        let half = middle(*from, *to);
        let (first, second) = match across {
            true => ([half[0], from[1]], [half[0], to[1]]),
            false => ([from[0], half[1]], [to[0], half[1]]),
        };
        out.push_str(&format!("C{} {} {}", point(first), point(second), point(*to)));
        return Some(out);
    }
    for window in points.windows(3) {
        let [_, corner, next] = window else { continue };
        let is_last = next == &points[points.len() - 1];
        let end = if is_last { *next } else { middle(*corner, *next) };
        out.push_str(&format!("Q{} {}", point(*corner), point(end)));
    }
    Some(out)
}

/// As much of a text as fits, with an ellipsis.
fn fitting(text: &str, characters: f64) -> String {
    let room = characters.clamp(1.0, 200.0) as usize;
    if text.chars().count() <= room {
        return text.to_string();
    }
    let mut short: String = text.chars().take(room.saturating_sub(1)).collect();
    short.push('…');
    short
}
