//! A report as one page: what was asked, then the sections in their order, the graph among them.

use std::collections::BTreeSet;

use minijinja::value::Serde;
use minijinja::{Value, context};

use crate::diagram::{announce, diagram};
use crate::markdown::prose;
use crate::model::{Report, Section, StepDiagram};
use crate::number;
use crate::page::{PageError, PageFrame, PageLink, page};
use crate::parts::{PageLimits, Parts};
use crate::sections;
use crate::templates::render;
use crate::text::{Markup, escape};

/// The page of a report: one HTML file that needs nothing else, of 5 MB at most.
///
/// # Errors
/// See [`report_within`].
pub fn report(of: &Report) -> Result<String, PageError> {
    report_within(of, &PageLimits::default())
}

/// The page of a report within other limits. If it is too large, it is made again with less of
/// everything, and notes this.
///
/// # Errors
/// [`PageError::TooLarge`] if the page is larger than it may be with the least of everything.
pub fn report_within(of: &Report, limits: &PageLimits) -> Result<String, PageError> {
    let mut now = limits.clone();
    loop {
        let html = whole(of, limits, &now)?;
        if html.len() <= limits.bytes {
            return Ok(html);
        }
        let mut next = now.halved();
        // A page that is far too large is not approached in small steps.
        let mut excess = html.len() / limits.bytes.max(1);
        while excess > 3 {
            next = next.halved();
            excess /= 2;
        }
        if next == now {
            let [size, limit] = [html.len(), limits.bytes].map(|n| number::bytes(n as u64));
            return Err(PageError::TooLarge(size, limit));
        }
        now = next;
    }
}

fn whole(of: &Report, wanted: &PageLimits, limits: &PageLimits) -> Result<String, PageError> {
    let mut parts = Parts { limits: limits.clone(), ..Parts::default() };
    let graph = of.graph.as_ref().filter(|graph| !graph.steps.is_empty());
    if let Some(graph) = graph {
        announce(&mut parts, graph);
    }
    let lead = asked(&mut parts, of)?;
    let shown = parts.first(&of.sections, limits.entries, "Sections");
    let mut builder = Builder { parts, graph, main: Markup::default(), contents: Vec::new() };
    let mut graph_is_due = !shown.contains(&Section::Steps);
    for section in shown {
        let is_answer =
            matches!(section, Section::Text(_) | Section::Findings(_) | Section::Figure(_));
        if !is_answer && std::mem::take(&mut graph_is_due) {
            builder.add(&Section::Steps)?;
        }
        builder.add(section)?;
    }
    if graph_is_due {
        builder.add(&Section::Steps)?;
    }
    if limits != wanted {
        let note = format!(
            "Everything would be more than the {} that this page may have, so it shows fewer rows \
             and data points, and less of long texts.",
            number::bytes(wanted.bytes as u64)
        );
        builder.parts.notes.insert(0, note);
    }
    builder.left_out()?;
    let footer = Markup::from_text(&format!(
        "Made {} by {} from the workflow {}. This file needs no network and runs nothing but its \
         own script.",
        of.made_at, of.made_by, of.workflow
    ));
    let titles = [of.title.as_str(), &of.workflow, "A study"];
    let frame = PageFrame {
        title: titles.into_iter().find(|title| !title.is_empty()).unwrap_or_default(),
        kicker: &of.workflow,
        lead,
        main: builder.main,
        contents: builder.contents,
        footer,
        ..PageFrame::default()
    };
    page(frame, &builder.parts)
}

struct Builder<'a> {
    parts: Parts,
    graph: Option<&'a StepDiagram>,
    main: Markup,
    contents: Vec<PageLink>,
}

impl Builder<'_> {
    fn add(&mut self, section: &Section) -> Result<(), PageError> {
        let content = match (section, self.graph) {
            (Section::Steps, None) => return Ok(()),
            (Section::Steps, Some(graph)) => diagram(&mut self.parts, graph)?,
            _ => sections::content(&mut self.parts, section)?,
        };
        let (title, class) = sections::heading(section);
        self.section(title, class, content)
    }

    fn section(&mut self, title: &str, class: &str, content: Markup) -> Result<(), PageError> {
        let id = self.parts.id("section");
        if !title.is_empty() {
            let (address, text) = (format!("#{id}"), title.to_string());
            self.contents.push(PageLink { address, text, current: false });
        }
        let html = render(
            "section.html",
            context! { id => id, title => title, class => class, content => content },
        )?;
        self.main.push(&html);
        Ok(())
    }

    /// The omissions of the page, each once.
    fn left_out(&mut self) -> Result<(), PageError> {
        let mut seen = BTreeSet::new();
        let mut notes = std::mem::take(&mut self.parts.notes);
        notes.retain(|note| seen.insert(note.clone()));
        if notes.is_empty() {
            return Ok(());
        }
        let item = |note: &String| format!("<li>{}</li>", escape(note));
        let list = format!("<ul>{}</ul>", notes.iter().map(item).collect::<String>());
        self.section("Left out of this page", "prose left-out", Markup(list))
    }
}

/// The part below the heading: the question, the run, its parameters, and missing results.
fn asked(parts: &mut Parts, of: &Report) -> Result<Markup, PageError> {
    let question = prose(parts, &of.question, 2);
    let limit = parts.limits.entries;
    let params = parts.first(&of.params, limit, "Parameters").iter().map(|param| {
        let value = match &param.value {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        context! { of => Serde(param), value => parts.label(&value) }
    });
    let params: Value = params.collect();
    let facts = parts.first(&of.facts, limit, "Facts");
    let missing = parts.first(&of.missing, limit, "Steps without results").iter();
    let missing = missing.map(|step| {
        context! { name => parts.step_name(&step.step), of => Serde(step), id => parts.id("command") }
    });
    let missing: Value = missing.collect();
    render(
        "asked.html",
        context! {
            question => question,
            made_at => &of.made_at,
            made_by => &of.made_by,
            run => Serde(&of.run),
            facts => Serde(facts),
            params => params,
            missing => missing,
        },
    )
}
