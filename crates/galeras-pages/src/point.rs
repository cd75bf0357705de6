//! Data points: answers next to references, with scores, prompts, and the trace to the commit.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::{Value, context};
use serde_json::json;

use crate::code::{code, comparison};
use crate::error::PageError;
use crate::markdown::{markdown, safe_address};
use crate::model::{CodeLanguage, DataPoint, DataPointBlock, Labelled};
use crate::number;
use crate::parts::Parts;
use crate::templates::render;
use crate::text::Markup;

/// Data points with their filters.
///
/// # Errors
/// The template does not fit, which is a mistake of this crate.
pub fn data_points(parts: &mut Parts, block: &DataPointBlock) -> Result<Markup, PageError> {
    let limit = parts.limits.points;
    let shown = parts.first(&block.points, limit, &format!("Data points of “{}”", block.title));
    let mut groups: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut metrics: Vec<&str> = Vec::new();
    for point in shown {
        for group in &point.groups {
            groups.entry(&group.name).or_default().insert(&group.value);
        }
        for score in &point.scores {
            if !metrics.contains(&score.metric.as_str()) {
                metrics.push(&score.metric);
            }
        }
    }
    // A group with another value for each data point is not a filter.
    let groups: Vec<Value> = groups
        .into_iter()
        .filter(|(_, values)| (2..=parts.limits.entries.min(100)).contains(&values.len()))
        .map(|(name, values)| {
            let values: Vec<Value> = values.into_iter().map(Value::from).collect();
            context! { name => name, values => values }
        })
        .collect();
    let mut points = Vec::new();
    for point in shown {
        points.push(Value::from(foldable(parts, point)?));
    }
    let total = block.total.unwrap_or(0).max(block.points.len() as u64);
    render(
        "points.html",
        context! {
            id => parts.id("points"),
            caption => Value::from(markdown(&block.caption, 2)),
            total => (total > points.len() as u64).then(|| number::count(total)),
            shown => number::count(points.len() as u64),
            choice => &block.choice,
            source => if block.source.is_empty() { None } else { Some(Value::from(parts.step_name(&block.source))) },
            groups => groups,
            metrics => metrics.into_iter().map(Value::from).collect::<Vec<Value>>(),
            points => points,
        },
    )
}

/// One data point as the content of a page, without a heading.
///
/// # Errors
/// The template does not fit, which is a mistake of this crate.
pub fn data_point(parts: &mut Parts, point: &DataPoint) -> Result<Markup, PageError> {
    let labelled =
        |name: &str, value: &str| Labelled { name: name.to_string(), value: value.to_string() };
    let mut body = Markup::default();
    match (&point.reference, &point.answer) {
        (Some(reference), Some(answer)) => body.push(&comparison(
            parts,
            &labelled("Reference", reference),
            &labelled("Answer", answer),
            point.language,
        )?),
        (Some(reference), None) => {
            body.push(&code(parts, &labelled("Reference", reference), point.language)?);
        }
        (None, Some(answer)) => {
            body.push(&code(parts, &labelled("Answer", answer), point.language)?);
        }
        (None, None) => {}
    }
    let mut prompt = Markup::default();
    for message in &point.prompt {
        let text = labelled(&message.role, &message.content);
        prompt.push(&code(parts, &text, CodeLanguage::Plain)?);
    }
    let mut texts = Markup::default();
    for text in &point.texts {
        texts.push(&code(parts, text, point.language)?);
    }
    let trace: Vec<Value> = point
        .trace
        .iter()
        .map(|step| {
            context! {
                step => Value::from(parts.step_name(&step.step)),
                id => &step.id,
                text => &step.text,
                url => safe_address(&step.url).filter(|url| !url.starts_with('#')),
                plain_url => &step.url,
            }
        })
        .collect();
    render(
        "point.html",
        context! {
            id => &point.id,
            body => Value::from(body),
            prompt => (!prompt.is_empty()).then(|| Value::from(prompt)),
            texts => (!texts.is_empty()).then(|| Value::from(texts)),
            trace => trace,
        },
    )
}

/// A data point whose scores are seen, and whose texts are folded.
fn foldable(parts: &mut Parts, point: &DataPoint) -> Result<Markup, PageError> {
    let scores: Vec<Value> = point
        .scores
        .iter()
        .map(|score| {
            context! { metric => &score.metric, value => score.value.map(number::estimate) }
        })
        .collect();
    let groups: Vec<Value> = point
        .groups
        .iter()
        .map(|group| context! { name => &group.name, value => Value::from(parts.label(&group.value)) })
        .collect();
    let data: serde_json::Map<String, serde_json::Value> =
        point.scores.iter().map(|score| (score.metric.clone(), json!(score.value))).collect();
    let group_data: serde_json::Map<String, serde_json::Value> =
        point.groups.iter().map(|group| (group.name.clone(), json!(group.value))).collect();
    let title = if point.title.is_empty() { &point.id } else { &point.title };
    let inner = data_point(parts, point)?;
    render(
        "foldable.html",
        context! {
            id => parts.id("point"),
            title => Value::from(parts.label(title)),
            scores => scores,
            groups => groups,
            score_data => serde_json::Value::Object(data).to_string(),
            group_data => serde_json::Value::Object(group_data).to_string(),
            inner => Value::from(inner),
        },
    )
}
