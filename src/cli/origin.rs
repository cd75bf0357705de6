//! `origin`: where a file comes from.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use super::context::{Exit, Failure, answer, open_store};
use super::{Format, StoreArgs};
use galeras_base::terminal_escape::escape;
use galeras_engine::runner::{FileOrigin, file_origin};
use galeras_store::{OutputOrigin, OutputRecord};

#[derive(Args)]
pub(crate) struct OriginArgs {
    /// The files.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    store: StoreArgs,
    /// How to answer.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Reports for every file which workflow wrote it; succeeds if one did and the file is unchanged.
pub(crate) async fn origin(args: OriginArgs) -> Result<Exit, Failure> {
    let here = args.store.here()?;
    let store = open_store(&here).await?;
    let mut exit = Exit::Done;
    for file in &args.files {
        let mut origin = file_origin(file, &store).await?;
        // Also the store of the project that the file is in, if that is another one.
        if matches!(origin, FileOrigin::Unknown { .. })
            && let Ok(other) = args.store.of(file)
            && other != here
        {
            origin = file_origin(file, &open_store(&other).await?).await?;
        }
        if !matches!(origin, FileOrigin::Written { .. }) {
            exit = Exit::Failed;
        }
        answer(args.format, object(file, &origin), &text(file, &origin))?;
    }
    Ok(exit)
}

fn text(file: &Path, origin: &FileOrigin) -> String {
    let mut text = escape(&file.display().to_string());
    match origin {
        FileOrigin::Written { origins, records, .. } => {
            text.push('\n');
            match records.as_slice() {
                [] => {
                    for origin in origins {
                        told(&mut text, origin);
                        let _ = writeln!(text, "  known by  what the file says of itself");
                    }
                }
                records => {
                    for OutputRecord { origin, path, run, written, .. } in records {
                        told(&mut text, origin);
                        let _ = writeln!(text, "  written   {written} as {}", escape(path));
                        let _ = writeln!(text, "  run       {}", escape(run));
                    }
                }
            }
        }
        FileOrigin::Changed { origin, .. } => {
            text.push_str(" was changed since it was written\n");
            told(&mut text, origin);
        }
        FileOrigin::Unknown { .. } => {
            text.push_str(
                ": no workflow is known to have written it as it is; --cache names another store\n",
            );
        }
        FileOrigin::Missing => text.push_str(" does not exist\n"),
        FileOrigin::Other(what) => {
            let _ = writeln!(text, " {}", escape(what));
        }
    }
    text
}

fn told(text: &mut String, origin: &OutputOrigin) {
    let OutputOrigin { workflow, file, step, port, table, version } = origin;
    let (workflow, file) = (escape(workflow), escape(file));
    let _ = writeln!(text, "  workflow  {workflow} ({file})");
    let _ = writeln!(text, "  step      {}, port {}", escape(step), escape(port));
    let _ = writeln!(text, "  table     {table}");
    let _ = writeln!(text, "  program   galeras {}", escape(version));
}

fn object(file: &Path, origin: &FileOrigin) -> Value {
    let (state, content, origins) = match origin {
        FileOrigin::Written { content, origins, records } if records.is_empty() => {
            let origins = origins.iter().map(|origin| json!({"origin": origin}));
            ("written", Some(content), origins.collect())
        }
        FileOrigin::Written { content, records, .. } => {
            let origins = records.iter().map(|record| {
                let OutputRecord { origin, path, run, written, .. } = record;
                json!({"origin": origin, "path": path, "run": run, "written": written})
            });
            ("written", Some(content), origins.collect())
        }
        FileOrigin::Changed { content, origin } => {
            ("changed", Some(content), vec![json!({"origin": origin})])
        }
        FileOrigin::Unknown { content } => ("unknown", Some(content), Vec::new()),
        FileOrigin::Missing => ("missing", None, Vec::new()),
        FileOrigin::Other(_) => ("not_a_file", None, Vec::new()),
    };
    json!({"event": "origin", "file": file.display().to_string(), "state": state,
        "content": content, "origins": origins})
}
