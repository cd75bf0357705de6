//! The graph of the steps as a picture whose boxes lead to panels, and the panels.

use minijinja::{Value, context};

use crate::code::code;
use crate::error::PageError;
use crate::markdown::prose;
use crate::model::{
    AssertionOutcome, CodeLanguage, Labelled, PortPanel, StepBox, StepCondition, StepDiagram,
    TableBlock, TableColumn,
};
use crate::number;
use crate::parts::{Parts, step_id};
use crate::statistics;
use crate::table::table;
use crate::templates::render;
use crate::text::Markup;

/// The width of a character of a label, in the unit of the diagram, at 13 and 11 pixels.
const NAME_CHAR: f64 = 7.4;
const SMALL_CHAR: f64 = 6.2;

/// The picture with a panel for each step, to which [`Parts::step_name`] links from then on.
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
    let is_drawn = of.steps.len() <= parts.limits.boxes;
    let drawn = if is_drawn { (&of.steps[..], &of.arrows[..]) } else { (&[][..], &[][..]) };
    let list = match is_drawn {
        true => None,
        false => Some(Value::from(table(parts, &listed(of))?)),
    };
    let boxes: Vec<Value> = drawn.0.iter().map(|step| step_box(parts, step)).collect();
    let arrows: Vec<Value> = drawn
        .1
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
            list => list,
            count => number::count(of.steps.len() as u64),
            is_short => of.steps.len() <= 12,
        },
    )
}

/// The steps as a table, in place of a picture in which nobody would find them.
fn listed(of: &StepDiagram) -> TableBlock {
    let column = |name: &str, data_type: &str| TableColumn {
        name: name.to_string(),
        data_type: data_type.to_string(),
        ..TableColumn::default()
    };
    let row = |step: &StepBox| {
        vec![
            step.name.as_str().into(),
            step.operator.as_str().into(),
            condition(step.state).into(),
            step.rows.into(),
            step.seconds.into(),
        ]
    };
    TableBlock {
        columns: vec![
            column("step", "utf8!"),
            column("operator", "utf8!"),
            column("state", "utf8!"),
            column("rows", "uint64"),
            TableColumn { unit: "s".to_string(), ..column("seconds", "float64") },
        ],
        rows: of.steps.iter().map(row).collect(),
        file_name: "steps".to_string(),
        ..TableBlock::default()
    }
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
    let parts_of_label = [step.name.as_str(), below.as_str(), condition(step.state)];
    let label: Vec<&str> = parts_of_label.into_iter().filter(|part| !part.is_empty()).collect();
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
        label => label.join(", "),
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
    let arguments = match step.arguments.is_empty() {
        true => None,
        false => {
            let name = "Arguments".to_string();
            let text = Labelled { name, value: step.arguments.clone() };
            Some(Value::from(code(parts, &text, CodeLanguage::Plain)?))
        }
    };
    let description = prose(parts, &step.description, 3);
    let tests: Vec<Value> = step.assertions.iter().map(test).collect();
    render(
        "step.html",
        context! {
            id => step_id(&step.name),
            name => &step.name,
            operator => &step.operator,
            description => Value::from(description),
            arguments => arguments,
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

/// A line through the points that leaves and enters each of them upright: steps flow downwards.
fn path(points: &[[f64; 2]]) -> Option<String> {
    let [[x, y], ..] = points else { return None };
    if points.len() < 2 || points.iter().flatten().any(|value| !value.is_finite()) {
        return None;
    }
    let mut out = format!("M{x:.1} {y:.1}");
    for pair in points.windows(2) {
        let [[from_x, from_y], [x, y]] = pair else { continue };
        if (from_x - x).abs() < 0.5 {
            out.push_str(&format!("L{x:.1} {y:.1}"));
        } else {
            let half = (from_y + y) / 2.0;
            out.push_str(&format!("C{from_x:.1} {half:.1} {x:.1} {half:.1} {x:.1} {y:.1}"));
        }
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
