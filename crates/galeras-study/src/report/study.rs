//! The whole report: the sections that the workflow orders, or a default that suits its results.
//! Also the report of a bundle.

use std::path::Path;

use galeras_pages::model::{
    AttritionBlock, FigureBlock, MissingStep, ParamValue, Report, RunFacts, Section, TextBlock,
};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use super::attrition::attrition;
use super::findings::findings;
use super::guidelines::ModelFacts;
use super::notes::notes;
use super::page;
use super::points::{Answerers, PointColumns, points};
use super::reproduce::reproduce;
use super::steps::diagram;
use super::values::{block, file_name, rows, table, text};
use crate::runs::past_runs;
use crate::{Surveyed, table_name};
use galeras_engine::plan::{Input, PlannedPart, PlannedSection};
use galeras_engine::runner::RunError;
use galeras_operator::event::RunStatus;
use galeras_operator::{MAIN, REJECTS, StepError};
use galeras_workflow::{KnownPart, TableView};

/// The default limit for rows of a table.
const TABLE_ROWS: usize = 200;
/// The default limit for data points.
const POINTS: usize = 60;
/// The most pictures of one table: the cells of a matrix.
const PICTURES: usize = 50;
/// The most steps without a result that are named.
const MISSING: usize = 20;

/// The content of a study's page.
///
/// # Errors
/// If results cannot be read.
pub async fn study(surveyed: &Surveyed) -> Result<Report, RunError> {
    let plan = &surveyed.plan;
    let models = ModelFacts::of(surveyed).await?;
    let models = models.as_ref();
    let sections = match &plan.report.sections {
        Some(ordered) => {
            let mut sections = Vec::new();
            for section in ordered {
                sections.extend(planned(surveyed, section, models).await?);
            }
            sections
        }
        None => usual(surveyed, models).await?,
    };
    let params = plan.declared_params().iter().filter_map(|param| {
        let value = plan.params.get(&param.name.value)?.clone();
        let default = param.default.as_ref().map(galeras_workflow::Node::to_json);
        Some(ParamValue {
            name: param.name.value.clone(),
            changed: default.as_ref() != Some(&value),
            help: param.help.as_ref().map(|help| help.value.clone()).unwrap_or_default(),
            value,
        })
    });
    Ok(Report {
        title: plan.report.title.clone().unwrap_or_else(|| plan.name.clone()),
        workflow: plan.name.clone(),
        question: plan.description().unwrap_or_default().trim().to_string(),
        made_at: time(Timestamp::now()),
        made_by: format!("galeras {}", env!("CARGO_PKG_VERSION")),
        run: last_run(surveyed).await,
        facts: models.map(|models| models.facts(surveyed)).unwrap_or_default(),
        params: params.collect(),
        missing: missing(surveyed),
        sections,
        graph: Some(diagram(surveyed).await?),
    })
}

/// A time in the format of pages.
fn time(at: Timestamp) -> String {
    let at = at.to_zoned(TimeZone::UTC);
    at.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

async fn last_run(surveyed: &Surveyed) -> Option<RunFacts> {
    let file = Path::new(&surveyed.plan.file);
    let runs = past_runs(file, &surveyed.store).await.ok()?;
    let run = runs.first()?;
    Some(RunFacts {
        id: run.id.clone(),
        started: run.started.clone(),
        status: status_words(run.status).to_string(),
        seconds: Some(run.seconds),
    })
}

fn status_words(status: Option<RunStatus>) -> &'static str {
    match status {
        Some(RunStatus::Ok) => "done",
        Some(RunStatus::Failed) => "a step failed",
        Some(RunStatus::AssertFailed) => "a data test failed",
        Some(RunStatus::CacheFailed) => "the store or a disk failed",
        Some(RunStatus::Interrupted) => "interrupted",
        None => "not ended",
    }
}

/// The steps without a result, without repeated names.
fn missing(surveyed: &Surveyed) -> Vec<MissingStep> {
    let mut missing: Vec<MissingStep> = Vec::new();
    for (step, state) in surveyed.plan.steps.iter().zip(&surveyed.states) {
        let known = |missing: &MissingStep| missing.step == step.family;
        if state.manifest.is_some() || missing.iter().any(known) || missing.len() == MISSING {
            continue;
        }
        let run = surveyed.command();
        missing.push(MissingStep {
            step: step.family.clone(),
            reason: "not computed for the current workflow".to_string(),
            command: format!(
                "{run} --select {}",
                galeras_base::terminal_escape::shell_word(&step.family)
            ),
        });
    }
    missing
}

