//! The graph of the steps as a picture whose boxes link to panels, and the panels, with the values
//! of columns in short: numbers, a small histogram, the most frequent values.

use std::collections::HashMap;

use galeras_figures::{Diagram, DiagramEdge, DiagramNode, Drawing};
use minijinja::value::Serde;
use minijinja::{Value, context};
use serde_json::Value as Json;

use crate::code::code;
use crate::model::{
    AssertionOutcome, CodeLanguage, ColumnStatistics, Labelled, PortPanel, StepArrow, StepBox,
    StepCondition, StepDiagram, TableBlock, TableColumn, ValueBin,
};
use crate::number::{count, number, seconds};
use crate::page::PageError;
use crate::parts::{Parts, step_id};
use crate::table::table;
use crate::templates::render;
use crate::text::{Markup, escape, named};

/// Returns the picture with a panel for each step, to which [`Parts::step_name`] links from then on.
pub(crate) fn diagram(parts: &mut Parts, of: &StepDiagram) -> Result<Markup, PageError> {
    announce(parts, of);
    let mut panels: Vec<Value> = Vec::new();
    for step in parts.first(&of.steps, parts.limits.panels, "Panels of steps") {
        panels.push(panel(parts, step)?.into());
    }
    let (mut list, mut drawing) = (None, None);
    if of.steps.len() > parts.limits.boxes {
        list = Some(table(parts, &listed(of))?);
    } else {
        let Drawing { marks, width, height } = drawn(parts, of).draw();
        let marks = Markup(marks);
        drawing = Some(context! { width => width.ceil(), height => height.ceil(), marks => marks });
    }
    render(
        "diagram.html",
        context! {
            id => parts.id("diagram"),
            drawing => drawing,
            panels => panels,
            list => list,
            count => of.steps.len(),
        },
    )
}

/// The steps as a table, for a graph that is too large to read as a picture.
fn listed(of: &StepDiagram) -> TableBlock {
    let column = |name: &str, data_type: &str, unit: &str| TableColumn {
        name: name.to_string(),
        data_type: data_type.to_string(),
        unit: unit.to_string(),
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
            column("step", "utf8!", ""),
            column("operator", "utf8!", ""),
            column("state", "utf8!", ""),
            column("rows", "uint64", ""),
            column("seconds", "float64", "s"),
        ],
        rows: of.steps.iter().map(row).collect(),
        file_name: "steps".to_string(),
        ..TableBlock::default()
    }
}

