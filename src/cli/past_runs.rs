//! Names of recorded runs: the beginning of an id, `last`, `last~1`.

use std::path::Path;

use super::context::{Exit, Failure, fail, failed};
use galeras_store::RunRecord;

const LISTED: usize = 5;

/// The run with this name among those of a file, newest first.
pub(super) fn find_run<'a>(
    runs: &'a [RunRecord],
    file: &Path,
    name: &str,
) -> Result<&'a RunRecord, Failure> {
    let file = file.display();
    if runs.is_empty() {
        let message = format!("no run of {file} is recorded");
        return Err(failed(message));
    }
    if let Some(back) = steps_back(name) {
        return runs.get(back).ok_or_else(|| {
            let recorded = match runs.len() {
                1 => "only one run is recorded".to_string(),
                runs => format!("only {runs} runs are recorded"),
            };
            fail(format!("there is no run `{name}` of {file}: {recorded}"), Exit::Invalid)
        });
    }
    // The digits after the time also distinguish runs.
    let begins = |run: &&RunRecord| {
        let digits = run.id.rsplit_once('-').map_or("", |(_, digits)| digits);
        !name.is_empty() && (run.id.starts_with(name) || digits.starts_with(name))
    };
    let found: Vec<&RunRecord> = runs.iter().filter(begins).collect();
    let ids = |runs: &[&RunRecord]| {
        let ids: Vec<&str> = runs.iter().take(LISTED).map(|run| run.id.as_str()).collect();
        let more = if runs.len() > LISTED { ", …" } else { "" };
        format!("{}{more}", ids.join(", "))
    };
    match found.as_slice() {
        [run] => Ok(run),
        [] => {
            let all: Vec<&RunRecord> = runs.iter().collect();
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

/// The number in `last~2`; `last` is 0.
fn steps_back(name: &str) -> Option<usize> {
    match name.strip_prefix("last")? {
        "" => Some(0),
        rest => rest.strip_prefix('~')?.parse().ok(),
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
