//! Sections by their kinds: findings, data points (answers next to references, with scores, prompts,
//! and the trace to the commit), stages of attrition, diagnostics, how to reproduce.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::value::Serde;
use minijinja::{Value, context};
use serde_json::json;

use crate::code::{code, comparison};
use crate::figure::figure;
use crate::markdown::{markdown, prose, safe_address};
use crate::model::{
    AttritionBlock, AttritionStage, CodeLanguage, DataPoint, DataPointBlock, DiagnosticBlock,
    DiagnosticNote, EffectFinding, FindingBlock, Labelled, NoteSeverity, ReproduceBlock, Section,
    TraceStep,
};
use crate::number::{estimate, p_value};
use crate::page::PageError;
use crate::parts::Parts;
use crate::table::table;
use crate::templates::render;
use crate::text::Markup;

/// The heading of a section, or its default (empty if there is none), and its class.
pub(crate) fn heading(section: &Section) -> (&str, &'static str) {
    let (title, otherwise, class) = match section {
        Section::Text(block) => (block.title.as_str(), "", "prose"),
        Section::Findings(block) => (block.title.as_str(), "Findings", "section-findings"),
        Section::Figure(block) => (block.title.as_str(), "", "section-figure"),
        Section::Table(block) => (block.title.as_str(), "", "section-table"),
        Section::Rows(block) => (block.title.as_str(), "Data points", "section-rows"),
        Section::Attrition(_) => ("Where the rows went", "", "section-attrition"),
        Section::Diagnostics(_) => ("Refusals and warnings", "", "section-diagnostics"),
        Section::Reproduce(_) => ("How to reproduce this", "", "section-reproduce"),
        Section::Steps => ("Steps", "", "section-steps"),
    };
    (if title.is_empty() { otherwise } else { title }, class)
}

/// The content of a section without its heading. The graph is drawn elsewhere.
pub(crate) fn content(parts: &mut Parts, section: &Section) -> Result<Markup, PageError> {
    match section {
        Section::Text(block) => Ok(prose(parts, &block.markdown, 2)),
        Section::Findings(block) => findings(parts, block),
        Section::Figure(block) => figure(parts, block),
        Section::Table(block) => table(parts, block),
        Section::Rows(block) => data_points(parts, block),
        Section::Attrition(block) => attrition(parts, block),
        Section::Diagnostics(block) => diagnostics(parts, block),
        Section::Reproduce(block) => reproduce(parts, block),
        Section::Steps => Ok(Markup::default()),
    }
}

fn diagnostics(parts: &mut Parts, block: &DiagnosticBlock) -> Result<Markup, PageError> {
    let notes = parts.first(&block.notes, parts.limits.entries, "Refusals and warnings").iter();
    let item = |note: &DiagnosticNote| {
        let DiagnosticNote { severity, step, .. } = note;
        let word = match severity {
            NoteSeverity::Refusal => "Refused",
            NoteSeverity::Error => "Error",
            NoteSeverity::Warning => "Warning",
            NoteSeverity::Note => "Note",
        };
        context! { note => Serde(note), word => word, step => parts.source(step) }
    };
    render("diagnostics.html", context! { items => notes.map(item).collect::<Value>() })
}

fn reproduce(parts: &mut Parts, block: &ReproduceBlock) -> Result<Markup, PageError> {
    let limit = parts.limits.entries;
    let commands = parts.first(&block.commands, limit, "Commands").iter();
    let commands: Value = commands
        .map(|command| context! { id => parts.id("command"), of => Serde(command) })
        .collect();
    let facts = parts.first(&block.facts, limit, "Pinned facts");
    let digests = parts.first(&block.digests, limit, "Digests");
    render(
        "reproduce.html",
        context! {
            note => markdown(&block.note, 2),
            commands => commands,
            facts => Serde(facts),
            digests => Serde(digests),
        },
    )
}

fn attrition(parts: &mut Parts, block: &AttritionBlock) -> Result<Markup, PageError> {
    let stages = parts.first(&block.stages, parts.limits.entries, "Stages");
    let most = stages.iter().map(|s| s.rows + s.lost.unwrap_or(0)).max().unwrap_or(0).max(1);
    let stages: Value = stages.iter().map(|item| stage(parts, item, most)).collect();
    render(
        "attrition.html",
        context! {
            stages => stages,
            examples => parts.limits.first_rows,
            chars => parts.limits.cell_chars,
        },
    )
}

/// A stage with bars to the scale of the stage with the most rows.
fn stage(parts: &mut Parts, stage: &AttritionStage, most: u64) -> Value {
    let percent = |rows: u64| format!("{:.2}", rows as f64 / most as f64 * 100.0);
    let what = format!("Reasons at step {}", stage.step);
    let reasons = parts.first(&stage.reasons, parts.limits.entries, &what);
    let lost = stage.lost.unwrap_or(0);
    context! {
        step => parts.step_name(&stage.step),
        operator => &stage.operator,
        rows => stage.rows,
        kept => percent(stage.rows),
        lost_width => percent(lost),
        lost => lost,
        share => share(lost, stage.rows + lost),
        reasons => Serde(reasons),
    }
}

/// A share in per cent that is never rounded to none or all.
fn share(part: u64, whole: u64) -> String {
    let percent = part as f64 / whole.max(1) as f64 * 100.0;
    match percent {
        p if p < 0.1 => "< 0.1 %".to_string(),
        p if p > 99.9 && part < whole => "> 99.9 %".to_string(),
        p => format!("{p:.1} %"),
    }
}

fn findings(parts: &mut Parts, block: &FindingBlock) -> Result<Markup, PageError> {
    let what = format!("Findings of “{}”", block.title);
    let shown = parts.first(&block.findings, parts.limits.entries, &what);
    let items: Value = shown.iter().map(item).collect();
    render("findings.html", context! { items => items, note => markdown(&block.note, 2) })
}

fn item(finding: &EffectFinding) -> Value {
    let ends = finding.low.zip(finding.high);
    let verdict_class = match finding.verdict.as_str() {
        "different" | "superior" | "inferior" => "shown",
        "equivalent" | "trivial" | "noninferior" => "small",
        _ => "open",
    };
    context! {
        finding => Serde(finding),
        interval => ends.map(|(low, high)| {
            format!("interval {} to {}", estimate(low), estimate(high))
        }),
        p => finding.p_adjusted.map(p_value),
        verdict_class => verdict_class,
    }
}

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
