//! Checks the paths of outputs and of the report. None may replace a file that the workflow reads,
//! another output, a folder, or a part of the store; links are followed.
//!
//! A link at an output's path is replaced, and its target stays as it is. Still, both count as the
//! same file here.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::expander::Expander;
use super::lockfile::lock_path;
use galeras_workflow::code::Code;
use galeras_workflow::{Diagnostic, SourceSpan, Span, quote};

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
        return Some(error(Code::BadPath, file, message));
    }
    let mut above = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    let there = above.find(|folder| folder.exists())?;
    if there.is_dir() {
        return None;
    }
    let message = format!("{} is a file, so nothing can be written below it", shown(there));
    Some(error(Code::BadPath, file, message))
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
    error(Code::BadPath, file, message).with_related(&first.source, span(first), "the other one")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
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
