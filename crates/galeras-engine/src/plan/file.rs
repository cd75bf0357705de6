//! Reads workflow files.

use std::path::{Path, PathBuf};

use galeras_base::small_file::{self, MAX_TEXT_BYTES};
use galeras_workflow::code::Code;
use galeras_workflow::{Diagnostic, Diagnostics, Source, Span, Workflow, parse_source};

/// Reads and parses the workflow file of the command line; also returns its folder.
pub(super) fn read_named(
    file: &Path,
    display: &str,
    diagnostics: &mut Diagnostics,
) -> Option<(Workflow, PathBuf)> {
    parsed(file, display, read_text(file, true), diagnostics)
}

/// Reads and parses the file of an embedded workflow; also returns its folder.
pub(super) fn read_embedded(
    file: &Path,
    display: &str,
    diagnostics: &mut Diagnostics,
) -> Option<(Workflow, PathBuf)> {
    parsed(file, display, read_text(file, false), diagnostics)
}

fn parsed(
    file: &Path,
    display: &str,
    text: Result<String, String>,
    diagnostics: &mut Diagnostics,
) -> Option<(Workflow, PathBuf)> {
    let text = match text {
        Ok(text) => text,
        Err(problem) => {
            let source = Source::new(display, "");
            let problem = Diagnostic::error(Code::MissingFile, problem, &source, Span::new(0, 0));
            diagnostics.push(problem.with_help("give the path of a workflow file"));
            return None;
        }
    };
    let source = Source::new(display, text);
    let (workflow, problems) = parse_source(&source);
    diagnostics.extend(problems);
    let base = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    };
    let base = base.canonicalize().unwrap_or(base);
    Some((workflow?, base))
}

fn read_text(file: &Path, named: bool) -> Result<String, String> {
    let shown = file.display();
    let bytes = if named {
        small_file::read_named(file, MAX_TEXT_BYTES)
    } else {
        small_file::read(file, MAX_TEXT_BYTES)
    };
    let bytes = bytes.map_err(|e| match e.kind() {
        std::io::ErrorKind::InvalidInput if file.is_dir() => {
            format!("{shown} is a folder, not a workflow file")
        }
        _ => format!("cannot read {shown}: {e}"),
    })?;
    String::from_utf8(bytes)
        .map_err(|e| format!("{shown} is not UTF-8 (byte {})", e.utf8_error().valid_up_to()))
}
