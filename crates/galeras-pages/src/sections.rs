//! Sections by their kinds, and those that are simple: prose, diagnostics, how to reproduce.

use minijinja::{Value, context};

use crate::attrition::attrition;
use crate::error::PageError;
use crate::figure::figure;
use crate::findings::findings;
use crate::markdown::{markdown, prose};
use crate::model::{DiagnosticBlock, NoteSeverity, ReproduceBlock, Section};
use crate::parts::Parts;
use crate::point::data_points;
use crate::table::table;
use crate::templates::render;
use crate::text::Markup;

/// The heading of a section, or its default; empty if there is none.
pub(crate) fn title(section: &Section) -> &str {
    let (title, otherwise) = match section {
        Section::Text(block) => (&block.title, ""),
        Section::Findings(block) => (&block.title, "Findings"),
        Section::Figure(block) => (&block.title, ""),
        Section::Table(block) => (&block.title, ""),
        Section::Rows(block) => (&block.title, "Data points"),
        Section::Attrition(block) => (&block.title, "Where the rows went"),
        Section::Diagnostics(block) => (&block.title, "Refusals and warnings"),
        Section::Reproduce(block) => (&block.title, "How to reproduce this"),
        Section::Steps => return "Steps",
    };
    if title.is_empty() { otherwise } else { title }
}

/// The class of a section.
pub(crate) fn class(section: &Section) -> &'static str {
    match section {
        Section::Text(_) => "prose",
        Section::Findings(_) => "section-findings",
        Section::Figure(_) => "section-figure",
        Section::Table(_) => "section-table",
        Section::Rows(_) => "section-rows",
        Section::Attrition(_) => "section-attrition",
        Section::Diagnostics(_) => "section-diagnostics",
        Section::Reproduce(_) => "section-reproduce",
        Section::Steps => "section-steps",
    }
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
    let limit = parts.limits.entries;
    let notes: Vec<Value> = parts
        .first(&block.notes, limit, "Refusals and warnings")
        .iter()
        .map(|note| {
            let (class, word) = match note.severity {
                NoteSeverity::Refusal => ("refusal", "Refused"),
                NoteSeverity::Error => ("error", "Error"),
                NoteSeverity::Warning => ("warning", "Warning"),
                NoteSeverity::Note => ("note", "Note"),
            };
            context! {
                class => class,
                word => word,
                step => (!note.step.is_empty()).then(|| Value::from(parts.step_name(&note.step))),
                text => Value::from(Markup::from_message(&note.text)),
                help => Value::from(Markup::from_message(&note.help)),
            }
        })
        .collect();
    render("diagnostics.html", context! { notes => notes })
}

fn reproduce(parts: &mut Parts, block: &ReproduceBlock) -> Result<Markup, PageError> {
    let limit = parts.limits.entries;
    let commands: Vec<Value> = parts
        .first(&block.commands, limit, "Commands")
        .iter()
        .map(|command| {
            context! {
                id => parts.id("command"),
                purpose => Value::from(Markup::from_message(&command.purpose)),
                command => &command.command,
            }
        })
        .collect();
    let facts = parts.first(&block.facts, limit, "Pinned facts");
    let facts: Vec<Value> =
        facts.iter().map(|fact| context! { name => &fact.name, value => &fact.value }).collect();
    let digests = parts.first(&block.digests, limit, "Digests");
    let digests: Vec<Value> = digests
        .iter()
        .map(|digest| context! { name => &digest.name, value => &digest.value })
        .collect();
    render(
        "reproduce.html",
        context! {
            note => Value::from(markdown(&block.note, 2)),
            commands => commands,
            facts => facts,
            digests => digests,
        },
    )
}
