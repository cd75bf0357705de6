//! The report of a bundle: about the workflow and store in it, at the time of its results, without
//! naming the folder where it was made.

use std::path::Path;

use galeras_pages::model::{Report, Section};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use super::page;
use super::study::{study, time};
use crate::Surveyed;
use galeras_engine::runner::RunError;
use galeras_operator::StepError;

/// The page of a workflow bundled with its results, which were `computed` at that time.
///
/// # Errors
/// If results cannot be read, or the page would reveal where the folder is.
pub async fn bundled(
    surveyed: &Surveyed,
    folder: &Path,
    computed: &str,
) -> Result<String, RunError> {
    let mut report = study(surveyed).await?;
    let at = computed.parse::<Timestamp>().map(|at| time(at.to_zoned(TimeZone::UTC)));
    report.made_at = at.unwrap_or_else(|_| computed.to_string());
    // The same results give the same page for everyone.
    report.run = None;
    relative_to(&mut report, folder);
    let page = page(&report)?;
    let own = folder.file_name().unwrap_or_default().to_string_lossy();
    match page.contains(own.as_ref()) {
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
                block.commands.iter_mut().for_each(|command| shorten(&mut command.command));
            }
        }
    }
}
