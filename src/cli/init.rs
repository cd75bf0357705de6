//! `init`: a workflow to start from.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;

use super::context::{Exit, fail, print};
use super::contracts::QUICKSTART;
use crate::scratch::WholeFile;

#[derive(Args)]
pub(crate) struct InitArgs {
    /// The folder; it is created if it does not exist.
    #[arg(default_value = ".")]
    dir: PathBuf,
}

/// The name of the new workflow.
const NAME: &str = "workflow.yaml";
/// What Git should not track.
const IGNORED: &str = "cache/\nquickstart/\n";

pub(crate) fn init(args: &InitArgs) -> Exit {
    // The schema of the shipped file stands beside the program's source, not here.
    let text: String = QUICKSTART
        .lines()
        .filter(|line| !line.starts_with("# yaml-language-server"))
        .map(|line| format!("{line}\n"))
        .collect();
    let file = args.dir.join(NAME);
    if let Err(e) = std::fs::create_dir_all(&args.dir) {
        return fail(&format!("cannot create the folder {}: {e}", args.dir.display()), Exit::Disk);
    }
    let written = WholeFile::create_in(&args.dir).and_then(|whole| {
        whole.file().write_all(text.as_bytes())?;
        whole.finish_new(&file)
    });
    match written {
        Ok(()) => {}
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
            let message = format!("{} already exists; nothing was written", file.display());
            return fail(&message, Exit::Invalid);
        }
        Err(e) => return fail(&format!("cannot write {}: {e}", file.display()), Exit::Disk),
    }
    let ignore = args.dir.join(".gitignore");
    if !ignore.exists()
        && let Err(e) = WholeFile::write(&ignore, IGNORED.as_bytes())
    {
        return fail(&format!("cannot write {}: {e}", ignore.display()), Exit::Disk);
    }
    let shown = file.display();
    print(&format!("wrote {shown}; next, run\n  galeras run {shown}\n"))
}
