//! The outputs and the page of the workflow of the command line: tables, paths and formats.
//!
//! No file may replace one that the workflow reads, another output, a folder, or a part of the
//! store; links are followed. A link at an output's path is replaced, and its target stays as it
//! is. Still, both count as the same file here.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::DataType;

use super::expander::{Expander, Site, StepTargets};
use super::lockfile::lock_path;
use super::model::{
    Input, OutputFormat, PictureFormat, PlannedOutput, PlannedPart, PlannedReportFile,
    PlannedSection,
};
use super::params::scope;
use galeras_display::{Best, PaperMarkup, PaperTable, Pivot};
use galeras_operator::table_digest::type_name;
use galeras_sql::session::OutputShape;
use galeras_workflow::code::Code;
use galeras_workflow::{
    AssertKind, Diagnostic, OUTPUT_PATH_HELP, Output, PaperSpec, ReportPart, ReportSection, Source,
    SourceSpan, Span, TableView, Text, output_path_problem, quote, substitute_node,
};

impl Expander {
    pub(super) fn output(
        &mut self,
        site: &Site<'_>,
        output: &Output,
        targets: &StepTargets,
    ) -> Option<PlannedOutput> {
        let source = &site.workflow.source;
        let from = output.from.fixed();
        let input =
            from.and_then(|from| self.table(site, from, &Vec::new(), targets, &output.name.value));
        let scope = scope(site.params);
        let path = substitute_node(&output.path, source, &scope, &mut self.diagnostics);
        let path = path.as_str()?.to_string();
        let bad_path = |problem: String| site.error(Code::BadPath, problem, output.path.span);
        if let Some(problem) = output_path_problem(&path) {
            self.diagnostics.push(bad_path(problem).with_help(OUTPUT_PATH_HELP));
            return None;
        }
        let suffix = Path::new(&path).extension().and_then(|e| e.to_str()).unwrap_or_default();
        let format = match (suffix, &output.column) {
            ("json" | "txt" | "svg" | "html", Some(column)) => {
                OutputFormat::Text { column: column.value.clone() }
            }
            ("svg", None) if has_svg(input.as_ref()) => {
                OutputFormat::Picture { column: SVG.to_string(), format: PictureFormat::Svg }
            }
            ("png" | "pdf", column) => {
                let column = column.as_ref().map_or(SVG, |column| &column.value).to_string();
                let format = if suffix == "png" { PictureFormat::Png } else { PictureFormat::Pdf };
                OutputFormat::Picture { column, format }
            }
            ("txt" | "svg" | "html", None) => {
                let problem = format!("a table cannot be written as .{suffix}");
                self.diagnostics.push(bad_path(problem).with_help(
                    "name the text `column` of a table of one row whose value is the file: \
                     `column: name`; rows are written as .parquet, .jsonl, .json or .csv",
                ));
                return None;
            }
            (_, Some(column)) => {
                let problem = format!("a .{suffix} file is not the text of one `column`");
                let problem = site.error(Code::ConflictingKeys, problem, column.span);
                let help = "`column` is for .txt, .json, .svg, .png, .pdf and .html files, and \
                            `columns` for .tex and .md files";
                self.diagnostics.push(problem.with_help(help));
                return None;
            }
            ("tex", None) => OutputFormat::Paper(paper_table(output, PaperMarkup::Latex)),
            ("md", None) => OutputFormat::Paper(paper_table(output, PaperMarkup::Markdown)),
            ("parquet", None) => OutputFormat::Parquet,
            ("jsonl", None) => OutputFormat::Jsonl,
            ("json", None) => OutputFormat::Json,
            _ => OutputFormat::Csv,
        };
        let suffix = suffix.to_string();
        let path = PathBuf::from(path);
        if let Some(other) = self.outputs.iter().find(|o| o.path == path) {
            let problem = format!(
                "the outputs {} and {} would both be written to {}",
                quote(&other.name),
                quote(&output.name.value),
                path.display()
            );
            self.diagnostics.push(bad_path(problem));
            return None;
        }
        let (min_rows, max_rows) = match &output.rows {
            Some(AssertKind::Rows { min, max }) => self.row_bounds(site, (min, max), &scope)?,
            _ => (None, None),
        };
        let input = input?;
        let format = match format {
            OutputFormat::Paper(paper) => OutputFormat::Paper(self.captioned(paper, &input)),
            other => other,
        };
        if let OutputFormat::Picture { column, .. } = &format
            && output.column.is_none()
            && !has_svg(Some(&input))
        {
            let message =
                format!("a .{suffix} file is a figure, and there is no column `{column}`");
            let problem = site.error(Code::UnknownColumn, message, output.path.span);
            self.diagnostics.push(problem.with_help("a step with `op: figure` draws one"));
            return None;
        }
        let problem = column_problem(source, output, &input);
        if let Some(problem) = problem.or_else(|| paper_problem(source, output, &format, &input)) {
            self.diagnostics.push(problem);
            return None;
        }
        let shape = match &output.shape {
            None => None,
            Some(given) => match output_shape(source, given, &format, &input) {
                Ok(shape) => Some(shape),
                Err(problem) => {
                    self.diagnostics.push(*problem);
                    return None;
                }
            },
        };
        let name = output.name.value.clone();
        let place = SourceSpan::new(source, output.path.span);
        let show = output.show;
        Some(PlannedOutput { name, input, path, format, shape, min_rows, max_rows, show, place })
    }
}