fn is_stored(surveyed: &Surveyed, input: &Input) -> bool {
    input.tables.iter().all(|table| surveyed.states[table.step].manifest.is_some())
}

/// A section that the workflow orders, or a note if it is not computed yet.
async fn planned(
    surveyed: &Surveyed,
    section: &PlannedSection,
    models: Option<&ModelFacts>,
) -> Result<Vec<Section>, RunError> {
    let heading = section.heading.clone().unwrap_or_default();
    let caption = |given: String| section.caption.clone().unwrap_or(given);
    if let PlannedPart::Table(_, name, input) = &section.part
        && !is_stored(surveyed, input)
    {
        let markdown = format!("`{name}` is not computed yet: `{}`", surveyed.command());
        return Ok(vec![Section::Text(TextBlock { title: heading, markdown })]);
    }
    Ok(match &section.part {
        PlannedPart::Text(markdown) => {
            vec![Section::Text(TextBlock { title: heading, markdown: markdown.clone() })]
        }
        PlannedPart::Table(TableView::Findings, _, input) => {
            let mut block = findings(surveyed, input).await?;
            block.title = heading;
            vec![Section::Findings(block)]
        }
        PlannedPart::Table(TableView::Figure, name, input) => {
            let mut figures = figures(surveyed, name, input).await?;
            if let Some(first) = figures.first_mut() {
                first.title = heading;
            }
            figures
                .into_iter()
                .map(|figure| {
                    let caption = caption(figure.caption.clone());
                    Section::Figure(FigureBlock { caption, ..figure })
                })
                .collect()
        }
        PlannedPart::Table(TableView::Table, name, input) => {
            let limit = section.limit.unwrap_or(TABLE_ROWS);
            let mut block = block(surveyed, name, input, &section.columns, limit).await?;
            block.title = heading;
            if let Some(given) = &section.caption {
                block.caption = format!("{given} {}", block.caption).trim_end().to_string();
            }
            vec![Section::Table(block)]
        }
        PlannedPart::Table(TableView::Rows, name, input) => {
            let limit = section.limit.unwrap_or(POINTS);
            let mut block = points(surveyed, name, input, &section.columns, limit).await?;
            block.title = heading;
            block.caption = caption(String::new());
            vec![Section::Rows(block)]
        }
        PlannedPart::Known(KnownPart::Graph) => vec![Section::Steps],
        PlannedPart::Known(KnownPart::Attrition) => {
            main_line(surveyed).await?.map(Section::Attrition).into_iter().collect()
        }
        PlannedPart::Known(KnownPart::Diagnostics) => {
            vec![Section::Diagnostics(notes(surveyed).await?)]
        }
        PlannedPart::Known(KnownPart::Guidelines) => match models {
            Some(models) => models.sections(surveyed).await?,
            None => Vec::new(),
        },
        PlannedPart::Known(KnownPart::Reproduce) => vec![Section::Reproduce(reproduce(surveyed))],
    })
}

async fn figures(
    surveyed: &Surveyed,
    name: &str,
    input: &Input,
) -> Result<Vec<FigureBlock>, RunError> {
    let df = table(surveyed, input)?.limit(0, Some(PICTURES))?;
    let pictures = rows(df).await?;
    let several = pictures.len() > 1;
    let figure = |(at, row): (usize, &super::values::JsonRow)| FigureBlock {
        svg: text(row, "svg"),
        caption: text(row, "caption"),
        alt: text(row, "alt"),
        source: name.to_string(),
        file_name: match several {
            true => format!("{}_{}", file_name(name), at + 1),
            false => file_name(name),
        },
        ..FigureBlock::default()
    };
    Ok(pictures.iter().enumerate().map(figure).collect())
}

