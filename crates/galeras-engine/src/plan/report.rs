//! Plans the page of a study from the workflow of the command line.

use std::path::PathBuf;

use super::expander::{Expander, Site, StepTargets};
use super::input::Input;
use super::planned_report::{PlannedPart, PlannedReportFile, PlannedSection};
use galeras_workflow::code::Code;
use galeras_workflow::{Diagnostic, ReportPart, ReportSection, SourceSpan, quote};

const SENTENCE: &str = "sentence";
/// The column with the text of a picture.
pub(super) const SVG: &str = "svg";

impl Expander {
    pub(super) fn plan_report(&mut self, site: &Site<'_>, targets: &StepTargets) {
        let Some(report) = &site.workflow.report else { return };
        self.report.file = report.path.as_ref().map(|path| PlannedReportFile {
            path: PathBuf::from(&path.value),
            place: SourceSpan::new(&site.workflow.source, path.span),
        });
        self.report.title = report.title.as_ref().map(|title| title.value.clone());
        self.report.sections = report.sections.as_ref().map(|sections| {
            sections.iter().filter_map(|section| self.section(site, section, targets)).collect()
        });
    }

    fn section(
        &mut self,
        site: &Site<'_>,
        section: &ReportSection,
        targets: &StepTargets,
    ) -> Option<PlannedSection> {
        let part = match &section.part {
            ReportPart::Text(text) => PlannedPart::Text(text.value.clone()),
            ReportPart::Known(part) => PlannedPart::Known(*part),
            ReportPart::Findings(from)
            | ReportPart::Figure(from)
            | ReportPart::Table(from)
            | ReportPart::Rows(from) => {
                let from = from.fixed()?;
                let input = self.table(site, from, &Vec::new(), targets, "report")?;
                self.section_columns(site, section, &input);
                let name = site.workflow.source.slice(from.span).trim_matches(['"', '\'']);
                let name = name.to_string();
                match &section.part {
                    ReportPart::Findings(_) => PlannedPart::Findings(name, input),
                    ReportPart::Figure(_) => PlannedPart::Figure(name, input),
                    ReportPart::Table(_) => PlannedPart::Table(name, input),
                    _ => PlannedPart::Rows(name, input),
                }
            }
        };
        Some(PlannedSection {
            part,
            heading: section.heading.as_ref().map(|heading| heading.value.clone()),
            caption: section.caption.as_ref().map(|caption| caption.value.clone()),
            columns: section.columns.iter().map(|column| column.value.clone()).collect(),
            limit: section.limit,
        })
    }

    /// Reports columns that a section names or needs and that its table lacks.
    fn section_columns(&mut self, site: &Site<'_>, section: &ReportSection, input: &Input) {
        let source = &site.workflow.source;
        let needed = match &section.part {
            ReportPart::Findings(_) => Some(SENTENCE),
            ReportPart::Figure(_) => Some(SVG),
            _ => None,
        };
        if input.schema.open {
            return;
        }
        if let Some(needed) = needed.filter(|name| input.schema.field(name).is_none()) {
            let message = format!("the table has no column {}", quote(needed));
            let problem = Diagnostic::error(Code::UnknownColumn, message, source, section.span);
            self.diagnostics.push(problem.with_help(match needed {
                SVG => "a figure comes from a step with `op: figure`",
                _ => "findings come from the port `findings` of a step with `op: regress`",
            }));
        }
        for column in &section.columns {
            if input.schema.field(&column.value).is_none() {
                let message = format!("there is no column {}", quote(&column.value));
                let problem = Diagnostic::error(Code::UnknownColumn, message, source, column.span);
                self.diagnostics.push(problem.with_suggestion(&column.value, input.schema.names()));
            }
        }
    }
}
