//! The settings of a workflow's last run: verbs that look at results use them by default.

use std::path::{Path, PathBuf};

use clap::Args;

use super::screen::note;
use super::{Settings, WorkflowArgs};
use galeras_base::terminal_escape::shell_word;
use galeras_store::{RunSettings, Store, StoreError};

/// A workflow and the settings of the results to show.
#[derive(Args, Clone, Debug)]
pub(crate) struct LookArgs {
    #[command(flatten)]
    pub(crate) workflow: WorkflowArgs,
    /// Look at the results for the defaults of the params. Without this and without `--set`, it
    /// is those for the `--set` of the last run.
    #[arg(long, conflicts_with = "set")]
    pub(crate) defaults: bool,
}

/// The longest value that a note shows in full.
const LONGEST_VALUE: usize = 60;

impl LookArgs {
    /// The given settings, or else those of the last run, with a note that they are used.
    pub(super) async fn settings(&self, store: &Store) -> Result<Settings, StoreError> {
        let given = Settings::typed(&self.workflow.set);
        if self.defaults || !given.set.is_empty() {
            return Ok(given);
        }
        // A file that does not exist is reported when it is read.
        let Some(path) = real_path(&self.workflow.file) else { return Ok(given) };
        let last = store.last_run(|run| run.path == path).await?;
        match last.and_then(|run| run.settings()).filter(|settings| !settings.set.is_empty()) {
            None => Ok(given),
            Some(RunSettings { set, set_folder, .. }) => {
                note(&mention(&set));
                Ok(Settings { set, folder: PathBuf::from(set_folder) })
            }
        }
    }
}

/// The settings to remember from a run of the workflow in `file`.
pub(super) fn settings_of_run(file: &Path, settings: &Settings) -> Option<RunSettings> {
    Some(RunSettings {
        path: real_path(file)?,
        set: settings.set.clone(),
        set_folder: settings.folder.to_string_lossy().into_owned(),
    })
}

fn real_path(file: &Path) -> Option<String> {
    file.canonicalize().ok().map(|path| path.to_string_lossy().into_owned())
}

/// The note that these settings are used although they were not given now.
fn mention(set: &[String]) -> String {
    let shown = |setting: &String| {
        let word = match setting.char_indices().nth(LONGEST_VALUE) {
            Some((end, _)) => format!("{}…", &setting[..end]),
            None => setting.clone(),
        };
        format!("--set {}", shell_word(&word))
    };
    let shown: Vec<String> = set.iter().map(shown).collect();
    format!(
        "with {} as in the last run; --set NAME=VALUE or --defaults for others",
        shown.join(" ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_mentioned_on_one_safe_line() {
        let long = format!("long={}", "x".repeat(1000));
        let set = ["n=5", "text=a\nb\u{1b}[2J", &long].map(String::from);
        let line = mention(&set);
        assert!(line.starts_with(r"with --set n=5 --set $'text=a\nb\x1b[2J' --set "), "{line}");
        assert!(!line.contains('\n') && line.chars().count() < 250, "{line}");
    }
}