impl Expander {
    /// A table for a paper. The caption of one with intervals explains them, unless the author wrote
    /// another.
    fn captioned(&self, paper: PaperTable, input: &Input) -> PaperTable {
        let has_ends = match paper.columns.as_slice() {
            [] => input.schema.field("ci_low").is_some(),
            columns => columns.iter().any(|column| column == "ci_low"),
        };
        let table = input.tables.first().filter(|_| has_ends && paper.caption.is_none());
        let step = table.and_then(|table| Some((table, self.steps.get(table.step)?)));
        match step.and_then(|(table, planned)| planned.step.intervals(table.port)) {
            Some(words) => PaperTable { caption: Some(words), ..paper },
            None => paper,
        }
    }
}

fn has_svg(input: Option<&Input>) -> bool {
    input.is_some_and(|input| input.schema.open || input.schema.field(SVG).is_some())
}

/// The shape of an output, or the reason why its table cannot have it.
fn output_shape(
    source: &Arc<Source>,
    given: &Text,
    format: &OutputFormat,
    input: &Input,
) -> Result<OutputShape, Box<Diagnostic>> {
    let problem = |code, message: String| Diagnostic::error(code, message, source, given.span);
    let Some(shape) = OutputShape::from_name(&given.value) else {
        let message = format!("there is no shape {}", quote(&given.value));
        let problem = problem(Code::WrongValue, message);
        return Err(Box::new(problem.with_suggestion(&given.value, OutputShape::NAMES)));
    };
    if !matches!(format, OutputFormat::Parquet | OutputFormat::Jsonl | OutputFormat::Json) {
        let message = format!("the shape {} is nested", quote(shape.name()));
        let problem = problem(Code::ConflictingKeys, message);
        return Err(Box::new(problem.with_help("write it as .parquet, .jsonl or .json")));
    }
    let missing = shape.missing(&input.schema.schema);
    if missing.is_empty() || input.schema.open {
        return Ok(shape);
    }
    let names: Vec<String> = missing.iter().map(|name| quote(name)).collect();
    let message =
        format!("the shape {} needs more columns: {}", quote(shape.name()), names.join(", "));
    Err(Box::new(problem(Code::UnknownColumn, message)))
}

/// The problem with the `column` of an output, if it has one.
fn column_problem(source: &Arc<Source>, output: &Output, input: &Input) -> Option<Diagnostic> {
    let column = output.column.as_ref()?;
    match input.schema.field(&column.value) {
        None if input.schema.open => None,
        None => {
            let message = format!("there is no column {}", quote(&column.value));
            let problem = Diagnostic::error(Code::UnknownColumn, message, source, column.span);
            Some(problem.with_suggestion(&column.value, input.schema.names()))
        }
        Some(field) if !matches!(field.data_type(), DataType::Utf8 | DataType::Null) => {
            let given = type_name(field.data_type());
            let message = format!("column {} has type {given}, not utf8", quote(&column.value));
            let code = Code::WrongType;
            Some(Diagnostic::error(code, message, source, column.span))
        }
        Some(_) => None,
    }
}

