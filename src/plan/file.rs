//! Reading a workflow file from the disk.

use std::path::{Path, PathBuf};

use crate::code::Code;
use crate::workflow::{
    Diagnostic, Diagnostics, MAX_FILE_BYTES, Source, Span, Workflow, parse_source,
};

/// Reads and parses a workflow file; its folder comes with it.
pub(super) fn read(
    file: &Path,
    display: &str,
    diagnostics: &mut Diagnostics,
) -> Option<(Workflow, PathBuf)> {
    let text = match read_text(file) {
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

fn read_text(file: &Path) -> Result<String, String> {
    let shown = file.display();
    let failed = |e: &dyn std::fmt::Display| format!("cannot read {shown}: {e}");
    let metadata = std::fs::metadata(file).map_err(|e| failed(&e))?;
    if metadata.is_dir() {
        return Err(format!("{shown} is a folder, not a workflow file"));
    }
    if metadata.len() > 16 * MAX_FILE_BYTES as u64 {
        let size = metadata.len() >> 20;
        return Err(format!("{shown} has {size} MiB, far more than a workflow may have"));
    }
    let bytes = std::fs::read(file).map_err(|e| failed(&e))?;
    String::from_utf8(bytes)
        .map_err(|e| format!("{shown} is not UTF-8 (byte {})", e.utf8_error().valid_up_to()))
}