/// Makes the names of these steps links to their panels.
pub(crate) fn announce(parts: &mut Parts, of: &StepDiagram) {
    let steps = of.steps.iter().take(parts.limits.panels);
    parts.panels.extend(steps.map(|step| step.name.clone()));
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
    let rows = step.rows.map(|rows| format!(" · {} rows", count(rows)));
    let name = named(&step.name);
    let caption = format!("{}{}", named(&step.operator), rows.unwrap_or_default());
    let texts = [name.as_str(), &caption, condition(step.state)];
    let texts: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    DiagramNode {
        description: texts.join(", "),
        class: Value::from(Serde(step.state)).to_string(),
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
    let mut arguments = Markup::default();
    if !step.arguments.is_empty() {
        let text = Labelled { name: "Arguments".to_string(), value: step.arguments.clone() };
        arguments = code(parts, &text, CodeLanguage::Plain)?;
    }
    render(
        "step.html",
        context! {
            id => step_id(&step.name),
            name => &step.name,
            operator => &step.operator,
            arguments => arguments,
            condition => condition(step.state),
            class => Serde(step.state),
            reason => &step.reason,
            seconds => step.seconds.map(seconds),
            rows => step.rows.map(count),
            digest => &step.digest,
            ports => ports,
            tests => step.assertions.iter().map(test).collect::<Value>(),
        },
    )
}

fn port(parts: &mut Parts, port: &PortPanel) -> Result<Value, PageError> {
    let columns = port.columns.iter().take(parts.limits.columns);
    let columns: Vec<Value> = columns.map(|column| column_values(parts, column)).collect();
    let first_rows = match &port.first_rows {
        Some(block) if !block.rows.is_empty() => {
            let before = parts.limits.table_rows;
            parts.limits.table_rows = parts.limits.first_rows;
            let html = table(parts, block);
            parts.limits.table_rows = before;
            Some(html?)
        }
        _ => None,
    };
    Ok(context! {
        name => &port.name,
        rows => port.rows.map(count),
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
        StepCondition::Missing => "not computed yet",
    }
}

/// The size of a histogram, in CSS pixels.
const WIDTH: f64 = 120.0;
const HEIGHT: f64 = 28.0;

/// A column for the template of a step.
fn column_values(parts: &Parts, column: &TableColumn) -> Value {
    context! {
        name => parts.label(&column.name),
        data_type => &column.data_type,
        unit => &column.unit,
        description => parts.label(&column.description),
        statistics => column.statistics.as_ref().map(|statistics| values(parts, column, statistics)),
    }
}

fn values(parts: &Parts, column: &TableColumn, of: &ColumnStatistics) -> Value {
    let about = if of.distinct_estimated { "about " } else { "" };
    let quartiles = of.median.map(|median| match (of.q1, of.q3) {
        (Some(q1), Some(q3)) => format!("{}, {}, {}", number(q1), number(median), number(q3)),
        _ => number(median),
    });
    let spread = of.mean.map(|mean| match of.std {
        Some(std) => format!("{} ± {}", number(mean), number(std)),
        None => number(mean),
    });
    let present = of.count.saturating_sub(of.nulls).max(1);
    let top = of.top.iter().take(5).map(|value| {
        let share = value.count as f64 / present as f64 * 100.0;
        let width = format!("{:.1}", share.clamp(0.0, 100.0));
        context! { value => parts.label(&value.value), count => count(value.count), width => width }
    });
    context! {
        nulls => (of.nulls > 0).then(|| count(of.nulls)),
        distinct => of.distinct.map(|distinct| format!("{about}{}", count(distinct))),
        min => end(parts, &of.min),
        max => end(parts, &of.max),
        quartiles => quartiles,
        spread => spread,
        histogram => histogram(&column.name, &of.bins),
        top => top.collect::<Value>(),
    }
}

fn end(parts: &Parts, value: &Json) -> Option<Markup> {
    match value {
        Json::Null => None,
        Json::Number(_) => value.as_f64().map(|value| Markup::from_text(&number(value))),
        Json::String(text) => Some(parts.label(text)),
        other => Some(parts.label(&other.to_string())),
    }
}

/// Bars over the range of the values. A bar with a value is at least one pixel high.
fn histogram(name: &str, bins: &[ValueBin]) -> Option<Markup> {
    let low = bins.first()?.low;
    let high = bins.last()?.high;
    let most = bins.iter().map(|bin| bin.count).max().filter(|most| *most > 0)?;
    let range = high - low;
    if !range.is_finite() || range < 0.0 {
        return None;
    }
    let mut bars = String::new();
    for (at, bin) in bins.iter().enumerate().filter(|(_, bin)| bin.count > 0) {
        let (left, right) = match range > 0.0 {
            true => ((bin.low - low) / range, (bin.high - low) / range),
            false => (at as f64 / bins.len() as f64, (at + 1) as f64 / bins.len() as f64),
        };
        let height = (bin.count as f64 / most as f64 * HEIGHT).max(1.0);
        bars.push_str(&format!(
            "M{:.1} {HEIGHT}v{:.1}h{:.1}V{HEIGHT}z",
            left * WIDTH,
            -height,
            ((right - left) * WIDTH - 0.5).max(0.5)
        ));
    }
    let label = format!(
        "Histogram of {name} from {} to {}; the fullest of {} bars has {}",
        number(low),
        number(high),
        bins.len(),
        count(most)
    );
    Some(Markup(format!(
        "<svg class=\"histogram\" role=\"img\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
         height=\"{HEIGHT}\" aria-label=\"{}\"><path d=\"{bars}\"/></svg>",
        escape(&label)
    )))
}
