//! A report as one page: what was asked, then the sections in their order, the graph among them.

use minijinja::{Value, context};

use crate::diagram::{announce, diagram};
use crate::error::PageError;
use crate::markdown::prose;
use crate::model::{Report, Section, StepDiagram};
use crate::number;
use crate::page::{PageFrame, PageLink, page};
use crate::parts::{PageLimits, Parts};
use crate::sections;
use crate::templates::render;
use crate::text::Markup;

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
            return Err(PageError::TooLarge {
                size: number::bytes(html.len() as u64),
                limit: number::bytes(limits.bytes as u64),
            });
        }
        now = next;
    }
}

fn whole(of: &Report, wanted: &PageLimits, limits: &PageLimits) -> Result<String, PageError> {
    let mut parts = Parts::new(limits.clone());
    let graph = of.graph.as_ref().filter(|graph| !graph.steps.is_empty());
    if let Some(graph) = graph {
        announce(&mut parts, graph);
    }
    let lead = asked(&mut parts, of)?;
    let mut builder = Builder { parts, main: Markup::default(), contents: Vec::new() };
    let shown = {
        let limit = builder.parts.limits.entries;
        builder.parts.first(&of.sections, limit, "Sections")
    };
    let mut graph_is_due = graph.filter(|_| !shown.contains(&Section::Steps));
    for section in shown {
        let is_answer =
            matches!(section, Section::Text(_) | Section::Findings(_) | Section::Figure(_));
        if !is_answer && let Some(graph) = graph_is_due.take() {
            builder.steps(graph)?;
        }
        match section {
            Section::Steps => {
                if let Some(graph) = graph {
                    builder.steps(graph)?;
                }
            }
            section => {
                let content = sections::content(&mut builder.parts, section)?;
                builder.section(sections::title(section), sections::class(section), content)?;
            }
        }
    }
    if let Some(graph) = graph_is_due {
        builder.steps(graph)?;
    }
    if limits != wanted {
        builder.parts.notes.insert(
            0,
            format!(
                "Everything would be more than the {} that this page may have, so it shows fewer \
                 rows and data points, and less of long texts.",
                number::bytes(wanted.bytes as u64)
            ),
        );
    }
    builder.left_out()?;
    let Builder { parts, main, contents } = builder;
    let footer = Markup::from_text(&format!(
        "Made {} by {} from the workflow {}. This file needs no network and runs nothing but its \
         own script.",
        of.made_at, of.made_by, of.workflow
    ));
    page(
        PageFrame {
            title: [of.title.as_str(), &of.workflow]
                .into_iter()
                .find(|title| !title.is_empty())
                .unwrap_or("A study"),
            kicker: &of.workflow,
            lead,
            main,
            contents,
            footer,
            ..PageFrame::default()
        },
        &parts,
    )
}

struct Builder {
    parts: Parts,
    main: Markup,
    contents: Vec<PageLink>,
}

impl Builder {
    fn section(&mut self, title: &str, class: &str, content: Markup) -> Result<(), PageError> {
        let id = self.parts.id("section");
        if !title.is_empty() {
            self.contents.push(PageLink::to_id(&id, title));
        }
        let html = render(
            "section.html",
            context! { id => id, title => title, class => class, content => Value::from(content) },
        )?;
        self.main.push(&html);
        Ok(())
    }

    fn steps(&mut self, graph: &StepDiagram) -> Result<(), PageError> {
        let content = diagram(&mut self.parts, graph)?;
        self.section("Steps", "section-steps", content)
    }

    /// The omissions of the page, each once.
    fn left_out(&mut self) -> Result<(), PageError> {
        let mut notes: Vec<String> = Vec::new();
        for note in std::mem::take(&mut self.parts.notes) {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        if notes.is_empty() {
            return Ok(());
        }
        let mut list = String::from("<ul>");
        for note in &notes {
            list.push_str(&format!("<li>{}</li>", Markup::from_text(note).as_str()));
        }
        list.push_str("</ul>");
        self.section("Left out of this page", "prose left-out", Markup::from_html(list))
    }
}

/// The part below the heading: the question, the run, its parameters, and missing results.
fn asked(parts: &mut Parts, of: &Report) -> Result<Markup, PageError> {
    let question = prose(parts, &of.question, 2);
    let limit = parts.limits.entries;
    let params: Vec<Value> = parts
        .first(&of.params, limit, "Parameters")
        .iter()
        .map(|param| {
            let value = match &param.value {
                serde_json::Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            context! {
                name => &param.name,
                value => Value::from(parts.label(&value)),
                help => &param.help,
                changed => param.changed,
            }
        })
        .collect();
    let missing: Vec<Value> = parts
        .first(&of.missing, limit, "Steps without results")
        .iter()
        .map(|step| {
            context! {
                step => Value::from(parts.step_name(&step.step)),
                reason => &step.reason,
                command => &step.command,
                id => parts.id("command"),
            }
        })
        .collect();
    let run = of.run.as_ref().map(|run| {
        context! {
            id => &run.id,
            started => &run.started,
            status => &run.status,
            seconds => run.seconds.map(number::seconds),
        }
    });
    render(
        "asked.html",
        context! {
            question => Value::from(question),
            made_at => &of.made_at,
            made_by => &of.made_by,
            run => run,
            params => params,
            missing => missing,
        },
    )
}