/// The table of a `.tex` or `.md` file.
fn paper_table(output: &Output, markup: PaperMarkup) -> PaperTable {
    let PaperSpec { columns, digits, caption, label, bold, pivot, .. } = &output.paper;
    let label = label.as_ref().map_or_else(
        || format!("tab:{}", output.name.value),
        |label| {
            label.value.replace(|c: char| !c.is_ascii_alphanumeric() && !":-_.".contains(c), "-")
        },
    );
    let best = |(column, best): &(Text, Text)| {
        (column.value.clone(), if best.value == "min" { Best::Min } else { Best::Max })
    };
    PaperTable {
        markup,
        columns: columns.iter().map(|column| column.value.clone()).collect(),
        digits: *digits,
        caption: caption.as_ref().map(|caption| caption.value.clone()),
        label,
        bold: bold.iter().map(best).collect(),
        pivot: pivot.as_ref().map(|(columns, values)| Pivot {
            columns: columns.value.clone(),
            values: values.value.clone(),
        }),
    }
}

/// The problem with the keys of a table for a paper, if they have one.
fn paper_problem(
    source: &Arc<Source>,
    output: &Output,
    format: &OutputFormat,
    input: &Input,
) -> Option<Diagnostic> {
    let paper = &output.paper;
    let first = paper.first.as_ref()?;
    if !matches!(format, OutputFormat::Paper(_)) {
        let message = format!("{} is for .tex and .md files", quote(&first.value));
        let problem = Diagnostic::error(Code::ConflictingKeys, message, source, first.span);
        return Some(problem.with_help("files for programs have all columns and all digits"));
    }
    if paper.pivot.is_some() && paper.columns.is_empty() {
        let message = "an output with a pivot also needs `columns`, which tell its rows apart";
        let problem = Diagnostic::error(Code::MissingKey, message, source, first.span);
        return Some(
            problem.with_help("add `columns: [outcome]` before `pivot`, with your column"),
        );
    }
    let pivot = paper.pivot.iter().flat_map(|(columns, values)| [columns, values]);
    let bold = paper.bold.iter().map(|(column, _)| column);
    let mut named = paper.columns.iter().chain(bold).chain(pivot);
    let unknown = |column: &&Text| input.schema.field(&column.value).is_none();
    let column = named.find(unknown).filter(|_| !input.schema.open)?;
    let message = format!("there is no column {}", quote(&column.value));
    let problem = Diagnostic::error(Code::UnknownColumn, message, source, column.span);
    Some(problem.with_suggestion(&column.value, input.schema.names()))
}

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
            ReportPart::Table(view, from) => {
                let from = from.fixed()?;
                let input = self.table(site, from, &Vec::new(), targets, "report")?;
                self.section_columns(site, section, &input);
                let name = site.workflow.source.slice(from.span).trim_matches(['"', '\'']);
                PlannedPart::Table(*view, name.to_string(), input)
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
        let needed = match &section.part {
            ReportPart::Table(TableView::Findings, _) => Some(SENTENCE),
            ReportPart::Table(TableView::Figure, _) => Some(SVG),
            _ => None,
        };
        if input.schema.open {
            return;
        }
        if let Some(needed) = needed.filter(|name| input.schema.field(name).is_none()) {
            let message = format!("the table has no column {}", quote(needed));
            let problem = site.error(Code::UnknownColumn, message, section.span);
            self.diagnostics.push(problem.with_help(match needed {
                SVG => "a figure comes from a step with `op: figure`",
                _ => "findings come from the port `findings` of a step with `op: regress`",
            }));
        }
        for column in &section.columns {
            if input.schema.field(&column.value).is_none() {
                let message = format!("there is no column {}", quote(&column.value));
                let problem = site.error(Code::UnknownColumn, message, column.span);
                self.diagnostics.push(problem.with_suggestion(&column.value, input.schema.names()));
            }
        }
    }
}

