//! What the page of a study shows: the sections, with the tables that they show.

use std::path::PathBuf;

use super::input::Input;
use galeras_workflow::{KnownPart, SourceSpan};

/// What the page of a study shows.
#[derive(Clone, Debug, Default)]
pub struct PlannedReport {
    /// Where a run writes it; `None`: only when it is asked for.
    pub file: Option<PlannedReportFile>,
    /// The title, if it is not the workflow's name.
    pub title: Option<String>,
    /// The sections in their order; `None`: those that suit the results.
    pub sections: Option<Vec<PlannedSection>>,
}

/// Where the page of a study is written.
#[derive(Clone, Debug)]
pub struct PlannedReportFile {
    /// Where to, relative to `--out`.
    pub path: PathBuf,
    /// Where the path is written in the workflow.
    pub place: SourceSpan,
}

/// A section of the page.
#[derive(Clone, Debug)]
pub struct PlannedSection {
    /// What it shows.
    pub part: PlannedPart,
    /// What stands over it.
    pub heading: Option<String>,
    /// What stands under it.
    pub caption: Option<String>,
    /// The columns; all if empty.
    pub columns: Vec<String>,
    /// The most rows.
    pub limit: Option<usize>,
}

/// What a section shows. The name is the reference as the workflow has it.
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
    /// Rows one by one.
    Rows(String, Input),
    /// What the program knows by itself.
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
