//! The graph of the steps as a picture whose boxes link to panels, and the panels.

use std::collections::HashMap;

use galeras_figures::{Diagram, DiagramEdge, DiagramNode};
use minijinja::{Value, context};

use crate::code::code;
use crate::error::PageError;
use crate::markdown::prose;
use crate::model::{
    AssertionOutcome, CodeLanguage, Labelled, PortPanel, StepArrow, StepBox, StepCondition,
    StepDiagram, TableBlock, TableColumn,
};
use crate::number;
use crate::parts::{Parts, step_id};
use crate::statistics;
use crate::table::table;
use crate::templates::render;
use crate::text::{Markup, named};

/// Returns the picture with a panel for each step, to which [`Parts::step_name`] links from then on.
///
/// # Errors
/// The template does not fit, which is a bug in this crate.
pub fn diagram(parts: &mut Parts, of: &StepDiagram) -> Result<Markup, PageError> {
    announce(parts, of);
    let limit = parts.limits.panels;
    let shown = parts.first(&of.steps, limit, "Panels of steps");
    let mut panels = Vec::new();
    for step in shown {
        panels.push(Value::from(panel(parts, step)?));
    }
    let is_drawn = of.steps.len() <= parts.limits.boxes;
    let list = match is_drawn {
        true => None,
        false => Some(Value::from(table(parts, &listed(of))?)),
    };
    let drawing = is_drawn.then(|| drawn(parts, of).draw());
    let drawing = drawing.map(|drawing| {
        context! {
            width => drawing.width.ceil(),
            height => drawing.height.ceil(),
            marks => Value::from(Markup::from_html(drawing.marks)),
        }
    });
    render(
        "diagram.html",
        context! {
            id => parts.id("diagram"),
            drawing => drawing,
            panels => panels,
            list => list,
            count => number::count(of.steps.len() as u64),
            is_short => of.steps.len() <= 12,
        },
    )
}

/// The steps as a table, for a graph that is too large to read as a picture.
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

/// Makes the names of these steps links to their panels.
pub(crate) fn announce(parts: &mut Parts, of: &StepDiagram) {
    let limit = parts.limits.panels;
    parts.panels.extend(of.steps.iter().take(limit).map(|step| step.name.clone()));
}

fn drawn(parts: &Parts, of: &StepDiagram) -> Diagram {
    let mut places = HashMap::new();
    for (at, step) in of.steps.iter().enumerate() {
        places.entry(step.name.as_str()).or_insert(at);
    }
    let edge = |arrow: &StepArrow| {
        Some(DiagramEdge {
            from: *places.get(arrow.from.as_str())?,
            to: *places.get(arrow.to.as_str())?,
            label: (!arrow.port.is_empty()).then(|| named(&arrow.port)),
        })
    };
    Diagram {
        title: None,
        nodes: of.steps.iter().map(|step| node(parts, step)).collect(),
        edges: of.arrows.iter().filter_map(edge).collect(),
    }
}

fn node(parts: &Parts, step: &StepBox) -> DiagramNode {
    let rows = step.rows.map(|rows| format!(" · {} rows", number::count(rows)));
    let name = named(&step.name);
    let caption = format!("{}{}", named(&step.operator), rows.unwrap_or_default());
    let texts = [name.as_str(), &caption, condition(step.state)];
    let texts: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    DiagramNode {
        description: texts.join(", "),
        class: class(step.state).to_string(),
        target: parts.panels.contains(&step.name).then(|| step_id(&step.name)),
        name,
        caption,
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