const MAX_LINKS: usize = 40;

/// A file that is written: an output, or the report.
struct WrittenFile<'a> {
    output: Option<&'a str>,
    path: &'a Path,
    place: &'a SourceSpan,
}

impl WrittenFile<'_> {
    fn named(&self) -> String {
        match self.output {
            Some(name) => format!("the output {}", quote(name)),
            None => "the report".to_string(),
        }
    }
}

/// A file that is read, its description, and where it is named.
struct ReadFile {
    what: String,
    place: Option<SourceSpan>,
}

impl Expander {
    /// Reports outputs and the report of the workflow in `file` that cannot or must not be written.
    pub(super) fn check_places(&mut self, file: &Path) {
        let outputs = self.outputs.iter().map(|output| WrittenFile {
            output: Some(&output.name),
            path: &output.path,
            place: &output.place,
        });
        let report = self.report.file.iter().map(|file| WrittenFile {
            output: None,
            path: &file.path,
            place: &file.place,
        });
        let files: Vec<WrittenFile<'_>> = outputs.chain(report).collect();
        if files.is_empty() {
            return;
        }
        let here = |path: &Path| self.settings.working_dir.join(path);
        let read = self.files_read(&here(file));
        let guarded: Vec<PathBuf> =
            self.settings.guarded.iter().map(|folder| real_folder(&here(folder))).collect();
        let out = here(&self.settings.out);
        let places: Vec<Vec<PathBuf>> =
            files.iter().map(|file| names(&out.join(file.path))).collect();
        let mut problems = Vec::new();
        let mut written: HashMap<&Path, &WrittenFile<'_>> = HashMap::new();
        for (file, names) in files.iter().zip(&places) {
            let problem = blocked(file, &out.join(file.path))
                .or_else(|| in_store(file, names, &guarded))
                .or_else(|| overwriting(file, names, &read))
                .or_else(|| {
                    let other = names.iter().find_map(|name| written.get(name.as_path()))?;
                    Some(clashing(file, other, false))
                });
            problems.extend(problem);
            names.iter().for_each(|name| {
                written.entry(name.as_path()).or_insert(file);
            });
        }
        // A file where another one needs a folder.
        for (file, names) in files.iter().zip(&places) {
            let mut above = names.first().into_iter().flat_map(|name| name.ancestors().skip(1));
            if let Some(other) = above.find_map(|folder| written.get(folder)) {
                problems.push(clashing(file, other, true));
            }
        }
        problems.into_iter().for_each(|problem| self.diagnostics.push(problem));
    }

    /// The files that the workflow reads, under all of their names.
    fn files_read(&self, workflow: &Path) -> HashMap<PathBuf, ReadFile> {
        let mut read = HashMap::new();
        let mut add = |path: &Path, what: &dyn Fn() -> String, place: Option<SourceSpan>| {
            for name in names(path) {
                read.entry(name).or_insert_with(|| ReadFile { what: what(), place: place.clone() });
            }
        };
        add(workflow, &|| "is the workflow itself".into(), None);
        add(&lock_path(workflow), &|| "is the lock file".into(), None);
        for (path, place) in &self.contracts {
            add(path, &|| "is a contract of the workflow".into(), Some(place.clone()));
        }
        let mut sources: Vec<&str> = Vec::new();
        for step in &self.steps {
            let source = step.source.path();
            if !sources.contains(&source) {
                sources.push(source);
                let embedded = self.settings.working_dir.join(source);
                add(&embedded, &|| "is a workflow that this one embeds".into(), None);
            }
            for (argument, path) in step.step.local_files() {
                let what = || format!("step {} reads", quote(&step.name));
                add(&path, &what, Some(step.span_of(&argument)));
            }
        }
        read
    }
}

/// The names of a file: its own, the one without links in its folders, and, if it is a link, those
/// of its target.
fn names(path: &Path) -> Vec<PathBuf> {
    let mut names = Vec::new();
    let mut at = path.to_path_buf();
    while let (Some(name), true) = (at.file_name(), names.len() <= MAX_LINKS) {
        let folder = real_folder(at.parent().unwrap_or(Path::new("")));
        let own = folder.join(name);
        let target = std::fs::read_link(&own);
        names.push(own);
        match target {
            Ok(target) => at = folder.join(target),
            Err(_) => break,
        }
    }
    names
}