/// The default sections if the workflow orders none: the answer first.
async fn usual(surveyed: &Surveyed, models: Option<&ModelFacts>) -> Result<Vec<Section>, RunError> {
    let plan = &surveyed.plan;
    let mut sections = Vec::new();
    let stored = |port: &str| {
        let steps = 0..plan.steps.len();
        steps.filter(|at| surveyed.stored(*at, port).is_some()).collect::<Vec<usize>>()
    };
    let of_step = |at: usize, port: &str| {
        let name = table_name(&plan.steps[at].name, port);
        let input = plan.table(&name).ok()?;
        Some((name, input))
    };
    for at in stored("findings") {
        let Some((name, input)) = of_step(at, "findings") else { continue };
        let mut block = findings(surveyed, &input).await?;
        if !block.findings.is_empty() {
            block.title = format!("Findings of {name}").replace(".findings", "");
            sections.push(Section::Findings(block));
        }
    }
    for at in stored(MAIN) {
        if plan.steps[at].operator.descriptor().name != "figure" {
            continue;
        }
        let Some((name, input)) = of_step(at, MAIN) else { continue };
        sections.extend(figures(surveyed, &name, &input).await?.into_iter().map(Section::Figure));
    }
    for output in plan.outputs.iter().filter(|output| output.show) {
        if is_stored(surveyed, &output.input) {
            let mut table = block(surveyed, &output.name, &output.input, &[], TABLE_ROWS).await?;
            table.title = output.name.clone();
            sections.push(Section::Table(table));
        }
    }
    if let Some((name, input)) = answers(surveyed) {
        let mut block = points(surveyed, &name, &input, &[], POINTS).await?;
        block.title = "Answers beside references".to_string();
        sections.push(Section::Rows(block));
    }
    sections.extend(main_line(surveyed).await?.map(Section::Attrition));
    let notes = notes(surveyed).await?;
    if !notes.notes.is_empty() {
        sections.push(Section::Diagnostics(notes));
    }
    if let Some(models) = models {
        sections.extend(models.sections(surveyed).await?);
    }
    sections.push(Section::Reproduce(reproduce(surveyed)));
    Ok(sections)
}

/// The last table of the plan with answers of models, or else of baselines, produced by a row step.
fn answers(surveyed: &Surveyed) -> Option<(String, Input)> {
    let plan = &surveyed.plan;
    let names = plan.steps.iter().rev().filter(|step| {
        step.operator.descriptor().name == "score" || step.operator.descriptor().name == "generate"
    });
    let tables = names.filter_map(|step| Some((step.family.clone(), plan.table(&step.name).ok()?)));
    let mut tables: Vec<(String, Input)> = tables
        .filter(|(_, input)| {
            is_stored(surveyed, input) && PointColumns::of(surveyed, input).is_some()
        })
        .collect();
    tables.sort_by_key(|(_, input)| !Answerers::of(plan, input).are_models);
    tables.into_iter().next()
}

/// Shows where rows were lost on the way to the subject of the study: the answers, or the largest
/// output.
async fn main_line(surveyed: &Surveyed) -> Result<Option<AttritionBlock>, RunError> {
    let largest = || {
        let outputs = surveyed.plan.outputs.iter().map(|output| &output.input);
        let kept = outputs.filter(|input| input.tables.iter().all(|table| table.port != REJECTS));
        let stored = kept.filter(|input| is_stored(surveyed, input));
        stored.max_by_key(|input| surveyed.rows(input).unwrap_or(0)).cloned()
    };
    match answers(surveyed).map(|(_, input)| input).or_else(largest) {
        Some(input) => attrition(surveyed, &input).await,
        None => Ok(None),
    }
}

/// The page of a workflow bundled with its results, which were `computed` at that time: about the
/// workflow and store in the bundle, without naming the folder where it was made.
///
/// # Errors
/// If results cannot be read, or the page would reveal where the folder is.
pub async fn bundled(
    surveyed: &Surveyed,
    folder: &Path,
    computed: &str,
) -> Result<String, RunError> {
    let mut report = study(surveyed).await?;
    let at = computed.parse::<Timestamp>().map(time);
    report.made_at = at.unwrap_or_else(|_| computed.to_string());
    // The same results give the same page for everyone.
    report.run = None;
    relative_to(&mut report, folder);
    let page = page(&report)?;
    let shown = page.replace("&#x2f;", "/");
    let real = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    match [folder, &real].iter().any(|folder| shown.contains(&*folder.to_string_lossy())) {
        true => {
            Err(StepError::new("the report names files by where they were put together").into())
        }
        false => Ok(page),
    }
}

/// Replaces paths by paths relative to the folder.
fn relative_to(report: &mut Report, folder: &Path) {
    let real = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    for folder in [folder, &real] {
        let above = format!("{}/", folder.display());
        let shorten = |text: &mut String| *text = text.replace(&above, "");
        for param in &mut report.params {
            if let Value::String(text) = &mut param.value {
                shorten(text);
            }
        }
        for step in report.graph.iter_mut().flat_map(|graph| &mut graph.steps) {
            shorten(&mut step.arguments);
        }
        for section in &mut report.sections {
            if let Section::Reproduce(block) = section {
                block.commands.iter_mut().for_each(|command| shorten(&mut command.value));
            }
        }
    }
}
