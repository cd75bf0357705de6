//! `report`: writes the page that explains a study.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::Format;
use super::consent::require;
use super::context::{
    Exit, Failure, LookArgs, Surveyed, cannot_write, check_suffix, fail, failed, look, note,
    print_json,
};
use galeras_base::scratch::{WholeFile, make_folder};
use galeras_base::terminal_escape::escape;
use galeras_display::bytes;
use galeras_engine::trust::report_request;
use galeras_study::report::{page, study};

#[derive(Args)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    look: LookArgs,
    /// The file to write (default: the `path` of the workflow's `report`, or its name with .html,
    /// in the current folder).
    #[arg(short, long, value_name = "FILE.html")]
    output: Option<PathBuf>,
    /// Replace a file that is not a report of Galeras.
    #[arg(long)]
    overwrite: bool,
}

pub(crate) async fn report(args: ReportArgs) -> Result<Exit, Failure> {
    if let Some(path) = &args.output {
        check_suffix(path, &["html", "htm"])?;
    }
    let surveyed = look(&args.look, Format::Human).await?;
    let path = match (args.output, &surveyed.plan.report.file) {
        (Some(path), _) => path,
        (None, Some(file)) => {
            let here = Path::new(".");
            let trust = args.look.workflow.trust(Some(here));
            let asked = report_request(&surveyed.plan, here).into_iter().collect();
            require(&args.look.workflow, asked, &trust, Format::Human)?;
            file.path.clone()
        }
        (None, None) => {
            let stem = Path::new(&surveyed.plan.file).file_stem().unwrap_or_default();
            PathBuf::from(stem).with_extension("html")
        }
    };
    write_report(&surveyed, &path, args.overwrite, Format::Human).await
}

/// Writes the page of a study and prints its path.
pub(super) async fn write_report(
    surveyed: &Surveyed,
    path: &Path,
    overwrite: bool,
    format: Format,
) -> Result<Exit, Failure> {
    if !overwrite && let Some(objection) = objection(path) {
        let place = escape(&path.display().to_string());
        let help = "; `--overwrite` replaces it, `-o` names another file";
        return Err(fail(format!("{place} {objection}{help}"), Exit::Invalid));
    }
    if let Err(error) = surveyed.complete() {
        let computed = surveyed.states.iter().any(|state| state.manifest.is_some());
        if !computed && !overwrite && path.exists() {
            // The page of a study with results would be lost to one without.
            return Err(error.into());
        }
        note(&format!("warning: the report lacks results: {error}"));
    }
    let page = study(surveyed).await.and_then(|report| page(&report)).map_err(failed)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let written =
        folder.map_or(Ok(()), make_folder).and_then(|()| WholeFile::write(path, page.as_bytes()));
    written.map_err(cannot_write(path))?;
    let place = path.strip_prefix(".").unwrap_or(path).display().to_string();
    match format {
        Format::Json => print_json(&json!({"event": "report", "path": place, "bytes": page.len()})),
        Format::Human => {
            note(&format!("report: {} ({})", escape(&place), bytes(page.len() as u64)));
            Ok(Exit::Done)
        }
    }
}

/// A mark near the beginning of every page of Galeras.
const MARK: &[u8] = b"<meta name=\"generator\" content=\"Galeras";

/// The reason why a file may not be replaced, if any.
fn objection(path: &Path) -> Option<&'static str> {
    let mut start = Vec::new();
    match fs::File::open(path).and_then(|file| file.take(4096).read_to_end(&mut start)) {
        Ok(_) if start.windows(MARK.len()).any(|part| part == MARK) => None,
        Ok(_) => Some("is a file that Galeras did not write"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(_) => Some("cannot be read, so that it is not clear what would be replaced"),
    }
}
