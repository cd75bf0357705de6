//! Data points: answers next to references, with scores, prompts, and the trace to the commit.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::value::Serde;
use minijinja::{Value, context};
use serde_json::json;

use crate::code::{code, comparison};
use crate::markdown::{markdown, safe_address};
use crate::model::{CodeLanguage, DataPoint, DataPointBlock, Labelled, TraceStep};
use crate::page::PageError;
use crate::parts::Parts;
use crate::templates::render;
use crate::text::Markup;

/// Data points with their filters.
pub(crate) fn data_points(parts: &mut Parts, block: &DataPointBlock) -> Result<Markup, PageError> {
    let what = format!("Data points of “{}”", block.title);
    let shown = parts.first(&block.points, parts.limits.points, &what);
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
    let most = parts.limits.entries.min(100);
    groups.retain(|_, values| (2..=most).contains(&values.len()));
    let mut points: Vec<Value> = Vec::new();
    for point in shown {
        points.push(foldable(parts, point)?.into());
    }
    let total = block.total.unwrap_or(0).max(block.points.len() as u64);
    render(
        "points.html",
        context! {
            id => parts.id("points"),
            caption => markdown(&block.caption, 2),
            total => total,
            choice => &block.choice,
            source => parts.source(&block.source),
            groups => Serde(groups),
            metrics => Serde(metrics),
            points => points,
        },
    )
}

/// One data point as the content of a page, without a heading.
pub(crate) fn data_point(parts: &mut Parts, point: &DataPoint) -> Result<Markup, PageError> {
    let labelled =
        |name: &str, value: &str| Labelled { name: name.to_string(), value: value.to_string() };
    let reference = point.reference.as_ref().map(|text| labelled("Reference", text));
    let answer = point.answer.as_ref().map(|text| labelled("Answer", text));
    let body = match (&reference, &answer) {
        (Some(reference), Some(answer)) => comparison(parts, reference, answer, point.language)?,
        (Some(text), None) | (None, Some(text)) => code(parts, text, point.language)?,
        (None, None) => Markup::default(),
    };
    let mut prompt = Markup::default();
    for message in &point.prompt {
        prompt.push(&code(parts, message, CodeLanguage::Plain)?);
    }
    let mut texts = Markup::default();
    for text in &point.texts {
        texts.push(&code(parts, text, point.language)?);
    }
    let station = |of: &TraceStep| {
        let url = safe_address(&of.url).filter(|url| !url.starts_with('#'));
        context! { name => parts.step_name(&of.step), of => Serde(of), url => url }
    };
    let trace: Value = point.trace.iter().map(station).collect();
    render(
        "point.html",
        context! {
            id => &point.id,
            body => body,
            prompt => prompt,
            texts => texts,
            trace => trace,
        },
    )
}

/// A data point whose scores are seen, and whose texts are folded.
fn foldable(parts: &mut Parts, point: &DataPoint) -> Result<Markup, PageError> {
    let scores = point.scores.iter().map(|score| (score.metric.clone(), json!(score.value)));
    let groups = point.groups.iter().map(|group| (group.name.clone(), json!(group.value)));
    let title = if point.title.is_empty() { &point.id } else { &point.title };
    let inner = data_point(parts, point)?;
    render(
        "foldable.html",
        context! {
            id => parts.id("point"),
            title => parts.label(title),
            scores => Serde(&point.scores),
            groups => Serde(&point.groups),
            chars => parts.limits.cell_chars,
            score_data => scores.collect::<serde_json::Value>().to_string(),
            group_data => groups.collect::<serde_json::Value>().to_string(),
            inner => inner,
        },
    )
}
