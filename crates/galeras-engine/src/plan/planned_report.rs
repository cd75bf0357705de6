//! The page of a study: its sections and their tables.

use std::path::PathBuf;

use super::input::Input;
use galeras_workflow::{KnownPart, SourceSpan};

/// The content of a study's page.
#[derive(Clone, Debug, Default)]
pub struct PlannedReport {
    /// Its file; `None` to write it only on request.
    pub file: Option<PlannedReportFile>,
    /// The title, if it is not the workflow's name.
    pub title: Option<String>,
    /// The sections in their order; `None` for those that suit the results.
    pub sections: Option<Vec<PlannedSection>>,
}

/// The file of a study's page.
#[derive(Clone, Debug)]
pub struct PlannedReportFile {
    /// The path, relative to `--out`.
    pub path: PathBuf,
    /// The place of the path in the workflow.
    pub place: SourceSpan,
}

/// A section of the page.
#[derive(Clone, Debug)]
pub struct PlannedSection {
    /// Its content.
    pub part: PlannedPart,
    /// The text above it.
    pub heading: Option<String>,
    /// The text below it.
    pub caption: Option<String>,
    /// The columns; all if empty.
    pub columns: Vec<String>,
    /// The maximum number of rows.
    pub limit: Option<usize>,
}

/// The content of a section. The name is the reference as written in the workflow.
#[derive(Clone, Debug)]
pub enum PlannedPart {
    /// Markdown.
    Text(String),
    /// The sentences of a table of findings.
    Findings(String, Input),
    /// The pictures of a table with a column `svg`.
    Figure(String, Input),
    /// A table.
    Table(String, Input),
    /// Single rows.
    Rows(String, Input),
    /// Information of the program that is not a table.
    Known(KnownPart),
}

impl PlannedReport {
    /// The tables that it shows.
    pub fn inputs(&self) -> impl Iterator<Item = &Input> {
        self.sections.iter().flatten().filter_map(|section| match &section.part {
            PlannedPart::Findings(_, input)
            | PlannedPart::Figure(_, input)
            | PlannedPart::Table(_, input)
            | PlannedPart::Rows(_, input) => Some(input),
            PlannedPart::Text(_) | PlannedPart::Known(_) => None,
        })
    }

    pub(super) fn inputs_mut(&mut self) -> impl Iterator<Item = &mut Input> {
        self.sections.iter_mut().flatten().filter_map(|section| match &mut section.part {
            PlannedPart::Findings(_, input)
            | PlannedPart::Figure(_, input)
            | PlannedPart::Table(_, input)
            | PlannedPart::Rows(_, input) => Some(input),
            PlannedPart::Text(_) | PlannedPart::Known(_) => None,
        })
    }
}
