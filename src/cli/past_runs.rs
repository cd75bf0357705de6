//! The recorded runs of a workflow file, newest first, and their names: the beginning of an id,
//! `last`, `last~1`.

use std::path::Path;

use super::context::{Exit, Failure, fail, failed};
use galeras_store::{RunRecord, Store, StoreError};

/// The runs of one workflow file.
pub(super) struct PastRuns {
    file: String,
    runs: Vec<RunRecord>,
}

const LISTED: usize = 5;

impl PastRuns {
    /// The runs of `file` that the store has recorded.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(super) async fn of(file: &Path, store: &Store) -> Result<Self, StoreError> {
        let mut runs = store.recent_runs(usize::MAX).await?;
        runs.retain(|run| is_of(run, file));
        Ok(Self { file: file.display().to_string(), runs })
    }

    pub(super) fn all(&self) -> &[RunRecord] {
        &self.runs
    }

    pub(super) fn find(&self, name: &str) -> Result<&RunRecord, Failure> {
        if self.runs.is_empty() {
            let message = format!("no run of {} is recorded", self.file);
            return Err(failed(message));
        }
        if let Some(back) = steps_back(name) {
            return self.runs.get(back).ok_or_else(|| {
                let recorded = match self.runs.len() {
                    1 => "only one run is recorded".to_string(),
                    runs => format!("only {runs} runs are recorded"),
                };
                let file = &self.file;
                fail(format!("there is no run `{name}` of {file}: {recorded}"), Exit::Invalid)
            });
        }
        // The digits after the time also distinguish runs.
        let begins = |run: &&RunRecord| {
            let digits = run.id.rsplit_once('-').map_or("", |(_, digits)| digits);
            !name.is_empty() && (run.id.starts_with(name) || digits.starts_with(name))
        };
        let found: Vec<&RunRecord> = self.runs.iter().filter(begins).collect();
        let ids = |runs: &[&RunRecord]| {
            let ids: Vec<&str> = runs.iter().take(LISTED).map(|run| run.id.as_str()).collect();
            let more = if runs.len() > LISTED { ", …" } else { "" };
            format!("{}{more}", ids.join(", "))
        };
        match found.as_slice() {
            [run] => Ok(run),
            [] => {
                let all: Vec<&RunRecord> = self.runs.iter().collect();
                let file = &self.file;
                let message = format!(
                    "there is no run `{name}` of {file}; write the beginning of an id, `last` or \
                     `last~1`; the runs are {}",
                    ids(&all)
                );
                Err(fail(message, Exit::Invalid))
            }
            many => {
                let message = format!("{} runs begin with `{name}`: {}", many.len(), ids(many));
                Err(fail(message, Exit::Invalid))
            }
        }
    }
}

/// The number in `last~2`; `last` is 0.
fn steps_back(name: &str) -> Option<usize> {
    match name.strip_prefix("last")? {
        "" => Some(0),
        rest => rest.strip_prefix('~')?.parse().ok(),
    }
}

/// The run is one of this file. If the recorded path cannot be found from here, because the run was
/// started in another folder, the file name decides.
fn is_of(run: &RunRecord, file: &Path) -> bool {
    let there = |path: &Path| path.canonicalize().ok();
    match (there(Path::new(&run.file)), there(file)) {
        (Some(one), Some(other)) => one == other,
        _ => {
            let recorded = Path::new(&run.file);
            recorded.file_name().is_some() && recorded.file_name() == file.file_name()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::steps_back;

    #[test]
    fn runs_are_counted_from_the_last() {
        assert_eq!(steps_back("last"), Some(0));
        assert_eq!(steps_back("last~0"), Some(0));
        assert_eq!(steps_back("last~12"), Some(12));
        assert_eq!(steps_back("last~"), None);
        assert_eq!(steps_back("last-1"), None);
        assert_eq!(steps_back("lasting"), None);
        assert_eq!(steps_back("2026"), None);
    }
}