/// A folder without links in its path. It need not exist.
fn real_folder(folder: &Path) -> PathBuf {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    if let Ok(real) = folder.canonicalize() {
        return real;
    }
    match (folder.parent(), folder.file_name()) {
        (Some(parent), Some(name)) => real_folder(parent).join(name),
        _ => folder.to_path_buf(),
    }
}

fn error(code: Code, file: &WrittenFile<'_>, message: String) -> Diagnostic {
    Diagnostic::error(code, message, &file.place.source, span(file.place))
}

fn span(place: &SourceSpan) -> Span {
    Span::new(place.start, place.end())
}

fn shown(path: &Path) -> String {
    quote(&path.display().to_string())
}

/// The diagnostic if something blocks the path of the file.
fn blocked(file: &WrittenFile<'_>, path: &Path) -> Option<Diagnostic> {
    if path.is_dir() {
        let message = format!("{} is a folder, so no file can be written there", shown(path));
        return Some(error(Code::BadPath, file, message).with_help("choose another path"));
    }
    let mut above = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    let there = above.find(|folder| folder.exists())?;
    if there.is_dir() {
        return None;
    }
    let message = format!("{} is a file, so nothing can be written below it", shown(there));
    let help = "choose another path, or another folder with --out";
    Some(error(Code::BadPath, file, message).with_help(help))
}

fn in_store(file: &WrittenFile<'_>, names: &[PathBuf], guarded: &[PathBuf]) -> Option<Diagnostic> {
    let inside = |folder: &&PathBuf| names.iter().any(|name| name.starts_with(folder));
    let folder = guarded.iter().find(inside)?;
    let message = format!(
        "{} would be written to {}, where the store keeps its own files",
        file.named(),
        shown(folder)
    );
    let help = "choose another path, another folder with --out, or another store with --cache";
    Some(error(Code::BadPath, file, message).with_help(help))
}

fn overwriting(
    file: &WrittenFile<'_>,
    names: &[PathBuf],
    read: &HashMap<PathBuf, ReadFile>,
) -> Option<Diagnostic> {
    let input = names.iter().find_map(|name| read.get(name))?;
    let message =
        format!("{} would overwrite {}, which {}", file.named(), shown(file.path), input.what);
    let problem = error(Code::OverwrittenInput, file, message).with_help("choose another path");
    Some(match &input.place {
        Some(place) => problem.with_related(&place.source, span(place), "read here"),
        None => problem,
    })
}

/// Both have the same path, or the other is a file where this one needs a folder.
fn clashing(file: &WrittenFile<'_>, other: &WrittenFile<'_>, below: bool) -> Diagnostic {
    let message = match (other.output, file.output, below) {
        (Some(one), Some(two), false) => {
            let (one, two) = (quote(one), quote(two));
            format!("the outputs {one} and {two} would both be written to one file")
        }
        (_, _, false) => {
            format!("{} and {} would both be written to one file", other.named(), file.named())
        }
        (_, _, true) => {
            format!("{} needs a folder where {} is a file", file.named(), other.named())
        }
    };
    let first = other.place;
    let problem = error(Code::BadPath, file, message).with_help("choose another path");
    problem.with_related(&first.source, span(first), "the other one")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_is_known_by_the_names_of_its_links() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        std::fs::create_dir(top.join("real")).unwrap();
        symlink("real", top.join("linked")).unwrap();
        symlink("../b", top.join("real/a")).unwrap();
        symlink("loop", top.join("loop")).unwrap();
        assert_eq!(names(&top.join("linked/a")), [top.join("real/a"), top.join("b")]);
        assert_eq!(names(&top.join("linked/./new/x")), [top.join("real/new/x")]);
        assert_eq!(names(&top.join("loop")).len(), MAX_LINKS + 1);
        assert!(names(Path::new("..")).is_empty());
    }
}
